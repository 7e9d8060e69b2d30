/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix and vector: OpenBLAS's functions with cuBLAS's flags. */
#include <string.h>

#include "softgpu/libs/blas/openblas.h"

/* With beta 0, y may hold any bits, so clear it before OpenBLAS multiplies it. */
static void clear(void *y, cudaDataType type, int64_t n, int64_t step)
{
	size_t size = ckt_blas_type_size(type);
	if (step < 0)
		step = -step;
	for (int64_t i = 0; i < n; i++)
		memset((char *)y + (size_t)(i * step) * size, 0, size);
}

static bool begin(const struct ckt_blas_job *job, struct ckt_blas_factor *alpha,
	struct ckt_blas_factor *beta, int64_t i)
{
	*alpha = ckt_blas_factor(&job->alpha, i);
	*beta = ckt_blas_factor(&job->beta, i);
	return beta->d[0] == 0 && beta->d[1] == 0;
}

/* A vector as a row-major matrix of one column. */
static struct ckt_blas_operand as_matrix(const struct ckt_blas_operand *v, int64_t i, int64_t n)
{
	struct ckt_blas_operand matrix = *v;
	matrix.p = (char *)ckt_blas_at(v, i) -
		(v->ld < 0 ? (n - 1) * v->ld : 0) * (int64_t)ckt_blas_type_size(v->type);
	matrix.list = false;
	matrix.stride = 0;
	matrix.row = true;
	return matrix;
}

/* For halves: a product with a matrix of one column. */
static int gemv_as_matmul(const struct ckt_blas_job *job, int64_t i)
{
	bool plain = job->trans == CKT_BLAS_N;
	int64_t rows = plain ? job->m : job->n, columns = plain ? job->n : job->m;
	struct ckt_blas_job product = *job;
	product.A.p = ckt_blas_at(&job->A, i);
	product.A.list = false;
	product.B = as_matrix(&job->x, i, columns);
	product.C = as_matrix(&job->y, i, rows);
	product.transa = job->trans;
	product.transb = CKT_BLAS_N;
	product.m = rows;
	product.n = 1;
	product.k = columns;
	product.batch = 1;
	return ckt_blas_matmul(&product);
}

int ckt_blas_gemv(const struct ckt_blas_job *job)
{
	struct ckt_blas_factor alpha, beta;
	int64_t batch = job->batch ? job->batch : 1;
	bool half = job->A.type == CUDA_R_16F || job->A.type == CUDA_R_16BF;
	if (!job->m || !job->n)
		return 0;
	for (int64_t i = 0; i < batch; i++) {
		if (half) {
			int error = gemv_as_matmul(job, i);
			if (error)
				return error;
			continue;
		}
		void *y = ckt_blas_at(&job->y, i);
		if (begin(job, &alpha, &beta, i))
			clear(y, job->y.type, job->trans == CKT_BLAS_N ? job->m : job->n,
				job->y.ld);
		ckt_blas_enter();
		CKT_BLAS_TWO(job->A.type, sgemv, dgemv, cgemv, zgemv,
			(CblasColMajor, ckt_blas_trans(job->trans), (int)job->m, (int)job->n),
			alpha,
			(ckt_blas_at(&job->A, i), (int)job->A.ld, ckt_blas_at(&job->x, i),
				(int)job->x.ld),
			beta, (y, (int)job->y.ld))
		ckt_blas_leave();
	}
	return 0;
}

int ckt_blas_gbmv(const struct ckt_blas_job *job)
{
	struct ckt_blas_factor alpha, beta;
	if (begin(job, &alpha, &beta, 0))
		clear(job->y.p, job->y.type, job->trans == CKT_BLAS_N ? job->m : job->n, job->y.ld);
	ckt_blas_enter();
	CKT_BLAS_TWO(job->A.type, sgbmv, dgbmv, cgbmv, zgbmv,
		(CblasColMajor, ckt_blas_trans(job->trans), (int)job->m, (int)job->n, (int)job->kl,
			(int)job->ku),
		alpha, (job->A.p, (int)job->A.ld, job->x.p, (int)job->x.ld), beta,
		(job->y.p, (int)job->y.ld))
	ckt_blas_leave();
	return 0;
}

/* Triangular, in place: full, banded and packed functions differ in the matrix arguments. */
#define TRIANGULAR(name, real4, real8, complex8, complex16, matrix)                           \
	int ckt_blas_##name(const struct ckt_blas_job *job)                                   \
	{                                                                                     \
		ckt_blas_enter();                                                             \
		CKT_BLAS_NONE(job->A.type, real4, real8, complex8, complex16,                 \
			(CblasColMajor, ckt_blas_uplo(job->uplo), ckt_blas_trans(job->trans), \
				ckt_blas_diag(job->diag), (int)job->n, CKT_BLAS_LIST matrix,  \
				job->x.p, (int)job->x.ld))                                    \
		ckt_blas_leave();                                                             \
		return 0;                                                                     \
	}
TRIANGULAR(trmv, strmv, dtrmv, ctrmv, ztrmv, (job->A.p, (int)job->A.ld))
TRIANGULAR(trsv, strsv, dtrsv, ctrsv, ztrsv, (job->A.p, (int)job->A.ld))
TRIANGULAR(tbmv, stbmv, dtbmv, ctbmv, ztbmv, ((int)job->k, job->A.p, (int)job->A.ld))
TRIANGULAR(tbsv, stbsv, dtbsv, ctbsv, ztbsv, ((int)job->k, job->A.p, (int)job->A.ld))
TRIANGULAR(tpmv, stpmv, dtpmv, ctpmv, ztpmv, (job->A.p))
TRIANGULAR(tpsv, stpsv, dtpsv, ctpsv, ztpsv, (job->A.p))

/*
 * y = alpha A x + beta y for a symmetric matrix of which the lower triangle is stored. `at` returns
 * the position of element (i, j), i >= j.
 */
static void symmetric_complex(const struct ckt_blas_job *job,
	int64_t (*at)(const struct ckt_blas_job *job, int64_t i, int64_t j))
{
	double alpha[2], beta[2];
	ckt_blas_scalar_get(&job->alpha, 0, alpha);
	ckt_blas_scalar_get(&job->beta, 0, beta);
	size_t size = ckt_blas_type_size(job->A.type);
	int64_t n = job->n, incx = job->x.ld, incy = job->y.ld, x0 = incx < 0 ? (1 - n) * incx : 0,
		y0 = incy < 0 ? (1 - n) * incy : 0;
	for (int64_t i = 0; i < n; i++) {
		double sum[2] = {0}, a[2], x[2], y[2] = {0};
		for (int64_t j = 0; j < n; j++) {
			int64_t index = at(job, i, j);
			if (index < 0)
				continue;
			ckt_blas_load(a, CUDA_C_64F, (char *)job->A.p + (size_t)index * size,
				job->A.type, 1, 1);
			ckt_blas_load(x, CUDA_C_64F,
				(char *)job->x.p + (x0 + j * incx) * (int64_t)size, job->A.type, 1,
				1);
			sum[0] += a[0] * x[0] - a[1] * x[1];
			sum[1] += a[0] * x[1] + a[1] * x[0];
		}
		void *to = (char *)job->y.p + (y0 + i * incy) * (int64_t)size;
		if (beta[0] != 0 || beta[1] != 0)
			ckt_blas_load(y, CUDA_C_64F, to, job->A.type, 1, 1);
		double new[2] = {
			alpha[0] * sum[0] - alpha[1] * sum[1] + beta[0] * y[0] - beta[1] * y[1],
			alpha[0] * sum[1] + alpha[1] * sum[0] + beta[0] * y[1] + beta[1] * y[0]};
		ckt_blas_store(to, job->A.type, 1, new, CUDA_C_64F, 1);
	}
}

static int64_t full_at(const struct ckt_blas_job *job, int64_t i, int64_t j)
{
	bool stored = job->uplo == CKT_BLAS_LOWER ? i >= j : i <= j;
	return stored ? i + j * job->A.ld : j + i * job->A.ld;
}

int ckt_blas_symv(const struct ckt_blas_job *job)
{
	struct ckt_blas_factor alpha, beta;
	/* cuBLAS has a symmetric complex product, BLAS has none. */
	if (ckt_blas_type_complex(job->A.type) && !job->hermitian) {
		symmetric_complex(job, full_at);
		return 0;
	}
	if (begin(job, &alpha, &beta, 0))
		clear(job->y.p, job->y.type, job->n, job->y.ld);
	ckt_blas_enter();
	CKT_BLAS_TWO(job->A.type, ssymv, dsymv, chemv, zhemv,
		(CblasColMajor, ckt_blas_uplo(job->uplo), (int)job->n), alpha,
		(job->A.p, (int)job->A.ld, job->x.p, (int)job->x.ld), beta,
		(job->y.p, (int)job->y.ld))
	ckt_blas_leave();
	return 0;
}

int ckt_blas_sbmv(const struct ckt_blas_job *job)
{
	struct ckt_blas_factor alpha, beta;
	if (begin(job, &alpha, &beta, 0))
		clear(job->y.p, job->y.type, job->n, job->y.ld);
	ckt_blas_enter();
	CKT_BLAS_TWO(job->A.type, ssbmv, dsbmv, chbmv, zhbmv,
		(CblasColMajor, ckt_blas_uplo(job->uplo), (int)job->n, (int)job->k), alpha,
		(job->A.p, (int)job->A.ld, job->x.p, (int)job->x.ld), beta,
		(job->y.p, (int)job->y.ld))
	ckt_blas_leave();
	return 0;
}

int ckt_blas_spmv(const struct ckt_blas_job *job)
{
	struct ckt_blas_factor alpha, beta;
	if (begin(job, &alpha, &beta, 0))
		clear(job->y.p, job->y.type, job->n, job->y.ld);
	ckt_blas_enter();
	CKT_BLAS_TWO(job->A.type, sspmv, dspmv, chpmv, zhpmv,
		(CblasColMajor, ckt_blas_uplo(job->uplo), (int)job->n), alpha,
		(job->A.p, job->x.p, (int)job->x.ld), beta, (job->y.p, (int)job->y.ld))
	ckt_blas_leave();
	return 0;
}
