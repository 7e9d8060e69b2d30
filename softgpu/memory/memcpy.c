/* SPDX-License-Identifier: Apache-2.0 */
/* The copy API: linear, 2D and 3D; host, device, unified and array; with and without a stream. */
#include "cudacommon/capture.h"
#include "softgpu/context/context.h"
#include "softgpu/context/object.h"
#include "softgpu/memory/array.h"
#include "softgpu/memory/copy.h"

static CUresult linear(uint64_t to, enum ckt_soft_place to_place, uint64_t from,
	enum ckt_soft_place from_place, size_t size, CUstream stream, bool wait)
{
	struct ckt_soft_copy copy = {
		.to = {.address = to, .pitch = size, .slice = size, .place = to_place},
		.from = {.address = from, .pitch = size, .slice = size, .place = from_place},
		.width = size,
		.height = 1,
		.depth = 1,
	};
	return ckt_soft_copy_submit(&copy, stream, wait);
}

#define HOST CKT_SOFT_PLACE_HOST
#define DEVICE CKT_SOFT_PLACE_DEVICE
#define ANY CKT_SOFT_PLACE_ANY

CUresult CUDAAPI cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	return linear(dst, ANY, src, ANY, ByteCount, NULL, true);
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	return linear(dst, ANY, src, ANY, ByteCount, hStream, false);
}

CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	return linear(dstDevice, DEVICE, (uint64_t)(uintptr_t)srcHost, HOST, ByteCount, NULL, true);
}

CUresult CUDAAPI cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	return linear((uint64_t)(uintptr_t)dstHost, HOST, srcDevice, DEVICE, ByteCount, NULL, true);
}

CUresult CUDAAPI cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	return linear(dstDevice, DEVICE, srcDevice, DEVICE, ByteCount, NULL, true);
}

CUresult CUDAAPI cuMemcpyHtoDAsync_v2(
	CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
	return linear(
		dstDevice, DEVICE, (uint64_t)(uintptr_t)srcHost, HOST, ByteCount, hStream, false);
}

CUresult CUDAAPI cuMemcpyDtoHAsync_v2(
	void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return linear(
		(uint64_t)(uintptr_t)dstHost, HOST, srcDevice, DEVICE, ByteCount, hStream, false);
}

CUresult CUDAAPI cuMemcpyDtoDAsync_v2(
	CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return linear(dstDevice, DEVICE, srcDevice, DEVICE, ByteCount, hStream, false);
}

/* Both contexts must exist; they do not change which memory is copied. */
static CUresult check_contexts(CUcontext first, CUcontext second)
{
	CUcontext list[2] = {first, second};
	for (int i = 0; i < 2; i++) {
		struct ckt_soft_context *context;
		CUresult result = ckt_soft_context_get(list[i], &context);
		if (result != CUDA_SUCCESS)
			return result;
		ckt_soft_object_put(&context->object);
	}
	return CUDA_SUCCESS;
}

/* Checks both contexts.  With `before`, waits for all their work, so that the copy follows it. */
CUresult ckt_copy_join(CUcontext first, CUcontext second, bool before)
{
	CUresult result = check_contexts(first, second);
	if (!before)
		return result;
	if (result == CUDA_SUCCESS && first)
		result = cuCtxSynchronize_v2(first);
	return result == CUDA_SUCCESS && second && second != first ? cuCtxSynchronize_v2(second)
								   : result;
}

CUresult CUDAAPI cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
	CUcontext srcContext, size_t ByteCount)
{
	CUresult result = ckt_copy_join(dstContext, srcContext, true);
	return result == CUDA_SUCCESS ? cuMemcpyDtoD_v2(dstDevice, srcDevice, ByteCount) : result;
}

CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext,
	CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
	CUresult result = check_contexts(dstContext, srcContext);
	/* Two H200s refuse to capture a copy that names two contexts. */
	if (result == CUDA_SUCCESS && dstContext && srcContext && dstContext != srcContext) {
		uint64_t stream;
		result = ckt_stream_resolve(hStream, &stream);
		if (result == CUDA_SUCCESS)
			result = ckt_capture_forbid(stream);
	}
	return result == CUDA_SUCCESS
		? cuMemcpyDtoDAsync_v2(dstDevice, srcDevice, ByteCount, hStream)
		: result;
}

/* ---- Bytes of an array, row after row */

static CUresult row_end(
	CUarray handle, size_t offset, size_t size, struct ckt_soft_copy_end *ret_end)
{
	struct ckt_soft_array *array;
	CUresult result = ckt_soft_array_get(handle, &array);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t bytes = array->image.slice_bytes;
	if (offset > bytes || size > bytes - offset)
		result = CUDA_ERROR_INVALID_VALUE;
	*ret_end = (struct ckt_soft_copy_end){
		.address = (uint64_t)(uintptr_t)array->image.memory + offset,
		.pitch = size,
		.slice = size,
		.place = CKT_SOFT_PLACE_ARRAY,
		.array = handle,
		.x = offset};
	ckt_soft_object_put(&array->object);
	return result;
}

static CUresult to_array(CUarray dst, size_t offset, uint64_t from, enum ckt_soft_place place,
	size_t size, CUstream stream, bool wait)
{
	struct ckt_soft_copy copy = {
		.from = {.address = from, .pitch = size, .slice = size, .place = place},
		.width = size,
		.height = 1,
		.depth = 1};
	CUresult result = row_end(dst, offset, size, &copy.to);
	return result == CUDA_SUCCESS ? ckt_soft_copy_submit(&copy, stream, wait) : result;
}

static CUresult from_array(uint64_t to, enum ckt_soft_place place, CUarray src, size_t offset,
	size_t size, CUstream stream, bool wait)
{
	struct ckt_soft_copy copy = {
		.to = {.address = to, .pitch = size, .slice = size, .place = place},
		.width = size,
		.height = 1,
		.depth = 1};
	CUresult result = row_end(src, offset, size, &copy.from);
	return result == CUDA_SUCCESS ? ckt_soft_copy_submit(&copy, stream, wait) : result;
}

CUresult CUDAAPI cuMemcpyDtoA_v2(
	CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount)
{
	return to_array(dstArray, dstOffset, srcDevice, DEVICE, ByteCount, NULL, true);
}

CUresult CUDAAPI cuMemcpyAtoD_v2(
	CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	return from_array(dstDevice, DEVICE, srcArray, srcOffset, ByteCount, NULL, true);
}

CUresult CUDAAPI cuMemcpyHtoA_v2(
	CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount)
{
	return to_array(
		dstArray, dstOffset, (uint64_t)(uintptr_t)srcHost, HOST, ByteCount, NULL, true);
}

CUresult CUDAAPI cuMemcpyAtoH_v2(
	void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	return from_array(
		(uint64_t)(uintptr_t)dstHost, HOST, srcArray, srcOffset, ByteCount, NULL, true);
}

CUresult CUDAAPI cuMemcpyHtoAAsync_v2(
	CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount, CUstream hStream)
{
	return to_array(
		dstArray, dstOffset, (uint64_t)(uintptr_t)srcHost, HOST, ByteCount, hStream, false);
}

CUresult CUDAAPI cuMemcpyAtoHAsync_v2(
	void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream hStream)
{
	return from_array(
		(uint64_t)(uintptr_t)dstHost, HOST, srcArray, srcOffset, ByteCount, hStream, false);
}

CUresult CUDAAPI cuMemcpyAtoA_v2(
	CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	struct ckt_soft_copy copy = {.width = ByteCount, .height = 1, .depth = 1};
	CUresult result = row_end(dstArray, dstOffset, ByteCount, &copy.to);
	if (result == CUDA_SUCCESS)
		result = row_end(srcArray, srcOffset, ByteCount, &copy.from);
	return result == CUDA_SUCCESS ? ckt_soft_copy_submit(&copy, NULL, true) : result;
}

/* ---- 2D and 3D */

static CUresult array_end(CUarray handle, size_t x, size_t y, size_t z,
	const struct ckt_soft_copy *size, struct ckt_soft_copy_end *ret_end)
{
	struct ckt_soft_array *array;
	CUresult result = ckt_soft_array_get(handle, &array);
	if (result != CUDA_SUCCESS)
		return result;
	result = ckt_soft_array_end(array, x, y, z, size, ret_end);
	ckt_soft_object_put(&array->object);
	return result;
}

/* One end of a 3D copy; a 2D copy is one of depth 1. */
static CUresult make_end(CUmemorytype type, const void *host, CUdeviceptr device, CUarray array,
	size_t x, size_t y, size_t z, size_t pitch, size_t rows, const struct ckt_soft_copy *size,
	struct ckt_soft_copy_end *ret_end)
{
	struct ckt_soft_copy_end end = {.pitch = pitch};
	switch (type) {
	case CU_MEMORYTYPE_HOST:
		end.place = HOST;
		end.address = (uint64_t)(uintptr_t)host;
		break;
	case CU_MEMORYTYPE_DEVICE:
		end.place = DEVICE;
		end.address = device;
		break;
	case CU_MEMORYTYPE_UNIFIED:
		end.place = ANY;
		end.address = device;
		break;
	case CU_MEMORYTYPE_ARRAY:
		return array_end(array, x, y, z, size, ret_end);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* A pitch or height of 0 means dense, and is only valid where it is not needed. */
	size_t row_end;
	if (__builtin_add_overflow(x, size->width, &row_end))
		return CUDA_ERROR_INVALID_VALUE;
	if (end.pitch == 0)
		end.pitch = row_end;
	if (rows == 0)
		rows = y + size->height;
	bool rows_apart = size->height > 1 || size->depth > 1 || y;
	if (row_end > end.pitch || (end.pitch > 2147483647 && rows_apart) ||
		y + size->height > rows)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t y_bytes, z_bytes;
	if (__builtin_mul_overflow(end.pitch, rows, &end.slice) ||
		__builtin_mul_overflow(y, end.pitch, &y_bytes) ||
		__builtin_mul_overflow(z, end.slice, &z_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!end.address && size->width && size->height && size->depth)
		return CUDA_ERROR_INVALID_VALUE;
	end.address += x + y_bytes + z_bytes;
	*ret_end = end;
	return CUDA_SUCCESS;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool wait)
{
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_soft_copy copy = {.width = c->WidthInBytes, .height = c->Height, .depth = 1};
	CUresult result = make_end(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray,
		c->dstXInBytes, c->dstY, 0, c->dstPitch, 0, &copy, &copy.to);
	if (result == CUDA_SUCCESS)
		result = make_end(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray,
			c->srcXInBytes, c->srcY, 0, c->srcPitch, 0, &copy, &copy.from);
	return result == CUDA_SUCCESS ? ckt_soft_copy_submit(&copy, stream, wait) : result;
}

CUresult CUDAAPI cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
	return copy_2d(pCopy, NULL, true);
}

CUresult CUDAAPI cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
	return copy_2d(pCopy, NULL, true);
}

CUresult CUDAAPI cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	return copy_2d(pCopy, hStream, false);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *c, CUstream stream, bool wait)
{
	if (!c || c->srcLOD || c->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_soft_copy copy = {
		.width = c->WidthInBytes, .height = c->Height, .depth = c->Depth};
	CUresult result = make_end(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray,
		c->dstXInBytes, c->dstY, c->dstZ, c->dstPitch, c->dstHeight, &copy, &copy.to);
	if (result == CUDA_SUCCESS)
		result = make_end(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray,
			c->srcXInBytes, c->srcY, c->srcZ, c->srcPitch, c->srcHeight, &copy,
			&copy.from);
	return result == CUDA_SUCCESS ? ckt_soft_copy_submit(&copy, stream, wait) : result;
}

CUresult CUDAAPI cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
	return copy_3d(pCopy, NULL, true);
}

CUresult CUDAAPI cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	return copy_3d(pCopy, hStream, false);
}

/* In these two calls, NULL is the legacy default stream in spite of _ptsz (seen on an H200). */
CUresult CUDAAPI cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
	size_t count, CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
	CUstream hStream)
{
	return cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream);
}

CUresult CUDAAPI cuMemcpy3DBatchAsync_v2_ptsz(
	size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags, CUstream hStream)
{
	return cuMemcpy3DBatchAsync_v2(numOps, opList, flags, hStream);
}
