/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint/freeze/spare_memory.c: spare memory: as much as the session holds, and only where the
 * card keeps a reserve beside it.
 */
#include "checkpoint/freeze/spare_memory.h"
#include "checkpoint/memory_operations.h"
#include "server/worker/memory/window.h"
#include "server/worker/objects/context.h"
#include "tests/unit/worker/inside.h"

static void test_take(void)
{
	struct ckt_spare spare, other;
	uint64_t memory = inside_memory(8 << 20, 1);
	ckt_spare_memory_take(&ckt_worker, &spare);
	uint64_t held = 0;
	for (size_t i = 0; i < ckt_worker.devices[0].memory.extent_count; i++)
		held += ckt_worker.devices[0].memory.extents[i].use == CKT_EXTENT_CACHED
			? 0
			: ckt_worker.devices[0].memory.extents[i].size;
	YES(held >= 8 << 20);
	uint64_t beside = ckt_memory_charged(&ckt_worker.devices[0].memory);
	IS(spare.size,
		(held + beside + 2 * CKT_MEMORY_EXTENT - 1) / CKT_MEMORY_EXTENT *
			CKT_MEMORY_EXTENT);
	inside_fill(CKT_SPARE_BASE, 5, spare.size);
	IS(inside_word(CKT_SPARE_BASE + spare.size - 4), 5);
	/* Its place is taken. */
	ckt_spare_memory_take(&ckt_worker, &other);
	IS(other.size, 0);
	ckt_spare_memory_give(&ckt_worker, &spare);
	IS(spare.size, 0);
	ckt_spare_memory_give(&ckt_worker, &spare);
	/* A session that has most of the card: 4 GiB, of which a sixteenth stays free. */
	uint64_t most = inside_memory((uint64_t)2 << 30, 0);
	ckt_spare_memory_take(&ckt_worker, &spare);
	IS(spare.size, 0);
	inside_free(most);
	ckt_worker.checkpoint.old_image = true;
	ckt_spare_memory_take(&ckt_worker, &spare);
	IS(spare.size, 0);
	ckt_worker.checkpoint.old_image = false;
	inside_free(memory);
	ckt_memory_trim(&ckt_worker.devices[0].memory);
}

/* A device where the session has nothing needs no part; the others' lie behind the first's. */
static void test_others(void)
{
	struct ckt_spare spare;
	struct ckt_memory *second = &ckt_worker.devices[1].memory;
	uint64_t memory = inside_memory(4 << 20, 1), there = 0, owner;
	MUST(ckt_worker.device_count, 2);
	MUST(ckt_worker_use_context(&ckt_worker, ckt_handle_primary(1)), CUDA_SUCCESS);
	ckt_spare_memory_take(&ckt_worker, &spare);
	uint64_t first = spare.size;
	YES(first > 0);
	/* Earlier tests may have left something on the second device. */
	bool held = ckt_memory_operations.held_bytes(&ckt_worker, 1) > 0;
	ckt_spare_memory_take_others(&ckt_worker, &spare);
	IS(spare.parts[1].size > 0, held);
	IS(spare.size, first + spare.parts[1].size);
	ckt_spare_memory_give(&ckt_worker, &spare);
	ckt_spare_memory_take(&ckt_worker, &spare);
	MUST(ckt_memory_alloc(second, 8 << 20, ckt_handle_primary(1), &there), CUDA_SUCCESS);
	ckt_spare_memory_take_others(&ckt_worker, &spare);
	YES(spare.parts[1].size >= 8 << 20);
	IS(spare.parts[1].address, CKT_SPARE_BASE + first);
	IS(spare.size, first + spare.parts[1].size);
	IS(ckt_spare_memory_use(&ckt_worker, 1), CUDA_SUCCESS);
	inside_fill(spare.parts[1].address, 6, spare.parts[1].size);
	IS(inside_word(spare.parts[1].address + spare.parts[1].size - 4), 6);
	/* Once more takes nothing again; all are given back. */
	uint64_t all = spare.size;
	ckt_spare_memory_take_others(&ckt_worker, &spare);
	IS(spare.size, all);
	ckt_spare_memory_give(&ckt_worker, &spare);
	IS(spare.size, 0);
	ckt_spare_memory_take_others(&ckt_worker, &spare);
	IS(spare.size, 0); /* none without the first's */
	IS(ckt_memory_free_begin(second, there, &owner), CUDA_SUCCESS);
	ckt_memory_free_end(second, there);
	ckt_memory_trim(second);
	MUST(ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0)), CUDA_SUCCESS);
	inside_free(memory);
	ckt_memory_trim(&ckt_worker.devices[0].memory);
}

UNIT_SUITE(spare, {"take", test_take}, {"others", test_others})
