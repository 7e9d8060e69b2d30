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

UNIT_SUITE(object_kind, {"find", test_find})
