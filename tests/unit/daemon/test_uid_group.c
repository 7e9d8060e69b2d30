/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/uid_group.c: one user id for each owner, drawn, shared, cleaned and drawn
 * again, also by the next server.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/uid_group.h"
#include "server/daemon/session/uid_processes.h"

enum { FIRST = 1804300, LAST = 1804301 };

static const struct ckt_identity alice = {.kind = CKT_IDENTITY_TOKEN, .uid = 0x80000001},
				 bob = {.kind = CKT_IDENTITY_USER, .uid = 4248},
				 here = {.kind = CKT_IDENTITY_ADDRESS, .network = {1}},
				 there = {.kind = CKT_IDENTITY_ADDRESS, .network = {2}},
				 nobody = {.kind = CKT_IDENTITY_NONE};

static struct ckt_worker_user kept;
static char message[512];

static void begin(const char *range)
{
	kept = server.user;
	server.user.change = geteuid() == 0;
	server.user.uid = server.user.gid = 65533;
	server.user.groups[0] = 44;
	server.user.group_count = 1;
	server.options.uid_range = (char *)range;
	MUST(ckt_uid_groups_init(&server, message, sizeof message), 0);
}

static void end(void)
{
	ckt_uid_groups_fini(&server);
	server.user = kept;
	server.options.uid_range = NULL;
}

static struct ckt_uid_group *join(const struct ckt_identity *owner)
{
	struct ckt_uid_group *group = NULL;
	message[0] = 0;
	IS(ckt_uid_group_join(&server, owner, &group, message, sizeof message), 0);
	return group;
}

static int refused(const struct ckt_identity *owner)
{
	struct ckt_uid_group *group = NULL;
	int result = ckt_uid_group_join(&server, owner, &group, message, sizeof message);
	YES(!group);
	return result;
}

static uid_t uid_of(const struct ckt_uid_group *group)
{
	struct ckt_worker_user user;
	ckt_uid_group_user(&server, group, &user);
	/* Devices may be a group's. */
	YES(user.change && user.gid == user.uid && user.group_count == 1 && user.groups[0] == 44);
	return user.uid;
}

static const char *record(uid_t uid)
{
	char name[64];
	snprintf(name, sizeof name, "s.d/uid-%u", uid);
	return path_in(name);
}

static bool is_free(void *uid)
{
	return access(record(*(uid_t *)uid), F_OK) != 0;
}

static void test_without(void)
{
	struct ckt_worker_user user;
	begin(NULL);
	YES(!join(&alice));
	ckt_uid_group_user(&server, NULL, &user);
	IS(user.uid, 65533);
	YES(!ckt_uid_group_adopt(&server, FIRST));
	NO(ckt_uid_groups_describe(&server, message, sizeof message));
	ckt_uid_group_leave(NULL);
	end();
	/* Tests of other parts have none at all. */
	YES(!join(&alice));
	YES(!ckt_uid_group_adopt(&server, FIRST));
	ckt_uid_groups_settle(&server);
}

static void test_bad(void)
{
	char range[64];
	kept = server.user;
	snprintf(range, sizeof range, "65000-66000");
	server.options.uid_range = range;
	IS(ckt_uid_groups_init(&server, message, sizeof message), -EINVAL);
	HAS(message, "--uid-range: '65000-66000' holds 65534, which is the user nobody");
	server.options.uid_range = (char *)"1804300-1804301";
	server.user.change = false;
	IS(ckt_uid_groups_init(&server, message, sizeof message), 0);
	HAS(message, "--uid-range: the workers of all owners share the server's user");
	YES(!join(&alice));
	end();
}

static void test_draw(void)
{
	if (geteuid() != 0) {
		printf("skipped draw: not root\n");
		return;
	}
	begin("1804300-1804301");
	/* What tries out whether workers can be executed does it as one of them. */
	IS(server.user.uid, FIRST);
	YES(ckt_uid_groups_describe(&server, message, sizeof message));
	HAS(message, "1804300 to 1804301");
	struct ckt_uid_group *a = join(&alice), *again = join(&alice), *b = join(&nobody);
	YES(a && b && a == again && a != b);
	/* Sessions of nobody are one group, wherever they come from. */
	YES(join(&here) == b && join(&there) == b);
	uid_t ua = uid_of(a), ub = uid_of(b);
	YES(ua != ub && ua >= FIRST && ua <= LAST && ub >= FIRST && ub <= LAST);
	IS(strcmp(read_file(record(ua)), "2147483649"), 0);
	IS(strcmp(read_file(record(ub)), "anonymous"), 0);
	IS(refused(&bob), -EUSERS);
	HAS(message, "no user id of --uid-range 1804300-1804301 is free");
	/* Not before the last one is gone. */
	ckt_uid_group_leave(a);
	IS(refused(&bob), -EUSERS);
	ckt_uid_group_leave(a);
	YES(run_until(is_free, &ua));
	struct ckt_uid_group *c = join(&bob);
	IS(uid_of(c), ua);
	ckt_uid_group_leave(c);
	/* It waits for the cleaner. */
	c = join(&alice);
	IS(uid_of(c), ua);
	ckt_uid_group_leave(c);
	for (int i = 0; i < 3; i++)
		ckt_uid_group_leave(b);
	end();
	YES(is_free(&ua) && is_free(&ub));
}

static void test_give(void)
{
	const struct ckt_identity next = {.kind = CKT_IDENTITY_NEXT};
	IS(ckt_uid_group_give(NULL, &alice), 0);
	if (geteuid() != 0) {
		printf("skipped give: not root\n");
		return;
	}
	begin("1804300-1804301");
	NO(ckt_uid_group_exists(&server, &alice));
	struct ckt_uid_group *group = join(&next);
	uid_t uid = uid_of(group);
	IS(strcmp(read_file(record(uid)), "next"), 0);
	IS(ckt_uid_group_give(group, &alice), 0);
	YES(ckt_uid_group_exists(&server, &alice));
	NO(ckt_uid_group_exists(&server, &next));
	IS(strcmp(read_file(record(uid)), "2147483649"), 0);
	/* What comes next has another. */
	YES(join(&alice) == group);
	struct ckt_uid_group *other = join(&next);
	YES(other != group);
	ckt_uid_group_leave(other);
	ckt_uid_group_leave(group);
	ckt_uid_group_leave(group);
	YES(run_until(is_free, &uid));
	NO(ckt_uid_group_exists(&server, &alice));
	end();
}

static void test_busy(void)
{
	char byte;
	int pipe_fds[2];
	if (geteuid() != 0)
		return;
	/* A process of somebody's has that id. */
	begin("1804300-1804301");
	MUST(pipe(pipe_fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (setresuid(FIRST, FIRST, FIRST) == 0 && write(pipe_fds[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	MUST(read(pipe_fds[0], &byte, 1), 1);
	struct ckt_uid_group *a = join(&alice);
	IS(uid_of(a), LAST);
	IS(refused(&bob), -EUSERS);
	YES(ckt_uid_processes_any(FIRST));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* A server that was killed left a file. */
	write_file("/dev/shm/cricket-test-1804300", "x", 0600);
	IS(chown("/dev/shm/cricket-test-1804300", FIRST, FIRST), 0);
	/* Another server has drawn it. */
	struct ckt_uid_groups *first = server.uid_groups;
	server.uid_groups = NULL;
	MUST(ckt_uid_groups_init(&server, message, sizeof message), 0);
	struct ckt_uid_group *b = join(&bob);
	IS(uid_of(b), FIRST);
	IS(access("/dev/shm/cricket-test-1804300", F_OK), -1);
	IS(refused(&alice), -EUSERS);
	ckt_uid_group_leave(b);
	ckt_uid_groups_fini(&server);
	server.uid_groups = first;
	ckt_uid_group_leave(a);
	end();
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

/* The next server knows whose the ids are, and cleans those without workers. */
static void test_adopt(void)
{
	uid_t first = FIRST, last = LAST;
	if (geteuid() != 0)
		return;
	begin("1804300-1804301");
	struct ckt_uid_group *a = join(&alice), *b = join(&bob);
	uid_t ua = uid_of(a), ub = uid_of(b);
	/* It dies with both at work. */
	ckt_uid_groups_fini(&server);
	NO(is_free(&ua) || is_free(&ub));
	MUST(ckt_uid_groups_init(&server, message, sizeof message), 0);
	write_file(path_in("s.d/uid-0"), "4711", 0600);
	write_file(path_in("s.d/uid-x"), "4711", 0600);
	ckt_uid_groups_load(&server);
	ckt_uid_groups_load(&server);
	a = ckt_uid_group_adopt(&server, ua);
	YES(a && join(&alice) == a);
	YES(!ckt_uid_group_adopt(&server, 0) && !ckt_uid_group_adopt(&server, FIRST - 1));
	ckt_uid_groups_settle(&server);
	YES(run_until(is_free, &ub));
	/* A worker whose group has no file: nobody joins it. */
	b = ckt_uid_group_adopt(&server, ub);
	YES(b != NULL);
	IS(refused(&bob), -EUSERS);
	ckt_uid_group_leave(b);
	ckt_uid_group_leave(a);
	NO(is_free(&ua));
	ckt_uid_group_leave(a);
	end();
	YES(is_free(&first) && is_free(&last));
	unlink(path_in("s.d/uid-0"));
	unlink(path_in("s.d/uid-x"));
}

UNIT_SUITE(uid_group, {"without", test_without}, {"bad", test_bad}, {"draw", test_draw},
	{"give", test_give}, {"busy", test_busy}, {"adopt", test_adopt})
