/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of functions that factor or solve many systems. */
#include "softgpu/libs/cublas/handle.h"

enum { MATINV_MOST = 32 }; /* limit of the documentation */

static bool square_ok(const struct ckt_blas_job *job)
{
	return job->n >= 0 && job->batch >= 0 && job->A.ld >= (job->n > 1 ? job->n : 1) &&
		(job->A.p || !job->n);
}

static cublasStatus_t valid(bool ok)
{
	return ok ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

static cublasStatus_t check_getrf(const struct ckt_blas_job *job)
{
	return valid(square_ok(job) && job->info);
}

static bool inverse_ok(const struct ckt_blas_job *job)
{
	return square_ok(job) && job->info && job->C.ld >= (job->n > 1 ? job->n : 1) &&
		(job->C.p || !job->n);
}

static cublasStatus_t check_getri(const struct ckt_blas_job *job)
{
	return valid(inverse_ok(job));
}

static cublasStatus_t check_matinv(const struct ckt_blas_job *job)
{
	return valid(inverse_ok(job) && job->n <= MATINV_MOST);
}

static cublasStatus_t check_getrs(const struct ckt_blas_job *job)
{
	bool op_ok =
		job->trans == CKT_BLAS_N || job->trans == CKT_BLAS_T || job->trans == CKT_BLAS_C;
	return valid(square_ok(job) && op_ok && job->nrhs >= 0 &&
		job->B.ld >= (job->n > 1 ? job->n : 1) && (job->B.p || !job->n || !job->nrhs));
}

static bool tall_ok(const struct ckt_blas_job *job)
{
	return job->m >= 0 && job->n >= 0 && job->batch >= 0 &&
		job->A.ld >= (job->m > 1 ? job->m : 1) && (job->A.p || !job->m || !job->n);
}

static cublasStatus_t check_geqrf(const struct ckt_blas_job *job)
{
	return valid(tall_ok(job) && (job->x.p || !job->m || !job->n));
}

static cublasStatus_t check_gels(const struct ckt_blas_job *job)
{
	if (!tall_ok(job) || job->nrhs < 0 || job->C.ld < (job->m > 1 ? job->m : 1) ||
		(!job->C.p && job->m && job->nrhs))
		return CUBLAS_STATUS_INVALID_VALUE;
	return job->trans == CKT_BLAS_N && job->m >= job->n ? CUBLAS_STATUS_SUCCESS
							    : CUBLAS_STATUS_NOT_SUPPORTED;
}

#define FAMILY(name, check) \
	const struct ckt_cublas_family ckt_cublas_##name = {ckt_blas_##name, check}
FAMILY(getrf, check_getrf);
FAMILY(getri, check_getri);
FAMILY(getrs, check_getrs);
FAMILY(matinv, check_matinv);
FAMILY(geqrf, check_geqrf);
FAMILY(gels, check_gels);
