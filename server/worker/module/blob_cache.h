/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner's cache of modules on disk, as its worker uses it: through the server, which opens the
 * files (rpc/module_cache.h).  Without a cache, or when it fails, all blobs come from the client.
 *
 * A file is used only if it matches the hash under which it was asked for.  The executor waits while
 * a file is read or written, and two seconds at most for the server; then there is no cache any more.
 *
 * Threading: _find, _keep and _tell are the executor's; the others, any thread.
 */
#pragma once

#include <stdint.h>

#include "server/worker/module/blob.h"

struct ckt_worker;

struct ckt_blob_cache_counts {
	uint64_t hits, hit_bytes;
	uint64_t misses; /* that the client sent while there was a cache */
};

/* The connection to the server, the callee's in every case; replaces an earlier one. */
int ckt_blob_cache_use(int fd);
/* A complete blob, which the session has or the cache; or NULL. */
const struct ckt_blob *ckt_blob_cache_find(
	struct ckt_blobs *blobs, const uint8_t hash[CKT_HASH_SIZE]);
/* Stores a complete blob that came from the client; nothing if there is none of that hash. */
void ckt_blob_cache_keep(const struct ckt_blobs *blobs, const uint8_t hash[CKT_HASH_SIZE]);
/*
 * Tells the client which modules the cache has, before any reply to it; nothing without a cache.  The
 * executor's.
 */
void ckt_blob_cache_tell(struct ckt_worker *worker);
void ckt_blob_cache_count(struct ckt_blob_cache_counts *ret_counts);
