/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging memory: pieces of their sizes, none handed out twice, the ring waits for what is in
 * flight.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "server/worker/objects/fence.h"
#include "server/worker/memory/staging.h"
#include "tests/unit/worker/inside.h"

static void test_to_host(void)
{
	struct ckt_staging *staging = &ckt_worker.staging;
	static struct ckt_staging_piece *pieces[CKT_STAGING_TO_HOST + CKT_STAGING_SMALLS + 1];
	size_t count = 0, small = 0;
	/* Small ones first, then the large ones serve small requests too. */
	while ((pieces[count] = ckt_staging_to_host(staging, CKT_STAGING_SMALL)) &&
		count < COUNT(pieces) - 1) {
		small += pieces[count]->size == CKT_STAGING_SMALL;
		memset(pieces[count]->data, (int)count, pieces[count]->size);
		count++;
	}
	IS(count, CKT_STAGING_TO_HOST + CKT_STAGING_SMALLS);
	IS(small, CKT_STAGING_SMALLS);
	CU_ASSERT_PTR_NULL(ckt_staging_to_host(staging, 1));
	unsigned wrong = 0;
	for (size_t i = 0; i < count; i++) {
		wrong += pieces[i]->data[0] != (uint8_t)i ||
			pieces[i]->data[pieces[i]->size - 1] != (uint8_t)i;
		wrong += pieces[i]->data < staging->base ||
			pieces[i]->data + pieces[i]->size > staging->base + staging->size;
	}
	IS(wrong, 0);
	for (size_t i = 0; i < count; i++)
		ckt_staging_give(staging, pieces[i]);
	/* Large requests leave the small pieces alone. */
	for (count = 0; (pieces[count] = ckt_staging_to_host(staging, CKT_STAGING_SMALL + 1));
		count++)
		IS(pieces[count]->size, CKT_STAGING_PIECE);
	IS(count, CKT_STAGING_TO_HOST);
	while (count)
		ckt_staging_give(staging, pieces[--count]);
	struct ckt_staging_piece *own = ckt_staging_own(100000);
	YES(own->own && own->size == 100000);
	memset(own->data, 1, own->size);
	ckt_staging_give(staging, own);
}

static void test_to_device(void)
{
	struct ckt_staging *staging = &ckt_worker.staging;
	struct ckt_fences *fences = ckt_worker.current->ctx.fences;
	struct ckt_staging_piece *ring[CKT_STAGING_TO_DEVICE];
	ckt_staging_forget(staging, fences);
	size_t spare = fences->spare_count;
	staging->next_to_device = 0;
	for (unsigned i = 0; i < CKT_STAGING_TO_DEVICE; i++) {
		ring[i] = ckt_staging_to_device(staging);
		IS(ring[i]->size, CKT_STAGING_PIECE);
		for (unsigned k = 0; k < i; k++)
			YES(ring[k] != ring[i]);
		IS(ckt_staging_sent(ring[i], fences, CU_STREAM_LEGACY), CUDA_SUCCESS);
		CU_ASSERT_PTR_NOT_NULL(ring[i]->event);
	}
	IS(fences->spare_count, spare - CKT_STAGING_TO_DEVICE);
	/* The ring comes round: the first is idle again, its event given back. */
	YES(ckt_staging_to_device(staging) == ring[0]);
	CU_ASSERT_PTR_NULL(ring[0]->event);
	IS(fences->spare_count, spare - CKT_STAGING_TO_DEVICE + 1);
	ckt_staging_forget(staging, fences);
	IS(fences->spare_count, spare);
	for (unsigned i = 0; i < CKT_STAGING_TO_DEVICE; i++)
		CU_ASSERT_PTR_NULL(ring[i]->event);
	ckt_staging_forget(staging, fences);
	IS(fences->spare_count, spare);
}

/* What --staging says is shared out; some of each kind is there in any case. */
static void test_sizes(void)
{
	static const struct {
		uint64_t bytes;
		unsigned to_device, to_host, lanes;
	} cases[] = {{0, CKT_STAGING_TO_DEVICE, CKT_STAGING_TO_HOST, CKT_STAGING_LANES},
		{CKT_STAGING_BYTES, CKT_STAGING_TO_DEVICE, CKT_STAGING_TO_HOST, CKT_STAGING_LANES},
		{1, 1, 4, 3}, {CKT_STAGING_LEAST, 1, 4, 3}, {20 << 20, 4, 8, 8},
		{100 << 20, 8, 46, 46}, {400 << 20, 8, 264, CKT_STAGING_LANES_MAX}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ckt_staging staging;
		IS(ckt_staging_init(&staging, cases[i].bytes), 0);
		IS(staging.to_device_count, cases[i].to_device);
		IS(staging.to_host_count, cases[i].to_host);
		IS(staging.lane_count, cases[i].lanes);
		YES(staging.registered);
		ckt_driver.cuMemHostUnregister(staging.base);
		munmap(staging.base, staging.size);
		free(staging.to_device);
	}
}

/* A lane's thread waits for a piece, or for the end of its lanes. */
static void test_lanes(void)
{
	struct ckt_staging *staging = &ckt_worker.staging;
	struct ckt_staging_piece *pieces[CKT_STAGING_LANES];
	_Atomic bool gone = false;
	for (int i = 0; i < CKT_STAGING_LANES; i++) {
		pieces[i] = ckt_staging_lane_take(staging, &gone);
		YES(pieces[i] && pieces[i]->of_lanes && pieces[i]->size == CKT_STAGING_PIECE);
	}
	/* Copies without lanes have theirs. */
	struct ckt_staging_piece *other = ckt_staging_to_host(staging, CKT_STAGING_PIECE);
	YES(other && !other->of_lanes);
	ckt_staging_give(staging, other);
	gone = true;
	CU_ASSERT_PTR_NULL(ckt_staging_lane_take(staging, &gone));
	gone = false;
	ckt_staging_give(staging, pieces[3]);
	YES(ckt_staging_lane_take(staging, &gone) == pieces[3]);
	for (int i = 0; i < CKT_STAGING_LANES; i++)
		ckt_staging_give(staging, pieces[i]);
}

UNIT_SUITE(staging, {"sizes", test_sizes}, {"lanes", test_lanes}, {"to host", test_to_host},
	{"to device", test_to_device})
