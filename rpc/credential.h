/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credential of a hello, flavour AUTH_CRICKET_PROOF: what the client proves about itself by
 * answering the nonce of the greeting.  Nothing in it can be used a second time, and no secret
 * crosses the wire.
 *
 *	token	which token the client has, and that it has it.  The server keeps a verifier, from
 *		which neither the token nor a proof can be computed (as in SCRAM, RFC 5802):
 *		  client key = HMAC(token, "cricket client key"), stored key = SHA-256(client key),
 *		  proof = client key XOR HMAC(stored key, nonce || arguments)
 *	key	(session_key.h) that the client holds the session's private key (Ed25519, RFC 8032): a signature of
 *		"cricket hello" (16 bytes, with zeros) || nonce || SHA-256(arguments).  The hello's field `secret` then is a fingerprint of the public
 *		key, see
 *		ckt_session_key_secret.
 *
 * Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/identity.h"
#include "rpc/session.h"
#include "rpc/wire.h"

enum {
	CKT_TOKEN_ID_SIZE = 8,
	CKT_PROOF_SIZE = 32,
	CKT_PUBLIC_KEY_SIZE = 32,
	CKT_SIGNATURE_SIZE = 64,
	/* both proofs, each behind its XDR bool */
	CKT_CREDENTIAL_MAX = 4 + CKT_TOKEN_ID_SIZE + CKT_PROOF_SIZE + 4 + CKT_PUBLIC_KEY_SIZE +
		CKT_SIGNATURE_SIZE,
};

/* What the server keeps of a token. */
struct ckt_token_verifier {
	uint8_t id[CKT_TOKEN_ID_SIZE]; /* of the token, not secret */
	uint8_t stored_key[CKT_PROOF_SIZE];
};

struct ckt_credential {
	bool has_token, has_key;
	uint8_t token_id[CKT_TOKEN_ID_SIZE];
	uint8_t token_proof[CKT_PROOF_SIZE];
	uint8_t public_key[CKT_PUBLIC_KEY_SIZE];
	uint8_t signature[CKT_SIGNATURE_SIZE];
};

/* What a proof covers: the greeting's nonce and the encoded arguments of the hello. */
struct ckt_challenge {
	const uint8_t *nonce; /* CKT_NONCE_SIZE */
	const void *args;
	size_t args_bytes;
};

/* The credential's body: at most CKT_CREDENTIAL_MAX bytes.  Returns its end. */
uint8_t *ckt_credential_put(uint8_t *p, const struct ckt_credential *credential);
/* False: not of this form. */
bool ckt_credential_get(
	const uint8_t *body, size_t body_bytes, struct ckt_credential *ret_credential);

void ckt_token_verifier_make(const struct ckt_token *token, struct ckt_token_verifier *ret);
/* The same of a stored key. */
void ckt_token_verifier_of_key(
	const uint8_t stored_key[CKT_PROOF_SIZE], struct ckt_token_verifier *ret);
void ckt_token_prove(const struct ckt_token *token, const struct ckt_challenge *challenge,
	struct ckt_credential *credential);
bool ckt_token_check(const struct ckt_token_verifier *verifier,
	const struct ckt_challenge *challenge, const struct ckt_credential *credential);
