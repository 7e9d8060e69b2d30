/* SPDX-License-Identifier: Apache-2.0 */
/* The swap memory of a session; see swap_store.h. */
#include "checkpoint/freeze/swap_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/fault.h"
#include "checkpoint/format/store.h"

static struct {
	int fd;
	dev_t dev;
	ino_t ino;
	uint64_t limit;
	_Atomic uint64_t bytes;
	struct ckt_swap_region *regions;
	uint64_t key[4];
} store = {.fd = -1};

static size_t chunk_size(const struct ckt_swap_region *region, size_t chunk)
{
	uint64_t left = region->memory.size - chunk * CKT_IMAGE_CHUNK;
	return left < CKT_IMAGE_CHUNK ? left : CKT_IMAGE_CHUNK;
}

static void punch(struct ckt_swap_region *region, size_t chunk)
{
	if (region->states[chunk] == CKT_SWAP_STORED)
		atomic_fetch_sub(&store.bytes, chunk_size(region, chunk));
	region->states[chunk] = CKT_SWAP_UNKNOWN;
	/* A file system without holes keeps the room until the file is gone. */
	(void)fallocate(store.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		(off_t)(region->offset + chunk * CKT_IMAGE_CHUNK),
		(off_t)chunk_size(region, chunk));
}

static void region_free(struct ckt_swap_region *region)
{
	for (size_t i = 0; i < region->chunk_count; i++)
		if (region->states && region->states[i] != CKT_SWAP_ZERO)
			punch(region, i);
	free(region->states);
	free(region->hashes);
	free(region);
}

void ckt_swap_store_begin(void)
{
	for (struct ckt_swap_region *r = store.regions; r; r = r->next)
		r->used = false;
}

void ckt_swap_store_sweep(void)
{
	for (struct ckt_swap_region **place = &store.regions, *r; (r = *place);) {
		if (r->used) {
			place = &r->next;
			continue;
		}
		*place = r->next;
		region_free(r);
	}
}

int ckt_swap_store_use(int fd, uint64_t limit_bytes)
{
	struct stat st;
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		if (fd >= 0)
			close(fd);
		return -EINVAL;
	}
	store.limit = limit_bytes;
	if (store.fd >= 0 && st.st_dev == store.dev && st.st_ino == store.ino) {
		close(fd);
		return 0;
	}
	ckt_swap_store_begin();
	ckt_swap_store_sweep();
	if (store.fd >= 0)
		close(store.fd);
	store.fd = fd;
	store.dev = st.st_dev;
	store.ino = st.st_ino;
	store.bytes = 0;
	return getrandom(store.key, sizeof store.key, 0) == sizeof store.key ? 0 : -EIO;
}

static bool is_same(const struct ckt_region *a, const struct ckt_region *b)
{
	return a->device == b->device && a->size == b->size && a->physical == b->physical &&
		(a->physical || a->address == b->address);
}

static struct ckt_swap_region *region_make(const struct ckt_region *memory)
{
	struct ckt_swap_region *region = calloc(1, sizeof *region);
	if (!region)
		return NULL;
	*region = (struct ckt_swap_region){.memory = *memory,
		.chunk_count = (memory->size + CKT_IMAGE_CHUNK - 1) / CKT_IMAGE_CHUNK};
	region->states = calloc(region->chunk_count + 1, sizeof *region->states);
	region->hashes = calloc(region->chunk_count + 1, sizeof *region->hashes);
	if (region->states && region->hashes)
		return region;
	free(region->states);
	free(region->hashes);
	free(region);
	return NULL;
}

struct ckt_swap_region *ckt_swap_store_region(const struct ckt_region *memory)
{
	for (struct ckt_swap_region *r = store.regions; r; r = r->next)
		if (is_same(&r->memory, memory)) {
			r->used = true;
			return r;
		}
	struct ckt_swap_region *region = region_make(memory), **place = &store.regions;
	if (!region)
		return NULL;
	/* The first gap that is large enough. */
	uint64_t size = region->chunk_count * CKT_IMAGE_CHUNK, at = 0;
	for (; *place && (*place)->offset - at < size; place = &(*place)->next)
		at = (*place)->offset + (*place)->chunk_count * CKT_IMAGE_CHUNK;
	region->offset = at;
	region->used = true;
	region->next = *place;
	*place = region;
	return region;
}

static int write_all(const uint8_t *data, size_t size, uint64_t offset)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = pwrite(store.fd, data + done, size - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

int ckt_swap_store_write(struct ckt_swap_region *region, size_t chunk, const void *data,
	size_t size, const struct ckt_hash_value *hash)
{
	uint64_t offset = region->offset + chunk * CKT_IMAGE_CHUNK;
	bool had = region->states[chunk] == CKT_SWAP_STORED;
	if (!had && atomic_fetch_add(&store.bytes, size) + size > store.limit) {
		atomic_fetch_sub(&store.bytes, size);
		return -ENOSPC;
	}
	int error = ckt_fault_fails(CKT_FAULT_SWAP_WRITE) ? -ENOSPC : write_all(data, size, offset);
	/* A part of it may be there. */
	region->states[chunk] = CKT_SWAP_STORED;
	region->hashes[chunk] = hash ? *hash : (struct ckt_hash_value){0};
	if (error)
		punch(region, chunk);
	return error;
}

void ckt_swap_store_zero(struct ckt_swap_region *region, size_t chunk)
{
	if (region->states[chunk] == CKT_SWAP_STORED)
		punch(region, chunk);
	region->states[chunk] = CKT_SWAP_ZERO;
}

int ckt_swap_store_read(
	const struct ckt_swap_region *region, size_t chunk, void *ret_data, size_t size)
{
	uint64_t offset = region->offset + chunk * CKT_IMAGE_CHUNK;
	for (size_t done = 0; done < size;) {
		ssize_t n = pread(
			store.fd, (uint8_t *)ret_data + done, size - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

uint8_t *ckt_swap_store_map(const struct ckt_swap_region *region)
{
	/* Beyond the file's end a reader would be killed. */
	struct stat st;
	uint64_t end = region->offset + region->memory.size;
	if (fstat(store.fd, &st) || ((uint64_t)st.st_size < end && ftruncate(store.fd, (off_t)end)))
		return NULL;
	void *at = mmap(
		NULL, region->memory.size, PROT_READ, MAP_SHARED, store.fd, (off_t)region->offset);
	return at == MAP_FAILED ? NULL : at;
}

uint64_t ckt_swap_store_bytes(void)
{
	return atomic_load(&store.bytes);
}

const uint64_t *ckt_swap_store_key(void)
{
	return store.key;
}
