/*
 * Threads for moving contents between the GPU and files, made at the start like all others (their stacks must not shift what the
 * driver maps later) and idle otherwise.  Each has a stream and a piece of pinned memory of its own.
 */
#pragma once

#include <cuda.h>
#include <stdint.h>

struct ckt_worker;

enum { CKT_CREW_SIZE = 4 };

struct ckt_crew_member {
	struct ckt_worker *worker;
	unsigned index;
	uint8_t *buffer;	/* CKT_IMAGE_CHUNK bytes, pinned where the staging is */
	CUcontext current;
};

/* Precondition: the staging memory is there. 0 or -errno. */
int ckt_crew_start(struct ckt_worker *worker);
/* Runs work(member, opaque) on every member and waits; the first error. One at a time. */
int ckt_crew_run(int (*work)(struct ckt_crew_member *member, void *opaque), void *opaque);
/* Makes the context of the device current on the member's thread. */
CUresult ckt_crew_use_device(struct ckt_crew_member *member, unsigned device);
