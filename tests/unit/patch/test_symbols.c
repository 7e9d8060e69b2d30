/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/patch/symbols.c (client/patch/redirect.h): redirects by names, and files that are not to
 * be trusted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/patch/redirect.h"
#include "image.h"
#include "tests/unit/suite.h"

static const struct image_plan ours = {.soname = "libcudart.so.13",
	.needed = "libcuda.so.1",
	.symbols = {{"cudaMalloc", IMAGE_TEXT}, {"cudaLaunchKernel", IMAGE_TEXT + 16},
		{"__cudaRegisterFatBinary", IMAGE_TEXT + 32}}};
static struct ckt_runtime runtime;

static uint8_t *make_ours(void)
{
	uint8_t *image = image_make(&ours);
	struct ckt_loaded_object object = image_object(image, "ours");
	memset(&runtime, 0, sizeof runtime);
	MUST(ckt_patch_runtime_recognise(&runtime, &object), true);
	return image;
}

/* ---- NVIDIA's own shared runtime */

static void test_shared(void)
{
	static const struct {
		struct image_plan plan;
		enum ckt_redirect_result result;
		bool changed; /* what lies at the text's start */
	} rows[] = {
		{{.soname = "libcudart.so.13",
			 .symbols = {{"cudaMalloc", IMAGE_TEXT}, {"other", IMAGE_TEXT + 16}}},
			CKT_REDIRECT_DONE, true},
		{{.soname = "libcudart.so.12", .symbols = {{"cudaMalloc", IMAGE_TEXT}}},
			CKT_REDIRECT_DONE, true},
		{{.soname = "libcudart.so.11", .symbols = {{"cudaMalloc", IMAGE_TEXT}}},
			CKT_REDIRECT_NONE, false},
		{{.symbols = {{"cudaMalloc", IMAGE_TEXT}}}, CKT_REDIRECT_NONE, false},
		{{.soname = "libcudart.so.12", .symbols = {{"other", IMAGE_TEXT}}},
			CKT_REDIRECT_NONE, false},
		/*
		 * Not where the library we know has it: nothing is changed, the good one neither.
		 */
		{{.soname = "libcudart.so.12",
			 .symbols = {{"cudaMalloc", IMAGE_TEXT}, {"cudaFree", IMAGE_TEXT + 24}}},
			CKT_REDIRECT_NONE, false},
		/* Outside the text. */
		{{.soname = "libcudart.so.12", .symbols = {{"cudaMalloc", IMAGE_DATA}}},
			CKT_REDIRECT_NONE, false},
		{{.soname = "libcudart.so.12", .symbols = {{"cudaMalloc", IMAGE_TEXT - 16}}},
			CKT_REDIRECT_NONE, false},
	};
	uint8_t *ours_image = make_ours();
	for (size_t i = 0; i < COUNT(rows); i++) {
		uint8_t *image = image_make(&rows[i].plan);
		struct ckt_loaded_object object = image_object(image, "made");
		IS(ckt_redirect_shared(&object, &runtime), rows[i].result);
		IS((uintptr_t)image_jump(image, IMAGE_TEXT),
			rows[i].changed ? (uintptr_t)ours_image + IMAGE_TEXT : 0);
		YES(!image_jump(image, IMAGE_TEXT + 16));
		image_free(image);
	}
	image_free(ours_image);
}

/* ---- The names in a file */

struct file {
	ElfW(Ehdr) header;
	ElfW(Shdr) sections[3];
	ElfW(Sym) symbols[8];
	char strings[512];
};

/* One whole runtime: each name of the list has the next slot of the text. */
static void make_file(struct file *file, const char *const *names)
{
	size_t used = 1;
	memset(file, 0, sizeof *file);
	memcpy(file->header.e_ident, ELFMAG, SELFMAG);
	file->header.e_shoff = offsetof(struct file, sections);
	file->header.e_shentsize = sizeof(ElfW(Shdr));
	file->header.e_shnum = 3;
	file->sections[1] = (ElfW(Shdr)){.sh_type = SHT_SYMTAB,
		.sh_offset = offsetof(struct file, symbols),
		.sh_size = sizeof file->symbols,
		.sh_link = 2};
	file->sections[2] = (ElfW(Shdr)){.sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct file, strings),
		.sh_size = sizeof file->strings};
	for (unsigned i = 0; names[i]; i++) {
		file->symbols[i + 1] = (ElfW(Sym)){.st_name = (uint32_t)used,
			.st_value = IMAGE_TEXT + 16 * i,
			.st_shndx = 1,
			.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC)};
		strcpy(file->strings + used, names[i]);
		used += strlen(names[i]) + 1;
	}
}

static enum ckt_redirect_result redirect(const uint8_t *image, const void *bytes, size_t size)
{
	char path[] = "/tmp/ckt-symbols-XXXXXX";
	int fd = mkstemp(path);
	IS(write(fd, bytes, size), size);
	close(fd);
	struct ckt_loaded_object object = image_object(image, path);
	enum ckt_redirect_result result = ckt_redirect_by_symbols(&object, &runtime);
	unlink(path);
	return result;
}

#define ESSENTIAL "__cudaRegisterFatBinary", "cudaGetExportTable", "cudaLaunchKernel"
#define PRIVATE "libcudart_static_0123456789abcdef"

static void test_names(void)
{
	static const struct {
		const char *names[8];
		unsigned cuda_malloc; /* slot; 0: none is redirected */
	} rows[] = {
		{{ESSENTIAL, PRIVATE, "cudaMalloc"}, 4},
		{{ESSENTIAL, "own", "cudaMalloc", PRIVATE "_more"}, 4},
		/* A program that has functions of such names, and half a runtime. */
		{{ESSENTIAL, "own", "cudaMalloc"}, 0},
		{{"__cudaRegisterFatBinary", "cudaGetExportTable", "own", PRIVATE, "cudaMalloc"},
			0},
		{{PRIVATE, "cudaMalloc"}, 0},
		{{NULL}, 0},
	};
	static const struct image_plan plan = {.soname = "libprogram.so"};
	uint8_t *ours_image = make_ours();
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct file file;
		uint8_t *image = image_make(&plan);
		make_file(&file, rows[i].names);
		IS(redirect(image, &file, sizeof file),
			rows[i].cuda_malloc ? CKT_REDIRECT_DONE : CKT_REDIRECT_NONE);
		if (rows[i].cuda_malloc) {
			IS((uintptr_t)image_jump(image, IMAGE_TEXT),
				(uintptr_t)ours_image + IMAGE_TEXT + 32);
			IS((uintptr_t)image_jump(image, IMAGE_TEXT + 32),
				(uintptr_t)ours_image + IMAGE_TEXT + 16);
			IS((uintptr_t)image_jump(image, IMAGE_TEXT + 16 * rows[i].cuda_malloc),
				(uintptr_t)ours_image + IMAGE_TEXT);
			/* Its own functions stay. */
			YES(!image_jump(image, IMAGE_TEXT + 48));
		}
		for (unsigned slot = 0; !rows[i].cuda_malloc && slot < 8; slot++)
			YES(!image_jump(image, IMAGE_TEXT + 16 * slot));
		image_free(image);
	}
	image_free(ours_image);
}

static void test_hostile_files(void)
{
	static const char *const names[] = {ESSENTIAL, PRIVATE, "cudaMalloc", NULL};
	static const struct image_plan plan = {.soname = "libprogram.so"};
	static const struct {
		const char *what;
		size_t offset, size;
		uint64_t value;
	} rows[] = {
#define FIELD(what, field, value) \
	{what, offsetof(struct file, field), sizeof((struct file *)0)->field, value}
		FIELD("no ELF file", header.e_ident[0], 0),
		FIELD("other section headers", header.e_shentsize, 63),
		FIELD("section headers behind the end", header.e_shoff, sizeof(struct file) - 8),
		FIELD("section headers far away", header.e_shoff, 0xfffffffffffffff8),
		FIELD("section headers between words", header.e_shoff,
			offsetof(struct file, sections) + 4),
		FIELD("more section headers than there is file", header.e_shnum, 0xffff),
		FIELD("no section headers", header.e_shnum, 0),
		FIELD("strings in no section", sections[1].sh_link, 3),
		FIELD("symbols between words", sections[1].sh_offset,
			offsetof(struct file, symbols) + 4),
		FIELD("symbols behind the end", sections[1].sh_size, sizeof(struct file)),
		FIELD("symbols that wrap", sections[1].sh_size, UINT64_MAX),
		FIELD("strings behind the end", sections[2].sh_size, sizeof(struct file)),
		FIELD("strings that wrap", sections[2].sh_offset, UINT64_MAX),
		FIELD("no strings", sections[2].sh_size, 0),
		FIELD("strings without an end", strings[511], 'x'),
		FIELD("a name behind the strings", symbols[1].st_name, 512),
		FIELD("a function outside the text", symbols[1].st_value, 0x7fffffff0),
		FIELD("a function that ends outside", symbols[1].st_value, IMAGE_TEXT + IMAGE_PAGE),
		FIELD("a function between slots", symbols[1].st_value, IMAGE_TEXT + 8),
		FIELD("an import", symbols[1].st_shndx, SHN_UNDEF),
	};
	uint8_t *ours_image = make_ours();
	uint8_t *image = image_make(&plan);
	struct file file;
	for (size_t i = 0; i < COUNT(rows); i++) {
		make_file(&file, names);
		memcpy((uint8_t *)&file + rows[i].offset, &rows[i].value, rows[i].size);
		unit_is(redirect(image, &file, sizeof file), CKT_REDIRECT_NONE, rows[i].what,
			__FILE__, __LINE__, false);
		YES(!image_jump(image, IMAGE_TEXT));
	}
	/* Cut off anywhere. */
	make_file(&file, names);
	for (size_t size = 0; size < sizeof file; size += 40)
		IS(redirect(image, &file, size), CKT_REDIRECT_NONE);
	struct ckt_loaded_object object = image_object(image, "/nonexistent");
	IS(ckt_redirect_by_symbols(&object, &runtime), CKT_REDIRECT_NONE);
	/* And whole it is one. */
	IS(redirect(image, &file, sizeof file), CKT_REDIRECT_DONE);
	image_free(image);
	image_free(ours_image);
}

UNIT_SUITE(symbols, {"shared", test_shared}, {"names", test_names},
	{"hostile files", test_hostile_files})
