/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes of the program to pinned memory across a network (mapped.c) while the GPU works.  Natively
 * such a write does not wait, and a kernel may wait for it (a latch).  So a write to a chunk in
 * state DEVICE proceeds like this:
 *
 *	fault --fetch the chunk, keep a twin of its contents, open it--> EARLY
 *	EARLY --a wait for the GPU begins or ends, or the GPU gets work: close, send--> DEVICE
 *
 * Only bytes that differ from the twin are sent, because the kernel may be writing the others.  The
 * chunk is closed, because its other bytes may be outdated by then.
 *
 * A read of such memory still waits for the GPU: a program sees nothing new until it calls CUDA.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "client/cuda/memory/early_writes.h"
#include "client/cuda/call.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/managed_region.h"

#define CHUNK CKT_MANAGED_CHUNK

_Atomic unsigned ckt_managed_early;

CUresult ckt_managed_open_early(struct ckt_managed_region *r, uint64_t chunk)
{
	if (!r->twins)
		r->twins = calloc(r->size / CHUNK, sizeof *r->twins);
	uint8_t *twin = r->twins ? malloc(CHUNK) : NULL;
	CUresult result = twin ? ckt_managed_fetch(r, chunk, 1) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!result) {
		memcpy(twin, r->alias + chunk * CHUNK, CHUNK);
		if (mprotect((void *)(uintptr_t)(r->base + chunk * CHUNK), CHUNK,
			    PROT_READ | PROT_WRITE))
			result = CUDA_ERROR_OPERATING_SYSTEM;
	}
	if (result) {
		free(twin);
		return result;
	}
	r->twins[chunk] = twin;
	ckt_managed_set_states(r, chunk, 1, CKT_MANAGED_EARLY);
	ckt_managed_early++;
	return CUDA_SUCCESS;
}

/* Sends the runs of bytes that differ from the twin. */
static CUresult send_changed(
	struct ckt_managed_region *r, uint64_t chunk, const uint8_t *twin, bool *sent)
{
	const uint8_t *now = r->alias + chunk * CHUNK;
	CUresult result = CUDA_SUCCESS;
	if (memcmp(now, twin, CHUNK) == 0)
		return CUDA_SUCCESS;
	for (uint64_t i = 0; i < CHUNK && !result;) {
		if (now[i] == twin[i]) {
			i++;
			continue;
		}
		uint64_t end = i;
		while (end < CHUNK && now[end] != twin[end])
			end++;
		result = ckt_managed_send(r, chunk * CHUNK + i, chunk * CHUNK + end);
		*sent = true;
		i = end;
	}
	return result;
}

CUresult ckt_managed_close_early(struct ckt_managed_region *r, bool *sent)
{
	CUresult result = CUDA_SUCCESS;
	for (uint64_t i = 0; r->twins && i < r->size / CHUNK; i++) {
		if (r->states[i] != CKT_MANAGED_EARLY)
			continue;
		/*
		 * Close the chunk first: a later write of another thread then faults and is not
		 * lost.
		 */
		mprotect((void *)(uintptr_t)(r->base + i * CHUNK), CHUNK, PROT_NONE);
		if (!result)
			result = send_changed(r, i, r->twins[i], sent);
		r->states[i] = CKT_MANAGED_DEVICE;
		r->valid--;
		free(r->twins[i]);
		r->twins[i] = NULL;
		ckt_managed_early--;
	}
	return result;
}

void ckt_managed_drop_early(struct ckt_managed_region *r)
{
	for (uint64_t i = 0; r->twins && i < r->size / CHUNK; i++) {
		ckt_managed_early -= r->twins[i] != NULL;
		free(r->twins[i]);
	}
	free(r->twins);
	r->twins = NULL;
}

static void close_and_wait(struct ckt_managed_region *r)
{
	bool sent = false;
	if (!r->twins)
		return;
	ckt_client_context_use(r->context);
	if (!ckt_managed_close_early(r, &sent) && sent)
		CKT_WAITED(stream_synchronize, STREAM_SYNCHRONIZE, 0, NULL, .stream = r->stream);
}

void ckt_managed_send_early(void)
{
	uint64_t saved = ckt_call_context;
	pthread_mutex_lock(&ckt_managed_lock);
	ckt_managed_each(close_and_wait);
	ckt_client_context_use(saved);
	pthread_mutex_unlock(&ckt_managed_lock);
}
