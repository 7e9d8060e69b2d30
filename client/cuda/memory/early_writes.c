/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned memory across a network that the program writes while the GPU works.  Natively it need not
 * wait, and a kernel may wait for what it writes (a latch); so a write is not held up.  The chunk
 * is fetched as it is and a twin of it is kept; before and after every wait for the GPU, and before
 * it is given more, the bytes that differ from the twin are sent, those and no others, because the
 * kernel may be writing the rest, and the chunk is closed: what it holds besides may be old by
 * then.
 *
 * A program that only reads such memory still waits for the GPU: it would see nothing new before it
 * has called CUDA.
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

/* Sends the runs of bytes that are not the twin's. */
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
		 * Closed first: a write of another thread that is late is then a fault, not lost.
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
