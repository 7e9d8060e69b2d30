/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plans of the soft GPU's cuFFT, and the numbers by which programs name them.
 *
 *     cufftCreate -> settings -> a MakePlan function, once -> executions -> cufftDestroy
 *
 * One lock guards the table and all plans.  An execution needs only a plan's shape and holds a
 * reference to it, because the plan can be destroyed while the execution waits.  A graph with
 * captured executions holds the shape as a user object.
 */
#pragma once

#include <cuda.h>
#include <cudalibxt.h>
#include <stdatomic.h>

#include "softgpu/libs/cufft/layout.h"

/* The properties of cufftSetPlanPropertyInt64. */
enum { CKT_PLAN_PROPERTIES = 2 };

struct ckt_shape {
	atomic_uint holders;
	struct ckt_layout layout;
};

struct ckt_plan {
	struct ckt_shape *shape; /* NULL before the plan is made */
	CUstream stream;
	CUdeviceptr work;     /* 0: none */
	CUdeviceptr own_work; /* allocated by the plan */
	bool auto_allocate;
	int64_t properties[CKT_PLAN_PROPERTIES];
	unsigned gpu_count; /* 0: the GPU of the current context */
	int gpus[MAX_CUDA_DESCRIPTOR_GPUS];
};

void ckt_soft_cufft_shape_hold(struct ckt_shape *shape);
void ckt_soft_cufft_shape_release(struct ckt_shape *shape);

cufftResult ckt_soft_cufft_plan_create(cufftHandle *ret_handle);
cufftResult ckt_soft_cufft_plan_destroy(cufftHandle handle);
/* Locks the table and finds a plan.  NULL, and not locked, if there is no such plan. */
struct ckt_plan *ckt_soft_cufft_plan_lock(cufftHandle handle);
void ckt_soft_cufft_plan_unlock(void);
/* Copies the size for the first GPU to the other GPUs of the plan. */
void ckt_plan_spread_size(const struct ckt_plan *plan, size_t *sizes);
/*
 * Whether the driver knows the memory at both ends.  Access to an unknown address would end the
 * process.
 */
bool ckt_plan_is_memory(const void *first, size_t bytes);
/*
 * Makes a plan.  ret_work_bytes: one size for each GPU, written on success.  Precondition: locked.
 */
cufftResult ckt_soft_cufft_plan_make(
	struct ckt_plan *plan, const struct ckt_layout_request *request, size_t *ret_work_bytes);
/* Queues an execution.  Precondition: locked, and the plan is made. */
cufftResult ckt_soft_cufft_plan_run(struct ckt_plan *plan, void *in, void *out, bool inverse);
