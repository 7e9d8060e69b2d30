/* SPDX-License-Identifier: Apache-2.0 */
/* Sequence numbers and stored replies; see replies.h. */
#include "server/worker/session/replies.h"

#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "server/worker/session/host_budget.h"
#include "base/grow.h"

/* With the memory that a small result has ahead. */
enum { ENTRY_BYTES = sizeof(struct ckt_stored) + 512 };

void ckt_replies_init(struct ckt_replies *replies)
{
	*replies = (struct ckt_replies){0};
	pthread_mutex_init(&replies->lock, NULL);
}

void ckt_replies_fini(struct ckt_replies *replies)
{
	for (size_t i = 0; i < replies->count; i++) {
		ckt_budget_uncharge(replies->list[replies->first + i].size + ENTRY_BYTES);
		free(replies->list[replies->first + i].body);
	}
	free(replies->list);
	pthread_mutex_destroy(&replies->lock);
	*replies = (struct ckt_replies){0};
}

enum ckt_seq_verdict ckt_replies_check(struct ckt_replies *replies, uint64_t seq)
{
	uint64_t executed = atomic_load_explicit(&replies->executed, memory_order_relaxed);
	if (seq == executed + 1)
		return CKT_SEQ_EXECUTE;
	return seq <= executed ? CKT_SEQ_REPLAY : CKT_SEQ_BROKEN;
}

bool ckt_replies_acked(struct ckt_replies *replies, uint64_t acked)
{
	if (acked <= replies->acked)
		return true;
	if (acked > atomic_load_explicit(&replies->executed, memory_order_relaxed))
		return false;
	if (!replies->count) {
		/*
		 * Entries are made and dropped by this thread alone, so nobody else can find one
		 * now.
		 */
		replies->acked = acked;
		return true;
	}
	pthread_mutex_lock(&replies->lock);
	replies->acked = acked;
	/*
	 * A pending entry cannot have been acknowledged; where a peer says so, its reply is simply
	 * not kept.
	 */
	while (replies->count && replies->list[replies->first].seq <= acked) {
		struct ckt_stored *stored = &replies->list[replies->first];
		replies->bytes -= stored->size;
		ckt_budget_uncharge(stored->size + ENTRY_BYTES);
		free(stored->body);
		replies->first++;
		replies->count--;
	}
	if (!replies->count)
		replies->first = 0;
	pthread_mutex_unlock(&replies->lock);
	return true;
}

bool ckt_replies_full(struct ckt_replies *replies)
{
	pthread_mutex_lock(&replies->lock);
	bool full = replies->count >= CKT_REPLIES_MAX || replies->bytes >= CKT_REPLIES_BYTES_MAX;
	pthread_mutex_unlock(&replies->lock);
	return full;
}

int ckt_replies_expect(
	struct ckt_replies *replies, uint64_t seq, uint32_t proc, uint32_t xid, uint64_t epoch)
{
	int error = 0;
	pthread_mutex_lock(&replies->lock);
	if (replies->first + replies->count == replies->room) {
		if (replies->first > replies->room / 2) {
			memmove(replies->list, replies->list + replies->first,
				replies->count * sizeof *replies->list);
			replies->first = 0;
		} else {
			error = CKT_GROW(replies->list, replies->room, replies->room, 64);
		}
	}
	if (!error) {
		replies->list[replies->first + replies->count++] =
			(struct ckt_stored){.seq = seq, .proc = proc, .xid = xid, .epoch = epoch};
		ckt_budget_add(ENTRY_BYTES);
	}
	pthread_mutex_unlock(&replies->lock);
	return error;
}

struct ckt_stored *ckt_replies_find(struct ckt_replies *replies, uint64_t seq)
{
	if (!replies->count)
		return NULL;
	struct ckt_stored *list = &replies->list[replies->first];
	size_t behind = CKT_SORTED_UPPER(list, replies->count, seq, seq);
	return behind && list[behind - 1].seq == seq ? &list[behind - 1] : NULL;
}

void ckt_replies_store(struct ckt_replies *replies, struct ckt_stored *stored, uint8_t *body,
	size_t size, int32_t deferred, uint32_t accept_stat)
{
	stored->body = body;
	stored->size = size;
	stored->deferred = deferred;
	stored->accept_stat = accept_stat;
	stored->done = true;
	replies->bytes += size;
	ckt_budget_add(size);
}
