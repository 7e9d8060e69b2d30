/* SPDX-License-Identifier: Apache-2.0 */
/* Queries and settings of a context: device, flags, limits, cache preferences, peers. */
#include <string.h>

#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/object.h"
#include "softgpu/stream/capture.h"

CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_context_get(ctx, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (device)
		*device = context->device->ordinal;
	ckt_soft_object_put(&context->object);
	return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *device)
{
	CUresult result = cuCtxGetDevice_v2(device, NULL);
	/* A destroyed context also has a device. */
	const struct ckt_soft_context *last =
		result == CUDA_ERROR_CONTEXT_IS_DESTROYED ? ckt_soft_context_last() : NULL;
	if (!last || last->primary || !last->device || !device)
		return result;
	*device = last->device->ordinal;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetFlags(unsigned int *flags)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = atomic_load(&context->flags) | (context->primary ? CU_CTX_MAP_HOST : 0);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetFlags(unsigned int flags)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	atomic_store(&context->flags, flags);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_context_get(ctx, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (ctxId)
		*ctxId = context->id;
	ckt_soft_object_put(&context->object);
	return ctxId ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_context_get(ctx, &context);
	if (result != CUDA_SUCCESS)
		return result;
	/* The version of the context interface, unchanged since CUDA 3.2. */
	if (version)
		*version = 3020;
	ckt_soft_object_put(&context->object);
	return version ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuCtxSynchronize(void)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter_faulted(&context);
	if (result == CUDA_SUCCESS)
		result = ckt_capture_context_check(context->object.handle);
	return result == CUDA_SUCCESS ? ckt_soft_context_synchronize(context) : result;
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext ctx)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_context_get(ctx, &context);
	if (result != CUDA_SUCCESS)
		return result;
	result = ckt_soft_context_synchronize(context);
	ckt_soft_object_put(&context->object);
	return result;
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (leastPriority)
		*leastPriority = 0;
	if (greatestPriority)
		*greatestPriority = -5;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pvalue)
		return CUDA_ERROR_INVALID_VALUE;
	if ((unsigned)limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	/* On these devices, kernels cannot wait for kernels that they launch. */
	if (limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH && context->device->arch->capability >= 90)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	pthread_mutex_lock(&context->lock);
	*pvalue = context->limits[limit];
	pthread_mutex_unlock(&context->lock);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	switch (limit) {
	case CU_LIMIT_STACK_SIZE:
		/* The maximum of a thread's local memory on any capability. */
		if (value > 512 << 10)
			return CUDA_ERROR_INVALID_VALUE;
		value = (value + 15) & ~(size_t)15;
		break;
	case CU_LIMIT_MALLOC_HEAP_SIZE:
		/*
		 * Accept a size that is too large; the first kernel that uses the heap reports it.
		 */
		if (value > context->device->total_bytes)
			value = context->device->total_bytes;
		break;
	case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
		if (context->device->arch->capability >= 90)
			return CUDA_ERROR_UNSUPPORTED_LIMIT;
		break;
	case CU_LIMIT_PRINTF_FIFO_SIZE:
	case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
		break;
	case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
		if (value > 128)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
		/*
		 * There is no such cache: the size stays 0, as on a device without a reserved part.
		 */
		if (value > SIZE_MAX >> 16)
			return CUDA_ERROR_INVALID_VALUE;
		value = 0;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&context->lock);
	/* CUDA fixes the heap's size when the first kernel uses the heap. */
	if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && context->heap)
		result = CUDA_ERROR_INVALID_VALUE;
	else
		context->limits[limit] = value;
	pthread_mutex_unlock(&context->lock);
	return result;
}

CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pconfig)
		return CUDA_ERROR_INVALID_VALUE;
	*pconfig = context->cache_config;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache config)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	context->cache_config = config;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pConfig)
		return CUDA_ERROR_INVALID_VALUE;
	*pConfig = context->shared_config;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	/* Accepted without effect: all supported capabilities have four-byte banks. */
	return (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE
		? CUDA_ERROR_INVALID_VALUE
		: CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxResetPersistingL2Cache(void)
{
	struct ckt_soft_context *context;
	return ckt_soft_enter(&context);
}

CUresult CUDAAPI cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pExecAffinity)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	/* A context has all multiprocessors. */
	*pExecAffinity =
		(CUexecAffinityParam){.type = type, .param.smCount.val = context->device->n_sm};
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	struct ckt_soft_context *context, *peer;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	result =
		peerContext ? ckt_soft_context_get(peerContext, &peer) : CUDA_ERROR_INVALID_CONTEXT;
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t bit = 1ULL << peer->device->ordinal;
	pthread_mutex_lock(&context->lock);
	if (peer->device == context->device)
		result = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	else if (context->peers & bit)
		result = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	else
		context->peers |= bit;
	pthread_mutex_unlock(&context->lock);
	ckt_soft_object_put(&peer->object);
	return result;
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext peerContext)
{
	struct ckt_soft_context *context, *peer;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	result =
		peerContext ? ckt_soft_context_get(peerContext, &peer) : CUDA_ERROR_INVALID_CONTEXT;
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t bit = 1ULL << peer->device->ordinal;
	pthread_mutex_lock(&context->lock);
	if (!(context->peers & bit))
		result = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	context->peers &= ~bit;
	pthread_mutex_unlock(&context->lock);
	ckt_soft_object_put(&peer->object);
	return result;
}
