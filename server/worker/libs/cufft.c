/*
 * cuFFT's handlers.  A plan is an object whose real handle is the genuine library's number.  Streams come with each execution, so that
 * one that a restore made anew is taken without a word; the plan is told only where it is another than before.
 */
#include "server/worker/libs/cufft.h"

#include <stdlib.h>

#include "rpc/gen/cufft_codec.h"
#include "server/worker/worker.h"

/* The library's own notes on an object. */
struct plan {
	CUstream stream;		/* that the genuine plan was told last */
};

struct ckt_cufft ckt_cufft;

static const char *const names[] = {"cufftCreate", "cufftDestroy", "cufftGetVersion", "cufftSetStream", "cufftSetWorkArea", "cufftSetAutoAllocation",
	"cufftSetPlanPropertyInt64", "cufftGetPlanPropertyInt64", "cufftResetPlanProperty", "cufftXtSetWorkAreaPolicy", "cufftGetSize",
	"cufftMakePlan1d", "cufftMakePlan2d", "cufftMakePlan3d", "cufftMakePlanMany", "cufftMakePlanMany64", "cufftXtMakePlanMany",
	"cufftEstimate1d", "cufftEstimate2d", "cufftEstimate3d", "cufftEstimateMany",
	"cufftGetSize1d", "cufftGetSize2d", "cufftGetSize3d", "cufftGetSizeMany", "cufftGetSizeMany64", "cufftXtGetSizeMany",
	"cufftExecC2C", "cufftExecR2C", "cufftExecC2R", "cufftExecZ2Z", "cufftExecD2Z", "cufftExecZ2D", "cufftXtExec"};
_Static_assert(sizeof names / sizeof *names == sizeof ckt_cufft / sizeof(void *), "a name for each function");

static const struct ckt_library_functions functions = {.names = names, .entries = (void **)&ckt_cufft, .count = sizeof names / sizeof *names};

static uint32_t version(void)
{
	int value = 0;
	return ckt_cufft.get_version && ckt_cufft.get_version(&value) == CUFFT_SUCCESS ? (uint32_t)value : 0;
}

static void destroy(struct ckt_worker *worker, struct ckt_object *object)
{
	if (ckt_cufft.destroy)
		ckt_cufft.destroy((cufftHandle)(intptr_t)object->real);
}

CUresult ckt_cufft_plan(struct ckt_worker *worker, uint64_t id, struct ckt_object **ret_object, cufftHandle *ret_plan)
{
	struct ckt_object *object = ckt_library_object_find(worker, CKT_LIB_CUFFT, 0, id);
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_object = object;
	*ret_plan = (cufftHandle)(intptr_t)object->real;
	return CUDA_SUCCESS;
}

static int open_library(struct ckt_wcall *call)
{
	return ckt_library_open_call(call, &ckt_library_cufft);
}

/* A function that an older library lacks. */
#define CALL(function, ...) (ckt_cufft.function ? (int32_t)ckt_cufft.function(__VA_ARGS__) : (int32_t)CUFFT_NOT_SUPPORTED)

#define ANSWER(name, res) \
	do { \
		call->status = (res).status; \
		ckt_##name##_res_put(ckt_wcall_results(call, ckt_##name##_res_size(&(res))), &(res)); \
		return CUDA_SUCCESS; \
	} while (0)

static int create(struct ckt_wcall *call)
{
	struct ckt_fft_create_args args;
	struct ckt_object *object;
	cufftHandle real = CUFFT_PLAN_NULL;
	if (!ckt_fft_create_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct plan *notes = calloc(1, sizeof *notes);
	if (!notes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct ckt_fft_create_res res = {.status = CALL(create, &real)};
	if (res.status != CUFFT_SUCCESS) {
		free(notes);
		ANSWER(fft_create, res);
	}
	CUresult result = ckt_library_object_add(call->worker, &ckt_library_cufft, 0, args.plan, (void *)(intptr_t)real, notes, &object);
	if (result) {
		ckt_cufft.destroy(real);
		free(notes);
		return result;
	}
	ANSWER(fft_create, res);
}

static int destroy_plan(struct ckt_wcall *call)
{
	struct ckt_fft_destroy_args args;
	struct ckt_object *object;
	cufftHandle plan;
	if (!ckt_fft_destroy_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cufft_plan(call->worker, args.plan, &object, &plan);
	if (!result)
		ckt_object_destroy(call->worker, object);
	return result;
}

static int size(struct ckt_wcall *call)
{
	struct ckt_fft_size_args args;
	struct ckt_object *object;
	cufftHandle plan;
	size_t bytes = 0;
	if (!ckt_fft_size_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cufft_plan(call->worker, args.plan, &object, &plan);
	if (result)
		return result;
	struct ckt_fft_size_res res = {.status = CALL(get_size, plan, &bytes)};
	res.work_bytes = bytes;
	ANSWER(fft_size, res);
}

static int set_work_area(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_fft_set_work_area_args args;
	struct ckt_object *object;
	cufftHandle plan;
	if (!ckt_fft_set_work_area_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cufft_plan(call->worker, args.plan, &object, &plan);
	return result ? (int)result : (int)ckt_library_batched(call, CALL(set_work_area, plan, (void *)(uintptr_t)args.address), &once);
}

static int set_auto_allocation(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_fft_set_auto_allocation_args args;
	struct ckt_object *object;
	cufftHandle plan;
	if (!ckt_fft_set_auto_allocation_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cufft_plan(call->worker, args.plan, &object, &plan);
	return result ? (int)result : (int)ckt_library_batched(call, CALL(set_auto_allocation, plan, args.allocate), &once);
}

static int set_property(struct ckt_wcall *call)
{
	struct ckt_fft_set_property_args args;
	struct ckt_object *object;
	cufftHandle plan;
	if (!ckt_fft_set_property_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cufft_plan(call->worker, args.plan, &object, &plan);
	if (result)
		return result;
	cufftProperty property = (cufftProperty)args.property;
	struct ckt_fft_set_property_res res = {.status = args.reset ? CALL(reset_property, plan, property) : CALL(set_property, plan, property, args.value)};
	ANSWER(fft_set_property, res);
}

static int get_property(struct ckt_wcall *call)
{
	struct ckt_fft_get_property_args args;
	struct ckt_object *object;
	cufftHandle plan;
	long long value = 0;
	if (!ckt_fft_get_property_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cufft_plan(call->worker, args.plan, &object, &plan);
	if (result)
		return result;
	struct ckt_fft_get_property_res res = {.status = CALL(get_property, plan, (cufftProperty)args.property, &value)};
	res.value = value;
	ANSWER(fft_get_property, res);
}

static int set_policy(struct ckt_wcall *call)
{
	struct ckt_fft_set_policy_args args;
	struct ckt_object *object;
	cufftHandle plan;
	if (!ckt_fft_set_policy_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cufft_plan(call->worker, args.plan, &object, &plan);
	if (result)
		return result;
	size_t bytes = args.bytes;
	struct ckt_fft_set_policy_res res = {.status = CALL(set_policy, plan, (cufftXtWorkAreaPolicy)args.policy, args.given ? &bytes : NULL)};
	res.bytes = bytes;
	ANSWER(fft_set_policy, res);
}

static int32_t run(cufftHandle plan, const struct ckt_fft_execute_args *args)
{
	void *in = (void *)(uintptr_t)args->in, *out = (void *)(uintptr_t)args->out;
	switch (args->function) {
	case 0:
		return CALL(exec_xt, plan, in, out, args->direction);
	case CUFFT_C2C:
		return CALL(exec_c2c, plan, in, out, args->direction);
	case CUFFT_R2C:
		return CALL(exec_r2c, plan, in, out);
	case CUFFT_C2R:
		return CALL(exec_c2r, plan, in, out);
	case CUFFT_Z2Z:
		return CALL(exec_z2z, plan, in, out, args->direction);
	case CUFFT_D2Z:
		return CALL(exec_d2z, plan, in, out);
	case CUFFT_Z2D:
		return CALL(exec_z2d, plan, in, out);
	default:
		return CUFFT_INVALID_TYPE;
	}
}

static int execute(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_fft_execute_args args;
	struct ckt_object *object;
	cufftHandle plan;
	CUstream stream;
	if (!ckt_fft_execute_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cufft_plan(call->worker, args.plan, &object, &plan);
	if (!result)
		result = ckt_object_stream(call->worker, args.stream, &stream);
	if (result)
		return result;
	struct plan *notes = object->library->data;
	int32_t status = CUFFT_SUCCESS;
	if (notes->stream != stream)
		status = CALL(set_stream, plan, (cudaStream_t)stream);
	if (status == CUFFT_SUCCESS) {
		notes->stream = stream;
		status = run(plan, &args);
	}
	return (int)ckt_library_batched(call, status, &once);
}

/* Every call's object is its first argument.  A property is a setting of its own: its number is the key. */
static const struct ckt_proc procs[] = {
	[CKT_CUFFT_PROC_FFT_OPEN] = {"cufftOpen", open_library, 0},
	[CKT_CUFFT_PROC_FFT_CREATE] = {"cufftCreate", create, CKT_PROC_NUMBERED | CKT_PROC_CREATES},
	[CKT_CUFFT_PROC_FFT_DESTROY] = {"cufftDestroy", destroy_plan, CKT_PROC_BATCHED | CKT_PROC_NUMBERED | CKT_PROC_DESTROYS},
	[CKT_CUFFT_PROC_FFT_MAKE] = {"cufftMakePlan", ckt_worker_fft_make, CKT_PROC_NUMBERED | CKT_PROC_SETS},
	[CKT_CUFFT_PROC_FFT_MEASURE] = {"cufftEstimate", ckt_worker_fft_measure, 0},
	[CKT_CUFFT_PROC_FFT_SIZE] = {"cufftGetSize", size, 0},
	[CKT_CUFFT_PROC_FFT_SET_WORK_AREA] = {"cufftSetWorkArea", set_work_area, CKT_PROC_BATCHED | CKT_PROC_NUMBERED | CKT_PROC_SETS},
	[CKT_CUFFT_PROC_FFT_SET_AUTO_ALLOCATION] = {"cufftSetAutoAllocation", set_auto_allocation,
		CKT_PROC_BATCHED | CKT_PROC_NUMBERED | CKT_PROC_SETS},
	[CKT_CUFFT_PROC_FFT_SET_PROPERTY] = {"cufftSetPlanPropertyInt64", set_property, CKT_PROC_NUMBERED | CKT_PROC_SETS,
		.key_at = 8, .key_bytes = 4},
	[CKT_CUFFT_PROC_FFT_GET_PROPERTY] = {"cufftGetPlanPropertyInt64", get_property, 0},
	[CKT_CUFFT_PROC_FFT_SET_POLICY] = {"cufftXtSetWorkAreaPolicy", set_policy, CKT_PROC_NUMBERED | CKT_PROC_SETS},
	[CKT_CUFFT_PROC_FFT_EXECUTE] = {"cufftExec", execute, CKT_PROC_BATCHED | CKT_PROC_NUMBERED},
};
static const unsigned proc_count = sizeof procs / sizeof *procs;

const struct ckt_library ckt_library_cufft = {
	.name = "cufft",
	.soname = "libcufft.so",
	.lib = CKT_LIB_CUFFT,
	.procs = procs,
	.proc_count = &proc_count,
	.functions = &functions,
	.version = version,
	.version_unit = 1000,
	.object_bytes = 64 << 10,
	.destroy = destroy,
	.ends_beside = true,
};
