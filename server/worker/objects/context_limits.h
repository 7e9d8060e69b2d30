/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of contexts (cuCtxSetLimit): what the driver takes of the device's memory for them counts
 * as the session's, and each change stands in the journal, because it moves addresses.
 *
 * Threading: the executor, or who restores.
 */
#pragma once

#include <cuda.h>

struct ckt_object;
struct ckt_worker;

/* Enters every cuCtxSetLimit from now on.  Precondition: the driver is open. */
void ckt_limits_watch(struct ckt_worker *worker);
/* Enters the first steps of a new context, which is current. */
void ckt_limits_begin(struct ckt_object *context);
/*
 * Before a launch of a kernel with more local memory than any before: that memory counts.
 * CUDA_ERROR_OUT_OF_MEMORY where the session may not have it.
 */
CUresult ckt_limits_charge_local(struct ckt_worker *worker, const struct ckt_object *function);
/* Enters the launch of a kernel with more local memory than any before in the current context. */
void ckt_limits_launched(struct ckt_worker *worker, const struct ckt_object *function);
/* Enters local memory that kernels of a library have made the driver take, before the next step. */
void ckt_limits_grown(struct ckt_worker *worker, struct ckt_object *context);
