/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the address and size of code that a library gives to the driver; see code.h. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "server/worker/libs/code/code.h"

/*
 * The wrapper that nvcc puts before a fat binary in a program's data: mark, version, address,
 * another address.
 */
enum { WRAPPER_MARK = 0x466243b1, FATBIN_MARK = 0xba55ed50 };
/* No module's text is longer. */
enum { TEXT_MAX = 64 << 20 };

static uint64_t elf_size(const Elf64_Ehdr *head)
{
	uint64_t sections = head->e_shoff + (uint64_t)head->e_shnum * head->e_shentsize;
	uint64_t segments = head->e_phoff + (uint64_t)head->e_phnum * head->e_phentsize;
	return sections > segments ? sections : segments;
}

static uint64_t size_of(const uint8_t *data)
{
	uint32_t mark;
	uint16_t head;
	uint64_t body;
	memcpy(&mark, data, sizeof mark);
	if (mark == (uint32_t)FATBIN_MARK) {
		memcpy(&head, data + 6, sizeof head);
		memcpy(&body, data + 8, sizeof body);
		return head + body;
	}
	if (!memcmp(data, ELFMAG, SELFMAG))
		return elf_size((const Elf64_Ehdr *)data);
	size_t length = strnlen((const char *)data, TEXT_MAX);
	return length == TEXT_MAX ? 0 : length + 1;
}

bool ckt_code_locate(const void *code, struct ckt_code_place *ret)
{
	uint32_t mark;
	*ret = (struct ckt_code_place){.data = code};
	if (!code)
		return false;
	memcpy(&mark, code, sizeof mark);
	if (mark == WRAPPER_MARK)
		memcpy(&ret->data, (const uint8_t *)code + 8, sizeof ret->data);
	ret->size = ret->data ? size_of(ret->data) : 0;
	if (!ret->size)
		return false;
	Dl_info info;
	if (dladdr(ret->data, &info) && info.dli_fname && info.dli_fbase) {
		const char *name = strrchr(info.dli_fname, '/');
		ret->offset = (uint64_t)(ret->data - (const uint8_t *)info.dli_fbase);
		if (strlen(name ? name + 1 : info.dli_fname) < sizeof ret->file)
			snprintf(ret->file, sizeof ret->file, "%s",
				name ? name + 1 : info.dli_fname);
	}
	return true;
}

struct wanted {
	const char *file;
	uint64_t offset, size;
	const uint8_t *found;
};

static int look(struct dl_phdr_info *info, size_t size, void *opaque)
{
	struct wanted *wanted = opaque;
	(void)size;
	const char *name = strrchr(info->dlpi_name, '/');
	if (strcmp(name ? name + 1 : info->dlpi_name, wanted->file))
		return 0;
	/*
	 * Offsets count from the beginning of the mapping, as dladdr reports it.  All bytes must
	 * lie in one readable segment.
	 */
	uint64_t base = UINT64_MAX;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_vaddr < base)
			base = info->dlpi_phdr[i].p_vaddr;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = p->p_vaddr - base;
		if (p->p_type == PT_LOAD && p->p_flags & PF_R && wanted->offset >= start &&
			wanted->offset - start <= p->p_memsz &&
			wanted->size <= p->p_memsz - (wanted->offset - start))
			wanted->found = (const uint8_t *)(info->dlpi_addr + base + wanted->offset);
	}
	return wanted->found != NULL;
}

const uint8_t *ckt_code_find_file(const char *file, uint64_t offset, uint64_t size)
{
	struct wanted wanted = {.file = file, .offset = offset, .size = size};
	if (*file)
		dl_iterate_phdr(look, &wanted);
	return wanted.found;
}
