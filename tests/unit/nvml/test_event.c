/* SPDX-License-Identifier: Apache-2.0 */
/* client/nvml/event.c: sets of events, which stay empty. */
#include "answers.h"
#include "rpc/nvml.h"

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlEventSetCreate(void **set);
int nvmlEventSetFree(void *set);
int nvmlEventSetWait_v2(void *set, void *data, unsigned timeout_ms);
int nvmlDeviceGetSupportedEventTypes(void *device, unsigned long long *types);
int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set);

static void test_events(void)
{
	void *set = NULL, *device;
	unsigned long long types = 7;
	char data[64];
	answers_reset();
	IS(nvmlEventSetCreate(&set), CKT_NVML_UNINITIALIZED);
	MUST(nvmlInit_v2(), 0);
	MUST(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
	IS(nvmlEventSetCreate(NULL), CKT_NVML_INVALID_ARGUMENT);
	MUST(nvmlEventSetCreate(&set), 0);
	IS(nvmlDeviceGetSupportedEventTypes(device, NULL), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlDeviceGetSupportedEventTypes(device, &types), 0);
	IS(types, 0);
	IS(nvmlDeviceRegisterEvents(device, 8, set), CKT_NVML_NOT_SUPPORTED);
	IS(nvmlDeviceRegisterEvents(device, 0, set), 0);
	IS(nvmlDeviceRegisterEvents(device, 0, &data), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlDeviceRegisterEvents(&data, 0, set), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlEventSetWait_v2(set, data, 1), CKT_NVML_TIMEOUT);
	IS(nvmlEventSetWait_v2(set, NULL, 1), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlEventSetWait_v2(NULL, data, 100000), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlEventSetFree(data), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlEventSetFree(set), 0);
	IS(nvmlShutdown(), 0);
	IS(nvmlEventSetFree(set), CKT_NVML_UNINITIALIZED);
}

UNIT_SUITE(event, {"events", test_events})
