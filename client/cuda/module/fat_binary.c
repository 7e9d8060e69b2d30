/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of a fat binary that a GPU can use; see fat_binary.h.
 *
 * The layout is not documented.  It is what fatbinary of CUDA 9 to 13 writes, and is checked at
 * every step: an image with anything else in it is sent whole.
 *
 *	container  u32 0xba55ed50 | u16 version 1 | u16 header size | u64 bytes of entries behind it
 *	entry      u16 kind (1 PTX, 2 machine code) | u16 | u32 header size (64 at least)
 *	           | u64 payload size | at 28 u32 capability | ... | payload
 */
#include "client/cuda/module/fat_binary.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CONTAINER_HEADER = 16, ENTRY_HEADER = 64, KIND_PTX = 1, KIND_CODE = 2 };
#define MAGIC 0xBA55ED50u
/* From this capability on, code can be for one GPU alone (sm_90a), which its entry does not say. */
enum { FIRST_WITH_VARIANTS = 90 };

struct entry {
	unsigned kind, capability;
	const uint8_t *at;
	uint64_t size;
};

struct wanted {
	unsigned capability;
	unsigned best; /* of the code that this GPU runs; 0: there is none, or it is not sure */
	bool has_ptx, force_ptx;
};

static uint64_t word(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;
	memcpy(&v, p, bytes);
	return v;
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);
	return value && !strcmp(value, "1");
}

/* The bytes of the container's header, or 0 if the image is no container that ends where it says. */
static size_t open_container(const uint8_t *image, size_t size)
{
	if (size < CONTAINER_HEADER || word(image, 4) != MAGIC || word(image + 4, 2) != 1)
		return 0;
	uint64_t header = word(image + 6, 2);
	return header >= CONTAINER_HEADER && header <= size && word(image + 8, 8) == size - header
		? (size_t)header
		: 0;
}

/* False at the end; *ret_damaged then says whether the rest is no entry. */
static bool next(const uint8_t *at, const uint8_t *end, struct entry *ret_entry, bool *ret_damaged)
{
	uint64_t left = (uint64_t)(end - at);
	*ret_damaged = false;
	if (!left)
		return false;
	*ret_damaged = true;
	if (left < ENTRY_HEADER)
		return false;
	uint64_t header = word(at + 4, 4), payload = word(at + 8, 8);
	if (header < ENTRY_HEADER || header > left || payload > left - header)
		return false;
	*ret_damaged = false;
	*ret_entry = (struct entry){.kind = (unsigned)word(at, 2),
		.capability = (unsigned)word(at + 28, 4),
		.at = at,
		.size = header + payload};
	return true;
}

static bool runs(unsigned code, unsigned capability)
{
	return code / 10 == capability / 10 && code <= capability;
}

/* False: the image is damaged. */
static bool look(const uint8_t *at, const uint8_t *end, struct wanted *wanted)
{
	struct entry entry;
	bool damaged;
	for (; next(at, end, &entry, &damaged); at += entry.size) {
		unsigned code = entry.kind == KIND_CODE ? entry.capability : 0;
		wanted->has_ptx |= entry.kind == KIND_PTX;
		if (code && runs(code, wanted->capability) && code > wanted->best &&
			(code == wanted->capability || code < FIRST_WITH_VARIANTS))
			wanted->best = code;
	}
	return !damaged;
}

static bool needs(const struct wanted *wanted, const struct entry *entry)
{
	if (entry->kind != KIND_CODE)
		return true;
	if (wanted->force_ptx)
		return false;
	return runs(entry->capability, wanted->capability) && entry->capability >= wanted->best;
}

CUresult ckt_client_fat_binary_choose(
	const void *image, size_t size, unsigned capability, void **ret_data, size_t *ret_size)
{
	const uint8_t *first = image, *end = first + size;
	struct wanted wanted = {
		.capability = capability, .force_ptx = is_set("CUDA_FORCE_PTX_JIT")};
	struct entry entry;
	bool damaged;
	*ret_data = NULL;
	size_t header = open_container(first, size);
	if (!header || (is_set("CRICKET_WHOLE_MODULES") && !wanted.force_ptx) ||
		!look(first + header, end, &wanted))
		return CUDA_SUCCESS;
	if (wanted.force_ptx && !wanted.has_ptx)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	uint64_t needed = 0;
	for (const uint8_t *at = first + header; next(at, end, &entry, &damaged); at += entry.size)
		needed += needs(&wanted, &entry) ? entry.size : 0;
	/* With nothing left, the driver says what is missing. */
	if (!needed || needed == size - header)
		return CUDA_SUCCESS;
	uint8_t *data = malloc(header + needed);
	if (!data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(data, first, header);
	memcpy(data + 8, &needed, sizeof needed);
	uint8_t *to = data + header;
	for (const uint8_t *at = first + header; next(at, end, &entry, &damaged); at += entry.size)
		if (needs(&wanted, &entry))
			to = (uint8_t *)memcpy(to, entry.at, entry.size) + entry.size;
	*ret_data = data;
	*ret_size = header + needed;
	return CUDA_SUCCESS;
}
