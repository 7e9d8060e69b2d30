/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of library calls that the genuine library accepted once, by hash; see libs.h.
 *
 * A set of bounded size with eight places in each bucket.  If a content lost its place, the client
 * waits for the next call with this content.  Two contents with the same hash count as one.  The
 * second content's status then arrives late, as a deferred error.
 */
#include <stdatomic.h>

#include "client/libs/libs.h"
#include "rpc/cublaslt.h"

enum { BUCKETS = 1024, PLACES = 8, ALIGNMENT_MAX = CKT_LT_ALIGNMENT_MAX, NUMBER_MAX = 16 };

static _Atomic uint64_t taken[BUCKETS][PLACES];
static _Atomic unsigned next;

/* 0 means an empty place. */
static uint64_t place_value(uint64_t content)
{
	return content ? content : 1;
}

bool ckt_lib_taken(uint64_t content)
{
	_Atomic uint64_t *bucket = taken[content % BUCKETS];
	for (unsigned i = 0; i < PLACES; i++)
		if (atomic_load_explicit(&bucket[i], memory_order_relaxed) == place_value(content))
			return true;
	return false;
}

void ckt_lib_take(uint64_t content)
{
	_Atomic uint64_t *bucket = taken[content % BUCKETS];
	for (unsigned i = 0; i < PLACES; i++) {
		uint64_t empty = 0;
		if (atomic_compare_exchange_strong(&bucket[i], &empty, place_value(content)))
			return;
	}
	bucket[atomic_fetch_add(&next, 1) % PLACES] = place_value(content);
}

void ckt_lib_taken_clear(void)
{
	for (unsigned i = 0; i < BUCKETS * PLACES; i++)
		taken[i / PLACES][i % PLACES] = 0;
}

uint64_t ckt_lib_alignment(uint64_t address)
{
	uint64_t lowest = address & -address;
	return lowest > ALIGNMENT_MAX ? ALIGNMENT_MAX : lowest;
}

uint64_t ckt_lib_number(uint64_t number)
{
	uint64_t lowest = number & -number;
	return lowest > NUMBER_MAX ? NUMBER_MAX : lowest;
}

uint64_t ckt_lib_content(const uint64_t *words, unsigned count)
{
	return ckt_lt_hash(count, (const uint8_t *)words, count * sizeof *words);
}

CUresult ckt_lib_learn(const struct ckt_client_table *client, struct ckt_call *call,
	uint64_t content, int *ret_status)
{
	struct ckt_reply reply;
	CUresult result = client->wait(call, &reply);
	if (result)
		return result;
	*ret_status = (int)ckt_get_u32(&reply.results);
	bool whole = ckt_cursor_done(&reply.results);
	client->release(&reply);
	/* A reply without a status is an error. */
	if (!whole)
		return CUDA_ERROR_UNKNOWN;
	if (!*ret_status)
		ckt_lib_take(content);
	return CUDA_SUCCESS;
}
