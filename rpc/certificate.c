/* SPDX-License-Identifier: Apache-2.0 */
/* Reading certificates, by OpenSSL's libcrypto; see certificate.h. */
#include "rpc/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A chain, or a revocation list of some ten thousand certificates. */
enum { FILE_MAX = 4 << 20 };

struct reading {
	struct ckt_certificate certificate;
	bool has_role;
	char *message;
	size_t message_size;
};

static int __attribute__((format(printf, 2, 3)))
fail(struct reading *reading, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(reading->message, reading->message_size, format, arguments);
	va_end(arguments);
	ERR_clear_error();
	return -EINVAL;
}

static int time_of(const ASN1_TIME *from, time_t *ret_time)
{
	struct tm tm;
	if (!from || ASN1_TIME_to_tm(from, &tm) != 1)
		return -EINVAL;
	*ret_time = timegm(&tm);
	return 0;
}

static int read_times(struct reading *reading, const X509 *x509)
{
	struct ckt_certificate *to = &reading->certificate;
	if (time_of(X509_get0_notBefore(x509), &to->not_before) ||
		time_of(X509_get0_notAfter(x509), &to->not_after))
		return fail(reading, "the certificate's times are malformed");
	return 0;
}

static int read_serial(struct reading *reading, const X509 *x509)
{
	const ASN1_INTEGER *serial = X509_get0_serialNumber(x509);
	int size = ASN1_STRING_length(serial);
	if (ASN1_STRING_type(serial) != V_ASN1_INTEGER || size < 1 ||
		size > CKT_CERTIFICATE_SERIAL_MAX)
		return fail(reading, "the certificate's serial number is not of 1 to %d bytes",
			CKT_CERTIFICATE_SERIAL_MAX);
	memcpy(reading->certificate.serial, ASN1_STRING_get0_data(serial), (size_t)size);
	reading->certificate.serial_size = (size_t)size;
	return 0;
}

static int read_key(struct reading *reading, const X509 *x509)
{
	uint8_t *der = NULL;
	int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x509), &der);
	int hashed = size > 0 &&
		EVP_Digest(der, (size_t)size, reading->certificate.fingerprint, NULL, EVP_sha256(),
			NULL) == 1;
	OPENSSL_free(der);
	return hashed ? 0 : fail(reading, "the certificate's public key is malformed");
}

static void read_common_name(struct reading *reading, const X509 *x509)
{
	const X509_NAME *subject = X509_get_subject_name(x509);
	int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	uint8_t *text = NULL;
	int size = at < 0 ? -1
			  : ASN1_STRING_to_UTF8(&text,
				    X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
	if (size > 0)
		snprintf(reading->certificate.common_name, sizeof reading->certificate.common_name,
			"%.*s", size, (const char *)text);
	OPENSSL_free(text);
	ERR_clear_error();
}

/* ---- The URIs */

static int take_user(struct reading *reading, const char *value)
{
	struct ckt_certificate *to = &reading->certificate;
	if (*to->user || !ckt_token_name_is_good(value))
		return fail(reading,
			"the certificate names a user twice, or none of 1 to %d of "
			"a-z, 0-9, '.', '_', '-'",
			CKT_TOKEN_NAME_MAX);
	snprintf(to->user, sizeof to->user, "%s", value);
	return 0;
}

static int take_role(struct reading *reading, const char *value)
{
	if (reading->has_role || !ckt_role_parse(value, &reading->certificate.role))
		return fail(reading,
			"the certificate has two roles, or one that is not user, "
			"operator or administrator");
	reading->has_role = true;
	return 0;
}

static int take_project(struct reading *reading, const char *value)
{
	struct ckt_certificate *to = &reading->certificate;
	if (to->project_count == CKT_TOKEN_PROJECTS_MAX || !ckt_token_name_is_good(value))
		return fail(reading,
			"the certificate has more than %d projects, or one whose name "
			"is not of a-z, 0-9, '.', '_', '-'",
			CKT_TOKEN_PROJECTS_MAX);
	snprintf(to->projects[to->project_count++], sizeof to->projects[0], "%s", value);
	return 0;
}

static int take_uri(struct reading *reading, const ASN1_STRING *uri)
{
	static const struct {
		const char *key;
		int (*take)(struct reading *reading, const char *value);
	} keys[] = {{"user=", take_user}, {"role=", take_role}, {"project=", take_project}};
	enum { SCHEME = sizeof CKT_CERTIFICATE_URI - 1, URI_MAX = 80 };
	char text[URI_MAX + 1] = "";
	size_t size = (size_t)ASN1_STRING_length(uri);
	const char *data = (const char *)ASN1_STRING_get0_data(uri);
	if (size < SCHEME || strncasecmp(data, CKT_CERTIFICATE_URI, SCHEME) != 0)
		return 0; /* another program's */
	if (size <= URI_MAX && !memchr(data, 0, size))
		memcpy(text, data, size);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (strncmp(text, CKT_CERTIFICATE_URI, SCHEME) == 0 &&
			strncmp(text + SCHEME, keys[i].key, strlen(keys[i].key)) == 0)
			return keys[i].take(reading, text + SCHEME + strlen(keys[i].key));
	return fail(reading, "the certificate has a URI of the scheme 'cricket' that is not known");
}

static int read_uris(struct reading *reading, const X509 *x509)
{
	int critical = 0, result = 0;
	GENERAL_NAMES *names = X509_get_ext_d2i(x509, NID_subject_alt_name, &critical, NULL);
	/* -1: there is none; -2: there are several. */
	if (!names)
		return critical == -1
			? 0
			: fail(reading, "the certificate's subjectAltName is malformed");
	for (int i = 0; i < sk_GENERAL_NAME_num(names) && !result; i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
		if (name->type == GEN_URI)
			result = take_uri(reading, name->d.uniformResourceIdentifier);
	}
	GENERAL_NAMES_free(names);
	return result;
}

/* ---- The whole */

static int read_usage(struct reading *reading, X509 *x509)
{
	struct ckt_certificate *to = &reading->certificate;
	uint32_t flags = X509_get_extension_flags(x509);
	uint32_t usage = X509_get_extended_key_usage(x509);
	if (flags & (EXFLAG_INVALID | EXFLAG_CRITICAL))
		return fail(reading,
			"the certificate has malformed extensions, or a critical one that is not "
			"known");
	to->authority = flags & EXFLAG_CA;
	/* Without the extension usage has all bits. */
	to->server = flags & EXFLAG_XKUSAGE && usage & XKU_SSL_SERVER;
	to->client = flags & EXFLAG_XKUSAGE && usage & XKU_SSL_CLIENT;
	return 0;
}

static int read_x509(struct reading *reading, X509 *x509)
{
	int result = read_times(reading, x509);
	if (!result)
		result = read_serial(reading, x509);
	if (!result)
		result = read_key(reading, x509);
	if (!result)
		result = read_usage(reading, x509);
	if (!result)
		result = read_uris(reading, x509);
	if (!result && *reading->certificate.user &&
		(reading->certificate.authority || !reading->certificate.client))
		result = fail(reading, "the certificate of user '%s' is not one of a TLS client",
			reading->certificate.user);
	if (!result && !*reading->certificate.user &&
		(reading->has_role || reading->certificate.project_count))
		result = fail(reading, "the certificate has a role or a project, but no user");
	if (!result)
		read_common_name(reading, x509);
	return result;
}

int ckt_certificate_read(const void *der, size_t size_bytes,
	struct ckt_certificate *ret_certificate, char *ret_message, size_t message_size)
{
	struct reading reading = {.message = ret_message, .message_size = message_size};
	const uint8_t *p = der;
	X509 *x509 = size_bytes && size_bytes <= CKT_CERTIFICATE_MAX
		? d2i_X509(NULL, &p, (long)size_bytes)
		: NULL;
	int result = x509 && p == (const uint8_t *)der + size_bytes
		? read_x509(&reading, x509)
		: fail(&reading, "this is no X.509 certificate of at most %d bytes",
			  CKT_CERTIFICATE_MAX);
	X509_free(x509);
	if (!result)
		*ret_certificate = reading.certificate;
	return result;
}

/* A BIO over the whole file, which is not a device and not without end.  NULL: said. */
static BIO *open_pem(const char *path, int *ret_error, char *ret_message, size_t message_size)
{
	struct stat st;
	BIO *bio = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int error = fd < 0 || fstat(fd, &st) ? errno
		: !S_ISREG(st.st_mode)       ? EINVAL
		: st.st_size > FILE_MAX      ? EFBIG
					     : 0;
	FILE *file = error ? NULL : fdopen(fd, "r");
	if (file)
		bio = BIO_new_fp(file, BIO_CLOSE);
	if (!bio) {
		*ret_error = error ? error : ENOMEM;
		snprintf(ret_message, message_size, "%s: %s", path,
			error == EINVAL ? "it is not a regular file" : strerror(*ret_error));
		if (file)
			fclose(file);
		else if (fd >= 0)
			close(fd);
	}
	return bio;
}

int ckt_certificate_file_read(const char *path, struct ckt_certificate *ret_certificate,
	char *ret_message, size_t message_size)
{
	char problem[256] = "it holds no certificate in PEM";
	uint8_t *der = NULL;
	int error = 0, result = -EINVAL;
	BIO *bio = open_pem(path, &error, ret_message, message_size);
	if (!bio)
		return -error;
	X509 *x509 = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	int size = x509 ? i2d_X509(x509, &der) : -1;
	if (size > 0)
		result = ckt_certificate_read(
			der, (size_t)size, ret_certificate, problem, sizeof problem);
	if (result)
		snprintf(ret_message, message_size, "%s: %s", path, problem);
	OPENSSL_free(der);
	X509_free(x509);
	BIO_free(bio);
	ERR_clear_error();
	return result;
}

int ckt_certificate_list_next(
	const char *path, time_t *ret_next, char *ret_message, size_t message_size)
{
	int error = 0;
	BIO *bio = open_pem(path, &error, ret_message, message_size);
	if (!bio)
		return -error;
	X509_CRL *list = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL);
	int result = list ? time_of(X509_CRL_get0_nextUpdate(list), ret_next) : -EINVAL;
	if (result)
		snprintf(ret_message, message_size,
			"%s: it holds no revocation list in PEM with a next update", path);
	X509_CRL_free(list);
	BIO_free(bio);
	ERR_clear_error();
	return result;
}

bool ckt_certificate_is_valid(const struct ckt_certificate *certificate, time_t now)
{
	return certificate->not_before <= now && now <= certificate->not_after;
}

void ckt_certificate_serial_text(const struct ckt_certificate *certificate,
	char ret_text[2 * CKT_CERTIFICATE_SERIAL_MAX + 1])
{
	*ret_text = 0;
	for (size_t i = 0; i < certificate->serial_size; i++)
		snprintf(ret_text + 2 * i, 3, "%02x", certificate->serial[i]);
}
