/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of the session.
 *
 * Threading: the executor, or who restores while it stands.
 */
#pragma once

#include <cuda.h>
#include <stdint.h>

struct ckt_object;
struct ckt_worker;

/* Makes the context current on the executor. */
CUresult ckt_worker_use_context(struct ckt_worker *worker, uint64_t id);
CUresult ckt_context_primary(
	struct ckt_worker *worker, unsigned device, struct ckt_object **ret_object);
/* The stream may have unfinished work from now on. */
void ckt_worker_mark_dirty(struct ckt_worker *worker, struct ckt_object *stream);
CUresult ckt_context_create(struct ckt_worker *worker, uint64_t id, unsigned flags, unsigned device,
	struct ckt_object **ret_object);
void ckt_object_destroy(struct ckt_worker *worker, struct ckt_object *object);
/* Device memory that the driver takes for the context, until it goes. */
CUresult ckt_context_charge(struct ckt_worker *worker, struct ckt_object *context, uint64_t bytes);
void ckt_context_uncharge(struct ckt_worker *worker, struct ckt_object *context, uint64_t bytes);
CUresult ckt_context_destroy(struct ckt_worker *worker, struct ckt_object *context);
