/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/code/code.c: what a library loads into a driver that loads lazily stands in
 * the journal by first uses, and what a restore has loaded ahead is handed to the library.  Run
 * with CUDA_MODULE_LOADING=LAZY.
 */
#include "server/worker/libs/code/code.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "checkpoint/journal.h"
#include "server/worker/libs/code/code_table.h"
#include "server/worker/libs/genuine.h"
#include "server/worker/libs/inside/inside.h"
#include "tests/unit/worker/inside.h"
#include "tests/unit/worker/toy.h"

const struct toy *toy_library(void)
{
	static struct toy toy;
	const struct ckt_genuine *genuine;
	char message[CKT_MESSAGE_MAX] = "";
	if (toy.toy_entry)
		return &toy;
	setenv("CRICKET_LIBRARY_PATH", TOY_DIR, 1);
	if (ckt_genuine_open(&ckt_worker, "libtoy.so", 1, "", &genuine, message, sizeof message))
		CU_FAIL_FATAL(message);
#define TOY_FUNCTION(type, name, ...) *(void **)&toy.name = dlsym(genuine->handle, #name);
	TOY_FUNCTIONS
#undef TOY_FUNCTION
	return &toy;
}

static pthread_t executor;

static void begin(void)
{
	executor = ckt_worker.executor;
	ckt_worker.executor = pthread_self();
	toy_library();
}

static void end(void)
{
	ckt_worker.executor = executor;
}

/* Steps of the journal that are uses, since that many. */
static unsigned uses(size_t since)
{
	unsigned count = 0;
	for (size_t i = since; i < ckt_worker.checkpoint.journal.count; i++)
		count += ckt_worker.checkpoint.journal.list[i].kind == CKT_JOURNAL_CODE;
	return count;
}

static const struct ckt_code_use *last_use(void)
{
	const struct ckt_journal_entry *last =
		&ckt_worker.checkpoint.journal.list[ckt_worker.checkpoint.journal.count - 1];
	MUST(last->kind, CKT_JOURNAL_CODE);
	IS(last->context, ckt_worker.current->id);
	return ckt_code_use_at((uint32_t)last->id);
}

static void test_uses(void)
{
	begin();
	const struct toy *toy = toy_library();
	size_t since = ckt_worker.checkpoint.journal.count;
	void *library;
	uint64_t address;
	MUST(toy->toy_code_load(0, &library), CUDA_SUCCESS);
	/* What is loaded and not used moves nothing. */
	IS(uses(since), 0);
	IS(toy->toy_code_run(library, "second"), CUDA_SUCCESS);
	IS(uses(since), 1);
	IS(last_use()->kind, CKT_CODE_KERNEL);
	TEXT(last_use()->symbol, "second");
	TEXT(ckt_code_entry(last_use()->code)->file, "libtoy.so.1");
	IS(toy->toy_code_run(library, "second"), CUDA_SUCCESS);
	IS(uses(since), 1);
	IS(toy->toy_code_run(library, "first"), CUDA_SUCCESS);
	IS(uses(since), 2);
	IS(toy->toy_code_variable(library, &address), CUDA_SUCCESS);
	IS(uses(since), 3);
	IS(last_use()->kind, CKT_CODE_VARIABLE);
	IS(toy->toy_code_variable(library, &address), CUDA_SUCCESS);
	IS(uses(since), 3);
	IS(toy->toy_code_unload(library), CUDA_SUCCESS);
	IS(uses(since), 4);
	IS(last_use()->kind, CKT_CODE_UNLOAD);
	/* One that was never used leaves nothing. */
	MUST(toy->toy_code_load(0, &library), CUDA_SUCCESS);
	IS(toy->toy_code_unload(library), CUDA_SUCCESS);
	IS(uses(since), 4);
	end();
}

/*
 * Code that no file has: its contents are the session's once it is used, though the library has
 * freed them.
 */
static void test_made_at_run_time(void)
{
	begin();
	const struct toy *toy = toy_library();
	size_t blobs = ckt_worker.blobs.count;
	void *library;
	MUST(toy->toy_code_load(1, &library), CUDA_SUCCESS);
	IS(ckt_worker.blobs.count, blobs);
	IS(toy->toy_code_run(library, "first"), CUDA_SUCCESS);
	IS(ckt_worker.blobs.count, blobs + 1);
	const struct ckt_code *code = ckt_code_entry(last_use()->code);
	TEXT(code->file, "");
	const struct ckt_blob *blob = ckt_blobs_find(&ckt_worker.blobs, code->hash);
	YES(blob && blob->size == code->size);
	IS(toy->toy_code_unload(library), CUDA_SUCCESS);
	end();
}

static void *other_thread(void *opaque)
{
	ckt_driver.cuCtxSetCurrent(ckt_worker.current->real);
	IS(toy_library()->toy_code_run(opaque, "first"), CUDA_SUCCESS);
	return NULL;
}

/* On a thread of its own: entered when the executor looks. */
static void test_thread(void)
{
	begin();
	const struct toy *toy = toy_library();
	void *library;
	pthread_t thread;
	MUST(toy->toy_code_load(0, &library), CUDA_SUCCESS);
	size_t since = ckt_worker.checkpoint.journal.count;
	MUST(pthread_create(&thread, NULL, other_thread, library), 0);
	pthread_join(thread, NULL);
	IS(uses(since), 0);
	ckt_inside_notes_settle(&ckt_worker);
	IS(uses(since), 1);
	IS(toy->toy_code_unload(library), CUDA_SUCCESS);
	end();
}

/* As a restore does: what it loaded is what the library gets, with its uses known. */
static void test_ahead(void)
{
	begin();
	const struct toy *toy = toy_library();
	void *library, *again;
	MUST(toy->toy_code_load(0, &library), CUDA_SUCCESS);
	IS(toy->toy_code_run(library, "first"), CUDA_SUCCESS);
	uint32_t code = last_use()->code;
	const struct ckt_code *entry = ckt_code_entry(code);
	const uint8_t *data = ckt_code_find_file(entry->file, entry->offset, entry->size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(data);
	IS(toy->toy_code_unload(library), CUDA_SUCCESS);
	IS(ckt_code_use_ahead(code, data, CKT_CODE_KERNEL, "none"), CUDA_ERROR_NOT_FOUND);
	IS(ckt_code_use_ahead(code, data, CKT_CODE_KERNEL, "second"), CUDA_SUCCESS);
	CUlibrary ahead = ckt_code_entry(code)->ahead;
	CU_ASSERT_PTR_NOT_NULL_FATAL(ahead);
	IS(ckt_code_use_ahead(code, data, CKT_CODE_VARIABLE, "code_variable"), CUDA_SUCCESS);
	YES(ckt_code_entry(code)->ahead == ahead);
	size_t since = ckt_worker.checkpoint.journal.count;
	MUST(toy->toy_code_load(0, &library), CUDA_SUCCESS);
	YES(library == (void *)ahead);
	IS(toy->toy_code_run(library, "second"), CUDA_SUCCESS);
	IS(uses(since), 0);
	IS(toy->toy_code_run(library, "first"), CUDA_SUCCESS);
	IS(uses(since), 1);
	/* Once: who loads it again gets another. */
	MUST(toy->toy_code_load(0, &again), CUDA_SUCCESS);
	YES(again != library);
	IS(toy->toy_code_unload(again), CUDA_SUCCESS);
	/* What the library has, a step of the restore leaves to it. */
	IS(ckt_code_use_ahead(code, data, CKT_CODE_UNLOAD, ""), CUDA_SUCCESS);
	IS(toy->toy_code_run(library, "first"), CUDA_SUCCESS);
	IS(toy->toy_code_unload(library), CUDA_SUCCESS);
	CU_ASSERT_PTR_NULL(ckt_code_entry(code)->ahead);
	end();
}

static void test_modules(void)
{
	begin();
	const struct toy *toy = toy_library();
	size_t since = ckt_worker.checkpoint.journal.count;
	void *module, *again;
	MUST(toy->toy_code_module(&module), CUDA_SUCCESS);
	IS(uses(since), 1);
	IS(last_use()->kind, CKT_CODE_MODULE);
	uint32_t code = last_use()->code;
	const struct ckt_code *entry = ckt_code_entry(code);
	const uint8_t *data = ckt_code_find_file(entry->file, entry->offset, entry->size);
	IS(toy->toy_code_module_unload(module), CUDA_SUCCESS);
	IS(last_use()->kind, CKT_CODE_MODULE_UNLOAD);
	IS(ckt_code_use_ahead(code, data, CKT_CODE_MODULE, ""), CUDA_SUCCESS);
	since = ckt_worker.checkpoint.journal.count;
	MUST(toy->toy_code_module(&module), CUDA_SUCCESS);
	IS(uses(since), 0);
	MUST(toy->toy_code_module(&again), CUDA_SUCCESS);
	YES(again != module);
	IS(uses(since), 1);
	IS(toy->toy_code_module_unload(module), CUDA_SUCCESS);
	IS(toy->toy_code_module_unload(again), CUDA_SUCCESS);
	/* Loaded ahead for nobody. */
	IS(ckt_code_use_ahead(code, data, CKT_CODE_MODULE, ""), CUDA_SUCCESS);
	IS(ckt_code_use_ahead(code, data, CKT_CODE_MODULE_UNLOAD, ""), CUDA_SUCCESS);
	end();
}

UNIT_SUITE(libs_code, {"uses", test_uses}, {"made at run time", test_made_at_run_time},
	{"thread", test_thread}, {"ahead", test_ahead}, {"modules", test_modules})
