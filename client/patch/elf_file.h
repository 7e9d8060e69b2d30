/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF file on disk, read as untrusted bytes: it need not be one, and need not be the one that is
 * mapped as a library.  Needs libc's plainest functions only (patch_log.h).  Threading: none.
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

/* Texts inside the mapped file. */
struct ckt_elf_needs {
	const char *needed[CKT_ELF_NEEDED_MAX];
	unsigned count;
	const char *rpath, *runpath; /* NULL: none */
};

/* False where the file cannot be read or is too small for a header. */
bool ckt_patch_elf_file_map(struct ckt_elf_file *file, const char *path);
void ckt_patch_elf_file_unmap(struct ckt_elf_file *file);
/* Whether these bytes lie inside. */
bool ckt_patch_elf_file_holds(const struct ckt_elf_file *file, uint64_t offset, uint64_t bytes);
/* What the dynamic section asks for; false where there is none that can be read. */
bool ckt_patch_elf_file_needs(const struct ckt_elf_file *file, struct ckt_elf_needs *ret_needs);
