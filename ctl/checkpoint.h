/* SPDX-License-Identifier: Apache-2.0 */
/* Saving a session: the parts that others use.  Exit codes, with the reason said. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/files.h"
#include "ctl/server.h"
#include "rpc/control.h"

/* An image to build on. */
struct ckt_ctl_base {
	char path[CKT_CTL_PATH_SIZE];
	char id[CKT_CONTROL_IMAGE_ID];
};

int ckt_ctl_save_next(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const struct ckt_ctl_base *base, const char *path, char ret_id[CKT_CONTROL_IMAGE_ID]);

/* Of --encrypt and --image-key, before anything is frozen. */
int ckt_ctl_checkpoint_check_keys(const struct ckt_ctl_args *args);
int ckt_ctl_parse_deadline(const char *text, unsigned *ret_ms);
/*
 * directory: where the image's files are made, with this user's rights; -1: call->stage or memory.
 * base_fd: the directory of the image that call->base names; its manifest is sent if the worker
 * does not remember it; or -1.
 */
int ckt_ctl_save(struct ckt_ctl_server *server, ckt_control_save_args *call, int directory,
	int base_fd, ckt_control_save_res *ret_res);
int ckt_ctl_release(struct ckt_ctl_server *server, const char *session, bool end, bool parked,
	const char *moved_to);
