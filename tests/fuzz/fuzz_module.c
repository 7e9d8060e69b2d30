/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: images of modules and inputs of the linker.  The first byte says what it is
 * given as and which allocation fails, the rest is the image.
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
#include "server/worker/module/elf_check.h"
#include "server/worker/module/module_check.h"
#include "softgpu/context/log.h"
#include "softgpu/module/archive.h"
#include "softgpu/module/fatbin.h"
#include "tests/fuzz/fuzz.h"

enum { UNPACKED_MAX = 1 << 20, CAPABILITY = 90, LINKED_AS = 6 };

/* The readers tell of what they ignore; the rest of the soft GPU is not here. */
void ckt_soft_debug(const char *format, ...)
{
	(void)format;
}

/* What was read is packed again, and read from there. */
static void pack(const struct ckt_soft_texts *texts)
{
	char log[CKT_SOFT_LOG_MAX] = "";
	struct ckt_soft_texts again = {0};
	void *image;
	size_t size;
	if (!texts->n || ckt_soft_image_pack(texts, CAPABILITY, &image, &size))
		return;
	ckt_soft_image_texts(image, size, CAPABILITY, &again, log, sizeof log);
	ckt_soft_texts_fini(&again);
	free(image);
}

static void read_texts(const uint8_t *image, size_t size)
{
	char log[CKT_SOFT_LOG_MAX] = "";
	struct ckt_soft_texts texts = {0};
	if (!ckt_soft_image_texts(image, size, CAPABILITY, &texts, log, sizeof log))
		pack(&texts);
	ckt_soft_texts_fini(&texts);
}

/* As a program has it linked in: a wrapper that points at the container, once or in a list. */
static void read_wrapper(const uint8_t *image, unsigned version)
{
	char log[CKT_SOFT_LOG_MAX] = "";
	struct ckt_soft_texts texts = {0};
	const void *more[] = {image, image, NULL};
	struct {
		uint32_t magic, version;
		const void *container, *const *more;
	} wrapper = {CKT_BINARY_WRAPPER_MAGIC, version % 4, version & 4 ? NULL : image,
		version & 8 ? NULL : more};
	uint32_t magic = 0;
	memcpy(&magic, image, strnlen((const char *)image, sizeof magic));
	if (magic != CKT_BINARY_MAGIC)
		return;
	ckt_soft_image_texts(&wrapper, sizeof wrapper, CAPABILITY, &texts, log, sizeof log);
	ckt_soft_texts_fini(&texts);
}

static void read_archive(const uint8_t *image, size_t size)
{
	char log[CKT_SOFT_LOG_MAX] = "";
	struct ckt_soft_texts texts = {0};
	ckt_soft_archive_texts(image, size, CAPABILITY, &texts, "fuzz", log, sizeof log);
	ckt_soft_texts_fini(&texts);
}

static int count_symbol(void *opaque, const struct ckt_elf_symbol *symbol)
{
	*(size_t *)opaque += strlen(symbol->name);
	return symbol->type > STT_HIOS;
}

/* As saving a module does, whose variables have no other names. */
static void read_symbols(const uint8_t *image, size_t size)
{
	unsigned tables = 0;
	size_t bytes = 0;
	if (!ckt_elf_check(image, size))
		ckt_elf_each_symbol(image, size, count_symbol, &bytes, &tables);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	CUjitInputType type = (CUjitInputType)((data[0] & 7) % LINKED_AS);
	unsigned fails = data[0] >> 3 & 15;
	bool linked = data[0] & 0x80, has_ptx;
	size--;
	/* As a blob has it: a NUL behind it, and nothing else. */
	uint8_t *image = malloc(size + 1);
	if (!image)
		abort();
	memcpy(image, data + 1, size);
	image[size] = 0;
	struct ckt_module_check check = {.capability = CAPABILITY, .unpacked_max = UNPACKED_MAX};
	fuzz_fail_allocation(fails);
	CUresult result = linked ? ckt_module_check_input(type, image, size, &check)
				 : ckt_module_check(image, size, &check);
	if (!result && !linked)
		read_texts(image, SIZE_MAX);
	if (!result && !linked)
		read_wrapper(image, fails);
	ckt_module_binary_fits(image, size, CAPABILITY, &has_ptx);
	ckt_soft_image_is_library(image, size, CAPABILITY);
	uint32_t magic = 0;
	memcpy(&magic, image, size < sizeof magic ? size : sizeof magic);
	/* A wrapper points, and is followed where it comes from the process itself. */
	if (magic != CKT_BINARY_WRAPPER_MAGIC)
		read_texts(image, size);
	read_archive(image, size);
	read_symbols(image, size);
	fuzz_fail_allocation(0);
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

/* Device code: a segment, symbols and relocations of both kinds. */
static struct seed make_code(void)
{
	static const char names[] = "\0.text.k";
	enum { TEXT = 1, SYMBOLS, REL, RELA, NAMES, SECTIONS };
	struct seed seed = {.as = 0};
	Elf64_Sym symbols[2] = {{0}, {.st_name = 1, .st_shndx = TEXT, .st_size = 16}};
	Elf64_Rel rel = {.r_offset = 8, .r_info = ELF64_R_INFO(1, 2)};
	Elf64_Rela rela = {.r_offset = 0, .r_info = ELF64_R_INFO(1, 2)};
	uint64_t at = sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr) + sizeof(Elf64_Phdr),
		 text_at = at + sizeof symbols + sizeof rel + sizeof rela;
	Elf64_Ehdr header = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT, 0x33, 7},
		.e_type = ET_EXEC,
		.e_machine = 190,
		.e_version = 1,
		.e_flags = 90 << 16 | 90,
		.e_ehsize = sizeof header,
		.e_shoff = sizeof header,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = NAMES,
		.e_phoff = sizeof header + SECTIONS * sizeof(Elf64_Shdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1};
	Elf64_Shdr sections[SECTIONS] = {[TEXT] = {.sh_name = 1,
						 .sh_type = SHT_PROGBITS,
						 .sh_offset = text_at,
						 .sh_size = 16},
		[SYMBOLS] = {.sh_type = SHT_SYMTAB,
			.sh_offset = at,
			.sh_size = sizeof symbols,
			.sh_entsize = sizeof *symbols,
			.sh_link = NAMES},
		[REL] = {.sh_type = SHT_REL,
			.sh_offset = at + sizeof symbols,
			.sh_size = sizeof rel,
			.sh_entsize = sizeof rel,
			.sh_link = SYMBOLS,
			.sh_info = TEXT},
		[RELA] = {.sh_type = SHT_RELA,
			.sh_offset = at + sizeof symbols + sizeof rel,
			.sh_size = sizeof rela,
			.sh_entsize = sizeof rela,
			.sh_link = SYMBOLS,
			.sh_info = TEXT},
		[NAMES] = {
			.sh_type = SHT_STRTAB, .sh_offset = text_at + 16, .sh_size = sizeof names}};
	Elf64_Phdr segment = {
		.p_type = PT_LOAD, .p_offset = text_at, .p_filesz = 16, .p_memsz = 16};
	const struct {
		const void *data;
		size_t size;
	} parts[] = {{&header, sizeof header}, {sections, sizeof sections},
		{&segment, sizeof segment}, {symbols, sizeof symbols}, {&rel, sizeof rel},
		{&rela, sizeof rela}, {"0123456789abcdef", 16}, {names, sizeof names}};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		memcpy(seed.data + seed.size, parts[i].data, parts[i].size);
		seed.size += parts[i].size;
	}
	return seed;
}

static struct seed make_older_code(void)
{
	struct seed seed = make_code();
	seed.data[7] = 0x41;
	seed.data[8] = 8;
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

/* ---- Numbers of the formats: fields of two, four and eight bytes at their places */

/* Headers of a container, its entries, ELF headers and sections begin at multiples of 8. */
static void change_field(uint8_t *data, size_t size, unsigned *seed)
{
	unsigned bytes = 1u << (1 + fuzz_random(seed) % 3);
	if (size < 16)
		return;
	size_t at = fuzz_random(seed) % (size - 8) & ~(size_t)(bytes - 1);
	uint64_t value = 0;
	memcpy(&value, data + at, bytes);
	switch (fuzz_random(seed) % 4) {
	case 0:
		/* Another place in the file. */
		value = fuzz_random(seed) % (size + 9);
		break;
	case 1:
		value = size - value + fuzz_random(seed) % 3 - 1;
		break;
	default:
		value = (value & ~(uint64_t)UINT32_MAX) | fuzz_number((uint32_t)value, seed);
	}
	memcpy(data + at, &value, bytes);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	if (size < 32 || fuzz_random(&seed) % 3 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	if (fuzz_random(&seed) % 8 == 0)
		data[0] = (uint8_t)fuzz_random(&seed);
	for (unsigned n = 1 + fuzz_random(&seed) % 2; n; n--)
		change_field(data + 1, size - 1, &seed);
	return size;
}

/* Called once: with CKT_FUZZ_SEEDS=DIR, writes the seeds there and ends. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static struct seed (*const makers[])(void) = {
		make_text, make_container, make_object, make_archive, make_code, make_older_code};
	const char *directory = getenv("CKT_FUZZ_SEEDS");
	(void)argc, (void)argv;
	if (!directory)
		return 0;
	for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
		char name[32];
		struct seed seed = makers[i]();
		uint8_t bytes[1 + sizeof seed.data] = {seed.as};
		memcpy(bytes + 1, seed.data, seed.size);
		snprintf(name, sizeof name, "module-%zu", i);
		fuzz_write_seed(directory, name, bytes, 1 + seed.size);
	}
	exit(0);
}
