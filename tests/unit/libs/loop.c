/* SPDX-License-Identifier: Apache-2.0 */
/* See loop.h. */
#include "tests/unit/libs/loop.h"

#include <stdlib.h>
#include <string.h>

#include "server/worker/libs/libs.h"

unsigned loop_batched, loop_waited;
bool loop_sync;
CUresult loop_error;
CUDA_MEMCPY2D loop_copy;
bool loop_copy_async;
bool loop_captures, loop_capture_ended;
uint32_t loop_captured;
uint64_t loop_captured_workspace;
unsigned loop_lies;
static CUresult deferred;
static uint32_t began;
static size_t began_size;
static uint8_t *message;
static uint32_t objects = 5000;

void loop_mark(void)
{
	loop_batched = loop_waited = 0;
}

CUresult loop_deferred(void)
{
	CUresult result = deferred;
	deferred = CUDA_SUCCESS;
	return result;
}

static CUresult enter(void)
{
	return loop_error;
}

/* A device's primary one; 0: the first's. */
static uint64_t current;

static uint64_t context(void)
{
	return current ? current : ckt_handle_primary(0);
}

static CUresult begin(struct ckt_call *call, uint32_t proc, size_t size, unsigned flags)
{
	if (loop_error)
		return loop_error;
	free(message);
	message = malloc(size + !size);
	*call = (struct ckt_call){.p = message, .flags = flags};
	began = proc;
	began_size = size;
	return CUDA_SUCCESS;
}

static unsigned roll(unsigned sides)
{
	loop_lies = loop_lies * 1103515245u + 12345u;
	loop_lies += !loop_lies;
	return (loop_lies >> 8) % sides;
}

/* In a buffer of just their size, so that a read behind them is found. */
static void lie(struct ckt_cursor *results)
{
	static const uint32_t words[] = {
		0, 1, 2, 7, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000, 0xfffffffe, 65536};
	static uint8_t *bytes;
	size_t had = (size_t)(results->end - results->p), size = had;
	if (roll(4) == 0)
		size = roll((unsigned)had + 9);
	free(bytes);
	bytes = calloc(size + !size, 1);
	memcpy(bytes, results->p, had < size ? had : size);
	for (unsigned changes = roll(4); changes-- > 0 && size >= 4;) {
		uint32_t word =
			roll(3) ? words[roll(sizeof words / sizeof *words)] : roll(1u << 31);
		ckt_put_u32(bytes + 4 * roll((unsigned)size / 4), word);
	}
	*results = (struct ckt_cursor){.p = bytes, .end = bytes + size};
}

/* The reply is the worker's own buffer, until the next call. */
static CUresult run(struct ckt_call *call, bool batched, struct ckt_reply *ret_reply)
{
	const struct ckt_library *library = ckt_library_of((enum ckt_lib)(began >> 16));
	MUST(library && (began & 0xffff) < *library->proc_count &&
			library->procs[began & 0xffff].name,
		true);
	const struct ckt_proc *proc = &library->procs[began & 0xffff];
	/* NAME_open: no genuine library is looked for. */
	if ((began & 0xffff) == 1) {
		static uint8_t version[4];
		ckt_put_u32(version, 130100);
		*ret_reply = (struct ckt_reply){
			.results = {.p = version, .end = version + sizeof version}};
		return CUDA_SUCCESS;
	}
	/* The whole message was written, and not a byte more. */
	IS(call->p - message, began_size);
	YES(!batched || proc->flags & CKT_PROC_BATCHED);
	IS(!!(proc->flags & CKT_PROC_NUMBERED),
		!!(call->flags & (CKT_CALL_F_NUMBERED | CKT_CALL_F_BATCHED)));
	struct inside_reply *reply = inside_run(
		ckt_lib_prog(began >> 16), began & 0xffff, proc, message, began_size, batched);
	if (ret_reply)
		*ret_reply = (struct ckt_reply){.results = reply->results};
	if (ret_reply && loop_lies)
		lie(&ret_reply->results);
	return (CUresult)reply->result;
}

static CUresult queue_status(struct ckt_call *call, int *ret_status)
{
	struct ckt_reply reply;
	*ret_status = 0;
	YES(call->flags & CKT_CALL_F_BATCHED);
	if (loop_sync) {
		loop_waited++;
		CUresult result = run(call, false, &reply);
		if (!result)
			*ret_status = (int)ckt_get_u32(&reply.results);
		return result;
	}
	loop_batched++;
	CUresult result = run(call, true, NULL);
	if (result && !deferred)
		deferred = result;
	return CUDA_SUCCESS;
}

static CUresult queue(struct ckt_call *call)
{
	int status;
	return queue_status(call, &status);
}

static CUresult wait_reply(struct ckt_call *call, struct ckt_reply *ret_reply)
{
	loop_waited++;
	return run(call, false, ret_reply);
}

static void release(struct ckt_reply *reply)
{
}

static CUresult before_work(uint64_t stream, uint64_t *addresses, unsigned count)
{
	return loop_captures ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

static CUresult stream_id(CUstream stream, uint64_t *ret_id)
{
	*ret_id = (uintptr_t)stream;
	return *ret_id <= 2 || ckt_objects_find_kind(&ckt_worker.objects, *ret_id, CKT_KIND_STREAM)
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_HANDLE;
}

static uint64_t object_make(void)
{
	return ckt_handle_make(CKT_KIND_LIB_OBJECT, 1, objects++);
}

static void object_drop(uint64_t id)
{
}

static void unsupported(const char *name, bool *once)
{
	*once = true;
}

static CUresult workspace_alloc(size_t bytes, uint64_t *ret_address)
{
	return loop_error ? loop_error
			  : ckt_memory_alloc(&ckt_worker.devices[0].memory, bytes,
				    ckt_handle_primary(0), ret_address);
}

static CUresult workspace_free(uint64_t address)
{
	inside_free(address);
	return CUDA_SUCCESS;
}

static CUresult capture(uint64_t stream, uint32_t proc, const void *args, size_t size,
	uint64_t workspace, bool *ret_captured)
{
	loop_captured = proc;
	loop_captured_workspace = workspace;
	*ret_captured = !loop_capture_ended;
	return CUDA_SUCCESS;
}

static bool captures(uint64_t stream)
{
	return loop_captures;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *copy, CUstream stream, bool async)
{
	loop_copy = *copy;
	loop_copy_async = async;
	return CUDA_SUCCESS;
}

static int capability(void)
{
	return 120;
}

static int device(void)
{
	return (int)(current ? current - ckt_handle_primary(0) : 0);
}

static CUresult device_context(int number, uint64_t *ret_context)
{
	*ret_context = ckt_handle_primary((unsigned)number);
	return number < 0 || number > 1 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

static void use_context(uint64_t id)
{
	current = id == ckt_handle_primary(0) ? 0 : id;
}

static unsigned node(uint64_t id)
{
	return 0;
}

uint64_t loop_generation;

static uint64_t generation(uint64_t id)
{
	return loop_generation;
}

static const struct ckt_client_table table = {.version = CKT_CLIENT_TABLE_VERSION,
	.size = sizeof table,
	.enter = enter,
	.context = context,
	.begin = begin,
	.queue = queue,
	.wait = wait_reply,
	.release = release,
	.before_work = before_work,
	.stream = stream_id,
	.object_make = object_make,
	.object_drop = object_drop,
	.unsupported = unsupported,
	.capture = capture,
	.queue_status = queue_status,
	.workspace_alloc = workspace_alloc,
	.workspace_free = workspace_free,
	.copy_2d = copy_2d,
	.capability = capability,
	.captures = captures,
	.device = device,
	.device_context = device_context,
	.use_context = use_context,
	.node = node,
	.generation = generation};

__attribute__((constructor)) static void install(void)
{
	ckt_client_found = &table;
}
