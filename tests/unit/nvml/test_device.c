/* SPDX-License-Identifier: Apache-2.0 */
/* client/nvml/device.c: the list and its order, handles, the count of starts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answers.h"
#include "client/conn/settings.h"
#include "client/nvml/device.h"
#include "rpc/nvml.h"

int nvmlInit_v2(void);
int nvmlInitWithFlags(unsigned flags);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, void **device);
int nvmlDeviceGetHandleBySerial(const char *serial, void **device);
int nvmlDeviceGetName(void *device, char *name, unsigned size);
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size);
int nvmlDeviceGetIndex(void *device, unsigned *index);
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor);
int nvmlDeviceIsMigDeviceHandle(void *device, unsigned *is_mig);
int nvmlSystemGetCudaDriverVersion_v2(int *version);

static void test_starts(void)
{
	unsigned count = 7;
	void *device = NULL;
	answers_reset();
	IS(nvmlDeviceGetCount_v2(&count), CKT_NVML_UNINITIALIZED);
	IS(nvmlDeviceGetHandleByIndex_v2(0, &device), CKT_NVML_UNINITIALIZED);
	IS(nvmlShutdown(), CKT_NVML_UNINITIALIZED);
	IS(count, 7);
	/* Asked once, whoever starts how often. */
	IS(nvmlInit_v2(), 0);
	IS(nvmlInitWithFlags(1), 0);
	IS(answers.calls, 1);
	IS(nvmlShutdown(), 0);
	IS(nvmlDeviceGetCount_v2(&count), 0);
	IS(count, 2);
	IS(nvmlDeviceGetCount_v2(NULL), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
	IS(nvmlShutdown(), 0);
	IS(nvmlDeviceGetCount_v2(&count), CKT_NVML_UNINITIALIZED);
	/* A start that fails is none. */
	answers.how = REFUSES;
	stderr_begin();
	IS(nvmlInit_v2(), CKT_NVML_DRIVER_NOT_LOADED);
	stderr_end();
	IS(nvmlShutdown(), CKT_NVML_UNINITIALIZED);
	/* What is listed anew keeps its place. */
	void *again = NULL;
	answers_reset();
	answers.devices.devices.devices_len = 1;
	IS(nvmlInit_v2(), 0);
	IS(nvmlDeviceGetHandleByIndex_v2(0, &again), 0);
	YES(again == device);
	IS(nvmlDeviceGetHandleByIndex_v2(1, &again), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlShutdown(), 0);
}

static void test_handles(void)
{
	char text[96];
	void *devices[2], *found = NULL;
	unsigned index = 7, mig = 7;
	int major = 7, minor = 7, version = 7;
	answers_reset();
	MUST(nvmlInit_v2(), 0);
	for (unsigned i = 0; i < 2; i++) {
		MUST(nvmlDeviceGetHandleByIndex_v2(i, &devices[i]), 0);
		IS(nvmlDeviceGetIndex(devices[i], &index), 0);
		IS(index, i);
		IS(nvmlDeviceGetName(devices[i], text, sizeof text), 0);
		TEXT(text, i ? "Later" : "Sooner");
	}
	IS(nvmlDeviceGetUUID(devices[0], text, 40), CKT_NVML_INSUFFICIENT_SIZE);
	IS(nvmlDeviceGetUUID(devices[0], text, 41), 0);
	TEXT(text, "GPU-cdcdcdcd-cdcd-cdcd-cdcd-cdcdcdcdcdcd");
	IS(nvmlDeviceGetCudaComputeCapability(devices[1], &major, &minor), 0);
	IS(major * 10 + minor, 94);
	IS(nvmlDeviceIsMigDeviceHandle(devices[1], &mig), 0);
	IS(mig, 0);
	IS(nvmlSystemGetCudaDriverVersion_v2(&version), 0);
	IS(version, 13000);
	static const struct {
		int (*by)(const char *text, void **device);
		const char *text;
		int result, which;
	} rows[] = {
		{nvmlDeviceGetHandleByUUID, "GPU-abababab-abab-abab-abab-abababababab", 0, 1},
		{nvmlDeviceGetHandleByUUID, "GPU-ABABABAB-abab-abab-abab-abababababab", 0, 1},
		{nvmlDeviceGetHandleByUUID, "GPU-abababab", CKT_NVML_NOT_FOUND, 0},
		{nvmlDeviceGetHandleByUUID, NULL, CKT_NVML_INVALID_ARGUMENT, 0},
		{nvmlDeviceGetHandleByPciBusId_v2, "00000001:1B:00.0", 0, 0},
		{nvmlDeviceGetHandleByPciBusId_v2, "0001:2a:00.0", 0, 1},
		{nvmlDeviceGetHandleByPciBusId_v2, "2a:00.0", CKT_NVML_NOT_FOUND, 0},
		{nvmlDeviceGetHandleByPciBusId_v2, "2", CKT_NVML_INVALID_ARGUMENT, 0},
		{nvmlDeviceGetHandleByPciBusId_v2, NULL, CKT_NVML_INVALID_ARGUMENT, 0},
		{nvmlDeviceGetHandleBySerial, "S1", 0, 0},
		{nvmlDeviceGetHandleBySerial, "S2", CKT_NVML_NOT_FOUND, 0},
	};
	answers.nvml.text = (char *)"S1";
	for (size_t i = 0; i < COUNT(rows); i++) {
		found = NULL;
		IS(rows[i].by(rows[i].text, &found), rows[i].result);
		YES(found == (rows[i].result ? NULL : devices[rows[i].which]));
	}
	/* What is no handle is not looked at. */
	void *const wrong[] = {NULL, (char *)devices[0] + 1,
		(char *)devices[0] - sizeof(struct ckt_nvml_device),
		(struct ckt_nvml_device *)devices[1] + 1, (void *)8, &found};
	for (size_t i = 0; i < COUNT(wrong); i++)
		IS(nvmlDeviceGetIndex(wrong[i], &index), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlShutdown(), 0);
}

/* What a server tells is cut to what there is room for, and numbers that are none are 0. */
static void test_strange(void)
{
	char text[96] = "";
	void *device;
	answers_reset();
	memset(answers.name, 'n', sizeof answers.name - 1);
	answers.devices.devices.devices_val[0].name = answers.name;
	answers.devices.devices.devices_val[0].pci_bus_id = (char *)"nowhere";
	answers.devices.devices.devices_val[1].pci_bus_id = (char *)"ffffffff:ff:ff.ff";
	MUST(nvmlInit_v2(), 0);
	IS(nvmlDeviceGetHandleByPciBusId_v2("0:0:0.0", &device), 0);
	IS(nvmlDeviceGetName(device, text, sizeof text), 0);
	IS(strlen(text), 95);
	IS(nvmlDeviceGetHandleByPciBusId_v2("ffffffff:ff:ff.0", &device), 0);
	IS(nvmlShutdown(), 0);
	/* A server without GPUs. */
	unsigned count = 7;
	answers.devices.devices.devices_len = 0;
	MUST(nvmlInit_v2(), 0);
	IS(nvmlDeviceGetCount_v2(&count), 0);
	IS(count, 0);
	IS(nvmlShutdown(), 0);
}

/* A child goes on with what its parent knew. */
static void test_fork(void)
{
	unsigned count = 0;
	int status;
	answers_reset();
	MUST(nvmlInit_v2(), 0);
	pid_t child = fork();
	if (child == 0)
		_exit(nvmlDeviceGetCount_v2(&count) == 0 && count == 2 && nvmlShutdown() == 0 &&
					nvmlInit_v2() == 0
				? 0
				: 1);
	IS(waitpid(child, &status, 0), child);
	IS(status, 0);
	IS(nvmlShutdown(), 0);
}

/*
 * Of a list, each server's GPUs in their order, one server behind the other; every one of them must
 * answer.
 */
static void test_two_servers(void)
{
	static const char *const names[] = {"Sooner", "Later", "Sooner", "Later"};
	char text[96];
	void *device;
	unsigned count = 7, index = 7;
	answers_reset();
	for (unsigned i = 0; i < 2; i++)
		snprintf(ckt_settings.addresses[i], sizeof ckt_settings.addresses[i], "%s",
			ckt_settings.address);
	ckt_settings.address_count = 2;
	MUST(nvmlInit_v2(), 0);
	IS(answers.calls, 2);
	IS(nvmlDeviceGetCount_v2(&count), 0);
	MUST(count, COUNT(names));
	for (unsigned i = 0; i < count; i++) {
		MUST(nvmlDeviceGetHandleByIndex_v2(i, &device), 0);
		IS(nvmlDeviceGetIndex(device, &index), 0);
		IS(index, i);
		IS(nvmlDeviceGetName(device, text, sizeof text), 0);
		TEXT(text, names[i]);
	}
	IS(nvmlShutdown(), 0);
	strcpy(ckt_settings.addresses[1], "unix:/nonexistent");
	stderr_begin();
	IS(nvmlInit_v2(), CKT_NVML_DRIVER_NOT_LOADED);
	HAS(stderr_end(), "no server at unix:/nonexistent");
	strcpy(ckt_settings.address_error, "the list is none");
	answers_reset();
	stderr_begin();
	IS(nvmlInit_v2(), CKT_NVML_DRIVER_NOT_LOADED);
	HAS(stderr_end(), "NVML: the list is none");
	ckt_settings.address_error[0] = 0;
	ckt_settings.address_count = 1;
	answers_reset();
}

UNIT_SUITE(device, {"starts", test_starts}, {"handles", test_handles},
	{"strange answers", test_strange}, {"fork", test_fork}, {"two servers", test_two_servers})
