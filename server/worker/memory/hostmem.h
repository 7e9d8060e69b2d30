/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned memory of the client that kernels reach, where client and worker are on one host; see
 * rpc/hostmem.h.
 *
 *	SHARED   the pages of the client's memory file, registered with the driver at the client's own addresses: both sides see every
 *		 store of the other at once
 *	PRIVATE  pages of the worker's own at those addresses, after a restore until the client comes, and for good where it comes without
 *		 its file (over a network): the client then keeps both sides coherent by copies, as it does with managed memory
 *
 * Threading: the executor alone, or whoever has frozen it.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/worker/session/call.h"

struct ckt_worker;

struct ckt_host_mapping {
	uint64_t address, size;
	bool own; /* pages of ours, and not of the client's file */
};

struct ckt_hostmem {
	bool reserved; /* the stretch of addresses is ours */
	bool shared;   /* of what is mapped, and of what will be */
	bool unfilled; /* private, and the client has not said yet what it holds */
	int fd;        /* the client's file; valid while shared */
	dev_t device;
	ino_t inode;
	struct ckt_host_mapping *mappings; /* sorted by address */
	size_t count, room;
};

/* Keeps the stretch of addresses free; without it nothing is ever shared. */
void ckt_hostmem_reserve(struct ckt_worker *worker);
/* A client has come, with its memory file or (-1) without; takes the descriptor over. */
void ckt_hostmem_attach(struct ckt_worker *worker, int fd);
/*
 * What the client says that private memory holds; size 0: that was all.  What lies in no mapping is
 * left out.
 */
void ckt_hostmem_fill(
	struct ckt_worker *worker, uint64_t address, const uint8_t *data, size_t size);
/*
 * One mapping of an image, private.  shared: it was, when the image was made, and its contents are
 * to come from the client.
 */
CUresult ckt_hostmem_restore(
	struct ckt_worker *worker, uint64_t address, uint64_t size, bool shared);
/* Whether the client alone knows what the memory holds. */
bool ckt_hostmem_is_elsewhere(const struct ckt_hostmem *host);
