/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: properties against attributes, names on the bus, choice, flags, limits, versions. */
#include "check.h"

#include <cstring>

static int attribute(cudaDeviceAttr attr)
{
	int value = -12345;
	OK(cudaDeviceGetAttribute(&value, attr, 0));
	return value;
}

int main()
{
	int count = 0, device = -1, version = 0, least, greatest, can;
	cudaDeviceProp prop, wish;
	char bus[32];
	size_t limit = 0, free_bytes, total_bytes;
	unsigned flags = 0;
	OK(cudaGetDeviceCount(&count));
	CHECK(count >= 1);
	OK(cudaGetDevice(&device));
	CHECK(device == 0);
	OK(cudaGetDeviceProperties(&prop, 0));
	RESULT(cudaGetDeviceProperties(&prop, count), cudaErrorInvalidDevice);
	RESULT(cudaGetLastError(), cudaErrorInvalidDevice);
	CHECK(prop.name[0] && prop.totalGlobalMem > 0);
	CHECK(prop.major == attribute(cudaDevAttrComputeCapabilityMajor) && prop.minor == attribute(cudaDevAttrComputeCapabilityMinor));
	CHECK(prop.warpSize == 32 && prop.warpSize == attribute(cudaDevAttrWarpSize));
	CHECK(prop.maxThreadsPerBlock == attribute(cudaDevAttrMaxThreadsPerBlock));
	CHECK(prop.maxThreadsDim[2] == attribute(cudaDevAttrMaxBlockDimZ) && prop.maxGridSize[0] == attribute(cudaDevAttrMaxGridDimX));
	CHECK((int)prop.sharedMemPerBlock == attribute(cudaDevAttrMaxSharedMemoryPerBlock));
	CHECK((int)prop.sharedMemPerBlockOptin == attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
	CHECK((int)prop.totalConstMem == attribute(cudaDevAttrTotalConstantMemory));
	CHECK((int)prop.textureAlignment == attribute(cudaDevAttrTextureAlignment));
	CHECK(prop.multiProcessorCount == attribute(cudaDevAttrMultiProcessorCount) && prop.multiProcessorCount > 0);
	CHECK(prop.l2CacheSize == attribute(cudaDevAttrL2CacheSize) && prop.asyncEngineCount == attribute(cudaDevAttrAsyncEngineCount));
	CHECK(prop.maxSurfaceCubemapLayered[1] == attribute(cudaDevAttrMaxSurfaceCubemapLayeredLayers));
	CHECK(prop.maxBlocksPerMultiProcessor == attribute(cudaDevAttrMaxBlocksPerMultiprocessor));
	CHECK(prop.cooperativeLaunch == attribute(cudaDevAttrCooperativeLaunch));
	OK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
	OK(cudaDeviceGetByPCIBusId(&device, bus));
	CHECK(device == 0);
	memset(&wish, 0, sizeof wish);
	wish.major = prop.major;
	OK(cudaChooseDevice(&device, &wish));
	CHECK(device >= 0 && device < count);
	RESULT(cudaSetDevice(count), cudaErrorInvalidDevice);
	OK(cudaSetDevice(0));
	OK(cudaInitDevice(0, 0, 0));
	int order[] = {0};
	OK(cudaSetValidDevices(order, 1));
	OK(cudaGetDeviceFlags(&flags));
	CHECK(flags & cudaDeviceMapHost);
	OK(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
	CHECK(limit > 0);
	OK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, limit));
	OK(cudaRuntimeGetVersion(&version));
	CHECK(version == CUDART_VERSION);
	OK(cudaDriverGetVersion(&version));
	CHECK(version >= 13000);
	OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CHECK(greatest <= least);
	RESULT(cudaDeviceCanAccessPeer(&can, 0, count), cudaErrorInvalidDevice);
	OK(cudaMemGetInfo(&free_bytes, &total_bytes));
	CHECK(free_bytes <= total_bytes && total_bytes == prop.totalGlobalMem);
	OK(cudaDeviceSynchronize());
	OK(cudaDeviceReset());
	OK(cudaMemGetInfo(&free_bytes, &total_bytes));
	/* A driver entry point by name. */
	void *entry = NULL;
	cudaDriverEntryPointQueryResult found;
	OK(cudaGetDriverEntryPointByVersion("cuDeviceGetCount", &entry, 12000, cudaEnableDefault, &found));
	CHECK(found == cudaDriverEntryPointSuccess && entry);
	OK(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &entry, 12000, cudaEnableDefault, &found));
	CHECK(found == cudaDriverEntryPointSymbolNotFound && !entry);
	return failed;
}
