/*
 * Names in images; see names.h.  The fat binary's layout is not documented; read off nvcc 13.0's output and checked at every step:
 *
 *	container  u32 0xba55ed50 | u16 version 1 | u16 header size | u64 bytes of entries behind it
 *	entry      u16 kind | u16 | u32 header size (64 at least) | u64 payload size | u32 compressed size | ... | at 40 u64 flags |
 *	           at 56 u64 uncompressed size | payload;  flags 0x2000: LZ4 block, 0x8000: zstd frame
 *
 * An image that does not look like that is searched as it is.
 */
#include "server/worker/names.h"

#include <ctype.h>
#include <errno.h>
#include <lz4.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { NAME_MAX_BYTES = 4096, FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000, ENTRY_HEADER = 64 };
static const uint32_t container_magic = 0xba55ed50;
#define UNPACKED_MAX ((uint64_t)2 << 30)

static bool begins_name(unsigned char c)
{
	return isalpha(c) || c == '_' || c == '$' || c == '%';
}

static bool in_name(unsigned char c)
{
	return isalnum(c) || c == '_' || c == '$' || c == '.';
}

static int add(struct ckt_names *names, const uint8_t *start, size_t size)
{
	if (names->count == names->room) {
		size_t room = names->room ? names->room * 2 : 256;
		char **list = realloc(names->list, room * sizeof *list);
		if (!list)
			return -ENOMEM;
		names->list = list;
		names->room = room;
	}
	char *name = strndup((const char *)start, size);
	if (!name)
		return -ENOMEM;
	names->list[names->count++] = name;
	return 0;
}

static int search(struct ckt_names *names, const uint8_t *p, size_t size)
{
	const uint8_t *end = p + size;
	while (p < end) {
		if (!begins_name(*p)) {
			p++;
			continue;
		}
		const uint8_t *start = p++;
		while (p < end && in_name(*p))
			p++;
		int result = p - start < NAME_MAX_BYTES ? add(names, start, (size_t)(p - start)) : 0;
		if (result)
			return result;
	}
	return 0;
}

static uint64_t word(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;
	memcpy(&v, p, bytes);
	return v;
}

static int search_entry(struct ckt_names *names, const uint8_t *header, const uint8_t *payload, uint64_t size)
{
	uint64_t compressed = word(header + 16, 4), flags = word(header + 40, 8), unpacked = word(header + 56, 8);
	if (!compressed)
		return search(names, payload, size);
	if (compressed > size || !unpacked || unpacked > UNPACKED_MAX)
		return 0;
	uint8_t *text = malloc(unpacked);
	if (!text)
		return -ENOMEM;
	bool good = false;
	if (flags & FLAG_ZSTD)
		good = ZSTD_decompress(text, unpacked, payload, compressed) == unpacked;
	else if (flags & FLAG_LZ4)
		good = LZ4_decompress_safe((const char *)payload, (char *)text, (int)compressed, (int)unpacked) == (int)unpacked;
	int result = good ? search(names, text, unpacked) : 0;
	free(text);
	return result;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int ckt_names_collect(const uint8_t *image, size_t size, struct ckt_names *ret_names)
{
	struct ckt_names names = {0};
	int result = 0;
	if (size < 16 || word(image, 4) != container_magic) {
		result = search(&names, image, size);
	} else {
		uint64_t at = word(image + 6, 2), end = word(image + 8, 8);
		end = end > size - (at < size ? at : size) ? size : at + end;
		while (!result && at < end && end - at >= ENTRY_HEADER) {
			uint64_t header = word(image + at + 4, 4), payload = word(image + at + 8, 8);
			if (header < ENTRY_HEADER || header > end - at || payload > end - at - header)
				break;
			result = search_entry(&names, image + at, image + at + header, payload);
			at += header + payload;
		}
	}
	if (result) {
		ckt_names_fini(&names);
		return result;
	}
	size_t kept = 0;
	if (names.count)
		qsort(names.list, names.count, sizeof *names.list, by_text);
	for (size_t i = 0; i < names.count; i++) {
		if (kept && !strcmp(names.list[kept - 1], names.list[i]))
			free(names.list[i]);
		else
			names.list[kept++] = names.list[i];
	}
	names.count = kept;
	*ret_names = names;
	return 0;
}

void ckt_names_fini(struct ckt_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->list[i]);
	free(names->list);
	*names = (struct ckt_names){0};
}
