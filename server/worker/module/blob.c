/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of modules, found by their hash; see blob.h. */
#include "server/worker/module/blob.h"

#include <errno.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/worker/session/host_budget.h"

enum { BLOB_BYTES = sizeof(struct ckt_blob) + 2 * sizeof(struct ckt_blob *) };

void ckt_blob_hash(const void *data, size_t size, uint8_t ret_hash[CKT_HASH_SIZE])
{
	struct sha256_ctx sha;
	sha256_init(&sha);
	sha256_update(&sha, size, data);
	sha256_digest(&sha, CKT_HASH_SIZE, ret_hash);
}

/* The index where the hash is or belongs. */
static size_t place(const struct ckt_blobs *blobs, const uint8_t *hash, bool *ret_found)
{
	size_t low = 0, high = blobs->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = memcmp(blobs->list[middle]->hash, hash, CKT_HASH_SIZE);
		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_found = false;
	return low;
}

const struct ckt_blob *ckt_blobs_find(
	const struct ckt_blobs *blobs, const uint8_t hash[CKT_HASH_SIZE])
{
	bool found;
	size_t i = place(blobs, hash, &found);
	return found && blobs->list[i]->complete ? blobs->list[i] : NULL;
}

static void drop(struct ckt_blobs *blobs, size_t i)
{
	blobs->bytes -= blobs->list[i]->size;
	ckt_budget_uncharge(blobs->list[i]->size + BLOB_BYTES);
	free(blobs->list[i]->data);
	free(blobs->list[i]);
	memmove(&blobs->list[i], &blobs->list[i + 1], (--blobs->count - i) * sizeof *blobs->list);
}

static int insert(struct ckt_blobs *blobs, size_t i, const uint8_t *hash, uint64_t size)
{
	if (size > CKT_BLOBS_BYTES_MAX - blobs->bytes ||
		!ckt_budget_charge(size + BLOB_BYTES, "contents of modules"))
		return -ENOMEM;
	struct ckt_blob *blob = calloc(1, sizeof *blob);
	uint8_t *data = malloc(size + 1);
	if (blobs->count == blobs->room) {
		size_t room = blobs->room ? blobs->room * 2 : 16;
		struct ckt_blob **list = realloc(blobs->list, room * sizeof *list);
		if (list) {
			blobs->list = list;
			blobs->room = room;
		}
	}
	if (!blob || !data || blobs->count == blobs->room) {
		free(blob);
		free(data);
		ckt_budget_uncharge(size + BLOB_BYTES);
		return -ENOMEM;
	}
	memcpy(blob->hash, hash, CKT_HASH_SIZE);
	blob->data = data;
	blob->size = size;
	data[size] = 0;
	memmove(&blobs->list[i + 1], &blobs->list[i], (blobs->count++ - i) * sizeof *blobs->list);
	blobs->list[i] = blob;
	blobs->bytes += size;
	return 0;
}

int ckt_blobs_piece(struct ckt_blobs *blobs, const uint8_t hash[CKT_HASH_SIZE], uint64_t total,
	uint64_t offset, const void *data, size_t size)
{
	bool found;
	size_t i = place(blobs, hash, &found);
	if (found && blobs->list[i]->complete)
		return 0;
	if (found && blobs->list[i]->size != total)
		return -EPROTO;
	if (!found) {
		int result = insert(blobs, i, hash, total);
		if (result)
			return result;
	}
	struct ckt_blob *blob = blobs->list[i];
	if (offset > blob->received || size > total - offset)
		return -EPROTO;
	if (offset + size <= blob->received && blob->received < total)
		return 0;
	memcpy(blob->data + offset, data, size);
	blob->received = offset + size;
	if (blob->received < total)
		return 0;
	uint8_t really[CKT_HASH_SIZE];
	ckt_blob_hash(blob->data, total, really);
	if (memcmp(really, hash, sizeof really)) {
		drop(blobs, i);
		return -EBADMSG;
	}
	blob->complete = true;
	return 0;
}

/* The bytes of the file from its beginning, as many as there are up to the size. */
static uint64_t read_file(int fd, uint8_t *data, uint64_t size)
{
	uint64_t have = 0;
	while (have < size) {
		ssize_t n = TEMP_FAILURE_RETRY(pread(fd, data + have, size - have, (off_t)have));
		if (n <= 0)
			break;
		have += (uint64_t)n;
	}
	return have;
}

int ckt_blobs_read(
	struct ckt_blobs *blobs, const uint8_t hash[CKT_HASH_SIZE], int fd, uint64_t size)
{
	uint8_t really[CKT_HASH_SIZE];
	bool found;
	size_t i = place(blobs, hash, &found);
	if (found)
		return -EEXIST;
	int result = insert(blobs, i, hash, size);
	if (result)
		return result;
	struct ckt_blob *blob = blobs->list[i];
	blob->received = read_file(fd, blob->data, size);
	ckt_blob_hash(blob->data, blob->received, really);
	if (blob->received < size || memcmp(really, hash, sizeof really)) {
		drop(blobs, i);
		return -EBADMSG;
	}
	blob->complete = true;
	return 0;
}

int ckt_blobs_add(
	struct ckt_blobs *blobs, const void *data, uint64_t size, uint8_t ret_hash[CKT_HASH_SIZE])
{
	uint8_t hash[CKT_HASH_SIZE];
	bool found;
	ckt_blob_hash(data, size, hash);
	size_t i = place(blobs, hash, &found);
	if (!found || !blobs->list[i]->complete) {
		if (found)
			drop(blobs, i);
		int result = insert(blobs, i, hash, size);
		if (result)
			return result;
		memcpy(blobs->list[i]->data, data, size);
		blobs->list[i]->received = size;
		blobs->list[i]->complete = true;
	}
	memcpy(ret_hash, hash, CKT_HASH_SIZE);
	return 0;
}
