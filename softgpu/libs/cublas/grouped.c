/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products in groups.  The products of a group have the same sizes.  Each group runs as one batch,
 * after the group before it.
 */
#include "softgpu/libs/cublas/handle.h"

struct groups {
	const char *name;
	int64_t count;
	const cublasOperation_t *transa, *transb;
	/* Numbers of int or, if wide, int64_t. */
	const void *m, *n, *k, *lda, *ldb, *ldc, *size;
	bool wide;
	const void *alpha, *beta;
	cudaDataType scale;
	struct ckt_blas_operand A, B, C;
	int compute;
};

static int64_t size_at(const struct groups *groups, const void *sizes, int64_t i)
{
	return groups->wide ? ((const int64_t *)sizes)[i] : ((const int *)sizes)[i];
}

static void group_job(
	const struct groups *groups, int64_t g, int64_t before, struct ckt_blas_job *job)
{
	size_t scale = ckt_blas_type_size(groups->scale);
	*job = (struct ckt_blas_job){
		.name = groups->name,
		.transa = (int)groups->transa[g],
		.transb = (int)groups->transb[g],
		.m = size_at(groups, groups->m, g),
		.n = size_at(groups, groups->n, g),
		.k = size_at(groups, groups->k, g),
		.batch = size_at(groups, groups->size, g),
		.A = groups->A,
		.B = groups->B,
		.C = groups->C,
		.compute = groups->compute,
		.alpha = {.p = (const char *)groups->alpha + (size_t)g * scale,
			.type = groups->scale},
		.beta = {.p = (const char *)groups->beta + (size_t)g * scale,
			.type = groups->scale},
	};
	job->A.p = (void **)groups->A.p + before;
	job->B.p = (void **)groups->B.p + before;
	job->C.p = (void **)groups->C.p + before;
	job->A.ld = size_at(groups, groups->lda, g);
	job->B.ld = size_at(groups, groups->ldb, g);
	job->C.ld = size_at(groups, groups->ldc, g);
}

/* Checks all groups before the first one runs. */
static cublasStatus_t submit(cublasHandle_t handle, const struct groups *groups)
{
	struct ckt_blas_job job;
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (groups->count < 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!groups->count)
		return CUBLAS_STATUS_SUCCESS;
	if (!groups->transa || !groups->transb || !groups->m || !groups->n || !groups->k ||
		!groups->lda || !groups->ldb || !groups->ldc || !groups->size || !groups->alpha ||
		!groups->beta || !groups->A.p || !groups->B.p || !groups->C.p)
		return CUBLAS_STATUS_INVALID_VALUE;
	for (int64_t g = 0; g < groups->count; g++) {
		group_job(groups, g, 0, &job);
		cublasStatus_t status = ckt_cublas_gemm.check(&job);
		if (status == CUBLAS_STATUS_NOT_SUPPORTED)
			return ckt_soft_cublas_unsupported(groups->name);
		if (status != CUBLAS_STATUS_SUCCESS)
			return status;
	}
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
	for (int64_t g = 0, before = 0; g < groups->count && status == CUBLAS_STATUS_SUCCESS; g++) {
		group_job(groups, g, before, &job);
		before += job.batch;
		if (job.batch)
			status = ckt_soft_cublas_submit(
				handle, &job, &ckt_cublas_gemm, CKT_CUBLAS_ALPHA | CKT_CUBLAS_BETA);
	}
	return status;
}

#define LIST(array, of)                                                   \
	{                                                                 \
		.p = (void *)(uintptr_t)(array), .type = of, .list = true \
	}
#define GROUPED(function, of, real, integer, is_wide)                                             \
	CKT_CUBLAS_API cublasStatus_t function(cublasHandle_t handle,                             \
		const cublasOperation_t transa_array[], const cublasOperation_t transb_array[],   \
		const integer m_array[], const integer n_array[], const integer k_array[],        \
		const real alpha_array[], const real *const Aarray[], const integer lda_array[],  \
		const real *const Barray[], const integer ldb_array[], const real beta_array[],   \
		real *const Carray[], const integer ldc_array[], integer group_count,             \
		const integer group_size[])                                                       \
	{                                                                                         \
		const struct groups groups = {#function, group_count, transa_array, transb_array, \
			m_array, n_array, k_array, lda_array, ldb_array, ldc_array, group_size,   \
			is_wide, alpha_array, beta_array, of, LIST(Aarray, of), LIST(Barray, of), \
			LIST(Carray, of), 0};                                                     \
		return submit(handle, &groups);                                                   \
	}
#define GROUPED_EX(function, integer, is_wide)                                                    \
	CKT_CUBLAS_API cublasStatus_t function(cublasHandle_t handle,                             \
		const cublasOperation_t transa_array[], const cublasOperation_t transb_array[],   \
		const integer m_array[], const integer n_array[], const integer k_array[],        \
		const void *alpha_array, const void *const Aarray[], cudaDataType_t Atype,        \
		const integer lda_array[], const void *const Barray[], cudaDataType_t Btype,      \
		const integer ldb_array[], const void *beta_array, void *const Carray[],          \
		cudaDataType_t Ctype, const integer ldc_array[], integer group_count,             \
		const integer group_size[], cublasComputeType_t computeType)                      \
	{                                                                                         \
		const struct groups groups = {#function, group_count, transa_array, transb_array, \
			m_array, n_array, k_array, lda_array, ldb_array, ldc_array, group_size,   \
			is_wide, alpha_array, beta_array,                                         \
			ckt_soft_cublas_scale_type(computeType, Atype), LIST(Aarray, Atype),      \
			LIST(Barray, Btype), LIST(Carray, Ctype), (int)computeType};              \
		return submit(handle, &groups);                                                   \
	}

GROUPED(cublasSgemmGroupedBatched, CUDA_R_32F, float, int, false)
GROUPED(cublasSgemmGroupedBatched_64, CUDA_R_32F, float, int64_t, true)
GROUPED(cublasDgemmGroupedBatched, CUDA_R_64F, double, int, false)
GROUPED(cublasDgemmGroupedBatched_64, CUDA_R_64F, double, int64_t, true)
GROUPED_EX(cublasGemmGroupedBatchedEx, int, false)
GROUPED_EX(cublasGemmGroupedBatchedEx_64, int64_t, true)
