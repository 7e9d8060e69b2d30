/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned memory that bulk data passes through, touched and registered once at the start at a fixed
 * address, so that a session's history of driver addresses does not depend on it (an allocation by
 * the driver in between would shift module globals).
 *
 *	to the device	a ring of pieces, each free again when the event behind its copy is done; the executor's
 *	to the host	pieces of two sizes, taken by the executor and given back by whoever delivers the data
 */
#pragma once

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_fences;

enum {
	CKT_STAGING_PIECE = 1 << 20,
	CKT_STAGING_SMALL = 4096,
	CKT_STAGING_TO_DEVICE = 8,
	CKT_STAGING_TO_HOST = 16,
	CKT_STAGING_SMALLS = 256,
};

struct ckt_staging_piece {
	uint8_t *data;
	size_t size;
	CUevent event;             /* to the device, while in flight */
	struct ckt_fences *fences; /* where the event belongs */
	struct ckt_staging_piece *next_free;
	/* not of the pool: data lies behind the struct, both are freed when it is given back */
	bool own;
};

struct ckt_staging {
	pthread_mutex_t lock;
	uint8_t *base;
	size_t size;
	bool registered;
	struct ckt_staging_piece to_device[CKT_STAGING_TO_DEVICE];
	unsigned next_to_device;
	struct ckt_staging_piece to_host[CKT_STAGING_TO_HOST], smalls[CKT_STAGING_SMALLS];
	struct ckt_staging_piece *free_to_host, *free_smalls;
};

/* Precondition: a context is current. Falls back to memory that is not pinned. 0 or -errno. */
int ckt_staging_init(struct ckt_staging *staging);

/*
 * The next piece of the ring, waited for where it is in flight.  Fill it, copy, then call
 * ckt_staging_sent.
 */
struct ckt_staging_piece *ckt_staging_to_device(struct ckt_staging *staging);
/*
 * Remembers that the piece is in use until the work now in the stream is done.  Precondition: the
 * stream's context is current.
 */
CUresult ckt_staging_sent(
	struct ckt_staging_piece *piece, struct ckt_fences *fences, CUstream stream);
/* Waits for and forgets the events of a context that goes. */
void ckt_staging_forget(struct ckt_staging *staging, struct ckt_fences *fences);

/* A piece of at least size bytes (at most CKT_STAGING_PIECE), or NULL where all are in use. */
struct ckt_staging_piece *ckt_staging_to_host(struct ckt_staging *staging, size_t size);
/*
 * A piece that no limit holds up, for work that may not be waited for; not pinned.  NULL without
 * memory.
 */
struct ckt_staging_piece *ckt_staging_own(size_t size);
void ckt_staging_give(struct ckt_staging *staging, struct ckt_staging_piece *piece);
