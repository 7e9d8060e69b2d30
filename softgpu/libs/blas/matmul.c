/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices of any type.
 *
 * If all matrices have one type that OpenBLAS supports, OpenBLAS works in place.  Otherwise,
 * matrices of other types are copied, and the product is made in separate memory.  Then it is
 * scaled, added and rounded column by column.  Products of halves are summed in single precision,
 * as on a GPU.
 */
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/libs/blas/epilogue.h"
#include "softgpu/libs/blas/openblas.h"

/* Limits concurrent calls: OpenBLAS has at least 50 work areas, and a call uses one or two. */
static sem_t threads;

__attribute__((constructor)) static void count_threads(void)
{
	sem_init(&threads, 0, 16);
}

void ckt_blas_enter(void)
{
	while (sem_wait(&threads))
		; /* interrupted by a signal */
}

void ckt_blas_leave(void)
{
	sem_post(&threads);
}

/* A factor of the product in OpenBLAS's form. */
struct side {
	const void *p;
	int64_t ld;
	enum CBLAS_TRANSPOSE trans;
	void *copy; /* allocated here, or NULL */
};

/* Prepares op(matrix) of rows x columns; the matrix itself is columns x rows if op transposes. */
static int side_make(struct side *side, const struct ckt_blas_operand *operand, int64_t i, int op,
	int64_t rows, int64_t columns, cudaDataType compute)
{
	/* A row-major matrix is the transpose of a column-major one. */
	bool transposed = (op == CKT_BLAS_T || op == CKT_BLAS_C) != operand->row,
	     conjugate = op == CKT_BLAS_C || op == CKT_BLAS_CONJ;
	conjugate &= ckt_blas_type_complex(compute);
	const char *p = ckt_blas_at(operand, i);
	if (!p)
		return -EFAULT;
	if (operand->type == compute && (!conjugate || transposed)) {
		*side = (struct side){p, operand->ld,
			!transposed         ? CblasNoTrans
				: conjugate ? CblasConjTrans
					    : CblasTrans,
			NULL};
		return 0;
	}
	/* The copy keeps the order of storage: stored_columns columns of stored_rows numbers. */
	int64_t stored_rows = transposed ? columns : rows,
		stored_columns = transposed ? rows : columns;
	size_t size = ckt_blas_type_size(compute), from_size = ckt_blas_type_size(operand->type);
	char *copy = calloc((size_t)stored_rows * (size_t)stored_columns + 1, size);
	if (!copy)
		return -ENOMEM;
	for (int64_t j = 0; j < stored_columns; j++)
		ckt_blas_load(copy + (size_t)(j * stored_rows) * size, compute,
			p + (size_t)(j * operand->ld) * from_size, operand->type, 1, stored_rows);
	if (conjugate && !transposed)
		for (int64_t e = 0; e < stored_rows * stored_columns; e++) {
			if (compute == CUDA_C_32F)
				((float *)copy)[2 * e + 1] *= -1;
			else
				((double *)copy)[2 * e + 1] *= -1;
		}
	*side = (struct side){copy, stored_rows ? stored_rows : 1,
		!transposed         ? CblasNoTrans
			: conjugate ? CblasConjTrans
				    : CblasTrans,
		copy};
	return 0;
}

static void gemm(const struct side *a, const struct side *b, int64_t m, int64_t n, int64_t k,
	cudaDataType compute, struct ckt_blas_factor alpha, struct ckt_blas_factor beta, void *c,
	int64_t ldc)
{
	ckt_blas_enter();
	CKT_BLAS_TWO(compute, sgemm, dgemm, cgemm, zgemm,
		(CblasColMajor, a->trans, b->trans, (int)m, (int)n, (int)k), alpha,
		(a->p, (int)a->ld, b->p, (int)b->ld), beta, (c, (int)ldc))
	ckt_blas_leave();
}

/*
 * product = alpha product + beta old, for a column of count numbers.  If a factor is 0, its term is
 * omitted, whatever the other operand is.
 */
static void scale_and_add(void *product, const void *old, cudaDataType compute, int64_t count,
	struct ckt_blas_factor alpha, struct ckt_blas_factor beta)
{
	if (compute == CUDA_R_32F || compute == CUDA_R_64F) {
		for (int64_t i = 0; i < count; i++) {
			if (compute == CUDA_R_32F) {
				float *p = (float *)product + i;
				*p = alpha.f[0] * *p +
					(old ? beta.f[0] * ((const float *)old)[i] : 0);
			} else {
				double *p = (double *)product + i;
				*p = alpha.d[0] * *p +
					(old ? beta.d[0] * ((const double *)old)[i] : 0);
			}
		}
		return;
	}
	for (int64_t i = 0; i < count; i++) {
		double re, im, old_re = 0, old_im = 0;
		if (compute == CUDA_C_32F) {
			float *p = (float *)product + 2 * i;
			re = p[0], im = p[1];
			if (old)
				old_re = ((const float *)old)[2 * i],
				old_im = ((const float *)old)[2 * i + 1];
		} else {
			double *p = (double *)product + 2 * i;
			re = p[0], im = p[1];
			if (old)
				old_re = ((const double *)old)[2 * i],
				old_im = ((const double *)old)[2 * i + 1];
		}
		double new_re =
			alpha.d[0] * re - alpha.d[1] * im + beta.d[0] * old_re - beta.d[1] * old_im;
		double new_im =
			alpha.d[0] * im + alpha.d[1] * re + beta.d[0] * old_im + beta.d[1] * old_re;
		if (compute == CUDA_C_32F) {
			((float *)product)[2 * i] = (float)new_re;
			((float *)product)[2 * i + 1] = (float)new_im;
		} else {
			((double *)product)[2 * i] = new_re;
			((double *)product)[2 * i + 1] = new_im;
		}
	}
}

static bool is_zero(struct ckt_blas_factor factor)
{
	return factor.d[0] == 0 && factor.d[1] == 0;
}

/* The address of a column, and the step between its elements. */
static char *column(const struct ckt_blas_operand *operand, int64_t i, int64_t j, int64_t *ret_step)
{
	*ret_step = operand->row ? operand->ld : 1;
	return (char *)ckt_blas_at(operand, i) +
		(operand->row ? j : j * operand->ld) * (int64_t)ckt_blas_type_size(operand->type);
}

/* Writes the product to D. */
static int finish(const struct ckt_blas_job *job, int64_t i, char *product, cudaDataType compute,
	struct ckt_blas_factor alpha, struct ckt_blas_factor beta)
{
	const struct ckt_blas_operand *to = job->D.p ? &job->D : &job->C;
	size_t size = ckt_blas_type_size(compute);
	void *old = is_zero(beta) ? NULL : malloc((size_t)job->m * size);
	if (!is_zero(beta) && !old)
		return -ENOMEM;
	for (int64_t j = 0; j < job->n; j++) {
		int64_t step;
		char *at = product + (size_t)(j * job->m) * size;
		if (old) {
			const char *from = column(&job->C, i, j, &step);
			ckt_blas_load(old, compute, from, job->C.type, step, job->m);
		}
		scale_and_add(at, old, compute, job->m, alpha, beta);
	}
	free(old);
	int error = job->epilogue ? ckt_blas_epilogue_apply(job, i, product, compute) : 0;
	for (int64_t j = 0; j < job->n && !error; j++) {
		int64_t step;
		char *at = column(to, i, j, &step);
		ckt_blas_store(
			at, to->type, step, product + (size_t)(j * job->m) * size, compute, job->m);
	}
	return error;
}

static int matmul_beside(const struct ckt_blas_job *job, int64_t i, cudaDataType compute,
	struct ckt_blas_factor alpha, struct ckt_blas_factor beta)
{
	struct side a = {0}, b = {0};
	static const struct ckt_blas_factor one = {{1}, {1}}, zero;
	char *product = calloc((size_t)job->m * (size_t)job->n, ckt_blas_type_size(compute));
	int error = product ? 0 : -ENOMEM;
	if (!error && job->k && !is_zero(alpha)) {
		error = side_make(&a, &job->A, i, job->transa, job->m, job->k, compute);
		if (!error)
			error = side_make(&b, &job->B, i, job->transb, job->k, job->n, compute);
		if (!error)
			gemm(&a, &b, job->m, job->n, job->k, compute, one, zero, product, job->m);
	}
	if (!error)
		error = finish(job, i, product, compute, alpha, beta);
	free(a.copy);
	free(b.copy);
	free(product);
	return error;
}

static cudaDataType compute_type(const struct ckt_blas_job *job)
{
	cudaDataType a = ckt_blas_type_compute(job->A.type), c = ckt_blas_type_compute(job->C.type);
	/* Bytes with a result in single precision: sums of their products are exact in double. */
	if (job->A.type == CUDA_R_8I)
		return CUDA_R_64F;
	return ckt_blas_type_complex(c) || c == CUDA_R_64F ? c : a;
}

static int matmul_in_place(const struct ckt_blas_job *job, int64_t i, cudaDataType compute,
	struct ckt_blas_factor alpha, struct ckt_blas_factor beta)
{
	static const double nothing[2];
	struct side a = {nothing, job->m, CblasNoTrans, NULL}, b = {nothing, 1, CblasNoTrans, NULL};
	int64_t k = is_zero(alpha) ? 0 : job->k;
	int error = 0;
	/*
	 * With alpha 0, A and B may be invalid addresses, which some kernels of OpenBLAS would
	 * read.  side_make makes no copy if the types are equal.
	 */
	if (k)
		error = side_make(&a, &job->A, i, job->transa, job->m, k, compute);
	if (k && !error)
		error = side_make(&b, &job->B, i, job->transb, k, job->n, compute);
	if (!error)
		gemm(&a, &b, job->m, job->n, k, compute, alpha, beta, ckt_blas_at(&job->C, i),
			job->C.ld);
	return error;
}

int ckt_blas_matmul(const struct ckt_blas_job *job)
{
	cudaDataType compute = compute_type(job);
	int64_t batch = job->batch ? job->batch : 1;
	if (!job->m || !job->n)
		return 0;
	bool in_place = job->A.type == compute && job->B.type == compute &&
		job->C.type == compute && !job->epilogue && !job->C.row &&
		(!job->D.p ||
			(job->D.p == job->C.p && job->D.ld == job->C.ld &&
				job->D.stride == job->C.stride && !job->D.row &&
				job->D.type == compute)) &&
		job->transa != CKT_BLAS_CONJ && job->transb != CKT_BLAS_CONJ;
	for (int64_t i = 0; i < batch; i++) {
		struct ckt_blas_factor alpha = ckt_blas_factor(&job->alpha, i),
				       beta = ckt_blas_factor(&job->beta, i);
		int error = 0;
		if (!ckt_blas_at(job->D.p ? &job->D : &job->C, i))
			return -EFAULT;
		if (!in_place || (job->A.row && job->transa == CKT_BLAS_C) ||
			(job->B.row && job->transb == CKT_BLAS_C)) {
			error = matmul_beside(job, i, compute, alpha, beta);
		} else {
			error = matmul_in_place(job, i, compute, alpha, beta);
		}
		if (error)
			return error;
	}
	return 0;
}
