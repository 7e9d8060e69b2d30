/* SPDX-License-Identifier: Apache-2.0 */
/* Handles. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "softgpu/cuda_api.h"

enum ckt_soft_kind {
	CKT_SOFT_CONTEXT = 1,
	CKT_SOFT_STREAM,
	CKT_SOFT_EVENT,
	CKT_SOFT_MODULE,
	CKT_SOFT_FUNCTION,
	CKT_SOFT_LIBRARY,
	CKT_SOFT_KERNEL,
	CKT_SOFT_LINK,
	CKT_SOFT_PHYSICAL, /* cuMemCreate */
	CKT_SOFT_ARRAY,
	CKT_SOFT_MIPMAP, /* a mipmapped array */
	CKT_SOFT_KINDS,
};

/* The first member of every object with a handle. */
struct ckt_soft_object {
	enum ckt_soft_kind kind;
	atomic_uint refs;
	uint64_t handle;
	void (*destroy)(struct ckt_soft_object *object); /* called for the last reference */
};

/* Gives the object a handle and one reference, the table's.  0 or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult ckt_soft_object_init(struct ckt_soft_object *object, enum ckt_soft_kind kind,
	void (*destroy)(struct ckt_soft_object *object));
/*
 * Returns the object with one more reference, or NULL if the handle does not name an object of this
 * kind.
 */
void *ckt_soft_object_get(const void *handle, enum ckt_soft_kind kind);
/* Whether the handle ever named an object of this kind; its slot may have another kind now. */
bool ckt_soft_object_was(const void *handle, enum ckt_soft_kind kind);
void ckt_soft_object_ref(struct ckt_soft_object *object);
void ckt_soft_object_put(struct ckt_soft_object *object);
/*
 * Removes the handle.  Returns true to exactly one caller, which then owns the table's reference.
 */
bool ckt_soft_object_remove(struct ckt_soft_object *object);
static inline void *ckt_soft_object_handle(const struct ckt_soft_object *object)
{
	return (void *)(uintptr_t)object->handle;
}
