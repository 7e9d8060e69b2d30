/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation of device, pitched, pinned, managed and stream-ordered memory; attributes of pointers.
 */
#include "client/cudart/api.h"

CKT_RT_API cudaError_t cudaMalloc(void **devPtr, size_t size)
{
	CUdeviceptr address;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(devPtr, cudaErrorInvalidValue);
	if (!size) {
		*devPtr = NULL;
		return cudaSuccess;
	}
	CUresult result = cuMemAlloc(&address, size);
	*devPtr = result == CUDA_SUCCESS ? (void *)(uintptr_t)address : NULL;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaFree(void *devPtr)
{
	CKT_RT_CALL(cuMemFree(ckt_rt_address(devPtr)));
}

/* Rows are aligned for 16-byte elements, the strictest alignment of the driver. */
static cudaError_t malloc_pitch(void **ret_address, size_t *ret_pitch, size_t width, size_t height)
{
	CUdeviceptr address;
	CKT_RT_ENTER();
	if (!width || !height) {
		*ret_address = NULL;
		*ret_pitch = 0;
		return cudaSuccess;
	}
	CUresult result = cuMemAllocPitch(&address, ret_pitch, width, height, 16);
	if (result == CUDA_SUCCESS)
		*ret_address = (void *)(uintptr_t)address;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
	CKT_RT_REQUIRE(devPtr && pitch, cudaErrorInvalidValue);
	return malloc_pitch(devPtr, pitch, width, height);
}

CKT_RT_API cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent)
{
	struct cudaPitchedPtr made = {.xsize = extent.width, .ysize = extent.height};
	size_t rows;
	CKT_RT_REQUIRE(pitchedDevPtr, cudaErrorInvalidValue);
	CKT_RT_REQUIRE(!__builtin_mul_overflow(extent.height, extent.depth, &rows),
		cudaErrorMemoryAllocation);
	cudaError_t error = malloc_pitch(&made.ptr, &made.pitch, extent.width, rows);
	if (!error)
		*pitchedDevPtr = made;
	return error;
}

static cudaError_t host_alloc(void **ret_pointer, size_t size, unsigned flags)
{
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(ret_pointer, cudaErrorInvalidValue);
	if (!size) {
		*ret_pointer = NULL;
		return cudaSuccess;
	}
	return ckt_rt_cu(cuMemHostAlloc(ret_pointer, size, flags));
}

CKT_RT_API cudaError_t cudaMallocHost(void **ptr, size_t size)
{
	return host_alloc(ptr, size, CU_MEMHOSTALLOC_DEVICEMAP);
}

CKT_RT_API cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
	const unsigned known =
		cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
	CKT_RT_REQUIRE(!(flags & ~known), cudaErrorInvalidValue);
	return host_alloc(pHost, size, flags | CU_MEMHOSTALLOC_DEVICEMAP);
}

CKT_RT_API cudaError_t cudaFreeHost(void *ptr)
{
	CKT_RT_ENTER();
	return ptr ? ckt_rt_cu(cuMemFreeHost(ptr)) : cudaSuccess;
}

CKT_RT_API cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	const unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped |
		cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(ptr && size && !(flags & ~known), cudaErrorInvalidValue);
	return ckt_rt_cu(cuMemHostRegister(ptr, size, flags | CU_MEMHOSTREGISTER_DEVICEMAP));
}

CKT_RT_API cudaError_t cudaHostUnregister(void *ptr)
{
	CKT_RT_CALL(cuMemHostUnregister(ptr));
}

CKT_RT_API cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags)
{
	CUdeviceptr address;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(pDevice, cudaErrorInvalidValue);
	CUresult result = cuMemHostGetDevicePointer(&address, pHost, flags);
	if (result == CUDA_SUCCESS)
		*pDevice = (void *)(uintptr_t)address;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaHostGetFlags(unsigned int *pFlags, void *pHost)
{
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(pFlags && pHost, cudaErrorInvalidValue);
	return ckt_rt_cu(cuMemHostGetFlags(pFlags, pHost));
}

CKT_RT_API cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
	CKT_RT_CALL(cuMemGetInfo(free, total));
}

CKT_RT_API cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
	CUdeviceptr address;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(devPtr, cudaErrorInvalidValue);
	if (!size) { /* as cudaMalloc; seen on an H200 */
		*devPtr = NULL;
		return cudaSuccess;
	}
	CUresult result = cuMemAllocManaged(&address, size, flags);
	if (result == CUDA_SUCCESS)
		*devPtr = (void *)(uintptr_t)address;
	return ckt_rt_cu(result);
}

/* The runtime's index of a device, from the driver's handle. */
static int device_index(int ordinal)
{
	for (int i = 0; i < ckt_rt_device_count; i++) {
		if (ckt_rt_devices[i].handle == ordinal)
			return i;
	}
	return cudaInvalidDeviceId;
}

CKT_RT_API cudaError_t cudaPointerGetAttributes(
	struct cudaPointerAttributes *attributes, const void *ptr)
{
	CUmemorytype type = 0;
	unsigned managed = 0;
	int ordinal = cudaInvalidDeviceId;
	CUdeviceptr device = 0;
	void *host = NULL;
	CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
		CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER};
	void *values[] = {&type, &managed, &ordinal, &device, &host};
	struct cudaPointerAttributes found = {
		.type = cudaMemoryTypeUnregistered, .device = cudaInvalidDeviceId};
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(attributes, cudaErrorInvalidValue);
	/*
	 * If all attributes are queried in one call, the driver returns zeros for unknown memory,
	 * and no error.
	 */
	CUresult result = cuPointerGetAttributes(
		sizeof names / sizeof *names, names, values, ckt_rt_address(ptr));
	if (result && result != CUDA_ERROR_INVALID_VALUE)
		return ckt_rt_cu(result);
	if (result == CUDA_SUCCESS && type) {
		found.type = managed                 ? cudaMemoryTypeManaged
			: type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
						     : cudaMemoryTypeDevice;
		found.device = device_index(ordinal);
		found.devicePointer = (void *)(uintptr_t)device;
		found.hostPointer = host;
	} else {
		found.hostPointer = (void *)(uintptr_t)ptr;
	}
	*attributes = found;
	return cudaSuccess;
}

CKT_RT_API cudaError_t cudaStreamAttachMemAsync(
	cudaStream_t stream, void *devPtr, size_t length, unsigned int flags)
{
	CKT_RT_CALL(cuStreamAttachMemAsync(stream, ckt_rt_address(devPtr), length, flags));
}

CKT_RT_API cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
	CUdeviceptr address = 0;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(devPtr, cudaErrorInvalidValue);
	CUresult result = size ? cuMemAllocAsync(&address, size, hStream) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		*devPtr = (void *)(uintptr_t)address;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
	CKT_RT_ENTER();
	return devPtr ? ckt_rt_cu(cuMemFreeAsync(ckt_rt_address(devPtr), hStream)) : cudaSuccess;
}

CKT_RT_API cudaError_t cudaMallocFromPoolAsync(
	void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream)
{
	CUdeviceptr address = 0;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(ptr, cudaErrorInvalidValue);
	CUresult result =
		size ? cuMemAllocFromPoolAsync(&address, size, memPool, stream) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		*ptr = (void *)(uintptr_t)address;
	return ckt_rt_cu(result);
}
