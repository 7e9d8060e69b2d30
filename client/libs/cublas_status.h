/* SPDX-License-Identifier: Apache-2.0 */
/* The session's error as a status of cuBLAS and cuBLASLt: one table for both. */
#pragma once

#include <cublas_api.h>
#include <cuda.h>

static inline cublasStatus_t ckt_lib_cublas_status(CUresult result)
{
	switch (result) {
	case CUDA_SUCCESS:
		return CUBLAS_STATUS_SUCCESS;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return CUBLAS_STATUS_ALLOC_FAILED;
	case CUDA_ERROR_INVALID_VALUE:
	case CUDA_ERROR_INVALID_HANDLE:
		return CUBLAS_STATUS_INVALID_VALUE;
	case CUDA_ERROR_NOT_SUPPORTED:
	case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
		return CUBLAS_STATUS_NOT_SUPPORTED;
	case CUDA_ERROR_NOT_INITIALIZED:
	case CUDA_ERROR_DEINITIALIZED:
	case CUDA_ERROR_NO_DEVICE:
	case CUDA_ERROR_INVALID_CONTEXT:
	case CUDA_ERROR_SHARED_OBJECT_INIT_FAILED:
		return CUBLAS_STATUS_NOT_INITIALIZED;
	default:
		return CUBLAS_STATUS_EXECUTION_FAILED;
	}
}
