/* SPDX-License-Identifier: Apache-2.0 */
/* Identities; see identity.h. */
#include "server/daemon/policy/identity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rpc/token_file.h"

struct ckt_identity ckt_identity_of_owner(uint32_t owner)
{
	return (struct ckt_identity){
		.kind = ckt_owner_is_token(owner) ? CKT_IDENTITY_TOKEN : CKT_IDENTITY_USER,
		.uid = owner};
}

struct ckt_identity ckt_identity_of_share_group(const char *name)
{
	struct ckt_identity identity = {.kind = CKT_IDENTITY_SHARE_GROUP};
	snprintf(identity.group, sizeof identity.group, "%s", name);
	return identity;
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

int ckt_identity_of_certificate(const void *der, size_t size_bytes,
	struct ckt_certificate *ret_certificate, struct ckt_identity *ret_identity,
	char *ret_message, size_t message_size)
{
	struct ckt_certificate certificate;
	time_t now = time(NULL);
	int result = ckt_certificate_read(der, size_bytes, &certificate, ret_message, message_size);
	if (result)
		return result;
	if (!*certificate.user) {
		snprintf(ret_message, message_size, "the certificate names no user");
		return -ENOENT;
	}
	if (!ckt_certificate_is_valid(&certificate, now)) {
		snprintf(ret_message, message_size,
			now < certificate.not_before
				? "the certificate of '%s' is not valid yet: look at the clocks"
				: "the certificate of '%s' has expired: renew it with cricketctl "
				  "certificate renew",
			certificate.user);
		return -EACCES;
	}
	*ret_identity = ckt_identity_of_owner(ckt_owner_of_certificate(certificate.user));
	*ret_certificate = certificate;
	return 0;
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
	else if (identity->kind == CKT_IDENTITY_SHARE_GROUP)
		/* No number begins like that. */
		snprintf(ret_name, CKT_IDENTITY_FILE_NAME, "@%.14s", identity->group);
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
