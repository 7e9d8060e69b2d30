/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Factors and solutions of many small systems: LU with pivots and QR, in double precision for every
 * type.
 *
 * OpenBLAS's functions would need a Fortran runtime.  Results are those of LAPACK: pivots count
 * from 1, and info is the index of the first 0 on the diagonal.
 */
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/libs/blas/openblas.h"

typedef double complex number;

/* Reads one matrix of a batch into contiguous columns; put writes it back. */
static number *get(
	const struct ckt_blas_operand *operand, int64_t batch, int64_t rows, int64_t columns)
{
	number *all = malloc((size_t)(rows * columns + 1) * sizeof *all);
	const char *p = ckt_blas_at(operand, batch);
	for (int64_t j = 0; j < columns && all; j++)
		ckt_blas_load(all + j * rows, CUDA_C_64F,
			p + j * operand->ld * (int64_t)ckt_blas_type_size(operand->type),
			operand->type, 1, rows);
	return all;
}

static void put(const struct ckt_blas_operand *operand, int64_t batch, int64_t rows,
	int64_t columns, const number *all)
{
	char *p = ckt_blas_at(operand, batch);
	for (int64_t j = 0; j < columns; j++)
		ckt_blas_store(p + j * operand->ld * (int64_t)ckt_blas_type_size(operand->type),
			operand->type, 1, all + j * rows, CUDA_C_64F, rows);
}

static double size_of(number x)
{
	return fabs(creal(x)) + fabs(cimag(x));
}

static void swap_rows(number *a, int64_t ld, int64_t columns, int64_t r, int64_t s)
{
	for (int64_t j = 0; j < columns && r != s; j++) {
		number t = a[r + j * ld];
		a[r + j * ld] = a[s + j * ld];
		a[s + j * ld] = t;
	}
}

/*
 * Without pivots if pivot is NULL. Returns the index, from 1, of the first diagonal element of U
 * that is 0; 0: none.
 */
static int lu(number *a, int64_t n, int *pivot)
{
	int info = 0;
	for (int64_t k = 0; k < n; k++) {
		int64_t best = k;
		for (int64_t i = k + 1; i < n && pivot; i++)
			if (size_of(a[i + k * n]) > size_of(a[best + k * n]))
				best = i;
		if (pivot)
			pivot[k] = (int)best + 1;
		swap_rows(a, n, n, k, best);
		if (a[k + k * n] == 0) {
			info = info ? info : (int)k + 1;
			continue;
		}
		for (int64_t i = k + 1; i < n; i++)
			a[i + k * n] /= a[k + k * n];
		for (int64_t j = k + 1; j < n; j++)
			for (int64_t i = k + 1; i < n; i++)
				a[i + j * n] -= a[i + k * n] * a[k + j * n];
	}
	return info;
}

static number op_of(const number *a, int64_t n, int op, int64_t i, int64_t j)
{
	return op == CKT_BLAS_N    ? a[i + j * n]
		: op == CKT_BLAS_T ? a[j + i * n]
				   : conj(a[j + i * n]);
}

/* Solves op(T) y = x for a triangle T of a, and writes y to x.  lower and unit describe op(T). */
static void solve_triangle(const number *a, int64_t n, int op, bool lower, bool unit, number *x)
{
	for (int64_t step = 0; step < n; step++) {
		int64_t i = lower ? step : n - 1 - step;
		for (int64_t j = lower ? 0 : i + 1; j < (lower ? i : n); j++)
			x[i] -= op_of(a, n, op, i, j) * x[j];
		if (!unit)
			x[i] /= op_of(a, n, op, i, i);
	}
}

static void solve_lu(
	const number *a, int64_t n, const int *pivot, int op, number *x, int64_t columns)
{
	for (int64_t k = 0; k < n && op == CKT_BLAS_N && pivot; k++)
		swap_rows(x, n, columns, k, pivot[k] - 1);
	for (int64_t j = 0; j < columns; j++) {
		/* Transposed, U is the lower triangle and comes first. */
		solve_triangle(a, n, op, true, op == CKT_BLAS_N, x + j * n);
		solve_triangle(a, n, op, false, op != CKT_BLAS_N, x + j * n);
	}
	for (int64_t k = n - 1; k >= 0 && op != CKT_BLAS_N && pivot; k--)
		swap_rows(x, n, columns, k, pivot[k] - 1);
}

int ckt_blas_getrf(const struct ckt_blas_job *job)
{
	for (int64_t b = 0; b < job->batch; b++) {
		number *a = get(&job->A, b, job->n, job->n);
		if (!a)
			return -ENOMEM;
		job->info[b] = lu(a, job->n, job->pivot ? job->pivot + b * job->n : NULL);
		put(&job->A, b, job->n, job->n, a);
		free(a);
	}
	return 0;
}

int ckt_blas_getrs(const struct ckt_blas_job *job)
{
	for (int64_t i = 0; i < job->batch; i++) {
		number *a = get(&job->A, i, job->n, job->n),
		       *b = get(&job->B, i, job->n, job->nrhs);
		if (a && b) {
			solve_lu(a, job->n, job->pivot ? job->pivot + i * job->n : NULL, job->trans,
				b, job->nrhs);
			put(&job->B, i, job->n, job->nrhs, b);
		}
		bool done = a && b;
		free(a);
		free(b);
		if (!done)
			return -ENOMEM;
	}
	return 0;
}

/* Writes the inverse of the factored matrix a to the job's C. Writes nothing if U has a 0. */
static int inverse(const struct ckt_blas_job *job, int64_t i, const number *a, const int *pivot)
{
	int64_t n = job->n;
	int info = 0;
	for (int64_t k = n - 1; k >= 0; k--)
		info = a[k + k * n] == 0 ? (int)k + 1 : info;
	number *x = calloc((size_t)(n * n + 1), sizeof *x);
	if (!x)
		return -ENOMEM;
	for (int64_t k = 0; k < n; k++)
		x[k + k * n] = 1;
	if (!info) {
		solve_lu(a, n, pivot, CKT_BLAS_N, x, n);
		put(&job->C, i, n, n, x);
	}
	free(x);
	job->info[i] = info;
	return 0;
}

int ckt_blas_getri(const struct ckt_blas_job *job)
{
	int error = 0;
	for (int64_t i = 0; i < job->batch && !error; i++) {
		number *a = get(&job->A, i, job->n, job->n);
		error = a ? inverse(job, i, a, job->pivot ? job->pivot + i * job->n : NULL)
			  : -ENOMEM;
		free(a);
	}
	return error;
}

int ckt_blas_matinv(const struct ckt_blas_job *job)
{
	int pivot[32], error = 0;
	for (int64_t i = 0; i < job->batch && !error; i++) {
		number *a = get(&job->A, i, job->n, job->n);
		if (a)
			lu(a, job->n, pivot);
		error = a ? inverse(job, i, a, pivot) : -ENOMEM;
		free(a);
	}
	return error;
}

/*
 * Turns column k of a into a reflector below the diagonal and applies it to the columns after k.
 * Returns the reflector's factor.
 */
static number reflect(number *a, int64_t m, int64_t n, int64_t k)
{
	number *v = a + k * m, alpha = v[k], tau;
	double rest = 0;
	for (int64_t i = k + 1; i < m; i++)
		rest += creal(v[i] * conj(v[i]));
	if (rest == 0 && cimag(alpha) == 0)
		return 0;
	double beta = -copysign(sqrt(rest + creal(alpha * conj(alpha))), creal(alpha));
	tau = (beta - alpha) / beta;
	for (int64_t i = k + 1; i < m; i++)
		v[i] /= alpha - beta;
	v[k] = beta;
	for (int64_t j = k + 1; j < n; j++) {
		number sum = a[k + j * m];
		for (int64_t i = k + 1; i < m; i++)
			sum += conj(v[i]) * a[i + j * m];
		sum *= conj(tau);
		a[k + j * m] -= sum;
		for (int64_t i = k + 1; i < m; i++)
			a[i + j * m] -= v[i] * sum;
	}
	return tau;
}

int ckt_blas_geqrf(const struct ckt_blas_job *job)
{
	int64_t count = job->m < job->n ? job->m : job->n;
	for (int64_t b = 0; b < job->batch; b++) {
		number *a = get(&job->A, b, job->m, job->n);
		char *to = ckt_blas_at(&job->x, b);
		if (!a)
			return -ENOMEM;
		for (int64_t k = 0; k < count; k++) {
			number tau = reflect(a, job->m, job->n, k);
			ckt_blas_store(to + k * (int64_t)ckt_blas_type_size(job->x.type),
				job->x.type, 1, &tau, CUDA_C_64F, 1);
		}
		put(&job->A, b, job->m, job->n, a);
		free(a);
	}
	return 0;
}

/* Least squares: the right sides are reflected as additional columns of the matrix. */
static int least_squares(const struct ckt_blas_job *job, int64_t b)
{
	int64_t m = job->m, n = job->n, all = n + job->nrhs;
	number *a = malloc((size_t)(m * all + 1) * sizeof *a), *left = get(&job->A, b, m, n),
	       *right = get(&job->C, b, m, job->nrhs), *r = NULL;
	int info = 0, error = a && left && right ? 0 : -ENOMEM;
	if (!error) {
		memcpy(a, left, (size_t)(m * n) * sizeof *a);
		memcpy(a + m * n, right, (size_t)(m * job->nrhs) * sizeof *a);
		for (int64_t k = 0; k < n; k++)
			reflect(a, m, all, k);
		for (int64_t k = n - 1; k >= 0; k--)
			info = a[k + k * m] == 0 ? (int)k + 1 : info;
		r = malloc((size_t)(n * n + 1) * sizeof *r);
		error = r ? 0 : -ENOMEM;
	}
	if (!error) {
		for (int64_t j = 0; j < n; j++)
			memcpy(r + j * n, a + j * m, (size_t)n * sizeof *r);
		for (int64_t j = 0; j < job->nrhs && !info; j++)
			solve_triangle(r, n, CKT_BLAS_N, false, false, a + (n + j) * m);
		put(&job->A, b, m, n, a);
		put(&job->C, b, m, job->nrhs, a + m * n);
		if (job->pivot)
			job->pivot[b] = info;
	}
	free(a);
	free(left);
	free(right);
	free(r);
	return error;
}

int ckt_blas_gels(const struct ckt_blas_job *job)
{
	int error = 0;
	for (int64_t b = 0; b < job->batch && !error; b++)
		error = least_squares(job, b);
	return error;
}
