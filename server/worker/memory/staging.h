/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned memory that bulk data passes through, touched and registered once at the start at a fixed
 * address, so that a session's history of driver addresses does not depend on it (an allocation by
 * the driver in between would shift module globals).
 *
 *	to the device	a ring of pieces, each free again when the event behind its copy is done; the executor's
 *	to the host	pieces of two sizes, taken by the executor and given back by whoever delivers the data
 *	lanes		pieces that threads of lanes take and fill (session/lane.h); free again when the copy from them is done
 *
 * The executor never waits for a piece of the lanes, and the threads of lanes take no other.
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
	/* With the default size; a smaller one has fewer, a larger one more of the latter two. */
	CKT_STAGING_TO_DEVICE = 8,
	CKT_STAGING_TO_HOST = 16,
	CKT_STAGING_LANES = 16,
	CKT_STAGING_LANES_MAX = 128,
	CKT_STAGING_LEAST = 8 << 20,
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
	bool of_lanes;
};

#define CKT_STAGING_BYTES                                                              \
	((uint64_t)(CKT_STAGING_TO_DEVICE + CKT_STAGING_TO_HOST + CKT_STAGING_LANES) * \
		CKT_STAGING_PIECE)

struct ckt_staging {
	pthread_mutex_t lock;
	uint8_t *base;
	size_t size;
	bool registered;
	struct ckt_staging_piece *to_device, *to_host, *lanes;
	unsigned to_device_count, to_host_count, lane_count;
	unsigned next_to_device;
	struct ckt_staging_piece smalls[CKT_STAGING_SMALLS];
	struct ckt_staging_piece *free_to_host, *free_smalls, *free_lanes;
	pthread_cond_t lane_freed;
};

/*
 * bytes: of pieces, as --staging says; 0: CKT_STAGING_BYTES.  Precondition: a context is current.
 * Where the memory cannot be pinned, says so once and uses it as it is.  0 or -errno.
 */
int ckt_staging_init(struct ckt_staging *staging, uint64_t bytes);

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

/*
 * Of a lane's thread: waits for a piece of CKT_STAGING_PIECE bytes.  NULL where *gone, which
 * ckt_staging_lanes_wake tells.
 */
struct ckt_staging_piece *ckt_staging_lane_take(struct ckt_staging *staging, _Atomic bool *gone);
void ckt_staging_lanes_wake(struct ckt_staging *staging);
