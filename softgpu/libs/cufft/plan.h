/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plans of the soft GPU's cuFFT: the numbers that programs hold, and the plans that they name.
 *
 *     cufftCreate -> settings -> a MakePlan function, once -> executions -> cufftDestroy
 *
 * One lock guards the table and all plans.  Executions need only a plan's shape, and hold a
 * reference to it, since a plan may be destroyed while they wait; a graph that captured some holds
 * it as a user object.
 */
#pragma once

#include <cuda.h>
#include <cudalibxt.h>
#include <stdatomic.h>

#include "softgpu/libs/cufft/layout.h"

/* cufftSetPlanPropertyInt64's. */
enum { CKT_PLAN_PROPERTIES = 2 };

struct ckt_shape {
	atomic_uint holders;
	struct ckt_layout layout;
};

struct ckt_plan {
	struct ckt_shape *shape; /* NULL until it is made */
	CUstream stream;
	CUdeviceptr work;     /* 0: none yet */
	CUdeviceptr own_work; /* what the plan allocated itself */
	bool auto_allocate;
	int64_t properties[CKT_PLAN_PROPERTIES];
	unsigned gpu_count; /* 0: that of the current context */
	int gpus[MAX_CUDA_DESCRIPTOR_GPUS];
};

void ckt_soft_cufft_shape_hold(struct ckt_shape *shape);
void ckt_soft_cufft_shape_release(struct ckt_shape *shape);

cufftResult ckt_soft_cufft_plan_create(cufftHandle *ret_handle);
cufftResult ckt_soft_cufft_plan_destroy(cufftHandle handle);
/* Locks the table; NULL, with nothing locked, if there is no such plan. */
struct ckt_plan *ckt_soft_cufft_plan_lock(cufftHandle handle);
void ckt_soft_cufft_plan_unlock(void);
/* Sizes go to one place for each GPU of a plan: the first has it, and they are the same. */
void ckt_plan_spread_size(const struct ckt_plan *plan, size_t *sizes);
/*
 * Whether the driver knows memory at both ends: an address that it does not know would end the
 * process.
 */
bool ckt_plan_is_memory(const void *first, size_t bytes);
/* ret_work_bytes: written on success, for each GPU.  Precondition: locked. */
cufftResult ckt_soft_cufft_plan_make(
	struct ckt_plan *plan, const struct ckt_layout_request *request, size_t *ret_work_bytes);
/* Precondition: locked, made. */
cufftResult ckt_soft_cufft_plan_run(struct ckt_plan *plan, void *in, void *out, bool inverse);
