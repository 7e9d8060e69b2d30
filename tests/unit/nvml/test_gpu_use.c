/* SPDX-License-Identifier: Apache-2.0 */
/* client/nvml/gpu_use.c: memory and processes in all versions of their structures. */
#include <string.h>

#include "answers.h"
#include "rpc/control.h"
#include "rpc/nvml.h"

struct memory {
	unsigned long long total, free, used;
};

struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};

struct process_v1 {
	unsigned pid;
	unsigned long long bytes;
};

struct process_v2 {
	unsigned pid;
	unsigned long long bytes;
	unsigned gpu_instance, compute_instance;
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory);
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory);
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, struct process_v1 *infos);
int nvmlDeviceGetComputeRunningProcesses_v2(
	void *device, unsigned *count, struct process_v2 *infos);
int nvmlDeviceGetComputeRunningProcesses_v3(
	void *device, unsigned *count, struct process_v2 *infos);
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, void *infos);
int nvmlDeviceGetMPSComputeRunningProcesses(void *device, unsigned *count, void *infos);

static void *device;

static void begin(void)
{
	answers_reset();
	MUST(nvmlInit_v2(), 0);
	MUST(nvmlDeviceGetHandleByIndex_v2(1, &device), 0);
}

static void test_memory(void)
{
	struct memory v1 = {7, 7, 7};
	struct memory_v2 v2 = {.version = sizeof v2 | 2u << 24};
	begin();
	IS(nvmlDeviceGetMemoryInfo(device, &v1), 0);
	IS(answers.gpu, 4);
	IS(v1.total, 1000);
	IS(v1.free, 400);
	IS(v1.used, 600);
	IS(nvmlDeviceGetMemoryInfo_v2(device, &v2), 0);
	IS(v2.total, 1000);
	IS(v2.reserved, 0);
	IS(v2.used, 600);
	v2.version = sizeof v2 | 1u << 24;
	IS(nvmlDeviceGetMemoryInfo_v2(device, &v2), CKT_NVML_ARGUMENT_VERSION_MISMATCH);
	IS(nvmlDeviceGetMemoryInfo(device, NULL), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlDeviceGetMemoryInfo_v2(device, NULL), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlDeviceGetMemoryInfo(&v1, &v1), CKT_NVML_INVALID_ARGUMENT);
	/* More than all is all. */
	answers.use.free_bytes = 5000;
	IS(nvmlDeviceGetMemoryInfo(device, &v1), 0);
	IS(v1.free, 1000);
	IS(v1.used, 0);
	answers.use.result = CKT_NVML_GPU_IS_LOST;
	v1.total = 7;
	IS(nvmlDeviceGetMemoryInfo(device, &v1), CKT_NVML_GPU_IS_LOST);
	IS(v1.total, 7);
	IS(nvmlShutdown(), 0);
	IS(nvmlDeviceGetMemoryInfo(device, &v1), CKT_NVML_UNINITIALIZED);
}

static void test_processes(void)
{
	struct process_v1 old[4] = {{7, 7}, {7, 7}, {7, 7}};
	struct process_v2 new[4] = {{.pid = 7}, {.pid = 7}, {.pid = 7}};
	unsigned count = 0;
	begin();
	IS(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL), 0);
	IS(count, 0);
	answers.use.processes.processes_len = 2;
	answers.use.processes.processes_val[0] =
		(ckt_control_gpu_process){.pid = 41, .memory_bytes = 1ull << 33};
	answers.use.processes.processes_val[1] =
		(ckt_control_gpu_process){.pid = 42, .memory_bytes = 9};
	/* How many there are. */
	IS(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL),
		CKT_NVML_INSUFFICIENT_SIZE);
	IS(count, 2);
	count = 1;
	IS(nvmlDeviceGetComputeRunningProcesses(device, &count, old), CKT_NVML_INSUFFICIENT_SIZE);
	IS(old[0].pid, 7);
	IS(count, 2);
	count = 4;
	IS(nvmlDeviceGetComputeRunningProcesses(device, &count, old), 0);
	IS(count, 2);
	IS(old[0].pid, 41);
	IS(old[1].pid, 42);
	IS(old[1].bytes, 9);
	IS(old[2].pid, 7);
	for (unsigned version = 2; version <= 3; version++) {
		count = 2;
		IS((version == 2 ? nvmlDeviceGetComputeRunningProcesses_v2
				 : nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, new),
			0);
		IS(new[0].bytes, 1ull << 33);
		IS(new[1].pid, 42);
		IS(new[1].gpu_instance, ~0u);
		IS(new[1].compute_instance, ~0u);
		IS(new[2].pid, 7);
		memset(new, 0, 2 * sizeof *new);
	}
	IS(nvmlDeviceGetComputeRunningProcesses_v3(device, NULL, new), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL),
		CKT_NVML_INVALID_ARGUMENT);
	/* None of them draws. */
	IS(nvmlDeviceGetGraphicsRunningProcesses_v3(device, &count, new), 0);
	IS(count, 0);
	count = 7;
	IS(nvmlDeviceGetMPSComputeRunningProcesses(device, &count, new), 0);
	IS(count, 0);
	IS(nvmlDeviceGetMPSComputeRunningProcesses(&count, &count, new), CKT_NVML_INVALID_ARGUMENT);
	IS(nvmlShutdown(), 0);
}

UNIT_SUITE(use, {"memory", test_memory}, {"processes", test_processes})
