/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/front/lexer.c: tokens with their lines, numbers of all forms, comments, and texts
 * that end anywhere.
 */
#include "harness.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/program.h"

static char log_text[256];

/* A parser over a text of its exact size.  False where a token fails. */
static bool scan(const char *text, struct ptx_token *ret, unsigned most, unsigned *ret_n)
{
	struct ptx_parser *p = calloc(1, sizeof *p);
	size_t size = strlen(text);
	char *copy = malloc(size ? size : 1);
	memcpy(copy, text, size);
	p->text_name = "t";
	p->begin = p->cursor = copy;
	p->end = copy + size;
	p->line = 1;
	p->log = log_text;
	p->log_size = sizeof log_text;
	volatile unsigned n = 0;
	bool good = !setjmp(p->fail);
	while (good && n < most) {
		ckt_ptx_next(p);
		ret[n] = p->token;
		ret[n].text = text + (p->token.text - copy);
		n++;
		if (p->token.kind == TK_END)
			break;
	}
	*ret_n = n;
	free(copy);
	free(p);
	return good;
}

static void test_tokens(void)
{
	static const struct {
		const char *text;
		unsigned n;
		struct {
			int kind;
			const char *text;
			unsigned line;
		} tokens[8];
	} table[] = {
		{"add.s32 %r1, $x_9;", 6,
			{{TK_IDENT, "add", 1}, {TK_DOT, "s32", 1}, {TK_IDENT, "%r1", 1},
				{TK_PUNCT, ",", 1}, {TK_IDENT, "$x_9", 1}, {TK_PUNCT, ";", 1}}},
		{"a // c\nb /* x\n\n*/ c", 3,
			{{TK_IDENT, "a", 1}, {TK_IDENT, "b", 2}, {TK_IDENT, "c", 4}}},
		{".L2::cache_hint.v4", 2, {{TK_DOT, "L2::cache_hint", 1}, {TK_DOT, "v4", 1}}},
		{"tex.2d.a1", 3, {{TK_IDENT, "tex", 1}, {TK_DOT, "2d", 1}, {TK_DOT, "a1", 1}}},
		{"x, .5, 1.;", 6,
			{{TK_IDENT, "x", 1}, {TK_PUNCT, ",", 1}, {TK_F64, ".5", 1},
				{TK_PUNCT, ",", 1}, {TK_F64, "1.", 1}, {TK_PUNCT, ";", 1}}},
		{"\"a b\" \"\"", 2, {{TK_STRING, "a b", 1}, {TK_STRING, "", 1}}},
		{"a\r\n\t\fb", 2, {{TK_IDENT, "a", 1}, {TK_IDENT, "b", 2}}},
		{"x+-y", 4,
			{{TK_IDENT, "x", 1}, {TK_PUNCT, "+", 1}, {TK_PUNCT, "-", 1},
				{TK_IDENT, "y", 1}}},
		{"5 % 3", 3, {{TK_INT, "5", 1}, {TK_PUNCT, "%", 1}, {TK_INT, "3", 1}}},
		{"%", 1, {{TK_PUNCT, "%", 1}}},
		{". a", 2, {{TK_PUNCT, ".", 1}, {TK_IDENT, "a", 1}}},
		{"/* never closed", 0, {{0, NULL, 0}}},
		{"/*/ x */ y", 1, {{TK_IDENT, "y", 1}}},
		{"/", 1, {{TK_PUNCT, "/", 1}}},
		{"//", 0, {{0, NULL, 0}}},
		{"", 0, {{0, NULL, 0}}},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		struct ptx_token tokens[10];
		unsigned n;
		YES(scan(table[k].text, tokens, 10, &n));
		IS(n, table[k].n + 1);
		for (unsigned i = 0; i < table[k].n && i < n; i++) {
			IS(tokens[i].kind, table[k].tokens[i].kind);
			IS(tokens[i].line, table[k].tokens[i].line);
			YES(tokens[i].size == strlen(table[k].tokens[i].text) &&
				!memcmp(tokens[i].text, table[k].tokens[i].text, tokens[i].size));
		}
		IS(tokens[n - 1].kind, TK_END);
	}
}

static void test_numbers(void)
{
	static const struct {
		const char *text;
		int kind;
		uint64_t value;
		unsigned size;
	} table[] = {
		{"0", TK_INT, 0, 1},
		{"42", TK_INT, 42, 2},
		{"42U", TK_INT, 42, 3},
		{"0x2a", TK_INT, 42, 4},
		{"0X2AU", TK_INT, 42, 5},
		{"052", TK_INT, 42, 3},
		{"0b101010", TK_INT, 42, 8},
		{"18446744073709551615", TK_INT, UINT64_MAX, 20},
		{"0f3f800000", TK_F32, 0x3f800000, 10},
		{"0Fbf800000", TK_F32, 0xbf800000, 10},
		{"0d3ff0000000000000", TK_F64, 0x3ff0000000000000, 18},
		{"1.5", TK_F64, 0x3ff8000000000000, 3},
		{".5", TK_F64, 0x3fe0000000000000, 2},
		{"1.", TK_F64, 0x3ff0000000000000, 2},
		{".5e1", TK_F64, 0x4014000000000000, 4},
		{"1.e1", TK_F64, 0x4024000000000000, 4},
		{"15e-1", TK_F64, 0x3ff8000000000000, 5},
		{"1.5E+0", TK_F64, 0x3ff8000000000000, 6},
		{"7,", TK_INT, 7, 1},
		{"7;", TK_INT, 7, 1},
		{"7-1", TK_INT, 7, 1},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		struct ptx_token tokens[4];
		unsigned n;
		YES(scan(table[k].text, tokens, 4, &n));
		IS(tokens[0].kind, table[k].kind);
		IS(tokens[0].value, table[k].value);
		IS(tokens[0].size, table[k].size);
	}
	/* Hexadecimal floats have as many digits as they have bits. */
	static const char *const malformed[] = {"0x", "0b", "0b2", "0f", "0fg", "0f3f8",
		"0f3f80000000", "0d3ff0", "0d3ff00000000000000", "\"open", "\"line\nend\""};
	for (size_t k = 0; k < COUNT(malformed); k++) {
		struct ptx_token tokens[4];
		char text[64];
		unsigned n;
		snprintf(text, sizeof text, "\n\n%s", malformed[k]);
		NO(scan(text, tokens, 4, &n));
		YES(!strncmp(log_text, "t:3: ", 5));
	}
}

/* A good text cut off anywhere: refused or taken, never read beyond. */
static void test_cut(void)
{
	static const char text[] =
		UNIT_HEAD ".visible .global .align 4 .f32 x[2] = {0f3f800000, 1.5e0};\n"
			  "/* c */ .visible .entry k(.param .u64 a)\n{\n.reg .b64 %rd<3>;\n"
			  "ld.param.u64 %rd1, [a+0x0]; // c\n@!%p bra L;\nL: ret;\n.loc 1 2 3\n}\n";
	unsigned loaded = 0;
	for (size_t cut = 0; cut < sizeof text - 1; cut++) {
		char *part = strndup(text, cut);
		enum ckt_ptx_result result;
		struct ckt_ptx_module *module = unit_load((const char *const[]){part}, 1, &result);
		YES(module || (*unit_log && result == CKT_PTX_INVALID));
		loaded += module != NULL;
		if (module)
			ckt_ptx_module_destroy(module);
		free(part);
	}
	YES(loaded > 0 && loaded < 120); /* between whole statements of module scope only */
}

UNIT_SUITE(softgpu / ptx / front / lexer, {"tokens", test_tokens}, {"numbers", test_numbers},
	{"cut", test_cut})
