/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned memory that the worker shares, because it runs on this host.  The same pages are at the
 * same address in the program, in the worker and on the GPU.  So kernels and the program see each
 * other's stores at once, and copies need not pass through the connection.
 *
 * If the session resumes where the pages cannot be shared (another node, TCP), the memory becomes
 * like that of mapped.c: a copy on each side, kept coherent as managed memory is.  Its contents are
 * sent before the commands that are sent again.
 *
 * The lock protects only the list and is never held across a call: the thread that reconnects takes
 * it while other threads wait for replies.
 */
#include <errno.h>
#include <stdlib.h>

#include "client/cuda/memory/shared.h"
#include "base/fork.h"
#include "base/log.h"
#include "client/conn/hostmem.h"
#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/memory/managed.h"
#include "client/cuda/memory/managed_region.h"
#include "client/cuda/memory/range.h"
#include "rpc/hostmem.h"

/* An allocation, or addresses reserved for one. */
struct piece {
	struct piece *next; /* by address */
	uint64_t base, size;
	/* the region to wake if sharing ends; NULL: the worker does not have the memory */
	struct ckt_managed_region *region;
	bool lost;
};

static CKT_LOCK(lock);
static struct piece *pieces;

/* Takes the first gap that is large enough. */
static struct piece *take_addresses(uint64_t base, uint64_t room, uint64_t size)
{
	struct piece *piece = malloc(sizeof *piece), **place = &pieces;
	uint64_t at = base;
	if (!piece)
		return NULL;
	pthread_mutex_lock(&lock);
	while (*place && (*place)->base - at < size) {
		at = (*place)->base + (*place)->size;
		place = &(*place)->next;
	}
	if (at - base > room || size > room - (at - base)) {
		free(piece);
		piece = NULL;
	} else {
		*piece = (struct piece){.next = *place, .base = at, .size = size};
		*place = piece;
	}
	pthread_mutex_unlock(&lock);
	return piece;
}

static void give_addresses(struct piece *piece)
{
	struct piece **place = &pieces;
	pthread_mutex_lock(&lock);
	while (*place != piece)
		place = &(*place)->next;
	*place = piece->next;
	pthread_mutex_unlock(&lock);
	free(piece);
}

static void set_region(struct piece *piece, struct ckt_managed_region *region)
{
	pthread_mutex_lock(&lock);
	piece->region = region;
	pthread_mutex_unlock(&lock);
}

/* The session has resumed, and the worker does not share the pages (ckt_host_memory_lost). */
static int lose(struct ckt_transport *to)
{
	int result = 0;
	pthread_mutex_lock(&lock);
	for (struct piece *piece = pieces; piece && !result; piece = piece->next) {
		if (!piece->region)
			continue;
		ckt_range_set_shared(piece->base, false);
		piece->lost = true;
		const void *contents = ckt_managed_wake(piece->region);
		result = contents ? ckt_host_memory_fill(to, piece->base, contents, piece->size)
				  : -ENOMEM;
	}
	pthread_mutex_unlock(&lock);
	return result ? result : ckt_host_memory_fill(to, 0, NULL, 0);
}

static CUresult map(struct piece *piece, uint64_t base, uint64_t context)
{
	struct ckt_managed_region *region;
	if (!ckt_host_memory_map(piece->base - base, piece->size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = ckt_managed_prepare(piece->base, piece->size, context, &region);
	if (!result) {
		set_region(piece, region);
		result = CKT_WAITED(host_map, HOST_MAP, CKT_CALL_F_NUMBERED, NULL,
			.address = piece->base, .size = piece->size);
		if (result) {
			set_region(piece, NULL);
			ckt_managed_forget(piece->base);
		}
	}
	if (result)
		ckt_host_memory_unmap(piece->base - base, piece->size);
	return result;
}

bool ckt_shared_alloc(const struct ckt_context *context, uint64_t size, uint64_t *ret_address)
{
	uint64_t base, room;
	if (!ckt_host_memory_place(&base, &room))
		return false;
	atomic_store(&ckt_host_memory_lost, lose);
	struct piece *piece = take_addresses(base, room, size);
	if (!piece)
		return false;
	CUresult result = map(piece, base, context->object.id);
	if (result) {
		ckt_debug("cannot share %llu bytes of pinned memory: CUDA error %d",
			(unsigned long long)size, result);
		give_addresses(piece);
		return false;
	}
	*ret_address = piece->base;
	return true;
}

/* Precondition: locked. */
static struct piece *find(uint64_t address)
{
	struct piece *piece = pieces;
	while (piece && piece->base != address)
		piece = piece->next;
	return piece;
}

bool ckt_shared_now(uint64_t address)
{
	pthread_mutex_lock(&lock);
	const struct piece *piece = find(address);
	bool now = piece && !piece->lost;
	pthread_mutex_unlock(&lock);
	return now;
}

bool ckt_shared_free(uint64_t address)
{
	uint64_t base, room;
	pthread_mutex_lock(&lock);
	struct piece *piece = find(address);
	pthread_mutex_unlock(&lock);
	if (!piece)
		return false;
	set_region(piece, NULL);
	ckt_managed_forget(address);
	ckt_host_memory_place(&base, &room);
	ckt_host_memory_unmap(address - base, piece->size);
	CKT_BATCHED(host_unmap, HOST_UNMAP, .address = address, .size = piece->size);
	give_addresses(piece);
	return true;
}
