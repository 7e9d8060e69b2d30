/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated stubs against generated handlers, both of the fixture: what a program passes reaches
 * the driver, and what the driver gives reaches the program.  The connection between them is a
 * buffer of exact size; the driver's functions are this file's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CUnit/Basic.h>
#include <cuda.h>

#include "client/conn/call.h"
#include "server/worker/session/call.h"
#include "tests/unit/rpcgen/cuda_codec.h"
#include "tests/unit/rpcgen/cuda_driver.h"

struct ckt_driver ckt_driver;

/* ---- The connection */

static struct {
	uint32_t proc;
	unsigned flags;
	uint8_t *args, *results;
	size_t args_bytes, results_bytes;
	int handler_result; /* of the last call */
	/* bytes missing at the end of the next reply, or of the next arguments */
	size_t cut;
	bool cut_args;
	unsigned calls, replies; /* replies: not yet released */
	CUresult begin_result;
	const char *unsupported;
} wire;

CUresult ckt_call_begin(struct ckt_call *call, uint32_t proc, size_t args_bytes, unsigned flags)
{
	if (wire.begin_result)
		return wire.begin_result;
	wire.proc = proc;
	wire.flags = flags;
	wire.args_bytes = args_bytes;
	wire.args = malloc(args_bytes ? args_bytes : 1);
	*call = (struct ckt_call){.p = wire.args, .flags = flags};
	return CUDA_SUCCESS;
}

static void serve(struct ckt_call *call)
{
	wire.calls++;
	CU_ASSERT_PTR_EQUAL(call->p, wire.args + wire.args_bytes);
	size_t size = wire.args_bytes - (wire.cut_args ? wire.cut : 0);
	uint8_t *exact = malloc(size ? size : 1);
	memcpy(exact, wire.args, size);
	free(wire.args);
	CU_ASSERT_FATAL(wire.proc < ckt_cuda_proc_count && ckt_cuda_procs[wire.proc].handler);
	struct ckt_wcall served = {
		.proc = &ckt_cuda_procs[wire.proc], .args = {exact, exact + size, false}};
	wire.results = NULL;
	wire.results_bytes = 0;
	wire.handler_result = served.proc->handler(&served);
	free(exact);
}

uint8_t *ckt_wcall_results(struct ckt_wcall *call, size_t size_bytes)
{
	wire.results_bytes = size_bytes;
	return wire.results = malloc(size_bytes ? size_bytes : 1);
}

CUresult ckt_call_queue(struct ckt_call *call)
{
	serve(call);
	CU_ASSERT_PTR_NULL(wire.results);
	return CUDA_SUCCESS;
}

CUresult ckt_call_wait(struct ckt_call *call, struct ckt_reply *ret_reply)
{
	serve(call);
	if (wire.handler_result) {
		free(wire.results);
		return wire.handler_result > 0 ? (CUresult)wire.handler_result : CUDA_ERROR_UNKNOWN;
	}
	CU_ASSERT_EQUAL(ret_reply != NULL, wire.results_bytes > 0);
	if (!ret_reply)
		return CUDA_SUCCESS;
	size_t size = wire.results_bytes - (wire.cut_args ? 0 : wire.cut);
	uint8_t *exact = malloc(size ? size : 1);
	memcpy(exact, wire.results, size);
	free(wire.results);
	*ret_reply = (struct ckt_reply){.results = {exact, exact + size, false}, .owned = exact};
	wire.replies++;
	return CUDA_SUCCESS;
}

void ckt_call_reply_release(struct ckt_reply *reply)
{
	free(reply->owned);
	wire.replies--;
}

CUresult ckt_call_unsupported(const char *name, bool *once)
{
	*once = true;
	wire.unsupported = name;
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* The calling thread's own stream has id 77 here; 666 is none. */
CUresult ckt_stream_resolve(CUstream stream, uint64_t *ret_id);
struct ckt_context;
CUresult ckt_client_context_current(struct ckt_context **ret_context);
static bool no_context;

CUresult ckt_client_context_current(struct ckt_context **ret_context)
{
	*ret_context = NULL;
	return no_context ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult ckt_stream_resolve(CUstream stream, uint64_t *ret_id)
{
	if ((uintptr_t)stream == 666)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_id = stream == CU_STREAM_PER_THREAD ? 77 : (uintptr_t)stream;
	return CUDA_SUCCESS;
}

/* ---- The worker: the real handle of id x is x + 1000; ids over 9000 are stale */

static CUresult translate(uint64_t id, void *ret_handle, CUresult error)
{
	if (id > 9000)
		return error;
	uint64_t handle = id + 1000;
	memcpy(ret_handle, &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

CUresult ckt_object_stream(struct ckt_worker *worker, uint64_t id, CUstream *ret_stream)
{
	return translate(id, ret_stream, CUDA_ERROR_INVALID_HANDLE);
}

CUresult ckt_object_event(struct ckt_worker *worker, uint64_t id, CUevent *ret_event)
{
	return translate(id, ret_event, CUDA_ERROR_INVALID_HANDLE);
}

CUresult ckt_object_module(struct ckt_worker *worker, uint64_t id, CUmodule *ret_module)
{
	return translate(id, ret_module, CUDA_ERROR_INVALID_HANDLE);
}

CUresult ckt_object_function(struct ckt_worker *worker, uint64_t id, CUfunction *ret_function)
{
	return translate(id, ret_function, CUDA_ERROR_INVALID_HANDLE);
}

CUresult ckt_object_context(struct ckt_worker *worker, uint64_t id, CUcontext *ret_context)
{
	return translate(id, ret_context, CUDA_ERROR_INVALID_CONTEXT);
}

int ckt_worker_everything(struct ckt_wcall *call);
int ckt_worker_nothing(struct ckt_wcall *call);

int ckt_worker_everything(struct ckt_wcall *call)
{
	return CUDA_SUCCESS;
}

int ckt_worker_nothing(struct ckt_wcall *call)
{
	return CUDA_SUCCESS;
}

/* ---- The driver */

static CUresult CUDAAPI get_limit(size_t *value, CUlimit limit)
{
	*value = 0x123456789abcu + limit;
	return limit == CU_LIMIT_STACK_SIZE ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

static CUresult CUDAAPI get_access(
	unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
	*flags = address + (unsigned)location->type * 16 + (unsigned)location->id;
	return CUDA_SUCCESS;
}

static CUmemLocation advised;

static CUresult CUDAAPI advise(
	CUdeviceptr address, size_t count, CUmem_advise advice, CUmemLocation location)
{
	advised = location;
	return address == 1 && count == 2 && advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_VALUE;
}

static uint64_t discarded;

static CUresult CUDAAPI discard(CUdeviceptr *addresses, size_t *sizes, size_t count,
	unsigned long long flags, CUstream stream)
{
	discarded = flags + (uintptr_t)stream;
	for (size_t i = 0; i < count; i++)
		discarded += addresses[i] * sizes[i];
	return CUDA_SUCCESS;
}

static char copied[8];
static CUdeviceptr copied_to;

static CUresult CUDAAPI copy(CUdeviceptr to, const void *from, size_t size_bytes)
{
	copied_to = to;
	memcpy(copied, from, size_bytes);
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_global(
	CUdeviceptr *address, size_t *size_bytes, CUmodule module, const char *name)
{
	*address = (uintptr_t)module;
	*size_bytes = strlen(name);
	return strcmp(name, "variable") ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

static CUresult CUDAAPI get_handle(CUipcEventHandle *handle, CUevent event)
{
	memset(handle, (int)(uintptr_t)event & 127, sizeof(*handle));
	handle->reserved[63] = 5;
	return CUDA_SUCCESS;
}

static CUstream waited_stream;

static CUresult CUDAAPI wait_event(CUstream stream, CUevent event, unsigned int flags)
{
	waited_stream = stream;
	return (uintptr_t)event == 1003 && flags == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult CUDAAPI api_version(CUcontext context, unsigned int *version)
{
	*version = context ? (unsigned)(uintptr_t)context : 7;
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_attribute(
	int *value, CUfunction_attribute attribute, CUfunction function)
{
	*value = -(int)attribute - (int)(uintptr_t)function;
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI synchronize(void)
{
	return CUDA_ERROR_LAUNCH_FAILED;
}

static CUresult CUDAAPI elapsed(float *milliseconds, CUevent start, CUevent end)
{
	*milliseconds = 0.5f + (float)((uintptr_t)end - (uintptr_t)start);
	return CUDA_SUCCESS;
}

static int set_up(void)
{
	ckt_driver = (struct ckt_driver){
		.cuCtxGetLimit = get_limit,
		.cuMemGetAccess = get_access,
		.cuMemAdvise_v2 = advise,
		.cuMemDiscardBatchAsync = discard,
		.cuMemcpyHtoD_v2 = copy,
		.cuModuleGetGlobal_v2 = get_global,
		.cuIpcGetEventHandle = get_handle,
		.cuStreamWaitEvent = wait_event,
		.cuCtxGetApiVersion = api_version,
		.cuFuncGetAttribute = get_attribute,
		.cuCtxSynchronize = synchronize,
		.cuEventElapsedTime_v2 = elapsed,
	};
	return 0;
}

/* ---- Tests */

#define HANDLE(type, id) ((type)(uintptr_t)(id))

static void test_scalars(void)
{
	size_t value = 1;
	CU_ASSERT_EQUAL(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(value, 0x123456789abcu + CU_LIMIT_STACK_SIZE);
	CU_ASSERT_EQUAL(wire.flags, 0);
	value = 1;
	CU_ASSERT_EQUAL(
		cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE), CUDA_ERROR_UNSUPPORTED_LIMIT);
	CU_ASSERT_EQUAL(value, 1);
	CU_ASSERT_EQUAL(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
	int attribute = 0;
	CU_ASSERT_EQUAL(
		cuFuncGetAttribute(&attribute, CU_FUNC_ATTRIBUTE_NUM_REGS, HANDLE(CUfunction, 7)),
		CUDA_SUCCESS);
	CU_ASSERT_EQUAL(attribute, -CU_FUNC_ATTRIBUTE_NUM_REGS - 1007);
}

static void test_structs_and_arrays(void)
{
	unsigned long long flags = 0;
	CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 3};
	CU_ASSERT_EQUAL(cuMemGetAccess(&flags, &location, 0x20000000), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(flags, 0x20000000u + CU_MEM_LOCATION_TYPE_HOST_NUMA * 16 + 3);
	CU_ASSERT_EQUAL(
		cuMemAdvise_v2(1, 2, CU_MEM_ADVISE_UNSET_READ_MOSTLY, location), CUDA_SUCCESS);
	CU_ASSERT(advised.type == location.type && advised.id == location.id);
	CU_ASSERT_EQUAL(wire.flags, CKT_CALL_F_NUMBERED);

	CUdeviceptr addresses[2] = {1ull << 45, 5};
	size_t sizes[2] = {3, 7};
	CU_ASSERT_EQUAL(
		cuMemDiscardBatchAsync(addresses, sizes, 2, 4, HANDLE(CUstream, 9)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(discarded, 3 * (1ull << 45) + 35 + 4 + 1009);
	CU_ASSERT_EQUAL(cuMemDiscardBatchAsync(NULL, NULL, 0, 0, NULL), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(discarded, 1000);

	CUipcEventHandle handle;
	CU_ASSERT_EQUAL(cuIpcGetEventHandle(&handle, HANDLE(CUevent, 24)), CUDA_SUCCESS);
	CU_ASSERT(handle.reserved[0] == 0 && handle.reserved[63] == 5);
}

static void test_handles_and_strings(void)
{
	CUdeviceptr address = 0;
	size_t size = 0;
	CU_ASSERT_EQUAL(cuModuleGetGlobal_v2(&address, &size, HANDLE(CUmodule, 4), "variable"),
		CUDA_SUCCESS);
	CU_ASSERT(address == 1004 && size == 8);
	CU_ASSERT_EQUAL(cuModuleGetGlobal_v2(&address, &size, HANDLE(CUmodule, 4), ""),
		CUDA_ERROR_NOT_FOUND);
	CU_ASSERT_EQUAL(cuModuleGetGlobal_v2(&address, &size, HANDLE(CUmodule, 9001), "variable"),
		CUDA_ERROR_INVALID_HANDLE);
	unsigned version = 0;
	CU_ASSERT_EQUAL(cuCtxGetApiVersion(NULL, &version), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(version, 7);
	CU_ASSERT_EQUAL(cuCtxGetApiVersion(HANDLE(CUcontext, 1), &version), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(version, 1001);
	CU_ASSERT_EQUAL(
		cuCtxGetApiVersion(HANDLE(CUcontext, 9001), &version), CUDA_ERROR_INVALID_CONTEXT);
}

static void test_batched(void)
{
	CU_ASSERT_EQUAL(cuMemcpyHtoD_v2(77, "abcde", 5), CUDA_SUCCESS);
	CU_ASSERT(copied_to == 77 && memcmp(copied, "abcde", 5) == 0);
	CU_ASSERT_EQUAL(wire.flags, CKT_CALL_F_BATCHED);
	CU_ASSERT_EQUAL(ckt_cuda_procs[CKT_PROC_CUMEMCPYHTOD_V2].flags,
		CKT_PROC_BATCHED | CKT_PROC_NUMBERED);
	CU_ASSERT_EQUAL(ckt_cuda_procs[CKT_PROC_CUMEMADVISE_V2].flags, CKT_PROC_NUMBERED);
	CU_ASSERT_EQUAL(ckt_cuda_procs[CKT_PROC_CUCTXGETLIMIT].flags, 0);
	/* The worker's error of a batched call is the worker's to keep. */
	CU_ASSERT_EQUAL(cuStreamWaitEvent(NULL, HANDLE(CUevent, 3), 2), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(wire.handler_result, CUDA_ERROR_INVALID_VALUE);
}

static void test_other_names(void)
{
	float milliseconds = 0;
	CU_ASSERT_EQUAL(cuEventElapsedTime(&milliseconds, HANDLE(CUevent, 1), HANDLE(CUevent, 4)),
		CUDA_SUCCESS);
	CU_ASSERT_EQUAL(milliseconds, 3.5f);
	unsigned calls = wire.calls;
	no_context = true;
	CU_ASSERT_EQUAL(cuEventElapsedTime(&milliseconds, HANDLE(CUevent, 1), HANDLE(CUevent, 4)),
		CUDA_ERROR_INVALID_CONTEXT);
	no_context = false;
	CU_ASSERT_EQUAL(wire.calls, calls);
	CU_ASSERT_EQUAL(cuStreamWaitEvent_ptsz(NULL, HANDLE(CUevent, 3), 1), CUDA_SUCCESS);
	CU_ASSERT_PTR_EQUAL(waited_stream, HANDLE(CUstream, 1077));
	CU_ASSERT_EQUAL(
		cuStreamWaitEvent_ptsz(CU_STREAM_LEGACY, HANDLE(CUevent, 3), 1), CUDA_SUCCESS);
	CU_ASSERT_PTR_EQUAL(waited_stream, HANDLE(CUstream, 1000 + (uintptr_t)CU_STREAM_LEGACY));
	CU_ASSERT_EQUAL(cuGraphCreate(NULL, 0), CUDA_ERROR_NOT_SUPPORTED);
	CU_ASSERT_STRING_EQUAL(wire.unsupported, "cuGraphCreate");
}

static void test_refused_here(void)
{
	unsigned calls = wire.calls;
	char name[40];
	memset(name, 'n', sizeof(name));
	name[33] = 0;
	CUdeviceptr address = 0;
	size_t size = 0;
	CU_ASSERT_EQUAL(cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(cuMemGetAccess(NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(
		cuModuleGetGlobal_v2(&address, &size, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(
		cuModuleGetGlobal_v2(&address, &size, NULL, name), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(cuMemDiscardBatchAsync(NULL, NULL, 1, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(cuMemcpyHtoD_v2(0, name, 4097), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(cuMemcpyHtoD_v2(0, name, (size_t)1 << 32), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(cuStreamWaitEvent(HANDLE(CUstream, 666), HANDLE(CUevent, 3), 1),
		CUDA_ERROR_INVALID_HANDLE);
	wire.begin_result = CUDA_ERROR_NO_DEVICE;
	CU_ASSERT_EQUAL(cuCtxGetLimit(&size, CU_LIMIT_STACK_SIZE), CUDA_ERROR_NO_DEVICE);
	CU_ASSERT_EQUAL(cuMemcpyHtoD_v2(0, name, 1), CUDA_ERROR_NO_DEVICE);
	wire.begin_result = CUDA_SUCCESS;
	CU_ASSERT_EQUAL(wire.calls, calls);
}

static void test_garbage(void)
{
	size_t value = 1;
	wire.cut = 4;
	CU_ASSERT_EQUAL(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), CUDA_ERROR_UNKNOWN);
	CU_ASSERT_EQUAL(value, 1);
	wire.cut_args = true;
	CU_ASSERT_EQUAL(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), CUDA_ERROR_UNKNOWN);
	CU_ASSERT_EQUAL(wire.handler_result, CKT_WCALL_GARBAGE);
	wire.cut = 0;
	wire.cut_args = false;

	/*
	 * A count that is not the array's, a string with a NUL in it, something behind a call
	 * without arguments.
	 */
	uint64_t two[2] = {1, 2};
	struct ckt_call call = {0};
	struct ckt_cuMemDiscardBatchAsync_args discard_args = {
		.dptrs = two, .dptrs_len = 2, .sizes = two, .sizes_len = 2, .count = 3};
	ckt_call_begin(&call, CKT_PROC_CUMEMDISCARDBATCHASYNC,
		ckt_cuMemDiscardBatchAsync_args_size(&discard_args), 0);
	call.p = ckt_cuMemDiscardBatchAsync_args_put(call.p, &discard_args);
	CU_ASSERT_EQUAL(ckt_call_wait(&call, NULL), CUDA_ERROR_UNKNOWN);
	CU_ASSERT_EQUAL(wire.handler_result, CKT_WCALL_GARBAGE);
	struct ckt_cuModuleGetGlobal_v2_args global_args = {.name = "a\0b", .name_len = 3};
	ckt_call_begin(&call, CKT_PROC_CUMODULEGETGLOBAL_V2,
		ckt_cuModuleGetGlobal_v2_args_size(&global_args), 0);
	call.p = ckt_cuModuleGetGlobal_v2_args_put(call.p, &global_args);
	CU_ASSERT_EQUAL(ckt_call_wait(&call, NULL), CUDA_ERROR_UNKNOWN);
	CU_ASSERT_EQUAL(wire.handler_result, CKT_WCALL_GARBAGE);
	ckt_call_begin(&call, CKT_PROC_CUCTXSYNCHRONIZE, 4, 0);
	call.p = ckt_put_u32(call.p, 0);
	CU_ASSERT_EQUAL(ckt_call_wait(&call, NULL), CUDA_ERROR_UNKNOWN);
	CU_ASSERT_EQUAL(wire.handler_result, CKT_WCALL_GARBAGE);

	ckt_driver.cuCtxGetLimit = NULL;
	CU_ASSERT_EQUAL(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), CUDA_ERROR_NOT_SUPPORTED);
	ckt_driver.cuCtxGetLimit = get_limit;
	CU_ASSERT_EQUAL(wire.replies, 0);
}

int main(void)
{
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	CU_pSuite suite = CU_add_suite("stubs", set_up, NULL);
	CU_add_test(suite, "scalars", test_scalars);
	CU_add_test(suite, "structs and arrays", test_structs_and_arrays);
	CU_add_test(suite, "handles and strings", test_handles_and_strings);
	CU_add_test(suite, "batched calls", test_batched);
	CU_add_test(suite, "aliases, per-thread forms, unsupported functions", test_other_names);
	CU_add_test(suite, "refused without a call", test_refused_here);
	CU_add_test(suite, "garbage", test_garbage);
	CU_basic_run_tests();
	return CU_get_number_of_failures() > 0 || CU_get_number_of_tests_run() == 0;
}
