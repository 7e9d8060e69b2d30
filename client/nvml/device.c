/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs, their handles, and the answers that need no request to a server; see device.h. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/nvml/device.h"
#include "client/nvml/forward.h"
#include "client/nvml/server_query.h"
#include "rpc/control.h"
#include "rpc/nvml.h"

#pragma GCC visibility push(default)

int nvmlInit(void);
int nvmlInit_v2(void);
int nvmlInitWithFlags(unsigned flags);
int nvmlShutdown(void);
int nvmlDeviceGetCount(unsigned *count);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex(unsigned index, void **device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetHandleByPciBusId(const char *pci_bus_id, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, void **device);
int nvmlDeviceGetHandleBySerial(const char *serial, void **device);
int nvmlDeviceGetName(void *device, char *name, unsigned size);
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size);
int nvmlDeviceGetIndex(void *device, unsigned *index);
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor);
int nvmlDeviceIsMigDeviceHandle(void *device, unsigned *is_mig);
int nvmlDeviceGetSerial(void *device, char *serial, unsigned size);
int nvmlSystemGetCudaDriverVersion(int *version);
int nvmlSystemGetCudaDriverVersion_v2(int *version);

#pragma GCC visibility pop

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static unsigned starts; /* calls of nvmlInit minus calls of nvmlShutdown */
/*
 * nvmlInit fills this array when no other nvmlInit is in effect. nvmlShutdown keeps it, so a handle
 * stays valid across nvmlShutdown and nvmlInit. If the server has changed, the handle then means a
 * GPU of the new server.
 */
static struct ckt_nvml_device devices[CKT_DEVICES_MAX];
static unsigned device_count;
static int cuda_version;

/* Another thread may have held the lock when the process forked. */
static void after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

static void take_device(unsigned server, const ckt_control_device *from, struct ckt_nvml_device *to)
{
	const uint8_t *u = (const uint8_t *)from->uuid;
	*to = (struct ckt_nvml_device){.server = server,
		.ordinal = from->ordinal,
		.major = (int)from->major,
		.minor = (int)from->minor,
		.memory_bytes = from->memory_bytes};
	snprintf(to->name, sizeof to->name, "%s", from->name);
	snprintf(to->uuid, sizeof to->uuid,
		"GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
		u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
		u[14], u[15]);
	if (sscanf(from->pci_bus_id, "%x:%x:%x", &to->domain, &to->bus, &to->slot) != 3)
		to->domain = to->bus = to->slot = 0;
	snprintf(to->pci_bus_id, sizeof to->pci_bus_id, "%08X:%02X:%02X.0", to->domain, to->bus,
		to->slot);
}

/*
 * NVML's order within one server: by PCI address, like CUDA with CUDA_DEVICE_ORDER=PCI_BUS_ID. GPUs
 * with equal addresses keep the server's order. The servers themselves keep the order of
 * REMOTE_GPU_ADDRESS.
 */
static int by_pci(const void *a, const void *b)
{
	const struct ckt_nvml_device *x = a, *y = b;
	if (x->domain != y->domain)
		return x->domain < y->domain ? -1 : 1;
	if (x->bus != y->bus)
		return x->bus < y->bus ? -1 : 1;
	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

struct found {
	struct ckt_nvml_device devices[CKT_DEVICES_MAX];
	unsigned count;
	int cuda_version;
};

/* Appends the GPUs of one server. */
static int find_devices(unsigned server, struct found *found)
{
	ckt_control_devices_res res = {0};
	unsigned before = found->count;
	int result = ckt_nvml_call(server, CKT_CONTROL_DEVICES, NULL, NULL,
		(xdrproc_t)xdr_ckt_control_devices_res, &res);
	if (result)
		return result;
	for (u_int i = 0; i < res.devices.devices_len && found->count < CKT_DEVICES_MAX; i++)
		take_device(server, &res.devices.devices_val[i], &found->devices[found->count++]);
	qsort(found->devices + before, found->count - before, sizeof *found->devices, by_pci);
	/* The program sees the oldest version among the servers. */
	if (!server || res.cuda_version < found->cuda_version)
		found->cuda_version = res.cuda_version;
	xdr_free((xdrproc_t)xdr_ckt_control_devices_res, (char *)&res);
	return CKT_NVML_SUCCESS;
}

int ckt_nvml_start(void)
{
	struct found found = {0};
	pthread_once(&fork_once, watch_forks);
	pthread_mutex_lock(&lock);
	bool asked = starts == 0;
	starts += !asked;
	pthread_mutex_unlock(&lock);
	if (!asked)
		return CKT_NVML_SUCCESS;
	unsigned servers = ckt_nvml_servers();
	int result = servers ? CKT_NVML_SUCCESS : CKT_NVML_DRIVER_NOT_LOADED;
	for (unsigned server = 0; server < servers && !result; server++)
		result = find_devices(server, &found);
	if (result)
		return result;
	pthread_mutex_lock(&lock);
	if (starts++ == 0) {
		memcpy(devices, found.devices, found.count * sizeof *devices);
		device_count = found.count;
		cuda_version = found.cuda_version;
	}
	pthread_mutex_unlock(&lock);
	return CKT_NVML_SUCCESS;
}

int ckt_nvml_stop(void)
{
	pthread_mutex_lock(&lock);
	int result = starts ? CKT_NVML_SUCCESS : CKT_NVML_UNINITIALIZED;
	starts -= starts != 0;
	pthread_mutex_unlock(&lock);
	return result;
}

int ckt_nvml_devices(
	struct ckt_nvml_device **ret_devices, unsigned *ret_count, int *ret_cuda_version)
{
	pthread_mutex_lock(&lock);
	int result = starts ? CKT_NVML_SUCCESS : CKT_NVML_UNINITIALIZED;
	if (!result) {
		*ret_devices = devices;
		*ret_count = device_count;
		*ret_cuda_version = cuda_version;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

int ckt_nvml_device(const void *handle, struct ckt_nvml_device **ret_device)
{
	struct ckt_nvml_device *first;
	unsigned count;
	int version, result = ckt_nvml_devices(&first, &count, &version);
	uintptr_t offset = (uintptr_t)handle - (uintptr_t)devices;
	if (result)
		return result;
	if (!handle || offset % sizeof *devices || offset / sizeof *devices >= count)
		return CKT_NVML_INVALID_ARGUMENT;
	*ret_device = &first[offset / sizeof *devices];
	return CKT_NVML_SUCCESS;
}

int nvmlInit_v2(void)
{
	return ckt_nvml_start();
}

/* The flags NO_GPUS and NO_ATTACH concern GPUs that do not answer. The server omits those. */
int nvmlInitWithFlags(unsigned flags)
{
	(void)flags;
	return ckt_nvml_start();
}

int nvmlInit(void)
{
	return ckt_nvml_start();
}

int nvmlShutdown(void)
{
	return ckt_nvml_stop();
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	struct ckt_nvml_device *all;
	unsigned known;
	int version, result = ckt_nvml_devices(&all, &known, &version);
	if (!result && !count)
		result = CKT_NVML_INVALID_ARGUMENT;
	if (!result)
		*count = known;
	return result;
}

int nvmlDeviceGetCount(unsigned *count)
{
	return nvmlDeviceGetCount_v2(count);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	struct ckt_nvml_device *all;
	unsigned known;
	int version, result = ckt_nvml_devices(&all, &known, &version);
	if (!result && (!device || index >= known))
		result = CKT_NVML_INVALID_ARGUMENT;
	if (!result)
		*device = &all[index];
	return result;
}

int nvmlDeviceGetHandleByIndex(unsigned index, void **device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static bool has_uuid(struct ckt_nvml_device *device, const void *uuid)
{
	return strcasecmp(device->uuid, uuid) == 0;
}

struct place {
	unsigned domain, bus, slot;
};

static bool is_at(struct ckt_nvml_device *device, const void *data)
{
	const struct place *place = data;
	return device->domain == place->domain && device->bus == place->bus &&
		device->slot == place->slot;
}

static bool has_serial(struct ckt_nvml_device *device, const void *serial)
{
	char own[32];
	return nvmlDeviceGetSerial(device, own, sizeof own) == CKT_NVML_SUCCESS &&
		strcmp(own, serial) == 0;
}

static int find(bool (*fits)(struct ckt_nvml_device *device, const void *data), const void *data,
	void **ret_device)
{
	struct ckt_nvml_device *all;
	unsigned count;
	int version, result = ckt_nvml_devices(&all, &count, &version);
	if (result)
		return result;
	if (!data || !ret_device)
		return CKT_NVML_INVALID_ARGUMENT;
	for (unsigned i = 0; i < count; i++)
		if (fits(&all[i], data)) {
			*ret_device = &all[i];
			return CKT_NVML_SUCCESS;
		}
	return CKT_NVML_NOT_FOUND;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
	return find(has_uuid, uuid, device);
}

/* Like NVML, this accepts "domain:bus:device.function" with or without the domain. */
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, void **device)
{
	struct place place = {0};
	if (pci_bus_id &&
		sscanf(pci_bus_id, "%x:%x:%x", &place.domain, &place.bus, &place.slot) != 3) {
		place.domain = 0;
		if (sscanf(pci_bus_id, "%x:%x", &place.bus, &place.slot) != 2)
			pci_bus_id = NULL;
	}
	return find(is_at, pci_bus_id ? &place : NULL, device);
}

int nvmlDeviceGetHandleByPciBusId(const char *pci_bus_id, void **device)
{
	return nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id, device);
}

int nvmlDeviceGetHandleBySerial(const char *serial, void **device)
{
	return find(has_serial, serial, device);
}

int nvmlDeviceGetName(void *handle, char *name, unsigned size)
{
	struct ckt_nvml_device *device;
	int result = ckt_nvml_device(handle, &device);
	return result ? result : ckt_nvml_copy_text(device->name, name, size);
}

int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned size)
{
	struct ckt_nvml_device *device;
	int result = ckt_nvml_device(handle, &device);
	return result ? result : ckt_nvml_copy_text(device->uuid, uuid, size);
}

int nvmlDeviceGetIndex(void *handle, unsigned *index)
{
	struct ckt_nvml_device *device;
	int result = ckt_nvml_device(handle, &device);
	if (!result && !index)
		result = CKT_NVML_INVALID_ARGUMENT;
	if (!result)
		*index = (unsigned)(device - devices);
	return result;
}

int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor)
{
	struct ckt_nvml_device *device;
	int result = ckt_nvml_device(handle, &device);
	if (!result && (!major || !minor))
		result = CKT_NVML_INVALID_ARGUMENT;
	if (!result) {
		*major = device->major;
		*minor = device->minor;
	}
	return result;
}

int nvmlDeviceIsMigDeviceHandle(void *handle, unsigned *is_mig)
{
	struct ckt_nvml_device *device;
	int result = ckt_nvml_device(handle, &device);
	if (!result && !is_mig)
		result = CKT_NVML_INVALID_ARGUMENT;
	if (!result)
		*is_mig = 0;
	return result;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	struct ckt_nvml_device *all;
	unsigned count;
	int known, result = ckt_nvml_devices(&all, &count, &known);
	if (!result && !version)
		result = CKT_NVML_INVALID_ARGUMENT;
	if (!result)
		*version = known;
	return result;
}

int nvmlSystemGetCudaDriverVersion(int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}
