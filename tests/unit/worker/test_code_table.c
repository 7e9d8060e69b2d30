/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/libs/code/code_table.c: the tables of libraries' code. */
#include "server/worker/libs/code/code_table.h"

#include "server/worker/session/host_budget.h"
#include "tests/unit/worker/inside.h"

#define LIBRARY(n) ((CUlibrary)(uintptr_t)(0x1000 + 16 * (n)))
#define KERNEL(n) ((CUkernel)(uintptr_t)(0x2000 + 16 * (n)))
#define CONTEXT(n) ((CUcontext)(uintptr_t)(0x9000 + 16 * (n)))

static void test_codes(void)
{
	static const uint8_t text[] = "some code", other[] = "more code";
	struct ckt_code_place place = {
		.data = text, .size = sizeof text, .file = "libx.so.1", .offset = 64};
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
	struct ckt_code_place place = {
		.data = (const uint8_t *)"x", .size = 2, .file = "liby.so.1"};
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
	uint32_t again, other;
	YES(ckt_code_use_add(CKT_CODE_KERNEL, 0, "name", &again));
	IS(again, use);
	YES(ckt_code_use_add(CKT_CODE_KERNEL, 0, "nam", &other));
	YES(other != use);
	YES(ckt_code_use_add(CKT_CODE_KERNEL, 1, "name", &other));
	YES(other != use);
}

/*
 * A plan that is made and ended again and again: its code is loaded, used and unloaded each time.
 */
static void cycle(unsigned n)
{
	static const uint8_t text[] = "code of a plan";
	struct ckt_code_place place = {.data = text, .size = sizeof text};
	uint32_t index, use;
	bool used;
	MUST(ckt_code_add(&place, false, false, &index), true);
	MUST(ckt_code_library_add(LIBRARY(100 + n), index), true);
	ckt_code_kernel_add(KERNEL(9000 + n), LIBRARY(100 + n), "transform");
	ckt_code_touch(CONTEXT(3), KERNEL(9000 + n), LIBRARY(100 + n));
	MUST(ckt_code_use_add(CKT_CODE_KERNEL, index, "transform", &use), true);
	MUST(ckt_code_library_drop(LIBRARY(100 + n), &index, &used), true);
	YES(used);
	MUST(ckt_code_use_add(CKT_CODE_UNLOAD, index, "", &use), true);
}

static void test_cycles(void)
{
	enum { CYCLES = 3000 };
	cycle(0);
	uint32_t uses = ckt_code_use_count(), codes = ckt_code_count();
	uint64_t charged = ckt_budget_used();
	for (unsigned i = 1; i < CYCLES; i++)
		cycle(i);
	IS(ckt_code_use_count(), uses);
	IS(ckt_code_count(), codes);
	IS(ckt_budget_used(), charged);
}

/* All of a library's code, and how much of the tables was looked at for it. */
static uint64_t load_many(unsigned n)
{
	uint64_t before = ckt_code_looks();
	uint32_t index, same;
	bool used;
	CUlibrary found;
	for (unsigned i = 0; i < n; i++) {
		struct ckt_code_place place = {.data = (const uint8_t *)"x",
			.size = 2,
			.file = "libmany.so.1",
			.offset = 64 * i};
		MUST(ckt_code_add(&place, true, false, &index), true);
		MUST(ckt_code_library_add(LIBRARY(20000 + i), index), true);
		ckt_code_kernel_add(KERNEL(20000 + i), LIBRARY(20000 + i), "kernel");
		MUST(ckt_code_kernel_find(KERNEL(20000 + i)) != NULL, true);
		MUST(ckt_code_library_of(index, &found), true);
		YES(found == LIBRARY(20000 + i));
	}
	for (unsigned i = n; i-- > 0;) {
		MUST(ckt_code_library_drop(LIBRARY(20000 + i), &same, &used), true);
		NO(used);
		CU_ASSERT_PTR_NULL(ckt_code_kernel_find(KERNEL(20000 + i)));
	}
	return ckt_code_looks() - before;
}

static void test_many(void)
{
	uint64_t few = load_many(500), many = load_many(16000);
	YES(few > 0);
	YES(many < 3 * 32 * few);
}

/*
 * What the tables hold is paid for; without the money a library's code is not noted, and the
 * library goes on.
 */
static void test_account(void)
{
	enum { SIZE = 100000 };
	static const uint8_t text[SIZE] = "made at run time";
	struct ckt_code_place place = {.data = text, .size = SIZE};
	uint32_t index, use;
	uint64_t before = ckt_budget_used();
	ckt_budget_init(before + 16);
	NO(ckt_code_add(&place, false, false, &index));
	NO(ckt_code_use_add(CKT_CODE_KERNEL, 0,
		"a name that nobody used before and that is too long for what is left of the account, as it happens here",
		&use));
	NO(ckt_code_library_add(LIBRARY(50000), 0));
	IS(ckt_budget_used(), before);
	ckt_budget_init(before + 1000);
	/* The entry, and not the bytes. */
	YES(ckt_code_add(&place, false, false, &index));
	CU_ASSERT_PTR_NULL(ckt_code_entry(index)->bytes);
	ckt_budget_init(0);
	YES(ckt_code_add(&place, false, false, &index));
	CU_ASSERT_PTR_NOT_NULL(ckt_code_entry(index)->bytes);
	YES(ckt_budget_used() >= before + SIZE + sizeof(struct ckt_code));
	/*
	 * They go over to the session's blobs, which pay for them, or stay nobody's where these
	 * have no money.
	 */
	MUST(ckt_code_use_add(CKT_CODE_KERNEL, index, "kernel", &use), true);
	ckt_budget_init(ckt_budget_used() - SIZE);
	ckt_code_keep(&ckt_worker, use);
	NO(ckt_code_entry(index)->kept);
	ckt_budget_init(0);
	YES(ckt_budget_used() < before + SIZE);
	YES(ckt_code_add(&place, false, false, &index));
	ckt_code_keep(&ckt_worker, use);
	YES(ckt_code_entry(index)->kept);
	YES(ckt_budget_used() >= before + SIZE);
}

UNIT_SUITE(libs_code_table, {"codes", test_codes}, {"touched", test_touched}, {"uses", test_uses},
	{"cycles", test_cycles}, {"many", test_many}, {"account", test_account})
