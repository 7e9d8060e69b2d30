/* SPDX-License-Identifier: Apache-2.0 */
/* A driver library with two functions, for test_driver.c. */
#include <cuda.h>

__attribute__((visibility("default"))) CUresult CUDAAPI cuInit(unsigned int flags)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

__attribute__((visibility("default"))) CUresult CUDAAPI cuMemAlloc_v2(
	CUdeviceptr *address, size_t size_bytes)
{
	*address = size_bytes + 1;
	return CUDA_SUCCESS;
}
