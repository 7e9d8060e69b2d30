/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the program registered, if kernels access it.  Its address is the program's choice,
 * and the device cannot have memory there, so
 * CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM is 0.  A program that asks for the
 * device's address gets that of a twin: pinned memory of ours (mapped.c, shared.c).  A shadow holds
 * the contents that both last had in common.  Synchronisation points exchange what either side
 * changed:
 *
 *	before the GPU works: program's memory --bytes unlike the shadow--> shadow, twin
 *	after a wait: twin --bytes unlike the shadow--> shadow, program's memory
 *
 * No page is protected.  Unlike our own allocations, these pages also hold other data of the
 * program, which system calls may write.  So both directions compare all of the memory each time.
 * Memory whose device address is never asked for costs nothing.
 *
 * While the GPU may be writing, only bytes that the program changed are sent.  The shadow tells
 * them apart.
 */
#include <stdlib.h>
#include <string.h>

#include "client/cuda/memory/registered.h"
#include "base/fork.h"
#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/managed.h"
#include "client/cuda/memory/mapped.h"
#include "client/cuda/memory/memcpy.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/stream/hostfunc.h"
#include "client/cuda/stream/stream.h"

enum { BLOCK = 4096 };
/*
 * If the changes are in more pieces, the messages cost more than a wait: the GPU is waited for, and
 * unchanged bytes between changes are sent too.
 */
enum { PIECES_MAX = 1024 };

struct twin {
	struct twin *next;
	uint8_t *memory;     /* the program's memory */
	uint8_t *shadow;     /* the contents that both last had in common */
	uint64_t base, size; /* base: on the device */
	uint64_t context;
	bool behind;    /* the GPU may have written to it since the last exchange */
	bool elsewhere; /* work of another context may have written to it */
};

_Atomic unsigned ckt_registered_count;

static CKT_LOCK(lock);
static struct twin *twins;

/*
 * Finds the first run at or after *at in which a and b differ.  Runs at most `gap` bytes apart
 * count as one.
 */
static bool next_change(const uint8_t *a, const uint8_t *b, uint64_t size, uint64_t gap,
	uint64_t *at, uint64_t *ret_end)
{
	uint64_t i = *at;
	while (size - i >= BLOCK && !memcmp(a + i, b + i, BLOCK))
		i += BLOCK;
	while (i < size && a[i] == b[i])
		i++;
	if (i == size)
		return false;
	uint64_t end = i + 1;
	for (uint64_t same = 0, j = end; j < size && same <= gap; j++) {
		same = a[j] == b[j] ? same + 1 : 0;
		if (!same)
			end = j + 1;
	}
	*at = i;
	*ret_end = end;
	return true;
}

static struct twin *find(uint64_t address, uint64_t size)
{
	for (struct twin *t = twins; t; t = t->next) {
		uint64_t offset = address - (uint64_t)(uintptr_t)t->memory;
		if (offset < t->size && size <= t->size - offset)
			return t;
	}
	return NULL;
}

/*
 * ---- Between the shadow and the twin.  All static functions from here on: locked, and
 * ckt_call_context is the twin's.
 */

static CUresult give(const struct twin *t, uint64_t begin, uint64_t end, uint64_t stream)
{
	if (!ckt_range_is_shared(t->base, 1))
		return ckt_client_copy_send(
			t->base + begin, t->shadow + begin, end - begin, stream);
	memcpy((void *)(uintptr_t)(t->base + begin), t->shadow + begin, end - begin);
	return CUDA_SUCCESS;
}

/* Takes over what the GPU changed in [at, at + size); bytes: the twin's contents there. */
static void take(struct twin *t, uint64_t at, const uint8_t *bytes, uint64_t size)
{
	for (uint64_t i = 0, end; next_change(bytes, t->shadow + at, size, 0, &i, &end); i = end) {
		memcpy(t->memory + at + i, bytes + i, end - i);
		memcpy(t->shadow + at + i, bytes + i, end - i);
	}
}

static CUresult fetch(struct twin *t, uint64_t stream)
{
	if (ckt_range_is_shared(t->base, 1)) {
		take(t, 0, (const uint8_t *)(uintptr_t)t->base, t->size);
		return CUDA_SUCCESS;
	}
	CUresult result = CUDA_SUCCESS;
	for (uint64_t at = 0; at < t->size && !result; at += CKT_DATA_MAX) {
		struct ckt_reply reply;
		struct ckt_memcpy_dtoh_res res;
		uint32_t size =
			(uint32_t)(t->size - at < CKT_DATA_MAX ? t->size - at : CKT_DATA_MAX);
		result = CKT_WAITED(memcpy_dtoh, MEMCPY_DTOH, CKT_CALL_F_NUMBERED, &reply,
			.src = t->base + at, .size = size, .stream = stream);
		if (result)
			break;
		if (ckt_memcpy_dtoh_res_get(&reply.results, &res) && res.data_len == size)
			take(t, at, res.data, size);
		else
			result = CUDA_ERROR_UNKNOWN;
		ckt_call_reply_release(&reply);
	}
	return result;
}

/* Whether the program's changes are in more than PIECES_MAX pieces. */
static bool is_scattered(const struct twin *t)
{
	unsigned count = 0;
	for (uint64_t at = 0, end;
		count <= PIECES_MAX && next_change(t->memory, t->shadow, t->size, 0, &at, &end);
		at = end)
		count++;
	return count > PIECES_MAX;
}

static CUresult push_one(struct twin *t)
{
	uint64_t stream;
	bool sent = false;
	CUresult result = ckt_client_stream_aside(t->context, &stream);
	for (uint64_t at = 0, end; !result &&
		next_change(t->memory, t->shadow, t->size, t->behind ? 0 : BLOCK, &at, &end);
		at = end) {
		memcpy(t->shadow + at, t->memory + at, end - at);
		result = give(t, at, end, stream);
		sent = true;
	}
	/* The next work is on streams that do not wait for this one. */
	if (!result && sent && !ckt_range_is_shared(t->base, 1))
		result = CKT_WAITED(
			stream_synchronize, STREAM_SYNCHRONIZE, 0, NULL, .stream = stream);
	return result;
}

/* ---- At synchronisation points */

/*
 * Waits for the GPU.  Unlocked meanwhile, because its work may include a host function that takes
 * the lock.
 */
static CUresult catch_up(uint64_t context)
{
	pthread_mutex_unlock(&lock);
	CUresult result =
		CKT_WAITED(ctx_synchronize, CTX_SYNCHRONIZE, 0, NULL, .id = ckt_call_id(context));
	if (!result)
		result = ckt_registered_after_wait_slow(context);
	pthread_mutex_lock(&lock);
	return result;
}

CUresult ckt_registered_before_work_slow(void)
{
	CUresult result = CUDA_SUCCESS;
	uint64_t saved = ckt_call_context;
	pthread_mutex_lock(&lock);
	for (struct twin *t = twins; t && !result; t = t->next) {
		ckt_client_context_use(t->context);
		if (t->behind && !ckt_client_host_thread() && is_scattered(t)) {
			uint64_t base = t->base;
			result = catch_up(t->context);
			for (t = twins; t && t->base != base;)
				t = t->next;
			if (!t)
				break;
		}
		if (!result)
			result = push_one(t);
		t->behind = true;
		t->elsewhere |= saved != t->context;
	}
	pthread_mutex_unlock(&lock);
	ckt_client_context_use(saved);
	return result;
}

CUresult ckt_registered_after_wait_slow(uint64_t context)
{
	CUresult result = CUDA_SUCCESS;
	uint64_t saved = ckt_call_context, stream;
	pthread_mutex_lock(&lock);
	for (struct twin *t = twins; t && !result; t = t->next) {
		if (!t->behind)
			continue;
		ckt_client_context_use(t->context);
		result = ckt_client_stream_aside(t->context, &stream);
		if (!result)
			result = fetch(t, stream);
		if (!result && t->context == context && !t->elsewhere)
			t->behind = false;
	}
	pthread_mutex_unlock(&lock);
	ckt_client_context_use(saved);
	return result;
}

bool ckt_registered_side(uint64_t *address, uint64_t size)
{
	if (!ckt_registered_any())
		return false;
	pthread_mutex_lock(&lock);
	const struct twin *t = find(*address, size);
	if (t)
		*address = t->base + (*address - (uint64_t)(uintptr_t)t->memory);
	pthread_mutex_unlock(&lock);
	return t != NULL;
}

/* ---- Making and releasing twins */

static void release(struct twin *t)
{
	free(t->shadow);
	free(t);
}

static CUresult make(const struct ckt_client_range *range, struct twin **ret_twin)
{
	struct ckt_context *context = ckt_cudacommon_object_find(range->context, CKT_KIND_CONTEXT);
	struct twin *t = calloc(1, sizeof *t);
	void *twin = NULL;
	if (!context || !t || !(t->shadow = malloc(range->size))) {
		free(t);
		return context ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_CONTEXT;
	}
	*t = (struct twin){.memory = (uint8_t *)(uintptr_t)range->base,
		.shadow = t->shadow,
		.size = range->size,
		.context = range->context};
	CUresult result = ckt_client_host_alloc(context, t->size, 0, &twin);
	if (!result) {
		t->base = (uint64_t)(uintptr_t)twin;
		/*
		 * Nothing else uses the twin until it is mapped; then only the device's side
		 * counts.
		 */
		ckt_client_copy_settle(t->memory, t->size);
		memcpy(t->shadow, t->memory, t->size);
		memcpy(twin, t->shadow, t->size);
		result = ckt_client_host_map(t->base);
		if (!result)
			result = ckt_managed_hand_over(t->base, t->size);
		if (result)
			cuMemFreeHost(twin);
	}
	if (result) {
		release(t);
		return result;
	}
	*ret_twin = t;
	return CUDA_SUCCESS;
}

CUresult ckt_registered_map(const struct ckt_client_range *range, uint64_t *ret_address)
{
	CUresult result = CUDA_SUCCESS;
	uint64_t saved = ckt_call_context;
	pthread_mutex_lock(&lock);
	struct twin *t = find(range->base, range->size);
	if (!t) {
		ckt_client_context_use(range->context);
		result = make(range, &t);
		ckt_client_context_use(saved);
		if (!result) {
			t->next = twins;
			twins = t;
			atomic_fetch_add(&ckt_registered_count, 1);
		}
	}
	if (!result)
		*ret_address = t->base;
	pthread_mutex_unlock(&lock);
	return result;
}

static struct twin *take_out(bool (*wanted)(const struct twin *t, uint64_t value), uint64_t value)
{
	struct twin **place = &twins;
	pthread_mutex_lock(&lock);
	while (*place && !wanted(*place, value))
		place = &(*place)->next;
	struct twin *t = *place;
	if (t) {
		*place = t->next;
		atomic_fetch_sub(&ckt_registered_count, 1);
	}
	pthread_mutex_unlock(&lock);
	return t;
}

static bool has_memory(const struct twin *t, uint64_t base)
{
	return (uint64_t)(uintptr_t)t->memory == base;
}

static bool has_context(const struct twin *t, uint64_t context)
{
	return t->context == context;
}

CUresult ckt_registered_forget(const struct ckt_client_range *range)
{
	uint64_t saved = ckt_call_context, twin = range->base;
	/* The program never asked for its device address. */
	if (!ckt_registered_side(&twin, range->size))
		return CUDA_SUCCESS;
	ckt_client_context_use(range->context);
	CUresult result = CKT_WAITED(
		ctx_synchronize, CTX_SYNCHRONIZE, 0, NULL, .id = ckt_call_id(range->context));
	if (!result)
		result = ckt_registered_after_wait_slow(range->context);
	struct twin *t = take_out(has_memory, range->base);
	if (t) {
		cuMemFreeHost((void *)(uintptr_t)t->base);
		release(t);
	}
	ckt_client_context_use(saved);
	return result;
}

void ckt_registered_forget_context(uint64_t context)
{
	for (struct twin *t;
		atomic_load(&ckt_registered_count) && (t = take_out(has_context, context));)
		release(t);
}
