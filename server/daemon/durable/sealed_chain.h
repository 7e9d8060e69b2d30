/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encrypted automatic images (--auto-encrypt): what is plain stays in memory.
 *
 *	image:  worker --broker: make--> memfd, written | then a thread: memfd --AES-GCM--> DIR/SESSION/N/data-K
 *	return: worker --broker: read--> DIR/SESSION/N/data-K --decrypted--> memfd
 *
 * The files are those of checkpoint/format/sealed_file.h, one salt for an image, by the first key of
 * --image-key; any of the keys reads.  The worker has neither a key nor the encrypted files.
 *
 * Errors: 0 or -errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/session.h"

struct ckt_broker;
struct ckt_image_keys;

/* ---- An image that is being written.  One thread at a time, beside its broker's. */

struct ckt_sealed_image;

/* The caller has a reference; *ret_fd is for the worker, as of ckt_broker_start. */
int ckt_sealed_image_start(
	struct ckt_sealed_image **ret_image, struct ckt_broker **ret_broker, int *ret_fd);
struct ckt_sealed_image *ckt_sealed_image_ref(struct ckt_sealed_image *image);
/* With the last one the plain files go.  NULL is fine. */
void ckt_sealed_image_unref(struct ckt_sealed_image *image);
/* A manifest-mac beside what the worker wrote; at most CKT_IMAGE_MAC_FILE_MAX bytes, copied. */
int ckt_sealed_image_vouch(struct ckt_sealed_image *image, const uint8_t *data, size_t size);
/* What its files will take. */
uint64_t ckt_sealed_image_bytes(struct ckt_sealed_image *image);
/*
 * Encrypts all files into the empty directory, and fsyncs them.  From here on the worker makes no
 * further ones.
 */
int ckt_sealed_image_finish(
	struct ckt_sealed_image *image, const struct ckt_image_keys *keys, int directory_fd);

/* ---- What was written.  Any thread. */

/* Whether the image in that directory is encrypted. */
bool ckt_sealed_image_is(int directory_fd);
/*
 * A file of an image, decrypted if it is encrypted: a descriptor to read, the caller's.  salt and
 * *salt_known: the image's, from its first file on.  -errno with the reason.
 */
int ckt_sealed_image_open(int directory_fd, const char *name, const struct ckt_image_keys *keys,
	uint8_t *salt, bool *salt_known, char ret_message[CKT_MESSAGE_MAX]);
/* A broker for the images in these directories, which are duplicated, as the keys are; as ckt_broker_start. */
int ckt_sealed_chain_serve(const int *directories, unsigned count,
	const struct ckt_image_keys *keys, struct ckt_broker **ret_broker, int *ret_fd);
