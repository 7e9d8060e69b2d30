/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/peer/peer.c: connections up to their hello: who gets in, what refusals say, and
 * bytes that are no hello.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/session_marks.h"
#include "server/daemon/session/server_key.h"

static int ask(ckt_hello_args args, const char *token, char *ret_text)
{
	ckt_greeting greeting;
	int fd = peer_new(&greeting),
	    status = hello(fd, &args, (const uint8_t *)greeting.nonce, token, ret_text);
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	close(fd);
	run_for(3);
	return status;
}

static void test_hello(void)
{
	char text[512];
	ckt_hello_args args = hello_args(CKT_HELLO_CONTROL, "");
	IS(ask(args, NULL, text), CKT_HELLO_OK);
	args.protocol++;
	IS(ask(args, NULL, text), CKT_HELLO_BAD_VERSION);
	HAS(text, "install the same");
	args = hello_args((ckt_hello_kind)99, "");
	IS(ask(args, NULL, text), -1);
	IS(ask(hello_args(CKT_HELLO_RESUME, "0123456789ab"), NULL, text), CKT_HELLO_NO_SESSION);
	HAS(text, "0123456789ab is not on here");
	ckt_session_mark_write(&server, "0123456789ab", CKT_MARK_PARKED, geteuid(), true, "x");
	IS(ask(hello_args(CKT_HELLO_RESUME, "0123456789ab"), NULL, text), CKT_HELLO_PARKED);
	ckt_session_mark_write(
		&server, "0123456789ab", CKT_MARK_MOVED, geteuid(), true, "there:7350");
	IS(ask(hello_args(CKT_HELLO_DATA, "0123456789ab"), NULL, text), CKT_HELLO_MOVED);
	HAS(text, "there:7350");
	for (int i = 0; i < CKT_MARKS; i++)
		ckt_session_mark_remove(&server, "0123456789ab", (enum ckt_session_mark)i, 0);
	/*
	 * Under an id that an image alone named: told to a client of an older build, whose id
	 * nothing proves, and to none whose secret makes it.
	 */
	char made[CKT_SESSION_ID_SIZE + 1];
	uint8_t hash[CKT_AUTH_HASH_SIZE];
	ckt_auth_hash(hello_args(CKT_HELLO_RESUME, "").secret, CKT_SECRET_SIZE, hash);
	ckt_server_key_session_id(hash, 0, made);
	ckt_session_mark_write(
		&server, "0123456789ab", CKT_MARK_MOVED, geteuid(), false, "there:7350");
	ckt_session_mark_write(&server, made, CKT_MARK_MOVED, geteuid(), false, "there:7350");
	IS(ask(hello_args(CKT_HELLO_RESUME, "0123456789ab"), NULL, text), CKT_HELLO_MOVED);
	IS(ask(hello_args(CKT_HELLO_RESUME, made), NULL, text), CKT_HELLO_NO_SESSION);
	ckt_session_mark_write(&server, made, CKT_MARK_MOVED, geteuid(), true, "there:7350");
	IS(ask(hello_args(CKT_HELLO_RESUME, made), NULL, text), CKT_HELLO_MOVED);
	ckt_session_mark_remove(&server, "0123456789ab", CKT_MARK_MOVED, 0);
	ckt_session_mark_remove(&server, made, CKT_MARK_MOVED, 0);
	/* A lane of a session that is known by a secret: whoever saw that could have it. */
	struct ckt_session *session = session_new("0123456789ab");
	IS(ask(hello_args(CKT_HELLO_DATA, "0123456789ab"), NULL, text), CKT_HELLO_DENIED);
	HAS(text, "only a session with a key");
	/* And of one with a key that the peer does not prove. */
	args = hello_args(CKT_HELLO_DATA, "0123456789ab");
	memcpy(args.secret, "key", 3);
	IS(ask(args, NULL, text), CKT_HELLO_DENIED);
	HAS(text, "does not prove");
	session_drop(session);
	server.stopping = true;
	IS(ask(hello_args(CKT_HELLO_NEW, ""), NULL, text), CKT_HELLO_SHUTTING_DOWN);
	server.stopping = false;
	IS(server.peers_waiting, 0);
	CU_ASSERT_PTR_NULL(server.peers_first);
}

static void test_token(void)
{
	char text[512];
	ckt_greeting greeting;
	server.token = (struct ckt_token){.bytes = "right", .size_bytes = 5};
	/*
	 * Over a UNIX socket the kernel says who it is: no token is needed, but a wrong one is
	 * refused.
	 */
	IS(ask(hello_args(CKT_HELLO_CONTROL, ""), NULL, text), CKT_HELLO_OK);
	IS(ask(hello_args(CKT_HELLO_CONTROL, ""), "right", text), CKT_HELLO_OK);
	IS(ask(hello_args(CKT_HELLO_CONTROL, ""), "wrong", text), CKT_HELLO_DENIED);
	HAS(text, "CRICKET_TOKEN_FILE");
	/* From elsewhere. */
	static const struct {
		int kind;
		bool insecure, token_there;
		const char *token;
		int status;
	} cases[] = {
		{CKT_PEER_LOOPBACK, false, true, NULL, CKT_HELLO_DENIED},
		{CKT_PEER_LOOPBACK, false, true, "right", CKT_HELLO_OK},
		{CKT_PEER_REMOTE, false, true, NULL, CKT_HELLO_DENIED},
		{CKT_PEER_REMOTE, false, true, "right", CKT_HELLO_OK},
		{CKT_PEER_REMOTE, true, true, NULL, CKT_HELLO_OK},
		{CKT_PEER_REMOTE, false, false, NULL, CKT_HELLO_DENIED},
		{CKT_PEER_LOOPBACK, false, false, NULL, CKT_HELLO_OK},
		{CKT_PEER_REMOTE, true, false, NULL, CKT_HELLO_OK},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		server.token.size_bytes = cases[i].token_there ? 5 : 0;
		server.options.insecure = cases[i].insecure;
		ckt_hello_args args = hello_args(CKT_HELLO_CONTROL, "");
		int fd = peer_new(&greeting);
		peer_last()->who.kind = cases[i].kind;
		peer_last()->who.uid = 12345;
		if (!IS(hello(fd, &args, (const uint8_t *)greeting.nonce, cases[i].token, text),
			    cases[i].status))
			CU_FAIL("of a row of the table");
		xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
		close(fd);
		run_for(3);
	}
	server.options.insecure = false;
	server.token.size_bytes = 0;
}

static void test_garbage(void)
{
	static const char *const cases[] = {
		"", "hello", "GET / HTTP/1.0\r\nHost: here\r\nAccept: everything\r\n\r\n"};
	uint8_t record[200] = {0};
	size_t size;
	for (size_t i = 0; i < COUNT(cases); i++) {
		int fd = peer_new(NULL);
		send_bytes(fd, cases[i], strlen(cases[i]), -1);
		CU_ASSERT_PTR_NULL(receive(fd, &size));
		close(fd);
	}
	/* Each word of the header must be what it is. */
	static const uint32_t head[] = {7, 0, 2, CRICKET_SESSION_PROG, 1, CKT_SESSION_HELLO,
		CKT_AUTH_NONE, 0, CKT_AUTH_NONE, 0};
	for (size_t wrong = 1; wrong < COUNT(head); wrong++) {
		uint8_t *p = record;
		for (size_t i = 0; i < COUNT(head); i++)
			p = ckt_put_u32(p, head[i] + (i == wrong));
		int fd = peer_new(NULL);
		send_bytes(fd, record, sizeof record, -1);
		CU_ASSERT_PTR_NULL(receive(fd, &size));
		close(fd);
	}
	/* A record longer than any hello ends it before it has come. */
	int fd = peer_new(NULL);
	IS(write(fd, "\x80\x00\x10\x01", 4), 4);
	CU_ASSERT_PTR_NULL(receive(fd, &size));
	close(fd);
	IS(server.peers_waiting, 0);
}

static void test_rights(void)
{
	uid_t self = geteuid(), other = self + 1;
	const uint32_t single = ckt_owner_of_token(CKT_SINGLE_TOKEN_NAME);
	const struct {
		uint32_t uid;
		uint32_t token;
		uint32_t owner;
		bool may;
	} cases[] = {
		{self, 0, self, true},
		{0, 0, other, true},
		{other, 0, other, true},
		{other, 0, self, false},
		{other, single, self, false},
		{other, single, single, true},
		{self, 0, other, true},
		{CKT_UID_UNKNOWN, 0, self, false},
		{CKT_UID_UNKNOWN, single, self, false},
		{CKT_UID_UNKNOWN, single, single, true},
		{CKT_UID_UNKNOWN, 0, CKT_UID_UNKNOWN, false},
		{CKT_UID_UNKNOWN, single, CKT_UID_UNKNOWN, false},
		{other, 0, CKT_UID_UNKNOWN, false},
	};
	server.token = (struct ckt_token){.bytes = "right", .size_bytes = 5};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ckt_peer peer = {
			.server = &server, .token = cases[i].token, .who = {.uid = cases[i].uid}};
		IS(ckt_peer_may(&peer, cases[i].owner), cases[i].may);
	}
	server.token.size_bytes = 0;
}

/* Held by a callback to come, a peer outlives its connection. */
static void test_hold(void)
{
	int fd = control_new();
	struct ckt_peer *peer = peer_last();
	ckt_peer_hold(peer);
	ckt_peer_hold(peer);
	ckt_peer_close(peer);
	YES(peer->gone);
	CU_ASSERT_PTR_NULL(server.peers_first);
	ckt_peer_close(peer);
	NO(ckt_peer_release(peer));
	NO(ckt_peer_release(peer));
	close(fd);
}

/* Not there any more, and not gone yet: a client that hears "no session" may never ask again. */
static void test_ending(void)
{
	char text[512];
	struct ckt_session *session = session_new("0000000000b2");
	session->phase = CKT_SESSION_ENDING;
	IS(ask(hello_args(CKT_HELLO_RESUME, "0000000000b2"), NULL, text), CKT_HELLO_FAILED);
	HAS(text, "0000000000b2 is starting or ending on here");
	IS(ask(hello_args(CKT_HELLO_CONTROL, "0000000000b2"), NULL, text), CKT_HELLO_FAILED);
	/* It was stopped on purpose, and its client waits. */
	ckt_session_mark_write(&server, "0000000000b2", CKT_MARK_PARKED, geteuid(), true, "x");
	IS(ask(hello_args(CKT_HELLO_RESUME, "0000000000b2"), NULL, text), CKT_HELLO_PARKED);
	ckt_session_mark_remove(&server, "0000000000b2", CKT_MARK_PARKED, 0);
	session_drop(session);
	IS(ask(hello_args(CKT_HELLO_RESUME, "0000000000b2"), NULL, text), CKT_HELLO_NO_SESSION);
}

static struct ckt_peer *slot_peer;
static unsigned slot_waits;

/* The wait is over, as the clock would say. */
static void end_wait(struct ckt_timer *timer)
{
	if (server.peers_last != slot_peer)
		return;
	ckt_timer_set(&server.loop, timer, 20);
	if (!slot_peer->wants_slot)
		return;
	slot_waits++;
	ckt_timer_set(&server.loop, &slot_peer->timer, 0);
}

static void check_full(bool ending)
{
	char text[512];
	struct ckt_session *session = session_new("0000000000b1");
	server.options.max_sessions = 1;
	/* It waits for a place, and one that comes free while the server stops is none. */
	ckt_greeting greeting;
	int fd = peer_new(&greeting);
	struct ckt_peer *peer = peer_last();
	ckt_hello_args args = hello_args(CKT_HELLO_NEW, "");
	/* It waits for some seconds; not here.  While a worker is being ended, longer, but not for ever. */
	slot_peer = peer;
	slot_waits = 0;
	session->phase = ending ? CKT_SESSION_ENDING : CKT_SESSION_LIVE;
	struct ckt_timer hurry = {.fire = end_wait};
	ckt_timer_set(&server.loop, &hurry, 20);
	IS(hello(fd, &args, (const uint8_t *)greeting.nonce, NULL, text), CKT_HELLO_FULL);
	HAS(text, "--max-sessions");
	IS(slot_waits, ending ? 5 : 1);
	session->phase = CKT_SESSION_LIVE;
	ckt_timer_clear(&hurry);
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	close(fd);
	server.options.max_sessions = 0;
	run_for(3);
	session_drop(session);
}

static void test_full(void)
{
	check_full(false);
	check_full(true);
}

UNIT_SUITE(peer, {"hello", test_hello}, {"token", test_token}, {"garbage", test_garbage},
	{"rights", test_rights}, {"hold", test_hold}, {"ending", test_ending}, {"full", test_full})
