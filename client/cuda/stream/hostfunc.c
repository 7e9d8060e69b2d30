/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions; see hostfunc.h. */
#include <signal.h>
#include <stdlib.h>

#include "client/cuda/stream/hostfunc.h"
#include "base/fork.h"
#include "client/conn/conn.h"
#include "client/cuda/call.h"
#include "client/cuda/context/route.h"
#include "client/cuda/graph/graph_host.h"
#include "client/cuda/memory/managed.h"
#include "client/cuda/memory/registered.h"
#include "cudacommon/capture.h"

enum { DONE_KEPT = 1024 };

/* A host function on a stream that has not run yet. */
struct registered {
	struct registered *next;
	uint64_t number;
	CUhostFn function; /* exactly one of the two is set */
	CUstreamCallback callback;
	CUstream stream;
	void *data;
};

struct arrived {
	struct arrived *next;
	struct ckt_host_call_args call;
};

/*
 * The state of one server's host functions.  One thread waits on the server's connection.
 * Instances are numbers of that server.
 */
struct caller {
	struct ckt_conn *conn;
	_Atomic uint64_t context; /* context of the latest host function */
	_Atomic uint64_t enqueued, finished;
	struct arrived *arrived, **arrived_last;
	/* Executed instances: if the worker sends one twice, it runs once. */
	uint64_t done[DONE_KEPT], running;
	unsigned done_next;
	bool have_thread;
};

_Atomic uint64_t ckt_host_enqueued, ckt_host_settled;

static CKT_LOCK(lock);
static pthread_cond_t wanted = PTHREAD_COND_INITIALIZER;

static void forked(void)
{
	wanted = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}
CKT_IN_CHILD(forked);

static struct registered *registered, **registered_last = &registered;
static struct caller callers[CKT_SERVERS_MAX]; /* by the connection's number */
static uint64_t next_number;
static __thread bool in_host_thread __attribute__((tls_model("initial-exec")));

/* ---- The thread */

static bool something_to_do(void *data)
{
	struct caller *caller = data;
	int state = atomic_load(&caller->conn->state);
	pthread_mutex_lock(&lock);
	bool there = caller->arrived != NULL;
	pthread_mutex_unlock(&lock);
	return there || caller->finished >= caller->enqueued || state == CKT_CONN_LOST ||
		state == CKT_CONN_FORKED;
}

static void run_registered(const struct ckt_host_call_args *call)
{
	pthread_mutex_lock(&lock);
	struct registered **r = &registered;
	while (*r && (*r)->number != call->number)
		r = &(*r)->next;
	struct registered *found = *r;
	if (found) {
		*r = found->next;
		if (!*r && registered_last == &found->next)
			registered_last = r;
	}
	pthread_mutex_unlock(&lock);
	if (!found)
		return;
	ckt_call_forbidden = true;
	if (found->callback)
		found->callback(found->stream, (CUresult)call->status, found->data);
	else
		found->function(found->data);
	ckt_call_forbidden = false;
	free(found);
}

static void run(struct caller *caller, const struct ckt_host_call_args *call)
{
	CUhostFn function = NULL;
	void *data = NULL;
	/* The stream's earlier work is done, so fetch its results. */
	ckt_lanes_settle(caller->conn);
	ckt_registered_after_wait(CUDA_SUCCESS, 0);
	if (!call->exec) {
		run_registered(call);
	} else {
		ckt_client_exec_before_host(call->exec, call->number, &function, &data);
		ckt_call_forbidden = true;
		if (function)
			function(data);
		ckt_call_forbidden = false;
		ckt_client_exec_after_host(call->exec, call->number);
	}
	ckt_managed_after_host();
	pthread_mutex_lock(&lock);
	caller->done[caller->done_next++ % DONE_KEPT] = call->instance;
	caller->running = 0;
	pthread_mutex_unlock(&lock);
	ckt_call_conn = caller->conn;
	CKT_BATCHED(host_func_done, HOST_FUNC_DONE, .instance = call->instance);
	atomic_fetch_add(&caller->finished, 1);
}

static void *host_thread(void *opaque)
{
	struct caller *caller = opaque;
	in_host_thread = true;
	ckt_call_conn = caller->conn;
	for (;;) {
		pthread_mutex_lock(&lock);
		while (!caller->arrived && caller->finished >= caller->enqueued)
			pthread_cond_wait(&wanted, &lock);
		struct arrived *a = caller->arrived;
		if (a) {
			caller->arrived = a->next;
			if (!caller->arrived)
				caller->arrived_last = &caller->arrived;
			caller->running = a->call.instance;
		}
		pthread_mutex_unlock(&lock);
		if (a) {
			run(caller, &a->call);
			free(a);
			continue;
		}
		ckt_conn_listen_until(caller->conn, something_to_do, caller);
		int state = atomic_load(&caller->conn->state);
		if (state == CKT_CONN_LOST || state == CKT_CONN_FORKED)
			return NULL;
	}
}

/* Runs in the thread that reads the socket, so it only stores the call. */
static void host_call(struct ckt_conn *conn, const struct ckt_host_call_args *call)
{
	struct caller *caller = &callers[conn->number];
	pthread_mutex_lock(&lock);
	bool known = caller->running == call->instance;
	for (unsigned i = 0; i < DONE_KEPT && !known; i++)
		known = caller->done[i] == call->instance;
	for (const struct arrived *a = caller->arrived; a && !known; a = a->next)
		known = a->call.instance == call->instance;
	struct arrived *a = known ? NULL : malloc(sizeof *a);
	if (a) {
		*a = (struct arrived){.call = *call};
		*caller->arrived_last = a;
		caller->arrived_last = &a->next;
		pthread_cond_broadcast(&wanted);
	}
	pthread_mutex_unlock(&lock);
}

/* Precondition: locked. */
static CUresult start_thread(struct caller *caller)
{
	if (caller->have_thread)
		return CUDA_SUCCESS;
	caller->conn = ckt_call_conn;
	caller->arrived_last = &caller->arrived;
	ckt_conn_host_call = host_call;
	sigset_t all, before;
	pthread_t thread;
	sigfillset(&all);
	/* The thread itself must receive its faults: accesses to managed memory cause them. */
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&thread, NULL, host_thread, caller);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_detach(thread);
	caller->have_thread = true;
	return CUDA_SUCCESS;
}

CUresult ckt_client_host_expect(unsigned count)
{
	if (!count)
		return CUDA_SUCCESS;
	struct caller *caller = &callers[ckt_call_conn->number];
	pthread_mutex_lock(&lock);
	CUresult result = start_thread(caller);
	if (!result) {
		caller->context = ckt_call_context;
		atomic_fetch_add(&caller->enqueued, count);
		atomic_fetch_add(&ckt_host_enqueued, count);
		pthread_cond_broadcast(&wanted);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

bool ckt_client_host_thread(void)
{
	return in_host_thread;
}

void ckt_client_host_settle_slow(void)
{
	uint64_t upto = ckt_host_enqueued;
	if (in_host_thread)
		return;
	/*
	 * When the GPU is idle, all host functions have run.  After an error, the streams call
	 * none, and this wait still ends.
	 */
	for (unsigned i = 0; i < ckt_conn_count; i++) {
		if (callers[i].finished >= callers[i].enqueued)
			continue;
		CKT_ROUTE(ckt_route_to_context(callers[i].context));
		CKT_WAITED(ctx_synchronize, CTX_SYNCHRONIZE, 0, NULL, .id = 0);
	}
	uint64_t before = ckt_host_settled;
	while (before < upto && !atomic_compare_exchange_weak(&ckt_host_settled, &before, upto))
		;
}

/* ---- The API */

static CUresult enqueue(const struct registered *what)
{
	uint64_t stream;
	struct ckt_capture_stream *capturing;
	CKT_ROUTE_STREAM(what->stream);
	CUresult result = ckt_stream_resolve(what->stream, &stream);
	if (!result)
		result = ckt_capture_enter(stream, &capturing);
	if (result)
		return result;
	if (capturing) {
		struct ckt_node *node;
		/* A callback cannot be captured. */
		if (what->callback) {
			ckt_graph_leave(CUDA_SUCCESS);
			return ckt_capture_forbid(stream);
		}
		result = ckt_capture_append(capturing, CU_GRAPH_NODE_TYPE_HOST, &node);
		if (!result)
			node->host = (CUDA_HOST_NODE_PARAMS){
				.fn = what->function, .userData = what->data};
		return ckt_graph_leave(result);
	}
	struct registered *r = malloc(sizeof *r);
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*r = *what;
	r->next = NULL;
	result = ckt_client_host_expect(1);
	if (result) {
		free(r);
		return result;
	}
	pthread_mutex_lock(&lock);
	uint64_t number = r->number = ++next_number;
	*registered_last = r;
	registered_last = &r->next;
	pthread_mutex_unlock(&lock);
	return CKT_BATCHED(host_func, HOST_FUNC, .stream = stream, .number = number,
		.callback = what->callback != NULL);
}

CKT_EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	return enqueue(&(struct registered){.function = function, .stream = stream, .data = data});
}

CKT_EXPORT CUresult cuStreamAddCallback(
	CUstream stream, CUstreamCallback callback, void *data, unsigned int flags)
{
	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	return enqueue(&(struct registered){.callback = callback, .stream = stream, .data = data});
}
