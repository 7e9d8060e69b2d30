/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear and two-dimensional copies of every kind.
 *
 * The synchronous functions use the driver's own synchronous copies on the legacy default stream.
 * Their _ptds versions copy in the thread's stream and wait for the copy.  They do not wait for
 * copies from device to device, as in CUDA.
 */
#include <string.h>

#include "client/cudart/memcpy.h"
#include "client/cudart/api.h"
#include "client/cudart/array.h"
#include "client/cudart/variants.h"

static bool kind_is_valid(enum cudaMemcpyKind kind)
{
	return (unsigned)kind <= cudaMemcpyDefault;
}

static CUresult copy_sync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cuMemcpyHtoD(ckt_rt_address(dst), src, count);
	case cudaMemcpyDeviceToHost:
		return cuMemcpyDtoH(dst, ckt_rt_address(src), count);
	case cudaMemcpyDeviceToDevice:
		return cuMemcpyDtoD(ckt_rt_address(dst), ckt_rt_address(src), count);
	case cudaMemcpyHostToHost: {
		/* Waits for the default stream, then copies the bytes without the driver. */
		CUresult result = cuStreamSynchronize(NULL);
		if (result == CUDA_SUCCESS)
			memmove(dst, src, count);
		return result;
	}
	default:
		return cuMemcpy(ckt_rt_address(dst), ckt_rt_address(src), count);
	}
}

static CUresult copy_async(
	void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cuMemcpyHtoDAsync(ckt_rt_address(dst), src, count, stream);
	case cudaMemcpyDeviceToHost:
		return cuMemcpyDtoHAsync(dst, ckt_rt_address(src), count, stream);
	case cudaMemcpyDeviceToDevice:
		return cuMemcpyDtoDAsync(ckt_rt_address(dst), ckt_rt_address(src), count, stream);
	default:
		return cuMemcpyAsync(ckt_rt_address(dst), ckt_rt_address(src), count, stream);
	}
}

cudaError_t ckt_rt_copy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
	cudaStream_t stream, bool async)
{
	CKT_RT_ENTER();
	/* A copy of 0 bytes succeeds, with any kind (seen on an H200). */
	if (!count)
		return cudaSuccess;
	CKT_RT_REQUIRE(kind_is_valid(kind), cudaErrorInvalidMemcpyDirection);
	CKT_RT_REQUIRE(dst && src, cudaErrorInvalidValue);
	if (!async && !stream)
		return ckt_rt_cu(copy_sync(dst, src, count, kind));
	CUresult result = copy_async(dst, src, count, kind, stream);
	if (result == CUDA_SUCCESS && !async && kind != cudaMemcpyDeviceToDevice)
		result = cuStreamSynchronize(stream);
	return ckt_rt_cu(result);
}

CUmemorytype ckt_rt_source_type(enum cudaMemcpyKind kind)
{
	if (kind == cudaMemcpyDefault)
		return CU_MEMORYTYPE_UNIFIED;
	return kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice
		? CU_MEMORYTYPE_HOST
		: CU_MEMORYTYPE_DEVICE;
}

CUmemorytype ckt_rt_destination_type(enum cudaMemcpyKind kind)
{
	if (kind == cudaMemcpyDefault)
		return CU_MEMORYTYPE_UNIFIED;
	return kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost
		? CU_MEMORYTYPE_HOST
		: CU_MEMORYTYPE_DEVICE;
}

/* One side of a two-dimensional copy: array at (x bytes, y), or pitched memory. */
struct side {
	void *pointer;
	size_t pitch;
	cudaArray_const_t array;
	size_t x, y;
};

static cudaError_t copy_2d(const struct side *dst, const struct side *src, size_t width,
	size_t height, enum cudaMemcpyKind kind, cudaStream_t stream, bool async)
{
	CUDA_MEMCPY2D copy = {.WidthInBytes = width, .Height = height};
	CKT_RT_ENTER();
	if (!width || !height)
		return cudaSuccess;
	CKT_RT_REQUIRE(kind_is_valid(kind), cudaErrorInvalidMemcpyDirection);
	/*
	 * CUDA 13.0 has one error for a single row and another for several rows.  A single row
	 * needs no pitch.
	 */
	bool dense = height == 1;
	CKT_RT_REQUIRE((dst->array || dst->pitch >= width || (dense && !dst->pitch)) &&
			(src->array || src->pitch >= width || (dense && !src->pitch)),
		height == 1 ? cudaErrorInvalidValue : cudaErrorInvalidPitchValue);
	CKT_RT_REQUIRE((dst->array || dst->pointer) && (src->array || src->pointer),
		cudaErrorInvalidValue);
	copy.dstMemoryType = dst->array ? CU_MEMORYTYPE_ARRAY : ckt_rt_destination_type(kind);
	copy.dstArray = (CUarray)dst->array;
	copy.dstXInBytes = dst->x;
	copy.dstY = dst->y;
	copy.dstPitch = dst->pitch;
	copy.dstHost = dst->pointer;
	copy.dstDevice = ckt_rt_address(dst->pointer);
	copy.srcMemoryType = src->array ? CU_MEMORYTYPE_ARRAY : ckt_rt_source_type(kind);
	copy.srcArray = (CUarray)src->array;
	copy.srcXInBytes = src->x;
	copy.srcY = src->y;
	copy.srcPitch = src->pitch;
	copy.srcHost = src->pointer;
	copy.srcDevice = ckt_rt_address(src->pointer);
	if (!async && !stream)
		return ckt_rt_cu(cuMemcpy2DUnaligned(&copy));
	CUresult result = cuMemcpy2DAsync(&copy, stream);
	if (result == CUDA_SUCCESS && !async && kind != cudaMemcpyDeviceToDevice)
		result = cuStreamSynchronize(stream);
	return ckt_rt_cu(result);
}

cudaError_t ckt_rt_cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
	cudaStream_t default_stream)
{
	return ckt_rt_copy(dst, src, count, kind, default_stream, false);
}

CKT_RT_API cudaError_t cudaMemcpyAsync(
	void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return ckt_rt_copy(dst, src, count, kind, stream, true);
}

cudaError_t ckt_rt_cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch,
	size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t default_stream)
{
	struct side to = {.pointer = dst, .pitch = dpitch},
		    from = {.pointer = (void *)(uintptr_t)src, .pitch = spitch};
	return copy_2d(&to, &from, width, height, kind, default_stream, false);
}

CKT_RT_API cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
	size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	struct side to = {.pointer = dst, .pitch = dpitch},
		    from = {.pointer = (void *)(uintptr_t)src, .pitch = spitch};
	return copy_2d(&to, &from, width, height, kind, stream, true);
}

cudaError_t ckt_rt_cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset,
	const void *src, size_t spitch, size_t width, size_t height, enum cudaMemcpyKind kind,
	cudaStream_t default_stream)
{
	struct side to = {.array = dst, .x = wOffset, .y = hOffset},
		    from = {.pointer = (void *)(uintptr_t)src, .pitch = spitch};
	CKT_RT_REQUIRE(dst, cudaErrorInvalidResourceHandle);
	return copy_2d(&to, &from, width, height, kind, default_stream, false);
}

CKT_RT_API cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
	const void *src, size_t spitch, size_t width, size_t height, enum cudaMemcpyKind kind,
	cudaStream_t stream)
{
	struct side to = {.array = dst, .x = wOffset, .y = hOffset},
		    from = {.pointer = (void *)(uintptr_t)src, .pitch = spitch};
	CKT_RT_REQUIRE(dst, cudaErrorInvalidResourceHandle);
	return copy_2d(&to, &from, width, height, kind, stream, true);
}

cudaError_t ckt_rt_cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src,
	size_t wOffset, size_t hOffset, size_t width, size_t height, enum cudaMemcpyKind kind,
	cudaStream_t default_stream)
{
	struct side to = {.pointer = dst, .pitch = dpitch},
		    from = {.array = src, .x = wOffset, .y = hOffset};
	CKT_RT_REQUIRE(src, cudaErrorInvalidResourceHandle);
	return copy_2d(&to, &from, width, height, kind, default_stream, false);
}

CKT_RT_API cudaError_t cudaMemcpy2DFromArrayAsync(void *dst, size_t dpitch, cudaArray_const_t src,
	size_t wOffset, size_t hOffset, size_t width, size_t height, enum cudaMemcpyKind kind,
	cudaStream_t stream)
{
	struct side to = {.pointer = dst, .pitch = dpitch},
		    from = {.array = src, .x = wOffset, .y = hOffset};
	CKT_RT_REQUIRE(src, cudaErrorInvalidResourceHandle);
	return copy_2d(&to, &from, width, height, kind, stream, true);
}

cudaError_t ckt_rt_cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
	cudaArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc, size_t width, size_t height,
	enum cudaMemcpyKind kind, cudaStream_t default_stream)
{
	struct side to = {.array = dst, .x = wOffsetDst, .y = hOffsetDst},
		    from = {.array = src, .x = wOffsetSrc, .y = hOffsetSrc};
	CKT_RT_REQUIRE(dst && src, cudaErrorInvalidResourceHandle);
	return copy_2d(&to, &from, width, height, kind, default_stream, false);
}

/*
 * The one-dimensional array functions, which CUDA deprecates: they copy count bytes along the rows
 * of the array.  A copy that starts or ends inside a row is split into at most three rectangles.
 */
static cudaError_t array_row(cudaArray_const_t array, size_t *ret_bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	size_t element;
	cudaError_t error = ckt_rt_enter();
	if (error)
		return error;
	if (!array)
		return cudaErrorInvalidResourceHandle;
	CUresult result = cuArray3DGetDescriptor(&descriptor, (CUarray)array);
	if (result)
		return (cudaError_t)result;
	error = ckt_rt_array_element(array, &element);
	if (!error)
		*ret_bytes = element * descriptor.Width;
	return error;
}

static cudaError_t copy_rows(cudaArray_const_t array, size_t x, size_t y, char *memory,
	bool to_array, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream, bool async)
{
	size_t row = 0;
	cudaError_t error = array_row(array, &row);
	CKT_RT_REQUIRE(!error, error);
	CKT_RT_REQUIRE(row && x < row, cudaErrorInvalidValue);
	while (count) {
		/*
		 * First the rest of a started row, then whole rows together, then the start of the
		 * last row.
		 */
		size_t width = x || count < row ? (count < row - x ? count : row - x) : row;
		size_t height = width == row ? count / row : 1;
		struct side a = {.array = array, .x = x, .y = y},
			    m = {.pointer = memory, .pitch = width};
		error = to_array ? copy_2d(&a, &m, width, height, kind, stream, async)
				 : copy_2d(&m, &a, width, height, kind, stream, async);
		if (error)
			return error;
		memory += width * height;
		count -= width * height;
		y += height;
		x = 0;
	}
	return cudaSuccess;
}

/* The rows of both arrays may differ: each copy ends at the end of a row of one of them. */
cudaError_t ckt_rt_cudaMemcpyArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
	cudaArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc, size_t count,
	enum cudaMemcpyKind kind, cudaStream_t default_stream)
{
	size_t dst_row = 0, src_row = 0;
	struct side to = {.array = dst, .x = wOffsetDst, .y = hOffsetDst},
		    from = {.array = src, .x = wOffsetSrc, .y = hOffsetSrc};
	cudaError_t error = array_row(dst, &dst_row);
	if (!error)
		error = array_row(src, &src_row);
	CKT_RT_REQUIRE(!error, error);
	CKT_RT_REQUIRE(
		dst_row && src_row && to.x < dst_row && from.x < src_row, cudaErrorInvalidValue);
	while (count) {
		size_t width =
			dst_row - to.x < src_row - from.x ? dst_row - to.x : src_row - from.x;
		if (width > count)
			width = count;
		error = copy_2d(&to, &from, width, 1, kind, default_stream, false);
		if (error)
			return error;
		count -= width;
		to.x += width;
		from.x += width;
		to.y += to.x / dst_row;
		to.x %= dst_row;
		from.y += from.x / src_row;
		from.x %= src_row;
	}
	return cudaSuccess;
}

cudaError_t ckt_rt_cudaMemcpyToArray(cudaArray_t dst, size_t wOffset, size_t hOffset,
	const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t default_stream)
{
	return copy_rows(dst, wOffset, hOffset, (char *)(uintptr_t)src, true, count, kind,
		default_stream, false);
}

cudaError_t ckt_rt_cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t wOffset,
	size_t hOffset, size_t count, enum cudaMemcpyKind kind, cudaStream_t default_stream)
{
	return copy_rows(src, wOffset, hOffset, dst, false, count, kind, default_stream, false);
}

CKT_RT_API cudaError_t cudaMemcpyToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
	const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy_rows(
		dst, wOffset, hOffset, (char *)(uintptr_t)src, true, count, kind, stream, true);
}

CKT_RT_API cudaError_t cudaMemcpyFromArrayAsync(void *dst, cudaArray_const_t src, size_t wOffset,
	size_t hOffset, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy_rows(src, wOffset, hOffset, dst, false, count, kind, stream, true);
}
