/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a restore needs a second time: a warm worker may find that the image's worker was started in another way
 * (-EXDEV of rpc/worker.x), and a fresh one then takes its place (session.c).
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>

#include "rpc/control.h"
#include "rpc/worker.h"
#include "server/daemon/image/image_mac.h"

struct ckt_memory_image;
struct ckt_server;
struct ckt_session_spec;

struct ckt_restore_again {
	bool ahead; /* a preload */
	struct ckt_image_bond bond;
	int image_fd;
	int image_fds[CKT_IMAGE_CHAIN_MAX];
	unsigned image_count;
	const struct ckt_memory_image *kept; /* compared before it is used, as is its ID */
	char kept_id[CKT_CONTROL_IMAGE_ID];
};

/* Own copies of what the wish names; NULL without memory or descriptors: there is no second time. */
struct ckt_restore_again *ckt_restore_again_create(const struct ckt_session_spec *spec);
/* NULL is fine. */
void ckt_restore_again_destroy(struct ckt_restore_again *again);
/* The same wish; the descriptors stay the copy's.  False: the image in memory is gone. */
bool ckt_restore_again_spec(const struct ckt_restore_again *again, const struct ckt_server *server,
	struct ckt_session_spec *ret_spec);
