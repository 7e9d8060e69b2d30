/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/module/launch.c: launches and occupancy: handles, attributes that carry ids, those
 * that cannot be carried.
 */
#include <stdlib.h>
#include <string.h>

#include "server/worker/module/module.h"
#include "tests/unit/worker/inside.h"

static const char ptx[] =
	".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry put(.param .u64 a, .param .u32 b)\n{\n"
	"\t.reg .b64 %a;\n\t.reg .b32 %v;\n\tld.param.u64 %a, [a];\n\tld.param.u32 %v, [b];\n\tst.global.u32 [%a], %v;\n\tret;\n}\n";
static uint64_t function, memory;
static struct {
	uint64_t a;
	uint32_t b;
} __attribute__((packed)) params;

static void test_launch(void)
{
	uint32_t wanted = 0;
	struct ckt_object *object;
	function = ID(FUNCTION, 231);
	memory = inside_memory(4096, 0);
	MUST(ckt_function_get(
		     &ckt_worker, inside_module(ID(MODULE, 231), ptx), function, "put", &object),
		CUDA_SUCCESS);
	params.a = memory;
	for (uint32_t cooperative = 0; cooperative < 2; cooperative++) {
		params.b = ++wanted;
		IS(ASK(launch_kernel, function, 1, 1, 1, 1, 1, 1, 0, 0, cooperative,
			   (const uint8_t *)&params, sizeof params),
			CUDA_SUCCESS);
		ckt_driver.cuCtxSynchronize();
		IS(inside_word(memory), wanted);
	}
	static const uint32_t grids[][6] = {{0, 1, 1, 1, 1, 1}, {1, 1, 0, 1, 1, 1},
		{1, 1, 1, 0, 1, 1}, {1, 1, 1, 2048, 1, 1}, {1, UINT32_MAX, 1, 1, 1, 1}};
	for (size_t i = 0; i < COUNT(grids); i++)
		IS(ASK(launch_kernel, function, grids[i][0], grids[i][1], grids[i][2], grids[i][3],
			   grids[i][4], grids[i][5], 0, 0, 0, (const uint8_t *)&params,
			   sizeof params),
			CUDA_ERROR_INVALID_VALUE);
	const uint64_t handles[][2] = {{0, 0}, {ID(MODULE, 231), 0}, {ID(FUNCTION, 299), 0},
		{function, 3}, {function, ID(STREAM, 299)}, {function, function}};
	for (size_t i = 0; i < COUNT(handles); i++) {
		IS(ASK(launch_kernel, handles[i][0], 1, 1, 1, 1, 1, 1, 0, handles[i][1], 0,
			   (const uint8_t *)&params, sizeof params),
			CUDA_ERROR_INVALID_HANDLE);
		IS(ASK(launch_kernel_ex, handles[i][0], 1, 1, 1, 1, 1, 1, 0, handles[i][1],
			   .params = (const uint8_t *)&params, .params_len = sizeof params),
			CUDA_ERROR_INVALID_HANDLE);
	}
	IS(CUT(launch_kernel, function, 1, 1, 1, 1, 1, 1, 0, 0, 0, (const uint8_t *)&params,
		   sizeof params),
		0);
}

static int with(const CUlaunchAttribute *attributes, uint32_t size)
{
	return ASK(launch_kernel_ex, function, 1, 1, 1, 1, 1, 1, 0, 0, (const uint8_t *)attributes,
		size, (const uint8_t *)&params, sizeof params);
}

static void test_attributes(void)
{
	CUlaunchAttribute attributes[2];
	memset(attributes, 0, sizeof attributes);
	params.b = 77;
	IS(with(attributes, 0), CUDA_SUCCESS);
	ckt_driver.cuCtxSynchronize();
	IS(inside_word(memory), 77);
	for (uint32_t size = 1; size < sizeof *attributes; size++)
		IS(with(attributes, size), INSIDE_GARBAGE);
	IS(with(attributes, sizeof *attributes + 1), INSIDE_GARBAGE);
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
	attributes[0].value.cooperative = 1;
	IS(with(attributes, sizeof *attributes), CUDA_SUCCESS);
	/* Any of them is refused by its number, and so is the launch. */
	static const int unknown[] = {
		CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, 63, 64, 0x7fffffff, -1};
	for (size_t i = 0; i < COUNT(unknown); i++) {
		attributes[1].id = (CUlaunchAttributeID)unknown[i];
		IS(with(attributes, sizeof attributes), CUDA_ERROR_NOT_SUPPORTED);
	}
	/* Ids of events, not pointers. */
	static const CUlaunchAttributeID events[] = {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
		CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT};
	for (size_t i = 0; i < COUNT(events); i++) {
		memset(attributes, 0, sizeof attributes);
		attributes[0].id = events[i];
		attributes[0].value.programmaticEvent.event = (CUevent)(uintptr_t)ID(EVENT, 299);
		IS(with(attributes, sizeof *attributes), CUDA_ERROR_INVALID_HANDLE);
		attributes[0].value.programmaticEvent.event = (CUevent)(uintptr_t)function;
		IS(with(attributes, sizeof *attributes), CUDA_ERROR_INVALID_HANDLE);
	}
}

static void test_occupancy(void)
{
	struct ckt_occupancy_blocks_res res = {0};
	struct inside_reply *reply =
		INSIDE(occupancy_blocks, false, .function = function, .block_size = 128);
	MUST(reply->result, CUDA_SUCCESS);
	YES(ckt_occupancy_blocks_res_get(&reply->results, &res) && res.blocks > 0);
	IS(ASK(occupancy_blocks, .function = function, .block_size = 0), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(occupancy_blocks, .function = function, .block_size = -1), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(occupancy_available_smem, .function = function, .blocks = 1, .block_size = 128),
		CUDA_SUCCESS);
	const uint64_t wrong[] = {0, ID(FUNCTION, 299), ID(MODULE, 231), UINT64_MAX};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		IS(ASK(occupancy_blocks, .function = wrong[i], .block_size = 128),
			CUDA_ERROR_INVALID_HANDLE);
		IS(ASK(occupancy_available_smem, .function = wrong[i], .blocks = 1,
			   .block_size = 128),
			CUDA_ERROR_INVALID_HANDLE);
		IS(ASK(occupancy_clusters, .function = wrong[i]), CUDA_ERROR_INVALID_HANDLE);
	}
	uint8_t attributes[sizeof(CUlaunchAttribute)] = {0};
	IS(ASK(occupancy_clusters, .function = function, .attrs = attributes,
		   .attrs_len = sizeof attributes - 4),
		INSIDE_GARBAGE);
	attributes[0] = 63;
	IS(ASK(occupancy_clusters, .function = function, .attrs = attributes,
		   .attrs_len = sizeof attributes),
		CUDA_ERROR_NOT_SUPPORTED);
	IS(CUT(occupancy_blocks, .function = function), 0);
	IS(CUT(occupancy_available_smem, .function = function), 0);
	IS(CUT(occupancy_clusters, .function = function), 0);
	IS(ASK(module_unload, .id = ID(MODULE, 231)), CUDA_SUCCESS);
	IS(ASK(launch_kernel, function, 1, 1, 1, 1, 1, 1, 0, 0, 0, (const uint8_t *)&params,
		   sizeof params),
		CUDA_ERROR_INVALID_HANDLE);
	inside_free(memory);
}

UNIT_SUITE(launch, {"launch", test_launch}, {"attributes", test_attributes},
	{"occupancy", test_occupancy})
