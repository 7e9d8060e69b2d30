/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/builtin.c: printf's conversions against the C library's, assert's text,
 * malloc and free, and what is no function.
 */
#include "harness.h"
#include "softgpu/ptx/execution/builtin.h"
#include "softgpu/ptx/execution/grid.h"

/* One printf: the format and up to two arguments of 8 bytes as they lie in memory. */
static const char *print(const char *format, uint64_t a, uint64_t b)
{
	static char scope[2048];
	char *at = scope +
		sprintf(scope,
			".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n.global .b8 text[] = {");
	for (const char *c = format;; c++) {
		at += sprintf(at, "%u%s", (unsigned char)*c,
			*c ? "," : "};\n.global .b8 word[4] = {111, 110, 101, 0};\n");
		if (!*c)
			break;
	}
	uint32_t r = 77;
	unit_clear();
	memcpy(unit_memory, &a, 8);
	memcpy(unit_memory + 2, &b, 8);
	enum ckt_ptx_fault fault = unit_threads(scope,
		"mov.u64 x1, text; cvta.global.u64 x1, x1; ld.global.u64 x2, [m]; "
		"setp.eq.u64 p1, x2, 0x776f7264; mov.u64 x3, word; @p1 st.global.u64 [m], x3;\n"
		"{ .param .b64 f; .param .b64 a; .param .b32 v; st.param.b64 [f], x1; "
		"st.param.b64 [a], m; call (v), vprintf, (f, a); ld.param.b32 r0, [v]; }",
		1, 1, &r);
	IS(fault, CKT_PTX_FAULT_NONE);
	unit_memory[100] = r;
	return unit_output;
}

enum { WORD = 0x776f7264 }; /* stands for the address of "one" */

static uint64_t bits(double d)
{
	uint64_t v;
	memcpy(&v, &d, 8);
	return v;
}

static void test_printf(void)
{
	static const struct {
		const char *format;
		uint64_t a, b;
		const char *want;
		unsigned n;
	} table[] = {
		{"plain", 0, 0, "plain", 0},
		{"%d", 0xfffffffb, 0, "-5", 1},
		{"%u", 0xfffffffb, 0, "4294967291", 1},
		{"%lld", ~0ull, 0, "-1", 1},
		{"%ld|", 1ull << 40, 0, "1099511627776|", 1},
		{"%x %X %o", 0xff000000abull, 8, "ab FF 10", 3},
		{"%#x", 255, 0, "0xff", 1},
		{"%05d|%-5d|", 0x2a0000002aull & 0xffffffff, 0, "00042|0    |", 2},
		{"%+d", 7, 0, "+7", 1},
		{"%hd", 0x18000, 0, "-32768", 1},
		{"%hhu", 0x1ff, 0, "255", 1},
		{"%c%%", 'A', 0, "A%", 1},
		{"%s", WORD, 0, "one", 1},
		{"%5s|%-5s|", WORD, 0, "  one|(null)|", 2},
		{"%.2s", WORD, 0, "on", 1},
		{"%s", 0, 0, "(null)", 1},
		{"%*d", 0x700000005, 0, "    7", 2},
		{"%y", 5, 0, "%y", 0},
		{"%", 0, 0, "", 0},
		{"a%", 0, 0, "a", 0},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		const char *have = print(table[k].format, table[k].a, table[k].b);
		if (strcmp(have, table[k].want))
			fprintf(stderr, "%s: %s\n", table[k].format, have);
		TEXT(have, table[k].want);
		IS(unit_memory[100], table[k].n);
	}
	TEXT(print("%f %g", bits(1.5), bits(-0.25)), "1.500000 -0.25");
	TEXT(print("%.3e|%8.2f|", bits(12345.678), bits(2.345)), "1.235e+04|    2.35|");
	TEXT(print("%a %f", bits(1), 0x7ff8000000000000), "0x1p+0 nan");
	/*
	 * An int between two words of 8 bytes takes its 4, and the next begins at a multiple of its
	 * size.
	 */
	TEXT(print("%d %lld", 3, 4), "3 4");
	/* A format or text that is nowhere. */
	uint32_t r;
	IS(unit_threads(".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n",
		   "mov.u64 x1, 8; { .param .b64 f; .param .b64 a; .param .b32 v; st.param.b64 [f], x1; st.param.b64 [a], m; "
		   "call (v), vprintf, (f, a); }",
		   1, 1, &r),
		CKT_PTX_FAULT_ILLEGAL_ADDRESS);
	/* Every thread its line, whole. */
	uint32_t out[64];
	IS(unit_threads(
		   ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n.global .b8 text[4] = {37, 100, 10, 0};\n"
		   ".global .u32 n[64];\n",
		   "mov.u64 x1, text; cvta.global.u64 x1, x1; mov.u64 x2, n; mul.wide.u32 x3, t, 4; add.u64 x2, x2, x3; "
		   "st.global.u32 [x2], t; { .param .b64 f; .param .b64 a; .param .b32 v; st.param.b64 [f], x1; "
		   "st.param.b64 [a], x2;\n"
		   "call (v), vprintf, (f, a); ld.param.b32 r0, [v]; }",
		   1, 64, out),
		CKT_PTX_FAULT_NONE);
	unsigned lines = 0, sum = 0;
	for (char *at = unit_output; *at; lines++)
		sum += (unsigned)strtoul(at, &at, 10), at += *at == '\n';
	YES(lines == 64 && sum == 2016);
}

static void test_assert(void)
{
	uint32_t out[4];
	IS(unit_threads(
		   ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);\n"
		   ".global .b8 a[4] = {120, 62, 48, 0};\n.global .b8 b[4] = {102, 46, 99, 0};\n.global .b8 c[3] = {102, 110, 0};\n",
		   "setp.ne.u32 p1, t, 2; @p1 bra E; { .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s; "
		   "mov.u64 x1, a; st.param.b64 [m], x1; mov.u64 x1, b; st.param.b64 [f], x1; st.param.b32 [l], 42;\n"
		   "mov.u64 x1, c; st.param.b64 [n], x1; st.param.b64 [s], 1; call __assertfail, (m, f, l, n, s); } E:",
		   1, 4, out),
		CKT_PTX_FAULT_ASSERT);
	TEXT(unit_output, "f.c:42: fn: block: [0,0,0], thread: [2,0,0] Assertion `x>0` failed.\n");
}

static void test_malloc(void)
{
	static const char scope[] =
		".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n";
	uint32_t out[32];
	IS(unit_threads(scope,
		   "{ .param .b64 n; .param .b64 p; st.param.b64 [n], 64; call (p), malloc, (n); ld.param.b64 x1, [p]; "
		   "} st.u32 [x1+60], t; bar.sync 0; ld.u32 r0, [x1+60]; { .param .b64 q; st.param.b64 [q], x1; call free, (q); }\n"
		   "{ .param .b64 q; st.param.b64 [q], 0; call free, (q); }",
		   1, 32, out),
		CKT_PTX_FAULT_NONE);
	unsigned wrong = 0;
	for (unsigned t = 0; t < 32; t++)
		wrong += out[t] != t;
	IS(wrong, 0);
	IS(unit_threads(scope,
		   "{ .param .b64 n; .param .b64 p; st.param.b64 [n], 0; call (p), malloc, (n); ld.param.b64 x1, [p]; "
		   "} cvt.u32.u64 r0, x1;",
		   1, 1, out),
		CKT_PTX_FAULT_NONE);
	IS(out[0], 0);
}

static void test_names(void)
{
	IS(ckt_ptx_builtin_find("vprintf"), BUILTIN_VPRINTF);
	IS(ckt_ptx_builtin_find("malloc"), BUILTIN_MALLOC);
	IS(ckt_ptx_builtin_find("free"), BUILTIN_FREE);
	IS(ckt_ptx_builtin_find("__assertfail"), BUILTIN_ASSERTFAIL);
	IS(ckt_ptx_builtin_find("cudaGraphSetConditional"), BUILTIN_SET_CONDITION);
	IS(ckt_ptx_builtin_find("printf"), BUILTIN_NONE);
	IS(ckt_ptx_builtin_find(""), BUILTIN_NONE);
	/* Declared with fewer parameters than it has. */
	uint32_t r;
	IS(unit_threads(".extern .func (.param .b32 r) vprintf (.param .b64 f);\n",
		   "{ .param .b64 f; .param .b32 v; st.param.b64 [f], 0; call (v), vprintf, (f); }",
		   1, 1, &r),
		CKT_PTX_FAULT_INVALID_PC);
	/* What the program defines itself is its own. */
	IS(unit_threads(
		   ".visible .func (.param .b64 r) malloc(.param .b64 n) { st.param.b64 [r], 123; ret; }\n",
		   "{ .param .b64 n; .param .b64 p; st.param.b64 [n], 8; call (p), malloc, (n); ld.param.b64 x1, [p]; "
		   "} cvt.u32.u64 r0, x1;",
		   1, 1, &r),
		CKT_PTX_FAULT_NONE);
	IS(r, 123);
}

UNIT_SUITE(softgpu / ptx / execution / builtin, {"printf", test_printf}, {"assert", test_assert},
	{"malloc", test_malloc}, {"names", test_names})
