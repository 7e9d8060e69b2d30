/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches of modules on disk, one for each owner, so that a program's second start does not send them
 * again:
 *
 *	--module-cache DIR/owner-HASH/	module_store.h; the server's own, mode 0700
 *
 * The default of DIR is "modules" in the directory of kernel_cache.h, with either driver.  A worker
 * opens none of the files: it asks over a socket pair (rpc/module_cache.h), which belongs to its
 * owner's directory from the start, so it can neither name nor learn of another owner's modules.
 *
 * Threads: the caller's (the loop's), and one that serves all workers and does what waits for the
 * disk.
 */
#pragma once

#include <stdint.h>

struct ckt_module_cache;
struct ckt_server;
struct ckt_session;

/* Starts it as --module-cache says.  Without one, sessions have no cache, and the log says why. */
void ckt_module_cache_init(struct ckt_server *server);
/* Workers that live on have no cache until another server adopts them.  NULL is fine. */
void ckt_module_cache_fini(struct ckt_server *server);
/*
 * Gives the session's worker the cache of the session's owner; again if the owner has changed.
 * Nothing for a session without an owner.  0 or -errno: the worker cannot be reached.
 */
int ckt_module_cache_open(struct ckt_session *session);

/* ---- For tests: without a server */

int ckt_module_cache_start(
	const char *directory, uint64_t owner_bytes, struct ckt_module_cache **ret_cache);
void ckt_module_cache_stop(struct ckt_module_cache *cache);
/* A worker's end of a new connection to the cache of that name, the caller's; or -errno. */
int ckt_module_cache_connect(struct ckt_module_cache *cache, const char *owner);
