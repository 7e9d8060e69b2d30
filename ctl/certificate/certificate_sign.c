/* SPDX-License-Identifier: Apache-2.0 */
/* A new key and a certificate for it; see certificate_authority.h. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/certificate/certificate_authority.h"
#include "ctl/certificate/certificate_names.h"

static bool add_name(GENERAL_NAMES *names, int type, const void *data, size_t size)
{
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_STRING *value =
		ASN1_STRING_type_new(type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
	bool good = name && value && ASN1_STRING_set(value, data, (int)size) == 1;
	if (good) {
		GENERAL_NAME_set0_value(name, type, value);
		value = NULL;
		good = sk_GENERAL_NAME_push(names, name) > 0;
	}
	ASN1_STRING_free(value);
	if (!good)
		GENERAL_NAME_free(name);
	return good;
}

static bool add_uri(GENERAL_NAMES *names, const char *key, const char *value)
{
	char uri[96];
	int size = snprintf(uri, sizeof uri, CKT_CERTIFICATE_URI "%s=%s", key, value);
	return add_name(names, GEN_URI, uri, (size_t)size);
}

static bool add_names(GENERAL_NAMES *names, const struct ckt_ctl_request *request)
{
	bool good = true;
	for (unsigned i = 0; i < request->name_count && good; i++)
		good = add_name(names, GEN_DNS, request->names[i], strlen(request->names[i]));
	for (unsigned i = 0; i < request->address_count && good; i++) {
		uint8_t address[16];
		size_t size;
		good = ckt_ctl_address_parse(request->addresses[i], address, &size) &&
			add_name(names, GEN_IPADD, address, size);
	}
	if (request->server || !good)
		return good;
	good = add_uri(names, "user", request->name) &&
		add_uri(names, "role", ckt_role_name(request->role));
	for (unsigned i = 0; i < request->project_count && good; i++)
		good = add_uri(names, "project", request->projects[i]);
	return good;
}

static bool fill(const struct ckt_ctl_authority *authority, const struct ckt_ctl_request *request,
	EVP_PKEY *key, X509 *x509)
{
	X509 *issuer = authority->certificate;
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	/*
	 * A common name has at most 64 characters; the whole name is in subjectAltName.  A user's has
	 * a blank, so that nobody takes it for a host name, for which --permit would count.
	 */
	char common_name[65];
	snprintf(
		common_name, sizeof common_name, request->server ? "%s" : "user %s", request->name);
	bool good = names && ckt_ctl_x509_begin(x509, request->days) &&
		ckt_ctl_x509_name(X509_get_subject_name(x509), common_name) &&
		X509_set_issuer_name(x509, X509_get_subject_name(issuer)) == 1 &&
		X509_set_pubkey(x509, key) == 1 &&
		ckt_ctl_x509_add_text(x509, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
		ckt_ctl_x509_add_text(x509, issuer, NID_key_usage, "critical,digitalSignature") &&
		/* A server is a client of the one to which it moves a session. */
		ckt_ctl_x509_add_text(x509, issuer, NID_ext_key_usage,
			request->server ? "serverAuth,clientAuth" : "clientAuth") &&
		ckt_ctl_x509_add_text(x509, issuer, NID_subject_key_identifier, "hash") &&
		ckt_ctl_x509_add_text(x509, issuer, NID_authority_key_identifier, "keyid:always") &&
		add_names(names, request) &&
		ckt_ctl_x509_add(x509, NID_subject_alt_name, false, names) &&
		X509_sign(x509, authority->key, EVP_sha256()) > 0;
	GENERAL_NAMES_free(names);
	return good;
}

/* As each peer will look at it: so what the authority may not sign is not issued. */
static int check(const struct ckt_ctl_authority *authority, const struct ckt_ctl_request *request,
	X509 *x509, struct ckt_ctl_problem *problem)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *context = X509_STORE_CTX_new();
	int error = X509_V_ERR_OUT_OF_MEM;
	if (store && context && X509_STORE_add_cert(store, authority->certificate) == 1 &&
		X509_STORE_CTX_init(context, store, x509, NULL) == 1) {
		X509_STORE_CTX_set_purpose(context,
			request->server ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT);
		error = X509_verify_cert(context) == 1 ? X509_V_OK
						       : X509_STORE_CTX_get_error(context);
	}
	X509_STORE_CTX_free(context);
	X509_STORE_free(store);
	if (error == X509_V_OK)
		return 0;
	bool named =
		error == X509_V_ERR_PERMITTED_VIOLATION || error == X509_V_ERR_EXCLUDED_VIOLATION;
	return ckt_ctl_problem_set(problem, EPERM, "certificate of '%.80s': %s; %s", request->name,
		X509_verify_cert_error_string(error),
		named ? "this authority was made with --permit for other names"
		      : "look at the clock and at the authority's ca.pem");
}

/* Its end is the authority's at the latest: nobody would believe it afterwards. */
static int check_end(const struct ckt_ctl_authority *authority, const X509 *x509,
	struct ckt_ctl_problem *problem)
{
	int days = 0, seconds = 0;
	const ASN1_TIME *end = X509_get0_notAfter(authority->certificate);
	if (ASN1_TIME_compare(X509_get0_notAfter(x509), end) <= 0)
		return 0;
	if (ASN1_TIME_diff(&days, &seconds, NULL, end) != 1 || days < 0 || seconds < 0)
		days = 0;
	return ckt_ctl_problem_set(problem, EINVAL,
		days ? "--days: the authority itself is valid for %d more days; write at most "
		       "that many"
		     : "the authority itself is valid for %d more days; make a new one with "
		       "cricketctl certificate init --dir",
		days);
}

static int write_pem(
	EVP_PKEY *key, X509 *x509, struct ckt_ctl_issued *issued, struct ckt_ctl_problem *problem)
{
	char message[256];
	uint8_t *der = NULL;
	BIO *secret = BIO_new(BIO_s_secmem()), *open = BIO_new(BIO_s_mem());
	bool good = secret && open &&
		PEM_write_bio_PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL) == 1 &&
		PEM_write_bio_X509(open, x509) == 1;
	issued->key = ckt_ctl_bio_take(secret, &issued->key_size);
	issued->certificate = ckt_ctl_bio_take(open, &issued->certificate_size);
	int size = i2d_X509(x509, &der);
	good = good && issued->key && issued->certificate && size > 0;
	int result = good ? 0 : ckt_ctl_problem_set(problem, ENOMEM, "no memory");
	if (!result &&
		ckt_certificate_read(der, (size_t)size, &issued->facts, message, sizeof message))
		result = ckt_ctl_problem_set(problem, EINVAL, "%s", message);
	OPENSSL_free(der);
	return result;
}

int ckt_ctl_authority_sign(const struct ckt_ctl_authority *authority,
	const struct ckt_ctl_request *request, struct ckt_ctl_issued *ret_issued,
	struct ckt_ctl_problem *problem)
{
	struct ckt_ctl_issued issued = {0};
	EVP_PKEY *key = ckt_ctl_key_make();
	X509 *x509 = X509_new();
	int result = key && x509 && fill(authority, request, key, x509)
		? 0
		: ckt_ctl_problem_set(problem, EIO, "cannot make a key and its certificate");
	if (!result)
		result = check_end(authority, x509, problem);
	if (!result)
		result = check(authority, request, x509, problem);
	if (!result)
		result = write_pem(key, x509, &issued, problem);
	EVP_PKEY_free(key);
	X509_free(x509);
	ERR_clear_error();
	if (result)
		ckt_ctl_issued_free(&issued);
	else
		*ret_issued = issued;
	return result;
}

void ckt_ctl_issued_free(struct ckt_ctl_issued *issued)
{
	if (issued->key)
		explicit_bzero(issued->key, issued->key_size);
	free(issued->key);
	free(issued->certificate);
	*issued = (struct ckt_ctl_issued){0};
}
