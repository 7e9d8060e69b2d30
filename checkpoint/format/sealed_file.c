/* SPDX-License-Identifier: Apache-2.0 */
/* Encrypted files of an image; see sealed_file.h. */
#include "checkpoint/format/sealed_file.h"

#include <errno.h>
#include <nettle/gcm.h>
#include <nettle/hkdf.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_io.h"

#define PURPOSE "cricket sealed file"

enum {
	MAGIC = 0x436b4531, /* "CkE1" */
	VERSION = 1,
	TAG = GCM_DIGEST_SIZE,
	KEY = 32,
	NAME_MAX_SIZE = 80
};

static void put_u32(uint8_t *to, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static uint32_t get_u32(const uint8_t *from)
{
	return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

bool ckt_sealed_is(int fd)
{
	uint8_t magic[4];
	return ckt_read_at(fd, magic, sizeof magic, 0) == sizeof magic && get_u32(magic) == MAGIC;
}

/* HKDF: the salt extracts, purpose and name expand. */
static int derive(const struct ckt_image_key *key, const uint8_t salt[CKT_SEALED_SALT],
	const char *name, struct gcm_aes256_ctx *ret_gcm)
{
	struct hmac_sha256_ctx hmac;
	uint8_t extracted[SHA256_DIGEST_SIZE], bytes[KEY], info[sizeof PURPOSE + NAME_MAX_SIZE];
	size_t length = strlen(name);
	if (length >= NAME_MAX_SIZE)
		return -ENAMETOOLONG;
	memcpy(info, PURPOSE, sizeof PURPOSE);
	memcpy(info + sizeof PURPOSE, name, length);
	hmac_sha256_set_key(&hmac, CKT_SEALED_SALT, salt);
	hkdf_extract(&hmac, (nettle_hash_update_func *)hmac_sha256_update,
		(nettle_hash_digest_func *)hmac_sha256_digest, sizeof extracted, sizeof key->bytes,
		key->bytes, extracted);
	hmac_sha256_set_key(&hmac, sizeof extracted, extracted);
	hkdf_expand(&hmac, (nettle_hash_update_func *)hmac_sha256_update,
		(nettle_hash_digest_func *)hmac_sha256_digest, SHA256_DIGEST_SIZE,
		sizeof PURPOSE + length, info, sizeof bytes, bytes);
	gcm_aes256_set_key(ret_gcm, bytes);
	explicit_bzero(&hmac, sizeof hmac);
	explicit_bzero(extracted, sizeof extracted);
	explicit_bzero(bytes, sizeof bytes);
	return 0;
}

static void set_nonce(struct gcm_aes256_ctx *gcm, uint64_t segment, bool last)
{
	uint8_t nonce[GCM_IV_SIZE] = {last};
	put_u32(nonce + 4, (uint32_t)(segment >> 32));
	put_u32(nonce + 8, (uint32_t)segment);
	gcm_aes256_set_iv(gcm, sizeof nonce, nonce);
}

static int write_segments(struct gcm_aes256_ctx *gcm, uint8_t *data, int from, int to)
{
	for (uint64_t segment = 0;; segment++) {
		ssize_t n = ckt_read_at(
			from, data, CKT_SEALED_SEGMENT, (off_t)(segment * CKT_SEALED_SEGMENT));
		if (n < 0)
			return (int)n;
		bool last = n < CKT_SEALED_SEGMENT;
		set_nonce(gcm, segment, last);
		gcm_aes256_encrypt(gcm, (size_t)n, data, data);
		gcm_aes256_digest(gcm, TAG, data + n);
		int result = ckt_write_all(to, data, (size_t)n + TAG);
		if (result || last)
			return result;
	}
}

int ckt_sealed_write(const struct ckt_image_key *key, const uint8_t salt[CKT_SEALED_SALT],
	const char *name, int from, int to)
{
	uint8_t header[CKT_SEALED_HEADER];
	struct gcm_aes256_ctx gcm;
	put_u32(header, MAGIC);
	put_u32(header + 4, VERSION);
	memcpy(header + 8, key->id, CKT_IMAGE_KEY_ID);
	memcpy(header + 16, salt, CKT_SEALED_SALT);
	uint8_t *data = malloc(CKT_SEALED_SEGMENT + TAG);
	int result = data ? derive(key, salt, name, &gcm) : -ENOMEM;
	if (!result)
		result = ckt_write_all(to, header, sizeof header);
	if (!result)
		result = write_segments(&gcm, data, from, to);
	if (!result && fsync(to))
		result = -errno;
	explicit_bzero(&gcm, sizeof gcm);
	free(data);
	return result;
}

static int refuse(int result, const char *name, const char *why, char *ret_message, size_t size)
{
	snprintf(ret_message, size, "%s: %s", name, why);
	return result;
}

static int read_segments(struct gcm_aes256_ctx *gcm, uint8_t *data, int from, int to)
{
	for (uint64_t segment = 0;; segment++) {
		uint8_t tag[TAG];
		off_t at = (off_t)(CKT_SEALED_HEADER + segment * (CKT_SEALED_SEGMENT + TAG));
		ssize_t n = ckt_read_at(from, data, CKT_SEALED_SEGMENT + TAG, at);
		if (n < TAG)
			return n < 0 ? (int)n : -EBADMSG;
		size_t size = (size_t)n - TAG;
		bool last = size < CKT_SEALED_SEGMENT;
		set_nonce(gcm, segment, last);
		gcm_aes256_decrypt(gcm, size, data, data);
		gcm_aes256_digest(gcm, TAG, tag);
		if (!memeql_sec(tag, data + size, TAG))
			return -EBADMSG;
		int result = ckt_write_all(to, data, size);
		if (result || last)
			return result;
	}
}

int ckt_sealed_read(const struct ckt_image_keys *keys, const char *name, int from, int to,
	uint8_t salt[CKT_SEALED_SALT], bool *salt_known, char *ret_message, size_t message_size)
{
	static const char changed[] =
		"it was changed since it was encrypted: restore the image from another copy";
	uint8_t header[CKT_SEALED_HEADER];
	struct gcm_aes256_ctx gcm;
	if (ckt_read_at(from, header, sizeof header, 0) != sizeof header ||
		get_u32(header) != MAGIC || get_u32(header + 4) != VERSION ||
		(*salt_known && memcmp(salt, header + 16, CKT_SEALED_SALT) != 0))
		return refuse(-EBADMSG, name, changed, ret_message, message_size);
	unsigned k = 0;
	while (k < keys->count && memcmp(keys->keys[k].id, header + 8, CKT_IMAGE_KEY_ID) != 0)
		k++;
	if (k == keys->count) {
		char id[2 * CKT_IMAGE_KEY_ID + 1];
		ckt_image_key_text(header + 8, id);
		snprintf(ret_message, message_size,
			"%s: it is encrypted with key %s: give that key with --image-key", name,
			id);
		return -ENOKEY;
	}
	memcpy(salt, header + 16, CKT_SEALED_SALT);
	*salt_known = true;
	uint8_t *data = malloc(CKT_SEALED_SEGMENT + TAG);
	int result = data ? derive(&keys->keys[k], salt, name, &gcm) : -ENOMEM;
	if (!result)
		result = read_segments(&gcm, data, from, to);
	explicit_bzero(&gcm, sizeof gcm);
	free(data);
	return result ? refuse(result, name, result == -EBADMSG ? changed : strerror(-result),
				ret_message, message_size)
		      : 0;
}
