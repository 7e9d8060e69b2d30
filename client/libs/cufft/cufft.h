/*
 * The client's cuFFT: plans are the program's numbers for the client's ids, and everything else is asked of the genuine library in the worker.
 *
 *	cufftCreate, MakePlan...	waited for: status and size of the work area come back
 *	settings, executions		batched; a plan's stream is kept here and travels with each execution
 *
 * Threading: any thread; one lock guards the table of plans.
 */
#pragma once

#include <cufft.h>
#include <cufftXt.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/libs/libs.h"
#include "rpc/gen/cufft_codec.h"

/* As on the wire: which family of functions a shape came by. */
enum ckt_fft_form { CKT_FFT_1D = 1, CKT_FFT_2D, CKT_FFT_3D, CKT_FFT_MANY, CKT_FFT_MANY64, CKT_FFT_XT };
enum { CKT_FFT_RANK_MAX = 3 };

struct ckt_fft_plan {
	uint64_t id;			/* 0: no plan */
	uint64_t context;		/* that it was made in */
	cudaStream_t stream;
	bool made;
	int type;			/* of CUFFT_C2C ..., 0: of cufftXtMakePlanMany */
	bool real;			/* one of its sides is */
};

/* ---- plan.c */
/* The way to the session with the library open there; an error where there is none. */
cufftResult ckt_fft_enter(const struct ckt_client_table **ret_client);
/* The genuine library's version. */
uint32_t ckt_fft_version(void);
/* A copy of what is known of a plan; false where the handle is none. */
bool ckt_fft_plan_get(cufftHandle handle, struct ckt_fft_plan *ret_plan);
/* What changed of it. */
void ckt_fft_plan_put(cufftHandle handle, const struct ckt_fft_plan *plan);
/* The status for a call that did not reach the library. */
cufftResult ckt_fft_failed(CUresult result);
/* Begins a call with arguments of that size: call.p is where they go. */
cufftResult ckt_fft_begin(const struct ckt_client_table **ret_client, struct ckt_call *call, uint32_t proc, size_t bytes, unsigned flags);

/* Begins, encodes and sends a batched call NAME with the arguments. */
#define CKT_FFT_QUEUE(NAME, name, arguments) \
	({ \
		const struct ckt_client_table *client_; \
		struct ckt_call call_; \
		cufftResult status_ = ckt_fft_begin(&client_, &call_, CKT_CUFFT_PROC_##NAME, ckt_##name##_args_size(arguments), CKT_CALL_F_BATCHED); \
		if (status_ == CUFFT_SUCCESS) { \
			call_.p = ckt_##name##_args_put(call_.p, arguments); \
			status_ = ckt_fft_failed(client_->queue(&call_)); \
		} \
		status_; \
	})

/* The same for one that is waited for: its results, and their status. */
#define CKT_FFT_WAIT(NAME, name, arguments, ret_results, flags) \
	({ \
		const struct ckt_client_table *client_; \
		struct ckt_call call_; \
		struct ckt_reply reply_; \
		cufftResult status_ = ckt_fft_begin(&client_, &call_, CKT_CUFFT_PROC_##NAME, ckt_##name##_args_size(arguments), flags); \
		if (status_ == CUFFT_SUCCESS) { \
			call_.p = ckt_##name##_args_put(call_.p, arguments); \
			status_ = ckt_fft_failed(client_->wait(&call_, &reply_)); \
			if (status_ == CUFFT_SUCCESS) { \
				status_ = ckt_##name##_res_get(&reply_.results, ret_results) ? (cufftResult)(ret_results)->status : CUFFT_INTERNAL_ERROR; \
				client_->release(&reply_); \
			} \
		} \
		status_; \
	})
