/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of revoked certificates, by OpenSSL's libcrypto; see revocations.h. */
#include "server/daemon/policy/revocations.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AUTHORITIES_MAX = 16 };

struct reading {
	struct ckt_revocations into;
	X509 *authorities[AUTHORITIES_MAX];
	unsigned authority_count;
	const char *path;
	char *message;
	size_t message_size;
};

static int fail(struct reading *reading, const char *path, const char *why)
{
	snprintf(reading->message, reading->message_size, "%s: %s", path, why);
	return -EINVAL;
}

static int compare(const void *a, const void *b)
{
	const struct ckt_revoked *left = a, *right = b;
	return left->size != right->size ? (int)left->size - (int)right->size
					 : memcmp(left->serial, right->serial, left->size);
}

static int open_file(struct reading *reading, const char *path, BIO **ret_bio)
{
	FILE *file = fopen(path, "re");
	int error = file ? 0 : errno;
	*ret_bio = file ? BIO_new_fp(file, BIO_CLOSE) : NULL;
	if (*ret_bio)
		return 0;
	if (file)
		fclose(file);
	fail(reading, path, strerror(error ? error : ENOMEM));
	return -(error ? error : ENOMEM);
}

static int read_authorities(struct reading *reading, const char *path)
{
	BIO *bio;
	int result = open_file(reading, path, &bio);
	if (result)
		return result;
	while (reading->authority_count < AUTHORITIES_MAX) {
		X509 *x509 = PEM_read_bio_X509(bio, NULL, NULL, NULL);
		if (!x509)
			break;
		reading->authorities[reading->authority_count++] = x509;
	}
	BIO_free(bio);
	return reading->authority_count ? 0 : fail(reading, path, "it holds no certificate in PEM");
}

static bool is_signed(const struct reading *reading, X509_CRL *list)
{
	for (unsigned i = 0; i < reading->authority_count; i++) {
		X509 *authority = reading->authorities[i];
		if (X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_subject_name(authority)) ==
				0 &&
			X509_check_ca(authority) &&
			X509_CRL_verify(list, X509_get0_pubkey(authority)) == 1)
			return true;
	}
	return false;
}

static int take_list(struct reading *reading, X509_CRL *list)
{
	STACK_OF(X509_REVOKED) *revoked = X509_CRL_get_REVOKED(list);
	int count = revoked ? sk_X509_REVOKED_num(revoked) : 0;
	struct ckt_revocations *into = &reading->into;
	if (!is_signed(reading, list))
		return fail(reading, reading->path,
			"a list in it is not signed by an authority that this server trusts; copy "
			"the authority's own crl.pem");
	if ((size_t)count > CKT_REVOKED_MAX - into->count)
		return fail(reading, reading->path, "it has more than 65536 certificates");
	struct ckt_revoked *more =
		reallocarray(into->revoked, into->count + (size_t)count + 1, sizeof *more);
	if (!more)
		return fail(reading, reading->path, "no memory");
	into->revoked = more;
	for (int i = 0; i < count; i++) {
		const ASN1_INTEGER *serial =
			X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(revoked, i));
		int size = ASN1_STRING_length(serial);
		/* No certificate that is taken has such a number. */
		if (size < 1 || size > CKT_CERTIFICATE_SERIAL_MAX)
			continue;
		struct ckt_revoked *one = &into->revoked[into->count++];
		*one = (struct ckt_revoked){.size = (uint8_t)size};
		memcpy(one->serial, ASN1_STRING_get0_data(serial), (size_t)size);
	}
	return 0;
}

static int read_lists(struct reading *reading)
{
	BIO *bio;
	unsigned lists = 0;
	int result = open_file(reading, reading->path, &bio);
	if (result)
		return result;
	for (X509_CRL *list; !result && (list = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL));) {
		lists++;
		result = take_list(reading, list);
		X509_CRL_free(list);
	}
	/* Half a list at the end would be one that nobody misses. */
	unsigned long error = ERR_peek_last_error();
	bool ended =
		ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
	BIO_free(bio);
	if (!result && (!lists || !ended))
		result = fail(reading, reading->path,
			lists ? "a list in it is malformed" : "it holds no list in PEM");
	return result;
}

int ckt_revocations_read(const char *path, const char *authorities,
	struct ckt_revocations *ret_revocations, char *ret_message, size_t message_size)
{
	struct reading reading = {
		.path = path, .message = ret_message, .message_size = message_size};
	ERR_clear_error();
	int result = read_authorities(&reading, authorities);
	if (!result)
		result = read_lists(&reading);
	for (unsigned i = 0; i < reading.authority_count; i++)
		X509_free(reading.authorities[i]);
	ERR_clear_error();
	if (result) {
		ckt_revocations_free(&reading.into);
		return result;
	}
	if (reading.into.count)
		qsort(reading.into.revoked, reading.into.count, sizeof *reading.into.revoked,
			compare);
	*ret_revocations = reading.into;
	return 0;
}

void ckt_revocations_free(struct ckt_revocations *revocations)
{
	free(revocations->revoked);
	*revocations = (struct ckt_revocations){0};
}

bool ckt_revocations_have(
	const struct ckt_revocations *revocations, const uint8_t *serial, size_t size)
{
	struct ckt_revoked key = {.size = (uint8_t)size};
	if (!revocations->count || size > CKT_CERTIFICATE_SERIAL_MAX)
		return false;
	memcpy(key.serial, serial, size);
	return bsearch(&key, revocations->revoked, revocations->count, sizeof key, compare);
}
