/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of each family of functions before anything runs, according to the cuBLAS
 * documentation.
 */
#include "softgpu/libs/cublas/handle.h"

static int64_t at_least_one(int64_t n)
{
	return n > 1 ? n : 1;
}

static bool op_ok(int op)
{
	return op == CKT_BLAS_N || op == CKT_BLAS_T || op == CKT_BLAS_C;
}

static bool triangle_ok(const struct ckt_blas_job *job)
{
	return job->uplo == CKT_BLAS_LOWER || job->uplo == CKT_BLAS_UPPER;
}

static bool side_ok(const struct ckt_blas_job *job)
{
	return job->side == CKT_BLAS_LEFT || job->side == CKT_BLAS_RIGHT;
}

static cublasStatus_t valid(bool ok)
{
	return ok ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

/* Checks that the operands have addresses, unless there is nothing to compute. */
static bool present(const struct ckt_blas_job *job, const struct ckt_blas_operand *one,
	const struct ckt_blas_operand *two, const struct ckt_blas_operand *three, bool nothing)
{
	(void)job;
	return nothing || (one->p && (!two || two->p) && (!three || three->p));
}

/* Checks a product's types against its compute type; 0: the function has none. */
static bool gemm_types_ok(const struct ckt_blas_job *job)
{
	cudaDataType a = job->A.type, c = job->C.type;
	bool half = a == CUDA_R_16F || a == CUDA_R_16BF;
	if (a != job->B.type)
		return false;
	switch (job->compute) {
	case 0:
		return (a == c && (half || ckt_blas_type_compute(a) == a)) ||
			((half || a == CUDA_R_8I) && c == CUDA_R_32F);
	case CUBLAS_COMPUTE_16F:
	case CUBLAS_COMPUTE_16F_PEDANTIC:
		return a == CUDA_R_16F && c == CUDA_R_16F;
	case CUBLAS_COMPUTE_32I:
	case CUBLAS_COMPUTE_32I_PEDANTIC:
		return a == CUDA_R_8I && c == CUDA_R_32I;
	case CUBLAS_COMPUTE_64F:
	case CUBLAS_COMPUTE_64F_PEDANTIC:
	case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT:
		return a == c && (a == CUDA_R_64F || a == CUDA_C_64F);
	case CUBLAS_COMPUTE_32F:
	case CUBLAS_COMPUTE_32F_PEDANTIC:
	case CUBLAS_COMPUTE_32F_FAST_16F:
	case CUBLAS_COMPUTE_32F_FAST_16BF:
	case CUBLAS_COMPUTE_32F_FAST_TF32:
	case CUBLAS_COMPUTE_32F_EMULATED_16BFX9:
		return (a == c && (half || a == CUDA_R_32F || a == CUDA_C_32F)) ||
			((half || a == CUDA_R_8I) && c == CUDA_R_32F);
	default:
		return false;
	}
}

static cublasStatus_t check_gemm(const struct ckt_blas_job *job)
{
	bool ok = op_ok(job->transa) && op_ok(job->transb) && job->m >= 0 && job->n >= 0 &&
		job->k >= 0 && job->batch >= 0 &&
		job->A.ld >= at_least_one(job->transa == CKT_BLAS_N ? job->m : job->k) &&
		job->B.ld >= at_least_one(job->transb == CKT_BLAS_N ? job->k : job->n) &&
		job->C.ld >= at_least_one(job->m);
	if (!ok)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!gemm_types_ok(job))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	return valid(present(job, &job->C, NULL, NULL, !job->m || !job->n));
}

static cublasStatus_t check_gemv(const struct ckt_blas_job *job)
{
	return valid(op_ok(job->trans) && job->m >= 0 && job->n >= 0 && job->batch >= 0 &&
		job->A.ld >= at_least_one(job->m) && job->x.ld && job->y.ld &&
		present(job, &job->A, &job->x, &job->y, !job->m || !job->n));
}

static cublasStatus_t check_gbmv(const struct ckt_blas_job *job)
{
	return valid(op_ok(job->trans) && job->m >= 0 && job->n >= 0 && job->kl >= 0 &&
		job->ku >= 0 && job->A.ld >= job->kl + job->ku + 1 && job->x.ld && job->y.ld &&
		present(job, &job->A, &job->x, &job->y, !job->m || !job->n));
}

static bool triangular_ok(const struct ckt_blas_job *job)
{
	return triangle_ok(job) && op_ok(job->trans) &&
		(job->diag == CUBLAS_DIAG_UNIT || job->diag == CUBLAS_DIAG_NON_UNIT) && job->n >= 0;
}

static cublasStatus_t check_trmv(const struct ckt_blas_job *job)
{
	return valid(triangular_ok(job) && job->A.ld >= at_least_one(job->n) && job->x.ld &&
		present(job, &job->A, &job->x, NULL, !job->n));
}

static cublasStatus_t check_tbmv(const struct ckt_blas_job *job)
{
	return valid(triangular_ok(job) && job->k >= 0 && job->A.ld >= job->k + 1 && job->x.ld &&
		present(job, &job->A, &job->x, NULL, !job->n));
}

static cublasStatus_t check_tpmv(const struct ckt_blas_job *job)
{
	return valid(
		triangular_ok(job) && job->x.ld && present(job, &job->A, &job->x, NULL, !job->n));
}

static cublasStatus_t check_symv(const struct ckt_blas_job *job)
{
	return valid(triangle_ok(job) && job->n >= 0 && job->A.ld >= at_least_one(job->n) &&
		job->x.ld && job->y.ld && present(job, &job->A, &job->x, &job->y, !job->n));
}

static cublasStatus_t check_sbmv(const struct ckt_blas_job *job)
{
	return valid(triangle_ok(job) && job->n >= 0 && job->k >= 0 && job->A.ld >= job->k + 1 &&
		job->x.ld && job->y.ld && present(job, &job->A, &job->x, &job->y, !job->n));
}

static cublasStatus_t check_spmv(const struct ckt_blas_job *job)
{
	return valid(triangle_ok(job) && job->n >= 0 && job->x.ld && job->y.ld &&
		present(job, &job->A, &job->x, &job->y, !job->n));
}

static cublasStatus_t check_ger(const struct ckt_blas_job *job)
{
	return valid(job->m >= 0 && job->n >= 0 && job->A.ld >= at_least_one(job->m) && job->x.ld &&
		job->y.ld && present(job, &job->A, &job->x, &job->y, !job->m || !job->n));
}

static cublasStatus_t check_syr(const struct ckt_blas_job *job)
{
	return valid(triangle_ok(job) && job->n >= 0 && job->A.ld >= at_least_one(job->n) &&
		job->x.ld && present(job, &job->A, &job->x, NULL, !job->n));
}

static cublasStatus_t check_spr(const struct ckt_blas_job *job)
{
	return valid(triangle_ok(job) && job->n >= 0 && job->x.ld &&
		present(job, &job->A, &job->x, NULL, !job->n));
}

static bool rank_k_ok(const struct ckt_blas_job *job)
{
	int64_t rows = at_least_one(job->trans == CKT_BLAS_N ? job->n : job->k);
	/*
	 * The product of a complex symmetric matrix and its conjugate is not symmetric.  Its
	 * product with its transpose is not Hermitian.
	 */
	bool complex = ckt_blas_type_complex(job->A.type);
	bool trans_ok = job->trans == CKT_BLAS_N || (job->trans == CKT_BLAS_T && !job->hermitian) ||
		(job->trans == CKT_BLAS_C && (job->hermitian || !complex));
	return triangle_ok(job) && trans_ok && job->n >= 0 && job->k >= 0 && job->A.ld >= rows &&
		job->C.ld >= at_least_one(job->n) && (!job->B.ld || job->B.ld >= rows) &&
		(job->C.p || !job->n);
}

static cublasStatus_t check_syrk(const struct ckt_blas_job *job)
{
	if (job->A.type != job->C.type || ckt_blas_type_compute(job->A.type) != job->A.type)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	return valid(rank_k_ok(job) && present(job, &job->A, NULL, NULL, !job->n || !job->k));
}

static cublasStatus_t check_syr2k(const struct ckt_blas_job *job)
{
	return valid(rank_k_ok(job) && job->B.ld &&
		present(job, &job->A, &job->B, NULL, !job->n || !job->k));
}

static cublasStatus_t check_symm(const struct ckt_blas_job *job)
{
	return valid(side_ok(job) && triangle_ok(job) && job->m >= 0 && job->n >= 0 &&
		job->A.ld >= at_least_one(job->side == CKT_BLAS_LEFT ? job->m : job->n) &&
		job->B.ld >= at_least_one(job->m) && job->C.ld >= at_least_one(job->m) &&
		present(job, &job->A, &job->B, &job->C, !job->m || !job->n));
}

static bool triangular_product_ok(const struct ckt_blas_job *job)
{
	return side_ok(job) && triangular_ok(job) && job->m >= 0 && job->batch >= 0 &&
		job->A.ld >= at_least_one(job->side == CKT_BLAS_LEFT ? job->m : job->n) &&
		job->B.ld >= at_least_one(job->m);
}

static cublasStatus_t check_trsm(const struct ckt_blas_job *job)
{
	return valid(triangular_product_ok(job) &&
		present(job, &job->A, &job->B, NULL, !job->m || !job->n));
}

static cublasStatus_t check_trmm(const struct ckt_blas_job *job)
{
	return valid(triangular_product_ok(job) && job->C.ld >= at_least_one(job->m) &&
		present(job, &job->A, &job->B, &job->C, !job->m || !job->n));
}

static cublasStatus_t check_geam(const struct ckt_blas_job *job)
{
	bool ok = op_ok(job->transa) && op_ok(job->transb) && job->m >= 0 && job->n >= 0 &&
		job->A.ld >= at_least_one(job->transa == CKT_BLAS_N ? job->m : job->n) &&
		job->B.ld >= at_least_one(job->transb == CKT_BLAS_N ? job->m : job->n) &&
		job->C.ld >= at_least_one(job->m);
	/*
	 * In place is valid only if each element is read just before it is written, and not again.
	 */
	ok = ok &&
		!(job->C.p && job->C.p == job->A.p &&
			(job->transa != CKT_BLAS_N || job->A.ld != job->C.ld)) &&
		!(job->C.p && job->C.p == job->B.p &&
			(job->transb != CKT_BLAS_N || job->B.ld != job->C.ld));
	return valid(ok && present(job, &job->C, NULL, NULL, !job->m || !job->n));
}

static cublasStatus_t check_dgmm(const struct ckt_blas_job *job)
{
	return valid(side_ok(job) && job->m >= 0 && job->n >= 0 &&
		job->A.ld >= at_least_one(job->m) && job->C.ld >= at_least_one(job->m) &&
		present(job, &job->A, &job->x, &job->C, !job->m || !job->n));
}

static cublasStatus_t check_packed(const struct ckt_blas_job *job)
{
	return valid(triangle_ok(job) && job->n >= 0 && job->A.ld >= at_least_one(job->n) &&
		present(job, &job->A, &job->x, NULL, !job->n));
}

#define FAMILY(name, check) \
	const struct ckt_cublas_family ckt_cublas_##name = {ckt_blas_##name, check}
const struct ckt_cublas_family ckt_cublas_gemm = {ckt_blas_matmul, check_gemm};
FAMILY(gemv, check_gemv);
FAMILY(gbmv, check_gbmv);
FAMILY(trmv, check_trmv);
FAMILY(trsv, check_trmv);
FAMILY(tbmv, check_tbmv);
FAMILY(tbsv, check_tbmv);
FAMILY(tpmv, check_tpmv);
FAMILY(tpsv, check_tpmv);
FAMILY(symv, check_symv);
FAMILY(sbmv, check_sbmv);
FAMILY(spmv, check_spmv);
FAMILY(ger, check_ger);
FAMILY(syr, check_syr);
FAMILY(syr2, check_syr);
FAMILY(spr, check_spr);
FAMILY(spr2, check_spr);
FAMILY(syrk, check_syrk);
FAMILY(syr2k, check_syr2k);
FAMILY(syrkx, check_syr2k);
FAMILY(symm, check_symm);
FAMILY(trsm, check_trsm);
FAMILY(trmm, check_trmm);
FAMILY(geam, check_geam);
FAMILY(dgmm, check_dgmm);
FAMILY(tpttr, check_packed);
FAMILY(trttp, check_packed);
