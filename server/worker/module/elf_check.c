/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of ELF files; see elf_check.h.  Every read copies the bytes, because a file may lie at any
 * address and its tables at any offset.
 */
#include "server/worker/module/elf_check.h"

#include <elf.h>
#include <string.h>

/*
 * CUDA's own section types that have a size and no bytes, like SHT_NOBITS: variables without
 * initial values, local and shared memory.  The values were read from the cubins in CUDA 13.0's
 * libraries.
 */
enum {
	CUDA_GLOBAL = 0x70000007,
	CUDA_LOCAL = 0x70000009,
	CUDA_SHARED = 0x7000000a,
	CUDA_SHARED_RESERVED = 0x70000015
};
enum { EM_CUDA_NUMBER = 190 };

struct file {
	const uint8_t *data;
	size_t size;
	Elf64_Ehdr header;
	uint64_t section_count, names;
};

static bool inside(const struct file *file, uint64_t offset, uint64_t size)
{
	return offset <= file->size && size <= file->size - offset;
}

static bool table_inside(const struct file *file, uint64_t offset, uint64_t count, uint64_t entry)
{
	uint64_t size;
	return !__builtin_mul_overflow(count, entry, &size) && inside(file, offset, size);
}

static Elf64_Shdr section_at(const struct file *file, uint64_t index)
{
	Elf64_Shdr section;
	memcpy(&section, file->data + file->header.e_shoff + index * sizeof section,
		sizeof section);
	return section;
}

static bool has_bytes(const Elf64_Shdr *section)
{
	return section->sh_type != SHT_NULL && section->sh_type != SHT_NOBITS &&
		section->sh_type != CUDA_GLOBAL && section->sh_type != CUDA_LOCAL &&
		section->sh_type != CUDA_SHARED && section->sh_type != CUDA_SHARED_RESERVED;
}

bool ckt_elf_is(const uint8_t *data, size_t size)
{
	return size >= SELFMAG && !memcmp(data, ELFMAG, SELFMAG);
}

/* ---- The steps of the check; each returns the error, or NULL */

static const char *check_header(struct file *file)
{
	Elf64_Ehdr *h = &file->header;
	if (file->size < sizeof *h)
		return "is shorter than an ELF header";
	memcpy(h, file->data, sizeof *h);
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
		h->e_ident[EI_VERSION] != EV_CURRENT)
		return "is not a 64-bit little-endian ELF file";
	if (h->e_ehsize < sizeof *h || h->e_ehsize > file->size)
		return "has an ELF header of another size";
	if (h->e_phnum &&
		(h->e_phentsize != sizeof(Elf64_Phdr) ||
			!table_inside(file, h->e_phoff, h->e_phnum, sizeof(Elf64_Phdr))))
		return "has a program table that lies outside the file";
	file->section_count = h->e_shnum;
	file->names = h->e_shstrndx;
	if (!h->e_shoff)
		return h->e_shnum ? "has sections but no table of them" : NULL;
	if (h->e_shentsize != sizeof(Elf64_Shdr) || !inside(file, h->e_shoff, sizeof(Elf64_Shdr)))
		return "has a section table that lies outside the file";
	/* With more than 65279 sections, the first entry holds the numbers. */
	Elf64_Shdr first = section_at(file, 0);
	if (!h->e_shnum)
		file->section_count = first.sh_size;
	if (h->e_shstrndx == SHN_XINDEX)
		file->names = first.sh_link;
	return table_inside(file, h->e_shoff, file->section_count, sizeof(Elf64_Shdr))
		? NULL
		: "has a section table that lies outside the file";
}

static const char *check_segments(const struct file *file)
{
	for (unsigned i = 0; i < file->header.e_phnum; i++) {
		Elf64_Phdr segment;
		memcpy(&segment, file->data + file->header.e_phoff + i * sizeof segment,
			sizeof segment);
		if (segment.p_filesz && !inside(file, segment.p_offset, segment.p_filesz))
			return "has a segment that lies outside the file";
	}
	return NULL;
}

/* A table of strings must end with a NUL, so that every string in it ends inside the table. */
static bool strings_good(const struct file *file, const Elf64_Shdr *table)
{
	return table->sh_type == SHT_STRTAB &&
		(!table->sh_size || !file->data[table->sh_offset + table->sh_size - 1]);
}

static const char *check_symbols(const struct file *file, const Elf64_Shdr *table)
{
	if (table->sh_entsize != sizeof(Elf64_Sym) || table->sh_size % sizeof(Elf64_Sym) ||
		table->sh_link >= file->section_count)
		return "has an invalid symbol table";
	Elf64_Shdr strings = section_at(file, table->sh_link);
	if (!strings_good(file, &strings))
		return "has symbols without a table of their names";
	for (uint64_t at = 0; at < table->sh_size; at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;
		memcpy(&symbol, file->data + table->sh_offset + at, sizeof symbol);
		if (symbol.st_name && symbol.st_name >= strings.sh_size)
			return "has a symbol whose name lies outside the table of names";
		if (symbol.st_shndx >= file->section_count && symbol.st_shndx < SHN_LORESERVE)
			return "has a symbol in a section that does not exist";
	}
	return NULL;
}

static const char *check_relocations(const struct file *file, const Elf64_Shdr *table)
{
	size_t entry = table->sh_type == SHT_REL ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
	if (table->sh_entsize != entry || table->sh_size % entry ||
		table->sh_link >= file->section_count || table->sh_info >= file->section_count)
		return "has an invalid relocation table";
	Elf64_Shdr symbols = section_at(file, table->sh_link),
		   target = section_at(file, table->sh_info);
	uint64_t count = symbols.sh_type == SHT_SYMTAB || symbols.sh_type == SHT_DYNSYM
		? symbols.sh_size / sizeof(Elf64_Sym)
		: 0;
	for (uint64_t at = 0; at < table->sh_size; at += entry) {
		Elf64_Rel relocation;
		memcpy(&relocation, file->data + table->sh_offset + at, sizeof relocation);
		if (ELF64_R_SYM(relocation.r_info) && ELF64_R_SYM(relocation.r_info) >= count)
			return "has a relocation for a symbol that does not exist";
		/* In a file that was linked for a host, the offset is an address. */
		if ((file->header.e_type == ET_REL || file->header.e_machine == EM_CUDA_NUMBER) &&
			relocation.r_offset >= target.sh_size)
			return "has a relocation outside its section";
	}
	return NULL;
}

static const char *check_section(
	const struct file *file, const Elf64_Shdr *section, const Elf64_Shdr *names)
{
	if (section->sh_name >= names->sh_size)
		return "has a section whose name lies outside the table of names";
	if (has_bytes(section) && !inside(file, section->sh_offset, section->sh_size))
		return "has a section that lies outside the file";
	return NULL;
}

static const char *check_sections(const struct file *file)
{
	if (!file->section_count)
		return NULL;
	if (file->names >= file->section_count)
		return "has no section names";
	Elf64_Shdr names = section_at(file, file->names);
	if (!inside(file, names.sh_offset, names.sh_size) || !names.sh_size ||
		!strings_good(file, &names))
		return "has no section names";
	/* Check all sections before their contents, because the tables refer to each other. */
	const char *why = NULL;
	for (uint64_t i = 0; i < file->section_count && !why; i++) {
		Elf64_Shdr section = section_at(file, i);
		why = check_section(file, &section, &names);
	}
	for (uint64_t i = 0; i < file->section_count && !why; i++) {
		Elf64_Shdr section = section_at(file, i);
		if (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM)
			why = check_symbols(file, &section);
		else if (section.sh_type == SHT_REL || section.sh_type == SHT_RELA)
			why = check_relocations(file, &section);
	}
	return why;
}

const char *ckt_elf_check(const uint8_t *data, size_t size)
{
	struct file file = {.data = data, .size = size};
	if (!ckt_elf_is(data, size))
		return "is not an ELF file";
	const char *why = check_header(&file);
	if (!why)
		why = check_segments(&file);
	return why ? why : check_sections(&file);
}

void ckt_elf_each_section(const uint8_t *data, size_t size,
	void (*call)(void *opaque, const struct ckt_elf_section *section), void *opaque)
{
	struct file file = {.data = data, .size = size};
	if (check_header(&file) || !file.section_count)
		return;
	Elf64_Shdr names = section_at(&file, file.names);
	for (uint64_t i = 1; i < file.section_count; i++) {
		Elf64_Shdr from = section_at(&file, i);
		struct ckt_elf_section section = {
			.name = (const char *)data + names.sh_offset + from.sh_name,
			.type = from.sh_type,
			.flags = from.sh_flags,
			.size = from.sh_size,
			.data = has_bytes(&from) ? data + from.sh_offset : NULL};
		call(opaque, &section);
	}
}

static int each_of(const struct file *file, const Elf64_Shdr *table,
	int (*call)(void *opaque, const struct ckt_elf_symbol *symbol), void *opaque)
{
	const char *strings = (const char *)file->data + section_at(file, table->sh_link).sh_offset;
	int result = 0;
	for (uint64_t at = 0; at < table->sh_size && !result; at += sizeof(Elf64_Sym)) {
		Elf64_Sym from;
		memcpy(&from, file->data + table->sh_offset + at, sizeof from);
		struct ckt_elf_symbol symbol = {.name = from.st_name ? strings + from.st_name : "",
			.type = ELF64_ST_TYPE(from.st_info),
			.defined = from.st_shndx != SHN_UNDEF,
			.size = from.st_size};
		result = call(opaque, &symbol);
	}
	return result;
}

int ckt_elf_each_symbol(const uint8_t *data, size_t size,
	int (*call)(void *opaque, const struct ckt_elf_symbol *symbol), void *opaque,
	unsigned *ret_tables)
{
	struct file file = {.data = data, .size = size};
	unsigned tables = 0;
	int result = 0;
	if (!check_header(&file))
		for (uint64_t i = 1; i < file.section_count && !result; i++) {
			Elf64_Shdr table = section_at(&file, i);
			if (table.sh_type != SHT_SYMTAB)
				continue;
			tables++;
			result = each_of(&file, &table, call, opaque);
		}
	*ret_tables = tables;
	return result;
}
