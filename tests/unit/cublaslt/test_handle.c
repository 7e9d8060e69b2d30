/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/libs/cublasLt/handle.c: handles of ours and of cuBLAS's, versions, statuses, the library's
 * cache.
 */
#include <string.h>

#include "client/libs/cublasLt/cache.h"
#include "client/libs/cublasLt/handle.h"
#include "rpc/gen/cublas_functions.h"
#include "rpc/handle.h"
#include "server/worker/objects/context.h"
#include "tests/unit/cublaslt/bridge.h"

static void test_life(void)
{
	cublasLtHandle_t handle = NULL;
	bridge_handle();
	double_calls();
	IS(cublasLtCreate(NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtDestroy(NULL), CUBLAS_STATUS_INVALID_VALUE);
	MUST(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
	TEXT(double_calls(), "cublasLtCreate\n");
	uint64_t id = 0;
	IS(ckt_lt_handle(handle, &id), CUBLAS_STATUS_SUCCESS);
	IS(ckt_handle_kind(id), CKT_KIND_LIB_OBJECT);
	YES(ckt_library_object_find(&ckt_worker, CKT_LIB_CUBLASLT, CKT_CUBLASLT_TYPE_HANDLE, id) !=
		NULL);
	IS(cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
	TEXT(double_calls(), "cublasLtDestroy handle=4a4d\n");
	YES(ckt_library_object_find(&ckt_worker, CKT_LIB_CUBLASLT, CKT_CUBLASLT_TYPE_HANDLE, id) ==
		NULL);
	/* What the library says of a creation. */
	double_status = CUBLAS_STATUS_ALLOC_FAILED;
	handle = (cublasLtHandle_t)1;
	IS(cublasLtCreate(&handle), CUBLAS_STATUS_ALLOC_FAILED);
	YES(handle == (cublasLtHandle_t)1);
	bridge_fails = CUDA_ERROR_OUT_OF_MEMORY;
	IS(cublasLtCreate(&handle), CUBLAS_STATUS_ALLOC_FAILED);
	bridge_fails = CUDA_SUCCESS;
	double_calls();
}

/* A cuBLAS handle begins with the same member, and is cuBLAS's to destroy. */
static void test_of_cublas(void)
{
	struct {
		struct ckt_lib_object object;
		uint64_t other;
	} theirs = {.object.id = ID(LIB_OBJECT, 5), .other = 3};
	struct ckt_object *object;
	int real, count;
	cublasLtMatmulAlgo_t algo;
	static const struct ckt_library cublas = {.name = "cublas", .lib = CKT_LIB_CUBLAS};
	bridge_handle();
	IS(cublasLtMatmulAlgoInit(
		   (cublasLtHandle_t)&theirs, CUBLAS_COMPUTE_32F, 0, 0, 0, 0, 0, 1, &algo),
		CUBLAS_STATUS_INVALID_VALUE);
	MUST(ckt_library_object_add(&ckt_worker, &cublas, CKT_CUBLAS_TYPE_HANDLE, theirs.object.id,
		     &real, NULL, &object),
		CUDA_SUCCESS);
	ckt_lt_cache_clear();
	double_calls();
	IS(cublasLtMatmulAlgoInit(
		   (cublasLtHandle_t)&theirs, CUBLAS_COMPUTE_32F, 0, 0, 0, 0, 0, 1, &algo),
		CUBLAS_STATUS_SUCCESS);
	YES(strncmp(double_calls(), "cublasLtMatmulAlgoInit handle=4a4d ", 35));
	IS(cublasLtMatmulAlgoGetIds((cublasLtHandle_t)&theirs, CUBLAS_COMPUTE_32F, 0, 0, 0, 0, 0, 1,
		   &(int){0}, &count),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasLtDestroy((cublasLtHandle_t)&theirs), CUBLAS_STATUS_INVALID_VALUE);
	ckt_object_destroy(&ckt_worker, object);
	ckt_lt_cache_clear();
	double_calls();
}

static void test_versions(void)
{
	int value = -7;
	bridge_handle();
	ckt_lt_cache_clear();
	double_calls();
	bridge_reset();
	for (unsigned i = 0; i < 10; i++) {
		IS(cublasLtGetVersion(), 130100);
		IS(cublasLtGetCudartVersion(), 13000);
		IS(cublasLtGetProperty(MAJOR_VERSION, &value), CUBLAS_STATUS_SUCCESS);
		IS(value, 13);
		IS(cublasLtGetProperty(MINOR_VERSION, &value), CUBLAS_STATUS_SUCCESS);
		IS(value, 1);
		IS(cublasLtGetProperty(PATCH_LEVEL, &value), CUBLAS_STATUS_SUCCESS);
		IS(value, 4);
	}
	IS(bridge_total(), 1);
	value = -7;
	IS(cublasLtGetProperty((libraryPropertyType)3, &value), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtGetProperty((libraryPropertyType)-1, &value), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtGetProperty(MAJOR_VERSION, NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(value, -7);
	/* Without a session there is none. */
	ckt_lt_cache_clear();
	bridge_fails = CUDA_ERROR_NOT_INITIALIZED;
	IS(cublasLtGetVersion(), 0);
	bridge_fails = CUDA_SUCCESS;
	double_calls();
}

static void test_capacity(void)
{
	size_t capacity = 0;
	bridge_handle();
	double_calls();
	IS(cublasLtHeuristicsCacheSetCapacity(100), CUBLAS_STATUS_SUCCESS);
	TEXT(double_calls(), "cublasLtHeuristicsCacheSetCapacity 100\n");
	IS(cublasLtHeuristicsCacheSetCapacity(SIZE_MAX), CUBLAS_STATUS_SUCCESS);
	TEXT(double_calls(), "cublasLtHeuristicsCacheSetCapacity 65536\n");
	IS(cublasLtHeuristicsCacheGetCapacity(&capacity), CUBLAS_STATUS_SUCCESS);
	IS(capacity, 8192);
	IS(cublasLtHeuristicsCacheGetCapacity(NULL), CUBLAS_STATUS_INVALID_VALUE);
	/* It may have changed. */
	bridge_reset();
	cublasLtHeuristicsCacheGetCapacity(&capacity);
	IS(bridge_total(), 1);
	IS(cublasLtDisableCpuInstructionsSetMask(1), 0);
	IS(cublasLtDisableCpuInstructionsSetMask(0), 1);
	double_calls();
}

static void test_statuses(void)
{
	TEXT(cublasLtGetStatusName(CUBLAS_STATUS_SUCCESS), "CUBLAS_STATUS_SUCCESS");
	TEXT(cublasLtGetStatusName(CUBLAS_STATUS_LICENSE_ERROR), "CUBLAS_STATUS_LICENSE_ERROR");
	TEXT(cublasLtGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED),
		"the requested functionality is not supported");
	TEXT(cublasLtGetStatusString((cublasStatus_t)2), "unrecognized status");
	TEXT(cublasLtGetStatusName((cublasStatus_t)17), "unrecognized status");
	bool once = false;
	IS(ckt_cublasLt_unsupported("cublasLtLegacyGemmACC", &once), CUBLAS_STATUS_NOT_SUPPORTED);
	YES(once);
}

UNIT_SUITE(handle, {"life", test_life}, {"of cuBLAS", test_of_cublas}, {"versions", test_versions},
	{"capacity", test_capacity}, {"statuses", test_statuses})
