/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices.  CRICKET_SOFT_DEVICES describes them by a comma-separated list of
 * CAPABILITY[:MEMORY[:BUDGET]]; the default is "12.0:8G".  cuInit reads the list once.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/context/device.h"
#include "base/fork.h"
#include "cudacommon/visible_devices.h"
#include "softgpu/context/attribute.h"
#include "softgpu/context/log.h"
#include "softgpu/context/notify.h"
#include "softgpu/memory/arena.h"

/*
 * Shared memory and residency per compute capability, from the CUDA programming guide's table of
 * technical specifications.
 */
static const struct ckt_soft_arch archs[] = {
	{70, 96, 96, 2048, 32},
	{72, 96, 96, 2048, 32},
	{75, 64, 64, 1024, 16},
	{80, 164, 163, 2048, 32},
	{86, 100, 99, 1536, 16},
	{87, 164, 163, 1536, 16},
	{89, 100, 99, 1536, 24},
	{90, 228, 227, 2048, 32},
	{100, 228, 227, 2048, 32},
	{103, 228, 227, 2048, 32},
	{110, 228, 227, 1536, 24},
	{120, 100, 99, 1536, 24},
	{121, 100, 99, 1536, 24},
};

static struct ckt_soft_device devices[CKT_DEVICES_MAX];
static int n_devices;
static CKT_LOCK(init_lock);
static atomic_int initialized; /* 1: yes, -1: a forked child, where CUDA cannot be used */
static atomic_bool begun;      /* a thread has begun the initialisation */

static void forked_child(void)
{
	ckt_fork_renew();
	if (atomic_load(&begun))
		atomic_store(&initialized, -1);
}

/* Registers the handler before any of our locks can be held. */
__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked_child);
}

CUresult ckt_soft_initialized(void)
{
	return atomic_load_explicit(&initialized, memory_order_acquire) == 1
		? CUDA_SUCCESS
		: CUDA_ERROR_NOT_INITIALIZED;
}

struct ckt_soft_device *ckt_soft_device(int ordinal)
{
	return ordinal >= 0 && ordinal < n_devices ? &devices[ordinal] : NULL;
}

int ckt_soft_device_count(void)
{
	return n_devices;
}

static bool parse_memory(const char *text, const char *end, uint64_t *ret_bytes)
{
	char *rest;
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	unsigned long long value = strtoull(text, &rest, 10);
	if (errno || value == 0)
		return false;
	unsigned shift = 0;
	if (rest < end) {
		switch (*rest++) {
		case 'K':
			shift = 10;
			break;
		case 'M':
			shift = 20;
			break;
		case 'G':
			shift = 30;
			break;
		case 'T':
			shift = 40;
			break;
		default:
			return false;
		}
	}
	/*
	 * At most 16 TiB for a device: the ranges of all devices must fit in the address space
	 * several times.
	 */
	if (rest != end || value > (16ULL << 40) >> shift || value << shift < 16ULL << 20)
		return false;
	*ret_bytes = (value << shift) & ~(uint64_t)(CKT_SOFT_GRANULE - 1);
	return true;
}

static bool parse_device(const char *text, const char *end, struct ckt_soft_device *device)
{
	char *rest;
	if (!isdigit((unsigned char)*text))
		return false;
	unsigned long major = strtoul(text, &rest, 10), minor = 0;
	if (rest < end && *rest == '.') {
		if (!isdigit((unsigned char)rest[1]))
			return false;
		minor = strtoul(rest + 1, &rest, 10);
	}
	device->arch = NULL;
	for (size_t i = 0; i < sizeof(archs) / sizeof(*archs); i++)
		if (major < 100 && minor < 10 && archs[i].capability == major * 10 + minor)
			device->arch = &archs[i];
	device->total_bytes = 8ULL << 30;
	device->budget_bytes = 0;
	if (!device->arch || rest == end || *rest != ':')
		return device->arch && rest == end;
	const char *memory = rest + 1, *colon = memchr(memory, ':', (size_t)(end - memory));
	return parse_memory(memory, colon ? colon : end, &device->total_bytes) &&
		(!colon || parse_memory(colon + 1, end, &device->budget_bytes));
}

static CUresult parse_devices(void)
{
	const char *list = getenv("CRICKET_SOFT_DEVICES");
	if (!list || !*list)
		list = "12.0:8G";
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	for (const char *p = list;;) {
		const char *end = strchrnul(p, ',');
		struct ckt_soft_device *device = &devices[n_devices];
		if (n_devices == CKT_DEVICES_MAX || !parse_device(p, end, device)) {
			char known[128];
			size_t used = 0;
			for (size_t i = 0; i < sizeof(archs) / sizeof(*archs); i++)
				used += (size_t)snprintf(known + used, sizeof(known) - used,
					" %u.%u", archs[i].capability / 10,
					archs[i].capability % 10);
			ckt_soft_say(
				"CRICKET_SOFT_DEVICES=%s: \"%.*s\" is not CAPABILITY[:MEMORY[:BUDGET]], for example 12.0:8G (capabilities:%s; "
				"memory and budget: "
				"a number and K, M, G or T, at least 16M; at most %d devices)",
				list, (int)(end - p), p, known, CKT_DEVICES_MAX);
			n_devices = 0;
			return CUDA_ERROR_NO_DEVICE;
		}
		device->serial = device->ordinal = n_devices++;
		device->n_sm = cores > 0 ? (unsigned)cores : 1;
		pthread_mutex_init(&device->lock, NULL);
		if (!*end)
			return CUDA_SUCCESS;
		p = end + 1;
	}
}

/*
 * Depends on the place in CRICKET_SOFT_DEVICES and the capability only: "CRICKET-SOFT" and both
 * numbers.
 */
static void device_uuid(const struct ckt_soft_device *device, uint8_t ret_uuid[16])
{
	memcpy(ret_uuid, "CRICKET-SOFT", 12);
	ret_uuid[12] = 0;
	ret_uuid[13] = (uint8_t)device->arch->capability;
	ret_uuid[14] = 0;
	ret_uuid[15] = (uint8_t)device->serial;
}

/* Applies CUDA_VISIBLE_DEVICES, like every driver. */
static CUresult narrow_devices(void)
{
	const char *text = getenv("CUDA_VISIBLE_DEVICES");
	uint8_t uuids[CKT_DEVICES_MAX][CKT_VISIBLE_UUID];
	unsigned chosen[CKT_DEVICES_MAX], all = (unsigned)n_devices;
	if (!text)
		return CUDA_SUCCESS;
	for (unsigned i = 0; i < all; i++)
		device_uuid(&devices[i], uuids[i]);
	n_devices =
		ckt_visible_select(text, (const uint8_t(*)[CKT_VISIBLE_UUID])uuids, all, chosen);
	if (n_devices < 0) {
		n_devices = 0;
		return CUDA_ERROR_INVALID_DEVICE;
	}
	struct ckt_soft_device *before = malloc(sizeof(devices));
	if (!before)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(before, devices, sizeof(devices));
	for (int i = 0; i < n_devices; i++) {
		devices[i] = before[chosen[i]];
		devices[i].ordinal = i;
		pthread_mutex_init(&devices[i].lock, NULL);
	}
	free(before);
	return n_devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult ckt_soft_devices_init(void)
{
	pthread_mutex_lock(&init_lock);
	CUresult result = CUDA_SUCCESS;
	int state = atomic_load(&initialized);
	if (state < 0) {
		result = CUDA_ERROR_NOT_INITIALIZED;
	} else if (state == 0) {
		atomic_store(&begun, true);
		result = parse_devices();
		if (result == CUDA_SUCCESS)
			result = narrow_devices();
		if (result == CUDA_SUCCESS)
			atomic_store_explicit(&initialized, 1, memory_order_release);
		else
			atomic_store(&begun, false);
	}
	pthread_mutex_unlock(&init_lock);
	return result;
}

CUresult ckt_soft_device_charge(struct ckt_soft_device *device, uint64_t bytes)
{
	uint_fast64_t used = atomic_load(&device->used_bytes);
	do {
		if (bytes > device->total_bytes - used)
			return CUDA_ERROR_OUT_OF_MEMORY;
	} while (!atomic_compare_exchange_weak(&device->used_bytes, &used, used + bytes));
	if (device->budget_bytes && bytes && used + bytes > device->budget_bytes)
		ckt_soft_notify_over(device, used + bytes - device->budget_bytes);
	return CUDA_SUCCESS;
}

void ckt_soft_device_uncharge(struct ckt_soft_device *device, uint64_t bytes)
{
	atomic_fetch_sub(&device->used_bytes, bytes);
}

CUresult ckt_soft_device_prepare(struct ckt_soft_device *device)
{
	/*
	 * Far from programs, libraries, and the range that Cricket's workers reserve.  Each device
	 * takes the next range in the order of first use.  A process's addresses therefore do not
	 * depend on which devices it uses.
	 */
	static _Atomic uint64_t next_arena = 0x300000000000;
	pthread_mutex_lock(&device->lock);
	/* Reserve twice the memory, so that fragmentation does not exhaust the addresses. */
	if (!device->arena_ready &&
		ckt_soft_arena_init(&device->arena,
			atomic_fetch_add(&next_arena, 2 * device->total_bytes),
			2 * device->total_bytes) == 0)
		device->arena_ready = true;
	bool ready = device->arena_ready;
	pthread_mutex_unlock(&device->lock);
	if (!ready) {
		ckt_soft_say(
			"device %d: cannot reserve %llu bytes of address space (a limit such as ulimit -v?)",
			device->ordinal, (unsigned long long)(2 * device->total_bytes));
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* ---- API */

CUresult CUDAAPI cuInit(unsigned int Flags)
{
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	return ckt_soft_devices_init();
}

CUresult CUDAAPI cuDriverGetVersion(int *driverVersion)
{
	if (!driverVersion)
		return CUDA_ERROR_INVALID_VALUE;
	*driverVersion = CKT_SOFT_DRIVER_VERSION;
	return CUDA_SUCCESS;
}

/* Common checks of every device query. */
static CUresult device_of(const void *out, CUdevice dev, struct ckt_soft_device **ret_device)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_device = ckt_soft_device(dev);
	return *ret_device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
	struct ckt_soft_device *d;
	CUresult result = device_of(device, ordinal, &d);
	if (result == CUDA_SUCCESS)
		*device = ordinal;
	return result;
}

CUresult CUDAAPI cuDeviceGetCount(int *count)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = n_devices;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char *name, int len, CUdevice dev)
{
	struct ckt_soft_device *d;
	CUresult result = device_of(name, dev, &d);
	if (result != CUDA_SUCCESS)
		return result;
	if (len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, (size_t)len, "Cricket Soft GPU");
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	struct ckt_soft_device *d;
	CUresult result = device_of(uuid, dev, &d);
	if (result != CUDA_SUCCESS)
		return result;
	device_uuid(d, (uint8_t *)uuid->bytes);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	struct ckt_soft_device *d;
	CUresult result = device_of(bytes, dev, &d);
	if (result == CUDA_SUCCESS)
		*bytes = d->total_bytes;
	else if (bytes && result == CUDA_ERROR_INVALID_DEVICE)
		*bytes = 0;
	return result;
}

CUresult CUDAAPI cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	struct ckt_soft_device *d;
	CUresult result = device_of(pi, dev, &d);
	if (result != CUDA_SUCCESS)
		return result;
	int value = ckt_soft_device_attribute(d, attrib, &result);
	if (result == CUDA_SUCCESS)
		*pi = value;
	return result;
}

CUresult CUDAAPI cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	struct ckt_soft_device *d;
	CUresult result = device_of(major, dev, &d);
	if (result != CUDA_SUCCESS)
		return result;
	if (!minor)
		return CUDA_ERROR_INVALID_VALUE;
	*major = (int)d->arch->capability / 10;
	*minor = (int)d->arch->capability % 10;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
	struct ckt_soft_device *d;
	CUresult result = device_of(prop, dev, &d);
	if (result != CUDA_SUCCESS)
		return result;
	*prop = (CUdevprop){
		.maxThreadsPerBlock = 1024,
		.maxThreadsDim = {1024, 1024, 64},
		.maxGridSize = {2147483647, 65535, 65535},
		.sharedMemPerBlock = 48 << 10,
		.totalConstantMemory = 64 << 10,
		.SIMDWidth = 32,
		.memPitch = 2147483647,
		.regsPerBlock = 65536,
		.clockRate = ckt_soft_device_attribute(d, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &result),
		.textureAlign = 512,
	};
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
	struct ckt_soft_device *d;
	CUresult result = device_of(pciBusId, dev, &d);
	if (result != CUDA_SUCCESS)
		return result;
	char text[16];
	/* No real machine uses this domain, so the device is not mistaken for a real card. */
	int n = snprintf(text, sizeof(text), "CC00:%02X:00.0", (unsigned)d->serial + 1);
	if (len <= n)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(pciBusId, text, (size_t)n + 1);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	unsigned domain = 0, bus, slot, function = 0;
	if (!dev || !pciBusId)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(pciBusId, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3)
		return CUDA_ERROR_INVALID_VALUE;
	if (domain != 0xcc00 || bus < 1 || bus > (unsigned)n_devices || slot || function)
		return CUDA_ERROR_INVALID_DEVICE;
	*dev = (int)bus - 1;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	struct ckt_soft_device *d, *peer;
	CUresult result = device_of(canAccessPeer, dev, &d);
	if (result == CUDA_SUCCESS)
		result = device_of(canAccessPeer, peerDev, &peer);
	if (result == CUDA_SUCCESS)
		*canAccessPeer = d != peer;
	return result;
}

CUresult CUDAAPI cuDeviceGetP2PAttribute(
	int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice)
{
	struct ckt_soft_device *source, *destination;
	CUresult result = device_of(value, srcDevice, &source);
	if (result == CUDA_SUCCESS)
		result = device_of(value, dstDevice, &destination);
	if (result != CUDA_SUCCESS)
		return result;
	if (source == destination)
		return CUDA_ERROR_INVALID_DEVICE;
	switch (attrib) {
	case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
	case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
		*value = 0;
		return CUDA_SUCCESS;
	case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
		*value = 1;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult atomics(unsigned *capabilities, const CUatomicOperation *operations, unsigned count)
{
	if (!operations || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++)
		if ((unsigned)operations[i] >= CU_ATOMIC_OPERATION_MAX)
			return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++)
		capabilities[i] = CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED |
			CU_ATOMIC_CAPABILITY_REDUCTION | CU_ATOMIC_CAPABILITY_SCALAR_32 |
			CU_ATOMIC_CAPABILITY_SCALAR_64;
	return CUDA_SUCCESS;
}

/* Every device uses the same processor's instructions. */
CUresult CUDAAPI cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
	const CUatomicOperation *operations, unsigned int count, CUdevice srcDevice,
	CUdevice dstDevice)
{
	struct ckt_soft_device *source, *destination;
	CUresult result = device_of(capabilities, srcDevice, &source);
	if (result == CUDA_SUCCESS)
		result = device_of(capabilities, dstDevice, &destination);
	if (result != CUDA_SUCCESS)
		return result;
	if (source == destination)
		return CUDA_ERROR_INVALID_DEVICE;
	return atomics(capabilities, operations, count);
}

/* All memory is host memory. */
CUresult CUDAAPI cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
	const CUatomicOperation *operations, unsigned int count, CUdevice device)
{
	struct ckt_soft_device *d;
	CUresult result = device_of(capabilities, device, &d);
	return result != CUDA_SUCCESS ? result : atomics(capabilities, operations, count);
}

CUresult CUDAAPI cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
	struct ckt_soft_device *d;
	CUresult result = device_of(pi, dev, &d);
	if (result != CUDA_SUCCESS)
		return result;
	(void)type;
	*pi = 0;
	return CUDA_SUCCESS;
}
