/* SPDX-License-Identifier: Apache-2.0 */
/* Identities; see identity.h. */
#include "server/daemon/policy/identity.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rpc/token_file.h"

struct ckt_identity ckt_identity_of_owner(uint32_t owner)
{
	return (struct ckt_identity){
		.kind = ckt_owner_is_token(owner) ? CKT_IDENTITY_TOKEN : CKT_IDENTITY_USER,
		.uid = owner};
}

struct ckt_identity ckt_identity_of(const struct ckt_auth_peer *who)
{
	struct ckt_identity identity = {.kind = CKT_IDENTITY_ADDRESS};
	if (who->kind == CKT_PEER_UNIX)
		return (struct ckt_identity){.kind = CKT_IDENTITY_USER, .uid = who->uid};
	memcpy(identity.network, who->address, sizeof identity.network);
	/* A holder of one address of an IPv6 network can use all of the last 64 bits. */
	if (!ckt_auth_address_is_v4(who->address))
		memset(identity.network + 8, 0, 8);
	return identity;
}

bool ckt_identity_same(const struct ckt_identity *a, const struct ckt_identity *b)
{
	return a->kind == b->kind && a->uid == b->uid &&
		memcmp(a->network, b->network, sizeof a->network) == 0;
}

void ckt_identity_file_name(
	const struct ckt_identity *identity, char ret_name[CKT_IDENTITY_FILE_NAME])
{
	if (identity->kind == CKT_IDENTITY_USER || identity->kind == CKT_IDENTITY_TOKEN)
		snprintf(ret_name, CKT_IDENTITY_FILE_NAME, "%u", identity->uid);
	else
		snprintf(ret_name, CKT_IDENTITY_FILE_NAME, "%s",
			identity->kind == CKT_IDENTITY_NEXT ? "next" : "anonymous");
}

bool ckt_uid_is_operator(uint32_t uid)
{
	return uid == 0 || uid == geteuid();
}

bool ckt_identity_is_operator(const struct ckt_identity *identity)
{
	return identity->kind == CKT_IDENTITY_USER && ckt_uid_is_operator(identity->uid);
}
