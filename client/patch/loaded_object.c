/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See loaded_object.h.  The dynamic loader mapped everything that this file reads, and already
 * refused broken files.
 */
#include "client/patch/loaded_object.h"

#include <limits.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

void ckt_loaded_object_from_info(struct ckt_loaded_object *object, const struct dl_phdr_info *info)
{
	object->path = info->dlpi_name ? info->dlpi_name : "";
	object->base = info->dlpi_addr;
	object->phdr = info->dlpi_phdr;
	object->phnum = info->dlpi_phnum;
}

bool ckt_loaded_object_from_link_map(struct ckt_loaded_object *object, const struct link_map *map)
{
	object->path = map->l_name ? map->l_name : "";
	object->base = map->l_addr;
	if (!object->path[0]) {
		/*
		 * The program: a program without PIE has base 0, so its headers come from the
		 * kernel.
		 */
		object->phdr = (const ElfW(Phdr) *)getauxval(AT_PHDR);
		object->phnum = (unsigned)getauxval(AT_PHNUM);
		return object->phdr != NULL;
	}
	/*
	 * A shared library's first segment starts with the ELF header and is linked at address 0.
	 */
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)map->l_addr;
	if (!header || (map->l_addr & 0xfff) || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
		header->e_phentsize != sizeof(ElfW(Phdr)))
		return false;
	object->phdr = (const ElfW(Phdr) *)(map->l_addr + header->e_phoff);
	object->phnum = header->e_phnum;
	return true;
}

bool ckt_loaded_object_dynamic(
	const struct ckt_loaded_object *object, struct ckt_dynamic *ret_dynamic)
{
	struct ckt_dynamic found = {0};
	size_t soname = 0;
	bool has_soname = false;

	for (unsigned i = 0; i < object->phnum; i++)
		if (object->phdr[i].p_type == PT_DYNAMIC)
			found.entries = (const ElfW(Dyn) *)(object->base + object->phdr[i].p_vaddr);
	if (!found.entries)
		return false;
	for (const ElfW(Dyn) *entry = found.entries; entry->d_tag != DT_NULL; entry++) {
		/*
		 * glibc has already converted these values into addresses, except in the vDSO,
		 * where they are below the base.
		 */
		uintptr_t address = entry->d_un.d_ptr < object->base
			? entry->d_un.d_ptr + object->base
			: entry->d_un.d_ptr;

		if (entry->d_tag == DT_SYMTAB)
			found.symbols = (const ElfW(Sym) *)address;
		else if (entry->d_tag == DT_STRTAB)
			found.strings = (const char *)address;
		else if (entry->d_tag == DT_STRSZ)
			found.strings_bytes = entry->d_un.d_val;
		else if (entry->d_tag == DT_GNU_HASH)
			found.gnu_hash = (const uint32_t *)address;
		else if (entry->d_tag == DT_SONAME) {
			soname = entry->d_un.d_val;
			has_soname = true;
		}
	}
	if (!found.symbols || !found.strings)
		return false;
	found.soname = has_soname ? found.strings + soname : NULL;
	*ret_dynamic = found;
	return true;
}

/*
 * Looks a name up like the loader (GNU hash: header, Bloom filter, buckets, chains), but ignores
 * versions.
 */
const ElfW(Sym) * ckt_dynamic_entry(const struct ckt_dynamic *dynamic, const char *name)
{
	const uint32_t *table = dynamic->gnu_hash;
	uint32_t hash = 5381;

	if (!table || !table[0])
		return NULL;
	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	uint32_t buckets_count = table[0], first = table[1], bloom_words = table[2];
	/* Bloom words have 64 bits. */
	const uint32_t *buckets = table + 4 + 2 * (size_t)bloom_words;
	const uint32_t *chains = buckets + buckets_count;
	uint32_t index = buckets[hash % buckets_count];

	if (index < first)
		return NULL;
	for (;; index++) {
		uint32_t value = chains[index - first];
		const ElfW(Sym) *symbol = &dynamic->symbols[index];

		if ((value | 1) == (hash | 1) &&
			strcmp(dynamic->strings + symbol->st_name, name) == 0 &&
			symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC)
			return symbol;
		if (value & 1)
			return NULL;
	}
}

void *ckt_patch_dynamic_symbol(
	const struct ckt_loaded_object *object, const struct ckt_dynamic *dynamic, const char *name)
{
	const ElfW(Sym) *symbol = ckt_dynamic_entry(dynamic, name);

	return symbol ? (void *)(object->base + symbol->st_value) : NULL;
}

bool ckt_patch_dynamic_needs(const struct ckt_dynamic *dynamic, const char *soname)
{
	for (const ElfW(Dyn) *entry = dynamic->entries; entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == DT_NEEDED &&
			strcmp(dynamic->strings + entry->d_un.d_val, soname) == 0)
			return true;
	return false;
}

const char *ckt_loaded_object_file(const struct ckt_loaded_object *object)
{
	return object->path[0] ? object->path : "/proc/self/exe";
}

const char *ckt_loaded_object_name(const struct ckt_loaded_object *object)
{
	static char program[PATH_MAX];

	if (object->path[0])
		return object->path;
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (length <= 0)
		return "the program";
	program[length] = 0;
	return program;
}
