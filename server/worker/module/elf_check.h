/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the tables of an ELF file (machine code, or an object of the host) lie inside its own
 * bytes, so that a reader that believes them reads nothing else.  Threading: any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * NULL where all is well, else what is wrong: the rest of a sentence that begins with the file's
 * name, for ever.
 */
const char *ckt_elf_check(const uint8_t *data, size_t size);
bool ckt_elf_is(const uint8_t *data, size_t size);

struct ckt_elf_section {
	const char *name;
	uint32_t type;
	uint64_t flags, size;
	const uint8_t *data; /* NULL where it has none in the file */
};

/*
 * Calls for every section but the first, empty one.  Precondition: ckt_elf_check found nothing
 * wrong.
 */
void ckt_elf_each_section(const uint8_t *data, size_t size,
	void (*call)(void *opaque, const struct ckt_elf_section *section), void *opaque);
