/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of module images; see module_binary.h. */
#include "server/worker/module/module_binary.h"

#include <errno.h>
#include <limits.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
	FLAG_LZ4 = 0x2000,
	FLAG_ZSTD = 0x8000,
	CONTAINER_HEADER = 16,
	ENTRY_HEADER = 64,
	ELF_HEADER = 64
};
#define UNPACKED_MAX ((uint64_t)2 << 30)
/* zstd's best ratio: a block of 128 KiB in four bytes. */
enum { RATIO_MAX = 32768 };

static uint64_t word(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;
	memcpy(&v, p, bytes);
	return v;
}

static bool is_elf(const uint8_t *data, size_t size)
{
	return size >= ELF_HEADER && memcmp(data, "\177ELF", 4) == 0;
}

/*
 * CUDA's ELF stores its capability in e_flags: in the lowest byte, and since ABI 0x41 in the
 * second.
 */
static unsigned elf_capability(const uint8_t *data)
{
	enum { OSABI = 7, MACHINE = 18, FLAGS = 48, EM_CUDA_NUMBER = 190 };
	if (word(data + MACHINE, 2) != EM_CUDA_NUMBER)
		return 0;
	switch (data[OSABI]) {
	case 0x33:
		return data[FLAGS];
	case 0x41:
		return data[FLAGS + 1];
	default:
		return 0;
	}
}

bool ckt_module_binary_open(const uint8_t *image, size_t size, struct ckt_binary_cursor *ret_cursor)
{
	if (size < CONTAINER_HEADER || word(image, 4) != CKT_BINARY_MAGIC ||
		word(image + 4, 2) != 1)
		return false;
	uint64_t header = word(image + 6, 2), entries = word(image + 8, 8);
	if (header < CONTAINER_HEADER || header > size || entries > size - header)
		return false;
	*ret_cursor = (struct ckt_binary_cursor){image + header, image + header + entries};
	return true;
}

int ckt_module_binary_next(struct ckt_binary_cursor *cursor, struct ckt_binary_entry *ret_entry)
{
	const uint8_t *at = cursor->at;
	uint64_t left = (uint64_t)(cursor->end - at);
	if (!left)
		return 0;
	if (left < ENTRY_HEADER)
		return -EBADMSG;
	struct ckt_binary_entry entry = {.kind = (unsigned)word(at, 2),
		.capability = (unsigned)word(at + 28, 4),
		.header = at,
		.header_size = word(at + 4, 4),
		.payload_size = word(at + 8, 8),
		.compressed = word(at + 16, 4),
		.flags = word(at + 40, 8),
		.unpacked = word(at + 56, 8)};
	if (entry.header_size < ENTRY_HEADER || entry.header_size > left ||
		entry.payload_size > left - entry.header_size ||
		entry.compressed > entry.payload_size)
		return -EBADMSG;
	entry.payload = at + entry.header_size;
	cursor->at = entry.payload + entry.payload_size;
	*ret_entry = entry;
	return 1;
}

int ckt_module_binary_unpack(
	const struct ckt_binary_entry *entry, uint64_t max_bytes, uint8_t **ret_data)
{
	/* The decompressors take sizes as int. */
	if (!entry->unpacked || entry->compressed > INT_MAX)
		return -EBADMSG;
	if (entry->unpacked > max_bytes || entry->unpacked > UNPACKED_MAX - 1)
		return -EFBIG;
	/* No compressor reaches this ratio, so the stated size is false. */
	if (entry->unpacked / RATIO_MAX > entry->compressed)
		return -EBADMSG;
	uint8_t *data = malloc(entry->unpacked);
	if (!data)
		return -ENOMEM;
	bool good = false;
	if (entry->flags & FLAG_ZSTD)
		good = ZSTD_decompress(data, entry->unpacked, entry->payload, entry->compressed) ==
			entry->unpacked;
	else if (entry->flags & FLAG_LZ4)
		good = LZ4_decompress_safe((const char *)entry->payload, (char *)data,
			       (int)entry->compressed,
			       (int)entry->unpacked) == (int)entry->unpacked;
	if (!good) {
		free(data);
		return -EBADMSG;
	}
	*ret_data = data;
	return 0;
}

static int walk_entry(const struct ckt_binary_entry *entry,
	int (*call)(void *, const struct ckt_binary_part *), void *opaque)
{
	struct ckt_binary_part part = {.kind = entry->kind == CKT_BINARY_KIND_PTX ? CKT_BINARY_PTX
			: entry->kind == CKT_BINARY_KIND_CODE                     ? CKT_BINARY_CODE
							      : CKT_BINARY_OTHER,
		.capability = entry->capability,
		.data = entry->payload,
		.size = entry->payload_size};
	if (!entry->compressed)
		return call(opaque, &part);
	uint8_t *data;
	int result = ckt_module_binary_unpack(entry, UNPACKED_MAX, &data);
	if (result)
		return result == -ENOMEM ? result : 0;
	part.data = data;
	part.size = entry->unpacked;
	result = call(opaque, &part);
	free(data);
	return result;
}

int ckt_module_binary_walk(const uint8_t *image, size_t size,
	int (*call)(void *opaque, const struct ckt_binary_part *part), void *opaque)
{
	struct ckt_binary_cursor cursor;
	struct ckt_binary_entry entry;
	if (size < CONTAINER_HEADER || word(image, 4) != CKT_BINARY_MAGIC) {
		struct ckt_binary_part part = {.kind = CKT_BINARY_PTX, .data = image, .size = size};
		if (is_elf(image, size)) {
			part.kind = CKT_BINARY_CODE;
			part.capability = elf_capability(image);
		}
		return call(opaque, &part);
	}
	int result = 0;
	if (ckt_module_binary_open(image, size, &cursor))
		while (!result && ckt_module_binary_next(&cursor, &entry) > 0)
			result = walk_entry(&entry, call, opaque);
	return result;
}

/* ---- The GPUs that can run an image */

struct fit {
	unsigned capability;
	bool fits, unknown, has_ptx;
};

/* The word after ".target", e.g. sm_90a, or NULL. */
static const char *find_target(const struct ckt_binary_part *part, char ret_text[32])
{
	const uint8_t *at = memmem(part->data, part->size, ".target", 7),
		      *end = part->data + part->size;
	size_t n = 0;
	if (!at)
		return NULL;
	for (at += 7; at < end && n < 31; at++)
		ret_text[n++] = (char)*at;
	ret_text[n] = 0;
	return strstr(ret_text, "sm_");
}

/*
 * PTX runs on any later GPU.  With suffix a it runs only on the same GPU, and with suffix f only on
 * later GPUs of the same major number.
 */
static bool ptx_fits(const char *target, unsigned capability)
{
	char *suffix;
	unsigned long wanted = strtoul(target + 3, &suffix, 10);
	if (*suffix == 'a')
		return wanted == capability;
	if (*suffix == 'f')
		return wanted / 10 == capability / 10 && wanted <= capability;
	return wanted <= capability;
}

static int look(void *opaque, const struct ckt_binary_part *part)
{
	struct fit *fit = opaque;
	char text[32];
	const char *target = part->kind == CKT_BINARY_PTX ? find_target(part, text) : NULL;
	if (target) {
		fit->has_ptx = true;
		fit->fits |= ptx_fits(target, fit->capability);
	} else if (part->kind == CKT_BINARY_CODE && part->capability) {
		fit->fits |= part->capability / 10 == fit->capability / 10 &&
			part->capability <= fit->capability;
	} else {
		fit->unknown = true;
	}
	return 0;
}

bool ckt_module_binary_fits(
	const uint8_t *image, size_t size, unsigned capability, bool *ret_has_ptx)
{
	struct fit fit = {.capability = capability};
	struct ckt_binary_cursor cursor;
	bool damaged = size >= CONTAINER_HEADER && word(image, 4) == CKT_BINARY_MAGIC &&
		!ckt_module_binary_open(image, size, &cursor);
	if (damaged || ckt_module_binary_walk(image, size, look, &fit))
		fit.unknown = true;
	*ret_has_ptx = fit.has_ptx;
	return fit.fits || fit.unknown;
}
