/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles kernels that run often to machine code; see compile.h.
 *
 * One thread compiles one kernel after the other.  It starts with the first hot kernel and never
 * ends.  Its result belongs to a struct ptx_compiled that the entry and the thread share, because a
 * module may be unloaded meanwhile.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "cudacommon/kernel_compiler.h"
#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/compiled/compile.h"
#include "softgpu/ptx/execution/sched.h"
#include "softgpu/ptx/execution/trace.h"
#include "softgpu/ptx/program.h"

enum {
	/* instructions of warps: seconds of interpreting, about as long as a compilation */
	HOT_INSNS = 40000000,
	MODE_NEVER = 0,
	MODE_ALWAYS = 1,
	MODE_HOT = 2,
};

struct ptx_compiled {
	_Atomic(ptx_runner *const *) runners;
	_Atomic uint64_t insns;
	atomic_bool asked;
	atomic_uint holders;
	size_t n_functions;
	bool whole; /* covers every function of the module */
	void *library;
	ptx_runner **table;
	char *text;
	struct ptx_compiled *next; /* in the queue of the thread */
};

extern char **environ;

static struct {
	int mode;
	char compiler[PATH_MAX];
	int socket; /* to the process that compiles for us; -1: we do it */
	/* everything except the text that determines the machine code */
	char maker[PATH_MAX + 4096];
} setup;
static pthread_once_t setup_once = PTHREAD_ONCE_INIT;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct ptx_compiled *first, **last;
	bool started;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER};

/*
 * The compiler's output file, as the compiler names it: an inherited descriptor.  A killed process
 * therefore leaves no file.
 */
#define OBJECT_FD 3
#define OBJECT_NAME "/proc/self/fd/3"

/* Describes this processor, because machine code for it may use instructions that another lacks. */
static void read_processor(char *ret_text, size_t size)
{
	char line[4096];
	size_t used = 0;
	FILE *file = fopen("/proc/cpuinfo", "re");
	*ret_text = 0;
	while (file && fgets(line, sizeof line, file) && *line != '\n') {
		if (strncmp(line, "model", 5) && strncmp(line, "flags", 5) &&
			strncmp(line, "vendor_id", 9) && strncmp(line, "Features", 8) &&
			strncmp(line, "CPU", 3))
			continue;
		int n = snprintf(ret_text + used, size - used, "%s", line);
		if (n < 0 || (size_t)n >= size - used)
			break;
		used += (size_t)n;
	}
	if (file)
		fclose(file);
}

/* A worker of a server must not execute a compiler itself. */
static int find_socket(void)
{
	const char *number = getenv(CKT_KERNEL_COMPILER_VARIABLE);
	int fd = number ? atoi(number) : -1, type = 0;
	socklen_t size = sizeof type;
	return fd > 0 && !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) &&
			type == SOCK_SEQPACKET
		? fd
		: -1;
}

static void read_setup(void)
{
	const char *mode = getenv("CRICKET_SOFT_COMPILE");
	struct stat st;
	char processor[4096];
	setup.mode = mode && !strcmp(mode, "0") ? MODE_NEVER
		: mode && *mode                 ? MODE_ALWAYS
						: MODE_HOT;
	/* Only the interpreter can trace. */
	if (setup.mode == MODE_NEVER || ckt_ptx_trace_wanted() ||
		!ckt_kernel_compiler_find(setup.compiler, sizeof setup.compiler) ||
		stat(setup.compiler, &st)) {
		setup.mode = MODE_NEVER;
		return;
	}
	read_processor(processor, sizeof processor);
	size_t used = (size_t)snprintf(setup.maker, sizeof setup.maker, "%s %lld %lld\n%s",
		setup.compiler, (long long)st.st_size, (long long)st.st_mtime, processor);
	for (size_t k = 0; ckt_kernel_compiler_options[k] && used < sizeof setup.maker; k++)
		used += (size_t)snprintf(setup.maker + used, sizeof setup.maker - used, " %s",
			ckt_kernel_compiler_options[k]);
	setup.socket = find_socket();
}

static int mode(void)
{
	pthread_once(&setup_once, read_setup);
	return setup.mode;
}

/* ---- One kernel */

struct ptx_compiled *ckt_ptx_compile_new(struct ckt_ptx_module *module)
{
	if (mode() == MODE_NEVER)
		return NULL;
	struct ptx_compiled *c = module->compiled;
	if (!c) {
		c = calloc(1, sizeof *c);
		if (!c)
			return NULL;
		c->n_functions = module->n_functions;
		atomic_init(&c->holders, 0);
		/*
		 * Compile all kernels together if all are wanted: starting a compiler costs as much
		 * as compiling a few of them.
		 */
		c->whole = mode() == MODE_ALWAYS && ckt_ptx_emit_fits(module);
		if (c->whole) {
			atomic_fetch_add(&c->holders, 1);
			module->compiled = c;
		}
	}
	atomic_fetch_add(&c->holders, 1);
	return c;
}

void ckt_ptx_compile_drop(struct ptx_compiled *c)
{
	if (!c || atomic_fetch_sub(&c->holders, 1) != 1)
		return;
	if (c->library)
		dlclose(c->library);
	free(c->table);
	free(c->text);
	free(c);
}

ptx_runner *const *ckt_ptx_compile_runners(const struct ptx_prepared *prepared)
{
	return prepared->compiled
		? atomic_load_explicit(&prepared->compiled->runners, memory_order_acquire)
		: NULL;
}

static bool load_object(struct ptx_compiled *c, const char *path)
{
	c->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void **env = c->library ? dlsym(c->library, "ckt_kernel_env") : NULL;
	c->table = env ? calloc(c->n_functions + 1, sizeof *c->table) : NULL;
	if (!c->table) {
		if (c->library)
			dlclose(c->library);
		c->library = NULL;
		return false;
	}
	env[0] = (void *)ckt_soft_memmap;
	env[1] = (void *)(uintptr_t)ckt_ptx_group_store;
	for (size_t k = 0; k < c->n_functions; k++) {
		char name[32];
		snprintf(name, sizeof name, "ckt_kernel_%zu", k);
		c->table[k] = (ptx_runner *)(uintptr_t)dlsym(c->library, name);
	}
	atomic_store_explicit(&c->runners, c->table, memory_order_release);
	return true;
}

/*
 * The environment without the loader's variables (LD_*): they are for the program and not for the
 * compiler.
 */
static char **compiler_environment(void)
{
	size_t n = 0;
	while (environ[n])
		n++;
	char **own = calloc(n + 2, sizeof *own);
	size_t at = 0;
	for (size_t k = 0; own && k < n; k++)
		if (strncmp(environ[k], "LD_", 3))
			own[at++] = environ[k];
	/* A server's workers have no PATH, and gcc would not find its linker. */
	if (own && !getenv("PATH"))
		own[at] = (char *)"PATH=" CKT_KERNEL_COMPILER_PATH;
	return own;
}

/* Runs the compiler on the source; 0 or -errno. */
static int run_compiler(int source, int object)
{
	const char *argv[CKT_KERNEL_ARGUMENTS_MAX];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid;
	int status = 0;
	char **environment = compiler_environment();
	ckt_kernel_compiler_arguments(setup.compiler, OBJECT_NAME, argv);
	if (!environment || posix_spawn_file_actions_init(&actions)) {
		free(environment);
		return -ENOMEM;
	}
	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_adddup2(&actions, source, 0);
	posix_spawn_file_actions_adddup2(&actions, object, OBJECT_FD);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	int r = -posix_spawn(
		&pid, setup.compiler, &actions, &attr, (char *const *)argv, environment);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	free(environment);
	if (r)
		return r;
	while (waitpid(pid, &status, 0) < 0) {
		/*
		 * A process that ignores SIGCHLD cannot wait for a child; the object's size then
		 * shows success.
		 */
		struct stat st;
		if (errno != EINTR)
			return fstat(object, &st) || !st.st_size ? -errno : 0;
	}
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
}

/* An unnamed file that contains the text, positioned at its beginning. */
static int source_new(const char *text)
{
	int fd = memfd_create("cricket-kernel.c", MFD_CLOEXEC), r = fd < 0 ? -errno : 0;
	size_t size = strlen(text);
	while (size && !r) {
		ssize_t n = write(fd, text, size);
		if (n < 0 && errno != EINTR)
			r = -errno;
		if (n > 0) {
			text += n;
			size -= (size_t)n;
		}
	}
	if (!r && lseek(fd, 0, SEEK_SET))
		r = -errno;
	if (r && fd >= 0)
		close(fd);
	return r ? r : fd;
}

/*
 * The loader takes two equal paths for the same library, even if the descriptor now refers to
 * another file.  So every path gets a spelling of its own.
 */
static void object_name(int fd, char ret_path[PATH_MAX])
{
	static _Atomic unsigned spellings;
	unsigned number = atomic_fetch_add(&spellings, 1);
	size_t used = (size_t)snprintf(ret_path, PATH_MAX, "/proc/self/fd/");
	for (unsigned bit = 0; bit < 32; bit++)
		used += (size_t)snprintf(
			ret_path + used, PATH_MAX - used, number >> bit & 1 ? "./" : "/");
	snprintf(ret_path + used, PATH_MAX - used, "%d", fd);
}

/* Asks the server's compiling process, one request at a time. */
static int ask_for_object(int source, int *ret_object)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint32_t serial;
	static bool gone;
	pthread_mutex_lock(&lock);
	int result =
		gone ? -EPIPE : ckt_kernel_compiler_ask(setup.socket, ++serial, source, ret_object);
	gone = result == -EPIPE;
	pthread_mutex_unlock(&lock);
	return result;
}

/* ret_object: an unnamed file, the caller's also after a failure; -1: none. */
static int make_object(int source, int *ret_object)
{
	*ret_object = -1;
	if (source < 0)
		return source;
	if (setup.socket >= 0)
		return ask_for_object(source, ret_object);
	*ret_object = memfd_create("cricket-kernel.so", MFD_CLOEXEC);
	return *ret_object < 0 ? -errno : run_compiler(source, *ret_object);
}

/* Compiles and loads the object, and stores it in the cache if there is one. */
static void make(struct ptx_compiled *c, const char *cache, const char *key)
{
	char path[PATH_MAX];
	int source = source_new(c->text), object;
	if (cache)
		ckt_ptx_cache_sweep(cache);
	if (!make_object(source, &object)) {
		if (!cache || ckt_ptx_cache_store(cache, key, object, path, sizeof path))
			object_name(object, path);
		load_object(c, path);
	}
	if (source >= 0)
		close(source);
	if (object >= 0)
		close(object);
}

static void compile(struct ptx_compiled *c)
{
	char cache[PATH_MAX], path[PATH_MAX], key[CKT_PTX_KEY];
	bool kept = !ckt_ptx_cache_folder(cache, sizeof cache);
	ckt_ptx_cache_key(c->text, setup.maker, key);
	if (!(kept && ckt_ptx_cache_find(cache, key, path, sizeof path) && load_object(c, path)))
		make(c, kept ? cache : NULL, key);
	free(c->text);
	c->text = NULL;
}

/* ---- The compiling thread */

static void *compile_main(void *arg)
{
	(void)arg;
	for (;;) {
		pthread_mutex_lock(&queue.lock);
		while (!queue.first)
			pthread_cond_wait(&queue.work, &queue.lock);
		struct ptx_compiled *c = queue.first;
		queue.first = c->next;
		pthread_mutex_unlock(&queue.lock);
		compile(c);
		ckt_ptx_compile_drop(c);
	}
	return NULL;
}

/* Precondition: the lock is held. */
static bool start_thread(void)
{
	if (!queue.started)
		queue.started = ckt_thread_start(NULL, 0, compile_main, NULL) == 0;
	return queue.started;
}

void ckt_ptx_compile_start(
	const struct ckt_ptx_function *entry, const struct ptx_prepared *prepared)
{
	struct ptx_compiled *c = prepared->compiled;
	if (!c || mode() != MODE_ALWAYS || atomic_exchange(&c->asked, true))
		return;
	c->text = ckt_ptx_emit_kernel(entry, c->whole ? NULL : prepared);
	if (c->text)
		compile(c);
}

void ckt_ptx_compile_heat(
	const struct ckt_ptx_function *entry, const struct ptx_prepared *prepared, uint64_t insns)
{
	struct ptx_compiled *c = prepared->compiled;
	if (!c || mode() != MODE_HOT || atomic_load_explicit(&c->asked, memory_order_relaxed) ||
		atomic_fetch_add_explicit(&c->insns, insns, memory_order_relaxed) + insns <
			HOT_INSNS ||
		atomic_exchange(&c->asked, true))
		return;
	/* Make the text here, while the module certainly exists; the thread needs nothing else. */
	c->text = ckt_ptx_emit_kernel(entry, prepared);
	if (!c->text)
		return;
	pthread_mutex_lock(&queue.lock);
	if (start_thread()) {
		atomic_fetch_add(&c->holders, 1);
		if (!queue.first)
			queue.last = &queue.first;
		c->next = NULL;
		*queue.last = c;
		queue.last = &c->next;
		pthread_cond_signal(&queue.work);
	}
	pthread_mutex_unlock(&queue.lock);
}
