/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/context/attribute.c: every attribute of cuda.h is answered, what follows the capability
 * does, and nothing else is.
 */
#include "files.h"

static void test_all(void)
{
	int value, unknown = 0;
	OK(cuInit(0));
	for (int a = 1; a < CU_DEVICE_ATTRIBUTE_MAX; a++)
		for (int device = 0; device < 2; device++)
			unknown += cuDeviceGetAttribute(&value, (CUdevice_attribute)a, device) !=
				CUDA_SUCCESS;
	IS(unknown, 0);
	static const int none[] = {0, -1, CU_DEVICE_ATTRIBUTE_MAX, INT32_MAX, INT32_MIN};
	for (size_t i = 0; i < COUNT(none); i++)
		CHECK_RESULT(cuDeviceGetAttribute(&value, (CUdevice_attribute)none[i], 0),
			CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 2),
		CUDA_ERROR_INVALID_DEVICE);
	CHECK_RESULT(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, -1),
		CUDA_ERROR_INVALID_DEVICE);
	CHECK_RESULT(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0),
		CUDA_ERROR_INVALID_VALUE);
}

static void test_capability(void)
{
	static const struct {
		CUdevice_attribute attribute;
		int of_90, of_80;
	} table[] = {
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9, 8},
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0, 0},
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048, 2048},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32, 32},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 << 10, 164 << 10},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10, 163 << 10},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10, 48 << 10},
		{CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024, 1024},
		{CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1, 0},
		{CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1, 2},
		{CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID, 0, 1},
		{CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32, 32},
		{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, INT32_MAX, INT32_MAX},
		{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535, 65535},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64, 64},
		/* What is not there says so. */
		{CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1, 1},
		{CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0, 0},
		{CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0, 0},
		{CU_DEVICE_ATTRIBUTE_TCC_DRIVER, 0, 0},
		{CU_DEVICE_ATTRIBUTE_NUMA_ID, -1, -1},
	};
	OK(cuInit(0));
	for (size_t i = 0; i < COUNT(table); i++) {
		int first = -77, second = -77;
		OK(cuDeviceGetAttribute(&first, table[i].attribute, 0));
		OK(cuDeviceGetAttribute(&second, table[i].attribute, 1));
		IS(first, table[i].of_90);
		IS(second, table[i].of_80);
	}
	/* The limits hold together: a launch checks against the same figures. */
	CUfunction f = (test_context(), test_function("trap_now"));
	CHECK_RESULT(cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLaunchKernel(f, 1, 1, 65536, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
}

UNIT_SUITE(softgpu / context / attribute, {"all", test_all}, {"capability", test_capability})
