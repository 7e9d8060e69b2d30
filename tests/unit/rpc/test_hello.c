/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/hello.h: a server's side written beforehand, and what the client makes of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/credential.h"
#include "rpc/hello.h"
#include "rpc/identity.h"
#include "rpc/net.h"
#include "rpc/session.h"
#include "tests/unit/suite.h"

#define TOKEN "0123456789abcdef"

enum { HELLO_XID = 1, FLAVOUR_OFFSET = 24, BODY_OFFSET = 32 };

static char token_path[] = "/tmp/ckt-hello-XXXXXX";

static void write_greeting(int fd, bool takes_token, bool takes_none, bool takes_proof)
{
	uint32_t flavours[3], count = 0;
	if (takes_token)
		flavours[count++] = takes_proof ? CKT_AUTH_CRICKET_NAMED : CKT_AUTH_CRICKET_TOKEN;
	if (takes_proof)
		flavours[count++] = CKT_AUTH_CRICKET_PROOF;
	if (takes_none)
		flavours[count++] = CKT_AUTH_NONE;
	ckt_greeting greeting = {.protocol = CKT_PROTOCOL_VERSION, .flavours = {count, flavours}};
	memset(greeting.nonce, 0x5a, sizeof greeting.nonce);
	uint8_t *data;
	size_t size;
	MUST(ckt_net_encode_call(0, CRICKET_CALLBACK_PROG, CKT_CALLBACK_GREETING,
		     (xdrproc_t)xdr_ckt_greeting, &greeting, &data, &size),
		0);
	ckt_net_write_record(fd, data, size, -1, -1);
	free(data);
}

static void write_answer(int fd, uint32_t xid, ckt_hello_status status)
{
	ckt_hello_res res = {.status = status,
		.ckt_hello_res_u.refused = {
			.message = (char *)"no, for a reason", .moved_to = (char *)""}};
	uint8_t *data;
	size_t size;
	if (status == CKT_HELLO_OK)
		res.ckt_hello_res_u.ok = (ckt_hello_ok){
			.session = (char *)"", .server = (char *)"s", .build = (char *)"b"};
	MUST(ckt_net_encode_reply(xid, 0, (xdrproc_t)xdr_ckt_hello_res, &res, &data, &size), 0);
	ckt_net_write_record(fd, data, size, -1, -1);
	free(data);
}

/* The credential's flavour of the hello that lies in the socket; checks the rest of it. */
static uint32_t hello_flavour(int fd)
{
	uint8_t *data;
	size_t size;
	MUST(ckt_net_read_record(fd, CKT_HELLO_MAX, ckt_net_now_ms() + 60000, &data, &size, NULL),
		0);
	struct ckt_cursor c = {.p = data + FLAVOUR_OFFSET, .end = data + size};
	uint32_t flavour = ckt_get_u32(&c), length = ckt_get_u32(&c);
	const uint8_t *body = c.p;
	c.p += length + 8;
	ckt_hello_args args = {0};
	if (flavour == CKT_AUTH_CRICKET_TOKEN) {
		struct ckt_token token = {.size_bytes = strlen(TOKEN)};
		uint8_t nonce[CKT_AUTH_NONCE_SIZE], hmac[CKT_AUTH_HMAC_SIZE];
		memcpy(token.bytes, TOKEN, token.size_bytes);
		memset(nonce, 0x5a, sizeof nonce);
		ckt_auth_hmac(&token, nonce, c.p, (size_t)(c.end - c.p), hmac);
		IS(length, sizeof hmac);
		IS(memcmp(body, hmac, sizeof hmac), 0);
	} else if (flavour == CKT_AUTH_CRICKET_PROOF) {
		struct ckt_token token = {.size_bytes = strlen(TOKEN)};
		struct ckt_token_verifier verifier;
		struct ckt_credential credential;
		uint8_t nonce[CKT_AUTH_NONCE_SIZE];
		memset(nonce, 0x5a, sizeof nonce);
		memcpy(token.bytes, TOKEN, token.size_bytes);
		ckt_token_verifier_make(&token, &verifier);
		const struct ckt_challenge challenge = {nonce, c.p, (size_t)(c.end - c.p)};
		MUST(ckt_credential_get(body, length, &credential), true);
		YES(ckt_token_check(&verifier, &challenge, &credential));
		NO(credential.has_key);
	} else {
		IS(length, 0);
	}
	MUST(ckt_net_decode(&c, (xdrproc_t)xdr_ckt_hello_args, &args), 0);
	IS(args.kind, CKT_HELLO_CONTROL);
	TEXT(args.program_name, "who");
	IS(args.pid, getpid());
	xdr_free((xdrproc_t)xdr_ckt_hello_args, (char *)&args);
	free(data);
	return flavour;
}

static void test_hello(void)
{
	static const struct {
		bool takes_token, takes_none, is_unix, takes_proof;
		const char *file; /* "": the good one */
		int result;
		uint32_t flavour;
		const char *says;
	} rows[] = {
		{false, true, true, false, NULL, 0, CKT_AUTH_NONE, ""},
		{false, true, false, false, "/nowhere", 0, CKT_AUTH_NONE, ""}, /* nobody wants it */
		{true, true, true, false, "", 0, CKT_AUTH_CRICKET_TOKEN, ""},
		{true, true, true, false, "/nowhere", 0, CKT_AUTH_NONE, ""},
		{true, false, false, false, "", 0, CKT_AUTH_CRICKET_TOKEN, ""},
		{true, false, false, false, NULL, 0, CKT_AUTH_NONE,
			""}, /* the server's to refuse */
		{true, false, false, false, "/nowhere", -ENOKEY, 0, "/nowhere"},
		{false, true, false, true, "", 0, CKT_AUTH_NONE, ""},
		{true, false, false, true, "", 0, CKT_AUTH_CRICKET_PROOF, ""},
		{true, true, true, true, "", 0, CKT_AUTH_CRICKET_PROOF, ""},
		{true, false, false, true, NULL, 0, CKT_AUTH_NONE, ""},
	};
	int fd = mkstemp(token_path);
	IS(write(fd, TOKEN, strlen(TOKEN)), strlen(TOKEN));
	fchmod(fd, 0600);
	close(fd);
	for (size_t i = 0; i < COUNT(rows); i++) {
		int fds[2];
		char message[512] = "";
		MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		write_greeting(
			fds[1], rows[i].takes_token, rows[i].takes_none, rows[i].takes_proof);
		write_answer(fds[1], HELLO_XID, CKT_HELLO_OK);
		const char *file = rows[i].file && !*rows[i].file ? token_path : rows[i].file;
		IS(ckt_hello_control(&fds[0], NULL, rows[i].is_unix, "who", file,
			   ckt_net_now_ms() + 60000, message, sizeof message),
			rows[i].result);
		if (rows[i].result)
			HAS(message, rows[i].says);
		else
			IS(hello_flavour(fds[1]), rows[i].flavour);
		close(fds[0]);
		close(fds[1]);
	}
	unlink(token_path);
}

static void test_bad(void)
{
	static const struct {
		int what;
		int result;
	} rows[] = {{0, -ETIMEDOUT}, {1, -EPROTO}, {2, -ETIMEDOUT}, {3, -EPROTO}, {4, -EACCES},
		{5, -EPROTO}, {6, -ECONNRESET}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		int fds[2], what = rows[i].what;
		char message[512] = "-";
		MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		if (what == 1)
			ckt_net_write_record(fds[1], (const uint8_t *)"nonsense", 8, -1, -1);
		if (what >= 2)
			write_greeting(fds[1], false, true, false);
		if (what == 3)
			ckt_net_write_record(fds[1], (const uint8_t *)"nonsense", 8, -1, -1);
		if (what == 4)
			write_answer(fds[1], HELLO_XID, CKT_HELLO_DENIED);
		if (what == 5)
			write_answer(fds[1], HELLO_XID + 1, CKT_HELLO_OK);
		if (what == 6)
			shutdown(fds[1], SHUT_WR);
		/* What is there is read, however late. */
		int wait_ms = rows[i].result == -ETIMEDOUT ? 50 : 60000;
		IS(ckt_hello_control(&fds[0], NULL, true, "who", NULL, ckt_net_now_ms() + wait_ms,
			   message, sizeof message),
			rows[i].result);
		TEXT(message, what == 4 ? "no, for a reason" : "-");
		close(fds[0]);
		close(fds[1]);
	}
}

UNIT_SUITE(hello, {"hello", test_hello}, {"bad servers", test_bad})
