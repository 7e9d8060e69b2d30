/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's objects: one struct for each handle, found from the id by two loads and a compare.
 *
 * Ids are made here (rpc/handle.h).  The last reference frees an object: the table holds one, and
 * functions hold their module.  Look-ups return a borrowed pointer that stays valid until another
 * thread destroys the object.  In CUDA too, a program must not use a handle while another thread
 * destroys it.  The struct is kept until the slot is reused, so such a use does not crash here.
 */
#pragma once

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpc/handle.h"

struct ckt_cudacommon_object {
	uint64_t id;
	enum ckt_kind kind;
	uint64_t context; /* id of the context it belongs to; 0 for none */
	bool dead;
};

/*
 * Gives the object an id of this kind and adds it to the table.  The caller allocates the object
 * with malloc (ckt_cudacommon_object first); the table then owns it.  0 if the table is full.
 */
uint64_t ckt_cudacommon_object_add(struct ckt_cudacommon_object *object, enum ckt_kind kind);
/* Adds an object with a constant id (a primary context). */
void ckt_cudacommon_object_add_fixed(struct ckt_cudacommon_object *object, uint64_t id);
/* NULL if the id does not name a living object of this kind. */
void *ckt_cudacommon_object_find(uint64_t id, enum ckt_kind kind);
/* Whether the id was ever given to an object of this kind. */
bool ckt_cudacommon_object_was(uint64_t id, enum ckt_kind kind);
/* A removed object while its slot rests: read only.  NULL if it was freed or never existed. */
const void *ckt_cudacommon_object_past(uint64_t id, enum ckt_kind kind);
/* Removes the object and frees it later. */
void ckt_cudacommon_object_remove(struct ckt_cudacommon_object *object);
/* Calls visit for every living object of the kind; the callback may remove it. */
void ckt_cudacommon_object_each(enum ckt_kind kind,
	void (*visit)(struct ckt_cudacommon_object *object, void *data), void *data);
/* The same for objects of one context. */
void ckt_cudacommon_object_each_of_context(
	enum ckt_kind kind, uint64_t context, void (*visit)(struct ckt_cudacommon_object *object));

#define ckt_handle_id(handle) ((uint64_t)(uintptr_t)(handle))
