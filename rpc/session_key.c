/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of sessions, by OpenSSL's libcrypto; see session_key.h. */
#include "rpc/session_key.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

static const char secret_mark[] = {'k', 'e', 'y'};

/*
 * This library may be a guest in a program that uses its own OpenSSL: so it reads no configuration
 * and leaves nothing behind for the program's end.
 */
static bool crypto_begin(void)
{
	return OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL) == 1;
}

int ckt_session_key_make(struct ckt_session_key *ret_key)
{
	size_t size = sizeof ret_key->public_key;
	if (getrandom(ret_key->private_key, CKT_PRIVATE_KEY_SIZE, 0) != CKT_PRIVATE_KEY_SIZE ||
		!crypto_begin())
		return -EIO;
	EVP_PKEY *key = EVP_PKEY_new_raw_private_key(
		EVP_PKEY_ED25519, NULL, ret_key->private_key, CKT_PRIVATE_KEY_SIZE);
	bool made = key && EVP_PKEY_get_raw_public_key(key, ret_key->public_key, &size) == 1;
	EVP_PKEY_free(key);
	return made && size == sizeof ret_key->public_key ? 0 : -ENOMEM;
}

int ckt_session_key_new(struct ckt_session_key **ret_key)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct ckt_session_key *key =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (key == MAP_FAILED)
		return -errno;
	int result = madvise(key, size, MADV_DONTDUMP) ? -errno : ckt_session_key_make(key);
	if (result)
		munmap(key, size);
	else
		*ret_key = key;
	return result;
}

/* What is signed; the label keeps the signature from meaning anything else. */
struct signed_message {
	char label[16];
	uint8_t nonce[CKT_NONCE_SIZE];
	uint8_t args_hash[CKT_AUTH_HASH_SIZE];
};

static void make_message(const struct ckt_challenge *challenge, struct signed_message *ret)
{
	*ret = (struct signed_message){.label = "cricket hello"};
	memcpy(ret->nonce, challenge->nonce, sizeof ret->nonce);
	ckt_auth_hash(challenge->args, challenge->args_bytes, ret->args_hash);
}

int ckt_session_key_prove(const struct ckt_session_key *key, const struct ckt_challenge *challenge,
	struct ckt_credential *credential)
{
	struct signed_message message;
	size_t size = sizeof credential->signature;
	make_message(challenge, &message);
	EVP_PKEY *private_key = crypto_begin()
		? EVP_PKEY_new_raw_private_key(
			  EVP_PKEY_ED25519, NULL, key->private_key, CKT_PRIVATE_KEY_SIZE)
		: NULL;
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool is_signed = private_key && context &&
		EVP_DigestSignInit(context, NULL, NULL, NULL, private_key) == 1 &&
		EVP_DigestSign(context, credential->signature, &size, (const uint8_t *)&message,
			sizeof message) == 1;
	EVP_MD_CTX_free(context);
	EVP_PKEY_free(private_key);
	credential->has_key = is_signed;
	memcpy(credential->public_key, key->public_key, CKT_PUBLIC_KEY_SIZE);
	return is_signed ? 0 : -ENOMEM;
}

bool ckt_session_key_check(
	const struct ckt_challenge *challenge, const struct ckt_credential *credential)
{
	struct signed_message message;
	if (!credential->has_key || !crypto_begin())
		return false;
	make_message(challenge, &message);
	EVP_PKEY *key = EVP_PKEY_new_raw_public_key(
		EVP_PKEY_ED25519, NULL, credential->public_key, CKT_PUBLIC_KEY_SIZE);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool right = key && context && EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1 &&
		EVP_DigestVerify(context, credential->signature, sizeof credential->signature,
			(const uint8_t *)&message, sizeof message) == 1;
	EVP_MD_CTX_free(context);
	EVP_PKEY_free(key);
	return right;
}

void ckt_session_key_secret(
	const uint8_t public_key[CKT_PUBLIC_KEY_SIZE], uint8_t ret_secret[CKT_SECRET_SIZE])
{
	uint8_t hash[CKT_AUTH_HASH_SIZE];
	ckt_auth_hash(public_key, CKT_PUBLIC_KEY_SIZE, hash);
	memcpy(ret_secret, secret_mark, sizeof secret_mark);
	memcpy(ret_secret + sizeof secret_mark, hash, CKT_SECRET_SIZE - sizeof secret_mark);
}

bool ckt_session_secret_is_key(const uint8_t secret[CKT_SECRET_SIZE])
{
	return memcmp(secret, secret_mark, sizeof secret_mark) == 0;
}
