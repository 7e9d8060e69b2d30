/* SPDX-License-Identifier: Apache-2.0 */
/* cricketctl doctor [CMD]: what on this host would stop a program, and the remedy. */
#include "ctl/doctor/doctor.h"
#include "ctl/doctor/doctor_certificate.h"

#include "base/environment.h"
#include "ctl/command.h"
#include "ctl/print.h"
#include "ctl/drain/drain_state.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/nvml.h"
#include "rpc/session.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { PATH_SIZE = 4096, TEXT_SIZE = 2048 };

void ckt_ctl_doctor_note(struct ckt_doctor *doctor, enum ckt_finding finding, const char *name,
	const char *remedy, const char *format, ...)
{
	static const char *const words[] = {"ok", "warning", "fail"};
	char text[TEXT_SIZE], clean[TEXT_SIZE];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	ckt_ctl_clean(text, clean, sizeof clean);
	doctor->failures += finding == CKT_FINDING_FAIL;
	if (doctor->json) {
		json_t *check = json_pack("{s:s, s:s, s:o}", "name", name, "result", words[finding],
			"message", ckt_ctl_json_text(clean));
		if (remedy)
			json_object_set_new(check, "remedy", ckt_ctl_json_text(remedy));
		json_array_append_new(doctor->checks, check);
		return;
	}
	printf("%-8s %-12s %s\n", words[finding], name, clean);
	if (remedy)
		printf("%-21s %s\n", "", remedy);
}

/* The source of PyTorch's figures and nvidia-smi; no program stops without it. */
static void check_nvml(struct ckt_doctor *doctor, struct ckt_ctl_server *server, unsigned gpu)
{
	ckt_control_nvml_args call = {
		.function = ckt_nvml_number("nvmlDeviceGetPciInfo_v3"), .gpu = gpu};
	ckt_control_nvml_res res = {0};
	if (ckt_ctl_call(server, CKT_CONTROL_NVML, (xdrproc_t)xdr_ckt_control_nvml_args, &call,
		    (xdrproc_t)xdr_ckt_control_nvml_res, &res, 10000, -1) != CKT_EXIT_DONE)
		return;
	if (res.result == CKT_NVML_SUCCESS)
		ckt_ctl_doctor_note(
			doctor, CKT_FINDING_OK, "nvml", NULL, "the server's NVML works");
	else
		ckt_ctl_doctor_note(doctor, CKT_FINDING_WARNING, "nvml",
			"install NVIDIA's whole driver there, or name its directory in "
			"the server's LD_LIBRARY_PATH",
			res.result == CKT_NVML_TIMEOUT
				? "the server's NVML does not answer: no temperature, "
				  "utilisation and similar values"
				: "the server finds no working NVML: no temperature, "
				  "utilisation and similar values");
	xdr_free((xdrproc_t)xdr_ckt_control_nvml_res, (char *)&res);
}

static void check_server(struct ckt_doctor *doctor, const struct ckt_ctl_args *args)
{
	struct ckt_ctl_server server;
	char message[TEXT_SIZE];
	const char *address = args->server ? args->server : getenv("REMOTE_GPU_ADDRESS");
	ckt_control_info_res info = {0};
	struct ckt_ctl_drain drain;
	int status = ckt_ctl_try_connect(args, &server, message, sizeof message);
	if (status == CKT_EXIT_REFUSED) {
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "token",
			"set CRICKET_TOKEN_FILE to a copy of the server's token file, mode 0600",
			"%s", message);
		return;
	}
	if (status != CKT_EXIT_DONE) {
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "server",
			address && *address
				? "check REMOTE_GPU_ADDRESS, the server's --listen and the firewall between"
				: "set REMOTE_GPU_ADDRESS=host:port, or start cricket-server on this host",
			"%s", message);
		return;
	}
	if (ckt_ctl_call(&server, CKT_CONTROL_INFO, NULL, NULL, (xdrproc_t)xdr_ckt_control_info_res,
		    &info, 10000, -1) == CKT_EXIT_DONE) {
		bool newer = strcmp(info.build, CKT_VERSION) != 0;
		ckt_ctl_doctor_note(doctor, CKT_FINDING_OK, "server", NULL,
			"cricket-server %s answers at %s", info.build, server.address);
		if (newer)
			ckt_ctl_doctor_note(doctor, CKT_FINDING_WARNING, "version",
				"install the same version on both hosts", "this is version %s",
				CKT_VERSION);
		if (!info.gpus.gpus_len)
			ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "gpu",
				"see --gpus and --driver of cricket-server",
				"the server has no GPU");
		else
			ckt_ctl_doctor_note(doctor,
				info.soft ? CKT_FINDING_WARNING : CKT_FINDING_OK, "gpu",
				info.soft ? "start cricket-server on a host with a GPU for speed"
					  : NULL,
				"%u GPU%s, the first: %s%s", info.gpus.gpus_len,
				info.gpus.gpus_len == 1 ? "" : "s", info.gpus.gpus_val[0].name,
				info.soft ? ", which computes on the CPU" : "");
		if (info.gpus.gpus_len && !info.soft && !newer)
			check_nvml(doctor, &server, info.gpus.gpus_val[0].ordinal);
		if (info.max_sessions && info.sessions >= info.max_sessions)
			ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "sessions",
				"end some with cricketctl kill, or raise --max-sessions",
				"the server has reached its limit of %u sessions",
				info.max_sessions);
		xdr_free((xdrproc_t)xdr_ckt_control_info_res, (char *)&info);
	}
	ckt_ctl_disconnect(&server);
	if (ckt_ctl_drain_look(args, &drain))
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "draining",
			"use another server, or end it there with 'cricketctl drain --undo'",
			"the server is drained for maintenance and takes no new sessions%s%s",
			*drain.to ? "; programs go to " : "", drain.to);
}

/* Of a list each. */
static void check_servers(struct ckt_doctor *doctor, const struct ckt_ctl_args *args)
{
	char addresses[CKT_SERVERS_MAX][CKT_ADDRESS_TEXT_MAX], message[CKT_MESSAGE_MAX];
	const char *address = args->server ? args->server : getenv("REMOTE_GPU_ADDRESS");
	unsigned count;
	if (!address || !strchr(address, ',')) {
		check_server(doctor, args);
		return;
	}
	if (ckt_address_split(address, addresses, &count, message, sizeof message)) {
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "server",
			"write a,b:7351: each host, host:port, unix:/path or file:PATH", "%s",
			message);
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		struct ckt_ctl_args one = *args;
		one.server = addresses[i];
		check_server(doctor, &one);
	}
}

bool ckt_ctl_doctor_find_library(char ret_path[PATH_SIZE])
{
	static const char *const places[] = {"../lib/cricket", "../lib/x86_64-linux-gnu/cricket",
		"../lib64/cricket", "../client/preload", "../client"};
	char exe[PATH_SIZE], candidate[2 * PATH_SIZE];
	const char *libdir = getenv("CRICKET_LIBDIR");
	if (libdir && *libdir) {
		snprintf(candidate, sizeof candidate, "%s/libcricket-client.so", libdir);
		return realpath(candidate, ret_path);
	}
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	if (n <= 0)
		return false;
	exe[n] = 0;
	*strrchr(exe, '/') = 0;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		snprintf(candidate, sizeof candidate, "%s/%s/libcricket-client.so", exe, places[i]);
		if (access(candidate, R_OK) == 0 && realpath(candidate, ret_path))
			return true;
	}
	return false;
}

/* In a child: loading a broken library may end the process. */
static bool can_load(const char *path, char *ret_reason, size_t reason_size)
{
	int pipe_fds[2], status = 0;
	ret_reason[0] = 0;
	if (pipe(pipe_fds))
		return false;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		if (dlopen(path, RTLD_NOW | RTLD_GLOBAL))
			_exit(0);
		const char *reason = dlerror();
		ssize_t written = write(pipe_fds[1], reason, strlen(reason));
		_exit(written > 0 ? 1 : 2);
	}
	close(pipe_fds[1]);
	ssize_t n = read(pipe_fds[0], ret_reason, reason_size - 1);
	ret_reason[n > 0 ? n : 0] = 0;
	close(pipe_fds[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!*ret_reason && WIFSIGNALED(status))
		snprintf(ret_reason, reason_size, "loading it ends the process with signal %d",
			WTERMSIG(status));
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void check_library(struct ckt_doctor *doctor)
{
	char path[PATH_SIZE], reason[512];
	const char *preload = getenv("LD_PRELOAD");
	if (!ckt_ctl_doctor_find_library(path))
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "library",
			"install Cricket again, or set CRICKET_LIBDIR to the directory of libcricket-client.so",
			"libcricket-client.so is not in its directory");
	else if (!can_load(path, reason, sizeof reason))
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "library",
			"the library needs glibc 2.34 or later and x86-64", "%s: %s", path, reason);
	else
		ckt_ctl_doctor_note(doctor, CKT_FINDING_OK, "library", NULL, "%s loads", path);
	if (preload && strstr(preload, "libcricket-client.so"))
		ckt_ctl_doctor_note(doctor, CKT_FINDING_OK, "preload", NULL,
			"LD_PRELOAD names libcricket-client.so");
	else
		ckt_ctl_doctor_note(doctor, CKT_FINDING_WARNING, "preload",
			"start programs with cricket-run, or set LD_PRELOAD to libcricket-client.so",
			"LD_PRELOAD does not name libcricket-client.so in this shell");
}

/* What redirecting a statically linked runtime does: makes text writable, then executable again. */
static void check_text(struct ckt_doctor *doctor)
{
	long page = sysconf(_SC_PAGESIZE);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int error = 0;
	if (fd < 0) {
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "proc",
			"mount /proc: the client reads /proc/self", "/proc is not mounted here");
		return;
	}
	ckt_ctl_doctor_note(doctor, CKT_FINDING_OK, "proc", NULL, "/proc is mounted");
	volatile char *text = mmap(NULL, (size_t)page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED) {
		error = errno;
	} else {
		if (mprotect((void *)text, (size_t)page, PROT_READ | PROT_WRITE))
			error = errno;
		else
			*text = *text;
		if (!error && mprotect((void *)text, (size_t)page, PROT_READ | PROT_EXEC))
			error = errno;
		munmap((void *)text, (size_t)page);
	}
	close(fd);
	if (error)
		ckt_ctl_doctor_note(doctor, CKT_FINDING_FAIL, "text",
			"allow it (SELinux: setsebool selinuxuser_execmod 1), or build programs with -cudart shared",
			"this host refuses to execute changed program text (%s): "
			"programs with the static CUDA runtime cannot be redirected",
			strerror(error));
	else
		ckt_ctl_doctor_note(
			doctor, CKT_FINDING_OK, "text", NULL, "program text can be redirected");
}

static void check_limits(struct ckt_doctor *doctor)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		ckt_ctl_doctor_note(doctor, CKT_FINDING_WARNING, "ulimit", "ulimit -v unlimited",
			"the address space is limited to %llu KiB: managed and mapped "
			"memory must reserve terabytes, and so must a server here",
			(unsigned long long)limit.rlim_cur / 1024);
	else
		ckt_ctl_doctor_note(
			doctor, CKT_FINDING_OK, "ulimit", NULL, "the address space is not limited");
	int before = personality(0xffffffff);
	/* For this process only, which ends soon. */
	if (before < 0 || personality((unsigned)before | ADDR_NO_RANDOMIZE) < 0)
		ckt_ctl_doctor_note(doctor, CKT_FINDING_WARNING, "personality",
			"in a container, use --security-opt seccomp=unconfined or a "
			"profile that allows personality",
			"address space randomisation cannot be switched off here: a cricket-server on this host may fail to "
			"restore modules with globals");
	else
		ckt_ctl_doctor_note(doctor, CKT_FINDING_OK, "personality", NULL,
			"address space randomisation can be switched off");
}

static void check_environment(struct ckt_doctor *doctor)
{
	size_t cursor = 0;
	unsigned unknown = 0;
	for (const char *entry; (entry = ckt_environment_unknown(environ, &cursor));) {
		unknown++;
		ckt_ctl_doctor_note(doctor, CKT_FINDING_WARNING, "environment",
			"see cricket(7) for the list of variables",
			"%.*s is not a variable of Cricket", (int)strcspn(entry, "="), entry);
	}
	if (!unknown)
		ckt_ctl_doctor_note(doctor, CKT_FINDING_OK, "environment", NULL,
			"every CRICKET_* variable that is set is known");
}

int ckt_ctl_doctor(const struct ckt_ctl_args *args)
{
	struct ckt_doctor doctor = {.json = args->json, .checks = json_array()};
	check_servers(&doctor, args);
	ckt_ctl_doctor_certificates(&doctor, time(NULL));
	check_library(&doctor);
	check_text(&doctor);
	check_limits(&doctor);
	check_environment(&doctor);
	if (args->word_count)
		ckt_ctl_doctor_program(&doctor, args->words[0]);
	int status;
	if (args->json) {
		status = ckt_ctl_json_print(json_pack(
			"{s:b, s:o}", "ok", doctor.failures == 0, "checks", doctor.checks));
	} else {
		json_decref(doctor.checks);
		printf(doctor.failures ? "\n%u of these would stop it.\n"
				       : "\nNothing found that would stop it.\n",
			doctor.failures);
		status = ckt_ctl_flush();
	}
	return status == CKT_EXIT_DONE && doctor.failures ? CKT_EXIT_REFUSED : status;
}
