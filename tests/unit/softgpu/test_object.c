/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/context/object.c: handles that are never given out twice, kinds, references, and many
 * threads.
 */
#include <pthread.h>

#include "files.h"
#include "softgpu/context/object.h"

static atomic_int destroyed;

static void destroy(struct ckt_soft_object *object)
{
	atomic_fetch_add(&destroyed, 1);
	free(object);
}

static struct ckt_soft_object *make(enum ckt_soft_kind kind)
{
	struct ckt_soft_object *object = calloc(1, sizeof(*object));
	IS(ckt_soft_object_init(object, kind, destroy), CUDA_SUCCESS);
	return object;
}

static void test_kinds(void)
{
	atomic_store(&destroyed, 0);
	for (int kind = 1; kind < CKT_SOFT_KINDS; kind++) {
		struct ckt_soft_object *object = make((enum ckt_soft_kind)kind);
		void *handle = ckt_soft_object_handle(object);
		/* Like a pointer of a program, and no default stream. */
		YES((uintptr_t)handle < 1ull << 47 && (uintptr_t)handle > 2);
		for (int other = 1; other < CKT_SOFT_KINDS; other++) {
			void *found = ckt_soft_object_get(handle, (enum ckt_soft_kind)other);
			YES(found == (other == kind ? object : NULL));
			ckt_soft_object_put(found);
		}
		YES(!ckt_soft_object_get((char *)handle + 16, (enum ckt_soft_kind)kind));
		YES(ckt_soft_object_remove(object));
		NO(ckt_soft_object_remove(object));
		YES(!ckt_soft_object_get(handle, (enum ckt_soft_kind)kind));
		ckt_soft_object_put(object);
	}
	IS(atomic_load(&destroyed), CKT_SOFT_KINDS - 1);
	static const uint64_t strange[] = {0, 1, 2, CKT_SOFT_STREAM, UINT64_MAX,
		1ull << 63 | CKT_SOFT_STREAM, 0xffffff0 | CKT_SOFT_STREAM};
	for (size_t i = 0; i < COUNT(strange); i++)
		YES(!ckt_soft_object_get((void *)(uintptr_t)strange[i], CKT_SOFT_STREAM));
	ckt_soft_object_put(NULL);
}

/* A slot is used again, its handle never. */
static void test_again(void)
{
	enum { N = 600000 }; /* more than the generations of one slot */
	struct ckt_soft_object *object = make(CKT_SOFT_EVENT);
	void *first = ckt_soft_object_handle(object), *last = first;
	unsigned same = 0;
	for (unsigned i = 0; i < N; i++) {
		ckt_soft_object_remove(object);
		ckt_soft_object_init(object, CKT_SOFT_EVENT, destroy);
		same += ckt_soft_object_handle(object) == last;
		last = ckt_soft_object_handle(object);
		if (i == 1000)
			YES(!ckt_soft_object_get(first, CKT_SOFT_EVENT));
	}
	IS(same, 0);
	YES((uintptr_t)last < 1ull << 47 && (uintptr_t)last > 2);
	ckt_soft_object_remove(object);
	ckt_soft_object_put(object);
}

/* A reference keeps the object, not the handle. */
static void test_references(void)
{
	atomic_store(&destroyed, 0);
	struct ckt_soft_object *object = make(CKT_SOFT_MODULE);
	void *handle = ckt_soft_object_handle(object);
	struct ckt_soft_object *mine = ckt_soft_object_get(handle, CKT_SOFT_MODULE);
	ckt_soft_object_remove(object);
	ckt_soft_object_put(object);
	IS(atomic_load(&destroyed), 0);
	YES(mine->handle == (uint64_t)(uintptr_t)handle);
	ckt_soft_object_put(mine);
	IS(atomic_load(&destroyed), 1);
}

static void *hammer(void *shared)
{
	_Atomic(void *) *handles = shared;
	for (unsigned i = 0; i < 20000; i++) {
		struct ckt_soft_object *found =
			ckt_soft_object_get(atomic_load(&handles[i % 8]), CKT_SOFT_EVENT);
		if (found && i % 3 == 0 && ckt_soft_object_remove(found))
			ckt_soft_object_put(found);
		ckt_soft_object_put(found);
		if (i % 5 == 0) {
			struct ckt_soft_object *made = calloc(1, sizeof(*made));
			ckt_soft_object_init(made, CKT_SOFT_EVENT, destroy);
			void *before =
				atomic_exchange(&handles[i / 5 % 8], ckt_soft_object_handle(made));
			found = ckt_soft_object_get(before, CKT_SOFT_EVENT);
			if (found && ckt_soft_object_remove(found))
				ckt_soft_object_put(found);
			ckt_soft_object_put(found);
		}
	}
	return NULL;
}

static void test_threads(void)
{
	_Atomic(void *) handles[8] = {NULL};
	pthread_t threads[3];
	atomic_store(&destroyed, 0);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, hammer, handles);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 8; i++) {
		struct ckt_soft_object *found = ckt_soft_object_get(handles[i], CKT_SOFT_EVENT);
		if (found && ckt_soft_object_remove(found))
			ckt_soft_object_put(found);
		ckt_soft_object_put(found);
	}
	/* Every one that was made, once. */
	IS(atomic_load(&destroyed), 3 * 4000);
}

UNIT_SUITE(softgpu / context / object, {"kinds", test_kinds}, {"again", test_again},
	{"references", test_references}, {"threads", test_threads})
