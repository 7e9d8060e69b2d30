/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/front/parse_module.c: variables and their initialisers, heads of functions, and what
 * is wrong on which line.
 */
#include <malloc.h>

#include "harness.h"

static struct ckt_ptx_module *load(const char *text)
{
	struct ckt_ptx_module *module = unit_load((const char *const[]){text}, 1, NULL);
	if (!module)
		fprintf(stderr, "%s\n", unit_log);
	CU_ASSERT_PTR_NOT_NULL(module);
	return module;
}

static void test_initialisers(void)
{
	static const struct {
		const char *declaration;
		unsigned size, align;
		uint8_t bytes[24];
	} table[] = {
		{".u8 x = 7;", 1, 1, {7}},
		{".align 16 .b8 x[3] = {1, 2, 3};", 3, 16, {1, 2, 3}},
		{".b16 x[4] = {1, 2};", 8, 2, {1, 0, 2}},
		{".u32 x[2][2] = {{1, 4}, {2, 3}};", 16, 4,
			{1, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 3}},
		{".v2 .u16 x[2] = {{1, 2}, {3, 4}};", 8, 4, {1, 0, 2, 0, 3, 0, 4, 0}},
		{".b8 x[] = {1, 2, 3, 4, 5};", 5, 1, {1, 2, 3, 4, 5}},
		{".b16 x[][3] = {{1, 2, 3}, {4}};", 12, 2, {1, 0, 2, 0, 3, 0, 4}},
		/* Rows that lack something are not filled up. */
		{".b16 x[][3] = {{1}, {4}};", 12, 2, {1, 0, 4}},
		{".u16 x[2][3] = {{1, 2}, {3}};", 12, 2, {1, 0, 2, 0, 3}},
		{".b8 x[2][2][2] = {{{1}, {2}}, {{3}, {4}}};", 8, 1, {1, 2, 3, 4}},
		{".b8 x[2][2] = {{}, {3}};", 4, 1, {3}},
		{".b8 x[3] = {};", 3, 1, {0}},
		{".v2 .f32 x = {1.0, 2.0};", 8, 8, {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}},
		{".s64 x = -1;", 8, 8, {255, 255, 255, 255, 255, 255, 255, 255}},
		{".u32 x;", 4, 4, {0}},
		{".f32 x = 1.5;", 4, 4, {0, 0, 0xc0, 0x3f}},
		/* Constants have 64 bits; as in ptxas, what is above them is zero. */
		{".b128 x = -1;", 16, 16, {255, 255, 255, 255, 255, 255, 255, 255}},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		char text[256];
		snprintf(
			text, sizeof text, UNIT_HEAD ".visible .global %s\n", table[k].declaration);
		struct ckt_ptx_module *module = load(text);
		const struct ckt_ptx_global *g = ckt_ptx_module_global(module, 0);
		IS(g->size_bytes, table[k].size);
		IS(g->align_bytes, table[k].align);
		IS(memcmp((void *)(uintptr_t)g->address, table[k].bytes, table[k].size), 0);
		ckt_ptx_module_destroy(module);
	}
}

/* Addresses in initialisers, also of what comes later, and single bytes of them. */
static void test_addresses(void)
{
	struct ckt_ptx_module *module = load(UNIT_HEAD
		".visible .global .u32 a[4];\n.visible .global .u64 p[3] = {a, a+8, generic(a)+4};\n"
		".visible .global .u8 b[2] = {0xff(a), 0xff00(a)};\n");
	uint64_t a = unit_global(module, "a"), *p = (uint64_t *)(uintptr_t)unit_global(module, "p");
	uint8_t *b = (uint8_t *)(uintptr_t)unit_global(module, "b");
	YES(p[0] == a && p[1] == a + 8 && p[2] == a + 4);
	YES(b[0] == (a & 0xff) && b[1] == (a >> 8 & 0xff));
	ckt_ptx_module_destroy(module);
}

/* An array without a size takes room for what it has, not for the square of it. */
static void test_open_array(void)
{
	enum { N = 100000 };
	char *text = malloc(2 * N + 256),
	     *at = text + sprintf(text, UNIT_HEAD ".visible .global .b8 x[] = {1");
	for (unsigned k = 1; k < N; k++)
		at += sprintf(at, ",%u", k & 7);
	sprintf(at, "};\n");
	struct ckt_ptx_module *module = load(text);
	IS(ckt_ptx_module_global(module, 0)->size_bytes, N);
	IS(((uint8_t *)(uintptr_t)unit_global(module, "x"))[N - 1], (N - 1) & 7);
	ckt_ptx_module_destroy(module);
	free(text);
}

static size_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();
	return info.uordblks + info.hblkhd;
}

/* A large variable takes room on the device alone; here it takes what its initialisers have. */
static void test_large(void)
{
	static const char *const texts[] = {
		UNIT_HEAD ".global .u32 x[2][536870924] = {{1, 2, 3, 4}};\n",
		UNIT_HEAD ".global .u32 x[][536870924] = {{1, 2, 3, 4}};\n",
	};
	for (unsigned k = 0; k < COUNT(texts); k++) {
		struct ckt_ptx_text text = {
			.text = texts[k], .size_bytes = strlen(texts[k]), .name = "large"};
		struct ckt_ptx_load_options options = {.target = 120};
		struct ckt_ptx_module *module = NULL;
		size_t before = allocated();
		MUST(ckt_ptx_module_load(&text, 1, &options, unit_log, sizeof unit_log, &module),
			CKT_PTX_OK);
		YES(allocated() - before < 1 << 20);
		IS(ckt_ptx_module_global(module, 0)->size_bytes, (2 - k) * 4 * 536870924ul);
		ckt_ptx_module_destroy(module);
	}
}

static void test_functions(void)
{
	struct ckt_ptx_module *module = load(UNIT_HEAD
		".visible .entry one(.param .u8 a, .param .align 16 .b8 b[20], .param .u64 .ptr .global .align 8 c)\n"
		".maxntid 8, 4\n.minnctapersm 3\n.maxnreg 20\n{ ret; }\n"
		".entry two() .reqntid 32, 2, 3 .reqnctapercluster 2 .pragma \"x\"; .noreturn\n{ exit; }\n"
		".func helper() { ret; }\n");
	IS(ckt_ptx_module_function_count(module), 2);
	const struct ckt_ptx_function_info *one = ckt_ptx_function_info(
						   ckt_ptx_module_find_function(module, "one")),
					   *two = ckt_ptx_function_info(
						   ckt_ptx_module_find_function(module, "two"));
	IS(one->n_params, 3);
	static const uint32_t want[][3] = {{0, 1, 1}, {16, 20, 16}, {40, 8, 8}};
	for (unsigned k = 0; k < 3; k++) {
		IS(one->params[k].offset_bytes, want[k][0]);
		IS(one->params[k].size_bytes, want[k][1]);
		IS(one->params[k].align_bytes, want[k][2]);
	}
	YES(one->param_bytes == 48 && one->max_threads == 32 && one->registers <= 20 &&
		one->ptx_version == 88 && one->target == 90);
	YES(two->reqntid[0] == 32 && two->reqntid[1] == 2 && two->reqntid[2] == 3 &&
		two->max_threads == 192 && two->cluster[0] == 2 && two->cluster[1] == 1);
	CU_ASSERT_PTR_NULL(ckt_ptx_module_find_function(module, "helper"));
	CU_ASSERT_PTR_NULL(ckt_ptx_module_find_function(module, "three"));
	ckt_ptx_module_destroy(module);
	/* Declared, then defined; weak ones twice. */
	module = load(UNIT_HEAD
		".extern .func f();\n.visible .func f() { ret; }\n.weak .func g() { ret; }\n.entry k() { call f; ret; }\n"
		".section .debug { .b8 1 }\n.file 1 \"x\"\n");
	ckt_ptx_module_destroy(module);
}

static void test_refused(void)
{
	REFUSED("", CKT_PTX_INVALID, 1, ".version expected");
	REFUSED("\n\n.target sm_90\n", CKT_PTX_INVALID, 3, ".version expected");
	REFUSED(".version 9.0\n.target sm_121\n", CKT_PTX_WRONG_TARGET, 2, "12.1");
	REFUSED(".version 9.0\n.target sm_90\n.address_size 32\n", CKT_PTX_INVALID, 0,
		"address_size");
	static const struct {
		const char *line, *words;
		enum ckt_ptx_result result;
	} table[] = {
		{".banana", "unknown directive", CKT_PTX_INVALID},
		{"banana", "unknown directive", CKT_PTX_INVALID},
		{".visible", "unknown directive", CKT_PTX_INVALID},
		{".global .b33 x;", "unknown type .b33", CKT_PTX_INVALID},
		{".global .pred x;", "type expected", CKT_PTX_INVALID},
		{".global x;", "type expected", CKT_PTX_INVALID},
		{".global .u32 5;", "name expected", CKT_PTX_INVALID},
		{".global .u32 x", "';' expected", CKT_PTX_INVALID},
		{".global .align 3 .u32 x;", "invalid alignment", CKT_PTX_INVALID},
		{".global .align 0 .u32 x;", "invalid alignment", CKT_PTX_INVALID},
		{".global .align 8192 .u32 x;", "invalid alignment", CKT_PTX_INVALID},
		{".global .u32 x[2] = {1, 2, 3};", "too many initialisers for x", CKT_PTX_INVALID},
		{".global .u32 x = {1, 2};", "constant expected", CKT_PTX_INVALID},
		{".global .u32 x[2][2] = {1, 2, 3, 4};", "'{' expected", CKT_PTX_INVALID},
		{".global .u32 x[2][2] = {{1, 2, 3}};", "too many initialisers for x",
			CKT_PTX_INVALID},
		{".global .u32 x[2][2] = {{1}, {2}, {3}};", "too many initialisers for x",
			CKT_PTX_INVALID},
		{".global .u16 x[][3] = {{1, 2, 3, 4}};", "too many initialisers for x",
			CKT_PTX_INVALID},
		{".global .u32 x[2] = {{{1}}, 2};", "constant expected", CKT_PTX_INVALID},
		{".global .v2 .u16 x[2] = {{1}, {3, 4}};", "too few initialisers", CKT_PTX_INVALID},
		{".global .v2 .u16 x = {1, 2, 3};", "too many initialisers for x", CKT_PTX_INVALID},
		{".global .u32 x[2] = 1;", "'{' expected", CKT_PTX_INVALID},
		{".global .u32 x[3] = {1,};", "constant expected", CKT_PTX_INVALID},
		{".global .u64 x = y;", "unknown name y", CKT_PTX_INVALID},
		{".global .u32 x[99999999999999];", "array too large", CKT_PTX_INVALID},
		{".global .u32 x[1000000][1000000][1000000];", "array too large", CKT_PTX_INVALID},
		{".global .u32 x[1][1][1][1][1][1][1][1][1];", "too many dimensions",
			CKT_PTX_INVALID},
		{".shared .b8 x[99999999];", "too much shared", CKT_PTX_INVALID},
		{".global .u32 x; .global .u32 x;", "x is defined twice", CKT_PTX_DUPLICATE},
		{".global .u32 x; .shared .u32 x;", "x is declared twice", CKT_PTX_DUPLICATE},
		{".global .u32 f; .func f() { ret; }", "f is declared twice", CKT_PTX_DUPLICATE},
		{".func f() { ret; } .func f() { ret; }", "f is defined twice", CKT_PTX_DUPLICATE},
		{".func f(.u32 a) { ret; }", ".param expected", CKT_PTX_INVALID},
		{".func f(.param .b8 a[99999]) { ret; }", "parameter too large", CKT_PTX_INVALID},
		{".entry k() .banana { ret; }", "unknown directive .banana", CKT_PTX_INVALID},
		{".entry k() { ret;", "missing }", CKT_PTX_INVALID},
		{".entry () { ret; }", "name expected", CKT_PTX_INVALID},
		{".section x { {", "missing }", CKT_PTX_INVALID},
		{".global .attribute(.managed .u32 x;", "missing )", CKT_PTX_INVALID},
		{".alias a;", "',' expected", CKT_PTX_INVALID},
		{".global .u8 x[2] = {{{{{{{{{{{{{{{{{{1}}}}}}}}}}}}}}}}}};", "constant expected",
			CKT_PTX_INVALID},
		{".global .u32 y; .global .b128 x = y;", "too large for an address",
			CKT_PTX_INVALID},
		{".const .u32 x = 1 +;", "constant expected", CKT_PTX_INVALID},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		char text[256];
		snprintf(text, sizeof text, UNIT_HEAD "\n// one\n%s", table[k].line);
		REFUSED(text, table[k].result, 6, table[k].words);
	}
}

UNIT_SUITE(softgpu / ptx / front / parse_module, {"initialisers", test_initialisers},
	{"addresses", test_addresses}, {"open array", test_open_array}, {"large", test_large},
	{"functions", test_functions}, {"refused", test_refused})
