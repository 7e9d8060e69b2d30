/* SPDX-License-Identifier: Apache-2.0 */
/* Hello as CONTROL; see hello.h. */
#include "rpc/hello.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rpc/greeting.h"
#include "rpc/identity.h"
#include "rpc/net.h"
#include "rpc/secure.h"
#include "rpc/session.h"

enum { HELLO_XID = 1 };

static int write_hello(int fd, const char *program, int64_t deadline_ms,
	const ckt_greeting *greeting, const struct ckt_token *token)
{
	uint8_t encoded[CKT_HELLO_MAX - CKT_HELLO_HEAD_MAX], record[CKT_HELLO_MAX];
	char host[CKT_NAME_MAX] = "", none[] = "", build[] = CKT_VERSION;
	struct ckt_credential credential = {0};
	gethostname(host, sizeof host - 1);
	ckt_hello_args args = {.protocol = CKT_PROTOCOL_VERSION,
		.kind = CKT_HELLO_CONTROL,
		.session = none,
		.program_name = (char *)program,
		.host = host,
		.pid = (u_int)getpid(),
		.uid = getuid(),
		.build = build};
	XDR xdr;
	xdrmem_create(&xdr, (char *)encoded, sizeof encoded, XDR_ENCODE);
	if (!xdr_ckt_hello_args(&xdr, &args))
		return -EMSGSIZE;
	const struct ckt_challenge challenge = {.nonce = (const uint8_t *)greeting->nonce,
		.args = encoded,
		.args_bytes = xdr_getpos(&xdr)};
	uint8_t *end = ckt_hello_put(record, HELLO_XID, greeting, token->size_bytes ? token : NULL,
		&credential, &challenge);
	return ckt_net_write_record(fd, record, (size_t)(end - record), deadline_ms, -1);
}

int ckt_hello_control(int *fd, const char *server, bool is_unix, const char *program,
	const char *token_file, int64_t deadline_ms, char *ret_message, size_t message_size)
{
	struct ckt_token token = {0};
	ckt_greeting greeting = {0};
	ckt_hello_res res = {0};
	int result = ckt_secure_greeting_fd(
		fd, server, deadline_ms, &greeting, ret_message, message_size);
	if (result)
		return result;
	if (ckt_greeting_takes_token(&greeting) && token_file && *token_file &&
		ckt_auth_token_load(token_file, &token, ret_message, message_size)) {
		/* On the local socket the peer's user is proof enough. */
		result = is_unix ? 0 : -ENOKEY;
		token.size_bytes = 0;
	}
	if (!result)
		result = write_hello(*fd, program, deadline_ms, &greeting, &token);
	explicit_bzero(&token, sizeof token);
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	if (!result)
		result = ckt_hello_answer_read(*fd, HELLO_XID, deadline_ms, &res, NULL);
	if (!result && res.status != CKT_HELLO_OK) {
		snprintf(ret_message, message_size, "%s", res.ckt_hello_res_u.refused.message);
		result = -EACCES;
	}
	xdr_free((xdrproc_t)xdr_ckt_hello_res, (char *)&res);
	return result;
}
