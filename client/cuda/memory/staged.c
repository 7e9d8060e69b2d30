/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large copies between the device and host memory if the worker shares pinned memory (shared.c).
 * The bytes pass through pieces of that memory, not through the connection.  The program's thread
 * and some helpers (parallel_copy.h) fill or empty some pieces while the GPU uses the others.
 *
 *	to device	free --fill, queue copy--> in flight --the stream reaches it--> free
 *	to host		free --queue copy--> in flight --the stream reaches it; empty--> free
 *
 * Only one copy at a time uses the pieces; those of other threads use the connection meanwhile.
 *
 * A smaller copy that the program waits for uses one piece, if it is free and the pieces are made: its
 * bytes are copied once instead of four times.
 */
#include "client/cuda/memory/staged.h"

#include <string.h>

#include "base/fork.h"
#include "client/conn/settings.h"
#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/memory/managed.h"
#include "client/cuda/memory/memcpy.h"
#include "client/cuda/memory/parallel_copy.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/memory/shared.h"
#include "client/cuda/stream/stream.h"
#include "rpc/hostmem.h"

enum { PIECES = 4, PIECE = 4 << 20 };
/*
 * For smaller copies, the round trips cost more than they save: those that are waited for anyway have
 * theirs.
 */
enum { LEAST = 512 << 10, LEAST_WAITED = 16 << 10 };
/* Smaller copies before the pieces are made for them, which takes as long as hundreds of them. */
enum { SMALL_BEFORE = 64 };

struct piece {
	uint64_t address;
	_Atomic bool in_flight;
	CUresult result; /* of the wait; valid when in_flight is false */
};

static CKT_LOCK(busy);
static struct piece pieces[PIECES];
static unsigned next;

static bool is_free(void *data)
{
	return !atomic_load(&((struct piece *)data)->in_flight);
}

static void arrived(void *data, CUresult result, struct ckt_cursor *results)
{
	struct piece *piece = data;
	piece->result = result;
	atomic_store(&piece->in_flight, false);
}

/* Marks the piece as in flight until the stream has done its present work. */
static CUresult follow(struct piece *piece, uint64_t stream)
{
	struct ckt_call call;
	struct ckt_stream_synchronize_args args = {.stream = stream};
	CUresult result = ckt_call_begin(
		&call, CKT_PROC_STREAM_SYNCHRONIZE, ckt_stream_synchronize_args_size(&args), 0);
	if (result)
		return result;
	ckt_stream_synchronize_args_put(call.p, &args);
	atomic_store(&piece->in_flight, true);
	ckt_call_async(&call, arrived, piece);
	return CUDA_SUCCESS;
}

static CUresult copy(
	uint64_t dst, uint64_t src, uint64_t size, uint64_t stream, struct piece *piece)
{
	/*
	 * If the worker stopped sharing the memory during the copy, each side has pages of its own.
	 */
	CUresult result = ckt_managed_before_access(piece->address, size, dst == piece->address);
	if (!result)
		result = CKT_BATCHED(memcpy_dtod, MEMCPY_DTOD, .dst = dst, .src = src, .size = size,
			.stream = stream);
	return result ? result : follow(piece, stream);
}

static CUresult to_device(uint64_t dst, const uint8_t *src, uint64_t size, uint64_t stream)
{
	CUresult result = CUDA_SUCCESS;
	for (uint64_t at = 0; at < size && !result; at += PIECE) {
		struct piece *piece = &pieces[next++ % PIECES];
		uint64_t part = size - at < PIECE ? size - at : PIECE;
		ckt_call_wait_until(is_free, piece);
		ckt_parallel_copy(
			(void *)(uintptr_t)piece->address, src + at, part, ckt_settings.processors);
		result = copy(dst + at, piece->address, part, stream, piece);
	}
	return result;
}

static CUresult take(struct piece *piece, uint8_t *dst, uint64_t size)
{
	ckt_call_wait_until(is_free, piece);
	if (!piece->result)
		ckt_parallel_copy(dst, (const void *)(uintptr_t)piece->address, size,
			ckt_settings.processors);
	return piece->result;
}

static CUresult to_host(uint8_t *dst, uint64_t src, uint64_t size, uint64_t stream)
{
	CUresult result = CUDA_SUCCESS;
	uint64_t asked = 0;
	unsigned first = next;
	for (uint64_t got = 0; got < size && !result; got += PIECE) {
		for (; asked < size && asked < got + PIECES * (uint64_t)PIECE && !result;
			asked += PIECE) {
			struct piece *piece = &pieces[next++ % PIECES];
			ckt_call_wait_until(is_free, piece);
			result = copy(piece->address, src + asked,
				size - asked < PIECE ? size - asked : PIECE, stream, piece);
		}
		if (!result)
			result = take(&pieces[first++ % PIECES], dst + got,
				size - got < PIECE ? size - got : PIECE);
	}
	return result;
}

static bool is_small(const struct ckt_copy2d *c)
{
	return c->width < LEAST;
}

/* Precondition: the program waits for the copy, and the next piece is free. */
static CUresult small_to_device(uint64_t dst, const uint8_t *src, uint64_t size, uint64_t stream)
{
	uint64_t at = pieces[next % PIECES].address;
	CUresult result = ckt_managed_before_access(at, size, false);
	memcpy((void *)(uintptr_t)at, src, size);
	if (!result)
		result = CKT_BATCHED(memcpy_dtod, MEMCPY_DTOD, .dst = dst, .src = at, .size = size,
			.stream = stream);
	return result ? result : ckt_client_stream_wait(stream);
}

/* Precondition: busy. */
static bool small_may_use_pieces(void)
{
	static unsigned before;
	if (!pieces[0].address && before < SMALL_BEFORE) {
		before++;
		return false;
	}
	return is_free(&pieces[next % PIECES]);
}

static bool is_ready(void)
{
	struct ckt_context *context;
	uint64_t address;
	if (!pieces[0].address) {
		if (ckt_client_context_current(&context) ||
			!ckt_shared_alloc(context, (uint64_t)PIECES * PIECE, &address))
			return false;
		for (unsigned i = 0; i < PIECES; i++)
			pieces[i].address = address + i * (uint64_t)PIECE;
	}
	return ckt_shared_now(pieces[0].address);
}

static CUresult run(const struct ckt_copy2d *c, uint64_t stream)
{
	uint8_t *host = (uint8_t *)(uintptr_t)(c->dst_device ? c->src : c->dst);
	/* A copy in the background may still write the host memory. */
	ckt_client_copy_settle(host, c->width);
	if (!c->dst_device)
		return to_host(host, c->src, c->width, stream);
	return is_small(c) ? small_to_device(c->dst, host, c->width, stream)
			   : to_device(c->dst, host, c->width, stream);
}

bool ckt_staged_copy(
	const struct ckt_copy2d *c, uint64_t stream, bool is_waited_for, CUresult *ret_result)
{
	/* If the call is forbidden here, the connection's path returns the error. */
	if (c->width < (is_waited_for || !c->dst_device ? LEAST_WAITED : LEAST) || c->height != 1 ||
		c->array.id || ckt_call_forbidden)
		return false;
	/*
	 * An asynchronous copy to pinned memory runs in the background.  This path cannot, because
	 * it uses the calling thread.
	 */
	if (c->async && !c->dst_device && ckt_range_is_pinned((void *)(uintptr_t)c->dst, c->width))
		return false;
	if (pthread_mutex_trylock(&busy))
		return false;
	bool ready = (!is_small(c) || small_may_use_pieces()) && is_ready();
	if (ready)
		*ret_result = run(c, stream);
	pthread_mutex_unlock(&busy);
	return ready;
}
