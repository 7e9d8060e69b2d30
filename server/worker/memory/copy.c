/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory: allocation, copies and fills.  See memory.h for the allocator, staging.h for the
 * way of bulk data.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/memory/copy.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/device.h"
#include "server/worker/objects/fence.h"
#include "server/worker/session/long_call.h"
#include "server/worker/worker.h"

/*
 * The driver copies small sources aside before it returns; above, the copy would wait for the
 * stream.
 */
enum { PAGEABLE_MAX = 64 << 10 };

static CUresult allocate(
	struct ckt_wcall *call, uint32_t ordinal, uint64_t size, uint64_t *ret_address)
{
	struct ckt_worker_device *device = ckt_worker_device_find(call->worker, ordinal);
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	uint64_t owner = call->header.context ? call->header.context : ckt_handle_primary(ordinal);
	CUresult result = ckt_memory_alloc(&device->memory, size, owner, ret_address);
	if (result == CUDA_ERROR_OUT_OF_MEMORY &&
		ckt_worker_pools_release(call->worker, ordinal, true))
		result = ckt_memory_alloc(&device->memory, size, owner, ret_address);
	return result;
}

int ckt_worker_mem_alloc(struct ckt_wcall *call)
{
	struct ckt_mem_alloc_args args;
	struct ckt_mem_alloc_res res;
	if (!ckt_mem_alloc_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = allocate(call, args.device, args.size, &res.address);
	if (!result)
		ckt_mem_alloc_res_put(ckt_wcall_results(call, ckt_mem_alloc_res_size(&res)), &res);
	return result;
}

/* When all queued work is done, frees the block and answers the call. */
static int free_behind_work(struct ckt_wcall *call, uint64_t address)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_worker_device *device = ckt_worker_device_of(worker, address);
	uint64_t owner;
	CUresult result = device ? ckt_memory_free_begin(&device->memory, address, &owner)
				 : CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	worker->pools.freed = worker->pools.synchronized = true;
	struct ckt_pending *pending = ckt_pending_new(call, CKT_PENDING_FREE, address);
	if (!pending) {
		ckt_memory_free_cancel(&device->memory, address);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* The work of the memory's own context counts, whatever context is current. */
	if (!worker->current || worker->current->id != owner)
		ckt_worker_use_context(worker, owner);
	if (worker->current) {
		/* A chain of its own: frees finish in any order. */
		pending->fences = worker->current->ctx.fences;
		pending->device = (unsigned)(device - worker->devices);
		pending->address = address;
		if (ckt_pending_add_behind_all(worker, pending, &result))
			return CKT_WCALL_LATER;
	} else {
		free(pending);
	}
	ckt_memory_free_end(&device->memory, address);
	ckt_pending_deliver(worker);
	return result;
}

/* Programs rely on cuMemFree's wait for all work. */
int ckt_worker_mem_free(struct ckt_wcall *call)
{
	struct ckt_mem_free_args args;
	if (!ckt_mem_free_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	ckt_ipc_forget(call->worker, args.address);
	return free_behind_work(call, args.address);
}

/* ---- Memory of graphs: ordinary blocks, as far as the worker is concerned */

int ckt_worker_graph_mem_alloc(struct ckt_wcall *call)
{
	struct ckt_graph_mem_alloc_args args;
	if (!ckt_graph_mem_alloc_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_graph_mem_alloc_res res = {.granted = ckt_memory_granted(args.size)};
	CUresult result = allocate(call, args.device, args.size, &res.address);
	if (!result)
		ckt_graph_mem_alloc_res_put(
			ckt_wcall_results(call, ckt_graph_mem_alloc_res_size(&res)), &res);
	return result;
}

/* Nobody waits for it, and if its context was destroyed first, it is gone. */
int ckt_worker_graph_mem_free(struct ckt_wcall *call)
{
	struct ckt_graph_mem_free_args args;
	if (!ckt_graph_mem_free_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	const struct ckt_worker_device *device = ckt_worker_device_of(call->worker, args.address);
	if (!device || !ckt_memory_holds((struct ckt_memory *)&device->memory, args.address, 1))
		return CUDA_SUCCESS;
	return free_behind_work(call, args.address);
}

int ckt_worker_mem_get_info(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_mem_get_info_args args;
	if (!ckt_mem_get_info_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_worker_device *device = ckt_worker_device_find(worker, args.device);
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	size_t free_bytes, total;
	ckt_worker_pools_poll(worker);
	ckt_long_call_settle(worker);
	CUresult result = ckt_driver.cuMemGetInfo_v2(&free_bytes, &total);
	if (result)
		return result;
	const struct ckt_memory_info driver = {free_bytes, total};
	struct ckt_memory_info info;
	ckt_device_memory_info(worker, device, &driver, &info);
	struct ckt_mem_get_info_res res = {.free = info.free_bytes, .total = info.total_bytes};
	ckt_mem_get_info_res_put(ckt_wcall_results(call, ckt_mem_get_info_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_memset(struct ckt_wcall *call)
{
	struct ckt_memset_args args;
	CUstream stream;
	if (!ckt_memset_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_object_stream(call->worker, args.stream, &stream);
	if (result)
		return result;
	bool flat = args.height == 1;
	switch (args.element_size) {
	case 1:
		return flat ? ckt_driver.cuMemsetD8Async(
				      args.dst, (unsigned char)args.value, args.width, stream)
			    : ckt_driver.cuMemsetD2D8Async(args.dst, args.pitch,
				      (unsigned char)args.value, args.width, args.height, stream);
	case 2:
		return flat ? ckt_driver.cuMemsetD16Async(
				      args.dst, (unsigned short)args.value, args.width, stream)
			    : ckt_driver.cuMemsetD2D16Async(args.dst, args.pitch,
				      (unsigned short)args.value, args.width, args.height, stream);
	case 4:
		return flat ? ckt_driver.cuMemsetD32Async(args.dst, args.value, args.width, stream)
			    : ckt_driver.cuMemsetD2D32Async(args.dst, args.pitch, args.value,
				      args.width, args.height, stream);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult ckt_worker_copy_stream(struct ckt_worker *worker, uint64_t id, CUstream *ret_stream)
{
	CUresult result = ckt_object_stream(worker, id, ret_stream);
	return result || worker->current ? result : CUDA_ERROR_INVALID_CONTEXT;
}

/* ---- To the device */

const uint8_t *ckt_worker_source(struct ckt_worker *worker, const uint8_t *data, uint32_t size,
	struct ckt_staging_piece **ret_piece)
{
	*ret_piece = NULL;
	if (size <= PAGEABLE_MAX)
		return data;
	*ret_piece = ckt_staging_to_device(&worker->staging);
	memcpy((*ret_piece)->data, data, size);
	return (*ret_piece)->data;
}

CUresult ckt_worker_sent(
	struct ckt_worker *worker, CUresult begun, struct ckt_staging_piece *piece, CUstream stream)
{
	return piece && !begun ? ckt_staging_sent(piece, worker->current->ctx.fences, stream)
			       : begun;
}

int ckt_worker_memcpy_htod(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_memcpy_htod_args args;
	CUstream stream;
	if (!ckt_memcpy_htod_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_copy_stream(worker, args.stream, &stream);
	if (result)
		return result;
	struct ckt_staging_piece *piece;
	const uint8_t *from = ckt_worker_source(worker, args.data, args.data_len, &piece);
	result = ckt_driver.cuMemcpyHtoDAsync_v2(args.dst, from, args.data_len, stream);
	return ckt_worker_sent(worker, result, piece, stream);
}

int ckt_worker_memcpy2d_htod(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_memcpy2d_htod_args args;
	CUstream stream;
	if (!ckt_memcpy2d_htod_args_get(&call->args, &args) ||
		(uint64_t)args.width * args.height != args.data_len)
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_copy_stream(worker, args.stream, &stream);
	if (result)
		return result;
	struct ckt_staging_piece *piece;
	CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = ckt_worker_source(worker, args.data, args.data_len, &piece),
		.srcPitch = args.width,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = args.dst,
		.dstPitch = args.dst_pitch,
		.WidthInBytes = args.width,
		.Height = args.height};
	result = ckt_driver.cuMemcpy2DAsync_v2(&copy, stream);
	return ckt_worker_sent(worker, result, piece, stream);
}

/* ---- On the device */

int ckt_worker_memcpy_dtod(struct ckt_wcall *call)
{
	struct ckt_memcpy_dtod_args args;
	CUstream stream;
	if (!ckt_memcpy_dtod_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_object_stream(call->worker, args.stream, &stream);
	return result ? result
		      : ckt_driver.cuMemcpyDtoDAsync_v2(args.dst, args.src, args.size, stream);
}

int ckt_worker_memcpy2d_dtod(struct ckt_wcall *call)
{
	struct ckt_memcpy2d_dtod_args args;
	CUstream stream;
	if (!ckt_memcpy2d_dtod_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_object_stream(call->worker, args.stream, &stream);
	if (result)
		return result;
	CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = args.src,
		.srcPitch = args.src_pitch,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = args.dst,
		.dstPitch = args.dst_pitch,
		.WidthInBytes = args.width,
		.Height = args.height};
	return ckt_driver.cuMemcpy2DAsync_v2(&copy, stream);
}

/* ---- To the host */

struct ckt_staging_piece *ckt_worker_take_piece(struct ckt_worker *worker, size_t size)
{
	for (;;) {
		struct ckt_staging_piece *piece = ckt_staging_to_host(&worker->staging, size);
		if (piece)
			return piece;
		ckt_pending_poll(worker);
		ckt_output_flush(&worker->output);
		nanosleep(&(struct timespec){.tv_nsec = 5000}, NULL);
	}
}

int ckt_worker_reply_on_lane(struct ckt_wcall *call, CUresult begun, uint64_t stream_id,
	CUstream stream, struct ckt_staging_piece *piece, size_t size, uint64_t lane_piece,
	bool background)
{
	struct ckt_worker *worker = call->worker;
	if (begun) {
		ckt_staging_give(&worker->staging, piece);
		return begun;
	}
	struct ckt_object *object =
		stream_id > 2 ? ckt_objects_find(&worker->objects, stream_id) : NULL;
	struct ckt_object *context =
		object ? ckt_objects_find(&worker->objects, object->context) : worker->current;
	struct ckt_pending *pending =
		ckt_pending_new(call, CKT_PENDING_DATA, stream_id ? stream_id : 1);
	if (!pending) {
		ckt_driver.cuStreamSynchronize(stream);
		ckt_staging_give(&worker->staging, piece);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pending->fences = (context ? context : worker->current)->ctx.fences;
	pending->piece = piece;
	pending->size = size;
	pending->lane_piece = lane_piece;
	pending->background = background;
	ckt_pending_add_behind(worker, pending, stream);
	return CKT_WCALL_LATER;
}

int ckt_worker_reply_when_done(struct ckt_wcall *call, CUresult begun, uint64_t stream_id,
	CUstream stream, struct ckt_staging_piece *piece, size_t size)
{
	return ckt_worker_reply_on_lane(call, begun, stream_id, stream, piece, size, 0, false);
}

int ckt_worker_memcpy_dtoh(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_memcpy_dtoh_args args;
	CUstream stream;
	if (!ckt_memcpy_dtoh_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (args.size > CKT_DATA_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_worker_copy_stream(worker, args.stream, &stream);
	if (result)
		return result;
	struct ckt_staging_piece *piece = ckt_worker_take_piece(worker, args.size);
	result = ckt_driver.cuMemcpyDtoHAsync_v2(piece->data, args.src, args.size, stream);
	return ckt_worker_reply_when_done(call, result, args.stream, stream, piece, args.size);
}

int ckt_worker_memcpy2d_dtoh(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_memcpy2d_dtoh_args args;
	CUstream stream;
	if (!ckt_memcpy2d_dtoh_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	uint64_t size = (uint64_t)args.width * args.height;
	if (size > CKT_DATA_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_worker_copy_stream(worker, args.stream, &stream);
	if (result)
		return result;
	struct ckt_staging_piece *piece = ckt_worker_take_piece(worker, size);
	CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = args.src,
		.srcPitch = args.src_pitch,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = piece->data,
		.dstPitch = args.width,
		.WidthInBytes = args.width,
		.Height = args.height};
	result = ckt_driver.cuMemcpy2DAsync_v2(&copy, stream);
	return ckt_worker_reply_when_done(call, result, args.stream, stream, piece, size);
}
