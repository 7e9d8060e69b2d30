/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saving a session as an image.  Precondition: frozen.
 *
 * Threading: the control thread that froze the session.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/worker.h"
#include "checkpoint/freeze/spare_memory.h"

struct ckt_worker;

struct ckt_save {
	struct ckt_spare spare;
	/* Where not NULL: called as soon as the session is not needed any more. */
	void (*let_go)(struct ckt_save *save, struct ckt_worker *worker);
	bool gone;
	uint64_t stopped_us;
	int broker;            /* makes its files */
	const int *memory_fds; /* instead of the directory: CKT_IMAGE_MEMORY_FILES */
	bool compress, incremental, keep_hashes;
	const char *base; /* CKT_IMAGE_ID_SIZE bytes, with incremental */
	/* Results. */
	uint8_t image[CKT_IMAGE_ID_SIZE];
	uint64_t bytes, memory_bytes, changed_bytes;
	uint64_t executed; /* the number of the last command in it */
};

int ckt_checkpoint_save(
	struct ckt_worker *worker, struct ckt_save *save, char *ret_message, size_t message_size);
