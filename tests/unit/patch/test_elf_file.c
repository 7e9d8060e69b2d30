/* SPDX-License-Identifier: Apache-2.0 */
/* client/patch/elf_file.c: what a library's file asks for, and files that are not to be trusted. */
#include "client/patch/elf_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static void test_map(void)
{
	struct ckt_elf_file file;
	NO(ckt_patch_elf_file_map(&file, "/nowhere"));
	NO(ckt_patch_elf_file_map(&file, "/"));
	NO(ckt_patch_elf_file_map(&file, "/dev/null"));
	CU_ASSERT_TRUE_FATAL(ckt_patch_elf_file_map(&file, "/proc/self/exe"));
	YES(memcmp(file.bytes, ELFMAG, SELFMAG) == 0);
	YES(ckt_patch_elf_file_holds(&file, 0, file.size_bytes));
	NO(ckt_patch_elf_file_holds(&file, 1, file.size_bytes));
	NO(ckt_patch_elf_file_holds(&file, file.size_bytes + 1, 0));
	NO(ckt_patch_elf_file_holds(&file, 8, UINT64_MAX));
	ckt_patch_elf_file_unmap(&file);
}

static bool asks_for(const struct ckt_elf_needs *needs, const char *name)
{
	for (unsigned i = 0; i < needs->count; i++)
		if (strcmp(needs->needed[i], name) == 0)
			return true;
	return false;
}

static void test_needs(void)
{
	struct ckt_elf_file file;
	struct ckt_elf_needs needs;
	CU_ASSERT_TRUE_FATAL(ckt_patch_elf_file_map(&file, "/proc/self/exe"));
	CU_ASSERT_TRUE_FATAL(ckt_patch_elf_file_needs(&file, &needs));
	YES(asks_for(&needs, "libc.so.6"));
	NO(asks_for(&needs, "libcublas.so.13"));
	ckt_patch_elf_file_unmap(&file);
	CU_ASSERT_TRUE_FATAL(ckt_patch_elf_file_map(&file, NEEDS_CUBLAS));
	CU_ASSERT_TRUE_FATAL(ckt_patch_elf_file_needs(&file, &needs));
	YES(asks_for(&needs, "libcublas.so.13"));
	HAS(needs.runpath, "$ORIGIN/nowhere:$ORIGIN");
	CU_ASSERT_PTR_NULL(needs.rpath);
	ckt_patch_elf_file_unmap(&file);
	CU_ASSERT_TRUE_FATAL(ckt_patch_elf_file_map(&file, "/etc/passwd"));
	NO(ckt_patch_elf_file_needs(&file, &needs));
	ckt_patch_elf_file_unmap(&file);
}

/*
 * Every truncation and every changed byte of the file's beginning and of its dynamic section is
 * survived; ASan watches.
 */
static void test_broken(void)
{
	struct ckt_elf_file file;
	struct ckt_elf_needs needs;
	CU_ASSERT_TRUE_FATAL(ckt_patch_elf_file_map(&file, NEEDS_CUBLAS));
	size_t size = file.size_bytes, refused = 0;
	for (size_t length = sizeof(ElfW(Ehdr)); length < size; length += length < 4096 ? 8 : 512) {
		uint8_t *bytes = malloc(length);
		struct ckt_elf_file shorter = {bytes, length};
		memcpy(bytes, file.bytes, length);
		refused += !ckt_patch_elf_file_needs(&shorter, &needs);
		free(bytes);
	}
	YES(refused > 0);
	uint8_t *bytes = malloc(size);
	struct ckt_elf_file changed = {bytes, size};
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)file.bytes;
	const ElfW(Phdr) *segments = (const ElfW(Phdr) *)(file.bytes + header->e_phoff);
	for (unsigned s = 0; s <= header->e_phnum; s++) {
		size_t start = s < header->e_phnum && segments[s].p_type == PT_DYNAMIC
			? segments[s].p_offset
			: 0,
		       end = start ? start + segments[s].p_filesz : 1024;
		if (s && !start)
			continue;
		for (size_t i = start; i < end; i++) {
			memcpy(bytes, file.bytes, size);
			bytes[i] ^= 0xff;
			if (!ckt_patch_elf_file_needs(&changed, &needs))
				continue;
			for (unsigned n = 0; n < needs.count; n++)
				YES(strlen(needs.needed[n]) < size);
		}
	}
	free(bytes);
	ckt_patch_elf_file_unmap(&file);
}

UNIT_SUITE(elf_file, {"map", test_map}, {"needs", test_needs}, {"broken", test_broken})
