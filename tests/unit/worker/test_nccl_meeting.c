/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/nccl/nccl_meeting.c: the root is found by its name, others are not, and a root
 * that takes nobody is gone.  The library is meeting_library.c.
 */
#include "server/worker/libs/nccl/nccl_meeting.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/nccl_meeting.h"
#include "rpc/net.h"
#include "tests/unit/worker/group_kit.h"
#include "tests/unit/worker/nccl_kit.h"

/* What the library was told. */
#define meeting meeting_library_told
extern const struct ckt_nccl_meeting *meeting_library_told;
void ncclCricketMeetThrough(const struct ckt_nccl_meeting *given);

static const uint8_t name[CKT_NCCL_MEETING_NAME] = {1, 2, 3}, other[CKT_NCCL_MEETING_NAME] = {4};

/* What came over the door; -1. */
static int next_guest(int door)
{
	char byte;
	struct iovec part = {.iov_base = &byte, .iov_len = sizeof byte};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	ckt_net_fd_expect(&message, &room);
	return recvmsg(door, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) == 1
		? ckt_net_fd_take(&message)
		: -1;
}

static int announce(const uint8_t *as)
{
	int ends[2];
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	IS(meeting->announce(as, ends[1]), 0);
	return ends[0];
}

static void test_visit(void)
{
	char text[8] = "";
	/* Without a channel the library meets as it does without a worker. */
	meeting = NULL;
	if (!ckt_group_joined()) {
		ckt_worker_nccl_meet_in_group((void *)ncclCricketMeetThrough);
		CU_ASSERT_PTR_NULL(meeting);
	}
	nccl_begin();
	group_kit_begin();
	ckt_worker_nccl_meet_in_group((void *)ncclCricketMeetThrough);
	CU_ASSERT_PTR_NOT_NULL_FATAL(meeting);
	IS(meeting->visit(name), -ENOENT);
	unsigned asked = atomic_load(&group_kit.asked);
	int door = announce(name);
	/* Whoever visits from here on finds it: the server has answered. */
	IS(atomic_load(&group_kit.asked), asked + 1);
	IS(meeting->visit(other), -ENOENT);
	int fd = meeting->visit(name), guest = next_guest(door);
	MUST(fd >= 0 && guest >= 0, true);
	/* It waits as long as it takes, and was told nothing before the library said something. */
	struct timeval limit = {.tv_sec = 7};
	socklen_t size = sizeof limit;
	IS(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, &size), 0);
	IS(limit.tv_sec + limit.tv_usec, 0);
	IS(recv(fd, text, sizeof text, MSG_DONTWAIT), -1);
	IS(send(fd, "hello", 5, 0), 5);
	IS(recv(guest, text, sizeof text, 0), 5);
	TEXT(text, "hello");
	close(fd);
	close(guest);
	/* Another root of this process takes the first one's place. */
	int second = announce(other);
	IS(recv(door, text, 1, 0), 0);
	IS(meeting->visit(name), -ENOENT);
	fd = meeting->visit(other);
	YES(fd >= 0);
	close(fd);
	close(next_guest(second));
	/* One that takes nobody. */
	close(second);
	IS(meeting->visit(other), -ENOENT);
	close(door);
	group_kit_end();
}

/* Whoever claims the name says something else, or nothing. */
static const char *said;

static void lie(struct ckt_worker *worker, const struct ckt_group_name *claimed, int connection)
{
	(void)worker, (void)claimed;
	send(connection, said, strlen(said), MSG_NOSIGNAL);
}

static void test_lies(void)
{
	static const char *const texts[] = {"", "n", "x", "yes"};
	struct ckt_group_name claimed = {"nccl root "};
	nccl_begin();
	group_kit_begin();
	memcpy(claimed.bytes + strlen("nccl root "), name, sizeof name);
	IS(ckt_group_claim(&claimed, lie), 0);
	for (unsigned i = 0; i < 3; i++) {
		said = texts[i];
		IS(meeting->visit(name), -ENOENT);
	}
	/* More bytes than one: what is left is the library's to refuse. */
	said = texts[3];
	int fd = meeting->visit(name);
	YES(fd >= 0);
	close(fd);
	ckt_group_drop(&claimed);
	group_kit_end();
	IS(meeting->visit(name), -ENOTCONN);
}

UNIT_SUITE(worker_nccl_meeting, {"visit", test_visit}, {"lies", test_lies})
