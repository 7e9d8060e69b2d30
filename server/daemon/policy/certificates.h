/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificates that peers have shown: an identity beside tokens, with a name, a role and
 * projects.  The owner of what such a peer makes is "certificate:NAME".
 *
 * TLS has checked by then who signed the certificate.  Where it expires or is revoked (crl.pem,
 * which is read again when it changes), its holder's control connections have no rights any more.  A
 * program that is connected goes on, as with tokens.
 *
 * Several certificates may have one name, an old and a renewed one: each connection has the rights
 * of its own.  Where only the owner is known, those of the latest count.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "rpc/certificate.h"
#include "server/daemon/policy/certificate_expiry.h"
#include "server/daemon/policy/revocations.h"

struct ckt_server;

/* PEM files; NULL: none. */
struct ckt_certificate_paths {
	char *certificate; /* the server's own */
	char *authority;   /* ca.pem: who signs those of clients */
	char *revocations; /* crl.pem beside it; a file that is missing revokes nothing */
};

struct ckt_certificate_holder {
	struct ckt_certificate_holder *next;
	struct ckt_token_entry entry; /* its name, role, projects, expiry; no limits */
	uint32_t owner;
	uint8_t serial[CKT_CERTIFICATE_SERIAL_MAX];
	size_t serial_size;
	uint8_t fingerprint[CKT_FINGERPRINT_SIZE];
	time_t not_before;
	unsigned uses; /* connections that showed it */
};

struct ckt_certificates {
	struct ckt_certificate_paths paths;
	struct ckt_certificate_holder *holders; /* last shown first */
	unsigned count;
	struct ckt_revocations revocations;
	/* The file of them as it was read. */
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec modified;
	int64_t looked_ms;
	struct ckt_certificate_expiry expiry;
};

enum { CKT_CERTIFICATE_HOLDERS_MAX = 4096 };

/*
 * At the start, behind the loop, with the files of TLS; NULL: none.  -errno with a sentence where crl.pem cannot be read.
 */
int ckt_certificates_open(struct ckt_server *server, const char *certificate, const char *authority,
	char *ret_message, size_t message_size);
void ckt_certificates_close(struct ckt_server *server);

/*
 * Whom a peer's certificate names.  The caller gives the holder back.  -ENOENT: it names no user;
 * -EACCES: it is expired, not valid yet or revoked; -EINVAL: malformed; -EEXIST: its owner number is
 * a token's; -ENOSPC: too many are in use.
 */
int ckt_certificates_take(struct ckt_server *server, const void *der, size_t size_bytes,
	struct ckt_certificate_holder **ret_holder, char *ret_message, size_t message_size);
void ckt_certificates_give(struct ckt_certificate_holder *holder);

/* Its rights now; NULL: it has expired or was revoked meanwhile. */
const struct ckt_token_entry *ckt_certificate_entry(
	struct ckt_server *server, const struct ckt_certificate_holder *holder);
/* The rights of the latest valid certificate of that owner; NULL: none. */
const struct ckt_token_entry *ckt_certificates_find_owner(
	struct ckt_server *server, uint32_t owner);
/* The name of an owner whose certificate was shown since the start, valid or not; NULL: none. */
const char *ckt_certificates_name(struct ckt_server *server, uint32_t owner);
