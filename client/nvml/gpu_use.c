/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU's memory use, and the processes that use it; see device.h. */
#include <string.h>

#include "client/nvml/device.h"
#include "client/nvml/server_query.h"
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
	unsigned long long memory_bytes;
};

/* The entry of versions 2 and 3. */
struct process_v2 {
	unsigned pid;
	unsigned long long memory_bytes;
	unsigned gpu_instance, compute_instance;
};

#pragma GCC visibility push(default)

int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory);
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory);
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, struct process_v1 *infos);
int nvmlDeviceGetComputeRunningProcesses_v2(
	void *device, unsigned *count, struct process_v2 *infos);
int nvmlDeviceGetComputeRunningProcesses_v3(
	void *device, unsigned *count, struct process_v2 *infos);
int nvmlDeviceGetGraphicsRunningProcesses(void *device, unsigned *count, void *infos);
int nvmlDeviceGetGraphicsRunningProcesses_v2(void *device, unsigned *count, void *infos);
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, void *infos);
int nvmlDeviceGetMPSComputeRunningProcesses(void *device, unsigned *count, void *infos);
int nvmlDeviceGetMPSComputeRunningProcesses_v2(void *device, unsigned *count, void *infos);
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned *count, void *infos);

#pragma GCC visibility pop

/* The caller frees *ret_res if the result is SUCCESS. */
static int ask(void *handle, ckt_control_gpu_use_res *ret_res)
{
	struct ckt_nvml_device *device;
	int result = ckt_nvml_device(handle, &device);
	if (result)
		return result;
	ckt_control_gpu_args args = {.gpu = device->ordinal};
	*ret_res = (ckt_control_gpu_use_res){0};
	result = ckt_nvml_call(device->server, CKT_CONTROL_GPU_USE,
		(xdrproc_t)xdr_ckt_control_gpu_args, &args, (xdrproc_t)xdr_ckt_control_gpu_use_res,
		ret_res);
	if (result || !ret_res->result)
		return result;
	result = ret_res->result;
	xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)ret_res);
	return result;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
	ckt_control_gpu_use_res res;
	int result = memory ? ask(device, &res) : CKT_NVML_INVALID_ARGUMENT;
	if (result)
		return result;
	uint64_t free_bytes = res.free_bytes < res.total_bytes ? res.free_bytes : res.total_bytes;
	*memory = (struct memory){res.total_bytes, free_bytes, res.total_bytes - free_bytes};
	xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)&res);
	return CKT_NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory)
{
	struct memory plain;
	if (memory && memory->version != (sizeof *memory | 2u << 24))
		return CKT_NVML_ARGUMENT_VERSION_MISMATCH;
	int result = memory ? nvmlDeviceGetMemoryInfo(device, &plain) : CKT_NVML_INVALID_ARGUMENT;
	if (result)
		return result;
	/* As in cuMemGetInfo, the total excludes the memory that the driver reserves. */
	memory->total = plain.total;
	memory->reserved = 0;
	memory->free = plain.free;
	memory->used = plain.used;
	return CKT_NVML_SUCCESS;
}

/* size is that of one entry. The newer structure begins with the older one. */
static int list_processes(void *device, unsigned *count, void *infos, size_t size)
{
	ckt_control_gpu_use_res res;
	if (!count || (*count && !infos))
		return CKT_NVML_INVALID_ARGUMENT;
	int result = ask(device, &res);
	if (result)
		return result;
	u_int known = res.processes.processes_len;
	if (known > *count)
		result = CKT_NVML_INSUFFICIENT_SIZE;
	for (u_int i = 0; !result && i < known; i++) {
		const ckt_control_gpu_process *process = &res.processes.processes_val[i];
		struct process_v2 info = {process->pid, process->memory_bytes, ~0u, ~0u};
		memcpy((uint8_t *)infos + i * size, &info, size);
	}
	*count = known;
	xdr_free((xdrproc_t)xdr_ckt_control_gpu_use_res, (char *)&res);
	return result;
}

int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, struct process_v1 *infos)
{
	return list_processes(device, count, infos, sizeof *infos);
}

int nvmlDeviceGetComputeRunningProcesses_v2(void *device, unsigned *count, struct process_v2 *infos)
{
	return list_processes(device, count, infos, sizeof *infos);
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process_v2 *infos)
{
	return list_processes(device, count, infos, sizeof *infos);
}

/* A session has no display, and no client is an MPS process. */
static int no_processes(void *handle, unsigned *count)
{
	struct ckt_nvml_device *device;
	int result = ckt_nvml_device(handle, &device);
	if (!result && !count)
		result = CKT_NVML_INVALID_ARGUMENT;
	if (!result)
		*count = 0;
	return result;
}

int nvmlDeviceGetGraphicsRunningProcesses(void *device, unsigned *count, void *infos)
{
	(void)infos;
	return no_processes(device, count);
}

int nvmlDeviceGetGraphicsRunningProcesses_v2(void *device, unsigned *count, void *infos)
{
	(void)infos;
	return no_processes(device, count);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, void *infos)
{
	(void)infos;
	return no_processes(device, count);
}

int nvmlDeviceGetMPSComputeRunningProcesses(void *device, unsigned *count, void *infos)
{
	(void)infos;
	return no_processes(device, count);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v2(void *device, unsigned *count, void *infos)
{
	(void)infos;
	return no_processes(device, count);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned *count, void *infos)
{
	(void)infos;
	return no_processes(device, count);
}
