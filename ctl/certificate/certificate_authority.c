/* SPDX-License-Identifier: Apache-2.0 */
/* Making and opening a certificate authority; see certificate_authority.h. */
#include "ctl/certificate/certificate_authority.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault_point.h"
#include "ctl/certificate/certificate_names.h"

/* ---- What it may sign */

static bool add_subtree(STACK_OF(GENERAL_SUBTREE) * *list, int type, const void *data, size_t size)
{
	if (!*list)
		*list = sk_GENERAL_SUBTREE_new_null();
	GENERAL_SUBTREE *subtree = *list ? GENERAL_SUBTREE_new() : NULL;
	if (!subtree)
		return false;
	subtree->base->type = type;
	ASN1_STRING *value =
		ASN1_STRING_type_new(type == GEN_DNS ? V_ASN1_IA5STRING : V_ASN1_OCTET_STRING);
	subtree->base->d.ia5 = value; /* also of GEN_IPADD: one union of pointers to strings */
	if (value && ASN1_STRING_set(value, data, (int)size) == 1 &&
		sk_GENERAL_SUBTREE_push(*list, subtree))
		return true;
	GENERAL_SUBTREE_free(subtree);
	return false;
}

/* All subjects are below "O = Cricket": so the authority is of no use for other clients' names. */
static bool add_subject(NAME_CONSTRAINTS *constraints)
{
	GENERAL_SUBTREE *subtree = GENERAL_SUBTREE_new();
	X509_NAME *name = X509_NAME_new();
	bool good = subtree && name &&
		X509_NAME_add_entry_by_txt(
			name, "O", MBSTRING_UTF8, (const unsigned char *)"Cricket", -1, -1, 0) == 1;
	if (good) {
		subtree->base->type = GEN_DIRNAME;
		subtree->base->d.directoryName = name;
		name = NULL;
		constraints->permittedSubtrees = sk_GENERAL_SUBTREE_new_null();
		good = constraints->permittedSubtrees &&
			sk_GENERAL_SUBTREE_push(constraints->permittedSubtrees, subtree);
	}
	X509_NAME_free(name);
	if (!good)
		GENERAL_SUBTREE_free(subtree);
	return good;
}

/* What is given is permitted; the kinds of names that are not given at all are excluded. */
static int add_permitted(
	NAME_CONSTRAINTS *constraints, const char *permit, struct ckt_ctl_problem *problem)
{
	static const uint8_t everything[32];
	bool good = true, has_name = false, has_address = false;
	char item[CKT_CERTIFICATE_NAME_MAX + 1];
	for (const char *p = permit; *p && good;) {
		uint8_t network[32];
		size_t length = strcspn(p, ","), size = 0;
		snprintf(item, sizeof item, "%.*s",
			(int)(length < sizeof item ? length : sizeof item - 1), p);
		if (ckt_ctl_network_parse(item, network, &size)) {
			has_address = true;
			good = add_subtree(
				&constraints->permittedSubtrees, GEN_IPADD, network, size);
		} else if (!ckt_ctl_host_check(item)) {
			has_name = true;
			good = add_subtree(
				&constraints->permittedSubtrees, GEN_DNS, item, strlen(item));
		} else {
			return ckt_ctl_problem_set(problem, EINVAL,
				"--permit: '%.80s' is no domain, address or network; write "
				"cluster.example,10.0.0.0/8",
				item);
		}
		p += length + (p[length] == ',');
	}
	if (good && !has_name)
		good = add_subtree(&constraints->excludedSubtrees, GEN_DNS, "", 0);
	if (good && !has_address)
		good = add_subtree(&constraints->excludedSubtrees, GEN_IPADD, everything, 8) &&
			add_subtree(&constraints->excludedSubtrees, GEN_IPADD, everything, 32);
	return good ? 0 : ckt_ctl_problem_set(problem, ENOMEM, "no memory");
}

static int add_constraints(X509 *x509, const char *permit, struct ckt_ctl_problem *problem)
{
	NAME_CONSTRAINTS *constraints = NAME_CONSTRAINTS_new();
	int result = constraints && add_subject(constraints)
		? 0
		: ckt_ctl_problem_set(problem, ENOMEM, "no memory");
	if (!result && permit)
		result = add_permitted(constraints, permit, problem);
	if (!result && !ckt_ctl_x509_add(x509, NID_name_constraints, true, constraints))
		result = ckt_ctl_problem_set(problem, ENOMEM, "no memory");
	NAME_CONSTRAINTS_free(constraints);
	return result;
}

/* ---- Making */

static int make_certificate(EVP_PKEY *key, const char *permit, unsigned days, X509 **ret_x509,
	struct ckt_ctl_problem *problem)
{
	uint8_t random[4];
	char name[32];
	X509 *x509 = X509_new();
	bool good = x509 && RAND_bytes(random, sizeof random) == 1;
	/* Two authorities of one name would be taken for one. */
	snprintf(name, sizeof name, "Cricket CA %02x%02x%02x%02x", random[0], random[1], random[2],
		random[3]);
	good = good && ckt_ctl_x509_begin(x509, days) &&
		ckt_ctl_x509_name(X509_get_subject_name(x509), name) &&
		X509_set_issuer_name(x509, X509_get_subject_name(x509)) == 1 &&
		X509_set_pubkey(x509, key) == 1 &&
		ckt_ctl_x509_add_text(
			x509, x509, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
		ckt_ctl_x509_add_text(x509, x509, NID_key_usage, "critical,keyCertSign,cRLSign") &&
		ckt_ctl_x509_add_text(x509, x509, NID_ext_key_usage, "serverAuth,clientAuth") &&
		ckt_ctl_x509_add_text(x509, x509, NID_subject_key_identifier, "hash");
	int result = good ? add_constraints(x509, permit, problem)
			  : ckt_ctl_problem_set(problem, ENOMEM, "cannot make a certificate");
	if (!result && !X509_sign(x509, key, EVP_sha256()))
		result = ckt_ctl_problem_set(problem, EIO, "cannot sign the certificate");
	if (result)
		X509_free(x509);
	else
		*ret_x509 = x509;
	return result;
}

static int put_key(struct ckt_ctl_staged *staged, EVP_PKEY *key, struct ckt_ctl_problem *problem)
{
	size_t size = 0;
	BIO *bio = BIO_new(BIO_s_secmem());
	bool written = bio && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1;
	char *pem = ckt_ctl_bio_take(bio, &size);
	int result = pem && written
		? ckt_ctl_staged_put(staged, "ca-key.pem", 0600, pem, size, problem)
		: ckt_ctl_problem_set(problem, ENOMEM, "no memory");
	if (pem)
		explicit_bzero(pem, size);
	free(pem);
	return result;
}

static int put_certificate(
	struct ckt_ctl_staged *staged, X509 *x509, struct ckt_ctl_problem *problem)
{
	size_t size = 0;
	BIO *bio = BIO_new(BIO_s_mem());
	bool written = bio && PEM_write_bio_X509(bio, x509) == 1;
	char *pem = ckt_ctl_bio_take(bio, &size);
	int result = pem && written ? ckt_ctl_staged_put(staged, "ca.pem", 0644, pem, size, problem)
				    : ckt_ctl_problem_set(problem, ENOMEM, "no memory");
	free(pem);
	return result;
}

static int put_list(
	struct ckt_ctl_staged *staged, X509 *x509, EVP_PKEY *key, struct ckt_ctl_problem *problem)
{
	struct ckt_ctl_authority made = {.certificate = x509, .key = key};
	char *pem = NULL;
	size_t size = 0;
	int result = ckt_ctl_authority_list(&made, CKT_CTL_LIST_DAYS, &pem, &size, problem);
	if (!result)
		result = ckt_ctl_staged_put(staged, "crl.pem", 0644, pem, size, problem);
	free(pem);
	return result;
}

static int put_ledger(struct ckt_ctl_staged *staged, struct ckt_ctl_problem *problem)
{
	return ckt_ctl_staged_put(staged, "ledger.jsonl", 0600, "", 0, problem);
}

int ckt_ctl_authority_make(
	const char *path, const char *permit, unsigned days, struct ckt_ctl_problem *problem)
{
	struct ckt_ctl_staged staged;
	X509 *x509 = NULL;
	EVP_PKEY *key = NULL;
	int result = ckt_ctl_staged_begin(path, &staged, problem);
	if (!result && !staged.fresh)
		result = ckt_ctl_problem_set(problem, EEXIST,
			"%s: there is something already; choose another directory with --dir, or "
			"remove it if nobody trusts its ca.pem",
			path);
	if (!result && !(key = ckt_ctl_key_make()))
		result = ckt_ctl_problem_set(problem, EIO, "cannot make a key");
	if (!result)
		result = make_certificate(key, permit, days, &x509, problem);
	if (!result)
		result = put_key(&staged, key, problem);
	if (!result)
		result = put_certificate(&staged, x509, problem);
	if (!result)
		result = put_list(&staged, x509, key, problem);
	if (!result)
		result = put_ledger(&staged, problem);
	if (!result && ckt_fault_reached(CKT_FAULT_CTL_CERTIFICATE_WRITTEN))
		result = ckt_ctl_problem_set(problem, EIO, "%s: stopped by CRICKET_FAULT", path);
	if (!result)
		result = ckt_ctl_staged_keep(&staged, problem);
	ckt_ctl_staged_end(&staged);
	X509_free(x509);
	EVP_PKEY_free(key);
	ERR_clear_error();
	return result;
}

/* ---- Opening */

static BIO *open_file(const struct ckt_ctl_authority *authority, const char *name, bool secret,
	struct ckt_ctl_problem *problem)
{
	struct stat st;
	int fd = openat(authority->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		ckt_ctl_problem_set(problem, EIO, "%s/%s: %s; bring it back from a copy",
			authority->path, name, fd < 0 ? strerror(errno) : "it is no regular file");
	} else if (secret && st.st_mode & 0077) {
		ckt_ctl_problem_set(problem, EPERM,
			"%s/%s: others than its owner can read it (mode %04o); run chmod 600 on "
			"it, and make a new authority if others have read it",
			authority->path, name, (unsigned)st.st_mode & 07777);
	} else {
		FILE *file = fdopen(fd, "r");
		BIO *bio = file ? BIO_new_fp(file, BIO_CLOSE) : NULL;
		if (bio)
			return bio;
		ckt_ctl_problem_set(problem, ENOMEM, "no memory");
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

/* For PEM: an encrypted key is not asked for on the terminal. */
static int no_password(char *buffer, int size, int writes, void *context)
{
	(void)buffer, (void)size, (void)writes, (void)context;
	return -1;
}

static int read_files(struct ckt_ctl_authority *authority, struct ckt_ctl_problem *problem)
{
	BIO *bio = open_file(authority, "ca.pem", false, problem);
	if (!bio)
		return -EIO;
	authority->certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	BIO_free(bio);
	bio = open_file(authority, "ca-key.pem", true, problem);
	if (!bio)
		return -EIO;
	authority->key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
	BIO_free(bio);
	if (authority->certificate && authority->key &&
		X509_check_private_key(authority->certificate, authority->key) == 1)
		return 0;
	return ckt_ctl_problem_set(problem, EINVAL,
		"%s: ca.pem and ca-key.pem are not a certificate and its key in PEM; bring them "
		"back from a copy",
		authority->path);
}

static int lock_directory(struct ckt_ctl_authority *authority, struct ckt_ctl_problem *problem)
{
	struct stat st;
	authority->fd = open(authority->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (authority->fd < 0 && errno == ENOENT)
		return ckt_ctl_problem_set(problem, ENOENT,
			"%s: there is no certificate authority; make one with cricketctl "
			"certificate init, or name its directory with --dir",
			authority->path);
	if (authority->fd < 0 || fstat(authority->fd, &st))
		return ckt_ctl_problem_set(problem, errno, "%s: %s; look at its owner and mode",
			authority->path, strerror(errno));
	if (st.st_mode & 0022)
		return ckt_ctl_problem_set(problem, EPERM,
			"%s: others than its owner may write it (mode %04o); run chmod 700 on it",
			authority->path, (unsigned)st.st_mode & 07777);
	if (flock(authority->fd, LOCK_EX))
		return ckt_ctl_problem_set(problem, errno,
			"%s: cannot lock it: %s; choose a directory on a local disk",
			authority->path, strerror(errno));
	return 0;
}

int ckt_ctl_authority_open(
	const char *path, struct ckt_ctl_authority *ret_authority, struct ckt_ctl_problem *problem)
{
	/* In place, because the ledger points to the path. */
	struct ckt_ctl_authority *authority = ret_authority;
	*authority = (struct ckt_ctl_authority){.fd = -1, .ledger.fd = -1};
	if (snprintf(authority->path, sizeof authority->path, "%s", path) >=
		(int)sizeof authority->path)
		return ckt_ctl_problem_set(
			problem, ENAMETOOLONG, "--dir: the path is too long; choose another");
	int result = lock_directory(authority, problem);
	if (!result)
		result = read_files(authority, problem);
	if (!result)
		result = ckt_ctl_ledger_open(
			authority->fd, authority->path, &authority->ledger, problem);
	if (result)
		ckt_ctl_authority_close(authority);
	ERR_clear_error();
	return result;
}

void ckt_ctl_authority_close(struct ckt_ctl_authority *authority)
{
	X509_free(authority->certificate);
	EVP_PKEY_free(authority->key);
	ckt_ctl_ledger_close(&authority->ledger);
	if (authority->fd >= 0)
		close(authority->fd);
	*authority = (struct ckt_ctl_authority){.fd = -1, .ledger.fd = -1};
}
