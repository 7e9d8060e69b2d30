/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver API's copy functions, which call ckt_client_copy_2d.  They find out what each side is
 * and cut boxes into planes.  array_copy.c copies arrays.
 */
#include "client/conn/call.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/array_copy.h"
#include "client/cuda/memory/memcpy.h"
#include "client/cuda/memory/range.h"
#include "cudacommon/capture.h"

/* With unified addressing, the pointer itself says whether the memory is on the device. */
static bool is_device(uint64_t address)
{
	struct ckt_client_range range;
	return ckt_range_find(address, &range) && ckt_range_reaches_device(&range);
}

static uint64_t host(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

CKT_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size)
{
	return ckt_client_copy(dst, true, host(src), is_device(host(src)), size, NULL, false);
}

CKT_EXPORT CUresult cuMemcpyHtoDAsync_v2(
	CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
	return ckt_client_copy(dst, true, host(src), is_device(host(src)), size, stream, true);
}

CKT_EXPORT CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t size)
{
	return ckt_client_copy(host(dst), is_device(host(dst)), src, true, size, NULL, false);
}

CKT_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return ckt_client_copy(host(dst), is_device(host(dst)), src, true, size, stream, true);
}

CKT_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	return ckt_client_copy(dst, true, src, true, size, NULL, false);
}

CKT_EXPORT CUresult cuMemcpyDtoDAsync_v2(
	CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return ckt_client_copy(dst, true, src, true, size, stream, true);
}

CKT_EXPORT CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	return ckt_client_copy(dst, is_device(dst), src, is_device(src), size, NULL, false);
}

CKT_EXPORT CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return ckt_client_copy(dst, is_device(dst), src, is_device(src), size, stream, true);
}

/* Makes the default stream of one context wait for the earlier work of another's default stream. */
static CUresult wait_between(uint64_t waiting, uint64_t before)
{
	uint64_t saved = ckt_call_context;
	CUevent event;
	if (waiting == before)
		return CUDA_SUCCESS;
	ckt_client_context_use(before);
	CUresult result = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
	if (!result) {
		result = cuEventRecord(event, NULL);
		ckt_client_context_use(waiting);
		if (!result)
			result = cuStreamWaitEvent(NULL, event, 0);
		cuEventDestroy(event);
	}
	ckt_client_context_use(saved);
	return result;
}

/* NULL means the current context (measured on an H200). */
static bool is_context(CUcontext context)
{
	return !context || ckt_cudacommon_object_find(ckt_handle_id(context), CKT_KIND_CONTEXT);
}

CUresult ckt_copy_join(CUcontext dst_context, CUcontext src_context, bool before)
{
	uint64_t here = ckt_call_context,
		 others[2] = {ckt_handle_id(src_context), ckt_handle_id(dst_context)};
	CUresult result = is_context(dst_context) && is_context(src_context)
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_CONTEXT;
	for (int i = 0; i < 2 && !result; i++)
		if (others[i] && (i == 0 || others[1] != others[0]))
			result = before ? wait_between(here, others[i])
					: wait_between(others[i], here);
	return result;
}

CKT_EXPORT CUresult cuMemcpyPeer(
	CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t size)
{
	CUresult result = ckt_copy_join(dst_context, src_context, true);
	if (!result)
		result = ckt_client_copy(dst, true, src, true, size, NULL, false);
	return result ? result : ckt_copy_join(dst_context, src_context, false);
}

CKT_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
	CUcontext src_context, size_t size, CUstream stream)
{
	if (!is_context(dst_context) || !is_context(src_context))
		return CUDA_ERROR_INVALID_CONTEXT;
	/* A copy that names two contexts cannot be captured (measured on two H200s). */
	if (dst_context && src_context && dst_context != src_context) {
		uint64_t id;
		CUresult result = ckt_stream_resolve(stream, &id);
		if (!result)
			result = ckt_capture_forbid(id);
		if (result)
			return result;
	}
	return ckt_client_copy(dst, true, src, true, size, stream, true);
}

/* ---- Two and three dimensions */

struct side {
	uint64_t base;
	bool device;
};

static CUresult read_side(CUmemorytype type, const void *host_pointer, CUdeviceptr device_pointer,
	struct side *ret_side)
{
	switch (type) {
	case CU_MEMORYTYPE_HOST:
		*ret_side = (struct side){
			.base = host(host_pointer), .device = is_device(host(host_pointer))};
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_DEVICE:
		*ret_side = (struct side){.base = device_pointer, .device = true};
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_UNIFIED:
		*ret_side =
			(struct side){.base = device_pointer, .device = is_device(device_pointer)};
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult copy_2d(const CUDA_MEMCPY2D *copy, CUstream stream, bool async)
{
	struct side src, dst;
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY ||
		copy->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		return ckt_client_array_copy(&(CUDA_MEMCPY3D){.srcXInBytes = copy->srcXInBytes,
						     .srcY = copy->srcY,
						     .srcMemoryType = copy->srcMemoryType,
						     .srcHost = copy->srcHost,
						     .srcDevice = copy->srcDevice,
						     .srcArray = copy->srcArray,
						     .srcPitch = copy->srcPitch,
						     .dstXInBytes = copy->dstXInBytes,
						     .dstY = copy->dstY,
						     .dstMemoryType = copy->dstMemoryType,
						     .dstHost = copy->dstHost,
						     .dstDevice = copy->dstDevice,
						     .dstArray = copy->dstArray,
						     .dstPitch = copy->dstPitch,
						     .WidthInBytes = copy->WidthInBytes,
						     .Height = copy->Height,
						     .Depth = 1},
			stream, async);
	CUresult result = read_side(copy->srcMemoryType, copy->srcHost, copy->srcDevice, &src);
	if (!result)
		result = read_side(copy->dstMemoryType, copy->dstHost, copy->dstDevice, &dst);
	if (result)
		return result;
	/* A pitch of zero means rows without gaps. */
	uint64_t src_pitch =
		copy->srcPitch ? copy->srcPitch : copy->WidthInBytes + copy->srcXInBytes;
	uint64_t dst_pitch =
		copy->dstPitch ? copy->dstPitch : copy->WidthInBytes + copy->dstXInBytes;
	if (copy->srcXInBytes + copy->WidthInBytes > src_pitch ||
		copy->dstXInBytes + copy->WidthInBytes > dst_pitch)
		return CUDA_ERROR_INVALID_VALUE;
	return ckt_client_copy_2d(
		&(struct ckt_copy2d){.dst = dst.base + copy->dstY * dst_pitch + copy->dstXInBytes,
			.dst_pitch = dst_pitch,
			.dst_device = dst.device,
			.src = src.base + copy->srcY * src_pitch + copy->srcXInBytes,
			.src_pitch = src_pitch,
			.src_device = src.device,
			.width = copy->WidthInBytes,
			.height = copy->Height,
			.stream = stream,
			.async = async});
}

CKT_EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
	return copy_2d(copy, NULL, false);
}

CKT_EXPORT CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy)
{
	return copy_2d(copy, NULL, false);
}

CKT_EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	return copy_2d(copy, stream, true);
}

/* Checks all slices at once: if the last one is invalid, the first must not be copied. */
static bool fits(const struct side *side, uint64_t first, uint64_t pitch, uint64_t height,
	const CUDA_MEMCPY3D *copy)
{
	uint64_t extent, slice;
	if (!side->device || !copy->WidthInBytes || !copy->Height || !copy->Depth)
		return true;
	if (__builtin_mul_overflow(pitch, height, &slice) ||
		__builtin_mul_overflow(slice, copy->Depth - 1, &extent) ||
		__builtin_add_overflow(
			extent, pitch * (copy->Height - 1) + copy->WidthInBytes, &extent))
		return false;
	return ckt_range_require_device("cuMemcpy3D", first, extent);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *copy, CUstream stream, bool async)
{
	struct side src, dst;
	if (!copy || copy->srcLOD || copy->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY ||
		copy->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		return ckt_client_array_copy(copy, stream, async);
	CUresult result = read_side(copy->srcMemoryType, copy->srcHost, copy->srcDevice, &src);
	if (!result)
		result = read_side(copy->dstMemoryType, copy->dstHost, copy->dstDevice, &dst);
	if (result)
		return result;
	uint64_t src_pitch =
		copy->srcPitch ? copy->srcPitch : copy->WidthInBytes + copy->srcXInBytes;
	uint64_t dst_pitch =
		copy->dstPitch ? copy->dstPitch : copy->WidthInBytes + copy->dstXInBytes;
	uint64_t src_height = copy->srcHeight ? copy->srcHeight : copy->Height + copy->srcY;
	uint64_t dst_height = copy->dstHeight ? copy->dstHeight : copy->Height + copy->dstY;
	if (copy->srcXInBytes + copy->WidthInBytes > src_pitch ||
		copy->dstXInBytes + copy->WidthInBytes > dst_pitch ||
		copy->srcY + copy->Height > src_height || copy->dstY + copy->Height > dst_height)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t to =
		dst.base + (copy->dstZ * dst_height + copy->dstY) * dst_pitch + copy->dstXInBytes;
	uint64_t from =
		src.base + (copy->srcZ * src_height + copy->srcY) * src_pitch + copy->srcXInBytes;
	if (!fits(&dst, to, dst_pitch, dst_height, copy) ||
		!fits(&src, from, src_pitch, src_height, copy))
		return CUDA_ERROR_INVALID_VALUE;
	for (uint64_t z = 0; z < copy->Depth && !result; z++)
		result = ckt_client_copy_2d(
			&(struct ckt_copy2d){.dst = to + z * dst_height * dst_pitch,
				.src = from + z * src_height * src_pitch,
				.dst_pitch = dst_pitch,
				.src_pitch = src_pitch,
				.dst_device = dst.device,
				.src_device = src.device,
				.width = copy->WidthInBytes,
				.height = copy->Height,
				.stream = stream,
				.async = async});
	return result;
}

CKT_EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy)
{
	return copy_3d(copy, NULL, false);
}

CKT_EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	return copy_3d(copy, stream, true);
}
