/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the handlers of forwarded libraries; see call.h. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server/worker/libs/call.h"
#include "server/worker/memory/copy.h"

void ckt_library_free(void *pointer)
{
	free(*(void **)pointer);
}

int ckt_library_take(struct ckt_wcall *call, enum ckt_lib lib, unsigned type, uint64_t id,
	struct ckt_object **ret_object)
{
	CUstream stream;
	struct ckt_object *object = ckt_library_object_find(call->worker, lib, type, id);
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_object = object;
	return ckt_object_stream(call->worker, object->library->stream, &stream);
}

int ckt_library_lacks(const struct ckt_wcall *call, bool *once)
{
	return ckt_worker_unsupported(call->proc->name, once);
}

int ckt_library_done(struct ckt_wcall *call, int status, bool *once)
{
	if (call->header.flags & CKT_CALL_BATCHED)
		return ckt_library_batched(call, status, once);
	/* A failed call leaves no state. */
	call->status = status;
	ckt_put_u32(ckt_wcall_results(call, 4), (uint32_t)status);
	return CUDA_SUCCESS;
}

void *ckt_library_array(const void *data, size_t size)
{
	void *copy = malloc(size + !size);
	if (copy && size)
		memcpy(copy, data, size);
	return copy;
}

uint64_t ckt_library_address(const uint8_t *field)
{
	uint64_t address;
	memcpy(&address, field, sizeof address);
	return address;
}

const void *ckt_library_scalar(
	void *memory, const uint8_t *field, size_t bytes, uint32_t pointer_mode)
{
	if (pointer_mode)
		return (const void *)(uintptr_t)ckt_library_address(field);
	return memcpy(memory, field, bytes);
}

int ckt_library_values_begin(
	struct ckt_wcall *call, struct ckt_library_values *ret, uint32_t pointer_mode, size_t size)
{
	*ret = (struct ckt_library_values){.size = size};
	bool batched = call->header.flags & CKT_CALL_BATCHED;
	/* A batched call has no reply that could carry the values. */
	if (batched && !pointer_mode)
		return CKT_WCALL_GARBAGE;
	if (!pointer_mode)
		ret->piece = ckt_worker_take_piece(call->worker, size);
	return CUDA_SUCCESS;
}

void *ckt_library_value(struct ckt_library_values *values, size_t place, const uint8_t *bytes,
	size_t size, uint64_t address)
{
	if (!values->piece)
		return (void *)(uintptr_t)address;
	size_t room = (size + CKT_LIBRARY_VALUE_BYTES - 1) / CKT_LIBRARY_VALUE_BYTES *
		CKT_LIBRARY_VALUE_BYTES;
	memset(values->piece->data + place, 0, room);
	if (bytes)
		memcpy(values->piece->data + place, bytes, size);
	return values->piece->data + place;
}

/* Replies with the status alone: nothing was put on the stream. */
static int refused(struct ckt_wcall *call, struct ckt_library_values *values, int status)
{
	int32_t word = status;
	ckt_staging_give(&call->worker->staging, values->piece);
	ckt_put_opaque(ckt_wcall_results(call, 4 + sizeof word), &word, sizeof word);
	return CUDA_SUCCESS;
}

int ckt_library_values_end(struct ckt_wcall *call, struct ckt_library_values *values,
	const struct ckt_object *object, int status, bool *once)
{
	CUstream stream;
	if (!values->piece)
		return ckt_library_done(call, status, once);
	if (status)
		return refused(call, values, status);
	memset(values->piece->data, 0, CKT_LIBRARY_VALUE_BYTES);
	CUresult result = ckt_object_stream(call->worker, object->library->stream, &stream);
	return ckt_worker_reply_when_done(
		call, result, object->library->stream, stream, values->piece, values->size);
}
