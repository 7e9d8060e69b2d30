/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/preload/device_files.h: the two files that are said to exist, in libraries whose calls are
 * redirected and in no other.
 */
#include "client/preload/device_files.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static bool has_driver(void)
{
	return access("/dev/nvidia0", F_OK) == 0 || access("/dev/nvidiactl", F_OK) == 0;
}

static void test_names(void)
{
	struct stat status;
	errno = 5;
	IS(ckt_preload_files_stat("/", &status), 0);
	YES(S_ISDIR(status.st_mode));
	IS(errno, 5);
	static const char *const others[] = {"/dev/nvidia", "/dev/nvidia1", "/dev/nvidia00",
		"/dev/nvidiactl0", "/dev/nvidia-uvm", "/dev/nvidia0/", "dev/nvidia0",
		"/proc/driver/nvidia", ""};
	for (size_t i = 0; i < COUNT(others) && !has_driver(); i++) {
		IS(ckt_preload_files_stat(others[i], &status), -1);
		IS(errno, ENOENT);
	}
	/* Other errors stay errors. */
	IS(ckt_preload_files_stat("/dev/null/nvidia0", &status), -1);
	IS(errno, ENOTDIR);
	static const struct {
		const char *path;
		unsigned minor;
	} rows[] = {{"/dev/nvidia0", 0}, {"/dev/nvidiactl", 255}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		errno = 5;
		memset(&status, 0xee, sizeof status);
		IS((i ? ckt_preload_files_xstat(1, rows[i].path, &status)
		      : ckt_preload_files_stat(rows[i].path, &status)),
			0);
		IS(errno, 5);
		YES(S_ISCHR(status.st_mode));
		IS(major(status.st_rdev), 195);
		IS(minor(status.st_rdev), rows[i].minor);
		if (!has_driver())
			IS(status.st_size, 0);
	}
}

static struct ckt_loaded_object object_of(const void *address)
{
	struct ckt_loaded_object object = {0};
	Dl_info info;
	struct link_map *map;
	if (dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 ||
		!ckt_loaded_object_from_link_map(&object, map))
		CU_FAIL_FATAL("no object");
	return object;
}

/* LAZY and NOW, whose table of addresses is read-only once it is filled. */
static void test_redirect(void)
{
	static const char *const libraries[] = {STAT_LAZY, STAT_NOW};
	for (size_t i = 0; i < COUNT(libraries); i++) {
		int (*call)(const char *path, struct stat *status),
			(*point)(const char *path, struct stat *status);
		struct stat status;
		void *handle = dlopen(libraries[i], i ? RTLD_NOW : RTLD_LAZY);
		CU_ASSERT_PTR_NOT_NULL_FATAL(handle);
		*(void **)&call = dlsym(handle, "call_stat");
		*(void **)&point = dlsym(handle, "point_stat");
		if (!has_driver())
			IS(point("/dev/nvidia0", &status), -1);
		struct ckt_loaded_object object = object_of((void *)call);
		YES(ckt_preload_files_redirect(&object) >= 1);
		IS(call("/dev/nvidia0", &status), 0);
		IS(point("/dev/nvidiactl", &status), 0);
		IS(call("/", &status), 0);
		IS(call("/nowhere", &status), -1);
		/* This program's own calls are as they were. */
		if (!has_driver())
			IS(stat("/dev/nvidia0", &status), -1);
	}
	/* An object without a dynamic section has nothing. */
	struct ckt_loaded_object none = {.path = ""};
	IS(ckt_preload_files_redirect(&none), 0);
}

UNIT_SUITE(files, {"names", test_names}, {"redirect", test_redirect})
