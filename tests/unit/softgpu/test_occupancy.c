/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/module/occupancy.c: blocks on a multiprocessor, worked out by hand for a 9.0 (2048
 * threads, 32 blocks, 228 KiB) and an 8.0.
 */
#include "files.h"

static const char text[] =
	".visible .entry light()\n{\nret;\n}\n"
	".visible .entry shared()\n{\n.reg .b32 r; .shared .b8 room[30720];\nmov.u32 r, room; ret;\n}\n"
	".visible .entry bounded() .maxntid 96, 1, 1\n{\nret;\n}\n";

static void test_blocks(void)
{
	test_context();
	CUfunction light = files_kernel(text, "light"), shared = files_kernel(text, "shared"),
		   bounded = files_kernel(text, "bounded");
	const struct {
		CUfunction f;
		int threads;
		size_t dynamic;
		int blocks;
	} table[] = {
		{light, 32, 0, 32},
		{light, 1, 0, 32},
		{light, 64, 0, 32},
		{light, 65, 0, 21},
		{light, 96, 0, 21},
		{light, 1024, 0, 2},
		{light, 1000, 0, 2},
		{light, 32, 1 << 10, 32},
		{light, 32, 7 << 10, 28},
		{light, 32, 113 << 10, 2},
		{light, 32, (113 << 10) + 1, 1},
		{light, 32, 227 << 10, 1},
		{light, 32, (227 << 10) + 1, 0},
		{light, 1025, 0, 0},
		{shared, 32, 0, 7},
		{shared, 32, 7 << 10, 6},
		{bounded, 96, 0, 21},
		{bounded, 97, 0, 0},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		int blocks = -1;
		OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(
			&blocks, table[i].f, table[i].threads, table[i].dynamic));
		if (blocks != table[i].blocks)
			fprintf(stderr, "occupancy %zu\n", i);
		IS(blocks, table[i].blocks);
	}
	int n;
	CHECK_RESULT(cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, light, 32, 0),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, light, -1, 0),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, NULL, 32, 0),
		CUDA_ERROR_INVALID_HANDLE);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		&n, light, 32, 0, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
	CHECK_RESULT(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, light, 32, 0, 2),
		CUDA_ERROR_INVALID_VALUE);
	CUcontext second = files_second();
	light = files_kernel(text, "light");
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, light, 32, 40 << 10));
	IS(n, 4); /* of 164 KiB 41 each */
	files_second_end(second);
}

static size_t CUDA_CB by_size(int threads)
{
	return (size_t)threads * 128;
}

static void test_potential(void)
{
	int grid = 0, block = 0, sm = 0;
	test_context();
	CUfunction light = files_kernel(text, "light"), bounded = files_kernel(text, "bounded");
	OK(cuDeviceGetAttribute(&sm, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	/* Among equals the largest block. */
	OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, light, NULL, 0, 0));
	IS(block, 1024);
	IS(grid, 2 * sm);
	OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, light, NULL, 0, 200));
	/* 16 of them are 2048 threads; 12 of 160, 10 of 192 and 9 of 200 are fewer */
	IS(block, 128);
	OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, bounded, NULL, 0, 0));
	IS(block, 64); /* 21 of 96 threads are 2016 */
	IS(grid, 32 * sm);
	/*
	 * Shared memory that grows with the block: 228 KiB / (128 bytes a thread) and 1 KiB for
	 * each block.
	 */
	OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, light, by_size, 0, 0));
	int best = 0;
	for (int t = 1024; t > 0; t -= 32) {
		int blocks = 0;
		OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, light, t, by_size(t)));
		best = blocks * t > best ? blocks * t : best;
	}
	IS(grid / sm * block, best);
	CHECK_RESULT(cuOccupancyMaxPotentialBlockSize(NULL, &block, light, NULL, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, light, NULL, 0, 0, 4),
		CUDA_ERROR_INVALID_VALUE);
}

static void test_shared(void)
{
	size_t room = 0;
	test_context();
	CUfunction light = files_kernel(text, "light"), shared = files_kernel(text, "shared");
	OK(cuOccupancyAvailableDynamicSMemPerBlock(&room, light, 1, 32));
	IS(room, 227 << 10);
	OK(cuOccupancyAvailableDynamicSMemPerBlock(&room, light, 2, 32));
	IS(room, 113 << 10);
	OK(cuOccupancyAvailableDynamicSMemPerBlock(&room, shared, 2, 32));
	IS(room, (113 << 10) - 30720);
	/* What it says does fit. */
	int blocks = 0;
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, shared, 32, room));
	IS(blocks, 2);
	CHECK_RESULT(cuOccupancyAvailableDynamicSMemPerBlock(&room, light, 33, 32),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuOccupancyAvailableDynamicSMemPerBlock(&room, light, 0, 32),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuOccupancyAvailableDynamicSMemPerBlock(NULL, light, 1, 32),
		CUDA_ERROR_INVALID_VALUE);
}

static void test_clusters(void)
{
	int n = 0, sm = 0;
	CUlaunchAttribute attribute = {
		.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {4, 1, 1}};
	CUlaunchConfig config = {.gridDimX = 4,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1024,
		.blockDimY = 1,
		.blockDimZ = 1,
		.attrs = &attribute,
		.numAttrs = 1};
	test_context();
	CUfunction light = files_kernel(text, "light");
	OK(cuDeviceGetAttribute(&sm, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	OK(cuOccupancyMaxPotentialClusterSize(&n, light, &config));
	IS(n, 8);
	OK(cuFuncSetAttribute(light, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
	OK(cuOccupancyMaxPotentialClusterSize(&n, light, &config));
	IS(n, 16);
	OK(cuOccupancyMaxActiveClusters(&n, light, &config));
	IS(n, 2 * sm < 4 ? 1 : 2 * sm / 4);
	config.blockDimX = 1025;
	CHECK_RESULT(cuOccupancyMaxActiveClusters(&n, light, &config), CUDA_ERROR_INVALID_VALUE);
	config.blockDimX = 0;
	CHECK_RESULT(cuOccupancyMaxActiveClusters(&n, light, &config), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuOccupancyMaxActiveClusters(&n, light, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(
		cuOccupancyMaxPotentialClusterSize(NULL, light, &config), CUDA_ERROR_INVALID_VALUE);
	CUcontext second = files_second();
	light = files_kernel(text, "light");
	config.blockDimX = 32;
	CHECK_RESULT(cuOccupancyMaxActiveClusters(&n, light, &config), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_RESULT(
		cuOccupancyMaxPotentialClusterSize(&n, light, &config), CUDA_ERROR_NOT_SUPPORTED);
	files_second_end(second);
}

UNIT_SUITE(softgpu / module / occupancy, {"blocks", test_blocks}, {"potential", test_potential},
	{"shared", test_shared}, {"clusters", test_clusters})
