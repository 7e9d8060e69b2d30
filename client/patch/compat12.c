/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See compat12.h.
 */
#include "client/patch/compat12.h"

#include <string.h>

#define COPY(field)                                                                   \
	do {                                                                          \
		_Static_assert(sizeof(narrow->field) == sizeof(wide->field), #field); \
		memcpy(&narrow->field, &wide->field, sizeof(narrow->field));          \
	} while (0)

void ckt_patch_device_properties_narrow(
	struct ckt_device_properties_12 *narrow, const struct cudaDeviceProp *wide)
{
	memset(narrow, 0, sizeof(*narrow));
	COPY(name);
	COPY(uuid);
	COPY(luid);
	COPY(luidDeviceNodeMask);
	COPY(totalGlobalMem);
	COPY(sharedMemPerBlock);
	COPY(regsPerBlock);
	COPY(warpSize);
	COPY(memPitch);
	COPY(maxThreadsPerBlock);
	COPY(maxThreadsDim);
	COPY(maxGridSize);
	COPY(totalConstMem);
	COPY(major);
	COPY(minor);
	COPY(textureAlignment);
	COPY(texturePitchAlignment);
	COPY(multiProcessorCount);
	COPY(integrated);
	COPY(canMapHostMemory);
	COPY(maxTexture1D);
	COPY(maxTexture1DMipmap);
	COPY(maxTexture2D);
	COPY(maxTexture2DMipmap);
	COPY(maxTexture2DLinear);
	COPY(maxTexture2DGather);
	COPY(maxTexture3D);
	COPY(maxTexture3DAlt);
	COPY(maxTextureCubemap);
	COPY(maxTexture1DLayered);
	COPY(maxTexture2DLayered);
	COPY(maxTextureCubemapLayered);
	COPY(maxSurface1D);
	COPY(maxSurface2D);
	COPY(maxSurface3D);
	COPY(maxSurface1DLayered);
	COPY(maxSurface2DLayered);
	COPY(maxSurfaceCubemap);
	COPY(maxSurfaceCubemapLayered);
	COPY(surfaceAlignment);
	COPY(concurrentKernels);
	COPY(ECCEnabled);
	COPY(pciBusID);
	COPY(pciDeviceID);
	COPY(pciDomainID);
	COPY(tccDriver);
	COPY(asyncEngineCount);
	COPY(unifiedAddressing);
	COPY(memoryBusWidth);
	COPY(l2CacheSize);
	COPY(persistingL2CacheMaxSize);
	COPY(maxThreadsPerMultiProcessor);
	COPY(streamPrioritiesSupported);
	COPY(globalL1CacheSupported);
	COPY(localL1CacheSupported);
	COPY(sharedMemPerMultiprocessor);
	COPY(regsPerMultiprocessor);
	COPY(managedMemory);
	COPY(isMultiGpuBoard);
	COPY(multiGpuBoardGroupID);
	COPY(hostNativeAtomicSupported);
	COPY(pageableMemoryAccess);
	COPY(concurrentManagedAccess);
	COPY(computePreemptionSupported);
	COPY(canUseHostPointerForRegisteredMem);
	COPY(cooperativeLaunch);
	COPY(sharedMemPerBlockOptin);
	COPY(pageableMemoryAccessUsesHostPageTables);
	COPY(directManagedMemAccessFromHost);
	COPY(maxBlocksPerMultiProcessor);
	COPY(accessPolicyMaxWindowSize);
	COPY(reservedSharedMemPerBlock);
	COPY(hostRegisterSupported);
	COPY(sparseCudaArraySupported);
	COPY(hostRegisterReadOnlySupported);
	COPY(timelineSemaphoreInteropSupported);
	COPY(memoryPoolsSupported);
	COPY(gpuDirectRDMASupported);
	COPY(gpuDirectRDMAFlushWritesOptions);
	COPY(gpuDirectRDMAWritesOrdering);
	COPY(memoryPoolSupportedHandleTypes);
	COPY(deferredMappingCudaArraySupported);
	COPY(ipcEventSupported);
	COPY(clusterLaunch);
	COPY(unifiedFunctionPointers);
}
