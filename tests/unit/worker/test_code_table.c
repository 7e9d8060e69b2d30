/* server/worker/libs/code_table.c: the tables of libraries' code. */
#include "server/worker/libs/code_table.h"

#include "tests/unit/worker/inside.h"

#define LIBRARY(n) ((CUlibrary)(uintptr_t)(0x1000 + 16 * (n)))
#define KERNEL(n) ((CUkernel)(uintptr_t)(0x2000 + 16 * (n)))
#define CONTEXT(n) ((CUcontext)(uintptr_t)(0x9000 + 16 * (n)))

static void test_codes(void)
{
	static const uint8_t text[] = "some code", other[] = "more code";
	struct ckt_code_place place = {.data = text, .size = sizeof text, .file = "libx.so.1", .offset = 64};
	uint32_t code, again, next;
	YES(ckt_code_add(&place, true, false, &code));
	YES(ckt_code_add(&place, true, false, &again));
	IS(again, code);
	place.offset = 128;
	YES(ckt_code_add(&place, true, false, &next));
	YES(next != code);
	/* In no file: by its contents, wherever it lies. */
	place = (struct ckt_code_place){.data = text, .size = sizeof text, .offset = 5};
	YES(ckt_code_add(&place, false, false, &code));
	place.offset = 77;
	YES(ckt_code_add(&place, false, false, &again));
	IS(again, code);
	place.data = other;
	YES(ckt_code_add(&place, false, false, &next));
	YES(next != code);
	CU_ASSERT_PTR_NOT_NULL(ckt_code_entry(code)->bytes);
	IS(memcmp(ckt_code_entry(code)->bytes, text, sizeof text), 0);
	/* With options of the library's own nothing is handed over. */
	ckt_code_entry(code)->ahead = LIBRARY(9);
	YES(ckt_code_take_ahead(code) == LIBRARY(9));
	CU_ASSERT_PTR_NULL(ckt_code_take_ahead(code));
	ckt_code_entry(next)->ahead = LIBRARY(9);
	ckt_code_entry(next)->own = true;
	CU_ASSERT_PTR_NULL(ckt_code_take_ahead(next));
	ckt_code_entry(code)->ahead = ckt_code_entry(next)->ahead = NULL;
}

static void test_touched(void)
{
	enum { MANY = 3000 };
	uint32_t code, same;
	bool used;
	struct ckt_code_place place = {.data = (const uint8_t *)"x", .size = 2, .file = "liby.so.1"};
	YES(ckt_code_add(&place, true, false, &code));
	YES(ckt_code_library_add(LIBRARY(1), code));
	YES(ckt_code_library_add(LIBRARY(2), code));
	for (uintptr_t i = 0; i < MANY; i++) {
		NO(ckt_code_touched(CONTEXT(i % 2), KERNEL(i)));
		ckt_code_touch(CONTEXT(i % 2), KERNEL(i), LIBRARY(1 + i % 3 / 2));
		ckt_code_kernel_add(KERNEL(i), LIBRARY(1 + i % 3 / 2), "kernel");
	}
	for (uintptr_t i = 0; i < MANY; i++) {
		YES(ckt_code_touched(CONTEXT(i % 2), KERNEL(i)));
		NO(ckt_code_touched(CONTEXT(1 - i % 2), KERNEL(i)));
		CU_ASSERT_PTR_NOT_NULL(ckt_code_kernel_find(KERNEL(i)));
	}
	/* What goes with a library, and with a context. */
	YES(ckt_code_library_drop(LIBRARY(2), &same, &used));
	IS(same, code);
	YES(used);
	NO(ckt_code_library_drop(LIBRARY(2), &same, &used));
	ckt_code_forget_context(CONTEXT(0));
	for (uintptr_t i = 0; i < MANY; i++) {
		bool stays = i % 3 != 2;
		IS(ckt_code_touched(CONTEXT(i % 2), KERNEL(i)), stays && i % 2 == 1);
		IS(ckt_code_kernel_find(KERNEL(i)) != NULL, stays);
	}
	YES(ckt_code_library_drop(LIBRARY(1), &same, &used));
	/* Kernels of a library that nobody has loaded are nobody's. */
	ckt_code_kernel_add(KERNEL(1), LIBRARY(1), "kernel");
	CU_ASSERT_PTR_NULL(ckt_code_kernel_find(KERNEL(1)));
}

static void test_uses(void)
{
	uint32_t use, next;
	YES(ckt_code_use_add(CKT_CODE_KERNEL, 0, "name", &use));
	YES(ckt_code_use_add(CKT_CODE_VARIABLE, 0, "name", &next));
	IS(next, use + 1);
	IS(ckt_code_use_count(), next + 1);
	TEXT(ckt_code_use_at(use)->symbol, "name");
	IS(ckt_code_use_at(next)->kind, CKT_CODE_VARIABLE);
}

UNIT_SUITE(libs_code_table, {"codes", test_codes}, {"touched", test_touched}, {"uses", test_uses})
