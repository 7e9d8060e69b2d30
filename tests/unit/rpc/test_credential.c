/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/credential.h: the form of a hello's proofs, and which of a token's proofs are right. */
#include <string.h>

#include "rpc/credential.h"
#include "tests/unit/suite.h"

enum { NO_PROOF_SIZE = 8, TOKEN_SIZE = 4 + CKT_TOKEN_ID_SIZE + CKT_PROOF_SIZE };

static const struct ckt_token token = {.bytes = "0123456789abcdef", .size_bytes = 16};

static struct ckt_challenge challenge_of(const uint8_t *nonce, const char *args)
{
	return (struct ckt_challenge){.nonce = nonce, .args = args, .args_bytes = strlen(args)};
}

static void test_form(void)
{
	for (int kind = 0; kind < 4; kind++) {
		struct ckt_credential credential = {.has_token = kind & 1, .has_key = kind >> 1},
				      back;
		uint8_t body[CKT_CREDENTIAL_MAX + 4] = {0};
		memset(credential.token_id, 1, sizeof credential.token_id);
		memset(credential.token_proof, 2, sizeof credential.token_proof);
		memset(credential.public_key, 3, sizeof credential.public_key);
		memset(credential.signature, 4, sizeof credential.signature);
		size_t size = (size_t)(ckt_credential_put(body, &credential) - body);
		IS(size,
			NO_PROOF_SIZE + (kind & 1 ? CKT_TOKEN_ID_SIZE + CKT_PROOF_SIZE : 0) +
				(kind >> 1 ? CKT_PUBLIC_KEY_SIZE + CKT_SIGNATURE_SIZE : 0));
		YES(size <= CKT_CREDENTIAL_MAX);
		memset(&back, 0xff, sizeof back);
		MUST(ckt_credential_get(body, size, &back), true);
		IS(back.has_token, kind & 1);
		IS(back.has_key, kind >> 1);
		IS(memcmp(back.token_proof, credential.token_proof, CKT_PROOF_SIZE) == 0, kind & 1);
		IS(memcmp(back.signature, credential.signature, CKT_SIGNATURE_SIZE) == 0,
			kind >> 1);
		/* Cut anywhere, or longer: refused, and the caller's is as it was. */
		for (size_t cut = 0; cut <= size + 4; cut += 4)
			IS(ckt_credential_get(body, cut, &back), cut == size);
		body[3] = 2;
		NO(ckt_credential_get(body, size, &back));
		IS(back.has_token, kind & 1);
	}
}

/* Computed with Python's hmac and hashlib; see the formulas in credential.h. */
static void test_known(void)
{
	static const uint8_t id[] = {0xee, 0xaf, 0xd1, 0x44, 0x4f, 0x62, 0x19, 0xc4};
	static const uint8_t stored_key[] = {0x96, 0x00, 0x02, 0x48, 0x48, 0x41, 0x51, 0xb9, 0x06,
		0xbe, 0x27, 0xae, 0xcd, 0x87, 0x26, 0xa3, 0x5d, 0x40, 0x87, 0xae, 0x9a, 0xb5, 0x65,
		0x2e, 0xcf, 0xdd, 0x4f, 0x0b, 0x48, 0x33, 0x26, 0x0a};
	static const uint8_t proof[] = {0x68, 0xd7, 0xe2, 0xa4, 0xbc, 0x11, 0x23, 0xfd, 0x3b, 0x97,
		0xe1, 0x82, 0x07, 0x23, 0xbb, 0x73, 0xc6, 0x44, 0xe9, 0x93, 0x1b, 0xc1, 0x31, 0xe9,
		0x95, 0xbf, 0xb4, 0xd7, 0x39, 0x4e, 0x0a, 0xbf};
	struct ckt_token_verifier verifier;
	struct ckt_credential credential = {0};
	uint8_t nonce[CKT_NONCE_SIZE];
	for (size_t i = 0; i < sizeof nonce; i++)
		nonce[i] = (uint8_t)i;
	const struct ckt_challenge challenge = challenge_of(nonce, "arguments");
	ckt_token_verifier_make(&token, &verifier);
	IS(memcmp(verifier.id, id, sizeof id), 0);
	IS(memcmp(verifier.stored_key, stored_key, sizeof stored_key), 0);
	ckt_token_prove(&token, &challenge, &credential);
	YES(credential.has_token);
	NO(credential.has_key);
	IS(memcmp(credential.token_id, id, sizeof id), 0);
	IS(memcmp(credential.token_proof, proof, sizeof proof), 0);
}

static void test_wrong(void)
{
	const struct ckt_token other = {.bytes = "0123456789abcdeg", .size_bytes = 16};
	uint8_t nonce[CKT_NONCE_SIZE] = {1}, later[CKT_NONCE_SIZE] = {2};
	const struct ckt_challenge challenge = challenge_of(nonce, "arguments"),
				   next = challenge_of(later, "arguments"),
				   changed = challenge_of(nonce, "argumentt");
	struct ckt_token_verifier verifier, wrong;
	struct ckt_credential credential = {0};
	ckt_token_verifier_make(&token, &verifier);
	ckt_token_verifier_make(&other, &wrong);
	NO(ckt_token_check(&verifier, &challenge, &credential));
	ckt_token_prove(&token, &challenge, &credential);
	YES(ckt_token_check(&verifier, &challenge, &credential));
	NO(ckt_token_check(&wrong, &challenge, &credential));
	/* Heard once, and used again. */
	NO(ckt_token_check(&verifier, &next, &credential));
	NO(ckt_token_check(&verifier, &changed, &credential));
	for (size_t i = 0; i < CKT_PROOF_SIZE; i++) {
		credential.token_proof[i] ^= 0x80;
		NO(ckt_token_check(&verifier, &challenge, &credential));
		credential.token_proof[i] ^= 0x80;
	}
	/* Who has read the server's file has a key that proves nothing. */
	struct ckt_token stolen = {.size_bytes = CKT_PROOF_SIZE};
	memcpy(stolen.bytes, verifier.stored_key, CKT_PROOF_SIZE);
	ckt_token_prove(&stolen, &challenge, &credential);
	NO(ckt_token_check(&verifier, &challenge, &credential));
	credential.has_token = false;
	NO(ckt_token_check(&verifier, &challenge, &credential));
}

UNIT_SUITE(credential, {"form", test_form}, {"known", test_known}, {"wrong", test_wrong})
