/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that were asked for once; see internal.h.
 *
 *	buckets --> entry --> entry	by the hash of the key
 *	newest <-> ... <-> oldest	by use
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/libs/cublasLt/cache.h"
#include "base/fork.h"
#include "rpc/cublaslt.h"

enum { BUCKETS = 1024 };

struct entry {
	struct entry *next; /* of the bucket */
	struct entry *newer, *older;
	uint64_t hash;
	size_t key_bytes, answer_bytes;
	uint8_t data[]; /* key, answer */
};

static CKT_LOCK(lock);
static struct entry *buckets[BUCKETS];
static struct entry ends = {.newer = &ends, .older = &ends}; /* ends.older: the newest */
static unsigned count;
static size_t bytes;

static void unlink_use(struct entry *entry)
{
	entry->newer->older = entry->older;
	entry->older->newer = entry->newer;
}

static void link_newest(struct entry *entry)
{
	entry->newer = &ends;
	entry->older = ends.older;
	ends.older->newer = entry;
	ends.older = entry;
}

static struct entry *find(const void *key, size_t key_bytes, uint64_t hash)
{
	struct entry *entry = buckets[hash % BUCKETS];
	while (entry &&
		(entry->hash != hash || entry->key_bytes != key_bytes ||
			memcmp(entry->data, key, key_bytes)))
		entry = entry->next;
	return entry;
}

static void drop(struct entry *entry)
{
	struct entry **place = &buckets[entry->hash % BUCKETS];
	while (*place != entry)
		place = &(*place)->next;
	*place = entry->next;
	unlink_use(entry);
	count--;
	bytes -= entry->key_bytes + entry->answer_bytes;
	free(entry);
}

void *ckt_lt_cache_find(const void *key, size_t key_bytes, size_t *ret_bytes)
{
	uint64_t hash = ckt_lt_hash(key_bytes, key, key_bytes);
	void *copy = NULL;
	pthread_mutex_lock(&lock);
	struct entry *entry = find(key, key_bytes, hash);
	if (entry) {
		unlink_use(entry);
		link_newest(entry);
		copy = malloc(entry->answer_bytes + 1);
		if (copy) {
			memcpy(copy, entry->data + entry->key_bytes, entry->answer_bytes);
			*ret_bytes = entry->answer_bytes;
		}
	}
	pthread_mutex_unlock(&lock);
	return copy;
}

void ckt_lt_cache_add(const void *key, size_t key_bytes, const void *answer, size_t answer_bytes)
{
	uint64_t hash = ckt_lt_hash(key_bytes, key, key_bytes);
	size_t size = key_bytes + answer_bytes;
	struct entry *entry = size <= CKT_LT_ANSWER_BYTES_MAX ? malloc(sizeof *entry + size) : NULL;
	if (!entry)
		return;
	entry->hash = hash;
	entry->key_bytes = key_bytes;
	entry->answer_bytes = answer_bytes;
	memcpy(entry->data, key, key_bytes);
	memcpy(entry->data + key_bytes, answer, answer_bytes);
	pthread_mutex_lock(&lock);
	/* Two threads may have asked the same. */
	struct entry *before = find(key, key_bytes, hash);
	if (before)
		drop(before);
	while (count >= CKT_LT_ANSWERS_MAX || bytes + size > CKT_LT_ANSWER_BYTES_MAX)
		drop(ends.newer);
	entry->next = buckets[hash % BUCKETS];
	buckets[hash % BUCKETS] = entry;
	link_newest(entry);
	count++;
	bytes += size;
	pthread_mutex_unlock(&lock);
}

void ckt_lt_cache_clear(void)
{
	pthread_mutex_lock(&lock);
	while (count)
		drop(ends.newer);
	pthread_mutex_unlock(&lock);
}
