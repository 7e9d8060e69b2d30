/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/cublasLt/light.c: handles, versions, names. */
#include <cublasLt.h>

#include "softlibs.h"

static void test_handle(void)
{
	cublasLtHandle_t handle = NULL;
	IS(cublasLtCreate(NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtDestroy(NULL), CUBLAS_STATUS_NOT_INITIALIZED);
	OK(cublasLtCreate(&handle));
	YES(handle != NULL);
	OK(cublasLtDestroy(handle));
}

static void test_version(void)
{
	int part = -1;
	IS(cublasLtGetVersion(), CUBLAS_VERSION);
	IS(cublasLtGetCudartVersion(), CUDART_VERSION);
	OK(cublasLtGetProperty(MINOR_VERSION, &part));
	IS(part, CUBLAS_VER_MINOR);
	IS(cublasLtGetProperty((libraryPropertyType)-1, &part), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtGetProperty(MAJOR_VERSION, NULL), CUBLAS_STATUS_INVALID_VALUE);
	TEXT(cublasLtGetStatusName(CUBLAS_STATUS_INVALID_VALUE), "CUBLAS_STATUS_INVALID_VALUE");
	TEXT(cublasLtGetStatusString((cublasStatus_t)77), "<unknown>");
}

static void test_cache(void)
{
	size_t capacity = 7;
	OK(cublasLtHeuristicsCacheGetCapacity(&capacity));
	IS(capacity, 0);
	IS(cublasLtHeuristicsCacheGetCapacity(NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtLoggerSetLevel(2), CUBLAS_STATUS_NOT_SUPPORTED);
}

UNIT_SUITE(light, {"handle", test_handle}, {"version", test_version}, {"cache", test_cache})
