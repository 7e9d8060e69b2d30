/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that vouch for images, and the file manifest-mac in which they do.
 *
 *	key file ---> key ---HMAC---> ckt_image_mac (image.x): key id | SHA-256 of manifest | session | owner | client/
 *	                                                           |
 *	                              manifest: tables, and the hash of each chunk ---> data-N, those of ancestors too
 *
 * So one MAC covers every byte that a restore uses.  Who holds the key never gives it to a worker:
 * a worker is controlled by its session's program.
 *
 * Errors: 0 or -errno, with a sentence where there is a ret_message.  Threading: none of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/format/image.h"

enum {
	CKT_IMAGE_KEY_BYTES = 32,
	CKT_IMAGE_KEYS_MAX = 16, /* one to write, and older ones */
	/* CKT_IMAGE_MACS of them, encoded */
	CKT_IMAGE_MAC_FILE_MAX = 2048,
};
#define CKT_IMAGE_MAC_FILE "manifest-mac"

struct ckt_image_key {
	uint8_t bytes[CKT_IMAGE_KEY_BYTES];
	uint8_t id[CKT_IMAGE_KEY_ID]; /* the beginning of its hash; no secret */
};

/* The first one writes, all of them read. */
struct ckt_image_keys {
	struct ckt_image_key keys[CKT_IMAGE_KEYS_MAX];
	unsigned count;
};

/* Of those bytes. */
void ckt_image_key_init(struct ckt_image_key *key, const uint8_t bytes[CKT_IMAGE_KEY_BYTES]);
/*
 * 32 bytes, or 64 hexadecimal digits with or without a newline, in a file of the caller's user or
 * root that nobody else may read or write.  -EPERM: somebody else may; -EBADMSG: it holds no key.
 */
int ckt_image_key_read(
	const char *path, struct ckt_image_key *ret_key, char *ret_message, size_t message_size);
/* The same, as the last of several.  -E2BIG: too many. */
int ckt_image_keys_add(
	struct ckt_image_keys *keys, const char *path, char *ret_message, size_t message_size);
/* Writes a new key as hexadecimal digits into a new file of mode 0600, and fsyncs it. */
int ckt_image_key_make(const char *path, struct ckt_image_key *ret_key);
/* Hexadecimal digits of its id. */
void ckt_image_key_text(
	const uint8_t id[CKT_IMAGE_KEY_ID], char ret_text[2 * CKT_IMAGE_KEY_ID + 1]);

/* HMAC-SHA-256 of a text that is no manifest: the state of a chain of automatic images. */
void ckt_image_key_state_mac(const struct ckt_image_key *key, const char *text, size_t size,
	uint8_t ret_mac[CKT_IMAGE_HASH]);

/* SHA-256 of an open file from its beginning, whatever its offset. */
int ckt_image_file_hash(int fd, uint8_t ret_hash[CKT_IMAGE_HASH]);
/* Fills in key and mac; all else is the caller's. */
int ckt_image_mac_make(const struct ckt_image_key *key, ckt_image_mac *mac);

/* What a manifest-mac holds; session is the struct's. */
struct ckt_image_macs {
	ckt_image_mac macs[CKT_IMAGE_MACS];
	char sessions[CKT_IMAGE_MACS][CKT_IMAGE_SESSION + 1];
	unsigned count;
};

/* -EBADMSG if the bytes are something else. */
int ckt_image_macs_decode(const void *data, size_t size, struct ckt_image_macs *ret_macs);
/* The size, or -errno. */
int ckt_image_macs_encode(
	const struct ckt_image_macs *macs, uint8_t ret_data[CKT_IMAGE_MAC_FILE_MAX]);
/* In place of the one by the same key, or as the last.  -E2BIG: there are too many. */
int ckt_image_macs_add(struct ckt_image_macs *macs, const ckt_image_mac *mac);
/* The file in that directory; with -ENOENT there is none.  ret_macs: NULL for the bytes alone. */
int ckt_image_macs_read(int directory, uint8_t ret_data[CKT_IMAGE_MAC_FILE_MAX], size_t *ret_size,
	struct ckt_image_macs *ret_macs);
/* Writes and fsyncs it in place of the one that is there; the caller fsyncs the directory. */
int ckt_image_macs_write(int directory, const struct ckt_image_macs *macs);

/*
 * The one that one of the keys made.  manifest: which it must name; NULL: any.  -ENOKEY: none is
 * by one of these keys; -EBADMSG: one claims to be and is not, or names another manifest.  The
 * sentence says what to do.
 */
int ckt_image_macs_check(const struct ckt_image_macs *macs, const struct ckt_image_keys *keys,
	const uint8_t *manifest, const ckt_image_mac **ret_mac, char *ret_message,
	size_t message_size);
