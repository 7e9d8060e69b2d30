/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/cage/cage_paths.c: which files a worker has, and which not. */
#include "server/worker/cage/cage_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cage_child.h"
#include "server/worker/cage/landlock.h"
#include "tests/unit/suite.h"

/* Below /var, which no row of the tables names. */
static char place[64] = "/var/tmp/ckt-cage-XXXXXX";
static bool soft, network;

static bool opens(const char *name, int flags)
{
	char path[256];
	snprintf(path, sizeof path, "%s%s", *name == '/' ? "" : place, name + (*name == '.'));
	int fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int enter(void)
{
	struct ckt_landlock landlock;
	char driver[128], list[256];
	snprintf(driver, sizeof driver, "%s/driver/libcuda.so.1", place);
	snprintf(list, sizeof list, "relative:%s/path:%s/nvidia/cudnn/lib", place, place);
	setenv("CRICKET_LIBRARY_PATH", list, 1);
	snprintf(list, sizeof list, "%s/cache", place);
	setenv(soft ? "XDG_CACHE_HOME" : "CUDA_CACHE_PATH", list, 1);
	snprintf(list, sizeof list, "verbosity=1:log_path=%s/reports/report:x=y", place);
	setenv("UBSAN_OPTIONS", list, 1);
	if (ckt_landlock_begin(&landlock, true) ||
		ckt_cage_paths_allow(&landlock, driver, soft, network) ||
		ckt_landlock_enter(&landlock))
		return 90;
	return 0;
}

static int allowed(void)
{
	if (enter())
		return 90;
	if (!opens("./driver/libcuda.so.1", O_RDONLY))
		return 1;
	/* The list's directory, and the sibling of one of NVIDIA's packages. */
	if (!opens("./path", O_RDONLY) || !opens("./nvidia/cublas/lib", O_RDONLY))
		return 2;
	if (!opens("./cache/new", O_RDWR | O_CREAT) || !opens("./reports/r", O_RDWR | O_CREAT))
		return 3;
	if (!opens("/etc/passwd", O_RDONLY) || !opens("/proc/meminfo", O_RDONLY) ||
		!opens("/dev/null", O_RDWR))
		return 4;
	return opens("/usr/lib", O_RDONLY) ? 0 : 5;
}

static int denied(void)
{
	if (enter())
		return 90;
	if (opens("./secret", O_RDONLY) || errno != EACCES)
		return 1;
	if (opens("./path/new", O_RDWR | O_CREAT) || opens("./driver/new", O_RDWR | O_CREAT))
		return 2;
	/* What others may read natively, and root anyway. */
	if (opens("/etc/shadow", O_RDONLY) || opens("/etc/hostname", O_RDONLY) ||
		opens("/root", O_RDONLY) || opens("/home", O_RDONLY) || opens("/run", O_RDONLY))
		return 3;
	if (opens("/dev/tty", O_RDWR) || opens("/proc/sys/kernel/core_pattern", O_WRONLY))
		return 4;
	if (opens("/usr/ckt-cage", O_RDWR | O_CREAT) || opens("/ckt-cage", O_RDWR | O_CREAT))
		return 5;
	execl("/bin/sh", "sh", "-c", "true", (char *)NULL);
	return errno == EACCES ? 0 : 6;
}

static void *wait_for_end(void *ended)
{
	pthread_barrier_wait(ended);
	return NULL;
}

/* 0, or the error of naming a thread, which the library does by a file for threads but the own. */
static int name_thread(void)
{
	pthread_barrier_t ended;
	pthread_t thread;
	pthread_barrier_init(&ended, NULL, 2);
	if (pthread_create(&thread, NULL, wait_for_end, &ended))
		return -1;
	int result = pthread_setname_np(thread, "named");
	pthread_barrier_wait(&ended);
	pthread_join(thread, NULL);
	return result;
}

/* As NVIDIA's driver does; files of other processes stay as they are. */
static int names_threads(void)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/comm", getppid());
	soft = false;
	if (enter())
		return 90;
	if (name_thread())
		return 1;
	return opens(path, O_WRONLY) || opens("/proc/self/oom_score_adj", O_WRONLY) ? 2 : 0;
}

/* Names of hosts, for NCCL. */
static int names_hosts(void)
{
	if (enter())
		return 90;
	return opens("/etc/hosts", O_RDONLY) == (network && !soft) ? 0 : 1;
}

/* Another process of the server's compiles. */
static int executes_compiler(void)
{
	if (enter())
		return 90;
	execl("/usr/bin/cc", "cc", "--version", (char *)NULL);
	return errno == EACCES ? 0 : 1;
}

static void make(const char *name, bool directory)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", place, name);
	if (directory)
		mkdir(path, 0755);
	else
		close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

static void begin(void)
{
	static const char *const directories[] = {"driver", "path", "cache", "reports", "nvidia",
		"nvidia/cudnn", "nvidia/cudnn/lib", "nvidia/cublas", "nvidia/cublas/lib"};
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(place));
	for (unsigned i = 0; i < COUNT(directories); i++)
		make(directories[i], true);
	make("driver/libcuda.so.1", false);
	make("secret", false);
}

static void end(void)
{
	char command[128];
	snprintf(command, sizeof command, "rm -r %s", place);
	IS(system(command), 0);
}

static void test_paths(void)
{
	struct ckt_landlock landlock;
	MUST(ckt_landlock_begin(&landlock, true), 0);
	ckt_landlock_drop(&landlock);
	if (!landlock.abi) {
		puts("skipped: the kernel has no Landlock");
		return;
	}
	begin();
	for (int i = 0; i < 2; i++) {
		soft = i;
		IS(cage_child(allowed), 0);
		IS(cage_child(denied), 0);
		for (int k = 0; k < 2; k++) {
			network = k;
			if (access("/etc/hosts", R_OK) == 0)
				IS(cage_child(names_hosts), 0);
		}
	}
	if (access("/usr/bin/cc", X_OK) == 0) {
		soft = true;
		IS(cage_child(executes_compiler), 0);
	}
	IS(cage_child(names_threads), 0);
	end();
}

UNIT_SUITE(cage_paths, {"paths", test_paths})
