/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/group.h: the worker finds others through its server, is found, keeps its
 * claims over a change of the server, and takes no descriptor but a packet socket.
 */
#include "server/worker/session/group.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "tests/unit/worker/group_kit.h"

static atomic_uint questions; /* that were waited for */

static void say_hello(struct ckt_worker *worker, const struct ckt_group_name *name, int connection)
{
	char byte = 0;
	(void)worker;
	atomic_fetch_add(&questions, 1);
	if (recv(connection, &byte, 1, 0) == 1)
		send(connection, name->bytes, sizeof name->bytes, MSG_NOSIGNAL);
}

static struct ckt_group_name gone;

static void note_gone(struct ckt_worker *worker, const struct ckt_group_name *name)
{
	(void)worker;
	gone = *name;
}

/* What comes back: 'n' for nobody, the name for somebody. */
static ssize_t ask(const struct ckt_group_name *name, unsigned nth, char ret[CKT_GROUP_NAME])
{
	int connection = ckt_group_ask(name, nth);
	if (connection < 0)
		return connection;
	send(connection, "?", 1, MSG_NOSIGNAL);
	ssize_t n = recv(connection, ret, CKT_GROUP_NAME, 0);
	if (n < 0 && errno == ECONNRESET)
		n = recv(connection, ret, CKT_GROUP_NAME, 0);
	close(connection);
	return n;
}

static void await_claims(unsigned count)
{
	for (int i = 0; i < 60000 && atomic_load(&group_kit.claimed) < count; i++)
		usleep(1000);
	IS(atomic_load(&group_kit.claimed), count);
}

static void test_find(void)
{
	const struct ckt_group_name name = ckt_group_session("abcdefabcdef", 12),
				    other = ckt_group_session("abcdefabcdee", 12);
	char text[CKT_GROUP_NAME];
	atomic_store(&group_kit.claimed, 0);
	group_kit_begin();
	YES(ckt_group_joined());
	IS(ask(&name, 0, text), 1);
	IS(text[0], CKT_GROUP_NOBODY);
	IS(ckt_group_claim(&name, say_hello), 0);
	await_claims(1);
	IS(ask(&name, 0, text), CKT_GROUP_NAME);
	IS(memcmp(text, name.bytes, sizeof text), 0);
	IS(ask(&name, 1, text), 1);
	IS(ask(&other, 0, text), 1);
	/* The next server hears of it, too. */
	group_kit_end();
	group_kit_begin();
	await_claims(2);
	IS(ask(&name, 0, text), CKT_GROUP_NAME);
	ckt_group_drop(&name);
	await_claims(3);
	IS(ask(&name, 0, text), 1);
	ckt_group_drop(&name);
	group_kit_end();
	/* Questions wait for the next server, though not for ever. */
	int64_t before = ckt_net_now_ms();
	IS(ask(&name, 0, text), -ENOTCONN);
	YES(ckt_net_now_ms() - before >= 100);
}

static void test_many(void)
{
	struct ckt_group_name name = {{0}};
	for (unsigned i = 0; i < CKT_GROUP_CLAIMS_MAX; i++) {
		memcpy(name.bytes, &i, sizeof i);
		IS(ckt_group_claim(&name, NULL), 0);
	}
	struct ckt_group_name further = ckt_group_session("abcdefabcdef", 12);
	IS(ckt_group_claim(&name, NULL), 0); /* again */
	IS(ckt_group_claim(&further, NULL), -ENOSPC);
	for (unsigned i = 0; i < CKT_GROUP_CLAIMS_MAX; i++) {
		memcpy(name.bytes, &i, sizeof i);
		ckt_group_drop(&name);
	}
	IS(ckt_group_claim(&further, NULL), 0);
	ckt_group_drop(&further);
}

/* What else may come as a channel, or over it. */
static void test_wrong(void)
{
	int ends[2],
		files[] = {open("/dev/null", O_RDWR | O_CLOEXEC),
			socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
			socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
	for (unsigned i = 0; i < COUNT(files); i++)
		IS(ckt_group_join(files[i]), -EINVAL);
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	MUST(ckt_group_join(ends[1]), 0);
	struct ckt_group_message packet = {.kind = CKT_GROUP_OFFER};
	/* Each is closed, and nobody waits for a question. */
	for (unsigned i = 0; i < 5; i++) {
		struct iovec part = {&packet, sizeof packet - (i == 3)};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
		union ckt_net_fd_room room;
		int pair[2];
		MUST(socketpair(AF_UNIX, (i == 0 ? SOCK_STREAM : SOCK_SEQPACKET) | SOCK_CLOEXEC, 0,
			     pair),
			0);
		packet.kind = i == 1 ? CKT_GROUP_ASK : CKT_GROUP_OFFER;
		ckt_net_fd_put(&message, &room, i == 2 ? -1 : pair[1]);
		/* The last is one: its question never comes. */
		if (i == 4)
			shutdown(pair[0], SHUT_WR);
		YES(sendmsg(ends[0], &message, 0) > 0);
		close(pair[1]);
		atomic_store(&questions, 0);
		ckt_group_serve(&ckt_worker, say_hello, note_gone);
		IS(atomic_load(&questions), i == 4);
		char byte;
		if (i != 2)
			IS(recv(pair[0], &byte, 1, MSG_DONTWAIT), 0);
		close(pair[0]);
	}
	/* An end is told, and brings no question. */
	packet = (struct ckt_group_message){
		.kind = CKT_GROUP_GONE, .name = ckt_group_session("cccccccccccc", 12)};
	MUST(send(ends[0], &packet, sizeof packet - 1, 0), sizeof packet - 1);
	ckt_group_serve(&ckt_worker, say_hello, note_gone);
	IS(gone.bytes[0], 0);
	MUST(send(ends[0], &packet, sizeof packet, 0), sizeof packet);
	ckt_group_serve(&ckt_worker, say_hello, note_gone);
	YES(ckt_group_same_name(&gone, &packet.name));
	close(ends[0]);
	/* It ends with the server. */
	ckt_group_serve(&ckt_worker, say_hello, note_gone);
}

UNIT_SUITE(group, {"find", test_find}, {"many", test_many}, {"wrong", test_wrong})
