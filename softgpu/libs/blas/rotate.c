/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plane rotations.  Functions that apply one take cosine and sine from the job's alpha and beta.
 * Functions that make one write them to c and s.
 */
#include "softgpu/libs/blas/openblas.h"

/* Element i of a vector of n, whose step may be negative. */
static char *element(const struct ckt_blas_operand *v, int64_t i, int64_t n)
{
	int64_t index = v->ld < 0 ? (i + 1 - n) * v->ld : i * v->ld;
	return (char *)v->p + index * (int64_t)ckt_blas_type_size(v->type);
}

int ckt_blas_rot(const struct ckt_blas_job *job)
{
	double c[2], s[2];
	ckt_blas_scalar_get(&job->alpha, 0, c);
	ckt_blas_scalar_get(&job->beta, 0, s);
	for (int64_t i = 0; i < job->n; i++) {
		double x[2], y[2];
		char *xp = element(&job->x, i, job->n), *yp = element(&job->y, i, job->n);
		ckt_blas_load(x, CUDA_C_64F, xp, job->x.type, 1, 1);
		ckt_blas_load(y, CUDA_C_64F, yp, job->y.type, 1, 1);
		const double to_x[2] = {c[0] * x[0] + s[0] * y[0] - s[1] * y[1],
			c[0] * x[1] + s[0] * y[1] + s[1] * y[0]};
		/* y uses the conjugate of the sine. */
		const double to_y[2] = {c[0] * y[0] - s[0] * x[0] - s[1] * x[1],
			c[0] * y[1] - s[0] * x[1] + s[1] * x[0]};
		ckt_blas_store(xp, job->x.type, 1, to_x, CUDA_C_64F, 1);
		ckt_blas_store(yp, job->y.type, 1, to_y, CUDA_C_64F, 1);
	}
	return 0;
}

int ckt_blas_rotm(const struct ckt_blas_job *job)
{
	double p[5];
	ckt_blas_load(p, CUDA_R_64F, job->param.p, job->param.type, 1, 5);
	/* The first parameter says which of the matrix's four elements are given. */
	double h11 = p[0] == 1 || p[0] == -1 ? p[1] : 1, h22 = p[0] == 1 || p[0] == -1 ? p[4] : 1;
	double h21 = p[0] == 0 || p[0] == -1 ? p[2] : -1, h12 = p[0] == 0 || p[0] == -1 ? p[3] : 1;
	for (int64_t i = 0; i < job->n && p[0] != -2; i++) {
		double x, y;
		char *xp = element(&job->x, i, job->n), *yp = element(&job->y, i, job->n);
		ckt_blas_load(&x, CUDA_R_64F, xp, job->x.type, 1, 1);
		ckt_blas_load(&y, CUDA_R_64F, yp, job->y.type, 1, 1);
		double to_x = h11 * x + h12 * y, to_y = h21 * x + h22 * y;
		ckt_blas_store(xp, job->x.type, 1, &to_x, CUDA_R_64F, 1);
		ckt_blas_store(yp, job->y.type, 1, &to_y, CUDA_R_64F, 1);
	}
	return 0;
}

/* Uses double precision, so the rounded result is the nearest number. */
int ckt_blas_rotg(const struct ckt_blas_job *job)
{
	double a[2], b[2], c[2] = {0}, s[2] = {0};
	ckt_blas_load(a, CUDA_C_64F, job->a.p, job->a.type, 1, 1);
	ckt_blas_load(b, CUDA_C_64F, job->b.p, job->b.type, 1, 1);
	if (ckt_blas_type_complex(job->a.type))
		cblas_zrotg(a, b, c, s);
	else
		cblas_drotg(a, b, c, s);
	ckt_blas_store(job->a.p, job->a.type, 1, a, CUDA_C_64F, 1);
	/* For complex numbers, b is unchanged. */
	if (!ckt_blas_type_complex(job->a.type))
		ckt_blas_store(job->b.p, job->b.type, 1, b, CUDA_C_64F, 1);
	ckt_blas_store(job->c.p, job->c.type, 1, c, CUDA_C_64F, 1);
	ckt_blas_store(job->s.p, job->s.type, 1, s, CUDA_C_64F, 1);
	return 0;
}

int ckt_blas_rotmg(const struct ckt_blas_job *job)
{
	double d1, d2, x1, y1, p[5];
	ckt_blas_load(&d1, CUDA_R_64F, job->d1.p, job->d1.type, 1, 1);
	ckt_blas_load(&d2, CUDA_R_64F, job->d2.p, job->d2.type, 1, 1);
	ckt_blas_load(&x1, CUDA_R_64F, job->x1.p, job->x1.type, 1, 1);
	ckt_blas_load(&y1, CUDA_R_64F, job->y1.p, job->y1.type, 1, 1);
	/* Parameters that the first one excludes keep their values. */
	ckt_blas_load(p, CUDA_R_64F, job->param.p, job->param.type, 1, 5);
	cblas_drotmg(&d1, &d2, &x1, y1, p);
	ckt_blas_store(job->d1.p, job->d1.type, 1, &d1, CUDA_R_64F, 1);
	ckt_blas_store(job->d2.p, job->d2.type, 1, &d2, CUDA_R_64F, 1);
	ckt_blas_store(job->x1.p, job->x1.type, 1, &x1, CUDA_R_64F, 1);
	ckt_blas_store(job->param.p, job->param.type, 1, p, CUDA_R_64F, 5);
	return 0;
}
