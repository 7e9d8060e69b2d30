/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/memory/memory_operations.c: every operation that checkpoint/memory_operations.h asks
 * for is there, and does what it says.  Pausing uses most of them: test_pause.c.
 */
#include <string.h>

#include "checkpoint/memory_operations.h"
#include "tests/unit/worker/inside.h"

/* No operation is missing: checkpoint/ calls them without a look. */
static void test_complete(void)
{
	void *operations[sizeof ckt_memory_operations / sizeof(void *)];
	memcpy(operations, &ckt_memory_operations, sizeof operations);
	for (size_t i = 0; i < COUNT(operations); i++)
		CU_ASSERT_PTR_NOT_NULL(operations[i]);
}

static void test_gpus(void)
{
	struct ckt_memory_layout layout = ckt_memory_operations.layout(&ckt_worker);
	IS(layout.device_count, ckt_worker.device_count);
	IS(layout.base, ckt_worker.window_base);
	IS(layout.size, ckt_worker.window_size);
	IS(layout.slice_size, ckt_worker.slice_size);
	IS(ckt_device_count(&ckt_worker), ckt_worker.device_count);
	YES(ckt_memory_operations.window_holds(layout.base, layout.size));
	NO(ckt_memory_operations.window_holds(layout.base, 2 * layout.size));
	TEXT(ckt_memory_operations.describe(&ckt_worker, 1).name, ckt_worker.devices[1].name);
	IS(ckt_memory_operations.describe(&ckt_worker, 1).major, ckt_worker.devices[1].major);
	IS(ckt_memory_operations.driver_version(&ckt_worker), ckt_worker.driver_version);
}

struct seen {
	uint64_t address, bytes;
	int found;
};

static int visit(const struct ckt_region *region, void *opaque)
{
	struct seen *seen = opaque;
	seen->bytes += region->device == 0 && !region->physical ? region->size : 0;
	seen->found += !region->physical && seen->address >= region->address &&
		seen->address - region->address < region->size;
	return 0;
}

static int stop(const struct ckt_region *region, void *opaque)
{
	(void)region;
	return ++*(int *)opaque == 1 ? -7 : -8;
}

static void test_regions(void)
{
	struct seen seen = {.address = inside_memory(5 << 20, 1)};
	int calls = 0;
	IS(ckt_memory_operations.visit_regions(&ckt_worker, visit, &seen), 0);
	IS(seen.found, 1);
	IS(ckt_memory_operations.held_bytes(&ckt_worker, 0),
		seen.bytes + ckt_memory_charged(&ckt_worker.devices[0].memory));
	/* The first that fails is the last. */
	IS(ckt_memory_operations.visit_regions(&ckt_worker, stop, &calls), -7);
	IS(calls, 1);
	inside_free(seen.address);
	ckt_memory_trim(&ckt_worker.devices[0].memory);
}

UNIT_SUITE(memory_operations, {"complete", test_complete}, {"gpus", test_gpus},
	{"regions", test_regions})
