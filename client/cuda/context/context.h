/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts.  The worker makes them.  Only the client knows which context is current in a thread. */
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
	unsigned retained; /* of a primary context: how often */
	unsigned api_version;
	bool destroyed;
	bool first;                    /* made by cuCtxCreate, the version before CUDA 3.2 */
	uint64_t aside;                /* the stream of ckt_client_stream_aside */
	unsigned attached;             /* by cuCtxAttach: references beside the creator's */
	struct ckt_stream_hints hints; /* of the legacy default stream */
	/* Marks (known.h): of all the context's work, and of its legacy default stream. */
	_Atomic uint64_t idle, default_idle;
	/* Devices whose memory this context may access (cuCtxEnablePeerAccess). */
	_Atomic uint64_t peers;
};

/*
 * Finds the calling thread's context.  Without one: CUDA_ERROR_NOT_INITIALIZED,
 * CUDA_ERROR_INVALID_CONTEXT or CUDA_ERROR_CONTEXT_IS_DESTROYED.
 */
CUresult ckt_client_context_current(struct ckt_context **ret_context);
/* Makes the objects of the primary contexts.  Only the first call has an effect. */
void ckt_client_context_init(void);
