/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of ELF files: whole ones pass, and none that says more than it has. */
#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/module/elf_check.h"
#include "tests/unit/suite.h"

enum { SYMBOLS = 3, SECTIONS = 6, EM_CUDA_NUMBER = 190 };

static const char names[] = "\0.shstrtab\0.symtab\0.strtab\0.text.k\0.rela.text.k",
		  strings[] = "\0k\0value";

/* A small cubin: names, symbols, their names, code, relocations. */
struct file {
	Elf64_Ehdr header;
	Elf64_Shdr sections[SECTIONS];
	Elf64_Phdr segment;
	Elf64_Sym symbols[SYMBOLS];
	Elf64_Rela relocations[1];
	char names[sizeof names], strings[sizeof strings], code[64];
};

static struct file make(void)
{
	struct file f;
	memset(&f, 0, sizeof f);
#define AT(what) .sh_offset = offsetof(struct file, what), .sh_size = sizeof f.what
	f.header = (Elf64_Ehdr){.e_type = ET_EXEC,
		.e_machine = EM_CUDA_NUMBER,
		.e_version = 1,
		.e_ehsize = sizeof f.header,
		.e_phentsize = sizeof f.segment,
		.e_phnum = 1,
		.e_phoff = offsetof(struct file, segment),
		.e_shentsize = sizeof f.sections[0],
		.e_shnum = SECTIONS,
		.e_shoff = offsetof(struct file, sections),
		.e_shstrndx = 1};
	memcpy(f.header.e_ident, ELFMAG, SELFMAG);
	f.header.e_ident[EI_CLASS] = ELFCLASS64;
	f.header.e_ident[EI_DATA] = ELFDATA2LSB;
	f.header.e_ident[EI_VERSION] = EV_CURRENT;
	f.sections[1] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_STRTAB, AT(names)};
	f.sections[2] = (Elf64_Shdr){.sh_name = 11,
		.sh_type = SHT_SYMTAB,
		AT(symbols),
		.sh_link = 3,
		.sh_entsize = sizeof f.symbols[0]};
	f.sections[3] = (Elf64_Shdr){.sh_name = 19, .sh_type = SHT_STRTAB, AT(strings)};
	f.sections[4] = (Elf64_Shdr){
		.sh_name = 27, .sh_type = SHT_PROGBITS, AT(code), .sh_flags = SHF_ALLOC};
	f.sections[5] = (Elf64_Shdr){.sh_name = 35,
		.sh_type = SHT_RELA,
		AT(relocations),
		.sh_link = 2,
		.sh_info = 4,
		.sh_entsize = sizeof f.relocations[0]};
	f.segment = (Elf64_Phdr){.p_type = PT_LOAD,
		.p_offset = offsetof(struct file, code),
		.p_filesz = sizeof f.code,
		.p_memsz = sizeof f.code};
	f.symbols[1] = (Elf64_Sym){.st_name = 1, .st_shndx = 4};
	f.symbols[2] = (Elf64_Sym){.st_name = 3, .st_shndx = SHN_ABS};
	f.relocations[0] = (Elf64_Rela){.r_offset = 8, .r_info = ELF64_R_INFO(2, 1)};
	memcpy(f.names, names, sizeof names);
	memcpy(f.strings, strings, sizeof strings);
	return f;
}

/* In memory of exactly that size, so that a byte too far is found by a sanitizer. */
static const char *check(const void *data, size_t size)
{
	uint8_t *copy = malloc(size + !size);
	memcpy(copy, data, size);
	const char *why = ckt_elf_check(copy, size);
	free(copy);
	return why;
}

static void test_whole(void)
{
	struct file f = make();
	CU_ASSERT_PTR_NULL(check(&f, sizeof f));
	for (size_t size = 0; size < offsetof(struct file, code) + sizeof f.code; size++)
		CU_ASSERT_PTR_NOT_NULL(check(&f, size));
	/* Nothing but a header is a file without sections. */
	f.header.e_shoff = f.header.e_shnum = f.header.e_phnum = 0;
	CU_ASSERT_PTR_NULL(check(&f, sizeof f.header));
}

#define WRONG(change)                                        \
	do {                                                 \
		struct file f = make();                      \
		change;                                      \
		CU_ASSERT_PTR_NOT_NULL(check(&f, sizeof f)); \
	} while (0)

static void test_wrong(void)
{
	WRONG(f.header.e_ident[EI_CLASS] = ELFCLASS32);
	WRONG(f.header.e_ident[EI_DATA] = ELFDATA2MSB);
	WRONG(f.header.e_ehsize = 63);
	WRONG(f.header.e_ehsize = 65535);
	WRONG(f.header.e_shoff = sizeof f);
	WRONG(f.header.e_shoff = UINT64_MAX);
	WRONG(f.header.e_shoff = 0);
	WRONG(f.header.e_shnum = 65000);
	WRONG((f.header.e_shnum = 0, f.sections[0].sh_size = UINT64_MAX / 64 + 1));
	WRONG(f.header.e_shentsize = 40);
	WRONG(f.header.e_shstrndx = SECTIONS);
	WRONG(f.header.e_shstrndx = 4);
	WRONG((f.header.e_shstrndx = SHN_XINDEX, f.sections[0].sh_link = SECTIONS));
	WRONG(f.header.e_phoff = sizeof f - 8);
	WRONG(f.header.e_phnum = 9000);
	WRONG(f.header.e_phentsize = 32);
	WRONG(f.segment.p_filesz = UINT64_MAX);
	WRONG(f.segment.p_offset = sizeof f);
	WRONG(f.sections[4].sh_size = sizeof f);
	WRONG(f.sections[4].sh_offset = UINT64_MAX - 8);
	WRONG(f.sections[4].sh_name = sizeof names);
	WRONG(f.names[sizeof names - 1] = 'x');
	WRONG(f.strings[sizeof strings - 1] = 'x');
	WRONG(f.sections[2].sh_link = SECTIONS);
	WRONG(f.sections[2].sh_link = 4);
	WRONG(f.sections[2].sh_entsize = 8);
	WRONG(f.sections[2].sh_size--);
	WRONG(f.symbols[1].st_name = sizeof strings);
	WRONG(f.symbols[1].st_shndx = SECTIONS);
	WRONG(f.sections[5].sh_link = SECTIONS);
	WRONG(f.sections[5].sh_info = SECTIONS);
	WRONG(f.sections[5].sh_entsize = 16);
	WRONG(f.relocations[0].r_info = ELF64_R_INFO(SYMBOLS, 1));
	WRONG(f.relocations[0].r_offset = sizeof f.code);
}

/* Every bit of it wrong: an answer, whichever, and nothing read beside it. */
static void test_changed(void)
{
	struct file f = make();
	uint8_t *bytes = (uint8_t *)&f;
	for (size_t at = 0; at < sizeof f; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			bytes[at] ^= (uint8_t)(1 << bit);
			check(&f, sizeof f);
			bytes[at] ^= (uint8_t)(1 << bit);
		}
}

static void count(void *opaque, const struct ckt_elf_section *section)
{
	unsigned *seen = opaque;
	*seen += section->size == 64 && !strcmp(section->name, ".text.k") && section->data &&
		section->flags & SHF_ALLOC;
	*seen += !strcmp(section->name, ".strtab") ? 16 : 256;
}

static void test_sections(void)
{
	struct file f = make();
	unsigned seen = 0;
	ckt_elf_each_section((const uint8_t *)&f, sizeof f, count, &seen);
	CU_ASSERT_EQUAL(seen, 1 + 16 + 4 * 256);
	/* A section without bytes has none to give. */
	f.sections[4].sh_type = SHT_NOBITS;
	f.sections[4].sh_offset = UINT64_MAX;
	CU_ASSERT_PTR_NULL(check(&f, sizeof f));
	seen = 0;
	ckt_elf_each_section((const uint8_t *)&f, sizeof f, count, &seen);
	CU_ASSERT_EQUAL(seen, 16 + 4 * 256);
}

UNIT_SUITE(elf_check, {"whole", test_whole}, {"wrong", test_wrong}, {"changed", test_changed},
	{"sections", test_sections})
