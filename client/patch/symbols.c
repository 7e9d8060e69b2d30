/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redirects by names.  A static runtime of an unknown release has names in the file's .symtab, and
 * NVIDIA's own shared runtime exports its names.  The file is read as untrusted bytes.  It may no
 * longer be the mapped file, so every address is checked against the segments in memory.
 */
#include <string.h>

#include "client/patch/elf_file.h"
#include "client/patch/redirect.h"
#include "client/patch/patch_log.h"
#include "cudacommon/static_runtimes.h"

enum { ENTRIES_MAX = 512 };

struct symbols {
	const ElfW(Sym) * table;
	size_t count;
	const char *strings;
	size_t strings_bytes;
};

static bool file_symtab(const struct ckt_elf_file *file, struct symbols *ret_symbols)
{
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)file->bytes;

	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
		header->e_shentsize != sizeof(ElfW(Shdr)) || header->e_shoff % 8 ||
		!ckt_patch_elf_file_holds(
			file, header->e_shoff, (uint64_t)header->e_shnum * sizeof(ElfW(Shdr))))
		return false;
	const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(file->bytes + header->e_shoff);
	for (unsigned i = 0; i < header->e_shnum; i++) {
		const ElfW(Shdr) *symtab = &sections[i], *strtab;

		if (symtab->sh_type != SHT_SYMTAB || symtab->sh_link >= header->e_shnum ||
			symtab->sh_offset % 8)
			continue;
		strtab = &sections[symtab->sh_link];
		if (!ckt_patch_elf_file_holds(file, symtab->sh_offset, symtab->sh_size) ||
			!ckt_patch_elf_file_holds(file, strtab->sh_offset, strtab->sh_size) ||
			!strtab->sh_size || file->bytes[strtab->sh_offset + strtab->sh_size - 1])
			return false;
		ret_symbols->table = (const ElfW(Sym) *)(file->bytes + symtab->sh_offset);
		ret_symbols->count = symtab->sh_size / sizeof(ElfW(Sym));
		ret_symbols->strings = (const char *)file->bytes + strtab->sh_offset;
		ret_symbols->strings_bytes = strtab->sh_size;
		return true;
	}
	return false;
}

static bool executable_address(const struct ckt_loaded_object *object, uintptr_t address)
{
	for (unsigned i = 0; i < object->phnum; i++) {
		const ElfW(Phdr) *segment = &object->phdr[i];
		uintptr_t start = object->base + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) && address >= start &&
			segment->p_filesz >= CKT_STATIC_SLOT &&
			address - start <= segment->p_filesz - CKT_STATIC_SLOT)
			return true;
	}
	return false;
}

static int name_index(const char *name)
{
	if (strncmp(name, "cuda", 4) != 0 && strncmp(name, "__cuda", 6) != 0)
		return -1;
	for (unsigned i = 0; i < ckt_static_names_count; i++)
		if (strcmp(ckt_static_names[i], name) == 0)
			return (int)i;
	return -1;
}

/*
 * Fills the entries and the CUDA version for which they were compiled; 0 if this is not a whole
 * runtime.  A program may have its own functions with such names.  So the file must also contain
 * one of the archive's private names, which are hashes after a fixed prefix.
 */
static unsigned collect(const struct ckt_loaded_object *object, const struct symbols *symbols,
	struct ckt_redirect_entry *entries, unsigned *ret_major)
{
	static const char private_prefix[] = "libcudart_static_";
	unsigned count = 0, major = 13, essential = 0;
	bool is_private = false;

	for (size_t i = 0; i < symbols->count && count < ENTRIES_MAX; i++) {
		const ElfW(Sym) *symbol = &symbols->table[i];

		if (!symbol->st_name || symbol->st_name >= symbols->strings_bytes ||
			symbol->st_shndx == SHN_UNDEF)
			continue;
		const char *name = symbols->strings + symbol->st_name;
		is_private = is_private ||
			strncmp(name, private_prefix, sizeof(private_prefix) - 1) == 0;
		if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
			symbol->st_value % CKT_STATIC_SLOT)
			continue;
		int index = name_index(name);
		if (index < 0 || !executable_address(object, object->base + symbol->st_value))
			continue;
		if (strcmp(name, "cudaGetDeviceProperties_v2") == 0)
			major = 12;
		essential += strcmp(name, "__cudaRegisterFatBinary") == 0 ||
			strcmp(name, "cudaGetExportTable") == 0 ||
			strcmp(name, "cudaLaunchKernel") == 0;
		entries[count++] = (struct ckt_redirect_entry){
			object->base + symbol->st_value, (unsigned)index};
	}
	*ret_major = major;
	return is_private && essential == 3 ? count : 0;
}

static enum ckt_redirect_result write_entries(const struct ckt_loaded_object *object,
	const struct ckt_runtime *runtime, unsigned major, const struct ckt_redirect_entry *entries,
	unsigned count)
{
	if (!count)
		return CKT_REDIRECT_NONE;
	int error = ckt_redirect_write(runtime, major, entries, count);
	if (error < 0) {
		ckt_redirect_say_refused(object, error);
		return CKT_REDIRECT_REFUSED;
	}
	return CKT_REDIRECT_DONE;
}

enum ckt_redirect_result ckt_redirect_by_symbols(
	const struct ckt_loaded_object *object, const struct ckt_runtime *runtime)
{
	struct ckt_redirect_entry entries[ENTRIES_MAX];
	struct symbols symbols;
	struct ckt_elf_file file;
	unsigned major = 13, count = 0;

	if (!ckt_patch_elf_file_map(&file, ckt_loaded_object_file(object)))
		return CKT_REDIRECT_NONE;
	if (file_symtab(&file, &symbols))
		count = collect(object, &symbols, entries, &major);
	ckt_patch_elf_file_unmap(&file);
	enum ckt_redirect_result result = write_entries(object, runtime, major, entries, count);
	if (result == CKT_REDIRECT_DONE)
		ckt_patch_log_debug("redirected %u entry points in %s by their names", count,
			ckt_loaded_object_name(object));
	return result;
}

enum ckt_redirect_result ckt_redirect_shared(
	const struct ckt_loaded_object *object, const struct ckt_runtime *runtime)
{
	struct ckt_redirect_entry entries[ENTRIES_MAX];
	struct ckt_dynamic dynamic;
	unsigned count = 0;

	if (!ckt_loaded_object_dynamic(object, &dynamic) || !dynamic.soname)
		return CKT_REDIRECT_NONE;
	unsigned major = strcmp(dynamic.soname, "libcudart.so.12") == 0 ? 12
		: strcmp(dynamic.soname, "libcudart.so.13") == 0        ? 13
									: 0;
	for (unsigned i = 0; major && i < ckt_static_names_count && count < ENTRIES_MAX; i++) {
		uintptr_t address =
			(uintptr_t)ckt_patch_dynamic_symbol(object, &dynamic, ckt_static_names[i]);

		/*
		 * Entries are at least 16 bytes apart (gen_static_runtimes.py checks it).
		 * Otherwise this is an unknown library.
		 */
		if (address % CKT_STATIC_SLOT)
			return CKT_REDIRECT_NONE;
		if (address && executable_address(object, address))
			entries[count++] = (struct ckt_redirect_entry){address, i};
	}
	enum ckt_redirect_result result = write_entries(object, runtime, major, entries, count);
	if (result == CKT_REDIRECT_DONE)
		ckt_patch_log_debug(
			"redirected %u functions of %s", count, ckt_loaded_object_name(object));
	return result;
}
