/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/client/client.c: a session's client in an image: copied whole, and refused without what it
 * takes to bring it back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/client/client.h"
#include "ctl/command.h"
#include "ctl/server.h"
#include "inside.h"

static void test_copy(void)
{
	struct stat st;
	IS(mkdir(path_in("from"), 0700), 0);
	IS(mkdir(path_in("to"), 0700), 0);
	int from = open(path_in("from"), O_RDONLY | O_DIRECTORY),
	    to = open(path_in("to"), O_RDONLY | O_DIRECTORY);
	IS(ckt_ctl_client_copy(from, to), 0); /* none: nothing to do */
	NO(exists(path_in("to/client")));
	IS(mkdir(path_in("from/client"), 0700), 0);
	write_file(path_in("from/client/client.json"), "{}");
	write_file(path_in("from/client/pages-1.img"), "pages");
	IS(symlink("/etc/passwd", path_in("from/client/link")), 0);
	IS(mkdir(path_in("from/client/inner"), 0700), 0);
	IS(ckt_ctl_client_copy(from, to), 0);
	TEXT(read_file(path_in("to/client/pages-1.img")), "pages");
	TEXT(read_file(path_in("to/client/client.json")), "{}");
	/* plain files alone */
	NO(exists(path_in("to/client/link")) || exists(path_in("to/client/inner")));
	IS(stat(path_in("to/client/client.json"), &st), 0);
	IS(st.st_mode & 07777, 0600);
	IS(ckt_ctl_client_copy(from, to), -EEXIST);
	close(from);
	close(to);
}

static int find(const struct ckt_ctl_args *args)
{
	static struct ckt_ctl_client client;
	struct ckt_ctl_server server;
	int status = ckt_ctl_connect(args, &server);
	if (!status)
		status = ckt_ctl_client_find(&server, args->words[0], &client);
	ckt_ctl_disconnect(&server);
	IS(client.fd, -1);
	return status;
}

static int open_one(const struct ckt_ctl_args *args)
{
	static struct ckt_ctl_client client;
	int status = ckt_ctl_client_open(args->words[0], &client);
	if (!status)
		ckt_ctl_client_close(&client);
	return status;
}

/* Where there is no CRIU it is said before anything stands still, and nobody is asked. */
static void test_no_criu(void)
{
	char *path = getenv("PATH"), *kept = path ? strdup(path) : NULL;
	IS(mkdir(path_in("bin"), 0700), 0);
	setenv("PATH", path_in("bin"), 1);
	begin();
	IS(run(find, (struct ckt_ctl_args){0}, "0123", NULL), CKT_EXIT_REFUSED);
	HAS(err, "CRIU");
	IS(seen_count, 0);
	IS(run(open_one, (struct ckt_ctl_args){0}, path_in("from"), NULL), CKT_EXIT_REFUSED);
	HAS(err, "CRIU");
	/* One that is too old. */
	write_file(path_in("bin/criu"), "#!/bin/sh\necho Version: 3.17\n");
	IS(chmod(path_in("bin/criu"), 0755), 0);
	IS(run(find, (struct ckt_ctl_args){0}, "0123", NULL), CKT_EXIT_REFUSED);
	IS(seen_count, 0);
	if (kept)
		setenv("PATH", kept, 1);
	free(kept);
}

UNIT_SUITE(client, {"copy", test_copy}, {"no CRIU", test_no_criu})
