/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encrypted files of an image.
 *
 *	magic | version | key id | salt, 48 bytes	then segments: AES-256-GCM of 1 MiB, tag	the last one is shorter, perhaps empty
 *
 * Each file has a key of its own: HKDF-SHA-256 of the image key, with the image's random salt, for
 * the file's name.  The nonce is the number of the segment, and whether it is the last; no segment
 * is written twice, so none repeats.  A file that was cut, extended, changed, renamed or put into
 * another image is refused before its segment is used.
 *
 * Errors: 0 or -errno; reading: a sentence in ret_message, -EBADMSG for a file that was changed,
 * -ENOKEY without its key.  Threading: none of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/format/image_key.h"

enum { CKT_SEALED_SALT = 32, CKT_SEALED_HEADER = 48, CKT_SEALED_SEGMENT = 1 << 20 };

/* Whether the open file begins as one. */
bool ckt_sealed_is(int fd);
/* Encrypts all of `from` into the empty file `to`, and fsyncs that. */
int ckt_sealed_write(const struct ckt_image_key *key, const uint8_t salt[CKT_SEALED_SALT],
	const char *name, int from, int to);
/*
 * Decrypts all of `from` into the empty file `to`.  salt: of the image's first file, which *salt_known
 * tells; the first call fills it in.
 */
int ckt_sealed_read(const struct ckt_image_keys *keys, const char *name, int from, int to,
	uint8_t salt[CKT_SEALED_SALT], bool *salt_known, char *ret_message, size_t message_size);
