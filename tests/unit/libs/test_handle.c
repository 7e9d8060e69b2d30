/* SPDX-License-Identifier: Apache-2.0 */
/* client/libs/cublas/handle.c: handles of cuBLAS, what is set of them, and what that costs. */
#include "client/libs/cublas/cublas.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/stream.h"
#include "tests/unit/libs/double_cublas.h"
#include "tests/unit/libs/loop.h"

static cublasHandle_t make(void)
{
	cublasHandle_t handle = NULL;
	double_basics();
	MUST(cublasCreate_v2(&handle), CUBLAS_STATUS_SUCCESS);
	return handle;
}

static void test_life(void)
{
	cublasHandle_t handle;
	double_basics();
	IS(cublasCreate_v2(NULL), CUBLAS_STATUS_INVALID_VALUE);
	/* What the genuine library says, and what the session says. */
	double_cublas.status = CUBLAS_STATUS_ALLOC_FAILED;
	IS(cublasCreate_v2(&handle), CUBLAS_STATUS_ALLOC_FAILED);
	double_cublas.status = 0;
	MUST(cublasCreate_v2(&handle), CUBLAS_STATUS_SUCCESS);
	IS(double_cublas.created, 2);
	loop_error = CUDA_ERROR_OUT_OF_MEMORY;
	cublasHandle_t other = handle;
	IS(cublasCreate_v2(&other), CUBLAS_STATUS_ALLOC_FAILED);
	YES(other == handle);
	loop_error = CUDA_SUCCESS;
	loop_mark();
	IS(cublasDestroy_v2(handle), CUBLAS_STATUS_SUCCESS);
	IS(loop_waited, 0);
	IS(double_cublas.destroyed, 1);
	IS(cublasDestroy_v2(NULL), CUBLAS_STATUS_NOT_INITIALIZED);
	IS(loop_deferred(), CUDA_SUCCESS);
}

static void test_answers_are_local(void)
{
	cublasHandle_t handle = make();
	cudaStream_t stream = (cudaStream_t)7;
	cublasPointerMode_t pointer = CUBLAS_POINTER_MODE_DEVICE;
	cublasMath_t math = CUBLAS_PEDANTIC_MATH;
	cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_ALLOWED;
	int count = 9, *bits = &count;
	loop_mark();
	IS(cublasGetStream_v2(handle, &stream), CUBLAS_STATUS_SUCCESS);
	YES(stream == NULL);
	IS(cublasGetPointerMode_v2(handle, &pointer), CUBLAS_STATUS_SUCCESS);
	IS(pointer, CUBLAS_POINTER_MODE_HOST);
	IS(cublasGetMathMode(handle, &math), CUBLAS_STATUS_SUCCESS);
	IS(math, CUBLAS_DEFAULT_MATH);
	IS(cublasGetAtomicsMode(handle, &atomics), CUBLAS_STATUS_SUCCESS);
	IS(cublasGetSmCountTarget(handle, &count), CUBLAS_STATUS_SUCCESS);
	IS(count, 0);
	IS(cublasSetFixedPointEmulationMantissaBitCountPointer(handle, (int *)0x1234),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasGetFixedPointEmulationMantissaBitCountPointer(handle, &bits),
		CUBLAS_STATUS_SUCCESS);
	YES(bits == (int *)0x1234);
	IS(cublasGetStream_v2(handle, NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasGetMathMode(handle, NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasGetPointerMode_v2(NULL, &pointer), CUBLAS_STATUS_NOT_INITIALIZED);
	IS(cublasSetPointerMode_v2(handle, (cublasPointerMode_t)2), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetMathMode(handle, (cublasMath_t)5), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetMathMode(handle,
		   (cublasMath_t)(CUBLAS_DEFAULT_MATH |
			   CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasSetSmCountTarget(handle, -1), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetStream_v2(handle, (cudaStream_t)0x777777), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetWorkspace_v2(handle, (void *)0x1010, 4096), CUBLAS_STATUS_INVALID_VALUE);
	IS(loop_waited + loop_batched, 0);
	cublasDestroy_v2(handle);
}

/* What a program sets before every call, as PyTorch does, costs one message, once. */
static void test_set_at_once(void)
{
	cublasHandle_t handle = make();
	uint64_t memory = inside_memory(65536, 0);
	MUST(ckt_worker_stream_make(&ckt_worker, ID(STREAM, 40), 0, 0), CUDA_SUCCESS);
	cudaStream_t stream = (cudaStream_t)(uintptr_t)ID(STREAM, 40);
	for (int i = 0; i < 3; i++) {
		loop_mark();
		IS(cublasSetStream_v2(handle, stream), CUBLAS_STATUS_SUCCESS);
		IS(cublasSetWorkspace_v2(handle, (void *)(uintptr_t)memory, 65536),
			CUBLAS_STATUS_SUCCESS);
		IS(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
		IS(loop_batched, 0);
		YES(ckt_cublas_take_handle(handle) != NULL);
		IS(loop_batched, i == 0);
		IS(loop_waited, 0);
		YES(double_cublas.stream != NULL && double_cublas.stream != stream);
		YES(double_cublas.workspace == (void *)(uintptr_t)memory);
		IS(double_cublas.math_mode, CUBLAS_TF32_TENSOR_OP_MATH);
	}
	/* On another stream the library has what it has. */
	IS(cublasSetStream_v2(handle, NULL), CUBLAS_STATUS_SUCCESS);
	ckt_cublas_take_handle(handle);
	YES(double_cublas.workspace == NULL);
	/* None is not that. */
	IS(cublasSetWorkspace_v2(handle, NULL, 0), CUBLAS_STATUS_SUCCESS);
	ckt_cublas_take_handle(handle);
	YES(double_cublas.workspace != NULL);
	IS(double_cublas.workspace_bytes, 0);
	cublasDestroy_v2(handle);
	inside_free(memory);
	ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(STREAM, 40)));
	IS(loop_deferred(), CUDA_SUCCESS);
}

/*
 * Calls of a capture use memory of the session's, one for each stream; before and behind it the
 * library has its own.
 */
static void test_capture_workspace(void)
{
	cublasHandle_t handle = make();
	MUST(ckt_worker_stream_make(&ckt_worker, ID(STREAM, 41), 0, 0), CUDA_SUCCESS);
	cudaStream_t stream = (cudaStream_t)(uintptr_t)ID(STREAM, 41);
	loop_mark();
	YES(ckt_cublas_take_handle(handle) != NULL);
	IS(loop_batched, 0);
	loop_captures = true;
	ckt_cublas_take_handle(handle);
	void *first = double_cublas.workspace;
	YES(first != NULL);
	IS(double_cublas.workspace_bytes, 32 << 20);
	IS(cublasSetStream_v2(handle, stream), CUBLAS_STATUS_SUCCESS);
	ckt_cublas_take_handle(handle);
	YES(double_cublas.workspace != NULL && double_cublas.workspace != first);
	IS(cublasSetStream_v2(handle, NULL), CUBLAS_STATUS_SUCCESS);
	ckt_cublas_take_handle(handle);
	YES(double_cublas.workspace == first);
	loop_captures = false;
	ckt_cublas_take_handle(handle);
	YES(double_cublas.workspace == NULL);
	loop_mark();
	ckt_cublas_take_handle(handle);
	IS(loop_batched, 0);
	cublasDestroy_v2(handle);
	ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(STREAM, 41)));
	IS(loop_deferred(), CUDA_SUCCESS);
}

/* The program may have said how much the library's own is. */
static void test_configured_workspace(void)
{
	static const struct {
		const char *config;
		size_t bytes;
	} cases[] = {{":4096:8", 4 << 20}, {":16:8:4096:2:64:1", 4 << 20}, {":16:8", 16 << 10},
		{":4096:0:16:1", 16 << 10}, {":0:0", 0}, {"", 32 << 20}, {"4096:8", 32 << 20},
		{":4096", 32 << 20}, {":4096:8:", 32 << 20}, {":-1:8", 32 << 20},
		{":99999999999999999999:8", 32 << 20}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		cublasHandle_t handle = make();
		setenv("CUBLAS_WORKSPACE_CONFIG", cases[i].config, 1);
		loop_captures = true;
		ckt_cublas_take_handle(handle);
		IS(double_cublas.workspace_bytes, cases[i].bytes);
		YES((double_cublas.workspace != NULL) == (cases[i].bytes != 0));
		loop_captures = false;
		cublasDestroy_v2(handle);
	}
	unsetenv("CUBLAS_WORKSPACE_CONFIG");
	IS(loop_deferred(), CUDA_SUCCESS);
}

/* cuSOLVER's first call; what the genuine library answers. */
static void test_environment_mode(void)
{
	int mode = 7;
	cublasHandle_t handle = make();
	IS(cublasGetEnvironmentMode(handle, &mode), CUBLAS_STATUS_SUCCESS);
	IS(mode, 0);
	loop_mark();
	IS(cublasSetEnvironmentMode(handle, 1), CUBLAS_STATUS_SUCCESS);
	IS(loop_batched, 1);
	IS(loop_waited, 0);
	IS(double_cublas.environment_mode, 1);
	IS(cublasGetEnvironmentMode(handle, &mode), CUBLAS_STATUS_SUCCESS);
	IS(mode, 1);
	loop_mark();
	IS(cublasSetEnvironmentMode(handle, 2), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetEnvironmentMode(handle, -1), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetEnvironmentMode(NULL, 1), CUBLAS_STATUS_NOT_INITIALIZED);
	IS(cublasGetEnvironmentMode(handle, NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasGetEnvironmentMode(NULL, &mode), CUBLAS_STATUS_NOT_INITIALIZED);
	IS(loop_waited + loop_batched, 0);
	/* A build without it has no modes. */
	ckt_cublas.cublasSetEnvironmentMode = NULL;
	IS(cublasSetEnvironmentMode(handle, 0), CUBLAS_STATUS_SUCCESS);
	double_basics();
	cublasDestroy_v2(handle);
	IS(loop_deferred(), CUDA_SUCCESS);
}

/*
 * On a stream that captures a call becomes a node, and keeps the handle's workspace; a scalar
 * cannot come back from there.
 */
static void test_capture(void)
{
	float one = 1, dot = 0;
	cublasHandle_t handle = make();
	loop_captures = true;
	ckt_cublas_take_handle(handle);
	loop_mark();
	IS(cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, NULL, 2, NULL, 2, &one,
		   NULL, 2),
		CUBLAS_STATUS_SUCCESS);
	IS(loop_captured, CKT_LIB_PROC(CKT_LIB_CUBLAS, CKT_CUBLAS_PROC_CUBLASSGEMM_V2));
	IS(loop_captured_workspace, (uintptr_t)double_cublas.workspace);
	IS(cublasSdot_v2(handle, 4, NULL, 1, NULL, 1, &dot), CUBLAS_STATUS_NOT_SUPPORTED);
	/* What was neither captured nor done did not succeed. */
	loop_capture_ended = true;
	YES(cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, NULL, 2, NULL, 2, &one,
		    NULL, 2) != CUBLAS_STATUS_SUCCESS);
	loop_capture_ended = false;
	loop_captures = false;
	IS(loop_waited + loop_batched, 0);
	cublasDestroy_v2(handle);
}

static void test_errors(void)
{
	IS(ckt_cublas_of(CUDA_SUCCESS), CUBLAS_STATUS_SUCCESS);
	IS(ckt_cublas_of(CUDA_ERROR_OUT_OF_MEMORY), CUBLAS_STATUS_ALLOC_FAILED);
	IS(ckt_cublas_of(CUDA_ERROR_NOT_SUPPORTED), CUBLAS_STATUS_NOT_SUPPORTED);
	IS(ckt_cublas_of(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED), CUBLAS_STATUS_NOT_INITIALIZED);
	IS(ckt_cublas_of(CUDA_ERROR_ILLEGAL_ADDRESS), CUBLAS_STATUS_EXECUTION_FAILED);
	IS(ckt_cublas_answer(CUDA_SUCCESS, 14), CUBLAS_STATUS_INTERNAL_ERROR);
	bool once = false;
	IS(ckt_cublas_unsupported("cublasXtSgemm", &once), CUBLAS_STATUS_NOT_SUPPORTED);
	YES(once);
}

UNIT_SUITE(handle, {"life", test_life}, {"answers are local", test_answers_are_local},
	{"set at once", test_set_at_once}, {"capture workspace", test_capture_workspace},
	{"configured workspace", test_configured_workspace},
	{"environment mode", test_environment_mode}, {"capture", test_capture},
	{"errors", test_errors})
