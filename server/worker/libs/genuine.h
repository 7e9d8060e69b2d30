/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The genuine libraries behind the forwarded ones, in the worker: found (search.h), opened when
 * first used, once, and kept.
 *
 * What the server says of where they lie comes in the worker's environment
 * (server/daemon/session/libraries.c).  Threading: the executor's, or who restores.
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
 * stem: "libcublas.so"; major 0: the highest there is; version: the client's own ("13.1.0"), or
 * "".  Opens libcuda.so.1 of inside.h before the first one.  0, or -errno and one sentence that
 * names the library, what is wrong and what helps; the same answer the next time.
 */
int ckt_genuine_open(struct ckt_worker *worker, const char *stem, unsigned major,
	const char *version, const struct ckt_genuine **ret_genuine, char *ret_message,
	size_t message_size);
/* The opened libraries, in their order: NULL at the end. */
const struct ckt_genuine *ckt_genuine_at(unsigned index);
