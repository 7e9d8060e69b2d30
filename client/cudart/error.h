/* SPDX-License-Identifier: Apache-2.0 */
/* The last error of a thread, and how an exported function returns. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#define CKT_RT_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Records a failed call's error and returns the call's result. */
cudaError_t ckt_rt_failed(cudaError_t error);
/* The error that destroyed the current context, if any. */
cudaError_t ckt_rt_fault(void);

static inline cudaError_t ckt_rt_return(cudaError_t error)
{
	return CKT_RT_UNLIKELY(error) ? ckt_rt_failed(error) : error;
}

static inline cudaError_t ckt_rt_cu(CUresult result)
{
	return ckt_rt_return((cudaError_t)result);
}
