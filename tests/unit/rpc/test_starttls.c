/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/starttls.c: the records before TLS, and the nonce behind them. */
#include <string.h>

#include "rpc/starttls.h"
#include "tests/unit/suite.h"

static void test_starttls(void)
{
	uint8_t call[CKT_STARTTLS_CALL_SIZE], reply[CKT_STARTTLS_REPLY_SIZE];
	uint32_t xid = 0;
	ckt_starttls_call_put(call, 77);
	YES(ckt_starttls_call_get(call, sizeof call, &xid));
	IS(xid, 77);
	NO(ckt_starttls_call_get(call, sizeof call - 1, &xid));
	NO(ckt_starttls_call_get(call, 2, &xid));
	for (size_t i = 4; i < sizeof call; i++) {
		call[i] ^= 1;
		NO(ckt_starttls_call_get(call, sizeof call, &xid));
		call[i] ^= 1;
	}
	ckt_starttls_reply_put(reply, 77);
	YES(ckt_starttls_reply_get(reply, sizeof reply, 77));
	NO(ckt_starttls_reply_get(reply, sizeof reply, 78));
	NO(ckt_starttls_reply_get(reply, sizeof reply - 4, 77));
}

static void test_bind(void)
{
	uint8_t exporters[2][CKT_TLS_EXPORTER_SIZE] = {{1}, {2}};
	uint8_t nonces[4][CKT_NONCE_SIZE] = {{1}, {1}, {1}, {2}};
	static const unsigned channels[] = {0, 0, 1, 0};
	for (int i = 0; i < 4; i++)
		ckt_starttls_bind(nonces[i], exporters[channels[i]]);
	IS(memcmp(nonces[0], nonces[1], CKT_NONCE_SIZE), 0);
	/* Another channel, or another nonce. */
	YES(memcmp(nonces[0], nonces[2], CKT_NONCE_SIZE) != 0);
	YES(memcmp(nonces[0], nonces[3], CKT_NONCE_SIZE) != 0);
}

UNIT_SUITE(starttls, {"records", test_starttls}, {"bind", test_bind})
