/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor: reads the command stream, decodes headers in place and runs the handlers one after
 * another.
 *
 *	detached --new client--> serving <-> idle (polls) ; serving --end of file, malformed--> detached ; any --freeze--> frozen -> any
 *
 * It never blocks in the driver for a wait; a launch costs two look-ups and the driver's call.
 * Nothing here is done per command that asks the kernel for anything.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crowd.h"
#include "base/log.h"
#include "base/probes.h"
#include "base/processors.h"
#include "checkpoint/freeze/freeze.h"
#include "rpc/net.h"
#include "rpc/record.h"
#include "rpc/transport/shared_memory.h"
#include "server/worker/driver.h"
#include "server/worker/libs/environment.h"
#include "server/worker/libs/libs.h"
#include "server/worker/libs/state.h"
#include "server/worker/memory/window.h"
#include "server/worker/module/blob_cache.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/device.h"
#include "server/worker/session/activity.h"
#include "server/worker/session/blocking_call.h"
#include "server/worker/session/waiting_call.h"
#include "server/worker/session/call.h"
#include "server/worker/session/call_trace.h"
#include "server/worker/session/connection.h"
#include "server/worker/session/executor.h"
#include "server/worker/session/hostfunc.h"
#include "server/worker/session/lane.h"
#include "server/worker/session/long_call.h"
#include "server/worker/session/metrics.h"
#include "server/worker/session/notify.h"
#include "server/worker/session/stamps.h"
#include "server/worker/session/start.h"
#include "server/worker/session/turn.h"
#include "server/worker/worker.h"

/* Commands between two looks at waits that may be done, while input keeps coming. */
enum { COMMANDS_PER_POLL = 32 };
/* Calls of one client that wait at one time: one for each of its threads. */
enum { CALLS_MAX = 16384 };
enum { ACCEPT_SYSTEM_ERROR = 5 };
/* Between two looks at what a session that is held has not finished. */
enum { HOLD_LOOK_MS = 1 };
/* Between two looks at unfinished work that nobody waits for, if the server wants to know. */
enum { ACTIVITY_LOOK_MS = 5 };

enum progress { PROGRESS_MORE, PROGRESS_NEED_INPUT, PROGRESS_BROKEN, PROGRESS_BYE };

void ckt_executor_wake(struct ckt_worker *worker)
{
	uint64_t one = 1;
	ssize_t ignored = write(worker->wake_fd, &one, sizeof one);
	(void)ignored;
}

/* ---- The client comes and goes */

void ckt_executor_disconnect(struct ckt_worker *worker, const char *why)
{
	if (worker->client_fd < 0)
		return;
	ckt_info("client gone: %s", why);
	ckt_output_connect(&worker->output, -1, 0, NULL, 0);
	ckt_input_connect(&worker->input, -1);
	ckt_transport_close(&worker->client_transport);
	worker->client_fd = -1;
	worker->client_epoch = 0;
	ckt_waiting_calls_withdraw(worker);
	pthread_mutex_lock(&worker->mail_lock);
	if (worker->state == CKT_STATE_RUNNING)
		worker->state = CKT_STATE_DETACHED;
	ckt_worker_metrics_state(worker);
	worker->detached_ms = ckt_net_now_ms();
	pthread_mutex_unlock(&worker->mail_lock);
	/* After the state: no further lane is taken. */
	ckt_worker_lanes_end(worker);
}

static void take_client(struct ckt_worker *worker)
{
	static uint64_t epochs;
	pthread_mutex_lock(&worker->mail_lock);
	int fd = worker->new_client.fd;
	int memory_fd = worker->new_client.memory_fd;
	uint32_t xid = worker->new_client.xid;
	bool takes_rings = worker->new_client.takes_rings,
	     takes_again = worker->new_client.takes_again, durable = worker->new_client.durable,
	     stamped = worker->new_client.stamped, sleeps = worker->new_client.sleeps;
	uint64_t acked = worker->new_client.acked;
	worker->new_client.fd = worker->new_client.memory_fd = -1;
	pthread_mutex_unlock(&worker->mail_lock);
	if (fd < 0)
		return;
	ckt_executor_disconnect(worker, "a newer connection replaced it");
	worker->client_fd = fd;
	worker->client_epoch = ++epochs;
	worker->client_takes_again = takes_again;
	worker->client_sleeps = sleeps;
	ckt_impose_connect(worker, durable);
	ckt_stamps_hello(stamped);
	ckt_transport_init_socket(&worker->client_transport, fd);
	ckt_input_connect(&worker->input, fd);
	pthread_mutex_lock(&worker->mail_lock);
	worker->state = CKT_STATE_RUNNING;
	ckt_worker_metrics_state(worker);
	pthread_mutex_unlock(&worker->mail_lock);
	ckt_hostmem_attach(worker, memory_fd);
	int result = ckt_worker_connection_answer(worker, xid, takes_rings);
	if (result) {
		ckt_executor_disconnect(worker,
			result == -ENOMEM ? "no memory is left for the reply to its hello"
					  : "it did not take the reply to its hello");
		return;
	}
	ckt_stamps_connect(worker, acked);
	ckt_blob_cache_tell(worker);
	ckt_hostcalls_resend(worker);
	ckt_notifications_resend(worker);
}

/* What others put in the mailbox. */
static void take_mail(struct ckt_worker *worker)
{
	atomic_store(&worker->mail, false);
	take_client(worker);
	ckt_hostcalls_send(worker);
	ckt_notifications_send(worker);
	ckt_long_call_finish(worker);
	ckt_blocking_call_finish(worker);
	pthread_mutex_lock(&worker->mail_lock);
	ckt_hold_take(worker);
	bool freeze = worker->checkpoint.freeze.wanted;
	pthread_mutex_unlock(&worker->mail_lock);
	ckt_waiting_calls_look(worker, freeze || worker->checkpoint.hold.on);
	if (freeze) {
		ckt_turn_leave();
		ckt_worker_lanes_bar(worker, true);
		CKT_PROBE1(freeze_begin, worker->session);
		ckt_checkpoint_freeze_executor(worker);
		CKT_PROBE1(freeze_end, worker->session);
		ckt_turn_return();
		ckt_worker_lanes_bar(worker, false);
	}
}

/* A command that was not begun is not lost: the client comes back, and sends it again. */
static enum progress no_memory_for(struct ckt_wcall *call)
{
	ckt_warning("%s: the worker has no memory for the call; it disconnects the client, "
		    "which sends the call again",
		call && call->proc ? call->proc->name : "a command");
	ckt_wcall_free(call);
	return PROGRESS_BROKEN;
}

/* ---- Session calls */

void ckt_executor_answer(
	struct ckt_worker *worker, const struct ckt_wcall *call, xdrproc_t xdr, void *res)
{
	uint8_t *data;
	size_t size;
	ckt_stamps_tell(worker, worker->client_epoch, 0);
	if (ckt_net_encode_reply(call->header.xid, atomic_load(&worker->replies.executed), xdr, res,
		    &data, &size))
		return;
	/* The verifier is the same for all: put the real one over it. */
	ckt_reply_header_put(data,
		&(struct ckt_reply_header){.xid = call->header.xid,
			.executed = atomic_load(&worker->replies.executed),
			.deferred = atomic_exchange(&worker->deferred, 0)});
	uint8_t *p = ckt_output_begin(&worker->output, worker->client_epoch, size);
	if (p) {
		memcpy(p, data, size);
		ckt_output_end(&worker->output);
	}
	free(data);
}

static void send_results(const struct ckt_wcall *call, xdrproc_t xdr, void *res)
{
	ckt_executor_answer(call->worker, call, xdr, res);
}

static bool fill_host(struct ckt_worker *worker, struct ckt_wcall *call)
{
	ckt_host_fill_args fill = {0};
	if (ckt_net_decode(&call->args, (xdrproc_t)xdr_ckt_host_fill_args, &fill))
		return false;
	ckt_hostmem_fill(worker, fill.address, (uint8_t *)fill.data.data_val, fill.data.data_len);
	xdr_free((xdrproc_t)xdr_ckt_host_fill_args, (char *)&fill);
	return true;
}

static bool take_window(struct ckt_worker *worker, struct ckt_wcall *call)
{
	ckt_window_args args = {0};
	if (ckt_net_decode(&call->args, (xdrproc_t)xdr_ckt_window_args, &args))
		return false;
	ckt_window_res res = {.status = ckt_window_part(worker, args.part, args.parts)};
	send_results(call, (xdrproc_t)xdr_ckt_window_res, &res);
	return true;
}

static bool take_environment(struct ckt_worker *worker, struct ckt_wcall *call)
{
	ckt_environment_args args = {0};
	if (ckt_net_decode(&call->args, (xdrproc_t)xdr_ckt_environment_args, &args))
		return false;
	ckt_environment_res res = {.status = ckt_worker_environment_take(&args)};
	xdr_free((xdrproc_t)xdr_ckt_environment_args, (char *)&args);
	send_results(call, (xdrproc_t)xdr_ckt_environment_res, &res);
	return true;
}

static bool gpu_trace(struct ckt_worker *worker, struct ckt_wcall *call)
{
	ckt_gpu_trace_args args = {0};
	ckt_gpu_trace_res res = {.status = -EAGAIN};
	if (ckt_net_decode(&call->args, (xdrproc_t)xdr_ckt_gpu_trace_args, &args))
		return false;
	bool mine = ckt_call_trace_try_lock();
	if (mine)
		ckt_call_trace_serve_client(worker, &args, &res);
	send_results(call, (xdrproc_t)xdr_ckt_gpu_trace_res, &res);
	if (mine)
		ckt_call_trace_unlock();
	return true;
}

static bool begin_replay(struct ckt_worker *worker, struct ckt_wcall *call)
{
	ckt_replay_args args = {0};
	if (ckt_net_decode(&call->args, (xdrproc_t)xdr_ckt_replay_args, &args))
		return false;
	ckt_replay_res res = {.status = ckt_impose_begin(worker, &args)};
	send_results(call, (xdrproc_t)xdr_ckt_replay_res, &res);
	return true;
}

static bool impose(struct ckt_worker *worker, struct ckt_wcall *call)
{
	ckt_impose_args args = {0};
	return !ckt_net_decode(&call->args, (xdrproc_t)xdr_ckt_impose_args, &args) &&
		ckt_impose_take(worker, &args);
}

static bool stamp(struct ckt_worker *worker, struct ckt_wcall *call)
{
	ckt_stamp_args args = {0};
	return !ckt_net_decode(&call->args, (xdrproc_t)xdr_ckt_stamp_args, &args) &&
		ckt_stamps_take(worker, &args);
}

/* Answered later.  What is not taken over is the caller's. */
static bool end_stamps(struct ckt_wcall *call)
{
	ckt_stamps_end_args args = {0};
	return !ckt_net_decode(&call->args, (xdrproc_t)xdr_ckt_stamps_end_args, &args) &&
		ckt_stamps_end(call, args.patience_ms);
}

static enum progress call_with_arguments(struct ckt_worker *worker, struct ckt_wcall *call)
{
	static bool (*const take[])(struct ckt_worker * worker, struct ckt_wcall * call) = {
		[CKT_SESSION_HOST_FILL] = fill_host,
		[CKT_SESSION_WINDOW] = take_window,
		[CKT_SESSION_ENVIRONMENT] = take_environment,
		[CKT_SESSION_GPU_TRACE] = gpu_trace,
		[CKT_SESSION_REPLAY] = begin_replay,
		[CKT_SESSION_IMPOSE] = impose,
		[CKT_SESSION_STAMP] = stamp,
	};
	uint32_t proc = call->header.proc;
	if (proc >= sizeof take / sizeof *take || !take[proc]) {
		ckt_wcall_reject(call, 3);
		return PROGRESS_MORE;
	}
	bool good = take[proc](worker, call);
	ckt_wcall_free(call);
	return good ? PROGRESS_MORE : PROGRESS_BROKEN;
}

static enum progress session_call(struct ckt_worker *worker, struct ckt_wcall *call)
{
	ckt_devices_res devices;
	switch (call->header.proc) {
	case CKT_SESSION_NULL:
	case CKT_SESSION_ACK:
		send_results(call, NULL, NULL);
		break;
	case CKT_SESSION_DEVICES:
		if (ckt_worker_session_devices_fill(worker, &devices))
			return no_memory_for(call);
		send_results(call, (xdrproc_t)xdr_ckt_devices_res, &devices);
		free(devices.devices.devices_val);
		break;
	case CKT_SESSION_BYE:
		if (!(call->header.flags & CKT_CALL_BATCHED))
			send_results(call, NULL, NULL);
		ckt_wcall_free(call);
		return PROGRESS_BYE;
	case CKT_SESSION_STAMPS_END:
		if (!end_stamps(call)) {
			ckt_wcall_free(call);
			return PROGRESS_BROKEN;
		}
		return PROGRESS_MORE;
	default:
		return call_with_arguments(worker, call);
	}
	ckt_wcall_free(call);
	return PROGRESS_MORE;
}

/* ---- Commands */

static void count(struct ckt_worker *worker, const struct ckt_call_header *header, uint32_t index,
	size_t bytes)
{
	struct ckt_stat *stat = &worker->stats[index];
	/* The executor alone counts what comes in. */
	__atomic_store_n(&stat->calls, stat->calls + 1, __ATOMIC_RELAXED);
	if (header->flags & CKT_CALL_BATCHED)
		__atomic_store_n(&stat->batched, stat->batched + 1, __ATOMIC_RELAXED);
	else
		__atomic_store_n(&stat->waited, stat->waited + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&stat->bytes_in, stat->bytes_in + bytes, __ATOMIC_RELAXED);
	ckt_worker_metrics_call(index, !(header->flags & CKT_CALL_BATCHED), bytes);
}

/* Whether the numbering is right, and whether the call is to be executed now. */
static enum ckt_seq_verdict check_sequence(
	struct ckt_worker *worker, const struct ckt_call_header *header, unsigned proc_flags)
{
	if (!ckt_replies_acked(&worker->replies, header->acked))
		return CKT_SEQ_BROKEN;
	if (!(proc_flags & CKT_PROC_NUMBERED))
		return header->seq ? CKT_SEQ_BROKEN : CKT_SEQ_EXECUTE;
	if (!header->seq)
		return CKT_SEQ_BROKEN;
	return ckt_replies_check(&worker->replies, header->seq);
}

/*
 * Whether there is room for one answer more: a client has as many calls open as threads, and
 * acknowledges what it has.
 */
static bool may_answer(struct ckt_worker *worker, const struct ckt_call_header *header)
{
	bool unacknowledged = header->seq && ckt_replies_full(&worker->replies);
	if (unacknowledged)
		ckt_warning("the client acknowledges no replies: the maximum (%d, or %d "
			    "MiB) waits for it, and its connection ends",
			CKT_REPLIES_MAX, CKT_REPLIES_BYTES_MAX >> 20);
	else if (ckt_wcalls_open() > CALLS_MAX)
		ckt_warning("the client has more than %d calls open, and its connection ends",
			CALLS_MAX);
	return !unacknowledged && ckt_wcalls_open() <= CALLS_MAX;
}

bool ckt_executor_run(struct ckt_worker *worker, struct ckt_wcall *call)
{
	const struct ckt_call_header *header = &call->header;
	int result = CUDA_SUCCESS;
	ckt_pending_fence(worker);
	CKT_PROBE2(call_begin, call->proc->name, header->flags & CKT_CALL_BATCHED ? 0 : 1);
	if (!(header->flags & CKT_CALL_BATCHED))
		ckt_worker_metrics_begin(call);
	if (header->context && (!worker->current || worker->current->id != header->context))
		result = ckt_worker_use_context(worker, header->context);
	struct ckt_cursor args = call->args;
	struct ckt_traced_event *traced = NULL;
	if (__builtin_expect(atomic_load_explicit(&ckt_call_trace_on, memory_order_relaxed) &&
			    !result && !call->traced,
		    0))
		traced = ckt_call_trace_begin(call);
	if (!result)
		result = ckt_worker_lib_state_run(call);
	/* The call may be answered and gone, but not its events. */
	ckt_call_trace_issued(traced);
	/* An allocation: what the program gave back before it may still be on its way. */
	if (result == CUDA_ERROR_OUT_OF_MEMORY && header->seq &&
		!(header->flags & CKT_CALL_BATCHED) && ckt_long_call_settle(worker)) {
		call->args = args;
		result = ckt_worker_lib_state_run(call);
	}
	while (__builtin_expect(result == CUDA_ERROR_OUT_OF_MEMORY, 0) && ckt_impose_wait(worker)) {
		call->args = args;
		result = ckt_worker_lib_state_run(call);
	}
	if (result == CKT_WCALL_LATER ||
		(result == CUDA_ERROR_OUT_OF_MEMORY && ckt_waiting_call_keep(call, &args)))
		return true;
	if (result == CKT_WCALL_GARBAGE) {
		ckt_warning("malformed arguments of %s", call->proc->name);
		ckt_wcall_reject(call, 4);
		return false;
	}
	ckt_wcall_finish(call, (CUresult)result);
	return true;
}

/* What runs the call; NULL with the reason as ONC RPC counts them. */
static const struct ckt_proc *find_proc(const struct ckt_call_header *header,
	const struct ckt_library *library, uint32_t *ret_accept_stat)
{
	*ret_accept_stat = header->vers == CKT_LIB_VERS ? 3 : 2;
	bool known = header->vers == CKT_LIB_VERS && header->proc < *library->proc_count &&
		library->procs[header->proc].name;
	return known ? &library->procs[header->proc] : NULL;
}

static enum progress library_call(struct ckt_worker *worker, const struct ckt_library *library,
	struct ckt_wcall *call, size_t size)
{
	const struct ckt_call_header *header = &call->header;
	uint32_t accept_stat, stat = ckt_stat_index(header->prog, header->proc);
	call->proc = find_proc(header, library, &accept_stat);
	if (!call->proc || stat >= CKT_STATS) {
		/*
		 * A numbered call that is not executed leaves a gap in which the next one would be
		 * refused.
		 */
		bool fatal = header->seq || header->flags & CKT_CALL_BATCHED;
		ckt_wcall_reject(call, accept_stat);
		return fatal ? PROGRESS_BROKEN : PROGRESS_MORE;
	}
	if (header->flags & CKT_CALL_BATCHED && !(call->proc->flags & CKT_PROC_BATCHED)) {
		ckt_wcall_free(call);
		return PROGRESS_BROKEN;
	}
	count(worker, header, stat, size + CKT_MARK_SIZE);
	ckt_stamps_look(header);
	switch (check_sequence(worker, header, call->proc->flags)) {
	case CKT_SEQ_BROKEN:
		ckt_warning("%s: got call number %llu instead of %llu", call->proc->name,
			(unsigned long long)header->seq,
			(unsigned long long)atomic_load(&worker->replies.executed) + 1);
		ckt_wcall_free(call);
		return PROGRESS_BROKEN;
	case CKT_SEQ_REPLAY:
		if (!(header->flags & CKT_CALL_BATCHED))
			ckt_wcall_replay(worker, header, worker->client_epoch);
		ckt_wcall_free(call);
		return PROGRESS_MORE;
	case CKT_SEQ_EXECUTE:
		break;
	}
	if (!(header->flags & CKT_CALL_BATCHED) && !may_answer(worker, header)) {
		ckt_wcall_reject(call, ACCEPT_SYSTEM_ERROR);
		return PROGRESS_BROKEN;
	}
	if (ckt_wcall_prepare(call))
		return no_memory_for(call);
	if (header->seq) {
		if (!(header->flags & CKT_CALL_BATCHED) &&
			ckt_replies_expect(&worker->replies, header->seq, stat, header->xid,
				worker->client_epoch))
			return no_memory_for(call);
		if (__builtin_expect(ckt_stamps_kept(), 0))
			ckt_stamps_begin(worker, header->seq);
		atomic_store_explicit(&worker->replies.executed, header->seq, memory_order_relaxed);
		if (__builtin_expect(worker->impose.seq == header->seq, 0))
			return ckt_impose_run(worker, call) ? PROGRESS_MORE : PROGRESS_BROKEN;
	}
	return ckt_executor_run(worker, call) ? PROGRESS_MORE : PROGRESS_BROKEN;
}

/* The next whole record of the input, if there is one. */
static enum progress next_command(struct ckt_worker *worker)
{
	size_t have = worker->input.tail - worker->input.head;
	const uint8_t *p = worker->input.data + worker->input.head;
	if (have < CKT_MARK_SIZE)
		return PROGRESS_NEED_INPUT;
	size_t size;
	if (ckt_mark_get(p, CKT_RECORD_MAX, &size) || size < CKT_CALL_HEADER_SIZE)
		return PROGRESS_BROKEN;
	if (have < CKT_MARK_SIZE + size)
		return PROGRESS_NEED_INPUT;
	ckt_input_take(&worker->input, CKT_MARK_SIZE + size);
	ckt_lookahead_beat(&worker->lookahead);
	ckt_activity_command();
	struct ckt_wcall *call = ckt_wcall_new(worker);
	if (!call)
		return no_memory_for(NULL);
	call->args = (struct ckt_cursor){.p = p + CKT_MARK_SIZE, .end = p + CKT_MARK_SIZE + size};
	if (!ckt_call_header_get(&call->args, &call->header)) {
		ckt_wcall_free(call);
		return PROGRESS_BROKEN;
	}
	const struct ckt_library *library = ckt_library_of_prog(call->header.prog);
	if (library)
		return library_call(worker, library, call, size);
	if (call->header.prog == CRICKET_SESSION_PROG && call->header.vers == 1) {
		if (call->header.proc < CKT_STATS - CKT_STAT_SESSION)
			count(worker, &call->header, CKT_STAT_SESSION + call->header.proc,
				size + CKT_MARK_SIZE);
		if (!ckt_replies_acked(&worker->replies, call->header.acked) || call->header.seq) {
			ckt_wcall_free(call);
			return PROGRESS_BROKEN;
		}
		return session_call(worker, call);
	}
	/* A client that knows of more libraries asks before it uses one. */
	bool fatal = call->header.seq || call->header.flags & CKT_CALL_BATCHED ||
		!ckt_replies_acked(&worker->replies, call->header.acked);
	ckt_wcall_reject(call, 1);
	return fatal ? PROGRESS_BROKEN : PROGRESS_MORE;
}

/* Runs what lies in the buffer, until it needs more or somebody wants something else. */
static enum progress run_input(struct ckt_worker *worker)
{
	for (unsigned n = 0; !atomic_load_explicit(&worker->mail, memory_order_relaxed); n++) {
		if (worker->checkpoint.hold.on) {
			if (ckt_hold_stops(worker))
				return PROGRESS_NEED_INPUT;
			ckt_hold_spend(worker);
		}
		if (__builtin_expect(ckt_turns_on(), 0) && ckt_turn_stops(worker))
			return PROGRESS_NEED_INPUT;
		if (__builtin_expect(ckt_stamps_replaying(), 0) && ckt_stamps_stops(worker))
			return PROGRESS_NEED_INPUT;
		enum progress progress = next_command(worker);
		if (progress != PROGRESS_MORE)
			return progress;
		if (n % COMMANDS_PER_POLL == COMMANDS_PER_POLL - 1) {
			ckt_pending_poll(worker);
			if (ckt_output_waiting(&worker->output) > CKT_OUTPUT_HIGH)
				break;
		}
	}
	return PROGRESS_MORE;
}

static void sleep_until_something(struct ckt_worker *worker, bool want_input)
{
	bool want_output = ckt_output_waiting(&worker->output) > 0;
	struct ckt_transport *client = &worker->input.transport;
	unsigned want =
		(want_input ? CKT_TRANSPORT_READ : 0) | (want_output ? CKT_TRANSPORT_WRITE : 0);
	/* A client that hangs up is none of our business while its commands wait. */
	bool listen = worker->client_fd >= 0 && want;
	struct pollfd fds[2] = {{.fd = worker->wake_fd, .events = POLLIN}};
	if (listen)
		fds[1] = ckt_transport_pollfd(client, want);
	if (listen && ckt_transport_ready(client, want))
		return;
	int timeout_ms = ckt_activity_sleeps(worker) ? ACTIVITY_LOOK_MS : -1;
	if (ckt_hold_check(worker) || ckt_turn_waits() || ckt_stamps_waits)
		timeout_ms = HOLD_LOOK_MS;
	ckt_lookahead_asleep(&worker->lookahead, true);
	poll(fds, listen ? 2 : 1, timeout_ms);
	ckt_lookahead_asleep(&worker->lookahead, false);
	if (listen)
		ckt_transport_polled(client, want, fds[1].revents);
	if (fds[0].revents & POLLIN) {
		uint64_t number;
		ssize_t ignored = read(worker->wake_fd, &number, sizeof number);
		(void)ignored;
	}
}

/*
 * Nothing came: until when the executor polls, at *until_ns (0: a spin begins).  A spin of 1 ms and
 * more asks whether the machine is crowded; the next ones are then brief.
 */
static bool spins_on(struct ckt_worker *worker, bool hot, int64_t *until_ns)
{
	int64_t now_ns = ckt_now_ns();
	if (*until_ns)
		ckt_crowd_look(&worker->crowd, now_ns);
	else
		ckt_crowd_begin(&worker->crowd, now_ns);
	if (!*until_ns || hot)
		*until_ns = now_ns + ckt_crowd_spin_ns(&worker->crowd, now_ns, worker->spin_ns);
	return hot || now_ns < *until_ns;
}

/* No further input at hand: answers leave now, and what the GPU does is looked at before a sleep. */
static void wait_for_something(
	struct ckt_worker *worker, bool full, bool stopped, int64_t *active_until_ns)
{
	bool hot = ckt_pending_poll(worker);
	if (ckt_turns_on())
		hot |= ckt_turn_look(worker, false);
	ckt_output_flush(&worker->output);
	/* With the backlog gone nothing would wake a sleep that does not look for input. */
	if (full && ckt_output_waiting(&worker->output) <= CKT_OUTPUT_HIGH)
		return;
	if (spins_on(worker, hot, active_until_ns) && !full && (!stopped || hot))
		return;
	if (worker->pools.synchronized)
		ckt_worker_pools_poll(worker);
	if (ckt_turns_on())
		ckt_turn_look(worker, true);
	sleep_until_something(worker, !full && !stopped);
	*active_until_ns = 0;
}

static void serve(struct ckt_worker *worker)
{
	int64_t active_until_ns = 0;
	while (worker->client_fd >= 0) {
		ckt_lookahead_beat(&worker->lookahead);
		if (atomic_load_explicit(&worker->mail, memory_order_relaxed)) {
			take_mail(worker);
			continue;
		}
		if (worker->checkpoint.hold.on)
			ckt_hold_refresh(worker);
		bool full = ckt_output_waiting(&worker->output) > CKT_OUTPUT_HIGH;
		enum progress progress = full ? PROGRESS_NEED_INPUT : run_input(worker);
		if (progress == PROGRESS_BYE) {
			ckt_output_flush(&worker->output);
			ckt_call_trace_linger(worker);
			ckt_worker_end("the program has ended");
		}
		if (progress == PROGRESS_BROKEN) {
			ckt_output_flush(&worker->output);
			ckt_executor_disconnect(worker, "one of its commands was rejected");
			return;
		}
		if (progress == PROGRESS_MORE && !full)
			continue;
		bool stopped = (worker->checkpoint.hold.on && ckt_hold_stops(worker)) ||
			ckt_turn_stopped() || ckt_stamps_waits;
		int got = full || stopped ? 0 : ckt_input_receive(&worker->input);
		if (got < 0) {
			ckt_executor_disconnect(worker, "its connection was closed");
			return;
		}
		if (got > 0) {
			active_until_ns = 0;
			continue;
		}
		wait_for_something(worker, full, stopped, &active_until_ns);
	}
}

static void *executor(void *opaque)
{
	struct ckt_worker *worker = opaque;
	pthread_mutex_lock(&worker->mail_lock);
	while (!worker->go)
		pthread_cond_wait(&worker->mail_cond, &worker->mail_lock);
	pthread_mutex_unlock(&worker->mail_lock);
	if (worker->current)
		ckt_driver.cuCtxSetCurrent(worker->current->real);
	for (;;) {
		if (worker->client_fd >= 0) {
			serve(worker);
			continue;
		}
		if (atomic_load(&worker->mail))
			take_mail(worker);
		else if (!ckt_pending_poll(worker)) {
			if (ckt_turns_on())
				ckt_turn_look(worker, true);
			sleep_until_something(worker, false);
		}
	}
	return NULL;
}

void ckt_executor_go(struct ckt_worker *worker)
{
	pthread_mutex_lock(&worker->mail_lock);
	worker->go = true;
	pthread_cond_broadcast(&worker->mail_cond);
	pthread_mutex_unlock(&worker->mail_lock);
}

int ckt_executor_start(struct ckt_worker *worker)
{
	ckt_waiting_calls_init(worker);
	worker->spin_ns = ckt_processors() > CKT_FEW_PROCESSORS ? CKT_SPIN_LONG_NS : CKT_SPIN_NS;
	worker->rings_place = ckt_shared_memory_reserve(CKT_RINGS_BYTES);
	int result = ckt_input_init(&worker->input);
	if (!result)
		result = ckt_lookahead_start(worker);
	return result ? result : -pthread_create(&worker->executor, NULL, executor, worker);
}
