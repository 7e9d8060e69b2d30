/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/front/link.c: symbols of several texts, which definition counts, what an entry
 * reaches, and shared memory laid out for it.
 */
#include "harness.h"

/* Two texts. */
static struct ckt_ptx_module *two(const char *a, const char *b, enum ckt_ptx_result *ret_result)
{
	static char text[2][2048];
	snprintf(text[0], sizeof text[0], UNIT_HEAD "%s", a);
	snprintf(text[1], sizeof text[1], UNIT_HEAD "%s", b);
	return unit_load((const char *const[]){text[0], text[1]}, 2, ret_result);
}

static void test_definitions(void)
{
	static const struct {
		const char *a, *b;
		enum ckt_ptx_result result;
		unsigned value;
		const char *words;
	} table[] = {
		{".extern .global .u32 v;", ".visible .global .u32 v = 5;", CKT_PTX_OK, 5, ""},
		{".visible .global .u32 v = 5;", ".extern .global .u32 v;", CKT_PTX_OK, 5, ""},
		{".weak .global .u32 v = 4;", ".visible .global .u32 v = 5;", CKT_PTX_OK, 5, ""},
		{".visible .global .u32 v = 5;", ".weak .global .u32 v = 4;", CKT_PTX_OK, 5, ""},
		{".weak .global .u32 v = 4;", ".weak .global .u32 v = 5;", CKT_PTX_OK, 4, ""},
		{".common .global .u32 v;", ".common .global .u32 v;", CKT_PTX_OK, 0, ""},
		{".global .u32 v = 1;", ".visible .global .u32 v = 5;", CKT_PTX_OK, 1,
			""}, /* its own, nobody else's */
		{".visible .global .u32 v = 4;", ".visible .global .u32 v = 5;", CKT_PTX_DUPLICATE,
			0, "text1:4: defined twice: v"},
		{".extern .global .u32 v;", "", CKT_PTX_UNRESOLVED, 0, "undefined variable: v"},
		{".extern .func f();", "", CKT_PTX_UNRESOLVED, 0, "undefined function: f"},
		{".visible .global .u32 v;", ".visible .func v() { ret; }", CKT_PTX_DUPLICATE, 0,
			"function and as a variable: v"},
		{".visible .func f() { ret; }", ".visible .func f() { ret; }", CKT_PTX_DUPLICATE, 0,
			"defined twice: f"},
		{".extern .func vprintf_not();", ".visible .func other() { ret; }",
			CKT_PTX_UNRESOLVED, 0, "vprintf_not"},
		{".extern .func __cuda_syscall_x();", "", CKT_PTX_OK, 0, ""},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		enum ckt_ptx_result result;
		struct ckt_ptx_module *module = two(table[k].a, table[k].b, &result);
		if (result != table[k].result)
			fprintf(stderr, "link %zu: %s\n", k, unit_log);
		IS(result, table[k].result);
		if (!module) {
			HAS(unit_log, table[k].words);
			continue;
		}
		if (table[k].value)
			IS(*(uint32_t *)(uintptr_t)unit_global(module, "v"), table[k].value);
		ckt_ptx_module_destroy(module);
	}
	/* Of two commons the larger. */
	struct ckt_ptx_module *module =
		two(".common .global .b8 v[8];", ".common .global .b8 v[100];", NULL);
	IS(ckt_ptx_module_global_count(module), 1);
	IS(ckt_ptx_module_global(module, 0)->size_bytes, 100);
	ckt_ptx_module_destroy(module);
	/* Undefined is no error where that was asked for. */
	struct ckt_ptx_text text = {
		.text = UNIT_HEAD ".extern .func f();\n.visible .entry k() { call f; ret; }\n"};
	text.size_bytes = strlen(text.text);
	struct ckt_ptx_load_options options = {.target = 120, .allow_undefined = true};
	IS(ckt_ptx_module_load(&text, 1, &options, unit_log, sizeof unit_log, &module), CKT_PTX_OK);
	ckt_ptx_module_destroy(module);
}

static void test_globals(void)
{
	struct ckt_ptx_module *module = two(
		".visible .const .align 8 .b8 c[24];\n.global .u32 hidden;\n"
		".visible .global .attribute(.managed) .u64 m;\n.shared .u32 s;\n.visible .entry k() { ret; }",
		".visible .global .u32 shown;", NULL);
	static const struct {
		const char *name;
		enum ckt_ptx_space space;
		unsigned size;
		bool managed, is_public;
	} want[] = {{"c", CKT_PTX_SPACE_CONST, 24, false, true},
		{"hidden", CKT_PTX_SPACE_GLOBAL, 4, false, false},
		{"m", CKT_PTX_SPACE_GLOBAL, 8, true, true},
		{"shown", CKT_PTX_SPACE_GLOBAL, 4, false, true}};
	IS(ckt_ptx_module_global_count(module), COUNT(want));
	for (size_t k = 0; k < COUNT(want); k++) {
		const struct ckt_ptx_global *g = ckt_ptx_module_global(module, k);
		TEXT(g->name, want[k].name);
		YES(g->space == want[k].space && g->size_bytes == want[k].size &&
			g->managed == want[k].managed && g->is_public == want[k].is_public);
	}
	IS(ckt_ptx_function_info(ckt_ptx_module_function(module, 0))->const_bytes, 24);
	ckt_ptx_module_destroy(module);
}

/* Shared memory of what the entry reaches, and only of that; the stack of its deepest call. */
static void test_reach(void)
{
	struct ckt_ptx_module *module = two(
		".shared .align 4 .b8 a[100];\n.shared .align 16 .b8 b[20];\n.shared .b8 never[999];\n"
		".extern .shared .align 32 .b8 dynamic[];\n"
		".func deep() { .local .align 16 .b8 l[256]; .reg .b32 r; mov.u32 r, b; ret; }\n"
		".func middle() { .local .b8 l[64]; call deep; ret; }\n"
		".visible .entry one() { .reg .b32 r; mov.u32 r, a; call middle; mov.u32 r, dynamic; ret; }\n"
		".visible .entry two() { .reg .b32 r; mov.u32 r, a; ret; }\n.visible .entry none() { ret; }\n",
		"", NULL);
	static const struct {
		const char *name;
		unsigned shared, least_local;
	} want[] = {{"one", 120, 320}, {"two", 100, 0}, {"none", 0, 0}};
	for (size_t k = 0; k < COUNT(want); k++) {
		const struct ckt_ptx_function_info *info =
			ckt_ptx_function_info(ckt_ptx_module_find_function(module, want[k].name));
		/* What alignment costs depends on the order. */
		YES(info->static_shared_bytes >= want[k].shared &&
			info->static_shared_bytes <= want[k].shared + 12);
		YES(info->local_bytes >= want[k].least_local &&
			info->local_bytes < want[k].least_local + 64);
	}
	ckt_ptx_module_destroy(module);
	/* The dynamic part begins behind the rest, as aligned as it asks. */
	uint32_t r;
	IS(unit_threads(".shared .b8 a[5];\n.extern .shared .align 32 .b8 d[];\n",
		   "mov.u32 r1, a; mov.u32 r2, d; sub.u32 r0, r2, r1;", 1, 1, &r),
		CKT_PTX_FAULT_NONE);
	IS(r, 32);
}

static void test_alias(void)
{
	uint32_t r;
	IS(unit_threads(
		   ".visible .func (.param .b32 r) real() { st.param.b32 [r], 9; ret; }\n.visible .func (.param .b32 r) also();\n"
		   ".alias also, real;\n",
		   "{ .param .b32 v; call (v), also, (); ld.param.b32 r0, [v]; }", 1, 1, &r),
		CKT_PTX_FAULT_NONE);
	IS(r, 9);
	/* A circle of them calls nothing. */
	IS(unit_threads(".visible .func a();\n.visible .func b();\n.alias a, b;\n.alias b, a;\n",
		   "call a;", 1, 1, &r),
		CKT_PTX_FAULT_INVALID_PC);
}

UNIT_SUITE(softgpu / ptx / front / link, {"definitions", test_definitions},
	{"globals", test_globals}, {"reach", test_reach}, {"alias", test_alias})
