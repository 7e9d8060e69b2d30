/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids of objects: made by the client, known to both sides; see docs/wire.md, "Handles".
 *
 *	63      60  56 55                 24 23           0
 *	| server | kind | generation         | slot         |
 */
#pragma once

#include <stdint.h>

enum ckt_kind {
	CKT_KIND_NONE = 0,
	CKT_KIND_CONTEXT = 1,
	CKT_KIND_STREAM = 2,
	CKT_KIND_EVENT = 3,
	CKT_KIND_MODULE = 4,
	CKT_KIND_FUNCTION = 5,
	CKT_KIND_POOL = 16,
	CKT_KIND_ARRAY = 17,
	CKT_KIND_TEXTURE = 18,
	CKT_KIND_SURFACE = 19,
	CKT_KIND_PHYSICAL = 20, /* of cuMemCreate */
	/* a mipmapped array; the arrays of its levels are the client's alone */
	CKT_KIND_MIPMAP = 21,
	/* to the worker: a description that was sent but not yet used */
	CKT_KIND_GRAPH = 12,
	CKT_KIND_GRAPH_EXEC = 13,
	CKT_KIND_LIB_OBJECT = 27, /* of a forwarded library: a handle, a plan, a descriptor */
	CKT_KIND_LIB_CALL = 28,   /* a library call that was captured */
	/* Kinds that only the client knows. */
	CKT_KIND_GRAPH_NODE = 22,
	CKT_KIND_USER_OBJECT = 23,
	CKT_KIND_LIBRARY = 24,
	CKT_KIND_KERNEL = 25,
	CKT_KIND_LINK = 26,
};

enum {
	CKT_HANDLE_SLOT_BITS = 24,
	CKT_HANDLE_FIRST_SLOT = 64, /* below: constants such as the primary contexts */
	CKT_HANDLE_SLOTS = 1 << CKT_HANDLE_SLOT_BITS,
};

static inline uint64_t ckt_handle_make(enum ckt_kind kind, uint32_t generation, uint32_t slot)
{
	return (uint64_t)kind << 56 | (uint64_t)generation << 24 | slot;
}

static inline uint32_t ckt_handle_slot(uint64_t id)
{
	return id & (CKT_HANDLE_SLOTS - 1);
}

static inline enum ckt_kind ckt_handle_kind(uint64_t id)
{
	return id >> 56 & 31;
}

static inline uint64_t ckt_handle_primary(unsigned device)
{
	return ckt_handle_make(CKT_KIND_CONTEXT, 0, device + 1);
}

/* The default memory pool of a device: a constant, beside the table. */
static inline uint64_t ckt_handle_default_pool(unsigned device)
{
	return ckt_handle_make(CKT_KIND_POOL, 0, device + 1);
}
