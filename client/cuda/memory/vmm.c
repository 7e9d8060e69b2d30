/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management: addresses, physical memory and mappings that the program manages
 * itself.  Reserving, creating, mapping and setting access wait for the reply.  Releasing them is
 * checked here and batched.
 *
 * A handle of physical memory counts the program's references.  When none is left and nothing maps
 * the memory, the worker is told to release it.  Every mapping is a range (range.c): its owner is
 * the physical memory's id, and its flags are the device's access.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/device.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/ipc.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/memory/worker_pool.h"
#include "client/cuda/stream/stream.h"
#include "cudacommon/interface.h"
#include "rpc/ipc.h"

#define GRANULARITY ((uint64_t)2 << 20)

struct ckt_physical {
	struct ckt_cudacommon_object object;
	uint64_t size;
	CUmemAllocationProp prop;
	unsigned handles, mappings; /* protected by vmm_lock */
};

struct reservation {
	struct reservation *next;
	uint64_t address, size;
	struct ckt_conn *conn; /* the connection to the server that reserved it */
};

static CKT_LOCK(vmm_lock);
static struct reservation *reservations;

/* ---- Addresses */

CKT_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *ret_address, size_t size, size_t alignment,
	CUdeviceptr hint, unsigned long long flags)
{
	struct ckt_context *context;
	struct ckt_reply reply;
	struct ckt_address_reserve_res res;
	if (!ret_address || flags || !size || size % GRANULARITY || alignment & (alignment - 1))
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	uint32_t device = ckt_client_context_current(&context)
		? 0
		: ckt_call_device((unsigned)context->device);
	struct reservation *entry = malloc(sizeof *entry);
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CKT_WAITED(address_reserve, ADDRESS_RESERVE, CKT_CALL_F_NUMBERED, &reply,
		.device = device, .size = size, .alignment = alignment, .hint = hint);
	if (!result) {
		if (!ckt_address_reserve_res_get(&reply.results, &res))
			result = CUDA_ERROR_UNKNOWN;
		ckt_call_reply_release(&reply);
	}
	if (result) {
		free(entry);
		return result;
	}
	pthread_mutex_lock(&vmm_lock);
	*entry = (struct reservation){
		.next = reservations, .address = res.address, .size = size, .conn = ckt_call_conn};
	reservations = entry;
	pthread_mutex_unlock(&vmm_lock);
	*ret_address = res.address;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuMemAddressFree(CUdeviceptr address, size_t size)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm_lock);
	for (struct reservation **place = &reservations; *place; place = &(*place)->next) {
		struct reservation *found = *place;
		if (found->address != address || found->size != size)
			continue;
		if (!ckt_range_overlaps(address, size)) {
			CKT_ROUTE(ckt_route_to_conn(found->conn));
			result = CKT_BATCHED(
				address_free, ADDRESS_FREE, .address = address, .size = size);
			*place = found->next;
			free(found);
		}
		break;
	}
	pthread_mutex_unlock(&vmm_lock);
	return result;
}

/* Precondition: vmm_lock held. */
static const struct reservation *reserved(uint64_t address, uint64_t size)
{
	for (const struct reservation *r = reservations; r; r = r->next)
		if (address >= r->address && address - r->address <= r->size &&
			size <= r->size - (address - r->address))
			return r;
	return NULL;
}

/* ---- Physical memory */

static CUresult check_prop(const CUmemAllocationProp *prop)
{
	static bool once_place, once_fabric, once_flags;
	CUresult result;
	if (!prop || prop->type == CU_MEM_ALLOCATION_TYPE_INVALID)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
		prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return ckt_call_unsupported("cuMemCreate outside of a device", &once_place);
	if (prop->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return ckt_call_unsupported("memory for other processes", &once_fabric);
	if (prop->allocFlags.gpuDirectRDMACapable || prop->allocFlags.usage)
		return ckt_call_unsupported(
			"memory for GPUDirect RDMA or sparse arrays", &once_flags);
	ckt_client_device_get(prop->location.id, &result);
	return result;
}

CKT_EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity,
	const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option)
{
	if (!granularity ||
		(option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
			option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = check_prop(prop);
	if (!result)
		*granularity = GRANULARITY;
	return result;
}

static bool can_compress(CUdevice device)
{
	int can = 0;
	return !cuDeviceGetAttribute(
		       &can, CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, device) &&
		can;
}

static CUresult create(const struct ckt_physical *physical, uint32_t device)
{
	uint64_t id = physical->object.id, size = physical->size;
	unsigned compression = physical->prop.allocFlags.compressionType;
	if (compression)
		return CKT_WAITED(physical_create_compressible, PHYSICAL_CREATE_COMPRESSIBLE,
			CKT_CALL_F_NUMBERED, NULL, .id = id, .device = device, .size = size,
			.compression = compression);
	return CKT_WAITED(physical_create, PHYSICAL_CREATE, CKT_CALL_F_NUMBERED, NULL, .id = id,
		.device = device, .size = size);
}

CKT_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	if (!handle || flags || !size || size % GRANULARITY)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = check_prop(prop);
	if (!result && prop->allocFlags.compressionType > CU_MEM_ALLOCATION_COMP_GENERIC)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	struct ckt_physical *physical = calloc(1, sizeof *physical);
	if (!physical)
		return CUDA_ERROR_OUT_OF_MEMORY;
	physical->size = size;
	physical->prop = *prop;
	/* A device may decline to compress. */
	if (!can_compress(prop->location.id))
		physical->prop.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_NONE;
	physical->handles = 1;
	physical->object.context = ckt_handle_primary((unsigned)prop->location.id);
	if (!ckt_cudacommon_object_add(&physical->object, CKT_KIND_PHYSICAL)) {
		free(physical);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	uint32_t device = ckt_call_device((unsigned)prop->location.id);
	CKT_ROUTE_DEVICE(prop->location.id);
	result = create(physical, device);
	/* Memory that was freed on a stream is available once the stream is done. */
	if (result == CUDA_ERROR_OUT_OF_MEMORY && ckt_pool_may_settle() && !cuCtxSynchronize())
		result = create(physical, device);
	if (result)
		ckt_cudacommon_object_remove(&physical->object);
	else
		*handle = physical->object.id;
	return result;
}

/* The physical memory behind a handle that the program holds.  Precondition: vmm_lock held. */
static struct ckt_physical *find(CUmemGenericAllocationHandle handle)
{
	struct ckt_physical *physical = ckt_cudacommon_object_find(handle, CKT_KIND_PHYSICAL);
	return physical && physical->handles ? physical : NULL;
}

/* Precondition: vmm_lock held. */
static CUresult settle(struct ckt_physical *physical)
{
	if (physical->handles || physical->mappings)
		return CUDA_SUCCESS;
	CKT_ROUTE(ckt_route_to_object(physical->object.id, CKT_KIND_PHYSICAL));
	CUresult result =
		CKT_BATCHED(physical_release, PHYSICAL_RELEASE, .id = physical->object.id);
	ckt_cudacommon_object_remove(&physical->object);
	return result;
}

CKT_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm_lock);
	struct ckt_physical *physical = find(handle);
	if (physical) {
		physical->handles--;
		result = settle(physical);
	}
	pthread_mutex_unlock(&vmm_lock);
	return result;
}

CKT_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
	struct ckt_client_range range;
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	if (!handle)
		return result;
	pthread_mutex_lock(&vmm_lock);
	if (ckt_range_find((uint64_t)(uintptr_t)address, &range) &&
		range.kind == CKT_RANGE_MAPPED) {
		struct ckt_physical *physical =
			ckt_cudacommon_object_find(range.owner, CKT_KIND_PHYSICAL);
		if (physical) {
			physical->handles++;
			*handle = physical->object.id;
			result = CUDA_SUCCESS;
		}
	}
	pthread_mutex_unlock(&vmm_lock);
	return result;
}

CKT_EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(
	CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	pthread_mutex_lock(&vmm_lock);
	struct ckt_physical *physical = prop ? find(handle) : NULL;
	if (physical)
		*prop = physical->prop;
	pthread_mutex_unlock(&vmm_lock);
	return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- For other processes */

/*
 * The file holds no memory, because the memory may be on another machine.  It names the memory, for
 * sessions of the same owner at the same server.
 */
CKT_EXPORT CUresult cuMemExportToShareableHandle(void *ret_fd, CUmemGenericAllocationHandle handle,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	struct ckt_reply reply;
	struct ckt_physical_export_res res;
	if (!ret_fd || flags)
		return result;
	ckt_stream_beside = true;
	pthread_mutex_lock(&vmm_lock);
	struct ckt_physical *physical = find(handle);
	CKT_ROUTE(ckt_route_to_object(handle, CKT_KIND_PHYSICAL));
	if (physical && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
		physical->prop.requestedHandleTypes & (unsigned)type)
		result = CKT_WAITED(physical_export, PHYSICAL_EXPORT, CKT_CALL_F_NUMBERED, &reply,
			.physical = handle);
	pthread_mutex_unlock(&vmm_lock);
	if (result)
		return result;
	if (ckt_physical_export_res_get(&reply.results, &res) && res.handle_len == CKT_IPC_HANDLE)
		result = ckt_client_ipc_file_make(res.handle, ret_fd);
	else
		result = CUDA_ERROR_UNKNOWN;
	ckt_call_reply_release(&reply);
	return result;
}

/* Precondition: vmm_lock held. */
static CUresult import(
	const struct ckt_ipc_handle *ticket, struct ckt_physical *fresh, struct ckt_physical **ret)
{
	struct ckt_reply reply;
	struct ckt_physical_import_res res;
	CUresult result = CKT_WAITED(physical_import, PHYSICAL_IMPORT, CKT_CALL_F_NUMBERED, &reply,
		.id = fresh->object.id, .handle = (const uint8_t *)ticket,
		.handle_len = sizeof *ticket);
	if (result)
		return result;
	if (!ckt_physical_import_res_get(&reply.results, &res)) {
		result = CUDA_ERROR_UNKNOWN;
	} else if (res.id == fresh->object.id) {
		fresh->size = res.size;
		fresh->prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
			.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
				.id = (int)ckt_call_device_back(res.device)}};
		fresh->object.context = ckt_handle_primary((unsigned)fresh->prop.location.id);
		*ret = fresh;
	} else {
		/* The memory is the session's own: this adds a reference. */
		*ret = ckt_cudacommon_object_find(res.id, CKT_KIND_PHYSICAL);
		result = *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	}
	ckt_call_reply_release(&reply);
	return result;
}

CKT_EXPORT CUresult cuMemImportFromShareableHandle(
	CUmemGenericAllocationHandle *handle, void *fd, CUmemAllocationHandleType type)
{
	struct ckt_ipc_handle ticket;
	struct ckt_physical *found = NULL;
	if (!ckt_client_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
		!ckt_client_ipc_file_read((int)(intptr_t)fd, &ticket))
		return CUDA_ERROR_INVALID_VALUE;
	ckt_stream_beside = true;
	struct ckt_physical *fresh = calloc(1, sizeof *fresh);
	if (!fresh || !ckt_cudacommon_object_add(&fresh->object, CKT_KIND_PHYSICAL)) {
		free(fresh);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&vmm_lock);
	CUresult result = import(&ticket, fresh, &found);
	if (found != fresh)
		ckt_cudacommon_object_remove(&fresh->object);
	if (!result) {
		found->handles++;
		*handle = found->object.id;
	}
	pthread_mutex_unlock(&vmm_lock);
	return result;
}

/* ---- Mappings */

CKT_EXPORT CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	if (flags || !size || address % GRANULARITY || size % GRANULARITY)
		return result;
	pthread_mutex_lock(&vmm_lock);
	struct ckt_physical *physical = find(handle);
	const struct reservation *reservation = reserved(address, size);
	bool can = physical && reservation && !ckt_range_overlaps(address, size);
	CKT_ROUTE(ckt_route_to_object(handle, CKT_KIND_PHYSICAL));
	if (can && reservation->conn != ckt_call_conn) {
		static bool once;
		result =
			ckt_call_unsupported("memory of one server at addresses of another", &once);
	} else if (can && (offset || size != physical->size)) {
		/* only the whole memory can be mapped (measured on an H200) */
		result = CKT_AS_CUDA_NOT_SUPPORTED;
	} else if (can && !(result = ckt_range_room())) {
		result = CKT_WAITED(mem_map, MEM_MAP, CKT_CALL_F_NUMBERED, NULL, .address = address,
			.size = size, .offset = offset, .physical = handle);
		if (!result) {
			physical->mappings++;
			ckt_range_add(&(struct ckt_client_range){.base = address,
				.size = size,
				.kind = CKT_RANGE_MAPPED,
				.context = ckt_handle_primary((unsigned)physical->prop.location.id),
				.owner = handle,
				.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE,
				.device = physical->prop.location.id});
		}
	}
	pthread_mutex_unlock(&vmm_lock);
	return result;
}

/* Whether the range consists of whole mappings. */
static bool whole(uint64_t address, uint64_t size)
{
	struct ckt_client_range range;
	if (!size || address + size < address)
		return false;
	for (uint64_t at = address; at < address + size; at += range.size)
		if (!ckt_range_find(at, &range) || range.kind != CKT_RANGE_MAPPED ||
			range.base != at || range.size > address + size - at)
			return false;
	return true;
}

CKT_EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	struct ckt_client_range range;
	pthread_mutex_lock(&vmm_lock);
	if (whole(address, size)) {
		CKT_ROUTE_ADDRESS(address);
		result = CKT_BATCHED(mem_unmap, MEM_UNMAP, .address = address, .size = size);
		for (uint64_t at = address;
			at < address + size && ckt_range_remove(at, CKT_RANGE_MAPPED, &range);
			at += range.size) {
			struct ckt_physical *physical =
				ckt_cudacommon_object_find(range.owner, CKT_KIND_PHYSICAL);
			if (physical) {
				physical->mappings--;
				settle(physical);
			}
		}
	} else if (size && address + size > address && reserved(address, 1) &&
		!ckt_range_overlaps(address, size)) {
		result = CUDA_SUCCESS; /* nothing is mapped; the range may exceed the reservation */
	}
	pthread_mutex_unlock(&vmm_lock);
	return result;
}

static CUresult check_access(const CUmemAccessDesc *desc, CUdevice own)
{
	static bool once;
	CUresult result;
	int can = 1;
	if (desc->location.type == CU_MEM_LOCATION_TYPE_HOST ||
		desc->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
		desc->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
		return ckt_call_unsupported("cuMemSetAccess for the host", &once);
	if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		(desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
			desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
			desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_device_get(desc->location.id, &result))
		return result == CUDA_ERROR_INVALID_DEVICE ? CUDA_ERROR_INVALID_VALUE : result;
	if (desc->location.id != own && desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
		cuDeviceCanAccessPeer(&can, desc->location.id, own);
	return can ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* Sets the access to adjacent mappings, all of one device's memory. */
static CUresult set_run(uint64_t address, uint64_t size, CUdevice own, const CUmemAccessDesc *desc)
{
	CUresult result = check_access(desc, own);
	if (result)
		return result;
	CKT_ROUTE_ADDRESS(address);
	if (desc->location.id == own) {
		result = CKT_WAITED(mem_set_access, MEM_SET_ACCESS, CKT_CALL_F_NUMBERED, NULL,
			.address = address, .size = size, .access = desc->flags);
		if (!result)
			ckt_range_set_flags(address, size, CKT_RANGE_MAPPED, desc->flags);
		return result;
	}
	result = CKT_WAITED(mem_set_peer_access, MEM_SET_PEER_ACCESS, CKT_CALL_F_NUMBERED, NULL,
		.address = address, .size = size,
		.device = ckt_call_device((unsigned)desc->location.id), .access = desc->flags);
	if (!result)
		ckt_range_set_peer(address, size, desc->location.id, desc->flags);
	return result;
}

/* Precondition: vmm_lock held, and the range consists of whole mappings. */
static CUresult set_access(uint64_t address, uint64_t size, const CUmemAccessDesc *desc)
{
	CUresult result = CUDA_SUCCESS;
	for (uint64_t at = address, end = address + size; at < end && !result;) {
		struct ckt_client_range first, next;
		ckt_range_find(at, &first);
		uint64_t behind = at + first.size;
		while (behind < end && ckt_range_find(behind, &next) && next.device == first.device)
			behind += next.size;
		result = set_run(at, behind - at, first.device, desc);
		at = behind;
	}
	return result;
}

CKT_EXPORT CUresult cuMemSetAccess(
	CUdeviceptr address, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	if (!desc || !count)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm_lock);
	CUresult result = whole(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && !result; i++)
		result = set_access(address, size, &desc[i]);
	pthread_mutex_unlock(&vmm_lock);
	return result;
}

CKT_EXPORT CUresult cuMemGetAccess(
	unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
	struct ckt_client_range range;
	CUresult result;
	if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_device_get(location->id, &result))
		return result;
	if (!ckt_range_find(address, &range) || range.kind != CKT_RANGE_MAPPED)
		return CUDA_ERROR_INVALID_VALUE;
	if (location->id == range.device)
		*flags = range.flags;
	else
		*flags = range.writers >> location->id & 1  ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			: range.readers >> location->id & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READ
							    : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}
