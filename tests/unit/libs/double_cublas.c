/* SPDX-License-Identifier: Apache-2.0 */
/* See double_cublas.h. */
#include "tests/unit/libs/double_cublas.h"

struct double_cublas double_cublas;

cublasHandle_t double_handle(void)
{
	return (cublasHandle_t)&double_cublas;
}

static cublasStatus_t create(cublasHandle_t *ret)
{
	double_cublas.created++;
	*ret = double_handle();
	return (cublasStatus_t)double_cublas.status;
}

static cublasStatus_t destroy(cublasHandle_t handle)
{
	double_cublas.destroyed++;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_stream(cublasHandle_t handle, cudaStream_t stream)
{
	double_cublas.calls++;
	double_cublas.stream = stream;
	double_cublas.workspace = NULL;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_workspace(cublasHandle_t handle, void *workspace, size_t bytes)
{
	double_cublas.calls++;
	double_cublas.workspace = workspace;
	double_cublas.workspace_bytes = bytes;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_pointer_mode(cublasHandle_t handle, cublasPointerMode_t mode)
{
	double_cublas.calls++;
	double_cublas.pointer_mode = mode;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_math_mode(cublasHandle_t handle, cublasMath_t mode)
{
	double_cublas.calls++;
	double_cublas.math_mode = mode;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get_math_mode(cublasHandle_t handle, cublasMath_t *mode)
{
	*mode = (cublasMath_t)double_cublas.math_mode;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_sm_count_target(cublasHandle_t handle, int count)
{
	double_cublas.calls++;
	double_cublas.sm_count_target = count;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_environment_mode(cublasHandle_t handle, int mode)
{
	double_cublas.calls++;
	double_cublas.environment_mode = mode;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get_version(cublasHandle_t handle, int *version)
{
	*version = 130100;
	return CUBLAS_STATUS_SUCCESS;
}

void double_basics(void)
{
	double_cublas = (struct double_cublas){0};
	ckt_cublas.cublasCreate_v2 = create;
	ckt_cublas.cublasDestroy_v2 = destroy;
	ckt_cublas.cublasSetStream_v2 = set_stream;
	ckt_cublas.cublasSetWorkspace_v2 = set_workspace;
	ckt_cublas.cublasSetPointerMode_v2 = set_pointer_mode;
	ckt_cublas.cublasSetMathMode = set_math_mode;
	ckt_cublas.cublasGetMathMode = get_math_mode;
	ckt_cublas.cublasSetSmCountTarget = set_sm_count_target;
	ckt_cublas.cublasSetEnvironmentMode = set_environment_mode;
	ckt_cublas.cublasGetVersion_v2 = get_version;
}
