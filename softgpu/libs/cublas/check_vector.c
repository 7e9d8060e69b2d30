/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of functions of vectors. */
#include "softgpu/libs/cublas/handle.h"

/*
 * The types of Ex functions: the types of computation, and halves.  The other arguments must have
 * the type of computation or of storage.
 */
static bool type_ok(cudaDataType type)
{
	return type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_R_32F ||
		type == CUDA_R_64F || type == CUDA_C_32F || type == CUDA_C_64F;
}

static bool executes(const struct ckt_blas_job *job)
{
	return job->execution == (cudaDataType)-1 ||
		job->execution == ckt_blas_type_compute(job->x.type);
}

static cublasStatus_t check_vectors(const struct ckt_blas_job *job, bool two, bool result)
{
	if (job->n > 0 && (!job->x.p || (two && !job->y.p)))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (result && !job->result.p)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!type_ok(job->x.type) || !executes(job) ||
		(two && ckt_blas_type_complex(job->x.type) != ckt_blas_type_complex(job->y.type)) ||
		(two && !type_ok(job->y.type)))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_one(const struct ckt_blas_job *job)
{
	return check_vectors(job, false, false);
}

static cublasStatus_t check_two(const struct ckt_blas_job *job)
{
	return check_vectors(job, true, false);
}

static cublasStatus_t check_result(const struct ckt_blas_job *job)
{
	return check_vectors(job, false, true);
}

static cublasStatus_t check_dot(const struct ckt_blas_job *job)
{
	return check_vectors(job, true, true);
}

static cublasStatus_t check_rotm(const struct ckt_blas_job *job)
{
	return job->param.p ? check_two(job) : CUBLAS_STATUS_INVALID_VALUE;
}

static cublasStatus_t check_rotg(const struct ckt_blas_job *job)
{
	if (!job->a.p || !job->b.p || !job->c.p || !job->s.p)
		return CUBLAS_STATUS_INVALID_VALUE;
	return type_ok(job->a.type) && type_ok(job->c.type) ? CUBLAS_STATUS_SUCCESS
							    : CUBLAS_STATUS_NOT_SUPPORTED;
}

static cublasStatus_t check_rotmg(const struct ckt_blas_job *job)
{
	if (!job->d1.p || !job->d2.p || !job->x1.p || !job->y1.p || !job->param.p)
		return CUBLAS_STATUS_INVALID_VALUE;
	bool ok = type_ok(job->d1.type) && type_ok(job->d2.type) && type_ok(job->x1.type) &&
		type_ok(job->y1.type) && type_ok(job->param.type);
	return ok ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

#define FAMILY(name, check) \
	const struct ckt_cublas_family ckt_cublas_##name = {ckt_blas_##name, check}
FAMILY(axpy, check_two);
FAMILY(scal, check_one);
FAMILY(copy, check_two);
FAMILY(swap, check_two);
FAMILY(dot, check_dot);
FAMILY(nrm2, check_result);
FAMILY(asum, check_result);
FAMILY(iamax, check_result);
FAMILY(rot, check_two);
FAMILY(rotg, check_rotg);
FAMILY(rotm, check_rotm);
FAMILY(rotmg, check_rotmg);
