/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/memory/kernel_heap.c: which kernels can come to malloc, read off PTX and machine
 * code, and what a session says then.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/memory/kernel_heap.h"
#include "tests/unit/worker/inside.h"

static bool text(const char *ptx, const char *kernel)
{
	return ckt_heap_reached((const uint8_t *)ptx, strlen(ptx) + 1, kernel);
}

static void test_text(void)
{
	static const char direct[] =
		".version 8.0\n.target sm_75\n.extern .func (.param .b64 func_retval0) malloc\n(\n.param .b64 malloc_param_0\n)\n;\n"
		".visible .entry takes(\n.param .u64 takes_param_0\n)\n{\n{\ncall.uni (retval0), malloc, (param0);\n}\nret;\n}\n"
		".visible .entry not()\n{\nret;\n}\n";
	static const char through[] =
		".version 8.0\n.extern .func (.param .b64 r) malloc (.param .b64 p);\n"
		".func (.param .b64 func_retval0) far(.param .b32 far_param_0)\n{\ncall (r), near, (p);\n}\n"
		".func (.param .b64 func_retval0) near(.param .b32 near_param_0)\n{\ncall (r), malloc, (p);\n}\n"
		".entry takes()\n{\ncall (r), far, (p);\n}\n.entry not()\n{\nret;\n}\n.func other()\n{\nret;\n}\n";
	static const char pointer[] =
		".extern .func (.param .b64 r) malloc (.param .b64 p);\n.func (.param .b64 x) near(.param .b32 y);\n"
		".global .align 8 .u64 table[2] = {0, near};\n"
		".func (.param .b64 x) near(.param .b32 y)\n{\ncall (r), malloc, (p);\n}\n.entry any()\n{\nret;\n}\n";
	static const char none[] =
		".version 8.0\n.extern .func free (.param .b64 p);\n.entry any(.param .u64 malloc_param)\n{\ncall free, (p);\n}\n";
	YES(text(direct, "takes") && !text(direct, "not") && text(direct, NULL));
	YES(text(through, "takes") && !text(through, "not") && text(through, NULL));
	YES(text(pointer, "any") && text(pointer, NULL));
	NO(text(none, "any") || text(none, NULL) || text("", "any"));
	/* Only declared, never called. */
	NO(text(".extern .func (.param .b64 r) malloc (.param .b64 p);\n.entry any()\n{\nret;\n}\n",
		"any"));
}

/*
 * Symbols: 1 kernel "takes", 2 kernel "not", 3 function "near", 4 "malloc", not defined here unless
 * told so.
 */
struct code {
	Elf64_Ehdr header;
	Elf64_Sym symbols[5];
	char names[32];
	uint32_t calls[3][2];
	Elf64_Shdr sections[4];
};

static void make(struct code *c, unsigned caller, unsigned callee)
{
	memset(c, 0, sizeof *c);
	memcpy(c->header.e_ident, ELFMAG, SELFMAG);
	c->header.e_ident[EI_CLASS] = ELFCLASS64;
	c->header.e_ident[EI_DATA] = ELFDATA2LSB;
	c->header.e_machine = 190;
	c->header.e_shoff = offsetof(struct code, sections);
	c->header.e_shentsize = sizeof(Elf64_Shdr);
	c->header.e_shnum = 4;
	memcpy(c->names, "\0takes\0not\0near\0malloc", 23);
	static const unsigned at[] = {0, 1, 7, 11, 16};
	for (unsigned i = 1; i < 5; i++)
		c->symbols[i] = (Elf64_Sym){
			.st_name = at[i], .st_other = i < 3 ? 0x10 : 0, .st_shndx = i < 4 ? 1 : 0};
	memcpy(c->calls, (uint32_t[3][2]){{0, UINT32_MAX}, {caller, callee}, {3, 3}},
		sizeof c->calls);
	c->sections[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
		.sh_offset = offsetof(struct code, symbols),
		.sh_size = sizeof c->symbols,
		.sh_link = 2};
	c->sections[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct code, names),
		.sh_size = sizeof c->names};
	c->sections[3] = (Elf64_Shdr){.sh_type = SHT_LOPROC + 1,
		.sh_offset = offsetof(struct code, calls),
		.sh_size = sizeof c->calls};
}

static bool code(const struct code *c, const char *kernel)
{
	return ckt_heap_reached((const uint8_t *)c, sizeof *c, kernel);
}

static void test_code(void)
{
	struct code *c = aligned_alloc(16, (sizeof *c + 15) / 16 * 16);
	make(c, 1, 4);
	YES(code(c, "takes") && !code(c, "not") && code(c, NULL));
	/* A function that is no kernel calls it: perhaps through a pointer. */
	make(c, 3, 4);
	YES(code(c, "takes") && code(c, "not"));
	/* No graph of calls: any may. */
	make(c, 1, 4);
	c->sections[3].sh_type = SHT_NOTE;
	YES(code(c, "not"));
	/* A function of the program's own of that name. */
	make(c, 1, 4);
	c->symbols[4].st_shndx = 1;
	NO(code(c, "takes") || code(c, NULL));
	/* Cut off or damaged anywhere, it does no harm. */
	for (size_t i = 0; i < sizeof *c; i++) {
		make(c, 1, 4);
		((uint8_t *)c)[i] ^= 0xff;
		code(c, "takes");
	}
	make(c, 1, 4);
	for (size_t size = 0; size < sizeof *c; size++)
		ckt_heap_reached((const uint8_t *)c, size, "takes");
	free(c);
}

static void test_session(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	struct ckt_object *context = ckt_objects_find(&ckt_worker.objects, ckt_handle_primary(0));
	CU_ASSERT_PTR_NOT_NULL_FATAL(context);
	if (!context)
		return;
	IS(ckt_heap_check(&ckt_worker, message, sizeof message), 0);
	snprintf(context->ctx.heap_kernel, sizeof context->ctx.heap_kernel, "takes");
	IS(ckt_heap_check(&ckt_worker, message, sizeof message), -EOPNOTSUPP);
	HAS(message, "kernel takes was launched and takes memory with malloc or new");
	context->ctx.heap_kernel[0] = 0;
	IS(ckt_heap_check(&ckt_worker, message, sizeof message), 0);
}

UNIT_SUITE(heap, {"text", test_text}, {"code", test_code}, {"session", test_session})
