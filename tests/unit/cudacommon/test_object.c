/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/object.c: the table of objects: which id finds what, how long a slot rests, and many
 * threads at once.
 */
#include <CUnit/Basic.h>
#include <pthread.h>
#include <stdlib.h>

#include "cudacommon/object.h"

static struct ckt_cudacommon_object *add(enum ckt_kind kind)
{
	struct ckt_cudacommon_object *object = calloc(1, sizeof *object);
	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	uint64_t id = ckt_cudacommon_object_add(object, kind);
	CU_ASSERT_TRUE(id != 0 && id == object->id);
	CU_ASSERT_EQUAL(ckt_handle_kind(id), kind);
	CU_ASSERT_TRUE(ckt_handle_slot(id) >= CKT_HANDLE_FIRST_SLOT);
	return object;
}

static void test_find(void)
{
	struct ckt_cudacommon_object *stream = add(CKT_KIND_STREAM), *event = add(CKT_KIND_EVENT);
	uint64_t id = stream->id;
	CU_ASSERT_PTR_EQUAL(ckt_cudacommon_object_find(id, CKT_KIND_STREAM), stream);
	CU_ASSERT_PTR_EQUAL(ckt_cudacommon_object_find(event->id, CKT_KIND_EVENT), event);
	CU_ASSERT_PTR_NULL(ckt_cudacommon_object_find(id, CKT_KIND_EVENT));
	/*
	 * What a program may pass for a handle: the special streams, another generation, the
	 * server's bit, anything.
	 */
	const uint64_t wrong[] = {0, 1, 2, UINT64_MAX, id + ((uint64_t)1 << 24),
		id - ((uint64_t)1 << 24), id | (uint64_t)1 << 63, id | (uint64_t)1 << 61,
		ckt_handle_make(CKT_KIND_STREAM, 1, CKT_HANDLE_SLOTS - 1),
		ckt_handle_make(CKT_KIND_STREAM, 0, 0), (uintptr_t)stream};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		CU_ASSERT_PTR_NULL(ckt_cudacommon_object_find(wrong[i], CKT_KIND_STREAM));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		CU_ASSERT_FALSE(ckt_cudacommon_object_was(wrong[i], CKT_KIND_STREAM));
	CU_ASSERT_TRUE(ckt_cudacommon_object_was(id, CKT_KIND_STREAM));
	CU_ASSERT_FALSE(ckt_cudacommon_object_was(id, CKT_KIND_EVENT));
	CU_ASSERT_PTR_NULL(ckt_cudacommon_object_past(id, CKT_KIND_STREAM));
	ckt_cudacommon_object_remove(stream);
	CU_ASSERT_TRUE(ckt_cudacommon_object_was(id, CKT_KIND_STREAM));
	CU_ASSERT_PTR_NULL(ckt_cudacommon_object_find(id, CKT_KIND_STREAM));
	/* Another thread may still hold the pointer. */
	CU_ASSERT_TRUE(stream->dead && stream->id == id);
	CU_ASSERT_PTR_EQUAL(ckt_cudacommon_object_past(id, CKT_KIND_STREAM), stream);
	ckt_cudacommon_object_remove(stream);
	CU_ASSERT_PTR_EQUAL(ckt_cudacommon_object_find(event->id, CKT_KIND_EVENT), event);
	ckt_cudacommon_object_remove(event);
}

/*
 * A program that makes and destroys for ever: no id comes back, no slot soon, and the table does
 * not grow.
 */
static void test_reuse(void)
{
	enum { TURNS = 20000, REST = 200 };
	static uint64_t ids[TURNS];
	uint32_t highest = 0;
	for (int i = 0; i < TURNS; i++) {
		struct ckt_cudacommon_object *object = add(CKT_KIND_EVENT);
		ids[i] = object->id;
		for (int j = i - REST; j < i; j++)
			if (j >= 0)
				CU_ASSERT_NOT_EQUAL_FATAL(
					ckt_handle_slot(ids[j]), ckt_handle_slot(ids[i]));
		if (ckt_handle_slot(ids[i]) > highest)
			highest = ckt_handle_slot(ids[i]);
		ckt_cudacommon_object_remove(object);
	}
	CU_ASSERT_TRUE(highest < 1000);
	struct ckt_cudacommon_object *living = add(CKT_KIND_EVENT);
	for (int i = 0; i < TURNS; i++)
		CU_ASSERT_TRUE_FATAL(!ckt_cudacommon_object_find(ids[i], CKT_KIND_EVENT) &&
			ckt_cudacommon_object_was(ids[i], CKT_KIND_EVENT));
	CU_ASSERT_PTR_NULL(ckt_cudacommon_object_past(ids[0], CKT_KIND_EVENT));
	ckt_cudacommon_object_remove(living);
}

static void test_fixed(void)
{
	struct ckt_cudacommon_object *object = calloc(1, sizeof *object);
	uint64_t id = ckt_handle_primary(7);
	ckt_cudacommon_object_add_fixed(object, id);
	CU_ASSERT_PTR_EQUAL(ckt_cudacommon_object_find(id, CKT_KIND_CONTEXT), object);
	CU_ASSERT_PTR_NULL(ckt_cudacommon_object_find(ckt_handle_primary(6), CKT_KIND_CONTEXT));
	CU_ASSERT_PTR_NULL(ckt_cudacommon_object_find(id, CKT_KIND_POOL));
	ckt_cudacommon_object_remove(object);
	CU_ASSERT_PTR_NULL(ckt_cudacommon_object_find(id, CKT_KIND_CONTEXT));
	/* Its slot is nobody else's: not even now is it handed out. */
	for (int i = 0; i < 600; i++)
		ckt_cudacommon_object_remove(add(CKT_KIND_MODULE));
	ckt_cudacommon_object_add_fixed(object, id);
	CU_ASSERT_PTR_EQUAL(ckt_cudacommon_object_find(id, CKT_KIND_CONTEXT), object);
	ckt_cudacommon_object_remove(object);
}

static void take_out(struct ckt_cudacommon_object *object, void *data)
{
	unsigned *visits = data;
	CU_ASSERT_EQUAL(object->kind, CKT_KIND_MODULE);
	++*visits;
	ckt_cudacommon_object_remove(object);
	/* What comes in while all are visited harms nothing. */
	struct ckt_cudacommon_object *other = calloc(1, sizeof *other);
	ckt_cudacommon_object_add(other, CKT_KIND_FUNCTION);
}

static void forget(struct ckt_cudacommon_object *object, void *data)
{
	(void)data;
	ckt_cudacommon_object_remove(object);
}

static void test_each(void)
{
	unsigned visits = 0;
	for (int i = 0; i < 100; i++)
		add(i % 2 ? CKT_KIND_MODULE : CKT_KIND_STREAM);
	ckt_cudacommon_object_each(CKT_KIND_MODULE, take_out, &visits);
	CU_ASSERT_EQUAL(visits, 50);
	ckt_cudacommon_object_each(CKT_KIND_MODULE, take_out, &visits);
	CU_ASSERT_EQUAL(visits, 50);
	ckt_cudacommon_object_each(CKT_KIND_STREAM, forget, NULL);
	ckt_cudacommon_object_each(CKT_KIND_FUNCTION, forget, NULL);
}

enum { THREADS = 4, ROUNDS = 4000, HELD = 16 };
static _Atomic unsigned wrong_answers;

static void *worker(void *data)
{
	struct ckt_cudacommon_object *held[HELD] = {0};
	enum ckt_kind kind = data ? CKT_KIND_EVENT : CKT_KIND_STREAM;
	for (int i = 0; i < ROUNDS; i++) {
		struct ckt_cudacommon_object **place = &held[i % HELD];
		if (*place) {
			uint64_t id = (*place)->id;
			wrong_answers += ckt_cudacommon_object_find(id, kind) != *place;
			ckt_cudacommon_object_remove(*place);
			wrong_answers += ckt_cudacommon_object_find(id, kind) != NULL;
		}
		*place = calloc(1, sizeof **place);
		wrong_answers += !ckt_cudacommon_object_add(*place, kind);
	}
	for (int i = 0; i < HELD; i++)
		ckt_cudacommon_object_remove(held[i]);
	return NULL;
}

static void count(struct ckt_cudacommon_object *object, void *data)
{
	(void)object;
	++*(unsigned *)data;
}

static void test_threads(void)
{
	pthread_t threads[THREADS];
	unsigned left = 0;
	for (long i = 0; i < THREADS; i++)
		CU_ASSERT_EQUAL_FATAL(
			pthread_create(&threads[i], NULL, worker, (void *)(i % 2)), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(wrong_answers, 0);
	ckt_cudacommon_object_each(CKT_KIND_EVENT, count, &left);
	ckt_cudacommon_object_each(CKT_KIND_STREAM, count, &left);
	CU_ASSERT_EQUAL(left, 0);
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("object", NULL, NULL);
	CU_add_test(suite, "find", test_find);
	CU_add_test(suite, "reuse", test_reuse);
	CU_add_test(suite, "fixed", test_fixed);
	CU_add_test(suite, "each", test_each);
	CU_add_test(suite, "threads", test_threads);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
