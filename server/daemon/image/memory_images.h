/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images kept in the host's memory: memfds that the server holds, so that they outlive their
 * workers.  They end with the server, at KEPT_REMOVE, and when the same session is saved under the
 * same name again.
 *
 *	make -> send (a worker writes) -> commit -> listed, sealed -> send (a worker reads) ... -> free
 *	                               -> free
 *
 * Threading: the loop's thread.
 */
#pragma once

#include "server/daemon/peer/peer.h"
#include "server/daemon/session/session.h"

struct ckt_memory_image;

/*
 * Empty files for an image of this session, whose memory has that size.  NULL with a sentence in
 * buffer.
 */
struct ckt_memory_image *ckt_memory_image_make(struct ckt_peer *peer, const char *name,
	const struct ckt_session *session, uint64_t memory_bytes, char buffer[CKT_MESSAGE_MAX]);
/* Whether memory may hold that much of this session.  A sentence in buffer if not. */
bool ckt_memory_image_has_room(
	const struct ckt_session *session, uint64_t bytes, char buffer[CKT_MESSAGE_MAX]);
/* Sends duplicates of its files to the worker, ahead of the next call.  0 or -errno. */
int ckt_memory_image_send(const struct ckt_memory_image *kept, struct ckt_session *session);
/* The image is complete: from now on it is listed under its name. */
void ckt_memory_image_commit(struct ckt_memory_image *kept, const char image[CKT_CONTROL_IMAGE_ID]);
void ckt_memory_image_free(struct ckt_memory_image *kept);
void ckt_memory_image_id(const struct ckt_memory_image *kept, char ret_image[CKT_CONTROL_IMAGE_ID]);
/* Whether it is still there, and the one with that ID.  kept is compared alone: it may be freed. */
bool ckt_memory_image_is_kept(const struct ckt_server *server, const struct ckt_memory_image *kept,
	const char image[CKT_CONTROL_IMAGE_ID]);
void ckt_memory_image_fini(struct ckt_server *server);

/* "memory:NAME" -> NAME, else NULL. */
const char *ckt_memory_image_name(const char *stage);
/* An image that the peer may use, or NULL. */
struct ckt_memory_image *ckt_memory_image_find(struct ckt_peer *peer, const char *name);

void ckt_control_kept_list(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_kept_remove(struct ckt_peer *peer, void *args, int *passed_fd);
