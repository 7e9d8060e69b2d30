/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/certificate/certificate_files.c: all files of a directory or none of them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/certificate/certificate_files.h"
#include "inside.h"

static struct ckt_ctl_problem problem;

static int put(struct ckt_ctl_staged *staged, const char *name, const char *text)
{
	return ckt_ctl_staged_put(staged, name, 0640, text, strlen(text), &problem);
}

static void test_fresh(void)
{
	struct ckt_ctl_staged staged;
	struct stat st;
	char path[256], file[300];
	snprintf(path, sizeof path, "%s", path_in("deep/er/fresh"));
	snprintf(file, sizeof file, "%s/one", path);
	MUST(ckt_ctl_staged_begin(path, &staged, &problem), 0);
	IS(put(&staged, "one", "1"), 0);
	NO(exists(path));
	ckt_ctl_staged_end(&staged);
	/* Neither the directory nor its other name is left. */
	MUST(rmdir(path_in("deep/er")), 0);
	char again[300];
	snprintf(again, sizeof again, "%s///", path);
	MUST(ckt_ctl_staged_begin(again, &staged, &problem), 0);
	IS(put(&staged, "one", "1"), 0);
	IS(put(&staged, "two", ""), 0);
	IS(ckt_ctl_staged_keep(&staged, &problem), 0);
	ckt_ctl_staged_end(&staged);
	TEXT(read_file(file), "1");
	MUST(stat(file, &st), 0);
	IS(st.st_mode & 07777, 0640);
	MUST(stat(path, &st), 0);
	IS(st.st_mode & 07777, 0700);
	/* Somebody makes the directory meanwhile. */
	snprintf(path, sizeof path, "%s", path_in("deep/er/other"));
	MUST(ckt_ctl_staged_begin(path, &staged, &problem), 0);
	IS(put(&staged, "one", "1"), 0);
	MUST(mkdir(path, 0700), 0);
	IS(ckt_ctl_staged_keep(&staged, &problem), -EEXIST);
	ckt_ctl_staged_end(&staged);
	IS(rmdir(path), 0);
}

static void test_replace(void)
{
	struct ckt_ctl_staged staged;
	char path[256], one[300], waiting[300];
	snprintf(path, sizeof path, "%s", path_in("there"));
	snprintf(one, sizeof one, "%s/one", path);
	snprintf(waiting, sizeof waiting, "%s/.one.new", path);
	MUST(mkdir(path, 0755), 0);
	write_file(one, "old");
	/* Of a process that was killed. */
	write_file(waiting, "rubbish");
	MUST(ckt_ctl_staged_begin(path, &staged, &problem), 0);
	IS(put(&staged, "one", "new"), 0);
	TEXT(read_file(one), "old");
	ckt_ctl_staged_end(&staged);
	TEXT(read_file(one), "old");
	NO(exists(waiting));
	MUST(ckt_ctl_staged_begin(path, &staged, &problem), 0);
	IS(put(&staged, "one", "new"), 0);
	IS(ckt_ctl_staged_keep(&staged, &problem), 0);
	ckt_ctl_staged_end(&staged);
	TEXT(read_file(one), "new");
	NO(exists(waiting));
	/* A link is not written through. */
	MUST(symlink(one, waiting), 0);
	MUST(ckt_ctl_staged_begin(path, &staged, &problem), 0);
	IS(put(&staged, "one", "again"), 0);
	TEXT(read_file(one), "new");
	ckt_ctl_staged_end(&staged);
	chmod(path, 0775);
	IS(ckt_ctl_staged_begin(path, &staged, &problem), -EPERM);
	HAS(problem.text, "run chmod go-w on it");
	ckt_ctl_staged_end(&staged);
}

static void test_paths(void)
{
	struct ckt_ctl_staged staged;
	char path[CKT_CTL_STAGED_PATH + 1];
	memset(path, 'a', sizeof path);
	path[sizeof path - 1] = 0;
	IS(ckt_ctl_staged_begin(path, &staged, &problem), -ENAMETOOLONG);
	ckt_ctl_staged_end(&staged);
	IS(ckt_ctl_staged_begin("", &staged, &problem), -ENAMETOOLONG);
	ckt_ctl_staged_end(&staged);
	write_file(path_in("file"), "");
	IS(ckt_ctl_staged_begin(path_in("file"), &staged, &problem), -ENOTDIR);
	ckt_ctl_staged_end(&staged);
	IS(ckt_ctl_staged_begin(path_in("file/below"), &staged, &problem), -ENOTDIR);
	ckt_ctl_staged_end(&staged);
}

UNIT_SUITE(
	certificate_files, {"fresh", test_fresh}, {"replace", test_replace}, {"paths", test_paths})
