/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The remaining functions that are not generated: older forms of forwarded calls, error texts, and
 * names of processes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/nvml/device.h"
#include "client/nvml/forward.h"
#include "rpc/nvml.h"

/* The nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3. */
struct pci_info {
	char bus_id_legacy[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};

/* The older forms: version 1 is the beginning of struct pci_info, and version 2 extends it. */
struct pci_info_v1 {
	char bus_id_legacy[16];
	unsigned domain, bus, device, device_id;
};

struct pci_info_v2 {
	struct pci_info_v1 v1;
	unsigned subsystem_id, reserved[4];
};

struct pci_info_ext {
	unsigned version, domain, bus, device, device_id, subsystem_id, base_class, sub_class;
	char bus_id[32];
};

struct temperature {
	unsigned version, sensor;
	int degrees;
};

#pragma GCC visibility push(default)

const char *nvmlErrorString(int result);
int nvmlDeviceGetPciInfo(void *device, struct pci_info_v1 *pci);
int nvmlDeviceGetPciInfo_v2(void *device, struct pci_info_v2 *pci);
int nvmlDeviceGetPciInfo_v3(void *device, struct pci_info *pci);
int nvmlDeviceGetNvLinkRemotePciInfo(void *device, unsigned link, struct pci_info_v2 *pci);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, struct pci_info *pci);
int nvmlDeviceGetPciInfoExt(void *device, struct pci_info_ext *pci);
int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *degrees);
int nvmlDeviceGetTemperatureV(void *device, struct temperature *temperature);
int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size);
int nvmlInternalGetExportTable(const void **table, const void *id);

#pragma GCC visibility pop

const char *nvmlErrorString(int result)
{
	static const struct {
		int result;
		const char *text;
	} texts[] = {
		{CKT_NVML_SUCCESS, "Success"},
		{CKT_NVML_UNINITIALIZED, "Uninitialized"},
		{CKT_NVML_INVALID_ARGUMENT, "Invalid Argument"},
		{CKT_NVML_NOT_SUPPORTED, "Not Supported"},
		{CKT_NVML_NO_PERMISSION, "Insufficient Permissions"},
		{CKT_NVML_NOT_FOUND, "Not Found"},
		{CKT_NVML_INSUFFICIENT_SIZE, "Insufficient Size"},
		{CKT_NVML_DRIVER_NOT_LOADED, "Driver Not Loaded"},
		{CKT_NVML_TIMEOUT, "Timeout"},
		{CKT_NVML_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found"},
		{CKT_NVML_FUNCTION_NOT_FOUND, "Function Not Found"},
		{CKT_NVML_GPU_IS_LOST, "GPU is lost"},
		{CKT_NVML_MEMORY, "Insufficient Memory"},
		{CKT_NVML_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch"},
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i].result == result)
			return texts[i].text;
	return "Unknown Error";
}

/* The table holds the PCI address. Only the server's NVML knows the device and subsystem IDs. */
int nvmlDeviceGetPciInfo_v3(void *handle, struct pci_info *pci)
{
	struct ckt_nvml_device *device;
	int result = ckt_nvml_device(handle, &device);
	if (!result && !pci)
		result = CKT_NVML_INVALID_ARGUMENT;
	if (result)
		return result;
	result = ckt_nvml_data(ckt_nvml_number("nvmlDeviceGetPciInfo_v3"), handle, NULL,
		(const unsigned[CKT_NVML_SELECTORS_MAX]){0}, (void *const[]){pci});
	if (result == CKT_NVML_DRIVER_NOT_LOADED)
		return result;
	if (result)
		memset(pci, 0, sizeof *pci);
	pci->domain = device->domain;
	pci->bus = device->bus;
	pci->device = device->slot;
	snprintf(pci->bus_id, sizeof pci->bus_id, "%s", device->pci_bus_id);
	snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%04X:%02X:%02X.0",
		device->domain & 0xffff, device->bus & 0xff, device->slot & 0xff);
	return CKT_NVML_SUCCESS;
}

static void shorten(const struct pci_info *from, struct pci_info_v2 *to)
{
	*to = (struct pci_info_v2){.v1 = {.domain = from->domain,
					   .bus = from->bus,
					   .device = from->device,
					   .device_id = from->device_id},
		.subsystem_id = from->subsystem_id};
	memcpy(to->v1.bus_id_legacy, from->bus_id_legacy, sizeof to->v1.bus_id_legacy);
}

int nvmlDeviceGetPciInfo_v2(void *device, struct pci_info_v2 *pci)
{
	struct pci_info info;
	int result = pci ? nvmlDeviceGetPciInfo_v3(device, &info) : CKT_NVML_INVALID_ARGUMENT;
	if (!result)
		shorten(&info, pci);
	return result;
}

int nvmlDeviceGetPciInfo(void *device, struct pci_info_v1 *pci)
{
	struct pci_info_v2 info;
	int result = pci ? nvmlDeviceGetPciInfo_v2(device, &info) : CKT_NVML_INVALID_ARGUMENT;
	if (!result)
		*pci = info.v1;
	return result;
}

/* The server's NVML gives the answer. This function makes sure that its texts end. */
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, struct pci_info *pci)
{
	int result = ckt_nvml_data(ckt_nvml_number("nvmlDeviceGetNvLinkRemotePciInfo_v2"), device,
		NULL, (const unsigned[CKT_NVML_SELECTORS_MAX]){link}, (void *const[]){pci});
	if (!result)
		pci->bus_id_legacy[sizeof pci->bus_id_legacy - 1] =
			pci->bus_id[sizeof pci->bus_id - 1] = 0;
	return result;
}

int nvmlDeviceGetPciInfoExt(void *device, struct pci_info_ext *pci)
{
	int result = ckt_nvml_versioned(
		ckt_nvml_number("nvmlDeviceGetPciInfoExt"), device, NULL, NULL, pci);
	if (!result && ckt_nvml_version_size(pci->version) >= sizeof *pci)
		pci->bus_id[sizeof pci->bus_id - 1] = 0;
	return result;
}

int nvmlDeviceGetNvLinkRemotePciInfo(void *device, unsigned link, struct pci_info_v2 *pci)
{
	struct pci_info info;
	int result = pci ? nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &info)
			 : CKT_NVML_INVALID_ARGUMENT;
	if (!result)
		shorten(&info, pci);
	return result;
}

int nvmlDeviceGetTemperatureV(void *device, struct temperature *temperature)
{
	unsigned degrees;
	if (!temperature)
		return CKT_NVML_INVALID_ARGUMENT;
	if (temperature->version != (sizeof *temperature | 1u << 24))
		return CKT_NVML_ARGUMENT_VERSION_MISMATCH;
	int result = nvmlDeviceGetTemperature(device, temperature->sensor, &degrees);
	if (!result)
		temperature->degrees = (int)degrees;
	return result;
}

/* Process IDs are looked up on this machine. */
int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size)
{
	char path[64], text[4096];
	struct ckt_nvml_device *devices;
	unsigned count;
	int version, result = ckt_nvml_devices(&devices, &count, &version);
	if (result)
		return result;
	if (!name || !size)
		return CKT_NVML_INVALID_ARGUMENT;
	snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return CKT_NVML_NOT_FOUND;
	text[n] = 0;
	snprintf(name, size, "%s", text);
	return CKT_NVML_SUCCESS;
}

/*
 * NVIDIA's own programs (nvidia-smi) ask for a table of undocumented functions, and exit if there
 * is none. The table's first word is its size. Each function of our table returns NOT_SUPPORTED,
 * and nvidia-smi then continues without it.
 */
#define FOUR(x) x, x, x, x
#define MANY(x) FOUR(FOUR(FOUR(FOUR(x))))

static int refuse_entry(void)
{
	static bool once;
	return ckt_nvml_refuse("a function of nvmlInternalGetExportTable", &once);
}

int nvmlInternalGetExportTable(const void **table, const void *id)
{
	enum { ENTRIES = 256 };
	static const struct {
		uintptr_t size_bytes;
		int (*entries[ENTRIES])(void);
	} refusals = {sizeof refusals, {MANY(refuse_entry)}};
	if (!table || !id)
		return CKT_NVML_INVALID_ARGUMENT;
	*table = &refusals;
	return CKT_NVML_SUCCESS;
}
