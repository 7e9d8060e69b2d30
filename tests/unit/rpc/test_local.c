/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/transport/local.c: where a server that was told nothing has its socket (rpc/identity.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/identity.h"
#include "tests/unit/suite.h"

static char directory[64], message[256];

static int ask(const char *runtime, char ret_path[256])
{
	if (runtime)
		setenv("XDG_RUNTIME_DIR", runtime, 1);
	else
		unsetenv("XDG_RUNTIME_DIR");
	*ret_path = *message = 0;
	return ckt_local_socket_path(ret_path, 256, message, sizeof message);
}

static void test_root(void)
{
	char path[256];
	if (geteuid())
		return;
	IS(ask(NULL, path), 0);
	TEXT(path, "/run/cricket/socket");
	/* Not root's: it would depend on who became root. */
	IS(ask("/run/user/0", path), 0);
	TEXT(path, "/run/cricket/socket");
}

/* As a user whom nobody is, where this is root; without a directory of theirs. */
static bool become_user(void)
{
	bool became = geteuid() == 0 && seteuid(1000000000 + (uid_t)getpid()) == 0;
	snprintf(directory, sizeof directory, "/tmp/cricket-%u", (unsigned)geteuid());
	return became;
}

static void test_runtime_directory(void)
{
	char path[256], expected[256];
	bool became = become_user();
	static const char *const no_paths[] = {NULL, "", "relative", "./run"};
	struct stat st;
	IS(ask("/somewhere", path), 0);
	TEXT(path, "/somewhere/cricket/socket");
	snprintf(expected, sizeof expected, "%s/socket", directory);
	for (size_t i = 0; became && i < COUNT(no_paths); i++) {
		IS(ask(no_paths[i], path), 0);
		TEXT(path, expected);
		MUST(lstat(directory, &st), 0);
		IS(st.st_mode, S_IFDIR | 0700);
		IS(st.st_uid, geteuid());
		/* The second time it is there, and that is as good. */
		IS(ask(no_paths[i], path), 0);
		IS(rmdir(directory), 0);
	}
	if (became)
		IS(seteuid(0), 0);
}

/* Whoever else may write there could listen in the server's place. */
static void test_foreign_directory(void)
{
	static const struct {
		mode_t mode;
		bool is_root, link, file;
		int result;
	} rows[] = {
		{.mode = 0700, .result = 0},
		{.mode = 0755, .result = 0},
		{.mode = 0720, .result = -EPERM},
		{.mode = 0702, .result = -EPERM},
		{.mode = 0700, .is_root = true, .result = -EPERM},
		{.mode = 0600, .file = true, .result = -EPERM},
		{.mode = 0700, .link = true, .result = -EPERM},
	};
	char path[256];
	for (size_t i = 0; i < COUNT(rows); i++) {
		if (!become_user())
			return;
		uid_t user = geteuid();
		if (rows[i].is_root)
			MUST(seteuid(0), 0);
		if (rows[i].link) {
			MUST(symlink("/tmp", directory), 0);
		} else if (rows[i].file) {
			FILE *file = fopen(directory, "w");
			MUST(file != NULL, 1);
			fclose(file);
		} else {
			MUST(mkdir(directory, 0700), 0);
		}
		if (!rows[i].link)
			MUST(chmod(directory, rows[i].mode), 0);
		IS(seteuid(0), 0);
		MUST(seteuid(user), 0);
		IS(ask(NULL, path), rows[i].result);
		if (rows[i].result) {
			HAS(message, directory);
			HAS(message, "XDG_RUNTIME_DIR");
			TEXT(path, "");
		}
		IS(seteuid(0), 0);
		IS(remove(directory), 0);
	}
}

static void test_short_buffer(void)
{
	char path[8];
	bool became = become_user();
	setenv("XDG_RUNTIME_DIR", "/somewhere", 1);
	IS(ckt_local_socket_path(path, sizeof path, message, sizeof message), 0);
	TEXT(path, "/somewh");
	if (became)
		IS(seteuid(0), 0);
}

UNIT_SUITE(local, {"root", test_root}, {"XDG_RUNTIME_DIR", test_runtime_directory},
	{"in /tmp", test_foreign_directory}, {"short buffer", test_short_buffer})
