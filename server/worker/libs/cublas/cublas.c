/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers that create cuBLAS's handles and set their properties; the generator makes the rest.
 * See cublas.h.
 */
#include "server/worker/libs/cublas/cublas.h"

#include <stdlib.h>

#include "base/log.h"
#include "server/worker/libs/library_long_call.h"
#include "server/worker/libs/state.h"
#include "server/worker/objects/context.h"
#include "server/worker/worker.h"

/* Our notes on the genuine handle. */
struct notes {
	uint32_t pointer_mode;
	struct ckt_cublas_set_args set; /* as the client set it last */
};

static uint32_t version(void)
{
	int found = 0;
	if (ckt_cublas.cublasGetVersion_v2)
		ckt_cublas.cublasGetVersion_v2(NULL, &found);
	return (uint32_t)found;
}

static void destroy(struct ckt_worker *worker, struct ckt_object *object)
{
	cublasStatus_t status = ckt_cublas.cublasDestroy_v2(object->real);
	if (status)
		ckt_warning("cublasDestroy_v2: status %d", (int)status);
}

static int use_stream(struct ckt_worker *worker, struct ckt_object *object, CUstream stream)
{
	const struct notes *notes = object->library->data;
	CUstream real = stream;
	if (stream == (CUstream)-1 && ckt_object_stream(worker, notes->set.stream, &real))
		return CUBLAS_STATUS_EXECUTION_FAILED;
	cublasStatus_t status = ckt_cublas.cublasSetStream_v2(object->real, (cudaStream_t)real);
	/* The library drops the workspace when the stream changes. */
	if (!status && (notes->set.workspace || notes->set.workspace_bytes))
		status = ckt_cublas.cublasSetWorkspace_v2(object->real,
			(void *)(uintptr_t)notes->set.workspace, notes->set.workspace_bytes);
	return (int)status;
}

const struct ckt_library ckt_library_cublas = {
	.name = "cublas",
	.soname = "libcublas.so",
	.lib = CKT_LIB_CUBLAS,
	.procs = ckt_cublas_procs,
	.proc_count = &ckt_cublas_proc_count,
	.functions = &ckt_cublas_functions,
	.version = version,
	.object_bytes = 64 << 10,
	.destroy = destroy,
	.ends_beside = true,
	.use_stream = use_stream,
};

int ckt_worker_cublas_open(struct ckt_wcall *call)
{
	return ckt_library_open_call(call, &ckt_library_cublas);
}

/*
 * The properties of a handle besides stream and workspace: the part of the functions' names, the
 * type, the field of the messages.
 */
#define PROPERTIES(X)                                                               \
	X(MathMode, cublasMath_t, math_mode)                                        \
	X(AtomicsMode, cublasAtomicsMode_t, atomics_mode)                           \
	X(SmCountTarget, int, sm_count_target)                                      \
	X(EmulationStrategy, cublasEmulationStrategy_t, emulation_strategy)         \
	X(EmulationSpecialValuesSupport, cudaEmulationSpecialValuesSupport,         \
		emulation_special_values)                                           \
	X(FixedPointEmulationMantissaControl, cudaEmulationMantissaControl,         \
		emulation_mantissa_control)                                         \
	X(FixedPointEmulationMaxMantissaBitCount, int, emulation_max_mantissa_bits) \
	X(FixedPointEmulationMantissaBitOffset, int, emulation_mantissa_bit_offset)

/* The initial value of the genuine handle; 0 if the library has no such property. */
#define ASK(name, type, field)                                                                \
	{                                                                                     \
		type value_ = (type)0;                                                        \
		if (ckt_cublas.cublasGet##name && !ckt_cublas.cublasGet##name(real, &value_)) \
			ret->field = (int32_t)value_;                                         \
	}
#define GIVE(name, type, field) res.field = notes->set.field;

static void ask(cublasHandle_t real, struct ckt_cublas_set_args *ret)
{
	PROPERTIES(ASK)
}

/*
 * A handle that is being created: for the first handle the library loads its modules, which takes
 * seconds, and it waits for the GPU.
 */
struct making {
	struct ckt_library_long_call beside;
	uint64_t id;
	cublasHandle_t real;
	cublasStatus_t status;
	struct ckt_cublas_set_args set;
};

static void make(struct ckt_library_long_call *beside)
{
	struct making *making = (struct making *)beside;
	making->status = ckt_cublas.cublasCreate_v2(&making->real);
	beside->failed = making->status != CUBLAS_STATUS_SUCCESS;
	if (!beside->failed)
		ask(making->real, &making->set);
}

static CUresult enter(
	struct ckt_worker *worker, const struct making *making, struct notes **ret_notes)
{
	struct ckt_object *object;
	struct notes *notes = calloc(1, sizeof *notes);
	CUresult result = notes
		? ckt_library_object_add(worker, &ckt_library_cublas, CKT_CUBLAS_TYPE_HANDLE,
			  making->id, making->real, notes, &object)
		: CUDA_ERROR_OUT_OF_MEMORY;
	if (result) {
		free(notes);
		ckt_cublas.cublasDestroy_v2(making->real);
		return result;
	}
	notes->set = making->set;
	notes->set.handle = making->id;
	*ret_notes = notes;
	return CUDA_SUCCESS;
}

static int made(struct ckt_library_long_call *beside)
{
	const struct making *making = (struct making *)beside;
	struct ckt_wcall *call = beside->call;
	struct ckt_cublasCreate_v2_res res = {.status = (int32_t)making->status};
	struct notes *notes;
	call->status = res.status;
	if (!res.status) {
		CUresult result = enter(call->worker, making, &notes);
		if (result)
			return result;
		PROPERTIES(GIVE)
	}
	ckt_cublasCreate_v2_res_put(
		ckt_wcall_results(call, ckt_cublasCreate_v2_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_cublasCreate_v2(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_cublasCreate_v2_args args;
	if (!ckt_cublasCreate_v2_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (!ckt_cublas.cublasCreate_v2)
		return ckt_library_lacks(call, &once);
	struct making *making = calloc(1, sizeof *making);
	if (!making)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*making = (struct making){
		.beside = {.run = make, .done = made, .owner = args.handle}, .id = args.handle};
	return ckt_library_long_call(call, &making->beside);
}

int ckt_worker_cublasDestroy_v2(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_cublasDestroy_v2_args args;
	if (!ckt_cublasDestroy_v2_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object = ckt_library_object_find(
		call->worker, CKT_LIB_CUBLAS, CKT_CUBLAS_TYPE_HANDLE, args.handle);
	/* To the program, the handle may have ended with its context. */
	if (object)
		ckt_object_destroy(call->worker, object);
	return ckt_library_done(call, 0, &once);
}

void ckt_worker_cublas_use_pointer_mode(struct ckt_object *handle, uint32_t mode)
{
	struct notes *notes = handle->library->data;
	if (notes->pointer_mode == mode)
		return;
	ckt_cublas.cublasSetPointerMode_v2(
		handle->real, mode ? CUBLAS_POINTER_MODE_DEVICE : CUBLAS_POINTER_MODE_HOST);
	notes->pointer_mode = mode;
}

/*
 * ---- One message sets all properties of a handle
 */

/* Sets one property if it changed and the library has it; keeps the first status that is not 0. */
#define SET(name, type, field)                                                     \
	if (args->field != before->field && ckt_cublas.cublasSet##name && !status) \
		status = (int)ckt_cublas.cublasSet##name(real, (type)args->field);

static int set_properties(cublasHandle_t real, const struct ckt_cublas_set_args *args,
	const struct ckt_cublas_set_args *before)
{
	int status = 0;
	PROPERTIES(SET)
	SET(FixedPointEmulationMantissaBitCountPointer, int *, emulation_bit_count)
	return status;
}

/*
 * The library drops the workspace when the stream changes, so the workspace is set again.  Setting
 * the stream is also how the library gets its own workspace back.
 */
static int set_stream(struct ckt_object *object, CUstream stream,
	const struct ckt_cublas_set_args *args, const struct ckt_cublas_set_args *before)
{
	int status = 0;
	bool given = args->workspace || args->workspace_bytes;
	bool other = args->workspace != before->workspace ||
		args->workspace_bytes != before->workspace_bytes;
	bool moved = args->stream != before->stream || (other && !given);
	if (moved)
		status = (int)ckt_cublas.cublasSetStream_v2(object->real, (cudaStream_t)stream);
	if (!status && given && (moved || other))
		status = (int)ckt_cublas.cublasSetWorkspace_v2(
			object->real, (void *)(uintptr_t)args->workspace, args->workspace_bytes);
	object->library->stream = args->stream;
	return status;
}

/*
 * A program may have destroyed the stream that it set before the checkpoint.  The handle then keeps
 * its stream, and a call that uses it fails because of the stream's id.
 */
static CUresult find_stream(const struct ckt_wcall *call, uint64_t id, CUstream *ret_stream)
{
	CUresult result = ckt_object_stream(call->worker, id, ret_stream);
	if (result != CUDA_ERROR_INVALID_HANDLE || !ckt_worker_lib_is_replay())
		return result;
	*ret_stream = NULL;
	return CUDA_SUCCESS;
}

int ckt_worker_cublas_set(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_cublas_set_args args;
	CUstream stream;
	if (!ckt_cublas_set_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object = ckt_library_object_find(
		call->worker, CKT_LIB_CUBLAS, CKT_CUBLAS_TYPE_HANDLE, args.handle);
	CUresult result =
		object ? find_stream(call, args.stream, &stream) : CUDA_ERROR_INVALID_HANDLE;
	if (result)
		return result;
	struct notes *notes = object->library->data;
	int status = set_stream(object, stream, &args, &notes->set);
	int other = set_properties(object->real, &args, &notes->set);
	notes->set = args;
	call->status = status ? status : other;
	return ckt_library_done(call, call->status, &once);
}

int ckt_worker_cublas_set_environment_mode(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_cublas_set_environment_mode_args args;
	if (!ckt_cublas_set_environment_mode_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object = ckt_library_object_find(
		call->worker, CKT_LIB_CUBLAS, CKT_CUBLAS_TYPE_HANDLE, args.handle);
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	/* A build without the function has nothing that the mode would change. */
	if (ckt_cublas.cublasSetEnvironmentMode)
		call->status = (int)ckt_cublas.cublasSetEnvironmentMode(object->real, args.mode);
	return ckt_library_done(call, call->status, &once);
}
