/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that vouch for chains of automatic images (--image-key).
 *
 *	state: all lines | mac KEY HMAC | end
 *	         manifest HASH: of the newest image ---> hashes of all chunks, those of older images too
 *
 * So one MAC covers all that a return uses: who the session is, which images are its chain, and
 * every byte of them.  The state also has what the files replica and replicated say (replica.h), so
 * that removing them gains nothing.  The file lock has none: the worker, which has no key, writes it.
 *
 * An older state with its images is whole.  The server refuses it if it has seen a later one since it
 * started, or if the session's program has no longer the commands that follow it.
 *
 * Threading: the loop's thread sets the keys before there is another one; the rest: any thread.
 */
#pragma once

#include <stddef.h>

#include "rpc/session.h"
#include "server/daemon/durable/chain_store.h"

struct ckt_image_keys;

/* From now on states are signed, and no others count; stay the caller's.  NULL: none. */
void ckt_chain_keys_set(const struct ckt_image_keys *keys);
const struct ckt_image_keys *ckt_chain_keys(void);

/*
 * Appends the line to a text of that length in that room: its new length, or -E2BIG.  What follows is
 * "end", also in a text that is no state.
 */
int ckt_chain_mac_sign(char *text, size_t length, size_t room);
/*
 * Whether one of the keys vouches for the text of a state: 0, also without keys; -ENOKEY: none does;
 * -EKEYREJECTED: it was changed.
 */
int ckt_chain_mac_check(const char *text);
/* Whether it has such a line. */
bool ckt_chain_mac_is_there(const char *text);

/*
 * The newest image is the one that the state names; without keys: it is not encrypted.  0, or -EBADMSG
 * with the reason.  Reads one manifest.
 */
int ckt_chain_check_newest(
	int dir_fd, const struct ckt_chain_state *state, char ret_message[CKT_MESSAGE_MAX]);
/*
 * The state is not older than what the session's program has seen and cannot send again.  0, also
 * without keys; -EBADMSG with the reason.
 */
int ckt_chain_check_age(const struct ckt_hello_args *hello, const struct ckt_chain_state *state,
	char ret_message[CKT_MESSAGE_MAX]);
/* What came of reading the state of a session of whose images a key must vouch, in words. */
void ckt_chain_refusal(int error, const char *session, char ret_message[CKT_MESSAGE_MAX]);
