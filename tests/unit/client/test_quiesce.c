/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn/quiesce.c (client/conn/conn.h): nothing is open while somebody on this host holds the
 * process, and only then.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/conn/settings.h"
#include "conn_parts.h"
#include "tests/unit/suite.h"

static char directory[] = "/tmp/ckt-quiesce-XXXXXX", hold[64], quiet[64];

static void set_up(void)
{
	/* A name that was made may end in an X, too. */
	if (strcmp(directory + strlen(directory) - 6, "XXXXXX") == 0)
		MUST(mkdtemp(directory) != NULL, 1);
	snprintf(hold, sizeof hold, "%s/%s.hold", directory, PARTS_SESSION);
	snprintf(quiet, sizeof quiet, "%s/%s.quiet", directory, PARTS_SESSION);
	snprintf(ckt_settings.state_dir, sizeof ckt_settings.state_dir, "%s", directory);
}

static void write_hold(const char *text)
{
	FILE *file = fopen(hold, "w");
	fputs(text, file);
	fclose(file);
}

/* Nobody who may be waited for: the connection stays as it is. */
static void test_nobody(void)
{
	static const char *const texts[] = {NULL, "", "\n", "0\n", "-1\n", "nobody\n"};
	int peer = parts_open();
	set_up();
	for (size_t i = 0; i < COUNT(texts); i++) {
		if (texts[i])
			write_hold(texts[i]);
		ckt_conn_quiesce(&ckt_conn);
		YES(ckt_conn.transport.fd >= 0);
		YES(access(quiet, F_OK) != 0);
	}
	/* A link might lead anywhere. */
	unlink(hold);
	MUST(symlink("/proc/sys/kernel/pid_max", hold), 0);
	ckt_conn_quiesce(&ckt_conn);
	YES(ckt_conn.transport.fd >= 0);
	unlink(hold);
	/* Without a state directory there is nowhere to look. */
	ckt_settings.state_dir[0] = 0;
	ckt_conn_quiesce(&ckt_conn);
	YES(ckt_conn.transport.fd >= 0);
	IS(ckt_conn.generation, 1);
	parts_close(peer);
	rmdir(directory);
	strcpy(directory, "/tmp/ckt-quiesce-XXXXXX");
}

static int said_pid;
static bool was_closed;

static void *let_go(void *unused)
{
	for (int i = 0; i < 60000 && access(quiet, F_OK); i++)
		poll(NULL, 0, 1);
	FILE *file = fopen(quiet, "r");
	if (file && fscanf(file, "%d", &said_pid) != 1)
		said_pid = -1;
	if (file)
		fclose(file);
	was_closed = ckt_conn.transport.fd == -1;
	unlink(hold);
	return NULL;
}

static void test_held(void)
{
	pthread_t thread;
	char text[32];
	int peer = parts_open();
	set_up();
	snprintf(text, sizeof text, "%d\n", (int)getpid());
	write_hold(text);
	MUST(pthread_create(&thread, NULL, let_go, NULL), 0);
	ckt_conn_quiesce(&ckt_conn);
	pthread_join(thread, NULL);
	IS(said_pid, getpid());
	YES(was_closed);
	YES(access(quiet, F_OK) != 0);
	/* It went on where it stood: the session is the same. */
	IS(ckt_conn.generation, 1);
	parts_close(peer);
}

/* Who wanted it has died: nobody else would let it go. */
static void test_holder_dead(void)
{
	char text[32];
	int peer = parts_open();
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	MUST(waitpid(child, NULL, 0), child);
	set_up();
	snprintf(text, sizeof text, "%d\n", (int)child);
	write_hold(text);
	ckt_conn_quiesce(&ckt_conn);
	YES(access(hold, F_OK) != 0);
	YES(access(quiet, F_OK) != 0);
	IS(ckt_conn.transport.fd, -1);
	parts_close(peer);
	IS(rmdir(directory), 0);
	ckt_settings.state_dir[0] = 0;
}

UNIT_SUITE(quiesce, {"nobody", test_nobody}, {"held", test_held}, {"holder dead", test_holder_dead})
