/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hello that every kind of client says: it reads the greeting, writes the head of the hello's
 * record, and reads the reply. Functions return 0 or -errno; -EPROTO: the peer is not a
 * cricket-server. Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/session.h"

enum { CKT_HELLO_HEAD_MAX = 24 + 8 + CKT_HMAC_SIZE + 8 }; /* call, credential, verifier */

/* xdr_free() it on success. */
int ckt_greeting_read(int fd, int64_t deadline_ms, ckt_greeting *ret_greeting);
/* Whether the server accepts credentials of the flavour. */
bool ckt_greeting_offers(const ckt_greeting *greeting, uint32_t flavour);
/*
 * Writes the header of a hello's record; the arguments follow it. A hello has its own header
 * because no session exists yet to count its calls. digest: the token's, CKT_HMAC_SIZE bytes; NULL
 * for a hello without one.  Returns where the arguments go, at most CKT_HELLO_HEAD_MAX bytes on.
 */
uint8_t *ckt_hello_head_put(uint8_t *p, uint32_t xid, const uint8_t *digest);
/* xdr_free() it on success, also if the server refuses. */
int ckt_hello_answer_read(int fd, uint32_t xid, int64_t deadline_ms, ckt_hello_res *ret_res);
