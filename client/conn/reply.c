/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading: takes whole records from the socket, and delivers replies to their waiters and callbacks
 * to their functions.  See conn.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/conn/conn.h"
#include "client/conn/replay.h"
#include "client/trace/recorder.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/refusal_log.h"
#include "rpc/record.h"

/*
 * Removes the waiter of this xid from the tables; NULL if no thread waits for the xid.
 * Precondition: conn.lock held.
 */
static struct ckt_waiter *take_waiter(struct ckt_conn *conn, uint32_t xid)
{
	for (struct ckt_waiter **w = &conn->buckets[xid % CKT_WAITER_BUCKETS]; *w;
		w = &(*w)->hash_next) {
		if ((*w)->xid == xid) {
			struct ckt_waiter *found = *w;
			*w = found->hash_next;
			found->prev->next = found->next;
			found->next->prev = found->prev;
			return found;
		}
	}
	return NULL;
}

/* Gives the waiter its reply.  A sleeping thread's waiter is invalid once `done` is set. */
static void finish(struct ckt_conn *conn, struct ckt_waiter *waiter, CUresult result,
	struct ckt_cursor *results)
{
	if (waiter->callback) {
		waiter->callback(waiter->data, result, results);
		if (waiter->message != waiter->message_small)
			free(waiter->message);
		free(waiter);
		atomic_fetch_sub(&conn->async_pending, 1);
		return;
	}
	if (waiter->reply && !result) {
		size_t size = (size_t)(results->end - results->p);
		uint8_t *copy = waiter->reply->small;
		if (size > sizeof waiter->reply->small)
			copy = waiter->reply->owned = malloc(size);
		if (copy) {
			memcpy(copy, results->p, size);
			waiter->reply->results = (struct ckt_cursor){.p = copy, .end = copy + size};
		} else {
			result = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	waiter->result = result;
	atomic_store_explicit(&waiter->done, true, memory_order_release);
}

void ckt_waiter_finish_all(struct ckt_conn *conn, CUresult error)
{
	struct ckt_cursor empty = {0};
	for (;;) {
		pthread_mutex_lock(&conn->lock);
		struct ckt_waiter *waiter = conn->pending.next;
		waiter = waiter == &conn->pending ? NULL : take_waiter(conn, waiter->xid);
		pthread_mutex_unlock(&conn->lock);
		if (!waiter)
			return;
		finish(conn, waiter, error, &empty);
	}
}

/*
 * Frees the ring up to the first record that the worker may not have executed.  Precondition:
 * conn.lock held.
 */
void ckt_conn_trim(struct ckt_conn *conn, uint64_t executed)
{
	uint64_t sent = atomic_load_explicit(&conn->sent, memory_order_acquire);
	if (executed > conn->executed) {
		conn->executed = executed;
		conn->copy = conn->offered_copy;
	}
	while (conn->head < sent) {
		const uint8_t *record = conn->ring + conn->head % CKT_RING_SIZE;
		uint32_t mark;
		memcpy(&mark, record, sizeof mark);
		uint64_t next;
		if (mark == 0) {
			next = (conn->head / CKT_RING_SIZE + 1) * CKT_RING_SIZE;
		} else {
			uint64_t seq;
			memcpy(&seq, record + CKT_MARK_SIZE + 32, sizeof seq);
			if (be64toh(seq) > executed)
				return;
			next = conn->head + CKT_MARK_SIZE + ckt_mark_size(record);
			if (__builtin_expect(conn->replay != NULL, 0) && next <= sent)
				ckt_replay_keep(conn, record);
		}
		if (next > sent)
			return;
		conn->head = next;
	}
}

/* ---- Errors of kernels: they belong to their context */

static bool is_sticky(CUresult error)
{
	switch (error) {
	case CUDA_ERROR_ECC_UNCORRECTABLE:
	case CUDA_ERROR_NVLINK_UNCORRECTABLE:
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED:
		return true;
	default:
		return false;
	}
}

CUresult ckt_conn_fault(const struct ckt_conn *conn, uint64_t context)
{
	for (unsigned i = 0; i < conn->fault_count; i++)
		if (conn->faults[i].context == context)
			return conn->faults[i].error;
	return CUDA_SUCCESS;
}

CUresult ckt_call_fault(void)
{
	struct ckt_conn *conn = ckt_call_conn;
	pthread_mutex_lock(&conn->lock);
	CUresult fault = ckt_conn_fault(conn, ckt_call_context);
	pthread_mutex_unlock(&conn->lock);
	return fault;
}

static void remember_fault(struct ckt_conn *conn, uint64_t context, CUresult error)
{
	pthread_mutex_lock(&conn->lock);
	if (!ckt_conn_fault(conn, context) && conn->fault_count < CKT_FAULTS_MAX)
		conn->faults[conn->fault_count++] =
			(struct ckt_fault){.context = context, .error = error};
	pthread_mutex_unlock(&conn->lock);
}

void ckt_call_forget_fault(uint64_t context)
{
	for (unsigned n = 0; n < ckt_conn_count; n++) {
		struct ckt_conn *conn = ckt_conns[n];
		pthread_mutex_lock(&conn->lock);
		for (unsigned i = 0; i < conn->fault_count; i++)
			if (conn->faults[i].context == context)
				conn->faults[i--] = conn->faults[--conn->fault_count];
		pthread_mutex_unlock(&conn->lock);
	}
}

static int handle_reply(struct ckt_conn *conn, struct ckt_cursor *c)
{
	struct ckt_reply_header header = {0};
	if (!ckt_reply_header_get(c, &header))
		return -EPROTO;
	pthread_mutex_lock(&conn->lock);
	ckt_conn_trim(conn, header.executed);
	if (header.deferred && !conn->deferred)
		conn->deferred = (CUresult)header.deferred;
	struct ckt_waiter *waiter = take_waiter(conn, header.xid);
	if (__builtin_expect(conn->replay != NULL, 0) && waiter)
		ckt_replay_note(conn, &header, waiter, c);
	pthread_mutex_unlock(&conn->lock);
	if (!waiter)
		/* The client asked again after a break, and the call was answered twice. */
		return 0;
	CUresult result = CUDA_SUCCESS;
	if (header.accept_stat) {
		ckt_log_user("the server rejected a call (accept_stat %u): client and "
			     "server do not match; install the same version on both hosts",
			header.accept_stat);
		result = CUDA_ERROR_NOT_SUPPORTED; /* logged above */
	} else if (!waiter->session_proc) {
		result = (CUresult)ckt_get_u32(c);
		if (c->bad)
			result = CUDA_ERROR_UNKNOWN;
		/* Nobody is there to send it again. */
		if (__builtin_expect(result == (CUresult)CKT_RESULT_AGAIN, 0) && waiter->callback)
			result = CUDA_ERROR_OUT_OF_MEMORY;
		if (__builtin_expect(result != CUDA_SUCCESS, 0) && is_sticky(result))
			remember_fault(conn, waiter->context, result);
	}
	finish(conn, waiter, result, c);
	return 0;
}

/* Adds refusals of the worker's soft GPU to the file of refusals. */
static void note_refusals(const struct ckt_conn *conn, const char *text, size_t size)
{
	static CKT_LOCK(lock);
	static struct ckt_refusal_scan scan;
	static const struct ckt_conn *last;

	pthread_mutex_lock(&lock);
	/* Another server's text does not continue this server's line. */
	if (last != conn)
		scan.used = 0;
	last = conn;
	ckt_refusal_scan(&scan, text, size);
	pthread_mutex_unlock(&lock);
}

/*
 * Output of kernels' printf and assert goes to the program's own descriptors, and so does what the
 * soft GPU says on stderr.
 */
static void output(const struct ckt_conn *conn, const struct ckt_output_args *args)
{
	int fd = args->fd == 2 ? STDERR_FILENO : STDOUT_FILENO;
	FILE *stream = args->fd == 2 ? stderr : stdout;
	const char *p = args->data.data_val;
	size_t left = args->data.data_len;

	if (fd == STDERR_FILENO)
		note_refusals(conn, p, left);
	/*
	 * The program wrote the contents of its stdio buffer earlier: flush it first, to keep the
	 * order of a local run.  Do not wait for the stream's lock, because its holder may wait for
	 * this thread.
	 */
	if (ftrylockfile(stream) == 0) {
		fflush_unlocked(stream);
		funlockfile(stream);
	}
	while (left) {
		ssize_t n = write(fd, p, left);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		p += n;
		left -= (size_t)n;
	}
}

static int take_output(struct ckt_conn *conn, struct ckt_cursor *c)
{
	struct ckt_output_args args = {0};
	if (ckt_net_decode(c, (xdrproc_t)xdr_ckt_output_args, &args))
		return -EPROTO;
	if (args.fd != CKT_OUTPUT_LIBRARY)
		ckt_replay_lose(conn, "a kernel of it prints");
	output(conn, &args);
	xdr_free((xdrproc_t)xdr_ckt_output_args, (char *)&args);
	return 0;
}

/* What only tells the client how its connection ends. */
static int take_end(struct ckt_conn *conn, uint32_t proc, struct ckt_cursor *c)
{
	if (proc == CKT_CALLBACK_SLEEP)
		return ckt_conn_take_sleep(conn, c);
	if (proc == CKT_CALLBACK_PARKED)
		atomic_store(&conn->parked, true);
	else if (proc == CKT_CALLBACK_QUIESCE)
		atomic_store(&conn->quiesce, true);
	return 0;
}

int ckt_conn_take_callback(struct ckt_conn *conn, struct ckt_cursor *c)
{
	struct ckt_call_header header = {0};
	if (!ckt_call_header_get(c, &header) || header.prog != CRICKET_CALLBACK_PROG)
		return -EPROTO;
	if (header.proc == CKT_CALLBACK_OUTPUT) {
		if (take_output(conn, c))
			return -EPROTO;
	} else if (header.proc == CKT_CALLBACK_MOVED) {
		struct ckt_moved_args args = {0};
		if (ckt_net_decode(c, (xdrproc_t)xdr_ckt_moved_args, &args))
			return -EPROTO;
		snprintf(conn->moved_to, sizeof conn->moved_to, "%s", args.address);
		xdr_free((xdrproc_t)xdr_ckt_moved_args, (char *)&args);
	}
	if (header.proc == CKT_CALLBACK_HOST_CALL) {
		struct ckt_host_call_args args = {0};
		void (*host_call)(struct ckt_conn * conn, const struct ckt_host_call_args *call) =
			ckt_conn_host_call;
		if (ckt_net_decode(c, (xdrproc_t)xdr_ckt_host_call_args, &args))
			return -EPROTO;
		ckt_replay_lose(conn, "it uses host functions");
		if (host_call)
			host_call(conn, &args);
	} else if (header.proc == CKT_CALLBACK_LANE_PIECE) {
		struct ckt_lane_piece_args args = {0};
		if (ckt_net_decode(c, (xdrproc_t)xdr_ckt_lane_piece_args, &args))
			return -EPROTO;
		ckt_lanes_announce(conn, args.piece);
	} else if (header.proc == CKT_CALLBACK_MODULES) {
		struct ckt_modules_args args = {0};
		if (ckt_net_decode(c, (xdrproc_t)xdr_ckt_modules_args, &args))
			return -EPROTO;
		ckt_module_hints_take(&conn->module_hints, &args);
		xdr_free((xdrproc_t)xdr_ckt_modules_args, (char *)&args);
	} else if (header.proc == CKT_CALLBACK_DURABLE) {
		struct ckt_durable_args args = {0};
		if (ckt_net_decode(c, (xdrproc_t)xdr_ckt_durable_args, &args))
			return -EPROTO;
		ckt_replay_durable(conn, args.executed);
	} else if (header.proc == CKT_CALLBACK_STAMPS) {
		int result = ckt_replay_take_stamps(conn, c);
		if (result)
			return result;
	} else if (header.proc == CKT_CALLBACK_NOTIFY) {
		struct ckt_notify_args args = {0};
		void (*notify)(struct ckt_conn * conn, const struct ckt_notify_args *args) =
			ckt_conn_notify;
		if (ckt_net_decode(c, (xdrproc_t)xdr_ckt_notify_args, &args))
			return -EPROTO;
		if (notify)
			notify(conn, &args);
	}
	/* Ignores unknown callbacks: a later server may send more than this client knows. */
	return take_end(conn, header.proc, c);
}

static int handle_record(struct ckt_conn *conn, const uint8_t *data, size_t size)
{
	struct ckt_cursor c = {.p = data, .end = data + size};
	if (size < 8)
		return -EPROTO;
	uint32_t type;
	memcpy(&type, data + 4, sizeof type);
	return type ? handle_reply(conn, &c) : ckt_conn_take_callback(conn, &c);
}

/* Delivers every whole record in the buffer. */
static int handle_received(struct ckt_conn *conn)
{
	while (conn->receive_end - conn->receive_start >= CKT_MARK_SIZE) {
		const uint8_t *p = conn->receive + conn->receive_start;
		size_t size;
		if (ckt_mark_get(p, CKT_RECORD_MAX, &size))
			return -EPROTO;
		if (conn->receive_end - conn->receive_start < CKT_MARK_SIZE + size)
			break;
		int result = handle_record(conn, p + CKT_MARK_SIZE, size);
		if (result)
			return result;
		conn->receive_start += CKT_MARK_SIZE + size;
	}
	if (conn->receive_start == conn->receive_end) {
		conn->receive_start = conn->receive_end = 0;
	} else if (conn->receive_start > CKT_RECEIVE_SIZE / 2) {
		memmove(conn->receive, conn->receive + conn->receive_start,
			conn->receive_end - conn->receive_start);
		conn->receive_end -= conn->receive_start;
		conn->receive_start = 0;
	}
	return 0;
}

int ckt_conn_read(struct ckt_conn *conn, int timeout_ms)
{
	int saved_errno = errno, result = 0;
	for (;;) {
		ssize_t n = ckt_transport_read(&conn->transport, conn->receive + conn->receive_end,
			CKT_RECEIVE_SIZE - conn->receive_end);
		if (n > 0) {
			conn->receive_end += (size_t)n;
			if (ckt_trace_get())
				ckt_trace_received((uint64_t)n);
			result = handle_received(conn);
			break;
		}
		if (n != -EAGAIN || timeout_ms == 0) {
			result = (int)n;
			break;
		}
		if (ckt_transport_wait(&conn->transport, CKT_TRANSPORT_READ, timeout_ms) == 0) {
			bool vanished =
				ckt_transport_vanished(&conn->transport, CKT_NET_VANISHED_MS);
			result = vanished ? -ETIMEDOUT : -EAGAIN;
			break;
		}
	}
	errno = saved_errno;
	return result;
}
