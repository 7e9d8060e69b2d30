/* SPDX-License-Identifier: Apache-2.0 */
/* Handles and their settings.  No call here waits for the stream. */
#include <stdlib.h>

#include "softgpu/libs/common/driver.h"
#include "softgpu/libs/cublas/handle.h"

CKT_CUBLAS_API cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
	CUcontext context;
	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (ckt_softlib_context(&context) != CUDA_SUCCESS)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	struct cublasContext *made = calloc(1, sizeof *made);
	if (!made)
		return CUBLAS_STATUS_ALLOC_FAILED;
	made->context = context;
	*handle = made;
	return CUBLAS_STATUS_SUCCESS;
}

/* Queued work has copies of all its data, so this does not wait. */
CKT_CUBLAS_API cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	free(handle);
	return CUBLAS_STATUS_SUCCESS;
}

CKT_CUBLAS_API cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
	(void)handle;
	if (!version)
		return CUBLAS_STATUS_INVALID_VALUE;
	*version = CUBLAS_VERSION;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_CUBLAS_API cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value)
{
	if (!value)
		return CUBLAS_STATUS_INVALID_VALUE;
	switch (type) {
	case MAJOR_VERSION:
		*value = CUBLAS_VER_MAJOR;
		return CUBLAS_STATUS_SUCCESS;
	case MINOR_VERSION:
		*value = CUBLAS_VER_MINOR;
		return CUBLAS_STATUS_SUCCESS;
	case PATCH_LEVEL:
		*value = CUBLAS_VER_PATCH;
		return CUBLAS_STATUS_SUCCESS;
	default:
		return CUBLAS_STATUS_INVALID_VALUE;
	}
}

CKT_CUBLAS_API size_t cublasGetCudartVersion(void)
{
	return CUDART_VERSION;
}

/* Setting the stream replaces the program's workspace with the handle's own. */
CKT_CUBLAS_API cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId)
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	handle->stream = (CUstream)streamId;
	handle->workspace = NULL;
	handle->workspace_bytes = 0;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_CUBLAS_API cublasStatus_t cublasSetWorkspace_v2(
	cublasHandle_t handle, void *workspace, size_t workspaceSizeInBytes)
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if ((uintptr_t)workspace % 256)
		return CUBLAS_STATUS_INVALID_VALUE;
	handle->workspace = workspace;
	handle->workspace_bytes = workspaceSizeInBytes;
	return CUBLAS_STATUS_SUCCESS;
}

static bool pointer_mode_ok(cublasPointerMode_t mode)
{
	return mode == CUBLAS_POINTER_MODE_HOST || mode == CUBLAS_POINTER_MODE_DEVICE;
}

static bool atomics_mode_ok(cublasAtomicsMode_t mode)
{
	return mode == CUBLAS_ATOMICS_NOT_ALLOWED || mode == CUBLAS_ATOMICS_ALLOWED;
}

static bool math_mode_ok(cublasMath_t mode)
{
	unsigned base =
		(unsigned)mode & ~(unsigned)CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
	return base <= CUBLAS_FP32_EMULATED_BF16X9_MATH ||
		base == CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH;
}

static bool sm_count_ok(int count)
{
	return count >= 0;
}

static bool emulation_ok(cublasEmulationStrategy_t strategy)
{
	return strategy >= CUBLAS_EMULATION_STRATEGY_DEFAULT &&
		strategy <= CUBLAS_EMULATION_STRATEGY_EAGER;
}

/* The library emulates nothing, so it only stores these settings. */
static bool any(intptr_t value)
{
	(void)value;
	return true;
}

static bool any_pointer(const int *p)
{
	(void)p;
	return true;
}

#define SETTER(name, type, field, ok)                                         \
	CKT_CUBLAS_API cublasStatus_t name(cublasHandle_t handle, type value) \
	{                                                                     \
		if (!handle)                                                  \
			return CUBLAS_STATUS_NOT_INITIALIZED;                 \
		if (!ok(value))                                               \
			return CUBLAS_STATUS_INVALID_VALUE;                   \
		handle->field = value;                                        \
		return CUBLAS_STATUS_SUCCESS;                                 \
	}
#define GETTER(name, type, field)                                              \
	CKT_CUBLAS_API cublasStatus_t name(cublasHandle_t handle, type *value) \
	{                                                                      \
		if (!handle)                                                   \
			return CUBLAS_STATUS_NOT_INITIALIZED;                  \
		if (!value)                                                    \
			return CUBLAS_STATUS_INVALID_VALUE;                    \
		*value = (type)handle->field;                                  \
		return CUBLAS_STATUS_SUCCESS;                                  \
	}

GETTER(cublasGetStream_v2, cudaStream_t, stream)
SETTER(cublasSetPointerMode_v2, cublasPointerMode_t, pointer_mode, pointer_mode_ok)
GETTER(cublasGetPointerMode_v2, cublasPointerMode_t, pointer_mode)
SETTER(cublasSetAtomicsMode, cublasAtomicsMode_t, atomics_mode, atomics_mode_ok)
GETTER(cublasGetAtomicsMode, cublasAtomicsMode_t, atomics_mode)
SETTER(cublasSetMathMode, cublasMath_t, math_mode, math_mode_ok)
GETTER(cublasGetMathMode, cublasMath_t, math_mode)
SETTER(cublasSetSmCountTarget, int, sm_count_target, sm_count_ok)
GETTER(cublasGetSmCountTarget, int, sm_count_target)
#if CUBLAS_VER_MAJOR >= 13
SETTER(cublasSetEmulationStrategy, cublasEmulationStrategy_t, emulation, emulation_ok)
GETTER(cublasGetEmulationStrategy, cublasEmulationStrategy_t, emulation)
SETTER(cublasSetEmulationSpecialValuesSupport, cudaEmulationSpecialValuesSupport, emulation_special,
	any)
GETTER(cublasGetEmulationSpecialValuesSupport, cudaEmulationSpecialValuesSupport, emulation_special)
SETTER(cublasSetFixedPointEmulationMantissaControl, cudaEmulationMantissaControl, emulation_control,
	any)
GETTER(cublasGetFixedPointEmulationMantissaControl, cudaEmulationMantissaControl, emulation_control)
SETTER(cublasSetFixedPointEmulationMaxMantissaBitCount, int, emulation_bits, any)
GETTER(cublasGetFixedPointEmulationMaxMantissaBitCount, int, emulation_bits)
SETTER(cublasSetFixedPointEmulationMantissaBitOffset, int, emulation_offset, any)
GETTER(cublasGetFixedPointEmulationMantissaBitOffset, int, emulation_offset)
SETTER(cublasSetFixedPointEmulationMantissaBitCountPointer, int *, emulation_count, any_pointer)
GETTER(cublasGetFixedPointEmulationMantissaBitCountPointer, int *, emulation_count)
#endif

static const struct {
	cublasStatus_t status;
	const char *name, *text;
} statuses[] = {
	{CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
	{CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED",
		"the library was not initialized"},
	{CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED",
		"the resource allocation failed"},
	{CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
		"an unsupported value or parameter was passed to the function"},
	{CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH",
		"the function requires an architectural feature absent from the device architecture"},
	{CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR",
		"an access to GPU memory space failed"},
	{CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED",
		"the function failed to launch on the GPU"},
	{CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR",
		"the library failed internally"},
	{CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED",
		"the functionality requested is not supported"},
	{CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR",
		"the functionality requested requires some license"},
};

CKT_CUBLAS_API const char *cublasGetStatusName(cublasStatus_t status)
{
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].status == status)
			return statuses[i].name;
	return "<unknown>";
}

CKT_CUBLAS_API const char *cublasGetStatusString(cublasStatus_t status)
{
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].status == status)
			return statuses[i].text;
	return "<unknown>";
}
