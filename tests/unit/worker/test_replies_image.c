/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/replies_image.c: replies that the client has not acknowledged go into an
 * image and come back, those of calls that fail included.
 */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "server/worker/objects/object_kinds.h"
#include "tests/unit/worker/inside.h"

static struct ckt_worker worker, restored;

/* A call that was rejected has no body, and no memory for one. */
static void store(uint64_t seq, const char *body, int32_t deferred, uint32_t accept_stat)
{
	MUST(ckt_replies_expect(&worker.replies, seq, 40 + (uint32_t)seq, 1, 1), 0);
	pthread_mutex_lock(&worker.replies.lock);
	ckt_replies_store(&worker.replies, ckt_replies_find(&worker.replies, seq),
		accept_stat ? NULL : (uint8_t *)strdup(body), strlen(body), deferred, accept_stat);
	pthread_mutex_unlock(&worker.replies.lock);
}

static void check(uint64_t seq, const char *body, int32_t deferred, uint32_t accept_stat)
{
	pthread_mutex_lock(&restored.replies.lock);
	const struct ckt_stored *stored = ckt_replies_find(&restored.replies, seq);
	CU_ASSERT_PTR_NOT_NULL_FATAL(stored);
	YES(stored->done);
	IS(stored->proc, 40 + seq);
	IS(stored->deferred, deferred);
	IS(stored->accept_stat, accept_stat);
	IS(stored->size, strlen(body));
	IS(memcmp(stored->body, body, stored->size), 0);
	pthread_mutex_unlock(&restored.replies.lock);
}

static void test_replies(void)
{
	struct ckt_saving s = {.worker = &worker};
	struct ckt_loading l = {.worker = &restored};
	ckt_replies_init(&worker.replies);
	ckt_replies_init(&restored.replies);
	atomic_store(&worker.replies.executed, 12);
	worker.replies.acked = 8;
	atomic_store(&worker.deferred, 700);
	store(9, "nine", 0, 0);
	store(11, "", 719, 3);
	MUST(ckt_reply_kind.save_table(&s), 0);
	IS(s.image.replies.replies_len, 2);
	/* As it is decoded. */
	free(s.image.replies.replies_val[1].body.body_val);
	s.image.replies.replies_val[1].body.body_val = NULL;
	l.image = s.image;
	IS(ckt_reply_kind.stage, CKT_LOAD_IDENTITY);
	MUST(ckt_reply_kind.load_rest(&l), 0);
	IS(atomic_load(&restored.replies.executed), 12);
	IS(restored.replies.acked, 8);
	IS(atomic_load(&restored.deferred), 700);
	check(9, "nine", 0, 0);
	check(11, "", 719, 3);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&s.image);
	ckt_replies_fini(&worker.replies);
	ckt_replies_fini(&restored.replies);
}

UNIT_SUITE(replies_image, {"replies", test_replies})
