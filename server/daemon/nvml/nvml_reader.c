/* SPDX-License-Identifier: Apache-2.0 */
/* See nvml_reader.h. */
#include "server/daemon/nvml/nvml_reader.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/close_from.h"

enum { GUARD_BYTES = 64 }; /* after a call's outputs */

typedef void *device_t;

/* Of an nvmlProcessInfo_v2_t, which _v3 takes as well. */
struct process_info {
	unsigned pid;
	unsigned long long memory_bytes;
	unsigned gpu_instance, compute_instance;
};

struct memory_info {
	unsigned long long total, free, used;
};

static struct {
	void *handle;
	int (*by_uuid)(const char *uuid, device_t *device);
	int (*by_pci)(const char *pci_bus_id, device_t *device);
	int (*memory)(device_t device, struct memory_info *memory);
	int (*processes)(device_t device, unsigned *count, struct process_info *infos);
} nvml;

bool ckt_daemon_nvml_reader_open(const char *library)
{
	int (*init)(void);
	nvml.handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!nvml.handle)
		return false;
	*(void **)&init = dlsym(nvml.handle, "nvmlInit_v2");
	*(void **)&nvml.by_uuid = dlsym(nvml.handle, "nvmlDeviceGetHandleByUUID");
	*(void **)&nvml.by_pci = dlsym(nvml.handle, "nvmlDeviceGetHandleByPciBusId_v2");
	*(void **)&nvml.memory = dlsym(nvml.handle, "nvmlDeviceGetMemoryInfo");
	*(void **)&nvml.processes = dlsym(nvml.handle, "nvmlDeviceGetComputeRunningProcesses_v3");
	if (!nvml.processes)
		*(void **)&nvml.processes =
			dlsym(nvml.handle, "nvmlDeviceGetComputeRunningProcesses_v2");
	if (init && nvml.by_uuid && nvml.by_pci && init() == CKT_NVML_SUCCESS)
		return true;
	dlclose(nvml.handle);
	nvml.handle = NULL;
	return false;
}

/*
 * A part of a GPU (MIG) has a UUID of its own, and NVML's figures of the whole GPU do not apply to
 * it: it is not found.
 */
static int find(const struct ckt_reader_gpu *gpu, device_t *ret_device)
{
	int result = CKT_NVML_NOT_FOUND;
	if (*gpu->uuid)
		result = nvml.by_uuid(gpu->uuid, ret_device);
	else if (*gpu->pci_bus_id)
		result = nvml.by_pci(gpu->pci_bus_id, ret_device);
	return result;
}

static void answer_use(device_t device, struct ckt_reader_answer *answer)
{
	static struct process_info infos[CKT_READER_PROCESSES_MAX];
	struct memory_info memory = {0};
	unsigned count = CKT_READER_PROCESSES_MAX;
	answer->result = nvml.memory ? nvml.memory(device, &memory) : CKT_NVML_FUNCTION_NOT_FOUND;
	answer->total_bytes = memory.total;
	answer->free_bytes = memory.free;
	if (answer->result || !nvml.processes || nvml.processes(device, &count, infos) ||
		count > CKT_READER_PROCESSES_MAX)
		return;
	answer->process_count = count;
	for (unsigned i = 0; i < count; i++) {
		answer->processes[i].pid = infos[i].pid;
		answer->processes[i].memory_bytes = infos[i].memory_bytes;
	}
}

static void know(struct ckt_reader_answer *answer, enum ckt_reader_value which, uint64_t value)
{
	answer->known |= 1u << which;
	answer->values[which] = value;
}

/* Calls of NVML that ask a GPU for one thing; older libraries lack some, and GPUs support not all. */
static int ask_number(const char *function, device_t device, unsigned long long *ret_value)
{
	int (*entry)(device_t device, unsigned long long *value);
	*ret_value = 0;
	*(void **)&entry = dlsym(nvml.handle, function);
	return entry ? entry(device, ret_value) : CKT_NVML_FUNCTION_NOT_FOUND;
}

static int ask_errors(device_t device, unsigned type, unsigned long long *ret_count)
{
	int (*entry)(device_t device, unsigned type, unsigned counter, unsigned long long *count);
	*(void **)&entry = dlsym(nvml.handle, "nvmlDeviceGetTotalEccErrors");
	/* 0: since the driver was loaded */
	return entry ? entry(device, type, 0, ret_count) : CKT_NVML_FUNCTION_NOT_FOUND;
}

static int ask_celsius(device_t device, unsigned *ret_degrees)
{
	int (*entry)(device_t device, unsigned sensor, unsigned *degrees);
	*(void **)&entry = dlsym(nvml.handle, "nvmlDeviceGetTemperature");
	return entry ? entry(device, 0, ret_degrees) : CKT_NVML_FUNCTION_NOT_FOUND;
}

/* Whether that result says that the GPU fell off its bus, or does nothing until it is reset. */
static bool is_lost(int result)
{
	return result == CKT_NVML_GPU_IS_LOST || result == CKT_NVML_RESET_REQUIRED;
}

static void answer_health(device_t device, struct ckt_reader_answer *answer)
{
	struct memory_info memory = {0};
	unsigned long long number = 0;
	unsigned degrees = 0;
	uint32_t rates[2] = {0}; /* of kernels, of the memory */
	int results[] = {nvml.memory ? nvml.memory(device, &memory) : CKT_NVML_FUNCTION_NOT_FOUND,
		ask_number("nvmlDeviceGetUtilizationRates", device, &number),
		ask_celsius(device, &degrees), 0, 0, 0, 0};
	memcpy(rates, &number, sizeof rates);
	if (!results[0]) {
		know(answer, CKT_HEALTH_USED_BYTES, memory.used);
		know(answer, CKT_HEALTH_FREE_BYTES, memory.free);
	}
	if (!results[1])
		know(answer, CKT_HEALTH_BUSY_PERCENT, rates[0]);
	if (!results[2])
		know(answer, CKT_HEALTH_CELSIUS, degrees);
	/* A 32-bit number, in a place that is zero and has room for more. */
	results[3] = ask_number("nvmlDeviceGetPowerUsage", device, &number);
	if (!results[3])
		know(answer, CKT_HEALTH_MILLIWATTS, number);
	results[4] = ask_number("nvmlDeviceGetCurrentClocksEventReasons", device, &number);
	if (results[4] == CKT_NVML_FUNCTION_NOT_FOUND)
		results[4] =
			ask_number("nvmlDeviceGetCurrentClocksThrottleReasons", device, &number);
	if (!results[4])
		know(answer, CKT_HEALTH_THROTTLED, number);
	for (unsigned type = 0; type < 2; type++) {
		results[5 + type] = ask_errors(device, type, &number);
		if (!results[5 + type])
			know(answer, type ? CKT_HEALTH_UNCORRECTED : CKT_HEALTH_CORRECTED, number);
	}
	for (unsigned i = 0; i < sizeof results / sizeof *results; i++)
		if (is_lost(results[i]))
			answer->result = results[i];
}

/*
 * Every parameter is a number or a pointer, and there are six at most: on our ABIs each is in a
 * register of its own, so one prototype fits all of NVML's.
 */
typedef int (*any_function)(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);

struct parameters {
	uint64_t values[8];
	unsigned count;
};

static void pass(struct parameters *parameters, uint64_t value)
{
	parameters->values[parameters->count++] = value;
}

/* The value of an nvmlFieldValue_t is asked for with its id and scope in place. */
static uint32_t place_outs(const struct ckt_nvml_function *function, const uint32_t *selectors,
	uint8_t *data, struct parameters *parameters)
{
	uint32_t bytes = 0;
	switch (function->kind) {
	case CKT_NVML_FIELD:
		memcpy(data, selectors, 2 * sizeof *selectors);
		pass(parameters, 1);
		pass(parameters, (uintptr_t)data);
		return CKT_NVML_FIELD_BYTES;
	case CKT_NVML_VERSIONED:
		memcpy(data, selectors, sizeof *selectors);
		pass(parameters, (uintptr_t)data);
		return ckt_nvml_version_size(selectors[0]);
	default:
		for (unsigned i = 0; i < function->outs; i++) {
			/* Where the C types want them. */
			bytes = (bytes + 7) & ~7u;
			pass(parameters, (uintptr_t)(data + bytes));
			bytes += function->sizes[i];
		}
		return bytes;
	}
}

static void call(const struct ckt_nvml_function *function,
	const struct ckt_reader_question *question, device_t device, device_t other,
	struct ckt_reader_answer *answer)
{
	_Alignas(16) static uint8_t data[CKT_NVML_DATA_BYTES + GUARD_BYTES];
	struct parameters parameters = {.count = 0};
	any_function entry;
	*(void **)&entry = dlsym(nvml.handle, function->name);
	if (!entry) {
		answer->result = CKT_NVML_FUNCTION_NOT_FOUND;
		return;
	}
	memset(data, 0, sizeof data);
	if (!function->system)
		pass(&parameters, (uintptr_t)device);
	if (function->device2)
		pass(&parameters, (uintptr_t)other);
	for (unsigned i = 0; i < function->selectors; i++)
		pass(&parameters, question->selectors[i]);
	uint32_t bytes = 0;
	if (function->kind == CKT_NVML_TEXT) {
		pass(&parameters, (uintptr_t)answer->text);
		pass(&parameters, sizeof answer->text - 1);
	} else {
		bytes = place_outs(function, question->selectors, data, &parameters);
	}
	const uint64_t *p = parameters.values;
	answer->result = entry(p[0], p[1], p[2], p[3], p[4], p[5]);
	answer->data_bytes = answer->result ? 0 : bytes;
	memcpy(answer->data, data, answer->data_bytes);
	answer->text[sizeof answer->text - 1] = 0;
}

void ckt_daemon_nvml_reader_answer(
	const struct ckt_reader_question *question, struct ckt_reader_answer *ret_answer)
{
	const struct ckt_nvml_function *function = question->function < ckt_nvml_functions_count
		? &ckt_nvml_functions[question->function]
		: NULL;
	device_t device = NULL, other = NULL;
	*ret_answer = (struct ckt_reader_answer){.result = CKT_NVML_LIBRARY_NOT_FOUND};
	if (!nvml.handle)
		return;
	if (question->function == CKT_READER_HEALTH) {
		ret_answer->result = find(&question->gpu, &device);
		if (!ret_answer->result)
			answer_health(device, ret_answer);
		return;
	}
	if (question->function && (!function || !function->name)) {
		ret_answer->result = CKT_NVML_INVALID_ARGUMENT;
		return;
	}
	if (question->function && function->kind == CKT_NVML_VERSIONED &&
		!ckt_nvml_version_size(question->selectors[0])) {
		ret_answer->result = CKT_NVML_ARGUMENT_VERSION_MISMATCH;
		return;
	}
	ret_answer->result = question->function && function->system ? CKT_NVML_SUCCESS
								    : find(&question->gpu, &device);
	if (!ret_answer->result && question->function && function->device2)
		ret_answer->result = find(&question->other, &other);
	if (ret_answer->result)
		return;
	if (question->function)
		call(function, question, device, other, ret_answer);
	else
		answer_use(device, ret_answer);
}

static void __attribute__((noreturn)) serve(const char *library, int fd)
{
	static struct ckt_reader_question question;
	static struct ckt_reader_answer answer;
	ckt_daemon_nvml_reader_open(library);
	while (recv(fd, &question, sizeof question, 0) == (ssize_t)sizeof question) {
		ckt_daemon_nvml_reader_answer(&question, &answer);
		if (send(fd, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer)
			break;
	}
	_exit(0);
}

/* In the child: closes everything of the server's, above all its lock and its sockets. */
static void __attribute__((noreturn)) become_reader(const char *library, int fd, pid_t server)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR);
	for (int to = 0; to < 3; to++)
		dup2(null, to);
	if (fd != 3 && dup2(fd, 3) < 0)
		_exit(EXIT_FAILURE);
	ckt_close_from(4);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "cricket-nvml");
	if (getppid() != server)
		_exit(0);
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* If the library is our own client, it must not connect to this very server. */
	setenv("REMOTE_GPU_ADDRESS", "unix:/nonexistent", 1);
	unsetenv("CRICKET_LOG");
	serve(library, 3);
}

int ckt_daemon_nvml_reader_start(const char *library, int *ret_pid, int *ret_fd)
{
	int fds[2];
	pid_t server = getpid();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	pid_t pid = fork();
	if (pid == 0)
		become_reader(library, fds[1], server);
	int error = errno;
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return -error;
	}
	*ret_pid = pid;
	*ret_fd = fds[0];
	return 0;
}
