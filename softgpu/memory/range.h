/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all known address ranges. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bounds.h"
#include "softgpu/cuda_api.h"

struct ckt_soft_context;
struct ckt_soft_device;
struct ckt_soft_physical;

enum ckt_soft_range_kind {
	CKT_SOFT_RANGE_DEVICE = 1, /* cuMemAlloc */
	CKT_SOFT_RANGE_MANAGED,
	CKT_SOFT_RANGE_GLOBAL, /* of a module */
	CKT_SOFT_RANGE_HEAP,   /* device malloc */
	CKT_SOFT_RANGE_HOST,   /* cuMemHostAlloc */
	CKT_SOFT_RANGE_REGISTERED,
	CKT_SOFT_RANGE_MAPPED, /* cuMemMap */
};

struct ckt_soft_range {
	uint64_t base, size; /* as requested */
	enum ckt_soft_range_kind kind;
	unsigned flags;                   /* of the call that made the range */
	uint64_t id;                      /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
	struct ckt_soft_context *context; /* NULL for cuMemMap */
	struct ckt_soft_device *device;
	int sync_memops;
	uint64_t pool; /* the ID of the memory pool; 0: none */
	/* cuMemMap */
	struct ckt_soft_physical *physical;
	uint64_t offset;
	uint8_t access[CKT_DEVICES_MAX]; /* CUmemAccess_flags by device */
};

/* Copies the range that contains address.  False if there is none. */
bool ckt_soft_range_find(uint64_t address, struct ckt_soft_range *ret_range);
/* CUDA_ERROR_OUT_OF_MEMORY, or CUDA_ERROR_INVALID_VALUE if the range overlaps another. */
CUresult ckt_soft_range_add(const struct ckt_soft_range *range);
/* Removes the range that begins at base if its kind is in the mask (1 << kind). */
bool ckt_soft_range_remove(uint64_t base, unsigned kinds, struct ckt_soft_range *ret_range);
/*
 * Calls visit for every range that overlaps, under the table's lock.  visit must not change base or
 * size.
 */
void ckt_soft_range_visit(uint64_t base, uint64_t size,
	void (*visit)(struct ckt_soft_range *range, void *data), void *data);
/* Finds any range of the context; false if there is none. */
bool ckt_soft_range_of_context(
	const struct ckt_soft_context *context, struct ckt_soft_range *ret_range);
uint64_t ckt_soft_range_next_id(void);
