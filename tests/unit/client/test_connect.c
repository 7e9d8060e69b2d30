/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn/connect.c (client/conn/conn.h): one attempt at one address, against a server that
 * answers once.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/conn/settings.h"
#include "conn_parts.h"
#include "cudacommon/visible_devices.h"
#include "tests/unit/suite.h"

static struct server {
	/*
	 * enum ckt_hello_status; -1: closes instead of greeting, -2: greets with nonsense, -3:
	 * answers so
	 */
	int listener, status;
	uint32_t flavour;
	uint32_t hello_flavour, pieces; /* what came */
	uint8_t credential[CKT_CREDENTIAL_MAX], secret[CKT_SECRET_SIZE];
	uint32_t credential_size;
	struct ckt_challenge challenge;
	struct ckt_credential proofs;
	bool proven; /* the key */
	char session[32];
} server;

static const uint8_t nonce[CKT_NONCE_SIZE]; /* of every greeting */

static void greet(int fd)
{
	uint32_t flavours[] = {server.flavour, CKT_AUTH_NONE};
	struct ckt_greeting greeting = {.protocol = 1,
		.flavours = {server.flavour == CKT_AUTH_CRICKET_PROOF ? 2 : 1, flavours}};
	uint8_t *data;
	size_t size;
	if (server.status == -2) {
		ckt_net_write_record(fd, (const uint8_t *)"HTTP/1.1", 8, -1, -1);
		return;
	}
	ckt_net_encode_call(0, CRICKET_CALLBACK_PROG, CKT_CALLBACK_GREETING,
		(xdrproc_t)xdr_ckt_greeting, &greeting, &data, &size);
	ckt_net_write_record(fd, data, size, -1, -1);
	free(data);
}

static void answer_hello(int fd)
{
	struct ckt_hello_args hello = {0};
	struct ckt_hello_res res = {.status = (enum ckt_hello_status)server.status};
	uint8_t *data;
	size_t size;
	if (ckt_net_read_record(fd, CKT_HELLO_MAX, ckt_net_now_ms() + 60000, &data, &size, NULL))
		return;
	struct ckt_cursor flavour = {.p = data + 24, .end = data + size};
	server.hello_flavour = ckt_get_u32(&flavour);
	server.credential_size = ckt_get_u32(&flavour);
	memcpy(server.credential, flavour.p,
		server.credential_size < sizeof server.credential ? server.credential_size : 0);
	struct ckt_cursor c = {.p = data + 40 + server.credential_size, .end = data + size};
	server.challenge = (struct ckt_challenge){
		.nonce = nonce, .args = c.p, .args_bytes = (size_t)(c.end - c.p)};
	server.proven = server.hello_flavour == CKT_AUTH_CRICKET_PROOF &&
		ckt_credential_get(server.credential, server.credential_size, &server.proofs) &&
		ckt_session_key_check(&server.challenge, &server.proofs);
	if (ckt_net_decode(&c, (xdrproc_t)xdr_ckt_hello_args, &hello) == 0) {
		server.pieces = hello.capabilities.capabilities_len;
		snprintf(server.session, sizeof server.session, "%s", hello.session);
		memcpy(server.secret, hello.secret, sizeof server.secret);
		xdr_free((xdrproc_t)xdr_ckt_hello_args, (char *)&hello);
	}
	free(data);
	if (server.status == CKT_HELLO_OK) {
		res.ckt_hello_res_u.ok = (struct ckt_hello_ok){.protocol = 1,
			.session = (char *)PARTS_SESSION,
			.generation = 3,
			.executed = 4,
			.server = (char *)"fake",
			.build = (char *)"test"};
	} else {
		res.ckt_hello_res_u.refused.message = (char *)"because";
		res.ckt_hello_res_u.refused.moved_to = (char *)"elsewhere:1";
	}
	if (server.status == -3)
		ckt_net_write_record(fd, (const uint8_t *)"nonsense", 8, -1, -1);
	else if (!ckt_net_encode_reply(0, 0, (xdrproc_t)xdr_ckt_hello_res, &res, &data, &size)) {
		ckt_net_write_record(fd, data, size, -1, -1);
		free(data);
	}
}

static void *serve(void *unused)
{
	poll(&(struct pollfd){.fd = server.listener, .events = POLLIN}, 1, 60000);
	int fd = accept(server.listener, NULL, NULL);
	if (server.status != -1)
		greet(fd);
	if (server.status != -1 && server.status != -2)
		answer_hello(fd);
	close(fd);
	return NULL;
}

static char path[64], message[CKT_MESSAGE_MAX], moved[CKT_ADDRESS_MAX + 1];

static int attempt(
	int status, uint32_t flavour, enum ckt_hello_kind kind, struct ckt_hello_ok *ret_ok)
{
	struct ckt_address address = {.type = CKT_ADDRESS_UNIX};
	char text[80];
	pthread_t thread;
	int fd = -1;
	snprintf(path, sizeof path, "/tmp/ckt-connect-%d", (int)getpid());
	snprintf(address.host, sizeof address.host, "%s", path);
	snprintf(text, sizeof text, "unix:%s", path);
	*moved = 0;
	server.status = status;
	server.flavour = flavour;
	server.hello_flavour = 4711;
	MUST(ckt_net_listen(&address, 0600, &server.listener, message, sizeof message), 0);
	MUST(pthread_create(&thread, NULL, serve, NULL), 0);
	int result = ckt_connect(&ckt_conn, text, kind, 5000, &fd, ret_ok, moved, sizeof moved,
		message, sizeof message);
	IS(fd >= 0, result == 0);
	if (fd >= 0)
		close(fd);
	pthread_join(thread, NULL);
	close(server.listener);
	unlink(path);
	return result;
}

static void test_answers(void)
{
	static const struct {
		int status, result;
		const char *says;
	} rows[] = {
		{CKT_HELLO_MOVED, -EREMCHG, "because"},
		{CKT_HELLO_NO_SESSION, -ENOENT, "because"},
		{CKT_HELLO_PARKED, -EAGAIN, "because"},
		{CKT_HELLO_SHUTTING_DOWN, -EAGAIN, "because"},
		{CKT_HELLO_NO_DEVICE, -ENODEV, "because"},
		{CKT_HELLO_INVALID_DEVICE, -ENXIO, "because"},
		{CKT_HELLO_DENIED, -EACCES, "because"},
		{CKT_HELLO_FULL, -EACCES, "because"},
		{CKT_HELLO_STALE, -EACCES, "because"},
		{CKT_HELLO_BAD_VERSION, -EACCES, "because"},
		{-2, -EPROTO, "check that this is a cricket-server's port"},
		{-3, -EPROTO, "check that this is a cricket-server's port"},
	};
	ckt_conn.visible = NULL;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ckt_hello_ok ok = {0};
		ckt_conn.parked = false;
		IS(attempt(rows[i].status, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), rows[i].result);
		HAS(message, rows[i].says);
		TEXT(moved, rows[i].status == CKT_HELLO_MOVED ? "elsewhere:1" : "");
		IS(ckt_conn.parked, rows[i].status == CKT_HELLO_PARKED);
	}
	ckt_conn.parked = false;
	struct ckt_hello_ok ok = {0};
	YES(attempt(-1, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok) < 0);
	HAS(message, "during the hello");
	MUST(attempt(CKT_HELLO_OK, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), 0);
	TEXT(ok.session, PARTS_SESSION);
	IS(ok.generation, 3);
	IS(ok.executed, 4);
	xdr_free((xdrproc_t)xdr_ckt_hello_ok, (char *)&ok);
}

/*
 * A new session names none; one that is looked for names itself, and its GPUs were chosen long ago.
 */
static void test_hello(void)
{
	char visible[CKT_HELLO_MAX];
	struct ckt_hello_ok ok = {0};
	strcpy(ckt_conn.session, PARTS_SESSION);
	ckt_conn.visible = "";
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), -EACCES);
	IS(server.pieces, 1);
	TEXT(server.session, "");
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_NONE, CKT_HELLO_RESUME, &ok), -EACCES);
	IS(server.pieces, 0);
	TEXT(server.session, PARTS_SESSION);
	memset(visible, '1', CKT_VISIBLE_TEXT_MAX + 1);
	visible[CKT_VISIBLE_TEXT_MAX + 1] = 0;
	ckt_conn.visible = visible;
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), -EMSGSIZE);
	HAS(message, "CUDA_VISIBLE_DEVICES is longer");
	visible[CKT_VISIBLE_TEXT_MAX] = 0;
	ckt_conn.visible = visible;
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), -EACCES);
	IS(server.pieces, (CKT_VISIBLE_TEXT_MAX + CKT_VISIBLE_PIECE - 1) / CKT_VISIBLE_PIECE);
	ckt_conn.visible = NULL;
}

static void test_token(void)
{
	char file[] = "/tmp/ckt-connect-token-XXXXXX";
	struct ckt_hello_ok ok = {0};
	int fd = mkstemp(file);
	memset(&ckt_settings, 0, sizeof ckt_settings);
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_CRICKET_TOKEN, CKT_HELLO_NEW, &ok), -EACCES);
	HAS(message, "set CRICKET_TOKEN_FILE");
	IS(server.hello_flavour, 4711);
	ckt_settings.token_file = "/nonexistent";
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_CRICKET_TOKEN, CKT_HELLO_NEW, &ok), -EACCES);
	HAS(message, "No such file");
	ckt_settings.token_file = file;
	IS(write(fd, " \n", 2), 2);
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_CRICKET_TOKEN, CKT_HELLO_NEW, &ok), -EACCES);
	HAS(message, "is empty");
	IS(pwrite(fd, "secret\n", 7, 0), 7);
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_CRICKET_TOKEN, CKT_HELLO_NEW, &ok), -EACCES);
	IS(server.hello_flavour, CKT_AUTH_CRICKET_TOKEN);
	/* Nobody who does not ask for it is shown anything made of it. */
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), -EACCES);
	IS(server.hello_flavour, CKT_AUTH_NONE);
	ckt_settings.token_file = NULL;
	close(fd);
	unlink(file);
}

/* The session's key never travels, and a server of an earlier version gets a secret instead. */
static void test_key(void)
{
	struct ckt_hello_ok ok = {0};
	uint8_t secret[CKT_SECRET_SIZE], wanted[CKT_SECRET_SIZE];
	memset(&ckt_settings, 0, sizeof ckt_settings);
	MUST(ckt_session_key_new(&ckt_conn.key), 0);
	ckt_session_key_secret(ckt_conn.key->public_key, wanted);
	for (int kind = CKT_HELLO_NEW; kind <= CKT_HELLO_DATA; kind++) {
		if (kind == CKT_HELLO_CONTROL)
			continue;
		IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_CRICKET_PROOF, (enum ckt_hello_kind)kind,
			   &ok),
			-EACCES);
		IS(server.hello_flavour, CKT_AUTH_CRICKET_PROOF);
		YES(server.proven);
		NO(server.proofs.has_token);
		IS(memcmp(server.secret, wanted, sizeof wanted), 0);
		IS(memcmp(server.proofs.public_key, ckt_conn.key->public_key, CKT_PUBLIC_KEY_SIZE),
			0);
	}
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), -EACCES);
	IS(server.hello_flavour, CKT_AUTH_NONE);
	NO(ckt_session_secret_is_key(server.secret));
	memcpy(secret, server.secret, sizeof secret);
	/* The session that it began moves to a server of this version. */
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_CRICKET_PROOF, CKT_HELLO_RESUME, &ok), -EACCES);
	IS(memcmp(server.secret, secret, sizeof secret), 0);
	IS(server.hello_flavour, CKT_AUTH_NONE);
}

static void test_nobody(void)
{
	struct ckt_hello_ok ok = {0};
	int fd = -1;
	memset(&ckt_settings, 0, sizeof ckt_settings);
	IS(ckt_connect(&ckt_conn, "host:port", CKT_HELLO_NEW, 1000, &fd, &ok, moved, sizeof moved,
		   message, sizeof message),
		-EINVAL);
	YES(*message);
	IS(ckt_connect(&ckt_conn, "unix:/nonexistent", CKT_HELLO_NEW, 1000, &fd, &ok, moved,
		   sizeof moved, message, sizeof message),
		-ENOENT);
	HAS(message, "set REMOTE_GPU_ADDRESS to a host that runs cricket-server");
	ckt_settings.address_given = true;
	IS(ckt_connect(&ckt_conn, "unix:/nonexistent", CKT_HELLO_NEW, 1000, &fd, &ok, moved,
		   sizeof moved, message, sizeof message),
		-ENOENT);
	HAS(message, "REMOTE_GPU_ADDRESS is right");
	IS(fd, -1);
}

UNIT_SUITE(connect, {"answers", test_answers}, {"hello", test_hello}, {"token", test_token},
	{"key", test_key}, {"nobody", test_nobody})
