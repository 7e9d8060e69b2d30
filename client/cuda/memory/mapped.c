/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned memory that kernels can access if the worker is on another host (shared.c: on this host).
 * An allocation is at addresses that the worker reserved in its window, so that the device can have
 * memory at the same addresses.  It is ordinary memory of the program until it is mapped:
 *
 *	ordinary --the program asks for its device address, or fills it--> mapped
 *	ordinary --a launch or a texture names an address in it--> mapped
 *
 * Then there is device memory at the same address.  Both are kept coherent as managed memory is
 * (managed.c), and copies with it use the device's side.
 *
 * Addresses are given in units of 2 MiB.  A small allocation takes such a slot of an arena, which
 * one call reserved; a larger one has its own reservation.  If the client or the worker cannot have
 * the addresses, the memory is at any address and cannot be mapped.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/cuda/memory/mapped.h"
#include "base/fork.h"
#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/managed.h"
#include "client/cuda/memory/memcpy.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/memory/shared.h"
#include "rpc/not_supported.h"

#define SLOT ((uint64_t)2 << 20)
#define CHUNK ((uint64_t)64 << 10)
enum { SLOTS = 64 };

struct arena {
	struct arena *next;
	uint64_t base;
	uint64_t used; /* a bit per slot: 1 means taken */
};

/* An allocation that can be mapped. */
struct pinned {
	struct pinned *next;
	uint64_t base, size; /* size: a multiple of CHUNK */
	uint64_t context;
	struct arena *arena; /* NULL: it has its own reservation */
	uint32_t device;
	struct ckt_cudacommon_object *physical; /* the mapped device memory, or NULL */
};

_Atomic unsigned ckt_host_mappable;

static CKT_LOCK(lock);
static struct arena *arenas;
static struct pinned *allocations;

static uint64_t round_up(uint64_t size, uint64_t to)
{
	return (size + to - 1) / to * to;
}

/* ---- Addresses.  Precondition of all static functions from here on: locked. */

/* Returns 0 if the worker has no addresses left. */
static uint64_t reserve(uint32_t device, uint64_t size)
{
	struct ckt_reply reply;
	struct ckt_address_reserve_res res;
	if (CKT_WAITED(address_reserve, ADDRESS_RESERVE, CKT_CALL_F_NUMBERED, &reply,
		    .device = device, .size = size, .alignment = 0, .hint = 0))
		return 0;
	bool good = ckt_address_reserve_res_get(&reply.results, &res);
	ckt_call_reply_release(&reply);
	return good ? res.address : 0;
}

static uint64_t take_slot(uint32_t device, struct arena **ret_arena)
{
	struct arena *arena = arenas;
	while (arena && !~arena->used)
		arena = arena->next;
	if (!arena) {
		arena = calloc(1, sizeof *arena);
		if (arena)
			arena->base = reserve(device, SLOTS * SLOT);
		if (!arena || !arena->base) {
			free(arena);
			return 0;
		}
		arena->next = arenas;
		arenas = arena;
	}
	unsigned slot = (unsigned)__builtin_ctzll(~arena->used);
	arena->used |= 1ull << slot;
	*ret_arena = arena;
	return arena->base + slot * SLOT;
}

static void give_addresses(const struct pinned *p)
{
	if (p->arena)
		p->arena->used &= ~(1ull << (p->base - p->arena->base) / SLOT);
	else
		CKT_BATCHED(address_free, ADDRESS_FREE, .address = p->base,
			.size = round_up(p->size, SLOT));
}

/* ---- Allocation */

static struct pinned *alloc_mappable(struct ckt_context *context, uint64_t size)
{
	/*
	 * With several servers, kernels of each would need the memory, but an address holds memory
	 * of one device only.  So copies transfer the bytes.
	 */
	if (ckt_conn_count > 1)
		return NULL;
	struct pinned *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	*p = (struct pinned){.size = round_up(size, CHUNK),
		.context = context->object.id,
		.device = (uint32_t)context->device};
	p->base = size <= SLOT ? take_slot(p->device, &p->arena)
			       : reserve(p->device, round_up(size, SLOT));
	if (!p->base) {
		free(p);
		return NULL;
	}
	/* MAP_SHARED, so that the same pages can be mapped a second time. */
	void *wanted = (void *)(uintptr_t)p->base;
	void *place = mmap(wanted, p->size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (place != wanted) {
		if (place != MAP_FAILED)
			munmap(place, p->size);
		/* A slot whose addresses this process uses stays marked as taken. */
		if (!p->arena)
			give_addresses(p);
		free(p);
		return NULL;
	}
	p->next = allocations;
	allocations = p;
	atomic_fetch_add(&ckt_host_mappable, 1);
	return p;
}

CUresult ckt_client_host_alloc(
	struct ckt_context *context, size_t size, unsigned flags, void **ret_memory)
{
	size_t rounded = round_up(size, CHUNK);
	if (rounded < size || ckt_range_room())
		return CUDA_ERROR_OUT_OF_MEMORY;
	int saved_errno = errno;
	uint64_t address = 0;
	bool shared = ckt_shared_alloc(context, rounded, &address);
	pthread_mutex_lock(&lock);
	struct pinned *p = shared ? NULL : alloc_mappable(context, size);
	void *memory = (void *)(uintptr_t)(p ? p->base : address);
	pthread_mutex_unlock(&lock);
	if (!memory)
		memory = mmap(
			NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = saved_errno;
	if (memory == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ckt_range_add(&(struct ckt_client_range){.base = (uint64_t)(uintptr_t)memory,
		.size = size,
		.kind = CKT_RANGE_HOST_ALLOC,
		.context = context->object.id,
		.flags = flags,
		.device = context->device,
		.owner = shared || p,
		.mapped = shared,
		.shared = shared});
	*ret_memory = memory;
	return CUDA_SUCCESS;
}

/* Releases the device memory.  mapped: it has been mapped. */
static void unmap_device(struct pinned *p, bool mapped)
{
	if (mapped)
		CKT_BATCHED(
			mem_unmap, MEM_UNMAP, .address = p->base, .size = round_up(p->size, SLOT));
	CKT_BATCHED(physical_release, PHYSICAL_RELEASE, .id = p->physical->id);
	ckt_cudacommon_object_remove(p->physical);
	p->physical = NULL;
}

CUresult ckt_client_host_free(const struct ckt_client_range *range)
{
	CUresult result = CUDA_SUCCESS;
	struct pinned **place, *p;
	ckt_client_copy_settle((void *)(uintptr_t)range->base, range->size);
	/* Kernels may still use it. */
	if (range->mapped) {
		uint64_t saved = ckt_call_context;
		ckt_client_context_use(range->context);
		result = CKT_WAITED(ctx_synchronize, CTX_SYNCHRONIZE, 0, NULL,
			.id = ckt_call_id(range->context));
		ckt_client_context_use(saved);
		if (ckt_shared_free(range->base))
			return result;
		ckt_managed_forget(range->base);
	}
	munmap((void *)(uintptr_t)range->base, round_up(range->size, CHUNK));
	pthread_mutex_lock(&lock);
	for (place = &allocations; (p = *place) && p->base != range->base;)
		place = &p->next;
	if (p && range->owner) {
		*place = p->next;
		if (p->physical)
			unmap_device(p, true);
		else
			atomic_fetch_sub(&ckt_host_mappable, 1);
		give_addresses(p);
		free(p);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- Mapping */

static CUresult map_device(struct pinned *p)
{
	uint64_t size = round_up(p->size, SLOT);
	p->physical = calloc(1, sizeof *p->physical);
	if (!p->physical || !ckt_cudacommon_object_add(p->physical, CKT_KIND_PHYSICAL)) {
		free(p->physical);
		p->physical = NULL;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	uint64_t id = p->physical->id;
	CUresult result = CKT_WAITED(physical_create, PHYSICAL_CREATE, CKT_CALL_F_NUMBERED, NULL,
		.id = id, .device = p->device, .size = size);
	if (result) {
		ckt_cudacommon_object_remove(p->physical);
		p->physical = NULL;
		return result;
	}
	result = CKT_WAITED(mem_map, MEM_MAP, CKT_CALL_F_NUMBERED, NULL, .address = p->base,
		.size = size, .offset = 0, .physical = id);
	if (result) {
		unmap_device(p, false);
		return result;
	}
	result = CKT_WAITED(mem_set_access, MEM_SET_ACCESS, CKT_CALL_F_NUMBERED, NULL,
		.address = p->base, .size = size, .access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	if (result)
		unmap_device(p, true);
	return result;
}

static CUresult map(struct pinned *p)
{
	void *memory = (void *)(uintptr_t)p->base;
	CUresult result = map_device(p);
	if (result)
		return result;
	/* For shared memory, mremap with an old size of 0 makes a second mapping. */
	int saved_errno = errno;
	void *alias = mremap(memory, 0, p->size, MREMAP_MAYMOVE);
	errno = saved_errno;
	if (alias == MAP_FAILED) {
		unmap_device(p, true);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* Earlier copies write to the memory itself, so it stays open until they are done. */
	ckt_client_copy_settle(memory, p->size);
	result = ckt_managed_adopt(p->base, p->size, alias, p->context);
	if (result) {
		munmap(alias, p->size);
		unmap_device(p, true);
		return result;
	}
	ckt_range_set_mapped(p->base);
	atomic_fetch_sub(&ckt_host_mappable, 1);
	return CUDA_SUCCESS;
}

CUresult ckt_client_host_map(uint64_t address)
{
	CUresult result = CKT_INTERNAL_NOT_SUPPORTED; /* host.c logs it */
	struct ckt_client_range range;
	if (ckt_range_find(address, &range) && range.mapped)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	for (struct pinned *p = allocations; p; p = p->next) {
		if (address - p->base >= p->size)
			continue;
		result = p->physical ? CUDA_SUCCESS : map(p);
		break;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult ckt_client_host_map_params(const void *packed, size_t size)
{
	const uint64_t *words = packed;
	CUresult result = CUDA_SUCCESS;
	struct ckt_client_range range;
	if (!atomic_load_explicit(&ckt_host_mappable, memory_order_relaxed))
		return CUDA_SUCCESS;
	for (size_t i = 0; i < size / sizeof *words && !result; i++)
		if (ckt_range_find(words[i], &range) && range.kind == CKT_RANGE_HOST_ALLOC &&
			range.owner && !range.mapped)
			result = ckt_client_host_map(words[i]);
	return result;
}

bool ckt_client_host_open(uint64_t address, uint64_t size, bool write)
{
	struct ckt_client_range range;
	if (!ckt_range_find(address, &range) || !range.mapped || range.shared)
		return false;
	/*
	 * Access each chunk, so that the fault handler opens it.  An atomic exchange of a value for
	 * itself writes without losing another thread's write.
	 */
	for (uint64_t at = address; at < address + size; at = (at / CHUNK + 1) * CHUNK) {
		uint8_t *byte = (uint8_t *)(uintptr_t)at;
		uint8_t value = __atomic_load_n(byte, __ATOMIC_RELAXED);
		if (write)
			__atomic_compare_exchange_n(
				byte, &value, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
	return true;
}
