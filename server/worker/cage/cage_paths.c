/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a worker may use; see cage_paths.h. */
#include "server/worker/cage/cage_paths.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/worker/cage/landlock.h"

enum {
	READ = CKT_LANDLOCK_READ,
	DEVICE = CKT_LANDLOCK_READ | CKT_LANDLOCK_WRITE,
	OWN = CKT_LANDLOCK_READ | CKT_LANDLOCK_WRITE | CKT_LANDLOCK_MAKE,
	RUN = CKT_LANDLOCK_READ | CKT_LANDLOCK_EXECUTE,
};

/*
 * NETWORK: with NVIDIA's driver and where workers may use the network, for NCCL.  COMPILER: not a worker, but
 * the process that compiles for workers.
 */
enum whose { ALL, NVIDIA, NETWORK, COMPILER };

/* Patterns of glob(3). */
static const struct row {
	const char *path;
	unsigned rights;
	enum whose whose;
} rows[] = {
	/* programs' libraries, CUDA toolkits, Python's packages */
	{"/usr", READ, ALL},
	{"/lib*", READ, ALL},
	{"/opt", READ, ALL},
	{"/nix/store", READ, ALL},
	/* how the loader finds libraries */
	{"/etc/ld.so.*", READ, ALL},
	/* the home directory of this user, the time zone of the log, names of hosts (NCCL) */
	{"/etc/passwd", READ, ALL},
	{"/etc/group", READ, ALL},
	{"/etc/nsswitch.conf", READ, ALL},
	{"/etc/localtime", READ, ALL},
	{"/etc/timezone", READ, ALL},
	{"/etc/hosts", READ, NETWORK},
	{"/etc/host.conf", READ, NETWORK},
	{"/etc/resolv.conf", READ, NETWORK},
	{"/etc/nccl.conf", READ, NVIDIA},
	{"/etc/libibverbs.d", READ, NETWORK},
	/* profiles of applications */
	{"/etc/nvidia", READ, NVIDIA},
	/*
	 * The processors, the topology of the GPUs, the client's process.  Landlock itself denies
	 * what /proc tells to tracers alone (mem, maps, environ, fd, root) of other processes.
	 */
	{"/proc", READ, ALL},
	{"/sys", READ, ALL},
	{"/run/nvidia-topologyd", READ, NVIDIA},
	{"/run/nvidia-persistenced", READ, NVIDIA},
	{"/dev/null", DEVICE, ALL},
	{"/dev/zero", DEVICE, ALL},
	{"/dev/random", READ, ALL},
	{"/dev/urandom", READ, ALL},
	{"/dev/nvidia*", DEVICE, NVIDIA},
	/* DMA between GPUs and network cards, for NCCL */
	{"/dev/infiniband", DEVICE, NETWORK},
	{"/dev/gdrdrv", DEVICE, NVIDIA},
	/* the driver in Windows' subsystem for Linux */
	{"/dev/dxg", DEVICE, NVIDIA},
	/* names that libraries list to find devices */
	{"/dev/char", READ, NVIDIA},
	/* Private to the worker, or to the workers of one owner, if root started the server. */
	{"/tmp", OWN, ALL},
	{"/dev/shm", OWN, ALL},
	/*
	 * The compiler, its assembler and linker, and their libraries.  No patterns of names in / or
	 * /etc, which the inner of two cages could not list.  No /proc: a text can include files.
	 */
	{"/usr/bin/cc", RUN, COMPILER},
	{"/usr/bin/gcc", RUN, COMPILER},
	{"/usr/bin/clang", RUN, COMPILER},
	{"/usr/bin/as", RUN, COMPILER},
	{"/usr/bin/ld", RUN, COMPILER},
	{"/usr/lib/gcc", RUN, COMPILER},
	{"/usr/libexec/gcc", RUN, COMPILER},
	{"/usr/lib/llvm-*/bin", RUN, COMPILER},
	{"/lib64/ld-linux-*", RUN, COMPILER},
	{"/lib/ld-linux-*", RUN, COMPILER},
	{"/usr/lib", READ, COMPILER},
	{"/usr/lib64", READ, COMPILER},
	{"/usr/libexec", READ, COMPILER},
	/* gcc reads stdc-predef.h of it first */
	{"/usr/include", READ, COMPILER},
	{"/lib", READ, COMPILER},
	{"/lib64", READ, COMPILER},
	{"/etc/ld.so.cache", READ, COMPILER},
	/* of processors whose kind only the kernel tells (-march=native) */
	{"/proc/cpuinfo", READ, COMPILER},
	{"/dev/null", DEVICE, COMPILER},
};

/* Paths that the environment names: lists with colons, each with what is added to it. */
static const struct variable {
	const char *name, *below;
	unsigned rights;
} variables[] = {
	{"LD_LIBRARY_PATH", "", READ},
	{"CRICKET_LIBRARY_PATH", "", READ},
	{"CRICKET_LIBRARY_SOFT", "", READ},
	{"CRICKET_LIBRARY_ROOTS", "/lib", READ},
	{"CRICKET_LIBRARY_ROOTS", "/lib64", READ},
	{"CRICKET_LIBRARY_ROOTS", "/targets", READ},
	{"CRICKET_LIBRARY_ROOTS", "/nvvm", READ},
	/* the driver's compiled kernels, and an operator's control daemon of MPS */
	{"CUDA_CACHE_PATH", "", OWN},
	/* the soft GPU's; both are the owner's alone */
	{"XDG_CACHE_HOME", "", OWN},
	{"CUDA_MPS_PIPE_DIRECTORY", "", OWN},
	/* counters of a coverage build */
	{"GCOV_PREFIX", "", OWN},
};

/* What a build with a sanitizer writes its reports to: log_path=PREFIX in its options. */
static const char *const sanitizers[] = {
	"ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"};

static int allow_pattern(struct ckt_landlock *landlock, const char *pattern, unsigned rights)
{
	glob_t found;
	int result = 0;
	if (glob(pattern, 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc && !result; i++)
		result = ckt_landlock_allow(landlock, found.gl_pathv[i], rights);
	globfree(&found);
	return result;
}

static int allow_row(struct ckt_landlock *landlock, const struct row *row)
{
	return strpbrk(row->path, "*") ? allow_pattern(landlock, row->path, row->rights)
				       : ckt_landlock_allow(landlock, row->path, row->rights);
}

static int allow_rows(struct ckt_landlock *landlock, bool soft, bool network)
{
	int result = 0;
	for (size_t i = 0; i < sizeof rows / sizeof *rows && !result; i++) {
		const struct row *row = &rows[i];
		if (row->whose == ALL || (row->whose == NVIDIA && !soft) ||
			(row->whose == NETWORK && !soft && network))
			result = allow_row(landlock, row);
	}
	return result;
}

/*
 * NVIDIA's packages for Python find each other by ../../NAME/lib, so who may read one may read its
 * siblings: PREFIX/nvidia of PREFIX/nvidia/NAME/lib.
 */
static int allow_siblings(struct ckt_landlock *landlock, char *path)
{
	char *nvidia = strstr(path, "/nvidia/");
	if (!nvidia)
		return 0;
	nvidia[strlen("/nvidia")] = 0;
	return ckt_landlock_allow(landlock, path, READ);
}

/* Only absolute paths: the worker's own directory means nothing to the operator. */
static int allow_list(
	struct ckt_landlock *landlock, const char *list, const char *below, unsigned rights)
{
	char path[PATH_MAX];
	int result = 0;
	for (const char *p = list; *p && !result;) {
		size_t length = strcspn(p, ":");
		if (*p == '/' &&
			snprintf(path, sizeof path, "%.*s%s", (int)length, p, below) <
				(int)sizeof path) {
			result = ckt_landlock_allow(landlock, path, rights);
			if (!result && rights == READ)
				result = allow_siblings(landlock, path);
		}
		p += length + (p[length] == ':');
	}
	return result;
}

static int allow_variables(struct ckt_landlock *landlock)
{
	int result = 0;
	for (size_t i = 0; i < sizeof variables / sizeof *variables && !result; i++) {
		const char *value = getenv(variables[i].name);
		if (value)
			result = allow_list(
				landlock, value, variables[i].below, variables[i].rights);
	}
	return result;
}

/* The directory of a file, under its own name and where links lead. */
static int allow_directory(struct ckt_landlock *landlock, const char *file, unsigned rights)
{
	char path[PATH_MAX], real[PATH_MAX];
	const char *names[] = {file, realpath(file, real)};
	int result = 0;
	for (int i = 0; i < 2 && !result; i++) {
		const char *slash = names[i] ? strrchr(names[i], '/') : NULL;
		if (!slash || slash == names[i])
			continue;
		snprintf(path, sizeof path, "%.*s", (int)(slash - names[i]), names[i]);
		result = ckt_landlock_allow(landlock, path, rights);
	}
	return result;
}

/* A report names functions, which the sanitizer reads in the program's own file. */
static int allow_reports(struct ckt_landlock *landlock)
{
	int result = 0;
	for (size_t i = 0; i < sizeof sanitizers / sizeof *sanitizers && !result; i++) {
		const char *options = getenv(sanitizers[i]),
			   *path = options ? strstr(options, "log_path=") : NULL;
		char prefix[PATH_MAX];
		if (path && sscanf(path, "log_path=%4000[^: ]", prefix) == 1)
			result = allow_directory(landlock, prefix, OWN);
		if (path && !result)
			result = ckt_landlock_allow(landlock, "/proc/self/exe", READ);
	}
	return result;
}

/* What the soft GPU is told to write. */
static int allow_soft(struct ckt_landlock *landlock)
{
	const char *trace = getenv("CRICKET_SOFT_TRACE");
	return trace ? allow_directory(landlock, trace, OWN) : 0;
}

/*
 * NVIDIA's driver names its threads by /proc/self/task/N/comm, and cuInit() fails with
 * CUDA_ERROR_OPERATING_SYSTEM where it cannot.  Files of another process's memory or rights stay
 * denied: these are the worker's own.  A rule holds for one inode, and /proc makes a new one for a
 * name that the kernel has forgotten: the descriptor, open until the worker ends, keeps the name.
 */
static int allow_thread_names(struct ckt_landlock *landlock)
{
	static int kept = -1;
	if (kept < 0)
		kept = open("/proc/self/task", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return ckt_landlock_allow(landlock, "/proc/self/task", CKT_LANDLOCK_WRITE);
}

/* Further directories of the loader's. */
static int allow_loader(struct ckt_landlock *landlock)
{
	static const char *const patterns[] = {"/etc/ld.so.conf", "/etc/ld.so.conf.d/*.conf"};
	char line[PATH_MAX];
	int result = 0;
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
		glob_t found;
		if (glob(patterns[i], 0, NULL, &found))
			continue;
		for (size_t k = 0; k < found.gl_pathc; k++) {
			FILE *file = fopen(found.gl_pathv[k], "re");
			while (file && !result && fgets(line, sizeof line, file)) {
				line[strcspn(line, " \t#\n")] = 0;
				if (*line == '/')
					result = ckt_landlock_allow(landlock, line, READ);
			}
			if (file)
				fclose(file);
		}
		globfree(&found);
	}
	return result;
}

int ckt_cage_paths_allow(struct ckt_landlock *landlock, const char *driver, bool soft, bool network)
{
	int result = allow_rows(landlock, soft, network);
	if (!result && !soft)
		result = allow_thread_names(landlock);
	if (!result)
		result = allow_variables(landlock);
	if (!result)
		result = allow_loader(landlock);
	if (!result)
		result = allow_directory(landlock, driver, READ);
	const char *inside = getenv("CRICKET_INSIDE");
	if (!result && inside)
		result = allow_directory(landlock, inside, READ);
	if (!result)
		result = allow_reports(landlock);
	return result || !soft ? result : allow_soft(landlock);
}

int ckt_cage_paths_allow_compiler(struct ckt_landlock *landlock, const char *directory)
{
	const char *counters = getenv("GCOV_PREFIX");
	int result = ckt_landlock_allow(landlock, directory, OWN);
	for (size_t i = 0; i < sizeof rows / sizeof *rows && !result; i++)
		if (rows[i].whose == COMPILER)
			result = allow_row(landlock, &rows[i]);
	if (!result && counters)
		result = allow_list(landlock, counters, "", OWN);
	return result ? result : allow_reports(landlock);
}
