/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans for several GPUs; client/libs/cufft/gpus.c has the client's part.  For each call the
 * handler makes a descriptor of the genuine library from the message.
 *
 * A call runs beside the executor and waits there for all GPUs of the plan, because the session
 * does not know the streams that the library uses.
 */
#include <stdlib.h>
#include <string.h>

#include "server/worker/driver.h"
#include "server/worker/libs/cufft/cufft.h"
#include "server/worker/libs/library_long_call.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/worker.h"

enum { GPUS_MAX = MAX_CUDA_DESCRIPTOR_GPUS, WORDS = 3 };

static struct ckt_cufft_notes *notes_of(const struct ckt_object *plan)
{
	return plan->library->data;
}

/*
 * ---- The GPUs of a plan
 */

/* The genuine library numbers the session's devices as the session does. */
static CUresult gpus_of(struct ckt_worker *worker, const struct ckt_cufftXtSetGPUs_args *args,
	struct ckt_cufft_worker_gpus *ret)
{
	ret->count = args->contexts_len;
	for (uint32_t i = 0; i < args->contexts_len; i++) {
		ret->contexts[i] = ckt_xdr_u64(args->contexts_xdr, i);
		const struct ckt_object *context =
			ckt_objects_find_kind(&worker->objects, ret->contexts[i], CKT_KIND_CONTEXT);
		if (!context)
			return CUDA_ERROR_INVALID_CONTEXT;
		ret->ordinals[i] = (int)context->ctx.device;
	}
	return CUDA_SUCCESS;
}

int ckt_worker_cufftXtSetGPUs(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_cufftXtSetGPUs_args args;
	struct ckt_object *object;
	cufftHandle plan;
	if (!ckt_cufftXtSetGPUs_args_get(&call->args, &args) || !args.contexts_len)
		return CKT_WCALL_GARBAGE;
	if (!ckt_cufft.cufftXtSetGPUs)
		return ckt_library_lacks(call, &once);
	CUresult result = ckt_worker_cufft_plan(call->worker, args.plan, &object, &plan);
	if (result)
		return result;
	struct ckt_cufft_worker_gpus *gpus = calloc(1, sizeof *gpus);
	if (!gpus)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = gpus_of(call->worker, &args, gpus);
	if (result) {
		free(gpus);
		return result;
	}
	struct ckt_cufftXtSetGPUs_res res = {.status = (int32_t)ckt_cufft.cufftXtSetGPUs(
						     plan, (int)gpus->count, gpus->ordinals)};
	if (res.status == CUFFT_SUCCESS) {
		free(notes_of(object)->gpus);
		notes_of(object)->gpus = gpus;
	} else {
		free(gpus);
	}
	call->status = res.status;
	ckt_cufftXtSetGPUs_res_put(
		ckt_wcall_results(call, ckt_cufftXtSetGPUs_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

/*
 * ---- Queries and settings of a plan
 */

int ckt_worker_cufftXtQueryPlan(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_cufftXtQueryPlan_args args;
	struct ckt_object *object;
	cufftHandle plan;
	cufftXt1dFactors factors = {0};
	if (!ckt_cufftXtQueryPlan_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (!ckt_cufft.cufftXtQueryPlan)
		return ckt_library_lacks(call, &once);
	CUresult result = ckt_worker_cufft_plan(call->worker, args.plan, &object, &plan);
	if (result)
		return result;
	/* Another query might write more bytes. */
	if (args.type != CUFFT_QUERY_1D_FACTORS)
		return CUDA_ERROR_INVALID_VALUE;
	const struct ckt_cufftXtQueryPlan_res res = {
		.status = (int32_t)ckt_cufft.cufftXtQueryPlan(
			plan, &factors, (cufftXtQueryType)args.type),
		.answer = (const uint8_t *)&factors,
		.answer_len = sizeof factors};
	call->status = res.status;
	ckt_cufftXtQueryPlan_res_put(
		ckt_wcall_results(call, ckt_cufftXtQueryPlan_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_xt_sizes(struct ckt_wcall *call)
{
	struct ckt_xt_sizes_args args;
	struct ckt_object *object;
	cufftHandle plan;
	uint64_t bytes[GPUS_MAX];
	if (!ckt_xt_sizes_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_cufft_plan(call->worker, args.plan, &object, &plan);
	if (result)
		return result;
	const size_t *sizes = ckt_cufft_sizes(object);
	const struct ckt_xt_sizes_res res = {.bytes = bytes,
		.bytes_len = notes_of(object)->gpus ? notes_of(object)->gpus->count : 1};
	for (uint32_t i = 0; i < res.bytes_len; i++)
		bytes[i] = sizes[i];
	ckt_xt_sizes_res_put(ckt_wcall_results(call, ckt_xt_sizes_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_xt_set_work_area(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_xt_set_work_area_args args;
	struct ckt_object *object;
	cufftHandle plan;
	void *areas[GPUS_MAX];
	if (!ckt_xt_set_work_area_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (!ckt_cufft.cufftXtSetWorkArea)
		return ckt_library_lacks(call, &once);
	CUresult result = ckt_worker_cufft_plan(call->worker, args.plan, &object, &plan);
	if (result)
		return result;
	const struct ckt_cufft_worker_gpus *gpus = notes_of(object)->gpus;
	if (args.areas_len != (gpus ? gpus->count : 1))
		return CKT_WCALL_GARBAGE;
	for (uint32_t i = 0; i < args.areas_len; i++)
		areas[i] = (void *)(uintptr_t)ckt_xdr_u64(args.areas_xdr, i);
	const struct ckt_xt_set_work_area_res res = {
		.status = (int32_t)ckt_cufft.cufftXtSetWorkArea(plan, areas)};
	call->status = res.status;
	ckt_xt_set_work_area_res_put(
		ckt_wcall_results(call, ckt_xt_set_work_area_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

/* ---- Descriptors, and calls beside the executor */

struct descriptor {
	cudaLibXtDesc library;
	cudaXtDesc memory;
};

/* A call that waits for the plan's GPUs. */
struct gpus_call {
	struct ckt_library_long_call beside; /* first */
	cufftHandle plan;
	int ordinals[GPUS_MAX];
	CUcontext contexts[GPUS_MAX];
	unsigned count;
	int32_t status;
	/*
	 * ---- For xt_execute: input and output; for xt_copy: from and to
	 */
	struct descriptor from, to;
	bool same;
	uint32_t function;
	int32_t direction;
	/*
	 * ---- For xt_copy
	 */
	cufftXtCopyType type;
	CUdeviceptr staging;
	uint64_t staging_bytes, host_bytes; /* host_bytes is charged */
	/*
	 * ---- For xt_memory
	 */
	cufftXtSubFormat format;
	uint64_t memory[2 * GPUS_MAX];
	uint32_t memory_length;
};

/* False if no client sends such a message. */
static bool unpack(const struct gpus_call *own, const uint8_t *xdr, uint32_t length, int32_t format,
	struct descriptor *ret)
{
	if (length % WORDS)
		return false;
	ret->memory.version = ret->library.version = CUDA_XT_DESCRIPTOR_VERSION + CUDART_VERSION;
	ret->memory.nGPUs = (int)(length / WORDS);
	for (uint32_t i = 0; i < length / WORDS; i++) {
		uint64_t place = ckt_xdr_u64(xdr, WORDS * i);
		if (place >= own->count)
			return false;
		ret->memory.GPUs[i] = own->ordinals[place];
		ret->memory.data[i] = (void *)(uintptr_t)ckt_xdr_u64(xdr, WORDS * i + 1);
		ret->memory.size[i] = ckt_xdr_u64(xdr, WORDS * i + 2);
	}
	ret->library.descriptor = &ret->memory;
	ret->library.library = LIB_FORMAT_CUFFT;
	ret->library.subFormat = format;
	return true;
}

/* Finds the plan and the contexts of its GPUs.  CUDA_ERROR_INVALID_CONTEXT: a context has ended. */
static CUresult take(
	struct ckt_wcall *call, uint64_t id, struct gpus_call *own, struct ckt_object **ret_object)
{
	struct ckt_worker *worker = call->worker;
	CUresult result = ckt_worker_cufft_plan(worker, id, ret_object, &own->plan);
	if (result)
		return result;
	const struct ckt_cufft_worker_gpus *gpus = notes_of(*ret_object)->gpus;
	if (!worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	own->beside.owner = id;
	own->count = gpus ? gpus->count : 1;
	for (unsigned i = 0; i < own->count; i++) {
		const struct ckt_object *context = gpus
			? ckt_objects_find_kind(
				  &worker->objects, gpus->contexts[i], CKT_KIND_CONTEXT)
			: worker->current;
		if (!context)
			return CUDA_ERROR_INVALID_CONTEXT;
		own->contexts[i] = context->real;
		own->ordinals[i] = (int)context->ctx.device;
	}
	return CUDA_SUCCESS;
}

/*
 * Waits for all GPUs of the plan and restores the thread's context.  The thread uses the relaxed
 * capture mode: in any other mode the driver refuses the wait while a context captures.
 */
static CUresult settle(const struct gpus_call *own, CUcontext before)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUresult result = ckt_driver.cuThreadExchangeStreamCaptureMode(&mode);
	if (result)
		return result;
	for (unsigned i = 0; i < own->count; i++) {
		CUresult waited = ckt_driver.cuCtxSetCurrent(own->contexts[i]);
		if (!waited)
			waited = ckt_driver.cuCtxSynchronize();
		result = result ? result : waited;
	}
	CUresult back = ckt_driver.cuCtxSetCurrent(before);
	ckt_driver.cuThreadExchangeStreamCaptureMode(&mode);
	return result ? result : back;
}

/*
 * Runs the call on the library's own streams.  The waits before and after it order the call between
 * the program's earlier and later work.
 */
#define BETWEEN_WAITS(own, call_)                                                     \
	({                                                                            \
		CUcontext before_ = NULL;                                             \
		cufftResult status_ = CUFFT_EXEC_FAILED;                              \
		if (!ckt_driver.cuCtxGetCurrent(&before_) && !settle(own, before_)) { \
			status_ = call_;                                              \
			if (settle(own, before_) && status_ == CUFFT_SUCCESS)         \
				status_ = CUFFT_EXEC_FAILED;                          \
		}                                                                     \
		status_;                                                              \
	})

/* The library must not replace the program's memory with its own. */
static cufftResult checked(
	const struct descriptor *now, const struct descriptor *before, cufftResult status)
{
	size_t bytes = (size_t)before->memory.nGPUs * sizeof(void *);
	return status == CUFFT_SUCCESS && memcmp(now->memory.data, before->memory.data, bytes)
		? CUFFT_INTERNAL_ERROR
		: status;
}

static struct gpus_call *gpus_call_new(void (*run)(struct ckt_library_long_call *beside),
	int (*done)(struct ckt_library_long_call *beside))
{
	struct gpus_call *own = calloc(1, sizeof *own);
	if (own) {
		own->beside.run = run;
		own->beside.done = done;
	}
	return own;
}

static int refuse(struct gpus_call *own, int result)
{
	free(own);
	return result;
}

/* ---- Executions */

#define CALL(function, ...) \
	(ckt_cufft.function ? ckt_cufft.function(__VA_ARGS__) : CUFFT_NOT_SUPPORTED)

static cufftResult execute(const struct gpus_call *own, cudaLibXtDesc *in, cudaLibXtDesc *out)
{
	switch (own->function) {
	case 0:
		return CALL(cufftXtExecDescriptor, own->plan, in, out, own->direction);
	case CUFFT_C2C:
		return CALL(cufftXtExecDescriptorC2C, own->plan, in, out, own->direction);
	case CUFFT_R2C:
		return CALL(cufftXtExecDescriptorR2C, own->plan, in, out);
	case CUFFT_C2R:
		return CALL(cufftXtExecDescriptorC2R, own->plan, in, out);
	case CUFFT_Z2Z:
		return CALL(cufftXtExecDescriptorZ2Z, own->plan, in, out, own->direction);
	case CUFFT_D2Z:
		return CALL(cufftXtExecDescriptorD2Z, own->plan, in, out);
	case CUFFT_Z2D:
		return CALL(cufftXtExecDescriptorZ2D, own->plan, in, out);
	default:
		return CUFFT_INVALID_TYPE;
	}
}

static void run_execute(struct ckt_library_long_call *beside)
{
	struct gpus_call *own = (struct gpus_call *)beside;
	struct descriptor *out = own->same ? &own->from : &own->to;
	const struct descriptor in_before = own->from, out_before = *out;
	cufftResult status = BETWEEN_WAITS(own, execute(own, &own->from.library, &out->library));
	status = checked(&own->from, &in_before, status);
	own->status = (int32_t)checked(out, &out_before, status);
	beside->failed = ckt_worker_cufft_out_of_memory(own->status);
}

static int done_execute(struct ckt_library_long_call *beside)
{
	const struct gpus_call *own = (const struct gpus_call *)beside;
	struct ckt_wcall *call = beside->call;
	const struct ckt_xt_execute_res res = {.status = own->status,
		.in_format = own->from.library.subFormat,
		.out_format = (own->same ? &own->from : &own->to)->library.subFormat};
	call->status = res.status;
	ckt_xt_execute_res_put(ckt_wcall_results(call, ckt_xt_execute_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_xt_execute(struct ckt_wcall *call)
{
	struct ckt_xt_execute_args args;
	struct ckt_object *object;
	CUstream stream;
	if (!ckt_xt_execute_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct gpus_call *own = gpus_call_new(run_execute, done_execute);
	if (!own)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = take(call, args.plan, own, &object);
	if (!result)
		result = ckt_object_stream(call->worker, args.stream, &stream);
	if (result)
		return refuse(own, (int)result);
	if (!unpack(own, args.input_xdr, args.input_len, args.in_format, &own->from) ||
		!unpack(own, args.output_xdr, args.output_len, args.out_format, &own->to))
		return refuse(own, CKT_WCALL_GARBAGE);
	own->function = args.function;
	own->direction = args.direction;
	own->same = args.same;
	/* A plan for several GPUs uses the library's own streams. */
	if (!notes_of(object)->gpus && ckt_worker_cufft_use_stream(object, stream))
		return refuse(own, CUDA_ERROR_UNKNOWN);
	return ckt_library_long_call(call, &own->beside);
}

/* ---- Copies */

/*
 * The library copies to or from host memory of the worker.  The memory is large enough for the
 * plan's numbers and for all pieces, so the library never reads or writes past its end.
 */
static cufftResult copy_with_host(struct gpus_call *own)
{
	bool to_device = own->type == CUFFT_COPY_HOST_TO_DEVICE;
	cufftResult status = CUFFT_SUCCESS;
	void *host = calloc(1, own->host_bytes);
	if (!host)
		return CUFFT_ALLOC_FAILED;
	if (to_device && ckt_driver.cuMemcpyDtoH_v2(host, own->staging, own->staging_bytes))
		status = CUFFT_EXEC_FAILED;
	if (!status)
		status = BETWEEN_WAITS(own,
			to_device
				? CALL(cufftXtMemcpy, own->plan, &own->to.library, host, own->type)
				: CALL(cufftXtMemcpy, own->plan, host, &own->from.library,
					  own->type));
	if (!status && !to_device &&
		ckt_driver.cuMemcpyHtoD_v2(own->staging, host, own->staging_bytes))
		status = CUFFT_EXEC_FAILED;
	free(host);
	return status;
}

static void run_copy(struct ckt_library_long_call *beside)
{
	struct gpus_call *own = (struct gpus_call *)beside;
	const struct descriptor to_before = own->to, from_before = own->from;
	cufftResult status = own->host_bytes
		? copy_with_host(own)
		: BETWEEN_WAITS(own,
			  CALL(cufftXtMemcpy, own->plan, &own->to.library, &own->from.library,
				  own->type));
	status = checked(&own->to, &to_before, status);
	own->status = (int32_t)checked(&own->from, &from_before, status);
	beside->failed = ckt_worker_cufft_out_of_memory(own->status);
}

static int done_copy(struct ckt_library_long_call *beside)
{
	const struct gpus_call *own = (const struct gpus_call *)beside;
	struct ckt_wcall *call = beside->call;
	const struct ckt_xt_copy_res res = {.status = own->status,
		.to_format = own->to.library.subFormat,
		.from_format = own->from.library.subFormat};
	ckt_budget_uncharge(own->host_bytes);
	call->status = res.status;
	ckt_xt_copy_res_put(ckt_wcall_results(call, ckt_xt_copy_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

/* Adds the sizes of all pieces of a descriptor.  False if the sum overflows. */
static bool add_sizes(const struct descriptor *descriptor, uint64_t *bytes)
{
	for (int i = 0; i < descriptor->memory.nGPUs; i++)
		if (__builtin_add_overflow(*bytes, descriptor->memory.size[i], bytes))
			return false;
	return true;
}

int ckt_worker_xt_copy(struct ckt_wcall *call)
{
	struct ckt_xt_copy_args args;
	struct ckt_object *object;
	if (!ckt_xt_copy_args_get(&call->args, &args) || args.type < 0 ||
		args.type >= CUFFT_COPY_UNDEFINED)
		return CKT_WCALL_GARBAGE;
	bool host = args.type != CUFFT_COPY_DEVICE_TO_DEVICE;
	if (host != (args.staging_bytes > 0))
		return CKT_WCALL_GARBAGE;
	struct gpus_call *own = gpus_call_new(run_copy, done_copy);
	if (!own)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = take(call, args.plan, own, &object);
	if (result)
		return refuse(own, (int)result);
	if (!unpack(own, args.to_xdr, args.to_len, args.to_format, &own->to) ||
		!unpack(own, args.from_xdr, args.from_len, args.from_format, &own->from))
		return refuse(own, CKT_WCALL_GARBAGE);
	own->type = (cufftXtCopyType)args.type;
	own->staging = args.staging;
	own->staging_bytes = args.staging_bytes;
	uint64_t bytes = args.staging_bytes;
	if (host && (!add_sizes(&own->to, &bytes) || !add_sizes(&own->from, &bytes)))
		return refuse(own, CKT_WCALL_GARBAGE);
	if (host && !ckt_budget_charge(bytes, "copies of cuFFT's descriptors"))
		return refuse(own, CUDA_ERROR_OUT_OF_MEMORY);
	own->host_bytes = host ? bytes : 0;
	return ckt_library_long_call(call, &own->beside);
}

/*
 * ---- The size of a descriptor
 */

/* The library's own descriptor gives the sizes; the client allocates the memory. */
static cufftResult measure(struct gpus_call *own)
{
	cudaLibXtDesc *made = NULL;
	cufftResult status = CALL(cufftXtMalloc, own->plan, &made, own->format);
	if (status)
		return status;
	const cudaXtDesc *memory = made->descriptor;
	for (int i = 0; i < memory->nGPUs && i < GPUS_MAX; i++) {
		unsigned place = 0;
		while (place + 1 < own->count && own->ordinals[place] != memory->GPUs[i])
			place++;
		own->memory[2 * i] = place;
		own->memory[2 * i + 1] = memory->size[i];
		own->memory_length += 2;
	}
	return CALL(cufftXtFree, made);
}

static void run_memory(struct ckt_library_long_call *beside)
{
	struct gpus_call *own = (struct gpus_call *)beside;
	own->memory_length = 0;
	own->status = (int32_t)BETWEEN_WAITS(own, measure(own));
	beside->failed = ckt_worker_cufft_out_of_memory(own->status);
}

static int done_memory(struct ckt_library_long_call *beside)
{
	const struct gpus_call *own = (const struct gpus_call *)beside;
	struct ckt_wcall *call = beside->call;
	const struct ckt_xt_memory_res res = {.status = own->status,
		.memory = own->memory,
		.memory_len = own->status ? 0 : own->memory_length};
	call->status = res.status;
	ckt_xt_memory_res_put(ckt_wcall_results(call, ckt_xt_memory_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_xt_memory(struct ckt_wcall *call)
{
	struct ckt_xt_memory_args args;
	struct ckt_object *object;
	if (!ckt_xt_memory_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct gpus_call *own = gpus_call_new(run_memory, done_memory);
	if (!own)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = take(call, args.plan, own, &object);
	if (result)
		return refuse(own, (int)result);
	own->format = (cufftXtSubFormat)args.format;
	return ckt_library_long_call(call, &own->beside);
}
