/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies with arrays.  Between an array and the host, they use the functions of memcpy.c.  On the
 * device, one command describes the whole copy, because only the worker knows where arrays are.
 */
#include "client/cuda/memory/array_copy.h"
#include "client/cuda/call.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/array.h"
#include "client/cuda/memory/managed.h"
#include "client/cuda/memory/memcpy.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/memory/registered.h"
#include "client/cuda/stream/hostfunc.h"
#include "client/cuda/stream/stream.h"
#include "cudacommon/capture.h"

/* A side of a copy: an array or memory. */
struct side {
	const struct ckt_array *array;
	bool device;
	uint64_t x, y, z;               /* of an array */
	uint64_t address, pitch, slice; /* of memory; address: of the first byte copied */
};

static CUresult read_memory(
	CUmemorytype type, const void *host, CUdeviceptr device, struct side *ret)
{
	struct ckt_client_range range;
	switch (type) {
	case CU_MEMORYTYPE_HOST:
		ret->address = ckt_handle_id(host);
		break;
	case CU_MEMORYTYPE_DEVICE:
	case CU_MEMORYTYPE_UNIFIED:
		ret->address = device;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	ret->device = type == CU_MEMORYTYPE_DEVICE ||
		(ckt_range_find(ret->address, &range) && ckt_range_reaches_device(&range));
	return ret->address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Moves the side's address to the first byte copied.  An overflow is an invalid address. */
static CUresult place_memory(struct side *s, const CUDA_MEMCPY3D *c, size_t x, size_t y, size_t z,
	size_t pitch, size_t height)
{
	uint64_t row, rows, offset, slices;
	if (__builtin_add_overflow(x, c->WidthInBytes, &row) ||
		__builtin_add_overflow(y, c->Height, &rows))
		return CUDA_ERROR_INVALID_VALUE;
	/* A pitch or height of zero means no gaps. */
	s->pitch = pitch ? pitch : row;
	height = height ? height : rows;
	if (row > s->pitch || (c->Depth > 1 && rows > height) ||
		__builtin_mul_overflow(s->pitch, height, &s->slice) ||
		__builtin_mul_overflow(s->slice, z, &slices) ||
		__builtin_mul_overflow(s->pitch, y, &offset) ||
		__builtin_add_overflow(offset, slices, &offset) ||
		__builtin_add_overflow(offset, x, &offset) ||
		__builtin_add_overflow(s->address, offset, &s->address))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult place_array(
	struct side *s, const CUDA_MEMCPY3D *c, CUarray handle, size_t x, size_t y, size_t z)
{
	s->array = ckt_client_array_find(handle);
	if (!s->array)
		return CUDA_ERROR_INVALID_HANDLE;
	s->device = true;
	s->x = x;
	s->y = y;
	s->z = z;
	return ckt_client_array_holds(s->array, x, y, z, c->WidthInBytes, c->Height, c->Depth)
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_VALUE;
}

static CUresult read_sides(const CUDA_MEMCPY3D *c, struct side *src, struct side *dst)
{
	CUresult result;
	if (c->srcMemoryType == CU_MEMORYTYPE_ARRAY)
		result = place_array(src, c, c->srcArray, c->srcXInBytes, c->srcY, c->srcZ);
	else if (!(result = read_memory(c->srcMemoryType, c->srcHost, c->srcDevice, src)))
		result = place_memory(
			src, c, c->srcXInBytes, c->srcY, c->srcZ, c->srcPitch, c->srcHeight);
	if (result)
		return result;
	if (c->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		return place_array(dst, c, c->dstArray, c->dstXInBytes, c->dstY, c->dstZ);
	result = read_memory(c->dstMemoryType, c->dstHost, c->dstDevice, dst);
	return result
		? result
		: place_memory(dst, c, c->dstXInBytes, c->dstY, c->dstZ, c->dstPitch, c->dstHeight);
}

static bool span_of(const struct side *s, const CUDA_MEMCPY3D *c, uint64_t *ret_span)
{
	uint64_t rows, slices;
	return !__builtin_mul_overflow(c->Height - 1, s->pitch, &rows) &&
		!__builtin_mul_overflow(c->Depth - 1, s->slice, &slices) &&
		!__builtin_add_overflow(rows, slices, ret_span) &&
		!__builtin_add_overflow(*ret_span, c->WidthInBytes, ret_span);
}

/*
 * Checks that the side's memory is of the named kind.  Sends the program's writes to the device if
 * that side is managed.
 */
static CUresult check_memory(struct side *s, const CUDA_MEMCPY3D *c, bool write)
{
	uint64_t span;
	if (s->array)
		return CUDA_SUCCESS;
	if (!span_of(s, c, &span) ||
		!ckt_client_copy_side_is_right(
			write ? "copy to" : "copy from", s->address, &s->device, span))
		return CUDA_ERROR_INVALID_VALUE;
	s->device = s->device || ckt_registered_side(&s->address, span);
	return s->device ? ckt_managed_before_access(s->address, span, write) : CUDA_SUCCESS;
}

static CUresult on_device(
	const struct side *src, const struct side *dst, const CUDA_MEMCPY3D *c, uint64_t stream)
{
	return CKT_BATCHED(memcpy_array, MEMCPY_ARRAY,
		.dst_array = dst->array ? dst->array->wire : 0,
		.dst_level = dst->array ? dst->array->level : 0,
		.dst_x = dst->array ? dst->x : dst->address, .dst_y = dst->y, .dst_z = dst->z,
		.dst_pitch = dst->pitch, .dst_rows = dst->pitch ? dst->slice / dst->pitch : 0,
		.src_array = src->array ? src->array->wire : 0,
		.src_level = src->array ? src->array->level : 0,
		.src_x = src->array ? src->x : src->address, .src_y = src->y, .src_z = src->z,
		.src_pitch = src->pitch, .src_rows = src->pitch ? src->slice / src->pitch : 0,
		.width = c->WidthInBytes, .height = c->Height, .depth = c->Depth, .stream = stream);
}

static struct ckt_copy2d with_host(const struct side *array, const CUDA_MEMCPY3D *c, bool async)
{
	return (struct ckt_copy2d){.width = c->WidthInBytes,
		.height = c->Height,
		.depth = c->Depth,
		.async = async,
		.array = {.id = array->array->wire,
			.level = array->array->level,
			.y = array->y,
			.z = array->z}};
}

/* Whether the side is on another server than the stream. */
static bool is_elsewhere(const struct side *s)
{
	if (s->array)
		return ckt_client_context_conn(s->array->object.context) != ckt_call_conn;
	return s->device && ckt_client_address_conn(s->address) != ckt_call_conn;
}

CUresult ckt_client_array_copy(const CUDA_MEMCPY3D *c, CUstream handle, bool async)
{
	static bool once;
	struct side src = {0}, dst = {0};
	struct ckt_capture_stream *capturing;
	uint64_t stream;
	CKT_ROUTE_STREAM(handle);
	CUresult result = ckt_stream_resolve(handle, &stream);
	if (!result)
		result = read_sides(c, &src, &dst);
	if (!result && ckt_conn_count > 1 && (is_elsewhere(&src) || is_elsewhere(&dst)))
		return ckt_call_unsupported(
			"an array's copy with memory or a stream of another server", &once);
	if (result || !c->WidthInBytes || !c->Height || !c->Depth)
		return result;
	result = ckt_capture_enter(stream, &capturing);
	if (result)
		return result;
	if (capturing) {
		struct ckt_node *node;
		result = ckt_capture_append(capturing, CU_GRAPH_NODE_TYPE_MEMCPY, &node);
		return ckt_graph_leave(result ? result : ckt_node_set_copy(node, c));
	}
	if (!async && (result = ckt_capture_unsafe()))
		return result;
	if (!src.device || !dst.device)
		ckt_host_settle();
	result = check_memory(&src, c, false);
	if (!result)
		result = check_memory(&dst, c, true);
	if (result)
		return result;
	if (!src.device) {
		struct ckt_copy2d copy = with_host(&dst, c, async);
		copy.src = src.address;
		copy.src_pitch = src.pitch;
		copy.memory_slice = src.slice;
		copy.dst = dst.x;
		return ckt_client_copy_to_array(&copy, stream);
	}
	if (!dst.device) {
		struct ckt_copy2d copy = with_host(&src, c, async);
		copy.dst = dst.address;
		copy.dst_pitch = dst.pitch;
		copy.memory_slice = dst.slice;
		copy.src = src.x;
		return ckt_client_copy_fetch(&copy, 0, stream);
	}
	result = on_device(&src, &dst, c, stream);
	return result || async || !ckt_registered_any() ? result : ckt_client_stream_wait(stream);
}

/* ---- Bytes of an array, row by row */

static CUresult check_run(const struct ckt_array *array, uint64_t offset, uint64_t size)
{
	uint64_t bytes = array ? array->extent.row_bytes * array->extent.rows : 0;
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	return offset <= bytes && size <= bytes - offset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The bytes left in the row, at most size. */
static uint64_t left(const struct ckt_array *array, uint64_t offset, uint64_t size)
{
	uint64_t row = array ? array->extent.row_bytes - offset % array->extent.row_bytes : size;
	return row < size ? row : size;
}

/* template names the sides; the offsets are relative to the beginnings of the sides. */
static CUresult copy_run(const CUDA_MEMCPY3D *template, uint64_t dst_offset, uint64_t src_offset,
	uint64_t size, CUstream stream, bool async)
{
	const struct ckt_array *dst = NULL, *src = NULL;
	CUresult result = CUDA_SUCCESS;
	if (template->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		result = check_run(
			dst = ckt_client_array_find(template->dstArray), dst_offset, size);
	if (!result && template->srcMemoryType == CU_MEMORYTYPE_ARRAY)
		result = check_run(
			src = ckt_client_array_find(template->srcArray), src_offset, size);
	for (uint64_t at = 0; at < size && !result;) {
		CUDA_MEMCPY3D part = *template;
		uint64_t width = left(dst, dst_offset + at, left(src, src_offset + at, size - at)),
			 rows = 1;
		const struct ckt_array *array = dst ? dst : src;
		/*
		 * Copies whole rows at once, except between two arrays, whose rows may differ in
		 * length.
		 */
		if (width == array->extent.row_bytes && !(dst && src))
			rows = (size - at) / width;
		part.dstXInBytes = dst ? (dst_offset + at) % dst->extent.row_bytes : 0;
		part.dstY = dst ? (dst_offset + at) / dst->extent.row_bytes : 0;
		part.srcXInBytes = src ? (src_offset + at) % src->extent.row_bytes : 0;
		part.srcY = src ? (src_offset + at) / src->extent.row_bytes : 0;
		part.dstHost = dst ? NULL : (uint8_t *)template->dstHost + at;
		part.srcHost = src ? NULL : (const uint8_t *)template->srcHost + at;
		part.dstDevice += dst ? 0 : at;
		part.srcDevice += src ? 0 : at;
		part.WidthInBytes = width;
		part.Height = rows;
		part.Depth = 1;
		result = ckt_client_array_copy(&part, stream, async);
		at += width * rows;
	}
	return result;
}

#define TO_ARRAY(dst) .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = (dst)
#define FROM_ARRAY(src) .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = (src)

static CUresult dtoa(CUarray dst, size_t offset, CUdeviceptr src, size_t size, CUstream stream)
{
	return copy_run(&(CUDA_MEMCPY3D){TO_ARRAY(dst), .srcMemoryType = CU_MEMORYTYPE_DEVICE,
				.srcDevice = src},
		offset, 0, size, stream, false);
}

static CUresult atod(CUdeviceptr dst, CUarray src, size_t offset, size_t size, CUstream stream)
{
	return copy_run(&(CUDA_MEMCPY3D){FROM_ARRAY(src), .dstMemoryType = CU_MEMORYTYPE_DEVICE,
				.dstDevice = dst},
		0, offset, size, stream, false);
}

static CUresult atoa(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t size,
	CUstream stream)
{
	return copy_run(&(CUDA_MEMCPY3D){TO_ARRAY(dst), FROM_ARRAY(src)}, dst_offset, src_offset,
		size, stream, false);
}

static CUresult htoa(
	CUarray dst, size_t offset, const void *src, size_t size, CUstream stream, bool async)
{
	return copy_run(&(CUDA_MEMCPY3D){TO_ARRAY(dst), .srcMemoryType = CU_MEMORYTYPE_HOST,
				.srcHost = src},
		offset, 0, size, stream, async);
}

static CUresult atoh(
	void *dst, CUarray src, size_t offset, size_t size, CUstream stream, bool async)
{
	return copy_run(&(CUDA_MEMCPY3D){FROM_ARRAY(src), .dstMemoryType = CU_MEMORYTYPE_HOST,
				.dstHost = dst},
		0, offset, size, stream, async);
}

CKT_EXPORT CUresult cuMemcpyDtoA_v2(CUarray dst, size_t offset, CUdeviceptr src, size_t size)
{
	return dtoa(dst, offset, src, size, NULL);
}

CKT_EXPORT CUresult cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t offset, size_t size)
{
	return atod(dst, src, offset, size, NULL);
}

CKT_EXPORT CUresult cuMemcpyAtoA_v2(
	CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t size)
{
	return atoa(dst, dst_offset, src, src_offset, size, NULL);
}

CKT_EXPORT CUresult cuMemcpyHtoA_v2(CUarray dst, size_t offset, const void *src, size_t size)
{
	return htoa(dst, offset, src, size, NULL, false);
}

CKT_EXPORT CUresult cuMemcpyAtoH_v2(void *dst, CUarray src, size_t offset, size_t size)
{
	return atoh(dst, src, offset, size, NULL, false);
}

CKT_EXPORT CUresult cuMemcpyHtoAAsync_v2(
	CUarray dst, size_t offset, const void *src, size_t size, CUstream stream)
{
	return htoa(dst, offset, src, size, stream, true);
}

CKT_EXPORT CUresult cuMemcpyAtoHAsync_v2(
	void *dst, CUarray src, size_t offset, size_t size, CUstream stream)
{
	return atoh(dst, src, offset, size, stream, true);
}

/* CUDA does not wait for copies on the device. */
CKT_EXPORT CUresult cuMemcpyDtoA_v2_ptds(CUarray dst, size_t offset, CUdeviceptr src, size_t size)
{
	return dtoa(dst, offset, src, size, CU_STREAM_PER_THREAD);
}

CKT_EXPORT CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr dst, CUarray src, size_t offset, size_t size)
{
	return atod(dst, src, offset, size, CU_STREAM_PER_THREAD);
}

CKT_EXPORT CUresult cuMemcpyAtoA_v2_ptds(
	CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t size)
{
	return atoa(dst, dst_offset, src, src_offset, size, CU_STREAM_PER_THREAD);
}
