/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that move contents between the GPU and files, as many as the machine has cores.  They are
 * made at the start, like all threads, because a later thread's stack would shift what the driver
 * maps next; otherwise they are idle. Each has a stream and two pieces of pinned memory, so that it
 * copies one while it hashes and writes the other.
 */
#pragma once

#include <cuda.h>
#include <stdint.h>

#include "rpc/session.h"

struct ckt_worker;

enum { CKT_CREW_SIZE = 16 }; /* at most */

struct ckt_content_thread {
	struct ckt_worker *worker;
	unsigned index;
	uint8_t *buffers[2]; /* CKT_IMAGE_CHUNK bytes each, pinned if the driver can */
	uint8_t *buffer;     /* the first */
	CUstream stream;     /* of the first device; NULL if there is none */
	CUcontext current;
};

/* Precondition: the primary context of the first device is current. 0 or -errno. */
int ckt_content_threads_start(struct ckt_worker *worker);
unsigned ckt_content_threads_count(void);
/*
 * Touches and pins the buffers, once, before anything is frozen. Changes the thread's current
 * context.
 */
void ckt_content_threads_prepare(void);
/*
 * Sets what ckt_content_threads_use_device finds from now on.  Precondition: the session is frozen
 * or does not run yet.
 */
void ckt_content_threads_look(struct ckt_worker *worker);
/* Runs work(member, opaque) on every member and waits; returns the first error. One at a time. */
int ckt_content_threads_run(
	int (*work)(struct ckt_content_thread *member, void *opaque), void *opaque);
/* The same in two halves: the caller does something else in between. */
void ckt_content_threads_begin(
	int (*work)(struct ckt_content_thread *member, void *opaque), void *opaque);
int ckt_content_threads_wait(void);
/* Makes the device's context current on the member's thread. */
CUresult ckt_content_threads_use_device(struct ckt_content_thread *member, unsigned device);
/* The first member's, for work between runs. */
CUstream ckt_content_threads_first_stream(unsigned device);
/* The member's stream if it belongs to the device, else the default stream. */
CUstream ckt_content_threads_stream(struct ckt_content_thread *member, unsigned device);
