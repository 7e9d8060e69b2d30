/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exactly once: which numbered calls were executed, and the replies that the client may still ask
 * for again.
 *
 *	seq     1 ... acked ... executed | next ...
 *	               kept: one entry for every waited numbered call in (acked, executed], pending or with its reply
 *
 * Threading: `executed` is written by the executor only; entries are made by the executor and
 * finished from any thread, under the lock.  The common case, a batched call with nothing kept,
 * takes no lock.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ckt_seq_verdict {
	CKT_SEQ_EXECUTE, /* the next one */
	CKT_SEQ_REPLAY,  /* executed before, see ckt_replies_find */
	CKT_SEQ_BROKEN,  /* a gap: the peer does not speak our protocol */
};

struct ckt_stored {
	uint64_t seq;
	uint32_t proc; /* ckt_stat_index() */
	bool done;
	int32_t deferred; /* the descriptor that went with it */
	uint32_t accept_stat;
	/* While pending, or after a resend: the connection that waits. */
	uint32_t xid;
	uint64_t epoch;
	uint8_t *body; /* from the CUresult on; owned */
	size_t size;
};

struct ckt_replies {
	pthread_mutex_t lock;
	_Atomic uint64_t executed;
	uint64_t acked;
	/* ascending by seq: a deque, list[first .. first + count) */
	struct ckt_stored *list;
	size_t first, count, room;
	uint64_t bytes;
};

/*
 * A client acknowledges what it has with its next command, so only its waiting threads' replies are
 * kept.  A client that does not acknowledge is not served further: it would fill our memory.
 */
enum { CKT_REPLIES_MAX = 1 << 16, CKT_REPLIES_BYTES_MAX = 64 << 20 };

void ckt_replies_init(struct ckt_replies *replies);
void ckt_replies_fini(struct ckt_replies *replies);

enum ckt_seq_verdict ckt_replies_check(struct ckt_replies *replies, uint64_t seq);
/*
 * The client has everything up to and including acked.  false: it acknowledges commands that were
 * never executed.
 */
bool ckt_replies_acked(struct ckt_replies *replies, uint64_t acked);
/* The maximum is kept: no further reply may be. */
bool ckt_replies_full(struct ckt_replies *replies);
/* Makes the pending entry of a waited call; executed is advanced by the caller.  0 or -ENOMEM. */
int ckt_replies_expect(
	struct ckt_replies *replies, uint64_t seq, uint32_t proc, uint32_t xid, uint64_t epoch);
/*
 * Precondition for the two below: replies->lock held.  The entry of seq, or NULL (acknowledged, or
 * it was batched); valid until unlock.
 */
struct ckt_stored *ckt_replies_find(struct ckt_replies *replies, uint64_t seq);
/* Takes the ownership of body. */
void ckt_replies_store(struct ckt_replies *replies, struct ckt_stored *stored, uint8_t *body,
	size_t size, int32_t deferred, uint32_t accept_stat);
