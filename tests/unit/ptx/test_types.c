/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/front/types.c: the types' widths, and constant expressions.  What these come to was
 * asked of ptxas 13.0, in initialisers of .u64 and .f64 variables.
 */
#include "harness.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/program.h"

/* The first bytes of a variable with that initialiser. */
static bool value_of(const char *type, const char *expression, uint64_t *ret)
{
	char text[512];
	snprintf(text, sizeof text, UNIT_HEAD ".visible .global .align 8 .%s x = %s;\n", type,
		expression);
	struct ckt_ptx_module *module = unit_load((const char *const[]){text}, 1, NULL);
	if (!module)
		return false;
	*ret = 0;
	memcpy(ret, (void *)(uintptr_t)unit_global(module, "x"),
		ckt_ptx_module_global(module, 0)->size_bytes);
	ckt_ptx_module_destroy(module);
	return true;
}

static void test_integers(void)
{
	static const struct {
		const char *expression;
		int64_t want;
	} table[] = {
		{"-8/2", -4},
		{"8/-2", -4},
		{"-8/-2", 4},
		{"-8>>1", -4},
		{"-1>>1U", -1},
		{"-1U>>1", INT64_MAX},
		{"5U/2", 2},
		{"-1/2U", INT64_MAX},
		{"-7 % 3", 0},
		{"-5 % 3", 2},
		{"5 % -3", 5},
		{"0xFFFFFFFFFFFFFFFF/2", INT64_MAX},
		{"9223372036854775808/2", 1ll << 62},
		{"~5", -6},
		{"(~5)/2", 0x7ffffffffffffffd},
		{"!5", 0},
		{"!0", 1},
		{"!1U-1>>1", -1},
		{"7 & 3 | 8", 11},
		{"6 ^ 3 & 1", 7},
		{"(-8|0)/2", -4},
		{"5*-3", -15},
		{"2*3+4*5", 26},
		{"(2+3)*4", 20},
		{"1 << 2 + 1", 8},
		{"1<<65", 2},
		{"-1>>70", -1},
		{"(1<<63)>>63", -1},
		{"(1U<<63)>>63", 1},
		{"5>3", 1},
		{"5<=4", 0},
		{"5>=5", 1},
		{"5!=6", 1},
		{"2==2", 1},
		{"-8<1", 1},
		{"-8<1U", 0},
		{"5 > 3 > 1", 0},
		{"1 | 2 == 2", 1},
		{"1&&0", 0},
		{"1||0", 1},
		{"2&&3", 1},
		{"(0 && 1) - 1 >> 1", -1},
		{"5>3?1:2", 1},
		{"0?1:0?3:4", 4},
		{"(-8 ? -8 : 1U)/2", -4},
		{"(1 ? 1U : 2)-2>>1", INT64_MAX},
		{"(.u64)-1/2", INT64_MAX},
		{"(.s64)0xFFFFFFFFFFFFFFFF/2", 0},
		{"(.s64)(-8U)/2", -4},
		{"(1U-2)/2", INT64_MAX},
		{"010", 8},
		{"0b101", 5},
		{"0x1F", 31},
		{"1U", 1},
		{"WARP_SZ*2", 64},
		{"-9223372036854775808", INT64_MIN},
		{"+3", 3},
		{"- -3", 3},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		uint64_t v = 0x77;
		YES(value_of("u64", table[k].expression, &v));
		if (v != (uint64_t)table[k].want)
			fprintf(stderr, "%s\n", table[k].expression);
		IS(v, table[k].want);
	}
	/* The least number by -1: nobody asked ptxas, but it must not end the process. */
	uint64_t v;
	YES(value_of("u64", "(-9223372036854775807-1)/-1", &v));
	IS(v, INT64_MIN);
	/* Cut to the variable's width. */
	YES(value_of("s8", "300", &v));
	IS(v, 0x2c);
	YES(value_of("u16", "65536", &v));
	IS(v, 0);
}

static void test_floats(void)
{
	static const struct {
		const char *type, *expression;
		double want;
	} table[] = {
		{"f64", "1.5", 1.5},
		{"f64", "-1.5", -1.5},
		{"f64", "1.0+2.0*3.0", 7},
		{"f64", "(1.5+0.5)/4.0", 0.5},
		{"f64", "1.0/2.0", 0.5},
		{"f64", "3.0-5.0", -2},
		{"f64", "1.5e3", 1500},
		{"f64", "1e5", 1e5},
		{"f64", "2.5e-1", 0.25},
		{"f64", "0d3ff8000000000000", 1.5},
		{"f64", "-0d3ff8000000000000", -1.5},
		{"f32", "1.5", 1.5},
		{"f32", "0f3f800000", 1},
		{"f32", "-0F3F800000", -1},
		{"f32", "0d3ff8000000000000", 1.5},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		uint64_t v = 0;
		double d = 0;
		YES(value_of(table[k].type, table[k].expression, &v));
		if (!strcmp(table[k].type, "f32")) {
			float f;
			memcpy(&f, &v, 4);
			d = f;
		} else {
			memcpy(&d, &v, 8);
		}
		YES(d == table[k].want);
	}
}

static void test_refused(void)
{
	static const struct {
		const char *expression, *words;
	} table[] = {
		{"5/0", "division by zero"},
		{"5 % 0", "division by zero"},
		{"1+", "constant expected"},
		{"(1", "')' expected"},
		{"1 ? 2", "':' expected"},
		{"1.0<2.0", "floats"},
		{"0f3f800000*2.0", "floats"},
		{"~1.0", "float"},
		{"!1.0", "float"},
		{"1.0 ? 2 : 3", "float"},
		{"(.u32)1", "cast"},
		{"2.0-1", "floats"},
		{"1.0 % 2.0", "floats"},
		{"1.0 << 1", "floats"},
		{"((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1", "deeply"},
		{"1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?"
		 "1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1?1",
			"deeply"},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		char text[512];
		snprintf(text, sizeof text, UNIT_HEAD "\n\n.visible .global .f64 x = %s;\n",
			table[k].expression);
		REFUSED(text, CKT_PTX_INVALID, 6, table[k].words);
	}
}

static void test_widths(void)
{
	static const struct {
		const char *name;
		unsigned bytes, lane;
		bool is_signed, is_float;
	} table[] = {
		{"pred", 0, 0, false, false},
		{"b8", 1, 4, false, false},
		{"s8", 1, 4, true, false},
		{"u16", 2, 4, false, false},
		{"s16", 2, 4, true, false},
		{"f16", 2, 4, false, true},
		{"bf16", 2, 4, false, true},
		{"f16x2", 4, 4, false, true},
		{"s32", 4, 4, true, false},
		{"f32", 4, 4, false, true},
		{"b64", 8, 8, false, false},
		{"s64", 8, 8, true, false},
		{"f64", 8, 8, false, true},
		{"b128", 16, 16, false, false},
		{"texref", 8, 8, false, false},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		enum ptx_type t = ckt_ptx_type_from(table[k].name, strlen(table[k].name));
		YES(t != T_NONE);
		IS(ckt_ptx_type_bytes(t), table[k].bytes);
		IS(ckt_ptx_lane_bytes(t), table[k].lane);
		IS(ckt_ptx_type_signed(t), table[k].is_signed);
		IS(ckt_ptx_type_float(t), table[k].is_float);
	}
	static const char *const none[] = {"", "b", "b3", "b320", "B32", "u128", "x", "f8", "void"};
	for (size_t k = 0; k < COUNT(none); k++)
		IS(ckt_ptx_type_from(none[k], strlen(none[k])), T_NONE);
	IS(ckt_ptx_type_from("b32x", 3), T_B32); /* of the size given */
	IS(ckt_ptx_type_from("surfref", 7), T_OPAQUE);
	IS(ckt_ptx_type_from("samplerref", 10), T_OPAQUE);
}

UNIT_SUITE(softgpu / ptx / front / types, {"integers", test_integers}, {"floats", test_floats},
	{"refused", test_refused}, {"widths", test_widths})
