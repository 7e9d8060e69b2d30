/* SPDX-License-Identifier: Apache-2.0 */
/* See image.h. */
#include "image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct layout {
	ElfW(Ehdr) header;
	ElfW(Phdr) phdr[4];
	ElfW(Dyn) dynamic[8];
	struct {
		uint32_t buckets_count, first, bloom_words, bloom_shift;
		uint64_t bloom;
		uint32_t bucket, chains[IMAGE_SYMBOLS_MAX];
	} hash;
	ElfW(Sym) symbols[IMAGE_SYMBOLS_MAX + 1];
	char strings[1024];
};
_Static_assert(sizeof(struct layout) <= IMAGE_TEXT, "room before the text");

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;
	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static uint64_t add_string(struct layout *layout, size_t *used, const char *text)
{
	size_t at = *used;
	*used += strlen(text) + 1;
	if (*used > sizeof layout->strings)
		abort();
	strcpy(layout->strings + at, text);
	return at;
}

uint8_t *image_make(const struct image_plan *plan)
{
	uint8_t *image =
		mmap(NULL, IMAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct layout *layout = (struct layout *)image;
	size_t used = 1, entries = 0, count = 0;
	if (image == MAP_FAILED)
		abort();
	memset(image + IMAGE_TEXT, 0xcc, IMAGE_PAGE);
	memcpy(layout->header.e_ident, ELFMAG, SELFMAG);
	layout->header.e_phoff = offsetof(struct layout, phdr);
	layout->header.e_phentsize = sizeof(ElfW(Phdr));
	layout->header.e_phnum = plan->tls ? 4 : 3;
	layout->phdr[0] = (ElfW(Phdr)){.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_vaddr = IMAGE_TEXT,
		.p_filesz = IMAGE_PAGE,
		.p_memsz = IMAGE_PAGE};
	layout->phdr[1] = (ElfW(Phdr)){.p_type = PT_LOAD,
		.p_flags = PF_R,
		.p_vaddr = IMAGE_DATA,
		.p_filesz = IMAGE_PAGE,
		.p_memsz = IMAGE_PAGE};
	layout->phdr[2] =
		(ElfW(Phdr)){.p_type = PT_DYNAMIC, .p_vaddr = offsetof(struct layout, dynamic)};
	layout->phdr[3] =
		(ElfW(Phdr)){.p_type = PT_TLS, .p_align = IMAGE_PAGE, .p_memsz = IMAGE_PAGE};
	layout->hash.buckets_count = layout->hash.first = layout->hash.bloom_words = 1;
	for (; count < IMAGE_SYMBOLS_MAX && plan->symbols[count].name; count++) {
		const struct image_symbol *symbol = &plan->symbols[count];
		layout->symbols[count + 1] =
			(ElfW(Sym)){.st_name = (uint32_t)add_string(layout, &used, symbol->name),
				.st_value = symbol->value,
				.st_shndx = symbol->undefined ? SHN_UNDEF : 1,
				.st_info = ELF64_ST_INFO(
					STB_GLOBAL, symbol->is_data ? STT_OBJECT : STT_FUNC)};
		layout->hash.chains[count] = hash_of(symbol->name) & ~1u;
	}
	if (count) {
		layout->hash.bucket = 1;
		layout->hash.chains[count - 1] |= 1;
	}
	/* Addresses, as glibc leaves them. */
	layout->dynamic[entries++] =
		(ElfW(Dyn)){.d_tag = DT_SYMTAB, .d_un.d_ptr = (uintptr_t)layout->symbols};
	layout->dynamic[entries++] =
		(ElfW(Dyn)){.d_tag = DT_STRTAB, .d_un.d_ptr = (uintptr_t)layout->strings};
	layout->dynamic[entries++] =
		(ElfW(Dyn)){.d_tag = DT_STRSZ, .d_un.d_val = sizeof layout->strings};
	layout->dynamic[entries++] =
		(ElfW(Dyn)){.d_tag = DT_GNU_HASH, .d_un.d_ptr = (uintptr_t)&layout->hash};
	if (plan->soname)
		layout->dynamic[entries++] = (ElfW(Dyn)){
			.d_tag = DT_SONAME, .d_un.d_val = add_string(layout, &used, plan->soname)};
	if (plan->needed)
		layout->dynamic[entries++] = (ElfW(Dyn)){
			.d_tag = DT_NEEDED, .d_un.d_val = add_string(layout, &used, plan->needed)};
	return image;
}

void image_free(uint8_t *image)
{
	munmap(image, IMAGE_BYTES);
}

struct ckt_loaded_object image_object(const uint8_t *image, const char *path)
{
	const struct layout *layout = (const struct layout *)image;
	return (struct ckt_loaded_object){.path = path,
		.base = (uintptr_t)image,
		.phdr = layout->phdr,
		.phnum = layout->header.e_phnum};
}

void *image_jump(const uint8_t *image, uint64_t value)
{
	static const uint8_t untouched[12] = {
		0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc};
	const uint8_t *code = image + value;
	void *target;
	if (memcmp(code, untouched, sizeof untouched) == 0)
		return NULL;
	if (code[0] != 0x48 || code[1] != 0xb8 || code[10] != 0xff || code[11] != 0xe0)
		return (void *)-1;
	memcpy(&target, code + 2, sizeof target);
	return target;
}

static int held_stderr = -1, stderr_file = -1;

void image_stderr_begin(void)
{
	fflush(stderr);
	held_stderr = dup(STDERR_FILENO);
	stderr_file = memfd_create("stderr", MFD_CLOEXEC);
	if (held_stderr < 0 || stderr_file < 0 || dup2(stderr_file, STDERR_FILENO) < 0)
		abort();
}

const char *image_stderr_end(void)
{
	static char text[8192];
	dup2(held_stderr, STDERR_FILENO);
	ssize_t n = pread(stderr_file, text, sizeof text - 1, 0);
	text[n > 0 ? n : 0] = 0;
	close(held_stderr);
	close(stderr_file);
	return text;
}
