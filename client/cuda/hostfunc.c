/* Host functions; see hostfunc.h. */
#include "client/cuda/hostfunc.h"

#include <signal.h>
#include <stdlib.h>

#include "client/conn/conn.h"
#include "client/cuda/graph_side.h"
#include "driver/capture.h"

enum { DONE_KEPT = 1024 };

/* On a stream and not yet called. */
struct registered {
	struct registered *next;
	uint64_t number;
	CUhostFn function;		/* one of the two */
	CUstreamCallback callback;
	CUstream stream;
	void *data;
};

struct arrived {
	struct arrived *next;
	struct ckt_host_call_args call;
};

_Atomic uint64_t ckt_host_enqueued, ckt_host_settled;
static _Atomic uint64_t finished;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wanted = PTHREAD_COND_INITIALIZER;
static struct registered *registered, **registered_last = &registered;
static struct arrived *arrived, **arrived_last = &arrived;
static uint64_t done[DONE_KEPT], running;	/* instances, so that what is told twice is done once */
static unsigned done_next;
static uint64_t next_number;
static bool have_thread;
static __thread bool in_host_thread __attribute__((tls_model("initial-exec")));

/* ---- The thread */

static bool something_to_do(void *data)
{
	int state = atomic_load(&ckt_conn.state);
	pthread_mutex_lock(&lock);
	bool there = arrived != NULL;
	pthread_mutex_unlock(&lock);
	return there || finished >= ckt_host_enqueued || state == CKT_CONN_LOST || state == CKT_CONN_FORKED;
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

static void run(const struct ckt_host_call_args *call)
{
	CUhostFn function = NULL;
	void *data = NULL;
	/* What its stream has done is there. */
	ckt_registered_after_wait(CUDA_SUCCESS, 0);
	if (!call->exec) {
		run_registered(call);
	} else {
		ckt_exec_before_host(call->exec, call->number, &function, &data);
		ckt_call_forbidden = true;
		if (function)
			function(data);
		ckt_call_forbidden = false;
		ckt_exec_after_host(call->exec, call->number);
	}
	ckt_managed_after_host();
	pthread_mutex_lock(&lock);
	done[done_next++ % DONE_KEPT] = call->instance;
	running = 0;
	pthread_mutex_unlock(&lock);
	CKT_BATCHED(host_func_done, HOST_FUNC_DONE, .instance = call->instance);
	atomic_fetch_add(&finished, 1);
}

static void *host_thread(void *unused)
{
	in_host_thread = true;
	for (;;) {
		pthread_mutex_lock(&lock);
		while (!arrived && finished >= ckt_host_enqueued)
			pthread_cond_wait(&wanted, &lock);
		struct arrived *a = arrived;
		if (a) {
			arrived = a->next;
			if (!arrived)
				arrived_last = &arrived;
			running = a->call.instance;
		}
		pthread_mutex_unlock(&lock);
		if (a) {
			run(&a->call);
			free(a);
			continue;
		}
		ckt_call_wait_until(something_to_do, NULL);
		int state = atomic_load(&ckt_conn.state);
		if (state == CKT_CONN_LOST || state == CKT_CONN_FORKED)
			return NULL;
	}
}

/* From the thread that reads the socket: takes note and no more. */
static void host_call(const struct ckt_host_call_args *call)
{
	pthread_mutex_lock(&lock);
	bool known = running == call->instance;
	for (unsigned i = 0; i < DONE_KEPT && !known; i++)
		known = done[i] == call->instance;
	for (const struct arrived *a = arrived; a && !known; a = a->next)
		known = a->call.instance == call->instance;
	struct arrived *a = known ? NULL : malloc(sizeof *a);
	if (a) {
		*a = (struct arrived){.call = *call};
		*arrived_last = a;
		arrived_last = &a->next;
		pthread_cond_signal(&wanted);
	}
	pthread_mutex_unlock(&lock);
}

/* Precondition: locked. */
static CUresult start_thread(void)
{
	if (have_thread)
		return CUDA_SUCCESS;
	ckt_conn_host_call = host_call;
	sigset_t all, before;
	pthread_t thread;
	sigfillset(&all);
	/* A fault comes to the thread that makes it: managed memory lives on it. */
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&thread, NULL, host_thread, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_detach(thread);
	have_thread = true;
	return CUDA_SUCCESS;
}

CUresult ckt_host_expect(unsigned count)
{
	if (!count)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	CUresult result = start_thread();
	if (!result) {
		atomic_fetch_add(&ckt_host_enqueued, count);
		pthread_cond_signal(&wanted);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

bool ckt_host_thread(void)
{
	return in_host_thread;
}

void ckt_host_settle_slow(void)
{
	uint64_t upto = ckt_host_enqueued;
	if (in_host_thread)
		return;
	/* When the GPU has nothing left to do, whatever was to be called has been; work that failed calls nothing and does not hang this. */
	if (finished < upto)
		CKT_WAITED(ctx_synchronize, CTX_SYNCHRONIZE, 0, NULL, .id = 0);
	uint64_t before = ckt_host_settled;
	while (before < upto && !atomic_compare_exchange_weak(&ckt_host_settled, &before, upto))
		;
}

/* ---- The API */

static CUresult enqueue(const struct registered *what)
{
	uint64_t stream;
	struct ckt_capture_stream *capturing;
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
			node->host = (CUDA_HOST_NODE_PARAMS){.fn = what->function, .userData = what->data};
		return ckt_graph_leave(result);
	}
	struct registered *r = malloc(sizeof *r);
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*r = *what;
	r->next = NULL;
	result = ckt_host_expect(1);
	if (result) {
		free(r);
		return result;
	}
	pthread_mutex_lock(&lock);
	uint64_t number = r->number = ++next_number;
	*registered_last = r;
	registered_last = &r->next;
	pthread_mutex_unlock(&lock);
	return CKT_BATCHED(host_func, HOST_FUNC, .stream = stream, .number = number, .callback = what->callback != NULL);
}

CKT_EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	return enqueue(&(struct registered){.function = function, .stream = stream, .data = data});
}

CKT_EXPORT CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data, unsigned int flags)
{
	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	return enqueue(&(struct registered){.callback = callback, .stream = stream, .data = data});
}
