/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_trace.h. */
#include "client/conn/gpu_trace.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/until.h"
#include "base/log.h"
#include "base/thread.h"
#include "client/conn/conn.h"
#include "client/trace/gpu_track.h"
#include "client/trace/recorder.h"
#include "rpc/net.h"

enum { PERIOD_NS = 100000000, LAST_LOOKS = 50, LAST_LOOK_NS = 10000000 };

/* What the thread knows of a session. */
struct follower {
	struct ckt_conn *conn;
	uint64_t trace; /* 0: none runs */
	bool refused;   /* the server knows no such traces */
	bool told;      /* the user knows that another trace runs */
	/* this clock minus the worker's, from the answer that was the fastest */
	int64_t offset_ns, trip_ns;
	unsigned pending;
};

/* The answer that the thread waits for: written by the thread that reads it. */
static struct {
	_Atomic bool done;
	CUresult result;
	int64_t received_ns;
	size_t size;
	uint8_t *data;
} answer;

static struct {
	pthread_t thread;
	pid_t pid; /* of the process that has the thread */
	_Atomic bool running, stop;
	sem_t wake;
	struct follower followers[CKT_SERVERS_MAX];
	unsigned count;
} gpu;

/* ---- One question */

static void answered(void *data, CUresult result, struct ckt_cursor *results)
{
	(void)data;
	answer.received_ns = ckt_now_ns();
	answer.result = result;
	answer.size = result ? 0 : (size_t)(results->end - results->p);
	answer.data = answer.size ? malloc(answer.size) : NULL;
	if (answer.data)
		memcpy(answer.data, results->p, answer.size);
	atomic_store_explicit(&answer.done, true, memory_order_release);
}

static bool is_answered(void *data)
{
	(void)data;
	return atomic_load_explicit(&answer.done, memory_order_acquire);
}

/* The faster an answer came, the less the two clocks can be apart from what it says. */
static void compare_clocks(struct follower *f, int64_t asked_ns, int64_t worker_ns)
{
	int64_t trip_ns = answer.received_ns - asked_ns;
	if (f->trip_ns && trip_ns >= f->trip_ns)
		return;
	f->trip_ns = trip_ns;
	f->offset_ns = asked_ns + trip_ns / 2 - worker_ns;
}

static void no_answer(struct follower *f)
{
	/* A session that is lost says so elsewhere. */
	if (atomic_load(&f->conn->state) == CKT_CONN_OPEN)
		ckt_log_user("CRICKET_TRACE_GPU: the server at %s does not tell GPU times: update "
			     "it; the trace has none of it",
			f->conn->address_text);
	f->refused = true;
}

/* True with an answer, which the caller frees with xdr_free. */
static bool ask(struct follower *f, ckt_trace_action action, ckt_gpu_trace_res *ret_res)
{
	ckt_gpu_trace_args args = {.action = action, .trace = f->trace};
	int64_t asked_ns = ckt_now_ns();
	memset(ret_res, 0, sizeof *ret_res);
	atomic_store(&answer.done, false);
	if (ckt_conn_session_tell(f->conn, CKT_SESSION_GPU_TRACE, (xdrproc_t)xdr_ckt_gpu_trace_args,
		    &args, answered, NULL)) {
		f->refused = true;
		return false;
	}
	ckt_conn_listen_until(f->conn, is_answered, NULL);
	struct ckt_cursor results = {.p = answer.data, .end = answer.data + answer.size};
	bool decoded =
		answer.data && !ckt_net_decode(&results, (xdrproc_t)xdr_ckt_gpu_trace_res, ret_res);
	free(answer.data);
	answer.data = NULL;
	if (!decoded)
		no_answer(f);
	else
		compare_clocks(f, asked_ns, ret_res->now_ns);
	return decoded;
}

/* ---- A session's trace */

static uint64_t not_negative(int64_t value)
{
	return value < 0 ? 0 : (uint64_t)value;
}

static void put(const struct follower *f, const ckt_gpu_trace_res *res)
{
	for (u_int i = 0; i < res->calls.calls_len; i++) {
		const ckt_traced_call *call = &res->calls.calls_val[i];
		ckt_trace_gpu_put(f->conn->number,
			&(struct ckt_trace_gpu){.name = call->name,
				.kernel = call->kernel,
				.start_ns = not_negative(call->start_ns + f->offset_ns),
				.duration_ns = not_negative(call->duration_ns),
				.stream = call->stream,
				.bytes = call->bytes,
				.grid = {call->grid[0], call->grid[1], call->grid[2]},
				.block = {call->block[0], call->block[1], call->block[2]}});
	}
	if (res->dropped)
		ckt_trace_gpu_dropped(f->conn->number, res->dropped);
}

static void begin(struct follower *f)
{
	ckt_gpu_trace_res res;
	f->trip_ns = 0;
	if (!ask(f, CKT_TRACE_ACTION_START, &res))
		return;
	if (!res.status)
		f->trace = res.trace;
	else if (!f->told)
		ckt_log_user("CRICKET_TRACE_GPU: session %s: %s: GPU times begin when %s",
			f->conn->session, strerror(-res.status),
			res.status == -EBUSY ? "the present 'cricketctl trace' ends"
					     : "the server can");
	f->told |= res.status != 0;
	xdr_free((xdrproc_t)xdr_ckt_gpu_trace_res, (char *)&res);
}

/* One answer's records.  True: there are more. */
static bool read_some(struct follower *f, ckt_trace_action action)
{
	ckt_gpu_trace_res res;
	if (!ask(f, action, &res))
		return false;
	bool more = !res.status && res.more;
	f->pending = res.status ? 0 : res.pending;
	if (!res.status)
		put(f, &res);
	else if (res.status != -EAGAIN)
		f->trace = 0; /* another worker has the session now */
	xdr_free((xdrproc_t)xdr_ckt_gpu_trace_res, (char *)&res);
	return more;
}

static void follow(struct follower *f)
{
	if (!f->trace && !f->refused)
		begin(f);
	while (f->trace && !f->refused && read_some(f, CKT_TRACE_ACTION_READ))
		;
}

/* The GPU may still be at it: the program may end without waiting for it. */
static void finish(struct follower *f)
{
	for (int i = 0; i < LAST_LOOKS && f->trace && !f->refused; i++) {
		follow(f);
		if (!f->pending)
			break;
		nanosleep(&(struct timespec){.tv_nsec = LAST_LOOK_NS}, NULL);
	}
	ckt_trace_action action = CKT_TRACE_ACTION_STOP;
	while (f->trace && !f->refused && read_some(f, action))
		action = CKT_TRACE_ACTION_READ;
}

/* ---- The thread */

static void wait_a_period(void)
{
	int64_t until_ns = ckt_now_ns() + PERIOD_NS;
	struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
	while (sem_clockwait(&gpu.wake, CLOCK_MONOTONIC, &until) && errno == EINTR)
		;
}

static void *follow_main(void *unused)
{
	(void)unused;
	for (; !atomic_load(&gpu.stop); wait_a_period())
		for (unsigned i = 0; i < gpu.count; i++)
			follow(&gpu.followers[i]);
	for (unsigned i = 0; i < gpu.count; i++)
		finish(&gpu.followers[i]);
	return NULL;
}

/* Before any command: what is launched from here on has a time. */
static void begin_all(void)
{
	for (gpu.count = 0; gpu.count < ckt_conn_count; gpu.count++) {
		struct follower *f = &gpu.followers[gpu.count];
		*f = (struct follower){.conn = ckt_conns[gpu.count]};
		ckt_trace_gpu_server(f->conn->number, f->conn->server);
		begin(f);
	}
}

void ckt_gpu_trace_start(void)
{
	const char *wanted = getenv("CRICKET_TRACE_GPU");
	if (!wanted || strcmp(wanted, "1") != 0)
		return;
	if (!ckt_trace_get() || !ckt_trace_state.to_file) {
		ckt_log_user("CRICKET_TRACE_GPU=1 has no effect without CRICKET_TRACE: set it to "
			     "the file for the trace");
		return;
	}
	gpu.pid = getpid();
	sem_init(&gpu.wake, 0, 0);
	begin_all();
	bool running = ckt_thread_start(&gpu.thread, 0, follow_main, NULL) == 0;
	atomic_store(&gpu.running, running);
	if (running)
		ckt_trace_state.before_end = ckt_gpu_trace_end;
	else
		ckt_log_user("CRICKET_TRACE_GPU: cannot start the thread that fetches GPU times: "
			     "the trace has none");
}

void ckt_gpu_trace_end(const struct timespec *until)
{
	int64_t end_ns = ckt_now_ns() + CKT_GPU_TRACE_END_NS;
	struct timespec own = {.tv_sec = end_ns / 1000000000, .tv_nsec = end_ns % 1000000000};
	/* A forked child has no such thread. */
	if (!atomic_load(&gpu.running) || gpu.pid != getpid() ||
		!atomic_exchange(&gpu.running, false))
		return;
	atomic_store(&gpu.stop, true);
	sem_post(&gpu.wake);
	ckt_join_until(gpu.thread, until ? until : &own);
}
