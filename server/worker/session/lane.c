/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes in the worker; see lane.h. */
#include "server/worker/session/lane.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "rpc/net.h"
#include "server/worker/session/executor.h"
#include "server/worker/worker.h"

enum {
	ANSWER_TIMEOUT_MS = 5000,
	/* An honest client owes a command for each before it sends more than staging memory holds. */
	ARRIVED_MAX = 4 * CKT_STAGING_LANES_MAX,
};

/* A piece on its way to the host. */
struct outgoing {
	struct outgoing *next;
	struct ckt_wcall *call;
	struct ckt_staging_piece *staged;
	struct ckt_lane_head head;
	bool sending, arrived;
};

struct arrival {
	struct ckt_lane_head head;
	struct ckt_staging_piece *staged;
};

/* The lock of worker->lanes is for all of it. */
struct ckt_worker_lane_set {
	struct ckt_worker *worker;
	uint64_t number;
	unsigned refs; /* threads, and worker->lanes.current */
	_Atomic bool gone;
	unsigned count;
	struct ckt_transport lanes[CKT_LANES_MAX];
	bool writing[CKT_LANES_MAX]; /* a thread writes to the lane of that number */
	pthread_cond_t work;         /* for the writers */
	pthread_cond_t quiet;        /* none of them is inside a piece */
	unsigned sending;
	struct outgoing *first, **last;
	struct outgoing *unacknowledged;
	uint64_t arrived[ARRIVED_MAX]; /* to be acknowledged */
	unsigned arrived_first, arrived_count;
	struct arrival arrivals[CKT_STAGING_LANES_MAX];
	unsigned arrival_count;
};

struct lane {
	struct ckt_worker_lane_set *set;
	struct ckt_transport *transport;
	bool *writing;
};

void ckt_worker_lanes_init(struct ckt_worker_lanes *lanes)
{
	*lanes = (struct ckt_worker_lanes){0};
	pthread_mutex_init(&lanes->lock, NULL);
}

static void lock(struct ckt_worker *worker)
{
	pthread_mutex_lock(&worker->lanes.lock);
}

static void unlock(struct ckt_worker *worker)
{
	pthread_mutex_unlock(&worker->lanes.lock);
}

/* Precondition: locked. */
static struct ckt_worker_lane_set *set_new(struct ckt_worker *worker, uint64_t number)
{
	struct ckt_worker_lane_set *set = calloc(1, sizeof *set);
	if (!set)
		return NULL;
	set->worker = worker;
	set->number = number;
	set->refs = 1;
	set->last = &set->first;
	pthread_cond_init(&set->work, NULL);
	pthread_cond_init(&set->quiet, NULL);
	return set;
}

/* Precondition: locked. */
static void set_unref(struct ckt_worker_lane_set *set)
{
	if (--set->refs)
		return;
	for (unsigned i = 0; i < set->count; i++)
		ckt_transport_close(&set->lanes[i]);
	pthread_cond_destroy(&set->work);
	pthread_cond_destroy(&set->quiet);
	free(set);
}

/* ---- Answers */

/* The client has the bytes, or gets them with the reply.  Precondition: not locked. */
static void finish(struct ckt_worker *worker, struct outgoing *item)
{
	uint32_t size = item->arrived ? 0 : item->head.size;
	ckt_put_opaque(
		ckt_wcall_results(item->call, 4 + ckt_padded(size)), item->staged->data, size);
	ckt_staging_give(&worker->staging, item->staged);
	ckt_wcall_finish(item->call, CUDA_SUCCESS);
	free(item);
	/* As a waiter does (pending.c): the program's next command comes soon. */
	if (ckt_output_flush(&worker->output) || worker->spin_ns > CKT_SPIN_NS)
		ckt_executor_wake(worker);
}

/* Precondition: locked.  What is being sent stays for its writer. */
static struct outgoing *take_all(struct ckt_worker_lane_set *set)
{
	struct outgoing *all = set->first, **end = &all;
	while (*end)
		end = &(*end)->next;
	for (struct outgoing **item = &set->unacknowledged; *item;) {
		if ((*item)->sending) {
			item = &(*item)->next;
			continue;
		}
		*end = *item;
		*item = (*item)->next;
		end = &(*end)->next;
		*end = NULL;
	}
	set->first = NULL;
	set->last = &set->first;
	return all;
}

/* Ends these lanes, if they have not ended. */
static void end_set(struct ckt_worker *worker, struct ckt_worker_lane_set *set)
{
	lock(worker);
	if (worker->lanes.current != set) {
		unlock(worker);
		return;
	}
	worker->lanes.current = NULL;
	atomic_store(&set->gone, true);
	for (unsigned i = 0; i < set->count; i++)
		ckt_transport_shutdown(&set->lanes[i]);
	pthread_cond_broadcast(&set->work);
	for (unsigned i = 0; i < set->arrival_count; i++)
		ckt_staging_give(&worker->staging, set->arrivals[i].staged);
	set->arrival_count = 0;
	struct outgoing *all = take_all(set);
	set_unref(set);
	unlock(worker);
	ckt_staging_lanes_wake(&worker->staging);
	while (all) {
		struct outgoing *next = all->next;
		finish(worker, all);
		all = next;
	}
}

unsigned ckt_worker_lanes_count(struct ckt_worker *worker)
{
	lock(worker);
	unsigned count = worker->lanes.current ? worker->lanes.current->count : 0;
	unlock(worker);
	return count;
}

void ckt_worker_lanes_end(struct ckt_worker *worker)
{
	lock(worker);
	struct ckt_worker_lane_set *set = worker->lanes.current;
	if (set)
		set->refs++;
	unlock(worker);
	if (!set)
		return;
	end_set(worker, set);
	lock(worker);
	while (set->sending)
		pthread_cond_wait(&set->quiet, &worker->lanes.lock);
	set_unref(set);
	unlock(worker);
}

void ckt_worker_lanes_bar(struct ckt_worker *worker, bool barred)
{
	lock(worker);
	worker->lanes.barred = barred;
	unlock(worker);
	if (barred)
		ckt_worker_lanes_end(worker);
}

/* ---- Receiving */

/* Keeps a whole piece until its command comes.  Precondition: locked. */
static int keep(struct ckt_worker_lane_set *set, const struct ckt_lane_head *head,
	struct ckt_staging_piece *staged)
{
	if (set->gone)
		return -ECONNRESET;
	for (unsigned i = 0; i < set->arrival_count; i++)
		if (set->arrivals[i].head.piece == head->piece)
			return -EPROTO;
	/* There are no more pieces of staging memory than arrivals. */
	if (set->arrived_count == ARRIVED_MAX)
		return -EPROTO;
	set->arrivals[set->arrival_count++] = (struct arrival){.head = *head, .staged = staged};
	return 0;
}

/*
 * Tells the client that the piece is here: at once if nobody writes to this lane and it takes the
 * words without a wait, else by a writer.  Precondition: locked; unlocks meanwhile.
 */
static int say_arrived(struct lane *lane, uint64_t piece)
{
	struct ckt_worker_lane_set *set = lane->set;
	ssize_t n = -EAGAIN;
	if (!*lane->writing) {
		uint8_t bytes[CKT_LANE_HEAD_SIZE];
		ckt_lane_head_put(
			bytes, &(struct ckt_lane_head){.kind = CKT_LANE_ARRIVED, .piece = piece});
		*lane->writing = true;
		unlock(set->worker);
		n = ckt_transport_write(lane->transport, bytes, sizeof bytes);
		lock(set->worker);
		*lane->writing = false;
		if (n == sizeof bytes && !set->first && !set->arrived_count)
			return 0;
	}
	if (n != sizeof(uint8_t[CKT_LANE_HEAD_SIZE])) {
		if (n != -EAGAIN || set->arrived_count == ARRIVED_MAX)
			return n < 0 && n != -EAGAIN ? (int)n : -EIO;
		set->arrived[(set->arrived_first + set->arrived_count++) % ARRIVED_MAX] = piece;
	}
	pthread_cond_broadcast(&set->work);
	return 0;
}

static int receive(struct lane *lane, const struct ckt_lane_head *head)
{
	struct ckt_worker_lane_set *set = lane->set;
	struct ckt_worker *worker = set->worker;
	struct ckt_staging_piece *staged = ckt_staging_lane_take(&worker->staging, &set->gone);
	if (!staged)
		return -ECONNRESET;
	int result = ckt_transport_read_all(lane->transport, staged->data, head->size);
	if (!result) {
		lock(worker);
		result = keep(set, head, staged);
		if (!result) {
			result = say_arrived(lane, head->piece);
			unlock(worker);
			return result;
		}
		unlock(worker);
	}
	ckt_staging_give(&worker->staging, staged);
	return result;
}

/* The client has a piece. */
static int acknowledged(struct ckt_worker_lane_set *set, uint64_t piece)
{
	struct outgoing **item = &set->unacknowledged, *found;
	lock(set->worker);
	while (*item && (*item)->head.piece != piece)
		item = &(*item)->next;
	found = *item;
	int result = found && !found->arrived ? 0 : -EPROTO;
	bool ours = !result && !found->sending;
	if (!result)
		found->arrived = true;
	if (ours)
		*item = found->next;
	unlock(set->worker);
	if (ours)
		finish(set->worker, found);
	return result;
}

static void leave(struct lane *lane)
{
	struct ckt_worker *worker = lane->set->worker;
	end_set(worker, lane->set);
	lock(worker);
	set_unref(lane->set);
	unlock(worker);
	free(lane);
}

static void *reader(void *opaque)
{
	struct lane *lane = opaque;
	struct ckt_lane_head head;
	int result;
	do {
		result = ckt_lane_head_read(lane->transport, &head);
		if (!result)
			result = head.kind == CKT_LANE_DATA ? receive(lane, &head)
							    : acknowledged(lane->set, head.piece);
	} while (!result);
	if (result == -EPROTO)
		ckt_warning("malformed data on a lane: the session's lanes end");
	leave(lane);
	return NULL;
}

/* ---- Sending */

/* Precondition: locked. */
static void unlink_outgoing(struct ckt_worker_lane_set *set, const struct outgoing *item)
{
	struct outgoing **at = &set->unacknowledged;
	while (*at != item)
		at = &(*at)->next;
	*at = item->next;
}

/* Precondition: locked; unlocks meanwhile. */
static int send_piece(struct lane *lane)
{
	struct ckt_worker_lane_set *set = lane->set;
	struct outgoing *item = set->first;
	set->first = item->next;
	if (!set->first)
		set->last = &set->first;
	item->sending = true;
	set->sending++;
	item->next = set->unacknowledged;
	set->unacknowledged = item;
	unlock(set->worker);
	int result = ckt_lane_frame_write(lane->transport, &item->head, item->staged->data);
	lock(set->worker);
	item->sending = false;
	/* The acknowledgement was faster than this thread, or the lanes ended meanwhile. */
	if (item->arrived || set->gone) {
		unlink_outgoing(set, item);
		unlock(set->worker);
		finish(set->worker, item);
		lock(set->worker);
	}
	if (!--set->sending)
		pthread_cond_broadcast(&set->quiet);
	return result;
}

/* As send_piece: says what has arrived. */
static int send_arrived(struct lane *lane)
{
	struct ckt_worker_lane_set *set = lane->set;
	uint8_t bytes[ARRIVED_MAX * CKT_LANE_HEAD_SIZE], *p = bytes;
	for (; set->arrived_count; set->arrived_count--, p += CKT_LANE_HEAD_SIZE) {
		ckt_lane_head_put(p,
			&(struct ckt_lane_head){.kind = CKT_LANE_ARRIVED,
				.piece = set->arrived[set->arrived_first]});
		set->arrived_first = (set->arrived_first + 1) % ARRIVED_MAX;
	}
	unlock(set->worker);
	int result = ckt_transport_write_all(lane->transport, bytes, (size_t)(p - bytes), -1);
	lock(set->worker);
	return result;
}

static void *writer(void *opaque)
{
	struct lane *lane = opaque;
	struct ckt_worker_lane_set *set = lane->set;
	int result = 0;
	lock(set->worker);
	while (!set->gone && !result) {
		if (*lane->writing || (!set->arrived_count && !set->first)) {
			pthread_cond_wait(&set->work, &set->worker->lanes.lock);
			continue;
		}
		*lane->writing = true;
		result = set->arrived_count ? send_arrived(lane) : send_piece(lane);
		*lane->writing = false;
	}
	unlock(set->worker);
	leave(lane);
	return NULL;
}

/* Precondition: locked, so that the piece's reply comes later. */
static void announce(struct ckt_worker *worker, uint64_t piece)
{
	uint64_t epoch = ckt_output_epoch(&worker->output);
	uint8_t *p =
		epoch ? ckt_output_begin(&worker->output, epoch, CKT_CALL_HEADER_SIZE + 8) : NULL;
	/* Without a client the lanes end, and the reply has the bytes. */
	if (!p)
		return;
	p = ckt_call_header_put(p,
		&(struct ckt_call_header){
			.prog = CRICKET_CALLBACK_PROG, .vers = 1, .proc = CKT_CALLBACK_LANE_PIECE});
	ckt_put_u64(p, piece);
	ckt_output_end(&worker->output);
}

bool ckt_worker_lanes_send(struct ckt_worker *worker, struct ckt_wcall *call,
	const struct ckt_worker_lane_piece *piece)
{
	struct outgoing *item = malloc(sizeof *item);
	if (!item)
		return false;
	*item = (struct outgoing){.call = call,
		.staged = piece->staged,
		.head = {.kind = CKT_LANE_DATA,
			.size = (uint32_t)piece->size,
			.piece = piece->number}};
	lock(worker);
	struct ckt_worker_lane_set *set = worker->lanes.current;
	bool good = set && set->count;
	if (good) {
		if (piece->background)
			announce(worker, piece->number);
		*set->last = item;
		set->last = &item->next;
		pthread_cond_signal(&set->work);
	}
	unlock(worker);
	if (!good)
		free(item);
	return good;
}

int ckt_worker_lanes_take(struct ckt_worker *worker, uint64_t piece, uint32_t size,
	struct ckt_staging_piece **ret_staged)
{
	int result = -ENOENT;
	lock(worker);
	struct ckt_worker_lane_set *set = worker->lanes.current;
	for (unsigned i = 0; set && i < set->arrival_count; i++) {
		if (set->arrivals[i].head.piece != piece)
			continue;
		result = set->arrivals[i].head.size == size ? 0 : -EPROTO;
		if (!result) {
			*ret_staged = set->arrivals[i].staged;
			set->arrivals[i] = set->arrivals[--set->arrival_count];
		}
		break;
	}
	unlock(worker);
	return result;
}

/* ---- A lane begins */

static int start_thread(struct ckt_worker_lane_set *set, unsigned number, void *(*run)(void *))
{
	struct lane *lane = malloc(sizeof *lane);
	pthread_t thread;
	if (!lane)
		return -ENOMEM;
	*lane = (struct lane){
		.set = set, .transport = &set->lanes[number], .writing = &set->writing[number]};
	int error = pthread_create(&thread, NULL, run, lane);
	if (error) {
		free(lane);
		return -error;
	}
	pthread_detach(thread);
	set->refs++;
	return 0;
}

/* Precondition: locked.  fd is the set's if it is among its lanes then. */
static ckt_hello_status add(struct ckt_worker *worker, int fd, uint64_t number, char **ret_message)
{
	struct ckt_worker_lanes *lanes = &worker->lanes;
	if (lanes->barred) {
		*ret_message = (char *)"the session is being saved";
		return CKT_HELLO_FULL;
	}
	if (!lanes->current)
		lanes->current = set_new(worker, number);
	struct ckt_worker_lane_set *set = lanes->current;
	if (!set || set->count == CKT_LANES_MAX || set->number != number) {
		*ret_message = (char *)"the session has all its lanes";
		return CKT_HELLO_FULL;
	}
	ckt_transport_init_socket(&set->lanes[set->count++], fd);
	return CKT_HELLO_OK;
}

/* Precondition: locked. */
static int start(struct ckt_worker_lane_set *set)
{
	int error = start_thread(set, set->count - 1, reader);
	return error ? error : start_thread(set, set->count - 1, writer);
}

static int answer(
	int fd, uint32_t xid, struct ckt_worker *worker, ckt_hello_status status, char *message)
{
	ckt_hello_res res = {.status = status};
	uint8_t *data;
	size_t size;
	if (status == CKT_HELLO_OK)
		res.ckt_hello_res_u.ok = (ckt_hello_ok){.protocol = CKT_PROTOCOL_VERSION,
			.session = worker->session,
			.generation = worker->generation,
			.server = (char *)"",
			.build = (char *)CKT_VERSION};
	else
		res.ckt_hello_res_u.refused =
			(ckt_hello_refused){.message = message, .moved_to = (char *)""};
	int result = ckt_net_encode_reply(xid, 0, (xdrproc_t)xdr_ckt_hello_res, &res, &data, &size);
	if (result)
		return result;
	result = ckt_net_write_record(fd, data, size, ckt_net_now_ms() + ANSWER_TIMEOUT_MS, -1);
	free(data);
	return result;
}

ckt_hello_status ckt_worker_lanes_accept(
	struct ckt_worker *worker, int fd, uint32_t xid, uint64_t number)
{
	char *message = (char *)"";
	lock(worker);
	bool others = worker->lanes.current && worker->lanes.current->number != number;
	unlock(worker);
	if (others)
		ckt_worker_lanes_end(worker);
	lock(worker);
	ckt_hello_status status = add(worker, fd, number, &message);
	struct ckt_worker_lane_set *set = status ? NULL : worker->lanes.current;
	/* With the lock, so that nothing precedes it; the peer waits for nothing else. */
	int result = answer(fd, xid, worker, status, message);
	if (set && !result)
		result = start(set);
	unlock(worker);
	if (status)
		close(fd);
	else if (result)
		end_set(worker, set);
	return status;
}
