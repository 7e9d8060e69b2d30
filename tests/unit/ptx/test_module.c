/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/front/module.c: loading: symbols of several texts, initialisers, what functions say
 * of themselves, and the line that names a fault.
 */
#include "harness.h"

static void refuse(const char *text, enum ckt_ptx_result want, const char *part)
{
	enum ckt_ptx_result r;
	struct ckt_ptx_module *module = unit_load(&text, 1, &r);
	if (module || r != want || !strstr(unit_log, part))
		fprintf(stderr, "%d: %s (expected %d, %s)\n", r, unit_log, want, part);
	CU_ASSERT_PTR_NULL(module);
	CU_ASSERT_EQUAL(r, want);
	CU_ASSERT_PTR_NOT_NULL(strstr(unit_log, part));
	ckt_ptx_module_destroy(module);
}

#define BODY(code)                                                                            \
	UNIT_HEAD ".visible .entry k()\n{\n.reg .b32 a, b; .reg .b64 x; .reg .pred p;\n" code \
		  "\nret;\n}\n"

static void test_errors(void)
{
	refuse(BODY("frobnicate.u32 a, b;"), CKT_PTX_INVALID,
		"text0:7: unknown instruction 'frobnicate': frobnicate.u32 a, b");
	refuse(BODY("add.quick.u32 a, b, b;"), CKT_PTX_INVALID, "unknown modifier '.quick'");
	refuse(BODY("add.u32 a, b;"), CKT_PTX_INVALID, "number of operands");
	refuse(BODY("add.u32 a, b, x;"), CKT_PTX_INVALID, "operand of the wrong type");
	refuse(BODY("add.u64 a, x, x;"), CKT_PTX_INVALID, "destination");
	refuse(BODY("bra nowhere;"), CKT_PTX_INVALID, "text0:7: no label nowhere");
	refuse(BODY("add.u32 a, b, c;"), CKT_PTX_INVALID, "unknown name c");
	refuse(BODY("mov.u32 a, %nosuch;"), CKT_PTX_INVALID, "%nosuch");
	refuse(BODY("wgmma.fence.sync.aligned;"), CKT_PTX_INVALID, "wgmma");
	refuse(BODY("tcgen05.alloc.sync.aligned.b32 [x], 32;"), CKT_PTX_INVALID, "tcgen05");
	refuse(BODY("L: mov.u32 a, 1; L: mov.u32 a, 2;"), CKT_PTX_INVALID, "declared twice");
	refuse(BODY("@a add.u32 a, a, 1;"), CKT_PTX_INVALID, "predicate");
	refuse(UNIT_HEAD ".visible .entry k() { ret;", CKT_PTX_INVALID, "missing }");
	refuse("", CKT_PTX_INVALID, ".version");
	refuse(".version 9.0\n.target sm_130\n", CKT_PTX_WRONG_TARGET, "13.0");
	refuse(UNIT_HEAD ".extern .func f(); .visible .entry k() { call f; ret; }",
		CKT_PTX_UNRESOLVED, "f");
	refuse(UNIT_HEAD ".extern .global .u32 g; .visible .entry k() { ret; }", CKT_PTX_UNRESOLVED,
		"g");
	refuse(UNIT_HEAD ".global .u32 g; .global .u32 g;", CKT_PTX_DUPLICATE, "g");
	refuse(UNIT_HEAD ".global .align 3 .b8 g[4];", CKT_PTX_INVALID, "alignment");
	refuse(UNIT_HEAD ".global .u32 g[2] = {1, 2, 3};", CKT_PTX_INVALID, "too many");
	refuse(UNIT_HEAD ".file 1 \"never closed", CKT_PTX_INVALID, "string");
}

/* Every beginning of a text with a bit of everything is refused or loads; none crashes. */
static void test_truncations(void)
{
	static const char text[] = UNIT_HEAD
		".global .align 8 .u64 t[2] = {generic(g)+4, 0xFF(g)}; .global .u32 g[2] = {1, -2}; .extern .shared .align 16 .b8 s[];\n"
		".func (.param .b32 r) f(.param .align 8 .b8 p[16]) { .reg .b32 %r<3>; ld.param.b32 %r1, [p+4]; st.param.b32 [r], %r1; ret; }\n"
		".visible .entry k(.param .u64 out) .maxntid 128, 1, 1 { .reg .b64 %d<4>; .reg .b32 %r<9>; .reg .pred %p<2>;\n"
		"@!%p1 bra L; lop3.b32 %r1, %r2, 0x1f, 017, 0b1010; { .param .b32 q; call (q), f, (out); }\nL: ld.global.v2.u32 {%r1, _}, [%d1+-8];\n"
		"mov.f32 %r3, 0f3F800000; setp.lt.and.s32 %p1|_, %r1, 5, !%p1; ret; }\n";
	char *copy = malloc(sizeof text);
	for (size_t n = 0; n < sizeof text; n++) {
		memcpy(copy, text, n);
		copy[n] = 0;
		const char *list = copy;
		ckt_ptx_module_destroy(unit_load(&list, 1, NULL));
	}
	free(copy);
	CU_PASS("alive");
}

static void test_initialisers(void)
{
	const char *text = UNIT_HEAD
		".visible .global .align 8 .u64 table[3] = {g, generic(g)+4, h};\n.global .u32 g[4] = {1, 2};\n";
	CU_ASSERT_PTR_NULL(unit_load(&text, 1, NULL)); /* a name must be declared before */
	text = UNIT_HEAD
		".extern .global .u32 h;\n.visible .global .u32 g[4] = {1, -2};\n.visible .global .align 8 .u64 table[3] = {g, generic(g)+4, h};\n"
		".visible .global .u32 h = 7; .visible .const .f32 c[2] = {0f3F800000, 2.5};\n.visible .global .align 1 .b8 b[8] = {0xFF(g), 0xFF00(g), 1, 255};\n"
		".visible .global .s16 m[2][3] = {{1}, {4, 5}}; .visible .global .b8 open[] = {1, 2, 3}; .weak .global .u8 w; .global .u32 hidden;\n"
		".visible .global .attribute(.managed) .u32 mg = 3;\n";
	struct ckt_ptx_module *module = unit_load(&text, 1, NULL);
	if (!module)
		fprintf(stderr, "%s\n", unit_log);
	CU_ASSERT_PTR_NOT_NULL_FATAL(module);
	uint64_t g = unit_global(module, "g"), h = unit_global(module, "h");
	const uint64_t *table = (const uint64_t *)unit_global(module, "table");
	CU_ASSERT(table[0] == g && table[1] == g + 4 && table[2] == h);
	static const int32_t four[] = {1, -2, 0, 0};
	CU_ASSERT(!memcmp((void *)g, four, 16));
	CU_ASSERT_EQUAL(*(uint32_t *)h, 7);
	CU_ASSERT(((float *)unit_global(module, "c"))[0] == 1.0f &&
		((float *)unit_global(module, "c"))[1] == 2.5f);
	const uint8_t *b = (const uint8_t *)unit_global(module, "b");
	CU_ASSERT(b[0] == (uint8_t)g && b[1] == (uint8_t)(g >> 8) && b[2] == 1 && b[3] == 255);
	static const int16_t six[] = {1, 4, 5, 0, 0, 0}; /* rows are not filled up */
	CU_ASSERT(!memcmp((void *)unit_global(module, "m"), six, 12));
	CU_ASSERT(!memcmp((void *)unit_global(module, "open"), "\1\2\3", 3));
	for (size_t k = 0; k < ckt_ptx_module_global_count(module); k++) {
		const struct ckt_ptx_global *one = ckt_ptx_module_global(module, k);
		CU_ASSERT_EQUAL(one->is_public, strcmp(one->name, "hidden") != 0);
		CU_ASSERT_EQUAL(one->managed, !strcmp(one->name, "mg"));
		CU_ASSERT_EQUAL(one->space,
			strcmp(one->name, "c") ? CKT_PTX_SPACE_GLOBAL : CKT_PTX_SPACE_CONST);
	}
	ckt_ptx_module_destroy(module);
}

static void test_link(void)
{
	static const char *const texts[] = {UNIT_HEAD
		".extern .func (.param .b32 r) f(.param .b32 n); .extern .global .u32 shared_word; .weak .global .u32 w = 1; .global .u32 mine = 10;\n"
		".visible .entry k(.param .u64 out) { .reg .b64 o; .reg .b32 a, b; ld.param.u64 o, [out]; ld.global.u32 a, [mine];\n"
		"{ .param .b32 p; st.param.b32 [p], a; .param .b32 q; call (q), f, (p); ld.param.b32 a, [q]; }\n"
		"ld.global.u32 b, [shared_word]; add.u32 a, a, b; ld.global.u32 b, [w]; add.u32 a, a, b; st.global.u32 [o], a; ret; }\n",
		UNIT_HEAD
		".visible .global .u32 shared_word = 1000; .visible .global .u32 w = 100000; .global .u32 mine = 20;\n"
		".visible .func (.param .b32 r) f(.param .b32 n) { .reg .b32 a, b; ld.param.b32 a, [n]; ld.global.u32 b, [mine]; add.u32 a, a, b; st.param.b32 [r], a; ret; }\n"};
	struct ckt_ptx_module *module = unit_load(texts, 2, NULL);
	if (!module)
		fprintf(stderr, "%s\n", unit_log);
	CU_ASSERT_PTR_NOT_NULL_FATAL(module);
	uint32_t *out = unit_alloc(64);
	struct unit_launch u = {
		.kernel = "k", .grid = 1, .block = 1, .args = {(uint64_t)(uintptr_t)out}};
	CU_ASSERT_EQUAL(unit_run(module, &u), CKT_PTX_FAULT_NONE);
	CU_ASSERT_EQUAL(out[0], 101030);
	ckt_ptx_module_destroy(module);

	enum ckt_ptx_result r;
	const char *const twice[] = {texts[1], texts[1]};
	CU_ASSERT_PTR_NULL(unit_load(twice, 2, &r));
	CU_ASSERT_EQUAL(r, CKT_PTX_DUPLICATE);
}

static void test_info(void)
{
	const char *text = UNIT_HEAD
		".shared .align 16 .b8 a[40]; .extern .shared .align 16 .b8 dyn[]; .const .b8 c[12];\n"
		".visible .entry k(.param .u32 x, .param .align 8 .b8 s[20], .param .u16 y) .reqntid 32, 2 { .local .b8 l[24]; .shared .align 8 .b8 b[8];\n"
		".reg .b32 r; mov.u32 r, a; mov.u32 r, b; mov.u32 r, dyn; ret; }\n.entry j() .maxntid 256 { ret; }\n";
	struct ckt_ptx_module *module = unit_load(&text, 1, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(module);
	CU_ASSERT_EQUAL(ckt_ptx_module_function_count(module), 2);
	const struct ckt_ptx_function_info *k =
		ckt_ptx_function_info(ckt_ptx_module_find_function(module, "k"));
	CU_ASSERT(k->n_params == 3 && k->params[1].offset_bytes == 8 &&
		k->params[2].offset_bytes == 28 && k->param_bytes == 30);
	CU_ASSERT_EQUAL(k->static_shared_bytes, 48);
	CU_ASSERT(k->reqntid[0] == 32 && k->reqntid[1] == 2 && k->reqntid[2] == 1 &&
		k->max_threads == 64);
	CU_ASSERT(k->local_bytes >= 24 && k->const_bytes == 12 && k->ptx_version == 88 &&
		k->target == 90 && k->registers >= 1);
	const struct ckt_ptx_function_info *j =
		ckt_ptx_function_info(ckt_ptx_module_find_function(module, "j"));
	CU_ASSERT(j->max_threads == 256 && j->static_shared_bytes == 0);
	CU_ASSERT_PTR_NULL(ckt_ptx_module_find_function(module, "nobody"));
	ckt_ptx_module_destroy(module);
}

/*
 * An instruction that is refused costs the functions that hold it and the kernels that call those,
 * nothing else of the module.
 */
static void test_refused_functions(void)
{
	const char *text = UNIT_HEAD
		".visible .global .u32 before = 5;\n"
		".func (.param .b32 r) fine(.param .b32 n) { .reg .b32 a; ld.param.b32 a, [n]; add.u32 a, a, 1; st.param.b32 [r], a; ret; }\n"
		".func (.param .b32 r) odd(.param .b32 n) { .reg .b32 a; ld.param.b32 a, [n]; { .shared .b32 s[4]; bra L; frobnicate.wide.u32 a, {a, {a, 5}}, [a+s], !0x5; L: } ret; }\n"
		".func (.param .b32 r) over(.param .b32 n) { .param .b32 q; call (q), odd, (n); ret; }\n"
		".global .u32 behind = 30; .global .u64 table[2] = {fine, odd};\n"
		".visible .entry direct(.param .u64 o) { .reg .b64 x;\ntensormap.replace.tile.global_dim.global.b1024.b32 [x], 0, 5; \"}\"; ret; }\n"
		".visible .entry caller(.param .u64 o) { .reg .b32 a; call (a), odd, (a); ret; }\n"
		".visible .entry deeper(.param .u64 o) { .reg .b32 a; call (a), over, (a); ret; }\n"
		".visible .entry form(.param .u64 o) { .reg .b64 x; st.async.weak.global.b32 [x], 5; ret; }\n"
		".visible .entry good(.param .u64 o) { .reg .b32 a, b; .reg .b64 x; ld.param.u64 x, [o]; call (a), fine, (7); ld.global.u32 b, [before]; add.u32 a, a, b;\n"
		"ld.global.u32 b, [behind]; add.u32 a, a, b; st.global.u32 [x], a; ret; }\n"
		".visible .entry pointer(.param .u64 o, .param .u64 n) { .reg .b32 a; .reg .b64 x, f, t; P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
		"ld.param.u64 x, [n]; mov.u64 t, table; add.u64 t, t, x; ld.global.u64 f, [t]; call (a), f, (9), P; ld.param.u64 x, [o]; st.global.u32 [x], a; ret; }\n";
	static const struct {
		const char *kernel, *refusal;
	} table[] = {
		{"direct",
			"text0:10: instruction 'tensormap' is not supported: tensormap.replace.tile"},
		{"caller", "text0:6: unknown instruction 'frobnicate': frobnicate.wide.u32 a,"},
		{"deeper", "text0:6: unknown instruction 'frobnicate'"},
		{"form", "unknown modifier '.async' of 'st'"}, {"good", NULL}, {"pointer", NULL}};
	unit_load_refused = true;
	struct ckt_ptx_module *module = unit_load(&text, 1, NULL);
	unit_load_refused = false;
	if (!module)
		fprintf(stderr, "%s\n", unit_log);
	CU_ASSERT_PTR_NOT_NULL_FATAL(module);
	CU_ASSERT_STRING_EQUAL(unit_log, "");
	CU_ASSERT_EQUAL(ckt_ptx_module_function_count(module), sizeof table / sizeof *table);
	for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
		const char *refusal =
			ckt_ptx_function_info(ckt_ptx_module_find_function(module, table[k].kernel))
				->refusal;
		bool good =
			table[k].refusal ? refusal && strstr(refusal, table[k].refusal) : !refusal;
		if (!good)
			fprintf(stderr, "%s: %s\n", table[k].kernel, refusal ? refusal : "fine");
		CU_ASSERT(good);
	}
	uint32_t *out = unit_alloc(64);
	struct unit_launch u = {
		.kernel = "good", .grid = 1, .block = 40, .args = {(uint64_t)(uintptr_t)out}};
	CU_ASSERT_EQUAL(unit_run(module, &u), CKT_PTX_FAULT_NONE);
	CU_ASSERT_EQUAL(out[0], 8 + 5 + 30);
	u.kernel = "pointer";
	CU_ASSERT_EQUAL(unit_run(module, &u), CKT_PTX_FAULT_NONE);
	CU_ASSERT_EQUAL(out[0], 10);
	u.args[1] = 8; /* the other function: what is reached faults */
	CU_ASSERT_EQUAL(unit_run(module, &u), CKT_PTX_FAULT_ILLEGAL_INSTRUCTION);
	CU_ASSERT_PTR_NOT_NULL(strstr(unit_message, "unknown instruction 'frobnicate'"));
	ckt_ptx_module_destroy(module);
	/* What is no PTX refuses the module, even between functions that are fine. */
	unit_load_refused = true;
	refuse(UNIT_HEAD ".entry j() { ret; }\n.entry k() { nonsense; ret; }\n", CKT_PTX_INVALID,
		"text0:5: unknown instruction 'nonsense'");
	refuse(UNIT_HEAD ".entry k() { not.an.instruction; ret; }\n", CKT_PTX_INVALID,
		"unknown modifier '.an'");
	refuse(UNIT_HEAD ".entry k() { .reg .b32 a; mov.u32 a a; ret; }\n", CKT_PTX_INVALID,
		"expected");
	refuse(UNIT_HEAD ".entry k() { .reg .b32 a; mov.u32 a, b; ret; }\n", CKT_PTX_INVALID,
		"unknown name b");
	refuse(UNIT_HEAD ".entry k() { .reg .b32 a; wgmma.odd a, a; ret; ", CKT_PTX_INVALID,
		"missing }");
	unit_load_refused = false;
}

static const struct unit_test tests[] = {{"errors", test_errors}, {"truncations", test_truncations},
	{"initialisers", test_initialisers}, {"link", test_link}, {"info", test_info},
	{"refused functions", test_refused_functions}};
UNIT_MAIN("ptx modules", tests)
