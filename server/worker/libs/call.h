/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the generated handlers of forwarded libraries call (rpc/gen/emit_forwarded.py).  A handler
 * decodes, takes its objects, calls the genuine library and says what became of it; nothing of it
 * waits for the GPU.
 *
 * Scalars that come back to the host: the library is told that they lie on the device, and writes
 * them to pinned memory of the worker's, which the device reaches.  The reply goes when the stream
 * has come so far.
 */
#pragma once

#include "server/worker/libs/libs.h"
#include "server/worker/worker.h"

enum { CKT_LIBRARY_VALUE_BYTES = 16 };

void ckt_library_free(void *pointer);
#define CKT_LIBRARY_FREED __attribute__((cleanup(ckt_library_free), unused))

/*
 * The object, whose stream has work from now on.  CUDA_ERROR_INVALID_HANDLE if the id does not name
 * one of that library and type.
 */
int ckt_library_take(struct ckt_wcall *call, enum ckt_lib lib, unsigned type, uint64_t id,
	struct ckt_object **ret_object);
/*
 * CUDA_ERROR_NOT_SUPPORTED: the opened library lacks the function, or none is open.  Logged once.
 */
int ckt_library_lacks(const struct ckt_wcall *call, bool *once);
/*
 * Records the status of a batched call; if a caller waits for it after all, the status is the
 * reply.
 */
int ckt_library_done(struct ckt_wcall *call, int status, bool *once);
/* A copy that is aligned for any type, at least one byte; NULL without memory. */
void *ckt_library_array(const void *data, size_t size);

/* The scalar of a message in aligned memory, or the device address in its place. */
const void *ckt_library_scalar(
	void *memory, const uint8_t *field, size_t bytes, uint32_t pointer_mode);
uint64_t ckt_library_address(const uint8_t *field);

/* For a call that returns scalars: in host mode, the memory for them. */
struct ckt_library_values {
	struct ckt_staging_piece *piece; /* NULL: they stay on the device */
	size_t size;
};

int ckt_library_values_begin(
	struct ckt_wcall *call, struct ckt_library_values *ret, uint32_t pointer_mode, size_t size);
/*
 * The library's argument: the memory with the bytes that the client sent (NULL: none), or the
 * client's own device address.
 */
void *ckt_library_value(struct ckt_library_values *values, size_t place, const uint8_t *bytes,
	size_t size, uint64_t address);
int ckt_library_values_end(struct ckt_wcall *call, struct ckt_library_values *values,
	const struct ckt_object *object, int status, bool *once);
