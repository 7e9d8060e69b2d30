/* SPDX-License-Identifier: Apache-2.0 */
/* Greeting, hello and its answer; see greeting.h. */
#include "rpc/greeting.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "rpc/net.h"
#include "rpc/record.h"

int ckt_greeting_read_from(struct ckt_transport *t, int64_t deadline_ms, ckt_greeting *ret_greeting)
{
	uint8_t *data;
	size_t size;
	struct ckt_call_header header = {0};
	int result = ckt_record_read(t, CKT_HELLO_MAX, deadline_ms, &data, &size, NULL);
	if (result)
		return result;
	struct ckt_cursor c = {.p = data, .end = data + size};
	if (!ckt_call_header_get(&c, &header) || header.prog != CRICKET_CALLBACK_PROG ||
		header.proc != CKT_CALLBACK_GREETING)
		result = -EPROTO;
	else
		result = ckt_net_decode(&c, (xdrproc_t)xdr_ckt_greeting, ret_greeting);
	free(data);
	return result;
}

bool ckt_greeting_offers(const ckt_greeting *greeting, uint32_t flavour)
{
	for (u_int i = 0; i < greeting->flavours.flavours_len; i++)
		if (greeting->flavours.flavours_val[i] == flavour)
			return true;
	return false;
}

bool ckt_greeting_takes_token(const ckt_greeting *greeting)
{
	return ckt_greeting_offers(greeting, CKT_AUTH_CRICKET_TOKEN) ||
		ckt_greeting_offers(greeting, CKT_AUTH_CRICKET_NAMED);
}

/* AUTH_NONE where there is nothing to prove. */
static uint8_t *put_credential(uint8_t *p, const ckt_greeting *greeting,
	const struct ckt_token *token, struct ckt_credential *credential,
	const struct ckt_challenge *challenge)
{
	uint8_t body[CKT_CREDENTIAL_MAX], digest[CKT_HMAC_SIZE];
	if (ckt_greeting_offers(greeting, CKT_AUTH_CRICKET_PROOF)) {
		if (token)
			ckt_token_prove(token, challenge, credential);
		if (credential->has_token || credential->has_key)
			return ckt_put_opaque(ckt_put_u32(p, CKT_AUTH_CRICKET_PROOF), body,
				(size_t)(ckt_credential_put(body, credential) - body));
	} else if (token) {
		/* A server of an earlier version. */
		ckt_auth_hmac(
			token, challenge->nonce, challenge->args, challenge->args_bytes, digest);
		return ckt_put_opaque(
			ckt_put_u32(p, CKT_AUTH_CRICKET_TOKEN), digest, sizeof digest);
	}
	return ckt_put_u32(ckt_put_u32(p, CKT_AUTH_NONE), 0);
}

uint8_t *ckt_hello_put(uint8_t *p, uint32_t xid, const ckt_greeting *greeting,
	const struct ckt_token *token, struct ckt_credential *credential,
	const struct ckt_challenge *challenge)
{
	const uint32_t call[] = {
		xid, 0, 2, CRICKET_SESSION_PROG, CRICKET_SESSION_VERS, CKT_SESSION_HELLO};
	for (size_t i = 0; i < sizeof call / sizeof *call; i++)
		p = ckt_put_u32(p, call[i]);
	p = put_credential(p, greeting, token, credential, challenge);
	p = ckt_put_u32(ckt_put_u32(p, CKT_AUTH_NONE), 0);
	return ckt_put_fixed(p, challenge->args, challenge->args_bytes);
}

int ckt_hello_answer_read_from(struct ckt_transport *t, uint32_t xid, int64_t deadline_ms,
	ckt_hello_res *ret_res, int *ret_memory_fd)
{
	int passed = -1;
	uint8_t *data;
	size_t size;
	struct ckt_reply_header header = {0};
	int result = ckt_record_read(t, CKT_RECORD_MAX, deadline_ms, &data, &size, &passed);
	if (result)
		return result;
	struct ckt_cursor c = {.p = data, .end = data + size};
	if (!ckt_reply_header_get(&c, &header) || header.xid != xid || header.accept_stat)
		result = -EPROTO;
	else
		result = ckt_net_decode(&c, (xdrproc_t)xdr_ckt_hello_res, ret_res);
	free(data);
	if (passed >= 0 && (result || !ret_memory_fd)) {
		close(passed);
		passed = -1;
	}
	if (ret_memory_fd)
		*ret_memory_fd = passed;
	return result;
}

int ckt_hello_answer_read(
	int fd, uint32_t xid, int64_t deadline_ms, ckt_hello_res *ret_res, int *ret_memory_fd)
{
	struct ckt_transport t;
	ckt_transport_init_socket(&t, fd);
	return ckt_hello_answer_read_from(&t, xid, deadline_ms, ret_res, ret_memory_fd);
}
