/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint/object_kind.c: looking kinds up.  That each has a table is for test_object_kinds.c.
 */
#include "checkpoint/object_kind.h"
#include "rpc/handle.h"
#include "server/worker/objects/object_kinds.h"
#include "tests/unit/suite.h"

static void test_find(void)
{
	CU_ASSERT_PTR_EQUAL(ckt_object_kind_of(CKT_KIND_MIPMAP), &ckt_array_kind);
	CU_ASSERT_PTR_EQUAL(ckt_object_kind_of(CKT_KIND_ARRAY), &ckt_array_kind);
	CU_ASSERT_PTR_EQUAL(ckt_object_kind_of(CKT_KIND_GRAPH_EXEC), &ckt_graph_kind);
	CU_ASSERT_PTR_NULL(ckt_object_kind_of(CKT_KIND_LINK));
	const struct ckt_journal_step *step = ckt_journal_step_of(CKT_JOURNAL_EVENTS);
	CU_ASSERT_PTR_EQUAL(step, ckt_event_kind.steps);
	CU_ASSERT_PTR_NULL(ckt_journal_step_of(CKT_JOURNAL_LIBRARY + 20));
}

static void add(const struct ckt_contents *contents, void *opaque)
{
	uint64_t *sums = opaque;
	sums[contents->owner ? 1 : 0] += contents->size;
	sums[2] += contents->taken ? contents->size : 0;
}

/* Every range of an image, whichever kind it is of. */
static void test_contents(void)
{
	ckt_image_extent extent = {.address = 1 << 21, .size = 1 << 21};
	ckt_image_device device = {.extents = {1, &extent}};
	ckt_image_physical physical = {.id = 5, .size = 1 << 22, .contents = 1 << 23};
	ckt_image_global global = {.address = 1 << 24, .size = 4};
	ckt_image_module module = {.id = 6, .globals = {1, &global}};
	ckt_image_array array = {.id = 7,
		.width = 16,
		.format = CU_AD_FORMAT_UNSIGNED_INT8,
		.channels = 1,
		.live = true};
	ckt_image image = {.devices = {1, &device},
		.physicals = {1, &physical},
		.modules = {1, &module},
		.arrays = {1, &array}};
	uint64_t sums[3] = {0};
	ckt_contents_visit_all(&image, add, sums);
	IS(sums[0], 1 << 21);
	IS(sums[1], (1 << 22) + 4 + 16);
	IS(sums[2], (1 << 21) + (1 << 22) + 16);
}

/* Objects whose contents have an address have none to move by offset. */
static void test_move(void)
{
	struct ckt_object *none = NULL;
	IS(ckt_piece_move(none, ckt_handle_make(CKT_KIND_STREAM, 1, 1000), 0, 4, CKT_PIECE_TO_HOST,
		   0, NULL),
		CUDA_ERROR_INVALID_HANDLE);
}

UNIT_SUITE(object_kind, {"contents", test_contents}, {"move", test_move}, {"find", test_find})
