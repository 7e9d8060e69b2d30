/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of manifests; see manifest_hash.h. */
#include "checkpoint/format/manifest_hash.h"

#include <nettle/sha2.h>
#include <pthread.h>
#include <string.h>

/* Several may save one session at a time; each asks at once. */
enum { LATEST = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock. */
static bool expects;
static uint8_t expected[CKT_IMAGE_HASH];
static struct {
	bool used;
	char id[CKT_IMAGE_ID];
	uint8_t hash[CKT_IMAGE_HASH];
} written[LATEST];
static unsigned next;

static void hash_of(const uint8_t *data, size_t size, uint8_t ret_hash[CKT_IMAGE_HASH])
{
	struct sha256_ctx sha;
	sha256_init(&sha);
	sha256_update(&sha, size, data);
	sha256_digest(&sha, CKT_IMAGE_HASH, ret_hash);
}

void ckt_manifest_expect(const uint8_t *hash)
{
	pthread_mutex_lock(&lock);
	expects = hash != NULL;
	if (hash)
		memcpy(expected, hash, sizeof expected);
	pthread_mutex_unlock(&lock);
}

bool ckt_manifest_is_expected(const uint8_t *data, size_t size)
{
	uint8_t hash[CKT_IMAGE_HASH];
	pthread_mutex_lock(&lock);
	bool any = !expects;
	pthread_mutex_unlock(&lock);
	if (any)
		return true;
	hash_of(data, size, hash);
	pthread_mutex_lock(&lock);
	bool same = memcmp(hash, expected, sizeof hash) == 0;
	pthread_mutex_unlock(&lock);
	return same;
}

void ckt_manifest_written(const char id[CKT_IMAGE_ID], const uint8_t *data, size_t size)
{
	uint8_t hash[CKT_IMAGE_HASH];
	hash_of(data, size, hash);
	pthread_mutex_lock(&lock);
	written[next].used = true;
	memcpy(written[next].id, id, CKT_IMAGE_ID);
	memcpy(written[next].hash, hash, sizeof hash);
	next = (next + 1) % LATEST;
	pthread_mutex_unlock(&lock);
}

bool ckt_manifest_written_hash(const char id[CKT_IMAGE_ID], uint8_t ret_hash[CKT_IMAGE_HASH])
{
	bool found = false;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < LATEST && !found; i++) {
		found = written[i].used && memcmp(written[i].id, id, CKT_IMAGE_ID) == 0;
		if (found)
			memcpy(ret_hash, written[i].hash, CKT_IMAGE_HASH);
	}
	pthread_mutex_unlock(&lock);
	return found;
}
