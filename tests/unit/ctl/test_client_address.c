/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/client_address.c: where a client looks for its session: the file is whole, its directories
 * are this user's alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/client_address.h"
#include "inside.h"

static char message[512];

static void test_write(void)
{
	struct stat st;
	setenv("CRICKET_STATE_DIR", path_in("state/a/b"), 1);
	IS(ckt_ctl_state_write("0123456789ab", "host:7350", message, sizeof message), 0);
	TEXT(read_file(path_in("state/a/b/0123456789ab")), "host:7350\n");
	IS(stat(path_in("state/a/b/0123456789ab"), &st), 0);
	IS(st.st_mode & 07777, 0600);
	IS(stat(path_in("state/a"), &st), 0);
	IS(st.st_mode & 07777, 0700);
	IS(ckt_ctl_state_write("0123456789ab", "other", message, sizeof message), 0);
	TEXT(read_file(path_in("state/a/b/0123456789ab")), "other\n");
	/* Nothing temporary is left. */
	IS(unlink(path_in("state/a/b/0123456789ab")), 0);
	IS(rmdir(path_in("state/a/b")), 0);
	unsetenv("CRICKET_STATE_DIR");
}

static void test_places(void)
{
	char *home = getenv("HOME"), *kept = home ? strdup(home) : NULL, long_path[5000];
	setenv("HOME", path_in("home"), 1);
	IS(ckt_ctl_state_write("0123456789ab", "x", message, sizeof message), 0);
	TEXT(read_file(path_in("home/.local/state/cricket/0123456789ab")), "x\n");
	unsetenv("HOME");
	IS(ckt_ctl_state_write("0123456789ab", "x", message, sizeof message), -ENOENT);
	HAS(message, "set HOME or CRICKET_STATE_DIR");
	memset(long_path, 'x', sizeof long_path - 1);
	long_path[0] = '/';
	long_path[sizeof long_path - 1] = 0;
	setenv("CRICKET_STATE_DIR", long_path, 1);
	IS(ckt_ctl_state_write("0123456789ab", "x", message, sizeof message), -ENAMETOOLONG);
	write_file(path_in("plain"), "x");
	setenv("CRICKET_STATE_DIR", path_in("plain/x"), 1);
	IS(ckt_ctl_state_write("0123456789ab", "x", message, sizeof message), -ENOTDIR);
	HAS(message, "plain/x");
	unsetenv("CRICKET_STATE_DIR");
	if (kept)
		setenv("HOME", kept, 1);
	free(kept);
}

UNIT_SUITE(state, {"write", test_write}, {"places", test_places})
