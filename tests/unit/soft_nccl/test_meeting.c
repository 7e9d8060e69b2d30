/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/libs/nccl/meeting.c: roots that a worker hosts.  The worker here has one root for each
 * process of the test, and a name that nobody announced.
 */
#include "softgpu/libs/nccl/meeting.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softgpu/libs/nccl/root.h"
#include "tests/unit/soft_nccl/ranks.h"

static uint8_t announced[CKT_NCCL_MEETING_NAME];
static int door = -1, visits, refuses;

static int announce(const uint8_t *name, int fd)
{
	if (refuses) {
		close(fd);
		return -ENOSPC;
	}
	memcpy(announced, name, sizeof announced);
	door = fd;
	return 0;
}

static int visit(const uint8_t *name)
{
	int ends[2];
	char byte = 0;
	visits++;
	if (door < 0 || memcmp(announced, name, sizeof announced) != 0)
		return -ENOENT;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	int error = ckt_soft_nccl_mesh_send_descriptor(door, &byte, sizeof byte, ends[1]);
	close(ends[1]);
	return error ? error : ends[0];
}

static const struct ckt_nccl_meeting closed_host = {.announce = announce, .visit = visit},
				     open_host = {
					     .announce = announce, .visit = visit, .open = true};

/* Lines of this process's roots in the list of abstract sockets. */
static unsigned names(void)
{
	char line[512];
	unsigned count = 0;
	FILE *file = fopen("/proc/net/unix", "re");
	while (file && fgets(line, sizeof line, file))
		count += strstr(line, "@cricket-nccl-") != NULL;
	if (file)
		fclose(file);
	return count;
}

struct visitor {
	ncclUniqueId id;
	int rank;
	ncclResult_t result;
	const char *why;
};

static void *join(void *opaque)
{
	struct visitor *r = opaque;
	struct ckt_mesh mesh;
	OK(ckt_soft_nccl_mesh_init(&mesh));
	OK(ckt_soft_nccl_mesh_set_size(&mesh, r->rank, 2));
	r->result = ckt_soft_nccl_root_join(&r->id, &mesh, r->rank, &r->why);
	ckt_soft_nccl_mesh_fini(&mesh);
	return NULL;
}

static ncclResult_t meet(const ncclUniqueId *id)
{
	struct visitor ranks[2] = {{.id = *id}, {.id = *id, .rank = 1}};
	pthread_t thread;
	MUST(pthread_create(&thread, NULL, join, &ranks[1]), 0);
	join(&ranks[0]);
	pthread_join(thread, NULL);
	return ranks[0].result ? ranks[0].result : ranks[1].result;
}

/* Each in a process of its own, which has a root of its own: 0, or the line that failed. */
#define EXPECT(condition)                \
	do {                             \
		if (!(condition))        \
			return __LINE__; \
	} while (0)

static int hosted(void)
{
	ncclUniqueId id;
	unsigned before = names();
	ncclCricketMeetThrough(&closed_host);
	EXPECT(ckt_soft_nccl_root_make(&id) == ncclSuccess);
	/* No name, and the worker alone is asked. */
	EXPECT(names() == before);
	EXPECT(meet(&id) == ncclSuccess && visits == 2);
	/* It is used up, and still the root answers. */
	EXPECT(meet(&id) == ncclRemoteError);
	/* The worker lets nobody in any more. */
	close(door);
	door = -1;
	EXPECT(meet(&id) == ncclRemoteError && visits == 6);
	return 0;
}

/* Ranks at another server come by the abstract socket. */
static int open_to_others(void)
{
	ncclUniqueId id;
	unsigned before = names();
	ncclCricketMeetThrough(&open_host);
	EXPECT(ckt_soft_nccl_root_make(&id) == ncclSuccess);
	EXPECT(names() == before + 1);
	EXPECT(meet(&id) == ncclSuccess);
	memset(announced, 0, sizeof announced);
	EXPECT(ckt_soft_nccl_root_make(&id) == ncclSuccess);
	EXPECT(meet(&id) == ncclSuccess && visits == 4);
	return 0;
}

static int refused(void)
{
	ncclUniqueId id;
	unsigned before = names();
	ncclCricketMeetThrough(&open_host);
	refuses = 1;
	EXPECT(ckt_soft_nccl_root_make(&id) == ncclSystemError);
	EXPECT(names() == before);
	refuses = 0;
	EXPECT(ckt_soft_nccl_root_make(&id) == ncclSuccess && meet(&id) == ncclSuccess);
	return 0;
}

static int run(int (*part)(void))
{
	int status = -1;
	pid_t pid = fork();
	if (pid == 0) {
		int line = part();
		if (line)
			printf("line %d\n", line);
		fflush(stdout);
		_exit(line != 0);
	}
	MUST(waitpid(pid, &status, 0), pid);
	return status;
}

static void test_hosted(void)
{
	IS(run(hosted), 0);
	IS(run(open_to_others), 0);
	IS(run(refused), 0);
}

static void test_alone(void)
{
	static const uint8_t name[CKT_NCCL_MEETING_NAME];
	YES(ckt_soft_nccl_meeting_is_open());
	IS(ckt_soft_nccl_meeting_announce(name), -ENOTCONN);
	IS(ckt_soft_nccl_meeting_visit(name), -ENOTCONN);
	/* What is no guest. */
	int ends[2];
	OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	IS(send(ends[0], "x", 1, 0), 1);
	IS(ckt_soft_nccl_meeting_take(ends[1]), -EPROTO);
	close(ends[0]);
	IS(ckt_soft_nccl_meeting_take(ends[1]), -EPIPE);
	close(ends[1]);
}

UNIT_SUITE(soft_nccl / meeting, {"hosted", test_hosted}, {"alone", test_alone})
