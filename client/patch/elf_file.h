/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF file on disk, read as untrusted bytes.  The file may be no ELF file, and may differ from
 * the file that is mapped as a library.  Uses only basic functions of libc (patch_log.h).
 * Threading: none.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_elf_file {
	const uint8_t *bytes;
	size_t size_bytes;
};

enum { CKT_ELF_NEEDED_MAX = 96 };

/* The texts point into the mapped file. */
struct ckt_elf_needs {
	const char *needed[CKT_ELF_NEEDED_MAX];
	unsigned count;
	const char *rpath, *runpath; /* NULL: none */
};

/* False if the file cannot be read or is too small for a header. */
bool ckt_patch_elf_file_map(struct ckt_elf_file *file, const char *path);
void ckt_patch_elf_file_unmap(struct ckt_elf_file *file);
/* Whether the file contains these bytes. */
bool ckt_patch_elf_file_holds(const struct ckt_elf_file *file, uint64_t offset, uint64_t bytes);
/* The libraries and paths that the dynamic section names; false if no section can be read. */
bool ckt_patch_elf_file_needs(const struct ckt_elf_file *file, struct ckt_elf_needs *ret_needs);
