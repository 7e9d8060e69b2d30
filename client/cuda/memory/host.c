/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory.  "Pinned" here means that copies from and to it may run in the background.  The
 * memory itself is the program's own, page-aligned.  For copies, the GPU uses the worker's staging
 * buffers, unless the memory is mapped (mapped.c) or shared (shared.c).
 */
#include "client/cuda/memory/host.h"
#include "client/conn/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/memory/mapped.h"
#include "client/cuda/memory/memcpy.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/memory/registered.h"
#include "cudacommon/capture.h"

CKT_EXPORT CUresult cuMemHostAlloc(void **ret_memory, size_t size, unsigned int flags)
{
	struct ckt_context *context;
	unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |
		CU_MEMHOSTALLOC_WRITECOMBINED;
	if (!ret_memory || flags & ~known)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_context_current(&context);
	if (!result && !size) {
		*ret_memory = NULL;
		return CUDA_SUCCESS;
	}
	if (!result)
		result = ckt_capture_unsafe();
	if (!result)
		result = ckt_call_fault();
	return result ? result : ckt_client_host_alloc(context, size, flags, ret_memory);
}

CKT_EXPORT CUresult cuMemAllocHost_v2(void **memory, size_t size)
{
	return cuMemHostAlloc(memory, size, 0);
}

CKT_EXPORT CUresult cuMemFreeHost(void *memory)
{
	struct ckt_client_range range;
	if (!memory)
		return CUDA_SUCCESS;
	if (!ckt_range_remove((uint64_t)(uintptr_t)memory, CKT_RANGE_HOST_ALLOC, &range))
		return CUDA_ERROR_INVALID_VALUE;
	return ckt_client_host_free(&range);
}

CKT_EXPORT CUresult cuMemHostRegister_v2(void *memory, size_t size, unsigned int flags)
{
	struct ckt_context *context;
	struct ckt_client_range range;
	unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
		CU_MEMHOSTREGISTER_READ_ONLY;
	uint64_t base = (uint64_t)(uintptr_t)memory;
	if (!memory || size == 0 || flags & ~(known | CU_MEMHOSTREGISTER_IOMEMORY))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_context_current(&context);
	if (!result)
		result = ckt_capture_unsafe();
	if (result)
		return result;
	if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
		return CKT_CUDACOMMON_UNSUPPORTED(
			"registering memory of a device (CU_MEMHOSTREGISTER_IOMEMORY)");
	if (ckt_range_find(base, &range) || ckt_range_find(base + size - 1, &range))
		return range.kind >= CKT_RANGE_HOST_ALLOC
			? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
			: CUDA_ERROR_INVALID_VALUE;
	if (ckt_range_room())
		return CUDA_ERROR_OUT_OF_MEMORY;
	ckt_range_add(&(struct ckt_client_range){.base = base,
		.size = size,
		.kind = CKT_RANGE_HOST_REGISTERED,
		.context = context->object.id,
		.flags = flags,
		.device = context->device});
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuMemHostUnregister(void *memory)
{
	struct ckt_client_range range;
	if (!memory)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_range_remove((uint64_t)(uintptr_t)memory, CKT_RANGE_HOST_REGISTERED, &range))
		return ckt_range_find((uint64_t)(uintptr_t)memory, &range)
			? CUDA_ERROR_INVALID_VALUE
			: CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	ckt_client_copy_settle(memory, range.size);
	return ckt_registered_forget(&range);
}

CKT_EXPORT CUresult cuMemHostGetFlags(unsigned int *flags, void *memory)
{
	struct ckt_client_range range;
	if (!flags || !ckt_range_find((uint64_t)(uintptr_t)memory, &range) ||
		range.kind < CKT_RANGE_HOST_ALLOC)
		return CUDA_ERROR_INVALID_VALUE;
	/* With unified addressing, all host memory can be mapped. */
	*flags = range.flags | CU_MEMHOSTALLOC_DEVICEMAP;
	return CUDA_SUCCESS;
}

CUresult ckt_client_host_reach(uint64_t *address)
{
	struct ckt_client_range range;
	if (!ckt_range_find(*address, &range) || range.kind < CKT_RANGE_HOST_ALLOC)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t base = range.base;
	CUresult result = range.kind == CKT_RANGE_HOST_ALLOC ? ckt_client_host_map(*address)
							     : ckt_registered_map(&range, &base);
	*address = base + (*address - range.base);
	return result;
}

CKT_EXPORT CUresult cuMemHostGetDevicePointer_v2(
	CUdeviceptr *device_pointer, void *memory, unsigned int flags)
{
	static bool once;
	uint64_t address = (uint64_t)(uintptr_t)memory;
	if (!device_pointer || flags)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_host_reach(&address);
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		return ckt_call_unsupported(ckt_conn_count > 1
				? "the device address of host memory with several servers"
				: "cuMemHostGetDevicePointer where the worker has no addresses left",
			&once);
	if (!result)
		*device_pointer = address;
	return result;
}
