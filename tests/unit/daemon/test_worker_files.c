/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/worker_files.c: copies of our own files where the workers' user reaches
 * them: named by their contents, shared, and never somebody else's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/worker_files.h"

static void test_refused(void)
{
	char path[CKT_PATH_MAX];
	snprintf(path, sizeof path, "%s", path_in("no-such"));
	IS(ckt_daemon_files_copy(path), -ENOENT);
	snprintf(path, sizeof path, "%s", path_in("empty"));
	write_file(path, "", 0644);
	IS(ckt_daemon_files_copy(path), -EINVAL);
	TEXT(path, path_in("empty")); /* what failed is left as it was */
}

static void test_copy(void)
{
	char path[CKT_PATH_MAX], again[CKT_PATH_MAX], other[CKT_PATH_MAX];
	struct stat st, then;
	if (geteuid() != 0)
		return; /* its precondition */
	snprintf(path, sizeof path, "%s", path_in("reach-test"));
	write_file(path, "contents of reach-test", 0700);
	strcpy(again, path);
	MUST(ckt_daemon_files_copy(path), 0);
	IS(strncmp(path, "/run/cricket/libexec/", 21), 0);
	TEXT(strrchr(path, '/'), "/reach-test");
	TEXT(read_file(path), "contents of reach-test");
	IS(stat(path, &st), 0);
	IS(st.st_mode & 07777, 0755);
	/* Shared; mended where somebody cut it; another file with other contents. */
	MUST(ckt_daemon_files_copy(again), 0);
	TEXT(again, path);
	IS(stat(again, &then), 0);
	IS(then.st_ino, st.st_ino);
	IS(truncate(path, 3), 0);
	snprintf(again, sizeof again, "%s", path_in("reach-test"));
	MUST(ckt_daemon_files_copy(again), 0);
	TEXT(read_file(path), "contents of reach-test");
	snprintf(other, sizeof other, "%s", path_in("reach-test"));
	write_file(other, "other contents", 0700);
	MUST(ckt_daemon_files_copy(other), 0);
	YES(strcmp(other, path) != 0);
	const char *const made[] = {path, other};
	for (int i = 0; i < 2; i++) {
		char parent[CKT_PATH_MAX];
		snprintf(parent, sizeof parent, "%s", made[i]);
		unlink(parent);
		*strrchr(parent, '/') = 0;
		IS(rmdir(parent), 0); /* nothing temporary is left beside it */
	}
}

static void test_together(void)
{
	char first[CKT_PATH_MAX], second[CKT_PATH_MAX], copies[CKT_PATH_MAX], again[CKT_PATH_MAX],
		path[CKT_PATH_MAX + 16];
	const char *const files[] = {first, second};
	snprintf(first, sizeof first, "%s", path_in("reach-one"));
	snprintf(second, sizeof second, "%s", path_in("reach-two"));
	IS(ckt_daemon_files_copy_together(files, 0, copies), -EINVAL);
	IS(ckt_daemon_files_copy_together(files, 2, copies), -ENOENT);
	if (geteuid() != 0)
		return; /* its precondition */
	write_file(first, "one", 0700);
	write_file(second, "two", 0700);
	MUST(ckt_daemon_files_copy_together(files, 2, copies), 0);
	snprintf(path, sizeof path, "%s/reach-one", copies);
	TEXT(read_file(path), "one");
	snprintf(path, sizeof path, "%s/reach-two", copies);
	TEXT(read_file(path), "two");
	MUST(ckt_daemon_files_copy_together(files, 2, again), 0);
	TEXT(again, copies);
	unlink(path);
	/* Made whole again; and other files are no copy of these. */
	MUST(ckt_daemon_files_copy_together(files, 2, again), 0);
	TEXT(read_file(path), "two");
	MUST(ckt_daemon_files_copy_together(files, 1, again), 0);
	YES(strcmp(again, copies) != 0);
	const char *const made[] = {copies, again};
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/reach-one", made[i]);
		unlink(path);
		snprintf(path, sizeof path, "%s/reach-two", made[i]);
		unlink(path);
		IS(rmdir(made[i]), 0);
	}
}

UNIT_SUITE(reach, {"refused", test_refused}, {"copy", test_copy}, {"together", test_together})
