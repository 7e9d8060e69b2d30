/* SPDX-License-Identifier: Apache-2.0 */
/* Large copies on lanes; see lane_copy.h. */
#include "client/cuda/memory/lane_copy.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "client/conn/conn.h"
#include "client/conn/lane.h"
#include "client/cuda/call.h"
#include "client/cuda/memory/memcpy.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/memory/staged.h"

enum {
	/* Smaller copies gain nothing. */
	LEAST = 1 << 20,
	/* Pieces are of this size or larger, if all lanes have one. */
	PIECE_LEAST = 128 << 10,
	PIECE_GRAIN = 64 << 10,
	WINDOW = 16, /* pieces of one copy whose replies are awaited at once */
};

struct part;

struct copy {
	/* in the background: among others, until the last reply frees it and its parts */
	struct copy *next, *previous;
	struct part *parts;
	bool background, issued;
	struct ckt_conn *conn;
	struct ckt_lane_set *set;
	uint64_t device, stream;
	uint8_t *host;
	uint64_t size, piece_bytes;
	_Atomic unsigned outstanding;
	_Atomic CUresult error;
	struct ckt_lane_copy done;
};

/* A piece, from its making to its reply. */
struct part {
	struct ckt_lane_piece lane; /* first */
	struct copy *copy;
	uint64_t offset;
	bool again; /* the worker does not have it */
};

static CKT_LOCK(list_lock);
static struct copy list = {.next = &list, .previous = &list};
static _Atomic unsigned list_count;

static void enter(struct copy *copy)
{
	pthread_mutex_lock(&list_lock);
	copy->next = &list;
	copy->previous = list.previous;
	copy->previous->next = copy;
	list.previous = copy;
	pthread_mutex_unlock(&list_lock);
	atomic_fetch_add(&list_count, 1);
}

static void leave(struct copy *copy)
{
	pthread_mutex_lock(&list_lock);
	copy->previous->next = copy->next;
	copy->next->previous = copy->previous;
	pthread_mutex_unlock(&list_lock);
	atomic_fetch_sub(&list_count, 1);
}

bool ckt_lane_copies_any(void)
{
	return atomic_load(&list_count);
}

bool ckt_lane_copies_write(const struct ckt_conn *conn, uint64_t begin, uint64_t end)
{
	bool writes = false;
	pthread_mutex_lock(&list_lock);
	for (const struct copy *copy = list.next; copy != &list; copy = copy->next) {
		uint64_t at = (uint64_t)(uintptr_t)copy->host;
		writes = writes || (copy->conn == conn && at < end && begin < at + copy->size);
	}
	pthread_mutex_unlock(&list_lock);
	return writes;
}

static bool all_done(void *data)
{
	return !atomic_load(&((struct copy *)data)->outstanding);
}

static bool may_ask(void *data)
{
	struct copy *copy = data;
	unsigned outstanding = atomic_load(&copy->outstanding);
	return !outstanding || (outstanding < WINDOW && ckt_lanes_have_room(copy->set));
}

static void fail(struct copy *copy, CUresult result)
{
	CUresult none = CUDA_SUCCESS;
	if (result)
		atomic_compare_exchange_strong(&copy->error, &none, result);
}

/* ---- To the device */

static void taken(void *data, CUresult result, struct ckt_cursor *results)
{
	struct part *part = data;
	struct copy *copy = part->copy;
	if (result == CUDA_ERROR_NOT_READY)
		part->again = true;
	else
		fail(copy, result);
	atomic_fetch_sub(&copy->outstanding, 1);
}

/* The worker has the piece: the command that uses it. */
static CUresult use(struct part *part)
{
	struct copy *copy = part->copy;
	struct ckt_call call;
	struct ckt_lane_htod_args args = {.dst = copy->device + part->offset,
		.size = part->lane.size,
		.stream = copy->stream,
		.piece = part->lane.number};
	CUresult result = ckt_call_begin(
		&call, CKT_PROC_LANE_HTOD, ckt_lane_htod_args_size(&args), CKT_CALL_F_NUMBERED);
	if (result)
		return result;
	ckt_lane_htod_args_put(call.p, &args);
	atomic_fetch_add(&copy->outstanding, 1);
	ckt_call_async(&call, taken, part);
	return CUDA_SUCCESS;
}

static CUresult to_device(struct copy *copy, struct part *parts, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		parts[i].lane.copy = &copy->done;
		ckt_lane_send(copy->set, &parts[i].lane);
	}
	ckt_lane_help(copy->set);
	for (uint64_t i = 0; i < count; i++) {
		struct part *part = (struct part *)ckt_lane_next(copy->set, &copy->done);
		if (part->lane.state != CKT_LANE_THERE)
			part->again = true;
		else if (!atomic_load(&copy->error))
			fail(copy, use(part));
	}
	ckt_call_wait_until(all_done, copy);
	for (uint64_t i = 0; i < count && !copy->error; i++)
		if (parts[i].again)
			fail(copy,
				ckt_client_copy_send(copy->device + parts[i].offset,
					parts[i].lane.data, parts[i].lane.size, copy->stream));
	return copy->error;
}

/* ---- To the host */

/* Nobody waits for it: its error is the next call's. */
static void end_background(struct copy *copy)
{
	CUresult none = CUDA_SUCCESS;
	if (copy->error)
		atomic_compare_exchange_strong(&copy->conn->deferred, &none, copy->error);
	leave(copy);
	ckt_lanes_release(copy->set);
	free(copy->parts);
	free(copy);
}

static void came(void *data, CUresult result, struct ckt_cursor *results)
{
	struct part *part = data;
	struct copy *copy = part->copy;
	struct ckt_lane_dtoh_res res = {0};
	bool there = ckt_lane_leave(&part->lane);
	if (!result && !ckt_lane_dtoh_res_get(results, &res))
		result = CUDA_ERROR_UNKNOWN;
	/*
	 * With the reply, because the lanes broke.  If all had come by then, the program may have
	 * been told, and may have written the memory since.
	 */
	if (!result && !there && res.data_len == part->lane.size)
		memcpy(part->lane.data, res.data, res.data_len);
	else if (!result && !there)
		result = CUDA_ERROR_UNKNOWN;
	fail(copy, result);
	/* Now the program may learn of it. */
	ckt_lane_end(&part->lane);
	pthread_mutex_lock(&list_lock);
	bool last = atomic_fetch_sub(&copy->outstanding, 1) == 1 && copy->issued;
	pthread_mutex_unlock(&list_lock);
	if (last)
		end_background(copy);
}

static CUresult ask(struct part *part)
{
	struct copy *copy = part->copy;
	struct ckt_call call;
	ckt_lane_expect(copy->set, &part->lane);
	struct ckt_lane_dtoh_args args = {.src = copy->device + part->offset,
		.size = part->lane.size,
		.background = copy->background,
		.stream = copy->stream,
		.piece = part->lane.number};
	CUresult result = ckt_call_begin(
		&call, CKT_PROC_LANE_DTOH, ckt_lane_dtoh_args_size(&args), CKT_CALL_F_NUMBERED);
	if (result) {
		ckt_lane_leave(&part->lane);
		ckt_lane_end(&part->lane);
		return result;
	}
	ckt_lane_dtoh_args_put(call.p, &args);
	atomic_fetch_add(&copy->outstanding, 1);
	ckt_call_async(&call, came, part);
	return CUDA_SUCCESS;
}

static CUresult to_host(struct copy *copy, uint64_t count)
{
	for (uint64_t i = 0; i < count && !atomic_load(&copy->error); i++) {
		ckt_call_wait_until(may_ask, copy);
		fail(copy, ask(&copy->parts[i]));
	}
	if (copy->background && !copy->error)
		return CUDA_SUCCESS;
	ckt_call_wait_until(all_done, copy);
	ckt_lanes_settle(copy->conn);
	return copy->error;
}

/* Whether the copy goes on without this thread; else it is over, and *ret_result is its result. */
static bool goes_on(struct copy *copy, CUresult *ret_result)
{
	if (!copy->background || *ret_result)
		return false;
	pthread_mutex_lock(&list_lock);
	copy->issued = true;
	bool over = !atomic_load(&copy->outstanding);
	pthread_mutex_unlock(&list_lock);
	if (over)
		*ret_result = copy->error;
	return !over;
}

/* ---- Both */

static uint64_t piece_bytes(uint64_t size, unsigned lanes)
{
	uint64_t part = (size / lanes + PIECE_GRAIN - 1) / PIECE_GRAIN * PIECE_GRAIN;
	return part < PIECE_LEAST ? PIECE_LEAST : part > CKT_DATA_MAX ? CKT_DATA_MAX : part;
}

static struct copy *make(const struct ckt_copy2d *c, uint64_t stream, struct ckt_lane_set *set)
{
	uint64_t bytes = piece_bytes(c->width, ckt_lanes_count(set));
	uint64_t count = (c->width + bytes - 1) / bytes;
	struct copy *copy = calloc(1, sizeof *copy);
	struct part *parts = calloc(count, sizeof *parts);
	if (!copy || !parts) {
		free(copy);
		free(parts);
		return NULL;
	}
	*copy = (struct copy){.parts = parts,
		.conn = ckt_call_conn,
		.set = set,
		.device = c->dst_device ? c->dst : c->src,
		.stream = stream,
		.host = (uint8_t *)(uintptr_t)(c->dst_device ? c->src : c->dst),
		.size = c->width,
		.piece_bytes = bytes};
	copy->done.last = &copy->done.first;
	return copy;
}

static void cut(struct copy *copy, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t offset = i * copy->piece_bytes, left = copy->size - offset;
		copy->parts[i] = (struct part){.copy = copy,
			.offset = offset,
			.lane = {.data = copy->host + offset,
				.background = copy->background,
				.size = (uint32_t)(left < copy->piece_bytes ? left
									    : copy->piece_bytes)}};
	}
}

/* Takes the set over. */
static bool run(const struct ckt_copy2d *c, uint64_t stream, bool background,
	struct ckt_lane_set *set, CUresult *ret_result)
{
	struct copy *copy = make(c, stream, set);
	if (!copy) {
		ckt_lanes_release(set);
		return false;
	}
	uint64_t count = (copy->size + copy->piece_bytes - 1) / copy->piece_bytes;
	copy->background = background;
	cut(copy, count);
	if (background)
		enter(copy);
	*ret_result = c->dst_device ? to_device(copy, copy->parts, count) : to_host(copy, count);
	if (goes_on(copy, ret_result))
		return true;
	if (background)
		leave(copy);
	ckt_lanes_release(set);
	free(copy->parts);
	free(copy);
	return true;
}

static bool lane_copy(const struct ckt_copy2d *c, uint64_t stream, CUresult *ret_result)
{
	/* If the call is forbidden here, the connection's path returns the error. */
	if (c->width < LEAST || c->height != 1 || c->array.id || ckt_call_forbidden)
		return false;
	uint64_t host = c->dst_device ? c->src : c->dst;
	/* As copies over the connection are (memcpy.c). */
	bool background = c->async && !c->dst_device &&
		ckt_range_is_pinned((void *)(uintptr_t)host, c->width) &&
		!ckt_range_is_shared(host, c->width);
	struct ckt_lane_set *set = ckt_lanes_get(ckt_call_conn);
	if (!set)
		return false;
	/* A copy in the background may still write the host memory. */
	ckt_client_copy_settle((void *)(uintptr_t)host, c->width);
	return run(c, stream, background, set, ret_result);
}

bool ckt_large_copy(
	const struct ckt_copy2d *c, uint64_t stream, bool is_waited_for, CUresult *ret_result)
{
	return c->dst_device != c->src_device &&
		(ckt_staged_copy(c, stream, is_waited_for, ret_result) ||
			lane_copy(c, stream, ret_result));
}
