/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/session_key.h: who holds a session's key, and who does not. */
#include <string.h>

#include "rpc/session_key.h"
#include "tests/unit/suite.h"

static void test_proof(void)
{
	uint8_t nonce[CKT_NONCE_SIZE] = {1}, later[CKT_NONCE_SIZE] = {2};
	const struct ckt_challenge challenge = {nonce, "arguments", 9},
				   next = {later, "arguments", 9},
				   changed = {nonce, "argumentt", 9};
	struct ckt_session_key key, other;
	struct ckt_credential credential = {0};
	MUST(ckt_session_key_make(&key), 0);
	MUST(ckt_session_key_make(&other), 0);
	YES(memcmp(&key, &other, sizeof key) != 0);
	NO(ckt_session_key_check(&challenge, &credential));
	MUST(ckt_session_key_prove(&key, &challenge, &credential), 0);
	YES(credential.has_key);
	NO(credential.has_token);
	IS(memcmp(credential.public_key, key.public_key, CKT_PUBLIC_KEY_SIZE), 0);
	YES(ckt_session_key_check(&challenge, &credential));
	NO(ckt_session_key_check(&next, &credential));
	NO(ckt_session_key_check(&changed, &credential));
	for (size_t i = 0; i < CKT_SIGNATURE_SIZE; i++) {
		credential.signature[i] ^= 1;
		NO(ckt_session_key_check(&challenge, &credential));
		credential.signature[i] ^= 1;
	}
	/* Another's public key does not make another's signature. */
	memcpy(credential.public_key, other.public_key, CKT_PUBLIC_KEY_SIZE);
	NO(ckt_session_key_check(&challenge, &credential));
	/* What is no point of the curve. */
	memset(credential.public_key, 0xff, CKT_PUBLIC_KEY_SIZE);
	NO(ckt_session_key_check(&challenge, &credential));
}

static void test_secret(void)
{
	struct ckt_session_key key, other;
	uint8_t secret[CKT_SECRET_SIZE], again[CKT_SECRET_SIZE], zero[CKT_SECRET_SIZE] = {0};
	MUST(ckt_session_key_make(&key), 0);
	MUST(ckt_session_key_make(&other), 0);
	ckt_session_key_secret(key.public_key, secret);
	ckt_session_key_secret(key.public_key, again);
	YES(ckt_session_secret_is_key(secret));
	NO(ckt_session_secret_is_key(zero));
	IS(memcmp(secret, again, sizeof secret), 0);
	ckt_session_key_secret(other.public_key, again);
	YES(memcmp(secret, again, sizeof secret) != 0);
}

/* One that stays is as good as one on the stack.  What a dump has of it: tests/server/test_cores.py. */
static void test_new(void)
{
	uint8_t nonce[CKT_NONCE_SIZE] = {1};
	const struct ckt_challenge challenge = {nonce, "arguments", 9};
	struct ckt_session_key *key = NULL, *other = NULL;
	struct ckt_credential credential = {0};
	MUST(ckt_session_key_new(&key), 0);
	MUST(ckt_session_key_new(&other), 0);
	YES(memcmp(key, other, sizeof *key) != 0);
	MUST(ckt_session_key_prove(key, &challenge, &credential), 0);
	YES(ckt_session_key_check(&challenge, &credential));
}

UNIT_SUITE(session_key, {"proof", test_proof}, {"secret", test_secret}, {"new", test_new})
