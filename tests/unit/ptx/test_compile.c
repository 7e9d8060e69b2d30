/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/compiled/compile.c: kernels as machine code answer what the interpreter answers, in
 * every bit, with faults and meetings of threads like its own; a compiler that fails loses nothing.
 *
 * The program runs itself with CRICKET_SOFT_COMPILE=0 for the interpreter's answers.
 */
#include <ftw.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "softgpu/ptx/compiled/compile.h"

enum { ROWS = 256, MOST = 2048, A_KERNEL = 48, A_GROUP = 8, MEMORY = 65536 };

static char folder[64], self[512];

/*
 * ---- What is computed: spellings over ha hb hc, ra rb rc, xa xb xc, fa fb fc, da db dc, pa pb,
 * into ho, ro, xo, fo, do, po
 */

static const char *const ints[] = {"u16", "s16", "u32", "s32", "u64", "s64"};
static const char letters[] = "hhrrxx", results[] = "hhrrxx";
static struct {
	char text[96];
	char result;
} codes[MOST];
static unsigned n_codes;

static void __attribute__((format(printf, 2, 3))) code(char result, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	if (n_codes == MOST)
		abort();
	codes[n_codes].result = result;
	vsnprintf(codes[n_codes++].text, sizeof codes->text, format, ap);
	va_end(ap);
}

static void add_integers(void)
{
	static const char *const two[] = {"add", "sub", "mul.lo", "mul.hi", "div", "rem", "min",
		"max"},
				 *const one[] = {"neg", "abs"};
	for (unsigned t = 0; t < COUNT(ints); t++) {
		char l = letters[t], o = results[t];
		for (unsigned k = 0; k < COUNT(two); k++)
			code(o, "%s.%s %co, %ca, %cb;", two[k], ints[t], o, l, l);
		for (unsigned k = 0; k < COUNT(one) && (t & 1); k++)
			code(o, "%s.%s %co, %ca;", one[k], ints[t], o, l);
		code(o, "mad.lo.%s %co, %ca, %cb, %cc;", ints[t], o, l, l, l);
		code(o, "mad.hi.%s %co, %ca, %cb, %cc;", ints[t], o, l, l, l);
		code(o, "sad.%s %co, %ca, %cb, %cc;", ints[t], o, l, l, l);
		code(o, "shr.%s %co, %ca, rb;", ints[t], o, l);
		if (t < 4)
			code(results[t + 2], "mul.wide.%s %co, %ca, %cb;", ints[t], results[t + 2],
				l, l);
		if (t < 4)
			code(results[t + 2], "mad.wide.%s %co, %ca, %cb, %cc;", ints[t],
				results[t + 2], l, l, results[t + 2]);
	}
	static const char *const plain[] = {"add.sat.s32 ro, ra, rb;", "sub.sat.s32 ro, ra, rb;",
		"mad.hi.sat.s32 ro, ra, rb, rc;", "mul24.lo.u32 ro, ra, rb;",
		"mul24.hi.s32 ro, ra, rb;", "mad24.lo.s32 ro, ra, rb, rc;",
		"mad24.hi.sat.s32 ro, ra, rb, rc;", "dp4a.u32.s32 ro, ra, rb, rc;",
		"dp4a.s32.s32 ro, ra, rb, rc;", "dp2a.lo.s32.u32 ro, ra, rb, rc;",
		"dp2a.hi.u32.u32 ro, ra, rb, rc;", "add.u16x2 ro, ra, rb;", "min.s16x2 ro, ra, rb;",
		"max.relu.s16x2 ro, ra, rb;", "and.b32 ro, ra, rb;", "or.b32 ro, ra, 0x80000001;",
		"xor.b32 ro, ra, rb;", "not.b32 ro, ra;", "cnot.b32 ro, ra;", "shl.b32 ro, ra, rb;",
		"shl.b32 ro, ra, 7;", "shf.l.wrap.b32 ro, ra, rb, rc;",
		"shf.r.clamp.b32 ro, ra, rb, rc;", "popc.b32 ro, ra;", "clz.b32 ro, ra;",
		"brev.b32 ro, ra;", "bfind.u32 ro, ra;", "bfind.shiftamt.s32 ro, ra;",
		"bfe.u32 ro, ra, rb, rc;", "bfe.s32 ro, ra, 5, 9;", "bfi.b32 ro, ra, rb, rc, 11;",
		"szext.clamp.s32 ro, ra, rb;", "bmsk.wrap.b32 ro, ra, rb;", "fns.b32 ro, ra, 3, 2;",
		"prmt.b32 ro, ra, rb, rc;", "prmt.b32.f4e ro, ra, rb, rc;",
		"prmt.b32.ecl ro, ra, rb, rc;", "lop3.b32 ro, ra, rb, rc, 0xe8;",
		"selp.b32 ro, ra, rb, pa;", "slct.s32.s32 ro, ra, rb, rc;", "mov.b32 ro, {ha, hb};",
		"mov.u32 ro, %tid.x;", "mov.u32 ro, %ntid.x;", "mov.u32 ro, %ctaid.x;",
		"mov.u32 ro, %laneid;", "mov.u32 ro, %lanemask_lt;", "mov.u32 ro, %lanemask_ge;",
		"mov.u32 ro, %nctaid.x;"};
	for (unsigned k = 0; k < COUNT(plain); k++)
		code('r', "%s", plain[k]);
	static const char *const wide[] = {"and.b64 xo, xa, xb;", "xor.b64 xo, xa, xb;",
		"not.b64 xo, xa;", "shl.b64 xo, xa, rb;", "bfe.u64 xo, xa, rb, rc;",
		"bfe.s64 xo, xa, 3, 40;", "bfi.b64 xo, xa, xb, rb, rc;", "selp.b64 xo, xa, xb, pb;",
		"mov.b64 xo, {ra, rb};", "brev.b64 xo, xa;", "mov.b64 xo, {ha, hb, hc, ha};"};
	for (unsigned k = 0; k < COUNT(wide); k++)
		code('x', "%s", wide[k]);
	code('r', "popc.b64 ro, xa;");
	code('r', "clz.b64 ro, xa;");
	code('r', "{ .reg .b32 up; mov.b64 {ro, up}, xa; xor.b32 ro, ro, up; }");
	code('h', "{ .reg .b16 up; mov.b32 {_, ho}, ra; }");
	code('p', "and.pred po, pa, pb;");
	code('p', "xor.pred po, pa, pb;");
	code('p', "not.pred po, pa;");
	code('p', "or.pred po, pa, !pb;");
	code('p', "mov.pred po, pb;");
}

static void add_comparisons(void)
{
	static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge"},
				 *const floats[] = {
					 "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
	for (unsigned k = 0; k < COUNT(compares); k++) {
		for (unsigned t = 0; t < COUNT(ints); t++)
			code('p', "setp.%s.%s po, %ca, %cb;", compares[k], ints[t], letters[t],
				letters[t]);
		code('p', "setp.%s.f32 po, fa, fb;", compares[k]);
		code('p', "setp.%s.and.f64 po, da, db, pa;", compares[k]);
		code('p', "setp.%s.or.s32 po, ra, rb, !pa;", compares[k]);
		code('p', "setp.%s.xor.ftz.f32 po|pq, fa, fb, pa; @!pb xor.pred po, po, pq;",
			compares[k]);
		code('p', "setp.%s.f16 po, ha, hb;", compares[k]);
		code('p', "setp.%s.f16x2 po|pq, ra, rb; @pb xor.pred po, po, pq;", compares[k]);
		code('r', "set.%s.u32.s32 ro, ra, rb;", compares[k]);
		code('f', "set.%s.f32.f32 fo, fa, fb;", compares[k]);
	}
	for (unsigned k = 0; k < COUNT(floats); k++) {
		code('p', "setp.%s.f32 po, fa, fb;", floats[k]);
		code('p', "setp.%s.f64 po, da, db;", floats[k]);
	}
}

static void add_floats(void)
{
	static const char *const two[] = {"add", "sub", "mul", "min", "max", "div.rn"},
				 *const one[] = {"abs", "neg"},
				 *const more[] = {"", ".ftz", ".sat", ".ftz.sat"};
	for (unsigned k = 0; k < COUNT(two); k++) {
		for (unsigned f = 0; f < (k < 3 ? 4 : 2); f++)
			code('f', "%s%s.f32 fo, fa, fb;", two[k], more[f]);
		code('d', "%s.f64 do, da, db;", two[k]);
	}
	for (unsigned k = 0; k < COUNT(one); k++) {
		code('f', "%s.f32 fo, fa;", one[k]);
		code('f', "%s.ftz.f32 fo, fa;", one[k]);
	}
	for (unsigned f = 0; f < COUNT(more); f++)
		code('f', "fma.rn%s.f32 fo, fa, fb, fc;", more[f]);
	static const char *const plain[] = {"sqrt.rn.f32 fo, fa;", "sqrt.rn.ftz.f32 fo, fa;",
		"rcp.rn.f32 fo, fa;", "rcp.rn.ftz.f32 fo, fa;", "fma.rz.f32 fo, fa, fb, fc;",
		"add.rm.ftz.f32 fo, fa, fb;", "ex2.approx.f32 fo, fa;",
		"sin.approx.ftz.f32 fo, fa;", "div.full.f32 fo, fa, fb;", "min.NaN.f32 fo, fa, fb;",
		"selp.f32 fo, fa, fb, pa;"};
	for (unsigned k = 0; k < COUNT(plain); k++)
		code('f', "%s", plain[k]);
	code('d', "fma.rn.f64 do, da, db, dc;");
	code('d', "sqrt.rn.f64 do, da;");
	code('d', "fma.rp.f64 do, da, db, dc;");
	static const char *const halves[] = {"add", "sub", "mul", "min", "max"};
	for (unsigned k = 0; k < COUNT(halves); k++) {
		code('h', "%s.f16 ho, ha, hb;", halves[k]);
		code('r', "%s.f16x2 ro, ra, rb;", halves[k]);
		code('r', "%s.bf16x2 ro, ra, rb;", k < 3 ? "min" : halves[k]);
	}
	code('h', "fma.rn.f16 ho, ha, hb, hc;");
	code('r', "fma.rn.f16x2 ro, ra, rb, rc;");
	code('r', "fma.rn.relu.f16x2 ro, ra, rb, rc;");
}

static void add_conversions(void)
{
	for (unsigned to = 0; to < COUNT(ints); to++) {
		for (unsigned from = 0; from < COUNT(ints); from++)
			if (to != from)
				code(results[to], "cvt.%s.%s %co, %ca;", ints[to], ints[from],
					results[to], letters[from]);
		code('f', "cvt.rn.f32.%s fo, %ca;", ints[to], letters[to]);
		code('d', "cvt.rn.f64.%s do, %ca;", ints[to], letters[to]);
		code(results[to], "cvt.rzi.%s.f32 %co, fa;", ints[to], results[to]);
		code(results[to], "cvt.rzi.%s.f64 %co, da;", ints[to], results[to]);
		code(results[to], "cvt.rni.ftz.%s.f32 %co, fa;", ints[to], results[to]);
	}
	static const char *const plain[] = {"rcvt.u32.u8 ro, ra;", "rcvt.s32.s8 ro, ra;",
		"hcvt.s16.s8 ho, ha;", "rcvt.sat.u8.s32 ro, ra;", "fcvt.f32.f16 fo, ha;",
		"hcvt.rn.f16.f32 ho, fa;", "hcvt.rn.bf16.f32 ho, fa;", "fcvt.f32.bf16 fo, ha;",
		"rcvt.rn.f16x2.f32 ro, fa, fb;", "rcvt.rn.bf16x2.f32 ro, fa, fb;",
		"dcvt.f64.f32 do, fa;", "fcvt.rn.f32.f64 fo, da;", "fcvt.rni.f32.f32 fo, fa;",
		"fcvt.rzi.f32.f32 fo, fa;", "fcvt.rmi.f32.f32 fo, fa;", "fcvt.rpi.f32.f32 fo, fa;",
		"fcvt.rz.f32.f64 fo, da;", "fcvt.rn.sat.f32.s32 fo, ra;"};
	for (unsigned k = 0; k < COUNT(plain); k++)
		code(plain[k][0], "%s", plain[k] + 1);
}

/* Values with every sort of float and of integer among them, the same each time. */
static void fill(uint64_t (*rows)[3])
{
	static const uint64_t special[] = {0, 1, ~0ull, 1ull << 63, 0x7fffffffffffffff, 0x80000000,
		0x7fffffff, 0xffffffff, 0x8000, 0x7fff, 0x3f8000003f800000, 0x7f800000, 0xff800000,
		0x7fc00000, 0x7f800001, 0xffc12345, 1, 0x007fffff, 0x00800000, 0x80800001,
		0x7ff0000000000000, 0xfff8000000000001, 0x7ff4000000000000, 0x000fffffffffffff,
		0x0010000000000000, 0x3ff0000000000000, 0x43e0000000000000, 0xc3e0000000000000,
		0x4f000000, 0xcf000000, 0x4f800000, 0x5f000000, 0x7c007c01, 0x3c003c00, 0x04000001,
		31, 32, 33, 63, 64, 65};
	uint64_t seed = 88172645463325252ull;
	for (unsigned r = 0; r < ROWS; r++) {
		for (unsigned k = 0; k < 3; k++) {
			seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
			unsigned pick = (unsigned)(seed >> 32) % 64;
			rows[r][k] = pick < COUNT(special) ? special[pick] : seed;
			/* Two that lie near each other, and floats near the least normal one. */
			if (k && r % 8 == 1)
				rows[r][k] = rows[r][0] + (seed & 3);
			if (r % 8 == 2)
				rows[r][k] = (seed & 0x80ffffff) |
					(k ? 0x3f000000 - (seed & 0x300000) : 0x00800000);
		}
	}
}

/* A code of a group, whose results have registers of their own: ro becomes ro3. */
static void print_code(FILE *out, const char *guard, const char *text, unsigned place)
{
	fputs(guard, out);
	for (const char *at = text; *at; at++) {
		fputc(*at, out);
		bool ends = at > text && (*at == 'o' || (*at == 'q' && at[-1] == 'p')) &&
			strchr("hrxfdp", at[-1]) &&
			(at - 1 == text || !strchr("_.abcdefghijklmnopqrstuvwxyz", at[-2]));
		if (ends && !strchr("abcdefghijklmnopqrstuvwxyz", at[1] ? at[1] : ' '))
			fprintf(out, "%u", place);
	}
	fputc('\n', out);
}

static void print_result(FILE *out, char result, unsigned place)
{
	switch (result) {
	case 'h':
		fprintf(out, "cvt.u64.u16 n%u, ho%u;\n", place, place);
		break;
	case 'r':
		fprintf(out, "cvt.u64.u32 n%u, ro%u;\n", place, place);
		break;
	case 'f':
		fprintf(out, "mov.b32 t1, fo%u; cvt.u64.u32 n%u, t1;\n", place, place);
		break;
	case 'p':
		fprintf(out, "selp.b64 n%u, 1, 0, po%u;\n", place, place);
		break;
	case 'd':
		fprintf(out, "mov.b64 n%u, do%u;\n", place, place);
		break;
	default:
		fprintf(out, "mov.b64 n%u, xo%u;\n", place, place);
	}
}

static void print_kernel(FILE *out, unsigned first, unsigned end)
{
	fprintf(out,
		".visible .entry k%u(.param .u64 in, .param .u64 out) {\n"
		".reg .b64 from, addr, to, n<8>, xa, xb, xc, xo<8>; .reg .b32 ra, rb, rc, ro<8>, t1; .reg .b16 ha, hb, hc, ho<8>; .reg .pred pa, pb, po<8>, pq<8>;\n"
		".reg .f32 fa, fb, fc, fo<8>; .reg .f64 da, db, dc, do<8>;\n"
		"ld.param.u64 from, [in]; ld.param.u64 to, [out]; mov.u32 t1, %%tid.x; mad.wide.u32 addr, t1, 24, from; mad.wide.u32 to, t1, 8, to;\n"
		"ld.global.b64 xa, [addr]; ld.global.b64 xb, [addr+8]; ld.global.b64 xc, [addr+16]; cvt.u32.u64 ra, xa; cvt.u32.u64 rb, xb; cvt.u32.u64 rc, xc;\n"
		"cvt.u16.u64 ha, xa; cvt.u16.u64 hb, xb; cvt.u16.u64 hc, xc; mov.b32 fa, ra; mov.b32 fb, rb; mov.b32 fc, rc; mov.b64 da, xa; mov.b64 db, xb; mov.b64 dc, xc;\n"
		"and.b32 t1, ra, 1; setp.ne.u32 pa, t1, 0; and.b32 t1, rb, 2; setp.ne.u32 pb, t1, 0;\n",
		first / A_KERNEL);
	for (unsigned group = first; group < end; group += A_GROUP) {
		unsigned last = group + A_GROUP < end ? group + A_GROUP : end;
		for (unsigned k = group; k < last; k++) {
			print_code(out, "", codes[k].text, k - group);
			/*
			 * What fails a guard keeps its value; a sum of both is what differs if it
			 * does not.
			 */
			if (codes[k].text[0] != '{' && k % 3 == 0)
				print_code(out, "@pa ", codes[k].text, k - group);
		}
		for (unsigned k = group; k < last; k++)
			print_result(out, codes[k].result, k - group);
		for (unsigned k = group; k < last; k++)
			fprintf(out, "st.global.b64 [to+%u], n%u;\n", k * ROWS * 8, k - group);
	}
	fputs("ret; }\n", out);
}

static void print_program(FILE *out, unsigned k, const char *body)
{
	fprintf(out,
		".visible .entry p%u(.param .u64 out, .param .u64 memory)\n{\n.reg .b64 m, o, xx, x<16>; .reg .b32 t, r<32>; .reg .b16 h<8>; .reg .f32 f<4>; .reg .pred p<8>;\n"
		"ld.param.u64 o, [out]; ld.param.u64 m, [memory]; mov.u32 t, %%tid.x; mul.wide.u32 xx, t, 4; add.u64 o, o, xx;\n%s\nst.global.u32 [o], r0;\nret;\n}\n",
		k, body);
}

/* ---- What runs: answers and messages into one buffer */

static const struct {
	const char *body;
	unsigned block;
} programs[] = {
	/*
	 * Faults with their messages: addresses, alignment, shared memory, a trap of some lanes
	 * only.
	 */
	{"mov.b64 x0, 64; ld.global.u32 r0, [x0];", 32},
	{"mul.wide.u32 x0, t, 4; add.u64 x0, m, x0; st.global.u32 [x0+65500], t;", 64},
	{"add.u64 x0, m, 2; ld.global.u32 r0, [x0];", 32},
	{"setp.eq.u32 p0, t, 7; @p0 trap;", 32},
	{"mov.u32 r1, 4096; st.shared.u32 [r1], t;", 32},
	/* Loops that lanes leave one by one, and a sum over what they did. */
	{"mov.u32 r0, 0; mov.u32 r1, t; L: add.u32 r0, r0, r1; sub.u32 r1, r1, 1; setp.ne.u32 p0, r1, -1; @p0 bra L;",
		96},
	{"and.b32 r1, t, 3; setp.eq.u32 p0, r1, 0; @p0 bra A; setp.eq.u32 p1, r1, 1; @p1 bra B; mul.lo.u32 r0, t, 3; bra E; A: add.u32 r0, t, 5; bra E;\n"
	 "B: sub.u32 r0, 9, t; E: add.u32 r0, r0, 1;",
		100},
	/* Locks of lanes and of warps: a spinning one lets the others go on. */
	{"L: atom.global.cas.b32 r1, [m], 0, 1; setp.ne.u32 p0, r1, 0; @p0 bra L; ld.volatile.global.u32 r2, [m+4]; add.u32 r2, r2, 1;\n"
	 "st.volatile.global.u32 [m+4], r2; membar.gl; atom.global.exch.b32 r1, [m], 0; bar.sync 0; ld.global.u32 r0, [m+4];",
		96},
	{"SPIN: ld.global.u32 r1, [m]; setp.ne.u32 p1, r1, t; @p1 bra SPIN; add.u32 r2, t, 1; st.global.u32 [m], r2; mov.u32 r0, 1;",
		32},
	/* Memory of every width, vectors, strides, one address for all, by lane backwards. */
	{"mul.wide.u32 x0, t, 4; add.u64 x1, m, x0; mul.lo.u32 r2, t, 2654435761; st.global.u32 [x1], r2; ld.global.s8 r3, [x1+1]; ld.global.u16 h0, [x1+2]; cvt.u32.u16 r4, h0;\n"
	 "xor.b32 r0, r3, r4; bar.sync 0; ld.global.u32 r5, [m+12]; add.u32 r0, r0, r5; sub.u32 r6, 63, t; mul.wide.u32 x2, r6, 4; add.u64 x2, m, x2;\n"
	 "ld.global.u32 r7, [x2]; xor.b32 r0, r0, r7; st.global.u8 [x1+3], r0; ld.global.s16 r8, [x1+2]; xor.b32 r0, r0, r8;",
		64},
	{"mul.wide.u32 x0, t, 16; add.u64 x1, m, x0; mul.lo.u32 r2, t, 77; st.global.v4.u32 [x1], {r2, t, r2, t}; ld.global.v2.u32 {r3, r4}, [x1+8]; xor.b32 r0, r3, r4;\n"
	 "ld.global.v4.u32 {r5, _, _, r6}, [x1]; mad.lo.u32 r0, r5, 31, r0; add.u32 r0, r0, r6; st.global.v2.u64 [x1], {x0, x1}; ld.global.v2.u64 {x3, x4}, [x1];\n"
	 "sub.u64 x4, x4, m; cvt.u32.u64 r7, x4; add.u32 r0, r0, r7; setp.lt.u32 p0, t, 9; @p0 ld.global.u32 r0, [x1];",
		64},
	/*
	 * Lanes that part within parts, leave loops one by one, meet a barrier and a warp's
	 * instruction in parts, and wait for each other there.
	 */
	{"mov.u32 r0, 0; and.b32 r1, t, 1; setp.eq.u32 p0, r1, 0; and.b32 r2, t, 6; setp.eq.u32 p1, r2, 2; setp.eq.u32 p2, r2, 4; mov.u32 r3, 5; LOOP: @p0 bra EVEN; add.u32 r0, r0, t;\n"
	 "@p1 bra ODD2; mad.lo.u32 r0, r0, 3, 1; bra ODDS; ODD2: xor.b32 r0, r0, 77; @p2 add.u32 r0, r0, 9; ODDS: shl.b32 r0, r0, 1; bra JOIN; EVEN: sub.u32 r0, r0, t; @p2 bra EVEN2;\n"
	 "mul.lo.u32 r0, r0, 7; bra JOIN; EVEN2: or.b32 r0, r0, 1; mov.u32 r4, r2; MORE: add.u32 r0, r0, r4; sub.u32 r4, r4, 1; setp.ne.u32 p3, r4, 0; @p3 bra MORE;\n"
	 "JOIN: sub.u32 r3, r3, 1; setp.gt.u32 p4, r3, r1; @p4 bra LOOP; @p0 bra WAIT; bar.warp.sync -1; shfl.sync.bfly.b32 r5, r0, 2, 31, 0xaaaaaaaa; add.u32 r0, r0, r5; bra ALL;\n"
	 "WAIT: mul.lo.u32 r0, r0, 5; bar.warp.sync -1; ALL: mul.wide.u32 x0, t, 4; add.u64 x1, m, x0; @p1 st.global.u32 [x1], r0; bar.sync 0; ld.global.u32 r6, [x1]; add.u32 r0, r0, r6;",
		96},
	/*
	 * A lane that spins for ever until another one has run, which the same branch sent
	 * elsewhere.
	 */
	{"mov.u32 r0, 0; setp.eq.u32 p0, t, 31; @p0 bra GIVE; SPIN: ld.global.u32 r1, [m+8]; add.u32 r0, r0, 1; setp.eq.u32 p1, r1, 0; @p1 bra SPIN; mov.u32 r0, r1; bra OUT;\n"
	 "GIVE: mov.u32 r2, 4711; st.global.u32 [m+8], r2; mov.u32 r0, 12; OUT: add.u32 r0, r0, 1;",
		32},
	{"mov.u32 r0, 0; setp.lt.u32 p0, t, 3; @p0 bra GIVE; L: add.u32 r0, r0, 1; ld.global.u32 r1, [m+8]; setp.ne.u32 p1, r1, 3; @p1 bra L; mov.u32 r0, 5; bra OUT;\n"
	 "GIVE: red.global.add.u32 [m+8], 1; W: ld.volatile.global.u32 r1, [m+8]; setp.ne.u32 p1, r1, 3; @p1 bra W; mov.u32 r0, 6; OUT: add.u32 r0, r0, t;",
		64},
	/*
	 * Addresses over several pages and none in order, one that faults among them, shared memory
	 * behind its end.
	 */
	{"mul.lo.u32 r1, t, 2654435761; and.b32 r1, r1, 16380; cvt.u64.u32 x0, r1; add.u64 x0, m, x0; st.global.u32 [x0], t; ld.global.u32 r2, [x0]; and.b32 r3, r1, 16376; cvt.u64.u32 x1, r3;\n"
	 "add.u64 x1, m, x1; ld.global.v2.u32 {r4, r5}, [x1]; xor.b32 r0, r2, r4; add.u32 r0, r0, r5; setp.eq.u32 p0, t, 40; @p0 ld.global.u32 r6, [x0+2]; add.u32 r0, r0, r6;",
		64},
	{"setp.eq.u32 p0, t, 17; mov.b64 x0, m; @p0 mov.b64 x0, 4096; ld.global.u32 r0, [x0];", 32},
	/* An answer that becomes the address: side by side before, not behind. */
	{".shared .align 8 .b8 cells[1024]; mov.u32 r20, cells; shl.b32 r1, t, 2; add.u32 r1, r1, r20; mul.lo.u32 r2, t, 12; and.b32 r2, r2, 124; add.u32 r2, r2, r20; st.shared.u32 [r1], r2;\n"
	 "bar.sync 0; ld.shared.u32 r3, [r1]; atom.shared.add.u32 r1, [r1], 0; ld.shared.u32 r4, [r1]; st.shared.u32 [r1+512], t; ld.shared.u32 r5, [r1+512]; xor.b32 r0, r3, r4; mad.lo.u32 r0, r5, 3, r0;",
		32},
	/*
	 * Atomics: of every operation and width, one address for all and apart, in both memories,
	 * for some lanes, answers into their own operands.
	 */
	{"mul.lo.u32 r1, t, 2654435761; and.b32 r2, r1, 124; cvt.u64.u32 x0, r2; add.u64 x0, m, x0; mul.wide.u32 x1, t, 8; add.u64 x1, m, x1; mov.u32 r3, t; atom.global.add.u32 r3, [m], r3;\n"
	 "atom.global.add.u32 r4, [m+4], 3; atom.global.add.u32 r5, [x0+512], r1; red.global.max.s32 [x0+640], r1; red.global.min.u32 [m+768], r1; atom.global.xor.b32 r6, [x1+1024], r1;\n"
	 "atom.global.inc.u32 r7, [m+772], 40; atom.global.exch.b32 r8, [x1+1024], t; atom.global.cas.b32 r9, [x1+1024], t, r1; setp.lt.u32 p0, t, 11; @p0 atom.global.add.u32 r9, [m+776], t;\n"
	 "@!p0 red.global.or.b32 [m+780], r2; cvt.u64.u32 x2, r1; atom.global.add.u64 x3, [m+784], x2; atom.global.max.u64 x4, [x1+2048], x2; mov.b32 f0, r1; red.global.add.f32 [x1+3072], f0;\n"
	 "atom.global.dec.u32 r10, [m+792], 25; bar.sync 0; ld.global.u32 r11, [x0+512]; ld.global.u32 r12, [x0+640]; ld.global.u32 r13, [m+768]; ld.global.u32 r14, [m+780];\n"
	 "ld.global.u64 x5, [m+784]; ld.global.u32 r15, [x1+3072]; xor.b32 r0, r3, r4; xor.b32 r0, r0, r5; mad.lo.u32 r0, r6, 3, r0; mad.lo.u32 r0, r7, 5, r0; mad.lo.u32 r0, r8, 7, r0;\n"
	 "mad.lo.u32 r0, r9, 11, r0; mad.lo.u32 r0, r10, 13, r0; mad.lo.u32 r0, r11, 17, r0; mad.lo.u32 r0, r12, 19, r0; mad.lo.u32 r0, r13, 23, r0; mad.lo.u32 r0, r14, 29, r0;\n"
	 "mad.lo.u32 r0, r15, 31, r0; add.u64 x3, x3, x4; add.u64 x3, x3, x5; cvt.u32.u64 r16, x3; add.u32 r0, r0, r16;",
		32},
	{".shared .align 8 .b8 cells[1024]; mov.u32 r20, cells; mul.lo.u32 r1, t, 2654435761; shl.b32 r2, t, 3; add.u32 r2, r2, r20; mov.u32 r3, 0; mov.u64 x0, 0; st.shared.u64 [r2], x0;\n"
	 "bar.sync 0; atom.shared.add.u32 r3, [r20], t; atom.shared.and.b32 r4, [r2], r1; red.shared.or.b32 [r2], r1; atom.shared.exch.b32 r5, [r2+4], r1; atom.shared.cas.b32 r6, [r2+4], r1, t;\n"
	 "mov.b32 f0, r1; atom.shared.add.f32 f1, [r2], f0; cvt.u64.u32 x1, r1; atom.shared.min.s64 x2, [r2], x1; mov.b64 x4, 4607182418800017408; atom.shared.add.u64 x3, [r20+8], x4;\n"
	 "red.shared.add.u32 [r20+16], 1; bar.sync 0; ld.shared.u32 r7, [r20+16]; ld.shared.u64 x5, [r2]; mov.b32 r8, f1; xor.b32 r0, r3, r4; xor.b32 r0, r0, r5; mad.lo.u32 r0, r6, 3, r0;\n"
	 "mad.lo.u32 r0, r7, 5, r0; mad.lo.u32 r0, r8, 7, r0; xor.b64 x2, x2, x3; xor.b64 x2, x2, x5; cvt.u32.u64 r9, x2; add.u32 r0, r0, r9; mov.u32 r10, 4; setp.eq.u32 p0, t, 20;\n"
	 "@p0 mov.u32 r10, 99996; atom.shared.add.u32 r11, [r10], 1;",
		32},
	/* Warps' own instructions between what is computed. */
	{"shfl.sync.bfly.b32 r1, t, 16, 31, -1; add.u32 r2, r1, t; shfl.sync.down.b32 r3|p0, r2, 3, 31, -1; @p0 add.u32 r3, r3, 100; vote.sync.ballot.b32 r4, p0, -1;\n"
	 "redux.sync.add.s32 r5, r3, -1; xor.b32 r0, r4, r5; setp.gt.u32 p1, t, 40; @p1 add.cc.u32 r6, r0, r0; addc.u32 r7, r0, 0; xor.b32 r0, r7, r3;",
		64},
	/*
	 * The same for whole warps and for one with lanes missing, in place, by constants and by
	 * registers, for half of the lanes.
	 */
	{"mul.lo.u32 r1, t, 2654435761; shr.u32 r2, r1, 29; shfl.sync.bfly.b32 r1, r1, 5, 31, -1; shfl.sync.up.b32 r3|p0, r1, 3, 0x1800, -1; @p0 xor.b32 r1, r1, r3;\n"
	 "shfl.sync.idx.b32 r4|p1, r1, 9, 0x181f, -1; @!p1 add.u32 r4, r4, 1; shfl.sync.idx.b32 r5, r1, r2, 31, -1; shfl.sync.down.b32 r2|p2, r5, r2, r4, -1;\n"
	 "match.any.sync.b32 r6, r2, -1; match.all.sync.b32 r7|p3, t, -1; @p3 add.u32 r6, r6, 9; cvt.u64.u32 x1, r2; match.any.sync.b64 r8, x1, -1; vote.sync.all.pred p4, p0, -1;\n"
	 "vote.sync.any.pred p5, !p1, -1; vote.sync.uni.pred p6, p2, -1; selp.b32 r9, 1, 2, p4; @p5 add.u32 r9, r9, 4; @p6 add.u32 r9, r9, 8; redux.sync.min.s32 r10, r5, -1;\n"
	 "redux.sync.max.u32 r11, r5, -1; redux.sync.or.b32 r12, r9, -1; redux.sync.xor.b32 r13, r6, -1; elect.sync r14|p7, -1; @p7 add.u32 r9, r9, 16; activemask.b32 r15; bar.warp.sync -1;\n"
	 "xor.b32 r0, r3, r4; xor.b32 r0, r0, r6; mad.lo.u32 r0, r7, 3, r0; mad.lo.u32 r0, r8, 5, r0; mad.lo.u32 r0, r9, 7, r0; mad.lo.u32 r0, r10, 11, r0; mad.lo.u32 r0, r11, 13, r0;\n"
	 "mad.lo.u32 r0, r12, 17, r0; mad.lo.u32 r0, r13, 19, r0; mad.lo.u32 r0, r14, 23, r0; mad.lo.u32 r0, r15, 29, r0; and.b32 r16, t, 1; setp.eq.u32 p0, r16, 0; @p0 bra E;\n"
	 "activemask.b32 r17; shfl.sync.bfly.b32 r18, r0, 2, 31, r17; add.u32 r0, r0, r18; redux.sync.add.u32 r19, r0, 0xaaaaaaaa; add.u32 r0, r0, r19; E:",
		96},
	{"mov.u32 r1, t; shfl.sync.bfly.b32 r2|p0, r1, 16, 31, -1; vote.sync.ballot.b32 r3, p0, -1; redux.sync.add.u32 r4, r1, -1; match.any.sync.b32 r5, r2, -1; elect.sync r6|p1, -1;\n"
	 "activemask.b32 r7; @p1 add.u32 r2, r2, 7; xor.b32 r0, r2, r3; mad.lo.u32 r0, r4, 3, r0; mad.lo.u32 r0, r5, 5, r0; mad.lo.u32 r0, r6, 7, r0; mad.lo.u32 r0, r7, 11, r0;",
		45},
};

static uint8_t *answers;
static size_t n_answers;

static void note(const void *data, size_t size)
{
	memcpy(answers + n_answers, data, size);
	n_answers += size;
}

static void collect(void)
{
	add_integers();
	add_comparisons();
	add_floats();
	add_conversions();
	answers = malloc((size_t)n_codes * ROWS * 8 * 2 + (1 << 20));
	char *text = NULL;
	size_t size;
	FILE *print = open_memstream(&text, &size);
	fputs(UNIT_HEAD, print);
	for (unsigned first = 0; first < n_codes; first += A_KERNEL)
		print_kernel(print, first, first + A_KERNEL < n_codes ? first + A_KERNEL : n_codes);
	for (unsigned k = 0; k < COUNT(programs); k++)
		print_program(print, k, programs[k].body);
	fclose(print);
	struct ckt_ptx_module *module = unit_load((const char *const[]){text}, 1, NULL);
	free(text);
	if (!module) {
		fprintf(stderr, "%s\n", unit_log);
		exit(1);
	}
	uint64_t(*rows)[3] = unit_alloc(ROWS * sizeof *rows);
	uint64_t *out = unit_alloc((size_t)n_codes * ROWS * 8);
	fill(rows);
	/* Whole warps, then one with lanes missing. */
	for (unsigned block = ROWS; block; block = block == ROWS ? 45 : 0) {
		memset(out, 0, (size_t)n_codes * ROWS * 8);
		for (unsigned k = 0; k * A_KERNEL < n_codes; k++) {
			char name[16];
			snprintf(name, sizeof name, "k%u", k);
			struct unit_launch launch = {.kernel = name,
				.grid = 1,
				.block = block,
				.args = {(uintptr_t)rows, (uintptr_t)out}};
			if (unit_run(module, &launch))
				fprintf(stderr, "%s\n", unit_message);
		}
		note(out, (size_t)n_codes * ROWS * 8);
	}
	uint32_t *memory = unit_alloc(MEMORY), *got = unit_alloc(128 * 4);
	for (unsigned k = 0; k < COUNT(programs); k++) {
		char name[16];
		snprintf(name, sizeof name, "p%u", k);
		memset(memory, 0, MEMORY);
		memset(got, 0, 128 * 4);
		struct unit_launch launch = {.kernel = name,
			.grid = 1,
			.block = programs[k].block,
			.args = {(uintptr_t)got, (uintptr_t)memory}};
		int fault = unit_run(module, &launch);
		note(&fault, sizeof fault);
		note(got, 128 * 4);
		/*
		 * An address differs from run to run; which lane, which line and what it was do
		 * not.
		 */
		char *hex = strstr(unit_message, "0x");
		if (hex && strlen(hex) > 6)
			memset(hex + 2, 'x', strspn(hex + 2, "0123456789abcdef"));
		if (fault)
			note(unit_message, strlen(unit_message) + 1);
	}
	ckt_ptx_module_destroy(module);
}

/* ---- Tests */

static void test_equal(void)
{
	char command[640];
	snprintf(command, sizeof command, "CRICKET_SOFT_COMPILE=0 '%s' reference", self);
	collect();
	uint8_t *want = malloc(n_answers + 1);
	FILE *reference = popen(command, "r");
	size_t n = reference ? fread(want, 1, n_answers + 1, reference) : 0;
	IS(reference ? pclose(reference) : 1, 0);
	IS(n, n_answers);
	IS(n_answers > (size_t)n_codes * ROWS * 16, 1);
	unsigned told = 0;
	for (size_t k = 0; k < n_codes * 2; k++) {
		const uint8_t *mine = answers + k * ROWS * 8, *theirs = want + k * ROWS * 8;
		bool same = !memcmp(mine, theirs, ROWS * 8);
		YES(same);
		for (unsigned r = 0; r < ROWS && !same && told < 20; r++) {
			if (!memcmp(mine + r * 8, theirs + r * 8, 8))
				continue;
			fprintf(stderr, "%s row %u: %llx, interpreted %llx\n",
				codes[k % n_codes].text, r,
				(unsigned long long)((const uint64_t *)mine)[r],
				(unsigned long long)((const uint64_t *)theirs)[r]);
			told++;
			break;
		}
	}
	size_t rest = (size_t)n_codes * ROWS * 16;
	YES(n == n_answers && !memcmp(answers + rest, want + rest, n_answers - rest));
	free(want);
}

/*
 * That it was machine code which answered: a kernel's functions have runners, and its object is
 * kept.
 */
static void test_compiled(void)
{
	struct ckt_ptx_module *module = unit_load(
		(const char *const[]){UNIT_HEAD
			".visible .entry k(.param .u64 a) { .reg .b64 x; .reg .b32 t; ld.param.u64 x, [a];\n"
			"mov.u32 t, %tid.x; add.u32 t, t, 5; st.global.u32 [x], t; ret; }\n"},
		1, NULL);
	uint32_t *out = unit_alloc(4096);
	CU_ASSERT_PTR_NOT_NULL_FATAL(module);
	IS(unit_run(module,
		   &(struct unit_launch){
			   .kernel = "k", .grid = 1, .block = 1, .args = {(uintptr_t)out}}),
		0);
	IS(out[0], 5);
	const struct ckt_ptx_function *f = ckt_ptx_module_find_function(module, "k");
	ptx_runner *const *runners = ckt_ptx_compile_runners(f->prepared);
	CU_ASSERT_PTR_NOT_NULL_FATAL(runners);
	YES(runners[f->index] != NULL);
	char path[256], key[CKT_PTX_KEY];
	IS(ckt_ptx_cache_folder(path, sizeof path), 0);
	HAS(path, folder);
	ckt_ptx_cache_key("", "", key);
	NO(ckt_ptx_cache_find(path, key, path, sizeof path));
	ckt_ptx_module_destroy(module);
}

/* With a compiler that fails, and without one. */
static void test_no_compiler(void)
{
	char command[1024], fake[128], line[64] = "";
	static const char *const paths[] = {"%s/bin:/usr/bin:/bin", "/nowhere"};
	snprintf(fake, sizeof fake, "%s/bin", folder);
	IS(mkdir(fake, 0700), 0);
	snprintf(fake, sizeof fake, "%s/bin/cc", folder);
	FILE *file = fopen(fake, "w");
	fprintf(file,
		"#!/bin/sh\necho ran >> %s/ran\nfind %s/cricket -name 'cricket-kernel-*' >> %s/named\nexit 1\n",
		folder, folder, folder);
	fclose(file);
	IS(chmod(fake, 0700), 0);
	for (size_t k = 0; k < COUNT(paths); k++) {
		char path[128];
		snprintf(path, sizeof path, paths[k], folder);
		snprintf(command, sizeof command, "CRICKET_SOFT_COMPILE=1 PATH=%s '%s' simple",
			path, self);
		FILE *ran = popen(command, "r");
		IS(ran && fgets(line, sizeof line, ran), 1);
		TEXT(line, "0 6\n");
		IS(ran ? pclose(ran) : 1, 0);
	}
	snprintf(fake, sizeof fake, "%s/ran", folder);
	IS(access(fake, F_OK), 0);
	/* While the compiler works there is nothing that a process which is killed would leave. */
	struct stat st;
	snprintf(fake, sizeof fake, "%s/named", folder);
	IS(stat(fake, &st), 0);
	IS(st.st_size, 0);
}

static int simple(void)
{
	struct ckt_ptx_module *module = unit_load(
		(const char *const[]){UNIT_HEAD
			".visible .entry k(.param .u64 a) { .reg .b64 x; .reg .b32 r; ld.param.u64 x, [a];\n"
			"mov.u32 r, 2; mul.lo.u32 r, r, 3; st.global.u32 [x], r; ret; }\n"},
		1, NULL);
	uint32_t *out = unit_alloc(4096);
	int fault = unit_run(module,
		&(struct unit_launch){
			.kernel = "k", .grid = 1, .block = 1, .args = {(uintptr_t)out}});
	const struct ckt_ptx_function *f = ckt_ptx_module_find_function(module, "k");
	ptx_runner *const *runners = f ? ckt_ptx_compile_runners(f->prepared) : NULL;
	printf("%d %u%s\n", fault, out[0], runners && runners[f->index] ? " as machine code" : "");
	ckt_ptx_module_destroy(module);
	return 0;
}

/*
 * Without the variable: launches until the kernel has become machine code behind their back, then
 * one more.
 */
static int hot(void)
{
	struct ckt_ptx_module *module = unit_load(
		(const char *const[]){UNIT_HEAD
			".visible .entry k(.param .u64 a) { .reg .b64 x; .reg .b32 r, n; .reg .pred p;\n"
			"ld.param.u64 x, [a]; mov.u32 r, 0; mov.u32 n, 100000; L: add.u32 r, r, n; sub.u32 n, n, 1; setp.ne.u32 p, n, 0; @p bra L; st.global.u32 [x], r; ret; }\n"},
		1, NULL);
	uint32_t *out = unit_alloc(4096);
	const struct ckt_ptx_function *f = ckt_ptx_module_find_function(module, "k");
	unsigned wrong = 0, waited = 0;
	for (unsigned k = 0; k < 16; k++) {
		wrong += unit_run(module,
				 &(struct unit_launch){.kernel = "k",
					 .grid = 1,
					 .block = 256,
					 .args = {(uintptr_t)out}}) ||
			out[0] != 705082704;
		if (!k)
			wrong += ckt_ptx_compile_runners(f->prepared) !=
				NULL; /* not for one launch */
	}
	while (!ckt_ptx_compile_runners(f->prepared) && waited++ < 12000)
		usleep(10000);
	out[0] = 0;
	wrong += unit_run(module,
			 &(struct unit_launch){.kernel = "k",
				 .grid = 1,
				 .block = 256,
				 .args = {(uintptr_t)out}}) ||
		out[0] != 705082704;
	printf("%u %d\n", wrong, ckt_ptx_compile_runners(f->prepared) != NULL);
	ckt_ptx_module_destroy(module);
	return 0;
}

/* A server's workers have no PATH: the compiler's own programs are found all the same. */
static void test_no_path(void)
{
	char command[700], line[64] = "";
	snprintf(command, sizeof command,
		"/usr/bin/env -u PATH CRICKET_SOFT_COMPILE=1 XDG_CACHE_HOME=%s/cold '%s' simple",
		folder, self);
	FILE *ran = popen(command, "r");
	IS(ran && fgets(line, sizeof line, ran), 1);
	TEXT(line, "0 6 as machine code\n");
	IS(ran ? pclose(ran) : 1, 0);
}

static void test_hot(void)
{
	char command[640], line[64] = "";
	snprintf(command, sizeof command, "env -u CRICKET_SOFT_COMPILE '%s' hot", self);
	FILE *ran = popen(command, "r");
	IS(ran && fgets(line, sizeof line, ran), 1);
	TEXT(line, "0 1\n");
	IS(ran ? pclose(ran) : 1, 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

int unit_setup(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "simple"))
		exit(simple());
	if (argc > 1 && !strcmp(argv[1], "hot"))
		exit(hot());
	if (argc > 1 && !strcmp(argv[1], "reference")) {
		collect();
		fwrite(answers, 1, n_answers, stdout);
		fflush(stdout);
		exit(0);
	}
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	strcpy(folder, "/tmp/ptx-compile-XXXXXX");
	if (n < 0 || !mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1) ||
		setenv("CRICKET_SOFT_COMPILE", "1", 1))
		return 1;
	return 0;
}

void unit_teardown(int status)
{
	(void)status;
	if (*folder)
		nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

UNIT_SUITE(compile, {"equal", test_equal}, {"compiled", test_compiled},
	{"no compiler", test_no_compiler}, {"no PATH", test_no_path}, {"hot", test_hot})
