/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/occupancy.c: how many blocks fit. */
#include "files.h"

static void test_occupancy(void)
{
	const void *kernel = files_kernel();
	int blocks = 0, fewer = 0;
	size_t bytes = 0;
	IS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 128, 0), OK);
	YES(blocks > 0);
	IS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fewer, kernel, 1024, 0), OK);
	YES(fewer > 0 && fewer <= blocks);
	IS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(NULL, kernel, 128, 0), BAD);
	IS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, NULL, 128, 0),
		cudaErrorInvalidDeviceFunction);
	IS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 0, 0), BAD);
	IS(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, kernel, 128, 0, 0x80),
		BAD);
	IS(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, kernel, 1, 128), OK);
	YES(bytes > 0);
	IS(cudaOccupancyMaxPotentialClusterSize(&blocks, kernel, NULL), BAD);
	IS(cudaOccupancyMaxActiveClusters(&blocks, kernel, NULL), BAD);
	cudaGetLastError();
}

UNIT_SUITE(occupancy, {"occupancy", test_occupancy})
