/* SPDX-License-Identifier: Apache-2.0 */
/* The records before TLS; see starttls.h. */
#include "rpc/starttls.h"

#include <string.h>

#include "rpc/identity.h"
#include "rpc/wire.h"

enum { NULL_PROCEDURE = 0 };

static const char starttls[] = {'S', 'T', 'A', 'R', 'T', 'T', 'L', 'S'};

static void put(uint8_t *p, const uint32_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		p = ckt_put_u32(p, words[i]);
}

void ckt_starttls_call_put(uint8_t ret_call[CKT_STARTTLS_CALL_SIZE], uint32_t xid)
{
	const uint32_t words[] = {xid, 0, 2, CRICKET_SESSION_PROG, CRICKET_SESSION_VERS,
		NULL_PROCEDURE, CKT_AUTH_TLS, 0, CKT_AUTH_NONE, 0};
	_Static_assert(sizeof words == CKT_STARTTLS_CALL_SIZE, "the whole call");
	put(ret_call, words, sizeof words / sizeof *words);
}

bool ckt_starttls_call_get(const uint8_t *data, size_t size, uint32_t *ret_xid)
{
	uint8_t expected[CKT_STARTTLS_CALL_SIZE];
	struct ckt_cursor c = {.p = data, .end = data + size};
	uint32_t xid = ckt_get_u32(&c);
	ckt_starttls_call_put(expected, xid);
	*ret_xid = xid;
	return size == sizeof expected && memcmp(data, expected, size) == 0;
}

void ckt_starttls_reply_put(uint8_t ret_reply[CKT_STARTTLS_REPLY_SIZE], uint32_t xid)
{
	/* A reply, accepted. */
	const uint32_t words[] = {xid, 1, 0, CKT_AUTH_NONE, sizeof starttls};
	_Static_assert(sizeof words + sizeof starttls + 4 == CKT_STARTTLS_REPLY_SIZE, "the reply");
	put(ret_reply, words, sizeof words / sizeof *words);
	memcpy(ret_reply + sizeof words, starttls, sizeof starttls);
	ckt_put_u32(ret_reply + sizeof words + sizeof starttls, 0);
}

bool ckt_starttls_reply_get(const uint8_t *data, size_t size, uint32_t xid)
{
	uint8_t expected[CKT_STARTTLS_REPLY_SIZE];
	ckt_starttls_reply_put(expected, xid);
	return size == sizeof expected && memcmp(data, expected, size) == 0;
}

void ckt_starttls_bind(uint8_t nonce[CKT_NONCE_SIZE], const uint8_t exporter[CKT_TLS_EXPORTER_SIZE])
{
	static const char label[15] = "cricket channel";
	uint8_t bound[sizeof label + CKT_NONCE_SIZE + CKT_TLS_EXPORTER_SIZE];
	memcpy(bound, label, sizeof label);
	memcpy(bound + sizeof label, nonce, CKT_NONCE_SIZE);
	memcpy(bound + sizeof label + CKT_NONCE_SIZE, exporter, CKT_TLS_EXPORTER_SIZE);
	ckt_auth_hash(bound, sizeof bound, nonce);
	explicit_bzero(bound, sizeof bound);
}
