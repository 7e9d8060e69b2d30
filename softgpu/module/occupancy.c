/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Occupancy: the number of blocks that fit on one multiprocessor, by the capability's limits and
 * the function's needs.
 */
#include "softgpu/module/occupancy.h"
#include "cudacommon/interface.h"
#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/object.h"
#include "softgpu/module/function.h"
#include "softgpu/ptx/ptx.h"

unsigned ckt_soft_occupancy(const struct ckt_soft_function *function,
	const struct ckt_soft_device *device, unsigned threads, size_t dynamic_shared)
{
	const struct ckt_soft_arch *arch = device->arch;
	if (threads == 0 || threads > function->info->max_threads)
		return 0;
	unsigned warps = (threads + 31) / 32;
	unsigned blocks = arch->threads_sm / 32 / warps;
	if (blocks > arch->blocks_sm)
		blocks = arch->blocks_sm;
	int registers;
	ckt_soft_function_attribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, &registers);
	/* A warp gets registers in units of 256. */
	unsigned per_block = ((unsigned)registers * 32 + 255) / 256 * 256 * warps;
	if (per_block && 65536 / per_block < blocks)
		blocks = 65536 / per_block ? 65536 / per_block : 1;
	size_t shared = function->info->static_shared_bytes + dynamic_shared;
	if (shared > (size_t)arch->shared_optin << 10)
		return 0;
	shared += arch->capability >= 80 ? 1024 : 0;
	if (shared && ((size_t)arch->shared_sm << 10) / shared < blocks)
		blocks = (unsigned)(((size_t)arch->shared_sm << 10) / shared);
	return blocks;
}

/* The function of a call, with a reference. */
static CUresult enter_function(CUfunction handle, struct ckt_soft_function **ret_function,
	struct ckt_soft_device **ret_device)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	*ret_device = context->device;
	return ckt_soft_function_get(handle, context, ret_function);
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
	struct ckt_soft_function *function;
	struct ckt_soft_device *device;
	CUresult result = enter_function(func, &function, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if (!numBlocks || blockSize <= 0 ||
		(flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
		result = CUDA_ERROR_INVALID_VALUE;
	else
		*numBlocks = (int)ckt_soft_occupancy(
			function, device, (unsigned)blockSize, dynamicSMemSize);
	ckt_soft_object_put(&function->object);
	return result;
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(
	int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		numBlocks, func, blockSize, dynamicSMemSize, 0);
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize,
	CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
	int blockSizeLimit, unsigned int flags)
{
	struct ckt_soft_function *function;
	struct ckt_soft_device *device;
	CUresult result = enter_function(func, &function, &device);
	if (result != CUDA_SUCCESS)
		return result;
	unsigned most = function->info->max_threads, best_threads = 0, best_block = 0,
		 best_count = 0;
	if (blockSizeLimit > 0 && (unsigned)blockSizeLimit < most)
		most = (unsigned)blockSizeLimit;
	if (!minGridSize || !blockSize ||
		(flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
		result = CUDA_ERROR_INVALID_VALUE;
	/* Begin with the largest: among equals, the largest block wins. */
	for (unsigned block = (most + 31) / 32 * 32; result == CUDA_SUCCESS && block; block -= 32) {
		unsigned threads = block > most ? most : block;
		size_t shared = blockSizeToDynamicSMemSize
			? blockSizeToDynamicSMemSize((int)threads)
			: dynamicSMemSize;
		unsigned count = ckt_soft_occupancy(function, device, threads, shared);
		if (count * threads > best_threads) {
			best_threads = count * threads;
			best_block = threads;
			best_count = count;
		}
	}
	if (result == CUDA_SUCCESS) {
		*minGridSize = (int)(best_count * device->n_sm);
		*blockSize = (int)best_block;
	}
	ckt_soft_object_put(&function->object);
	return result;
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
	CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func,
		blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, 0);
}

CUresult CUDAAPI cuOccupancyAvailableDynamicSMemPerBlock(
	size_t *dynamicSmemSize, CUfunction func, int numBlocks, int blockSize)
{
	struct ckt_soft_function *function;
	struct ckt_soft_device *device;
	CUresult result = enter_function(func, &function, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if (!dynamicSmemSize || numBlocks <= 0 || blockSize <= 0 ||
		ckt_soft_occupancy(function, device, (unsigned)blockSize, 0) <
			(unsigned)numBlocks) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else {
		size_t reserved = device->arch->capability >= 80 ? 1024 : 0;
		size_t share = ((size_t)device->arch->shared_sm << 10) / (unsigned)numBlocks;
		size_t most = (size_t)device->arch->shared_optin << 10,
		       used = function->info->static_shared_bytes;
		share = share > reserved ? share - reserved : 0;
		share = share > most ? most : share;
		*dynamicSmemSize = share > used ? share - used : 0;
	}
	ckt_soft_object_put(&function->object);
	return result;
}

static uint64_t cluster_blocks(const CUlaunchConfig *config)
{
	for (unsigned i = 0; config->attrs && i < config->numAttrs; i++)
		if ((int)config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			return (uint64_t)config->attrs[i].value.clusterDim.x *
				config->attrs[i].value.clusterDim.y *
				config->attrs[i].value.clusterDim.z;
	return 1;
}

/* Whether the grid consists of whole clusters. */
static bool clusters_fit(const CUlaunchConfig *config)
{
	for (unsigned i = 0; config->attrs && i < config->numAttrs; i++) {
		const CUlaunchAttributeValue *value = &config->attrs[i].value;
		if ((int)config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			return config->gridDimX % value->clusterDim.x == 0 &&
				config->gridDimY % value->clusterDim.y == 0 &&
				config->gridDimZ % value->clusterDim.z == 0;
	}
	return true;
}

CUresult CUDAAPI cuOccupancyMaxPotentialClusterSize(
	int *clusterSize, CUfunction func, const CUlaunchConfig *config)
{
	struct ckt_soft_function *function;
	struct ckt_soft_device *device;
	CUresult result = enter_function(func, &function, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if (!clusterSize || !config)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (device->arch->capability < 90)
		result = CKT_AS_CUDA_NOT_SUPPORTED;
	else
		*clusterSize = atomic_load(&function->non_portable_cluster) ? 16 : 8;
	ckt_soft_object_put(&function->object);
	return result;
}

CUresult CUDAAPI cuOccupancyMaxActiveClusters(
	int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
	struct ckt_soft_function *function;
	struct ckt_soft_device *device;
	CUresult result = enter_function(func, &function, &device);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t cluster = config ? cluster_blocks(config) : 0;
	uint64_t threads =
		config ? (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ : 0;
	if (!numClusters || !cluster || !threads || threads > 1024) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (device->arch->capability < 90) {
		result = CKT_AS_CUDA_NOT_SUPPORTED;
	} else if (!clusters_fit(config)) {
		result = CUDA_ERROR_INVALID_CLUSTER_SIZE;
	} else {
		uint64_t blocks = (uint64_t)ckt_soft_occupancy(function, device, (unsigned)threads,
					  config->sharedMemBytes) *
			device->n_sm;
		/*
		 * Blocks of a cluster need not share a multiprocessor here.  At least one cluster
		 * runs, even if few blocks fit.
		 */
		*numClusters = blocks == 0 ? 0 : blocks < cluster ? 1 : (int)(blocks / cluster);
	}
	ckt_soft_object_put(&function->object);
	return result;
}
