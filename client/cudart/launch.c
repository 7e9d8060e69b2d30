/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launching kernels.  The hot path reads thread-local data, finds the kernel by a hash look-up or
 * from its handle, and calls the driver's launch.
 */
#include <stdlib.h>

#include "client/cudart/launch.h"
#include "client/cudart/api.h"
#include "client/cudart/function.h"
#include "client/cudart/module.h"
#include "client/cudart/registration.h"
#include "client/cudart/variants.h"

/* A launch nested deeper than the thread's own array; these launches form a list, and are rare. */
struct ckt_rt_call_more {
	struct ckt_rt_call call;
	struct ckt_rt_call_more *below;
};

unsigned __cudaPushCallConfiguration(
	dim3 gridDim, dim3 blockDim, size_t sharedMem, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(
	dim3 *gridDim, dim3 *blockDim, size_t *sharedMem, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *entry);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args,
	size_t sharedMem, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args,
	size_t sharedMem, cudaStream_t stream);

CKT_RT_API unsigned __cudaPushCallConfiguration(
	dim3 gridDim, dim3 blockDim, size_t sharedMem, struct CUstream_st *stream)
{
	struct ckt_rt_thread *thread = &ckt_rt_thread;
	struct ckt_rt_call call = {gridDim, blockDim, sharedMem, stream};
	if (__builtin_expect(thread->calls_inline < CKT_RT_CALLS_INLINE, 1)) {
		thread->calls[thread->calls_inline++] = call;
		return 0;
	}
	struct ckt_rt_call_more *more = malloc(sizeof *more);
	if (!more)
		return (unsigned)ckt_rt_return(cudaErrorMemoryAllocation);
	more->call = call;
	more->below = thread->more;
	thread->more = more;
	return 0;
}

CKT_RT_API cudaError_t __cudaPopCallConfiguration(
	dim3 *gridDim, dim3 *blockDim, size_t *sharedMem, void *stream)
{
	struct ckt_rt_thread *thread = &ckt_rt_thread;
	struct ckt_rt_call_more *more = thread->more;
	const struct ckt_rt_call *call;
	if (CKT_RT_UNLIKELY(more))
		call = &more->call;
	else if (thread->calls_inline)
		call = &thread->calls[--thread->calls_inline];
	else
		return ckt_rt_return(cudaErrorMissingConfiguration);
	*gridDim = call->grid;
	*blockDim = call->block;
	*sharedMem = call->shared_bytes;
	*(cudaStream_t *)stream = call->stream;
	if (CKT_RT_UNLIKELY(more)) {
		thread->more = more->below;
		free(more);
	}
	return cudaSuccess;
}

/* A kernel runs on the device of its stream, whichever device is current (seen on H200s). */
__attribute__((noinline)) static cudaError_t launch_elsewhere(struct ckt_rt_kernel *kernel,
	const dim3 *grid, const dim3 *block, void **args, size_t shared_bytes, cudaStream_t stream)
{
	CUdevice handle;
	CUfunction function;
	int here = ckt_rt_thread.device, there = 0;
	if (cuStreamGetDevice(stream, &handle))
		return cudaErrorInvalidResourceHandle;
	while (there < ckt_rt_device_count && ckt_rt_devices[there].handle != handle)
		there++;
	if (there == ckt_rt_device_count || there == here)
		return cudaErrorInvalidResourceHandle;
	cudaError_t error = cudaSetDevice(there);
	if (!error)
		error = ckt_rt_kernel_function(kernel, &function);
	if (!error)
		error = (cudaError_t)cuLaunchKernel(function, grid->x, grid->y, grid->z, block->x,
			block->y, block->z, (unsigned)shared_bytes, stream, args, NULL);
	cudaSetDevice(here);
	return error;
}

/* Precondition: entered; kernel is not NULL. */
static inline cudaError_t launch(struct ckt_rt_kernel *kernel, const dim3 *grid, const dim3 *block,
	void **args, size_t shared_bytes, cudaStream_t stream)
{
	CUfunction function;
	cudaError_t error = ckt_rt_kernel_function(kernel, &function);
	CKT_RT_REQUIRE(!error, error);
	CKT_RT_REQUIRE(shared_bytes <= UINT32_MAX, cudaErrorInvalidValue);
	CUresult result = cuLaunchKernel(function, grid->x, grid->y, grid->z, block->x, block->y,
		block->z, (unsigned)shared_bytes, stream, args, NULL);
	if (__builtin_expect(result == CUDA_SUCCESS, 1))
		return cudaSuccess;
	if (result == CUDA_ERROR_INVALID_HANDLE && ckt_rt_device_count > 1 && stream) {
		error = launch_elsewhere(kernel, grid, block, args, shared_bytes, stream);
		return error ? ckt_rt_return(error) : cudaSuccess;
	}
	return ckt_rt_return((cudaError_t)result);
}

/* The handle is the record of the stub's address.  Nothing is loaded. */
CKT_RT_API cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *entry)
{
	CKT_RT_REQUIRE(kernel && entry, cudaErrorInvalidValue);
	struct ckt_rt_kernel *record = ckt_rt_kernel_living(entry);
	CKT_RT_REQUIRE(record, cudaErrorInvalidDeviceFunction);
	*kernel = (cudaKernel_t)(void *)record;
	return cudaSuccess;
}

CKT_RT_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim,
	void **args, size_t sharedMem, cudaStream_t stream)
{
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(kernel, cudaErrorInvalidDeviceFunction);
	return launch((struct ckt_rt_kernel *)(void *)kernel, &gridDim, &blockDim, args, sharedMem,
		stream);
}

CKT_RT_API cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim,
	void **args, size_t sharedMem, cudaStream_t stream)
{
	return __cudaLaunchKernel(
		kernel, gridDim, blockDim, args, sharedMem, stream ? stream : cudaStreamPerThread);
}

CKT_RT_API cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args,
	size_t sharedMem, cudaStream_t stream)
{
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(func, cudaErrorInvalidDeviceFunction);
	struct ckt_rt_kernel *kernel = ckt_rt_kernel_find(func);
	/* CUDA 13.0 returns this error for an address that is no kernel (seen on an H200). */
	CKT_RT_REQUIRE(kernel, cudaErrorInvalidResourceHandle);
	return launch(kernel, &gridDim, &blockDim, args, sharedMem, stream);
}

CKT_RT_API cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim,
	void **args, size_t sharedMem, cudaStream_t stream)
{
	CUfunction function;
	cudaError_t error = ckt_rt_function(func, &function);
	CKT_RT_REQUIRE(!error, error);
	CKT_RT_REQUIRE(sharedMem <= UINT32_MAX, cudaErrorInvalidValue);
	CUresult result = cuLaunchCooperativeKernel(function, gridDim.x, gridDim.y, gridDim.z,
		blockDim.x, blockDim.y, blockDim.z, (unsigned)sharedMem, stream, args);
	return ckt_rt_return((cudaError_t)result);
}

static cudaError_t launch_ex(
	const cudaLaunchConfig_t *config, const void *func, void **args, cudaStream_t stream)
{
	CUfunction function;
	CUlaunchConfig driver;
	_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute),
		"one layout, one numbering");
	cudaError_t error = ckt_rt_function(func, &function);
	CKT_RT_REQUIRE(!error, error);
	error = ckt_rt_launch_config(config, stream, &driver);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_return((cudaError_t)cuLaunchKernelEx(&driver, function, args, NULL));
}

cudaError_t ckt_rt_launch_config(
	const cudaLaunchConfig_t *config, cudaStream_t stream, CUlaunchConfig *ret_config)
{
	if (config->dynamicSmemBytes > UINT32_MAX)
		return cudaErrorInvalidValue;
	*ret_config = (CUlaunchConfig){
		.gridDimX = config->gridDim.x,
		.gridDimY = config->gridDim.y,
		.gridDimZ = config->gridDim.z,
		.blockDimX = config->blockDim.x,
		.blockDimY = config->blockDim.y,
		.blockDimZ = config->blockDim.z,
		.sharedMemBytes = (unsigned)config->dynamicSmemBytes,
		.hStream = stream,
		.attrs = (CUlaunchAttribute *)config->attrs,
		.numAttrs = config->numAttrs,
	};
	return cudaSuccess;
}

CKT_RT_API cudaError_t cudaLaunchKernelExC(
	const cudaLaunchConfig_t *config, const void *func, void **args)
{
	CKT_RT_REQUIRE(config, cudaErrorInvalidValue);
	return launch_ex(config, func, args, config->stream);
}

CKT_RT_API cudaError_t cudaLaunchKernelExC_ptsz(
	const cudaLaunchConfig_t *config, const void *func, void **args)
{
	CKT_RT_REQUIRE(config, cudaErrorInvalidValue);
	return launch_ex(config, func, args, config->stream ? config->stream : cudaStreamPerThread);
}
