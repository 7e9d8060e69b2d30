/* SPDX-License-Identifier: Apache-2.0 */
/* Names of variables in an image, whatever it is. */
#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "server/worker/module/variable_names.h"
#include "tests/unit/suite.h"

static bool has(const struct ckt_variable_names *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (!strcmp(names->list[i], name))
			return true;
	return false;
}

static void test_names(void)
{
	static const char text[] =
		".version 8.0 // .global comment\n.target sm_90 /* .const { x */\n"
		".visible .global .align 4 .b8 _Z5table[16] = {1, other};\n"
		".global .u32 $tmp$1 = 3, second;\n.const .f32 _Z5table;\n"
		".entry kernel(.param .u64 kernel_param)\n{\n.reg .b32 %r<3>;\n"
		"ld.global.u32 %r1, [hidden];\n.loc 1 2 3\n.global .u32 inside;\n}\n";
	struct ckt_variable_names names;
	CU_ASSERT_EQUAL(ckt_variable_names_collect((const uint8_t *)text, sizeof text, &names), 0);
	CU_ASSERT_TRUE(has(&names, "_Z5table") && has(&names, "$tmp$1") && has(&names, "second"));
	CU_ASSERT_TRUE(has(&names, "inside"));
	/* None of these can be a variable, and each would cost a question to the driver. */
	static const char *const others[] = {"4", "comment", "x", "sm_90", "kernel", "kernel_param",
		"r", "r1", "%r1", "hidden", "ld.global.u32"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		CU_ASSERT_FALSE(has(&names, others[i]));
	size_t twice = 0;
	for (size_t i = 0; i < names.count; i++)
		twice += !strcmp(names.list[i], "_Z5table");
	CU_ASSERT_EQUAL(twice, 1);
	ckt_variable_names_fini(&names);
	/* In a fat binary, one entry plain and one compressed; cut off anywhere it does no harm. */
	uint8_t image[1024] = {0}, *p = image + 16;
	memcpy(image, "\x50\xed\x55\xba\x01\x00\x10\x00", 8);
	char packed[256];
	size_t size = ZSTD_compress(packed, sizeof packed, text, sizeof text, 1);
	CU_ASSERT_FALSE_FATAL(ZSTD_isError(size));
	for (int entry = 0; entry < 2; entry++) {
		uint64_t payload = entry ? (size + 7) / 8 * 8 : 8, flags = 0x8000,
			 unpacked = sizeof text;
		uint32_t header = 64, compressed = (uint32_t)size;
		/* PTX, and a kind that nobody knows. */
		memcpy(p, entry ? "\x01\x00\x01\x01" : "\x09\x00\x01\x01", 4);
		memcpy(p + 4, &header, 4);
		memcpy(p + 8, &payload, 8);
		if (entry) {
			memcpy(p + 16, &compressed, 4);
			memcpy(p + 40, &flags, 8);
			memcpy(p + 56, &unpacked, 8);
		}
		memcpy(p + 64, entry ? packed : "\0plain\0", entry ? size : 8);
		p += 64 + payload;
	}
	uint64_t body = (uint64_t)(p - image) - 16;
	memcpy(image + 8, &body, 8);
	CU_ASSERT_EQUAL(ckt_variable_names_collect(image, (size_t)(p - image), &names), 0);
	CU_ASSERT_TRUE(has(&names, "_Z5table") && has(&names, "plain"));
	ckt_variable_names_fini(&names);
	for (size_t cut = 0; cut < (size_t)(p - image); cut++) {
		uint8_t *copy = malloc(cut + 1);
		memcpy(copy, image, cut);
		CU_ASSERT_EQUAL(ckt_variable_names_collect(copy, cut, &names), 0);
		ckt_variable_names_fini(&names);
		free(copy);
	}
}

/* Sections: names, symbols, their names. */
struct code {
	Elf64_Ehdr header;
	Elf64_Shdr sections[4];
	Elf64_Sym symbols[6];
	char names[32], strings[64];
};

static void fill_code(struct code *f)
{
	static const char strings[] = "\0kernel\0table\0extern\0empty\0$str";
	static const struct {
		unsigned name, type, section, size;
	} symbols[] = {{0, STT_NOTYPE, 0, 0}, {1, STT_FUNC, 1, 8}, {8, STT_OBJECT, 1, 8},
		{14, STT_OBJECT, 0, 8}, {21, STT_OBJECT, 1, 0}, {27, STT_OBJECT, 1, 4}};
	memset(f, 0, sizeof *f);
	f->header = (Elf64_Ehdr){.e_type = ET_EXEC,
		.e_machine = 190,
		.e_version = 1,
		.e_ehsize = sizeof f->header,
		.e_shentsize = sizeof f->sections[0],
		.e_shnum = 4,
		.e_shoff = offsetof(struct code, sections),
		.e_shstrndx = 1};
	memcpy(f->header.e_ident, ELFMAG, SELFMAG);
	f->header.e_ident[EI_CLASS] = ELFCLASS64;
	f->header.e_ident[EI_DATA] = ELFDATA2LSB;
	f->header.e_ident[EI_VERSION] = EV_CURRENT;
	f->sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct code, names),
		.sh_size = sizeof f->names};
	f->sections[2] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
		.sh_link = 3,
		.sh_entsize = sizeof(Elf64_Sym),
		.sh_offset = offsetof(struct code, symbols),
		.sh_size = sizeof f->symbols};
	f->sections[3] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct code, strings),
		.sh_size = sizeof f->strings};
	memcpy(f->strings, strings, sizeof strings);
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
		f->symbols[i] = (Elf64_Sym){.st_name = symbols[i].name,
			.st_info = ELF64_ST_INFO(STB_LOCAL, symbols[i].type),
			.st_shndx = (uint16_t)symbols[i].section,
			.st_size = symbols[i].size};
}

static void test_symbols(void)
{
	struct code code;
	struct ckt_variable_names names;
	fill_code(&code);
	CU_ASSERT_EQUAL(ckt_variable_names_collect((const uint8_t *)&code, sizeof code, &names), 0);
	CU_ASSERT_EQUAL(names.count, 2);
	CU_ASSERT_TRUE(has(&names, "table") && has(&names, "$str"));
	ckt_variable_names_fini(&names);
	/* Without a table of symbols every identifier is a candidate. */
	code.sections[2].sh_type = SHT_PROGBITS;
	CU_ASSERT_EQUAL(ckt_variable_names_collect((const uint8_t *)&code, sizeof code, &names), 0);
	CU_ASSERT_TRUE(has(&names, "table") && has(&names, "kernel"));
	ckt_variable_names_fini(&names);
	/* So it is in a file whose tables lie. */
	fill_code(&code);
	code.symbols[2].st_name = 1000;
	CU_ASSERT_EQUAL(ckt_variable_names_collect((const uint8_t *)&code, sizeof code, &names), 0);
	CU_ASSERT_TRUE(has(&names, "table") && has(&names, "kernel"));
	ckt_variable_names_fini(&names);
}

UNIT_SUITE(names, {"names", test_names}, {"symbols", test_symbols})
