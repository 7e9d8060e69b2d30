/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device heap of malloc() in kernels: one block of CU_LIMIT_MALLOC_HEAP_SIZE in units of 16
 * bytes.  The first malloc() of a kernel creates it.  A header of 16 bytes before each piece holds
 * the piece's size.  The heap lives as long as its context.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/memory/heap.h"
#include "softgpu/context/context.h"
#include "softgpu/memory/arena.h"
#include "softgpu/memory/memmap.h"
#include "softgpu/memory/memory.h"
#include "softgpu/memory/range.h"

static const uint64_t heap_magic = 0x43524b5448454150;

struct heap_header {
	uint64_t magic, size;
};

/* Precondition: context->lock is held. */
static struct ckt_soft_arena *heap_of(struct ckt_soft_context *context)
{
	if (context->heap)
		return context->heap;
	uint64_t base,
		size = (context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] + CKT_SOFT_PAGE - 1) &
		~(uint64_t)(CKT_SOFT_PAGE - 1);
	struct ckt_soft_arena *heap = calloc(1, sizeof(*heap));
	if (!heap || !size ||
		ckt_soft_memory_alloc(context, size, CKT_SOFT_RANGE_HEAP, &base) != CUDA_SUCCESS) {
		free(heap);
		return NULL;
	}
	if (ckt_soft_arena_init_at(heap, base, size)) {
		free(heap); /* the context frees the block */
		return NULL;
	}
	return context->heap = heap;
}

void *ckt_soft_heap_alloc(struct ckt_soft_context *context, uint64_t size_bytes)
{
	if (size_bytes == 0 || size_bytes > 1ULL << 40)
		return NULL;
	pthread_mutex_lock(&context->lock);
	struct ckt_soft_arena *heap = heap_of(context);
	pthread_mutex_unlock(&context->lock);
	if (!heap)
		return NULL;
	uint64_t size = (size_bytes + 2 * sizeof(struct heap_header) - 1) &
		~(uint64_t)(sizeof(struct heap_header) - 1);
	uint64_t address = ckt_soft_arena_alloc(heap, size);
	if (!address)
		return NULL;
	struct heap_header header = {.magic = heap_magic, .size = size};
	memcpy((void *)(uintptr_t)address, &header, sizeof(header));
	return (void *)(uintptr_t)(address + sizeof(header));
}

void ckt_soft_heap_free(struct ckt_soft_context *context, void *address)
{
	uint64_t at = (uint64_t)(uintptr_t)address - sizeof(struct heap_header);
	pthread_mutex_lock(&context->lock);
	struct ckt_soft_arena *heap = context->heap;
	pthread_mutex_unlock(&context->lock);
	if (!address || !heap || at < heap->base || at - heap->base >= heap->size ||
		at % sizeof(struct heap_header))
		return;
	/* Kernels can overwrite the header, so check its size against the end of the heap. */
	struct heap_header header;
	memcpy(&header, (void *)(uintptr_t)at, sizeof(header));
	if (header.magic != heap_magic || header.size > heap->base + heap->size - at)
		return;
	memset((void *)(uintptr_t)at, 0, sizeof(header));
	ckt_soft_arena_free(heap, at, header.size);
}

void ckt_soft_heap_fini(struct ckt_soft_context *context)
{
	if (context->heap) {
		ckt_soft_arena_fini(context->heap);
		free(context->heap);
		context->heap = NULL;
	}
}
