/* SPDX-License-Identifier: Apache-2.0 */
/* The probe of a CUDA driver in a child; see driver_probe.h. */
#include "server/daemon/nvml/driver_probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file_io.h"
#include "rpc/net.h"

enum {
	PROBE_TIMEOUT_MS = 30000
}; /* the first cuInit after boot loads kernel modules: seconds, not minutes */

struct probe {
	int status; /* 0, or -errno with the reason in message */
	char message[256];
	struct ckt_driver_info info;
};

/* Prototypes as in cuda.h; the daemon needs nothing else from it. */
struct driver_api {
	int (*init)(unsigned flags);
	int (*count)(int *count);
	int (*get)(int *device, int ordinal);
	int (*name)(char *name, int length, int device);
	int (*memory)(size_t *bytes, int device);
	/* A driver may lack the rest. */
	int (*uuid)(uint8_t uuid[16], int device);
	int (*pci_bus_id)(char *text, int length, int device);
	int (*attribute)(int *value, int attribute, int device);
	int (*version)(int *version);
};

static int load(const char *library, struct driver_api *api, struct probe *probe)
{
	static const char *const names[] = {"cuInit", "cuDeviceGetCount", "cuDeviceGet",
		"cuDeviceGetName", "cuDeviceTotalMem_v2", "cuDeviceGetUuid_v2",
		"cuDeviceGetPCIBusId", "cuDeviceGetAttribute", "cuDriverGetVersion"};
	enum { NEEDED = 5 };
	void **slots = (void **)api;
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		snprintf(probe->message, sizeof probe->message, "%s", dlerror());
		return -ENOENT;
	}
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		slots[i] = dlsym(handle, names[i]);
		if (!slots[i] && i < NEEDED) {
			snprintf(probe->message, sizeof probe->message,
				"%s has no %s, so it is not a CUDA driver", library, names[i]);
			return -ENOEXEC;
		}
	}
	Dl_info where;
	if (!dladdr(slots[0], &where) || !where.dli_fname ||
		!realpath(where.dli_fname, probe->info.path))
		snprintf(probe->info.path, sizeof probe->info.path, "%s", library);
	return 0;
}

/* Without these functions, GPUs have numbers only. */
static void ask_more(const struct driver_api *api, int device, struct ckt_driver_gpu *ret_gpu)
{
	enum { MAJOR = 75, MINOR = 76 }; /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_* */
	if (api->uuid)
		api->uuid(ret_gpu->uuid, device);
	if (api->pci_bus_id &&
		api->pci_bus_id(ret_gpu->pci_bus_id, sizeof ret_gpu->pci_bus_id, device))
		ret_gpu->pci_bus_id[0] = 0;
	ret_gpu->pci_bus_id[sizeof ret_gpu->pci_bus_id - 1] = 0;
	if (api->attribute &&
		(api->attribute(&ret_gpu->major, MAJOR, device) ||
			api->attribute(&ret_gpu->minor, MINOR, device)))
		ret_gpu->major = ret_gpu->minor = 0;
}

static int ask(const char *library, struct probe *probe)
{
	struct driver_api api;
	int count = 0, result = load(library, &api, probe);
	if (result)
		return result;
	int code = api.init(0);
	if (!code)
		code = api.count(&count);
	if (code || count <= 0) {
		if (code)
			snprintf(probe->message, sizeof probe->message, "%s returns CUDA error %d",
				library, code);
		else
			snprintf(probe->message, sizeof probe->message, "%s finds no GPU", library);
		return -ENODEV;
	}
	if (api.version && api.version(&probe->info.cuda_version))
		probe->info.cuda_version = 0;
	for (int i = 0; i < count &&
		probe->info.gpu_count < sizeof probe->info.gpus / sizeof *probe->info.gpus;
		i++) {
		struct ckt_driver_gpu *gpu = &probe->info.gpus[probe->info.gpu_count++];
		int device;
		size_t bytes = 0;
		if (api.get(&device, i) || api.name(gpu->name, sizeof gpu->name, device))
			strcpy(gpu->name, "unknown");
		else if (!api.memory(&bytes, device))
			gpu->memory_bytes = bytes;
		ask_more(&api, device, gpu);
		gpu->name[sizeof gpu->name - 1] = 0;
	}
	return 0;
}

static void __attribute__((noreturn)) probe_child(const char *library, int out)
{
	static struct probe probe;
	int null = open("/dev/null", O_RDWR);
	/* If the library is our own client, it must not connect to this very server. */
	setenv("REMOTE_GPU_ADDRESS", "unix:/nonexistent", 1);
	unsetenv("CRICKET_LOG");
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	probe.status = ask(library, &probe);
	_exit(ckt_write_all(out, &probe, sizeof probe) ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* -errno with the reason in probe->message. */
static int run_probe(const char *library, struct probe *probe)
{
	int pipe_fds[2];
	*probe = (struct probe){.status = -EIO};
	if (pipe2(pipe_fds, O_CLOEXEC))
		return -errno;
	pid_t pid = fork();
	if (pid == 0)
		probe_child(library, pipe_fds[1]);
	close(pipe_fds[1]);
	size_t have = 0;
	int64_t deadline = ckt_net_now_ms() + PROBE_TIMEOUT_MS;
	while (pid > 0 && have < sizeof *probe) {
		struct pollfd p = {.fd = pipe_fds[0], .events = POLLIN};
		int64_t left = deadline - ckt_net_now_ms();
		if (left <= 0 || poll(&p, 1, (int)left) == 0)
			break;
		ssize_t n = read(pipe_fds[0], (char *)probe + have, sizeof *probe - have);
		if (n == 0 || (n < 0 && errno != EINTR))
			break;
		have += n > 0 ? (size_t)n : 0;
	}
	close(pipe_fds[0]);
	int status = 0;
	if (pid > 0) {
		if (have < sizeof *probe)
			kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	if (have < sizeof *probe) {
		*probe = (struct probe){.status = -EIO};
		snprintf(probe->message, sizeof probe->message,
			"%s did not answer (it crashed, or took more than %d s)", library,
			PROBE_TIMEOUT_MS / 1000);
	}
	return probe->status;
}

int ckt_driver_choose(const char *choice, const char *soft_path, struct ckt_driver_info *ret_info,
	char *ret_message, size_t message_size)
{
	bool automatic = strcmp(choice, "auto") == 0, soft = strcmp(choice, "soft") == 0;
	static struct probe probe;
	char reason[256] = "";
	ret_message[0] = 0;
	if (!soft) {
		int result = run_probe(automatic ? "libcuda.so.1" : choice, &probe);
		if (!result) {
			*ret_info = probe.info;
			ret_info->soft = soft_path && strcmp(probe.info.path, soft_path) == 0;
			return 0;
		}
		if (!automatic) {
			snprintf(ret_message, message_size,
				"--driver: '%s': %s; give another path, or soft", choice,
				probe.message);
			return result;
		}
		snprintf(reason, sizeof reason, "%s", probe.message);
	}
	if (!soft_path) {
		snprintf(ret_message, message_size,
			"%s%sthe soft GPU is not installed (CRICKET_LIBEXEC names its "
			"directory): give --driver PATH",
			reason, *reason ? ", and " : "");
		return -ENOENT;
	}
	int result = run_probe(soft_path, &probe);
	if (result) {
		snprintf(ret_message, message_size, "the soft GPU does not start: %s",
			probe.message);
		return result;
	}
	*ret_info = probe.info;
	ret_info->soft = true;
	if (automatic)
		snprintf(ret_message, message_size,
			"no GPU here (%s): using the soft GPU, which computes slowly "
			"on the CPU",
			reason);
	return 0;
}

void ckt_driver_uuid_text(const struct ckt_driver_gpu *gpu, char ret_text[CKT_GPU_UUID_TEXT])
{
	static const uint8_t none[16];
	const uint8_t *u = gpu->uuid;
	*ret_text = 0;
	if (memcmp(u, none, sizeof none) != 0)
		snprintf(ret_text, CKT_GPU_UUID_TEXT,
			"GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
			u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11],
			u[12], u[13], u[14], u[15]);
}
