/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/nvml/system.c: older structures, words for errors, processes of this machine, the table
 * that NVIDIA's programs ask for.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "answers.h"
#include "rpc/nvml.h"

struct pci_info {
	char legacy[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};

struct temperature {
	unsigned version, sensor;
	int degrees;
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
const char *nvmlErrorString(int result);
int nvmlDeviceGetPciInfo(void *device, void *pci);
int nvmlDeviceGetPciInfo_v2(void *device, void *pci);
int nvmlDeviceGetPciInfo_v3(void *device, struct pci_info *pci);
int nvmlDeviceGetNvLinkRemotePciInfo(void *device, unsigned link, void *pci);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, struct pci_info *pci);
int nvmlDeviceGetPciInfoExt(void *device, void *pci);
int nvmlDeviceGetTemperatureV(void *device, struct temperature *temperature);
int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size);
int nvmlInternalGetExportTable(const void **table, const void *id);

static void *device;

static void begin(void)
{
	answers_reset();
	MUST(nvmlInit_v2(), 0);
	MUST(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
}

static void test_errors(void)
{
	static const int known[] = {0, 1, 2, 3, 4, 6, 7, 9, 10, 12, 13, 15, 20, 25};
	for (size_t i = 0; i < COUNT(known); i++) {
		NO(strcmp(nvmlErrorString(known[i]), "Unknown Error") == 0);
		for (size_t k = 0; k < i; k++)
			NO(strcmp(nvmlErrorString(known[i]), nvmlErrorString(known[k])) == 0);
	}
	TEXT(nvmlErrorString(999), "Unknown Error");
	TEXT(nvmlErrorString(-1), "Unknown Error");
	TEXT(nvmlErrorString(3), "Not Supported");
}

static void test_pci(void)
{
	struct pci_info pci;
	uint8_t old[80];
	begin();
	/* The server's word for what it is, ours for where. */
	struct pci_info told = {"elsewhere", 9, 9, 9, 0x233510de, 0x18be10de, "elsewhere"};
	memcpy(answers.nvml.data.data_val, &told, sizeof told);
	answers.nvml.data.data_len = sizeof told;
	IS(sizeof told, 68);
	IS(nvmlDeviceGetPciInfo_v3(device, &pci), 0);
	TEXT(pci.bus_id, "00000001:1B:00.0");
	TEXT(pci.legacy, "0001:1B:00.0");
	IS(pci.bus, 0x1b);
	IS(pci.device_id, 0x233510de);
	IS(pci.subsystem_id, 0x18be10de);
	/* Older ones end sooner. */
	memset(old, 0x77, sizeof old);
	IS(nvmlDeviceGetPciInfo(device, old), 0);
	YES(memcmp(old, &pci, 32) == 0);
	IS(old[32], 0x77);
	memset(old, 0x77, sizeof old);
	IS(nvmlDeviceGetPciInfo_v2(device, old), 0);
	YES(memcmp(old, &pci, 36) == 0);
	IS(old[36] | old[51], 0);
	IS(old[52], 0x77);
	IS(nvmlDeviceGetNvLinkRemotePciInfo(device, 5, old), 0);
	TEXT((char *)old, "elsewhere");
	IS(answers.nvml_args.selectors[0], 5);
	/* Without NVML there. */
	answers.nvml.result = CKT_NVML_NOT_SUPPORTED;
	IS(nvmlDeviceGetPciInfo_v3(device, &pci), 0);
	TEXT(pci.bus_id, "00000001:1B:00.0");
	IS(pci.device_id, 0);
	IS(nvmlDeviceGetNvLinkRemotePciInfo(device, 5, old), CKT_NVML_NOT_SUPPORTED);
	IS(nvmlDeviceGetPciInfo_v3(device, NULL), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlDeviceGetPciInfo(device, NULL), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlDeviceGetPciInfo_v2(NULL, old), CKT_NVML_INVALID_ARGUMENT);
	answers.how = HANGS_UP;
	stderr_begin();
	IS(nvmlDeviceGetPciInfo_v3(device, &pci), CKT_NVML_DRIVER_NOT_LOADED);
	stderr_end();
	IS(nvmlShutdown(), 0);
}

/* Texts of the server's that do not end are ended here. */
static void test_endless(void)
{
	struct pci_info pci;
	union {
		unsigned words[16];
		char bytes[65];
	} ext = {.words = {64 | 1u << 24}};
	begin();
	memset(answers.nvml.data.data_val, 'x', sizeof pci);
	answers.nvml.data.data_len = sizeof pci;
	IS(nvmlDeviceGetNvLinkRemotePciInfo_v2(device, 1, &pci), 0);
	IS(strnlen(pci.legacy, sizeof pci.legacy), sizeof pci.legacy - 1);
	IS(strnlen(pci.bus_id, sizeof pci.bus_id), sizeof pci.bus_id - 1);
	IS(pci.device_id, 0x78787878);
	IS(answers.nvml_args.selectors[0], 1);
	IS(nvmlDeviceGetNvLinkRemotePciInfo_v2(device, 1, NULL), CKT_NVML_INVALID_ARGUMENT);
	ext.bytes[64] = 0x77;
	answers.nvml.data.data_len = 64;
	IS(nvmlDeviceGetPciInfoExt(device, &ext), 0);
	IS(ext.words[0], 64 | 1u << 24);
	IS(ext.words[7], 0x78787878);
	IS(strnlen(ext.bytes + 32, 32), 31);
	IS(ext.bytes[64], 0x77);
	IS(nvmlDeviceGetPciInfoExt(device, NULL), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlShutdown(), 0);
}

static void test_temperature(void)
{
	struct temperature temperature = {.version = sizeof temperature | 1u << 24, .degrees = 7};
	begin();
	memcpy(answers.nvml.data.data_val, &(unsigned){61}, 4);
	answers.nvml.data.data_len = 4;
	IS(nvmlDeviceGetTemperatureV(device, &temperature), 0);
	IS(temperature.degrees, 61);
	temperature.version = 5;
	IS(nvmlDeviceGetTemperatureV(device, &temperature), CKT_NVML_ARGUMENT_VERSION_MISMATCH);
	IS(nvmlDeviceGetTemperatureV(device, NULL), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlShutdown(), 0);
}

static void test_processes(void)
{
	char name[256] = "-", small[5];
	begin();
	IS(nvmlSystemGetProcessName((unsigned)getpid(), name, sizeof name), 0);
	HAS(name, "test_nvml");
	IS(nvmlSystemGetProcessName((unsigned)getpid(), small, sizeof small), 0);
	IS(strlen(small), 4);
	IS(nvmlSystemGetProcessName(0x7fffffff, name, sizeof name), CKT_NVML_NOT_FOUND);
	IS(nvmlSystemGetProcessName((unsigned)getpid(), NULL, 5), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlSystemGetProcessName((unsigned)getpid(), name, 0), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlShutdown(), 0);
	IS(nvmlSystemGetProcessName((unsigned)getpid(), name, sizeof name), CKT_NVML_UNINITIALIZED);
}

static void test_table(void)
{
	const void *table = NULL;
	uint8_t id[16] = {0};
	IS(nvmlInternalGetExportTable(NULL, id), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlInternalGetExportTable(&table, NULL), CKT_NVML_INVALID_ARGUMENT);
	MUST(nvmlInternalGetExportTable(&table, id), 0);
	size_t bytes = *(const size_t *)table;
	int (*const *entries)(void) = (int (*const *)(void))((const uintptr_t *)table + 1);
	YES(bytes > 64 * sizeof(void *));
	stderr_begin();
	for (size_t i = 0; i < bytes / sizeof(void *) - 1; i++)
		IS(entries[i](), CKT_NVML_NOT_SUPPORTED);
	HAS(stderr_end(), "nvmlInternalGetExportTable is not supported");
}

UNIT_SUITE(system, {"errors", test_errors}, {"pci", test_pci}, {"endless", test_endless},
	{"temperature", test_temperature}, {"processes", test_processes}, {"table", test_table})
