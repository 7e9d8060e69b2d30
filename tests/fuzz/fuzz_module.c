/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: images of modules and inputs of the linker.  The first byte says what it is
 * given as, the rest is the image.
 *
 * What the worker's check passes must be safe in a reader that believes it: the soft GPU's, without
 * a size, as cuModuleLoadData gives it to them.  And those readers must be safe with anything,
 * where they are told its size.
 */
#include <ar.h>
#include <elf.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "server/worker/module/module_binary.h"
#include "server/worker/module/module_check.h"
#include "softgpu/soft.h"

enum { UNPACKED_MAX = 1 << 20, CAPABILITY = 90, LINKED_AS = 6 };

/* The readers tell of what they ignore; the rest of the soft GPU is not here. */
void ckt_soft_debug(const char *format, ...)
{
	(void)format;
}

static void read_texts(const uint8_t *image, size_t size)
{
	char log[CKT_SOFT_LOG_MAX] = "";
	struct ckt_soft_texts texts = {0};
	ckt_soft_image_texts(image, size, CAPABILITY, &texts, log, sizeof log);
	ckt_soft_texts_fini(&texts);
}

static void read_archive(const uint8_t *image, size_t size)
{
	char log[CKT_SOFT_LOG_MAX] = "";
	struct ckt_soft_texts texts = {0};
	ckt_soft_archive_texts(image, size, CAPABILITY, &texts, "fuzz", log, sizeof log);
	ckt_soft_texts_fini(&texts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	CUjitInputType type = (CUjitInputType)(data[0] % LINKED_AS);
	bool linked = data[0] & 0x80, has_ptx;
	size--;
	/* As a blob has it: a NUL behind it, and nothing else. */
	uint8_t *image = malloc(size + 1);
	if (!image)
		abort();
	memcpy(image, data + 1, size);
	image[size] = 0;
	struct ckt_module_check check = {.capability = CAPABILITY, .unpacked_max = UNPACKED_MAX};
	CUresult result = linked ? ckt_module_check_input(type, image, size, &check)
				 : ckt_module_check(image, size, &check);
	if (!result && !linked)
		read_texts(image, SIZE_MAX);
	ckt_module_binary_fits(image, size, CAPABILITY, &has_ptx);
	ckt_soft_image_is_library(image, size, CAPABILITY);
	uint32_t magic = 0;
	memcpy(&magic, image, size < sizeof magic ? size : sizeof magic);
	/* A wrapper points, and is followed where it comes from the process itself. */
	if (magic != CKT_BINARY_WRAPPER_MAGIC)
		read_texts(image, size);
	read_archive(image, size);
	free(image);
	return 0;
}

/* ---- Seeds: one image of each form */

static const char text[] =
	".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n";

struct seed {
	uint8_t as, data[2048];
	size_t size;
};

static void put(uint8_t *at, uint64_t value, unsigned bytes)
{
	memcpy(at, &value, bytes);
}

/* An entry of a container: as it is, as LZ4 or as zstd. */
static void add_entry(
	struct seed *seed, unsigned kind, uint64_t flags, const void *data, size_t size)
{
	enum { ENTRY = 64, LZ4 = 0x2000 };
	uint8_t *entry = seed->data + seed->size, *payload = entry + ENTRY;
	size_t room = sizeof seed->data - seed->size - ENTRY, packed = size;
	if (!flags)
		memcpy(payload, data, size);
	else if (flags == LZ4)
		packed = (size_t)LZ4_compress_default(data, (char *)payload, (int)size, (int)room);
	else
		packed = ZSTD_compress(payload, room, data, size, 1);
	put(entry, kind, 2);
	put(entry + 2, 0x101, 2);
	put(entry + 4, ENTRY, 4);
	put(entry + 8, packed, 8);
	put(entry + 16, flags ? packed : 0, 4);
	put(entry + 28, 80, 4);
	put(entry + 40, flags, 8);
	put(entry + 56, flags ? size : 0, 8);
	seed->size += ENTRY + packed;
	put(seed->data + 8, seed->size - 16, 8);
}

static struct seed make_container(void)
{
	struct seed seed = {.size = 16};
	Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_machine = 190,
		.e_version = 1,
		.e_ehsize = sizeof header};
	put(seed.data, CKT_BINARY_MAGIC, 4);
	put(seed.data + 4, 1, 2);
	put(seed.data + 6, 16, 2);
	add_entry(&seed, 1, 0, text, sizeof text);
	add_entry(&seed, 1, 0x2000, text, sizeof text);
	add_entry(&seed, 1, 0x8000, text, sizeof text);
	add_entry(&seed, 2, 0x8000, &header, sizeof header);
	return seed;
}

/* An object with the container in a section of its own. */
static struct seed make_object(void)
{
	static const char names[] = "\0.nv_fatbin";
	struct seed fat = make_container(), seed = {.as = 0x80 | CU_JIT_INPUT_OBJECT};
	uint64_t at = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr);
	Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_REL,
		.e_machine = EM_X86_64,
		.e_version = 1,
		.e_ehsize = sizeof header,
		.e_shoff = sizeof header,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3,
		.e_shstrndx = 2};
	Elf64_Shdr sections[] = {{0},
		{.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = at, .sh_size = fat.size},
		{.sh_type = SHT_STRTAB, .sh_offset = at + fat.size, .sh_size = sizeof names}};
	memcpy(seed.data, &header, sizeof header);
	memcpy(seed.data + sizeof header, sections, sizeof sections);
	memcpy(seed.data + at, fat.data, fat.size);
	memcpy(seed.data + at + fat.size, names, sizeof names);
	seed.size = at + fat.size + sizeof names;
	return seed;
}

static struct seed make_archive(void)
{
	struct seed object = make_object(), seed = {.as = 0x80 | CU_JIT_INPUT_LIBRARY};
	seed.size = (size_t)snprintf((char *)seed.data, sizeof seed.data,
		ARMAG "%-16s%-12d%-6d%-6d%-8d%-10zu`\n", "one.o/", 0, 0, 0, 644, object.size);
	memcpy(seed.data + seed.size, object.data, object.size);
	seed.size += object.size;
	return seed;
}

static struct seed make_text(void)
{
	struct seed seed = {.size = sizeof text};
	memcpy(seed.data, text, sizeof text);
	return seed;
}

/* Called once: with CKT_FUZZ_SEEDS=DIR, writes the seeds there and ends. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static struct seed (*const makers[])(void) = {
		make_text, make_container, make_object, make_archive};
	const char *directory = getenv("CKT_FUZZ_SEEDS");
	(void)argc, (void)argv;
	if (!directory)
		return 0;
	for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
		char path[4096];
		struct seed seed = makers[i]();
		snprintf(path, sizeof path, "%s/module-%zu", directory, i);
		FILE *file = fopen(path, "wb");
		if (!file || fputc(seed.as, file) == EOF ||
			fwrite(seed.data, seed.size, 1, file) != 1 || fclose(file)) {
			perror(path);
			exit(1);
		}
	}
	exit(0);
}
