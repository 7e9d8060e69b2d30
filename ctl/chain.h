/* SPDX-License-Identifier: Apache-2.0 */
/* An image and its ancestors, open; see chain.c. */
#pragma once

#include <stdbool.h>

#include "checkpoint/format/store.h"
#include "ctl/files.h"

struct ckt_ctl_chain {
	char path[CKT_CTL_PATH_SIZE];
	/* [0]: the image itself, then its ancestors, newest first */
	int fds[1 + CKT_IMAGE_ANCESTORS];
	unsigned count;
	bool read;
	ckt_image image; /* its manifest */
};

/*
 * An exit code, with the error printed. Close it after success.  Without strict the server judges a
 * manifest that cannot be read: the `base` files then give the chain.
 */
int ckt_ctl_chain_open(const char *first, bool strict, struct ckt_ctl_chain *chain);
void ckt_ctl_chain_close(struct ckt_ctl_chain *chain);
/* False if that is not an image. */
bool ckt_ctl_image_id(const char *path, char ret_id[CKT_IMAGE_ID]);
