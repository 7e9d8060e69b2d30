/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object table: everything a session has made, by the client's id (rpc/handle.h), with how to
 * make it again.
 *
 * A two-level array indexed by slot; a look-up is two loads and a compare of the whole id.
 * Threading: the executor thread alone (or whoever has frozen it).  Destroying the real objects is
 * the caller's business; the table only knows.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpc/handle.h"

enum {
	CKT_OBJECT_LEAF_BITS = 12,
	CKT_OBJECT_LEAF = 1 << CKT_OBJECT_LEAF_BITS,
	CKT_OBJECT_ROOT = 1 << (CKT_HANDLE_SLOT_BITS - CKT_OBJECT_LEAF_BITS),
	CKT_OBJECTS_MAX = 1 << 20, /* live ones; a program that needs more leaks them */
	CKT_JIT_OPTIONS_MAX = 64,
};

struct ckt_pool;
struct ckt_lib_call;
struct ckt_library_object;
struct ckt_warray;
struct ckt_wtexture;

struct ckt_object {
	uint64_t id;
	/* id of the context it lives in; a context's own id for contexts */
	uint64_t context;
	uint64_t parent; /* module of a function, else 0 */
	/* of creation in this session: what was made later is recreated later */
	uint64_t order;
	void *real;
	union {
		struct {
			unsigned device, flags;
			bool primary;
			/* that have made an object in it: a bit for each enum ckt_lib */
			uint32_t libraries;
			/* streams and events beyond those made at the start; counted_handles.h */
			uint32_t live[2], most[2];
			uint64_t stack_bytes;         /* that is charged for each thread */
			uint64_t journal_stack_bytes; /* the limit as last seen */
			/* of its device's memory: itself, its limits, its streams */
			uint64_t charged;
			/* that took, or may have taken, heap memory; see kernel_heap.h */
			char heap_kernel[128];
			/* the streams that may have work; see fence.h */
			struct ckt_fences *fences;
			/* of the legacy default stream; NULL: none was set */
			struct ckt_stream_attributes *stream_attributes;
		} ctx;
		struct {
			unsigned flags;
			int priority;
			/* may have unfinished work: is in its context's fences */
			bool dirty;
			struct ckt_stream_attributes *attributes; /* NULL: none was set */
		} stream;
		struct {
			unsigned flags;
			bool recorded;
			bool imported; /* of another session */
			/* recorded before the restore: its time is kept in milliseconds */
			bool from_image;
			float image_ms; /* since the image's first recorded event */
		} event;
		struct {
			uint8_t hash[32];
			uint32_t option_count;
			uint32_t *option_keys;   /* owned */
			uint64_t *option_values; /* owned */
			/* variables whose addresses the client has asked for; owned */
			char **seen;
			uint32_t seen_count;
			/* NULL until an image asks (module_variables.h); owned */
			struct ckt_module_variables *variables;
			uint64_t device_bytes; /* of its GPU's memory; charged */
			/* of the host's memory, for what the driver keeps of it unpacked */
			uint64_t host_bytes;
		} module;
		struct {
			char *name;           /* owned */
			uint32_t local_bytes; /* of a thread */
			/* or part of an executable graph; see kernel_heap.h */
			bool launched;
			/* cuFuncSetAttribute calls that succeeded, one entry an attribute */
			uint32_t set_count;
			struct ckt_function_set {
				uint32_t attribute;
				int32_t value;
			} * sets; /* owned */
			bool cache_config_set;
			uint32_t cache_config;
		} function;
		struct ckt_pool *pool;        /* owned */
		struct ckt_warray *array;     /* owned; of mipmapped arrays too */
		struct ckt_wtexture *texture; /* owned; of surfaces too */
		struct {
			unsigned device;
			uint64_t size;
			uint64_t handle;      /* the driver's */
			unsigned compression; /* CUmemAllocationCompType, as asked for */
			bool imported; /* belongs to another session, which is charged for it */
			bool away;     /* imported, and given up while its owner is off the GPU */
		} physical;
		struct ckt_library_object *library; /* owned; see libs/libs.h */
		struct ckt_lib_call *lib_call;      /* owned; see libs/state.h */
	};
};

struct ckt_objects {
	struct ckt_object **root[CKT_OBJECT_ROOT];
	uint64_t count;
	uint64_t next_order;
};

static inline struct ckt_object *ckt_objects_find(const struct ckt_objects *objects, uint64_t id)
{
	uint32_t slot = ckt_handle_slot(id);
	struct ckt_object **leaf = objects->root[slot >> CKT_OBJECT_LEAF_BITS];
	if (__builtin_expect(!leaf, 0))
		return NULL;
	struct ckt_object *object = leaf[slot & (CKT_OBJECT_LEAF - 1)];
	return object && object->id == id ? object : NULL;
}

static inline struct ckt_object *ckt_objects_find_kind(
	const struct ckt_objects *objects, uint64_t id, enum ckt_kind kind)
{
	return ckt_handle_kind(id) == kind ? ckt_objects_find(objects, id) : NULL;
}

/*
 * A zeroed object for a new id.  CUDA_ERROR_INVALID_VALUE if the client may not use the id's kind,
 * its slot (below CKT_HANDLE_FIRST_SLOT unless reserved is true) or the server's bit, or if the
 * slot is taken; CUDA_ERROR_OUT_OF_MEMORY at the limit.
 */
CUresult ckt_objects_add(struct ckt_objects *objects, uint64_t id, enum ckt_kind kind,
	bool reserved, struct ckt_object **ret_object);
/* Forgets the object and frees it with what it owns. */
void ckt_objects_remove(struct ckt_objects *objects, struct ckt_object *object);
/* Next object after slot *cursor (start with 0), in the order of slots; NULL at the end. */
struct ckt_object *ckt_objects_next(const struct ckt_objects *objects, uint32_t *cursor);
/* All objects in the order of their making; the caller frees the array. */
struct ckt_object **ckt_objects_in_order(const struct ckt_objects *objects, size_t *ret_count);
void ckt_objects_fini(struct ckt_objects *objects);
