/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLAS as C sees it here, on both sides: NVIDIA's header declares some functions in C++ only, and
 * those need types that C lacks.
 */
#pragma once

#include <cublas_api.h>
#include <stdbool.h>
#include <stddef.h>

#ifndef __cplusplus
typedef __half_raw __half;
typedef __nv_bfloat16_raw __nv_bfloat16;
#endif

#include "rpc/cublas_exported.h"

/* Bytes of an element; 0 for a type that no scalar has. */
static inline size_t ckt_cublas_type_bytes(cudaDataType type)
{
	switch (type) {
	case CUDA_R_8I:
	case CUDA_R_8U:
		return 1;
	case CUDA_R_16F:
	case CUDA_R_16BF:
		return 2;
	case CUDA_R_32F:
	case CUDA_R_32I:
	case CUDA_R_32U:
	case CUDA_C_16F:
	case CUDA_C_16BF:
		return 4;
	case CUDA_R_64F:
	case CUDA_C_32F:
		return 8;
	case CUDA_C_64F:
		return 16;
	default:
		return 0;
	}
}

/* Bytes of alpha and beta, which have the compute type, complex if the result is complex. */
static inline size_t ckt_cublas_scale_bytes(cublasComputeType_t compute, cudaDataType result)
{
	bool complex = result == CUDA_C_32F || result == CUDA_C_64F || result == CUDA_C_16F ||
		result == CUDA_C_16BF || result == CUDA_C_8I;
	switch (compute) {
	case CUBLAS_COMPUTE_16F:
	case CUBLAS_COMPUTE_16F_PEDANTIC:
		return complex ? 4 : 2;
	case CUBLAS_COMPUTE_32I:
	case CUBLAS_COMPUTE_32I_PEDANTIC:
		return 4;
	case CUBLAS_COMPUTE_64F:
	case CUBLAS_COMPUTE_64F_PEDANTIC:
	case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT:
		return complex ? 16 : 8;
	default:
		return complex ? 8 : 4;
	}
}
