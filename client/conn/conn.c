/* SPDX-License-Identifier: Apache-2.0 */
/* The connection: opening, encoding into the ring, waiting.  See the drawing in conn.h. */
#include "client/conn/conn.h"
#include "client/conn/hostmem.h"
#include "client/conn/replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "client/conn/gpu_trace.h"
#include "client/conn/settings.h"
#include "client/conn/spin.h"
#include "client/trace/recorder.h"
#include "base/fork.h"
#include "rpc/gen/cuda_codec.h"
#include "rpc/record.h"
#include "base/log.h"
#include "base/refusal_log.h"

struct ckt_conn ckt_conn = {
	.transport = CKT_TRANSPORT_NONE,
	.connecting_fd = -1,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.send_lock = PTHREAD_MUTEX_INITIALIZER,
	.read_lock = PTHREAD_MUTEX_INITIALIZER,
	.state_lock = PTHREAD_MUTEX_INITIALIZER,
	.lanes = {.lock = PTHREAD_MUTEX_INITIALIZER},
	.read_cond = PTHREAD_COND_INITIALIZER,
	.state_cond = PTHREAD_COND_INITIALIZER,
	.gap_start = UINT64_MAX,
	.next_seq = 1,
	.next_xid = 1,
	.pending = {.next = &ckt_conn.pending, .prev = &ckt_conn.pending},
};

__thread bool ckt_call_forbidden __attribute__((tls_model("initial-exec")));
void (*_Atomic ckt_conn_host_call)(struct ckt_conn *conn, const struct ckt_host_call_args *call);
void (*_Atomic ckt_conn_notify)(struct ckt_conn *conn, const struct ckt_notify_args *args);
__thread uint64_t ckt_call_context __attribute__((tls_model("initial-exec")));
__thread struct ckt_conn *ckt_call_conn __attribute__((tls_model("initial-exec"))) = &ckt_conn;
static __thread uint32_t thread_number __attribute__((tls_model("initial-exec")));
static _Atomic uint32_t next_thread_number = 1;
static struct ckt_devices_res devices;
static bool have_devices;

const struct ckt_devices_res *ckt_conn_devices(void)
{
	return have_devices ? &devices : NULL;
}

static uint32_t this_thread(void)
{
	if (!thread_number)
		thread_number = atomic_fetch_add(&next_thread_number, 1);
	return thread_number;
}

/* ---- Encoding */

struct room {
	struct ckt_conn *conn;
	uint64_t size;
	uint64_t limit;
	bool may_ask;
};

/* The bytes that a record of this size takes at tail, including the gap at the ring's end. */
static uint64_t ring_need(uint64_t tail, uint64_t size)
{
	uint64_t offset = tail % CKT_RING_SIZE;
	return offset + size > CKT_RING_SIZE ? CKT_RING_SIZE - offset + size : size;
}

static bool has_room(void *data)
{
	const struct room *room = data;
	struct ckt_conn *conn = room->conn;
	if (atomic_load(&conn->state) == CKT_CONN_LOST)
		return true;
	pthread_mutex_lock(&conn->lock);
	bool enough = conn->tail - conn->head + ring_need(conn->tail, room->size) <= room->limit;
	/*
	 * A reply that was already under way may have freed too little.  Then this thread must ask
	 * again, because no other thread does.
	 */
	bool ask = room->may_ask && !conn->ack_pending;
	pthread_mutex_unlock(&conn->lock);
	return enough || ask;
}

static void ask_for_ack(struct ckt_conn *conn);

/*
 * Reserves room for one record at tail; waits while the ring is full.  Precondition: conn.lock
 * held; it is released while waiting.
 */
static CUresult ring_reserve(struct ckt_conn *conn, uint32_t size, bool session_proc,
	bool ends_host_func, uint8_t **ret_record)
{
	/*
	 * The acknowledgement that frees the ring must itself find room: session procedures have
	 * reserved room.  The end of a host function also has reserved room, because the GPU and
	 * the worker may wait for it before they do anything else.
	 */
	uint32_t closed = session_proc ? 0 : ends_host_func ? CKT_RING_CORNER / 2 : CKT_RING_CORNER;
	struct room room = {.conn = conn,
		.size = size,
		.limit = CKT_RING_SIZE - closed,
		.may_ask = !session_proc};
	for (;;) {
		int state = atomic_load_explicit(&conn->state, memory_order_relaxed);
		if (state == CKT_CONN_LOST)
			return conn->error;
		if (state != CKT_CONN_OPEN && state != CKT_CONN_RESUMING)
			return CUDA_ERROR_NOT_INITIALIZED;
		uint64_t tail = atomic_load_explicit(&conn->tail, memory_order_relaxed);
		uint64_t need = ring_need(tail, size);
		if (tail - conn->head + need <= room.limit) {
			if (need > size) {
				memset(conn->ring + tail % CKT_RING_SIZE, 0, CKT_MARK_SIZE);
				atomic_store_explicit(&conn->gap_start, tail, memory_order_relaxed);
				tail += need - size;
				atomic_store_explicit(&conn->tail, tail, memory_order_release);
			}
			*ret_record = conn->ring + tail % CKT_RING_SIZE;
			return CUDA_SUCCESS;
		}
		bool ask = !session_proc && !conn->ack_pending;
		if (ask) {
			conn->ack_pending = true;
			conn->last_ack_position = tail;
		}
		pthread_mutex_unlock(&conn->lock);
		if (ask)
			ask_for_ack(conn);
		ckt_conn_wait_until(conn, has_room, &room);
		pthread_mutex_lock(&conn->lock);
	}
}

/* Takes the number for a call that changes state.  Precondition: conn.lock held. */
static inline uint64_t take_seq(struct ckt_conn *conn, unsigned flags)
{
	uint64_t seq = atomic_load_explicit(&conn->next_seq, memory_order_relaxed);
	atomic_store_explicit(&conn->next_seq, seq + 1, memory_order_release);
	if (!(flags & CKT_CALL_F_BATCHED))
		atomic_fetch_add_explicit(&conn->settings, 1, memory_order_release);
	return seq;
}

/*
 * The number up to which all replies have arrived: below the oldest numbered call that still waits,
 * or else below the call's own number seq.  Precondition: conn.lock held.
 */
static inline uint64_t acked_before(const struct ckt_conn *conn, uint64_t seq)
{
	for (const struct ckt_waiter *w = conn->pending.next; w != &conn->pending; w = w->next)
		if (w->seq)
			return w->seq - 1;
	return (seq ? seq : atomic_load_explicit(&conn->next_seq, memory_order_relaxed)) - 1;
}

static CUresult begin(struct ckt_conn *conn, struct ckt_call *call, uint32_t prog, uint32_t proc,
	size_t args_bytes, unsigned flags)
{
	uint32_t size = CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE + (uint32_t)args_bytes;
	if (__builtin_expect(ckt_call_forbidden, 0))
		return CUDA_ERROR_NOT_PERMITTED;
	if (args_bytes > CKT_RECORD_MAX - CKT_CALL_HEADER_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CKT_CALL_F_BATCHED)
		flags |= CKT_CALL_F_NUMBERED;
	uint32_t thread = this_thread();
	pthread_mutex_lock(&conn->lock);
	bool session_proc = prog == CRICKET_SESSION_PROG;
	if (__builtin_expect(conn->fault_count, 0) && !session_proc &&
		!(flags & CKT_CALL_F_ANYWAY)) {
		CUresult fault = ckt_conn_fault(conn, ckt_call_context);
		if (fault) {
			pthread_mutex_unlock(&conn->lock);
			return fault;
		}
	}
	CUresult result = ring_reserve(conn, size, session_proc,
		prog == CKT_CUDA_PROG && proc == CKT_PROC_HOST_FUNC_DONE, &call->record);
	if (result) {
		pthread_mutex_unlock(&conn->lock);
		return result;
	}
	call->conn = conn;
	call->size_bytes = size;
	call->xid = conn->next_xid++;
	call->seq = flags & CKT_CALL_F_NUMBERED ? take_seq(conn, flags) : 0;
	call->flags = flags;
	call->context = ckt_call_context;
	call->session_proc = session_proc;
	uint64_t acked = acked_before(conn, call->seq);
	/*
	 * A call that destroys or makes a context runs without a context, because the thread's own
	 * may be gone.
	 */
	uint64_t context = flags & CKT_CALL_F_ANYWAY ? 0 : ckt_call_context;
	unsigned mode = conn->mode;
	if (__builtin_expect(mode & CKT_CONN_SEVERAL, 0))
		context = ckt_call_id_slow(context);
	ckt_mark_put(call->record, size - CKT_MARK_SIZE);
	call->p = ckt_call_header_put(call->record + CKT_MARK_SIZE,
		&(struct ckt_call_header){.xid = call->xid,
			.prog = prog,
			.vers = 1,
			.proc = proc,
			.seq = call->seq,
			.acked = acked,
			.thread = thread,
			.flags = ((flags & CKT_CALL_F_BATCHED) && !(mode & CKT_CONN_SYNC)
						 ? CKT_CALL_BATCHED
						 : ckt_spin_sleeps() ? CKT_CALL_SLEEPS
								     : 0) |
				(atomic_load_explicit(&conn->stamped, memory_order_relaxed)
						? CKT_CALL_STAMPED
						: 0),
			.context = context});
	return CUDA_SUCCESS;
}

uint64_t ckt_call_issued(void)
{
	const struct ckt_conn *conn = ckt_call_conn;
	if (ckt_call_forbidden || atomic_load(&conn->state) != CKT_CONN_OPEN ||
		atomic_load_explicit(&conn->deferred, memory_order_relaxed) ||
		atomic_load_explicit(&conn->fault_count, memory_order_relaxed))
		return 0;
	return atomic_load_explicit(&conn->next_seq, memory_order_acquire);
}

uint64_t ckt_call_settings(void)
{
	const struct ckt_conn *conn = ckt_call_conn;
	return atomic_load_explicit(&conn->settings, memory_order_acquire) + conn->epoch;
}

CUresult ckt_call_begin(struct ckt_call *call, uint32_t proc, size_t args_bytes, unsigned flags)
{
	return begin(
		ckt_call_conn, call, ckt_lib_prog(proc >> 16), proc & 0xffff, args_bytes, flags);
}

/*
 * Adds the waiter to the tables and makes the record visible to senders.  Precondition: conn.lock
 * held; this function releases it.
 */
static void commit(struct ckt_call *call, struct ckt_waiter *waiter)
{
	struct ckt_conn *conn = call->conn;
	uint64_t tail = atomic_load_explicit(&conn->tail, memory_order_relaxed);
	if (__builtin_expect(ckt_trace_get() != NULL, 0) && !call->session_proc)
		ckt_trace_command();
	if (waiter) {
		waiter->xid = call->xid;
		waiter->seq = call->seq;
		waiter->context = call->context;
		waiter->session_proc = call->session_proc;
		waiter->position = tail;
		waiter->message_size = call->size_bytes;
		waiter->message = waiter->message_small;
		if (call->size_bytes > sizeof waiter->message_small)
			waiter->message = malloc(call->size_bytes);
		if (waiter->message)
			memcpy(waiter->message, call->record, call->size_bytes);
		struct ckt_waiter **bucket = &conn->buckets[call->xid % CKT_WAITER_BUCKETS];
		waiter->hash_next = *bucket;
		*bucket = waiter;
		waiter->next = &conn->pending;
		waiter->prev = conn->pending.prev;
		waiter->prev->next = waiter;
		conn->pending.prev = waiter;
	}
	atomic_store_explicit(&conn->tail, tail + call->size_bytes, memory_order_release);
	pthread_mutex_unlock(&conn->lock);
}

static void ack_done(void *data, CUresult result, struct ckt_cursor *results)
{
	((struct ckt_conn *)data)->ack_pending = false;
}

/*
 * Asks for the worker's progress without waiting, so that the ring is freed while the program
 * continues to issue commands.
 */
static void ask_for_ack(struct ckt_conn *conn)
{
	struct ckt_call call;
	if (begin(conn, &call, CRICKET_SESSION_PROG, CKT_SESSION_ACK, 0, 0) == CUDA_SUCCESS)
		ckt_call_async(&call, ack_done, conn);
	else
		conn->ack_pending = false;
}

CUresult ckt_call_queue(struct ckt_call *call)
{
	struct ckt_conn *conn = call->conn;
	if (conn->mode & CKT_CONN_SYNC)
		return ckt_call_wait(call, NULL);
	uint64_t tail = atomic_load_explicit(&conn->tail, memory_order_relaxed);
	bool ask = tail - conn->last_ack_position >= CKT_ACK_EVERY && !conn->ack_pending;
	if (ask) {
		conn->last_ack_position = tail;
		conn->ack_pending = true;
	}
	commit(call, NULL);
	if (ask)
		ask_for_ack(conn);
	ckt_conn_flusher_kick(conn);
	return CUDA_SUCCESS;
}

void ckt_call_async(struct ckt_call *call, ckt_call_done done, void *data)
{
	struct ckt_conn *conn = call->conn;
	struct ckt_waiter *waiter = calloc(1, sizeof *waiter);
	if (!waiter) {
		/*
		 * No memory for a later notification.  The command is encoded and will be executed,
		 * so this thread waits for it.
		 */
		struct ckt_reply reply;
		CUresult result = ckt_call_wait(call, &reply);
		done(data, result, &reply.results);
		ckt_call_reply_release(&reply);
		return;
	}
	waiter->callback = done;
	waiter->data = data;
	atomic_fetch_add(&conn->async_pending, 1);
	commit(call, waiter);
	ckt_conn_flusher_kick(conn);
}

/* ---- Waiting: one of the waiting threads reads for all */

/*
 * Precondition: this thread is the reader. 0 if something arrived, -EAGAIN if nothing did, or
 * -errno of a broken connection.
 */
static int read_something(struct ckt_conn *conn, const struct ckt_spin *spin)
{
	while (ckt_spin_again(spin)) {
		int result = ckt_conn_read(conn, 0);
		if (result != -EAGAIN)
			return result;
	}
	return ckt_conn_read(conn, 1000);
}

static void wait_until(struct ckt_conn *conn, bool (*finished)(void *data), void *data,
	const struct ckt_spin *spin)
{
	uint64_t epoch = conn->epoch;
	int result = ckt_conn_send(conn);
	if (result)
		ckt_conn_broken(conn, epoch, result);
	pthread_mutex_lock(&conn->read_lock);
	while (!finished(data)) {
		if (__builtin_expect(atomic_load(&conn->asleep), 0) && !conn->reading &&
			atomic_load(&conn->state) == CKT_CONN_OPEN) {
			pthread_mutex_unlock(&conn->read_lock);
			ckt_conn_wake(conn);
			pthread_mutex_lock(&conn->read_lock);
			continue;
		}
		if (conn->reading || atomic_load(&conn->state) == CKT_CONN_RESUMING) {
			conn->sleepers++;
			pthread_cond_wait(&conn->read_cond, &conn->read_lock);
			conn->sleepers--;
			continue;
		}
		conn->reading = true;
		pthread_mutex_unlock(&conn->read_lock);
		epoch = conn->epoch;
		result = read_something(conn, spin);
		pthread_mutex_lock(&conn->read_lock);
		conn->reading = false;
		if (conn->sleepers)
			pthread_cond_broadcast(&conn->read_cond);
		if (result && result != -EAGAIN) {
			pthread_mutex_unlock(&conn->read_lock);
			ckt_conn_broken(conn, epoch, result);
			pthread_mutex_lock(&conn->read_lock);
		}
	}
	pthread_mutex_unlock(&conn->read_lock);
}

void ckt_conn_wait_until(struct ckt_conn *conn, bool (*finished)(void *data), void *data)
{
	if (finished(data))
		return;
	bool traced = ckt_trace_get() != NULL;
	uint64_t begun = traced ? ckt_trace_wait_begin() : 0;
	struct ckt_spin spin = ckt_spin_begin();
	wait_until(conn, finished, data, &spin);
	ckt_spin_end();
	if (traced)
		ckt_trace_wait_end(begun);
}

void ckt_conn_listen_until(struct ckt_conn *conn, bool (*finished)(void *data), void *data)
{
	if (finished(data))
		return;
	struct ckt_spin spin = ckt_spin_short();
	wait_until(conn, finished, data, &spin);
}

void ckt_call_wait_until(bool (*finished)(void *data), void *data)
{
	ckt_conn_wait_until(ckt_call_conn, finished, data);
}

static bool waiter_done(void *data)
{
	return atomic_load_explicit(&((struct ckt_waiter *)data)->done, memory_order_acquire);
}

/*
 * Makes the same call again, with a number of its own: the first one has done nothing.  record: its
 * copy; NULL: there was no memory for one.
 */
static CUresult begin_again(
	const struct ckt_call *call, const uint8_t *record, struct ckt_call *ret_call)
{
	size_t head = CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE;
	struct ckt_call_header header = {0};
	if (!record || call->size_bytes < head)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct ckt_cursor c = {.p = record + CKT_MARK_SIZE, .end = record + call->size_bytes};
	if (!ckt_call_header_get(&c, &header))
		return CUDA_ERROR_UNKNOWN;
	CUresult result = begin(call->conn, ret_call, header.prog, header.proc,
		call->size_bytes - head, call->flags);
	if (!result)
		memcpy(ret_call->p, record + head, call->size_bytes - head);
	return result;
}

/* CKT_RESULT_AGAIN: *call is the call to wait for next. */
static CUresult wait_once(struct ckt_call *call, struct ckt_reply *ret_reply)
{
	struct ckt_conn *conn = call->conn;
	struct ckt_call again;
	struct ckt_waiter waiter;
	waiter.callback = NULL;
	waiter.reply = ret_reply;
	atomic_init(&waiter.done, false);
	if (ret_reply) {
		ret_reply->owned = NULL;
		ret_reply->results = (struct ckt_cursor){0};
	}
	commit(call, &waiter);
	ckt_conn_wait_until(conn, waiter_done, &waiter);
	/* The reply may say that a copy in the background is done. */
	ckt_lanes_settle(conn);
	CUresult result = waiter.result;
	if (__builtin_expect(result == (CUresult)CKT_RESULT_AGAIN, 0)) {
		CUresult error = begin_again(call, waiter.message, &again);
		if (error)
			result = error;
		else
			*call = again;
	}
	if (waiter.message != waiter.message_small)
		free(waiter.message);
	return result;
}

CUresult ckt_call_wait(struct ckt_call *call, struct ckt_reply *ret_reply)
{
	struct ckt_conn *conn = call->conn;
	CUresult result;
	do {
		result = wait_once(call, ret_reply);
	} while (__builtin_expect(result == (CUresult)CKT_RESULT_AGAIN, 0));
	if (result) {
		ckt_call_reply_release(ret_reply);
	} else if (__builtin_expect(conn->deferred != CUDA_SUCCESS, 0)) {
		pthread_mutex_lock(&conn->lock);
		result = conn->deferred;
		conn->deferred = CUDA_SUCCESS;
		pthread_mutex_unlock(&conn->lock);
		if (result)
			ckt_call_reply_release(ret_reply);
	}
	return result;
}

void ckt_call_reply_release(struct ckt_reply *reply)
{
	if (reply) {
		free(reply->owned);
		reply->owned = NULL;
	}
}

static CUresult begin_session_call(
	struct ckt_conn *conn, struct ckt_call *call, uint32_t proc, xdrproc_t xdr_args, void *args)
{
	XDR xdr;
	u_int size = xdr_args ? (u_int)xdr_sizeof(xdr_args, args) : 0;
	CUresult result = begin(conn, call, CRICKET_SESSION_PROG, proc, size, 0);
	if (result)
		return result;
	xdrmem_create(&xdr, (char *)call->p, size, XDR_ENCODE);
	if (xdr_args)
		xdr_args(&xdr, args);
	return CUDA_SUCCESS;
}

CUresult ckt_conn_session_ask(struct ckt_conn *conn, uint32_t proc, xdrproc_t xdr_args, void *args,
	struct ckt_reply *ret_reply)
{
	struct ckt_call call;
	CUresult result = begin_session_call(conn, &call, proc, xdr_args, args);
	return result ? result : ckt_call_wait(&call, ret_reply);
}

CUresult ckt_conn_session_tell(struct ckt_conn *conn, uint32_t proc, xdrproc_t xdr_args, void *args,
	ckt_call_done done, void *data)
{
	struct ckt_call call;
	CUresult result = begin_session_call(conn, &call, proc, xdr_args, args);
	if (!result)
		ckt_call_async(&call, done, data);
	return result;
}

CUresult ckt_conn_session_call(struct ckt_conn *conn, uint32_t proc, struct ckt_reply *ret_reply)
{
	return ckt_conn_session_ask(conn, proc, NULL, NULL, ret_reply);
}

void (*ckt_call_noted)(const char *name);

CUresult ckt_call_unsupported(const char *name, bool *once)
{
	if (ckt_call_noted)
		ckt_call_noted(name);
	if (!__atomic_exchange_n(once, true, __ATOMIC_RELAXED))
		ckt_refusal_say("%s is not supported: it returned CUDA_ERROR_NOT_SUPPORTED "
				"(docs/coverage.md lists what is)",
			name);
	else
		ckt_debug("%s: not supported", name);
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- Opening and closing */

void ckt_conn_init(struct ckt_conn *conn)
{
	ckt_transport_init_socket(&conn->transport, -1);
	conn->connecting_fd = -1;
	pthread_mutex_init(&conn->lock, NULL);
	pthread_mutex_init(&conn->send_lock, NULL);
	pthread_mutex_init(&conn->read_lock, NULL);
	pthread_mutex_init(&conn->state_lock, NULL);
	pthread_mutex_init(&conn->lanes.lock, NULL);
	ckt_module_hints_init(&conn->module_hints);
	pthread_cond_init(&conn->read_cond, NULL);
	pthread_cond_init(&conn->state_cond, NULL);
	conn->gap_start = UINT64_MAX;
	conn->next_seq = 1;
	conn->next_xid = 1;
	conn->pending.next = conn->pending.prev = &conn->pending;
}

static CUresult take_part(struct ckt_conn *conn, unsigned part, unsigned parts)
{
	struct ckt_reply reply;
	ckt_window_args args = {.part = part, .parts = parts};
	ckt_window_res res = {0};
	if (parts == 1)
		return CUDA_SUCCESS;
	CUresult result = ckt_conn_session_ask(
		conn, CKT_SESSION_WINDOW, (xdrproc_t)xdr_ckt_window_args, &args, &reply);
	if (!result) {
		if (ckt_net_decode(&reply.results, (xdrproc_t)xdr_ckt_window_res, &res) ||
			res.status)
			result = CUDA_ERROR_NO_DEVICE;
		ckt_call_reply_release(&reply);
	}
	if (result)
		ckt_log_user("no GPU: the server at %s is too old to be one of several: "
			     "update it, or use it alone",
			conn->address_text);
	return result ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

static CUresult fetch_devices(struct ckt_conn *conn, struct ckt_devices_res *ret_devices)
{
	struct ckt_reply reply;
	CUresult result = ckt_conn_session_call(conn, CKT_SESSION_DEVICES, &reply);
	if (result)
		return result;
	if (ckt_net_decode(&reply.results, (xdrproc_t)xdr_ckt_devices_res, ret_devices) ||
		ret_devices->devices.devices_len == 0) {
		ckt_log_user("the server at %s sent no usable device list", conn->address_text);
		result = CUDA_ERROR_NO_DEVICE;
	}
	ckt_call_reply_release(&reply);
	return result;
}

/*
 * The state of opening the program's sessions.  From BEGUN on, a forked child has no CUDA, as with
 * NVIDIA's driver, because only the parent continues what its other threads were doing.  After
 * FAILED the child gets the same error as its parent.
 */
static _Atomic enum { OPENING_NONE, OPENING_BEGUN, OPENING_DONE, OPENING_FAILED } opening;
static CUresult opening_result;

/* The parent owns the sockets; closing the child's copies does not end the parent's session. */
static void close_copy(_Atomic int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void forked_child(void)
{
	ckt_fork_renew();
	int how = atomic_load(&opening);
	if (how == OPENING_NONE || how == OPENING_FAILED)
		return;
	for (unsigned i = 0; i < CKT_SERVERS_MAX; i++) {
		struct ckt_conn *conn = ckt_conns[i];
		if (!conn)
			continue;
		atomic_store(&conn->state, CKT_CONN_FORKED);
		close_copy(&conn->transport.fd);
		close_copy(&conn->connecting_fd);
		ckt_lanes_forked(conn);
		pthread_mutex_init(&conn->lock, NULL);
		pthread_mutex_init(&conn->read_lock, NULL);
		pthread_mutex_init(&conn->send_lock, NULL);
		pthread_mutex_init(&conn->state_lock, NULL);
		pthread_cond_init(&conn->read_cond, NULL);
		pthread_cond_init(&conn->state_cond, NULL);
	}
	have_devices = false;
}

/* Runs before any of our locks can be held.  Loading the library does nothing else. */
__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked_child);
}

/* Sends what is queued and a farewell, so that the worker frees everything at once. */
static void say_bye(struct ckt_conn *conn)
{
	struct ckt_call call;
	if (atomic_load(&conn->state) != CKT_CONN_OPEN || conn->pid != getpid())
		return;
	/* The end of the connection ends it, without a worker. */
	if (atomic_load(&conn->asleep) && ckt_conn_rests(conn))
		return;
	if (pthread_mutex_trylock(&conn->lock))
		/*
		 * A thread died or still runs inside a call: the worker notices the end of file
		 * instead.
		 */
		return;
	pthread_mutex_unlock(&conn->lock);
	if (begin(conn, &call, CRICKET_SESSION_PROG, CKT_SESSION_BYE, 0, 0) == CUDA_SUCCESS) {
		commit(&call, NULL);
		ckt_conn_send(conn);
	}
}

/* CUDA prints nothing if the program is meant to see no GPU. */
static CUresult no_session(const struct ckt_conn *conn, int error, const char *message)
{
	if ((error == -ENODEV || error == -ENXIO) && conn->visible)
		ckt_debug("no GPU: %s: %s", conn->address_text, message);
	else
		ckt_log_user("no GPU: %s: %s%s", conn->address_text, message,
			ckt_settings.address_count > 1
				? "; every server of REMOTE_GPU_ADDRESS must answer: "
				  "remove it from the list or repair it"
				: "");
	return error == -ENXIO ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_NO_DEVICE;
}

CUresult ckt_conn_open_session(
	struct ckt_conn *conn, unsigned part, unsigned parts, struct ckt_devices_res *ret_devices)
{
	char message[CKT_MESSAGE_MAX], moved[CKT_ADDRESS_MAX + 1];
	struct ckt_hello_ok ok = {0};
	conn->mode = (ckt_settings.sync ? CKT_CONN_SYNC : 0) | (parts > 1 ? CKT_CONN_SEVERAL : 0);
	int made = ckt_session_key_new(&conn->key);
	if (made) {
		ckt_log_user("cannot make the session's key: %s", strerror(-made));
		return CUDA_ERROR_NO_DEVICE;
	}
	for (int hops = 0;; hops++) {
		int result = ckt_connect(conn, conn->address_text, CKT_HELLO_NEW,
			ckt_settings.connect_timeout_ms, &conn->transport, &ok, moved, sizeof moved,
			message, sizeof message);
		if (!result)
			break;
		if (result != -EREMCHG || hops == 8)
			return no_session(conn, result, message);
		snprintf(conn->address_text, sizeof conn->address_text, "%s", moved);
	}
	snprintf(conn->session, sizeof conn->session, "%s", ok.session);
	snprintf(conn->server, sizeof conn->server, "%s", ok.server);
	conn->generation = ok.generation;
	conn->copy = conn->offered_copy = ckt_conn_copy_of(&ok);
	ckt_host_memory_answer(&ok);
	ckt_lanes_allow(conn, &ok);
	ckt_replay_open(conn, &ok);
	xdr_free((xdrproc_t)xdr_ckt_hello_ok, (char *)&ok);
	conn->ring = mmap(
		NULL, CKT_RING_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	conn->receive = mmap(
		NULL, CKT_RECEIVE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (conn->ring == MAP_FAILED || conn->receive == MAP_FAILED) {
		ckt_log_user("no memory for the connection's buffers");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	conn->pid = getpid();
	conn->direct = ckt_transport_is(&conn->transport, CKT_TRANSPORT_NO_CALL);
	atomic_store(&conn->state, CKT_CONN_OPEN);
	CUresult result = take_part(conn, part, parts);
	if (!result)
		result = fetch_devices(conn, ret_devices);
	if (result) {
		if (parts > 1)
			say_bye(conn);
		conn->error = result;
		atomic_store(&conn->state, CKT_CONN_LOST);
		return result;
	}
	ckt_debug("session %s on %s at %s over %s, %u device(s)", conn->session, conn->server,
		conn->address_text, ckt_transport_name(&conn->transport),
		ret_devices->devices.devices_len);
	return CUDA_SUCCESS;
}

static CUresult open_all(void)
{
	ckt_settings_load();
	if (ckt_settings.address_error[0]) {
		ckt_log_user("no GPU: REMOTE_GPU_ADDRESS: %s", ckt_settings.address_error);
		return CUDA_ERROR_NO_DEVICE;
	}
	if (ckt_settings.transport_error[0]) {
		ckt_log_user("no GPU: %s", ckt_settings.transport_error);
		return CUDA_ERROR_NO_DEVICE;
	}
	snprintf(ckt_conn.address_text, sizeof ckt_conn.address_text, "%s", ckt_settings.address);
	ckt_conn.visible = getenv("CUDA_VISIBLE_DEVICES");
	CUresult result = ckt_settings.address_count > 1
		? ckt_nodes_open(&devices)
		: ckt_conn_open_session(&ckt_conn, 0, 1, &devices);
	if (result)
		return result;
	have_devices = true;
	for (unsigned i = 0; i < ckt_conn_count; i++) {
		ckt_conn_flusher_start(ckt_conns[i]);
		ckt_conn_watch_start(ckt_conns[i]);
	}
	ckt_gpu_trace_start();
	return CUDA_SUCCESS;
}

CUresult ckt_conn_open(void)
{
	static CKT_LOCK(open_lock);
	if (atomic_load(&ckt_conn.state) == CKT_CONN_FORKED)
		return CUDA_ERROR_NOT_INITIALIZED;
	int saved_errno = errno;
	pthread_mutex_lock(&open_lock);
	if (atomic_load(&opening) == OPENING_NONE) {
		atomic_store(&opening, OPENING_BEGUN);
		opening_result = open_all();
		atomic_store(&opening, opening_result ? OPENING_FAILED : OPENING_DONE);
	}
	CUresult result = opening_result;
	pthread_mutex_unlock(&open_lock);
	errno = saved_errno;
	return result;
}

void ckt_conn_end(struct ckt_conn *conn)
{
	say_bye(conn);
	pthread_mutex_lock(&conn->lock);
	conn->error = CUDA_ERROR_NO_DEVICE;
	atomic_store(&conn->state, CKT_CONN_LOST);
	pthread_mutex_unlock(&conn->lock);
	ckt_transport_close(&conn->transport);
}

__attribute__((destructor)) static void program_ends(void)
{
	ckt_gpu_trace_end(NULL);
	for (unsigned i = 0; i < ckt_conn_count; i++)
		say_bye(ckt_conns[i]);
	ckt_trace_end();
}
