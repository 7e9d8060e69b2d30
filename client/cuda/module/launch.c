/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches.  The client checks a launch against its records of the device and the function.  Then
 * it sends the launch and waits for no reply, except for launches with attributes.
 */
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

#include "client/cuda/module/launch.h"
#include "client/conn/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/device.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/managed.h"
#include "client/cuda/memory/mapped.h"
#include "client/cuda/module/function.h"
#include "client/cuda/stream/event.h"
#include "client/trace/recorder.h"
#include "cudacommon/capture.h"
#include "cudacommon/launch_attribute.h"
#include "rpc/gen/cuda_codec.h"

struct launch {
	unsigned grid[3], block[3];
	unsigned shared_bytes;
	uint64_t stream;
	unsigned cooperative;
	const CUlaunchAttribute *attrs;
	unsigned attr_count;
};

/* The limits of the launching thread's device.  They are cached because each launch needs them. */
struct limits {
	bool known;
	unsigned grid[3], block[3], threads, registers;
};

static struct limits limits[CKT_DEVICES_MAX];

static const struct limits *device_limits(CUdevice device)
{
	struct limits *l = &limits[device];
	if (__builtin_expect(!__atomic_load_n(&l->known, __ATOMIC_ACQUIRE), 0)) {
		for (int i = 0; i < 3; i++) {
			l->grid[i] = (unsigned)ckt_client_device_attribute(
				device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
			l->block[i] = (unsigned)ckt_client_device_attribute(
				device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
		}
		l->threads = (unsigned)ckt_client_device_attribute(
			device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
		l->registers = (unsigned)ckt_client_device_attribute(
			device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
		__atomic_store_n(&l->known, true, __ATOMIC_RELEASE);
	}
	return l;
}

static CUresult check(const struct ckt_function *f, const struct launch *l, CUdevice device)
{
	const struct limits *limit = device_limits(device);
	for (int i = 0; i < 3; i++)
		if (l->grid[i] - 1 >= limit->grid[i] || l->block[i] - 1 >= limit->block[i])
			return CUDA_ERROR_INVALID_VALUE;
	uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
	if (threads > limit->threads)
		return CUDA_ERROR_INVALID_VALUE;
	/*
	 * More threads than the kernel's launch bounds are an invalid value.  A need for more
	 * registers than the device has is a different error (measured on an H200).
	 */
	if (threads > (unsigned)f->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK])
		return threads * (unsigned)f->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] >
				limit->registers
			? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
			: CUDA_ERROR_INVALID_VALUE;
	if (l->shared_bytes >
		(unsigned)f->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES])
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult ckt_client_launch_check(const struct ckt_function *f, const unsigned grid[3],
	const unsigned block[3], unsigned shared_bytes)
{
	struct ckt_context *context;
	struct launch l = {.grid = {grid[0], grid[1], grid[2]},
		.block = {block[0], block[1], block[2]},
		.shared_bytes = shared_bytes};
	CUresult result = ckt_client_context_current(&context);
	return result ? result : check(f, &l, context->device);
}

/* Writes the parameters in their packed form; p has room for f->param_bytes, padded. */
static void put_params(uint8_t *p, const struct ckt_function *f, void **params)
{
	uint32_t end = 0;
	for (unsigned i = 0; i < f->param_count; i++) {
		uint32_t offset = f->param_offsets[i], size = f->param_sizes[i];
		if (offset > end)
			memset(p + end, 0, offset - end);
		memcpy(p + offset, params[i], size);
		end = offset + size;
	}
	memset(p + end, 0, ckt_padded(f->param_bytes) - end);
}

/* Writes the parameters at p, behind the fixed part.  That part ends with their length. */
static void put_arguments(
	uint8_t *p, const struct ckt_function *f, void **params, const void *packed, uint32_t size)
{
	ckt_put_u32(p - 4, size);
	if (packed)
		ckt_put_fixed(p, packed, size);
	else
		put_params(p, f, params);
}

static CUresult send_plain(const struct ckt_function *f, const struct launch *l, void **params,
	const void *packed, uint32_t size)
{
	struct ckt_launch_kernel_args args = {.function = f->object.id,
		.grid_x = l->grid[0],
		.grid_y = l->grid[1],
		.grid_z = l->grid[2],
		.block_x = l->block[0],
		.block_y = l->block[1],
		.block_z = l->block[2],
		.shared_bytes = l->shared_bytes,
		.stream = l->stream,
		.cooperative = l->cooperative};
	struct ckt_call call;
	size_t fixed = ckt_launch_kernel_args_size(&args);
	CUresult result = ckt_call_begin(
		&call, CKT_PROC_LAUNCH_KERNEL, fixed + ckt_padded(size), CKT_CALL_F_BATCHED);
	if (result)
		return result;
	put_arguments(ckt_launch_kernel_args_put(call.p, &args), f, params, packed, size);
	return ckt_call_queue(&call);
}

static CUresult send_ex(const struct ckt_function *f, const struct launch *l, void **params,
	const void *packed, uint32_t size)
{
	struct ckt_launch_kernel_ex_args args = {.function = f->object.id,
		.grid_x = l->grid[0],
		.grid_y = l->grid[1],
		.grid_z = l->grid[2],
		.block_x = l->block[0],
		.block_y = l->block[1],
		.block_z = l->block[2],
		.shared_bytes = l->shared_bytes,
		.stream = l->stream,
		.attrs = (const uint8_t *)l->attrs,
		.attrs_len = (uint32_t)(l->attr_count * sizeof *l->attrs)};
	struct ckt_call call;
	size_t fixed = ckt_launch_kernel_ex_args_size(&args);
	CUresult result = ckt_call_begin(
		&call, CKT_PROC_LAUNCH_KERNEL_EX, fixed + ckt_padded(size), CKT_CALL_F_NUMBERED);
	if (result)
		return result;
	put_arguments(ckt_launch_kernel_ex_args_put(call.p, &args), f, params, packed, size);
	/*
	 * Only the driver knows which attributes a device supports, so this launch waits for the
	 * reply.
	 */
	return ckt_call_wait(&call, NULL);
}

/*
 * Launches if the program has memory that host and device share.  The parameters themselves may be
 * in such memory.  So the function reads them before the memory is closed, outside of the ring's
 * lock.  They may also point to pinned memory, which the device then needs.
 */
__attribute__((noinline)) static CUresult launch_shared(const struct ckt_function *f,
	const struct launch *l, void **params, const void *packed, uint32_t size)
{
	alignas(8) uint8_t copy[32768];
	if (packed)
		memcpy(copy, packed, size);
	else if (f->param_count)
		put_params(copy, f, params);
	CUresult result = ckt_client_host_map_params(copy, size);
	if (!result)
		result = ckt_managed_before_launch();
	if (result)
		return result;
	return l->attr_count ? send_ex(f, l, NULL, copy, size) : send_plain(f, l, NULL, copy, size);
}

static uint64_t context_of(uint64_t stream)
{
	const struct ckt_cudacommon_object *of = stream > ckt_handle_id(CU_STREAM_LEGACY)
		? ckt_cudacommon_object_find(stream, CKT_KIND_STREAM)
		: NULL;
	return of ? of->context : ckt_call_context;
}

/* Either params or packed, and enough of them. */
static bool arguments_good(
	const struct ckt_function *f, void *const *params, const void *packed, size_t size)
{
	return !(packed && params) && (packed || params || !f->param_count) &&
		size >= f->param_bytes && size <= 32768;
}

static CUresult launch_here(
	CUfunction handle, struct launch *l, CUstream stream, void **params, void **extra)
{
	struct ckt_function *f;
	struct ckt_context *context;
	const void *packed;
	size_t size;
	CUresult result = ckt_client_function_resolve(handle, &f);
	if (!result)
		result = ckt_client_context_current(&context);
	if (!result)
		result = ckt_stream_resolve(stream, &l->stream);
	if (!result && f->object.context != context_of(l->stream))
		result = CUDA_ERROR_INVALID_HANDLE;
	if (!result)
		result = check(f, l, context->device);
	if (result)
		return result;
	ckt_trace_launch(f->object.id, l->grid, l->block, l->shared_bytes, ckt_handle_id(stream));
	size = f->param_bytes;
	result = ckt_launch_extra(extra, &packed, &size);
	if (result)
		return result;
	if (!arguments_good(f, params, packed, size))
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_capture_stream *capturing;
	result = ckt_capture_enter(l->stream, &capturing);
	if (result)
		return result;
	if (__builtin_expect(capturing != NULL, 0)) {
		struct ckt_kernel_spec spec = {.handle = handle,
			.function = f,
			.param_count = f->param_count,
			.param_bytes = f->param_bytes,
			.grid = {l->grid[0], l->grid[1], l->grid[2]},
			.block = {l->block[0], l->block[1], l->block[2]},
			.shared_bytes = l->shared_bytes,
			.attributes = l->attrs,
			.attribute_count = l->attr_count,
			.params = params,
			.packed = packed,
			.packed_bytes = size};
		return ckt_graph_leave(ckt_capture_kernel(capturing, &spec, l->cooperative));
	}
	for (unsigned i = 0; i < l->attr_count; i++) {
		CUgraphEdgeData edge;
		result = ckt_launch_attribute_check(&l->attrs[i], false);
		if (result)
			return result;
		/*
		 * The launch records the event, so an earlier recording in a capture no longer
		 * counts.
		 */
		uint64_t event = ckt_handle_id(ckt_launch_attribute_event(&l->attrs[i], &edge));
		ckt_capture_event_forget(event);
		ckt_client_event_beside(event);
	}
	bool mappable = atomic_load_explicit(&ckt_host_mappable, memory_order_relaxed);
	if (__builtin_expect(ckt_managed_any() | mappable, 0))
		return launch_shared(f, l, params, packed, (uint32_t)size);
	return l->attr_count ? send_ex(f, l, params, packed, (uint32_t)size)
			     : send_plain(f, l, params, packed, (uint32_t)size);
}

/*
 * Sends the launch to the server of its context.  A function and a stream belong to a context.  A
 * kernel of a library runs in the stream's context.
 */
static CUresult launch(
	CUfunction handle, struct launch *l, CUstream stream, void **params, void **extra)
{
	uint64_t saved = ckt_call_context;
	uint64_t there = ckt_handle_kind(ckt_handle_id(handle)) == CKT_KIND_KERNEL
		? context_of(ckt_handle_id(stream))
		: saved;
	if (__builtin_expect(there == saved, 1))
		return launch_here(handle, l, stream, params, extra);
	ckt_client_context_use(there);
	CUresult result = launch_here(handle, l, stream, params, extra);
	ckt_client_context_use(saved);
	return result;
}

CKT_EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int shared_bytes, CUstream stream, void **params, void **extra)
{
	struct launch l = {.grid = {grid_x, grid_y, grid_z},
		.block = {block_x, block_y, block_z},
		.shared_bytes = shared_bytes};
	return launch(f, &l, stream, params, extra);
}

CKT_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction handle, unsigned int grid_x,
	unsigned int grid_y, unsigned int grid_z, unsigned int block_x, unsigned int block_y,
	unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **params)
{
	struct launch l = {.grid = {grid_x, grid_y, grid_z},
		.block = {block_x, block_y, block_z},
		.shared_bytes = shared_bytes,
		.cooperative = 1};
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	/* All blocks must be resident together.  Otherwise the error is returned at once. */
	int blocks;
	result = cuOccupancyMaxActiveBlocksPerMultiprocessor(
		&blocks, handle, (int)(block_x * block_y * block_z), shared_bytes);
	if (result)
		return result;
	uint64_t most = (uint64_t)blocks *
		(unsigned)ckt_client_device_attribute(
			context->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	if ((uint64_t)grid_x * grid_y * grid_z > most)
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	return launch(handle, &l, stream, params, NULL);
}

CKT_EXPORT CUresult cuLaunchKernelEx(
	const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	if (!config || (config->numAttrs && !config->attrs) ||
		config->numAttrs > 4096 / sizeof *config->attrs)
		return CUDA_ERROR_INVALID_VALUE;
	struct launch l = {.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
		.block = {config->blockDimX, config->blockDimY, config->blockDimZ},
		.shared_bytes = config->sharedMemBytes,
		.attrs = config->attrs,
		.attr_count = config->numAttrs};
	return launch(f, &l, config->hStream, params, extra);
}

CKT_EXPORT CUresult cuLaunchKernelEx_ptsz(
	const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	CUlaunchConfig own = *config;
	if (!own.hStream)
		own.hStream = CU_STREAM_PER_THREAD;
	return cuLaunchKernelEx(&own, f, params, extra);
}
