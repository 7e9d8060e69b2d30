/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stages: images that travel over the network, each in a directory of its own below --image-dir.
 *
 *	--image-dir/tmp-RANDOM	belongs to the connection that made it; removed with it, or when the server starts again
 *	--image-dir/NAME	was kept; NAME.owner says whose it is
 *
 * A connection that carries an image's files is served by a thread of its own (stage_data.c),
 * because files are waited for.  Of all that a peer names, the thread opens only plain files of the
 * stage, [a-z0-9-]+.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include "server/daemon/peer/peer.h"

struct ckt_audit_pieces;
struct ckt_image_space;
struct ckt_stage;

/*
 * Makes --image-dir if it is missing and removes what an earlier server left. -errno with the
 * reason.
 */
int ckt_stages_init(struct ckt_server *server, char *ret_message, size_t message_size);
/* Removes temporary stages, and the default directory if it is empty. */
void ckt_stages_fini(struct ckt_server *server);
/*
 * A stage that the peer may use: one that some connection made, or a kept one. NULL if there is
 * none.
 */
struct ckt_stage *ckt_stage_find(struct ckt_peer *peer, const char *name);
/* Its directory; stays the stage's. */
int ckt_stage_fd(const struct ckt_stage *stage);
/* How many stages that identity, or that connection, has made that are not kept. */
unsigned ckt_stages_of(const struct ckt_server *server, const struct ckt_identity *identity);
unsigned ckt_stages_of_peer(const struct ckt_peer *peer);
/* Whether so many more bytes may be in it; false with a sentence in buffer. */
bool ckt_stage_has_room(struct ckt_peer *peer, struct ckt_stage *stage, uint64_t bytes,
	char buffer[CKT_MESSAGE_MAX]);
/* A worker has written in it: counts its present size for its owner. */
void ckt_stage_recount(struct ckt_peer *peer, const char *name);
/*
 * A stage that this connection made becomes that name in another directory, and is no stage any
 * more.  0 or -errno; -ENOENT: it made none of that name.
 */
int ckt_stage_give(struct ckt_peer *peer, const char *stage, int dir_fd, const char *name);
/* The peer ends. */
void ckt_stage_peer_gone(struct ckt_peer *peer);
/* [a-z0-9-]+, bounded. */
bool ckt_stage_name_good(const char *name);

/* ---- stage_data.c */
struct ckt_stage_data;

/* dir_fd is duplicated, space referenced; it may be NULL. */
struct ckt_stage_data *ckt_stage_data_create(int dir_fd, struct ckt_image_space *space);
/* Connections of that identity that carry files, over all stages. */
unsigned ckt_stage_data_connections(const struct ckt_identity *identity);
/*
 * Starts a thread that serves READ and WRITE on fd.  fd and pieces (NULL: they are not logged) become
 * its own in every case.  0 or -errno.
 */
int ckt_stage_data_serve(struct ckt_stage_data *data, int fd, const struct ckt_identity *identity,
	struct ckt_audit_pieces *pieces);
/* Leaves the stage to its threads, if any. */
void ckt_stage_data_release(struct ckt_stage_data *data);
/* After this returns no thread accesses the directory. */
void ckt_stage_data_destroy(struct ckt_stage_data *data);
