/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in --image-dir, counted for each identity.  Threading: any thread. */
#pragma once

#include <stdint.h>

#include "server/daemon/policy/identity.h"

struct ckt_decision;
struct ckt_server;

struct ckt_image_space;
/* A reference; NULL without memory. */
struct ckt_image_space *ckt_daemon_image_space_get(
	const struct ckt_server *server, const struct ckt_identity *identity);
struct ckt_image_space *ckt_daemon_image_space_ref(struct ckt_image_space *space);
void ckt_daemon_image_space_put(struct ckt_image_space *space);
/* Whether the policy would allow so many more; takes none. */
void ckt_daemon_image_space_check(struct ckt_image_space *space, int dir_fd, uint64_t bytes,
	struct ckt_decision *ret_decision);
/*
 * 0; -EDQUOT if the identity may not have so many more, -ENOSPC if the file system of dir_fd keeps
 * its last bytes for others.
 */
int ckt_daemon_image_space_take(struct ckt_image_space *space, int dir_fd, uint64_t bytes);
/* Counts without asking: for files that already exist. */
void ckt_daemon_image_space_note(struct ckt_image_space *space, uint64_t bytes);
void ckt_daemon_image_space_release(struct ckt_image_space *space, uint64_t bytes);
uint64_t ckt_daemon_image_space_taken(const struct ckt_image_space *space);
