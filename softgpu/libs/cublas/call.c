/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a call into work on its handle's stream. */
#include <string.h>

#include "softgpu/libs/common/driver.h"
#include "softgpu/libs/cublas/handle.h"

struct message {
	int (*run)(const struct ckt_blas_job *job);
	struct ckt_blas_job job;
};

static void run_message(const void *data)
{
	const struct message *message = data;
	int error = message->run(&message->job);
	if (error)
		ckt_softlib_fail(message->job.name, strerror(-error));
}

cublasStatus_t ckt_soft_cublas_status(CUresult result)
{
	switch (result) {
	case CUDA_SUCCESS:
		return CUBLAS_STATUS_SUCCESS;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return CUBLAS_STATUS_ALLOC_FAILED;
	case CUDA_ERROR_NOT_INITIALIZED:
	case CUDA_ERROR_NO_DEVICE:
		return CUBLAS_STATUS_NOT_INITIALIZED;
	case CUDA_ERROR_INVALID_VALUE:
		return CUBLAS_STATUS_INVALID_VALUE;
	default:
		return CUBLAS_STATUS_EXECUTION_FAILED;
	}
}

cublasStatus_t ckt_soft_cublas_unsupported(const char *name)
{
	ckt_softlib_unsupported(name);
	return CUBLAS_STATUS_NOT_SUPPORTED;
}

cudaDataType ckt_soft_cublas_scale_type(cublasComputeType_t compute, cudaDataType matrix)
{
	bool complex = ckt_blas_type_complex(matrix);
	switch (compute) {
	case CUBLAS_COMPUTE_16F:
	case CUBLAS_COMPUTE_16F_PEDANTIC:
		return CUDA_R_16F;
	case CUBLAS_COMPUTE_32I:
	case CUBLAS_COMPUTE_32I_PEDANTIC:
		return CUDA_R_32I;
	case CUBLAS_COMPUTE_64F:
	case CUBLAS_COMPUTE_64F_PEDANTIC:
	case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT:
		return complex ? CUDA_C_64F : CUDA_R_64F;
	default:
		return complex ? CUDA_C_32F : CUDA_R_32F;
	}
}

/* A factor on the host is read now; one on the device is read when the work runs. */
static cublasStatus_t fix_scalar(cublasHandle_t handle, struct ckt_blas_scalar *scalar)
{
	size_t size = ckt_blas_type_size(scalar->type);
	if (!scalar->p)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!size || size > sizeof scalar->value)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (handle->pointer_mode == CUBLAS_POINTER_MODE_HOST) {
		memcpy(&scalar->value, scalar->p, size);
		scalar->p = NULL;
	}
	return CUBLAS_STATUS_SUCCESS;
}

/* OpenBLAS's sizes are int. */
static bool fits(const struct ckt_blas_job *job)
{
	const int64_t sizes[] = {job->m, job->n, job->k, job->kl, job->ku, job->nrhs, job->A.ld,
		job->B.ld, job->C.ld, job->x.ld, job->y.ld};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		if (sizes[i] > INT32_MAX || sizes[i] < -INT32_MAX)
			return false;
	return true;
}

cublasStatus_t ckt_soft_cublas_submit(cublasHandle_t handle, struct ckt_blas_job *job,
	const struct ckt_cublas_family *family, unsigned flags)
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (ckt_softlib_failed())
		return CUBLAS_STATUS_EXECUTION_FAILED;
	if (!fits(job))
		return ckt_soft_cublas_unsupported(job->name);
	cublasStatus_t status = family->check(job);
	if (status == CUBLAS_STATUS_SUCCESS && (flags & CKT_CUBLAS_ALPHA))
		status = fix_scalar(handle, &job->alpha);
	if (status == CUBLAS_STATUS_SUCCESS && (flags & CKT_CUBLAS_BETA))
		status = fix_scalar(handle, &job->beta);
	if (status == CUBLAS_STATUS_NOT_SUPPORTED)
		ckt_softlib_unsupported(job->name);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if (flags & CKT_CUBLAS_HOST_INFO) {
		if (!job->info)
			return CUBLAS_STATUS_INVALID_VALUE;
		*job->info = 0;
	}
	struct message message = {family->run, *job};
	CUresult result =
		ckt_softlib_enqueue(handle->stream, run_message, &message, sizeof message);
	if (result == CUDA_SUCCESS && (flags & CKT_CUBLAS_RESULT) &&
		handle->pointer_mode == CUBLAS_POINTER_MODE_HOST) {
		result = ckt_softlib_wait(handle->stream);
		if (result == CUDA_SUCCESS && ckt_softlib_failed())
			return CUBLAS_STATUS_EXECUTION_FAILED;
	}
	return ckt_soft_cublas_status(result);
}
