/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that libcublasLt.so of CUDA 13.2 and 13.5 exports but older headers do not declare. The
 * generator reads this file beside those headers, so that the shim and the worker know these
 * functions whatever toolkit builds them.  Newer headers declare the same.
 */
#pragma once

#include <cublasLt.h>

#ifdef __cplusplus
extern "C" {
#endif

cublasStatus_t cublasLtGroupedMatrixLayoutInit_internal(cublasLtMatrixLayout_t matLayout,
	size_t size, cudaDataType type, int groupCount, const void *rows_array,
	const void *cols_array, const void *ld_array);
cublasStatus_t cublasLtGroupedMatrixLayoutCreate(cublasLtMatrixLayout_t *matLayout,
	cudaDataType type, int groupCount, const void *rows_array, const void *cols_array,
	const void *ld_array);
cublasStatus_t cublasLtMatmulAlgoGetHeuristicForStream(cublasLtHandle_t lightHandle,
	cublasLtMatmulDesc_t operationDesc, cublasLtMatrixLayout_t Adesc,
	cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
	cublasLtMatmulPreference_t preference, int requestedAlgoCount,
	cublasLtMatmulHeuristicResult_t heuristicResultsArray[], int *returnAlgoCount,
	cudaStream_t stream);
cublasStatus_t cublasLtMatmulAlgoCheckForStream(cublasLtHandle_t lightHandle,
	cublasLtMatmulDesc_t operationDesc, cublasLtMatrixLayout_t Adesc,
	cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
	const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result,
	cudaStream_t stream);

#ifdef __cplusplus
}
#endif
