/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's cuFFT: plans are the program's numbers for the client's ids, and everything else is
 * asked of the genuine library in the worker by generated stubs (rpc/api/cufft.api).  Here is what
 * they need of a plan, and what no message carries.
 *
 *	cufftCreate, MakePlan...	waited for: status and size of the work area come back
 *	settings, executions		batched; a plan's stream is kept here and travels with each execution
 *
 * Threading: any thread, a plan for one at a time; one lock guards the table of plans, which are
 * never freed.
 */
#pragma once

#pragma GCC visibility push(default)
#include <cufft.h>
#include <cufftXt.h>
#pragma GCC visibility pop
#include <stdbool.h>
#include <stdint.h>

#include "client/libs/libs.h"
#include "rpc/gen/cufft_codec.h"

/* The GPUs that a plan was given, in the program's order. */
struct ckt_cufft_client_gpus {
	unsigned count;
	int ordinals[MAX_CUDA_DESCRIPTOR_GPUS]; /* the program's */
	uint64_t contexts[MAX_CUDA_DESCRIPTOR_GPUS];
};

struct ckt_cufft_plan {
	struct ckt_lib_object object;       /* first; id 0: no plan */
	cudaStream_t stream;                /* as the program gave it */
	struct ckt_cufft_client_gpus *gpus; /* NULL: that of its context */
	bool made;
	bool real;              /* one of its sides is */
	unsigned complex_bytes; /* of a complex number; 0: none is known */
	uint64_t host_bytes;    /* of all its numbers as complex ones, packed */
};

/* ---- plan.c */
/* The session with the library open there; an error where there is none. */
CUresult ckt_cufft_enter(void);
struct ckt_cufft_plan *ckt_cufft_plan_of(cufftHandle handle);
/* NULL where the number is none. */
struct ckt_lib_object *ckt_cufft_take_plan(cufftHandle handle);
/* The status for a call that did not reach the library. */
cufftResult ckt_cufft_failed(CUresult result);
/* Logs the name once; always CUFFT_NOT_SUPPORTED. */
int ckt_cufft_unsupported(const char *name, bool *once);

static inline cufftResult ckt_cufft_no_plan(void)
{
	return CUFFT_INVALID_PLAN;
}

static inline cufftResult ckt_cufft_invalid(void)
{
	return CUFFT_INVALID_VALUE;
}

/* The session's error, else the library's status. */
static inline cufftResult ckt_cufft_answer(CUresult result, int status)
{
	return __builtin_expect(result != CUDA_SUCCESS, 0) ? ckt_cufft_failed(result)
							   : (cufftResult)status;
}

/* Begins, encodes and waits for the call NAME, written by hand: its results, and the status. */
#define CKT_CUFFT_WAIT(NAME, name, arguments, ret_results)                                         \
	({                                                                                         \
		const struct ckt_client_table *client_ = ckt_client();                             \
		struct ckt_call call_;                                                             \
		struct ckt_reply reply_;                                                           \
		CUresult result_ =                                                                 \
			client_->begin(&call_, CKT_LIB_PROC(CKT_LIB_CUFFT, CKT_CUFFT_PROC_##NAME), \
				ckt_##name##_args_size(arguments), CKT_CALL_F_NUMBERED);           \
		if (!result_) {                                                                    \
			call_.p = ckt_##name##_args_put(call_.p, arguments);                       \
			result_ = client_->wait(&call_, &reply_);                                  \
			if (!result_) {                                                            \
				result_ = ckt_##name##_res_get(&reply_.results, ret_results)       \
					? CUDA_SUCCESS                                             \
					: CUDA_ERROR_UNKNOWN;                                      \
				client_->release(&reply_);                                         \
			}                                                                          \
		}                                                                                  \
		ckt_cufft_answer(result_, result_ ? 0 : (ret_results)->status);                    \
	})

static inline bool ckt_cufft_is_real(const struct ckt_lib_object *plan)
{
	return ((const struct ckt_cufft_plan *)plan)->real;
}

/*
 * ---- make.c: what is known of a plan once it is made, of a cufftType or of the types of its two
 * sides
 */
void ckt_cufft_made(struct ckt_lib_object *plan, cufftType type);
void ckt_cufft_made_of(struct ckt_lib_object *plan, cudaDataType input, cudaDataType output);
/* Its rows and how long they are.  Of a transform with a real side half of a row is complex. */
void ckt_cufft_shaped(struct ckt_lib_object *plan, uint64_t rows, uint64_t length);
/* The rows of one transform: the product of all dimensions but the last. */
#define CKT_CUFFT_ROWS(n, rank)                         \
	({                                              \
		uint64_t rows_ = 1;                     \
		for (int i_ = 0; i_ + 1 < (rank); i_++) \
			rows_ *= (uint64_t)(n)[i_];     \
		rows_;                                  \
	})

/* ---- gpus.c */
/* The library told sizes of a plan for several GPUs: sizes[] has the first, and gets all. */
void ckt_cufft_sizes_told(struct ckt_lib_object *plan, size_t *sizes);
/* cufftXtSetWorkArea of such a plan. */
cufftResult ckt_cufft_set_work_areas(struct ckt_cufft_plan *plan, void **areas);

/* ---- execute.c */
/* Whether the plan can be executed now, as the library has it; the id of its stream. */
cufftResult ckt_cufft_ready(const struct ckt_lib_object *plan, uint64_t *ret_stream);
/* As ckt_cufft_answer, of an execution. */
cufftResult ckt_cufft_executed(CUresult result, int status);
