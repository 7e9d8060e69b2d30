/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An identity: the party for which sessions, connections, stages and bytes count.
 *
 *	before the hello	the network address (IPv6: its /64), or the user of a UNIX socket
 *	afterwards		the user, the token's or certificate's owner, or nobody at that address
 *
 * Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/certificate.h"
#include "rpc/identity.h"

struct ckt_identity {
	enum {
		CKT_IDENTITY_NONE,
		CKT_IDENTITY_ADDRESS,
		CKT_IDENTITY_USER,
		CKT_IDENTITY_TOKEN, /* or a certificate: see rpc/token_file.h */
		CKT_IDENTITY_NEXT,  /* whoever comes next: of warm workers (warm_workers.h) */
		CKT_IDENTITY_SHARE_GROUP /* owners that agree to share in space: of their workers (mps.h) */
	} kind;
	uint32_t
		uid; /* CKT_IDENTITY_USER; CKT_IDENTITY_TOKEN: its owner number, rpc/token_file.h */
	union {
		/* CKT_IDENTITY_ADDRESS: IPv4 as ::ffff:a.b.c.d, IPv6 with its last 64 bits zero */
		uint8_t network[16];
		char group[16]; /* CKT_IDENTITY_SHARE_GROUP: its name, with zeros behind it */
	};
};

/* The identity before the hello: as the kernel reports the peer. */
struct ckt_identity ckt_identity_of(const struct ckt_auth_peer *who);
/* The identity of an owner that is known: a user or a token. */
struct ckt_identity ckt_identity_of_owner(uint32_t owner);
/*
 * The identity of the user whom a certificate (DER) names, valid now.  Who signed it is TLS's
 * question, and whether it was revoked that of certificates.h.  -ENOENT: it names no user; -EACCES: it
 * is not valid now; -EINVAL: malformed; with a sentence.
 */
int ckt_identity_of_certificate(const void *der, size_t size_bytes,
	struct ckt_certificate *ret_certificate, struct ckt_identity *ret_identity,
	char *ret_message, size_t message_size);
/* The owners of this share-group= (limit_rule.h) together. */
struct ckt_identity ckt_identity_of_share_group(const char *name);
bool ckt_identity_same(const struct ckt_identity *a, const struct ckt_identity *b);
enum { CKT_IDENTITY_FILE_NAME = 16 };
/* A name for files: the owner's number, "next", "@GROUP", or "anonymous" for all that have none. */
void ckt_identity_file_name(
	const struct ckt_identity *identity, char ret_name[CKT_IDENTITY_FILE_NAME]);
/* Root or the server's own user: both can end every session anyway. */
bool ckt_uid_is_operator(uint32_t uid);
bool ckt_identity_is_operator(const struct ckt_identity *identity);
