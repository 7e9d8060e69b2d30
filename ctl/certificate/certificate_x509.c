/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of X.509 that authority, certificate and list have in common; see certificate_authority.h. */
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/certificate/certificate_authority.h"

enum { SERIAL_SIZE = 16, BEFORE_S = 300 /* clocks differ */, DAY_S = 86400 };

EVP_PKEY *ckt_ctl_key_make(void)
{
	return EVP_EC_gen("P-256");
}

/* 127 random bits: nobody can guess it, and no two authorities share one. */
static bool set_serial(X509 *x509)
{
	uint8_t bytes[SERIAL_SIZE];
	if (RAND_bytes(bytes, sizeof bytes) != 1)
		return false;
	/* Positive, and of the same length always. */
	bytes[0] = (uint8_t)((bytes[0] & 0x3f) | 0x40);
	BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
	bool set = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509));
	BN_free(number);
	return set;
}

bool ckt_ctl_x509_begin(X509 *x509, unsigned days)
{
	time_t now = time(NULL);
	return X509_set_version(x509, X509_VERSION_3) == 1 && set_serial(x509) &&
		ASN1_TIME_adj(X509_getm_notBefore(x509), now, 0, -BEFORE_S) &&
		ASN1_TIME_adj(X509_getm_notAfter(x509), now, (int)days, 0);
}

bool ckt_ctl_x509_add(X509 *x509, int nid, bool critical, void *value)
{
	return X509_add1_ext_i2d(x509, nid, value, critical, X509V3_ADD_APPEND) == 1;
}

bool ckt_ctl_x509_add_text(X509 *x509, X509 *issuer, int nid, const char *text)
{
	X509V3_CTX context;
	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, issuer, x509, NULL, NULL, 0);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, text);
	bool added = extension && X509_add_ext(x509, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return added;
}

bool ckt_ctl_x509_name(X509_NAME *name, const char *common_name)
{
	return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8,
		       (const unsigned char *)"Cricket", -1, -1, 0) == 1 &&
		X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
			(const unsigned char *)common_name, -1, -1, 0) == 1;
}

char *ckt_ctl_bio_take(BIO *bio, size_t *ret_size)
{
	char *data = NULL, *copy = NULL;
	long size = bio ? BIO_get_mem_data(bio, &data) : 0;
	if (size > 0)
		copy = malloc((size_t)size);
	if (copy) {
		memcpy(copy, data, (size_t)size);
		*ret_size = (size_t)size;
	}
	BIO_free(bio);
	return copy;
}
