/* SPDX-License-Identifier: Apache-2.0 */
/* Occupancy: the number of blocks that fit on a multiprocessor. */
#include "client/cudart/api.h"
#include "client/cudart/function.h"
#include "client/cudart/launch.h"

static cudaError_t max_active(
	int *ret_blocks, const void *func, int block_size, size_t shared_bytes, unsigned flags)
{
	CUfunction function;
	CKT_RT_REQUIRE(ret_blocks, cudaErrorInvalidValue);
	cudaError_t error = ckt_rt_function(func, &function);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		ret_blocks, function, block_size, shared_bytes, flags));
}

CKT_RT_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
	int *numBlocks, const void *func, int blockSize, size_t dynamicSMemSize)
{
	return max_active(numBlocks, func, blockSize, dynamicSMemSize, CU_OCCUPANCY_DEFAULT);
}

CKT_RT_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *numBlocks, const void *func, int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
	return max_active(numBlocks, func, blockSize, dynamicSMemSize, flags);
}

CKT_RT_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(
	size_t *dynamicSmemSize, const void *func, int numBlocks, int blockSize)
{
	CUfunction function;
	cudaError_t error = ckt_rt_function(func, &function);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuOccupancyAvailableDynamicSMemPerBlock(
		dynamicSmemSize, function, numBlocks, blockSize));
}

static cudaError_t read_launch(const void *func, const cudaLaunchConfig_t *config,
	CUfunction *ret_function, CUlaunchConfig *ret_config)
{
	if (!config)
		return cudaErrorInvalidValue;
	cudaError_t error = ckt_rt_function(func, ret_function);
	return error ? error : ckt_rt_launch_config(config, config->stream, ret_config);
}

CKT_RT_API cudaError_t cudaOccupancyMaxPotentialClusterSize(
	int *clusterSize, const void *func, const cudaLaunchConfig_t *launchConfig)
{
	CUfunction function;
	CUlaunchConfig config;
	cudaError_t error = read_launch(func, launchConfig, &function, &config);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuOccupancyMaxPotentialClusterSize(clusterSize, function, &config));
}

CKT_RT_API cudaError_t cudaOccupancyMaxActiveClusters(
	int *numClusters, const void *func, const cudaLaunchConfig_t *launchConfig)
{
	CUfunction function;
	CUlaunchConfig config;
	cudaError_t error = read_launch(func, launchConfig, &function, &config);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuOccupancyMaxActiveClusters(numClusters, function, &config));
}
