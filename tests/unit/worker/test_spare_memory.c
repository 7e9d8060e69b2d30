/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint/freeze/spare_memory.c: spare memory: as much as the session holds, and only where the
 * card keeps a reserve beside it.
 */
#include "checkpoint/freeze/spare_memory.h"
#include "server/worker/memory/window.h"
#include "tests/unit/worker/inside.h"

static void test_take(void)
{
	struct ckt_spare spare, other;
	uint64_t memory = inside_memory(8 << 20, 1);
	/* Sessions of several devices are saved frozen. */
	ckt_spare_memory_take(&ckt_worker, &spare);
	IS(spare.size, 0);
	ckt_spare_memory_give(&ckt_worker, &spare);
	ckt_worker.device_count = 1;
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
	ckt_worker.device_count = 2;
	inside_free(memory);
	ckt_memory_trim(&ckt_worker.devices[0].memory);
}

UNIT_SUITE(spare, {"take", test_take})
