/* SPDX-License-Identifier: Apache-2.0 */
/* cudaDeviceProp, filled from the device's attributes, and the choice of a device by properties. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client/cudart/api.h"

#define FIELD(field, attribute)                                      \
	{                                                            \
		offsetof(struct cudaDeviceProp, field),              \
			sizeof(((struct cudaDeviceProp *)0)->field), \
			CU_DEVICE_ATTRIBUTE_##attribute              \
	}

static const struct {
	unsigned offset;
	unsigned size; /* of an int or a size_t */
	CUdevice_attribute attribute;
} fields[] = {
	FIELD(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
	FIELD(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
	FIELD(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
	FIELD(warpSize, WARP_SIZE),
	FIELD(memPitch, MAX_PITCH),
	FIELD(maxThreadsDim[0], MAX_BLOCK_DIM_X),
	FIELD(maxThreadsDim[1], MAX_BLOCK_DIM_Y),
	FIELD(maxThreadsDim[2], MAX_BLOCK_DIM_Z),
	FIELD(maxGridSize[0], MAX_GRID_DIM_X),
	FIELD(maxGridSize[1], MAX_GRID_DIM_Y),
	FIELD(maxGridSize[2], MAX_GRID_DIM_Z),
	FIELD(totalConstMem, TOTAL_CONSTANT_MEMORY),
	FIELD(major, COMPUTE_CAPABILITY_MAJOR),
	FIELD(minor, COMPUTE_CAPABILITY_MINOR),
	FIELD(textureAlignment, TEXTURE_ALIGNMENT),
	FIELD(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
	FIELD(multiProcessorCount, MULTIPROCESSOR_COUNT),
	FIELD(integrated, INTEGRATED),
	FIELD(canMapHostMemory, CAN_MAP_HOST_MEMORY),
	FIELD(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH),
	FIELD(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH),
	FIELD(maxTexture2D[0], MAXIMUM_TEXTURE2D_WIDTH),
	FIELD(maxTexture2D[1], MAXIMUM_TEXTURE2D_HEIGHT),
	FIELD(maxTexture2DMipmap[0], MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH),
	FIELD(maxTexture2DMipmap[1], MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT),
	FIELD(maxTexture2DLinear[0], MAXIMUM_TEXTURE2D_LINEAR_WIDTH),
	FIELD(maxTexture2DLinear[1], MAXIMUM_TEXTURE2D_LINEAR_HEIGHT),
	FIELD(maxTexture2DLinear[2], MAXIMUM_TEXTURE2D_LINEAR_PITCH),
	FIELD(maxTexture2DGather[0], MAXIMUM_TEXTURE2D_GATHER_WIDTH),
	FIELD(maxTexture2DGather[1], MAXIMUM_TEXTURE2D_GATHER_HEIGHT),
	FIELD(maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH),
	FIELD(maxTexture3D[1], MAXIMUM_TEXTURE3D_HEIGHT),
	FIELD(maxTexture3D[2], MAXIMUM_TEXTURE3D_DEPTH),
	FIELD(maxTexture3DAlt[0], MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE),
	FIELD(maxTexture3DAlt[1], MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE),
	FIELD(maxTexture3DAlt[2], MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE),
	FIELD(maxTextureCubemap, MAXIMUM_TEXTURECUBEMAP_WIDTH),
	FIELD(maxTexture1DLayered[0], MAXIMUM_TEXTURE1D_LAYERED_WIDTH),
	FIELD(maxTexture1DLayered[1], MAXIMUM_TEXTURE1D_LAYERED_LAYERS),
	FIELD(maxTexture2DLayered[0], MAXIMUM_TEXTURE2D_LAYERED_WIDTH),
	FIELD(maxTexture2DLayered[1], MAXIMUM_TEXTURE2D_LAYERED_HEIGHT),
	FIELD(maxTexture2DLayered[2], MAXIMUM_TEXTURE2D_LAYERED_LAYERS),
	FIELD(maxTextureCubemapLayered[0], MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH),
	FIELD(maxTextureCubemapLayered[1], MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS),
	FIELD(maxSurface1D, MAXIMUM_SURFACE1D_WIDTH),
	FIELD(maxSurface2D[0], MAXIMUM_SURFACE2D_WIDTH),
	FIELD(maxSurface2D[1], MAXIMUM_SURFACE2D_HEIGHT),
	FIELD(maxSurface3D[0], MAXIMUM_SURFACE3D_WIDTH),
	FIELD(maxSurface3D[1], MAXIMUM_SURFACE3D_HEIGHT),
	FIELD(maxSurface3D[2], MAXIMUM_SURFACE3D_DEPTH),
	FIELD(maxSurface1DLayered[0], MAXIMUM_SURFACE1D_LAYERED_WIDTH),
	FIELD(maxSurface1DLayered[1], MAXIMUM_SURFACE1D_LAYERED_LAYERS),
	FIELD(maxSurface2DLayered[0], MAXIMUM_SURFACE2D_LAYERED_WIDTH),
	FIELD(maxSurface2DLayered[1], MAXIMUM_SURFACE2D_LAYERED_HEIGHT),
	FIELD(maxSurface2DLayered[2], MAXIMUM_SURFACE2D_LAYERED_LAYERS),
	FIELD(maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH),
	FIELD(maxSurfaceCubemapLayered[0], MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH),
	FIELD(maxSurfaceCubemapLayered[1], MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS),
	FIELD(surfaceAlignment, SURFACE_ALIGNMENT),
	FIELD(concurrentKernels, CONCURRENT_KERNELS),
	FIELD(ECCEnabled, ECC_ENABLED),
	FIELD(pciBusID, PCI_BUS_ID),
	FIELD(pciDeviceID, PCI_DEVICE_ID),
	FIELD(pciDomainID, PCI_DOMAIN_ID),
	FIELD(tccDriver, TCC_DRIVER),
	FIELD(asyncEngineCount, ASYNC_ENGINE_COUNT),
	FIELD(unifiedAddressing, UNIFIED_ADDRESSING),
	FIELD(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
	FIELD(l2CacheSize, L2_CACHE_SIZE),
	FIELD(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE),
	FIELD(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
	FIELD(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
	FIELD(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED),
	FIELD(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED),
	FIELD(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
	FIELD(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
	FIELD(managedMemory, MANAGED_MEMORY),
	FIELD(isMultiGpuBoard, MULTI_GPU_BOARD),
	FIELD(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID),
	FIELD(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED),
	FIELD(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS),
	FIELD(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
	FIELD(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
	FIELD(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
	FIELD(cooperativeLaunch, COOPERATIVE_LAUNCH),
	FIELD(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
	FIELD(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
	FIELD(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
	FIELD(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
	FIELD(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE),
	FIELD(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
	FIELD(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
	FIELD(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED),
	FIELD(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED),
	FIELD(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED),
	FIELD(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
	FIELD(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED),
	FIELD(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS),
	FIELD(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING),
	FIELD(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES),
	FIELD(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED),
	FIELD(ipcEventSupported, IPC_EVENT_SUPPORTED),
	FIELD(clusterLaunch, CLUSTER_LAUNCH),
	FIELD(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS),
	FIELD(deviceNumaConfig, NUMA_CONFIG),
	FIELD(deviceNumaId, NUMA_ID),
	FIELD(mpsEnabled, MPS_ENABLED),
	FIELD(hostNumaId, HOST_NUMA_ID),
	FIELD(gpuPciDeviceID, GPU_PCI_DEVICE_ID),
	FIELD(gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID),
	FIELD(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED),
};

static cudaError_t fill(struct cudaDeviceProp *prop, CUdevice device)
{
	CUuuid uuid;
	memset(prop, 0, sizeof *prop);
	CUresult result = cuDeviceGetName(prop->name, sizeof prop->name, device);
	if (result == CUDA_SUCCESS)
		result = cuDeviceGetUuid(&uuid, device);
	if (result == CUDA_SUCCESS)
		result = cuDeviceTotalMem(&prop->totalGlobalMem, device);
	if (result)
		return (cudaError_t)result;
	memcpy(&prop->uuid, &uuid, sizeof uuid);
	for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++) {
		int value = 0;
		char *field = (char *)prop + fields[i].offset;
		result = cuDeviceGetAttribute(&value, fields[i].attribute, device);
		/* The driver is older than the attribute: its property is 0. */
		if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED)
			value = 0;
		else if (result)
			return (cudaError_t)result;
		if (fields[i].size == sizeof(size_t)) {
			size_t wide = (unsigned)value;
			memcpy(field, &wide, sizeof wide);
		} else {
			memcpy(field, &value, sizeof value);
		}
	}
	return cudaSuccess;
}

/* The properties of a device do not change, so each process queries them once. */
static cudaError_t properties(int device, const struct cudaDeviceProp **ret_prop)
{
	struct ckt_rt_device *d = &ckt_rt_devices[device];
	struct cudaDeviceProp *known = atomic_load_explicit(&d->properties, memory_order_acquire);
	if (!known) {
		struct cudaDeviceProp *made = malloc(sizeof *made);
		cudaError_t error = made ? fill(made, d->handle) : cudaErrorMemoryAllocation;
		if (error) {
			free(made);
			return error;
		}
		if (atomic_compare_exchange_strong(&d->properties, &known, made))
			known = made;
		else
			free(made);
	}
	*ret_prop = known;
	return cudaSuccess;
}

CKT_RT_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	const struct cudaDeviceProp *known;
	cudaError_t error = ckt_rt_check_device(device);
	CKT_RT_REQUIRE(!error, error);
	CKT_RT_REQUIRE(prop, cudaErrorInvalidValue);
	error = properties(device, &known);
	CKT_RT_REQUIRE(!error, error);
	*prop = *known;
	return cudaSuccess;
}

/* Chooses the device that matches most non-zero properties; the first one of equal devices. */
CKT_RT_API cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *prop)
{
	int best = 0, best_score = -1;
	CKT_RT_DRIVER();
	CKT_RT_REQUIRE(device && prop, cudaErrorInvalidValue);
	for (int i = 0; i < ckt_rt_device_count; i++) {
		const struct cudaDeviceProp *have;
		int score = 0;
		cudaError_t error = properties(i, &have);
		CKT_RT_REQUIRE(!error, error);
		score += prop->name[0] && strncmp(prop->name, have->name, sizeof prop->name) == 0;
		score += prop->major &&
			(have->major > prop->major ||
				(have->major == prop->major && have->minor >= prop->minor));
		score += prop->major && have->major == prop->major && have->minor == prop->minor;
		score += prop->totalGlobalMem && have->totalGlobalMem >= prop->totalGlobalMem;
		score += prop->sharedMemPerBlock &&
			have->sharedMemPerBlock >= prop->sharedMemPerBlock;
		score += prop->regsPerBlock && have->regsPerBlock >= prop->regsPerBlock;
		score += prop->maxThreadsPerBlock &&
			have->maxThreadsPerBlock >= prop->maxThreadsPerBlock;
		score += prop->totalConstMem && have->totalConstMem >= prop->totalConstMem;
		score += prop->multiProcessorCount &&
			have->multiProcessorCount >= prop->multiProcessorCount;
		score += prop->l2CacheSize && have->l2CacheSize >= prop->l2CacheSize;
		score += prop->managedMemory && have->managedMemory;
		score += prop->cooperativeLaunch && have->cooperativeLaunch;
		score += prop->clusterLaunch && have->clusterLaunch;
		score += prop->canMapHostMemory && have->canMapHostMemory;
		score += prop->concurrentKernels && have->concurrentKernels;
		if (score > best_score) {
			best = i;
			best_score = score;
		}
	}
	*device = best;
	return cudaSuccess;
}
