/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuFFT's handwritten handlers; the generator makes the rest.  A plan is an object whose real
 * handle is the genuine library's number.  Every execution carries its stream, so a stream that a
 * restore made anew needs no further step.
 */
#include "server/worker/libs/cufft/cufft.h"

#include <stdlib.h>

#include "server/worker/objects/context.h"
#include "server/worker/worker.h"

static uint32_t version(void)
{
	int value = 0;
	return ckt_cufft.cufftGetVersion && ckt_cufft.cufftGetVersion(&value) == CUFFT_SUCCESS
		? (uint32_t)value
		: 0;
}

static void destroy(struct ckt_worker *worker, struct ckt_object *object)
{
	if (ckt_cufft.cufftDestroy)
		ckt_cufft.cufftDestroy((cufftHandle)(intptr_t)object->real);
	struct ckt_cufft_notes *notes = object->library->data;
	ckt_worker_cufft_codes_free(notes);
	free(notes->gpus);
	notes->gpus = NULL;
}

CUresult ckt_worker_cufft_plan(struct ckt_worker *worker, uint64_t id,
	struct ckt_object **ret_object, cufftHandle *ret_plan)
{
	struct ckt_object *object =
		ckt_library_object_find(worker, CKT_LIB_CUFFT, CKT_CUFFT_TYPE_PLAN, id);
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_object = object;
	*ret_plan = (cufftHandle)(intptr_t)object->real;
	return CUDA_SUCCESS;
}

int ckt_worker_cufft_use_stream(struct ckt_object *plan, CUstream stream)
{
	struct ckt_cufft_notes *notes = plan->library->data;
	if (notes->stream == stream)
		return CUFFT_SUCCESS;
	if (!ckt_cufft.cufftSetStream)
		return CUFFT_NOT_SUPPORTED;
	cufftResult status =
		ckt_cufft.cufftSetStream((cufftHandle)(intptr_t)plan->real, (cudaStream_t)stream);
	if (status == CUFFT_SUCCESS)
		notes->stream = stream;
	return (int)status;
}

int ckt_worker_cufft_open(struct ckt_wcall *call)
{
	return ckt_library_open_call(call, &ckt_library_cufft);
}

/* For a function that an older library lacks. */
#define CALL(function, ...)                                            \
	(ckt_cufft.function ? (int32_t)ckt_cufft.function(__VA_ARGS__) \
			    : (int32_t)CUFFT_NOT_SUPPORTED)

#define ANSWER(name, res)                                                                \
	do {                                                                             \
		call->status = (res).status;                                             \
		ckt_##name##_res_put(                                                    \
			ckt_wcall_results(call, ckt_##name##_res_size(&(res))), &(res)); \
		return CUDA_SUCCESS;                                                     \
	} while (0)

int ckt_worker_cufftCreate(struct ckt_wcall *call)
{
	struct ckt_cufftCreate_args args;
	struct ckt_object *object;
	cufftHandle real = CUFFT_PLAN_NULL;
	if (!ckt_cufftCreate_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_cufft_notes *notes = calloc(1, sizeof *notes);
	if (!notes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct ckt_cufftCreate_res res = {.status = CALL(cufftCreate, &real)};
	if (res.status != CUFFT_SUCCESS) {
		free(notes);
		ANSWER(cufftCreate, res);
	}
	CUresult result = ckt_library_object_add(call->worker, &ckt_library_cufft,
		CKT_CUFFT_TYPE_PLAN, args.plan, (void *)(intptr_t)real, notes, &object);
	if (result) {
		ckt_cufft.cufftDestroy(real);
		free(notes);
		return result;
	}
	ANSWER(cufftCreate, res);
}

int ckt_worker_cufftDestroy(struct ckt_wcall *call)
{
	struct ckt_cufftDestroy_args args;
	struct ckt_object *object;
	cufftHandle plan;
	if (!ckt_cufftDestroy_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_cufft_plan(call->worker, args.plan, &object, &plan);
	if (!result)
		ckt_object_destroy(call->worker, object);
	return result;
}

int ckt_worker_cufftXtSetWorkAreaPolicy(struct ckt_wcall *call)
{
	struct ckt_cufftXtSetWorkAreaPolicy_args args;
	struct ckt_object *object;
	cufftHandle plan;
	if (!ckt_cufftXtSetWorkAreaPolicy_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_cufft_plan(call->worker, args.plan, &object, &plan);
	if (result)
		return result;
	size_t *bytes = ckt_cufft_sizes(object);
	*bytes = args.bytes;
	struct ckt_cufftXtSetWorkAreaPolicy_res res = {
		.status = CALL(cufftXtSetWorkAreaPolicy, plan, (cufftXtWorkAreaPolicy)args.policy,
			args.given ? bytes : NULL)};
	res.bytes = *bytes;
	ANSWER(cufftXtSetWorkAreaPolicy, res);
}

/*
 * ---- Messages of earlier builds, which their images also hold: rpc/api/cufft.api, 12 to 18 and 30
 */

int ckt_worker_fft_size(struct ckt_wcall *call)
{
	struct ckt_fft_size_args args;
	struct ckt_object *object;
	cufftHandle plan;
	if (!ckt_fft_size_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_cufft_plan(call->worker, args.plan, &object, &plan);
	if (result)
		return result;
	size_t *bytes = ckt_cufft_sizes(object);
	*bytes = 0;
	struct ckt_fft_size_res res = {.status = CALL(cufftGetSize, plan, bytes)};
	res.work_bytes = *bytes;
	ANSWER(fft_size, res);
}

int ckt_worker_fft_set_work_area(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_fft_set_work_area_args args;
	struct ckt_object *object;
	cufftHandle plan;
	if (!ckt_fft_set_work_area_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_cufft_plan(call->worker, args.plan, &object, &plan);
	return result
		? (int)result
		: (int)ckt_library_batched(call,
			  CALL(cufftSetWorkArea, plan, (void *)(uintptr_t)args.address), &once);
}

int ckt_worker_fft_set_auto_allocation(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_fft_set_auto_allocation_args args;
	struct ckt_object *object;
	cufftHandle plan;
	if (!ckt_fft_set_auto_allocation_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_cufft_plan(call->worker, args.plan, &object, &plan);
	return result ? (int)result
		      : (int)ckt_library_batched(
				call, CALL(cufftSetAutoAllocation, plan, args.allocate), &once);
}

int ckt_worker_fft_set_property(struct ckt_wcall *call)
{
	struct ckt_fft_set_property_args args;
	struct ckt_object *object;
	cufftHandle plan;
	if (!ckt_fft_set_property_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_cufft_plan(call->worker, args.plan, &object, &plan);
	if (result)
		return result;
	cufftProperty property = (cufftProperty)args.property;
	struct ckt_fft_set_property_res res = {.status = args.reset
			? CALL(cufftResetPlanProperty, plan, property)
			: CALL(cufftSetPlanPropertyInt64, plan, property, args.value)};
	ANSWER(fft_set_property, res);
}

int ckt_worker_fft_get_property(struct ckt_wcall *call)
{
	struct ckt_fft_get_property_args args;
	struct ckt_object *object;
	cufftHandle plan;
	long long value = 0;
	if (!ckt_fft_get_property_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_cufft_plan(call->worker, args.plan, &object, &plan);
	if (result)
		return result;
	struct ckt_fft_get_property_res res = {.status = CALL(cufftGetPlanPropertyInt64, plan,
						       (cufftProperty)args.property, &value)};
	res.value = value;
	ANSWER(fft_get_property, res);
}

static int32_t run(cufftHandle plan, const struct ckt_fft_execute_args *args)
{
	void *in = (void *)(uintptr_t)args->in, *out = (void *)(uintptr_t)args->out;
	switch (args->function) {
	case 0:
		return CALL(cufftXtExec, plan, in, out, args->direction);
	case CUFFT_C2C:
		return CALL(cufftExecC2C, plan, in, out, args->direction);
	case CUFFT_R2C:
		return CALL(cufftExecR2C, plan, in, out);
	case CUFFT_C2R:
		return CALL(cufftExecC2R, plan, in, out);
	case CUFFT_Z2Z:
		return CALL(cufftExecZ2Z, plan, in, out, args->direction);
	case CUFFT_D2Z:
		return CALL(cufftExecD2Z, plan, in, out);
	case CUFFT_Z2D:
		return CALL(cufftExecZ2D, plan, in, out);
	default:
		return CUFFT_INVALID_TYPE;
	}
}

int ckt_worker_fft_execute(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_fft_execute_args args;
	struct ckt_object *object;
	cufftHandle plan;
	CUstream stream;
	if (!ckt_fft_execute_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_cufft_plan(call->worker, args.plan, &object, &plan);
	if (!result)
		result = ckt_object_stream(call->worker, args.stream, &stream);
	if (result)
		return result;
	int32_t status = ckt_worker_cufft_use_stream(object, stream);
	if (status == CUFFT_SUCCESS)
		status = run(plan, &args);
	return (int)ckt_library_batched(call, status, &once);
}

const struct ckt_library ckt_library_cufft = {
	.name = "cufft",
	.soname = "libcufft.so",
	.lib = CKT_LIB_CUFFT,
	.procs = ckt_cufft_procs,
	.proc_count = &ckt_cufft_proc_count,
	.functions = &ckt_cufft_functions,
	.version = version,
	.version_unit = 1000,
	.object_bytes = 64 << 10,
	.destroy = destroy,
	.ends_beside = true,
};
