/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/libraries.c: what workers are told of where libraries lie, and which
 * --library-path is none.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/libraries.h"

static struct ckt_server fresh;

static const char *variable(const char *name)
{
	size_t length = strlen(name);
	for (unsigned i = 0; i < fresh.library_variable_count; i++)
		if (!strncmp(fresh.library_variables[i], name, length) &&
			fresh.library_variables[i][length] == '=')
			return fresh.library_variables[i] + length + 1;
	return "(none)";
}

static int init(const char *path, char message[512])
{
	ckt_daemon_libraries_fini(&fresh);
	fresh.options.library_path = (char *)path;
	*message = 0;
	return ckt_daemon_libraries_init(&fresh, message, 512);
}

static void test_told(void)
{
	char message[512], owner[16], two[1024];
	snprintf(owner, sizeof owner, "%u", geteuid());
	snprintf(fresh.driver.path, sizeof fresh.driver.path, "/usr/lib/libcuda.so.1");
	setenv("CUDA_HOME", "/opt/cuda-x", 1);
	setenv("VIRTUAL_ENV", "relative", 1);
	setenv("HOME", "/home/operator", 1);
	IS(init(NULL, message), 0);
	TEXT(variable("CRICKET_LIBRARY_OWNER"), owner);
	TEXT(variable("CRICKET_LIBRARY_PATH"), "(none)");
	TEXT(variable("CRICKET_LIBRARY_SOFT"), "(none)");
	HAS(variable("CRICKET_LIBRARY_ROOTS"), "/opt/cuda-x");
	HAS(variable("CRICKET_LIBRARY_ROOTS"), "/home/operator/.local");
	CU_ASSERT_PTR_NULL(strstr(variable("CRICKET_LIBRARY_ROOTS"), "relative"));
	fresh.driver.soft = true;
	IS(mkdir(path_in("libs-a"), 0755), 0);
	IS(mkdir(path_in("libs-b"), 0755), 0);
	snprintf(two, sizeof two, "%s:", path_in("libs-a"));
	strcat(two, path_in("libs-b"));
	IS(init(two, message), 0);
	TEXT(variable("CRICKET_LIBRARY_PATH"), two);
	TEXT(variable("CRICKET_LIBRARY_SOFT"), "/usr/lib:/usr/lib/libs");
	ckt_daemon_libraries_fini(&fresh);
	IS(fresh.library_variable_count, 0);
}

static void test_refused(void)
{
	char message[512];
	IS(init("/nowhere/at/all", message), -EINVAL);
	HAS(message, "--library-path: '/nowhere/at/all': No such file or directory");
	write_file(path_in("libs-file"), "x", 0644);
	IS(init(path_in("libs-file"), message), -EINVAL);
	HAS(message, "Not a directory");
	IS(mkdir(path_in("libs-open"), 0755), 0);
	IS(chmod(path_in("libs-open"), 0777), 0);
	IS(init(path_in("libs-open"), message), -EINVAL);
	HAS(message, "other users can write");
	IS(chmod(path_in("libs-open"), 0755), 0);
	IS(init(path_in("libs-open"), message), 0);
	if (geteuid() == 0) {
		IS(chown(path_in("libs-open"), 4242, 4242), 0);
		IS(init(path_in("libs-open"), message), -EINVAL);
		HAS(message, "belongs to user 4242");
	}
	ckt_daemon_libraries_fini(&fresh);
}

/* The soft GPU's own libraries where only root goes: copies are told. */
static void test_out_of_reach(void)
{
	char message[512], path[CKT_PATH_MAX + 32], copies[CKT_PATH_MAX];
	if (geteuid() != 0)
		return; /* its precondition */
	IS(mkdir(path_in("soft"), 0755), 0);
	IS(mkdir(path_in("soft/libs"), 0700), 0);
	IS(mkdir(path_in("soft/libs/libdir.so.1"), 0700), 0);
	snprintf(fresh.driver.path, sizeof fresh.driver.path, "%s", path_in("soft/libcuda.so.1"));
	fresh.driver.soft = true;
	fresh.user = (struct ckt_worker_user){.change = true, .uid = 65534, .gid = 65534};
	write_file(path_in("soft/libcuda.so.1"), "driver", 0755);
	/* Nothing there, nothing to copy. */
	IS(init(NULL, message), 0);
	HAS(variable("CRICKET_LIBRARY_SOFT"), "/soft/libs");
	write_file(path_in("soft/libs/libcublas.so.13"), "library", 0700);
	IS(init(NULL, message), 0);
	snprintf(copies, sizeof copies, "%s", variable("CRICKET_LIBRARY_SOFT"));
	IS(strncmp(copies, "/run/cricket/libexec/", 21), 0);
	snprintf(path, sizeof path, "%s/libcublas.so.13", copies);
	TEXT(read_file(path), "library");
	snprintf(path, sizeof path, "%s/libcuda.so.1", copies);
	IS(access(path, F_OK), -1);
	snprintf(path, sizeof path, "%s/libcublas.so.13", copies);
	unlink(path);
	IS(rmdir(copies), 0);
	fresh.user = (struct ckt_worker_user){0};
	ckt_daemon_libraries_fini(&fresh);
}

UNIT_SUITE(libraries, {"told", test_told}, {"refused", test_refused},
	{"out_of_reach", test_out_of_reach})
