/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The genuine libraries in the worker: search.h finds them, the first use opens them, and they stay
 * open.
 *
 * The server describes their directories in the worker's environment
 * (server/daemon/session/libraries.c).  Threading: the executor or the restoring thread.
 */
#pragma once

#include <stddef.h>

#include "server/worker/libs/search.h"

struct ckt_worker;

struct ckt_genuine {
	void *handle;
	struct ckt_search_found found;
};

/*
 * stem: "libcublas.so"; major 0: the highest installed; version: the client's own ("13.1.0"), or
 * "".  Opens the pass-through libcuda.so.1 (inside.h) before the first library.  0, or -errno and
 * one sentence that names the library, the cause and the remedy.  A repeated call returns the first
 * result.
 */
int ckt_genuine_open(struct ckt_worker *worker, const char *stem, unsigned major,
	const char *version, const struct ckt_genuine **ret_genuine, char *ret_message,
	size_t message_size);
/* The opened libraries in the order of their opening; NULL after the last. */
const struct ckt_genuine *ckt_genuine_at(unsigned index);
