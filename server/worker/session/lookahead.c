/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions' ends, taken ahead; see lookahead.h. */
#include "server/worker/session/lookahead.h"

#include <pthread.h>
#include <time.h>

#include "rpc/gen/cuda_codec.h"
#include "server/worker/session/executor.h"
#include "server/worker/session/hostfunc.h"
#include "server/worker/worker.h"

enum {
	LOOK_NS = 1000000,
	/*
	 * Of the client, with commands in the input: beyond that the rest is left to the executor.
	 */
	THREADS_MAX = 256,
};

struct look {
	struct ckt_worker *worker;
	uint64_t executed;
	uint32_t threads[THREADS_MAX]; /* that have a command which is not executed */
	unsigned count;
	bool ended;
};

static bool is_behind(const struct look *look, uint32_t thread)
{
	for (unsigned i = 0; i < look->count; i++)
		if (look->threads[i] == thread)
			return true;
	return false;
}

static bool visit(void *data, const struct ckt_call_header *header, struct ckt_cursor *args)
{
	struct look *look = data;
	if (header->prog == CKT_CUDA_PROG && header->proc == CKT_PROC_HOST_FUNC_DONE) {
		struct ckt_host_func_done_args done;
		if (!is_behind(look, header->thread) && ckt_host_func_done_args_get(args, &done))
			look->ended |= ckt_hostcall_end(look->worker, done.instance);
		return true;
	}
	/* Pinned memory of a client that has come back, which its GPU must not read before. */
	if (header->prog == CRICKET_SESSION_PROG && header->proc == CKT_SESSION_HOST_FILL)
		return false;
	/* The last one that is counted as executed may be the one that the executor is stuck in. */
	if (!header->seq || header->seq < look->executed || is_behind(look, header->thread))
		return true;
	if (look->count == THREADS_MAX)
		return false;
	look->threads[look->count++] = header->thread;
	return true;
}

void ckt_lookahead_look(struct ckt_worker *worker)
{
	struct look look = {.worker = worker};
	ckt_hostcalls_send_stuck(worker);
	ckt_output_flush(&worker->output);
	look.executed = atomic_load(&worker->replies.executed);
	/* The executor would sleep on a socket that has nothing more to say, or on its mail. */
	if (ckt_input_look(&worker->input, visit, &look) || look.ended)
		ckt_executor_wake(worker);
}

static void *look_ahead(void *opaque)
{
	struct ckt_worker *worker = opaque;
	struct ckt_lookahead *lookahead = &worker->lookahead;
	for (;;) {
		ckt_hostcalls_await();
		uint64_t before = atomic_load_explicit(&lookahead->beats, memory_order_relaxed);
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		if (!atomic_load_explicit(&lookahead->asleep, memory_order_relaxed) &&
			ckt_hostcalls_waiting(worker) &&
			atomic_load_explicit(&lookahead->beats, memory_order_relaxed) == before)
			ckt_lookahead_look(worker);
	}
	return NULL;
}

int ckt_lookahead_start(struct ckt_worker *worker)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, look_ahead, worker);
	if (!error)
		pthread_detach(thread);
	return -error;
}
