/* SPDX-License-Identifier: Apache-2.0 */
/* cuMemset*. */
#include <string.h>

#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/object.h"
#include "softgpu/memory/copy.h"
#include "softgpu/memory/memmap.h"
#include "softgpu/memory/range.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/stream.h"

struct fill {
	struct ckt_soft_copy area; /* only `to` is used */
	unsigned unit;             /* bytes: 1, 2 or 4 */
	uint32_t value;
};

static void run_fill(struct ckt_soft_context *context, void *payload)
{
	(void)context;
	const struct fill *fill = payload;
	const struct ckt_soft_copy *area = &fill->area;
	for (uint64_t y = 0; y < area->height; y++) {
		unsigned char *row =
			(unsigned char *)(uintptr_t)(area->to.address + y * area->to.pitch);
		unsigned char low = (unsigned char)fill->value;
		bool same = fill->unit == 1 ||
			fill->value == low * (fill->unit == 2 ? 0x101u : 0x1010101u);
		if (same) {
			memset(row, low, area->width);
			continue;
		}
		/* Write whole units, because a kernel may read the memory meanwhile. */
		if (fill->unit == 2) {
			uint16_t *to = (uint16_t *)row;
			for (uint64_t x = 0; x < area->width / 2; x++)
				to[x] = (uint16_t)fill->value;
		} else {
			uint32_t *to = (uint32_t *)row;
			for (uint64_t x = 0; x < area->width / 4; x++)
				to[x] = fill->value;
		}
	}
}

/* A memset of another device's memory needs access to it; a copy does not (seen on two H200s). */
static bool out_of_reach(uint64_t address, struct ckt_soft_context *context)
{
	struct ckt_soft_range range;
	return ckt_soft_range_find(address, &range) && range.kind == CKT_SOFT_RANGE_DEVICE &&
		range.device != context->device && !(context->peers >> range.device->ordinal & 1);
}

/* Precondition: entered. */
static CUresult capture(struct ckt_capture_stream *capturing, const struct fill *fill)
{
	struct ckt_node *node;
	CUresult result = ckt_capture_append(capturing, CU_GRAPH_NODE_TYPE_MEMSET, &node);
	if (result == CUDA_SUCCESS)
		node->fill = (CUDA_MEMSET_NODE_PARAMS){.dst = fill->area.to.address,
			.pitch = fill->area.to.pitch,
			.value = fill->value,
			.elementSize = fill->unit,
			.width = fill->area.width / fill->unit,
			.height = fill->area.height};
	return result;
}

static CUresult submit_fill(CUdeviceptr to, size_t pitch, unsigned unit, uint32_t value,
	size_t width, size_t height, CUstream handle, bool wait)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	struct fill fill = {.unit = unit, .value = value};
	if (to % unit || (height > 1 && pitch % unit) ||
		__builtin_mul_overflow(width, (size_t)unit, &fill.area.width) ||
		(height > 1 && pitch < fill.area.width))
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_soft_stream *stream;
	result = ckt_soft_stream_get(context, handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	fill.area.height = height;
	fill.area.depth = 1;
	fill.area.to = (struct ckt_soft_copy_end){
		.address = to, .pitch = pitch, .place = CKT_SOFT_PLACE_DEVICE};
	if (width && height && out_of_reach(to, stream->context)) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (width && height) {
		result = ckt_soft_copy_check(&fill.area.to, &fill.area, CKT_SOFT_PAGE_WRITE);
		unsigned flags = wait                  ? CKT_SOFT_BLOCK
			: width <= 4096 && height <= 4 ? CKT_SOFT_INLINE
						       : 0;
		struct ckt_capture_stream *capturing = NULL;
		if (result == CUDA_SUCCESS)
			result = ckt_soft_capture(stream, &capturing);
		if (capturing)
			result = ckt_graph_leave(capture(capturing, &fill));
		else if (result == CUDA_SUCCESS)
			result = ckt_soft_stream_submit(
				stream, run_fill, &fill, sizeof(fill), flags, NULL, 0, NULL);
		if (result == CUDA_SUCCESS && wait)
			result = ckt_soft_context_result(context);
	}
	ckt_soft_object_put(&stream->object);
	return result;
}

CUresult CUDAAPI cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
	return submit_fill(dstDevice, 0, 1, uc, N, 1, NULL, true);
}

CUresult CUDAAPI cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
	return submit_fill(dstDevice, 0, 2, us, N, 1, NULL, true);
}

CUresult CUDAAPI cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
	return submit_fill(dstDevice, 0, 4, ui, N, 1, NULL, true);
}

CUresult CUDAAPI cuMemsetD2D8_v2(
	CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height)
{
	return submit_fill(dstDevice, dstPitch, 1, uc, Width, Height, NULL, true);
}

CUresult CUDAAPI cuMemsetD2D16_v2(
	CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height)
{
	return submit_fill(dstDevice, dstPitch, 2, us, Width, Height, NULL, true);
}

CUresult CUDAAPI cuMemsetD2D32_v2(
	CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height)
{
	return submit_fill(dstDevice, dstPitch, 4, ui, Width, Height, NULL, true);
}

CUresult CUDAAPI cuMemsetD8Async(
	CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
	return submit_fill(dstDevice, 0, 1, uc, N, 1, hStream, false);
}

CUresult CUDAAPI cuMemsetD16Async(
	CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
	return submit_fill(dstDevice, 0, 2, us, N, 1, hStream, false);
}

CUresult CUDAAPI cuMemsetD32Async(
	CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
	return submit_fill(dstDevice, 0, 4, ui, N, 1, hStream, false);
}

CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
	size_t Width, size_t Height, CUstream hStream)
{
	return submit_fill(dstDevice, dstPitch, 1, uc, Width, Height, hStream, false);
}

CUresult CUDAAPI cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
	size_t Width, size_t Height, CUstream hStream)
{
	return submit_fill(dstDevice, dstPitch, 2, us, Width, Height, hStream, false);
}

CUresult CUDAAPI cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
	size_t Width, size_t Height, CUstream hStream)
{
	return submit_fill(dstDevice, dstPitch, 4, ui, Width, Height, hStream, false);
}
