/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats of modules and linker inputs: what is whole passes, and nothing that claims more than it
 * has, points, or is something else.
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
#include "tests/unit/suite.h"

enum { ENTRY = 64, HEADER = 16, ROOM = 8192, LZ4 = 0x2000, ZSTD = 0x8000, EM_CUDA_NUMBER = 190 };

static const char ptx[] =
	".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n";

struct bytes {
	uint8_t data[ROOM];
	size_t size;
};

static void put(uint8_t *at, uint64_t value, unsigned bytes)
{
	memcpy(at, &value, bytes);
}

static struct bytes container(void)
{
	struct bytes b = {.size = HEADER};
	put(b.data, CKT_BINARY_MAGIC, 4);
	put(b.data + 4, 1, 2);
	put(b.data + 6, HEADER, 2);
	return b;
}

/* Adds an entry and returns its header. */
static uint8_t *entry(
	struct bytes *b, unsigned kind, unsigned capability, const void *payload, size_t size)
{
	uint8_t *header = b->data + b->size;
	put(header, kind, 2);
	put(header + 4, ENTRY, 4);
	put(header + 8, size, 8);
	put(header + 28, capability, 4);
	memcpy(header + ENTRY, payload, size);
	b->size += ENTRY + size;
	put(b->data + 8, b->size - HEADER, 8);
	return header;
}

static void packed(struct bytes *b, unsigned kind, unsigned flag, const void *payload, size_t size,
	uint64_t says)
{
	char room[ROOM / 2];
	size_t n = flag == LZ4 ? (size_t)LZ4_compress_default(payload, room, (int)size, sizeof room)
			       : ZSTD_compress(room, sizeof room, payload, size, 1);
	uint8_t *header = entry(b, kind, 90, room, n);
	put(header + 16, n, 4);
	put(header + 40, flag, 8);
	put(header + 56, says, 8);
}

static Elf64_Ehdr elf(void)
{
	Elf64_Ehdr header = {.e_type = ET_EXEC,
		.e_machine = EM_CUDA_NUMBER,
		.e_version = 1,
		.e_ehsize = sizeof header};
	memcpy(header.e_ident, ELFMAG, SELFMAG);
	header.e_ident[EI_CLASS] = ELFCLASS64;
	header.e_ident[EI_DATA] = ELFDATA2LSB;
	header.e_ident[EI_VERSION] = EV_CURRENT;
	return header;
}

static CUresult check_for(const void *data, size_t size, unsigned capability, uint64_t unpacked_max)
{
	struct ckt_module_check check = {.capability = capability, .unpacked_max = unpacked_max};
	uint8_t *copy = malloc(size + !size);
	memcpy(copy, data, size);
	CUresult result = ckt_module_check(copy, size, &check);
	free(copy);
	CU_ASSERT_EQUAL(!result, !check.why[0]);
	return result;
}

static CUresult check(const void *data, size_t size)
{
	return check_for(data, size, 90, 1 << 20);
}

static CUresult check_input(CUjitInputType type, const void *data, size_t size)
{
	struct ckt_module_check c = {.unpacked_max = 1 << 20};
	uint8_t *copy = malloc(size + !size);
	memcpy(copy, data, size);
	CUresult result = ckt_module_check_input(type, copy, size, &c);
	free(copy);
	return result;
}

static void test_wrapper(void)
{
	struct {
		uint32_t magic, version;
		const void *container, *more;
	} wrapper = {CKT_BINARY_WRAPPER_MAGIC, 1, (void *)8, (void *)8};
	for (size_t size = 4; size <= sizeof wrapper; size++)
		CU_ASSERT_EQUAL(check(&wrapper, size), CUDA_ERROR_INVALID_IMAGE);
	static const CUjitInputType types[] = {CU_JIT_INPUT_CUBIN, CU_JIT_INPUT_PTX,
		CU_JIT_INPUT_FATBINARY, CU_JIT_INPUT_OBJECT, CU_JIT_INPUT_LIBRARY,
		CU_JIT_INPUT_NVVM};
	for (size_t i = 0; i < COUNT(types); i++)
		CU_ASSERT_EQUAL(
			check_input(types[i], &wrapper, sizeof wrapper), CUDA_ERROR_INVALID_IMAGE);
}

static void test_text(void)
{
	static const char comment[] = "// \xc3\xbc\xc3\xa4\n.version 8.0\n",
			  tail[] = ".version 8.0\n\0\1\2\3", bell[] = ".version\a",
			  high[] = "\xc3\xbc.version";
	CU_ASSERT_EQUAL(check(ptx, sizeof ptx), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(check(ptx, sizeof ptx - 1), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(check("", 0), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(check(comment, sizeof comment), CUDA_SUCCESS);
	/* nobody reads behind the NUL */
	CU_ASSERT_EQUAL(check(tail, sizeof tail), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(check(bell, sizeof bell), CUDA_ERROR_INVALID_IMAGE);
	CU_ASSERT_EQUAL(check(high, sizeof high), CUDA_ERROR_INVALID_IMAGE);
	CU_ASSERT_EQUAL(check("BC\xc0\xde....", 8), CUDA_ERROR_INVALID_IMAGE);
	CU_ASSERT_EQUAL(check("\xed\x43\x4e\x7f....", 8), CUDA_ERROR_INVALID_IMAGE);
}

static void test_container(void)
{
	struct bytes b = container();
	CU_ASSERT_EQUAL(check(b.data, b.size), CUDA_SUCCESS); /* nvcc makes empty ones */
	Elf64_Ehdr code = elf();
	entry(&b, 1, 90, ptx, sizeof ptx);
	entry(&b, 2, 90, &code, sizeof code);
	packed(&b, 1, LZ4, ptx, sizeof ptx, sizeof ptx);
	packed(&b, 2, ZSTD, &code, sizeof code, sizeof code);
	entry(&b, 8, 90, "encrypted", 9);
	CU_ASSERT_EQUAL(check(b.data, b.size), CUDA_SUCCESS);
	for (size_t size = HEADER; size < b.size; size++)
		CU_ASSERT_EQUAL(check(b.data, size), CUDA_ERROR_INVALID_IMAGE);
	/* The same bytes, and a size that a reader would believe. */
	static const uint64_t sizes[] = {1, 63, 1 << 20, UINT64_MAX - HEADER, UINT64_MAX};
	for (size_t i = 0; i < COUNT(sizes); i++) {
		put(b.data + 8, sizes[i], 8);
		CU_ASSERT_EQUAL(check(b.data, b.size), CUDA_ERROR_INVALID_IMAGE);
	}
}

static CUresult with(unsigned at, uint64_t value, unsigned bytes)
{
	struct bytes b = container();
	put(entry(&b, 1, 90, ptx, sizeof ptx) + at, value, bytes);
	return check(b.data, b.size);
}

static void test_entry(void)
{
	CU_ASSERT_EQUAL(with(4, ENTRY - 1, 4), CUDA_ERROR_INVALID_IMAGE);
	CU_ASSERT_EQUAL(with(4, UINT32_MAX, 4), CUDA_ERROR_INVALID_IMAGE);
	CU_ASSERT_EQUAL(with(8, sizeof ptx + 1, 8), CUDA_ERROR_INVALID_IMAGE);
	CU_ASSERT_EQUAL(with(8, UINT64_MAX, 8), CUDA_ERROR_INVALID_IMAGE);
	/* compressed: more than the payload */
	CU_ASSERT_EQUAL(with(16, sizeof ptx + 1, 4), CUDA_ERROR_INVALID_IMAGE);
	CU_ASSERT_EQUAL(with(16, UINT32_MAX, 4), CUDA_ERROR_INVALID_IMAGE);
	/* its options and its name lie behind it */
	CU_ASSERT_EQUAL(with(20, ENTRY - 7, 4), CUDA_ERROR_INVALID_IMAGE);
	CU_ASSERT_EQUAL(with(32, ENTRY + 1, 4), CUDA_ERROR_INVALID_IMAGE);
	CU_ASSERT_EQUAL(with(36, ENTRY + 1, 4), CUDA_ERROR_INVALID_IMAGE);
	/* text is no machine code */
	CU_ASSERT_EQUAL(with(0, 2, 2), CUDA_ERROR_INVALID_IMAGE);
	CU_ASSERT_EQUAL(with(0, 8, 2), CUDA_SUCCESS);
}

static CUresult with_packed(unsigned kind, unsigned flag, uint64_t says, uint64_t unpacked_max)
{
	struct bytes b = container();
	packed(&b, kind, flag, ptx, sizeof ptx, says);
	return check_for(b.data, b.size, 90, unpacked_max);
}

static void test_packed(void)
{
	static const unsigned flags[] = {LZ4, ZSTD};
	for (size_t i = 0; i < COUNT(flags); i++) {
		CU_ASSERT_EQUAL(with_packed(1, flags[i], sizeof ptx, sizeof ptx), CUDA_SUCCESS);
		CU_ASSERT_EQUAL(with_packed(1, flags[i], sizeof ptx, sizeof ptx - 1),
			CUDA_ERROR_OUT_OF_MEMORY);
		CU_ASSERT_EQUAL(with_packed(1, flags[i], sizeof ptx - 1, 1 << 20),
			CUDA_ERROR_INVALID_IMAGE);
		CU_ASSERT_EQUAL(with_packed(1, flags[i], sizeof ptx + 1, 1 << 20),
			CUDA_ERROR_INVALID_IMAGE);
		CU_ASSERT_EQUAL(with_packed(1, flags[i], 0, 1 << 20), CUDA_ERROR_INVALID_IMAGE);
		CU_ASSERT_EQUAL(
			with_packed(1, flags[i], UINT64_MAX, UINT64_MAX), CUDA_ERROR_OUT_OF_MEMORY);
		CU_ASSERT_EQUAL(
			with_packed(2, flags[i], sizeof ptx, 1 << 20), CUDA_ERROR_INVALID_IMAGE);
		CU_ASSERT_EQUAL(
			with_packed(8, flags[i], 1 << 21, 1 << 20), CUDA_ERROR_OUT_OF_MEMORY);
	}
	CU_ASSERT_EQUAL(with_packed(1, ZSTD | LZ4, sizeof ptx, 1 << 20), CUDA_SUCCESS);
	/* A few bytes that come to many. */
	static char zeros[1 << 20];
	struct bytes b = container();
	packed(&b, 1, ZSTD, zeros, sizeof zeros, sizeof zeros);
	CU_ASSERT_TRUE(b.size < 1024);
	CU_ASSERT_EQUAL(check_for(b.data, b.size, 90, sizeof zeros - 1), CUDA_ERROR_OUT_OF_MEMORY);
	struct ckt_module_check c = {.unpacked_max = sizeof zeros};
	CU_ASSERT_EQUAL(ckt_module_check(b.data, b.size, &c), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(c.unpacked, sizeof zeros);
}

/* Code that the driver would not choose costs nothing. */
static void test_other_gpu(void)
{
	struct bytes b = container();
	entry(&b, 2, 80, "no machine code", 16);
	CU_ASSERT_EQUAL(check_for(b.data, b.size, 90, 1 << 20), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(check_for(b.data, b.size, 86, 1 << 20), CUDA_ERROR_INVALID_IMAGE);
	CU_ASSERT_EQUAL(check_for(b.data, b.size, 0, 1 << 20), CUDA_ERROR_INVALID_IMAGE);
}

static bool prints(const struct bytes *b)
{
	struct ckt_module_check c = {.capability = 90, .unpacked_max = 1 << 20};
	CU_ASSERT_EQUAL(ckt_module_check(b->data, b->size, &c), CUDA_SUCCESS);
	return c.prints;
}

/* Whether kernels may print is seen in every form that the driver could choose. */
static void test_prints(void)
{
	static const char text[] = ".version 8.0\n.extern .func (.param .b32 r) vprintf\n";
	struct {
		Elf64_Ehdr header;
		char names[16];
	} code = {elf(), "vprintf"};
	struct bytes b = container();
	entry(&b, 1, 90, ptx, sizeof ptx);
	entry(&b, 2, 80, &code, sizeof code); /* for another GPU */
	CU_ASSERT_FALSE(prints(&b));
	struct bytes other = b;
	entry(&other, 8, 90, "encrypted", 9); /* nobody can tell */
	CU_ASSERT_TRUE(prints(&other));
	other = b;
	entry(&other, 2, 90, &code, sizeof code);
	CU_ASSERT_TRUE(prints(&other));
	other = b;
	packed(&other, 1, ZSTD, text, sizeof text, sizeof text);
	CU_ASSERT_TRUE(prints(&other));
	struct bytes plain = {.size = sizeof text};
	memcpy(plain.data, text, sizeof text);
	CU_ASSERT_TRUE(prints(&plain));
	plain.size = sizeof ptx;
	memcpy(plain.data, ptx, sizeof ptx);
	CU_ASSERT_FALSE(prints(&plain));
	plain.size = sizeof code;
	memcpy(plain.data, &code, sizeof code);
	CU_ASSERT_TRUE(prints(&plain));
}

/* An object with one section of fat binaries, in an archive or alone. */
static struct bytes object(const struct bytes *fat)
{
	static const char names[] = "\0.nv_fatbin\0.shstrtab";
	struct bytes b = {0};
	Elf64_Ehdr header = elf();
	header.e_type = ET_REL;
	header.e_machine = EM_X86_64;
	header.e_shoff = sizeof header;
	header.e_shentsize = sizeof(Elf64_Shdr);
	header.e_shnum = 3;
	header.e_shstrndx = 2;
	uint64_t at = sizeof header + 3 * sizeof(Elf64_Shdr);
	Elf64_Shdr sections[3] = {{0},
		{.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = at, .sh_size = fat->size},
		{.sh_name = 12,
			.sh_type = SHT_STRTAB,
			.sh_offset = at + fat->size,
			.sh_size = sizeof names}};
	memcpy(b.data, &header, sizeof header);
	memcpy(b.data + sizeof header, sections, sizeof sections);
	memcpy(b.data + at, fat->data, fat->size);
	memcpy(b.data + at + fat->size, names, sizeof names);
	b.size = at + fat->size + sizeof names;
	return b;
}

static void member(struct bytes *b, const char *name, const void *data, size_t size, size_t says)
{
	char header[sizeof(struct ar_hdr) + 1];
	snprintf(
		header, sizeof header, "%-16s%-12d%-6d%-6d%-8d%-10zu`\n", name, 0, 0, 0, 644, says);
	memcpy(b->data + b->size, header, sizeof header - 1);
	memcpy(b->data + b->size + sizeof header - 1, data, size);
	b->size += sizeof header - 1 + size;
	if (size & 1)
		b->data[b->size++] = '\n';
}

static void test_objects(void)
{
	struct bytes fat = container(), o;
	entry(&fat, 1, 90, ptx, sizeof ptx);
	o = object(&fat);
	CU_ASSERT_EQUAL(check_input(CU_JIT_INPUT_OBJECT, o.data, o.size), CUDA_SUCCESS);
	for (size_t size = 1; size < o.size; size++)
		CU_ASSERT_EQUAL(
			check_input(CU_JIT_INPUT_OBJECT, o.data, size), CUDA_ERROR_INVALID_IMAGE);
	struct bytes archive = {.size = SARMAG};
	memcpy(archive.data, ARMAG, SARMAG);
	CU_ASSERT_EQUAL(
		check_input(CU_JIT_INPUT_LIBRARY, archive.data, archive.size), CUDA_SUCCESS);
	member(&archive, "/", "\0\0\0\0", 4, 4);
	member(&archive, "one.o/", o.data, o.size, o.size);
	member(&archive, "/0", o.data, o.size, o.size);
	CU_ASSERT_EQUAL(
		check_input(CU_JIT_INPUT_LIBRARY, archive.data, archive.size), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(check_input(CU_JIT_INPUT_LIBRARY, archive.data, archive.size - 40),
		CUDA_ERROR_INVALID_IMAGE);
	struct bytes longer = archive;
	member(&longer, "two.o/", o.data, o.size, o.size + 2);
	CU_ASSERT_EQUAL(check_input(CU_JIT_INPUT_LIBRARY, longer.data, longer.size),
		CUDA_ERROR_INVALID_IMAGE);
	member(&archive, "text/", "what is this", 12, 12);
	CU_ASSERT_EQUAL(check_input(CU_JIT_INPUT_LIBRARY, archive.data, archive.size),
		CUDA_ERROR_INVALID_IMAGE);
	/* The fat binary in it claims more than its section has. */
	put(fat.data + 8, 1 << 16, 8);
	o = object(&fat);
	CU_ASSERT_EQUAL(check_input(CU_JIT_INPUT_OBJECT, o.data, o.size), CUDA_ERROR_INVALID_IMAGE);
}

static void test_inputs(void)
{
	struct bytes fat = container();
	entry(&fat, 1, 90, ptx, sizeof ptx);
	Elf64_Ehdr code = elf();
	CU_ASSERT_EQUAL(check_input(CU_JIT_INPUT_PTX, ptx, sizeof ptx), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(
		check_input(CU_JIT_INPUT_PTX, fat.data, fat.size), CUDA_ERROR_INVALID_IMAGE);
	CU_ASSERT_EQUAL(check_input(CU_JIT_INPUT_FATBINARY, fat.data, fat.size), CUDA_SUCCESS);
	/* what the soft GPU's linker gives out */
	CU_ASSERT_EQUAL(check_input(CU_JIT_INPUT_CUBIN, fat.data, fat.size), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(check_input(CU_JIT_INPUT_CUBIN, &code, sizeof code), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(check_input(CU_JIT_INPUT_NVVM, "BC\xc0\xde....", 8), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(
		check_input(CU_JIT_INPUT_CUBIN, "BC\xc0\xde....", 8), CUDA_ERROR_INVALID_IMAGE);
}

/* Every bit of it wrong: an answer, whichever, and nothing read beside it. */
static void test_changed(void)
{
	struct bytes b = container();
	Elf64_Ehdr code = elf();
	entry(&b, 1, 90, ptx, sizeof ptx);
	packed(&b, 2, ZSTD, &code, sizeof code, sizeof code);
	packed(&b, 1, LZ4, ptx, sizeof ptx, sizeof ptx);
	struct bytes o = object(&b), *both[] = {&b, &o};
	for (size_t i = 0; i < COUNT(both); i++)
		for (size_t at = 0; at < both[i]->size; at++)
			for (unsigned bit = 0; bit < 8; bit++) {
				both[i]->data[at] ^= (uint8_t)(1 << bit);
				check_input(CU_JIT_INPUT_OBJECT, both[i]->data, both[i]->size);
				both[i]->data[at] ^= (uint8_t)(1 << bit);
			}
}

UNIT_SUITE(module_check, {"wrappers", test_wrapper}, {"text", test_text},
	{"containers", test_container}, {"entries", test_entry}, {"packed", test_packed},
	{"for another GPU", test_other_gpu}, {"prints", test_prints}, {"objects", test_objects},
	{"inputs", test_inputs}, {"changed", test_changed})
