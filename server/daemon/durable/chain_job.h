/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits for the disk of automatic images, in a thread of its own for each, so that the loop
 * does not: an image becomes part of its chain, or a chain is removed.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>

#include "server/daemon/durable/chain_store.h"
#include "server/daemon/loop.h"

struct ckt_sealed_image;

typedef void (*ckt_chain_job_done)(void *context, int result);

/*
 * fsyncs the image and writes the state that names it; then, with clean, removes images that it
 * does not name.  done is called once, from the loop, unless an error is returned.  The descriptors
 * stay the caller's, and the state is copied.
 */
int ckt_chain_commit(struct ckt_loop *loop, int dir_fd, int image_fd,
	const struct ckt_chain_state *state, bool clean, ckt_chain_job_done done, void *context);
/* The same, of files that are in memory and are encrypted first; sealed gets a reference. */
int ckt_chain_commit_sealed(struct ckt_loop *loop, int dir_fd, int image_fd,
	const struct ckt_chain_state *state, struct ckt_sealed_image *sealed, bool clean,
	ckt_chain_job_done done, void *context);
/*
 * In two steps, of a group: fsyncs the image and writes the next state; and makes the next state, which
 * is that one, the state, and removes images that it does not name.
 */
int ckt_chain_prepare(struct ckt_loop *loop, int dir_fd, int image_fd,
	const struct ckt_chain_state *state, struct ckt_sealed_image *sealed,
	ckt_chain_job_done done, void *context);
int ckt_chain_count(struct ckt_loop *loop, int dir_fd, const struct ckt_chain_state *state,
	ckt_chain_job_done done, void *context);
/*
 * Of images that a peer wrote, whose files are not on the disk yet: all of the file system is
 * synchronized.  The state of a group's member is only the next one (ckt_chain_prepare).
 */
int ckt_chain_commit_foreign(struct ckt_loop *loop, int dir_fd, const struct ckt_chain_state *state,
	ckt_chain_job_done done, void *context);
/* Removes the chain.  Precondition: done keeps its lock until then. */
int ckt_chain_drop(struct ckt_loop *loop, int parent_fd, int dir_fd, const char *session,
	ckt_chain_job_done done, void *context);
/* Waits for all, and calls them done. */
void ckt_chain_jobs_finish(void);
