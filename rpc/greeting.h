/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hello that every kind of client says: it reads the greeting, writes the head of the hello's
 * record, and reads the reply. Functions return 0 or -errno; -EPROTO: the peer is not a
 * cricket-server. Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/credential.h"
#include "rpc/session.h"
#include "rpc/transport/transport.h"

enum {
	CKT_HELLO_HEAD_MAX = 24 + 8 + CKT_CREDENTIAL_MAX + 8, /* call, credential, verifier */
	/*
	 * The server answers the hello of a new session when the worker has started, or after this
	 * time: a driver's first context after boot takes long, and so do many contexts at once.
	 */
	CKT_HELLO_START_MS = 120000,
};

/* xdr_free() it on success. */
int ckt_greeting_read_from(
	struct ckt_transport *t, int64_t deadline_ms, ckt_greeting *ret_greeting);
/* Whether the server accepts credentials of the flavour. */
bool ckt_greeting_offers(const ckt_greeting *greeting, uint32_t flavour);
/* Whether it knows tokens. */
bool ckt_greeting_takes_token(const ckt_greeting *greeting);

/*
 * Writes a hello's record: its header with the strongest credential that the server takes, then the
 * arguments, which the challenge covers.  A hello has its own header because no session exists yet
 * to count its calls.  token: NULL for none; credential: empty, or with the proof of a session's key
 * already in it.  Returns the end, at most CKT_HELLO_HEAD_MAX bytes beyond the arguments.
 */
uint8_t *ckt_hello_put(uint8_t *p, uint32_t xid, const ckt_greeting *greeting,
	const struct ckt_token *token, struct ckt_credential *credential,
	const struct ckt_challenge *challenge);
/*
 * xdr_free() it on success, also if the server refuses.  ret_memory_fd (may be NULL) gets a descriptor
 * that came with it, now the caller's, or -1.
 */
int ckt_hello_answer_read_from(struct ckt_transport *t, uint32_t xid, int64_t deadline_ms,
	ckt_hello_res *ret_res, int *ret_memory_fd);
int ckt_hello_answer_read(
	int fd, uint32_t xid, int64_t deadline_ms, ckt_hello_res *ret_res, int *ret_memory_fd);
