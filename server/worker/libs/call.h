/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the generated handlers of forwarded libraries call (rpc/gen/emit_forwarded.py).  A
 * handler decodes the call, finds its objects, calls the genuine library and reports the status.
 * No handler waits for the GPU.
 *
 * Scalars that return to the host: the handler tells the library that they lie on the device and
 * passes pinned memory of the worker that the device can reach.  The worker sends the reply when
 * the stream has completed the call.
 */
#pragma once

#include "server/worker/libs/libs.h"
#include "server/worker/worker.h"

enum { CKT_LIBRARY_VALUE_BYTES = 16 };

void ckt_library_free(void *pointer);
#define CKT_LIBRARY_FREED __attribute__((cleanup(ckt_library_free), unused))

/*
 * Finds the object and marks its stream as busy.  CUDA_ERROR_INVALID_HANDLE if the id does not name
 * an object of that library and type.
 */
int ckt_library_take(struct ckt_wcall *call, enum ckt_lib lib, unsigned type, uint64_t id,
	struct ckt_object **ret_object);
/*
 * CUDA_ERROR_NOT_SUPPORTED: the opened library lacks the function, or no library is open.  Logged
 * once.
 */
int ckt_library_lacks(const struct ckt_wcall *call, bool *once);
/*
 * Records the status of a batched call.  If the caller waits for the call, the status is the reply.
 */
int ckt_library_done(struct ckt_wcall *call, int status, bool *once);
/* A copy of at least one byte, aligned for any type; NULL if there is no memory. */
void *ckt_library_array(const void *data, size_t size);

/* The scalar of a message, copied to aligned memory, or its device address. */
const void *ckt_library_scalar(
	void *memory, const uint8_t *field, size_t bytes, uint32_t pointer_mode);
uint64_t ckt_library_address(const uint8_t *field);

/* The scalars that a call returns.  In host mode, the piece holds them. */
struct ckt_library_values {
	struct ckt_staging_piece *piece; /* NULL: the scalars stay on the device */
	size_t size;
};

int ckt_library_values_begin(
	struct ckt_wcall *call, struct ckt_library_values *ret, uint32_t pointer_mode, size_t size);
/*
 * The argument for the library: memory that holds the bytes the client sent (NULL: none), or the
 * client's own device address.
 */
void *ckt_library_value(struct ckt_library_values *values, size_t place, const uint8_t *bytes,
	size_t size, uint64_t address);
int ckt_library_values_end(struct ckt_wcall *call, struct ckt_library_values *values,
	const struct ckt_object *object, int status, bool *once);
