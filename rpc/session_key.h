/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's key (Ed25519, RFC 8032): the client makes it and keeps the private half, the server
 * knows the session by a fingerprint of the public half.  So only that client can come back to the
 * session, and whoever reads the wire, an image or the worker's memory cannot.
 *
 * Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/credential.h"

enum { CKT_PRIVATE_KEY_SIZE = 32 };

struct ckt_session_key {
	uint8_t private_key[CKT_PRIVATE_KEY_SIZE];
	uint8_t public_key[CKT_PUBLIC_KEY_SIZE];
};

/* 0 or -errno: there are no random bytes, or no memory. */
int ckt_session_key_make(struct ckt_session_key *ret_key);
/*
 * The same for a key that stays until the process ends, in a page that the kernel leaves out of core
 * dumps.  *ret_key: the caller's.
 */
int ckt_session_key_new(struct ckt_session_key **ret_key);
/* Adds the proof to the credential.  0 or -errno. */
int ckt_session_key_prove(const struct ckt_session_key *key, const struct ckt_challenge *challenge,
	struct ckt_credential *credential);
/* Whether the signature is of the credential's own public key. */
bool ckt_session_key_check(
	const struct ckt_challenge *challenge, const struct ckt_credential *credential);
/*
 * The field `secret` of a session with a key: "key" and 13 bytes of the public key's SHA-256.
 * Workers and images treat it as they treat the secret of an older client.
 */
void ckt_session_key_secret(
	const uint8_t public_key[CKT_PUBLIC_KEY_SIZE], uint8_t ret_secret[CKT_SECRET_SIZE]);
/* Whether it is of that form: such a secret proves nothing, its key must. */
bool ckt_session_secret_is_key(const uint8_t secret[CKT_SECRET_SIZE]);
