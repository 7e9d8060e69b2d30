/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/libs/cublasLt/ask.c: a question travels once for each content, and an answer that may
 * change is not kept.
 */
#include "client/libs/cublasLt/cache.h"
#include "tests/unit/cublaslt/bridge.h"

static cublasLtMatmulDesc_t op;
static cublasLtMatrixLayout_t layout;
static cublasLtMatmulPreference_t preference;

static cublasStatus_t ask(cublasLtHandle_t handle, int requested)
{
	cublasLtMatmulHeuristicResult_t results[4];
	int count;
	return cublasLtMatmulAlgoGetHeuristic(
		handle, op, layout, layout, layout, layout, preference, requested, results, &count);
}

static void make(void)
{
	bridge_handle();
	ckt_lt_cache_clear();
	cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F);
	cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 8, 8, 8);
	cublasLtMatmulPreferenceCreate(&preference);
	bridge_reset();
}

static void end(void)
{
	cublasLtMatmulDescDestroy(op);
	cublasLtMatrixLayoutDestroy(layout);
	cublasLtMatmulPreferenceDestroy(preference);
	double_calls();
}

static void test_once(void)
{
	cublasLtHandle_t other;
	make();
	for (unsigned i = 0; i < 100; i++)
		IS(ask(bridge_handle(), 1), CUBLAS_STATUS_SUCCESS);
	IS(bridge_total(), 1);
	/* Another handle of the device has no other answer. */
	IS(cublasLtCreate(&other), CUBLAS_STATUS_SUCCESS);
	bridge_reset();
	IS(ask(other, 1), CUBLAS_STATUS_SUCCESS);
	IS(bridge_total(), 0);
	IS(cublasLtDestroy(other), CUBLAS_STATUS_SUCCESS);
	end();
}

/* Whatever the answer depends on makes it another question. */
static void test_key(void)
{
	make();
	IS(ask(bridge_handle(), 1), CUBLAS_STATUS_SUCCESS);
	IS(ask(bridge_handle(), 2), CUBLAS_STATUS_SUCCESS);
	IS(bridge_total(), 2);
	cublasLtMatmulPreferenceSetAttribute(
		preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &(uint64_t){1 << 20}, 8);
	ask(bridge_handle(), 1);
	IS(bridge_total(), 3);
	cublasLtMatmulPreferenceSetAttribute(
		preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &(uint32_t){16}, 4);
	ask(bridge_handle(), 1);
	IS(bridge_total(), 4);
	cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_LD, &(int64_t){16}, 8);
	ask(bridge_handle(), 1);
	IS(bridge_total(), 5);
	cublasLtMatmulDescSetAttribute(
		op, CUBLASLT_MATMUL_DESC_EPILOGUE, &(int){CUBLASLT_EPILOGUE_BIAS}, 4);
	ask(bridge_handle(), 1);
	IS(bridge_total(), 6);
	/*
	 * An address is its alignment: another bias as well aligned is the same question, one that
	 * is less aligned is not.
	 */
	cublasLtMatmulDescSetAttribute(
		op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &(uint64_t){0x200000100010}, 8);
	ask(bridge_handle(), 1);
	IS(bridge_total(), 7);
	cublasLtMatmulDescSetAttribute(
		op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &(uint64_t){0x200000200030}, 8);
	ask(bridge_handle(), 1);
	IS(bridge_total(), 7);
	cublasLtMatmulDescSetAttribute(
		op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &(uint64_t){0x200000200034}, 8);
	double_calls();
	ask(bridge_handle(), 1);
	IS(bridge_total(), 8);
	/* And that is what the library is asked. */
	HAS(double_calls(), "op={0=44 1=0 7=4 8=4}");
	end();
}

static void test_failures(void)
{
	make();
	/* What the library cannot do it cannot do next time. */
	double_status = CUBLAS_STATUS_NOT_SUPPORTED;
	IS(ask(bridge_handle(), 1), CUBLAS_STATUS_NOT_SUPPORTED);
	IS(ask(bridge_handle(), 1), CUBLAS_STATUS_NOT_SUPPORTED);
	IS(bridge_total(), 1);
	/* Memory may be there next time. */
	double_status = CUBLAS_STATUS_ALLOC_FAILED;
	IS(ask(bridge_handle(), 2), CUBLAS_STATUS_ALLOC_FAILED);
	IS(ask(bridge_handle(), 2), CUBLAS_STATUS_SUCCESS);
	IS(ask(bridge_handle(), 2), CUBLAS_STATUS_SUCCESS);
	IS(bridge_total(), 3);
	/* A session that fails is not asked again for what is known. */
	bridge_fails = CUDA_ERROR_ILLEGAL_ADDRESS;
	IS(ask(bridge_handle(), 3), CUBLAS_STATUS_EXECUTION_FAILED);
	IS(ask(bridge_handle(), 2), CUBLAS_STATUS_SUCCESS);
	bridge_fails = CUDA_SUCCESS;
	IS(ask(bridge_handle(), 3), CUBLAS_STATUS_SUCCESS);
	end();
}

/*
 * A training step: the heuristic before each matmul, as PyTorch has it, with a bias of its own for
 * each layer.
 */
static void test_training_step(void)
{
	float one = 1, zero = 0;
	make();
	cublasLtMatmulDescSetAttribute(
		op, CUBLASLT_MATMUL_DESC_EPILOGUE, &(int){CUBLASLT_EPILOGUE_GELU_BIAS}, 4);
	for (unsigned step = 0; step < 3; step++) {
		bridge_reset();
		for (uint64_t layer = 0; layer < 12; layer++) {
			cublasLtMatmulHeuristicResult_t found;
			int count = 0;
			cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
				&(uint64_t){0x200000000000 + layer * 0x1200}, 8);
			IS(cublasLtMatmulAlgoGetHeuristic(bridge_handle(), op, layout, layout,
				   layout, layout, preference, 1, &found, &count),
				CUBLAS_STATUS_SUCCESS);
			IS(count, 1);
			IS(cublasLtMatmul(bridge_handle(), op, &one, NULL, layout, NULL, layout,
				   &zero, NULL, layout, NULL, layout, &found.algo, NULL, 0, NULL),
				CUBLAS_STATUS_SUCCESS);
		}
		IS(bridge_sent(CKT_CUBLASLT_PROC_CUBLASLTMATMUL % 64), 12);
		if (step)
			IS(bridge_total(), 12);
	}
	end();
}

UNIT_SUITE(ask, {"once", test_once}, {"key", test_key}, {"failures", test_failures},
	{"training step", test_training_step})
