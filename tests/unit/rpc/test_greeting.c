/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/greeting.h: what a server may send for a greeting and an answer, cut anywhere, and the bytes
 * of a hello.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/greeting.h"
#include "rpc/net.h"
#include "tests/unit/suite.h"

enum { WAIT_MS = 60000, ACCEPT_STAT_OFFSET = 36 };

static uint8_t *greeting_bytes(uint32_t prog, uint32_t proc, size_t *ret_size)
{
	uint32_t flavours[] = {7, CKT_AUTH_CRICKET_TOKEN};
	ckt_greeting greeting = {.protocol = 3, .flavours = {COUNT(flavours), flavours}};
	uint8_t *data = NULL;
	memset(greeting.nonce, 0x5a, sizeof greeting.nonce);
	MUST(ckt_net_encode_call(
		     9, prog, proc, (xdrproc_t)xdr_ckt_greeting, &greeting, &data, ret_size),
		0);
	return data;
}

static uint8_t *answer_bytes(
	uint32_t xid, uint8_t accept_stat, ckt_hello_status status, size_t *ret_size)
{
	ckt_hello_res res = {.status = status,
		.ckt_hello_res_u.refused = {.message = (char *)"no", .moved_to = (char *)""}};
	uint8_t *data = NULL;
	if (status == CKT_HELLO_OK)
		res.ckt_hello_res_u.ok = (ckt_hello_ok){.session = (char *)"s1",
			.generation = 2,
			.server = (char *)"s",
			.build = (char *)"b"};
	MUST(ckt_net_encode_reply(xid, 0, (xdrproc_t)xdr_ckt_hello_res, &res, &data, ret_size), 0);
	data[ACCEPT_STAT_OFFSET + 3] = accept_stat;
	return data;
}

/* What is made of a record of those bytes, and of the end of the connection behind it. */
static int read_bytes(
	const uint8_t *data, size_t size, ckt_greeting *ret_greeting, ckt_hello_res *ret_res)
{
	int fds[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	if (data)
		MUST(ckt_net_write_record(fds[1], data, size, -1, -1), 0);
	close(fds[1]);
	int64_t deadline_ms = ckt_net_now_ms() + WAIT_MS;
	struct ckt_transport t;
	ckt_transport_init_socket(&t, fds[0]);
	int result = ret_greeting ? ckt_greeting_read_from(&t, deadline_ms, ret_greeting)
				  : ckt_hello_answer_read(fds[0], 5, deadline_ms, ret_res, NULL);
	close(fds[0]);
	return result;
}

static void test_greeting(void)
{
	static const uint32_t wrong[][2] = {{CRICKET_SESSION_PROG, CKT_CALLBACK_GREETING},
		{CRICKET_CALLBACK_PROG, CKT_CALLBACK_GREETING + 1}};
	ckt_greeting greeting = {0};
	size_t size;
	uint8_t *data = greeting_bytes(CRICKET_CALLBACK_PROG, CKT_CALLBACK_GREETING, &size);
	for (size_t cut = 1; cut < size; cut++)
		IS(read_bytes(data, cut, &greeting, NULL), -EPROTO);
	MUST(read_bytes(data, size, &greeting, NULL), 0);
	free(data);
	IS(greeting.protocol, 3);
	IS(greeting.nonce[CKT_NONCE_SIZE - 1], 0x5a);
	YES(ckt_greeting_offers(&greeting, 7) &&
		ckt_greeting_offers(&greeting, CKT_AUTH_CRICKET_TOKEN));
	NO(ckt_greeting_offers(&greeting, CKT_AUTH_NONE));
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	NO(ckt_greeting_offers(&(ckt_greeting){0}, 7));
	for (size_t i = 0; i < COUNT(wrong); i++) {
		data = greeting_bytes(wrong[i][0], wrong[i][1], &size);
		IS(read_bytes(data, size, &greeting, NULL), -EPROTO);
		free(data);
	}
	/* More than a hello's size is not even read. */
	data = calloc(1, CKT_HELLO_MAX + 4);
	YES(read_bytes(data, CKT_HELLO_MAX + 4, &greeting, NULL) < 0);
	free(data);
	IS(read_bytes(NULL, 0, &greeting, NULL), -ECONNRESET);
}

static void test_answer(void)
{
	static const struct {
		uint32_t xid;
		uint8_t accept_stat;
		ckt_hello_status status;
		int result;
	} rows[] = {{5, 0, CKT_HELLO_OK, 0}, {5, 0, CKT_HELLO_DENIED, 0},
		{6, 0, CKT_HELLO_OK, -EPROTO}, {5, 1, CKT_HELLO_OK, -EPROTO}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		ckt_hello_res res = {0};
		size_t size;
		uint8_t *data =
			answer_bytes(rows[i].xid, rows[i].accept_stat, rows[i].status, &size);
		if (IS(read_bytes(data, size, NULL, &res), rows[i].result) && !rows[i].result) {
			IS(res.status, rows[i].status);
			TEXT(res.status == CKT_HELLO_OK ? res.ckt_hello_res_u.ok.session
							: res.ckt_hello_res_u.refused.message,
				res.status == CKT_HELLO_OK ? "s1" : "no");
			xdr_free((xdrproc_t)xdr_ckt_hello_res, (char *)&res);
			res = (ckt_hello_res){0};
		}
		for (size_t cut = 1; cut < size; cut++)
			IS(read_bytes(data, cut, NULL, &res), -EPROTO);
		free(data);
	}
	IS(read_bytes(NULL, 0, NULL, &(ckt_hello_res){0}), -ECONNRESET);
}

/* The credential that a server which offers so gets; the rest of the record is checked here. */
static uint32_t put(const uint32_t *flavours, unsigned count, const struct ckt_token *token,
	struct ckt_credential credential, struct ckt_cursor *ret_body)
{
	static uint8_t record[CKT_HELLO_HEAD_MAX + 8];
	static const uint32_t call[] = {
		5, 0, 2, CRICKET_SESSION_PROG, CRICKET_SESSION_VERS, CKT_SESSION_HELLO};
	const ckt_greeting greeting = {.flavours = {count, (u_int *)flavours}};
	const struct ckt_challenge challenge = {(const uint8_t *)greeting.nonce, "args", 4};
	memset(record, 0xee, sizeof record);
	uint8_t *end = ckt_hello_put(record, 5, &greeting, token, &credential, &challenge);
	YES(end <= record + CKT_HELLO_HEAD_MAX + 4);
	IS(*end, 0xee);
	struct ckt_cursor c = {.p = record, .end = end};
	for (size_t i = 0; i < COUNT(call); i++)
		IS(ckt_get_u32(&c), call[i]);
	uint32_t flavour = ckt_get_u32(&c), length;
	const uint8_t *body = ckt_get_opaque(&c, CKT_CREDENTIAL_MAX, &length);
	*ret_body = (struct ckt_cursor){.p = body, .end = body + length};
	IS(ckt_get_u32(&c), CKT_AUTH_NONE);
	IS(ckt_get_u32(&c), 0);
	NO(c.bad);
	IS(c.end - c.p, 4);
	IS(memcmp(c.p, "args", 4), 0);
	return flavour;
}

static void test_hello(void)
{
	static const uint32_t old[] = {CKT_AUTH_CRICKET_TOKEN, CKT_AUTH_NONE},
			      present[] = {CKT_AUTH_CRICKET_TOKEN, CKT_AUTH_CRICKET_PROOF};
	const struct ckt_token token = {.bytes = "0123456789abcdef", .size_bytes = 16};
	const struct ckt_credential nothing = {0}, key = {.has_key = true};
	struct ckt_credential back;
	struct ckt_cursor body;
	IS(put(old, 2, NULL, nothing, &body), CKT_AUTH_NONE);
	IS(body.end - body.p, 0);
	IS(put(old, 2, NULL, key, &body), CKT_AUTH_NONE);
	IS(put(old, 2, &token, key, &body), CKT_AUTH_CRICKET_TOKEN);
	IS(body.end - body.p, CKT_HMAC_SIZE);
	IS(put(present, 2, NULL, nothing, &body), CKT_AUTH_NONE);
	for (int kind = 1; kind < 4; kind++) {
		IS(put(present, 2, kind & 1 ? &token : NULL, kind & 2 ? key : nothing, &body),
			CKT_AUTH_CRICKET_PROOF);
		MUST(ckt_credential_get(body.p, (size_t)(body.end - body.p), &back), true);
		IS(back.has_token, kind & 1);
		IS(back.has_key, kind >> 1);
	}
}

UNIT_SUITE(greeting, {"greeting", test_greeting}, {"answer", test_answer}, {"hello", test_hello})
