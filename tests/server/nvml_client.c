/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that asks NVML, told what by its arguments: nvml_client LIBRARY COMMAND...  Every
 * command prints one line, with the nvmlReturn_t first; what a refused call would put out keeps a
 * mark.
 *
 *	init, shutdown, count, list I, memory I, processes I, figures I, threads N
 *	fork		what follows happens in a child
 *	cuda LIB BYTES	a context on GPU 0 of the CUDA driver LIB, and so much memory; prints cuMemGetInfo's figures
 *	wait		until a line comes in
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *library;

/* Every parameter is a number or a pointer. */
typedef int (*function)(
	uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f);

static int call_in(
	void *in, const char *name, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e)
{
	function entry;
	*(void **)&entry = dlsym(in, name);
	if (!entry) {
		printf("no %s\n", name);
		exit(3);
	}
	return entry(a, b, c, d, e, 0);
}

#define P(pointer) ((uintptr_t)(pointer))
#define CALL4(name, a, b, c, d) \
	call_in(library, name, (uintptr_t)(a), (uintptr_t)(b), (uintptr_t)(c), (uintptr_t)(d), 0)
#define CALL5(name, a, b, c, d, e)                                                             \
	call_in(library, name, (uintptr_t)(a), (uintptr_t)(b), (uintptr_t)(c), (uintptr_t)(d), \
		(uintptr_t)(e))

static void *device(const char *index)
{
	void *handle = NULL;
	CALL4("nvmlDeviceGetHandleByIndex_v2", strtoul(index, NULL, 10), P(&handle), 0, 0);
	return handle;
}

static void list(void *gpu)
{
	char name[96] = "-", uuid[96] = "-", pci[68] = "";
	int major = -1, minor = -1, version = -1;
	void *by_uuid = NULL, *by_pci = NULL;
	int result = CALL4("nvmlDeviceGetName", gpu, name, sizeof name, 0);
	CALL4("nvmlDeviceGetUUID", gpu, uuid, sizeof uuid, 0);
	CALL4("nvmlDeviceGetPciInfo_v3", gpu, pci, 0, 0);
	CALL4("nvmlDeviceGetCudaComputeCapability", gpu, &major, &minor, 0);
	CALL4("nvmlDeviceGetHandleByUUID", uuid, &by_uuid, 0, 0);
	CALL4("nvmlDeviceGetHandleByPciBusId_v2", pci + 36, &by_pci, 0, 0);
	CALL4("nvmlSystemGetCudaDriverVersion", &version, 0, 0, 0);
	printf("%d %s|%s|%s|%d.%d|%d|%d%d\n", result, name, uuid, pci + 36, major, minor, version,
		by_uuid == gpu, by_pci == gpu);
}

static void memory(void *gpu)
{
	unsigned long long v1[3] = {7, 7, 7};
	struct {
		unsigned version;
		unsigned long long total, reserved, free, used;
	} v2 = {.version = sizeof v2 | 2u << 24};
	int result = CALL4("nvmlDeviceGetMemoryInfo", gpu, v1, 0, 0);
	int second = CALL4("nvmlDeviceGetMemoryInfo_v2", gpu, &v2, 0, 0);
	printf("%d %llu %llu %llu %d\n", result, v1[0], v1[1], v1[2],
		second == result && (result || (v2.total == v1[0] && v2.used == v1[2])));
}

static void processes(void *gpu)
{
	struct {
		unsigned pid;
		unsigned long long bytes;
		unsigned gpu_instance, compute_instance;
	} infos[64];
	unsigned count = 64;
	int result = CALL4("nvmlDeviceGetComputeRunningProcesses_v3", gpu, &count, infos, 0);
	printf("%d %u", result, count);
	for (unsigned i = 0; !result && i < count; i++)
		printf(" %u:%llu", infos[i].pid, infos[i].bytes);
	putchar('\n');
}

/* One of every shape. */
static void figures(void *gpu)
{
	unsigned power = 7, degrees = 7, clock = 7, ecc[2] = {7, 7}, rows[4] = {7, 7, 7, 7},
		 rates[2] = {7, 7}, p2p = 7;
	unsigned long long errors = 7;
	char serial[32] = "-", version[80] = "-", tiny[4] = "-";
	uint32_t fabric[12] = {sizeof fabric | 3u << 24}, none[2] = {0};
	uint8_t fields[2][40] = {{5, 0, 0, 0, 2}, {9}};
	int results[12], field_results[2];
	results[0] = CALL4("nvmlDeviceGetPowerUsage", gpu, &power, 0, 0);
	results[1] = CALL4("nvmlDeviceGetTemperature", gpu, 0, &degrees, 0);
	results[2] = CALL4("nvmlDeviceGetClockInfo", gpu, 3, &clock, 0);
	results[3] = CALL4("nvmlDeviceGetEccMode", gpu, &ecc[0], &ecc[1], 0);
	results[4] =
		CALL5("nvmlDeviceGetRemappedRows", gpu, &rows[0], &rows[1], &rows[2], &rows[3]);
	results[5] = CALL4("nvmlDeviceGetUtilizationRates", gpu, rates, 0, 0);
	results[6] = CALL4("nvmlDeviceGetP2PStatus", gpu, gpu, 2, &p2p);
	results[7] = CALL5("nvmlDeviceGetMemoryErrorCounter", gpu, 1, 0, 2, &errors);
	results[8] = CALL4("nvmlDeviceGetSerial", gpu, serial, sizeof serial, 0);
	results[9] = CALL4("nvmlDeviceGetGpuFabricInfoV", gpu, fabric, 0, 0);
	results[10] = CALL4("nvmlDeviceGetFieldValues", gpu, 2, fields, 0);
	results[11] = CALL4("nvmlSystemGetDriverVersion", version, sizeof version, 0, 0);
	for (unsigned i = 0; i < 12; i++)
		printf("%d ", results[i]);
	memcpy(&field_results[0], &fields[0][28], 4);
	memcpy(&field_results[1], &fields[1][28], 4);
	printf("| %u %u %u %u,%u %u,%u,%u,%u %u,%u %u %llu %s %x %d:%u,%d %s", power, degrees,
		clock, ecc[0], ecc[1], rows[0], rows[1], rows[2], rows[3], rates[0], rates[1], p2p,
		errors, serial, fabric[11] >> 24, field_results[0],
		fields[0][32] | fields[0][33] << 8, field_results[1], version);
	/* Refused before anybody is asked, and by the server. */
	printf(" | %d %d %d %d %d %d\n", CALL4("nvmlDeviceGetSerial", gpu, tiny, sizeof tiny, 0),
		CALL4("nvmlDeviceGetGpuFabricInfoV", gpu, none, 0, 0),
		CALL4("nvmlDeviceGetPowerUsage", (char *)gpu + 1, &power, 0, 0),
		CALL4("nvmlDeviceGetPowerUsage", gpu, 0, 0, 0),
		CALL4("nvmlDeviceGetTemperature", gpu, 5, &degrees, 0),
		CALL4("nvmlDeviceSetPersistenceMode", gpu, 1, 0, 0));
}

static void *ask_often(void *unused)
{
	unsigned count;
	(void)unused;
	for (int i = 0; i < 20; i++) {
		if (CALL4("nvmlInit_v2", 0, 0, 0, 0) ||
			CALL4("nvmlDeviceGetCount_v2", &count, 0, 0, 0))
			return (void *)1;
		unsigned long long bytes[3];
		if (CALL4("nvmlDeviceGetMemoryInfo", device("0"), bytes, 0, 0) ||
			CALL4("nvmlShutdown", 0, 0, 0, 0))
			return (void *)2;
	}
	return NULL;
}

static void threads(unsigned count)
{
	pthread_t ids[64];
	unsigned failures = 0;
	for (unsigned i = 0; i < count && i < 64; i++)
		pthread_create(&ids[i], NULL, ask_often, NULL);
	for (unsigned i = 0; i < count && i < 64; i++) {
		void *result;
		pthread_join(ids[i], &result);
		failures += result != NULL;
	}
	printf("0 %u\n", failures);
}

static void cuda(const char *path, size_t bytes)
{
	void *driver = dlopen(path, RTLD_NOW), *context, *address;
	size_t left = 0, total = 0;
	int result = driver ? call_in(driver, "cuInit", 0, 0, 0, 0, 0) : -1;
	result = result ? result
			: call_in(driver, "cuDevicePrimaryCtxRetain", P(&context), 0, 0, 0, 0);
	result = result ? result : call_in(driver, "cuCtxSetCurrent", P(context), 0, 0, 0, 0);
	result = result ? result : call_in(driver, "cuMemAlloc_v2", P(&address), bytes, 0, 0, 0);
	result = result ? result : call_in(driver, "cuMemGetInfo_v2", P(&left), P(&total), 0, 0, 0);
	printf("%d %zu %zu\n", result, total, left);
}

static void run(char ***next)
{
	char *command = *(*next)++;
	unsigned count = 7;
	if (strcmp(command, "init") == 0)
		printf("%d\n", CALL4("nvmlInit_v2", 0, 0, 0, 0));
	else if (strcmp(command, "shutdown") == 0)
		printf("%d\n", CALL4("nvmlShutdown", 0, 0, 0, 0));
	else if (strcmp(command, "count") == 0) {
		int result = CALL4("nvmlDeviceGetCount_v2", &count, 0, 0, 0);
		printf("%d %u\n", result, count);
	} else if (strcmp(command, "list") == 0)
		list(device(*(*next)++));
	else if (strcmp(command, "memory") == 0)
		memory(device(*(*next)++));
	else if (strcmp(command, "processes") == 0)
		processes(device(*(*next)++));
	else if (strcmp(command, "figures") == 0)
		figures(device(*(*next)++));
	else if (strcmp(command, "clock") == 0)
		printf("%d\n",
			CALL4("nvmlDeviceGetClockInfo", device("0"), strtoul(*(*next)++, NULL, 10),
				&count, 0));
	else if (strcmp(command, "threads") == 0)
		threads((unsigned)strtoul(*(*next)++, NULL, 10));
	else if (strcmp(command, "cuda") == 0) {
		cuda((*next)[0], strtoul((*next)[1], NULL, 10));
		*next += 2;
	} else if (strcmp(command, "fork") == 0) {
		pid_t child = fork();
		int status = 0;
		if (child) {
			waitpid(child, &status, 0);
			exit(status ? 4 : 0);
		}
	} else if (strcmp(command, "wait") == 0)
		getchar();
	else
		exit(2);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	for (char **next = argv + 2; *next;)
		run(&next);
	return 0;
}
