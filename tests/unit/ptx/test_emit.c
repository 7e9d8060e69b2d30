/* softgpu/ptx/emit.c: the C text of kernels: what has a form is written out, what has none is called, dead registers are not kept. */
#include "harness.h"
#include "softgpu/ptx/compile.h"
#include "softgpu/ptx/form.h"

static char *emit(const char *text, bool whole)
{
	struct ckt_ptx_module *module = unit_load((const char *const[]){text}, 1, NULL);
	const struct ptx_prepared *prepared;
	if (!module) {
		fprintf(stderr, "%s\n", unit_log);
		return NULL;
	}
	const struct ckt_ptx_function *f = ckt_ptx_module_function(module, 0);
	char *c = ckt_ptx_prepare(f, &prepared) ? NULL : ckt_ptx_emit_kernel(f, whole ? NULL : prepared);
	ckt_ptx_module_destroy(module);
	return c;
}

static unsigned times(const char *text, const char *part)
{
	unsigned n = 0;
	for (const char *at = text; at && (at = strstr(at, part)); at += strlen(part))
		n++;
	return n;
}

#define KERNEL(body) UNIT_HEAD ".visible .entry k(.param .u64 a) { .reg .b64 x; .reg .b32 r<9>; .reg .pred p; .reg .f32 f<4>;\n" body "\nret; }\n"

static void test_stretch(void)
{
	/* r1 and r2 live in the loop over the lanes only: nothing reads them behind it, and it is the store that wants r3. */
	char *c = emit(KERNEL("ld.param.u64 x, [a]; mov.u32 r1, %tid.x; add.u32 r2, r1, 7; mul.lo.u32 r3, r2, r1; st.global.u32 [x], r3;"), false);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	const char *behind = strstr(c, "INSIDE void stretch_0_0(");
	CU_ASSERT_PTR_NOT_NULL_FATAL(behind);
	HAS(behind, "0x7u");
	IS(times(behind, "[l] = in ? r"), 2);	/* x, r3 */
	IS(times(behind, "r = CALL("), 3);	/* where the store does not go well, ret, and the one behind every body */
	HAS(c, "return store_4(w, A, 8, imm, m, 0, 1, v)");
	HAS(behind, "int ckt_kernel_0(");
	NO(strstr(behind, "i->"));
	free(c);
}

static void test_branches(void)
{
	char *c = emit(KERNEL("mov.u32 r1, %tid.x; L: sub.u32 r1, r1, 1; setp.ne.u32 p, r1, 0; @p bra L; bar.sync 0;"), false);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	const char *behind = strstr(c, "int ckt_kernel_0(");
	CU_ASSERT_PTR_NOT_NULL_FATAL(behind);
	HAS(behind, "case 1: goto at_1;");	/* the loop, */
	HAS(behind, "if (m == mask) goto at_1;");
	HAS(behind, "case 4: goto at_4;");	/* behind it, the barrier itself, */
	HAS(behind, "case 5: goto at_5;");	/* behind that */
	IS(times(behind, "GROUP_STORE("), 2);
	IS(times(behind, "r = CALL("), 3);	/* the barrier, both ret */
	free(c);
}

static void test_whole(void)
{
	static const char text[] = UNIT_HEAD ".func f() { ret; } .visible .entry k() { call f; ret; } .visible .entry other() { ret; }\n";
	char *c = emit(text, false), *all = emit(text, true);
	IS(times(c, "int ckt_kernel_"), 2);
	IS(times(all, "int ckt_kernel_"), 3);
	free(c);
	free(all);
}

static void test_long(void)
{
	enum { N = 10001 };
	char *text = malloc(N * 32 + 1024), *at = text + sprintf(text, "%s", UNIT_HEAD ".visible .entry k() { .reg .b32 r1;\n");
	for (unsigned k = 0; k < N; k++)
		at += sprintf(at, "add.u32 r1, r1, 1;\n");
	strcpy(at, "ret; }\n");
	CU_ASSERT_PTR_NULL(emit(text, false));
	free(text);
}

static int handler_without_form(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	(void)w;
	(void)i;
	return (int)m;
}

static void test_forms(void)
{
	CU_ASSERT_PTR_NULL(ckt_ptx_form(handler_without_form));
	const struct ptx_form *form = ckt_ptx_form(ckt_ptx_exec_sreg);
	CU_ASSERT_PTR_NOT_NULL_FATAL(form);
	IS(form->kind, FORM_SREG);
	TEXT(form->name, "ckt_ptx_exec_sreg");
}

UNIT_SUITE(emit, {"stretch", test_stretch}, {"branches", test_branches}, {"whole", test_whole}, {"long", test_long}, {"forms", test_forms})
