/* SPDX-License-Identifier: Apache-2.0 */
/* See call_trace.h. */
#include "server/worker/session/call_trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "rpc/gen/cuda_codec.h"
#include "rpc/trace_page.h"
#include "server/worker/driver.h"
#include "server/worker/libs/libs.h"
#include "server/worker/session/turn.h"
#include "server/worker/worker.h"

struct ckt_traced {
	const char *name; /* of the table of procedures */
	char kernel[CKT_TRACED_KERNEL_MAX + 1];
	uint32_t thread, flags;
	int64_t start_ns, duration_ns;
	uint64_t stream, bytes;
	uint32_t grid[3], block[3];
};

enum event_state { EVENT_FREE, EVENT_BEGUN, EVENT_ISSUED };

struct ckt_traced_event {
	enum event_state state;
	uint64_t trace;
	CUevent start, end; /* made once, of the worker's first context */
	CUstream stream;
	struct ckt_traced call;
};

/* At the end: what the GPU has not finished by then is counted as dropped. */
#define GPU_LINGER_NS 500000000

_Atomic bool ckt_call_trace_on;
static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;
/* Of the answer, which is sent without trace_lock: the executor must not wait for a socket. */
static pthread_mutex_t answer_lock = PTHREAD_MUTEX_INITIALIZER;
/* Everything below: trace_lock. */
static struct {
	uint64_t number; /* of the trace, or of the last one */
	_Atomic bool gpu_time;
	_Atomic bool of_client; /* the client's own: of commands there are no records */
	int64_t read_ns;        /* when somebody last read */
	struct ckt_traced *ring;
	uint64_t head, tail;
	uint64_t dropped;
	uint64_t in_flight;          /* pairs of events of this trace that the GPU has not done */
	struct ckt_trace_page *page; /* NULL: none, or of a trace that has ended */
	uint64_t answered;           /* records and dropped ones in the answer that is being sent */
	struct ckt_traced_event *events; /* stay when the trace ends: the driver's events do */
	unsigned next_event;             /* pairs are used in turn */
	CUevent base;                    /* recorded at base_ns */
	int64_t base_ns;
} trace;

void ckt_call_trace_lock(void)
{
	pthread_mutex_lock(&answer_lock);
}

void ckt_call_trace_unlock(void)
{
	pthread_mutex_unlock(&answer_lock);
}

bool ckt_call_trace_try_lock(void)
{
	return pthread_mutex_trylock(&answer_lock) == 0;
}

static void tell(uint64_t unread)
{
	if (trace.page)
		__atomic_store_n(&trace.page->unread, unread, __ATOMIC_RELAXED);
}

/* What the server would read if the worker died now.  Precondition: trace_lock held. */
static void count_unread(void)
{
	if (trace.ring)
		tell(trace.tail - trace.head + trace.dropped + trace.in_flight + trace.answered);
}

/* The page says for good what nobody has read.  Precondition: trace_lock held. */
static void stop(void)
{
	count_unread();
	atomic_store(&ckt_call_trace_on, false);
	free(trace.ring);
	trace.ring = NULL;
	trace.head = trace.tail = 0;
}

/* A reader of cricketctl's that is gone.  Precondition: trace_lock held. */
static bool idle(void)
{
	return trace.ring && !trace.of_client &&
		ckt_now_ns() - trace.read_ns > CKT_CALL_TRACE_IDLE_NS;
}

/* Precondition: trace_lock held. */
static void put(const struct ckt_traced *call)
{
	if (!trace.ring)
		return;
	if (trace.tail - trace.head == CKT_CALL_TRACE_RING)
		trace.dropped++;
	else
		trace.ring[trace.tail++ % CKT_CALL_TRACE_RING] = *call;
	count_unread();
}

/* ---- What a command is about */

static void take_launch(struct ckt_wcall *call, struct ckt_traced *traced)
{
	struct ckt_launch_kernel_args args = {0};
	struct ckt_cursor cursor = call->args;
	/* Both launches begin with the same fields; this reads no further. */
	args.function = ckt_get_u64(&cursor);
	for (int i = 0; i < 3; i++)
		traced->grid[i] = ckt_get_u32(&cursor);
	for (int i = 0; i < 3; i++)
		traced->block[i] = ckt_get_u32(&cursor);
	ckt_get_u32(&cursor);
	traced->stream = ckt_get_u64(&cursor);
	traced->flags |= CKT_TRACED_LAUNCH | CKT_TRACED_STREAM;
	struct ckt_object *function = cursor.bad
		? NULL
		: ckt_objects_find_kind(&call->worker->objects, args.function, CKT_KIND_FUNCTION);
	snprintf(traced->kernel, sizeof traced->kernel, "%s",
		function && function->function.name ? function->function.name : "");
}

#define TAKE(type, size)                                     \
	do {                                                 \
		struct ckt_##type##_args args = {0};         \
		struct ckt_cursor cursor = call->args;       \
		if (ckt_##type##_args_get(&cursor, &args)) { \
			traced->stream = args.stream;        \
			traced->bytes = (size);              \
			traced->flags |= CKT_TRACED_STREAM;  \
		}                                            \
	} while (0)

/* True if the GPU does something on the stream that takes a time of its own. */
static bool take_arguments(struct ckt_wcall *call, struct ckt_traced *traced)
{
	if (call->header.prog != CKT_CUDA_PROG)
		return false;
	switch (call->header.proc) {
	case CKT_PROC_LAUNCH_KERNEL:
	case CKT_PROC_LAUNCH_KERNEL_EX:
		take_launch(call, traced);
		return true;
	case CKT_PROC_MEMSET:
		TAKE(memset, args.element_size * args.width * args.height);
		return true;
	case CKT_PROC_MEMCPY_HTOD:
		TAKE(memcpy_htod, args.data_len);
		return true;
	case CKT_PROC_MEMCPY_DTOH:
		TAKE(memcpy_dtoh, args.size);
		return true;
	case CKT_PROC_MEMCPY_DTOD:
		TAKE(memcpy_dtod, args.size);
		return true;
	case CKT_PROC_LANE_HTOD:
		TAKE(lane_htod, args.size);
		return true;
	case CKT_PROC_LANE_DTOH:
		TAKE(lane_dtoh, args.size);
		return true;
	case CKT_PROC_MEMCPY2D_HTOD:
		TAKE(memcpy2d_htod, (uint64_t)args.width * args.height);
		return true;
	case CKT_PROC_MEMCPY2D_DTOH:
		TAKE(memcpy2d_dtoh, (uint64_t)args.width * args.height);
		return true;
	case CKT_PROC_MEMCPY2D_DTOD:
		TAKE(memcpy2d_dtod, args.width * args.height);
		return true;
	default:
		return false;
	}
}

/* ---- GPU time */

/*
 * Puts what the GPU has done; the pair is free then.  Precondition: trace_lock held, and the first
 * context current.
 */
static void collect_event(struct ckt_traced_event *event)
{
	float since, took;
	if (event->state != EVENT_ISSUED ||
		ckt_driver.cuEventQuery(event->end) == CUDA_ERROR_NOT_READY)
		return;
	event->state = EVENT_FREE;
	trace.in_flight -= event->trace == trace.number;
	if (event->trace != trace.number ||
		ckt_driver.cuEventElapsedTime(&since, trace.base, event->start) ||
		ckt_driver.cuEventElapsedTime(&took, event->start, event->end))
		return;
	event->call.start_ns = trace.base_ns + (int64_t)((double)since * 1e6);
	event->call.duration_ns = (int64_t)((double)took * 1e6);
	put(&event->call);
}

/*
 * The next pair with its events, if the GPU is done with it; NULL: none.  Looks at one pair only, so
 * that a command costs the same however many there are.  Precondition: as for collect_event.
 */
static struct ckt_traced_event *free_event(void)
{
	struct ckt_traced_event *event = &trace.events[trace.next_event];
	collect_event(event);
	if (event->state != EVENT_FREE)
		return NULL;
	if (!event->start && ckt_driver.cuEventCreate(&event->start, 0))
		event->start = NULL;
	if (event->start && !event->end && ckt_driver.cuEventCreate(&event->end, 0))
		event->end = NULL;
	if (!event->end)
		return NULL;
	trace.next_event = (trace.next_event + 1) % CKT_CALL_TRACE_PAIRS;
	return event;
}

/* The point from which the events' times count.  Precondition: trace_lock held. */
static bool have_base(void)
{
	if (trace.base_ns)
		return true;
	if ((!trace.base && ckt_driver.cuEventCreate(&trace.base, 0)) ||
		ckt_driver.cuEventRecord(trace.base, NULL))
		return false;
	trace.base_ns = ckt_now_ns();
	return true;
}

/*
 * Records the first event of a pair.  Events belong to a context: only the worker's first one has
 * them, which lives as long as the worker does.  A stream that captures must not get them.
 */
static struct ckt_traced_event *begin_event(struct ckt_wcall *call, const struct ckt_traced *traced)
{
	struct ckt_worker *worker = call->worker;
	CUstream stream;
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	if (!worker->current || worker->current->real != (void *)worker->first_context ||
		ckt_object_stream(worker, traced->stream, &stream) ||
		ckt_driver.cuStreamIsCapturing(stream, &status) ||
		status != CU_STREAM_CAPTURE_STATUS_NONE)
		return NULL;
	pthread_mutex_lock(&trace_lock);
	struct ckt_traced_event *event =
		trace.ring && trace.events && have_base() ? free_event() : NULL;
	if (event && ckt_driver.cuEventRecord(event->start, stream))
		event = NULL;
	if (event) {
		event->state = EVENT_BEGUN;
		event->trace = trace.number;
		event->stream = stream;
		event->call = *traced;
		event->call.flags |= CKT_TRACED_GPU;
	} else {
		trace.dropped++;
		count_unread();
	}
	pthread_mutex_unlock(&trace_lock);
	return event;
}

void ckt_call_trace_issued(struct ckt_traced_event *event)
{
	if (!event)
		return;
	pthread_mutex_lock(&trace_lock);
	event->state =
		ckt_driver.cuEventRecord(event->end, event->stream) ? EVENT_FREE : EVENT_ISSUED;
	trace.in_flight += event->state == EVENT_ISSUED && event->trace == trace.number;
	count_unread();
	pthread_mutex_unlock(&trace_lock);
}

/* Precondition: as for collect_event.  Returns how many the GPU has not finished. */
static unsigned collect_events(void)
{
	unsigned pending = 0;
	for (unsigned i = 0; trace.events && i < CKT_CALL_TRACE_PAIRS; i++) {
		/* The oldest first: viewers want each track in order. */
		struct ckt_traced_event *event =
			&trace.events[(trace.next_event + i) % CKT_CALL_TRACE_PAIRS];
		collect_event(event);
		pending += event->state == EVENT_ISSUED && event->trace == trace.number;
	}
	return pending;
}

/* ---- Commands */

struct ckt_traced_event *ckt_call_trace_begin(struct ckt_wcall *call)
{
	struct ckt_traced only_gpu, *traced = &only_gpu;
	if (!trace.of_client)
		traced = calloc(1, sizeof *traced);
	if (!traced)
		return NULL;
	*traced = (struct ckt_traced){.name = call->proc->name};
	traced->thread = call->header.thread;
	traced->flags = call->header.flags & CKT_CALL_BATCHED ? 0 : CKT_TRACED_WAITED;
	traced->bytes = (uint64_t)(call->args.end - call->args.p);
	bool on_gpu = take_arguments(call, traced);
	if (traced != &only_gpu)
		call->traced = traced;
	traced->start_ns = ckt_now_ns();
	return on_gpu && trace.gpu_time ? begin_event(call, traced) : NULL;
}

void ckt_call_trace_end(struct ckt_wcall *call)
{
	struct ckt_traced *traced = call->traced;
	traced->duration_ns = ckt_now_ns() - traced->start_ns;
	pthread_mutex_lock(&trace_lock);
	put(traced);
	/* Nobody reads, and nobody will end it. */
	if (idle())
		stop();
	pthread_mutex_unlock(&trace_lock);
	ckt_call_trace_drop(call);
}

void ckt_call_trace_drop(struct ckt_wcall *call)
{
	free(call->traced);
	call->traced = NULL;
}

/* Whether a reader of cricketctl's may still come for something. */
static bool is_unread(int64_t since_ns)
{
	int64_t now = ckt_now_ns();
	pthread_mutex_lock(&trace_lock);
	bool left = trace.ring && !trace.of_client && !idle() &&
		now - since_ns < CKT_CALL_TRACE_IDLE_NS &&
		(trace.head != trace.tail || trace.dropped ||
			(trace.in_flight && now - since_ns < GPU_LINGER_NS));
	pthread_mutex_unlock(&trace_lock);
	return left;
}

void ckt_call_trace_linger(struct ckt_worker *worker)
{
	int64_t since_ns = ckt_now_ns();
	while (is_unread(since_ns)) {
		if (worker && ckt_turns_on())
			ckt_turn_look(worker, true);
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	/* The last records have been taken, and may not have been sent. */
	ckt_call_trace_lock();
	ckt_call_trace_unlock();
}

/* ---- Requests */

static int start(bool gpu_time, bool of_client, char message[CKT_MESSAGE_MAX])
{
	if (idle())
		stop();
	if (trace.ring) {
		snprintf(message, CKT_MESSAGE_MAX, "the session is being traced already: %s",
			trace.of_client ? "its program has CRICKET_TRACE_GPU=1"
					: "end that cricketctl trace first");
		return -EBUSY;
	}
	trace.ring = malloc(CKT_CALL_TRACE_RING * sizeof *trace.ring);
	if (trace.ring && gpu_time && !trace.events)
		trace.events = calloc(CKT_CALL_TRACE_PAIRS, sizeof *trace.events);
	if (!trace.ring || (gpu_time && !trace.events)) {
		stop();
		snprintf(message, CKT_MESSAGE_MAX, "the worker has no memory for a trace");
		return -ENOMEM;
	}
	if (trace.page)
		munmap(trace.page, CKT_TRACE_PAGE_SIZE);
	trace.page = NULL;
	trace.number++;
	trace.dropped = trace.in_flight = trace.answered = 0;
	trace.base_ns = 0;
	trace.gpu_time = gpu_time;
	trace.of_client = of_client;
	trace.read_ns = ckt_now_ns();
	atomic_store(&ckt_call_trace_on, true);
	return 0;
}

/* Where an answer's records go, of either kind. */
struct answer {
	ckt_traced_call *calls;
	unsigned count;
	unsigned pending;
	uint64_t dropped;
	bool more;
};

/* Takes at most that many records.  Precondition: both locks held. */
static void take_records(unsigned most, struct answer *answer)
{
	static ckt_traced_call list[CKT_TRACED_MAX];
	static char kernels[CKT_TRACED_MAX][CKT_TRACED_KERNEL_MAX + 1];
	unsigned count = 0;
	for (; trace.head != trace.tail && count < most; trace.head++, count++) {
		struct ckt_traced *call = &trace.ring[trace.head % CKT_CALL_TRACE_RING];
		memcpy(kernels[count], call->kernel, sizeof kernels[count]);
		list[count] = (ckt_traced_call){.name = (char *)call->name,
			.kernel = kernels[count],
			.thread = call->thread,
			.flags = call->flags,
			.start_ns = call->start_ns,
			.duration_ns = call->duration_ns,
			.stream = call->stream,
			.bytes = call->bytes,
			.grid = {call->grid[0], call->grid[1], call->grid[2]},
			.block = {call->block[0], call->block[1], call->block[2]}};
	}
	answer->calls = list;
	answer->count = count;
	answer->more = trace.head != trace.tail;
	answer->dropped = trace.dropped;
	trace.answered = trace.dropped + count;
	trace.dropped = 0;
}

struct request {
	ckt_trace_action action;
	uint64_t trace;
	bool gpu_time, of_client;
	unsigned most; /* records in the answer */
};

/* 0 or -errno with a message.  Precondition: both locks held. */
static int serve(struct ckt_worker *worker, const struct request *request, struct answer *answer,
	char message[CKT_MESSAGE_MAX])
{
	if (request->action > CKT_TRACE_ACTION_STOP) {
		snprintf(message, CKT_MESSAGE_MAX, "unknown request to a trace");
		return -EINVAL;
	}
	if (request->action == CKT_TRACE_ACTION_START)
		return start(request->gpu_time, request->of_client, message);
	if (!trace.ring || request->trace != trace.number ||
		request->of_client != trace.of_client) {
		snprintf(message, CKT_MESSAGE_MAX, "the trace has ended: nobody read it in time");
		return -ESRCH;
	}
	trace.read_ns = ckt_now_ns();
	if (request->action == CKT_TRACE_ACTION_STOP)
		atomic_store(&ckt_call_trace_on, false);
	if (trace.gpu_time && worker->first_context &&
		!ckt_driver.cuCtxSetCurrent(worker->first_context))
		answer->pending = collect_events();
	take_records(request->most, answer);
	if (!atomic_load(&ckt_call_trace_on) && !answer->more)
		stop();
	return 0;
}

void ckt_call_trace_serve(struct ckt_worker *worker, const ckt_worker_trace_args *args,
	ckt_worker_trace_res *ret_res, char message[CKT_MESSAGE_MAX])
{
	struct request request = {.action = args->action,
		.trace = args->trace,
		.gpu_time = args->gpu_time,
		.most = CKT_TRACED_MAX};
	struct answer answer = {0};
	message[0] = 0;
	pthread_mutex_lock(&trace_lock);
	int status = serve(worker, &request, &answer, message);
	*ret_res = (ckt_worker_trace_res){.status = status,
		.message = message,
		.trace = status ? args->trace : trace.number,
		.dropped = answer.dropped,
		.more = answer.more,
		.calls = {answer.count, answer.calls}};
	pthread_mutex_unlock(&trace_lock);
}

void ckt_call_trace_sent(bool sent)
{
	pthread_mutex_lock(&trace_lock);
	uint64_t answered = trace.answered;
	trace.answered = 0;
	if (!sent)
		trace.dropped += answered;
	/* It was the last answer of a trace that was stopped. */
	if (sent && answered && !trace.ring)
		tell(0);
	count_unread();
	pthread_mutex_unlock(&trace_lock);
}

int ckt_call_trace_use_page(int fd)
{
	struct stat status;
	if (fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size != CKT_TRACE_PAGE_SIZE)
		return -EINVAL;
	void *page = mmap(NULL, CKT_TRACE_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	pthread_mutex_lock(&trace_lock);
	trace.page = page;
	count_unread();
	pthread_mutex_unlock(&trace_lock);
	return 0;
}

void ckt_call_trace_serve_client(
	struct ckt_worker *worker, const ckt_gpu_trace_args *args, ckt_gpu_trace_res *ret_res)
{
	struct request request = {.action = args->action,
		.trace = args->trace,
		.gpu_time = true,
		.of_client = true,
		.most = CKT_GPU_TRACED_MAX};
	struct answer answer = {0};
	char message[CKT_MESSAGE_MAX];
	pthread_mutex_lock(&trace_lock);
	int status = serve(worker, &request, &answer, message);
	*ret_res = (ckt_gpu_trace_res){.status = status,
		.trace = status ? args->trace : trace.number,
		.dropped = answer.dropped,
		.pending = answer.pending,
		.more = answer.more,
		.now_ns = ckt_now_ns(),
		.calls = {answer.count, answer.calls}};
	pthread_mutex_unlock(&trace_lock);
	/* The executor's own. */
	if (worker->current)
		ckt_driver.cuCtxSetCurrent(worker->current->real);
}
