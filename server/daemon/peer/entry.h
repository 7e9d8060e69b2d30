/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a hello proves about its sender: the header's credential, judged against the greeting's
 * nonce, the server's tokens and the session that the hello names.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>

#include "rpc/credential.h"
#include "server/daemon/policy/policy.h"

struct ckt_peer;

/* A hello's header; it points into the record. */
struct ckt_entry {
	uint32_t xid;
	const uint8_t
		*hmac; /* AUTH_CRICKET_TOKEN, of clients of earlier versions; NULL: not that */
	struct ckt_credential credential;
	struct ckt_challenge challenge;
};

/* Reads the header; the cursor stays at the arguments.  False: the message is not a hello. */
bool ckt_entry_read(struct ckt_cursor *c, const struct ckt_peer *peer, struct ckt_entry *ret_entry);
/* What the token in it proves, and whose it is. */
void ckt_entry_judge_token(
	struct ckt_peer *peer, const struct ckt_entry *entry, struct ckt_entry_facts *ret_facts);
/*
 * Whether the hello's secret is one that is not shown, and its key is not proven: peer->hello is
 * decoded by now.
 */
bool ckt_entry_lacks_key(const struct ckt_peer *peer, const struct ckt_entry *entry);
