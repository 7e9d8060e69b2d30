/* SPDX-License-Identifier: Apache-2.0 */
/* Who says hello; see entry.h. */
#include "server/daemon/peer/entry.h"

#include <stdio.h>
#include <string.h>

#include "rpc/session_key.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/peer/peer_certificate.h"

enum {
	VERSION = 1,            /* of CRICKET_SESSION_PROG */
	HELLO_HEADER_SIZE = 40, /* a call with an empty credential */
};

static bool read_credential(struct ckt_cursor *c, struct ckt_entry *entry)
{
	uint32_t flavour = ckt_get_u32(c), length = 0;
	const uint8_t *body = ckt_get_opaque(c, CKT_CREDENTIAL_MAX, &length);
	if (c->bad)
		return false;
	if (flavour == CKT_AUTH_CRICKET_PROOF)
		return ckt_credential_get(body, length, &entry->credential);
	if (flavour == CKT_AUTH_CRICKET_TOKEN && length == CKT_AUTH_HMAC_SIZE) {
		entry->hmac = body;
		return true;
	}
	return flavour == CKT_AUTH_NONE && length == 0;
}

bool ckt_entry_read(struct ckt_cursor *c, const struct ckt_peer *peer, struct ckt_entry *ret_entry)
{
	struct ckt_entry entry = {0};
	if (c->end - c->p < HELLO_HEADER_SIZE)
		return false;
	entry.xid = ckt_get_u32(c);
	bool good = ckt_get_u32(c) == 0 && ckt_get_u32(c) == 2;
	good = ckt_get_u32(c) == CRICKET_SESSION_PROG && good;
	good = ckt_get_u32(c) == VERSION && good;
	good = ckt_get_u32(c) == CKT_SESSION_HELLO && good;
	good = read_credential(c, &entry) && good;
	/* The verifier. */
	good = ckt_get_u32(c) == CKT_AUTH_NONE && good;
	good = ckt_get_u32(c) == 0 && good;
	entry.challenge = (struct ckt_challenge){
		.nonce = peer->nonce, .args = c->p, .args_bytes = (size_t)(c->end - c->p)};
	*ret_entry = entry;
	return good && !c->bad;
}

/* A client of an earlier version, which shows the token of --token-file. */
static const struct ckt_token_entry *judge_hmac(
	const struct ckt_peer *peer, const struct ckt_entry *entry)
{
	const struct ckt_token *token = &peer->server->token;
	const struct ckt_challenge *challenge = &entry->challenge;
	uint8_t expected[CKT_AUTH_HMAC_SIZE];
	if (!token->size_bytes)
		return NULL;
	ckt_auth_hmac(token, challenge->nonce, challenge->args, challenge->args_bytes, expected);
	return ckt_auth_equal(entry->hmac, expected, sizeof expected)
		? ckt_tokens_find_owner(peer->server, ckt_owner_of_token(CKT_SINGLE_TOKEN_NAME))
		: NULL;
}

static const struct ckt_token_entry *judge_proof(
	const struct ckt_peer *peer, const struct ckt_entry *entry)
{
	const struct ckt_token_entry *token =
		ckt_tokens_find_id(peer->server, entry->credential.token_id);
	return token && ckt_token_check(&token->verifier, &entry->challenge, &entry->credential)
		? token
		: NULL;
}

void ckt_entry_judge_token(
	struct ckt_peer *peer, const struct ckt_entry *entry, struct ckt_entry_facts *ret_facts)
{
	/* A certificate has proved itself in the handshake; a token beside it counts instead. */
	bool certified = ckt_peer_certificate_entry(peer);
	ret_facts->token = certified ? CKT_PROOF_RIGHT : CKT_PROOF_NONE;
	if (certified)
		peer->token = peer->holder->owner;
	if ((!entry->hmac && !entry->credential.has_token) || !ckt_tokens_known(peer->server))
		return;
	const struct ckt_token_entry *token =
		entry->hmac ? judge_hmac(peer, entry) : judge_proof(peer, entry);
	if (!token) {
		ret_facts->token = CKT_PROOF_WRONG;
	} else if (ckt_token_is_expired(token)) {
		ret_facts->token = CKT_PROOF_EXPIRED;
		snprintf(ret_facts->token_name, sizeof ret_facts->token_name, "%s", token->name);
	} else {
		ret_facts->token = CKT_PROOF_RIGHT;
		peer->token = ckt_owner_of_token(token->name);
	}
}

bool ckt_entry_lacks_key(const struct ckt_peer *peer, const struct ckt_entry *entry)
{
	const uint8_t *secret = (const uint8_t *)peer->hello.secret;
	uint8_t own[CKT_SECRET_SIZE];
	if (!ckt_session_secret_is_key(secret))
		return false;
	if (!ckt_session_key_check(&entry->challenge, &entry->credential))
		return true;
	ckt_session_key_secret(entry->credential.public_key, own);
	return !ckt_auth_equal(secret, own, sizeof own);
}
