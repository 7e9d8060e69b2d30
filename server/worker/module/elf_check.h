/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that the tables of an ELF file (machine code, or an object of the host) lie inside the
 * file, so that a reader that trusts them reads nothing else.  Threading: any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * NULL if the file is valid.  Otherwise the error, as the rest of a sentence that begins with the
 * file's name; a string constant.
 */
const char *ckt_elf_check(const uint8_t *data, size_t size);
bool ckt_elf_is(const uint8_t *data, size_t size);

struct ckt_elf_section {
	const char *name;
	uint32_t type;
	uint64_t flags, size;
	const uint8_t *data; /* NULL if the section has no bytes in the file */
};

/*
 * Calls for every section except the empty first one.  Precondition: ckt_elf_check returned NULL.
 */
void ckt_elf_each_section(const uint8_t *data, size_t size,
	void (*call)(void *opaque, const struct ckt_elf_section *section), void *opaque);

struct ckt_elf_symbol {
	const char *name; /* "" if it has none */
	unsigned type;    /* STT_OBJECT and the like */
	bool defined;     /* it lies in a section of this file */
	uint64_t size;
};

/*
 * Calls for every symbol of the file's SHT_SYMTAB tables, until one call returns something other
 * than 0, which is returned.  *ret_tables: how many tables there are.  Precondition: ckt_elf_check
 * returned NULL.
 */
int ckt_elf_each_symbol(const uint8_t *data, size_t size,
	int (*call)(void *opaque, const struct ckt_elf_symbol *symbol), void *opaque,
	unsigned *ret_tables);
