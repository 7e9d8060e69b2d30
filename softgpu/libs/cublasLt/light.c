/* SPDX-License-Identifier: Apache-2.0 */
/* Handles, which are empty here, versions and names. */
#include <stdlib.h>

#include "softgpu/libs/common/driver.h"
#include "softgpu/libs/cublasLt/objects.h"

struct cublasLtContext {
	CUcontext context;
};

CKT_CUBLAS_API cublasStatus_t cublasLtCreate(cublasLtHandle_t *lightHandle)
{
	CUcontext context;
	if (!lightHandle)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (ckt_softlib_context(&context) != CUDA_SUCCESS)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	*lightHandle = calloc(1, sizeof **lightHandle);
	if (!*lightHandle)
		return CUBLAS_STATUS_ALLOC_FAILED;
	(*lightHandle)->context = context;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_CUBLAS_API cublasStatus_t cublasLtDestroy(cublasLtHandle_t lightHandle)
{
	if (!lightHandle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	free(lightHandle);
	return CUBLAS_STATUS_SUCCESS;
}

CKT_CUBLAS_API size_t cublasLtGetVersion(void)
{
	return CUBLAS_VERSION;
}

CKT_CUBLAS_API size_t cublasLtGetCudartVersion(void)
{
	return CUDART_VERSION;
}

CKT_CUBLAS_API cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int *value)
{
	const int parts[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
	if (!value || type < MAJOR_VERSION || type > PATCH_LEVEL)
		return CUBLAS_STATUS_INVALID_VALUE;
	*value = parts[type];
	return CUBLAS_STATUS_SUCCESS;
}

static const struct {
	cublasStatus_t status;
	const char *name;
} statuses[] = {
#define NAME(status)            \
	{                       \
		status, #status \
	}
	NAME(CUBLAS_STATUS_SUCCESS),
	NAME(CUBLAS_STATUS_NOT_INITIALIZED),
	NAME(CUBLAS_STATUS_ALLOC_FAILED),
	NAME(CUBLAS_STATUS_INVALID_VALUE),
	NAME(CUBLAS_STATUS_ARCH_MISMATCH),
	NAME(CUBLAS_STATUS_MAPPING_ERROR),
	NAME(CUBLAS_STATUS_EXECUTION_FAILED),
	NAME(CUBLAS_STATUS_INTERNAL_ERROR),
	NAME(CUBLAS_STATUS_NOT_SUPPORTED),
	NAME(CUBLAS_STATUS_LICENSE_ERROR),
#undef NAME
};

CKT_CUBLAS_API const char *cublasLtGetStatusName(cublasStatus_t status)
{
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].status == status)
			return statuses[i].name;
	return "<unknown>";
}

CKT_CUBLAS_API const char *cublasLtGetStatusString(cublasStatus_t status)
{
	return cublasLtGetStatusName(status);
}

/* There is no cache, so its capacity is 0. */
CKT_CUBLAS_API cublasStatus_t cublasLtHeuristicsCacheGetCapacity(size_t *capacity)
{
	if (!capacity)
		return CUBLAS_STATUS_INVALID_VALUE;
	*capacity = 0;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_CUBLAS_API cublasStatus_t cublasLtHeuristicsCacheSetCapacity(size_t capacity)
{
	(void)capacity;
	return CUBLAS_STATUS_SUCCESS;
}

/* The library never logs.  The header declares this function without a prototype. */
cublasStatus_t cublasLtLoggerForceDisable(void);
CKT_CUBLAS_API cublasStatus_t cublasLtLoggerForceDisable(void)
{
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t ckt_soft_cublaslt_unsupported(const char *name)
{
	ckt_softlib_unsupported(name);
	return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t ckt_soft_cublaslt_status(CUresult result)
{
	switch (result) {
	case CUDA_SUCCESS:
		return CUBLAS_STATUS_SUCCESS;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return CUBLAS_STATUS_ALLOC_FAILED;
	case CUDA_ERROR_NOT_INITIALIZED:
		return CUBLAS_STATUS_NOT_INITIALIZED;
	default:
		return CUBLAS_STATUS_EXECUTION_FAILED;
	}
}
