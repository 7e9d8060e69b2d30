/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device says of itself, value by value.  A session's device is meant to say most of what
 * the GPU does: the rest stands in ../truth/api.list, an attribute a line, with the value that is
 * meant where the device is the soft GPU.
 */
#include "runtime.h"

#include "attributes.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

CASE(driver)
{
	QUIET(cuInit, 0);
	for (size_t i = 0; i < COUNT(api_attributes); i++) {
		int value = -7;
		CALL_OF(api_attributes[i].name, cuDeviceGetAttribute, &value,
			api_attributes[i].number, 0);
		NUMBER("value", value);
	}
}

/* The runtime numbers attributes as the driver does. */
CASE(runtime)
{
	for (size_t i = 0; i < COUNT(api_attributes); i++) {
		int value = -7;
		CALL_OF(api_attributes[i].name, cudaDeviceGetAttribute, &value,
			(enum cudaDeviceAttr)api_attributes[i].number, 0);
		NUMBER("value", value);
	}
}

#define FIELD(field)                                             \
	do {                                                     \
		memset(&p, 0xee, sizeof(p));                     \
		CALL_OF(#field, cudaGetDeviceProperties, &p, 0); \
		NUMBER("value", (long long)p.field);             \
	} while (0)

CASE(properties)
{
	struct cudaDeviceProp p;
	FIELD(sharedMemPerBlock);
	FIELD(regsPerBlock);
	FIELD(warpSize);
	FIELD(memPitch);
	FIELD(maxThreadsPerBlock);
	FIELD(maxThreadsDim[0]);
	FIELD(maxThreadsDim[1]);
	FIELD(maxThreadsDim[2]);
	FIELD(maxGridSize[0]);
	FIELD(maxGridSize[1]);
	FIELD(maxGridSize[2]);
	FIELD(totalConstMem);
	FIELD(major);
	FIELD(minor);
	FIELD(textureAlignment);
	FIELD(texturePitchAlignment);
	FIELD(multiProcessorCount);
	FIELD(integrated);
	FIELD(canMapHostMemory);
	FIELD(maxTexture1D);
	FIELD(maxTexture1DMipmap);
	FIELD(maxTexture2D[0]);
	FIELD(maxTexture2D[1]);
	FIELD(maxTexture2DMipmap[0]);
	FIELD(maxTexture2DMipmap[1]);
	FIELD(maxTexture2DLinear[0]);
	FIELD(maxTexture2DLinear[1]);
	FIELD(maxTexture2DLinear[2]);
	FIELD(maxTexture2DGather[0]);
	FIELD(maxTexture2DGather[1]);
	FIELD(maxTexture3D[0]);
	FIELD(maxTexture3D[1]);
	FIELD(maxTexture3D[2]);
	FIELD(maxTexture3DAlt[0]);
	FIELD(maxTexture3DAlt[1]);
	FIELD(maxTexture3DAlt[2]);
	FIELD(maxTextureCubemap);
	FIELD(maxTexture1DLayered[0]);
	FIELD(maxTexture1DLayered[1]);
	FIELD(maxTexture2DLayered[0]);
	FIELD(maxTexture2DLayered[1]);
	FIELD(maxTexture2DLayered[2]);
	FIELD(maxTextureCubemapLayered[0]);
	FIELD(maxTextureCubemapLayered[1]);
	FIELD(maxSurface1D);
	FIELD(maxSurface2D[0]);
	FIELD(maxSurface2D[1]);
	FIELD(maxSurface3D[0]);
	FIELD(maxSurface3D[1]);
	FIELD(maxSurface3D[2]);
	FIELD(maxSurface1DLayered[0]);
	FIELD(maxSurface1DLayered[1]);
	FIELD(maxSurface2DLayered[0]);
	FIELD(maxSurface2DLayered[1]);
	FIELD(maxSurface2DLayered[2]);
	FIELD(maxSurfaceCubemap);
	FIELD(maxSurfaceCubemapLayered[0]);
	FIELD(maxSurfaceCubemapLayered[1]);
	FIELD(surfaceAlignment);
	FIELD(concurrentKernels);
	FIELD(ECCEnabled);
	FIELD(tccDriver);
	FIELD(asyncEngineCount);
	FIELD(unifiedAddressing);
	FIELD(memoryBusWidth);
	FIELD(l2CacheSize);
	FIELD(persistingL2CacheMaxSize);
	FIELD(maxThreadsPerMultiProcessor);
	FIELD(streamPrioritiesSupported);
	FIELD(globalL1CacheSupported);
	FIELD(localL1CacheSupported);
	FIELD(sharedMemPerMultiprocessor);
	FIELD(regsPerMultiprocessor);
	FIELD(managedMemory);
	FIELD(isMultiGpuBoard);
	FIELD(multiGpuBoardGroupID);
	FIELD(hostNativeAtomicSupported);
	FIELD(pageableMemoryAccess);
	FIELD(concurrentManagedAccess);
	FIELD(computePreemptionSupported);
	FIELD(canUseHostPointerForRegisteredMem);
	FIELD(cooperativeLaunch);
	FIELD(sharedMemPerBlockOptin);
	FIELD(pageableMemoryAccessUsesHostPageTables);
	FIELD(directManagedMemAccessFromHost);
	FIELD(maxBlocksPerMultiProcessor);
	FIELD(accessPolicyMaxWindowSize);
	FIELD(reservedSharedMemPerBlock);
	FIELD(hostRegisterSupported);
	FIELD(sparseCudaArraySupported);
	FIELD(hostRegisterReadOnlySupported);
	FIELD(timelineSemaphoreInteropSupported);
	FIELD(memoryPoolsSupported);
	FIELD(gpuDirectRDMASupported);
	FIELD(gpuDirectRDMAFlushWritesOptions);
	FIELD(gpuDirectRDMAWritesOrdering);
	FIELD(memoryPoolSupportedHandleTypes);
	FIELD(deferredMappingCudaArraySupported);
	FIELD(ipcEventSupported);
	FIELD(clusterLaunch);
	FIELD(unifiedFunctionPointers);
	FIELD(deviceNumaConfig);
	FIELD(deviceNumaId);
	FIELD(mpsEnabled);
	FIELD(hostNumaId);
	FIELD(gpuPciDeviceID);
	FIELD(gpuPciSubsystemID);
	FIELD(hostNumaMultinodeIpcSupported);
}

CASE(properties_driver)
{
	CUdevprop p;
	memset(&p, 0xee, sizeof(p));
	QUIET(cuInit, 0);
	CALL_OF("clockRate", cuDeviceGetProperties, &p, 0);
	NUMBER("value", p.clockRate);
}

static const char *const operations[] = {"INTEGER_ADD", "INTEGER_MIN", "INTEGER_MAX",
	"INTEGER_INCREMENT", "INTEGER_DECREMENT", "AND", "OR", "XOR", "EXCHANGE", "CAS",
	"FLOAT_ADD", "FLOAT_MIN", "FLOAT_MAX"};

/* What atomic operations of the device reach the host's memory. */
CASE(host_atomics)
{
	QUIET(cuInit, 0);
	for (unsigned i = 0; i < COUNT(operations); i++) {
		CUatomicOperation operation = (CUatomicOperation)i;
		unsigned capabilities = 0xeeeeeeee;
		CALL_OF(operations[i], cuDeviceGetHostAtomicCapabilities, &capabilities, &operation,
			1, 0);
		HEX("value", capabilities);
	}
}

CASE(host_atomics_runtime)
{
	for (unsigned i = 0; i < COUNT(operations); i++) {
		enum cudaAtomicOperation operation = (enum cudaAtomicOperation)i;
		unsigned capabilities = 0xeeeeeeee;
		CALL_OF(operations[i], cudaDeviceGetHostAtomicCapabilities, &capabilities,
			&operation, 1, 0);
		HEX("value", capabilities);
	}
}

CASE(host_atomics_many)
{
	CUatomicOperation some[] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_FLOAT_MAX,
		CU_ATOMIC_OPERATION_CAS};
	unsigned together[4] = {77, 77, 77, 77}, alone = 0;
	QUIET(cuInit, 0);
	CALL(cuDeviceGetHostAtomicCapabilities, together, some, 3, 0);
	for (unsigned i = 0; i < COUNT(some); i++) {
		QUIET(cuDeviceGetHostAtomicCapabilities, &alone, &some[i], 1, 0);
		YES("as alone", alone == together[i]);
	}
	YES("no more", together[3] == 77);
	some[1] = CU_ATOMIC_OPERATION_MAX;
	CALL(cuDeviceGetHostAtomicCapabilities, together, some, 3, 0);
	CALL(cuDeviceGetHostAtomicCapabilities, together, some, 1, 999);
	CALL(cuDeviceGetHostAtomicCapabilities, together, NULL, 1, 0);
}

/* A context that was not made for a part of the device has all of it. */
CASE(affinity)
{
	CUexecAffinityParam param;
	CUcontext context = NULL;
	int processors = 0;
	QUIET(cuInit, 0);
	QUIET(cuDevicePrimaryCtxRetain, &context, 0);
	memset(&param, 0xee, sizeof(param));
	CALL(cuCtxGetExecAffinity, &param, CU_EXEC_AFFINITY_TYPE_SM_COUNT);
	QUIET(cuCtxSetCurrent, context);
	QUIET(cuDeviceGetAttribute, &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
	CALL(cuCtxGetExecAffinity, &param, CU_EXEC_AFFINITY_TYPE_SM_COUNT);
	NUMBER("type", param.type);
	YES("all processors", (int)param.param.smCount.val == processors);
	CALL(cuCtxGetExecAffinity, &param, CU_EXEC_AFFINITY_TYPE_MAX);
	CALL(cuCtxGetExecAffinity, &param, (CUexecAffinityType)-1);
}
