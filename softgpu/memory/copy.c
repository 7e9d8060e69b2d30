/* SPDX-License-Identifier: Apache-2.0 */
/* See copy.h. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/memory/copy.h"
#include "softgpu/context/context.h"
#include "softgpu/context/object.h"
#include "softgpu/memory/memmap.h"
#include "softgpu/memory/memory.h"
#include "softgpu/memory/range.h"
#include "softgpu/module/kernel_output.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/stream.h"

enum {
	/* the call copies pageable sources up to this size, as a real driver does */
	STAGE_MAX = 64 << 10,
	SHORT_MAX = 16 << 10, /* the call runs copies up to this size if the stream is idle */
};

void ckt_soft_copy_run(const struct ckt_soft_copy *copy)
{
	uint64_t width = copy->width, height = copy->height;
	/* Copy dense rows as one long row. */
	if (copy->to.pitch == width && copy->from.pitch == width) {
		width *= height;
		height = 1;
	}
	for (uint64_t z = 0; z < copy->depth; z++) {
		char *to = (char *)(uintptr_t)(copy->to.address + z * copy->to.slice);
		const char *from =
			(const char *)(uintptr_t)(copy->from.address + z * copy->from.slice);
		for (uint64_t y = 0; y < height; y++)
			memmove(to + y * copy->to.pitch, from + y * copy->from.pitch, width);
	}
}

/* The number of bytes from the first to the last accessed byte.  False on overflow. */
static bool span_of(
	const struct ckt_soft_copy_end *end, const struct ckt_soft_copy *copy, uint64_t *ret_span)
{
	uint64_t rows, slices, span;
	if (__builtin_mul_overflow(copy->height - 1, end->pitch, &rows) ||
		__builtin_mul_overflow(copy->depth - 1, end->slice, &slices) ||
		__builtin_add_overflow(rows, slices, &span) ||
		__builtin_add_overflow(span, copy->width, &span) || end->address + span < span)
		return false;
	*ret_span = span;
	return true;
}

CUresult ckt_soft_copy_check(
	const struct ckt_soft_copy_end *end, const struct ckt_soft_copy *copy, uint8_t bits)
{
	uint64_t span;
	if (end->place == CKT_SOFT_PLACE_ARRAY)
		return CUDA_SUCCESS;
	if (!end->address || !span_of(end, copy, &span))
		return CUDA_ERROR_INVALID_VALUE;
	bool ok = true;
	if (end->place == CKT_SOFT_PLACE_DEVICE ||
		(end->place == CKT_SOFT_PLACE_ANY && ckt_soft_memory_is_device_space(end->address)))
		ok = ckt_soft_memory_ok(end->address, span, bits);
	else if (end->place == CKT_SOFT_PLACE_HOST && ckt_soft_memory_is_device_space(end->address))
		ok = ckt_soft_memory_ok(end->address, span,
			/* a device pointer in place of a host pointer works if it is valid */
			bits);
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool pageable(const struct ckt_soft_copy_end *end)
{
	struct ckt_soft_range range;
	return end->place != CKT_SOFT_PLACE_DEVICE && end->place != CKT_SOFT_PLACE_ARRAY &&
		!ckt_soft_range_find(end->address, &range);
}

static void run_copy(struct ckt_soft_context *context, void *payload)
{
	(void)context;
	ckt_soft_copy_run(payload);
}

/* The source's bytes follow the descriptor. */
static void run_staged(struct ckt_soft_context *context, void *payload)
{
	(void)context;
	struct ckt_soft_copy copy = *(struct ckt_soft_copy *)payload;
	copy.from.address = (uint64_t)(uintptr_t)payload + sizeof(copy);
	ckt_soft_copy_run(&copy);
}

static CUresult submit_staged(struct ckt_soft_stream *stream, const struct ckt_soft_copy *copy)
{
	unsigned char small[1024], *staged = small;
	if (sizeof(*copy) + copy->width > sizeof(small))
		staged = malloc(sizeof(*copy) + copy->width);
	if (!staged)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(staged, copy, sizeof(*copy));
	memcpy(staged + sizeof(*copy), (const void *)(uintptr_t)copy->from.address, copy->width);
	CUresult result = ckt_soft_stream_submit(stream, run_staged, staged,
		sizeof(*copy) + copy->width, CKT_SOFT_INLINE, NULL, 0, NULL);
	if (staged != small)
		free(staged);
	return result;
}

static CUmemorytype type_of(const struct ckt_soft_copy_end *end)
{
	switch (end->place) {
	case CKT_SOFT_PLACE_ARRAY:
		return CU_MEMORYTYPE_ARRAY;
	case CKT_SOFT_PLACE_DEVICE:
		return CU_MEMORYTYPE_DEVICE;
	case CKT_SOFT_PLACE_HOST:
		return CU_MEMORYTYPE_HOST;
	default:
		return ckt_cudacommon_on_device(end->address) ? CU_MEMORYTYPE_DEVICE
							      : CU_MEMORYTYPE_HOST;
	}
}

/* Precondition: entered.  The capture records pointers: the launch reads the bytes. */
static CUresult capture(struct ckt_capture_stream *capturing, const struct ckt_soft_copy *c)
{
	struct ckt_node *node;
	CUresult result = ckt_capture_append(capturing, CU_GRAPH_NODE_TYPE_MEMCPY, &node);
	if (result != CUDA_SUCCESS)
		return result;
	node->copy = (CUDA_MEMCPY3D){
		.srcMemoryType = type_of(&c->from),
		.srcXInBytes = c->from.x,
		.srcY = c->from.y,
		.srcZ = c->from.z,
		.srcArray = c->from.array,
		.dstMemoryType = type_of(&c->to),
		.dstXInBytes = c->to.x,
		.dstY = c->to.y,
		.dstZ = c->to.z,
		.dstArray = c->to.array,
		.WidthInBytes = c->width,
		.Height = c->height,
		.Depth = c->depth,
	};
	if (!c->from.array) {
		node->copy.srcHost = (const void *)(uintptr_t)c->from.address;
		node->copy.srcDevice = c->from.address;
		node->copy.srcPitch = c->from.pitch;
		node->copy.srcHeight = c->depth > 1 ? c->from.slice / c->from.pitch : c->height;
	}
	if (!c->to.array) {
		node->copy.dstHost = (void *)(uintptr_t)c->to.address;
		node->copy.dstDevice = c->to.address;
		node->copy.dstPitch = c->to.pitch;
		node->copy.dstHeight = c->depth > 1 ? c->to.slice / c->to.pitch : c->height;
	}
	return CUDA_SUCCESS;
}

CUresult ckt_soft_copy_submit(const struct ckt_soft_copy *copy, CUstream handle, bool wait)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_stream *stream;
	result = ckt_soft_stream_get(context, handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (copy->width == 0 || copy->height == 0 || copy->depth == 0) {
		if (wait)
			result = ckt_soft_context_result(context);
		ckt_soft_object_put(&stream->object);
		return result;
	}
	result = ckt_soft_copy_check(&copy->to, copy, CKT_SOFT_PAGE_WRITE);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_copy_check(&copy->from, copy, CKT_SOFT_PAGE_READ);
	struct ckt_capture_stream *capturing = NULL;
	if (result == CUDA_SUCCESS)
		result = ckt_soft_capture(stream, &capturing);
	/* A thread that captures must not make a blocking copy. */
	if (result == CUDA_SUCCESS && wait && !capturing)
		result = ckt_soft_capture_unsafe();
	if (capturing) {
		result = ckt_graph_leave(capture(capturing, copy));
	} else if (result == CUDA_SUCCESS) {
		bool one_row = copy->height == 1 && copy->depth == 1;
		/* A graph launch does not wait; each node reads the memory when it runs. */
		bool async = !wait && !ckt_soft_in_graph,
		     from_pageable = async && pageable(&copy->from),
		     to_pageable = async && pageable(&copy->to);
		if (from_pageable && !to_pageable && one_row && copy->width <= STAGE_MAX) {
			result = submit_staged(stream, copy);
		} else {
			bool is_short = copy->height <= SHORT_MAX && copy->depth <= SHORT_MAX &&
				copy->width <= SHORT_MAX &&
				copy->width * copy->height * copy->depth <= SHORT_MAX;
			bool block = wait || from_pageable || to_pageable;
			result = ckt_soft_stream_submit(stream, run_copy, copy, sizeof(*copy),
				block              ? CKT_SOFT_BLOCK
					: is_short ? CKT_SOFT_INLINE
						   : 0,
				NULL, 0, NULL);
			if (wait) {
				ckt_soft_output_flush(context);
				if (result == CUDA_SUCCESS)
					result = ckt_soft_context_result(context);
			}
		}
	}
	ckt_soft_object_put(&stream->object);
	return result;
}
