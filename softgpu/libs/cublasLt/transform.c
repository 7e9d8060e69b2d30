/* SPDX-License-Identifier: Apache-2.0 */
/* cublasLtMatrixTransform: adds two matrices and converts their layout, type and order. */
#include <string.h>

#include "softgpu/libs/common/driver.h"
#include "softgpu/libs/cublasLt/objects.h"

static void run_transform(const void *data)
{
	const struct ckt_blas_job *job = data;
	int error = ckt_blas_geam(job);
	if (error)
		ckt_softlib_fail(job->name, strerror(-error));
}

/* Reads one of the two terms; op of its matrix must have C's sizes. */
static cublasStatus_t read_term(struct ckt_blas_operand *operand, const void *layout, const void *p,
	int op, const struct ckt_blas_job *job)
{
	int64_t rows, columns, batch;
	cublasStatus_t status =
		ckt_soft_cublaslt_layout_read(layout, operand, &rows, &columns, &batch);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if ((op == CUBLAS_OP_N ? rows : columns) != job->m ||
		(op == CUBLAS_OP_N ? columns : rows) != job->n || batch != job->batch)
		return CUBLAS_STATUS_INVALID_VALUE;
	operand->p = (void *)(uintptr_t)p;
	return CUBLAS_STATUS_SUCCESS;
}

/* If the matrix is NULL, the factor is 0 and may be NULL. */
static cublasStatus_t read_factor(struct ckt_blas_scalar *scalar, const void *factor,
	const void *matrix, const void *description)
{
	if (!matrix) {
		*scalar = (struct ckt_blas_scalar){.type = CUDA_R_32F};
		return CUBLAS_STATUS_SUCCESS;
	}
	return ckt_soft_cublaslt_scalar(scalar, factor,
		ckt_lt_word(CKT_LT_TRANSFORM, description, CKT_LT_TRANSFORM_SCALE_TYPE),
		ckt_lt_word(CKT_LT_TRANSFORM, description, CKT_LT_TRANSFORM_POINTER_MODE));
}

static cublasStatus_t make(struct ckt_blas_job *job, const void *description, const void *alpha,
	const void *a, const void *a_layout, const void *beta, const void *b, const void *b_layout,
	void *c, const void *c_layout)
{
	if (!description || (!a && !b))
		return CUBLAS_STATUS_INVALID_VALUE;
	cublasStatus_t status =
		ckt_soft_cublaslt_layout_read(c_layout, &job->C, &job->m, &job->n, &job->batch);
	job->C.p = c;
	job->transa = (int)ckt_lt_word(
		CKT_LT_TRANSFORM, description, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA);
	job->transb = (int)ckt_lt_word(
		CKT_LT_TRANSFORM, description, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB);
	if (status == CUBLAS_STATUS_SUCCESS &&
		((unsigned)job->transa > CUBLAS_OP_C || (unsigned)job->transb > CUBLAS_OP_C ||
			(!c && job->m && job->n)))
		status = CUBLAS_STATUS_INVALID_VALUE;
	if (status == CUBLAS_STATUS_SUCCESS && a)
		status = read_term(&job->A, a_layout, a, job->transa, job);
	if (status == CUBLAS_STATUS_SUCCESS && b)
		status = read_term(&job->B, b_layout, b, job->transb, job);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = read_factor(&job->alpha, alpha, a, description);
	return status == CUBLAS_STATUS_SUCCESS ? read_factor(&job->beta, beta, b, description)
					       : status;
}

CKT_CUBLAS_API cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t lightHandle,
	cublasLtMatrixTransformDesc_t transformDesc, const void *alpha, const void *A,
	cublasLtMatrixLayout_t Adesc, const void *beta, const void *B, cublasLtMatrixLayout_t Bdesc,
	void *C, cublasLtMatrixLayout_t Cdesc, cudaStream_t stream)
{
	struct ckt_blas_job job = {.name = "cublasLtMatrixTransform"};
	if (!lightHandle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (ckt_softlib_failed())
		return CUBLAS_STATUS_EXECUTION_FAILED;
	cublasStatus_t status =
		make(&job, transformDesc, alpha, A, Adesc, beta, B, Bdesc, C, Cdesc);
	if (status == CUBLAS_STATUS_NOT_SUPPORTED)
		ckt_softlib_unsupported("cublasLtMatrixTransform of these types or layouts");
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	return ckt_soft_cublaslt_status(
		ckt_softlib_enqueue((CUstream)stream, run_transform, &job, sizeof job));
}
