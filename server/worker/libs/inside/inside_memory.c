/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory of libraries in the session's window; see inside.h.
 *
 * An allocation on a stream (cuMemAllocAsync) returns usable memory at once, because the host maps
 * the window's memory.  A free waits for all work that may still use the memory.  The executor must
 * not wait, because the GPU may wait for its commands, so another thread waits instead.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/log.h"
#include "server/worker/driver.h"
#include "server/worker/libs/code/code.h"
#include "server/worker/libs/inside/inside.h"
#include "server/worker/objects/device.h"
#include "server/worker/session/long_call.h"
#include "server/worker/worker.h"

struct ckt_worker_device *ckt_inside_device(void)
{
	CUdevice ordinal;
	if (ckt_driver.cuCtxGetDevice(&ordinal))
		return NULL;
	for (unsigned d = 0; d < ckt_worker.device_count; d++)
		if (ckt_worker.devices[d].ordinal == ordinal)
			return &ckt_worker.devices[d];
	return NULL;
}

/* ---- Allocation */

__thread bool ckt_inside_missed;

static CUresult allocate(uint64_t size, CUdeviceptr *ret_address)
{
	struct ckt_worker *worker = &ckt_worker;
	struct ckt_worker_device *device = ckt_inside_device();
	uint64_t address;
	if (!device)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ret_address || !size)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_memory_alloc(&device->memory, size, ckt_inside_owner(), &address);
	/* As for the program's own memory: release what pools keep and what is being freed. */
	if (result == CUDA_ERROR_OUT_OF_MEMORY && ckt_inside_has_tables()) {
		ckt_worker_pools_release(worker, (unsigned)(device - worker->devices), true);
		ckt_inside_free_waiting(worker, 0);
		ckt_long_call_settle(worker);
		result = ckt_memory_alloc(&device->memory, size, ckt_inside_owner(), &address);
	}
	if (!result)
		*ret_address = address;
	else if (result == CUDA_ERROR_OUT_OF_MEMORY)
		ckt_inside_missed = true;
	return result;
}

static CUresult CUDAAPI block_alloc(CUdeviceptr *address, size_t size)
{
	return allocate(size, address);
}

static CUresult CUDAAPI mem_alloc_pitch(
	CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
	size_t row;
	if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_add_overflow(width, CKT_MEMORY_ALIGNMENT - 1, &row))
		return CUDA_ERROR_OUT_OF_MEMORY;
	row -= row % CKT_MEMORY_ALIGNMENT;
	size_t size;
	if (__builtin_mul_overflow(row, height, &size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = allocate(size, address);
	if (!result)
		*pitch = row;
	return result;
}

static CUresult CUDAAPI mem_alloc_async(CUdeviceptr *address, size_t size, CUstream stream)
{
	(void)stream;
	return allocate(size, address);
}

/* The pool's own settings stay the driver's, but its memory is not used. */
static CUresult CUDAAPI mem_alloc_from_pool_async(
	CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream)
{
	(void)pool;
	(void)stream;
	return allocate(size, address);
}

/* ---- Free */

/*
 * Memory that a library freed when no wait was possible.  It waits for the next attempt, or for the
 * end of the captured call that uses it.
 */
static struct {
	pthread_mutex_t lock;
	struct waiting {
		struct ckt_memory *memory;
		uint64_t address;
		CUcontext context;
		uint64_t call; /* 0: no captured call */
	} * list;
	size_t count, room;
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void wait_longer(
	struct ckt_memory *memory, uint64_t address, CUcontext context, uint64_t call)
{
	pthread_mutex_lock(&waiting.lock);
	/* Without memory for an entry, the block stays until its context ends. */
	if (!CKT_GROW(waiting.list, waiting.count, waiting.room, 16))
		waiting.list[waiting.count++] = (struct waiting){memory, address, context, call};
	pthread_mutex_unlock(&waiting.lock);
}

struct freed {
	struct ckt_long_call_job job;
	struct ckt_memory *memory;
	uint64_t address;
	CUevent event; /* NULL: wait for all work of the context */
	CUresult result;
};

/*
 * In the relaxed capture mode, because the driver otherwise refuses to wait while the context
 * captures.
 */
static CUresult wait_for(CUevent event)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	ckt_driver.cuThreadExchangeStreamCaptureMode(&mode);
	CUresult result =
		event ? ckt_driver.cuEventSynchronize(event) : ckt_driver.cuCtxSynchronize();
	ckt_driver.cuThreadExchangeStreamCaptureMode(&mode);
	if (event)
		ckt_driver.cuEventDestroy_v2(event);
	return result;
}

static void freed_run(struct ckt_long_call_job *job)
{
	struct freed *freed = (struct freed *)job;
	freed->result = wait_for(freed->event);
}

static void freed_end(
	struct ckt_memory *memory, uint64_t address, CUcontext context, CUresult result)
{
	if (result)
		wait_longer(memory, address, context, 0);
	else
		ckt_memory_free_end(memory, address);
}

static void freed_finish(struct ckt_worker *worker, struct ckt_long_call_job *job)
{
	struct freed *freed = (struct freed *)job;
	(void)worker;
	freed_end(freed->memory, freed->address, job->context, freed->result);
	free(freed);
}

/* event: owned.  context: the current one; any if the executor runs and there is no event. */
static void free_behind(
	struct ckt_memory *memory, uint64_t address, CUcontext context, CUevent event)
{
	struct ckt_worker *worker = &ckt_worker;
	struct freed *freed =
		worker->go && context && ckt_inside_has_tables() ? calloc(1, sizeof *freed) : NULL;
	if (!freed) {
		freed_end(memory, address, context, wait_for(event));
		return;
	}
	*freed = (struct freed){
		.job = {.context = context, .run = freed_run, .finish = freed_finish},
		.memory = memory,
		.address = address,
		.event = event};
	ckt_long_call_submit(worker, &freed->job);
}

void ckt_inside_free_waiting(struct ckt_worker *worker, uint64_t call)
{
	/*
	 * Waiting in other contexts needs the thread of long calls, which exists once the session
	 * runs.
	 */
	if (!worker->go)
		return;
	pthread_mutex_lock(&waiting.lock);
	for (size_t i = waiting.count; i-- > 0;) {
		struct waiting next = waiting.list[i];
		if (next.call && next.call != call)
			continue;
		waiting.list[i] = waiting.list[--waiting.count];
		pthread_mutex_unlock(&waiting.lock);
		free_behind(next.memory, next.address, next.context, NULL);
		pthread_mutex_lock(&waiting.lock);
		/*
		 * Without memory for a job, the wait ran at once and failed, and the entry is at
		 * the end again, behind the entries still to visit.
		 */
		i = i < waiting.count ? i : waiting.count;
	}
	pthread_mutex_unlock(&waiting.lock);
}

static void forget_waiting(CUcontext context)
{
	pthread_mutex_lock(&waiting.lock);
	for (size_t i = waiting.count; i-- > 0;)
		if (waiting.list[i].context == context)
			waiting.list[i] = waiting.list[--waiting.count];
	pthread_mutex_unlock(&waiting.lock);
}

static CUresult begin_free(CUdeviceptr address, struct ckt_memory **ret_memory)
{
	struct ckt_worker_device *device = ckt_worker_device_of(&ckt_worker, address);
	*ret_memory = device ? &device->memory : NULL;
	return device ? ckt_memory_free_library(&device->memory, address) : CUDA_SUCCESS;
}

static CUresult CUDAAPI block_free(CUdeviceptr address)
{
	struct ckt_memory *memory;
	CUresult result = begin_free(address, &memory);
	if (result)
		return result;
	if (!memory)
		return ckt_inside_free_managed(address);
	CUcontext context = NULL;
	ckt_driver.cuCtxGetCurrent(&context);
	uint64_t call = ckt_inside_captured_call();
	/* The captured call uses the memory when it runs later. */
	if (call)
		wait_longer(memory, address, context, call);
	else
		free_behind(memory, address, context, NULL);
	return CUDA_SUCCESS;
}

/*
 * Records an event behind the stream's work.  Fails if the stream captures, because nothing may be
 * added to the capture.
 */
static CUresult event_behind(CUstream stream, CUevent *ret_event)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult result = ckt_driver.cuStreamIsCapturing(stream, &status);
	if (!result && status != CU_STREAM_CAPTURE_STATUS_NONE)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (!result)
		result = ckt_driver.cuEventCreate(ret_event, CU_EVENT_DISABLE_TIMING);
	if (!result && (result = ckt_driver.cuEventRecord(*ret_event, stream)))
		ckt_driver.cuEventDestroy_v2(*ret_event);
	return result;
}

static CUresult free_async(CUdeviceptr address, CUstream stream)
{
	struct ckt_memory *memory;
	CUresult result = begin_free(address, &memory);
	if (result || !memory)
		return result ? result : ckt_inside_free_managed(address);
	CUevent event;
	CUcontext context = NULL;
	ckt_driver.cuCtxGetCurrent(&context);
	result = event_behind(stream, &event);
	if (result)
		wait_longer(memory, address, context, ckt_inside_captured_call());
	else
		free_behind(memory, address, context, event);
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI mem_free_async(CUdeviceptr address, CUstream stream)
{
	return free_async(address, stream);
}

static CUresult CUDAAPI mem_free_async_ptsz(CUdeviceptr address, CUstream stream)
{
	return free_async(address, stream ? stream : CU_STREAM_PER_THREAD);
}

/*
 * ---- The owner has ended
 */

void ckt_inside_owner_ended(struct ckt_worker *worker, uint64_t owner, uint64_t context)
{
	uint64_t kept = 0;
	for (unsigned d = 0; d < worker->device_count; d++)
		kept += ckt_memory_reown(&worker->devices[d].memory, owner | CKT_MEMORY_LIBRARY,
			context | CKT_MEMORY_LIBRARY);
	if (kept)
		ckt_debug("a library keeps %llu KiB that it allocated for object 0x%llx, "
			  "which has ended",
			(unsigned long long)kept >> 10, (unsigned long long)owner);
	ckt_inside_free_waiting(worker, owner);
}

void ckt_inside_context_ended(struct ckt_worker *worker, const struct ckt_object *context)
{
	forget_waiting(context->real);
	ckt_code_forget_context(context->real);
	for (unsigned d = 0; d < worker->device_count; d++)
		ckt_memory_free_owned(&worker->devices[d].memory, context->id | CKT_MEMORY_LIBRARY);
}

/*
 * ---- Queries
 */

static CUresult CUDAAPI mem_get_info(size_t *free_bytes, size_t *total)
{
	struct ckt_worker *worker = &ckt_worker;
	struct ckt_worker_device *device = ckt_inside_device();
	if (!device)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!free_bytes || !total)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_driver.cuMemGetInfo_v2(free_bytes, total);
	if (result)
		return result;
	const struct ckt_memory_info driver = {*free_bytes, *total};
	struct ckt_memory_info info;
	ckt_device_memory_info(worker, device, &driver, &info);
	*free_bytes = info.free_bytes;
	*total = info.total_bytes;
	return CUDA_SUCCESS;
}

/* The driver sees the window as one reservation without a context, with extents mapped in it. */
static bool block_at(CUdeviceptr address, struct ckt_block *ret_block)
{
	struct ckt_worker_device *device = ckt_worker_device_of(&ckt_worker, address);
	return device && ckt_memory_block_of(&device->memory, address, ret_block);
}

static CUresult CUDAAPI mem_get_address_range(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
	struct ckt_block block;
	if (!block_at(address, &block))
		return ckt_driver.cuMemGetAddressRange_v2(base, size, address);
	if (base)
		*base = block.address;
	if (size)
		*size = block.size;
	return CUDA_SUCCESS;
}

static bool answer_attribute(
	void *data, CUpointer_attribute attribute, const struct ckt_block *block)
{
	CUcontext context;
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		/* All libraries of a device work in its primary context or in the current one. */
		if (ckt_driver.cuCtxGetCurrent(&context) || !context)
			return false;
		*(CUcontext *)data = context;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = block->address;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = block->size;
		return true;
	default:
		return false;
	}
}

static CUresult CUDAAPI pointer_get_attribute(
	void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
	struct ckt_block block;
	if (data && block_at(address, &block) && answer_attribute(data, attribute, &block))
		return CUDA_SUCCESS;
	return ckt_driver.cuPointerGetAttribute(data, attribute, address);
}

static CUresult CUDAAPI pointer_get_attributes(
	unsigned count, CUpointer_attribute *attributes, void **data, CUdeviceptr address)
{
	struct ckt_block block;
	CUresult result = ckt_driver.cuPointerGetAttributes(count, attributes, data, address);
	if (result || !block_at(address, &block))
		return result;
	for (unsigned i = 0; i < count; i++)
		if (data[i])
			answer_attribute(data[i], attributes[i], &block);
	return CUDA_SUCCESS;
}

const struct ckt_inside_hook ckt_inside_memory_hooks[] = {
	{"cuMemAlloc_v2", (void *)block_alloc},
	{"cuMemAllocPitch_v2", (void *)mem_alloc_pitch},
	{"cuMemAllocAsync", (void *)mem_alloc_async},
	{"cuMemAllocAsync_ptsz", (void *)mem_alloc_async},
	{"cuMemAllocFromPoolAsync", (void *)mem_alloc_from_pool_async},
	{"cuMemAllocFromPoolAsync_ptsz", (void *)mem_alloc_from_pool_async},
	{"cuMemFree_v2", (void *)block_free},
	{"cuMemFreeAsync", (void *)mem_free_async},
	{"cuMemFreeAsync_ptsz", (void *)mem_free_async_ptsz},
	{"cuMemGetInfo_v2", (void *)mem_get_info},
	{"cuMemGetAddressRange_v2", (void *)mem_get_address_range},
	{"cuPointerGetAttribute", (void *)pointer_get_attribute},
	{"cuPointerGetAttributes", (void *)pointer_get_attributes},
	{NULL, NULL},
};
