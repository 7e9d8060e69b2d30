/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encrypted images (checkpoint/format/sealed_file.h).  Workers and servers know plain images only:
 * cricketctl encrypts what they wrote, and decrypts what they read, in a directory of its own in
 * memory (tmpfs).  So the key stays here, and no plain byte reaches a disk, unless the host swaps.
 *
 * Exit codes, with the reason said.  Threading: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/format/sealed_file.h"
#include "ctl/command.h"
#include "ctl/files.h"

struct ckt_ctl_plain {
	char path[CKT_CTL_PATH_SIZE]; /* empty: none */
	int fd;
};

/* An empty directory in memory, removed if a signal ends us. */
int ckt_ctl_plain_make(struct ckt_ctl_plain *ret_plain);
/* {.fd = -1} is fine. */
void ckt_ctl_plain_remove(struct ckt_ctl_plain *plain);

/* Whether the image in that directory is encrypted. */
bool ckt_ctl_image_is_sealed(int directory);
/*
 * All files of one directory into the other, by the first key of --image-key.  ret_salt: the image's,
 * which no other image has; NULL: nobody asks.
 */
int ckt_ctl_image_seal(const struct ckt_ctl_args *args, int from, int to, uint8_t *ret_salt);
/* And back, by any of the keys.  path: for messages; salt: which it must have, NULL: any. */
int ckt_ctl_image_unseal(
	const struct ckt_ctl_args *args, const char *path, int from, int to, const uint8_t *salt);

/* The same of one file, which belongs to no session's image. */
bool ckt_ctl_file_is_sealed(int directory, const char *name);
int ckt_ctl_file_seal(const struct ckt_ctl_args *args, const char *name, int from, int to);
int ckt_ctl_file_unseal(
	const struct ckt_ctl_args *args, const char *path, const char *name, int from, int to);
