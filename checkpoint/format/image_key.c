/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of images; see image_key.h. */
#include "checkpoint/format/image_key.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_io.h"

/* Each use of a key has a purpose of its own, so that no text of one is good for another. */
#define ID_PURPOSE "cricket image key"
#define MAC_PURPOSE "cricket manifest"
#define STATE_PURPOSE "cricket chain state"

enum { HEX_DIGITS = 2 * CKT_IMAGE_KEY_BYTES, FILE_MAX = HEX_DIGITS + 2 };

/* ---- Keys */

void ckt_image_key_init(struct ckt_image_key *key, const uint8_t bytes[CKT_IMAGE_KEY_BYTES])
{
	struct sha256_ctx sha;
	memcpy(key->bytes, bytes, sizeof key->bytes);
	sha256_init(&sha);
	sha256_update(&sha, sizeof ID_PURPOSE, (const uint8_t *)ID_PURPOSE);
	sha256_update(&sha, sizeof key->bytes, key->bytes);
	sha256_digest(&sha, sizeof key->id, key->id);
}

static int nibble(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int parse(const uint8_t *data, size_t size, uint8_t ret_bytes[CKT_IMAGE_KEY_BYTES])
{
	if (size == CKT_IMAGE_KEY_BYTES) {
		memcpy(ret_bytes, data, size);
		return 0;
	}
	if (size != HEX_DIGITS && (size != HEX_DIGITS + 1 || data[HEX_DIGITS] != '\n'))
		return -EBADMSG;
	for (size_t i = 0; i < CKT_IMAGE_KEY_BYTES; i++) {
		int high = nibble((char)data[2 * i]), low = nibble((char)data[2 * i + 1]);
		if (high < 0 || low < 0)
			return -EBADMSG;
		ret_bytes[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

static int read_key(int fd, struct ckt_image_key *ret_key)
{
	uint8_t data[FILE_MAX], bytes[CKT_IMAGE_KEY_BYTES];
	struct stat st;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) || st.st_mode & 0077)
		return -EPERM;
	ssize_t n = ckt_read_at(fd, data, sizeof data, 0);
	int result = n < 0 ? (int)n : parse(data, (size_t)n, bytes);
	if (!result)
		ckt_image_key_init(ret_key, bytes);
	explicit_bzero(data, sizeof data);
	explicit_bzero(bytes, sizeof bytes);
	return result;
}

int ckt_image_key_read(
	const char *path, struct ckt_image_key *ret_key, char *ret_message, size_t message_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int result = fd < 0 ? -errno : read_key(fd, ret_key);
	if (fd >= 0)
		close(fd);
	if (!result)
		return 0;
	snprintf(ret_message, message_size, "cannot use image key %.300s: %s", path,
		result == -EPERM ? "others may read it: give it to this user and set mode 0600"
			: result == -EBADMSG ? "it holds no key of 32 bytes: make one with "
					       "'cricketctl image-key make FILE'"
					     : strerror(-result));
	return result;
}

int ckt_image_keys_add(
	struct ckt_image_keys *keys, const char *path, char *ret_message, size_t message_size)
{
	if (keys->count == CKT_IMAGE_KEYS_MAX) {
		snprintf(ret_message, message_size,
			"cannot use image key %.300s: there are %d before it: leave out old ones",
			path, CKT_IMAGE_KEYS_MAX);
		return -E2BIG;
	}
	int result = ckt_image_key_read(path, &keys->keys[keys->count], ret_message, message_size);
	keys->count += !result;
	return result;
}

int ckt_image_key_make(const char *path, struct ckt_image_key *ret_key)
{
	uint8_t bytes[CKT_IMAGE_KEY_BYTES];
	char text[HEX_DIGITS + 2];
	if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		return -EIO;
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	text[HEX_DIGITS] = '\n';
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int result = fd < 0 ? -errno : ckt_write_synced(fd, text, HEX_DIGITS + 1);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && result)
		unlink(path);
	ckt_image_key_init(ret_key, bytes);
	explicit_bzero(bytes, sizeof bytes);
	explicit_bzero(text, sizeof text);
	return result;
}

void ckt_image_key_text(const uint8_t id[CKT_IMAGE_KEY_ID], char ret_text[2 * CKT_IMAGE_KEY_ID + 1])
{
	for (size_t i = 0; i < CKT_IMAGE_KEY_ID; i++)
		snprintf(ret_text + 2 * i, 3, "%02x", id[i]);
}

void ckt_image_key_state_mac(const struct ckt_image_key *key, const char *text, size_t size,
	uint8_t ret_mac[CKT_IMAGE_HASH])
{
	struct hmac_sha256_ctx hmac;
	hmac_sha256_set_key(&hmac, sizeof key->bytes, key->bytes);
	hmac_sha256_update(&hmac, sizeof STATE_PURPOSE, (const uint8_t *)STATE_PURPOSE);
	hmac_sha256_update(&hmac, size, (const uint8_t *)text);
	hmac_sha256_digest(&hmac, CKT_IMAGE_HASH, ret_mac);
	explicit_bzero(&hmac, sizeof hmac);
}

/* ---- MACs */

int ckt_image_file_hash(int fd, uint8_t ret_hash[CKT_IMAGE_HASH])
{
	uint8_t data[64 << 10];
	struct sha256_ctx sha;
	off_t at = 0;
	sha256_init(&sha);
	for (ssize_t n; (n = pread(fd, data, sizeof data, at)) != 0;) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		sha256_update(&sha, (size_t)n, data);
		at += n;
	}
	sha256_digest(&sha, CKT_IMAGE_HASH, ret_hash);
	return 0;
}

enum { MAC_MAX = 4 + CKT_IMAGE_KEY_ID + 4 + 12 + 4 + 8 + 3 * CKT_IMAGE_HASH };
_Static_assert(MAC_MAX *CKT_IMAGE_MACS <= CKT_IMAGE_MAC_FILE_MAX, "a file holds all of them");

/* Encodes it; the size, or -EINVAL. */
static int encode(const ckt_image_mac *mac, uint8_t ret_data[MAC_MAX])
{
	XDR xdr;
	xdrmem_create(&xdr, (char *)ret_data, MAC_MAX, XDR_ENCODE);
	return xdr_ckt_image_mac(&xdr, (ckt_image_mac *)mac) ? (int)xdr_getpos(&xdr) : -EINVAL;
}

static int compute(
	const struct ckt_image_key *key, const ckt_image_mac *mac, uint8_t ret_sum[CKT_IMAGE_HASH])
{
	uint8_t data[MAC_MAX];
	struct hmac_sha256_ctx hmac;
	int size = encode(mac, data);
	if (size < 0)
		return size;
	hmac_sha256_set_key(&hmac, sizeof key->bytes, key->bytes);
	hmac_sha256_update(&hmac, sizeof MAC_PURPOSE, (const uint8_t *)MAC_PURPOSE);
	hmac_sha256_update(&hmac, (size_t)size - CKT_IMAGE_HASH, data);
	hmac_sha256_digest(&hmac, CKT_IMAGE_HASH, ret_sum);
	explicit_bzero(&hmac, sizeof hmac);
	return 0;
}

int ckt_image_mac_make(const struct ckt_image_key *key, ckt_image_mac *mac)
{
	mac->magic = CKT_IMAGE_MAC_MAGIC;
	memcpy(mac->key, key->id, sizeof mac->key);
	return compute(key, mac, (uint8_t *)mac->mac);
}

int ckt_image_macs_decode(const void *data, size_t size, struct ckt_image_macs *ret_macs)
{
	XDR xdr;
	*ret_macs = (struct ckt_image_macs){0};
	if (!size || size > CKT_IMAGE_MAC_FILE_MAX)
		return -EBADMSG;
	xdrmem_create(&xdr, (char *)data, (u_int)size, XDR_DECODE);
	while (xdr_getpos(&xdr) < size) {
		unsigned i = ret_macs->count;
		ckt_image_mac mac = {0};
		bool good = i < CKT_IMAGE_MACS && xdr_ckt_image_mac(&xdr, &mac) &&
			mac.magic == CKT_IMAGE_MAC_MAGIC;
		if (good) {
			snprintf(ret_macs->sessions[i], sizeof ret_macs->sessions[i], "%s",
				mac.session);
			ret_macs->macs[i] = mac;
			ret_macs->macs[i].session = ret_macs->sessions[i];
			ret_macs->count++;
		}
		xdr_free((xdrproc_t)xdr_ckt_image_mac, (char *)&mac);
		if (!good)
			return -EBADMSG;
	}
	/* One text has one form: no padding and no bytes behind a string's end. */
	uint8_t again[CKT_IMAGE_MAC_FILE_MAX];
	return ckt_image_macs_encode(ret_macs, again) == (int)size && !memcmp(again, data, size)
		? 0
		: -EBADMSG;
}

int ckt_image_macs_encode(
	const struct ckt_image_macs *macs, uint8_t ret_data[CKT_IMAGE_MAC_FILE_MAX])
{
	int used = 0;
	for (unsigned i = 0; i < macs->count; i++) {
		int size = encode(&macs->macs[i], ret_data + used);
		if (size < 0)
			return size;
		used += size;
	}
	return used;
}

int ckt_image_macs_add(struct ckt_image_macs *macs, const ckt_image_mac *mac)
{
	unsigned i = 0;
	while (i < macs->count && memcmp(macs->macs[i].key, mac->key, sizeof mac->key) != 0)
		i++;
	if (i == CKT_IMAGE_MACS)
		return -E2BIG;
	snprintf(macs->sessions[i], sizeof macs->sessions[i], "%s", mac->session);
	macs->macs[i] = *mac;
	macs->macs[i].session = macs->sessions[i];
	macs->count += i == macs->count;
	return 0;
}

int ckt_image_macs_read(int directory, uint8_t ret_data[CKT_IMAGE_MAC_FILE_MAX], size_t *ret_size,
	struct ckt_image_macs *ret_macs)
{
	uint8_t data[CKT_IMAGE_MAC_FILE_MAX + 1];
	struct stat st;
	int fd = openat(directory, CKT_IMAGE_MAC_FILE,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = fstat(fd, &st)     ? -errno
		: !S_ISREG(st.st_mode) ? -EBADMSG
				       : ckt_read_at(fd, data, sizeof data, 0);
	close(fd);
	if (n < 0)
		return (int)n;
	if (n > CKT_IMAGE_MAC_FILE_MAX)
		return -EBADMSG;
	memcpy(ret_data, data, (size_t)n);
	*ret_size = (size_t)n;
	return ret_macs ? ckt_image_macs_decode(data, (size_t)n, ret_macs) : 0;
}

int ckt_image_macs_write(int directory, const struct ckt_image_macs *macs)
{
	static const char temporary[] = CKT_IMAGE_MAC_FILE "-new";
	uint8_t data[CKT_IMAGE_MAC_FILE_MAX];
	int size = ckt_image_macs_encode(macs, data);
	if (size < 0)
		return size;
	if (unlinkat(directory, temporary, 0) && errno != ENOENT)
		return -errno;
	int fd = openat(
		directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int result = fd < 0 ? -errno : ckt_write_synced(fd, data, (size_t)size);
	if (fd >= 0)
		close(fd);
	if (!result && renameat(directory, temporary, directory, CKT_IMAGE_MAC_FILE))
		result = -errno;
	if (result && fd >= 0)
		unlinkat(directory, temporary, 0);
	return result;
}

static int refuse_unknown(const struct ckt_image_macs *macs, const struct ckt_image_keys *keys,
	char *ret_message, size_t message_size)
{
	char has[2 * CKT_IMAGE_KEY_ID + 1] = "", wants[2 * CKT_IMAGE_KEY_ID + 1] = "";
	if (macs->count)
		ckt_image_key_text((const uint8_t *)macs->macs[0].key, has);
	if (keys->count)
		ckt_image_key_text(keys->keys[0].id, wants);
	snprintf(ret_message, message_size,
		macs->count ? "no key given vouches for the image: it has a MAC by key %s, not by "
			      "key %s: give that key with --image-key"
			    : "no key vouches for the image: it has no %s%s: if you trust it, run "
			      "'cricketctl image-key sign DIR --image-key FILE'",
		macs->count ? has : CKT_IMAGE_MAC_FILE, macs->count ? wants : "");
	return -ENOKEY;
}

int ckt_image_macs_check(const struct ckt_image_macs *macs, const struct ckt_image_keys *keys,
	const uint8_t *manifest, const ckt_image_mac **ret_mac, char *ret_message,
	size_t message_size)
{
	for (unsigned i = 0; i < macs->count; i++)
		for (unsigned k = 0; k < keys->count; k++) {
			const ckt_image_mac *mac = &macs->macs[i];
			uint8_t sum[CKT_IMAGE_HASH];
			if (memcmp(mac->key, keys->keys[k].id, sizeof mac->key) != 0)
				continue;
			if (compute(&keys->keys[k], mac, sum) ||
				!memeql_sec(sum, mac->mac, sizeof sum)) {
				snprintf(ret_message, message_size,
					CKT_IMAGE_MAC_FILE
					" was changed, or made with another key: restore "
					"the image from another copy");
				return -EBADMSG;
			}
			if (manifest &&
				memcmp(manifest, mac->manifest, sizeof mac->manifest) != 0) {
				snprintf(ret_message, message_size,
					"the manifest was changed since its MAC was made: restore "
					"the image from another copy");
				return -EBADMSG;
			}
			*ret_mac = mac;
			return 0;
		}
	return refuse_unknown(macs, keys, ret_message, message_size);
}
