/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of libraries that the driver places and the session still pays for: pinned host memory,
 * managed memory, and physical pieces that a library maps itself.  See inside.h.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "server/worker/session/long_call.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/driver.h"
#include "base/grow.h"
#include "server/worker/libs/inside/inside.h"
#include "server/worker/worker.h"

enum kind { KIND_HOST, KIND_MANAGED, KIND_PHYSICAL };

/* Freeing the memory ends its charge. */
struct charge {
	enum kind kind;
	uint64_t key; /* address, or the driver's handle */
	uint64_t size;
	unsigned device;
	unsigned references; /* of a handle: cuMemRetainAllocationHandle adds one */
};

static struct {
	pthread_mutex_t lock;
	struct charge *list;
	size_t count, room;
	uint64_t host_bytes, other_bytes;
} charges = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- The account */

static CUresult pay(const struct charge *charge)
{
	if (charge->kind == KIND_HOST)
		return ckt_budget_charge(charge->size, "pinned memory of a library")
			? CUDA_SUCCESS
			: CUDA_ERROR_OUT_OF_MEMORY;
	return ckt_memory_charge(&ckt_worker.devices[charge->device].memory, charge->size);
}

static void repay(const struct charge *charge)
{
	if (charge->kind == KIND_HOST)
		ckt_budget_uncharge(charge->size);
	else
		ckt_memory_uncharge(&ckt_worker.devices[charge->device].memory, charge->size);
}

static CUresult note(const struct charge *charge)
{
	pthread_mutex_lock(&charges.lock);
	int error = CKT_GROW(charges.list, charges.count, charges.room, 16);
	if (!error) {
		charges.list[charges.count++] = *charge;
		*(charge->kind == KIND_HOST ? &charges.host_bytes : &charges.other_bytes) +=
			charge->size;
	}
	pthread_mutex_unlock(&charges.lock);
	return error ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* Adds or removes one reference; removing the last one ends the charge. */
static void count_reference(enum kind kind, uint64_t key, int change)
{
	struct charge gone = {0};
	pthread_mutex_lock(&charges.lock);
	for (size_t i = 0; i < charges.count; i++) {
		struct charge *charge = &charges.list[i];
		if (charge->kind != kind || charge->key != key)
			continue;
		charge->references += (unsigned)change;
		if (!charge->references) {
			gone = *charge;
			*(kind == KIND_HOST ? &charges.host_bytes : &charges.other_bytes) -=
				gone.size;
			*charge = charges.list[--charges.count];
		}
		break;
	}
	pthread_mutex_unlock(&charges.lock);
	if (gone.size)
		repay(&gone);
}

struct ckt_inside_figures ckt_inside_figures_of_memory(void)
{
	pthread_mutex_lock(&charges.lock);
	struct ckt_inside_figures figures = {
		.host_bytes = charges.host_bytes, .other_bytes = charges.other_bytes};
	pthread_mutex_unlock(&charges.lock);
	for (unsigned d = 0; d < ckt_worker.device_count; d++) {
		struct ckt_memory *memory = &ckt_worker.devices[d].memory;
		pthread_mutex_lock(&memory->lock);
		for (size_t i = 0; i < memory->block_count; i++)
			if (memory->blocks[i].owner & CKT_MEMORY_LIBRARY) {
				figures.allocations++;
				figures.bytes += memory->blocks[i].granted;
			}
		pthread_mutex_unlock(&memory->lock);
	}
	return figures;
}

/* ---- Pinned memory */

static CUresult CUDAAPI mem_host_alloc(void **address, size_t size, unsigned flags)
{
	struct charge charge = {.kind = KIND_HOST, .size = size, .references = 1};
	CUresult result = pay(&charge);
	if (result)
		return result;
	result = ckt_driver.cuMemHostAlloc(address, size, flags);
	if (!result) {
		charge.key = (uint64_t)(uintptr_t)*address;
		result = note(&charge);
		if (result)
			ckt_driver.cuMemFreeHost(*address);
	}
	if (result)
		repay(&charge);
	return result;
}

static CUresult CUDAAPI mem_alloc_host(void **address, size_t size)
{
	return mem_host_alloc(address, size, 0);
}

struct freed {
	struct ckt_long_call_job job;
	void *address;
};

static void freed_run(struct ckt_long_call_job *job)
{
	ckt_driver.cuMemFreeHost(((struct freed *)job)->address);
}

static void freed_finish(struct ckt_worker *worker, struct ckt_long_call_job *job)
{
	(void)worker;
	count_reference(KIND_HOST, (uint64_t)(uintptr_t)((struct freed *)job)->address, -1);
	free(job);
}

/* The driver waits until the GPU is idle; the executor must not wait. */
static CUresult CUDAAPI mem_free_host(void *address)
{
	CUcontext context;
	struct freed *freed =
		ckt_worker.go && ckt_inside_has_tables() ? calloc(1, sizeof *freed) : NULL;
	if (freed && !ckt_driver.cuCtxGetCurrent(&context) && context) {
		*freed = (struct freed){
			.job = {.context = context, .run = freed_run, .finish = freed_finish},
			.address = address};
		ckt_long_call_submit(&ckt_worker, &freed->job);
		return CUDA_SUCCESS;
	}
	free(freed);
	CUresult result = ckt_driver.cuMemFreeHost(address);
	if (!result)
		count_reference(KIND_HOST, (uint64_t)(uintptr_t)address, -1);
	return result;
}

/*
 * ---- Managed memory is the driver's, because its addresses are also the host's
 */

static CUresult CUDAAPI mem_alloc_managed(CUdeviceptr *address, size_t size, unsigned flags)
{
	struct ckt_worker_device *device = ckt_inside_device();
	if (!device)
		return CUDA_ERROR_INVALID_CONTEXT;
	struct charge charge = {.kind = KIND_MANAGED,
		.size = size,
		.device = (unsigned)(device - ckt_worker.devices),
		.references = 1};
	CUresult result = pay(&charge);
	if (result)
		return result;
	result = ckt_driver.cuMemAllocManaged(address, size, flags);
	if (!result) {
		charge.key = *address;
		result = note(&charge);
		if (result)
			ckt_driver.cuMemFree_v2(*address);
	}
	if (result)
		repay(&charge);
	return result;
}

CUresult ckt_inside_free_managed(CUdeviceptr address)
{
	CUresult result = ckt_driver.cuMemFree_v2(address);
	if (!result)
		count_reference(KIND_MANAGED, address, -1);
	return result;
}

/*
 * ---- Physical pieces.  A piece that is released while mapped no longer counts, although it exists
 * until it is unmapped: a library does both at once.
 */

static int device_of(const CUmemAllocationProp *prop)
{
	if (!prop || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return -1;
	for (unsigned d = 0; d < ckt_worker.device_count; d++)
		if (ckt_worker.devices[d].ordinal == prop->location.id)
			return (int)d;
	return -1;
}

static CUresult CUDAAPI mem_create(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	int device = device_of(prop);
	/* A piece in host memory counts against the host budget. */
	struct charge charge = {.kind = device < 0 ? KIND_HOST : KIND_PHYSICAL,
		.size = size,
		.device = (unsigned)device,
		.references = 1};
	CUresult result = pay(&charge);
	if (result)
		return result;
	result = ckt_driver.cuMemCreate(handle, size, prop, flags);
	if (!result) {
		charge.key = *handle;
		result = note(&charge);
		if (result)
			ckt_driver.cuMemRelease(*handle);
	}
	if (result)
		repay(&charge);
	return result;
}

static CUresult CUDAAPI mem_release(CUmemGenericAllocationHandle handle)
{
	CUresult result = ckt_driver.cuMemRelease(handle);
	if (!result) {
		count_reference(KIND_PHYSICAL, handle, -1);
		count_reference(KIND_HOST, handle, -1);
	}
	return result;
}

static CUresult CUDAAPI mem_retain(CUmemGenericAllocationHandle *handle, void *address)
{
	CUresult result = ckt_driver.cuMemRetainAllocationHandle(handle, address);
	if (!result) {
		count_reference(KIND_PHYSICAL, *handle, 1);
		count_reference(KIND_HOST, *handle, 1);
	}
	return result;
}

const struct ckt_inside_hook ckt_inside_host_hooks[] = {
	{"cuMemHostAlloc", (void *)mem_host_alloc},
	{"cuMemAllocHost_v2", (void *)mem_alloc_host},
	{"cuMemFreeHost", (void *)mem_free_host},
	{"cuMemAllocManaged", (void *)mem_alloc_managed},
	{"cuMemCreate", (void *)mem_create},
	{"cuMemRelease", (void *)mem_release},
	{"cuMemRetainAllocationHandle", (void *)mem_retain},
	{NULL, NULL},
};
