/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuFFT in the worker: the functions that the generated handlers need of a plan, and the functions
 * that the handwritten handlers share.
 */
#pragma once

#include <cufft.h>
#include <cufftXt.h>

#include "rpc/gen/cufft_codec.h"
#include "rpc/gen/cufft_functions.h"
#include "server/worker/libs/call.h"

extern const struct ckt_library ckt_library_cufft;

enum { CKT_CUFFT_CALLBACKS = CUFFT_CB_UNDEFINED };

/* The GPUs that a plan was given. */
struct ckt_cufft_worker_gpus {
	unsigned count;
	uint64_t contexts[MAX_CUDA_DESCRIPTOR_GPUS];
	int ordinals[MAX_CUDA_DESCRIPTOR_GPUS]; /* the genuine library's ordinals */
	size_t sizes[MAX_CUDA_DESCRIPTOR_GPUS]; /* as the library reported them last */
};

/* Our own notes on a plan. */
struct ckt_cufft_notes {
	CUstream stream; /* the stream that the genuine plan got last */
	size_t size;     /* as the library reported it last */
	/* cufft_gpus.c; NULL: the GPU of the plan's context */
	struct ckt_cufft_worker_gpus *gpus;
	/* cufft_callback.c; by cufftXtCallbackType */
	struct ckt_cufft_code *codes[CKT_CUFFT_CALLBACKS];
};

/* Called when the genuine plan has ended.  Any thread. */
void ckt_worker_cufft_codes_free(struct ckt_cufft_notes *notes);

/* The memory where the genuine library may write the sizes of the plan: one for each GPU. */
static inline size_t *ckt_cufft_sizes(struct ckt_object *plan)
{
	struct ckt_cufft_notes *notes = plan->library->data;
	return notes->gpus ? notes->gpus->sizes : &notes->size;
}

/*
 * Puts the plan's work on that stream.  The genuine plan is told only of a change.  Returns the
 * library's status.
 */
int ckt_worker_cufft_use_stream(struct ckt_object *plan, CUstream stream);

/*
 * Whether the library may have had too little memory for a plan.  Of a work area it says
 * CUFFT_INTERNAL_ERROR (cuFFT 12.0 on an H200, tests/gpu/library_waits).
 */
static inline bool ckt_worker_cufft_out_of_memory(int status)
{
	return status == CUFFT_ALLOC_FAILED || status == CUFFT_INTERNAL_ERROR;
}

/* The object and the plan behind an id; CUDA_ERROR_INVALID_HANDLE if there is none. */
CUresult ckt_worker_cufft_plan(struct ckt_worker *worker, uint64_t id,
	struct ckt_object **ret_object, cufftHandle *ret_plan);
