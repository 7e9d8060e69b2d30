/* SPDX-License-Identifier: Apache-2.0 */
/* See toy_library.h. */
#include "server/worker/objects/context.h"
#include "server/worker/session/call.h"
#include "tests/unit/worker/toy_library.h"

#include <stdlib.h>

unsigned toy_alive, toy_created, toy_disturbed;
int toy_status;
uint64_t toy_workspace;

static struct toy *real(struct ckt_wcall *call, uint64_t id)
{
	struct ckt_object *object = ckt_library_object_find(call->worker, TOY_LIB, 0, id);
	return object ? object->real : NULL;
}

static int create(struct ckt_wcall *call)
{
	uint64_t id = ckt_get_u64(&call->args);
	uint32_t seed = ckt_get_u32(&call->args);
	if (!ckt_cursor_done(&call->args))
		return CKT_WCALL_GARBAGE;
	call->status = toy_status;
	if (toy_status)
		return CUDA_SUCCESS;
	struct toy *toy = calloc(1, sizeof *toy);
	struct ckt_object *object;
	toy->seed = seed;
	CUresult result = ckt_library_object_add(
		call->worker, ckt_library_of(TOY_LIB), 0, id, toy, NULL, &object);
	if (result) {
		free(toy);
		return result;
	}
	toy_alive++;
	toy_created++;
	if (toy_workspace)
		ckt_worker_lib_workspace(call->worker, object, toy_workspace, &toy->workspace,
			&toy->workspace_bytes);
	return CUDA_SUCCESS;
}

static int set(struct ckt_wcall *call)
{
	uint64_t id = ckt_get_u64(&call->args);
	uint32_t key = ckt_get_u32(&call->args), value = ckt_get_u32(&call->args);
	if (!ckt_cursor_done(&call->args))
		return CKT_WCALL_GARBAGE;
	struct toy *toy = real(call, id);
	if (!toy || key > 3)
		return CUDA_ERROR_INVALID_HANDLE;
	toy->settings[key] = value;
	return CUDA_SUCCESS;
}

static int make(struct ckt_wcall *call)
{
	uint64_t id = ckt_get_u64(&call->args);
	if (!ckt_cursor_done(&call->args))
		return CKT_WCALL_GARBAGE;
	struct toy *toy = real(call, id);
	if (!toy)
		return CUDA_ERROR_INVALID_HANDLE;
	memcpy(toy->planned, toy->settings, sizeof toy->planned);
	toy->made++;
	return CUDA_SUCCESS;
}

static uint32_t sum(const struct toy *toy)
{
	return toy->seed + toy->settings[0] + toy->settings[1] + toy->settings[2] +
		toy->settings[3];
}

static int write_word(struct ckt_wcall *call)
{
	uint64_t id = ckt_get_u64(&call->args), address = ckt_get_u64(&call->args);
	if (!ckt_cursor_done(&call->args))
		return CKT_WCALL_GARBAGE;
	struct toy *toy = real(call, id);
	if (!toy)
		return CUDA_ERROR_INVALID_HANDLE;
	static bool once;
	if (toy_status)
		return ckt_library_batched(call, toy_status, &once);
	if (toy_disturbed) {
		/* As a thread beside the executor does. */
		toy_disturbed--;
		ckt_driver.cuCtxSynchronize();
	}
	return ckt_driver.cuMemsetD32Async(address, sum(toy), 1, toy->capturing);
}

/* The stream is an argument. */
static int write_to(struct ckt_wcall *call)
{
	uint64_t stream_id = ckt_get_u64(&call->args), address = ckt_get_u64(&call->args);
	CUstream stream;
	if (!ckt_cursor_done(&call->args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_object_stream(call->worker, stream_id, &stream);
	return result ? result : ckt_driver.cuMemsetD32Async(address, 0x77, 1, stream);
}

static int later(struct ckt_wcall *call)
{
	(void)call;
	return CKT_WCALL_LATER;
}

static int ask(struct ckt_wcall *call)
{
	(void)call;
	return CUDA_SUCCESS;
}

static int destroy_call(struct ckt_wcall *call)
{
	uint64_t id = ckt_get_u64(&call->args);
	if (!ckt_cursor_done(&call->args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object = ckt_library_object_find(call->worker, TOY_LIB, 0, id);
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	ckt_object_destroy(call->worker, object);
	return CUDA_SUCCESS;
}

static void destroy(struct ckt_worker *worker, struct ckt_object *object)
{
	(void)worker;
	free(object->real);
	toy_alive--;
}

static int use_stream(struct ckt_worker *worker, struct ckt_object *object, CUstream stream)
{
	struct toy *toy = object->real;
	(void)worker;
	toy->capturing = stream == (CUstream)-1 ? toy->own : stream;
	return toy_status;
}

static const struct ckt_proc procs[TOY_PROCS] = {
	[TOY_CREATE] = {"toyCreate", create, CKT_PROC_NUMBERED | CKT_PROC_CREATES, 0, 0, 0},
	[TOY_SET] = {"toySet", set, CKT_PROC_BATCHED | CKT_PROC_NUMBERED | CKT_PROC_SETS, 0, 8, 4},
	[TOY_WRITE] = {"toyWrite", write_word, CKT_PROC_BATCHED | CKT_PROC_NUMBERED, 0, 0, 0},
	[TOY_DESTROY] = {"toyDestroy", destroy_call,
		CKT_PROC_BATCHED | CKT_PROC_NUMBERED | CKT_PROC_DESTROYS, 0, 0, 0},
	[TOY_LATER] = {"toyLater", later, CKT_PROC_BATCHED | CKT_PROC_NUMBERED, 0, 0, 0},
	[TOY_WRITE_TO] = {"toyWriteTo", write_to, CKT_PROC_BATCHED | CKT_PROC_NUMBERED, 0, 0, 0},
	[TOY_MAKE] = {"toyMake", make, CKT_PROC_NUMBERED | CKT_PROC_SETS | CKT_PROC_SEALS, 0, 0, 0},
	[TOY_ASK] = {"toyAsk", ask, 0, 0, 0, 0},
};
static const unsigned proc_count = TOY_PROCS;
static struct ckt_library toy_library = {.name = "toy",
	.lib = TOY_LIB,
	.procs = procs,
	.proc_count = &proc_count,
	.destroy = destroy,
	.use_stream = use_stream};

void toy_account(uint32_t object_bytes)
{
	toy_library.object_bytes = object_bytes;
}

void toy_begin(void)
{
	ckt_library_toy = &toy_library;
	toy_status = 0;
	toy_workspace = 0;
}

void toy_end(void)
{
	ckt_library_toy = NULL;
}

int toy_call(uint32_t proc, const uint8_t *args, size_t size)
{
	struct ckt_wcall *call = ckt_wcall_new(&ckt_worker);
	/* Of just that size, so that a read behind it is found. */
	uint8_t *copy = malloc(size + !size);
	memcpy(copy, args, size);
	call->proc = &procs[proc];
	call->header = (struct ckt_call_header){
		.prog = ckt_lib_prog(TOY_LIB), .vers = 1, .proc = proc, .flags = CKT_CALL_BATCHED};
	call->args = (struct ckt_cursor){.p = copy, .end = copy + size};
	int result = ckt_worker_lib_state_run(call);
	if (!result && call->status)
		result = CUDA_ERROR_UNKNOWN;
	free(copy);
	ckt_wcall_free(call);
	return result;
}

static int call_with(uint32_t proc, uint64_t id, const uint32_t *words, unsigned count)
{
	uint8_t args[64], *p = ckt_put_u64(args, id);
	for (unsigned i = 0; i < count; i++)
		p = ckt_put_u32(p, words[i]);
	return toy_call(proc, args, (size_t)(p - args));
}

int toy_create(uint64_t id, uint32_t seed)
{
	return call_with(TOY_CREATE, id, (uint32_t[]){seed}, 1);
}

int toy_set(uint64_t id, uint32_t key, uint32_t value)
{
	return call_with(TOY_SET, id, (uint32_t[]){key, value}, 2);
}

int toy_make(uint64_t id)
{
	return call_with(TOY_MAKE, id, NULL, 0);
}

int toy_write(uint64_t id, uint64_t address)
{
	return call_with(
		TOY_WRITE, id, (uint32_t[]){(uint32_t)(address >> 32), (uint32_t)address}, 2);
}

int toy_destroy(uint64_t id)
{
	return call_with(TOY_DESTROY, id, NULL, 0);
}

struct toy *toy_find(uint64_t id)
{
	struct ckt_object *object = ckt_library_object_find(&ckt_worker, TOY_LIB, 0, id);
	return object ? object->real : NULL;
}

int toy_capture(uint64_t call, uint64_t id, uint64_t address)
{
	uint8_t args[16];
	ckt_put_u64(ckt_put_u64(args, id), address);
	return INSIDE(lib_capture, true, .id = call, .library = TOY_LIB, .proc = TOY_WRITE,
		.args = args, .args_len = sizeof args)
		->result;
}

int toy_capture_end(uint64_t call)
{
	return INSIDE(lib_capture_end, true, .id = call)->result;
}
