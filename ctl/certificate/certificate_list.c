/* SPDX-License-Identifier: Apache-2.0 */
/* The list of revoked certificates; see certificate_authority.h. */
#include <errno.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/certificate/certificate_authority.h"

static bool revoke_serial(X509_CRL *list, const char *serial, int64_t when)
{
	X509_REVOKED *entry = X509_REVOKED_new();
	ASN1_TIME *time = ASN1_TIME_set(NULL, (time_t)when);
	BIGNUM *number = NULL;
	ASN1_INTEGER *integer =
		BN_hex2bn(&number, serial) > 0 ? BN_to_ASN1_INTEGER(number, NULL) : NULL;
	bool good = entry && time && integer &&
		X509_REVOKED_set_serialNumber(entry, integer) == 1 &&
		X509_REVOKED_set_revocationDate(entry, time) == 1 &&
		X509_CRL_add0_revoked(list, entry) == 1;
	if (!good)
		X509_REVOKED_free(entry);
	ASN1_INTEGER_free(integer);
	ASN1_TIME_free(time);
	BN_free(number);
	return good;
}

/* One that has expired by itself needs no line any more. */
static bool revoke_all(X509_CRL *list, const struct ckt_ctl_ledger *ledger)
{
	bool good = true;
	for (size_t i = 0; i < json_array_size(ledger->lines); i++) {
		const json_t *line = json_array_get(ledger->lines, i);
		if (!ckt_ctl_ledger_is_certificate(line))
			continue;
		const char *serial = ckt_ctl_ledger_text(line, "serial");
		int64_t when = ckt_ctl_ledger_revoked(ledger, serial);
		if (when && ckt_ctl_ledger_not_after(line) >= (int64_t)time(NULL))
			good = good && revoke_serial(list, serial, when);
	}
	return good;
}

/* Of two lists that one has the higher number is the newer one: milliseconds do, without a file. */
static bool add_number(X509_CRL *list)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	ASN1_INTEGER *number = ASN1_INTEGER_new();
	bool good = number &&
		ASN1_INTEGER_set_uint64(number,
			(uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000) == 1 &&
		X509_CRL_add1_ext_i2d(list, NID_crl_number, number, 0, X509V3_ADD_APPEND) == 1;
	ASN1_INTEGER_free(number);
	return good;
}

static bool add_issuer(X509_CRL *list, X509 *issuer)
{
	X509V3_CTX context;
	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, issuer, NULL, NULL, list, 0);
	X509_EXTENSION *extension =
		X509V3_EXT_conf_nid(NULL, &context, NID_authority_key_identifier, "keyid:always");
	bool added = extension && X509_CRL_add_ext(list, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return added;
}

static bool fill(const struct ckt_ctl_authority *authority, unsigned days, X509_CRL *list)
{
	time_t now = time(NULL);
	ASN1_TIME *last = ASN1_TIME_adj(NULL, now, 0, -300 /* clocks differ */),
		  *next = ASN1_TIME_adj(NULL, now, (int)days, 0);
	bool good = last && next && X509_CRL_set_version(list, X509_CRL_VERSION_2) == 1 &&
		X509_CRL_set_issuer_name(list, X509_get_subject_name(authority->certificate)) ==
			1 &&
		X509_CRL_set1_lastUpdate(list, last) == 1 &&
		X509_CRL_set1_nextUpdate(list, next) == 1 &&
		add_issuer(list, authority->certificate) && add_number(list) &&
		revoke_all(list, &authority->ledger) && X509_CRL_sort(list) == 1 &&
		X509_CRL_sign(list, authority->key, EVP_sha256()) > 0;
	ASN1_TIME_free(last);
	ASN1_TIME_free(next);
	return good;
}

int ckt_ctl_authority_list(const struct ckt_ctl_authority *authority, unsigned days, char **ret_pem,
	size_t *ret_size, struct ckt_ctl_problem *problem)
{
	X509_CRL *list = X509_CRL_new();
	BIO *bio = BIO_new(BIO_s_mem());
	bool good = list && bio && fill(authority, days, list) &&
		PEM_write_bio_X509_CRL(bio, list) == 1;
	char *pem = ckt_ctl_bio_take(bio, ret_size);
	X509_CRL_free(list);
	ERR_clear_error();
	if (good && pem) {
		*ret_pem = pem;
		return 0;
	}
	free(pem);
	return ckt_ctl_problem_set(problem, EIO,
		"cannot make the list of revoked certificates; look for a serial in the ledger "
		"that is no number");
}

static int put(const char *directory, const char *pem, size_t size, struct ckt_ctl_problem *problem)
{
	struct ckt_ctl_staged staged;
	int result = ckt_ctl_staged_begin(directory, &staged, problem);
	if (!result)
		result = ckt_ctl_staged_put(&staged, "crl.pem", 0644, pem, size, problem);
	if (!result)
		result = ckt_ctl_staged_keep(&staged, problem);
	ckt_ctl_staged_end(&staged);
	return result;
}

int ckt_ctl_authority_publish(const struct ckt_ctl_authority *authority, unsigned days,
	const char *also, struct ckt_ctl_problem *problem)
{
	char *pem = NULL;
	size_t size = 0;
	int result = ckt_ctl_authority_list(authority, days, &pem, &size, problem);
	if (!result)
		result = put(authority->path, pem, size, problem);
	if (!result && also)
		result = put(also, pem, size, problem);
	free(pem);
	return result;
}
