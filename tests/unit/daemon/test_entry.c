/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/peer/entry.c: what a hello proves: tokens and sessions' keys, right ones, others'
 * and those that were heard once.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/peer/entry.h"

static int ask(const ckt_hello_args *args, const char *token, const struct ckt_session_key *key,
	char *ret_text)
{
	ckt_greeting greeting;
	int fd = peer_new(&greeting),
	    status = hello_proving(fd, args, &greeting, token, key, ret_text);
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	close(fd);
	run_for(3);
	return status;
}

/* A client that says it is the one of a session must hold the session's key. */
static void test_key(void)
{
	char text[512];
	struct ckt_session_key key, other;
	ckt_hello_args args = hello_args(CKT_HELLO_RESUME, "0123456789ab");
	MUST(ckt_session_key_make(&key), 0);
	MUST(ckt_session_key_make(&other), 0);
	ckt_session_key_secret(key.public_key, (uint8_t *)args.secret);
	IS(ask(&args, NULL, &key, text), CKT_HELLO_NO_SESSION);
	/* Heard on the wire, or read from an image: the fingerprint alone. */
	IS(ask(&args, NULL, NULL, text), CKT_HELLO_DENIED);
	HAS(text, "does not prove that it holds the session's key");
	IS(ask(&args, NULL, &other, text), CKT_HELLO_DENIED);
	HAS(text, "does not prove that it holds the session's key");
	args.kind = CKT_HELLO_DATA;
	IS(ask(&args, NULL, NULL, text), CKT_HELLO_DENIED);
	args.kind = CKT_HELLO_CONTROL;
	IS(ask(&args, NULL, &other, text), CKT_HELLO_DENIED);
	args = hello_args(CKT_HELLO_NEW, "");
	ckt_session_key_secret(key.public_key, (uint8_t *)args.secret);
	IS(ask(&args, NULL, &other, text), CKT_HELLO_DENIED);
	/* A client of an earlier version shows a secret. */
	args = hello_args(CKT_HELLO_RESUME, "0123456789ab");
	IS(ask(&args, NULL, NULL, text), CKT_HELLO_NO_SESSION);
}

/* What another connection's client said. */
static void test_replay(void)
{
	char text[512];
	struct ckt_session_key key;
	ckt_greeting heard;
	ckt_hello_args args = hello_args(CKT_HELLO_RESUME, "0123456789ab");
	MUST(ckt_session_key_make(&key), 0);
	ckt_session_key_secret(key.public_key, (uint8_t *)args.secret);
	int first = peer_new(&heard), second = peer_new(NULL);
	server.token = (struct ckt_token){.bytes = "right", .size_bytes = 5};
	IS(hello_proving(second, &args, &heard, NULL, &key, text), CKT_HELLO_DENIED);
	close(second);
	second = peer_new(NULL);
	IS(hello_proving(second, &args, &heard, "right", NULL, text), CKT_HELLO_DENIED);
	HAS(text, "the token does not match");
	IS(hello_proving(first, &args, &heard, NULL, &key, text), CKT_HELLO_NO_SESSION);
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&heard);
	server.token.size_bytes = 0;
	close(first);
	close(second);
	run_for(3);
}

static void test_token(void)
{
	char text[512];
	const ckt_hello_args args = hello_args(CKT_HELLO_CONTROL, "");
	ckt_greeting greeting;
	int fd = peer_new(&greeting);
	NO(ckt_greeting_takes_token(&greeting));
	YES(ckt_greeting_offers(&greeting, CKT_AUTH_CRICKET_PROOF));
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	close(fd);
	/* A server without tokens has nothing to judge one by. */
	IS(ask(&args, "right", NULL, text), CKT_HELLO_OK);
	server.token = (struct ckt_token){.bytes = "right", .size_bytes = 5};
	fd = peer_new(&greeting);
	YES(ckt_greeting_offers(&greeting, CKT_AUTH_CRICKET_NAMED));
	peer_last()->who.kind = CKT_PEER_REMOTE;
	IS(hello_proving(fd, &args, &greeting, "right", NULL, text), CKT_HELLO_OK);
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	close(fd);
	run_for(3);
	IS(ask(&args, "right", NULL, text), CKT_HELLO_OK);
	IS(ask(&args, "wrong", NULL, text), CKT_HELLO_DENIED);
	HAS(text, "the token does not match");
	server.token.size_bytes = 0;
}

/* The header alone, changed word by word and cut anywhere. */
static void test_header(void)
{
	struct ckt_session_key key;
	struct ckt_peer peer = {.server = &server};
	struct ckt_entry entry;
	struct ckt_credential credential = {0};
	uint32_t offers = CKT_AUTH_CRICKET_PROOF;
	const ckt_greeting greeting = {.flavours = {1, &offers}};
	const struct ckt_challenge challenge = {peer.nonce, "arguments...", 12};
	uint8_t record[CKT_HELLO_HEAD_MAX + 12];
	MUST(ckt_session_key_make(&key), 0);
	MUST(ckt_session_key_prove(&key, &challenge, &credential), 0);
	size_t size = (size_t)(ckt_hello_put(record, 9, &greeting, NULL, &credential, &challenge) -
		       record),
	       head = size - challenge.args_bytes;
	struct ckt_cursor c = {.p = record, .end = record + size};
	MUST(ckt_entry_read(&c, &peer, &entry), true);
	IS(entry.xid, 9);
	YES(entry.credential.has_key);
	IS(entry.challenge.args_bytes, 12);
	YES(ckt_session_key_check(&entry.challenge, &entry.credential));
	for (size_t cut = 0; cut < head; cut++) {
		c = (struct ckt_cursor){.p = record, .end = record + cut};
		NO(ckt_entry_read(&c, &peer, &entry));
	}
	/* A credential longer than any. */
	record[31] = 0xff;
	c = (struct ckt_cursor){.p = record, .end = record + size};
	NO(ckt_entry_read(&c, &peer, &entry));
}

UNIT_SUITE(entry, {"key", test_key}, {"replay", test_replay}, {"token", test_token},
	{"header", test_header})
