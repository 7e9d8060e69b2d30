/* SPDX-License-Identifier: Apache-2.0 */
/* The swap memory of a session; see swap_store.h. */
#include "checkpoint/freeze/swap_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>
#include <linux/mempolicy.h>

#include "base/log.h"
#include "checkpoint/fault.h"
#include "checkpoint/format/store.h"
#include "rpc/gen/cuda_driver.h"
#include "rpc/not_supported.h"

/* Below the staging memory, far from where the loader and the driver put things. */
#define MAPS_BASE 0x180000000000ull

enum { NODES_MAX = 1024 };

unsigned ckt_swap_pin_least = 128;

static struct {
	int fd;
	bool in_memory;
	_Atomic bool direct; /* past the page cache */
	bool cannot_pin;
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

static uint64_t piece_size(const struct ckt_swap_region *region, size_t piece)
{
	const uint64_t whole = CKT_SWAP_PIECE * (uint64_t)CKT_IMAGE_CHUNK;
	uint64_t left = region->memory.size - piece * whole;
	return left < whole ? left : whole;
}

static uint8_t *piece_at(const struct ckt_swap_region *region, size_t piece)
{
	return region->map + piece * CKT_SWAP_PIECE * CKT_IMAGE_CHUNK;
}

void ckt_swap_store_unpin(struct ckt_swap_region *region, size_t chunk)
{
	size_t piece = chunk / CKT_SWAP_PIECE;
	if (!region->pinned[piece])
		return;
	ckt_driver.cuMemHostUnregister(piece_at(region, piece));
	region->pinned[piece] = false;
}

static void region_delete(struct ckt_swap_region *region)
{
	free(region->states);
	free(region->hashes);
	free(region->pinned);
	free(region);
}

static void region_free(struct ckt_swap_region *region)
{
	for (size_t i = 0; i < region->chunk_count; i += CKT_SWAP_PIECE)
		ckt_swap_store_unpin(region, i);
	if (region->map)
		munmap(region->map, region->memory.size);
	for (size_t i = 0; i < region->chunk_count; i++)
		if (region->states && region->states[i] != CKT_SWAP_ZERO)
			punch(region, i);
	region_delete(region);
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

/* The store's bytes are wanted once, and the page cache would have them a second time. */
static void set_direct(bool direct)
{
	int flags = fcntl(store.fd, F_GETFL);
	store.direct = flags >= 0 && direct && fcntl(store.fd, F_SETFL, flags | O_DIRECT) == 0;
	if (flags >= 0 && !direct)
		fcntl(store.fd, F_SETFL, flags & ~O_DIRECT);
}

/* True: the call that failed may be made again, for it was not aligned as the file system wants. */
static bool was_direct(void)
{
	if (errno != EINVAL || !store.direct)
		return false;
	ckt_info("cannot bypass the page cache for the swap memory: swaps are slower");
	set_direct(false);
	return true;
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
	struct statfs fs;
	store.in_memory = !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC;
	store.direct = false;
	if (!store.in_memory)
		set_direct(true);
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
	region->pinned = calloc(region->chunk_count / CKT_SWAP_PIECE + 1, sizeof *region->pinned);
	if (region->states && region->hashes && region->pinned)
		return region;
	region_delete(region);
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
		if (n < 0 && (errno == EINTR || was_direct()))
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

/*
 * Writes of several threads to one memory file wait for each other in the kernel, copies to its
 * mapping do not.
 */
static int put(struct ckt_swap_region *region, size_t chunk, const void *data, size_t size)
{
	uint64_t offset = region->offset + chunk * CKT_IMAGE_CHUNK;
	if (!store.in_memory || !region->map)
		return write_all(data, size, offset);
	/*
	 * Where there is no room, a touch would end the process.  Threads that populate the mapping
	 * side by side instead are slower (4.5 GB/s, against 5.6 here on an H200's host).
	 */
	while (region->states[chunk] != CKT_SWAP_STORED &&
		fallocate(store.fd, 0, (off_t)offset, (off_t)size))
		if (errno != EINTR)
			return -errno;
	memcpy(region->map + chunk * CKT_IMAGE_CHUNK, data, size);
	return 0;
}

int ckt_swap_store_write(struct ckt_swap_region *region, size_t chunk, const void *data,
	size_t size, const struct ckt_hash_value *hash)
{
	bool had = region->states[chunk] == CKT_SWAP_STORED;
	if (!had && atomic_fetch_add(&store.bytes, size) + size > store.limit) {
		atomic_fetch_sub(&store.bytes, size);
		return -ENOSPC;
	}
	int error =
		ckt_fault_fails(CKT_FAULT_SWAP_WRITE) ? -ENOSPC : put(region, chunk, data, size);
	/* A part of it may be there. */
	region->states[chunk] = CKT_SWAP_STORED;
	region->hashes[chunk] = hash ? *hash : (struct ckt_hash_value){0};
	if (error)
		punch(region, chunk);
	return error;
}

uint64_t ckt_swap_store_needs(const struct ckt_swap_region *region, size_t chunk)
{
	return region->states[chunk] == CKT_SWAP_STORED ? 0 : chunk_size(region, chunk);
}

bool ckt_swap_store_has_room(uint64_t bytes)
{
	return store.bytes <= store.limit && bytes <= store.limit - store.bytes;
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
		if (n < 0 && (errno == EINTR || was_direct()))
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

/* A host without nodes, or a kernel without policies, has one place for all. */
static void place_near(const struct ckt_swap_region *region, int node)
{
	enum { WORD = 8 * sizeof(unsigned long) };
	unsigned long nodes[NODES_MAX / WORD] = {0};
	if (!store.in_memory || node < 0 || node >= NODES_MAX)
		return;
	nodes[node / WORD] = 1ul << node % WORD;
	if (syscall(SYS_mbind, region->map, region->memory.size, MPOL_PREFERRED, nodes,
		    NODES_MAX + 1, 0))
		ckt_debug("swap memory anywhere: %s", strerror(errno));
}

uint8_t *ckt_swap_store_map(struct ckt_swap_region *region, int node)
{
	/* Beyond the file's end a reader would be killed. */
	struct stat st;
	uint64_t size = region->memory.size, end = region->offset + size;
	if (region->map)
		return region->map;
	if (fstat(store.fd, &st) || ((uint64_t)st.st_size < end && ftruncate(store.fd, (off_t)end)))
		return NULL;
	void *at =
		mmap((void *)(uintptr_t)(MAPS_BASE + region->offset), size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_FIXED_NOREPLACE, store.fd, (off_t)region->offset);
	if (at == MAP_FAILED)
		at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, store.fd,
			(off_t)region->offset);
	region->map = at == MAP_FAILED ? NULL : at;
	if (region->map)
		place_near(region, node);
	return region->map;
}

/* ---- Pinned memory */

static bool has_holes(const struct ckt_swap_region *region, size_t piece)
{
	size_t first = piece * CKT_SWAP_PIECE, end = first + CKT_SWAP_PIECE;
	for (size_t i = first; i < end && i < region->chunk_count; i++)
		if (region->states[i] != CKT_SWAP_STORED)
			return true;
	return false;
}

static void pin_piece(struct ckt_swap_region *region, size_t piece)
{
	CUresult result = ckt_driver.cuMemHostRegister_v2
		? ckt_driver.cuMemHostRegister_v2(piece_at(region, piece),
			  piece_size(region, piece), CU_MEMHOSTREGISTER_PORTABLE)
		: CKT_INTERNAL_NOT_SUPPORTED;
	if (result)
		ckt_info("cannot pin the swap memory (CUDA error %d): swaps are slower", result);
	store.cannot_pin = result != 0;
	region->pinned[piece] = !result;
}

void ckt_swap_store_pin(const _Atomic unsigned *stop)
{
	unsigned count = 0;
	for (struct ckt_swap_region *r = store.regions; store.in_memory && r; r = r->next)
		for (size_t i = 0; r->map && i < r->chunk_count; i += CKT_SWAP_PIECE) {
			size_t piece = i / CKT_SWAP_PIECE;
			if (store.cannot_pin || (*stop && count >= ckt_swap_pin_least))
				return;
			if (r->pinned[piece] || has_holes(r, piece))
				continue;
			pin_piece(r, piece);
			count++;
		}
}

uint8_t *ckt_swap_store_place(const struct ckt_swap_region *region, size_t chunk)
{
	return region->pinned[chunk / CKT_SWAP_PIECE] ? region->map + chunk * CKT_IMAGE_CHUNK
						      : NULL;
}

int ckt_swap_store_fill(struct ckt_swap_region *region, size_t chunk)
{
	region->hashes[chunk] = (struct ckt_hash_value){0};
	return ckt_fault_fails(CKT_FAULT_SWAP_WRITE) ? -ENOSPC : 0;
}

uint64_t ckt_swap_store_bytes(void)
{
	return atomic_load(&store.bytes);
}

const uint64_t *ckt_swap_store_key(void)
{
	return store.key;
}
