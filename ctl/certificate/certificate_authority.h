/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small certificate authority in a directory of mode 0700:
 *
 *	ca.pem		its certificate, which servers and clients trust
 *	ca-key.pem	its private key (P-256), mode 0600, which stays here
 *	crl.pem		the list of revoked certificates, which it signs
 *	ledger.jsonl	what it issued and revoked (certificate_ledger.h)
 *
 * P-256, because each implementation of TLS 1.3 must know it (RFC 8446, section 9.1), and because
 * hardware for keys knows it.
 *
 * Errors: 0 or -errno, said in the problem.  An open authority is locked against other processes.
 */
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "ctl/certificate/certificate_ledger.h"
#include "rpc/certificate.h"

struct ckt_ctl_authority {
	char path[CKT_CTL_STAGED_PATH];
	int fd; /* the directory, locked */
	X509 *certificate;
	EVP_PKEY *key;
	struct ckt_ctl_ledger ledger;
};

enum {
	CKT_CTL_NAMES_MAX = 8, /* with two words before them, CKT_CTL_VALUES_MAX */
	CKT_CTL_DAYS_MAX = 7300,
	CKT_CTL_AUTHORITY_DAYS = 3650,
	CKT_CTL_LEAF_DAYS = 365,
	CKT_CTL_LIST_DAYS = 365,
};

/* What a new certificate says.  The words are the caller's. */
struct ckt_ctl_request {
	bool server;
	const char *name; /* the user, or the server's first name */
	/* server: host names and numeric addresses */
	const char *names[CKT_CTL_NAMES_MAX], *addresses[CKT_CTL_NAMES_MAX];
	unsigned name_count, address_count;
	enum ckt_role role; /* client */
	const char *projects[CKT_TOKEN_PROJECTS_MAX];
	unsigned project_count;
	unsigned days;
};

/* A new key and its certificate, in PEM. */
struct ckt_ctl_issued {
	char *key, *certificate; /* from malloc */
	size_t key_size, certificate_size;
	struct ckt_certificate facts;
};

/*
 * permit: the domains, addresses and networks (a.b.c.d/24) for which it may sign, with commas
 * between them; NULL: for all.
 */
int ckt_ctl_authority_make(
	const char *path, const char *permit, unsigned days, struct ckt_ctl_problem *problem);
int ckt_ctl_authority_open(
	const char *path, struct ckt_ctl_authority *ret_authority, struct ckt_ctl_problem *problem);
void ckt_ctl_authority_close(struct ckt_ctl_authority *authority);

/* certificate_sign.c: makes a key and signs for it; the ledger is the caller's. */
int ckt_ctl_authority_sign(const struct ckt_ctl_authority *authority,
	const struct ckt_ctl_request *request, struct ckt_ctl_issued *ret_issued,
	struct ckt_ctl_problem *problem);
void ckt_ctl_issued_free(struct ckt_ctl_issued *issued);
/* certificate_list.c: the list of all revoked certificates of the ledger, in PEM (malloc). */
int ckt_ctl_authority_list(const struct ckt_ctl_authority *authority, unsigned days, char **ret_pem,
	size_t *ret_size, struct ckt_ctl_problem *problem);
/* Writes it to crl.pem of the authority, and to `also` unless that is NULL. */
int ckt_ctl_authority_publish(const struct ckt_ctl_authority *authority, unsigned days,
	const char *also, struct ckt_ctl_problem *problem);

/* For the files that make X.509: NULL or 0 where there is no memory. */
EVP_PKEY *ckt_ctl_key_make(void);
/* A random serial, the times and the issuer's key identifiers; days from now. */
bool ckt_ctl_x509_begin(X509 *x509, unsigned days);
/* DER of i2d under that NID. */
bool ckt_ctl_x509_add(X509 *x509, int nid, bool critical, void *value);
/* text: as of openssl.cnf; only constants of ours. */
bool ckt_ctl_x509_add_text(X509 *x509, X509 *issuer, int nid, const char *text);
/* "O = Cricket" and a common name. */
bool ckt_ctl_x509_name(X509_NAME *name, const char *common_name);
/* Copies what was written to the BIO, and frees it.  NULL: no memory. */
char *ckt_ctl_bio_take(BIO *bio, size_t *ret_size);
