/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools.  A cudaMemPool_t is a CUmemoryPool.  Locations, properties and access descriptions
 * have the same layout in both APIs.
 */
#include "client/cudart/api.h"

_Static_assert(sizeof(struct cudaMemLocation) == sizeof(CUmemLocation), "one layout");
_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps), "one layout");
_Static_assert(sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc), "one layout");
_Static_assert(
	sizeof(struct cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData), "one layout");

/* Returns an error from the calling function unless the device exists. */
#define REQUIRE_DEVICE(device)                                     \
	do {                                                       \
		cudaError_t checked = ckt_rt_check_device(device); \
		CKT_RT_REQUIRE(!checked, checked);                 \
	} while (0)

/*
 * The same for functions where CUDA's runtime treats the device as a location: an unknown device is
 * cudaErrorInvalidValue.
 */
#define REQUIRE_PLACE(device)                                                                 \
	do {                                                                                  \
		cudaError_t checked = ckt_rt_check_device(device);                            \
		CKT_RT_REQUIRE(!checked,                                                      \
			checked == cudaErrorInvalidDevice ? cudaErrorInvalidValue : checked); \
	} while (0)

CKT_RT_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device)
{
	REQUIRE_DEVICE(device);
	return ckt_rt_cu(cuDeviceGetDefaultMemPool(memPool, ckt_rt_devices[device].handle));
}

CKT_RT_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *memPool, int device)
{
	REQUIRE_PLACE(device);
	return ckt_rt_cu(cuDeviceGetMemPool(memPool, ckt_rt_devices[device].handle));
}

CKT_RT_API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool)
{
	REQUIRE_PLACE(device);
	return ckt_rt_cu(cuDeviceSetMemPool(ckt_rt_devices[device].handle, memPool));
}

CKT_RT_API cudaError_t cudaMemPoolCreate(
	cudaMemPool_t *memPool, const struct cudaMemPoolProps *poolProps)
{
	CKT_RT_CALL(cuMemPoolCreate(memPool, (const CUmemPoolProps *)poolProps));
}

CKT_RT_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool)
{
	CKT_RT_CALL(cuMemPoolDestroy(memPool));
}

CKT_RT_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep)
{
	CKT_RT_CALL(cuMemPoolTrimTo(memPool, minBytesToKeep));
}

CKT_RT_API cudaError_t cudaMemPoolSetAttribute(
	cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value)
{
	CKT_RT_CALL(cuMemPoolSetAttribute(memPool, (CUmemPool_attribute)attr, value));
}

CKT_RT_API cudaError_t cudaMemPoolGetAttribute(
	cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value)
{
	CKT_RT_CALL(cuMemPoolGetAttribute(memPool, (CUmemPool_attribute)attr, value));
}

CKT_RT_API cudaError_t cudaMemPoolSetAccess(
	cudaMemPool_t memPool, const struct cudaMemAccessDesc *descList, size_t count)
{
	CKT_RT_CALL(cuMemPoolSetAccess(memPool, (const CUmemAccessDesc *)descList, count));
}

CKT_RT_API cudaError_t cudaMemPoolGetAccess(
	enum cudaMemAccessFlags *flags, cudaMemPool_t memPool, struct cudaMemLocation *location)
{
	CKT_RT_CALL(
		cuMemPoolGetAccess((CUmemAccess_flags *)flags, memPool, (CUmemLocation *)location));
}

CKT_RT_API cudaError_t cudaMemPoolExportToShareableHandle(void *shareableHandle,
	cudaMemPool_t memPool, enum cudaMemAllocationHandleType handleType, unsigned int flags)
{
	CKT_RT_CALL(cuMemPoolExportToShareableHandle(
		shareableHandle, memPool, (CUmemAllocationHandleType)handleType, flags));
}

CKT_RT_API cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *memPool,
	void *shareableHandle, enum cudaMemAllocationHandleType handleType, unsigned int flags)
{
	CKT_RT_CALL(cuMemPoolImportFromShareableHandle(
		memPool, shareableHandle, (CUmemAllocationHandleType)handleType, flags));
}

CKT_RT_API cudaError_t cudaMemPoolExportPointer(
	struct cudaMemPoolPtrExportData *exportData, void *ptr)
{
	CKT_RT_CALL(
		cuMemPoolExportPointer((CUmemPoolPtrExportData *)exportData, ckt_rt_address(ptr)));
}

CKT_RT_API cudaError_t cudaMemPoolImportPointer(
	void **ptr, cudaMemPool_t memPool, struct cudaMemPoolPtrExportData *exportData)
{
	CUdeviceptr address;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(ptr, cudaErrorInvalidValue);
	CUresult result =
		cuMemPoolImportPointer(&address, memPool, (CUmemPoolPtrExportData *)exportData);
	if (result == CUDA_SUCCESS)
		*ptr = (void *)(uintptr_t)address;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaMemGetDefaultMemPool(
	cudaMemPool_t *memPool, struct cudaMemLocation *location, enum cudaMemAllocationType type)
{
	CKT_RT_CALL(cuMemGetDefaultMemPool(
		memPool, (CUmemLocation *)location, (CUmemAllocationType)type));
}

CKT_RT_API cudaError_t cudaMemGetMemPool(
	cudaMemPool_t *memPool, struct cudaMemLocation *location, enum cudaMemAllocationType type)
{
	CKT_RT_CALL(cuMemGetMemPool(memPool, (CUmemLocation *)location, (CUmemAllocationType)type));
}

CKT_RT_API cudaError_t cudaMemSetMemPool(
	struct cudaMemLocation *location, enum cudaMemAllocationType type, cudaMemPool_t memPool)
{
	CKT_RT_CALL(cuMemSetMemPool((CUmemLocation *)location, (CUmemAllocationType)type, memPool));
}

CKT_RT_API cudaError_t cudaDeviceGraphMemTrim(int device)
{
	REQUIRE_DEVICE(device);
	return ckt_rt_cu(cuDeviceGraphMemTrim(ckt_rt_devices[device].handle));
}

CKT_RT_API cudaError_t cudaDeviceGetGraphMemAttribute(
	int device, enum cudaGraphMemAttributeType attr, void *value)
{
	REQUIRE_DEVICE(device);
	return ckt_rt_cu(cuDeviceGetGraphMemAttribute(
		ckt_rt_devices[device].handle, (CUgraphMem_attribute)attr, value));
}

CKT_RT_API cudaError_t cudaDeviceSetGraphMemAttribute(
	int device, enum cudaGraphMemAttributeType attr, void *value)
{
	REQUIRE_DEVICE(device);
	return ckt_rt_cu(cuDeviceSetGraphMemAttribute(
		ckt_rt_devices[device].handle, (CUgraphMem_attribute)attr, value));
}
