/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker/cufft_double.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/worker/libs/state.h"
#include "server/worker/objects/context.h"
#include "server/worker/session/call.h"
#include "server/worker/session/long_call.h"

cufftResult double_status;
size_t double_bytes = 4096;
CUresult double_wait_fails, double_before_work, double_begin_fails, double_capture;
uint64_t double_context;
unsigned double_node;
CUresult double_alloc_fails;
unsigned double_waited, double_batched;
bool double_capture_ended;

static char text[8192];
static size_t length;
static cufftHandle next_plan = 500;

__attribute__((format(printf, 1, 2))) static void record(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int more = vsnprintf(text + length, sizeof text - length, format, args);
	va_end(args);
	if (more > 0 && length + (size_t)more < sizeof text)
		length += (size_t)more;
}

const char *double_calls(void)
{
	static char last[sizeof text];
	memcpy(last, text, length + 1);
	length = 0;
	text[0] = 0;
	return last;
}

static void record_ints(const int *values, int count)
{
	record(values ? " [" : " -");
	for (int i = 0; values && i < count; i++)
		record(i ? " %d" : "%d", values[i]);
	record(values ? "]" : "");
}

static void record_wide(const long long *values, int count)
{
	record(values ? " [" : " -");
	for (int i = 0; values && i < count; i++)
		record(i ? " %lld" : "%lld", values[i]);
	record(values ? "]" : "");
}

/* How many GPUs the plan of the last call has: a size is written for each. */
static unsigned gpus_of_plan = 1;

/* Each plan's; 0: that of its context. */
enum { PLANS = 4096 };
static uint8_t plan_gpus[PLANS];

static cufftHandle called(cufftHandle plan)
{
	unsigned gpus = plan_gpus[(unsigned)plan % PLANS];
	gpus_of_plan = gpus ? gpus : 1;
	return plan;
}

static cufftResult sized(size_t *ret_bytes)
{
	record(")\n");
	for (unsigned i = 0; double_status == CUFFT_SUCCESS && i < gpus_of_plan; i++)
		ret_bytes[i] = double_bytes + i;
	return double_status;
}

static cufftResult d_create(cufftHandle *handle)
{
	record("create()\n");
	if (double_status == CUFFT_SUCCESS)
		*handle = next_plan++;
	return double_status;
}

static cufftResult d_destroy(cufftHandle plan)
{
	record("destroy(%d)\n", plan);
	return double_status;
}

static cufftResult d_get_version(int *version)
{
	*version = 12345;
	return CUFFT_SUCCESS;
}

static cufftResult d_set_stream(cufftHandle plan, cudaStream_t stream)
{
	record("set_stream(%d %d)\n", plan, stream != NULL);
	return CUFFT_SUCCESS;
}

static cufftResult d_set_work_area(cufftHandle plan, void *area)
{
	record("set_work_area(%d %p)\n", plan, area);
	return double_status;
}

static cufftResult d_set_auto_allocation(cufftHandle plan, int allocate)
{
	record("set_auto_allocation(%d %d)\n", plan, allocate);
	return double_status;
}

static cufftResult d_set_property(cufftHandle plan, cufftProperty property, const long long value)
{
	record("set_property(%d %d %lld)\n", plan, (int)property, value);
	return double_status;
}

static cufftResult d_get_property(cufftHandle plan, cufftProperty property, long long *value)
{
	record("get_property(%d %d)\n", plan, (int)property);
	*value = -77;
	return double_status;
}

static cufftResult d_reset_property(cufftHandle plan, cufftProperty property)
{
	record("reset_property(%d %d)\n", plan, (int)property);
	return double_status;
}

static cufftResult d_set_policy(cufftHandle plan, cufftXtWorkAreaPolicy policy, size_t *bytes)
{
	record("set_policy(%d %d %lld)\n", plan, (int)policy, bytes ? (long long)*bytes : -1LL);
	if (bytes)
		*bytes = double_bytes;
	return double_status;
}

/* The code's size, and its first and last byte. */
static cufftResult d_set_jit_callback(cufftHandle plan, const char *symbol, const void *code,
	size_t size, cufftXtCallbackType type, void **info)
{
	const uint8_t *bytes = code;
	record("set_jit_callback(%d %.20s %zu %zu %d %d %d %p)\n", plan, symbol, strlen(symbol),
		size, size ? bytes[0] : -1, size ? bytes[size - 1] : -1, (int)type,
		info ? info[0] : (void *)0xdead);
	return double_status;
}

static cufftResult d_get_size(cufftHandle plan, size_t *bytes)
{
	record("get_size(%d", called(plan));
	return sized(bytes);
}

/* MakePlan and GetSize of the dense and the int forms, and the estimates, which have no plan. */
#define DENSE(prefix)                                                                             \
	static cufftResult d_##prefix##_1d(                                                       \
		cufftHandle plan, int nx, cufftType type, int batch, size_t *bytes)               \
	{                                                                                         \
		record(#prefix "_1d(%d %d %d %d", called(plan), nx, (int)type, batch);            \
		return sized(bytes);                                                              \
	}                                                                                         \
	static cufftResult d_##prefix##_2d(                                                       \
		cufftHandle plan, int nx, int ny, cufftType type, size_t *bytes)                  \
	{                                                                                         \
		record(#prefix "_2d(%d %d %d %d", called(plan), nx, ny, (int)type);               \
		return sized(bytes);                                                              \
	}                                                                                         \
	static cufftResult d_##prefix##_3d(                                                       \
		cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t *bytes)          \
	{                                                                                         \
		record(#prefix "_3d(%d %d %d %d %d", called(plan), nx, ny, nz, (int)type);        \
		return sized(bytes);                                                              \
	}                                                                                         \
	static cufftResult d_##prefix##_many(cufftHandle plan, int rank, int *n, int *in, int is, \
		int id, int *out, int os, int od, cufftType type, int batch, size_t *bytes)       \
	{                                                                                         \
		record(#prefix "_many(%d", called(plan));                                         \
		record_ints(n, rank);                                                             \
		record_ints(in, rank);                                                            \
		record(" %d %d", is, id);                                                         \
		record_ints(out, rank);                                                           \
		record(" %d %d %d %d", os, od, (int)type, batch);                                 \
		return sized(bytes);                                                              \
	}
DENSE(make)
DENSE(size)

static cufftResult d_estimate_1d(int nx, cufftType type, int batch, size_t *bytes)
{
	gpus_of_plan = 1;
	record("estimate_1d(%d %d %d", nx, (int)type, batch);
	return sized(bytes);
}

static cufftResult d_estimate_2d(int nx, int ny, cufftType type, size_t *bytes)
{
	gpus_of_plan = 1;
	record("estimate_2d(%d %d %d", nx, ny, (int)type);
	return sized(bytes);
}

static cufftResult d_estimate_3d(int nx, int ny, int nz, cufftType type, size_t *bytes)
{
	gpus_of_plan = 1;
	record("estimate_3d(%d %d %d %d", nx, ny, nz, (int)type);
	return sized(bytes);
}

static cufftResult d_estimate_many(int rank, int *n, int *in, int is, int id, int *out, int os,
	int od, cufftType type, int batch, size_t *bytes)
{
	gpus_of_plan = 1;
	record("estimate_many(");
	record_ints(n, rank);
	record_ints(in, rank);
	record(" %d %d", is, id);
	record_ints(out, rank);
	record(" %d %d %d %d", os, od, (int)type, batch);
	return sized(bytes);
}

#define WIDE(prefix)                                                                         \
	static cufftResult d_##prefix##_many64(cufftHandle plan, int rank, long long *n,     \
		long long *in, long long is, long long id, long long *out, long long os,     \
		long long od, cufftType type, long long batch, size_t *bytes)                \
	{                                                                                    \
		record(#prefix "_many64(%d", called(plan));                                  \
		record_wide(n, rank);                                                        \
		record_wide(in, rank);                                                       \
		record(" %lld %lld", is, id);                                                \
		record_wide(out, rank);                                                      \
		record(" %lld %lld %d %lld", os, od, (int)type, batch);                      \
		return sized(bytes);                                                         \
	}                                                                                    \
	static cufftResult d_##prefix##_xt(cufftHandle plan, int rank, long long *n,         \
		long long *in, long long is, long long id, cudaDataType it, long long *out,  \
		long long os, long long od, cudaDataType ot, long long batch, size_t *bytes, \
		cudaDataType et)                                                             \
	{                                                                                    \
		record(#prefix "_xt(%d", called(plan));                                      \
		record_wide(n, rank);                                                        \
		record_wide(in, rank);                                                       \
		record(" %lld %lld %d", is, id, (int)it);                                    \
		record_wide(out, rank);                                                      \
		record(" %lld %lld %d %lld %d", os, od, (int)ot, batch, (int)et);            \
		return sized(bytes);                                                         \
	}
WIDE(make)
WIDE(size)

#define EXEC(name, Input, Output)                                                                  \
	static cufftResult d_exec_##name(cufftHandle plan, Input *in, Output *out, int direction)  \
	{                                                                                          \
		record("exec_" #name "(%d %p %p %d)\n", plan, (void *)in, (void *)out, direction); \
		return double_status;                                                              \
	}
#define EXEC_ONE_WAY(name, Input, Output)                                            \
	static cufftResult d_exec_##name(cufftHandle plan, Input *in, Output *out)   \
	{                                                                            \
		record("exec_" #name "(%d %p %p)\n", plan, (void *)in, (void *)out); \
		return double_status;                                                \
	}
EXEC(c2c, cufftComplex, cufftComplex)
EXEC(z2z, cufftDoubleComplex, cufftDoubleComplex)
EXEC(xt, void, void)
EXEC_ONE_WAY(r2c, cufftReal, cufftComplex)
EXEC_ONE_WAY(c2r, cufftComplex, cufftReal)
EXEC_ONE_WAY(d2z, cufftDoubleReal, cufftDoubleComplex)
EXEC_ONE_WAY(z2d, cufftDoubleComplex, cufftDoubleReal)

/* ---- Several GPUs */

static cufftResult d_set_gpus(cufftHandle plan, int count, int *gpus)
{
	record("set_gpus(%d", plan);
	record_ints(gpus, count);
	record(")\n");
	if (double_status == CUFFT_SUCCESS)
		plan_gpus[(unsigned)plan % PLANS] = (uint8_t)count;
	return double_status;
}

static void record_descriptor(const cudaLibXtDesc *d)
{
	record(" {%d", d->subFormat);
	for (int i = 0; i < d->descriptor->nGPUs; i++)
		record(" %d:%p+%zu", d->descriptor->GPUs[i], d->descriptor->data[i],
			d->descriptor->size[i]);
	record("}");
}

static cufftResult exec_descriptor(
	const char *name, cufftHandle plan, cudaLibXtDesc *in, cudaLibXtDesc *out, int direction)
{
	record("exec_descriptor%s(%d", name, plan);
	record_descriptor(in);
	if (in == out)
		record(" same");
	else
		record_descriptor(out);
	record(" %d)\n", direction);
	out->subFormat = CUFFT_XT_FORMAT_INPLACE_SHUFFLED;
	return double_status;
}

#define DESCRIPTOR(name)                                                                \
	static cufftResult d_descriptor_##name(                                         \
		cufftHandle plan, cudaLibXtDesc *in, cudaLibXtDesc *out, int direction) \
	{                                                                               \
		return exec_descriptor("_" #name, plan, in, out, direction);            \
	}
#define DESCRIPTOR_ONE_WAY(name)                                         \
	static cufftResult d_descriptor_##name(                          \
		cufftHandle plan, cudaLibXtDesc *in, cudaLibXtDesc *out) \
	{                                                                \
		return exec_descriptor("_" #name, plan, in, out, 0);     \
	}
DESCRIPTOR(any)
DESCRIPTOR(c2c)
DESCRIPTOR(z2z)
DESCRIPTOR_ONE_WAY(r2c)
DESCRIPTOR_ONE_WAY(c2r)
DESCRIPTOR_ONE_WAY(d2z)
DESCRIPTOR_ONE_WAY(z2d)

/* Of the host's side the first and the last byte that it has, which come back one more. */
static cufftResult d_xt_memcpy(cufftHandle plan, void *to, void *from, cufftXtCopyType type)
{
	record("xt_memcpy(%d %d", plan, (int)type);
	if (type == CUFFT_COPY_HOST_TO_DEVICE) {
		record_descriptor(to);
		record(" %d %d", ((uint8_t *)from)[0], ((uint8_t *)from)[double_bytes - 1]);
	} else if (type == CUFFT_COPY_DEVICE_TO_HOST) {
		memset(to, 77, double_bytes);
		record_descriptor(from);
	} else {
		record_descriptor(to);
		record_descriptor(from);
	}
	record(")\n");
	return double_status;
}

static cufftResult d_xt_malloc(cufftHandle plan, cudaLibXtDesc **made, cufftXtSubFormat format)
{
	static cudaXtDesc memory;
	static cudaLibXtDesc descriptor = {.descriptor = &memory};
	record("xt_malloc(%d %d)\n", called(plan), (int)format);
	memory.nGPUs = (int)gpus_of_plan;
	for (int i = 0; i < memory.nGPUs; i++) {
		memory.GPUs[i] = i;
		memory.size[i] = double_bytes + (size_t)i;
	}
	*made = &descriptor;
	return double_status;
}

static cufftResult d_xt_free(cudaLibXtDesc *made)
{
	record("xt_free(%d)\n", made->descriptor->nGPUs);
	return CUFFT_SUCCESS;
}

static cufftResult d_query_plan(cufftHandle plan, void *answer, cufftXtQueryType type)
{
	cufftXt1dFactors *factors = answer;
	record("query_plan(%d %d)\n", plan, (int)type);
	*factors = (cufftXt1dFactors){.size = 4711, .factor2Shift = 12};
	return double_status;
}

static cufftResult d_xt_set_work_area(cufftHandle plan, void **areas)
{
	record("xt_set_work_area(%d", called(plan));
	for (unsigned i = 0; i < gpus_of_plan; i++)
		record(" %p", areas[i]);
	record(")\n");
	return double_status;
}

static const struct ckt_cufft_functions the_double = {
	.cufftXtSetGPUs = d_set_gpus,
	.cufftXtExecDescriptor = d_descriptor_any,
	.cufftXtExecDescriptorC2C = d_descriptor_c2c,
	.cufftXtExecDescriptorZ2Z = d_descriptor_z2z,
	.cufftXtExecDescriptorR2C = d_descriptor_r2c,
	.cufftXtExecDescriptorC2R = d_descriptor_c2r,
	.cufftXtExecDescriptorD2Z = d_descriptor_d2z,
	.cufftXtExecDescriptorZ2D = d_descriptor_z2d,
	.cufftXtMemcpy = d_xt_memcpy,
	.cufftXtMalloc = d_xt_malloc,
	.cufftXtFree = d_xt_free,
	.cufftXtQueryPlan = d_query_plan,
	.cufftXtSetWorkArea = d_xt_set_work_area,
	.cufftXtSetJITCallback = d_set_jit_callback,
	.cufftCreate = d_create,
	.cufftDestroy = d_destroy,
	.cufftGetVersion = d_get_version,
	.cufftSetStream = d_set_stream,
	.cufftSetWorkArea = d_set_work_area,
	.cufftSetAutoAllocation = d_set_auto_allocation,
	.cufftSetPlanPropertyInt64 = d_set_property,
	.cufftGetPlanPropertyInt64 = d_get_property,
	.cufftResetPlanProperty = d_reset_property,
	.cufftXtSetWorkAreaPolicy = d_set_policy,
	.cufftGetSize = d_get_size,
	.cufftMakePlan1d = d_make_1d,
	.cufftMakePlan2d = d_make_2d,
	.cufftMakePlan3d = d_make_3d,
	.cufftMakePlanMany = d_make_many,
	.cufftMakePlanMany64 = d_make_many64,
	.cufftXtMakePlanMany = d_make_xt,
	.cufftEstimate1d = d_estimate_1d,
	.cufftEstimate2d = d_estimate_2d,
	.cufftEstimate3d = d_estimate_3d,
	.cufftEstimateMany = d_estimate_many,
	.cufftGetSize1d = d_size_1d,
	.cufftGetSize2d = d_size_2d,
	.cufftGetSize3d = d_size_3d,
	.cufftGetSizeMany = d_size_many,
	.cufftGetSizeMany64 = d_size_many64,
	.cufftXtGetSizeMany = d_size_xt,
	.cufftExecC2C = d_exec_c2c,
	.cufftExecR2C = d_exec_r2c,
	.cufftExecC2R = d_exec_c2r,
	.cufftExecZ2Z = d_exec_z2z,
	.cufftExecD2Z = d_exec_d2z,
	.cufftExecZ2D = d_exec_z2d,
	.cufftXtExec = d_exec_xt,
};

/* ---- messages straight into the handlers */
static struct inside_reply reply;

int double_run(uint32_t proc, const uint8_t *args, size_t size, bool batched,
	struct ckt_cursor *ret_results)
{
	static uint32_t xid = 1000000;
	struct ckt_wcall *call = ckt_wcall_new(&ckt_worker);
	uint8_t *copy = malloc(size + !size);
	memcpy(copy, args, size);
	call->proc = &ckt_library_cufft.procs[proc];
	call->header = (struct ckt_call_header){.xid = ++xid,
		.prog = CKT_LIB_PROG + CKT_LIB_CUFFT,
		.vers = 1,
		.proc = proc,
		.flags = batched ? CKT_CALL_BATCHED : 0,
		.context = ckt_handle_primary(0)};
	call->args = (struct ckt_cursor){.p = copy, .end = copy + size};
	ckt_worker_use_context(&ckt_worker, call->header.context);
	/* What would be done beside the executor is done at once. */
	bool goes = ckt_worker.go;
	ckt_worker.go = false;
	int result = ckt_worker_lib_state_run(call);
	ckt_worker.go = goes;
	free(copy);
	if (result == CKT_WCALL_GARBAGE) {
		ckt_wcall_free(call);
		return INSIDE_GARBAGE;
	}
	if (result != CKT_WCALL_LATER)
		ckt_wcall_finish(call, (CUresult)result);
	for (int i = 0; !batched && i < 5000; i++) {
		size_t n = inside_sent(reply.bytes, sizeof reply.bytes);
		*ret_results = (struct ckt_cursor){
			.p = reply.bytes + CKT_MARK_SIZE, .end = reply.bytes + n};
		struct ckt_reply_header header;
		if (n && ckt_reply_header_get(ret_results, &header) && header.xid == xid)
			return (int)ckt_get_u32(ret_results);
		poll(NULL, 0, 1);
	}
	return batched ? 0 : INSIDE_NONE;
}

CUresult double_deferred(void)
{
	return (CUresult)atomic_exchange(&ckt_worker.deferred, 0);
}

static CUresult enter(void)
{
	return CUDA_SUCCESS;
}

static uint64_t context(void)
{
	return double_context;
}

static CUresult begin(struct ckt_call *call, uint32_t proc, size_t bytes, unsigned flags)
{
	IS(proc >> 16, CKT_LIB_CUFFT);
	if (double_begin_fails)
		return double_begin_fails;
	/* Of just that size: what is put behind it is found. */
	*call = (struct ckt_call){.p = malloc(bytes + !bytes),
		.xid = proc & 0xffff,
		.size_bytes = (uint32_t)bytes,
		.flags = flags};
	call->record = call->p;
	return CUDA_SUCCESS;
}

static int sent(struct ckt_call *call, bool batched, struct ckt_cursor *ret_results)
{
	/* What it says of its size is what it takes. */
	IS(call->p - call->record, call->size_bytes);
	const struct ckt_proc *proc = &ckt_library_cufft.procs[call->xid];
	IS(batched, (proc->flags & CKT_PROC_BATCHED) != 0);
	IS(!batched && (call->flags & CKT_CALL_F_NUMBERED),
		!batched && (proc->flags & CKT_PROC_NUMBERED));
	int result = double_run(call->xid, call->record, call->size_bytes, batched, ret_results);
	free(call->record);
	return result;
}

static CUresult queue(struct ckt_call *call)
{
	struct ckt_cursor none;
	double_batched++;
	IS(sent(call, true, &none), 0);
	/* Plans end beside the executor. */
	ckt_long_call_drain(&ckt_worker, -1);
	return CUDA_SUCCESS;
}

static CUresult queue_status(struct ckt_call *call, int *ret_status)
{
	*ret_status = 0;
	return queue(call);
}

static CUresult wait(struct ckt_call *call, struct ckt_reply *ret_reply)
{
	*ret_reply = (struct ckt_reply){0};
	/* The library is open: this program has none to open. */
	if (call->xid == CKT_CUFFT_PROC_CUFFT_OPEN) {
		ckt_put_u32(ret_reply->small, 12345);
		ret_reply->results =
			(struct ckt_cursor){.p = ret_reply->small, .end = ret_reply->small + 4};
		free(call->record);
		return CUDA_SUCCESS;
	}
	double_waited++;
	int result = sent(call, false, &ret_reply->results);
	return double_wait_fails ? double_wait_fails : (CUresult)result;
}

static void release(struct ckt_reply *done)
{
}

static CUresult before_work(uint64_t stream, uint64_t *addresses, unsigned count)
{
	/* As of pinned memory: the device's address is another. */
	for (unsigned i = 0; i < count; i++)
		addresses[i] += 0x100;
	if (stream == 7)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return double_before_work;
}

/* 7: a stream that captures. */
static CUresult capture(uint64_t id, uint32_t proc, const void *args, size_t size,
	uint64_t workspace, bool *ret_captured)
{
	struct ckt_cufftExecC2C_args sent;
	struct ckt_cursor cursor = {.p = args, .end = (const uint8_t *)args + size};
	*ret_captured = id == 7 && !double_capture_ended;
	if (id == 7 && proc == CKT_LIB_PROC(CKT_LIB_CUFFT, CKT_CUFFT_PROC_CUFFTEXECC2C) &&
		ckt_cufftExecC2C_args_get(&cursor, &sent))
		record("capture(%x %zu %llx %llx)\n", proc, size, (unsigned long long)sent.idata,
			(unsigned long long)sent.odata);
	return double_capture;
}

static CUresult stream(CUstream given, uint64_t *ret_id)
{
	*ret_id = (uintptr_t)given;
	return (uintptr_t)given == 0xbad ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

static uint64_t object_make(void)
{
	static unsigned n;
	return ID(LIB_OBJECT, ++n);
}

static void object_drop(uint64_t id)
{
}

static void unsupported(const char *name, bool *once)
{
	record("unsupported(%s)\n", name);
}

static CUresult device_context(int device, uint64_t *ret_context)
{
	*ret_context = ckt_handle_primary((unsigned)device);
	return device >= 0 && device < 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static void use_context(uint64_t id)
{
	double_context = id;
}

static unsigned node(uint64_t id)
{
	return id == ckt_handle_primary(1) ? double_node : 0;
}

static int device(void)
{
	return double_context == ckt_handle_primary(1);
}

/* The session's memory, as a client gets it. */
static CUresult workspace_alloc(size_t bytes, uint64_t *ret_address)
{
	record("alloc(%d %zu)\n", device(), bytes);
	return double_alloc_fails
		? double_alloc_fails
		: ckt_memory_alloc(&ckt_worker.devices[device()].memory, bytes, 1, ret_address);
}

static CUresult workspace_free(uint64_t address)
{
	record("free(%d)\n", device());
	return ckt_memory_free_library(&ckt_worker.devices[device()].memory, address);
}

/* An address of the soft GPU is one of the process. */
static CUresult copy_2d(const CUDA_MEMCPY2D *copy, CUstream on, bool async)
{
	bool in = copy->srcMemoryType == CU_MEMORYTYPE_HOST;
	const void *from = in ? copy->srcHost : (const void *)copy->srcDevice;
	void *to = in ? (void *)copy->dstDevice : copy->dstHost;
	IS(copy->Height, 1);
	IS(async, 0);
	memcpy(to, from, copy->WidthInBytes);
	return CUDA_SUCCESS;
}

void double_begin(void)
{
	static const struct ckt_client_table table = {.version = CKT_CLIENT_TABLE_VERSION,
		.size = sizeof table,
		.enter = enter,
		.context = context,
		.begin = begin,
		.queue = queue,
		.queue_status = queue_status,
		.wait = wait,
		.release = release,
		.before_work = before_work,
		.capture = capture,
		.stream = stream,
		.object_make = object_make,
		.object_drop = object_drop,
		.unsupported = unsupported,
		.device_context = device_context,
		.use_context = use_context,
		.node = node,
		.device = device,
		.workspace_alloc = workspace_alloc,
		.workspace_free = workspace_free,
		.copy_2d = copy_2d};
	ckt_client_found = &table;
	ckt_cufft = the_double;
	double_node = 0;
	double_alloc_fails = CUDA_SUCCESS;
	double_status = CUFFT_SUCCESS;
	double_wait_fails = double_before_work = double_begin_fails = double_capture = CUDA_SUCCESS;
	double_context = ckt_handle_primary(0);
	double_waited = double_batched = 0;
	double_deferred();
	double_calls();
}
