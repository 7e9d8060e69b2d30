/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loaded ELF object as the patcher sees it: program headers and dynamic section in memory,
 * without glibc's own data.  The start-up patcher and the audit module both use it.  It uses only
 * basic functions of libc (no malloc, no stdio), because it runs before libc's own constructors.
 * Threading: none; callers run in the loader, which admits one thread at a time.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_loaded_object {
	const char *path; /* borrowed; "" for the program itself */
	uintptr_t base;   /* the loader added it to the file's addresses */
	const ElfW(Phdr) * phdr;
	unsigned phnum;
};

struct ckt_dynamic {
	const ElfW(Sym) * symbols;
	const char *strings;
	size_t strings_bytes;
	const uint32_t *gnu_hash;
	const char *soname; /* NULL without one */
	const ElfW(Dyn) * entries;
};

void ckt_loaded_object_from_info(struct ckt_loaded_object *object, const struct dl_phdr_info *info);
/*
 * Finds the program headers through the ELF header at the start of a mapping.  False if there is no
 * such header.
 */
bool ckt_loaded_object_from_link_map(struct ckt_loaded_object *object, const struct link_map *map);
/* False if the object has no dynamic section, or one without symbols. */
bool ckt_loaded_object_dynamic(
	const struct ckt_loaded_object *object, struct ckt_dynamic *ret_dynamic);
/* The entry and the address of a function that the object exports, or NULL. */
const ElfW(Sym) * ckt_dynamic_entry(const struct ckt_dynamic *dynamic, const char *name);
void *ckt_patch_dynamic_symbol(const struct ckt_loaded_object *object,
	const struct ckt_dynamic *dynamic, const char *name);
bool ckt_patch_dynamic_needs(const struct ckt_dynamic *dynamic, const char *soname);
/* The path to open to read the object's file. */
const char *ckt_loaded_object_file(const struct ckt_loaded_object *object);
/* For messages: the program's real path, and not the link to it.  Valid until the next call. */
const char *ckt_loaded_object_name(const struct ckt_loaded_object *object);
