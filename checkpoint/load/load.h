/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading an image into a worker that has not started.
 *
 * Threading: the control thread that starts the session.
 */
#pragma once

#include <stddef.h>

#include "rpc/session.h"
#include "rpc/worker.h"

struct ckt_worker;

/* Of an image and what it may build on. */
enum { CKT_IMAGE_PLACES = 1 + CKT_IMAGE_CHAIN_MAX };

/* Where the image that is loaded comes from. */
struct ckt_image_source {
	int places[CKT_IMAGE_PLACES]; /* by IMAGE, -1 where none came */
	unsigned count;
	int memory_fds[CKT_IMAGE_MEMORY_FILES]; /* by MEMORY */
	unsigned memory_count;
};

/* Closes what MEMORY brought. */
void ckt_image_source_close_memory(struct ckt_image_source *source);

int ckt_checkpoint_preload(struct ckt_worker *worker, int broker, const ckt_worker_start_args *args,
	char *ret_message, size_t message_size);
int ckt_checkpoint_load(struct ckt_worker *worker, int broker, const ckt_worker_start_args *args,
	char *ret_message, size_t message_size);
