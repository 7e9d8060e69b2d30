/* SPDX-License-Identifier: Apache-2.0 */
/* Where ranks of the soft GPU's NCCL meet; see nccl_meeting.h. */
#include "server/worker/libs/nccl/nccl_meeting.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/nccl_meeting.h"
#include "rpc/net.h"
#include "server/worker/cage/cage.h"
#include "server/worker/session/group.h"

/* Of the library's root, of which a process has one. */
static struct {
	pthread_mutex_t lock;
	int door;
	struct ckt_group_name name;
} root = {.lock = PTHREAD_MUTEX_INITIALIZER, .door = -1};

static struct ckt_group_name name_of(const uint8_t *name)
{
	static const char prefix[] = "nccl root ";
	struct ckt_group_name result = {{0}};
	_Static_assert(sizeof prefix - 1 + CKT_NCCL_MEETING_NAME <= CKT_GROUP_NAME, "a name fits");
	memcpy(result.bytes, prefix, sizeof prefix - 1);
	memcpy(result.bytes + sizeof prefix - 1, name, CKT_NCCL_MEETING_NAME);
	return result;
}

/* Without waiting: a root that takes nobody is not there. */
static bool pass_on(int connection)
{
	char byte = 0;
	struct iovec part = {.iov_base = &byte, .iov_len = sizeof byte};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	ckt_net_fd_put(&message, &room, connection);
	pthread_mutex_lock(&root.lock);
	bool good = root.door >= 0 &&
		sendmsg(root.door, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof byte;
	pthread_mutex_unlock(&root.lock);
	return good;
}

static void limit_wait(int connection, int seconds)
{
	struct timeval limit = {.tv_sec = seconds};
	setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/* How long the library gives a rank that takes nothing. */
enum { GIVE_S = 30 };

static void answer(struct ckt_worker *worker, const struct ckt_group_name *name, int connection)
{
	(void)worker, (void)name;
	limit_wait(connection, GIVE_S);
	const char byte = pass_on(connection) ? CKT_NCCL_LET_IN : CKT_GROUP_NOBODY;
	send(connection, &byte, sizeof byte, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The server handles a worker's packets in their order: once it answers, it knows the claim. */
static void await_claim(void)
{
	struct ckt_group_name nobody = {"nccl nobody"};
	char byte;
	int connection = ckt_group_ask(&nobody, 0);
	if (connection < 0)
		return;
	ckt_net_receive(connection, &byte, sizeof byte, 0);
	close(connection);
}

static int announce(const uint8_t *name, int door)
{
	pthread_mutex_lock(&root.lock);
	int before = root.door;
	struct ckt_group_name old = root.name;
	root.door = door;
	root.name = name_of(name);
	pthread_mutex_unlock(&root.lock);
	if (before >= 0) {
		ckt_group_drop(&old);
		close(before);
	}
	const struct ckt_group_name claimed = name_of(name);
	int error = ckt_group_claim(&claimed, answer);
	if (!error) {
		await_claim();
		return 0;
	}
	pthread_mutex_lock(&root.lock);
	root.door = -1;
	pthread_mutex_unlock(&root.lock);
	close(door);
	return error;
}

static int visit(const uint8_t *name)
{
	const struct ckt_group_name asked = name_of(name);
	char byte = CKT_GROUP_NOBODY;
	int connection = ckt_group_ask(&asked, 0);
	if (connection < 0)
		return connection;
	if (ckt_net_receive(connection, &byte, sizeof byte, 0) != sizeof byte ||
		byte != CKT_NCCL_LET_IN) {
		close(connection);
		return -ENOENT;
	}
	/* The library waits for the other ranks, for as long as it takes. */
	limit_wait(connection, 0);
	return connection;
}

void ckt_worker_nccl_meet_in_group(void *function)
{
	static struct ckt_nccl_meeting meeting = {.announce = announce, .visit = visit};
	Dl_info info;
	void *library = function && ckt_group_joined() && dladdr(function, &info)
		? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD)
		: NULL;
	if (!library)
		return;
	ckt_nccl_meet_through meet = (ckt_nccl_meet_through)dlsym(library, CKT_NCCL_MEET_THROUGH);
	meeting.open = ckt_cage_has_network();
	if (meet)
		meet(&meeting);
	dlclose(library);
}
