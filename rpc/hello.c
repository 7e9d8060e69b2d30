/* Hello as CONTROL; see hello.h. */
#include "rpc/hello.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/identity.h"
#include "rpc/net.h"
#include "rpc/session.h"

enum { HELLO_XID = 1 };

/* The greeting: which protocol, which credentials, and the nonce. */
static int read_greeting(int fd, int64_t deadline_ms, ckt_greeting *ret_greeting)
{
	uint8_t *data;
	size_t size;
	struct ckt_call_header header = {0};
	int result = ckt_net_read_record(fd, CKT_HELLO_MAX, deadline_ms, &data, &size, NULL);
	if (result)
		return result;
	struct ckt_cursor c = {.p = data, .end = data + size};
	if (!ckt_call_header_get(&c, &header) || header.prog != CRICKET_CALLBACK_PROG || header.proc != CKT_CALLBACK_GREETING)
		result = -EPROTO;
	else
		result = ckt_net_decode(&c, (xdrproc_t)xdr_ckt_greeting, ret_greeting);
	free(data);
	return result;
}

/* A hello has a header of its own: no session exists that could count its calls. */
static int write_hello(int fd, const char *program, int64_t deadline_ms, const ckt_greeting *greeting, const struct ckt_token *token)
{
	uint8_t record[CKT_HELLO_MAX], *p = record;
	char host[CKT_NAME_MAX] = "", none[] = "", build[] = CKT_VERSION;
	uint8_t *credential = NULL;
	gethostname(host, sizeof host - 1);
	ckt_hello_args args = {.protocol = CKT_PROTOCOL_VERSION,
			       .kind = CKT_HELLO_CONTROL,
			       .session = none,
			       .program_name = (char *)program,
			       .host = host,
			       .pid = (u_int)getpid(),
			       .uid = getuid(),
			       .build = build};
	uint32_t head[] = {HELLO_XID, 0, 2, CRICKET_SESSION_PROG, CRICKET_SESSION_VERS, CKT_SESSION_HELLO};
	for (size_t i = 0; i < sizeof head / sizeof *head; i++)
		p = ckt_put_u32(p, head[i]);
	if (token->size_bytes) {
		p = ckt_put_u32(ckt_put_u32(p, CKT_AUTH_CRICKET_TOKEN), CKT_AUTH_HMAC_SIZE);
		credential = p;
		p += CKT_AUTH_HMAC_SIZE;
	} else {
		p = ckt_put_u32(ckt_put_u32(p, CKT_AUTH_NONE), 0);
	}
	p = ckt_put_u32(ckt_put_u32(p, CKT_AUTH_NONE), 0);
	XDR xdr;
	xdrmem_create(&xdr, (char *)p, (u_int)(record + sizeof record - p), XDR_ENCODE);
	if (!xdr_ckt_hello_args(&xdr, &args))
		return -EMSGSIZE;
	size_t args_size = xdr_getpos(&xdr);
	if (credential)
		ckt_auth_hmac(token, (const uint8_t *)greeting->nonce, p, args_size, credential);
	return ckt_net_write_record(fd, record, (size_t)(p - record) + args_size, deadline_ms, -1);
}

static int read_answer(int fd, int64_t deadline_ms, ckt_hello_res *ret_res)
{
	uint8_t *data;
	size_t size;
	struct ckt_reply_header header = {0};
	int result = ckt_net_read_record(fd, CKT_RECORD_MAX, deadline_ms, &data, &size, NULL);
	if (result)
		return result;
	struct ckt_cursor c = {.p = data, .end = data + size};
	if (!ckt_reply_header_get(&c, &header) || header.xid != HELLO_XID || header.accept_stat)
		result = -EPROTO;
	else
		result = ckt_net_decode(&c, (xdrproc_t)xdr_ckt_hello_res, ret_res);
	free(data);
	return result;
}

static bool takes_token(const ckt_greeting *greeting)
{
	for (u_int i = 0; i < greeting->flavours.flavours_len; i++)
		if (greeting->flavours.flavours_val[i] == CKT_AUTH_CRICKET_TOKEN)
			return true;
	return false;
}

int ckt_hello_control(int fd, bool is_unix, const char *program, const char *token_file, int64_t deadline_ms, char *ret_message,
		      size_t message_size)
{
	struct ckt_token token = {0};
	ckt_greeting greeting = {0};
	ckt_hello_res res = {0};
	int result = read_greeting(fd, deadline_ms, &greeting);
	if (!result && takes_token(&greeting) && token_file && *token_file &&
	    ckt_auth_token_load(token_file, &token, ret_message, message_size)) {
		/* On the local socket who we are is enough. */
		result = is_unix ? 0 : -ENOKEY;
		token.size_bytes = 0;
	}
	if (!result)
		result = write_hello(fd, program, deadline_ms, &greeting, &token);
	explicit_bzero(&token, sizeof token);
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	if (!result)
		result = read_answer(fd, deadline_ms, &res);
	if (!result && res.status != CKT_HELLO_OK) {
		snprintf(ret_message, message_size, "%s", res.ckt_hello_res_u.refused.message);
		result = -EACCES;
	}
	xdr_free((xdrproc_t)xdr_ckt_hello_res, (char *)&res);
	return result;
}
