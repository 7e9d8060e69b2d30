/* SPDX-License-Identifier: Apache-2.0 */
/* What the shim of cuBLAS answers without a handle: versions, texts. */
#include <stdio.h>

#include "client/libs/cublas/cublas.h"

/* As the genuine library was built with. */
enum { RUNTIME_VERSION = CUDART_VERSION };

CKT_LIB_EXPORT cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
	uint32_t found;
	CKT_CUBLAS_LOG();
	if (!version)
		return CUBLAS_STATUS_INVALID_VALUE;
	cublasStatus_t status = ckt_cublas_open(&found);
	if (!status)
		*version = (int)found;
	return status;
}

CKT_LIB_EXPORT cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value)
{
	uint32_t found;
	CKT_CUBLAS_LOG();
	if (!value || (unsigned)type > PATCH_LEVEL)
		return CUBLAS_STATUS_INVALID_VALUE;
	cublasStatus_t status = ckt_cublas_open(&found);
	if (!status)
		*value = (int)(type == MAJOR_VERSION    ? found / 10000
				: type == MINOR_VERSION ? found / 100 % 100
							: found % 100);
	return status;
}

CKT_LIB_EXPORT size_t cublasGetCudartVersion(void)
{
	return RUNTIME_VERSION;
}

/* Status, the name of its constant, and the sentence that the genuine library has for it. */
static const struct {
	cublasStatus_t status;
	const char *name, *text;
} texts[] = {
	{CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
	{CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED",
		"the library was not initialized"},
	{CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED",
		"the resource allocation failed"},
	{CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
		"an unsupported value or parameter was passed to the function"},
	{CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH",
		"the function requires an architectural feature absent from the device"},
	{CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR",
		"an access to GPU memory space failed"},
	{CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED",
		"the function failed to launch on the GPU"},
	{CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR",
		"an internal operation failed"},
	{CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED",
		"the functionality requested is not supported"},
	{CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR",
		"an error was detected when checking the current licensing"},
};

CKT_LIB_EXPORT const char *cublasGetStatusName(cublasStatus_t status)
{
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i].status == status)
			return texts[i].name;
	return "CUBLAS_STATUS_UNKNOWN";
}

CKT_LIB_EXPORT const char *cublasGetStatusString(cublasStatus_t status)
{
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i].status == status)
			return texts[i].text;
	return "unknown status";
}

CKT_LIB_EXPORT void cublasXerbla(const char *name, int info)
{
	fprintf(stderr, " ** On entry to %-6s parameter number %d had an illegal value\n", name,
		info);
}
