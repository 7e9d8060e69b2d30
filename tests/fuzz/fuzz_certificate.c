/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: the certificate that a peer shows (rpc/certificate.c).
 *
 * The first byte says how the rest becomes one: it is its DER, or names what is in it, so that the
 * reader's own lines are reached behind OpenSSL's.
 *
 *	flags  serial's size  (type  size  bytes)...	the entries of subjectAltName
 */
#include <errno.h>
#include <openssl/ec.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/certificate.h"
#include "tests/fuzz/fuzz.h"

enum { IS_DER, IS_RECIPE, HOWS };
enum {
	HAS_SERVER = 1,
	HAS_CLIENT = 2,
	IS_AUTHORITY = 4,
	NEGATIVE_SERIAL = 8,
	CRITICAL_UNKNOWN = 16,
	TWICE = 32,
	BAD_TIME = 64,
	BAD_NAMES = 128,
};
enum { HEAD = 3, LONGEST = 4096 };

static EVP_PKEY *key;

static void check(const uint8_t *der, size_t size)
{
	struct ckt_certificate is, again;
	char message[256] = "", serial[2 * CKT_CERTIFICATE_SERIAL_MAX + 1];
	memset(&is, 0, sizeof is);
	int result = ckt_certificate_read(der, size, &is, message, sizeof message);
	fuzz_insist(result == 0 || result == -EINVAL, "a result");
	fuzz_insist((result != 0) == (*message != 0), "an error has a sentence, and nothing else");
	if (result)
		return;
	fuzz_insist(is.serial_size && is.serial_size <= CKT_CERTIFICATE_SERIAL_MAX, "a serial");
	fuzz_insist(is.project_count <= CKT_TOKEN_PROJECTS_MAX && is.role < CKT_ROLES, "a bound");
	fuzz_insist(!*is.user || ckt_token_name_is_good(is.user), "a user's name");
	fuzz_insist(!*is.user || (is.client && !is.authority), "a user who is no client");
	fuzz_insist(
		*is.user || (is.role == CKT_ROLE_USER && !is.project_count), "rights of nobody");
	for (unsigned i = 0; i < is.project_count; i++)
		fuzz_insist(ckt_token_name_is_good(is.projects[i]), "a project");
	ckt_certificate_serial_text(&is, serial);
	fuzz_insist(strlen(serial) == 2 * is.serial_size, "a serial's text");
	fuzz_insist(!ckt_certificate_is_valid(&is, is.not_after + 1), "valid behind its end");
	/* A byte more is another message. */
	uint8_t *longer = malloc(size + 1);
	fuzz_insist(longer != NULL, "no memory");
	memcpy(longer, der, size);
	longer[size] = 0;
	fuzz_insist(ckt_certificate_read(longer, size + 1, &again, message, sizeof message) != 0,
		"a byte too many");
	free(longer);
}

/* ---- Recipes */

static void add_names(X509 *x509, struct fuzz_input *input)
{
	static const int types[] = {GEN_URI, GEN_DNS, GEN_EMAIL, GEN_IPADD};
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	while (input->p < input->end) {
		size_t size;
		int type = types[fuzz_u8(input) % 4];
		size_t wanted = fuzz_u8(input);
		const uint8_t *bytes = fuzz_bytes(input, wanted, &size);
		GENERAL_NAME *name = GENERAL_NAME_new();
		ASN1_STRING *value = ASN1_STRING_type_new(
			type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
		ASN1_STRING_set(value, bytes, (int)size);
		GENERAL_NAME_set0_value(name, type, value);
		sk_GENERAL_NAME_push(names, name);
	}
	if (sk_GENERAL_NAME_num(names))
		X509_add1_ext_i2d(x509, NID_subject_alt_name, names, 0, X509V3_ADD_APPEND);
	GENERAL_NAMES_free(names);
}

static void add_raw(X509 *x509, int nid, int critical, const char *bytes)
{
	ASN1_OCTET_STRING *value = ASN1_OCTET_STRING_new();
	ASN1_OCTET_STRING_set(value, (const uint8_t *)bytes, (int)strlen(bytes));
	X509_EXTENSION *extension = X509_EXTENSION_create_by_NID(NULL, nid, critical, value);
	X509_add_ext(x509, extension, -1);
	X509_EXTENSION_free(extension);
	ASN1_OCTET_STRING_free(value);
}

static void add_text(X509 *x509, int nid, const char *text)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, text);
	X509_add_ext(x509, extension, -1);
	X509_EXTENSION_free(extension);
}

static void set_serial(X509 *x509, uint8_t flags, uint8_t size)
{
	uint8_t bytes[32];
	memset(bytes, 0x5a, sizeof bytes);
	ASN1_INTEGER *serial = X509_get_serialNumber(x509);
	ASN1_STRING_set(serial, bytes, size % sizeof bytes);
	serial->type = flags & NEGATIVE_SERIAL ? V_ASN1_NEG_INTEGER : V_ASN1_INTEGER;
}

static void add_usage(X509 *x509, uint8_t flags)
{
	if (flags & (HAS_SERVER | HAS_CLIENT))
		add_text(x509, NID_ext_key_usage,
			!(flags & HAS_CLIENT)        ? "serverAuth"
				: flags & HAS_SERVER ? "serverAuth,clientAuth"
						     : "clientAuth");
	if (flags & IS_AUTHORITY)
		add_text(x509, NID_basic_constraints, "critical,CA:TRUE");
	if (flags & CRITICAL_UNKNOWN)
		add_raw(x509, NID_netscape_comment, 1, "\x16\x01x");
	if (flags & BAD_NAMES)
		add_raw(x509, NID_subject_alt_name, 0, "nonsense");
}

static void check_recipe(struct fuzz_input *input)
{
	uint8_t flags = fuzz_u8(input), serial = fuzz_u8(input);
	struct fuzz_input same = *input;
	uint8_t *der = NULL;
	X509 *x509 = X509_new();
	X509_set_version(x509, X509_VERSION_3);
	set_serial(x509, flags, serial);
	ASN1_TIME_set(X509_getm_notBefore(x509), 1700000000);
	ASN1_TIME_set(X509_getm_notAfter(x509), 1900000000);
	if (flags & BAD_TIME)
		ASN1_STRING_set(X509_getm_notAfter(x509), "99", 2);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
		(const uint8_t *)"fuzz", -1, -1, 0);
	X509_set_pubkey(x509, key);
	add_usage(x509, flags);
	add_names(x509, input);
	if (flags & TWICE)
		add_names(x509, &same);
	X509_sign(x509, key, EVP_sha256());
	int size = i2d_X509(x509, &der);
	if (size > 0)
		check(der, (size_t)size);
	OPENSSL_free(der);
	X509_free(x509);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size || size > LONGEST)
		return 0;
	struct fuzz_input input = {data + 1, data + size};
	if (data[0] % HOWS == IS_RECIPE)
		check_recipe(&input);
	else
		check(data + 1, size - 1);
	return 0;
}

/* ---- Seeds and the grammar of recipes */

static const char *const words[] = {"cricket:user=alice", "cricket:user=bob",
	"cricket:user=", "cricket:user=Alice", "cricket:role=user", "cricket:role=operator",
	"cricket:role=administrator", "cricket:role=root", "cricket:project=vision",
	"cricket:project=speech", "cricket:project=", "cricket:", "CRICKET:user=alice",
	"cricket:limit=1", "https://example.org/", "node.example", "",
	"cricket:user=a2345678901234567890123456789012",
	"cricket:user=a23456789012345678901234567890123",
	"cricket:project=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
enum { WORDS = sizeof words / sizeof *words };

static size_t put_word(uint8_t *to, uint8_t type, const char *word)
{
	size_t length = strlen(word);
	to[0] = type;
	to[1] = (uint8_t)length;
	memcpy(to + 2, word, length);
	return length + 2;
}

/* Mostly an entry more, behind those that are there. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	const char *word = words[fuzz_random(&seed) % WORDS];
	if (size < HEAD || data[0] % HOWS != IS_RECIPE || fuzz_random(&seed) % 3 == 0 ||
		size + strlen(word) + 2 > max_size)
		return LLVMFuzzerMutate(data, size, max_size);
	return size + put_word(data + size, 0, word);
}

static void write_recipe(const char *to, const char *name, uint8_t flags, uint8_t serial,
	const unsigned *entries, unsigned count)
{
	uint8_t seed[LONGEST] = {IS_RECIPE, flags, serial};
	size_t size = HEAD;
	for (unsigned i = 0; i < count; i++)
		size += put_word(seed + size, 0, words[entries[i]]);
	fuzz_write_seed(to, name, seed, size);
}

static void write_der(const char *to)
{
	uint8_t seed[LONGEST] = {IS_DER}, *p = seed + 1;
	X509 *x509 = X509_new();
	X509_set_version(x509, X509_VERSION_3);
	set_serial(x509, 0, 8);
	ASN1_TIME_set(X509_getm_notBefore(x509), 1700000000);
	ASN1_TIME_set(X509_getm_notAfter(x509), 1900000000);
	X509_set_pubkey(x509, key);
	add_text(x509, NID_ext_key_usage, "clientAuth");
	add_text(x509, NID_subject_alt_name, "URI:cricket:user=alice");
	X509_sign(x509, key, EVP_sha256());
	int size = i2d_X509(x509, &p);
	fuzz_write_seed(to, "der", seed, (size_t)size + 1);
	fuzz_write_seed(to, "der-cut", seed, (size_t)size);
	X509_free(x509);
}

static void write_seeds(const char *to)
{
	static const unsigned usual[] = {0, 5, 8, 9}, many[] = {0, 8, 8, 8, 8, 8, 8, 8, 8, 8},
			      roles[] = {0, 4, 5}, nobody[] = {6}, without[] = {8};
	char name[32];
	for (unsigned bit = 0; bit < 8; bit++) {
		snprintf(name, sizeof name, "flag-%u", bit);
		write_recipe(to, name, (uint8_t)(HAS_CLIENT | 1u << bit), 16, usual, 4);
	}
	for (unsigned i = 0; i < WORDS; i++) {
		const unsigned one[] = {i}, two[] = {0, i};
		snprintf(name, sizeof name, "one-%u", i);
		write_recipe(to, name, HAS_CLIENT, 16, one, 1);
		snprintf(name, sizeof name, "two-%u", i);
		write_recipe(to, name, HAS_CLIENT, 16, two, 2);
	}
	write_recipe(to, "many", HAS_CLIENT, 16, many, 10);
	write_recipe(to, "roles", HAS_CLIENT, 16, roles, 3);
	write_recipe(to, "nobody", HAS_CLIENT, 16, nobody, 1);
	write_recipe(to, "without", HAS_CLIENT, 16, without, 1);
	write_recipe(to, "server", HAS_SERVER, 20, NULL, 0);
	write_recipe(to, "no-client", HAS_SERVER, 20, usual, 4);
	write_recipe(to, "long-serial", HAS_CLIENT, 21, usual, 4);
	write_recipe(to, "no-serial", HAS_CLIENT, 0, usual, 4);
	write_der(to);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *to = getenv("CKT_FUZZ_SEEDS");
	(void)argc, (void)argv;
	key = EVP_EC_gen("P-256");
	fuzz_insist(key != NULL, "no key");
	if (!to)
		return 0;
	write_seeds(to);
	exit(0);
}
