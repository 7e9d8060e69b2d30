/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group of one: the server's side of the group channel, in a thread that lets this process find
 * itself under its session's id and under what it claims, and a thread that answers as control
 * threads do.
 */
#pragma once

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/net.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/session/group.h"
#include "tests/unit/worker/inside.h"

enum { GROUP_KIT_NAMES = 8 };

static struct {
	atomic_bool over;
	int end; /* the server's */
	pthread_t server, answers;
	struct ckt_group_name names[GROUP_KIT_NAMES];
	unsigned name_count;
	atomic_uint claimed, asked;
} group_kit = {.end = -1};

static inline bool group_kit_knows(const struct ckt_group_name *name, unsigned nth)
{
	struct ckt_group_name own =
		ckt_group_session(ckt_worker.session, sizeof ckt_worker.session);
	unsigned found = ckt_group_same_name(&own, name);
	for (unsigned i = 0; i < group_kit.name_count; i++)
		found += ckt_group_same_name(&group_kit.names[i], name);
	return nth < found;
}

static inline void group_kit_take(const struct ckt_group_message *packet, int fd)
{
	struct ckt_group_message offer = {.kind = CKT_GROUP_OFFER, .name = packet->name};
	struct iovec part = {.iov_base = &offer, .iov_len = sizeof offer};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	const char nobody = CKT_GROUP_NOBODY;
	if (packet->kind == CKT_GROUP_CLAIM && group_kit.name_count < GROUP_KIT_NAMES)
		group_kit.names[group_kit.name_count++] = packet->name;
	for (unsigned i = 0; packet->kind == CKT_GROUP_DROP && i < group_kit.name_count; i++)
		if (ckt_group_same_name(&group_kit.names[i], &packet->name))
			group_kit.names[i] = group_kit.names[--group_kit.name_count];
	if (packet->kind != CKT_GROUP_ASK) {
		atomic_fetch_add(&group_kit.claimed, 1);
		return;
	}
	atomic_fetch_add(&group_kit.asked, 1);
	ckt_net_fd_put(&message, &room, fd);
	if (group_kit_knows(&packet->name, packet->nth))
		MUST(sendmsg(group_kit.end, &message, MSG_NOSIGNAL), sizeof offer);
	else
		MUST(send(fd, &nobody, 1, MSG_NOSIGNAL), 1);
}

static inline void *group_kit_serve(void *unused)
{
	for (;;) {
		struct ckt_group_message packet;
		struct iovec part = {.iov_base = &packet, .iov_len = sizeof packet};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
		union ckt_net_fd_room room;
		ckt_net_fd_expect(&message, &room);
		ssize_t n = recvmsg(group_kit.end, &message, MSG_CMSG_CLOEXEC);
		if (n <= 0)
			return unused;
		int fd = ckt_net_fd_take(&message);
		MUST(n, sizeof packet);
		group_kit_take(&packet, fd);
		if (fd >= 0)
			close(fd);
	}
}

static inline void *group_kit_answer(void *unused)
{
	while (!atomic_load(&group_kit.over)) {
		struct pollfd p = {.fd = ckt_group_init(), .events = POLLIN};
		if (poll(&p, 1, 20) == 1)
			ckt_group_serve(&ckt_worker, ckt_ipc_serve, ckt_ipc_owner_gone);
	}
	return unused;
}

/* A channel, and the server's side. */
static inline void group_kit_begin(void)
{
	int ends[2];
	ckt_group_away_ms = 100;
	MUST(ckt_group_init() >= 0, true);
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	group_kit.end = ends[0];
	group_kit.name_count = 0;
	atomic_store(&group_kit.over, false);
	pthread_create(&group_kit.server, NULL, group_kit_serve, NULL);
	MUST(ckt_group_join(ends[1]), 0);
	pthread_create(&group_kit.answers, NULL, group_kit_answer, NULL);
}

/* The server ends. */
static inline void group_kit_end(void)
{
	atomic_store(&group_kit.over, true);
	pthread_join(group_kit.answers, NULL);
	shutdown(group_kit.end, SHUT_RDWR);
	pthread_join(group_kit.server, NULL);
	close(group_kit.end);
	group_kit.end = -1;
}
