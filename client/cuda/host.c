/*
 * Host memory.  "Pinned" here means that copies from and to it may run in the background: the memory itself is the program's own,
 * page-aligned, and the worker's staging buffers are what the GPU reads and writes.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/cuda/capture.h"
#include "client/cuda/internal.h"

static size_t page_round(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	return (size + page - 1) / page * page;
}

CKT_EXPORT CUresult cuMemHostAlloc(void **ret_memory, size_t size, unsigned int flags)
{
	struct ckt_context *context;
	unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
	if (!ret_memory || size == 0 || flags & ~known)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_context_current(&context);
	if (!result)
		result = ckt_capture_unsafe();
	if (result)
		return result;
	size_t rounded = page_round(size);
	if (rounded < size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	int saved_errno = errno;
	void *memory = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = saved_errno;
	if (memory == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ckt_range_add(&(struct ckt_range){.base = (uint64_t)(uintptr_t)memory, .size = size, .kind = CKT_RANGE_HOST_ALLOC,
					  .context = context->object.id, .flags = flags, .device = context->device});
	*ret_memory = memory;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuMemAllocHost_v2(void **memory, size_t size)
{
	return cuMemHostAlloc(memory, size, 0);
}

CKT_EXPORT CUresult cuMemFreeHost(void *memory)
{
	struct ckt_range range;
	if (!memory)
		return CUDA_SUCCESS;
	if (!ckt_range_remove((uint64_t)(uintptr_t)memory, CKT_RANGE_HOST_ALLOC, &range))
		return CUDA_ERROR_INVALID_VALUE;
	ckt_copy_settle(memory, range.size);
	munmap(memory, page_round(range.size));
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuMemHostRegister_v2(void *memory, size_t size, unsigned int flags)
{
	struct ckt_context *context;
	struct ckt_range range;
	unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
	uint64_t base = (uint64_t)(uintptr_t)memory;
	if (!memory || size == 0 || flags & ~(known | CU_MEMHOSTREGISTER_IOMEMORY))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_context_current(&context);
	if (!result)
		result = ckt_capture_unsafe();
	if (result)
		return result;
	if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (ckt_range_find(base, &range) || ckt_range_find(base + size - 1, &range))
		return range.kind >= CKT_RANGE_HOST_ALLOC ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : CUDA_ERROR_INVALID_VALUE;
	ckt_range_add(&(struct ckt_range){.base = base, .size = size, .kind = CKT_RANGE_HOST_REGISTERED, .context = context->object.id,
					  .flags = flags, .device = context->device});
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuMemHostUnregister(void *memory)
{
	struct ckt_range range;
	if (!memory)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_range_remove((uint64_t)(uintptr_t)memory, CKT_RANGE_HOST_REGISTERED, &range))
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	ckt_copy_settle(memory, range.size);
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuMemHostGetFlags(unsigned int *flags, void *memory)
{
	struct ckt_range range;
	if (!flags || !ckt_range_find((uint64_t)(uintptr_t)memory, &range) || range.kind != CKT_RANGE_HOST_ALLOC)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = range.flags;
	return CUDA_SUCCESS;
}

/* Kernels cannot reach host memory across the wire: the device says so (CAN_MAP_HOST_MEMORY is 0), and this fails plainly. */
CKT_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device_pointer, void *memory, unsigned int flags)
{
	static bool once;
	struct ckt_range range;
	if (!device_pointer || flags || !ckt_range_find((uint64_t)(uintptr_t)memory, &range) || range.kind < CKT_RANGE_HOST_ALLOC)
		return CUDA_ERROR_INVALID_VALUE;
	return ckt_call_unsupported("cuMemHostGetDevicePointer", &once);
}
