/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions; see hostfunc.h. */
#include "server/worker/session/hostfunc.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "rpc/gen/cuda_codec.h"
#include "rpc/net.h"
#include "server/worker/driver.h"
#include "server/worker/graph/graph.h"
#include "server/worker/session/executor.h"
#include "server/worker/worker.h"

/*
 * Behind which copies to the host its turn comes: those of the chain that were in the list of
 * pending calls then.  Chain 0: not known.
 */
struct place {
	uint64_t chain, upto;
};

struct ckt_host_call {
	struct ckt_host_call *next;
	uint64_t instance, order, number, exec;
	struct place place;
	int status;
	bool sent, done;
};

/* What a stream's function is called with; freed by it. */
struct queued {
	uint64_t number;
	struct place place;
};

/* So many are told of by a look ahead; the next one takes the others. */
enum { PLACES_MAX = 64 };

static struct ckt_host_calls calls = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER,
	.come = PTHREAD_COND_INITIALIZER};

/* On a thread of the driver, where its functions must not be called. */
static void call_client(uint64_t number, uint64_t exec, int status, struct place place)
{
	struct ckt_worker *worker = &ckt_worker;
	struct ckt_host_call call = {
		.number = number, .exec = exec, .status = status, .place = place};
	pthread_mutex_lock(&calls.lock);
	/* A restored session must not use a number that its client has seen. */
	call.order = ++calls.next_instance;
	call.instance = worker->generation << 40 | call.order;
	struct ckt_host_call **last = &calls.first;
	while (*last)
		last = &(*last)->next;
	*last = &call;
	calls.count++;
	pthread_cond_signal(&calls.come);
	atomic_store(&worker->mail, true);
	ckt_executor_wake(worker);
	while (!call.done)
		pthread_cond_wait(&calls.done, &calls.lock);
	pthread_mutex_unlock(&calls.lock);
}

void ckt_hostcall_graph(void *data)
{
	const struct ckt_worker_graph_node *node = data;
	call_client(node->id, node->exec, CUDA_SUCCESS, (struct place){.chain = 0});
}

static void stream_function(void *data)
{
	struct queued queued = *(struct queued *)data;
	free(data);
	call_client(queued.number, 0, CUDA_SUCCESS, queued.place);
}

static void stream_callback(CUstream stream, CUresult status, void *data)
{
	struct queued queued = *(struct queued *)data;
	free(data);
	/* Behind a fault nothing is known of what came before. */
	call_client(
		queued.number, 0, (int)status, status ? (struct place){.chain = 0} : queued.place);
}

/* Those whose turn had come before the last of them. */
static void send_calls(struct ckt_worker *worker, uint64_t last)
{
	uint64_t epoch = ckt_output_epoch(&worker->output);
	pthread_mutex_lock(&calls.lock);
	for (struct ckt_host_call *call = calls.first; call && epoch; call = call->next) {
		if (call->sent || call->order > last)
			continue;
		uint8_t *p = ckt_output_begin(&worker->output, epoch, CKT_CALL_HEADER_SIZE + 28);
		if (!p)
			break;
		p = ckt_call_header_put(p,
			&(struct ckt_call_header){.prog = CRICKET_CALLBACK_PROG,
				.vers = 1,
				.proc = CKT_CALLBACK_HOST_CALL});
		p = ckt_put_u64(p, call->instance);
		p = ckt_put_u64(p, call->number);
		p = ckt_put_u64(p, call->exec);
		ckt_put_u32(p, (uint32_t)call->status);
		ckt_output_end(&worker->output);
		call->sent = true;
	}
	pthread_mutex_unlock(&calls.lock);
}

void ckt_hostcalls_send(struct ckt_worker *worker)
{
	if (!calls.count)
		return;
	pthread_mutex_lock(&calls.lock);
	uint64_t last = calls.next_instance;
	pthread_mutex_unlock(&calls.lock);
	/*
	 * What their streams did before is done: the functions may look at it.  One whose turn
	 * comes meanwhile is told of the next time.
	 */
	ckt_pending_deliver(worker);
	send_calls(worker, last);
}

void ckt_hostcalls_send_stuck(struct ckt_worker *worker)
{
	struct place places[PLACES_MAX];
	uint64_t last = 0;
	unsigned count = 0;
	bool ask = false;
	pthread_mutex_lock(&calls.lock);
	for (struct ckt_host_call *call = calls.first; call && count < PLACES_MAX;
		call = call->next)
		if (!call->sent) {
			places[count++] = call->place;
			last = call->order;
		}
	pthread_mutex_unlock(&calls.lock);
	if (!count)
		return;
	for (unsigned i = 0; i < count; i++)
		ask |= !ckt_pending_deliver_known(
			worker, places[i].chain, places[i].chain ? places[i].upto : UINT64_MAX);
	if (ask && !ckt_driver.cuCtxSetCurrent(worker->first_context))
		ckt_pending_deliver(worker);
	send_calls(worker, last);
}

void ckt_hostcalls_resend(struct ckt_worker *worker)
{
	pthread_mutex_lock(&calls.lock);
	for (struct ckt_host_call *call = calls.first; call; call = call->next)
		call->sent = false;
	pthread_mutex_unlock(&calls.lock);
	ckt_hostcalls_send(worker);
}

bool ckt_hostcall_end(struct ckt_worker *worker, uint64_t instance)
{
	bool found = false;
	pthread_mutex_lock(&calls.lock);
	for (struct ckt_host_call **c = &calls.first; *c; c = &(*c)->next) {
		if ((*c)->instance != instance)
			continue;
		(*c)->done = true;
		*c = (*c)->next;
		calls.count--;
		calls.ended++;
		found = true;
		pthread_cond_broadcast(&calls.done);
		break;
	}
	bool none = !calls.count;
	pthread_mutex_unlock(&calls.lock);
	/* Whoever wants to freeze has been waiting for this. */
	if (none)
		atomic_store(&worker->mail, true);
	return found;
}

void ckt_hostcalls_await(void)
{
	pthread_mutex_lock(&calls.lock);
	while (!calls.count)
		pthread_cond_wait(&calls.come, &calls.lock);
	pthread_mutex_unlock(&calls.lock);
}

uint64_t ckt_hostcalls_ended(void)
{
	return calls.ended;
}

bool ckt_hostcalls_waiting(struct ckt_worker *worker)
{
	return calls.count > 0;
}

int ckt_hostcalls_rest(struct ckt_worker *worker, int64_t deadline_ms)
{
	if (deadline_ms >= 0 && ckt_hostcalls_waiting(worker))
		return -EAGAIN;
	if (deadline_ms >= 0 && ckt_net_now_ms() >= deadline_ms)
		return -ETIMEDOUT;
	nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
	return 0;
}

/* ---- Handlers */

int ckt_worker_host_func(struct ckt_wcall *call)
{
	struct ckt_host_func_args args;
	CUstream stream;
	if (!ckt_host_func_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_object_stream(call->worker, args.stream, &stream);
	if (result)
		return result;
	struct queued *queued = malloc(sizeof *queued);
	if (!queued)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*queued = (struct queued){.number = args.number,
		.place = {.chain = args.stream ? args.stream : 1,
			.upto = call->worker->pending.added}};
	/* A callback is called after a fault too, and told so. */
	result = args.callback ? ckt_driver.cuStreamAddCallback(stream, stream_callback, queued, 0)
			       : ckt_driver.cuLaunchHostFunc(stream, stream_function, queued);
	if (result)
		free(queued);
	return result;
}

int ckt_worker_host_func_done(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_host_func_done_args args;
	if (!ckt_host_func_done_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	ckt_hostcall_end(worker, args.instance);
	return CUDA_SUCCESS;
}
