/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/event_ring.c: two rings with one numbering, and how many events are gone. */
#include "server/daemon/event_ring.h"

#include "inside.h"

static void test_order(void)
{
	uint64_t before = ckt_event_ring_last();
	ckt_event_ring_add(false, 0)->name = CKT_EVENT_STARTED;
	ckt_event_ring_add(true, 0)->name = CKT_EVENT_WAIT;
	ckt_event_ring_add(false, 0)->name = CKT_EVENT_ENDED;
	IS(ckt_event_ring_last(), before + 3);
	for (uint64_t i = 0; i < 3; i++)
		IS(ckt_event_ring_next(before + i, true)->number, before + i + 1);
	IS(ckt_event_ring_next(before, false)->name, CKT_EVENT_STARTED);
	IS(ckt_event_ring_next(before + 1, false)->name, CKT_EVENT_ENDED);
	CU_ASSERT_PTR_NULL(ckt_event_ring_next(before + 3, true));
	IS(ckt_event_ring_next(before, true)->facts.gpu, -1);
	IS(ckt_event_ring_lost(before), 0);
}

/* Ten thousand decisions push no event of a session out, and are counted where they are gone. */
static void test_flood(void)
{
	uint64_t before = ckt_event_ring_last();
	ckt_event_ring_add(false, 0)->name = CKT_EVENT_SAVED;
	for (int i = 0; i < 10000; i++)
		ckt_event_ring_add(true, 0)->name = CKT_EVENT_LEASED;
	IS(ckt_event_ring_next(before, false)->name, CKT_EVENT_SAVED);
	IS(ckt_event_ring_lost(before), 10000 - 2048);
	uint64_t oldest = ckt_event_ring_next(before + 1, true)->number;
	IS(oldest, before + 1 + 10000 - 2048 + 1);
	IS(ckt_event_ring_lost(oldest - 1), 0);
	IS(ckt_event_ring_lost(oldest - 2), 1);
	IS(ckt_event_ring_lost(ckt_event_ring_last()), 0);
	IS(ckt_event_ring_lost(UINT64_MAX), 0);
	/* Who begins to follow has missed nothing. */
	IS(ckt_event_ring_lost(0), 0);
	for (int i = 0; i < 600; i++)
		ckt_event_ring_add(false, 0)->name = CKT_EVENT_SAVED;
	IS(ckt_event_ring_next(before, false)->number, ckt_event_ring_last() - 511);
}

/* One that stands for many counts as all of these, kept or gone. */
static void test_folded(void)
{
	uint64_t before = ckt_event_ring_last();
	ckt_event_ring_add(true, 99)->name = CKT_EVENT_LEASED;
	uint64_t first = ckt_event_ring_last();
	IS(first, before + 100);
	IS(ckt_event_ring_next(before, true)->number, first);
	IS(ckt_event_ring_next(before, true)->folded, 99);
	IS(ckt_event_ring_lost(before), 0);
	/* A number that nobody was told. */
	IS(ckt_event_ring_lost(before + 50), 0);
	for (int i = 0; i < 2048; i++)
		ckt_event_ring_add(true, 2)->name = CKT_EVENT_FREED;
	IS(ckt_event_ring_lost(before), 100);
	IS(ckt_event_ring_lost(first), 0);
	ckt_event_ring_add(true, 0)->name = CKT_EVENT_FREED;
	IS(ckt_event_ring_lost(first), 3);
}

UNIT_SUITE(event_ring, {"order", test_order}, {"flood", test_flood}, {"folded", test_folded})
