/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: counting, naming, what they can. */
#include "api.h"

CASE(init)
{
	int version = -1, count = -1;
	CUdevice device = -7;
	CALL(cuDeviceGetCount, &count);
	NUMBER("count", count);
	CALL(cuDeviceGet, &device, 0);
	NUMBER("device", device);
	CALL(cuDriverGetVersion, &version);
	YES("13 or later", version >= 13000);
	CALL(cuDriverGetVersion, NULL);
	CALL(cuInit, 1);
	CALL(cuInit, 0);
	CALL(cuInit, 0);
	CALL(cuDeviceGetCount, &count);
	YES("some", count >= 1);
	CALL(cuDeviceGetCount, NULL);
}

CASE(get)
{
	CUdevice device = -7;
	int count = 0;
	NEED(cuInit, 0);
	NEED(cuDeviceGetCount, &count);
	CALL(cuDeviceGet, &device, 0);
	NUMBER("device", device);
	device = -7;
	CALL(cuDeviceGet, &device, count);
	NUMBER("device", device);
	CALL(cuDeviceGet, &device, -1);
	NUMBER("device", device);
	CALL(cuDeviceGet, NULL, 0);
}

CASE(name)
{
	char name[256], small[4];
	memset(name, 'x', sizeof(name));
	memset(small, 'x', sizeof(small));
	NEED(cuInit, 0);
	CALL(cuDeviceGetName, name, sizeof(name), 0);
	YES("terminated", memchr(name, 0, sizeof(name)) != NULL);
	YES("not empty", name[0] != 0);
	CALL(cuDeviceGetName, small, sizeof(small), 0);
	YES("terminated", memchr(small, 0, sizeof(small)) != NULL);
	YES("begins so", !strncmp(small, name, 3));
	CALL(cuDeviceGetName, name, 0, 0);
	CALL(cuDeviceGetName, NULL, 10, 0);
	CALL(cuDeviceGetName, name, sizeof(name), 999);
	CALL(cuDeviceGetName, name, sizeof(name), -1);
}

CASE(uuid)
{
	CUuuid first, second;
	static const char zero[16];
	memset(&first, 0, sizeof(first));
	memset(&second, 0, sizeof(second));
	NEED(cuInit, 0);
	CALL(cuDeviceGetUuid, &first, 0);
	YES("zero", !memcmp(&first, zero, 16));
	CALL(cuDeviceGetUuid_v2, &second, 0);
	YES("the same", !memcmp(&first, &second, 16));
	CALL(cuDeviceGetUuid, NULL, 0);
	CALL(cuDeviceGetUuid_v2, NULL, 0);
	CALL(cuDeviceGetUuid, &first, 999);
	CALL(cuDeviceGetUuid_v2, &first, -1);
}

CASE(total)
{
	size_t bytes = 1;
	unsigned int old = 1;
	NEED(cuInit, 0);
	CALL(cuDeviceTotalMem_v2, &bytes, 0);
	YES("256 MiB or more", bytes >= 256 << 20);
	bytes = 1;
	CALL(cuDeviceTotalMem_v2, NULL, 0);
	CALL(cuDeviceTotalMem_v2, &bytes, 999);
	NUMBER("bytes", (long long)bytes);
	CALL(cuDeviceTotalMem, &old, 0);
	YES("changed", old != 1);
}

/* Attributes with the same value on every device that this is for, and relations between others. */
CASE(attributes)
{
	static const struct {
		CUdevice_attribute attribute;
		const char *name;
	} same[] = {
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, "threads a block"},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, "block x"},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, "block y"},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, "block z"},
		{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, "grid x"},
		{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, "grid y"},
		{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, "grid z"},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, "shared"},
		{CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, "constant"},
		{CU_DEVICE_ATTRIBUTE_WARP_SIZE, "warp"},
		{CU_DEVICE_ATTRIBUTE_MAX_PITCH, "pitch"},
		{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, "registers"},
		{CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, "texture alignment"},
		{CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, "overlap"},
		{CU_DEVICE_ATTRIBUTE_INTEGRATED, "integrated"},
		{CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, "maps host memory"},
		{CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, "compute mode"},
		{CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, "concurrent kernels"},
		{CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, "unified addressing"},
		{CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, "priorities"},
		{CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, "managed memory"},
		{CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, "cooperative launch"},
		{CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
			"virtual memory management"},
		{CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, "pools"},
	};
	int value, major = -1, minor = -1, other = -1;
	NEED(cuInit, 0);
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		value = -7;
		CALL(cuDeviceGetAttribute, &value, same[i].attribute, 0);
		NUMBER(same[i].name, value);
	}
	CALL(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
	YES("7 or more", major >= 7);
	CALL(cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
	CALL(cuDeviceComputeCapability, &value, &other, 0);
	YES("the same", value == major && other == minor);
	CALL(cuDeviceComputeCapability, NULL, &other, 0);
	CALL(cuDeviceComputeCapability, &value, NULL, 0);
	CALL(cuDeviceComputeCapability, &value, &other, 999);
}

CASE(attributes_wrong)
{
	int value = -7;
	NEED(cuInit, 0);
	CALL(cuDeviceGetAttribute, &value, (CUdevice_attribute)0, 0);
	NUMBER("value", value);
	CALL(cuDeviceGetAttribute, &value, (CUdevice_attribute)9999, 0);
	NUMBER("value", value);
	CALL(cuDeviceGetAttribute, NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);
	CALL(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 999);
	CALL(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, -1);
	NUMBER("value", value);
}

CASE(properties)
{
	CUdevprop p;
	int warp = -1, clock = -1;
	memset(&p, 0xee, sizeof(p));
	NEED(cuInit, 0);
	CALL(cuDeviceGetProperties, &p, 0);
	NUMBER("threads a block", p.maxThreadsPerBlock);
	NUMBER("block x", p.maxThreadsDim[0]);
	NUMBER("block y", p.maxThreadsDim[1]);
	NUMBER("block z", p.maxThreadsDim[2]);
	NUMBER("grid x", p.maxGridSize[0]);
	NUMBER("grid y", p.maxGridSize[1]);
	NUMBER("grid z", p.maxGridSize[2]);
	NUMBER("shared", p.sharedMemPerBlock);
	NUMBER("constant", p.totalConstantMemory);
	NUMBER("warp", p.SIMDWidth);
	NUMBER("pitch", p.memPitch);
	NUMBER("registers", p.regsPerBlock);
	NUMBER("texture alignment", p.textureAlign);
	CALL(cuDeviceGetAttribute, &clock, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0);
	YES("the clock of the properties", clock == p.clockRate);
	CALL(cuDeviceGetAttribute, &warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);
	YES("the warp of the properties", warp == p.SIMDWidth);
	CALL(cuDeviceGetProperties, NULL, 0);
	CALL(cuDeviceGetProperties, &p, 999);
}

CASE(pci)
{
	char id[32], small[6];
	CUdevice device = -7;
	memset(id, 'x', sizeof(id));
	memset(small, 'x', sizeof(small));
	NEED(cuInit, 0);
	CALL(cuDeviceGetPCIBusId, id, sizeof(id), 0);
	NUMBER("length", (long long)strnlen(id, sizeof(id)));
	CALL(cuDeviceGetByPCIBusId, &device, id);
	NUMBER("device", device);
	device = -7;
	CALL(cuDeviceGetByPCIBusId, &device, "ffff:ff:1f.7");
	NUMBER("device", device);
	CALL(cuDeviceGetByPCIBusId, &device, "nonsense");
	CALL(cuDeviceGetByPCIBusId, &device, NULL);
	CALL(cuDeviceGetByPCIBusId, NULL, id);
	CALL(cuDeviceGetPCIBusId, small, sizeof(small), 0);
	CALL(cuDeviceGetPCIBusId, NULL, 20, 0);
	CALL(cuDeviceGetPCIBusId, id, sizeof(id), 999);
	CALL(cuDeviceGetPCIBusId, id, 0, 0);
}

CASE(peers)
{
	int can = -7;
	NEED(cuInit, 0);
	CALL(cuDeviceCanAccessPeer, &can, 0, 0);
	NUMBER("can", can);
	CALL(cuDeviceCanAccessPeer, NULL, 0, 0);
	CALL(cuDeviceCanAccessPeer, &can, 0, 999);
	CALL(cuDeviceCanAccessPeer, &can, -1, 0);
	can = -7;
	CALL(cuDeviceGetP2PAttribute, &can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0);
	NUMBER("value", can);
	CALL(cuDeviceGetP2PAttribute, &can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 999);
	CALL(cuDeviceGetP2PAttribute, NULL, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0);
	CALL(cuDeviceGetP2PAttribute, &can, (CUdevice_P2PAttribute)99, 0, 0);
}

CASE(names)
{
	char whole[256], part[8];
	NEED(cuInit, 0);
	memset(whole, 0x55, sizeof(whole));
	CALL(cuDeviceGetName, whole, sizeof(whole), 0);
	YES("terminated", memchr(whole, 0, sizeof(whole)) != NULL);
	YES("not empty", whole[0] != 0);
	memset(part, 0x55, sizeof(part));
	CALL(cuDeviceGetName, part, sizeof(part), 0);
	YES("terminated", part[7] == 0);
	YES("begins so", !strncmp(part, whole, 7));
	CALL(cuDeviceGetName, whole, sizeof(whole), 999);
	CALL(cuDeviceGetName, whole, 0, 0);
}

CASE(name_parts)
{
	char whole[256], part[8];
	CUdevice device = -7;
	NEED(cuInit, 0);
	NEED(cuDeviceGet, &device, 0);
	memset(whole, 0x55, sizeof(whole));
	CALL(cuDeviceGetName, whole, sizeof(whole), device);
	YES("terminated", memchr(whole, 0, sizeof(whole)) != NULL);
	YES("not empty", whole[0] != 0);
	memset(part, 0x55, sizeof(part));
	CALL(cuDeviceGetName, part, sizeof(part), device);
	YES("terminated", part[7] == 0);
	YES("begins so", !strncmp(part, whole, 7));
	CALL(cuDeviceGetName, whole, sizeof(whole), 999);
	CALL(cuDeviceGetName, whole, sizeof(whole), -1);
}
