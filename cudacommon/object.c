/* SPDX-License-Identifier: Apache-2.0 */
/* The client's object table; see object.h. */
#include "cudacommon/object.h"
#include "base/fork.h"

#include <stdlib.h>

enum { LEAF_BITS = 12, LEAF_SIZE = 1 << LEAF_BITS, ROOT_SIZE = CKT_HANDLE_SLOTS / LEAF_SIZE };

struct slot {
	struct ckt_cudacommon_object *_Atomic object;
	/* the slot's last dead object, freed when the slot is reused */
	struct ckt_cudacommon_object *graveyard;
	uint32_t generation;
	uint32_t next_free; /* slot number; 0 ends the list */
};

static struct slot *_Atomic root[ROOT_SIZE];
static CKT_LOCK(table_lock);
static uint32_t next_fresh = CKT_HANDLE_FIRST_SLOT;
/* First in, first out, so that a slot rests as long as possible before its reuse. */
static uint32_t free_first, free_last;

static struct slot *slot_at(uint32_t number, bool make)
{
	struct slot *leaf = atomic_load_explicit(&root[number >> LEAF_BITS], memory_order_acquire);
	if (!leaf && make) {
		leaf = calloc(LEAF_SIZE, sizeof *leaf);
		if (leaf)
			atomic_store_explicit(
				&root[number >> LEAF_BITS], leaf, memory_order_release);
	}
	return leaf ? &leaf[number & (LEAF_SIZE - 1)] : NULL;
}

static uint32_t take_slot(void)
{
	/* A few hundred slots rest before any is reused. */
	static uint32_t resting;
	uint32_t number = free_first;
	if (number && (resting > 256 || next_fresh == CKT_HANDLE_SLOTS)) {
		free_first = slot_at(number, false)->next_free;
		if (!free_first)
			free_last = 0;
		return number;
	}
	if (number)
		resting++;
	if (next_fresh == CKT_HANDLE_SLOTS)
		return 0;
	return slot_at(next_fresh, true) ? next_fresh++ : 0;
}

uint64_t ckt_cudacommon_object_add(struct ckt_cudacommon_object *object, enum ckt_kind kind)
{
	pthread_mutex_lock(&table_lock);
	uint32_t number = take_slot();
	if (!number) {
		pthread_mutex_unlock(&table_lock);
		return 0;
	}
	struct slot *slot = slot_at(number, false);
	free(slot->graveyard);
	slot->graveyard = NULL;
	slot->generation++;
	object->id = ckt_handle_make(kind, slot->generation, number);
	object->kind = kind;
	object->dead = false;
	atomic_store_explicit(&slot->object, object, memory_order_release);
	pthread_mutex_unlock(&table_lock);
	return object->id;
}

void ckt_cudacommon_object_add_fixed(struct ckt_cudacommon_object *object, uint64_t id)
{
	pthread_mutex_lock(&table_lock);
	struct slot *slot = slot_at(ckt_handle_slot(id), true);
	object->id = id;
	object->kind = ckt_handle_kind(id);
	object->dead = false;
	if (slot)
		atomic_store_explicit(&slot->object, object, memory_order_release);
	pthread_mutex_unlock(&table_lock);
}

void *ckt_cudacommon_object_find(uint64_t id, enum ckt_kind kind)
{
	if (ckt_handle_kind(id) != kind)
		return NULL;
	struct slot *slot = slot_at(ckt_handle_slot(id), false);
	struct ckt_cudacommon_object *object =
		slot ? atomic_load_explicit(&slot->object, memory_order_acquire) : NULL;
	return object && object->id == id ? object : NULL;
}

bool ckt_cudacommon_object_was(uint64_t id, enum ckt_kind kind)
{
	uint32_t number = ckt_handle_slot(id);
	if (ckt_handle_kind(id) != kind || number < CKT_HANDLE_FIRST_SLOT)
		return false;
	pthread_mutex_lock(&table_lock);
	struct slot *slot = number < next_fresh ? slot_at(number, false) : NULL;
	uint32_t generation = slot ? slot->generation : 0,
		 asked = (uint32_t)(id >> CKT_HANDLE_SLOT_BITS);
	pthread_mutex_unlock(&table_lock);
	return ckt_handle_make(kind, asked, number) == id && asked && asked <= generation;
}

const void *ckt_cudacommon_object_past(uint64_t id, enum ckt_kind kind)
{
	if (!ckt_cudacommon_object_was(id, kind))
		return NULL;
	pthread_mutex_lock(&table_lock);
	const struct ckt_cudacommon_object *past = slot_at(ckt_handle_slot(id), false)->graveyard;
	pthread_mutex_unlock(&table_lock);
	return past && past->id == id ? past : NULL;
}

void ckt_cudacommon_object_remove(struct ckt_cudacommon_object *object)
{
	uint32_t number = ckt_handle_slot(object->id);
	pthread_mutex_lock(&table_lock);
	struct slot *slot = slot_at(number, false);
	if (atomic_load_explicit(&slot->object, memory_order_relaxed) == object) {
		atomic_store_explicit(&slot->object, NULL, memory_order_release);
		object->dead = true;
		slot->graveyard = object;
		if (number >= CKT_HANDLE_FIRST_SLOT) {
			slot->next_free = 0;
			if (free_last)
				slot_at(free_last, false)->next_free = number;
			else
				free_first = number;
			free_last = number;
		}
	}
	pthread_mutex_unlock(&table_lock);
}

void ckt_cudacommon_object_each(enum ckt_kind kind,
	void (*visit)(struct ckt_cudacommon_object *object, void *data), void *data)
{
	pthread_mutex_lock(&table_lock);
	uint32_t end = next_fresh;
	pthread_mutex_unlock(&table_lock);
	for (uint32_t number = 1; number < end; number++) {
		struct slot *slot = slot_at(number, false);
		struct ckt_cudacommon_object *object =
			slot ? atomic_load_explicit(&slot->object, memory_order_acquire) : NULL;
		if (object && object->kind == kind)
			visit(object, data);
	}
}

struct of_context {
	uint64_t context;
	void (*visit)(struct ckt_cudacommon_object *object);
};

static void visit_of_context(struct ckt_cudacommon_object *object, void *data)
{
	const struct of_context *of = data;
	if (object->context == of->context)
		of->visit(object);
}

void ckt_cudacommon_object_each_of_context(
	enum ckt_kind kind, uint64_t context, void (*visit)(struct ckt_cudacommon_object *object))
{
	ckt_cudacommon_object_each(kind, visit_of_context, &(struct of_context){context, visit});
}
