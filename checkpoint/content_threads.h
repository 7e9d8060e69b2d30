/*
 * Threads for moving contents between the GPU and files, made at the start like all others (their
 * stacks must not shift what the driver maps later) and idle otherwise; as many as the machine has
 * cores.  Each has a stream and two pieces of pinned memory, so that one is copied while the other
 * is hashed and written.
 */
#pragma once

#include <cuda.h>
#include <stdint.h>

#include "rpc/session.h"

struct ckt_worker;

enum { CKT_CREW_SIZE = 16 }; /* at most */

struct ckt_crew_member {
	struct ckt_worker *worker;
	unsigned index;
	uint8_t *buffers[2]; /* CKT_IMAGE_CHUNK bytes each, pinned where the driver can */
	uint8_t *buffer;     /* the first */
	CUstream stream;     /* of the first device; NULL where there is none */
	CUcontext current;
};

/* Precondition: the primary context of the first device is current. 0 or -errno. */
int ckt_crew_start(struct ckt_worker *worker);
unsigned ckt_crew_count(void);
/*
 * Touches and pins the buffers, once; before anything stands still. Changes the thread's current
 * context.
 */
void ckt_crew_prepare(void);
/*
 * Precondition: the session is frozen or does not run yet.  What ckt_crew_use_device finds from now
 * on.
 */
void ckt_crew_look(struct ckt_worker *worker);
/* Runs work(member, opaque) on every member and waits; the first error. One at a time. */
int ckt_crew_run(int (*work)(struct ckt_crew_member *member, void *opaque), void *opaque);
/* Makes the context of the device current on the member's thread. */
CUresult ckt_crew_use_device(struct ckt_crew_member *member, unsigned device);
/* The first member's, for work between runs. */
CUstream ckt_crew_first_stream(unsigned device);
/* The member's stream where it belongs to the device, else the default one. */
CUstream ckt_crew_stream(struct ckt_crew_member *member, unsigned device);
