/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles: numbers (generation << 24 | slot) << 4 | kind that look like small pointers and are
 * never reused.  One mutex protects one table; an API call holds it for tens of nanoseconds.
 */
#include <pthread.h>
#include <stdlib.h>

#include "softgpu/context/object.h"

enum { SLOT_BITS = 24, KIND_BITS = 4, SLOTS_MAX = 1 << SLOT_BITS };

_Static_assert(CKT_SOFT_KINDS <= 1 << KIND_BITS, "kinds fit their bits");

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot {
	struct ckt_soft_object *object;
	uint32_t generation;
	uint32_t next_free;
} * slots;
static uint32_t n_slots, n_slots_max, first_free = UINT32_MAX;

CUresult ckt_soft_object_init(struct ckt_soft_object *object, enum ckt_soft_kind kind,
	void (*destroy)(struct ckt_soft_object *object))
{
	object->kind = kind;
	object->destroy = destroy;
	atomic_store(&object->refs, 1);
	pthread_mutex_lock(&table_lock);
	uint32_t i = first_free;
	if (i != UINT32_MAX) {
		first_free = slots[i].next_free;
	} else {
		if (n_slots == n_slots_max) {
			uint32_t n = n_slots_max ? 2 * n_slots_max : 256;
			struct slot *bigger =
				n > SLOTS_MAX ? NULL : realloc(slots, n * sizeof(*slots));
			if (!bigger) {
				pthread_mutex_unlock(&table_lock);
				return CUDA_ERROR_OUT_OF_MEMORY;
			}
			slots = bigger;
			n_slots_max = n;
		}
		i = n_slots++;
		slots[i] = (struct slot){.generation = 0};
	}
	/*
	 * 19 bits keep the number below 2^47, where programs expect a pointer.  After a wrap,
	 * generation 0 is skipped because handles 0, 1 and 2 mean default streams.
	 */
	slots[i].generation = (slots[i].generation + 1) & ((1u << 19) - 1);
	if (slots[i].generation == 0)
		slots[i].generation = 1;
	slots[i].object = object;
	object->handle =
		((((uint64_t)slots[i].generation << SLOT_BITS) | i) << KIND_BITS) | (uint64_t)kind;
	pthread_mutex_unlock(&table_lock);
	return CUDA_SUCCESS;
}

void *ckt_soft_object_get(const void *handle, enum ckt_soft_kind kind)
{
	uint64_t value = (uint64_t)(uintptr_t)handle;
	if ((value & ((1u << KIND_BITS) - 1)) != (uint64_t)kind)
		return NULL;
	uint32_t i = (uint32_t)(value >> KIND_BITS) & (SLOTS_MAX - 1);
	struct ckt_soft_object *object = NULL;
	pthread_mutex_lock(&table_lock);
	if (i < n_slots && slots[i].object && slots[i].object->handle == value) {
		object = slots[i].object;
		atomic_fetch_add(&object->refs, 1);
	}
	pthread_mutex_unlock(&table_lock);
	return object;
}

bool ckt_soft_object_was(const void *handle, enum ckt_soft_kind kind)
{
	uint64_t value = (uint64_t)(uintptr_t)handle;
	uint32_t i = (uint32_t)(value >> KIND_BITS) & (SLOTS_MAX - 1);
	uint64_t generation = value >> (KIND_BITS + SLOT_BITS);
	pthread_mutex_lock(&table_lock);
	bool was = (value & ((1u << KIND_BITS) - 1)) == (uint64_t)kind && i < n_slots &&
		generation && generation <= slots[i].generation;
	pthread_mutex_unlock(&table_lock);
	return was;
}

void ckt_soft_object_ref(struct ckt_soft_object *object)
{
	atomic_fetch_add(&object->refs, 1);
}

void ckt_soft_object_put(struct ckt_soft_object *object)
{
	if (object && atomic_fetch_sub(&object->refs, 1) == 1)
		object->destroy(object);
}

bool ckt_soft_object_remove(struct ckt_soft_object *object)
{
	uint32_t i = (uint32_t)(object->handle >> KIND_BITS) & (SLOTS_MAX - 1);
	bool removed = false;
	pthread_mutex_lock(&table_lock);
	if (i < n_slots && slots[i].object == object) {
		slots[i].object = NULL;
		slots[i].next_free = first_free;
		first_free = i;
		removed = true;
	}
	pthread_mutex_unlock(&table_lock);
	return removed;
}
