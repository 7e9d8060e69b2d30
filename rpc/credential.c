/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs of a hello; see credential.h. */
#include "rpc/credential.h"

#include <nettle/hmac.h>
#include <nettle/sha2.h>
#include <string.h>

_Static_assert((int)CKT_PROOF_SIZE == SHA256_DIGEST_SIZE, "an HMAC-SHA256");

/* ---- Form */

uint8_t *ckt_credential_put(uint8_t *p, const struct ckt_credential *credential)
{
	p = ckt_put_u32(p, credential->has_token);
	if (credential->has_token) {
		p = ckt_put_fixed(p, credential->token_id, CKT_TOKEN_ID_SIZE);
		p = ckt_put_fixed(p, credential->token_proof, CKT_PROOF_SIZE);
	}
	p = ckt_put_u32(p, credential->has_key);
	if (credential->has_key) {
		p = ckt_put_fixed(p, credential->public_key, CKT_PUBLIC_KEY_SIZE);
		p = ckt_put_fixed(p, credential->signature, CKT_SIGNATURE_SIZE);
	}
	return p;
}

static void get_bytes(struct ckt_cursor *c, uint8_t *ret, size_t size_bytes)
{
	const uint8_t *bytes = ckt_get_fixed(c, size_bytes);
	if (bytes)
		memcpy(ret, bytes, size_bytes);
}

static bool get_present(struct ckt_cursor *c, bool *ret_present)
{
	uint32_t present = ckt_get_u32(c);
	*ret_present = present == 1;
	return present <= 1;
}

bool ckt_credential_get(
	const uint8_t *body, size_t body_bytes, struct ckt_credential *ret_credential)
{
	struct ckt_cursor c = {.p = body, .end = body + body_bytes};
	struct ckt_credential credential = {0};
	bool good = get_present(&c, &credential.has_token);
	if (credential.has_token) {
		get_bytes(&c, credential.token_id, CKT_TOKEN_ID_SIZE);
		get_bytes(&c, credential.token_proof, CKT_PROOF_SIZE);
	}
	good = get_present(&c, &credential.has_key) && good;
	if (credential.has_key) {
		get_bytes(&c, credential.public_key, CKT_PUBLIC_KEY_SIZE);
		get_bytes(&c, credential.signature, CKT_SIGNATURE_SIZE);
	}
	if (!good || c.bad || c.p != c.end)
		return false;
	*ret_credential = credential;
	return true;
}

/* ---- Tokens */

static void keyed_hash(const void *key, size_t key_bytes, const void *data, size_t data_bytes,
	uint8_t ret[CKT_PROOF_SIZE])
{
	struct hmac_sha256_ctx hmac;
	hmac_sha256_set_key(&hmac, key_bytes, key);
	hmac_sha256_update(&hmac, data_bytes, data);
	hmac_sha256_digest(&hmac, CKT_PROOF_SIZE, ret);
	explicit_bzero(&hmac, sizeof hmac);
}

static void challenge_hash(const uint8_t key[CKT_PROOF_SIZE], const struct ckt_challenge *challenge,
	uint8_t ret[CKT_PROOF_SIZE])
{
	struct hmac_sha256_ctx hmac;
	hmac_sha256_set_key(&hmac, CKT_PROOF_SIZE, key);
	hmac_sha256_update(&hmac, CKT_NONCE_SIZE, challenge->nonce);
	hmac_sha256_update(&hmac, challenge->args_bytes, challenge->args);
	hmac_sha256_digest(&hmac, CKT_PROOF_SIZE, ret);
	explicit_bzero(&hmac, sizeof hmac);
}

static void client_key(const struct ckt_token *token, uint8_t ret[CKT_PROOF_SIZE])
{
	static const char label[] = "cricket client key";
	keyed_hash(token->bytes, token->size_bytes, label, sizeof label - 1, ret);
}

void ckt_token_verifier_of_key(
	const uint8_t stored_key[CKT_PROOF_SIZE], struct ckt_token_verifier *ret)
{
	static const char label[] = "cricket token id";
	uint8_t id[CKT_PROOF_SIZE];
	memcpy(ret->stored_key, stored_key, sizeof ret->stored_key);
	keyed_hash(ret->stored_key, sizeof ret->stored_key, label, sizeof label - 1, id);
	memcpy(ret->id, id, sizeof ret->id);
}

void ckt_token_verifier_make(const struct ckt_token *token, struct ckt_token_verifier *ret)
{
	uint8_t key[CKT_PROOF_SIZE], stored_key[CKT_PROOF_SIZE];
	client_key(token, key);
	ckt_auth_hash(key, sizeof key, stored_key);
	ckt_token_verifier_of_key(stored_key, ret);
	explicit_bzero(key, sizeof key);
}

void ckt_token_prove(const struct ckt_token *token, const struct ckt_challenge *challenge,
	struct ckt_credential *credential)
{
	struct ckt_token_verifier verifier;
	uint8_t key[CKT_PROOF_SIZE];
	ckt_token_verifier_make(token, &verifier);
	client_key(token, key);
	credential->has_token = true;
	memcpy(credential->token_id, verifier.id, sizeof credential->token_id);
	challenge_hash(verifier.stored_key, challenge, credential->token_proof);
	for (size_t i = 0; i < sizeof key; i++)
		credential->token_proof[i] ^= key[i];
	explicit_bzero(key, sizeof key);
	explicit_bzero(&verifier, sizeof verifier);
}

bool ckt_token_check(const struct ckt_token_verifier *verifier,
	const struct ckt_challenge *challenge, const struct ckt_credential *credential)
{
	uint8_t key[CKT_PROOF_SIZE], hash[CKT_PROOF_SIZE];
	if (!credential->has_token)
		return false;
	challenge_hash(verifier->stored_key, challenge, key);
	for (size_t i = 0; i < sizeof key; i++)
		key[i] ^= credential->token_proof[i];
	ckt_auth_hash(key, sizeof key, hash);
	explicit_bzero(key, sizeof key);
	return ckt_auth_equal(hash, verifier->stored_key, sizeof hash);
}
