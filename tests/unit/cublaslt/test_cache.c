/* SPDX-License-Identifier: Apache-2.0 */
/* client/libs/cublasLt/cache.c: answers by their questions, and what goes when there is no room. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/libs/cublasLt/cache.h"
#include "tests/unit/cublaslt/bridge.h"

static bool has(unsigned number, size_t key_bytes, uint8_t first)
{
	uint8_t key[64] = {0};
	size_t size = 0;
	memcpy(key, &number, sizeof number);
	uint8_t *found = ckt_lt_cache_find(key, key_bytes, &size);
	bool right = found && size && found[0] == first;
	free(found);
	return right;
}

static void add(unsigned number, size_t key_bytes, uint8_t first, size_t size)
{
	uint8_t key[64] = {0}, *answer = malloc(size);
	memcpy(key, &number, sizeof number);
	memset(answer, first, size);
	ckt_lt_cache_add(key, key_bytes, answer, size);
	free(answer);
}

static void test_find(void)
{
	ckt_lt_cache_clear();
	NO(has(1, 16, 5));
	add(1, 16, 5, 10);
	YES(has(1, 16, 5));
	/* Another key, a longer key, one that is not a multiple of 8. */
	NO(has(2, 16, 5));
	NO(has(1, 24, 5));
	add(1, 12, 6, 3);
	YES(has(1, 12, 6));
	YES(has(1, 16, 5));
	/* The same again. */
	add(1, 16, 7, 1000);
	YES(has(1, 16, 7));
	ckt_lt_cache_clear();
	NO(has(1, 16, 7));
}

static void test_count(void)
{
	ckt_lt_cache_clear();
	for (unsigned i = 0; i < CKT_LT_ANSWERS_MAX; i++)
		add(i, 16, (uint8_t)i, 8);
	YES(has(0, 16, 0));
	/* The oldest that was not used goes: 1, since 0 was. */
	add(CKT_LT_ANSWERS_MAX, 16, 1, 8);
	YES(has(0, 16, 0));
	NO(has(1, 16, 1));
	YES(has(2, 16, 2));
	YES(has(CKT_LT_ANSWERS_MAX, 16, 1));
}

static void test_bytes(void)
{
	enum { BYTES = CKT_LT_ANSWER_BYTES_MAX / 4 };
	ckt_lt_cache_clear();
	for (unsigned i = 0; i < 5; i++)
		add(i, 16, (uint8_t)(i + 1), BYTES - 16);
	NO(has(0, 16, 1));
	for (unsigned i = 1; i < 5; i++)
		YES(has(i, 16, (uint8_t)(i + 1)));
	/* One that would not fit at all changes nothing. */
	add(9, 16, 9, CKT_LT_ANSWER_BYTES_MAX);
	NO(has(9, 16, 9));
	YES(has(1, 16, 2));
	ckt_lt_cache_clear();
}

static void *many(void *data)
{
	for (unsigned i = 0; i < 20000; i++) {
		add((i * 7 + (unsigned)(uintptr_t)data) % 5000, 16, 3, 40);
		has(i % 5000, 16, 3);
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t threads[4];
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, many, (void *)i);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	unsigned there = 0;
	for (unsigned i = 0; i < 5000; i++)
		there += has(i, 16, 3);
	YES(there <= CKT_LT_ANSWERS_MAX);
	YES(there > CKT_LT_ANSWERS_MAX / 2);
	ckt_lt_cache_clear();
}

UNIT_SUITE(cache, {"find", test_find}, {"number", test_count}, {"bytes", test_bytes},
	{"threads", test_threads})
