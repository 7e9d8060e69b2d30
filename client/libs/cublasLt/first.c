/*
 * Contents of calls that the genuine library has taken once, by hash; see internal.h.
 *
 * A set of a bounded number, eight places to a bucket; a content that lost its place is waited for again.  Two contents of one hash are taken
 * for one, and the second's status then comes late, as that of any batched call.
 */
#include <stdatomic.h>

#include "client/libs/cublasLt/internal.h"

enum { BUCKETS = 1024, PLACES = 8 };

static _Atomic uint64_t taken[BUCKETS][PLACES];
static _Atomic unsigned next;

/* 0 is an empty place. */
static uint64_t place_value(uint64_t content)
{
	return content ? content : 1;
}

bool ckt_lt_taken(uint64_t content)
{
	_Atomic uint64_t *bucket = taken[content % BUCKETS];
	for (unsigned i = 0; i < PLACES; i++)
		if (atomic_load_explicit(&bucket[i], memory_order_relaxed) == place_value(content))
			return true;
	return false;
}

void ckt_lt_take(uint64_t content)
{
	_Atomic uint64_t *bucket = taken[content % BUCKETS];
	for (unsigned i = 0; i < PLACES; i++) {
		uint64_t empty = 0;
		if (atomic_compare_exchange_strong(&bucket[i], &empty, place_value(content)))
			return;
	}
	bucket[atomic_fetch_add(&next, 1) % PLACES] = place_value(content);
}

void ckt_lt_taken_clear(void)
{
	for (unsigned i = 0; i < BUCKETS * PLACES; i++)
		taken[i / PLACES][i % PLACES] = 0;
}

uint64_t ckt_lt_alignment(uint64_t address)
{
	uint64_t lowest = address & -address;
	return lowest > CKT_LT_ALIGNMENT_MAX ? CKT_LT_ALIGNMENT_MAX : lowest;
}
