/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnvidia-ml.so.1 that knows every GPU, for the server and its reader: figures that say which
 * question they answer, and, by the number of a clock, what no library should do.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma GCC visibility push(default)
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum {
	SUCCESS = 0,
	INVALID_ARGUMENT = 2,
	NOT_SUPPORTED = 3,
	NOT_FOUND = 6,
	GPU_IS_LOST = 15,
	CLOCK_HANGS = 100,
	CLOCK_CRASHES = 101,
	CLOCK_ENDS = 102
};

static char known[8][48];

int nvmlInit_v2(void)
{
	return getenv("FAKE_NVML_INIT") ? atoi(getenv("FAKE_NVML_INIT")) : SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
	if (strncmp(uuid, "GPU-", 4) != 0 || strncmp(uuid, "GPU-dead", 8) == 0)
		return NOT_FOUND;
	for (int i = 0; i < 8; i++)
		if (!*known[i] || strcmp(known[i], uuid) == 0) {
			snprintf(known[i], sizeof known[i], "%s", uuid);
			*device = known[i];
			return SUCCESS;
		}
	return NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device)
{
	*device = known[7];
	return *pci ? SUCCESS : NOT_FOUND;
}

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
	return snprintf(text, size, "999.88.%u", size) < (int)size ? SUCCESS : NOT_SUPPORTED;
}

/* Where the file FAKE_NVML_LOST is: the first GPU fell off its bus. */
static bool is_lost(const void *device)
{
	const char *path = getenv("FAKE_NVML_LOST");
	return device == known[0] && path && access(path, F_OK) == 0;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *memory)
{
	if (is_lost(device))
		return GPU_IS_LOST;
	memory[0] = 1ull << 40;
	memory[1] = 700ull << 20;
	memory[2] = memory[0] - memory[1];
	return SUCCESS;
}

struct process {
	unsigned pid;
	unsigned long long bytes;
	unsigned gpu_instance, compute_instance;
};

/* Every worker that there is, and a stranger. */
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *infos)
{
	(void)device;
	const char *path = getenv("FAKE_NVML_PROCESSES");
	FILE *file = path ? fopen(path, "r") : NULL;
	unsigned pid, n = 0;
	unsigned long long bytes;
	while (file && n < *count && fscanf(file, "%u %llu", &pid, &bytes) == 2)
		infos[n++] = (struct process){pid, bytes, ~0u, ~0u};
	if (file)
		fclose(file);
	*count = n;
	return SUCCESS;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
	const char *name = device;
	unsigned number = (unsigned)((char *)device - known[0]) / (unsigned)sizeof known[0];
	/* GPU-1111..., GPU-2222...: by the name, whichever is asked for first. */
	if (name[4] > '0' && name[4] <= '9' && name[5] == name[4])
		number = (unsigned)(name[4] - '1');
	*milliwatts = 1000 + number;
	return SUCCESS;
}

int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *degrees)
{
	(void)device;
	*degrees = 40 + sensor;
	return sensor ? INVALID_ARGUMENT : SUCCESS;
}

int nvmlDeviceGetClockInfo(void *device, unsigned type, unsigned *clock)
{
	(void)device;
	if (type == CLOCK_HANGS)
		sleep(3600);
	if (type == CLOCK_CRASHES)
		raise(SIGSEGV);
	if (type == CLOCK_ENDS)
		_exit(0);
	*clock = 1500 + type;
	return SUCCESS;
}

int nvmlDeviceGetEccMode(void *device, unsigned *current, unsigned *pending)
{
	(void)device;
	*current = 1;
	*pending = 0;
	return SUCCESS;
}

int nvmlDeviceGetRemappedRows(void *device, unsigned *a, unsigned *b, unsigned *c, unsigned *d)
{
	(void)device;
	*a = 11;
	*b = 12;
	*c = 13;
	*d = 14;
	return SUCCESS;
}

int nvmlDeviceGetMemoryErrorCounter(
	void *device, unsigned a, unsigned b, unsigned c, unsigned long long *count)
{
	(void)device;
	*count = 5000000000ull + a * 100 + b * 10 + c;
	return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned *rates)
{
	(void)device;
	rates[0] = 73;
	rates[1] = 21;
	return SUCCESS;
}

int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons)
{
	*reasons = device == known[0] ? 0x4 | 0x40 | 0x1 : 0;
	return SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(
	void *device, unsigned type, unsigned counter, unsigned long long *count)
{
	(void)device;
	*count = 30 + type;
	return counter ? INVALID_ARGUMENT : SUCCESS;
}

int nvmlDeviceGetP2PStatus(void *device, void *other, unsigned index, unsigned *status)
{
	*status = (device == other ? 100 : 0) + index;
	return SUCCESS;
}

/* { 16 characters, domain, bus, device, device id, subsystem id, 32 characters } */
int nvmlDeviceGetPciInfo_v3(void *device, uint8_t *pci)
{
	(void)device;
	memset(pci, 0, 68);
	memcpy(pci + 28, &(uint32_t){0x233510de}, 4);
	return SUCCESS;
}

int nvmlDeviceGetSerial(void *device, char *text, unsigned size)
{
	(void)device;
	snprintf(text, size, "SERIAL-1234");
	return SUCCESS;
}

/* { version, ..., last byte } */
int nvmlDeviceGetGpuFabricInfoV(void *device, uint8_t *block)
{
	uint32_t version;
	(void)device;
	memcpy(&version, block, sizeof version);
	block[(version & 0xffffff) - 1] = 0x77;
	return SUCCESS;
}

/* { id, scope, when, latency, type, result, value } */
int nvmlDeviceGetFieldValues(void *device, int count, uint8_t *values)
{
	(void)device;
	for (int i = 0; i < count; i++, values += 40) {
		uint32_t words[2];
		memcpy(words, values, sizeof words);
		uint64_t value = words[0] * 1000ull + words[1];
		memcpy(values + 28, &(int){words[0] == 9 ? NOT_SUPPORTED : SUCCESS}, 4);
		memcpy(values + 32, &value, sizeof value);
	}
	return SUCCESS;
}
