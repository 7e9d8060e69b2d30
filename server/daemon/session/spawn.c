/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a worker: a direct child in a session of its own, without privileges, with a fixed
 * stack, without address space randomisation and with an environment that is the same on every node
 * (all of this influences the driver's addresses).
 *
 * The environment is empty but for what `passed` names.
 */
#include "server/daemon/session/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cudacommon/kernel_compiler.h"
#include "rpc/module_loading.h"
#include "rpc/worker_descriptors.h"
#include "server/daemon/server.h"
#include "server/daemon/session/group_domain.h"
#include "server/daemon/session/kernel_cache.h"
#include "server/daemon/session/mps.h"
#include "server/daemon/session/spawn_cage.h"
#include "server/daemon/session/spawn_mounts.h"
#include "server/daemon/session/spawn_user.h"
#include "server/daemon/session/user_namespace.h"
#include "server/daemon/session/worker_cgroup.h"

extern char **environ;

enum { STACK_BYTES = 8 << 20, ENVIRONMENT_MAX = 256 };

static const char *const passed[] = {
	/* which GPUs, and the driver's JIT cache; its place: kernel_cache.h */
	"CUDA_VISIBLE_DEVICES=",
	"CUDA_DEVICE_ORDER=",
	"CUDA_CACHE_DISABLE=",
	"CUDA_CACHE_MAXSIZE=",
	/* an operator's control daemon */
	"CUDA_MPS_",
	"CRICKET_SOFT_",
	"CRICKET_FAULT=",
	/* clusters and containers put parts of the driver there */
	"LD_LIBRARY_PATH=",
	"ASAN_OPTIONS=",
	"UBSAN_OPTIONS=",
	"LSAN_OPTIONS=",
	"TSAN_OPTIONS=",
	"GCOV_PREFIX=",
};

/* An operator's control daemon is not that of a worker which has one of its group's. */
static bool is_passed(const char *variable, const struct ckt_mps_variables *mps)
{
	if (mps && strncmp(variable, "CUDA_MPS_", strlen("CUDA_MPS_")) == 0)
		return false;
	for (unsigned i = 0; i < sizeof passed / sizeof *passed; i++)
		if (strncmp(variable, passed[i], strlen(passed[i])) == 0)
			return true;
	return false;
}

/* ret holds room for ENVIRONMENT_MAX + 1 pointers; the strings are not owned. */
static void make_environment(const struct ckt_server *server,
	const struct ckt_spawn_descriptors *descriptors, const char *cache, const char **ret)
{
	size_t count = 0;
	ret[count++] =
		"GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.malloc.mmap_threshold=4294967296";
	static char loading[64];
	const char *told = getenv("CUDA_MODULE_LOADING");
	snprintf(loading, sizeof loading, "CUDA_MODULE_LOADING=%s",
		told ? told : CKT_MODULE_LOADING_DEFAULT);
	ret[count++] = loading;
	static char gpus[32];
	snprintf(gpus, sizeof gpus, "CRICKET_GPUS=%u", server->driver.gpu_count);
	ret[count++] = gpus;
	static char cage[CKT_PATH_MAX + 32];
	ckt_spawn_cage_variable(server, cage, sizeof cage);
	ret[count++] = cage;
	static char compiler[64];
	snprintf(compiler, sizeof compiler, CKT_KERNEL_COMPILER_VARIABLE "=%d",
		CKT_WORKER_COMPILER_FD);
	if (descriptors->compiler >= 0)
		ret[count++] = compiler;
	static char kernels[CKT_PATH_MAX + 32];
	ckt_kernel_cache_variable(server, cache, kernels, sizeof kernels);
	if (*kernels)
		ret[count++] = kernels;
	for (unsigned i = 0; i < server->library_variable_count; i++)
		ret[count++] = server->library_variables[i];
	if (*server->inside_path)
		ret[count++] = server->inside_variable;
	for (unsigned i = 0; descriptors->mps && i < CKT_MPS_VARIABLES; i++)
		if (*descriptors->mps->text[i])
			ret[count++] = descriptors->mps->text[i];
	for (char **variable = environ; *variable && count < ENVIRONMENT_MAX; variable++)
		if (is_passed(*variable, descriptors->mps))
			ret[count++] = *variable;
	ret[count] = NULL;
}

/* What is started. */
struct program {
	const char *name, *option, *value; /* value NULL: none */
	bool session; /* addresses as on every node, and a control socket that listens */
	const struct ckt_worker_user *user;
	const struct ckt_identity *owner; /* of the cache of compiled kernels; NULL: not known */
};

struct failure {
	int error;
	char step[32];
};

/* Gives the descriptors their numbers, and no others to the worker.  0, or -1 and errno. */
static int place_descriptors(const struct ckt_spawn_descriptors *descriptors)
{
	const int given[] = {descriptors->listener, descriptors->refused, descriptors->compiler};
	int high[sizeof given / sizeof *given];
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0)
		return -1;
	/* Moves all out of the way first: each may have the number of another. */
	for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
		high[i] = given[i] < 0 && i ? -1 : fcntl(given[i], F_DUPFD_CLOEXEC, 10);
		if (high[i] < 0 && (given[i] >= 0 || !i))
			return -1;
	}
	/*
	 * Our descriptors are close-on-exec anyway; this is for inherited ones.  Sandboxes without
	 * the call are no worse off.
	 */
	syscall(SYS_close_range, CKT_WORKER_CONTROL_FD, ~0u, 4 /* CLOSE_RANGE_CLOEXEC */);
	for (size_t i = 0; i < sizeof given / sizeof *given; i++)
		if (high[i] >= 0 && dup2(high[i], CKT_WORKER_CONTROL_FD + (int)i) < 0)
			return -1;
	return 0;
}

/* Runs in the child.  Returns only on failure. */
static void start(struct ckt_server *server, const struct program *program,
	const struct ckt_spawn_mounts *mounts, const struct ckt_spawn_descriptors *descriptors,
	const char *const *environment, struct failure *failure)
{
	const char *const arguments[] = {program->name, program->option, program->value, NULL};
	struct rlimit stack = {STACK_BYTES, STACK_BYTES};
	sigset_t no_signals;
	const char *step = "cgroup";
	if (descriptors->cgroup && ckt_worker_cgroup_enter(server, descriptors->cgroup))
		goto out;
	step = "user namespace";
	if (ckt_user_namespace_enter(program->user->user_namespace, program->user->gid))
		goto out;
	step = "namespaces of its group";
	if (ckt_group_domain_enter(descriptors->domain))
		goto out;
	step = "descriptors";
	if (place_descriptors(descriptors))
		goto out;
	/* Kill signals for the server's group or terminal are not meant for sessions. */
	step = "setsid";
	if (setsid() < 0)
		goto out;
	step = "rlimit";
	if (setrlimit(RLIMIT_STACK, &stack) || setrlimit(RLIMIT_NOFILE, &server->descriptors) ||
		ckt_spawn_cage_limit(program->user->user_namespace) ||
		ckt_spawn_cage_limit_memory(program->session ? server->options.worker_memory : 0))
		goto out;
	/* Docker's seccomp profile refuses this; the worker checks it and notes it. */
	if (program->session)
		personality(ADDR_NO_RANDOMIZE);
	step = "mount namespace";
	if (ckt_spawn_mounts_enter(mounts))
		goto out;
	ckt_spawn_cage_bound();
	step = "user";
	errno = -ckt_spawn_become_user(program->user);
	if (errno)
		goto out;
	step = "capabilities";
	if (ckt_spawn_cage_drop())
		goto out;
	step = "no_new_privs";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		goto out;
	/* Again, by the worker's own process: SO_PEERCRED names it to those who connect. */
	step = "listen";
	if (program->session && listen(CKT_WORKER_CONTROL_FD, 64))
		goto out;
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&no_signals);
	sigprocmask(SIG_SETMASK, &no_signals, NULL);
	step = "exec";
	if (chdir("/") == 0)
		execve(server->worker_path, (char *const *)arguments, (char *const *)environment);
out:
	failure->error = errno;
	snprintf(failure->step, sizeof failure->step, "%s", step);
}

/* What the child needs to know. */
struct spawning {
	struct ckt_server *server;
	const struct program *program;
	const struct ckt_spawn_mounts *mounts;
	const struct ckt_spawn_descriptors *descriptors;
	int report; /* where a failure is written */
	const char *environment[ENVIRONMENT_MAX + 1];
};

static void run_child(void *opaque)
{
	struct spawning *s = opaque;
	struct failure failure = {0};
	/* Above the descriptors that get a fixed number. */
	int report = fcntl(s->report, F_DUPFD_CLOEXEC, 10);
	start(s->server, s->program, s->mounts, s->descriptors, s->environment, &failure);
	ssize_t written = write(report, &failure, sizeof failure);
	_exit(written == sizeof failure ? 127 : 126);
}

static pid_t fork_program(struct ckt_server *server, const struct program *program,
	const struct ckt_spawn_mounts *mounts, const struct ckt_spawn_descriptors *descriptors,
	const int pipe_fds[2])
{
	struct spawning spawning = {.server = server,
		.program = program,
		.mounts = mounts,
		.descriptors = descriptors,
		.report = pipe_fds[1]};
	make_environment(server, descriptors, mounts->cache, spawning.environment);
	return ckt_group_domain_fork(descriptors->domain, run_child, &spawning);
}

/* 0 once the worker is executed, or -errno and the step in failure. */
static int wait_for_exec(pid_t pid, int fd, struct failure *failure)
{
	ssize_t n;
	/* Ends when the child's copy closes: at exec, at once. */
	do
		n = read(fd, failure, sizeof *failure);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return n == sizeof *failure && failure->error ? -failure->error : -EIO;
}

static int spawn(struct ckt_server *server, const struct program *program,
	const struct ckt_spawn_descriptors *descriptors, pid_t *ret_pid, char *ret_message,
	size_t message_size)
{
	struct failure failure = {.step = "fork"};
	struct ckt_spawn_mounts mounts;
	char cache[CKT_PATH_MAX] = "";
	int pipe_fds[2];
	pid_t pid = -1;
	if (program->session)
		ckt_kernel_cache_open(server, program->owner, program->user, cache);
	int result = pipe2(pipe_fds, O_CLOEXEC) ? -errno : 0;
	ckt_spawn_mounts_init(&mounts, server, program->user, descriptors->domain, cache);
	if (descriptors->mps)
		ckt_spawn_mounts_keep(&mounts, descriptors->mps->directory);
	if (!result) {
		pid = fork_program(server, program, &mounts, descriptors, pipe_fds);
		result = pid < 0 ? -errno : 0;
		close(pipe_fds[1]);
		if (!result)
			result = wait_for_exec(pid, pipe_fds[0], &failure);
		close(pipe_fds[0]);
	}
	ckt_spawn_mounts_fini(&mounts);
	if (result)
		snprintf(ret_message, message_size, "cannot start a worker (%s of %s): %s",
			failure.step, server->worker_path, strerror(-result));
	else
		*ret_pid = pid;
	return result;
}

int ckt_spawn_worker(struct ckt_server *server, const struct ckt_identity *owner,
	const struct ckt_worker_user *user, const struct ckt_spawn_descriptors *descriptors,
	pid_t *ret_pid, char *ret_message, size_t message_size)
{
	const struct program worker = {"cricket-worker", "--log-level", server->options.log_level,
		.session = true, .user = user, .owner = owner};
	return spawn(server, &worker, descriptors, ret_pid, ret_message, message_size);
}

int ckt_spawn_compiler(struct ckt_server *server, int control, pid_t *ret_pid, char *ret_message,
	size_t message_size)
{
	const struct program compiler = {
		"cricket-worker", "--compiler", NULL, .user = &server->compiler_user};
	const struct ckt_spawn_descriptors descriptors = {
		.listener = control, .refused = -1, .compiler = -1};
	return spawn(server, &compiler, &descriptors, ret_pid, ret_message, message_size);
}
