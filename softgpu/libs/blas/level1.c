/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors, with OpenBLAS's functions.  Types that OpenBLAS lacks are converted first. */
#include <math.h>
#include <stdlib.h>

#include "softgpu/libs/blas/openblas.h"

/* A vector of n numbers of the type of computation. */
struct vector {
	void *p;
	int step;
	void *copy;
};

/* The address of the first element; with a negative step, it is at the end. */
static char *first(const struct ckt_blas_operand *operand, int64_t n)
{
	int64_t from = operand->ld < 0 ? (1 - n) * operand->ld : 0;
	return (char *)operand->p + from * (int64_t)ckt_blas_type_size(operand->type);
}

static int take(
	struct vector *v, const struct ckt_blas_operand *operand, int64_t n, cudaDataType compute)
{
	if (operand->type == compute) {
		*v = (struct vector){operand->p, (int)operand->ld, NULL};
		return 0;
	}
	void *copy = malloc((size_t)n * ckt_blas_type_size(compute));
	*v = (struct vector){copy, 1, copy};
	if (!copy)
		return -ENOMEM;
	ckt_blas_load(copy, compute, first(operand, n), operand->type, operand->ld, n);
	return 0;
}

static void give(const struct vector *v, const struct ckt_blas_operand *operand, int64_t n,
	cudaDataType compute)
{
	if (v->copy)
		ckt_blas_store(first(operand, n), operand->type, operand->ld, v->copy, compute, n);
}

/* Converts both vectors of a job, or only the first. */
static int take_both(
	const struct ckt_blas_job *job, struct vector *x, struct vector *y, cudaDataType compute)
{
	*y = (struct vector){0};
	int error = take(x, &job->x, job->n, compute);
	if (!error && job->y.p)
		error = take(y, &job->y, job->n, compute);
	return error;
}

static void drop(struct vector *x, struct vector *y)
{
	free(x->copy);
	free(y->copy);
}

int ckt_blas_axpy(const struct ckt_blas_job *job)
{
	cudaDataType compute = ckt_blas_type_compute(job->y.type);
	struct ckt_blas_factor alpha = ckt_blas_factor(&job->alpha, 0);
	struct vector x, y;
	if (job->n <= 0)
		return 0;
	int error = take_both(job, &x, &y, compute), n = (int)job->n;
	if (!error) {
		CKT_BLAS_ONE(
			compute, saxpy, daxpy, caxpy, zaxpy, (n), alpha, (x.p, x.step, y.p, y.step))
		give(&y, &job->y, n, compute);
	}
	drop(&x, &y);
	return error;
}

int ckt_blas_scal(const struct ckt_blas_job *job)
{
	cudaDataType compute = ckt_blas_type_compute(job->x.type);
	struct ckt_blas_factor alpha = ckt_blas_factor(&job->alpha, 0);
	struct vector x, none;
	if (job->n <= 0 || job->x.ld <= 0)
		return 0;
	int error = take_both(job, &x, &none, compute), n = (int)job->n;
	if (!error) {
		CKT_BLAS_ONE(compute, sscal, dscal, cscal, zscal, (n), alpha, (x.p, x.step))
		give(&x, &job->x, n, compute);
	}
	drop(&x, &none);
	return error;
}

int ckt_blas_copy(const struct ckt_blas_job *job)
{
	cudaDataType compute = ckt_blas_type_compute(job->y.type);
	struct vector x, y;
	if (job->n <= 0)
		return 0;
	int error = take_both(job, &x, &y, compute);
	if (!error) {
		CKT_BLAS_NONE(compute, scopy, dcopy, ccopy, zcopy,
			((int)job->n, x.p, x.step, y.p, y.step))
		give(&y, &job->y, job->n, compute);
	}
	drop(&x, &y);
	return error;
}

int ckt_blas_swap(const struct ckt_blas_job *job)
{
	cudaDataType compute = ckt_blas_type_compute(job->x.type);
	struct vector x, y;
	if (job->n <= 0)
		return 0;
	int error = take_both(job, &x, &y, compute);
	if (!error) {
		CKT_BLAS_NONE(compute, sswap, dswap, cswap, zswap,
			((int)job->n, x.p, x.step, y.p, y.step))
		give(&x, &job->x, job->n, compute);
		give(&y, &job->y, job->n, compute);
	}
	drop(&x, &y);
	return error;
}

static void set_result(const struct ckt_blas_job *job, const double value[2])
{
	ckt_blas_store(job->result.p, job->result.type, 1, value, CUDA_C_64F, 1);
}

int ckt_blas_dot(const struct ckt_blas_job *job)
{
	cudaDataType compute = ckt_blas_type_compute(job->x.type);
	struct vector x, y;
	double value[2] = {0};
	float pair[2] = {0};
	int n = (int)job->n, error = 0;
	if (job->n > 0) {
		error = take_both(job, &x, &y, compute);
		if (error) {
			/* Nothing is computed. */
		} else if (compute == CUDA_R_32F) {
			value[0] = cblas_sdot(n, x.p, x.step, y.p, y.step);
		} else if (compute == CUDA_R_64F) {
			value[0] = cblas_ddot(n, x.p, x.step, y.p, y.step);
		} else if (compute == CUDA_C_32F) {
			(job->conjugate ? cblas_cdotc_sub : cblas_cdotu_sub)(
				n, x.p, x.step, y.p, y.step, pair);
			value[0] = pair[0], value[1] = pair[1];
		} else {
			(job->conjugate ? cblas_zdotc_sub : cblas_zdotu_sub)(
				n, x.p, x.step, y.p, y.step, value);
		}
		drop(&x, &y);
	}
	if (!error)
		set_result(job, value);
	return error;
}

int ckt_blas_nrm2(const struct ckt_blas_job *job)
{
	cudaDataType compute = ckt_blas_type_compute(job->x.type);
	struct vector x, none;
	double value[2] = {0};
	int n = (int)job->n, error = 0;
	if (job->n > 0 && job->x.ld > 0) {
		error = take_both(job, &x, &none, compute);
		if (error)
			return error;
		if (compute == CUDA_R_32F)
			value[0] = cblas_snrm2(n, x.p, x.step);
		else if (compute == CUDA_R_64F)
			value[0] = cblas_dnrm2(n, x.p, x.step);
		else if (compute == CUDA_C_32F)
			value[0] = cblas_scnrm2(n, x.p, x.step);
		else
			value[0] = cblas_dznrm2(n, x.p, x.step);
		drop(&x, &none);
	}
	set_result(job, value);
	return 0;
}

/*
 * OpenBLAS's function is not used: scasum of 0.3.21 omits imaginary parts of the last elements on
 * CPUs with AVX-512.
 */
int ckt_blas_asum(const struct ckt_blas_job *job)
{
	double sum[2] = {0};
	for (int64_t i = 0; i < job->n && job->x.ld > 0; i++) {
		double value[2];
		ckt_blas_load(value, CUDA_C_64F,
			(char *)job->x.p + i * job->x.ld * (int64_t)ckt_blas_type_size(job->x.type),
			job->x.type, 1, 1);
		sum[0] += fabs(value[0]) + fabs(value[1]);
	}
	set_result(job, sum);
	return 0;
}

/* The index, from 1, of the first element with the largest or smallest |re| + |im|. */
int ckt_blas_iamax(const struct ckt_blas_job *job)
{
	int64_t found = 0;
	double best = 0;
	for (int64_t i = 0; i < job->n && job->x.ld > 0; i++) {
		double value[2];
		ckt_blas_load(value, CUDA_C_64F,
			(char *)job->x.p + i * job->x.ld * (int64_t)ckt_blas_type_size(job->x.type),
			job->x.type, 1, 1);
		double size = fabs(value[0]) + fabs(value[1]);
		if (!found || (job->minimum ? size < best : size > best))
			found = i + 1, best = size;
	}
	if (job->result.type == CUDA_R_64I)
		*(int64_t *)job->result.p = found;
	else
		*(int *)job->result.p = (int)found;
	return 0;
}
