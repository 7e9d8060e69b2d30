/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/notice_file.c: a notice is whole or not there; links, pipes, short files and,
 * where a lock is asked for, files of dead processes are none.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/worker/session/notice_file.h"
#include "tests/unit/worker/inside.h"

static char directory[] = "/tmp/notices.XXXXXX", path[64], link_path[64];

static bool is_there(const char *name, bool locked, const char *words)
{
	char got[6] = "";
	return ckt_notice_read(AT_FDCWD, name, locked, got, sizeof got) && !strcmp(got, words);
}

static void test_files(void)
{
	int fd = -1;
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	snprintf(path, sizeof path, "%s/notice", directory);
	snprintf(link_path, sizeof link_path, "%s/link", directory);
	NO(is_there(path, false, "first"));
	MUST(ckt_notice_leave(path, "first", 6, NULL), 0);
	YES(is_there(path, false, "first"));
	NO(is_there(path, true, "first"));
	/* The next one takes its place. */
	MUST(ckt_notice_leave(path, "again", 6, &fd), 0);
	YES(is_there(path, false, "again"));
	YES(is_there(path, true, "again"));
	close(fd);
	NO(is_there(path, true, "again"));
	MUST(symlink(path, link_path), 0);
	NO(is_there(link_path, false, "again"));
	MUST(unlink(link_path), 0);
	MUST(mkfifo(link_path, 0600), 0);
	NO(is_there(link_path, false, "again"));
	MUST(unlink(link_path), 0);
	MUST(truncate(path, 3), 0);
	NO(is_there(path, false, "aga"));
	MUST(unlink(path), 0);
	/* Nothing is left of one that could not be made. */
	MUST(mkdir(path, 0700), 0);
	YES(ckt_notice_leave(path, "third", 6, &fd) < 0);
	MUST(rmdir(path), 0);
	MUST(rmdir(directory), 0);
	IS(ckt_notice_leave(path, "third", 6, NULL), -ENOENT);
}

static void test_server(void)
{
	static struct ckt_worker worker;
	IS(ckt_notice_server_length(&worker), 0);
	strcpy(worker.socket, "/run/cricket.d/0123");
	IS(ckt_notice_server_length(&worker), strlen("/run/cricket.d"));
}

UNIT_SUITE(notice_file, {"files", test_files}, {"server", test_server})
