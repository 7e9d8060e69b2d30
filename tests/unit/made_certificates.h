/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates and lists of revoked ones as tests want them, good and bad, by OpenSSL.  A failure ends
 * the process.
 */
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stddef.h>
#include <stdint.h>

struct made_wish {
	const char
		*names; /* subjectAltName as in openssl.cnf: "URI:cricket:user=alice"; NULL: none */
	const char *usage;       /* extended key usage: "clientAuth"; NULL: none */
	const char *common_name; /* NULL: "test" */
	long from_s, until_s;    /* from now on; both 0: valid for a day */
	long serial;             /* 0: 1 */
	int is_authority;
};

struct made {
	X509 *x509;
	EVP_PKEY *key;
	uint8_t *der;
	size_t size;
};

/* issuer: NULL: it signs itself. */
struct made made_certificate(const struct made_wish *wish, const struct made *issuer);
void made_free(struct made *made);
/* The certificate in PEM. */
void made_write(const char *path, const struct made *made);
/* A list of those serials, 0 behind the last, with a next update so many seconds from now. */
void made_write_list(const char *path, const struct made *issuer, const long *serials, long next_s);
