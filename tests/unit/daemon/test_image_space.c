/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/image/image_space.c: bytes of images, counted by identity. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "inside.h"

static void test_space(void)
{
	struct ckt_identity one = {.kind = CKT_IDENTITY_USER, .uid = 1001},
			    other = {.kind = CKT_IDENTITY_USER, .uid = 1002},
			    root = {.kind = CKT_IDENTITY_USER};
	int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	server.options.image_space = 100;
	struct ckt_image_space *mine = ckt_daemon_image_space_get(&server, &one),
			       *again = ckt_daemon_image_space_get(&server, &one),
			       *others = ckt_daemon_image_space_get(&server, &other),
			       *roots = ckt_daemon_image_space_get(&server, &root);
	YES(mine == again && mine != others);
	/* -1: no file system to ask. */
	IS(ckt_daemon_image_space_take(mine, -1, 60), 0);
	IS(ckt_daemon_image_space_take(again, -1, 41), -EDQUOT);
	IS(ckt_daemon_image_space_take(again, -1, UINT64_MAX), -EDQUOT);
	IS(ckt_daemon_image_space_take(again, -1, 40), 0);
	IS(ckt_daemon_image_space_take(others, -1, 100), 0);
	IS(ckt_daemon_image_space_take(roots, -1, 1000), 0);
	ckt_daemon_image_space_release(mine, 50);
	IS(ckt_daemon_image_space_taken(again), 50);
	ckt_daemon_image_space_note(mine, 100);
	IS(ckt_daemon_image_space_taken(mine), 150);
	IS(ckt_daemon_image_space_take(mine, -1, 1), -EDQUOT);
	/* More than there is: nobody has a right to a file system's last bytes. */
	server.options.image_space = UINT64_MAX / 2;
	struct ckt_identity third = {.kind = CKT_IDENTITY_TOKEN};
	struct ckt_image_space *all = ckt_daemon_image_space_get(&server, &third);
	IS(ckt_daemon_image_space_take(all, dir, UINT64_MAX / 4), -ENOSPC);
	ckt_daemon_image_space_put(all);
	server.options.image_space = 100;
	/* What lies on the disk counts on though nobody has a connection. */
	ckt_daemon_image_space_put(mine);
	ckt_daemon_image_space_put(again);
	mine = ckt_daemon_image_space_get(&server, &one);
	IS(ckt_daemon_image_space_taken(mine), 150);
	ckt_daemon_image_space_release(mine, 1000);
	IS(ckt_daemon_image_space_taken(mine), 0);
	struct ckt_image_space *reference = ckt_daemon_image_space_ref(mine);
	ckt_daemon_image_space_put(mine);
	ckt_daemon_image_space_put(reference);
	ckt_daemon_image_space_release(others, 100);
	ckt_daemon_image_space_put(others);
	ckt_daemon_image_space_release(roots, 1000);
	ckt_daemon_image_space_put(roots);
	ckt_daemon_image_space_put(NULL);
	server.options.image_space = 0;
	close(dir);
}

/* ---- A file system that hangs */

static struct {
	struct ckt_image_space *others; /* NULL: the file system answers */
	pthread_t thread;
	bool free_meanwhile;
} hanging;

static void *use_others(void *others)
{
	ckt_daemon_image_space_note(others, 1);
	return NULL;
}

/* In libc's place: while it runs another thread wants the space of another identity. */
int fstatvfs(int fd, struct statvfs *ret)
{
	char path[40];
	struct timespec until;
	if (hanging.others) {
		pthread_create(&hanging.thread, NULL, use_others, hanging.others);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 60; /* nothing is measured by it */
		hanging.free_meanwhile = !pthread_timedjoin_np(hanging.thread, NULL, &until);
		hanging.others = NULL;
	}
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return statvfs(path, ret);
}

static void test_hanging(void)
{
	struct ckt_identity one = {.kind = CKT_IDENTITY_USER, .uid = 1001},
			    other = {.kind = CKT_IDENTITY_USER, .uid = 1002};
	struct ckt_image_space *mine = ckt_daemon_image_space_get(&server, &one),
			       *others = ckt_daemon_image_space_get(&server, &other);
	struct ckt_decision decision;
	for (int check = 0; check < 2; check++) {
		hanging.others = others;
		hanging.free_meanwhile = false;
		if (check)
			ckt_daemon_image_space_check(mine, -1, 1, &decision);
		else
			IS(ckt_daemon_image_space_take(mine, -1, 1), 0);
		YES(hanging.free_meanwhile);
		if (!hanging.free_meanwhile)
			pthread_join(hanging.thread, NULL);
	}
	IS(ckt_daemon_image_space_taken(others), 2);
	ckt_daemon_image_space_release(mine, 1);
	ckt_daemon_image_space_release(others, 2);
	ckt_daemon_image_space_put(mine);
	ckt_daemon_image_space_put(others);
}

UNIT_SUITE(space, {"space", test_space}, {"hanging", test_hanging})
