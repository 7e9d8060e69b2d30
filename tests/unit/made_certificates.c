/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of tests; see made_certificates.h. */
#include "tests/unit/made_certificates.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void need(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "made_certificates: %s\n", what);
	abort();
}

static void add(X509 *x509, X509 *issuer, int nid, const char *text)
{
	X509V3_CTX context;
	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, issuer, x509, NULL, NULL, 0);
	X509_EXTENSION *extension = text ? X509V3_EXT_conf_nid(NULL, &context, nid, text) : NULL;
	need(!text || extension, text);
	need(!text || X509_add_ext(x509, extension, -1) == 1, "X509_add_ext");
	X509_EXTENSION_free(extension);
}

struct made made_certificate(const struct made_wish *wish, const struct made *issuer)
{
	struct made made = {.x509 = X509_new(), .key = EVP_EC_gen("P-256")};
	X509 *x509 = made.x509, *by = issuer ? issuer->x509 : x509;
	const char *name = wish->common_name ? wish->common_name : "test";
	time_t now = time(NULL);
	long until = wish->from_s || wish->until_s ? wish->until_s : 86400;
	need(x509 && made.key, "no memory");
	X509_set_version(x509, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(x509), wish->serial ? wish->serial : 1);
	ASN1_TIME_adj(X509_getm_notBefore(x509), now, 0, wish->from_s);
	ASN1_TIME_adj(X509_getm_notAfter(x509), now, 0, until);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_UTF8,
		(const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(x509, X509_get_subject_name(by));
	X509_set_pubkey(x509, made.key);
	add(x509, by, NID_basic_constraints, wish->is_authority ? "critical,CA:TRUE" : NULL);
	add(x509, by, NID_ext_key_usage, wish->usage);
	add(x509, by, NID_subject_alt_name, wish->names);
	need(X509_sign(x509, issuer ? issuer->key : made.key, EVP_sha256()) > 0, "X509_sign");
	int size = i2d_X509(x509, &made.der);
	need(size > 0, "i2d_X509");
	made.size = (size_t)size;
	return made;
}

void made_free(struct made *made)
{
	X509_free(made->x509);
	EVP_PKEY_free(made->key);
	OPENSSL_free(made->der);
	*made = (struct made){0};
}

void made_write(const char *path, const struct made *made)
{
	FILE *file = fopen(path, "w");
	need(file != NULL, path);
	need(PEM_write_X509(file, made->x509) == 1, "PEM_write_X509");
	fclose(file);
}

void made_write_list(const char *path, const struct made *issuer, const long *serials, long next_s)
{
	X509_CRL *list = X509_CRL_new();
	time_t now = time(NULL);
	ASN1_TIME *last = ASN1_TIME_adj(NULL, now, 0, -60),
		  *next = ASN1_TIME_adj(NULL, now, 0, next_s);
	need(list && last && next, "no memory");
	X509_CRL_set_version(list, X509_CRL_VERSION_2);
	X509_CRL_set_issuer_name(list, X509_get_subject_name(issuer->x509));
	X509_CRL_set1_lastUpdate(list, last);
	X509_CRL_set1_nextUpdate(list, next);
	for (; *serials; serials++) {
		X509_REVOKED *revoked = X509_REVOKED_new();
		ASN1_INTEGER *serial = ASN1_INTEGER_new();
		ASN1_INTEGER_set(serial, *serials);
		X509_REVOKED_set_serialNumber(revoked, serial);
		X509_REVOKED_set_revocationDate(revoked, last);
		X509_CRL_add0_revoked(list, revoked);
		ASN1_INTEGER_free(serial);
	}
	X509_CRL_sort(list);
	need(X509_CRL_sign(list, issuer->key, EVP_sha256()) > 0, "X509_CRL_sign");
	FILE *file = fopen(path, "w");
	need(file != NULL, path);
	need(PEM_write_X509_CRL(file, list) == 1, "PEM_write_X509_CRL");
	fclose(file);
	ASN1_TIME_free(last);
	ASN1_TIME_free(next);
	X509_CRL_free(list);
}
