/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/load/load_journal.c: what moves addresses is done again in its order. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/worker/restore.h"

static void moved_fault(struct wire *w, bool on)
{
	strcpy(w->fault, on ? "fail:14" : "");
}

/*
 * Variables that come to lie elsewhere: no harm where nobody knows where they lay, and refused
 * where somebody does.
 */
static void test_moved(void)
{
	char first[] = "/tmp/ckt-image-XXXXXX", second[] = "/tmp/ckt-image-XXXXXX",
	     message[CKT_MESSAGE_MAX];
	make_directory(first);
	make_directory(second);
	struct wire *w = session_new();
	load(w, 0, common);
	load(w, 1, common);
	uint64_t block = alloc(w, 4 * MIB), was[2], is[2];
	const uint32_t steps[] = {100, 1000};
	for (unsigned n = 0; n < 2; n++) {
		launch(w, n, ADD, &steps[n], 4);
		launch(w, n, POINT, &block, 8);
		was[n] = get(w, block, 8);
	}
	fill(w, block, 0, 4 * MIB);
	save_and_stop(w, first);
	moved_fault(w, true);
	restore(w, first);
	CU_ASSERT_TRUE(noted(w, "6 variables of modules have moved"));
	CU_ASSERT_TRUE(noted(w, "nothing points to their old addresses"));
	for (unsigned n = 0; n < 2; n++) {
		CU_ASSERT_EQUAL(hidden(w, n, block), 7 + steps[n]);
		launch(w, n, POINT, &block, 8);
		is[n] = get(w, block, 8);
		CU_ASSERT_NOT_EQUAL(is[n], was[n]);
	}
	/*
	 * An increment on the image that it came from, and back to the old places: what points
	 * there is the new address now.
	 */
	fill(w, block, 0, 8);
	save_and_stop(w, second);
	moved_fault(w, false);
	restore(w, second);
	CU_ASSERT_EQUAL(hidden(w, 0, block), 107);
	CU_ASSERT_EQUAL(hidden(w, 1, block), 1007);
	CU_ASSERT_TRUE(noted(w, "have moved since"));
	launch(w, 1, POINT, &block, 8);
	CU_ASSERT_EQUAL(get(w, block, 8), was[1]);
	session_end(w);
	remove_directory(second);

	/*
	 * Words of memory, at the beginning and at the very end of it, and one behind the variable.
	 */
	restore(w = calloc(1, sizeof *w), first);
	for (unsigned i = 0; i < 3; i++) {
		char words[32];
		uint64_t at = i == 0 ? block : i == 1 ? block + 4 * MIB - 8 : block + 2 * MIB;
		CU_ASSERT_EQUAL(mkdir(second, 0700), 0);
		launch(w, 1, POINT, &at, 8);
		if (i == 2)
			fill(w, at, (uint32_t)was[1] + 4, 4);
		save_and_stop(w, second);
		moved_fault(w, true);
		CU_ASSERT_EQUAL(try_restore(w, second, message), -EADDRNOTAVAIL);
		snprintf(words, sizeof words, "and %u words of the session", i + 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(message, words));
		CU_ASSERT_PTR_NOT_NULL(strstr(message, "variable hidden"));
		moved_fault(w, false);
		/* The same image, where nothing moved. */
		restore(w, second);
		CU_ASSERT_FALSE(noted(w, "") && noted(w, "elsewhere"));
		CU_ASSERT_EQUAL(get(w, block, 8), was[1]);
		remove_directory(second);
	}
	session_end(w);

	/* A word of another variable. */
	CU_ASSERT_EQUAL(mkdir(second, 0700), 0);
	restore(w = calloc(1, sizeof *w), first);
	launch(w, 0, KEEP, NULL, 0);
	save_and_stop(w, second);
	moved_fault(w, true);
	CU_ASSERT_EQUAL(try_restore(w, second, message), -EADDRNOTAVAIL);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "and 1 words of the session"));
	moved_fault(w, false);
	remove_directory(second);

	/* What the program was told. */
	CU_ASSERT_EQUAL(mkdir(second, 0700), 0);
	restore(w, first);
	uint64_t total = ask(w, 1, "total");
	save_and_stop(w, second);
	moved_fault(w, true);
	CU_ASSERT_EQUAL(try_restore(w, second, message), -EADDRNOTAVAIL);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "variable total"));
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "whose address the program knows"));
	moved_fault(w, false);
	restore(w, second);
	CU_ASSERT_EQUAL(ask(w, 1, "total"), total);
	/* And is still known after a restore. */
	remove_directory(second);
	CU_ASSERT_EQUAL(mkdir(second, 0700), 0);
	save_and_stop(w, second);
	moved_fault(w, true);
	CU_ASSERT_EQUAL(try_restore(w, second, message), -EADDRNOTAVAIL);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "variable total"));
	moved_fault(w, false);
	restore(w, second);
	session_end(w);
	remove_directory(first);
	remove_directory(second);
}

struct step {
	unsigned kind;
	uint64_t id;
	unsigned flags;
};

static void expect_journal(const char *directory, const struct step *steps, unsigned count)
{
	ckt_image image;
	read_image(directory, &image);
	CU_ASSERT_EQUAL(image.journal.journal_len, count);
	for (unsigned i = 0; i < count && i < image.journal.journal_len; i++) {
		const ckt_image_journal *entry = &image.journal.journal_val[i];
		CU_ASSERT_EQUAL(entry->kind, steps[i].kind);
		CU_ASSERT_EQUAL(entry->id, steps[i].id);
		CU_ASSERT_EQUAL(entry->flags, steps[i].flags);
		if (entry->kind != steps[i].kind || entry->id != steps[i].id)
			fprintf(stderr, "step %u: kind %u id %llu flags %u\n", i, entry->kind,
				(unsigned long long)entry->id, entry->flags);
	}
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
}

/*
 * What moves addresses is done again in its order, dead modules included; what only repeats is one
 * entry, and what was given back none.
 */
static void test_journal(void)
{
	enum { LOAD = 1, UNLOAD = 2, LIMIT = 6, STREAMS = 7, EVENTS = 8, BEYOND = 8, POOL = 32 };
	char directory[] = "/tmp/ckt-image-XXXXXX";
	make_directory(directory);
	struct wire *w = session_new();
	uint64_t block = alloc(w, 2 * MIB);
	const uint32_t step = 100;
	make_streams(w, 0, POOL);
	load(w, 0, common);
	make_streams(w, POOL, BEYOND);
	for (unsigned i = 0; i < 100; i++)
		WIRE_BATCH(w, event_create, .id = EVENT(i), .flags = CU_EVENT_DISABLE_TIMING);
	load(w, 1, common);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, module_unload, true, .id = MODULE(0))), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, cuCtxSetLimit, true, .limit = CU_LIMIT_STACK_SIZE,
				.value = 4096)),
		CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, cuCtxSetLimit, true, .limit = CU_LIMIT_STACK_SIZE,
				.value = 8192)),
		CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, cuCtxSetLimit, true, .limit = CU_LIMIT_MALLOC_HEAP_SIZE,
				.value = 16 * MIB)),
		CUDA_SUCCESS);
	/* Gone and made again: no more of them at once than before. */
	for (unsigned i = POOL; i < POOL + BEYOND; i++)
		WIRE_BATCH(w, stream_destroy, .id = STREAM(i));
	for (unsigned i = 0; i < 90; i++)
		WIRE_BATCH(w, event_destroy, .id = EVENT(i));
	make_streams(w, 100, BEYOND - 3);
	for (unsigned i = 200; i < 250; i++)
		WIRE_BATCH(w, event_create, .id = EVENT(i), .flags = CU_EVENT_DISABLE_TIMING);
	load(w, 2, common);
	launch(w, 2, ADD, &step, 4);
	const struct step want[] = {{LOAD, MODULE(0), 0}, {STREAMS, BEYOND, CU_STREAM_NON_BLOCKING},
		{EVENTS, 100, CU_EVENT_DISABLE_TIMING}, {LOAD, MODULE(1), 0},
		{UNLOAD, MODULE(0), 0}, {LIMIT, 8192, CU_LIMIT_STACK_SIZE},
		{LIMIT, 16 * MIB, CU_LIMIT_MALLOC_HEAP_SIZE}, {LOAD, MODULE(2), 0}};
	enum { COUNT = sizeof want / sizeof *want };
	for (int i = 0; i < 3; i++) {
		save_and_stop(w, directory);
		expect_journal(directory, want, COUNT);
		restore(w, directory);
		remove_directory(directory);
		CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
		CU_ASSERT_EQUAL(hidden(w, 2, block), 107);
		struct wire_reply reply =
			WIRE_CALL(w, cuCtxGetLimit, false, .limit = CU_LIMIT_STACK_SIZE);
		struct ckt_cuCtxGetLimit_res res = {0};
		CU_ASSERT_EQUAL(reply.result, CUDA_SUCCESS);
		CU_ASSERT_TRUE(ckt_cuCtxGetLimit_res_get(&reply.results, &res));
		CU_ASSERT_EQUAL(res.pvalue, 8192);
		free(reply.data);
		CU_ASSERT_EQUAL(done(WIRE_CALL(w, stream_query, false, .stream = STREAM(100))),
			CUDA_SUCCESS);
		CU_ASSERT_EQUAL(done(WIRE_CALL(w, stream_query, false, .stream = STREAM(POOL))),
			CUDA_ERROR_INVALID_HANDLE);
		CU_ASSERT_EQUAL(
			done(WIRE_CALL(w, event_query, false, .event = EVENT(249))), CUDA_SUCCESS);
		CU_ASSERT_EQUAL(done(WIRE_CALL(w, event_query, false, .event = EVENT(0))),
			CUDA_ERROR_INVALID_HANDLE);
	}
	/* What was at once before has its place still; one more is one more. */
	make_streams(w, 150, 3);
	CU_ASSERT_EQUAL_FATAL(
		wire_save2(w, directory, (ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS})
			.status,
		0);
	expect_journal(directory, want, COUNT);
	make_streams(w, 160, 1);
	remove_directory(directory);
	CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
	CU_ASSERT_EQUAL_FATAL(
		wire_save2(w, directory, (ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS})
			.status,
		0);
	ckt_image image;
	read_image(directory, &image);
	CU_ASSERT_EQUAL(image.journal.journal_len, COUNT + 1);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	session_end(w);
	remove_directory(directory);
}

UNIT_SUITE(load_journal, {"journal", test_journal}, {"moved", test_moved})
