/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/cublasLt/descriptor.c: descriptors on the heap and in the program's own memory. */
#include <cublasLt.h>

#include "softlibs.h"

static void test_layout(void)
{
	cublasLtMatrixLayout_t layout = NULL;
	cublasLtMatrixLayoutOpaque_t own, copy;
	uint64_t rows = 0;
	int64_t ld = 0, stride = 12;
	int32_t order = -1, batch = 3;
	size_t size = 0;
	IS(cublasLtMatrixLayoutCreate(NULL, CUDA_R_32F, 2, 3, 4), CUBLAS_STATUS_INVALID_VALUE);
	OK(cublasLtMatrixLayoutCreate(&layout, CUDA_R_16F, 2, 3, 4));
	OK(cublasLtMatrixLayoutGetAttribute(
		layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows, &size));
	IS(rows, 2);
	IS(size, 8);
	OK(cublasLtMatrixLayoutSetAttribute(
		layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
	OK(cublasLtMatrixLayoutSetAttribute(
		layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
	batch = 0;
	OK(cublasLtMatrixLayoutGetAttribute(
		layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch, NULL));
	IS(batch, 3);
	IS(cublasLtMatrixLayoutSetAttribute(
		   layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &stride, sizeof stride),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatrixLayoutSetAttribute(layout, (cublasLtMatrixLayoutAttribute_t)99, &batch, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatrixLayoutGetAttribute(NULL, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, 8, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	OK(cublasLtMatrixLayoutDestroy(layout));
	OK(cublasLtMatrixLayoutDestroy(NULL));
	OK(cublasLtMatrixLayoutInit(&own, CUDA_R_32F, 5, 6, 7));
	copy = own;
	OK(cublasLtMatrixLayoutGetAttribute(
		&copy, CUBLASLT_MATRIX_LAYOUT_LD, &ld, sizeof ld, NULL));
	OK(cublasLtMatrixLayoutGetAttribute(
		&copy, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order, NULL));
	IS(ld, 7);
	IS(order, CUBLASLT_ORDER_COL);
	IS(cublasLtMatrixLayoutInit_internal(&own, 8, CUDA_R_32F, 5, 6, 7),
		CUBLAS_STATUS_ALLOC_FAILED);
}

static void test_others(void)
{
	cublasLtMatmulDesc_t product = NULL;
	cublasLtMatrixTransformDesc_t transform = NULL;
	cublasLtMatmulPreference_t preference = NULL;
	int32_t type = -1, compute = -1, op = CUBLAS_OP_T, got = 0;
	uint64_t bytes = 1 << 20, read = 0;
	OK(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	OK(cublasLtMatmulDescGetAttribute(
		product, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, &compute, 4, NULL));
	OK(cublasLtMatmulDescGetAttribute(
		product, CUBLASLT_MATMUL_DESC_SCALE_TYPE, &type, 4, NULL));
	IS(compute, CUBLAS_COMPUTE_32F);
	IS(type, CUDA_R_32F);
	OK(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &op, 4));
	OK(cublasLtMatmulDescGetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &got, 4, NULL));
	IS(got, CUBLAS_OP_T);
	OK(cublasLtMatmulDescDestroy(product));
	OK(cublasLtMatrixTransformDescCreate(&transform, CUDA_C_64F));
	OK(cublasLtMatrixTransformDescGetAttribute(
		transform, CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, &type, 4, NULL));
	IS(type, CUDA_C_64F);
	OK(cublasLtMatrixTransformDescSetAttribute(
		transform, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, &op, 4));
	OK(cublasLtMatrixTransformDescDestroy(transform));
	OK(cublasLtMatmulPreferenceCreate(&preference));
	OK(cublasLtMatmulPreferenceSetAttribute(
		preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, 8));
	OK(cublasLtMatmulPreferenceGetAttribute(
		preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &read, 8, NULL));
	IS(read, bytes);
	OK(cublasLtMatmulPreferenceDestroy(preference));
}

UNIT_SUITE(descriptor, {"layouts", test_layout}, {"the others", test_others})
