/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS in the worker: the functions that the generated handlers need of a handle. */
#pragma once

#include "rpc/cublas.h"
#include "rpc/gen/cublas_codec.h"
#include "rpc/gen/cublas_functions.h"
#include "server/worker/libs/call.h"

extern const struct ckt_library ckt_library_cublas;

/* Sets the pointer mode of the call's scalars.  The genuine handle is told only of a change. */
void ckt_worker_cublas_use_pointer_mode(struct ckt_object *handle, uint32_t mode);
