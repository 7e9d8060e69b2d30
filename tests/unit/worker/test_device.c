/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/objects/device.c: what a session sees of its devices, and what it must not believe.
 */
#include <stdlib.h>
#include <string.h>

#include "server/worker/objects/device.h"
#include "tests/unit/worker/inside.h"

static const struct {
	CUdevice_attribute attribute;
	int value;
} told[] = {
	{CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
	{CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
	{CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0},
	{CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0},
	{CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 0},
	{CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0},
	{CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0},
	{CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0},
	{CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0},
	{CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 0},
};

static void test_fill(void)
{
	ckt_devices_res res = {0};
	int least = 77, greatest = 77;
	struct ckt_object *before = ckt_worker.current;
	ckt_worker_session_devices_fill(&ckt_worker, &res);
	YES(ckt_worker.current == before);
	IS(res.devices.devices_len, ckt_worker.device_count);
	IS(res.driver_version, ckt_worker.driver_version);
	IS(ckt_driver.cuCtxGetStreamPriorityRange(&least, &greatest), CUDA_SUCCESS);
	for (unsigned d = 0; d < res.devices.devices_len; d++) {
		const ckt_device *device = &res.devices.devices_val[d];
		TEXT(device->name, ckt_worker.devices[d].name);
		IS(device->total_bytes, ckt_worker.devices[d].total);
		IS(device->least_priority, least);
		IS(device->greatest_priority, greatest);
		IS(device->can_access_peer >> d & 1, 0);
		IS(device->can_access_peer >> ckt_worker.device_count, 0);
		YES(*device->pci_bus_id != 0);
		MUST(device->attributes.attributes_len, CU_DEVICE_ATTRIBUTE_MAX);
		const ckt_attribute *list = device->attributes.attributes_val;
		for (size_t i = 0; i < COUNT(told); i++)
			if (!list[told[i].attribute].result)
				IS(list[told[i].attribute].value, told[i].value);
		/* What is not overridden is the driver's. */
		int wanted = 0;
		IS(ckt_driver.cuDeviceGetAttribute(&wanted,
			   CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, ckt_worker.devices[d].ordinal),
			CUDA_SUCCESS);
		IS(list[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT].value, wanted);
	}
	free(res.devices.devices_val);
}

static void test_limit(void)
{
	uint64_t kept = ckt_worker.memory_limit, total = ckt_worker.devices[0].total;
	const struct {
		uint64_t limit, shown;
	} cases[] = {{0, total}, {1, 1}, {total - 1, total - 1}, {total, total}, {total + 1, total},
		{UINT64_MAX, total}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		ckt_devices_res res = {0};
		ckt_worker.memory_limit = cases[i].limit;
		ckt_worker_session_devices_fill(&ckt_worker, &res);
		IS(res.devices.devices_val[0].total_bytes, cases[i].shown);
		free(res.devices.devices_val);
	}
	ckt_worker.memory_limit = kept;
}

static void test_peers(void)
{
	MUST(ckt_worker.device_count, 2);
	IS(ASK(device_p2p_attribute, .attribute = CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED,
		   .device = 0, .peer = 1),
		CUDA_SUCCESS);
	IS(ASK(device_p2p_atomic, .device = 0, .peer = 1), CUDA_SUCCESS);
	struct inside_reply *reply = INSIDE(device_p2p_attribute, false,
		.attribute = CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, .device = 1, .peer = 0);
	struct ckt_device_p2p_attribute_res res = {.value = -1};
	YES(ckt_device_p2p_attribute_res_get(&reply->results, &res));
	IS(res.value, ckt_device_can_access(&ckt_worker, 1, 0));
	static const uint32_t wrong[][2] = {
		{0, 2}, {2, 0}, {UINT32_MAX, 0}, {0, UINT32_MAX}, {64, 64}};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		IS(ASK(device_p2p_attribute, .attribute = CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED,
			   .device = wrong[i][0], .peer = wrong[i][1]),
			CUDA_ERROR_INVALID_DEVICE);
		IS(ASK(device_p2p_atomic, .device = wrong[i][0], .peer = wrong[i][1]),
			CUDA_ERROR_INVALID_DEVICE);
	}
	IS(ASK(device_p2p_attribute, .attribute = 0, .device = 0, .peer = 1),
		CUDA_ERROR_INVALID_VALUE);
	IS(ASK(device_p2p_attribute, .attribute = 0x7fffffff, .device = 0, .peer = 1),
		CUDA_ERROR_INVALID_VALUE);
	IS(CUT(device_p2p_attribute, .device = 0, .peer = 1), 0);
	IS(CUT(device_p2p_atomic, .device = 0, .peer = 1), 0);
}

UNIT_SUITE(device, {"fill", test_fill}, {"limit", test_limit}, {"peers", test_peers})
