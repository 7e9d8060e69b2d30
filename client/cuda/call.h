/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Macros that make one remote CUDA call in one expression.
 *
 * Every function in client/cuda with a name cu* is CUDA's and follows the CUDA Driver API reference
 * of 13.0.  The functions of this room return a CUresult.  They write outputs only on success.  Any
 * thread may call them.
 */
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "exported names are defined here: compile with -D__CUDA_API_VERSION_INTERNAL"
#endif
#include <cuda.h>

#include "client/conn/call.h"
#include "rpc/gen/cuda_codec.h"

/*
 * Encodes and queues a batched call, for example
 * CKT_BATCHED(stream_create, STREAM_CREATE, .id = id, .flags = flags).
 */
#define CKT_BATCHED(name, NAME, ...)                                         \
	({                                                                   \
		struct ckt_##name##_args args_ = {__VA_ARGS__};              \
		struct ckt_call call_;                                       \
		CUresult result_ = ckt_call_begin(&call_, CKT_PROC_##NAME,   \
			ckt_##name##_args_size(&args_), CKT_CALL_F_BATCHED); \
		if (!result_) {                                              \
			ckt_##name##_args_put(call_.p, &args_);              \
			result_ = ckt_call_queue(&call_);                    \
		}                                                            \
		result_;                                                     \
	})

/*
 * The same for a waited call.  flags: 0 or CKT_CALL_F_NUMBERED. reply: NULL, or the place for the
 * results, which the caller releases after success.
 */
#define CKT_WAITED(name, NAME, flags, reply, ...)                                        \
	({                                                                               \
		struct ckt_##name##_args args_ = {__VA_ARGS__};                          \
		struct ckt_call call_;                                                   \
		CUresult result_ = ckt_call_begin(                                       \
			&call_, CKT_PROC_##NAME, ckt_##name##_args_size(&args_), flags); \
		if (!result_) {                                                          \
			ckt_##name##_args_put(call_.p, &args_);                          \
			result_ = ckt_call_wait(&call_, reply);                          \
		}                                                                        \
		result_;                                                                 \
	})
