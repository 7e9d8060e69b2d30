/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts.  The worker makes them; which one a thread has current is known here alone. */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

#include "client/cuda/stream/stream_hints.h"
#include "cudacommon/object.h"

struct ckt_context {
	struct ckt_cudacommon_object object;
	CUdevice device;
	unsigned flags;
	bool primary;
	unsigned retained; /* of a primary context */
	unsigned api_version;
	bool destroyed;
	bool first;                    /* made by the first cuCtxCreate */
	uint64_t aside;                /* ckt_client_stream_aside */
	unsigned attached;             /* by cuCtxAttach, beside who made it */
	struct ckt_stream_hints hints; /* of the legacy default stream */
	/* known.h: of all that the context has, and of the legacy default stream */
	_Atomic uint64_t idle, default_idle;
	/* devices whose memory this context may reach: cuCtxEnablePeerAccess */
	_Atomic uint64_t peers;
};

/*
 * The calling thread's context; CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_INVALID_CONTEXT or
 * CUDA_ERROR_CONTEXT_IS_DESTROYED where there is none.
 */
CUresult ckt_client_context_current(struct ckt_context **ret_context);
/* Makes the objects of the primary contexts; called once by cuInit. */
void ckt_client_context_init(void);
