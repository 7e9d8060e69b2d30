/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/module/occupancy.c: the worker is asked once for each question, until a setting
 * changes.
 */
#include "relay.h"

static void test_known(void)
{
	CUfunction f = relay_add();
	CUdeviceptr memory;
	int blocks = 0, again = 0;
	COST(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 64, 0), CUDA_SUCCESS, 1, 0);
	LOCAL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&again, f, 64, 0), CUDA_SUCCESS);
	YES(blocks > 0);
	IS(again, blocks);
	/* Another block size, shared memory or flag is another question. */
	COST(cuOccupancyMaxActiveBlocksPerMultiprocessor(&again, f, 128, 0), CUDA_SUCCESS, 1, 0);
	COST(cuOccupancyMaxActiveBlocksPerMultiprocessor(&again, f, 64, 4096), CUDA_SUCCESS, 1, 0);
	COST(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		     &again, f, 64, 0, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE),
		CUDA_SUCCESS, 1, 0);
	LOCAL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&again, f, 64, 0), CUDA_SUCCESS);
	/* Work changes no setting. */
	memory = memory_of(4096, 1);
	COST(cuOccupancyMaxActiveBlocksPerMultiprocessor(&again, f, 64, 0), CUDA_SUCCESS, 1, 0);
	IS(cuMemsetD32(memory, 2, 1024), CUDA_SUCCESS);
	LOCAL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&again, f, 64, 0), CUDA_SUCCESS);
	IS(again, blocks);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	LOCAL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&again, f, 0, 0), BAD);
	LOCAL(cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, f, 64, 0), BAD);
}

static void test_settings(void)
{
	CUfunction f = relay_add();
	int blocks = 0;
	IS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 96, 0), CUDA_SUCCESS);
	LOCAL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 96, 0), CUDA_SUCCESS);
	IS(cuFuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_SHARED), CUDA_SUCCESS);
	COST(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 96, 0), CUDA_SUCCESS, 1, 0);
	IS(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1), CUDA_SUCCESS);
	COST(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 96, 0), CUDA_SUCCESS, 1, 0);
	IS(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024),
		CUDA_SUCCESS);
	COST(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 96, 0), CUDA_SUCCESS, 1, 0);
	/* The connection breaks: the session may continue elsewhere. */
	relay_break(true);
	relay_mark();
	COST(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 96, 0), CUDA_SUCCESS, 1, 0);
	LOCAL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 96, 0), CUDA_SUCCESS);
}

/* A search asks for each size once, and a second search for none. */
static void test_search(void)
{
	CUfunction f = relay_add();
	int grid = 0, block = 0, grid_again = 0, block_again = 0;
	IS(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_NONE), CUDA_SUCCESS);
	relay_mark();
	IS(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0), CUDA_SUCCESS);
	relay_settle();
	YES(relay_waited >= 1 && relay_waited <= 32);
	LOCAL(cuOccupancyMaxPotentialBlockSize(&grid_again, &block_again, f, NULL, 0, 0),
		CUDA_SUCCESS);
	YES(grid > 0 && block > 0);
	IS(grid_again, grid);
	IS(block_again, block);
}

UNIT_SUITE(occupancy, {"known", test_known}, {"settings", test_settings}, {"search", test_search})
