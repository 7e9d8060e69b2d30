/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the client knows of the objects it made: one struct per handle, found from the id in two
 * loads and a compare.
 *
 * Ids are made here (rpc/handle.h).  An object is freed when its last reference goes: the table
 * holds one, and functions hold their module.  Look-ups return a borrowed pointer that stays valid
 * until another thread destroys the object; using a handle while another thread destroys it is an
 * error of the program in CUDA too, and objects are kept until the slot is reused, so it is never a
 * crash here.
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
 * Gives the object an id of this kind and enters it; the object (malloc'd by the caller,
 * ckt_cudacommon_object first) belongs to the table from then on.  0 if the table is full.
 */
uint64_t ckt_cudacommon_object_add(struct ckt_cudacommon_object *object, enum ckt_kind kind);
/* Enters an object under a constant id (a primary context). */
void ckt_cudacommon_object_add_fixed(struct ckt_cudacommon_object *object, uint64_t id);
/* NULL if the id does not name a living object of this kind. */
void *ckt_cudacommon_object_find(uint64_t id, enum ckt_kind kind);
/* Whether the id was ever given to an object of this kind. */
bool ckt_cudacommon_object_was(uint64_t id, enum ckt_kind kind);
/*
 * A removed object while its slot rests: read only.  NULL if it was freed since, or never existed.
 */
const void *ckt_cudacommon_object_past(uint64_t id, enum ckt_kind kind);
/* Removes the object and frees it a while later. */
void ckt_cudacommon_object_remove(struct ckt_cudacommon_object *object);
/* Calls back for every living object of the kind; the callback may remove it. */
void ckt_cudacommon_object_each(enum ckt_kind kind,
	void (*visit)(struct ckt_cudacommon_object *object, void *data), void *data);
/* The same for those of one context. */
void ckt_cudacommon_object_each_of_context(
	enum ckt_kind kind, uint64_t context, void (*visit)(struct ckt_cudacommon_object *object));

#define ckt_handle_id(handle) ((uint64_t)(uintptr_t)(handle))
