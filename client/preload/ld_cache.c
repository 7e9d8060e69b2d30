/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See ld_cache.h.  The layout is that of glibc's sysdeps/generic/dl-ld_cache.h: a header, entries
 * sorted by name, strings.  Offsets of strings count from the header.  Before version 2.32,
 * ldconfig puts this header after a table of the old format.
 */
#include "client/preload/ld_cache.h"

#include <stdint.h>
#include <string.h>

#include "client/patch/elf_file.h"

enum { LIBC6_X86_64 = 0x0303 };

static const char magic[] = "glibc-ld.so.cache1.1", old_magic[] = "ld.so-1.7.0";

struct header {
	char magic[sizeof(magic) - 1];
	uint32_t count, strings_bytes, unused[5];
};

struct entry {
	int32_t flags;
	uint32_t key, value; /* offsets of the name and of the path */
	uint32_t os_version;
	uint64_t hwcap; /* if not 0, only for some processors */
};

struct old_header {
	char magic[sizeof(old_magic)];
	uint32_t count;
};

/* The start of the new format. */
static uint64_t start_of(const struct ckt_elf_file *file)
{
	const struct old_header *old = (const struct old_header *)file->bytes;
	enum { OLD_ENTRY_BYTES = 12 };

	if (!ckt_patch_elf_file_holds(file, 0, sizeof(*old)) ||
		memcmp(old->magic, old_magic, sizeof(old_magic) - 1) != 0)
		return 0;
	return (sizeof(*old) + (uint64_t)old->count * OLD_ENTRY_BYTES + 7) & ~(uint64_t)7;
}

static const char *text_at(const struct ckt_elf_file *file, uint64_t offset)
{
	if (offset >= file->size_bytes ||
		!memchr(file->bytes + offset, 0, file->size_bytes - offset))
		return NULL;
	return (const char *)file->bytes + offset;
}

static const char *find(const struct ckt_elf_file *file, const char *soname)
{
	uint64_t start = start_of(file);
	const struct header *header = (const struct header *)(file->bytes + start);

	if (!ckt_patch_elf_file_holds(file, start, sizeof(*header)) ||
		memcmp(header->magic, magic, sizeof(header->magic)) != 0 ||
		!ckt_patch_elf_file_holds(file, start + sizeof(*header),
			(uint64_t)header->count * sizeof(struct entry)))
		return NULL;
	const struct entry *entries = (const struct entry *)(header + 1);
	for (uint32_t i = 0; i < header->count; i++) {
		const char *key = entries[i].flags == LIBC6_X86_64 && !entries[i].hwcap
			? text_at(file, start + entries[i].key)
			: NULL;

		if (key && strcmp(key, soname) == 0)
			return text_at(file, start + entries[i].value);
	}
	return NULL;
}

bool ckt_ld_cache_find(
	const char *cache, const char *soname, char *ret_path, unsigned long path_size)
{
	struct ckt_elf_file file;
	bool found = false;

	if (!ckt_patch_elf_file_map(&file, cache))
		return false;
	const char *path = find(&file, soname);
	if (path && strlen(path) < path_size) {
		strcpy(ret_path, path);
		found = true;
	}
	ckt_patch_elf_file_unmap(&file);
	return found;
}
