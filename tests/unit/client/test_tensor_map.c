/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/tensor_map.c: tensor maps: encoded by the worker's driver, what is plainly
 * wrong stays here.
 */
#include <string.h>

#include "relay.h"

static void test_encode(void)
{
	CUtensorMap map __attribute__((aligned(64))), other __attribute__((aligned(64)));
	CUdeviceptr memory = memory_of(1 << 16, 0);
	cuuint64_t dims[] = {64, 16}, strides[] = {256};
	cuuint32_t box[] = {16, 8}, steps[] = {1, 1};
#define ENCODE(map, rank, address)                                         \
	cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, \
		(void *)(uintptr_t)(address), dims, strides, box, steps, 0, 0, 0, 0)
	COST(ENCODE(&map, 2, memory), CUDA_SUCCESS, 1, 0);
	COST(ENCODE(&other, 2, memory + 16), CUDA_SUCCESS, 1, 0);
	YES(memcmp(&map, &other, sizeof map) != 0);
	COST(cuTensorMapReplaceAddress(&other, (void *)(uintptr_t)memory), CUDA_SUCCESS, 1, 0);
	IS(memcmp(&map, &other, sizeof map), 0);
	LOCAL(ENCODE(NULL, 2, memory), BAD);
	LOCAL(ENCODE(&map, 0, memory), BAD);
	LOCAL(ENCODE(&map, 6, memory), BAD);
	IS(ENCODE(&map, 2, memory + 1), BAD); /* the driver's to say */
	LOCAL(cuTensorMapReplaceAddress(NULL, (void *)(uintptr_t)memory), BAD);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(tensor_map, {"encode", test_encode})
