/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/state.c: the log of what libraries have made keeps what a restore needs, and
 * nothing else.
 */
#include <stdlib.h>

#include "server/worker/objects/context.h"
#include "server/worker/session/host_budget.h"
#include "tests/unit/worker/toy_library.h"

#define OBJECT(n) ID(LIB_OBJECT, 100 + (n))

/* The kinds of the log's steps, in its order, of one object: "css" created and set twice. */
static const char *steps_of(uint64_t id)
{
	static char text[64];
	size_t n = 0;
	uint64_t number = 0;
	for (const struct ckt_lib_step *s = ckt_worker_lib_log(); s && n + 1 < sizeof text;
		s = s->next) {
		YES(s->number > number);
		number = s->number;
		if (s->id == id)
			text[n++] = "?csC"[s->kind];
	}
	text[n] = 0;
	return text;
}

static void test_recipe(void)
{
	toy_begin();
	uint64_t a = OBJECT(1), b = OBJECT(2), used = ckt_budget_used();
	size_t before = ckt_worker_lib_log_count();
	MUST(toy_create(a, 5), CUDA_SUCCESS);
	MUST(toy_create(b, 6), CUDA_SUCCESS);
	IS(toy_set(a, 0, 1), CUDA_SUCCESS);
	IS(toy_set(a, 1, 2), CUDA_SUCCESS);
	IS(toy_set(b, 0, 3), CUDA_SUCCESS);
	TEXT(steps_of(a), "css");
	TEXT(steps_of(b), "cs");
	YES(ckt_budget_used() > used);
	/* A thousand settings of one key are one step, the last. */
	for (uint32_t i = 0; i < 1000; i++)
		IS(toy_set(a, 0, i), CUDA_SUCCESS);
	TEXT(steps_of(a), "css");
	IS(ckt_worker_lib_log_count(), before + 5);
	const struct ckt_lib_step *last = ckt_worker_lib_log();
	while (last->next)
		last = last->next;
	IS(last->id, a);
	IS(last->args_bytes, 16);
	IS(last->args[15], 999 & 255);
	/* What fails is not remembered. */
	IS(toy_set(a, 7, 1), CUDA_ERROR_INVALID_HANDLE);
	IS(toy_set(OBJECT(9), 0, 1), CUDA_ERROR_INVALID_HANDLE);
	TEXT(steps_of(a), "css");
	/* Calls that neither create nor set are not steps. */
	uint64_t memory = inside_memory(64, 0);
	IS(toy_write(a, memory), CUDA_SUCCESS);
	ckt_driver.cuCtxSynchronize();
	IS(inside_word(memory), 5 + 999 + 2);
	TEXT(steps_of(a), "css");
	IS(toy_destroy(b), CUDA_SUCCESS);
	TEXT(steps_of(b), "");
	IS(toy_destroy(a), CUDA_SUCCESS);
	/*
	 * The first of a library in a context stays as history: this one, or that of another suite.
	 */
	unsigned first = 0;
	for (const struct ckt_lib_step *s = ckt_worker_lib_log(); s; s = s->next)
		first += s->pinned && s->context == ckt_handle_primary(0) && s->lib == TOY_LIB &&
			ckt_worker_lib_step_life(s) == CKT_LIB_PAST;
	IS(first, 1);
	IS(ckt_worker_lib_log_count(), before ? before : 1);
	IS(toy_alive, 0);
	inside_free(memory);
	toy_end();
}

static unsigned journal_entries(void)
{
	unsigned count = 0;
	for (size_t i = 0; i < ckt_worker.checkpoint.journal.count; i++)
		count += ckt_worker.checkpoint.journal.list[i].kind == CKT_JOURNAL_LIBRARY;
	return count;
}

static void test_journal(void)
{
	struct ckt_object *context;
	toy_begin();
	unsigned before = journal_entries();
	IS(before, 1);
	MUST(toy_create(OBJECT(11), 1), CUDA_SUCCESS);
	IS(journal_entries(), before);
	MUST(ckt_context_create(&ckt_worker, ID(CONTEXT, 41), 0, 0, &context), CUDA_SUCCESS);
	MUST(ckt_worker_use_context(&ckt_worker, context->id), CUDA_SUCCESS);
	MUST(toy_create(OBJECT(12), 1), CUDA_SUCCESS);
	MUST(toy_create(OBJECT(13), 1), CUDA_SUCCESS);
	IS(journal_entries(), before + 1);
	const struct ckt_journal_entry *entry =
		&ckt_worker.checkpoint.journal.list[ckt_worker.checkpoint.journal.count - 1];
	IS(entry->context, context->id);
	IS(entry->flags, TOY_LIB);
	/* A context takes its objects along. */
	IS(ckt_context_destroy(&ckt_worker, context), CUDA_SUCCESS);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	TEXT(steps_of(OBJECT(12)), "c");
	TEXT(steps_of(OBJECT(13)), "");
	IS(toy_alive, 1);
	IS(toy_destroy(OBJECT(11)), CUDA_SUCCESS);
	toy_end();
}

/* Creating and ending for ever leaves the log, the journal and the account as they were. */
static void test_cycles(void)
{
	enum { CYCLES = 5000 };
	toy_begin();
	uint64_t a = OBJECT(61);
	MUST(toy_create(a, 1), CUDA_SUCCESS);
	IS(toy_destroy(a), CUDA_SUCCESS);
	size_t steps = ckt_worker_lib_log_count(), journal = ckt_worker.checkpoint.journal.count;
	uint64_t used = ckt_budget_used();
	for (unsigned i = 0; i < CYCLES; i++) {
		MUST(toy_create(a + i % 7, i), CUDA_SUCCESS);
		MUST(toy_set(a + i % 7, i & 3, i), CUDA_SUCCESS);
		MUST(toy_make(a + i % 7), CUDA_SUCCESS);
		MUST(toy_destroy(a + i % 7), CUDA_SUCCESS);
	}
	IS(ckt_worker_lib_log_count(), steps);
	IS(ckt_worker.checkpoint.journal.count, journal);
	IS(ckt_budget_used(), used);
	toy_end();
}

/* One object in a new context, with which it goes. */
static void cycle_context(unsigned n)
{
	struct ckt_object *context;
	MUST(ckt_context_create(&ckt_worker, ID(CONTEXT, 50 + n % 5), 0, 0, &context),
		CUDA_SUCCESS);
	MUST(ckt_worker_use_context(&ckt_worker, context->id), CUDA_SUCCESS);
	MUST(toy_create(OBJECT(70), n), CUDA_SUCCESS);
	MUST(ckt_context_destroy(&ckt_worker, context), CUDA_SUCCESS);
	MUST(ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0)), CUDA_SUCCESS);
}

/*
 * The history of contexts ends where the journal does: from then on nothing is kept of what has
 * gone.
 */
static void test_full_journal(void)
{
	toy_begin();
	size_t before = ckt_worker.checkpoint.journal.count, steps = ckt_worker_lib_log_count();
	cycle_context(0);
	IS(ckt_worker_lib_log_count(), steps + 1);
	for (uint32_t i = 0; ckt_journal_add(&ckt_worker.checkpoint.journal,
		     (struct ckt_journal_entry){.kind = CKT_JOURNAL_DIGEST, .id = i});
		i++)
		;
	size_t full = ckt_worker.checkpoint.journal.count;
	YES(full > 10000);
	for (unsigned i = 0; i < 2000; i++)
		cycle_context(i);
	IS(ckt_worker.checkpoint.journal.count, full);
	IS(ckt_worker_lib_log_count(), steps + 1);
	/* What lives is remembered all the same. */
	MUST(toy_create(OBJECT(71), 1), CUDA_SUCCESS);
	IS(ckt_worker_lib_log_count(), steps + 2);
	IS(toy_destroy(OBJECT(71)), CUDA_SUCCESS);
	IS(toy_alive, 0);
	/*
	 * The entry of the first cycle goes with the made-up ones: its step has no journal to be of
	 * any more.
	 */
	while (ckt_worker.checkpoint.journal.count > before &&
		ckt_worker.checkpoint.journal.list[ckt_worker.checkpoint.journal.count - 1].kind ==
			CKT_JOURNAL_DIGEST)
		ckt_worker.checkpoint.journal.count--;
	toy_end();
}

/* Each object, each setting's place and each captured use is paid for, and paid back. */
static void test_account(void)
{
	enum { MANY = 500 };
	toy_begin();
	toy_account(20000);
	MUST(toy_create(OBJECT(81), 1), CUDA_SUCCESS);
	IS(toy_destroy(OBJECT(81)), CUDA_SUCCESS);
	uint64_t used = ckt_budget_used(), memory = inside_memory(64, 0),
		 with_memory = ckt_budget_used();
	MUST(toy_create(OBJECT(81), 1), CUDA_SUCCESS);
	YES(ckt_budget_used() - with_memory >=
		20000 + sizeof(struct ckt_object) + sizeof(struct ckt_library_object));
	uint64_t made = ckt_budget_used();
	for (uint32_t key = 0; key < 4; key++)
		IS(toy_set(OBJECT(81), key, 1), CUDA_SUCCESS);
	/* Four steps and the list that names them. */
	YES(ckt_budget_used() - made >=
		4 * (sizeof(struct ckt_lib_step) + 16) + 4 * sizeof(void *));
	uint64_t set = ckt_budget_used();
	MUST(toy_capture(ID(LIB_CALL, 81), OBJECT(81), memory), CUDA_SUCCESS);
	uint64_t one = ckt_budget_used() - set;
	YES(one >= sizeof(struct ckt_lib_call) + 5 * sizeof(void *));
	IS(toy_capture_end(ID(LIB_CALL, 81)), CUDA_SUCCESS);
	IS(ckt_budget_used(), set);
	IS(toy_destroy(OBJECT(81)), CUDA_SUCCESS);
	IS(ckt_budget_used(), with_memory);
	/*
	 * Whoever creates without end comes to the limit long before its memory is what handles
	 * really take.
	 */
	ckt_budget_init(ckt_budget_used() + MANY * 20000);
	unsigned count = 0;
	while (count < 2 * MANY && toy_create(OBJECT(1000) + count, 1) == CUDA_SUCCESS)
		count++;
	YES(count > MANY / 2);
	YES(count < MANY);
	ckt_budget_init(0);
	for (unsigned i = 0; i < count; i++)
		IS(toy_destroy(OBJECT(1000) + i), CUDA_SUCCESS);
	IS(ckt_budget_used(), with_memory);
	inside_free(memory);
	IS(ckt_budget_used(), used);
	toy_account(0);
	toy_end();
}

/* What a plan was made of stays in the log, in its order; what is set later is beside it. */
static void test_seal(void)
{
	toy_begin();
	uint64_t a = OBJECT(91);
	MUST(toy_create(a, 1), CUDA_SUCCESS);
	IS(toy_set(a, 0, 1), CUDA_SUCCESS);
	IS(toy_set(a, 0, 2), CUDA_SUCCESS);
	IS(toy_set(a, 1, 3), CUDA_SUCCESS);
	TEXT(steps_of(a), "css");
	IS(toy_make(a), CUDA_SUCCESS);
	IS(toy_set(a, 0, 4), CUDA_SUCCESS);
	TEXT(steps_of(a), "cssss");
	for (uint32_t i = 0; i < 1000; i++)
		IS(toy_set(a, 0, i), CUDA_SUCCESS);
	TEXT(steps_of(a), "cssss");
	/* The plan made again is made of what holds by then: 1 of before, 0 of behind. */
	for (uint32_t i = 0; i < 1000; i++)
		IS(toy_make(a), CUDA_SUCCESS);
	TEXT(steps_of(a), "csss");
	IS(toy_set(a, 1, 5), CUDA_SUCCESS);
	TEXT(steps_of(a), "cssss");
	IS(toy_destroy(a), CUDA_SUCCESS);
	TEXT(steps_of(a), "");
	toy_end();
}

static void test_refused(void)
{
	toy_begin();
	uint8_t args[32] = {0};
	size_t before = ckt_worker_lib_log_count();
	uint64_t used = ckt_budget_used();
	unsigned garbage = 0;
	ckt_put_u64(args, OBJECT(21));
	for (size_t size = 0; size < 12; size++)
		garbage += toy_call(TOY_CREATE, args, size) == CKT_WCALL_GARBAGE;
	IS(garbage, 12);
	toy_status = 3;
	IS(toy_create(OBJECT(21), 1), CUDA_ERROR_UNKNOWN);
	toy_status = 0;
	YES(toy_find(OBJECT(21)) == NULL);
	IS(toy_create(ID(STREAM, 1), 1), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_worker_lib_log_count(), before);
	IS(ckt_budget_used(), used);
	/* Without memory for the step nothing is made. */
	ckt_budget_init(ckt_budget_used() + 16);
	IS(toy_create(OBJECT(21), 1), CUDA_ERROR_OUT_OF_MEMORY);
	ckt_budget_init(0);
	YES(toy_find(OBJECT(21)) == NULL);
	IS(toy_alive, 0);
	MUST(toy_create(OBJECT(21), 1), CUDA_SUCCESS);
	IS(toy_create(OBJECT(21), 2), CUDA_ERROR_INVALID_VALUE);
	TEXT(steps_of(OBJECT(21)), "c");
	IS(toy_destroy(OBJECT(21)), CUDA_SUCCESS);
	IS(ckt_worker_lib_log_count(), before);
	toy_end();
}

/* A client that makes steps without end meets its session's limit. */
static void test_limit(void)
{
	toy_begin();
	ckt_budget_init(ckt_budget_used() + (1 << 20));
	unsigned made = 0;
	while (made < 100000 && toy_create(OBJECT(1000) + made, 1) == CUDA_SUCCESS)
		made++;
	YES(made > 100);
	YES(made < 100000);
	ckt_budget_init(0);
	for (unsigned i = 0; i < made; i++)
		IS(toy_destroy(OBJECT(1000) + i), CUDA_SUCCESS);
	IS(toy_alive, 0);
	toy_end();
}

static void test_workspace(void)
{
	toy_begin();
	struct ckt_memory *memory = &ckt_worker.devices[0].memory;
	uint64_t used = ckt_memory_used(memory), address, bytes;
	toy_workspace = 4 << 20;
	MUST(toy_create(OBJECT(31), 1), CUDA_SUCCESS);
	const struct toy *toy = toy_find(OBJECT(31));
	YES(toy->workspace != 0);
	IS(toy->workspace_bytes, 4 << 20);
	YES(ckt_memory_holds(memory, toy->workspace, 4 << 20));
	IS(ckt_memory_used(memory), used + (4 << 20));
	/* The second time the first answer. */
	struct ckt_object *object = ckt_objects_find(&ckt_worker.objects, OBJECT(31));
	IS(ckt_worker_lib_workspace(&ckt_worker, object, 1 << 20, &address, &bytes), CUDA_SUCCESS);
	IS(address, toy->workspace);
	IS(bytes, 4 << 20);
	IS(toy_destroy(OBJECT(31)), CUDA_SUCCESS);
	IS(ckt_memory_used(memory), used);
	/* It counts in the session's limit. */
	toy_workspace = 1ull << 40;
	MUST(toy_create(OBJECT(32), 1), CUDA_SUCCESS);
	IS(toy_find(OBJECT(32))->workspace, 0);
	IS(toy_destroy(OBJECT(32)), CUDA_SUCCESS);
	toy_end();
}

UNIT_SUITE(state, {"recipe", test_recipe}, {"journal", test_journal}, {"refused", test_refused},
	{"limit", test_limit}, {"workspace", test_workspace}, {"cycles", test_cycles},
	{"account", test_account}, {"seal", test_seal}, {"full_journal", test_full_journal})
