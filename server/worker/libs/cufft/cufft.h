/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuFFT in the worker: what the generated handlers need of a plan, and what those written by hand
 * share.
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
	int ordinals[MAX_CUDA_DESCRIPTOR_GPUS]; /* the genuine library's */
	size_t sizes[MAX_CUDA_DESCRIPTOR_GPUS]; /* that it reported last */
};

/* Our own notes on a plan. */
struct ckt_cufft_notes {
	CUstream stream; /* that the genuine plan was given last */
	size_t size;     /* that the library reported last */
	/* cufft_gpus.c; NULL: that of its context */
	struct ckt_cufft_worker_gpus *gpus;
	/* cufft_callback.c; by cufftXtCallbackType */
	struct ckt_cufft_code *codes[CKT_CUFFT_CALLBACKS];
};

/* When the genuine plan has ended.  Any thread. */
void ckt_worker_cufft_codes_free(struct ckt_cufft_notes *notes);

/* Where the genuine library may write a size of the plan: one for each of its GPUs. */
static inline size_t *ckt_cufft_sizes(struct ckt_object *plan)
{
	struct ckt_cufft_notes *notes = plan->library->data;
	return notes->gpus ? notes->gpus->sizes : &notes->size;
}

/*
 * Puts the plan's work on that stream; tells the genuine plan only about changes.  The library's
 * status.
 */
int ckt_worker_cufft_use_stream(struct ckt_object *plan, CUstream stream);

/* Whether a plan could not be made for lack of memory. */
static inline bool ckt_worker_cufft_out_of_memory(int status)
{
	return status == CUFFT_ALLOC_FAILED;
}

/* The object and the plan behind an id; CUDA_ERROR_INVALID_HANDLE if there is none. */
CUresult ckt_worker_cufft_plan(struct ckt_worker *worker, uint64_t id,
	struct ckt_object **ret_object, cufftHandle *ret_plan);
