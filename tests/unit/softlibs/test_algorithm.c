/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/cublasLt/algorithm.c: the one algorithm, found, asked, changed and checked. */
#include "lt.h"

static void test_heuristic(void)
{
	cublasLtMatmulHeuristicResult_t found[3];
	cublasLtMatmulDescOpaque_t product;
	cublasLtMatmulPreferenceOpaque_t preference;
	cublasLtMatrixLayoutOpaque_t a = lt_layout(CUDA_R_32F, 2, 3, 2, false, 1, 0),
				     b = lt_layout(CUDA_R_32F, 3, 4, 3, false, 1, 0),
				     c = lt_layout(CUDA_R_32F, 2, 4, 2, false, 1, 0),
				     wrong = lt_layout(CUDA_R_32F, 9, 4, 9, false, 1, 0),
				     byte = lt_layout(CUDA_R_8F_E4M3, 3, 4, 3, false, 1, 0);
	int count = -1;
	lib_begin();
	cublasLtHandle_t handle = (cublasLtHandle_t)lib_handle;
	OK(cublasLtMatmulDescInit(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	OK(cublasLtMatmulPreferenceInit(&preference));
	memset(found, 0xff, sizeof found);
	OK(cublasLtMatmulAlgoGetHeuristic(
		handle, &product, &a, &b, &c, &c, &preference, 3, found, &count));
	IS(count, 1);
	IS(found[0].state, CUBLAS_STATUS_SUCCESS);
	IS(found[0].workspaceSize, 0);
	IS(cublasLtMatmulAlgoGetHeuristic(
		   handle, &product, &a, &wrong, &c, &c, &preference, 3, found, &count),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(count, 1);
	IS(cublasLtMatmulAlgoGetHeuristic(
		   handle, &product, &a, &byte, &c, &c, &preference, 3, found, &count),
		CUBLAS_STATUS_NOT_SUPPORTED);
	IS(count, 0);
	IS(cublasLtMatmulAlgoGetHeuristic(
		   handle, &product, &a, &b, &c, &c, &preference, 0, found, &count),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoGetHeuristic(
		   handle, &product, &a, &b, &c, &c, &preference, 1, NULL, &count),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoGetHeuristic(
		   NULL, &product, &a, &b, &c, &c, &preference, 1, found, &count),
		CUBLAS_STATUS_NOT_INITIALIZED);
	/* Checked, also where the answer lies over the question. */
	OK(cublasLtMatmulAlgoGetHeuristic(
		handle, &product, &a, &b, &c, &c, &preference, 1, found, &count));
	OK(cublasLtMatmulAlgoCheck(handle, &product, &a, &b, &c, &c, &found[0].algo, &found[0]));
	OK(cublasLtMatmulAlgoCheck(handle, &product, &a, &b, &c, &c, &found[0].algo, &found[1]));
	IS(found[1].workspaceSize, 0);
	IS(cublasLtMatmulAlgoCheck(handle, &product, &a, &wrong, &c, &c, &found[0].algo, &found[1]),
		CUBLAS_STATUS_INVALID_VALUE);
	memset(&found[0].algo, 0, sizeof found[0].algo);
	IS(cublasLtMatmulAlgoCheck(handle, &product, &a, &b, &c, &c, &found[0].algo, &found[1]),
		CUBLAS_STATUS_INVALID_VALUE);
	lib_end();
}

static void test_attributes(void)
{
	cublasLtMatmulAlgo_t algo;
	int ids[4], count = 0, id = 0;
	uint32_t value = 9, tile = 5;
	uint16_t shape = 3;
	uint64_t flags = 0;
	size_t size = 0;
	lib_begin();
	cublasLtHandle_t handle = (cublasLtHandle_t)lib_handle;
	OK(cublasLtMatmulAlgoGetIds(handle, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
		CUDA_R_32F, CUDA_R_32F, 4, ids, &count));
	IS(count, 1);
	IS(cublasLtMatmulAlgoInit(handle, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
		   CUDA_R_32F, CUDA_R_32F, ids[0] + 1, &algo),
		CUBLAS_STATUS_INVALID_VALUE);
	OK(cublasLtMatmulAlgoInit(handle, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
		CUDA_R_32F, CUDA_R_32F, ids[0], &algo));
	OK(cublasLtMatmulAlgoConfigGetAttribute(
		&algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id, NULL));
	IS(id, ids[0]);
	OK(cublasLtMatmulAlgoConfigSetAttribute(
		&algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &tile, sizeof tile));
	OK(cublasLtMatmulAlgoConfigSetAttribute(
		&algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, &shape, sizeof shape));
	OK(cublasLtMatmulAlgoConfigGetAttribute(
		&algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &value, sizeof value, &size));
	IS(value, 5);
	IS(size, 4);
	shape = 0;
	OK(cublasLtMatmulAlgoConfigGetAttribute(
		&algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, &shape, sizeof shape, &size));
	IS(shape, 3);
	IS(cublasLtMatmulAlgoConfigSetAttribute(
		   &algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &shape, sizeof shape),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoConfigSetAttribute(&algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id),
		CUBLAS_STATUS_INVALID_VALUE);
	OK(cublasLtMatmulAlgoCapGetAttribute(
		&algo, CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT, &value, sizeof value, NULL));
	IS(value, 1);
	OK(cublasLtMatmulAlgoCapGetAttribute(
		&algo, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, &value, sizeof value, NULL));
	IS(value, 0);
	OK(cublasLtMatmulAlgoCapGetAttribute(&algo, CUBLASLT_ALGO_CAP_TILE_IDS, NULL, 0, &size));
	IS(size, 4);
	OK(cublasLtMatmulAlgoCapGetAttribute(
		&algo, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &flags, sizeof flags, NULL));
	YES(flags & CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA);
	IS(cublasLtMatmulAlgoCapGetAttribute(
		   &algo, (cublasLtMatmulAlgoCapAttributes_t)99, &value, 4, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoCapGetAttribute(&algo, CUBLASLT_ALGO_CAP_TILE_IDS, NULL, 0, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	lib_end();
}

UNIT_SUITE(algorithm, {"found and checked", test_heuristic}, {"asked and changed", test_attributes})
