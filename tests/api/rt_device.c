/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's devices: properties, attributes, names on the bus, limits and settings. */
#include "runtime.h"

CASE(count)
{
	int count = -7, device = -7;
	CALL(cudaGetDeviceCount, &count);
	YES("some", count >= 1);
	CALL(cudaGetDevice, &device);
	NUMBER("device", device);
	CALL(cudaSetDevice, 0);
	CALL(cudaGetDevice, &device);
	NUMBER("device", device);
}

CASE(count_wrong)
{
	CALL(cudaGetDeviceCount, NULL);
	CALL(cudaGetDevice, NULL);
	CALL(cudaSetDevice, -1);
	CALL(cudaSetDevice, 999);
	CALL(cudaGetLastError);
}

/* Against what the attributes say. */
static int attribute(enum cudaDeviceAttr name)
{
	int value = -7;
	QUIET(cudaDeviceGetAttribute, &value, name, 0);
	return value;
}

static size_t total(void)
{
	size_t size = 0;
	QUIET(cuDeviceTotalMem_v2, &size, 0);
	return size;
}

CASE(properties)
{
	struct cudaDeviceProp p;
	char name[256] = "";
	CUuuid id;
	memset(&p, 0xee, sizeof(p));
	CALL(cudaGetDeviceProperties, &p, 0);
	QUIET(cuDeviceGetName, name, sizeof(name), 0);
	QUIET(cuDeviceGetUuid_v2, &id, 0);
	YES("name", !strcmp(p.name, name) && name[0]);
	YES("rest of the name empty", p.name[strlen(p.name) + 1] == 0 && p.name[255] == 0);
	YES("uuid", !memcmp(&p.uuid, &id, sizeof(id)));
	YES("total", p.totalGlobalMem == total());
	NUMBER("warp", p.warpSize);
	REMARK("of a block");
	YES("shared", (int)p.sharedMemPerBlock == attribute(cudaDevAttrMaxSharedMemoryPerBlock));
	YES("opt in",
		(int)p.sharedMemPerBlockOptin ==
			attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
	YES("reserved",
		(int)p.reservedSharedMemPerBlock ==
			attribute(cudaDevAttrReservedSharedMemoryPerBlock));
	YES("registers", p.regsPerBlock == attribute(cudaDevAttrMaxRegistersPerBlock));
	YES("threads", p.maxThreadsPerBlock == attribute(cudaDevAttrMaxThreadsPerBlock));
	YES("x", p.maxThreadsDim[0] == attribute(cudaDevAttrMaxBlockDimX));
	YES("y", p.maxThreadsDim[1] == attribute(cudaDevAttrMaxBlockDimY));
	YES("z", p.maxThreadsDim[2] == attribute(cudaDevAttrMaxBlockDimZ));
	REMARK("of a grid");
	YES("x", p.maxGridSize[0] == attribute(cudaDevAttrMaxGridDimX));
	YES("y", p.maxGridSize[1] == attribute(cudaDevAttrMaxGridDimY));
	YES("z", p.maxGridSize[2] == attribute(cudaDevAttrMaxGridDimZ));
	REMARK("of a multiprocessor");
	YES("threads",
		p.maxThreadsPerMultiProcessor == attribute(cudaDevAttrMaxThreadsPerMultiProcessor));
	YES("shared",
		(int)p.sharedMemPerMultiprocessor ==
			attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor));
	YES("registers",
		p.regsPerMultiprocessor == attribute(cudaDevAttrMaxRegistersPerMultiprocessor));
	YES("blocks",
		p.maxBlocksPerMultiProcessor == attribute(cudaDevAttrMaxBlocksPerMultiprocessor));
	REMARK("of the device");
	YES("major", p.major == attribute(cudaDevAttrComputeCapabilityMajor));
	YES("minor", p.minor == attribute(cudaDevAttrComputeCapabilityMinor));
	YES("multiprocessors", p.multiProcessorCount == attribute(cudaDevAttrMultiProcessorCount));
	YES("constants", (int)p.totalConstMem == attribute(cudaDevAttrTotalConstantMemory));
	YES("pitch", (int)p.memPitch == attribute(cudaDevAttrMaxPitch));
	YES("textures", (int)p.textureAlignment == attribute(cudaDevAttrTextureAlignment));
	YES("texture pitch",
		(int)p.texturePitchAlignment == attribute(cudaDevAttrTexturePitchAlignment));
	YES("surfaces", (int)p.surfaceAlignment == attribute(cudaDevAttrSurfaceAlignment));
	YES("l2", p.l2CacheSize == attribute(cudaDevAttrL2CacheSize));
	YES("persisting",
		p.persistingL2CacheMaxSize == attribute(cudaDevAttrMaxPersistingL2CacheSize));
	YES("window",
		p.accessPolicyMaxWindowSize == attribute(cudaDevAttrMaxAccessPolicyWindowSize));
	YES("bus width", p.memoryBusWidth == attribute(cudaDevAttrGlobalMemoryBusWidth));
	YES("engines", p.asyncEngineCount == attribute(cudaDevAttrAsyncEngineCount));
	REMARK("on the bus");
	YES("bus", p.pciBusID == attribute(cudaDevAttrPciBusId));
	YES("device", p.pciDeviceID == attribute(cudaDevAttrPciDeviceId));
	YES("domain", p.pciDomainID == attribute(cudaDevAttrPciDomainId));
	YES("tcc", p.tccDriver == attribute(cudaDevAttrTccDriver));
	YES("integrated", p.integrated == attribute(cudaDevAttrIntegrated));
	YES("board", p.isMultiGpuBoard == attribute(cudaDevAttrIsMultiGpuBoard));
	YES("group", p.multiGpuBoardGroupID == attribute(cudaDevAttrMultiGpuBoardGroupID));
}

CASE(features)
{
	struct cudaDeviceProp p;
	memset(&p, 0xee, sizeof(p));
	CALL(cudaGetDeviceProperties, &p, 0);
	YES("maps", p.canMapHostMemory == attribute(cudaDevAttrCanMapHostMemory));
	YES("kernels", p.concurrentKernels == attribute(cudaDevAttrConcurrentKernels));
	YES("ecc", p.ECCEnabled == attribute(cudaDevAttrEccEnabled));
	YES("addresses", p.unifiedAddressing == attribute(cudaDevAttrUnifiedAddressing));
	YES("priorities",
		p.streamPrioritiesSupported == attribute(cudaDevAttrStreamPrioritiesSupported));
	YES("global l1", p.globalL1CacheSupported == attribute(cudaDevAttrGlobalL1CacheSupported));
	YES("local l1", p.localL1CacheSupported == attribute(cudaDevAttrLocalL1CacheSupported));
	YES("managed", p.managedMemory == attribute(cudaDevAttrManagedMemory));
	YES("atomics",
		p.hostNativeAtomicSupported == attribute(cudaDevAttrHostNativeAtomicSupported));
	YES("pageable", p.pageableMemoryAccess == attribute(cudaDevAttrPageableMemoryAccess));
	YES("concurrent managed",
		p.concurrentManagedAccess == attribute(cudaDevAttrConcurrentManagedAccess));
	YES("preemption",
		p.computePreemptionSupported == attribute(cudaDevAttrComputePreemptionSupported));
	YES("registered",
		p.canUseHostPointerForRegisteredMem ==
			attribute(cudaDevAttrCanUseHostPointerForRegisteredMem));
	YES("cooperative", p.cooperativeLaunch == attribute(cudaDevAttrCooperativeLaunch));
	YES("host tables",
		p.pageableMemoryAccessUsesHostPageTables ==
			attribute(cudaDevAttrPageableMemoryAccessUsesHostPageTables));
	YES("from the host",
		p.directManagedMemAccessFromHost ==
			attribute(cudaDevAttrDirectManagedMemAccessFromHost));
	YES("register", p.hostRegisterSupported == attribute(cudaDevAttrHostRegisterSupported));
	YES("read only",
		p.hostRegisterReadOnlySupported ==
			attribute(cudaDevAttrHostRegisterReadOnlySupported));
	YES("sparse", p.sparseCudaArraySupported == attribute(cudaDevAttrSparseCudaArraySupported));
	YES("semaphores",
		p.timelineSemaphoreInteropSupported ==
			attribute(cudaDevAttrTimelineSemaphoreInteropSupported));
	YES("pools", p.memoryPoolsSupported == attribute(cudaDevAttrMemoryPoolsSupported));
	YES("rdma", p.gpuDirectRDMASupported == attribute(cudaDevAttrGPUDirectRDMASupported));
	YES("flushes",
		(int)p.gpuDirectRDMAFlushWritesOptions ==
			attribute(cudaDevAttrGPUDirectRDMAFlushWritesOptions));
	YES("ordering",
		p.gpuDirectRDMAWritesOrdering == attribute(cudaDevAttrGPUDirectRDMAWritesOrdering));
	YES("handles",
		(int)p.memoryPoolSupportedHandleTypes ==
			attribute(cudaDevAttrMemoryPoolSupportedHandleTypes));
	YES("deferred",
		p.deferredMappingCudaArraySupported ==
			attribute(cudaDevAttrDeferredMappingCudaArraySupported));
	YES("ipc", p.ipcEventSupported == attribute(cudaDevAttrIpcEventSupport));
	YES("clusters", p.clusterLaunch == attribute(cudaDevAttrClusterLaunch));
	YES("numa", p.hostNumaId == attribute(cudaDevAttrHostNumaId) || p.hostNumaId == -1);
	YES("mps", p.mpsEnabled == attribute(cudaDevAttrMpsEnabled));
}

CASE(texture_sizes)
{
	struct cudaDeviceProp p;
	memset(&p, 0xee, sizeof(p));
	CALL(cudaGetDeviceProperties, &p, 0);
	YES("1d", p.maxTexture1D == attribute(cudaDevAttrMaxTexture1DWidth));
	YES("mipmapped", p.maxTexture1DMipmap == attribute(cudaDevAttrMaxTexture1DMipmappedWidth));
	YES("2d",
		p.maxTexture2D[0] == attribute(cudaDevAttrMaxTexture2DWidth) &&
			p.maxTexture2D[1] == attribute(cudaDevAttrMaxTexture2DHeight));
	YES("linear",
		p.maxTexture2DLinear[0] == attribute(cudaDevAttrMaxTexture2DLinearWidth) &&
			p.maxTexture2DLinear[1] == attribute(cudaDevAttrMaxTexture2DLinearHeight) &&
			p.maxTexture2DLinear[2] == attribute(cudaDevAttrMaxTexture2DLinearPitch));
	YES("gather",
		p.maxTexture2DGather[0] == attribute(cudaDevAttrMaxTexture2DGatherWidth) &&
			p.maxTexture2DGather[1] == attribute(cudaDevAttrMaxTexture2DGatherHeight));
	YES("3d",
		p.maxTexture3D[0] == attribute(cudaDevAttrMaxTexture3DWidth) &&
			p.maxTexture3D[1] == attribute(cudaDevAttrMaxTexture3DHeight) &&
			p.maxTexture3D[2] == attribute(cudaDevAttrMaxTexture3DDepth));
	YES("alternate",
		p.maxTexture3DAlt[0] == attribute(cudaDevAttrMaxTexture3DWidthAlt) &&
			p.maxTexture3DAlt[2] == attribute(cudaDevAttrMaxTexture3DDepthAlt));
	YES("cubemap", p.maxTextureCubemap == attribute(cudaDevAttrMaxTextureCubemapWidth));
	YES("layered",
		p.maxTexture1DLayered[0] == attribute(cudaDevAttrMaxTexture1DLayeredWidth) &&
			p.maxTexture1DLayered[1] ==
				attribute(cudaDevAttrMaxTexture1DLayeredLayers));
	YES("layered 2d",
		p.maxTexture2DLayered[0] == attribute(cudaDevAttrMaxTexture2DLayeredWidth) &&
			p.maxTexture2DLayered[2] ==
				attribute(cudaDevAttrMaxTexture2DLayeredLayers));
	YES("surface", p.maxSurface1D == attribute(cudaDevAttrMaxSurface1DWidth));
	YES("surface 2d", p.maxSurface2D[1] == attribute(cudaDevAttrMaxSurface2DHeight));
	YES("surface 3d", p.maxSurface3D[2] == attribute(cudaDevAttrMaxSurface3DDepth));
	YES("surface cubemap", p.maxSurfaceCubemap == attribute(cudaDevAttrMaxSurfaceCubemapWidth));
	YES("surface layered",
		p.maxSurface2DLayered[2] == attribute(cudaDevAttrMaxSurface2DLayeredLayers));
}

CASE(properties_wrong)
{
	struct cudaDeviceProp p;
	CALL(cudaGetDeviceProperties, &p, 999);
	CALL(cudaGetDeviceProperties, &p, -1);
	CALL(cudaGetDeviceProperties, NULL, 0);
	CALL(cudaGetLastError);
}

CASE(attributes)
{
	for (int i = 1; i <= 148; i++) {
		int value = -7, drivers = -7;
		int error;
		int result =
			(int)FUNCTION(cudaDeviceGetAttribute)(&value, (enum cudaDeviceAttr)i, 0);
		if (!api_driver)
			QUIET(cuInit, 0);
		error = (int)FUNCTION(cuDeviceGetAttribute)(&drivers, (CUdevice_attribute)i, 0);
		CALLED(cudaDeviceGetAttribute);
		NUMBER("attribute", i);
		NUMBER("result", result);
		YES("as the driver", result == error && value == drivers);
	}
}

CASE(attribute)
{
	int value = -7;
	CALL(cudaDeviceGetAttribute, &value, cudaDevAttrWarpSize, 0);
	NUMBER("warp", value);
	CALL(cudaDeviceGetAttribute, &value, cudaDevAttrMaxThreadsPerBlock, 0);
	NUMBER("threads", value);
	CALL(cudaDeviceGetAttribute, &value, cudaDevAttrMaxGridDimX, 0);
	NUMBER("grid", value);
	CALL(cudaDeviceGetAttribute, &value, cudaDevAttrUnifiedAddressing, 0);
	NUMBER("unified", value);
}

CASE(attribute_wrong)
{
	int value = -7;
	CALL(cudaDeviceGetAttribute, &value, cudaDevAttrWarpSize, 999);
	CALL(cudaDeviceGetAttribute, &value, cudaDevAttrWarpSize, -1);
	CALL(cudaDeviceGetAttribute, &value, (enum cudaDeviceAttr)0, 0);
	CALL(cudaDeviceGetAttribute, &value, (enum cudaDeviceAttr) - 1, 0);
	CALL(cudaDeviceGetAttribute, &value, (enum cudaDeviceAttr)1000, 0);
	CALL(cudaDeviceGetAttribute, NULL, cudaDevAttrWarpSize, 0);
	NUMBER("value", value);
	CALL(cudaGetLastError);
}

CASE(pci)
{
	char id[32], small[13];
	int device = -7;
	memset(id, 0xee, sizeof(id));
	CALL(cudaDeviceGetPCIBusId, id, sizeof(id), 0);
	NUMBER("length", (long long)strlen(id));
	YES("form", id[4] == ':' && id[7] == ':' && id[10] == '.');
	CALL(cudaDeviceGetPCIBusId, small, sizeof(small), 0);
	YES("the same", !strcmp(id, small));
	CALL(cudaDeviceGetByPCIBusId, &device, id);
	NUMBER("device", device);
	device = -7;
	id[10] = 0;
	CALL(cudaDeviceGetByPCIBusId, &device, id);
	NUMBER("device", device);
}

CASE(pci_wrong)
{
	char id[32] = "before";
	int device = -7;
	CALL(cudaDeviceGetPCIBusId, id, sizeof(id), 999);
	CALL(cudaDeviceGetPCIBusId, id, 12, 0);
	CALL(cudaDeviceGetPCIBusId, id, 5, 0);
	CALL(cudaDeviceGetPCIBusId, id, 0, 0);
	CALL(cudaDeviceGetPCIBusId, id, -1, 0);
	CALL(cudaDeviceGetPCIBusId, NULL, 32, 0);
	CALL(cudaDeviceGetByPCIBusId, &device, "ffff:ff:1f.7");
	CALL(cudaDeviceGetByPCIBusId, &device, "none");
	CALL(cudaDeviceGetByPCIBusId, &device, "");
	CALL(cudaDeviceGetByPCIBusId, &device, NULL);
	CALL(cudaDeviceGetByPCIBusId, NULL, "0000:00:00.0");
	NUMBER("device", device);
	CALL(cudaGetLastError);
}

CASE(limits)
{
	static const struct {
		enum cudaLimit limit;
		size_t value;
	} list[] = {
		{cudaLimitStackSize, 4096},
		{cudaLimitPrintfFifoSize, 2 << 20},
		{cudaLimitMallocHeapSize, 16 << 20},
		{cudaLimitDevRuntimePendingLaunchCount, 4096},
		{cudaLimitMaxL2FetchGranularity, 32},
	};
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		size_t value = 0;
		CALL(cudaDeviceGetLimit, &value, list[i].limit);
		NUMBER("limit", list[i].limit);
		YES("some", value > 0);
		CALL(cudaDeviceSetLimit, list[i].limit, list[i].value);
		CALL(cudaDeviceGetLimit, &value, list[i].limit);
		NUMBER("value", (long long)value);
	}
}

CASE(limits_wrong)
{
	size_t value = 77;
	CALL(cudaDeviceGetLimit, &value, cudaLimitDevRuntimeSyncDepth);
	CALL(cudaDeviceSetLimit, cudaLimitDevRuntimeSyncDepth, 3);
	CALL(cudaDeviceGetLimit, &value, (enum cudaLimit)99);
	CALL(cudaDeviceSetLimit, (enum cudaLimit)99, 1);
	CALL(cudaDeviceGetLimit, NULL, cudaLimitStackSize);
	CALL(cudaDeviceSetLimit, cudaLimitPersistingL2CacheSize, (size_t)1 << 50);
	NUMBER("value", (long long)value);
	CALL(cudaGetLastError);
}

CASE(caches)
{
	enum cudaFuncCache cache = (enum cudaFuncCache)77;
	enum cudaSharedMemConfig banks = (enum cudaSharedMemConfig)77;
	CALL(cudaDeviceGetCacheConfig, &cache);
	NUMBER("cache", cache);
	CALL(cudaDeviceSetCacheConfig, cudaFuncCachePreferL1);
	CALL(cudaDeviceGetCacheConfig, &cache);
	NUMBER("cache", cache);
	CALL(cudaDeviceSetCacheConfig, cudaFuncCachePreferEqual);
	CALL(cudaDeviceGetCacheConfig, &cache);
	NUMBER("cache", cache);
	CALL(cudaDeviceGetSharedMemConfig, &banks);
	NUMBER("banks", banks);
	CALL(cudaDeviceSetSharedMemConfig, cudaSharedMemBankSizeEightByte);
	CALL(cudaDeviceGetSharedMemConfig, &banks);
	NUMBER("banks", banks);
	CALL(cudaCtxResetPersistingL2Cache);
}

CASE(caches_wrong)
{
	enum cudaFuncCache cache = (enum cudaFuncCache)77;
	CALL(cudaDeviceSetCacheConfig, (enum cudaFuncCache)99);
	CALL(cudaDeviceGetCacheConfig, &cache);
	NUMBER("cache", cache);
	CALL(cudaDeviceGetCacheConfig, NULL);
	CALL(cudaDeviceSetSharedMemConfig, (enum cudaSharedMemConfig)99);
	CALL(cudaDeviceGetSharedMemConfig, NULL);
	CALL(cudaGetLastError);
}

CASE(choose)
{
	struct cudaDeviceProp p;
	int device = -7;
	memset(&p, 0, sizeof(p));
	CALL(cudaChooseDevice, &device, &p);
	NUMBER("device", device);
	device = -7;
	QUIET(cudaGetDeviceProperties, &p, 0);
	CALL(cudaChooseDevice, &device, &p);
	NUMBER("device", device);
	device = -7;
	memset(&p, 0, sizeof(p));
	p.major = 99;
	p.totalGlobalMem = (size_t)1 << 60;
	CALL(cudaChooseDevice, &device, &p);
	NUMBER("device", device);
}

CASE(choose_wrong)
{
	struct cudaDeviceProp p;
	int device = -7;
	memset(&p, 0, sizeof(p));
	CALL(cudaChooseDevice, NULL, &p);
	CALL(cudaChooseDevice, &device, NULL);
	CALL(cudaGetLastError);
}

CASE(valid)
{
	int list[2] = {0, 0}, device = -7;
	void *p = NULL;
	CALL(cudaSetValidDevices, list, 1);
	CALL(cudaMalloc, &p, 16);
	CALL(cudaGetDevice, &device);
	NUMBER("device", device);
}

CASE(valid_none)
{
	int list[2] = {0, 0}, device = -7;
	CALL(cudaSetValidDevices, list, 0);
	CALL(cudaSetValidDevices, NULL, 0);
	CALL(cudaDeviceSynchronize);
	CALL(cudaGetDevice, &device);
	NUMBER("device", device);
}

CASE(valid_wrong)
{
	int list[2] = {999, -1};
	CALL(cudaSetValidDevices, list, 1);
	CALL(cudaSetValidDevices, list + 1, 1);
	CALL(cudaSetValidDevices, list, 1000);
	CALL(cudaSetValidDevices, list, -1);
	CALL(cudaSetValidDevices, NULL, 1);
	CALL(cudaGetLastError);
}

CASE(init)
{
	unsigned flags = 77;
	int device = -7;
	CALL(cudaInitDevice, 0, 0, 0);
	CALL(cudaGetDevice, &device);
	NUMBER("device", device);
	CALL(cudaInitDevice, 0, cudaDeviceScheduleYield, cudaInitDeviceFlagsAreValid);
	CALL(cudaGetDeviceFlags, &flags);
	HEX("flags", flags);
	CALL(cudaInitDevice, 0, cudaDeviceScheduleSpin, 0);
	CALL(cudaGetDeviceFlags, &flags);
	HEX("flags", flags);
}

CASE(init_wrong)
{
	CALL(cudaInitDevice, 999, 0, 0);
	CALL(cudaInitDevice, -1, 0, 0);
	CALL(cudaInitDevice, 0, 0, 0x80);
	CALL(cudaInitDevice, 0, 0x8000, cudaInitDeviceFlagsAreValid);
	CALL(cudaInitDevice, 0, cudaDeviceScheduleYield | cudaDeviceScheduleSpin,
		cudaInitDeviceFlagsAreValid);
	CALL(cudaGetLastError);
}

CASE(flags)
{
	unsigned flags = 77;
	CALL(cudaGetDeviceFlags, &flags);
	HEX("flags", flags);
	CALL(cudaSetDeviceFlags, cudaDeviceScheduleBlockingSync | cudaDeviceMapHost);
	CALL(cudaGetDeviceFlags, &flags);
	HEX("flags", flags);
	CALL(cudaSetDeviceFlags, cudaDeviceScheduleAuto | cudaDeviceLmemResizeToMax);
	CALL(cudaGetDeviceFlags, &flags);
	HEX("flags", flags);
}

CASE(peers)
{
	int value = -7;
	CALL(cudaDeviceCanAccessPeer, &value, 0, 0);
	NUMBER("can", value);
	CALL(cudaDeviceGetP2PAttribute, &value, cudaDevP2PAttrAccessSupported, 0, 0);
	CALL(cudaDeviceGetP2PAttribute, &value, cudaDevP2PAttrAccessSupported, 0, 999);
	CALL(cudaDeviceGetP2PAttribute, &value, (enum cudaDeviceP2PAttr)99, 0, 0);
	CALL(cudaDeviceGetP2PAttribute, NULL, cudaDevP2PAttrAccessSupported, 0, 0);
	CALL(cudaDeviceEnablePeerAccess, 0, 0);
	CALL(cudaDeviceEnablePeerAccess, 999, 0);
	CALL(cudaDeviceEnablePeerAccess, 0, 1);
	CALL(cudaDeviceDisablePeerAccess, 0);
	CALL(cudaDeviceDisablePeerAccess, 999);
	CALL(cudaGetLastError);
}

CASE(atomics)
{
	unsigned capabilities[2] = {77, 77};
	enum cudaAtomicOperation operations[2] = {
		cudaAtomicOperationIntegerAdd, cudaAtomicOperationExchange};
	CALL(cudaDeviceGetHostAtomicCapabilities, capabilities, operations, 2, 0);
	YES("written", capabilities[0] != 77 && capabilities[1] != 77);
	CALL(cudaDeviceGetP2PAtomicCapabilities, capabilities, operations, 2, 0, 0);
}

CASE(atomics_wrong)
{
	unsigned capabilities[2] = {77, 77};
	enum cudaAtomicOperation operations[2] = {
		cudaAtomicOperationIntegerAdd, (enum cudaAtomicOperation)999};
	CALL(cudaDeviceGetHostAtomicCapabilities, NULL, operations, 1, 0);
	CALL(cudaDeviceGetHostAtomicCapabilities, capabilities, NULL, 1, 0);
	CALL(cudaDeviceGetHostAtomicCapabilities, capabilities, operations, 0, 0);
	CALL(cudaDeviceGetHostAtomicCapabilities, capabilities, operations, 2, 0);
	CALL(cudaDeviceGetHostAtomicCapabilities, capabilities, operations, 1, 999);
	CALL(cudaDeviceGetP2PAtomicCapabilities, capabilities, operations, 1, 0, 999);
	CALL(cudaDeviceGetP2PAtomicCapabilities, NULL, operations, 1, 0, 0);
	CALL(cudaGetLastError);
}

CASE(flush)
{
	CALL(cudaDeviceFlushGPUDirectRDMAWrites, cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
		cudaFlushGPUDirectRDMAWritesToOwner);
}

CASE(flush_wrong)
{
	CALL(cudaDeviceFlushGPUDirectRDMAWrites, (enum cudaFlushGPUDirectRDMAWritesTarget)9,
		cudaFlushGPUDirectRDMAWritesToOwner);
	CALL(cudaDeviceFlushGPUDirectRDMAWrites, cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
		(enum cudaFlushGPUDirectRDMAWritesScope)9);
	CALL(cudaGetLastError);
}

CASE(priorities)
{
	int least = -77, greatest = -77;
	CALL(cudaDeviceGetStreamPriorityRange, &least, &greatest);
	NUMBER("least", least);
	YES("greatest is less", greatest < least);
	CALL(cudaDeviceGetStreamPriorityRange, NULL, NULL);
	CALL(cudaDeviceGetStreamPriorityRange, &least, NULL);
}

CASE(reset)
{
	void *p = NULL;
	struct cudaPointerAttributes a;
	QUIET(cudaMalloc, &p, 64);
	CALL(cudaDeviceReset);
	memset(&a, 0xee, sizeof(a));
	CALL(cudaPointerGetAttributes, &a, p);
	NUMBER("type", a.type);
	CALL(cudaMalloc, &p, 64);
	CALL(cudaMemset, p, 1, 64);
	CALL(cudaDeviceSynchronize);
	CALL(cudaDeviceReset);
	CALL(cudaGetLastError);
}

static void notified(
	cudaAsyncNotificationInfo_t *info, void *data, cudaAsyncCallbackHandle_t handle)
{
	(void)info, (void)data, (void)handle;
}

CASE(notifications)
{
	cudaAsyncCallbackHandle_t handle = NULL, other = NULL;
	CALL(cudaDeviceRegisterAsyncNotification, 0, notified, NULL, &handle);
	YES("some", handle != NULL);
	CALL(cudaDeviceRegisterAsyncNotification, 0, notified, &handle, &other);
	YES("another", other != handle);
	CALL(cudaDeviceUnregisterAsyncNotification, 0, handle);
	CALL(cudaDeviceUnregisterAsyncNotification, 0, other);
}

CASE(notifications_wrong)
{
	cudaAsyncCallbackHandle_t handle = NULL;
	CALL(cudaDeviceRegisterAsyncNotification, 999, notified, NULL, &handle);
	CALL(cudaDeviceRegisterAsyncNotification, 0, NULL, NULL, &handle);
	CALL(cudaDeviceUnregisterAsyncNotification, 999, handle);
	CALL(cudaGetLastError);
}
