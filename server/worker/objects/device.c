/* SPDX-License-Identifier: Apache-2.0 */
/* What a session sees of its devices, and the attributes it must not believe. */
#include <stdio.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/memory/lease.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/device.h"
#include "server/worker/worker.h"

/*
 * Attributes whose true value would lead a program to use what Cricket cannot do across the network
 * yet (those rows go when the feature comes), or what it does by itself, whatever the driver says.
 */
static const struct {
	CUdevice_attribute attribute;
	int value;
	const char *reason;
} overrides[] = {
	{CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1, "by page protection in the client"},
	{CU_DEVICE_ATTRIBUTE_INTEGRATED, 0, "the GPU has memory of its own"},
	{CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1, "by page protection in the client"},
	{CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0,
		"pages are fetched after the GPU has finished"},
	{CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 0,
		"there is a network between host and device"},
	{CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0,
		"the program's pages are not this machine's"},
	{CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 0,
		"the program's pages are not this machine's"},
	{CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 0,
		"there is a network between host and device"},
	{CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 0,
		"only allocations have addresses that both sides can have"},
	{CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 0,
		"registered memory is copied, not mapped"},
	{CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1, "the window is made of it"},
	{CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1,
		"for programs with sessions on this node, see rpc/ipc.h"},
	{CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0,
		"memory is shared by descriptors, within a node"},
	{CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0,
		"the program's network adapter is in another machine"},
	{CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0,
		"the program's network adapter is in another machine"},
	{CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 0,
		"the program's network adapter is in another machine"},
	{CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0, "a descriptor does not cross machines"},
	{CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED, 0,
		"a descriptor does not cross machines"},
	{CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1,
		"pools are the session's own allocator, whatever the driver has"},
	{CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0,
		"a descriptor does not cross machines"},
	{CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, 0, "host memory is the program's own"},
	{CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED, 0,
		"host memory is the program's own"},
	{CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0,
		"cuMemCreate makes device memory only"},
	{CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0,
		"cuMemCreate makes device memory only"},
	{CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED, 0,
		"memory shared between processes"},
	{CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0, "multicast objects are not forwarded yet"},
	{CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, 0,
		"external semaphores belong to the program's machine"},
	{CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, 0, "sparse arrays are not supported"},
	{CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, 0,
		"arrays whose memory comes later are not supported"},
	{CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 0,
		"the first version of stream memory operations"},
	{CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 0,
		"the first version of stream memory operations"},
	{CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 0,
		"the first version of stream memory operations"},
	{CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 0,
		"the writes come from adapters in another machine"},
	{CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 0, "host and device do not share code"},
	{CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, 0,
		"the decompression engine is not forwarded yet"},
	{CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH, 0, "the decompression engine"},
	{CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH, 0,
		"cuLaunchCooperativeKernelMultiDevice is deprecated and not forwarded"},
	{CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, -1,
		"the host is another machine; -1 says that there is none"},
	{CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED, 0, "graphics interoperation"},
	{CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED, 0, "graphics interoperation"},
};

static void fill_attributes(CUdevice ordinal, ckt_device *device)
{
	/* The answer's memory is the process's for ever: attributes of a device do not change. */
	static ckt_attribute attributes[CKT_DEVICES_MAX][CU_DEVICE_ATTRIBUTE_MAX];
	ckt_attribute *list = attributes[ordinal % CKT_DEVICES_MAX];
	memset(list, 0, sizeof attributes[0]);
	for (int a = 1; a < CU_DEVICE_ATTRIBUTE_MAX; a++)
		list[a].result = (int)ckt_driver.cuDeviceGetAttribute(
			&list[a].value, (CUdevice_attribute)a, ordinal);
	for (size_t i = 0; i < sizeof overrides / sizeof overrides[0]; i++)
		if (!list[overrides[i].attribute].result)
			list[overrides[i].attribute].value = overrides[i].value;
	device->attributes.attributes_val = list;
	device->attributes.attributes_len = CU_DEVICE_ATTRIBUTE_MAX;
}

/* The smallest limit of the session on the device, or the driver's own figure. */
static uint64_t limited(const struct ckt_worker *worker, uint64_t bytes)
{
	return worker->memory_limit && worker->memory_limit < bytes ? worker->memory_limit : bytes;
}

static uint64_t total_bytes(const struct ckt_worker *worker, const struct ckt_worker_device *device)
{
	uint64_t total = limited(worker, device->total), leased_total, leased_free;
	return ckt_lease_info(device->number, &leased_total, &leased_free) && leased_total < total
		? leased_total
		: total;
}

void ckt_device_memory_info(const struct ckt_worker *worker, struct ckt_worker_device *device,
	const struct ckt_memory_info *driver, struct ckt_memory_info *ret_info)
{
	uint64_t total, left;
	*ret_info = (struct ckt_memory_info){
		.free_bytes = ckt_memory_free_bytes(&device->memory, driver->free_bytes),
		.total_bytes = limited(worker, driver->total_bytes)};
	if (!ckt_lease_info(device->number, &total, &left))
		return;
	left += ckt_memory_cached(&device->memory);
	if (left < ret_info->free_bytes)
		ret_info->free_bytes = left;
	if (total < ret_info->total_bytes)
		ret_info->total_bytes = total;
}

int ckt_worker_session_devices_fill(struct ckt_worker *worker, ckt_devices_res *ret)
{
	static char bus_ids[CKT_DEVICES_MAX][32];
	ckt_device *list = calloc(worker->device_count + 1, sizeof *list);
	if (!list)
		return -ENOMEM;
	/* Asked of the first device only: a context on each of them would cost its memory. */
	int least = 0, greatest = 0;
	struct ckt_object *before = worker->current, *context;
	if (ckt_context_primary(worker, 0, &context) == CUDA_SUCCESS &&
		ckt_worker_use_context(worker, context->id) == CUDA_SUCCESS)
		ckt_driver.cuCtxGetStreamPriorityRange(&least, &greatest);
	if (before)
		ckt_worker_use_context(worker, before->id);
	for (unsigned d = 0; d < worker->device_count; d++) {
		struct ckt_worker_device *from = &worker->devices[d];
		ckt_device *device = &list[d];
		CUuuid uuid = {{0}};
		device->name = from->name;
		if (ckt_driver.cuDeviceGetUuid_v2 &&
			!ckt_driver.cuDeviceGetUuid_v2(&uuid, from->ordinal))
			memcpy(device->uuid, &uuid, sizeof device->uuid);
		device->total_bytes = total_bytes(worker, from);
		fill_attributes(from->ordinal, device);
		bus_ids[d][0] = 0;
		if (ckt_driver.cuDeviceGetPCIBusId)
			ckt_driver.cuDeviceGetPCIBusId(
				bus_ids[d], sizeof bus_ids[d] - 1, from->ordinal);
		device->pci_bus_id = bus_ids[d];
		for (unsigned peer = 0; peer < worker->device_count; peer++)
			if (peer != d && ckt_device_can_access(worker, d, peer))
				device->can_access_peer |= 1ull << peer;
		device->least_priority = least;
		device->greatest_priority = greatest;
	}
	ret->driver_version = worker->driver_version;
	ret->devices.devices_val = list;
	ret->devices.devices_len = worker->device_count;
	return 0;
}

bool ckt_device_can_access(const struct ckt_worker *worker, unsigned device, unsigned peer)
{
	int can = 0;
	return ckt_driver.cuDeviceCanAccessPeer &&
		ckt_driver.cuDeviceCanAccessPeer(&can, worker->devices[device].ordinal,
			worker->devices[peer].ordinal) == CUDA_SUCCESS &&
		can;
}

/* ---- Handlers */

int ckt_worker_device_p2p_attribute(struct ckt_wcall *call)
{
	struct ckt_device_p2p_attribute_args args;
	struct ckt_device_p2p_attribute_res res = {0};
	if (!ckt_device_p2p_attribute_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	const struct ckt_worker_device *device = ckt_worker_device_find(call->worker, args.device),
				       *peer = ckt_worker_device_find(call->worker, args.peer);
	if (!device || !peer)
		return CUDA_ERROR_INVALID_DEVICE;
	CUresult result = ckt_driver.cuDeviceGetP2PAttribute
		? ckt_driver.cuDeviceGetP2PAttribute(&res.value,
			  (CUdevice_P2PAttribute)args.attribute, device->ordinal, peer->ordinal)
		: CKT_WORKER_UNSUPPORTED("cuDeviceGetP2PAttribute with the server's driver");
	if (!result)
		ckt_device_p2p_attribute_res_put(
			ckt_wcall_results(call, ckt_device_p2p_attribute_res_size(&res)), &res);
	return result;
}

int ckt_worker_device_host_atomic(struct ckt_wcall *call)
{
	struct ckt_device_host_atomic_args args;
	struct ckt_device_host_atomic_res res = {0};
	if (!ckt_device_host_atomic_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	const struct ckt_worker_device *device = ckt_worker_device_find(call->worker, args.device);
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	CUatomicOperation operation = (CUatomicOperation)args.operation;
	/* A driver without the question has no such operation to tell of. */
	CUresult result = ckt_driver.cuDeviceGetHostAtomicCapabilities
		? ckt_driver.cuDeviceGetHostAtomicCapabilities(
			  &res.capabilities, &operation, 1, device->ordinal)
		: CUDA_SUCCESS;
	if (!result)
		ckt_device_host_atomic_res_put(
			ckt_wcall_results(call, ckt_device_host_atomic_res_size(&res)), &res);
	return result;
}

/* A tool that watches this process is told where the program wants to be looked at. */
int ckt_worker_profiler(struct ckt_wcall *call)
{
	struct ckt_profiler_args args;
	if (!ckt_profiler_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	return args.on ? ckt_driver.cuProfilerStart() : ckt_driver.cuProfilerStop();
}

int ckt_worker_device_p2p_atomic(struct ckt_wcall *call)
{
	struct ckt_device_p2p_atomic_args args;
	struct ckt_device_p2p_atomic_res res = {0};
	if (!ckt_device_p2p_atomic_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	const struct ckt_worker_device *device = ckt_worker_device_find(call->worker, args.device),
				       *peer = ckt_worker_device_find(call->worker, args.peer);
	if (!device || !peer)
		return CUDA_ERROR_INVALID_DEVICE;
	CUatomicOperation operation = (CUatomicOperation)args.operation;
	/* A driver without the question has no such operation to tell of. */
	CUresult result = ckt_driver.cuDeviceGetP2PAtomicCapabilities
		? ckt_driver.cuDeviceGetP2PAtomicCapabilities(
			  &res.capabilities, &operation, 1, device->ordinal, peer->ordinal)
		: CUDA_SUCCESS;
	if (!result)
		ckt_device_p2p_atomic_res_put(
			ckt_wcall_results(call, ckt_device_p2p_atomic_res_size(&res)), &res);
	return result;
}

struct ckt_worker_device *ckt_worker_device_find(struct ckt_worker *worker, uint32_t device)
{
	return device < worker->device_count ? &worker->devices[device] : NULL;
}

struct ckt_worker_device *ckt_worker_device_of(struct ckt_worker *worker, uint64_t address)
{
	for (unsigned d = 0; d < worker->device_count; d++) {
		struct ckt_memory *memory = &worker->devices[d].memory;
		if (address >= memory->base && address - memory->base < memory->size)
			return &worker->devices[d];
	}
	return NULL;
}
