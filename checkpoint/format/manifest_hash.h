/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which manifests a process has written, and the only one that it may read.
 *
 * A worker is told which manifest it restores before it has read a byte of it, by a server that
 * knows the hash from somebody with a key (image_key.h).  So a file that is exchanged between the
 * check and the restore is refused, and no decoder sees its bytes.
 *
 * Threading: any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/format/image.h"

/* Every manifest that is read from now on must have this SHA-256; NULL: any may be read. */
void ckt_manifest_expect(const uint8_t *hash);
/* Whether the whole file may be decoded. */
bool ckt_manifest_is_expected(const uint8_t *data, size_t size);
/* The whole file of the image of that id has been written. */
void ckt_manifest_written(const char id[CKT_IMAGE_ID], const uint8_t *data, size_t size);
/* False: it is not among the latest. */
bool ckt_manifest_written_hash(const char id[CKT_IMAGE_ID], uint8_t ret_hash[CKT_IMAGE_HASH]);
