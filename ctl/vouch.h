/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who vouches for an image (checkpoint/format/image_key.h): the keys of --image-key, which are the
 * user's, and those of the server.
 *
 *	checkpoint	SAVE -> ckt_ctl_vouch -> manifest-mac beside the manifest -> the image gets its name
 *	restore		ckt_ctl_voucher_read -> ckt_ctl_voucher_show -> RESTORE2 of that manifest and no other
 *
 * Exit codes, with the reason said.  Threading: any thread, an image each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/format/image_key.h"
#include "ctl/command.h"
#include "ctl/server.h"
#include "rpc/control.h"

/* The files of --image-key; no key without one. */
int ckt_ctl_keys_read(const struct ckt_ctl_args *args, struct ckt_image_keys *ret_keys);
/*
 * The image that SAVE has just written, now in that directory: the server vouches for it if it
 * said that it has a key, then the first key of --image-key does.
 */
int ckt_ctl_vouch(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const ckt_control_save_res *res, int directory);
/* The first key of --image-key alone; client/ is complete by then. */
int ckt_ctl_vouch_owner(const struct ckt_ctl_args *args, const char *session, int directory);

/* What is known of the image that is to be restored. */
struct ckt_ctl_voucher {
	bool bind; /* the user's keys vouch for that manifest */
	uint8_t hash[CKT_IMAGE_HASH];
	uint8_t data[CKT_IMAGE_MAC_FILE_MAX]; /* its manifest-mac; size 0: none */
	size_t size;
};

/*
 * Checks the image in that directory against the keys of --image-key, if any.  session: which it
 * says it is, NULL if its manifest cannot be read.  with_client: client/ counts, too.
 */
int ckt_ctl_voucher_read(const struct ckt_ctl_args *args, const char *path, int directory,
	const char *session, bool with_client, struct ckt_ctl_voucher *ret_voucher);
/* Before each PRELOAD or RESTORE2 of it. */
int ckt_ctl_voucher_show(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const struct ckt_ctl_voucher *voucher);
