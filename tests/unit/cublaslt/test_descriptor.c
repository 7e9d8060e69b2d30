/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/libs/cublasLt/descriptor.c: the exported functions of descriptors; what lies in their
 * bytes is tests/unit/rpc/test_cublaslt.c's.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/cublaslt/bridge.h"

static void test_matmul(void)
{
	cublasLtMatmulDesc_t desc = NULL;
	int word = 0;
	size_t written = 0;
	IS(cublasLtMatmulDescCreate(NULL, CUBLAS_COMPUTE_32F, CUDA_R_32F),
		CUBLAS_STATUS_INVALID_VALUE);
	MUST(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasLtMatmulDescGetAttribute(
		   desc, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, &word, 4, &written),
		CUBLAS_STATUS_SUCCESS);
	IS(word, CUBLAS_COMPUTE_32F_FAST_TF32);
	IS(written, 4);
	word = CUBLASLT_EPILOGUE_GELU_BIAS;
	IS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &word, 4),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &word, 8),
		CUBLAS_STATUS_INVALID_VALUE);
	/* The program may copy what it points to and use the copy. */
	cublasLtMatmulDescOpaque_t copy;
	memcpy(&copy, desc, sizeof copy);
	IS(cublasLtMatmulDescDestroy(desc), CUBLAS_STATUS_SUCCESS);
	word = 0;
	IS(cublasLtMatmulDescGetAttribute(&copy, CUBLASLT_MATMUL_DESC_EPILOGUE, &word, 4, NULL),
		CUBLAS_STATUS_SUCCESS);
	IS(word, CUBLASLT_EPILOGUE_GELU_BIAS);
	IS(cublasLtMatmulDescDestroy(NULL), CUBLAS_STATUS_SUCCESS);
}

static void test_layout(void)
{
	cublasLtMatrixLayout_t layout = NULL;
	uint64_t value = 0;
	IS(cublasLtMatrixLayoutCreate(NULL, CUDA_R_16F, 5, 7, 9), CUBLAS_STATUS_INVALID_VALUE);
	MUST(cublasLtMatrixLayoutCreate(&layout, CUDA_R_16F, 5, 7, 9), CUBLAS_STATUS_SUCCESS);
	static const struct {
		cublasLtMatrixLayoutAttribute_t attribute;
		uint64_t value;
		size_t size;
	} expected[] = {{CUBLASLT_MATRIX_LAYOUT_TYPE, CUDA_R_16F, 4},
		{CUBLASLT_MATRIX_LAYOUT_ROWS, 5, 8}, {CUBLASLT_MATRIX_LAYOUT_COLS, 7, 8},
		{CUBLASLT_MATRIX_LAYOUT_LD, 9, 8}, {CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1, 4},
		{CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, 0, 4}};
	for (unsigned i = 0; i < COUNT(expected); i++) {
		value = 0;
		IS(cublasLtMatrixLayoutGetAttribute(
			   layout, expected[i].attribute, &value, expected[i].size, NULL),
			CUBLAS_STATUS_SUCCESS);
		IS(value, expected[i].value);
	}
	IS(cublasLtMatrixLayoutSetAttribute(
		   layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &(int64_t){-3}, 8),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS);
}

/* In the program's own struct, all of it, and nothing behind it. */
static void test_init(void)
{
	struct {
		cublasLtMatmulDescOpaque_t matmul;
		uint64_t end;
	} matmul;
	struct {
		cublasLtMatrixLayoutOpaque_t layout;
		uint64_t end;
	} layout;
	struct {
		cublasLtMatrixTransformDescOpaque_t transform;
		uint64_t end;
	} transform;
	struct {
		cublasLtMatmulPreferenceOpaque_t preference;
		uint64_t end;
	} preference;
	struct {
		cublasLtEmulationDescOpaque_t emulation;
		uint64_t end;
	} emulation;
	matmul.end = layout.end = transform.end = preference.end = emulation.end = 0x1234;
	IS(cublasLtMatmulDescInit(&matmul.matmul, CUBLAS_COMPUTE_64F, CUDA_R_64F),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasLtMatrixLayoutInit(&layout.layout, CUDA_R_64F, 1, 2, 3), CUBLAS_STATUS_SUCCESS);
	IS(cublasLtMatrixTransformDescInit(&transform.transform, CUDA_R_64F),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasLtMatmulPreferenceInit(&preference.preference), CUBLAS_STATUS_SUCCESS);
	IS(cublasLtEmulationDescInit(&emulation.emulation), CUBLAS_STATUS_SUCCESS);
	IS(matmul.end, 0x1234);
	IS(layout.end, 0x1234);
	IS(transform.end, 0x1234);
	IS(preference.end, 0x1234);
	IS(emulation.end, 0x1234);
	IS(cublasLtMatmulDescInit_internal(&matmul.matmul, 48, CUBLAS_COMPUTE_64F, CUDA_R_64F),
		CUBLAS_STATUS_ALLOC_FAILED);
	IS(cublasLtMatrixLayoutInit_internal(&layout.layout, 56, CUDA_R_64F, 1, 2, 3),
		CUBLAS_STATUS_ALLOC_FAILED);
	IS(cublasLtMatrixTransformDescInit_internal(&transform.transform, 8, CUDA_R_64F),
		CUBLAS_STATUS_ALLOC_FAILED);
	IS(cublasLtMatmulPreferenceInit_internal(&preference.preference, 0),
		CUBLAS_STATUS_ALLOC_FAILED);
	IS(cublasLtEmulationDescInit_internal(&emulation.emulation, 63),
		CUBLAS_STATUS_ALLOC_FAILED);
	IS(cublasLtMatrixLayoutInit_internal(NULL, 64, CUDA_R_64F, 1, 2, 3),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulDescInit_internal(NULL, 256, CUBLAS_COMPUTE_64F, CUDA_R_64F),
		CUBLAS_STATUS_INVALID_VALUE);
	/* A program of CUDA 12 has a shorter struct: no scale modes. */
	IS(cublasLtMatmulDescInit_internal(&matmul.matmul, 184, CUBLAS_COMPUTE_64F, CUDA_R_64F),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasLtMatmulDescSetAttribute(
		   &matmul.matmul, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &(int){1}, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulDescSetAttribute(
		   &matmul.matmul, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &(int){1}, 4),
		CUBLAS_STATUS_SUCCESS);
}

static void test_others(void)
{
	cublasLtMatrixTransformDesc_t transform;
	cublasLtMatmulPreference_t preference;
	cublasLtEmulationDesc_t emulation;
	int word = 0;
	size_t written = 0;
	uint64_t bytes = 0;
	MUST(cublasLtMatrixTransformDescCreate(&transform, CUDA_R_16F), CUBLAS_STATUS_SUCCESS);
	IS(cublasLtMatrixTransformDescGetAttribute(
		   transform, CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, &word, 4, NULL),
		CUBLAS_STATUS_SUCCESS);
	IS(word, CUDA_R_16F);
	IS(cublasLtMatrixTransformDescSetAttribute(
		   transform, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, &word, 4),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasLtMatrixTransformDescDestroy(transform), CUBLAS_STATUS_SUCCESS);
	MUST(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
	bytes = 32 << 20;
	IS(cublasLtMatmulPreferenceSetAttribute(
		   preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, 8),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasLtMatmulPreferenceGetAttribute(
		   preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, NULL, 0, &written),
		CUBLAS_STATUS_SUCCESS);
	IS(written, 8);
	IS(cublasLtMatmulPreferenceDestroy(preference), CUBLAS_STATUS_SUCCESS);
	MUST(cublasLtEmulationDescCreate(&emulation), CUBLAS_STATUS_SUCCESS);
	IS(cublasLtEmulationDescSetAttribute(
		   emulation, CUBLASLT_EMULATION_DESC_STRATEGY, &(int){2}, 4),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasLtEmulationDescGetAttribute(
		   emulation, CUBLASLT_EMULATION_DESC_STRATEGY, &word, 4, NULL),
		CUBLAS_STATUS_SUCCESS);
	IS(word, 2);
	IS(cublasLtEmulationDescDestroy(emulation), CUBLAS_STATUS_SUCCESS);
	IS(cublasLtEmulationDescCreate(NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulPreferenceCreate(NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatrixTransformDescCreate(NULL, CUDA_R_32F), CUBLAS_STATUS_INVALID_VALUE);
}

UNIT_SUITE(descriptor, {"matmul", test_matmul}, {"layout", test_layout}, {"init", test_init},
	{"others", test_others})
