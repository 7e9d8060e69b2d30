/* SPDX-License-Identifier: Apache-2.0 */
/* Launches and occupancy. */
#include "driver.h"

CASE(plain)
{
	CUfunction function;
	CUdeviceptr p;
	unsigned value = 5;
	void *params[] = {&p, &value};
	struct {
		CUdeviceptr p;
		unsigned value;
	} packed;
	size_t bytes = 12;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
		&bytes, CU_LAUNCH_PARAM_END};
	CUmodule module;
	start();
	module = load();
	function = kernel(module, "fill");
	p = memory(256);
	CALL(cuLaunchKernel, function, 2, 1, 1, 2, 1, 1, 0, NULL, params, NULL);
	CONTENT("bytes", p, 20);
	packed.p = p;
	packed.value = 9;
	CALL(cuLaunchKernel, function, 1, 1, 1, 3, 1, 1, 0, NULL, NULL, extra);
	CONTENT("bytes", p, 20);
	value = 17;
	CALL(cuLaunchKernel_ptsz, function, 1, 1, 1, 2, 1, 1, 0, NULL, params, NULL);
	CONTENT("bytes", p, 20);
	value = 33;
	CALL(cuLaunchCooperativeKernel, function, 1, 1, 1, 2, 1, 1, 0, NULL, params);
	CONTENT("bytes", p, 20);
	value = 65;
	CALL(cuLaunchCooperativeKernel_ptsz, function, 1, 1, 1, 2, 1, 1, 0, NULL, params);
	CONTENT("bytes", p, 20);
}

CASE(extended)
{
	CUfunction function;
	CUdeviceptr p;
	unsigned value = 5;
	void *params[] = {&p, &value};
	CUlaunchConfig config;
	CUlaunchAttribute attribute;
	CUmodule module;
	CUstream stream;
	start();
	module = load();
	function = kernel(module, "fill");
	p = memory(256);
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	memset(&config, 0, sizeof(config));
	config.gridDimX = config.gridDimY = config.gridDimZ = 1;
	config.blockDimX = 4, config.blockDimY = config.blockDimZ = 1;
	config.hStream = stream;
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	CONTENT("bytes", p, 20);
	memset(&attribute, 0, sizeof(attribute));
	attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
	attribute.value.cooperative = 1;
	config.attrs = &attribute;
	config.numAttrs = 1;
	value = 9;
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	CONTENT("bytes", p, 20);
	value = 17;
	config.hStream = NULL;
	CALL(cuLaunchKernelEx_ptsz, &config, function, params, NULL);
	CONTENT("bytes", p, 20);
	attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
	attribute.value.priority = 0;
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	attribute.id = (CUlaunchAttributeID)99;
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	CALL(cuLaunchKernelEx, NULL, function, params, NULL);
}

CASE(wrong)
{
	CUfunction function;
	CUdeviceptr p;
	unsigned value = 5;
	void *params[] = {&p, &value};
	CUmodule module;
	start();
	module = load();
	function = kernel(module, "fill");
	p = memory(256);
	CALL(cuLaunchKernel, function, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
	CALL(cuLaunchKernel, function, 1, 1, 1, 0, 1, 1, 0, NULL, params, NULL);
	CALL(cuLaunchKernel, function, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL);
	CALL(cuLaunchKernel, function, 1, 65536, 1, 1, 1, 1, 0, NULL, params, NULL);
	CALL(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 1 << 24, NULL, params, NULL);
	CALL(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	CALL(cuLaunchKernel, NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
	CALL(cuLaunchCooperativeKernel, function, 1 << 20, 1, 1, 1024, 1, 1, 0, NULL, params);
	CONTENT("bytes", p, 8);
}

/* As programs did it before CUDA 4. */
CASE(old)
{
	CUfunction function;
	CUdeviceptr p;
	unsigned value = 5;
	CUmodule module;
	start();
	module = load();
	function = kernel(module, "fill");
	p = memory(256);
	CALL(cuFuncSetBlockShape, function, 2, 1, 1);
	CALL(cuFuncSetSharedSize, function, 16);
	CALL(cuParamSetSize, function, 12);
	CALL(cuParamSetv, function, 0, &p, 8);
	CALL(cuParamSeti, function, 8, value);
	CALL(cuLaunchGrid, function, 2, 1);
	CONTENT("bytes", p, 20);
	CALL(cuParamSeti, function, 8, 9);
	CALL(cuLaunch, function);
	CONTENT("bytes", p, 20);
	CALL(cuParamSetf, function, 8, 1.0f);
	CALL(cuLaunchGridAsync, function, 1, 1, NULL);
	CONTENT("bytes", p, 20);
	CALL(cuFuncSetBlockShape, function, 0, 1, 1);
	CALL(cuFuncSetBlockShape, function, 2048, 1, 1);
	CALL(cuParamSetSize, function, 1 << 20);
	CALL(cuLaunchGrid, function, 0, 1);
}

static size_t CUDA_CB dynamic(int block)
{
	return (size_t)block * 4;
}

CASE(occupancy)
{
	CUfunction function;
	CUmodule module;
	int blocks = -7, size = -7, grid = -7;
	size_t shared = 77;
	start();
	module = load();
	function = kernel(module, "with_shared");
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, 1024, 0);
	NUMBER("blocks", blocks);
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, 256, 40000);
	YES("some", blocks > 0);
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &blocks, function, 1024, 0,
		CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
	NUMBER("blocks", blocks);
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &blocks, function, 1024, 0,
		0x80);
	CALL(cuOccupancyMaxPotentialBlockSize, &grid, &size, function, NULL, 0, 0);
	NUMBER("block", size);
	YES("some", grid > 0);
	CALL(cuOccupancyMaxPotentialBlockSize, &grid, &size, function, dynamic, 0, 128);
	NUMBER("block", size);
	CALL(cuOccupancyMaxPotentialBlockSizeWithFlags, &grid, &size, function, NULL, 0, 0,
		CU_OCCUPANCY_DEFAULT);
	NUMBER("block", size);
	CALL(cuOccupancyAvailableDynamicSMemPerBlock, &shared, function, 1, 256);
	YES("some", shared > 16384 && shared != 77);
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, NULL, function, 256, 0);
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, 0, 0);
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, NULL, 256, 0);
	CALL(cuOccupancyMaxPotentialBlockSize, NULL, &size, function, NULL, 0, 0);
	CALL(cuOccupancyAvailableDynamicSMemPerBlock, NULL, function, 1, 256);
}

CASE(clusters)
{
	CUfunction function;
	CUmodule module;
	CUlaunchConfig config;
	CUlaunchAttribute attribute;
	int size = -7, clusters = -7;
	start();
	module = load();
	function = kernel(module, "nothing");
	memset(&config, 0, sizeof(config));
	config.gridDimX = 8, config.gridDimY = config.gridDimZ = 1;
	config.blockDimX = 64, config.blockDimY = config.blockDimZ = 1;
	CALL(cuOccupancyMaxPotentialClusterSize, &size, function, &config);
	NUMBER("size", size);
	memset(&attribute, 0, sizeof(attribute));
	attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
	attribute.value.clusterDim.x = 2,
	attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
	config.attrs = &attribute;
	config.numAttrs = 1;
	CALL(cuOccupancyMaxActiveClusters, &clusters, function, &config);
	YES("some", clusters > 0);
	CALL(cuLaunchKernelEx, &config, function, NULL, NULL);
	CALL(cuCtxSynchronize);
	CALL(cuOccupancyMaxActiveClusters, NULL, function, &config);
	CALL(cuOccupancyMaxPotentialClusterSize, NULL, function, &config);
}

static int attribute(CUdevice_attribute which)
{
	int value = 0;
	QUIET(cuDeviceGetAttribute, &value, which, 0);
	return value;
}

/* Beside what the device has. */
CASE(occupancy_by_device)
{
	CUfunction function;
	CUmodule module;
	int blocks = -7, size = -7, grid = -7, threads, processors, shared, most;
	size_t bytes = 77;
	start();
	module = load();
	function = kernel(module, "with_shared");
	threads = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
	processors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	shared = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, 512, 0);
	YES("by threads", blocks == threads / 512);
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, 256, 30000);
	YES("by shared memory", blocks > 0 && blocks <= shared / 30256 && blocks < threads / 256);
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, 2048, 0);
	NUMBER("blocks", blocks);
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &blocks, function, 512, 0,
		CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
	YES("by threads", blocks == threads / 512);
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &blocks, function, 512, 0, 0x80);
	CALL(cuOccupancyMaxPotentialBlockSize, &grid, &size, function, NULL, 0, 0);
	most = threads / size;
	YES("fills it", size * most == threads && grid == most * processors);
	CALL(cuOccupancyMaxPotentialBlockSize, &grid, &size, function, dynamic, 0, 128);
	NUMBER("block", size);
	YES("fills it", grid % processors == 0);
	CALL(cuOccupancyMaxPotentialBlockSizeWithFlags, &grid, &size, function, NULL, 0, 256,
		CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
	NUMBER("block", size);
	YES("fills it", grid == threads / 256 * processors);
	CALL(cuOccupancyMaxPotentialBlockSizeWithFlags, &grid, &size, function, NULL, 0, 256, 0x80);
	CALL(cuOccupancyAvailableDynamicSMemPerBlock, &bytes, function, 2, 256);
	YES("fits", bytes > 10000 && bytes <= (size_t)shared / 2);
	CALL(cuOccupancyAvailableDynamicSMemPerBlock, &bytes, function, 0, 256);
	CALL(cuOccupancyAvailableDynamicSMemPerBlock, &bytes, function, 2, 0);
}
