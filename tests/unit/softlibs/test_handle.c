/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/cublas/handle.c: what is set of a handle is what is got, and what is refused. */
#include "softlibs.h"

static void test_create(void)
{
	cublasHandle_t handle = NULL;
	CUcontext context = NULL;
	IS(cublasCreate_v2(NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasDestroy_v2(NULL), CUBLAS_STATUS_NOT_INITIALIZED);
	/* A thread without a context gets the first device's. */
	OK(cuInit(0));
	OK(cuCtxSetCurrent(NULL));
	OK(cublasCreate_v2(&handle));
	OK(cuCtxGetCurrent(&context));
	YES(context != NULL);
	OK(cublasDestroy_v2(handle));
}

static void test_version(void)
{
	int version = 0, part = 0, built = 0;
	OK(cublasGetVersion_v2(NULL, &version));
	IS(version, CUBLAS_VERSION);
	OK(cublasGetProperty(MAJOR_VERSION, &part));
	built = part * 10000;
	OK(cublasGetProperty(MINOR_VERSION, &part));
	built += part * 100;
	OK(cublasGetProperty(PATCH_LEVEL, &part));
	IS(built + part, version);
	IS(cublasGetProperty((libraryPropertyType)3, &part), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasGetProperty(MAJOR_VERSION, NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasGetVersion_v2(NULL, NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasGetCudartVersion(), CUDART_VERSION);
}

#define ROUND(name, type, first, second, bad)                                              \
	do {                                                                               \
		type value;                                                                \
		OK(cublasGet##name(lib_handle, &value));                                   \
		IS(value, first);                                                          \
		OK(cublasSet##name(lib_handle, second));                                   \
		OK(cublasGet##name(lib_handle, &value));                                   \
		IS(value, second);                                                         \
		IS(cublasSet##name(lib_handle, (type)(bad)), CUBLAS_STATUS_INVALID_VALUE); \
		OK(cublasGet##name(lib_handle, &value));                                   \
		IS(value, second);                                                         \
		IS(cublasSet##name(NULL, second), CUBLAS_STATUS_NOT_INITIALIZED);          \
		IS(cublasGet##name(NULL, &value), CUBLAS_STATUS_NOT_INITIALIZED);          \
		IS(cublasGet##name(lib_handle, NULL), CUBLAS_STATUS_INVALID_VALUE);        \
	} while (0)

static void test_modes(void)
{
	cudaStream_t stream = NULL;
	lib_begin();
	ROUND(PointerMode_v2, cublasPointerMode_t, CUBLAS_POINTER_MODE_HOST,
		CUBLAS_POINTER_MODE_DEVICE, 2);
	ROUND(AtomicsMode, cublasAtomicsMode_t, CUBLAS_ATOMICS_NOT_ALLOWED, CUBLAS_ATOMICS_ALLOWED,
		7);
	ROUND(MathMode, cublasMath_t, CUBLAS_DEFAULT_MATH, CUBLAS_TF32_TENSOR_OP_MATH, 5);
	ROUND(SmCountTarget, int, 0, 12, -1);
	OK(cublasSetMathMode(lib_handle,
		CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
	OK(cublasGetStream_v2(lib_handle, &stream));
	YES(stream == (cudaStream_t)lib_stream);
	IS(cublasGetStream_v2(lib_handle, NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetStream_v2(NULL, stream), CUBLAS_STATUS_NOT_INITIALIZED);
	lib_end();
}

static void test_workspace(void)
{
	CUdeviceptr p;
	lib_begin();
	OK(cuMemAlloc(&p, 1 << 20));
	OK(cublasSetWorkspace_v2(lib_handle, (void *)(uintptr_t)p, 1 << 20));
	IS(cublasSetWorkspace_v2(lib_handle, (void *)(uintptr_t)(p + 4), 1 << 10),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetWorkspace_v2(NULL, NULL, 0), CUBLAS_STATUS_NOT_INITIALIZED);
	OK(cublasSetWorkspace_v2(lib_handle, NULL, 0));
	OK(cuMemFree(p));
	lib_end();
}

static void test_names(void)
{
	TEXT(cublasGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
	TEXT(cublasGetStatusName((cublasStatus_t)99), "<unknown>");
	HAS(cublasGetStatusString(CUBLAS_STATUS_ALLOC_FAILED), "allocation");
	TEXT(cublasGetStatusString((cublasStatus_t)2), "<unknown>");
}

UNIT_SUITE(handle, {"create", test_create}, {"version", test_version}, {"modes", test_modes},
	{"workspace", test_workspace}, {"names of statuses", test_names})
