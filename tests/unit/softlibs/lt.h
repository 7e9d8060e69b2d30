/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of cuBLASLt for tests, each in one call. */
#pragma once

#include <cublasLt.h>

#include "softlibs.h"

static inline cublasLtMatrixLayoutOpaque_t lt_layout(cudaDataType type, uint64_t rows,
	uint64_t columns, int64_t ld, bool row, int32_t batch, int64_t stride)
{
	cublasLtMatrixLayoutOpaque_t layout;
	int32_t order = row ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
	OK(cublasLtMatrixLayoutInit(&layout, type, rows, columns, ld));
	OK(cublasLtMatrixLayoutSetAttribute(
		&layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order));
	OK(cublasLtMatrixLayoutSetAttribute(
		&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
	OK(cublasLtMatrixLayoutSetAttribute(
		&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
	return layout;
}

static inline void lt_set32(cublasLtMatmulDesc_t product, int attribute, uint32_t value)
{
	OK(cublasLtMatmulDescSetAttribute(
		product, (cublasLtMatmulDescAttributes_t)attribute, &value, sizeof value));
}

static inline void lt_set64(cublasLtMatmulDesc_t product, int attribute, uint64_t value)
{
	OK(cublasLtMatmulDescSetAttribute(
		product, (cublasLtMatmulDescAttributes_t)attribute, &value, sizeof value));
}
