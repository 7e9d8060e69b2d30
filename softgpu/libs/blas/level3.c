/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix and matrix, except the general product (matmul.c). */
#include <stdlib.h>
#include <string.h>

#include "softgpu/libs/blas/openblas.h"

static char *element(const struct ckt_blas_operand *operand, int64_t batch, int64_t i, int64_t j)
{
	int64_t index = operand->row ? i * operand->ld + j : i + j * operand->ld;
	return (char *)ckt_blas_at(operand, batch) +
		index * (int64_t)ckt_blas_type_size(operand->type);
}

/* With beta 0, C may hold any bits, so the triangle to be written is cleared. */
static void clear_triangle(const struct ckt_blas_job *job)
{
	size_t size = ckt_blas_type_size(job->C.type);
	for (int64_t j = 0; j < job->n; j++) {
		int64_t from = job->uplo == CKT_BLAS_LOWER ? j : 0,
			count = job->uplo == CKT_BLAS_LOWER ? job->n - j : j + 1;
		memset(element(&job->C, 0, from, j), 0, (size_t)count * size);
	}
}

int ckt_blas_syrk(const struct ckt_blas_job *job)
{
	struct ckt_blas_factor alpha = ckt_blas_factor(&job->alpha, 0),
			       beta = ckt_blas_factor(&job->beta, 0);
	enum CBLAS_UPLO uplo = ckt_blas_uplo(job->uplo);
	enum CBLAS_TRANSPOSE trans = ckt_blas_trans(job->trans);
	int n = (int)job->n, k = (int)job->k, lda = (int)job->A.ld, ldc = (int)job->C.ld;
	if (beta.d[0] == 0 && beta.d[1] == 0)
		clear_triangle(job);
	ckt_blas_enter();
	if (job->hermitian && job->A.type == CUDA_C_32F) {
		cblas_cherk(CblasColMajor, uplo, trans, n, k, alpha.f[0], job->A.p, lda, beta.f[0],
			job->C.p, ldc);
	} else if (job->hermitian) {
		cblas_zherk(CblasColMajor, uplo, trans, n, k, alpha.d[0], job->A.p, lda, beta.d[0],
			job->C.p, ldc);
	} else {
		/* For real numbers, the conjugate transpose is the transpose. */
		trans = trans == CblasNoTrans ? trans : CblasTrans;
		CKT_BLAS_TWO(job->A.type, ssyrk, dsyrk, csyrk, zsyrk,
			(CblasColMajor, uplo, trans, n, k), alpha, (job->A.p, lda), beta,
			(job->C.p, ldc))
	}
	ckt_blas_leave();
	return 0;
}

int ckt_blas_syr2k(const struct ckt_blas_job *job)
{
	struct ckt_blas_factor alpha = ckt_blas_factor(&job->alpha, 0),
			       beta = ckt_blas_factor(&job->beta, 0);
	enum CBLAS_UPLO uplo = ckt_blas_uplo(job->uplo);
	enum CBLAS_TRANSPOSE trans = ckt_blas_trans(job->trans);
	int n = (int)job->n, k = (int)job->k, lda = (int)job->A.ld, ldb = (int)job->B.ld,
	    ldc = (int)job->C.ld;
	if (beta.d[0] == 0 && beta.d[1] == 0)
		clear_triangle(job);
	ckt_blas_enter();
	if (job->hermitian && job->A.type == CUDA_C_32F) {
		cblas_cher2k(CblasColMajor, uplo, trans, n, k, alpha.f, job->A.p, lda, job->B.p,
			ldb, beta.f[0], job->C.p, ldc);
	} else if (job->hermitian) {
		cblas_zher2k(CblasColMajor, uplo, trans, n, k, alpha.d, job->A.p, lda, job->B.p,
			ldb, beta.d[0], job->C.p, ldc);
	} else {
		trans = trans == CblasNoTrans ? trans : CblasTrans;
		CKT_BLAS_TWO(job->A.type, ssyr2k, dsyr2k, csyr2k, zsyr2k,
			(CblasColMajor, uplo, trans, n, k), alpha, (job->A.p, lda, job->B.p, ldb),
			beta, (job->C.p, ldc))
	}
	ckt_blas_leave();
	return 0;
}

/* A triangle of the general product op(A) op(B)^T, or of its conjugate. */
int ckt_blas_syrkx(const struct ckt_blas_job *job)
{
	size_t size = ckt_blas_type_size(job->C.type);
	double beta[2];
	ckt_blas_scalar_get(&job->beta, 0, beta);
	char *all = calloc((size_t)job->n * (size_t)job->n + 1, size);
	if (!all)
		return -ENOMEM;
	struct ckt_blas_job product = *job;
	product.m = job->n;
	product.C =
		(struct ckt_blas_operand){.p = all, .type = job->C.type, .ld = job->n ? job->n : 1};
	int other = job->hermitian ? CKT_BLAS_C : CKT_BLAS_T;
	product.transa = job->trans == CKT_BLAS_N ? CKT_BLAS_N : other;
	product.transb = job->trans == CKT_BLAS_N ? other : CKT_BLAS_N;
	if (beta[0] != 0 || beta[1] != 0)
		for (int64_t j = 0; j < job->n; j++)
			memcpy(all + (size_t)(j * job->n) * size, element(&job->C, 0, 0, j),
				(size_t)job->n * size);
	int error = ckt_blas_matmul(&product);
	for (int64_t j = 0; j < job->n && !error; j++) {
		int64_t from = job->uplo == CKT_BLAS_LOWER ? j : 0,
			count = job->uplo == CKT_BLAS_LOWER ? job->n - j : j + 1;
		memcpy(element(&job->C, 0, from, j), all + (size_t)(from + j * job->n) * size,
			(size_t)count * size);
		if (job->hermitian)
			memset(element(&job->C, 0, j, j) + size / 2, 0, size / 2);
	}
	free(all);
	return error;
}

int ckt_blas_symm(const struct ckt_blas_job *job)
{
	struct ckt_blas_factor alpha = ckt_blas_factor(&job->alpha, 0),
			       beta = ckt_blas_factor(&job->beta, 0);
	enum CBLAS_UPLO uplo = ckt_blas_uplo(job->uplo);
	enum CBLAS_SIDE side = ckt_blas_side(job->side);
	int m = (int)job->m, n = (int)job->n, lda = (int)job->A.ld, ldb = (int)job->B.ld,
	    ldc = (int)job->C.ld;
	if (beta.d[0] == 0 && beta.d[1] == 0)
		for (int j = 0; j < n; j++)
			memset(element(&job->C, 0, 0, j), 0,
				(size_t)m * ckt_blas_type_size(job->C.type));
	ckt_blas_enter();
	if (job->hermitian) {
		CKT_BLAS_TWO(job->A.type, ssymm, dsymm, chemm, zhemm,
			(CblasColMajor, side, uplo, m, n), alpha, (job->A.p, lda, job->B.p, ldb),
			beta, (job->C.p, ldc))
	} else {
		CKT_BLAS_TWO(job->A.type, ssymm, dsymm, csymm, zsymm,
			(CblasColMajor, side, uplo, m, n), alpha, (job->A.p, lda, job->B.p, ldb),
			beta, (job->C.p, ldc))
	}
	ckt_blas_leave();
	return 0;
}

int ckt_blas_trsm(const struct ckt_blas_job *job)
{
	int64_t batch = job->batch ? job->batch : 1;
	for (int64_t i = 0; i < batch; i++) {
		struct ckt_blas_factor alpha = ckt_blas_factor(&job->alpha, i);
		ckt_blas_enter();
		CKT_BLAS_ONE(job->A.type, strsm, dtrsm, ctrsm, ztrsm,
			(CblasColMajor, ckt_blas_side(job->side), ckt_blas_uplo(job->uplo),
				ckt_blas_trans(job->trans), ckt_blas_diag(job->diag), (int)job->m,
				(int)job->n),
			alpha,
			(ckt_blas_at(&job->A, i), (int)job->A.ld, ckt_blas_at(&job->B, i),
				(int)job->B.ld))
		ckt_blas_leave();
	}
	return 0;
}

/* cuBLAS's trmm can be out of place; BLAS's is in place. */
int ckt_blas_trmm(const struct ckt_blas_job *job)
{
	struct ckt_blas_factor alpha = ckt_blas_factor(&job->alpha, 0);
	size_t size = ckt_blas_type_size(job->C.type);
	for (int64_t j = 0; j < job->n; j++)
		memmove(element(&job->C, 0, 0, j), element(&job->B, 0, 0, j),
			(size_t)job->m * size);
	ckt_blas_enter();
	CKT_BLAS_ONE(job->A.type, strmm, dtrmm, ctrmm, ztrmm,
		(CblasColMajor, ckt_blas_side(job->side), ckt_blas_uplo(job->uplo),
			ckt_blas_trans(job->trans), ckt_blas_diag(job->diag), (int)job->m,
			(int)job->n),
		alpha, (job->A.p, (int)job->A.ld, job->C.p, (int)job->C.ld))
	ckt_blas_leave();
	return 0;
}

/* Adds alpha op(A)(i, j) to sum, in double precision.  Reads nothing if alpha is 0. */
static void term(const struct ckt_blas_operand *operand, int64_t batch, int op,
	const double alpha[2], int64_t i, int64_t j, double sum[2])
{
	double value[2];
	bool swap = op == CKT_BLAS_T || op == CKT_BLAS_C;
	if (alpha[0] == 0 && alpha[1] == 0)
		return;
	ckt_blas_load(value, CUDA_C_64F,
		swap ? element(operand, batch, j, i) : element(operand, batch, i, j), operand->type,
		1, 1);
	if (op == CKT_BLAS_C)
		value[1] = -value[1];
	sum[0] += alpha[0] * value[0] - alpha[1] * value[1];
	sum[1] += alpha[0] * value[1] + alpha[1] * value[0];
}

int ckt_blas_geam(const struct ckt_blas_job *job)
{
	double alpha[2], beta[2];
	int64_t batch = job->batch ? job->batch : 1;
	ckt_blas_scalar_get(&job->alpha, 0, alpha);
	ckt_blas_scalar_get(&job->beta, 0, beta);
	for (int64_t b = 0; b < batch; b++)
		for (int64_t j = 0; j < job->n; j++)
			for (int64_t i = 0; i < job->m; i++) {
				double sum[2] = {0};
				term(&job->A, b, job->transa, alpha, i, j, sum);
				term(&job->B, b, job->transb, beta, i, j, sum);
				ckt_blas_store(element(&job->C, b, i, j), job->C.type, 1, sum,
					CUDA_C_64F, 1);
			}
	return 0;
}

int ckt_blas_dgmm(const struct ckt_blas_job *job)
{
	int64_t size = (int64_t)ckt_blas_type_size(job->x.type),
		count = job->side == CKT_BLAS_LEFT ? job->m : job->n;
	const char *x = (char *)job->x.p + (job->x.ld < 0 ? (1 - count) * job->x.ld * size : 0);
	for (int64_t j = 0; j < job->n; j++)
		for (int64_t i = 0; i < job->m; i++) {
			double a[2], d[2];
			ckt_blas_load(a, CUDA_C_64F, element(&job->A, 0, i, j), job->A.type, 1, 1);
			ckt_blas_load(d, CUDA_C_64F,
				x + (job->side == CKT_BLAS_LEFT ? i : j) * job->x.ld * size,
				job->x.type, 1, 1);
			double value[2] = {a[0] * d[0] - a[1] * d[1], a[0] * d[1] + a[1] * d[0]};
			ckt_blas_store(
				element(&job->C, 0, i, j), job->C.type, 1, value, CUDA_C_64F, 1);
		}
	return 0;
}

/* Copies a triangle between a vector packed column by column (x) and a matrix (A). */
static void packed(const struct ckt_blas_job *job, bool pack)
{
	size_t size = ckt_blas_type_size(job->A.type);
	char *p = job->x.p;
	for (int64_t j = 0; j < job->n; j++) {
		int64_t from = job->uplo == CKT_BLAS_LOWER ? j : 0,
			count = job->uplo == CKT_BLAS_LOWER ? job->n - j : j + 1;
		char *at = element(&job->A, 0, from, j);
		memcpy(pack ? p : at, pack ? at : p, (size_t)count * size);
		p += (size_t)count * size;
	}
}

int ckt_blas_tpttr(const struct ckt_blas_job *job)
{
	packed(job, false);
	return 0;
}

int ckt_blas_trttp(const struct ckt_blas_job *job)
{
	packed(job, true);
	return 0;
}
