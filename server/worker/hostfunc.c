/* Host functions; see hostfunc.h. */
#include "server/worker/hostfunc.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "rpc/gen/cuda_codec.h"
#include "rpc/net.h"
#include "server/worker/driver.h"
#include "server/worker/graph.h"
#include "server/worker/worker.h"

struct ckt_host_call {
	struct ckt_host_call *next;
	uint64_t instance, order, number, exec;
	int status;
	bool sent, done;
};

static struct ckt_host_calls calls = {
	.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER, .come = PTHREAD_COND_INITIALIZER};

/* On a thread of the driver, where its functions must not be called. */
static void call_client(uint64_t number, uint64_t exec, int status)
{
	struct ckt_worker *worker = &ckt_worker;
	struct ckt_host_call call = {.number = number, .exec = exec, .status = status};
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
	const struct ckt_graph_node *node = data;
	call_client(node->id, node->exec, CUDA_SUCCESS);
}

static void stream_function(void *data)
{
	uint64_t number = *(uint64_t *)data;
	free(data);
	call_client(number, 0, CUDA_SUCCESS);
}

static void stream_callback(CUstream stream, CUresult status, void *data)
{
	uint64_t number = *(uint64_t *)data;
	free(data);
	call_client(number, 0, (int)status);
}

void ckt_hostcalls_send(struct ckt_worker *worker)
{
	if (!calls.count)
		return;
	pthread_mutex_lock(&calls.lock);
	uint64_t last = calls.next_instance;
	pthread_mutex_unlock(&calls.lock);
	/* What their streams did before is done: the functions may look at it.  One whose turn comes meanwhile is told of the next time. */
	ckt_pending_deliver(worker);
	uint64_t epoch = ckt_output_epoch(&worker->output);
	pthread_mutex_lock(&calls.lock);
	for (struct ckt_host_call *call = calls.first; call && epoch; call = call->next) {
		if (call->sent || call->order > last)
			continue;
		uint8_t *p = ckt_output_begin(&worker->output, epoch, CKT_CALL_HEADER_SIZE + 28);
		if (!p)
			break;
		p = ckt_call_header_put(p, &(struct ckt_call_header){.prog = CRICKET_CALLBACK_PROG, .vers = 1, .proc = CKT_CALLBACK_HOST_CALL});
		p = ckt_put_u64(p, call->instance);
		p = ckt_put_u64(p, call->number);
		p = ckt_put_u64(p, call->exec);
		ckt_put_u32(p, (uint32_t)call->status);
		ckt_output_end(&worker->output);
		call->sent = true;
	}
	pthread_mutex_unlock(&calls.lock);
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
	uint64_t *number = malloc(sizeof *number);
	if (!number)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*number = args.number;
	/* A callback is called after a fault too, and told so. */
	result = args.callback ? ckt_driver.cuStreamAddCallback(stream, stream_callback, number, 0) :
				 ckt_driver.cuLaunchHostFunc(stream, stream_function, number);
	if (result)
		free(number);
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
