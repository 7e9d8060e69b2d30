/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/module/launch.c: a launch is checked here against device and function, and sent
 * without waiting; one with attributes waits.
 */
#include "relay.h"

static CUdeviceptr out;

/* The shape's result, and the messages it costs. */
static void test_shapes(void)
{
	CUfunction add = relay_add();
	uint32_t n = 2;
	void *params[] = {&out, &n};
	out = memory_of(64, 0);
	COST(cuLaunchKernel(add, 3, 1, 1, 4, 2, 1, 0, NULL, params, NULL), CUDA_SUCCESS, 0, 1);
	IS(word_at(out), 3 * 8 * 2);
	static const struct {
		unsigned grid[3], block[3], shared_bytes;
	} wrong[] = {
		{{0, 1, 1}, {1, 1, 1}, 0},
		{{1, 0, 1}, {1, 1, 1}, 0},
		{{1, 1, 0}, {1, 1, 1}, 0},
		{{1, 1, 1}, {0, 1, 1}, 0},
		{{1, 1, 1}, {1, 1, 0}, 0},
		{{1, 65536, 1}, {1, 1, 1}, 0},
		{{1, 1, 65536}, {1, 1, 1}, 0},
		{{0x80000000, 1, 1}, {1, 1, 1}, 0},
		{{1, 1, 1}, {1025, 1, 1}, 0},
		{{1, 1, 1}, {1, 1, 65}, 0},
		{{1, 1, 1}, {32, 33, 1}, 0},
		{{1, 1, 1}, {1, 1, 1}, 1 << 20},
		{{1, 1, 1}, {1, 1, 1}, 49153},
	};
	for (size_t i = 0; i < COUNT(wrong); i++)
		LOCAL(cuLaunchKernel(add, wrong[i].grid[0], wrong[i].grid[1], wrong[i].grid[2],
			      wrong[i].block[0], wrong[i].block[1], wrong[i].block[2],
			      wrong[i].shared_bytes, NULL, params, NULL),
			BAD);
	LOCAL(cuLaunchKernel((CUfunction)0x1234, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, (CUstream)0x1234, params, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	/* it has parameters */
	LOCAL(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), BAD);
	IS(word_at(out), 48);
	IS(cuMemFree(out), CUDA_SUCCESS);
}

static void test_packed(void)
{
	CUfunction add = relay_add();
	struct {
		CUdeviceptr out;
		uint32_t n;
	} packed = {memory_of(64, 0), 5};
	size_t size = 12, less = 8, much = 40000;
	void *whole[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
		&size, CU_LAUNCH_PARAM_END};
	void *params[] = {&packed.out, &packed.n};
	COST(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, whole), CUDA_SUCCESS, 0, 1);
	IS(word_at(packed.out), 5);
	/* both ways at once */
	LOCAL(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, params, whole), BAD);
	whole[3] = &less;
	LOCAL(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, whole), BAD);
	whole[3] = &much;
	LOCAL(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, whole), BAD);
	whole[0] = (void *)77;
	LOCAL(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, whole), BAD);
	IS(cuMemFree(packed.out), CUDA_SUCCESS);
}

static void test_attributes(void)
{
	CUfunction add = relay_add();
	uint32_t n = 3;
	void *params[] = {&out, &n};
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY};
	CUlaunchConfig config = {.gridDimX = 2,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1};
	out = memory_of(64, 0);
	COST(cuLaunchKernelEx(&config, add, params, NULL), CUDA_SUCCESS, 0, 1); /* a plain one */
	IS(word_at(out), 6);
	config.attrs = &attribute;
	config.numAttrs = 1;
	COST(cuLaunchKernelEx(&config, add, params, NULL), CUDA_SUCCESS, 1, 0);
	IS(relay_count("launch_kernel_ex"), 1);
	IS(word_at(out), 12);
	/* Of no event, and of no node. */
	static const struct {
		int id, result;
	} cases[] = {
		{CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CUDA_ERROR_INVALID_HANDLE},
		{CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, CUDA_ERROR_INVALID_HANDLE},
		{CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, CUDA_ERROR_NOT_SUPPORTED},
		{1000, BAD},
		{-1, BAD},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		attribute.id = (CUlaunchAttributeID)cases[i].id;
		LOCAL(cuLaunchKernelEx(&config, add, params, NULL), cases[i].result);
	}
	config.numAttrs = 1 << 20;
	LOCAL(cuLaunchKernelEx(&config, add, params, NULL), BAD);
	config.attrs = NULL;
	config.numAttrs = 1;
	LOCAL(cuLaunchKernelEx(&config, add, params, NULL), BAD);
	LOCAL(cuLaunchKernelEx(NULL, add, params, NULL), BAD);
	IS(cuMemFree(out), CUDA_SUCCESS);
}

static void test_cooperative(void)
{
	CUfunction add = relay_add();
	uint32_t n = 1;
	void *params[] = {&out, &n};
	out = memory_of(64, 0);
	IS(cuLaunchCooperativeKernel(add, 2, 1, 1, 32, 1, 1, 0, NULL, params), CUDA_SUCCESS);
	IS(word_at(out), 64);
	relay_mark();
	IS(cuLaunchCooperativeKernel(add, 1 << 20, 1, 1, 32, 1, 1, 0, NULL, params),
		CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	IS(cuLaunchCooperativeKernel(add, 1, 1, 1 << 15, 32, 1, 1, 0, NULL, params),
		CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	relay_settle();
	IS(relay_count("launch_kernel"), 0);
	IS(cuMemFree(out), CUDA_SUCCESS);
}

UNIT_SUITE(launch, {"shapes", test_shapes}, {"packed", test_packed},
	{"attributes", test_attributes}, {"cooperative", test_cooperative})
