/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of compiled kernels for each owner: a worker that somebody took over could plant machine code in one
 * that all share.
 *
 *	BASE/owner-HASH		HASH: of the owner's name.  The workers' user owns it, mode 0700
 *
 *	driver     BASE                                                                  the worker gets
 *	NVIDIA's   $CUDA_CACHE_PATH                                                      CUDA_CACHE_PATH
 *	soft GPU   $CACHE_DIRECTORY (systemd), root: /var/cache/cricket, else            XDG_CACHE_HOME
 *	           $XDG_CACHE_HOME/cricket, ~/.cache/cricket
 *
 * With --uid-range, whose ids outlive no owner's last session, NVIDIA's is in the owner's /dev/shm, and the soft GPU
 * has none.  How much one holds, the driver bounds.  Threading: one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ckt_identity;
struct ckt_server;
struct ckt_worker_user;

/*
 * Makes the directory for this worker, if it is missing.  owner NULL: it is not yet known, and a directory that several
 * owners' workers had would be none of theirs.  ret_directory: CKT_PATH_MAX bytes; empty where there is no
 * base, or it cannot be made or is somebody else's, which the log tells: the worker then has no cache.
 */
void ckt_kernel_cache_open(struct ckt_server *server, const struct ckt_identity *owner,
	const struct ckt_worker_user *user, char *ret_directory);
/* Whether a worker's directory depends on whose worker it is: a worker that is started for nobody has none. */
bool ckt_kernel_cache_is_owners(const struct ckt_server *server);
/*
 * The soft GPU's BASE, below which the server keeps modules as well; CKT_PATH_MAX bytes.  False: there
 * is none.
 */
bool ckt_kernel_cache_find_base(char *ret_base);
/* "owner-HASH", 39 bytes with the NUL. */
void ckt_kernel_cache_name(struct ckt_server *server, const struct ckt_identity *owner,
	char *ret_name, size_t name_size);
/* The worker's variable, as NAME=VALUE; empty for an empty directory. */
void ckt_kernel_cache_variable(
	const struct ckt_server *server, const char *directory, char *ret_text, size_t text_size);
