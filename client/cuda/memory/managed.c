/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory: one address for the program and its kernels, by page protection.
 *
 * An allocation is ordinary device memory of the session.  In this process, a memory file is mapped
 * at the same addresses, and a second time (the alias) for this library, always open.  Each chunk
 * of 64 KiB has a state:
 *
 *	DEVICE (no access) --program accesses it: wait for the GPU, fetch--> CLEAN (read only)
 *	CLEAN --program writes--> DIRTY (open)
 *	DIRTY --a copy reads the region: sent--> CLEAN
 *	CLEAN, DIRTY --a launch, or a write of the GPU to the region: DIRTY is sent--> DEVICE
 *
 * CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS is 0.  So a correct program leaves managed memory
 * alone while kernels run, and an access during that time waits for the GPU.  System calls do not
 * fault but fail; system_call_buffers.c opens their buffers.
 *
 * All transfers are on a stream of our own that waits for no other stream.  The client waits for
 * the work that they depend on first.  So a host function can access managed memory while its
 * stream waits for it to return.  What the function wrote is sent before its stream continues.
 *
 * managed_fault.c handles the program's page faults.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/cuda/memory/managed.h"
#include "base/fork.h"
#include "base/log.h"
#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/early_writes.h"
#include "client/cuda/memory/managed_fault.h"
#include "client/cuda/memory/managed_region.h"
#include "client/cuda/memory/memcpy.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/memory/registered.h"
#include "client/cuda/memory/system_call_buffers.h"
#include "client/cuda/memory/worker_pool.h"
#include "client/cuda/stream/stream.h"
#include "cudacommon/advice.h"

#define CHUNK CKT_MANAGED_CHUNK
/* The size of a block in the worker's allocator, so that no other allocation shares its pages. */
#define REGION_MIN ((uint64_t)2 << 20)

_Atomic unsigned ckt_managed_count;

CKT_LOCK(ckt_managed_lock);
static struct ckt_managed_region *regions;
/*
 * How often work was given to the GPU, and how many of those were waited for.  A fault waits for
 * the others.
 */
static _Atomic uint64_t work;
static uint64_t work_done;

/* ---- Transfers.  Precondition of all static functions here: locked. */

static CUresult send_bytes(struct ckt_managed_region *r, uint64_t offset, uint64_t end)
{
	return ckt_client_copy_send(r->base + offset, r->alias + offset, end - offset, r->stream);
}

/*
 * After a kernel failed, its context answers no call, so another process of the server reads the
 * bytes.
 */
static void rescue_bytes(struct ckt_managed_region *r, uint64_t offset, uint64_t end)
{
	static bool once;
	while (offset < end) {
		struct ckt_reply reply;
		struct ckt_memory_rescue_res res = {0};
		uint32_t size =
			(uint32_t)(end - offset < CKT_DATA_MAX ? end - offset : CKT_DATA_MAX);
		CUresult result = CKT_WAITED(memory_rescue, MEMORY_RESCUE, CKT_CALL_F_ANYWAY,
			&reply, .address = r->base + offset, .size = size);
		if (!result) {
			if (ckt_memory_rescue_res_get(&reply.results, &res) && res.data_len == size)
				memcpy(r->alias + offset, res.data, size);
			ckt_call_reply_release(&reply);
		} else if (!once) {
			once = true;
			ckt_log_user("a kernel failed, and what it left in managed memory "
				     "cannot be read (CUDA error %d): the program finds the "
				     "earlier contents",
				result);
		}
		offset += size;
	}
}

/* Fetches many pieces at once, which costs one round trip in all. */
static CUresult fetch_bytes(struct ckt_managed_region *r, uint64_t offset, uint64_t end)
{
	struct ckt_copy2d c = {.dst = (uint64_t)(uintptr_t)r->alias + offset,
		.src = r->base + offset,
		.src_device = true,
		.width = end - offset,
		.height = 1};
	CUresult result = ckt_client_copy_fetch(&c, 0, r->stream);
	if (!result || !ckt_call_fault())
		return result;
	rescue_bytes(r, offset, end);
	return CUDA_SUCCESS;
}

/* Sends or fetches those of the bytes that belong to the region. */
static CUresult transfer(struct ckt_managed_region *r, uint64_t begin, uint64_t end,
	CUresult (*way)(struct ckt_managed_region *r, uint64_t offset, uint64_t end))
{
	CUresult result = CUDA_SUCCESS;
	if (!r->spans)
		return way(r, begin, end);
	for (size_t i = 0; i < r->span_count && !result; i++) {
		uint64_t from = r->spans[i].begin - r->base, to = r->spans[i].end - r->base;
		if (from < begin)
			from = begin;
		if (to > end)
			to = end;
		if (from < to)
			result = way(r, from, to);
	}
	return result;
}

CUresult ckt_managed_send(struct ckt_managed_region *r, uint64_t offset, uint64_t end)
{
	return transfer(r, offset, end, send_bytes);
}

CUresult ckt_managed_fetch(struct ckt_managed_region *r, uint64_t first, uint64_t count)
{
	return transfer(r, first * CHUNK, (first + count) * CHUNK, fetch_bytes);
}

void ckt_managed_set_states(
	struct ckt_managed_region *r, uint64_t first, uint64_t count, enum ckt_managed_state state)
{
	for (uint64_t i = first; i < first + count; i++) {
		r->valid += r->states[i] == CKT_MANAGED_DEVICE;
		r->dirty += state == CKT_MANAGED_DIRTY;
	}
	memset(r->states + first, state, count);
}

/* Sends what the program wrote.  Sets *sent if there was something to send. */
static CUresult flush(struct ckt_managed_region *r, bool *sent)
{
	CUresult result = CUDA_SUCCESS;
	uint64_t chunks = r->size / CHUNK;
	for (uint64_t i = 0; i < chunks && r->dirty && !result;) {
		uint64_t end = i;
		while (end < chunks && r->states[end] == CKT_MANAGED_DIRTY)
			end++;
		if (end == i) {
			i++;
			continue;
		}
		/*
		 * Close the chunks first: a later write of another thread then faults and is not
		 * lost.
		 */
		mprotect((void *)(uintptr_t)(r->base + i * CHUNK), (end - i) * CHUNK, PROT_READ);
		result = ckt_managed_send(r, i * CHUNK, end * CHUNK);
		memset(r->states + i, CKT_MANAGED_CLEAN, end - i);
		r->dirty -= end - i;
		*sent = true;
		i = end;
	}
	return result;
}

static void close_all(struct ckt_managed_region *r)
{
	if (!r->valid)
		return;
	mprotect((void *)(uintptr_t)r->base, r->size, PROT_NONE);
	memset(r->states, CKT_MANAGED_DEVICE, r->size / CHUNK);
	r->valid = r->dirty = 0;
	ckt_managed_walk_end(&r->walk);
}

struct ckt_managed_region *ckt_managed_find(uint64_t address)
{
	for (struct ckt_managed_region *r = regions; r; r = r->next)
		if (address - r->base < r->size)
			return r;
	return NULL;
}

/*
 * Sends what the program wrote to one region (NULL: to all).  close: closes them too, so that the
 * program fetches again what it reads next.
 */
static CUresult hand_over(struct ckt_managed_region *only, bool close)
{
	CUresult result = CUDA_SUCCESS;
	uint64_t saved = ckt_call_context;
	for (struct ckt_managed_region *r = only ? only : regions; r && !result;
		r = only ? NULL : r->next) {
		bool sent = r->fresh;
		ckt_client_context_use(r->context);
		result = ckt_managed_close_early(r, &sent);
		if (!result)
			result = flush(r, &sent);
		/* The next work is on streams that do not wait for this one. */
		if (!result && sent)
			result = CKT_WAITED(stream_synchronize, STREAM_SYNCHRONIZE, 0, NULL,
				.stream = r->stream);
		if (!result)
			r->fresh = false;
		if (close && !result)
			close_all(r);
	}
	ckt_client_context_use(saved);
	return result;
}

/* ---- Before the GPU works */

CUresult ckt_managed_before_launch_slow(void)
{
	CUresult result = ckt_registered_before_work();
	if (result)
		return result;
	pthread_mutex_lock(&ckt_managed_lock);
	result = hand_over(NULL, true);
	work++;
	pthread_mutex_unlock(&ckt_managed_lock);
	return result;
}

CUresult ckt_managed_after_host_slow(void)
{
	return ckt_managed_before_launch_slow();
}

static CUresult before_access(uint64_t address, uint64_t size, bool write)
{
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&ckt_managed_lock);
	for (struct ckt_managed_region *r = regions; r && !result; r = r->next) {
		if (r->base - address >= size && address - r->base >= r->size)
			continue;
		result = hand_over(r, write);
		work += write;
	}
	pthread_mutex_unlock(&ckt_managed_lock);
	return result;
}

CUresult ckt_managed_before_access_slow(uint64_t address, uint64_t size, bool write)
{
	CUresult result = ckt_registered_before_work();
	return result ? result : before_access(address, size, write);
}

CUresult ckt_managed_hand_over(uint64_t address, uint64_t size)
{
	return before_access(address, size, true);
}

/* ---- After the GPU has worked */

bool ckt_managed_idle(void)
{
	return work_done >= work && ckt_conn_count == 1;
}

void ckt_managed_each(void (*what)(struct ckt_managed_region *r))
{
	for (struct ckt_managed_region *r = regions; r; r = r->next)
		what(r);
}

CUresult ckt_managed_wait(uint64_t context)
{
	uint64_t upto = work;
	/* With one server, a wait covers all of its work. */
	if (work_done >= upto && ckt_conn_count == 1)
		return CUDA_SUCCESS;
	pthread_mutex_unlock(&ckt_managed_lock);
	CUresult result =
		CKT_WAITED(ctx_synchronize, CTX_SYNCHRONIZE, 0, NULL, .id = ckt_call_id(context));
	pthread_mutex_lock(&ckt_managed_lock);
	if (result && ckt_call_fault())
		result = CUDA_SUCCESS; /* a kernel failed, so nothing runs any more */
	if (!result && work_done < upto)
		work_done = upto;
	return result;
}

/* ---- Allocation */

static void region_unmap(struct ckt_managed_region *r)
{
	ckt_managed_drop_early(r);
	if (r->alias)
		munmap(r->alias, r->size);
	if (r->adopted)
		mprotect((void *)(uintptr_t)r->base, r->size, PROT_READ | PROT_WRITE);
	else
		munmap((void *)(uintptr_t)r->base, r->size);
	free(r->spans);
	free(r->states);
	free(r);
}

/* Makes a region at addresses that are free in this process.  All chunks are in state DEVICE. */
static CUresult region_make(uint64_t base, uint64_t size, uint64_t context, uint64_t stream,
	struct ckt_managed_region **ret_region)
{
	struct ckt_managed_region *r = calloc(1, sizeof *r);
	uint8_t *states = malloc(size / CHUNK);
	int file = memfd_create("cricket-managed", MFD_CLOEXEC);
	void *alias = MAP_FAILED, *place = MAP_FAILED;
	if (r && states && file >= 0 && ftruncate(file, (off_t)size) == 0)
		alias = mmap(
			NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
	if (alias != MAP_FAILED)
		place = mmap((void *)(uintptr_t)base, size, PROT_NONE,
			MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file, 0);
	if (file >= 0)
		close(file);
	if ((uint64_t)(uintptr_t)place != base) {
		/* A kernel that does not know the flag treats the address as a hint. */
		if (place != MAP_FAILED)
			munmap(place, size);
		if (alias != MAP_FAILED)
			munmap(alias, size);
		free(states);
		free(r);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memset(states, CKT_MANAGED_DEVICE, size / CHUNK);
	*r = (struct ckt_managed_region){.base = base,
		.size = size,
		.context = context,
		.stream = stream,
		.alias = alias,
		.states = states};
	*ret_region = r;
	return CUDA_SUCCESS;
}

/* Clears new memory on both sides. */
static CUresult region_clear(struct ckt_managed_region *r)
{
	mprotect((void *)(uintptr_t)r->base, r->size, PROT_READ);
	ckt_managed_set_states(r, 0, r->size / CHUNK, CKT_MANAGED_CLEAN);
	r->fresh = true;
	return CKT_BATCHED(memset, MEMSET, .dst = r->base, .element_size = 4, .width = r->size / 4,
		.height = 1, .stream = r->stream);
}

/* Precondition: locked. */
static void region_enter(struct ckt_managed_region *r)
{
	if (atomic_fetch_add(&ckt_managed_count, 1) == 0)
		ckt_managed_watch();
	ckt_buffers_enter(r->base, r->size);
	r->next = regions;
	regions = r;
}

/* Precondition: locked. */
static void region_leave(struct ckt_managed_region **place)
{
	struct ckt_managed_region *r = *place;
	bool counted = !r->asleep;
	*place = r->next;
	if (counted)
		ckt_buffers_leave(r->base, r->size);
	region_unmap(r);
	if (counted && atomic_fetch_sub(&ckt_managed_count, 1) == 1)
		ckt_managed_unwatch();
}

/* Makes a region of existing memory of the program, with every chunk in this state. */
static CUresult region_of_program(uint64_t base, uint64_t size, uint64_t context,
	enum ckt_managed_state state, struct ckt_managed_region **ret_region)
{
	uint64_t stream;
	CUresult result = ckt_client_stream_aside(context, &stream);
	if (result)
		return result;
	struct ckt_managed_region *r = calloc(1, sizeof *r);
	uint8_t *states = malloc(size / CHUNK);
	if (!r || !states) {
		free(r);
		free(states);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memset(states, state, size / CHUNK);
	*r = (struct ckt_managed_region){.base = base,
		.size = size,
		.context = context,
		.stream = stream,
		.states = states,
		.adopted = true};
	*ret_region = r;
	return CUDA_SUCCESS;
}

CUresult ckt_managed_adopt(uint64_t base, uint64_t size, void *alias, uint64_t context)
{
	struct ckt_managed_region *r;
	CUresult result = region_of_program(base, size, context, CKT_MANAGED_DIRTY, &r);
	if (result)
		return result;
	r->alias = alias;
	r->valid = r->dirty = size / CHUNK;
	pthread_mutex_lock(&ckt_managed_lock);
	region_enter(r);
	pthread_mutex_unlock(&ckt_managed_lock);
	return CUDA_SUCCESS;
}

CUresult ckt_managed_prepare(
	uint64_t base, uint64_t size, uint64_t context, struct ckt_managed_region **ret_region)
{
	struct ckt_managed_region *r;
	CUresult result = region_of_program(base, size, context, CKT_MANAGED_DEVICE, &r);
	if (result)
		return result;
	r->asleep = true;
	pthread_mutex_lock(&ckt_managed_lock);
	r->next = regions;
	regions = r;
	pthread_mutex_unlock(&ckt_managed_lock);
	*ret_region = r;
	return CUDA_SUCCESS;
}

/*
 * Runs without the lock, because its holder may wait for the connection.  Until now, no other code
 * used the region's contents.
 */
const void *ckt_managed_wake(struct ckt_managed_region *r)
{
	int saved_errno = errno;
	void *memory = (void *)(uintptr_t)r->base;
	if (r->asleep) {
		/* For shared memory, mremap with an old size of 0 makes a second mapping. */
		void *alias = mremap(memory, 0, r->size, MREMAP_MAYMOVE);
		if (alias == MAP_FAILED) {
			errno = saved_errno;
			return NULL;
		}
		r->alias = alias;
		if (atomic_fetch_add(&ckt_managed_count, 1) == 0)
			ckt_managed_watch();
		ckt_buffers_enter(r->base, r->size);
		/* The next fault waits for the commands that are sent again. */
		atomic_fetch_add(&work, 1);
		atomic_store(&r->asleep, false);
		mprotect(memory, r->size, PROT_NONE);
	}
	errno = saved_errno;
	return r->alias;
}

static CUresult device_alloc(uint32_t device, uint64_t size, uint64_t *ret_address)
{
	struct ckt_reply reply;
	struct ckt_mem_alloc_res res;
	CUresult result = CKT_WAITED(mem_alloc, MEM_ALLOC, CKT_CALL_F_NUMBERED, &reply,
		.device = ckt_call_device(device), .size = size);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && ckt_pool_may_settle() && !cuCtxSynchronize())
		result = CKT_WAITED(mem_alloc, MEM_ALLOC, CKT_CALL_F_NUMBERED, &reply,
			.device = ckt_call_device(device), .size = size);
	if (result)
		return result;
	bool good = ckt_mem_alloc_res_get(&reply.results, &res);
	ckt_call_reply_release(&reply);
	*ret_address = good ? res.address : 0;
	return good ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

CKT_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *ret_address, size_t size, unsigned int flags)
{
	struct ckt_context *context;
	struct ckt_managed_region *r;
	uint64_t address, stream;
	if (!ret_address || !size || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	uint64_t rounded = (size + CHUNK - 1) / CHUNK * CHUNK;
	if (rounded < size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (rounded < REGION_MIN)
		rounded = REGION_MIN;
	result = ckt_client_stream_aside(context->object.id, &stream);
	if (!result)
		result = ckt_range_room();
	if (!result)
		result = device_alloc((uint32_t)context->device, rounded, &address);
	if (result)
		return result;
	int saved_errno = errno;
	result = region_make(address, rounded, context->object.id, stream, &r);
	if (!result)
		result = region_clear(r);
	if (result) {
		CKT_WAITED(mem_free, MEM_FREE, CKT_CALL_F_NUMBERED, NULL, .address = address);
		errno = saved_errno;
		return result;
	}
	ckt_advice_forget(address, rounded);
	pthread_mutex_lock(&ckt_managed_lock);
	region_enter(r);
	pthread_mutex_unlock(&ckt_managed_lock);
	errno = saved_errno;
	ckt_range_add(&(struct ckt_client_range){.base = address,
		.size = size,
		.kind = CKT_RANGE_MANAGED,
		.context = context->object.id,
		.flags = flags,
		.device = context->device});
	*ret_address = address;
	return CUDA_SUCCESS;
}

static void take_out(
	bool (*wanted)(const struct ckt_managed_region *r, uint64_t value), uint64_t value)
{
	int saved_errno = errno;
	pthread_mutex_lock(&ckt_managed_lock);
	for (struct ckt_managed_region **place = &regions; *place;) {
		struct ckt_managed_region *r = *place;
		if (!wanted(r, value)) {
			place = &r->next;
			continue;
		}
		region_leave(place);
	}
	pthread_mutex_unlock(&ckt_managed_lock);
	errno = saved_errno;
}

static bool has_base(const struct ckt_managed_region *r, uint64_t base)
{
	return r->base == base && !r->spans;
}

static bool has_context(const struct ckt_managed_region *r, uint64_t context)
{
	return r->context == context && !r->asleep;
}

void ckt_managed_forget(uint64_t address)
{
	take_out(has_base, address);
}

void ckt_managed_forget_context(uint64_t context)
{
	if (atomic_load_explicit(&ckt_managed_count, memory_order_relaxed))
		take_out(has_context, context);
}

/*
 * ---- Variables of modules.  The driver chooses their addresses.  Other bytes of their pages are
 * not managed memory and are never sent.
 */

static CUresult span_add(struct ckt_managed_region *r, struct ckt_managed_span span)
{
	struct ckt_managed_span *larger = reallocarray(r->spans, r->span_count + 1, sizeof *larger);
	if (!larger)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r->spans = larger;
	r->spans[r->span_count++] = span;
	return CUDA_SUCCESS;
}

/* Finds or makes the region of the chunk at the address. */
static CUresult region_of_chunk(
	uint64_t address, uint64_t context, uint64_t stream, struct ckt_managed_region **ret_region)
{
	struct ckt_managed_region *r = ckt_managed_find(address);
	CUresult result = CUDA_SUCCESS;
	if (r && ckt_client_context_conn(r->context) != ckt_client_context_conn(context)) {
		/*
		 * Drivers of two servers place variables at the same addresses, but this process
		 * has each address only once.
		 */
		result = CKT_CUDACOMMON_UNSUPPORTED(
			"a managed variable at an address that another server's has");
	} else if (r) {
		/* Open chunks do not hold the new variable's bytes yet, so close them. */
		result = hand_over(r, true);
	} else {
		result = region_make(address / CHUNK * CHUNK, CHUNK, context, stream, &r);
		if (!result)
			region_enter(r);
	}
	*ret_region = r;
	return result;
}

CUresult ckt_managed_variable(uint64_t address, uint64_t size, uint64_t context, uint64_t module)
{
	static bool once;
	uint64_t stream;
	CUresult result = ckt_client_stream_aside(context, &stream);
	int saved_errno = errno;
	struct ckt_managed_region *r;
	if (result)
		return result;
	pthread_mutex_lock(&ckt_managed_lock);
	for (uint64_t at = address; at < address + size && !result; at = r->base + r->size) {
		result = region_of_chunk(at, context, stream, &r);
		if (result)
			break;
		uint64_t end =
			r->base + r->size < address + size ? r->base + r->size : address + size;
		result = span_add(
			r, (struct ckt_managed_span){.begin = at, .end = end, .module = module});
	}
	pthread_mutex_unlock(&ckt_managed_lock);
	errno = saved_errno;
	if (result && !once) {
		once = true;
		ckt_log_user("a managed variable is at 0x%llx on the GPU's machine, but "
			     "this program uses that address: refusing it",
			(unsigned long long)address);
	}
	return result;
}

void ckt_managed_forget_owner(uint64_t module)
{
	if (!atomic_load_explicit(&ckt_managed_count, memory_order_relaxed))
		return;
	int saved_errno = errno;
	pthread_mutex_lock(&ckt_managed_lock);
	for (struct ckt_managed_region **place = &regions; *place;) {
		struct ckt_managed_region *r = *place;
		size_t kept = 0;
		for (size_t i = 0; i < r->span_count; i++)
			if (r->spans[i].module != module)
				r->spans[kept++] = r->spans[i];
		bool variables = r->span_count > 0;
		r->span_count = kept;
		if (variables && !kept)
			region_leave(place);
		else
			place = &r->next;
	}
	pthread_mutex_unlock(&ckt_managed_lock);
	errno = saved_errno;
}
