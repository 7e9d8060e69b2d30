/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory.  Allocation waits for its address.  Freeing waits for work that may still use the
 * memory, as in CUDA.
 */
#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/device.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/host.h"
#include "client/cuda/memory/managed.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/memory/registered.h"
#include "client/cuda/stream/stream.h"
#include "cudacommon/capture.h"

enum { PITCH_ALIGN = 512 };

static CUresult alloc(CUdeviceptr *ret_address, size_t size)
{
	struct ckt_context *context;
	struct ckt_reply reply;
	struct ckt_mem_alloc_res res;
	if (!ret_address || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_context_current(&context);
	if (!result)
		result = ckt_capture_unsafe();
	if (result)
		return result;
	uint32_t device = ckt_call_device((unsigned)context->device);
	if (ckt_range_room())
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = CKT_WAITED(
		mem_alloc, MEM_ALLOC, CKT_CALL_F_NUMBERED, &reply, .device = device, .size = size);
	/*
	 * No retry: as in CUDA, memory freed on a stream is available here only after the program
	 * waited.
	 */
	if (result)
		return result;
	if (!ckt_mem_alloc_res_get(&reply.results, &res)) {
		ckt_call_reply_release(&reply);
		return CUDA_ERROR_UNKNOWN;
	}
	ckt_call_reply_release(&reply);
	ckt_range_add(&(struct ckt_client_range){.base = res.address,
		.size = size,
		.kind = CKT_RANGE_DEVICE,
		.context = context->object.id,
		.device = context->device});
	*ret_address = res.address;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size)
{
	CUresult result = alloc(address, size);
	if (result && address)
		*address = 0;
	return result;
}

CKT_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *ret_pitch, size_t width,
	size_t height, unsigned int element_size)
{
	if (!address || !ret_pitch || !width || !height ||
		(element_size != 4 && element_size != 8 && element_size != 16))
		return CUDA_ERROR_INVALID_VALUE;
	size_t pitch = (width + PITCH_ALIGN - 1) / PITCH_ALIGN * PITCH_ALIGN, size;
	if (pitch < width || __builtin_mul_overflow(pitch, height, &size))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = alloc(address, size);
	if (!result)
		*ret_pitch = pitch;
	return result;
}

CKT_EXPORT CUresult cuMemFree_v2(CUdeviceptr address)
{
	struct ckt_client_range range;
	if (!address)
		return ckt_call_fault();
	if (!ckt_client_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	struct ckt_context *context;
	CUresult unsafe = ckt_call_context ? ckt_client_context_current(&context) : CUDA_SUCCESS;
	/* After a kernel failed, its memory stays, so that the program can examine it. */
	if (!unsafe)
		unsafe = ckt_call_fault();
	if (!unsafe)
		unsafe = ckt_capture_unsafe();
	if (unsafe)
		return unsafe;
	CUresult freed;
	/* A graph keeps such memory, so no call to the worker waits for its users. */
	if (ckt_graph_blocks && ckt_graph_memory_free(address, &freed))
		return freed ? freed : cuCtxSynchronize();
	/* Remove the range first: if two threads free the same block, one gets an error. */
	if (ckt_range_remove(address, CKT_RANGE_MANAGED, &range))
		ckt_managed_forget(address);
	else if (!ckt_range_remove(address, CKT_RANGE_DEVICE, &range))
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t saved = ckt_call_context;
	ckt_client_context_use(range.context);
	CUresult result =
		CKT_WAITED(mem_free, MEM_FREE, CKT_CALL_F_NUMBERED, NULL, .address = address);
	ckt_client_context_use(saved);
	return result;
}

CKT_EXPORT CUresult cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
	struct ckt_context *context;
	struct ckt_reply reply;
	struct ckt_mem_get_info_res res;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	result = CKT_WAITED(mem_get_info, MEM_GET_INFO, 0, &reply,
		.device = ckt_call_device((unsigned)context->device));
	if (result)
		return result;
	if (ckt_mem_get_info_res_get(&reply.results, &res)) {
		if (ret_free)
			*ret_free = res.free;
		if (ret_total)
			*ret_total = res.total;
	} else {
		result = CUDA_ERROR_UNKNOWN;
	}
	ckt_call_reply_release(&reply);
	return result;
}

CKT_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
	struct ckt_client_range range;
	if (!ckt_client_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	/* With unified addressing, pinned host memory has a range too, of the requested size. */
	bool found = ckt_range_find(address, &range);
	if (base)
		*base = found ? range.base : 0;
	if (size)
		*size = found ? range.size : 0;
	return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* ---- Setting memory.  height is 1 for a flat range. */

/* Setting another device's memory needs peer access, unlike copying (measured on two H200s). */
static bool out_of_reach(CUdeviceptr dst, uint64_t stream)
{
	struct ckt_client_range range;
	const struct ckt_cudacommon_object *of = stream > ckt_handle_id(CU_STREAM_LEGACY)
		? ckt_cudacommon_object_find(stream, CKT_KIND_STREAM)
		: NULL;
	if (ckt_client_device_count() < 2 || !ckt_range_find(dst, &range) ||
		range.kind != CKT_RANGE_DEVICE || range.pool)
		return false;
	const struct ckt_context *context =
		ckt_cudacommon_object_find(of ? of->context : ckt_call_context, CKT_KIND_CONTEXT);
	return context && range.device != context->device &&
		!(atomic_load(&context->peers) >> range.device & 1);
}

static CUresult set(CUdeviceptr dst, size_t pitch, unsigned element_size, unsigned value,
	size_t width, size_t height, CUstream stream)
{
	uint64_t id;
	CKT_ROUTE_STREAM(stream);
	CUresult result = ckt_stream_resolve(stream, &id);
	if (result)
		return result;
	if (width == 0 || height == 0)
		return CUDA_SUCCESS;
	size_t row, extent;
	if (dst % element_size || __builtin_mul_overflow(width, element_size, &row) ||
		(height > 1 && (pitch < row || pitch % element_size)))
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_mul_overflow(height - 1, pitch, &extent) ||
		__builtin_add_overflow(extent, row, &extent))
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t address = dst;
	if (!ckt_range_is_device(dst, extent) &&
		ckt_range_is_pinned((void *)(uintptr_t)dst, extent) &&
		(result = ckt_client_host_reach(&address)))
		return result;
	dst = address;
	if (!ckt_range_require_device("memset", dst, extent) || out_of_reach(dst, id) ||
		(ckt_conn_count > 1 && ckt_client_address_conn(dst) != ckt_call_conn))
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_capture_stream *capturing;
	result = ckt_capture_enter(id, &capturing);
	if (result)
		return result;
	if (capturing) {
		struct ckt_node *node;
		result = ckt_capture_append(capturing, CU_GRAPH_NODE_TYPE_MEMSET, &node);
		if (!result)
			node->fill = (CUDA_MEMSET_NODE_PARAMS){.dst = dst,
				.pitch = pitch,
				.value = value,
				.elementSize = element_size,
				.width = width,
				.height = height};
		return ckt_graph_leave(result);
	}
	result = ckt_managed_before_access(dst, extent, true);
	if (result)
		return result;
	result = CKT_BATCHED(memset, MEMSET, .dst = dst, .pitch = pitch,
		.element_size = element_size, .value = value, .width = width, .height = height,
		.stream = id);
	/* Wait if the program can observe the write. */
	bool seen = ckt_range_is_shared(dst, extent) || ckt_registered_any();
	return result || stream || !seen ? result : ckt_client_stream_wait(id);
}

#define MEMSET_FUNCTIONS(bits, type)                                                            \
	CKT_EXPORT CUresult cuMemsetD##bits##_v2(CUdeviceptr dst, type value, size_t count)     \
	{                                                                                       \
		return set(dst, 0, bits / 8, value, count, 1, NULL);                            \
	}                                                                                       \
	CKT_EXPORT CUresult cuMemsetD##bits##Async(                                             \
		CUdeviceptr dst, type value, size_t count, CUstream stream)                     \
	{                                                                                       \
		return set(dst, 0, bits / 8, value, count, 1, stream);                          \
	}                                                                                       \
	CKT_EXPORT CUresult cuMemsetD2D##bits##_v2(                                             \
		CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height)         \
	{                                                                                       \
		return set(dst, pitch, bits / 8, value, width, height, NULL);                   \
	}                                                                                       \
	CKT_EXPORT CUresult cuMemsetD2D##bits##Async(CUdeviceptr dst, size_t pitch, type value, \
		size_t width, size_t height, CUstream stream)                                   \
	{                                                                                       \
		return set(dst, pitch, bits / 8, value, width, height, stream);                 \
	}

MEMSET_FUNCTIONS(8, unsigned char)
MEMSET_FUNCTIONS(16, unsigned short)
MEMSET_FUNCTIONS(32, unsigned int)
