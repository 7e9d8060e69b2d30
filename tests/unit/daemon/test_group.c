/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/group.c: workers of one owner find each other by id and by claim, strangers
 * look like nobody and are audited once, and what a worker sends that is no question costs it its
 * channel.
 */
#include "server/daemon/session/group.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inside.h"
#include "rpc/net.h"

enum { SESSIONS = 3 };

static struct ckt_session *sessions[SESSIONS];
static int channels[SESSIONS];

static void begin(void)
{
	static const char *const ids[SESSIONS] = {"aaaaaaaaaaa1", "aaaaaaaaaaa2", "bbbbbbbbbbb1"};
	for (int i = 0; i < SESSIONS; i++) {
		sessions[i] = session_new(ids[i]);
		sessions[i]->uid = i < 2 ? 1001 : 1002;
		worker.channel = -1;
		MUST(ckt_group_open(sessions[i]), 0);
		run_for(2);
		MUST(worker.channel >= 0, true);
		channels[i] = worker.channel;
		IS(ckt_group_open(sessions[i]), 0); /* once */
	}
	worker.channel = 0;
	server.options.log_burst = 100;
}

static void end(void)
{
	for (int i = 0; i < SESSIONS; i++) {
		ckt_group_close(sessions[i]);
		ckt_group_close(sessions[i]);
		session_drop(sessions[i]);
		close(channels[i]);
	}
}

static void say(int channel, const void *bytes, size_t size, int fd)
{
	struct iovec part = {.iov_base = (void *)bytes, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	ckt_net_fd_put(&message, &room, fd);
	MUST(sendmsg(channel, &message, MSG_NOSIGNAL), size);
	run_for(2);
}

static void tell(int from, enum ckt_group_kind kind, const struct ckt_group_name *name)
{
	const struct ckt_group_message packet = {.kind = kind, .name = *name};
	say(channels[from], &packet, sizeof packet, -1);
}

/* Which session's worker is offered the question: its index; -1: nobody. */
static int asked(int from, const struct ckt_group_name *name, unsigned nth)
{
	const struct ckt_group_message packet = {.kind = CKT_GROUP_ASK, .nth = nth, .name = *name};
	int pair[2], result = -2;
	char byte = 0;
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	say(channels[from], &packet, sizeof packet, pair[1]);
	close(pair[1]);
	for (int i = 0; i < SESSIONS; i++) {
		struct ckt_group_message offer;
		struct iovec part = {.iov_base = &offer, .iov_len = sizeof offer};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
		union ckt_net_fd_room room;
		ckt_net_fd_expect(&message, &room);
		if (recvmsg(channels[i], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
			continue;
		int fd = ckt_net_fd_take(&message);
		IS(result, -2); /* one alone */
		result = i;
		IS(offer.kind, CKT_GROUP_OFFER);
		YES(ckt_group_same_name(&offer.name, name));
		/* The very end that was sent. */
		IS(send(fd, "y", 1, MSG_NOSIGNAL), 1);
		close(fd);
	}
	MUST(recv(pair[0], &byte, 1, MSG_DONTWAIT), 1);
	if (byte == CKT_GROUP_NOBODY && result == -2)
		result = -1;
	IS(recv(pair[0], &byte, 1, MSG_DONTWAIT), 0);
	close(pair[0]);
	return result;
}

static struct ckt_group_name id_of(int session)
{
	return ckt_group_session(sessions[session]->id, CKT_SESSION_ID_SIZE);
}

static void test_find(void)
{
	const struct ckt_group_name claimed = ckt_group_session("cccccccccccc", 12),
				    name = {"nccl 1"};
	begin();
	struct ckt_group_name first = id_of(0), second = id_of(1), stranger = id_of(2);
	IS(asked(0, &second, 0), 1);
	IS(asked(1, &first, 0), 0);
	IS(asked(0, &first, 0), 0); /* itself */
	IS(asked(0, &second, 1), -1);
	IS(asked(0, &claimed, 0), -1);
	/* By what they claim, in turn; the id comes first. */
	tell(1, CKT_GROUP_CLAIM, &claimed);
	tell(1, CKT_GROUP_CLAIM, &claimed);
	tell(0, CKT_GROUP_CLAIM, &claimed);
	IS(asked(0, &claimed, 0), 0);
	IS(asked(0, &claimed, 1), 1);
	IS(asked(0, &claimed, 2), -1);
	tell(0, CKT_GROUP_CLAIM, &second);
	IS(asked(0, &second, 0), 1);
	IS(asked(0, &second, 1), 0);
	tell(0, CKT_GROUP_DROP, &second);
	tell(0, CKT_GROUP_DROP, &second);
	IS(asked(0, &second, 1), -1);
	tell(0, CKT_GROUP_CLAIM, &name);
	IS(asked(1, &name, 0), 0);
	/* Neither the id nor a claim reaches another owner's, whoever asks. */
	IS(asked(0, &stranger, 0), -1);
	IS(asked(2, &first, 0), -1);
	IS(asked(2, &claimed, 0), -1);
	IS(asked(2, &name, 0), -1);
	/* A claim of a stranger's id leads its own group to it, and nobody else. */
	tell(2, CKT_GROUP_CLAIM, &first);
	IS(asked(2, &first, 0), 2);
	IS(asked(1, &first, 0), 0);
	IS(asked(1, &first, 1), -1);
	end();
}

/* Who claims ranks of one communicator belongs together; of another one, or of another owner, nobody does. */
static void test_ranks(void)
{
	struct ckt_group_name rank = {CKT_GROUP_RANK "aaaaaaaaaaaaaaaaaa"}, other = rank;
	begin();
	NO(ckt_group_has_ranks(sessions[0]));
	other.bytes[CKT_GROUP_COMMUNICATOR - 1] ^= 1;
	tell(0, CKT_GROUP_CLAIM, &rank);
	YES(ckt_group_has_ranks(sessions[0]));
	tell(1, CKT_GROUP_CLAIM, &other);
	IS(sessions[0]->group.mate_count + sessions[1]->group.mate_count, 0);
	rank.bytes[CKT_GROUP_COMMUNICATOR] = 1;
	tell(2, CKT_GROUP_CLAIM, &rank);
	IS(sessions[0]->group.mate_count + sessions[2]->group.mate_count, 0);
	tell(1, CKT_GROUP_CLAIM, &rank);
	IS(sessions[0]->group.mate_count, 1);
	IS(sessions[0]->group.mates[0], sessions[1]->serial);
	IS(sessions[1]->group.mate_count, 1);
	IS(sessions[1]->group.mates[0], sessions[0]->serial);
	/* A name that is none of a rank's brings nobody together. */
	const struct ckt_group_name root = {"nccl root aaaaaaaaaaaaaaaaaa"};
	tell(1, CKT_GROUP_DROP, &rank);
	tell(1, CKT_GROUP_DROP, &other);
	tell(1, CKT_GROUP_CLAIM, &root);
	NO(ckt_group_has_ranks(sessions[1]));
	end();
}

static void test_restored(void)
{
	begin();
	struct ckt_group_name first = id_of(0), second = id_of(1);
	/* Two that one claimant restores, before anybody knows their owners. */
	for (int i = 0; i < 2; i++) {
		sessions[i]->restore = true;
		sessions[i]->phase = CKT_SESSION_STARTING;
		sessions[i]->claimant.owner = 0;
	}
	sessions[0]->uid = CKT_UID_UNKNOWN;
	IS(asked(0, &second, 0), 1);
	/* One has come back to its owner. */
	sessions[1]->phase = CKT_SESSION_LIVE;
	IS(asked(0, &second, 0), 1);
	IS(asked(1, &first, 0), 0);
	/* Both have. */
	sessions[0]->phase = CKT_SESSION_LIVE;
	IS(asked(0, &second, 0), -1);
	sessions[0]->uid = 1001;
	IS(asked(0, &second, 0), 1);
	/* Another claimant restores one with that id, or claims it in its image. */
	sessions[0]->phase = CKT_SESSION_STARTING;
	sessions[0]->claimant.owner = 1002;
	IS(asked(0, &second, 0), -1);
	tell(0, CKT_GROUP_CLAIM, &second);
	IS(asked(0, &second, 0), 0); /* itself */
	IS(asked(1, &second, 1), -1);
	/* A session that was not restored has nothing for it. */
	sessions[1]->restore = false;
	sessions[0]->claimant.owner = 1001;
	IS(asked(0, &second, 1), -1);
	end();
}

/* Once for each session that tries, whatever it tries. */
static void test_refused(void)
{
	begin();
	struct ckt_group_name first = id_of(0), second = id_of(1);
	IS(asked(2, &second, 3), -1);
	NO(sessions[2]->group.refused);
	for (int i = 0; i < 3; i++) {
		IS(asked(2, &first, 0), -1);
		YES(sessions[2]->group.refused);
	}
	NO(sessions[0]->group.refused);
	end();
}

/* What does not belong into a channel ends it; whoever asked hears of an end. */
static void test_garbage(void)
{
	static const uint8_t bytes[4096] = {0, 0, 0, 9};
	struct ckt_group_message packet = {.kind = CKT_GROUP_CLAIM};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 8; i++) {
		begin();
		packet.kind = i == 3 ? 0 : i == 4 ? CKT_GROUP_OFFER : i == 5 ? CKT_GROUP_ASK : 1;
		if (i == 0)
			say(channels[0], bytes, 1, -1);
		else if (i == 1)
			say(channels[0], bytes, sizeof bytes, -1);
		else if (i == 2)
			say(channels[0], &packet, sizeof packet - 1, -1);
		else if (i == 6)
			say(channels[0], &packet, sizeof packet, null); /* with what it has not */
		else if (i == 7)
			shutdown(channels[0], SHUT_WR);
		else
			say(channels[0], &packet, sizeof packet, -1);
		run_for(2);
		NO(sessions[0]->group.open);
		YES(sessions[1]->group.open);
		/* It is found no more. */
		struct ckt_group_name first = id_of(0);
		channels[0] = (close(channels[0]), dup(channels[1]));
		IS(asked(1, &first, 0), -1);
		end();
	}
	/* No socket: nobody reads the answer, and the channel stays. */
	begin();
	packet.kind = CKT_GROUP_ASK;
	say(channels[0], &packet, sizeof packet, null);
	YES(sessions[0]->group.open);
	end();
	close(null);
}

/* A worker that does not take what it is offered is not found, and costs the server nothing. */
static void test_full(void)
{
	begin();
	struct ckt_group_name second = id_of(1);
	int pair[2];
	const struct ckt_group_message packet = {.kind = CKT_GROUP_ASK, .name = second};
	char byte = 0;
	for (int i = 0; i < 5000 && byte != CKT_GROUP_NOBODY; i++) {
		MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		say(channels[0], &packet, sizeof packet, pair[1]);
		close(pair[1]);
		recv(pair[0], &byte, 1, MSG_DONTWAIT);
		close(pair[0]);
	}
	IS(byte, CKT_GROUP_NOBODY);
	/* More claims than a worker may have do not count. */
	for (unsigned i = 0; i < CKT_GROUP_CLAIMS_MAX + 20; i++) {
		struct ckt_group_name name = {{0}};
		memcpy(name.bytes, &i, sizeof i);
		tell(2, CKT_GROUP_CLAIM, &name);
	}
	IS(sessions[2]->group.claim_count, CKT_GROUP_CLAIMS_MAX);
	end();
}

/* The names of those that the session's worker is told are gone, each with a blank before it. */
static void gone(int session, char *ret_names, size_t size)
{
	struct ckt_group_message packet;
	*ret_names = 0;
	while (recv(channels[session], &packet, sizeof packet, MSG_DONTWAIT) == sizeof packet) {
		size_t length = strlen(ret_names);
		IS(packet.kind, CKT_GROUP_GONE);
		snprintf(ret_names + length, size - length, " %.*s", CKT_GROUP_NAME,
			(const char *)packet.name.bytes);
	}
}

static bool is_told(void *data)
{
	(void)data;
	return worker.gone[0] != 0;
}

/* Who asked the other for memory is told of its end, under all its names; nobody else is. */
static void test_ended(void)
{
	const struct ckt_group_name claimed = ckt_group_session("cccccccccccc", 12),
				    name = {"nccl 1"};
	char names[200], expected[200];
	/* A worker that knows the call; an earlier one, which gets packets; the end of a channel. */
	for (int how = 0; how < 3; how++) {
		begin();
		struct ckt_group_name second = id_of(1);
		tell(1, CKT_GROUP_CLAIM, &claimed);
		tell(1, CKT_GROUP_CLAIM, &name);
		worker.gone[0] = 0;
		/* A communicator alone makes no mates. */
		IS(asked(0, &name, 0), 1);
		ckt_group_ended(sessions[1]);
		run_for(2);
		CU_ASSERT_STRING_EQUAL(worker.gone, "");
		IS(asked(0, &second, 0), 1);
		worker.accept_stat = how == 1 ? 3 : 0;
		if (how == 2) {
			shutdown(channels[1], SHUT_WR);
			run_for(2);
		} else {
			ckt_group_ended(sessions[1]);
		}
		snprintf(expected, sizeof expected, " %.*s %.*s", CKT_GROUP_NAME,
			(const char *)second.bytes, CKT_GROUP_NAME, (const char *)claimed.bytes);
		YES(run_until(is_told, NULL));
		run_for(20);
		CU_ASSERT_STRING_EQUAL(worker.gone, expected);
		gone(0, names, sizeof names);
		CU_ASSERT_STRING_EQUAL(names, how == 1 ? expected : "");
		gone(2, names, sizeof names);
		CU_ASSERT_STRING_EQUAL(names, "");
		worker.accept_stat = 0;
		end();
	}
}

UNIT_SUITE(group, {"find", test_find}, {"ended", test_ended}, {"ranks", test_ranks},
	{"restored", test_restored}, {"refused", test_refused}, {"garbage", test_garbage},
	{"full", test_full})
