/* SPDX-License-Identifier: Apache-2.0 */
/* Sequence numbers and the replies kept for a client that asks again. */
#include <stdlib.h>
#include <string.h>

#include "server/worker/session/replies.h"
#include "tests/unit/suite.h"

static void execute(struct ckt_replies *replies, uint64_t seq, bool waited)
{
	CU_ASSERT_EQUAL(ckt_replies_check(replies, seq), CKT_SEQ_EXECUTE);
	if (waited)
		ckt_replies_expect(replies, seq, 1, (uint32_t)seq, 1);
	atomic_store(&replies->executed, seq);
}

static void store(struct ckt_replies *replies, uint64_t seq)
{
	pthread_mutex_lock(&replies->lock);
	struct ckt_stored *stored = ckt_replies_find(replies, seq);
	if (stored) {
		uint8_t *body = malloc(8);
		memcpy(body, &seq, 8);
		ckt_replies_store(replies, stored, body, 8, 0, 0);
	}
	pthread_mutex_unlock(&replies->lock);
}

static void test_replies(void)
{
	struct ckt_replies replies;
	ckt_replies_init(&replies);
	CU_ASSERT_EQUAL(ckt_replies_check(&replies, 2), CKT_SEQ_BROKEN);
	CU_ASSERT_FALSE(ckt_replies_acked(&replies, 1));
	execute(&replies, 1, false);
	execute(&replies, 2, true);
	execute(&replies, 3, false);
	execute(&replies, 4, true);
	CU_ASSERT_EQUAL(ckt_replies_check(&replies, 4), CKT_SEQ_REPLAY);
	CU_ASSERT_EQUAL(ckt_replies_check(&replies, 1), CKT_SEQ_REPLAY);
	CU_ASSERT_EQUAL(ckt_replies_check(&replies, 6), CKT_SEQ_BROKEN);
	store(&replies, 4);
	CU_ASSERT_PTR_NULL(ckt_replies_find(&replies, 1));
	CU_ASSERT_FALSE(ckt_replies_find(&replies, 2)->done);
	CU_ASSERT_TRUE(ckt_replies_find(&replies, 4)->done);
	CU_ASSERT_EQUAL(replies.bytes, 8);
	CU_ASSERT_TRUE(ckt_replies_acked(&replies, 3));
	CU_ASSERT_PTR_NULL(ckt_replies_find(&replies, 2));
	CU_ASSERT_PTR_NOT_NULL(ckt_replies_find(&replies, 4));
	CU_ASSERT_TRUE(ckt_replies_acked(&replies, 1)); /* old news */
	CU_ASSERT_TRUE(ckt_replies_acked(&replies, 4));
	CU_ASSERT_EQUAL(replies.bytes, 0);
	CU_ASSERT_FALSE(ckt_replies_acked(&replies, 5));
	/*
	 * Many: what is not acknowledged is found, in whatever order it was finished; memory does
	 * not grow without end.
	 */
	for (uint64_t seq = 5; seq < 50000; seq++) {
		execute(&replies, seq, seq % 3 != 0);
		if (seq > 20)
			store(&replies, seq - 7);
		CU_ASSERT_TRUE(ckt_replies_acked(&replies, seq - 10 > seq ? 0 : seq - 10));
		if (seq % 1000 == 1) {
			struct ckt_stored *stored = ckt_replies_find(&replies, seq - 8);
			CU_ASSERT_EQUAL(stored != NULL, (seq - 8) % 3 != 0);
			if (stored && stored->done) {
				uint64_t kept;
				memcpy(&kept, stored->body, 8);
				CU_ASSERT_EQUAL(kept, seq - 8);
			}
		}
	}
	CU_ASSERT_TRUE(replies.room <= 256);
	ckt_replies_fini(&replies);
}

/*
 * What cannot be: an acknowledgement of what was never executed, and a reply to what was
 * acknowledged.
 */
static void test_edges(void)
{
	struct ckt_replies replies;
	ckt_replies_init(&replies);
	IS(ckt_replies_check(&replies, 0), CKT_SEQ_REPLAY);
	IS(ckt_replies_check(&replies, UINT64_MAX), CKT_SEQ_BROKEN);
	YES(ckt_replies_acked(&replies, 0));
	NO(ckt_replies_acked(&replies, UINT64_MAX));
	IS(replies.acked, 0);
	for (uint64_t seq = 1; seq <= 200; seq++)
		execute(&replies, seq, true);
	IS(replies.count, 200);
	/* Acknowledged while pending: its reply, when it comes, has no place any more. */
	YES(ckt_replies_acked(&replies, 150));
	IS(replies.count, 50);
	store(&replies, 150);
	IS(replies.bytes, 0);
	store(&replies, 151);
	store(&replies, 200);
	IS(replies.bytes, 16);
	/* Room is taken again from the front. */
	size_t room = replies.room;
	for (uint64_t seq = 201; seq <= 300; seq++)
		execute(&replies, seq, true);
	IS(replies.room, room);
	IS(ckt_replies_find(&replies, 300)->xid, 300);
	CU_ASSERT_PTR_NULL(ckt_replies_find(&replies, 150));
	CU_ASSERT_PTR_NULL(ckt_replies_find(&replies, 301));
	ckt_replies_fini(&replies);
	IS(replies.bytes + replies.count + replies.room, 0);
}

UNIT_SUITE(replies, {"replies", test_replies}, {"edges", test_edges})
