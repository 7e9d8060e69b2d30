/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/paths.c: where our own files lie: CRICKET_LIBEXEC or beside the executable, and
 * directories made above a file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/paths.h"

static void test_find(void)
{
	char path[CKT_PATH_MAX] = "before";
	setenv("CRICKET_LIBEXEC", "/nowhere", 1);
	IS(ckt_paths_find_worker(path), -ENOENT);
	IS(ckt_paths_find_soft(path), -ENOENT);
	IS(mkdir(path_in("libexec"), 0755), 0);
	IS(mkdir(path_in("libexec/soft"), 0755), 0);
	setenv("CRICKET_LIBEXEC", path_in("libexec"), 1);
	write_file(path_in("libexec/cricket-worker"), "x", 0644);
	if (geteuid() != 0)
		IS(ckt_paths_find_worker(path), -ENOENT); /* not executable */
	IS(chmod(path_in("libexec/cricket-worker"), 0755), 0);
	IS(ckt_paths_find_worker(path), 0);
	HAS(path, "/libexec/cricket-worker");
	write_file(path_in("libexec/soft/libcuda.so.1"), "x", 0644);
	/* Without links and dots. */
	setenv("CRICKET_LIBEXEC", path_in("libexec/soft/.."), 1);
	IS(ckt_paths_find_soft(path), 0);
	HAS(path, "/libexec/soft/libcuda.so.1");
	CU_ASSERT_PTR_NULL(strstr(path, ".."));
	IS(ckt_paths_find_inside(path), -ENOENT);
	IS(mkdir(path_in("libexec/inside"), 0755), 0);
	write_file(path_in("libexec/inside/libcuda.so.1"), "x", 0644);
	IS(ckt_paths_find_inside(path), 0);
	HAS(path, "/libexec/inside/libcuda.so.1");
	unsetenv("CRICKET_LIBEXEC");
	/* This program lies where neither is. */
	IS(ckt_paths_find_worker(path), -ENOENT);
}

static void test_parent(void)
{
	struct stat st;
	char longest[CKT_PATH_MAX + 10];
	IS(ckt_paths_make_parent(path_in("p/q/r/file")), 0);
	IS(stat(path_in("p/q/r"), &st), 0);
	IS(st.st_mode & 07777, 0755);
	YES(stat(path_in("p/q/r/file"), &st) != 0);
	IS(ckt_paths_make_parent(path_in("p/q/r/file")), 0);
	IS(ckt_paths_make_parent("/file"), 0);
	write_file(path_in("p/file"), "x", 0644);
	IS(ckt_paths_make_parent(path_in("p/file/x/y")), -ENOTDIR);
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	IS(ckt_paths_make_parent(longest), -ENAMETOOLONG);
}

UNIT_SUITE(paths, {"find", test_find}, {"parent", test_parent})
