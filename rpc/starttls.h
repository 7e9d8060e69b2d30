/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How TLS begins on a connection (RFC 9289): two records in the clear, after the greeting.
 *
 *	client -> server	call of procedure 0 of CRICKET_SESSION_PROG, credential AUTH_TLS without body
 *	server -> client	its reply, accepted, verifier AUTH_NONE with the eight bytes "STARTTLS"
 *
 * Then the TLS handshake follows, and inside of the channel a new greeting.  Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/session.h"
#include "rpc/transport/tls.h"

enum {
	CKT_STARTTLS_CALL_SIZE = 40,
	CKT_STARTTLS_REPLY_SIZE = 32,
};

void ckt_starttls_call_put(uint8_t ret_call[CKT_STARTTLS_CALL_SIZE], uint32_t xid);
/* Whether the record is that call, and nothing but it. */
bool ckt_starttls_call_get(const uint8_t *data, size_t size, uint32_t *ret_xid);
void ckt_starttls_reply_put(uint8_t ret_reply[CKT_STARTTLS_REPLY_SIZE], uint32_t xid);
bool ckt_starttls_reply_get(const uint8_t *data, size_t size, uint32_t xid);

/*
 * What a hello's proofs cover instead of the greeting's nonce when the greeting came through TLS:
 * SHA-256("cricket channel" || nonce || exporter).  So a proof is worth nothing on another channel.
 */
void ckt_starttls_bind(
	uint8_t nonce[CKT_NONCE_SIZE], const uint8_t exporter[CKT_TLS_EXPORTER_SIZE]);
