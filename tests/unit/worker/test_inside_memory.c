/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/inside/inside_memory.c: what a library allocates lies in the window, counts,
 * is nobody else's, and goes.
 */
#include <pthread.h>
#include <string.h>

#include "server/worker/libs/inside/inside.h"
#include "server/worker/libs/state.h"
#include "server/worker/objects/context.h"
#include "server/worker/session/long_call.h"
#include "tests/unit/worker/inside.h"
#include "tests/unit/worker/toy.h"

enum { MIB = 1 << 20 };

static bool in_window(uint64_t address)
{
	return address >= ckt_worker.devices[0].memory.base &&
		address - ckt_worker.devices[0].memory.base < ckt_worker.slice_size;
}

static uint64_t used(void)
{
	return ckt_memory_used(&ckt_worker.devices[0].memory);
}

static void test_allocated(void)
{
	const struct toy *toy = toy_library();
	for (int how = 0; how < TOY_HOWS; how++) {
		uint64_t address = 0, before = used(), owner;
		struct ckt_inside_figures figures = ckt_inside_figures();
		MUST(toy->toy_alloc((enum toy_how)how, 5 * MIB, &address), CUDA_SUCCESS);
		YES(in_window(address));
		IS(used() - before, 6 * MIB);
		IS(ckt_inside_figures().allocations, figures.allocations + 1);
		IS(ckt_inside_figures().bytes, figures.bytes + 6 * MIB);
		inside_fill(address, 3, 5 * MIB);
		IS(inside_word(address + 5 * MIB - 4), 3);
		/* Not the program's: it frees it by no command. */
		IS(ASK(mem_free, .address = address), CUDA_ERROR_INVALID_VALUE);
		IS(ckt_memory_free_begin(&ckt_worker.devices[0].memory, address, &owner),
			CUDA_ERROR_INVALID_VALUE);
		IS(toy->toy_free(address, how % 2), CUDA_SUCCESS);
		IS(used(), before);
		IS(toy->toy_free(address, 0), CUDA_ERROR_INVALID_VALUE);
	}
	/* Nor is the program's memory the library's to free. */
	uint64_t mine = inside_memory(MIB, 1);
	IS(toy->toy_free(mine, 0), CUDA_ERROR_INVALID_VALUE);
	IS(inside_word(mine), 1);
	inside_free(mine);
	uint64_t none;
	IS(toy->toy_alloc(TOY_LINKED, 0, &none), CUDA_ERROR_INVALID_VALUE);
}

/* On the executor a free waits aside, and what is missing is looked for there. */
static void test_executor(void)
{
	const struct toy *toy = toy_library();
	pthread_t executor = ckt_worker.executor;
	uint64_t address, before = used();
	ckt_worker.executor = pthread_self();
	CUstream stream;
	IS(ckt_driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	MUST(toy->toy_alloc(TOY_LINKED, 4 * MIB, &address), CUDA_SUCCESS);
	inside_spin(stream);
	IS(toy->toy_free(address, 0), CUDA_SUCCESS);
	/* The GPU is busy, and the executor went on. */
	IS(used() - before, 4 * MIB);
	IS(toy->toy_free(address, 0), CUDA_ERROR_INVALID_VALUE);
	inside_stop();
	IS(ckt_long_call_drain(&ckt_worker, -1), 0);
	IS(used(), before);
	MUST(toy->toy_alloc(TOY_ASYNC, 4 * MIB, &address), CUDA_SUCCESS);
	IS(toy->toy_free(address, 1), CUDA_SUCCESS);
	IS(ckt_long_call_drain(&ckt_worker, -1), 0);
	IS(used(), before);
	ckt_driver.cuStreamDestroy_v2(stream);
	ckt_worker.executor = executor;
}

static void test_limit(void)
{
	const struct toy *toy = toy_library();
	struct ckt_memory *memory = &ckt_worker.devices[0].memory;
	uint64_t address, other, limit = memory->limit;
	size_t free_bytes, total;
	memory->limit = memory->held + CKT_MEMORY_RESERVED + 8 * MIB;
	ckt_worker.memory_limit = memory->limit;
	IS(toy->toy_info(&free_bytes, &total), CUDA_SUCCESS);
	IS(free_bytes, 8 * MIB);
	IS(total, memory->limit);
	IS(toy->toy_alloc(TOY_ASKED, 6 * MIB, &address), CUDA_SUCCESS);
	IS(toy->toy_alloc(TOY_ASKED, 4 * MIB, &other), CUDA_ERROR_OUT_OF_MEMORY);
	IS(toy->toy_alloc(TOY_ASYNC, 4 * MIB, &other), CUDA_ERROR_OUT_OF_MEMORY);
	IS(toy->toy_info(&free_bytes, &total), CUDA_SUCCESS);
	IS(free_bytes, 2 * MIB);
	IS(toy->toy_free(address, 0), CUDA_SUCCESS);
	IS(toy->toy_alloc(TOY_ASKED, 8 * MIB, &address), CUDA_SUCCESS);
	IS(toy->toy_free(address, 0), CUDA_SUCCESS);
	memory->limit = ckt_worker.memory_limit = limit;
}

static uint64_t owner_of(uint64_t address)
{
	struct ckt_block block = {0};
	YES(ckt_memory_block_of(&ckt_worker.devices[0].memory, address, &block));
	return block.owner & ~CKT_MEMORY_LIBRARY;
}

/*
 * What a library has not freed when its object ends another object may use: it stays, and is the
 * context's.
 */
static void test_owned(void)
{
	const struct toy *toy = toy_library();
	pthread_t executor = ckt_worker.executor;
	uint64_t address[3], before = used(), primary = ckt_handle_primary(0);
	ckt_worker.executor = pthread_self();
	for (unsigned i = 0; i < 3; i++) {
		uint64_t outer = ckt_inside_enter(i ? 40 + i : 0);
		MUST(toy->toy_alloc(TOY_LINKED, 2 * MIB, &address[i]), CUDA_SUCCESS);
		ckt_inside_leave(outer);
	}
	IS(owner_of(address[0]), primary);
	IS(owner_of(address[1]), 41);
	ckt_inside_owner_ended(&ckt_worker, 41, primary);
	IS(used() - before, 6 * MIB);
	IS(owner_of(address[1]), primary);
	IS(owner_of(address[2]), 42);
	/* The program's end of its own memory does not touch it. */
	ckt_memory_free_owned(&ckt_worker.devices[0].memory, primary);
	IS(used() - before, 6 * MIB);
	for (unsigned i = 0; i < 3; i++)
		IS(toy->toy_free(address[i], 0), CUDA_SUCCESS);
	IS(ckt_long_call_drain(&ckt_worker, -1), 0);
	IS(used(), before);
	ckt_worker.executor = executor;
}

/* As natively, where the driver frees what is in a context. */
static void test_context_ends(void)
{
	const struct toy *toy = toy_library();
	pthread_t executor = ckt_worker.executor;
	struct ckt_object *context;
	uint64_t address[2], before = used();
	ckt_worker.executor = pthread_self();
	MUST(ckt_context_create(&ckt_worker, ID(CONTEXT, 88), 0, 0, &context), CUDA_SUCCESS);
	MUST(ckt_worker_use_context(&ckt_worker, context->id), CUDA_SUCCESS);
	MUST(toy->toy_alloc(TOY_LINKED, 2 * MIB, &address[0]), CUDA_SUCCESS);
	uint64_t outer = ckt_inside_enter(ID(LIB_OBJECT, 800));
	MUST(toy->toy_alloc(TOY_LINKED, 2 * MIB, &address[1]), CUDA_SUCCESS);
	ckt_inside_leave(outer);
	ckt_inside_owner_ended(&ckt_worker, ID(LIB_OBJECT, 800), context->id);
	IS(ckt_context_destroy(&ckt_worker, context), CUDA_SUCCESS);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	IS(used(), before);
	IS(toy->toy_free(address[0], 0), CUDA_ERROR_INVALID_VALUE);
	ckt_worker.executor = executor;
}

/* What a captured call used and gave back is used at each launch: it goes with the call. */
static void test_captured(void)
{
	const struct toy *toy = toy_library();
	pthread_t executor = ckt_worker.executor;
	uint64_t temporary[2], kept, before = used(), call = ID(LIB_CALL, 900);
	ckt_worker.executor = pthread_self();
	for (unsigned round = 0; round < 5; round++) {
		ckt_lib_capture_id = call;
		MUST(toy->toy_alloc(TOY_ASYNC, 2 * MIB, &temporary[0]), CUDA_SUCCESS);
		MUST(toy->toy_alloc(TOY_LINKED, 2 * MIB, &temporary[1]), CUDA_SUCCESS);
		IS(owner_of(temporary[0]), call);
		IS(toy->toy_free(temporary[1], 0), CUDA_SUCCESS);
		IS(toy->toy_free(temporary[0], 0), CUDA_SUCCESS);
		MUST(toy->toy_alloc(TOY_LINKED, MIB, &kept), CUDA_SUCCESS);
		ckt_lib_capture_id = 0;
		/* Another free, and want of memory, do not take it. */
		ckt_inside_free_waiting(&ckt_worker, 0);
		IS(ckt_long_call_drain(&ckt_worker, -1), 0);
		YES(used() - before >= 5 * MIB);
		ckt_inside_owner_ended(&ckt_worker, call, ckt_handle_primary(0));
		IS(ckt_long_call_drain(&ckt_worker, -1), 0);
		IS(owner_of(kept), ckt_handle_primary(0));
		IS(toy->toy_free(kept, 0), CUDA_SUCCESS);
		IS(ckt_long_call_drain(&ckt_worker, -1), 0);
		IS(used(), before);
	}
	ckt_worker.executor = executor;
}

/*
 * While the context captures nobody can wait for it: what is freed then goes at the next
 * opportunity.
 */
static void test_refused_wait(void)
{
	const struct toy *toy = toy_library();
	pthread_t executor = ckt_worker.executor;
	uint64_t address, before = used();
	CUgraph graph;
	CUstream stream;
	ckt_worker.executor = pthread_self();
	IS(ckt_driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	for (unsigned round = 0; round < 3; round++) {
		MUST(toy->toy_alloc(TOY_LINKED, 2 * MIB, &address), CUDA_SUCCESS);
		MUST(ckt_driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
			CUDA_SUCCESS);
		IS(toy->toy_free(address, 0), CUDA_SUCCESS);
		IS(ckt_long_call_drain(&ckt_worker, -1), 0);
		IS(used() - before, 2 * MIB);
		/* That it was tried ends the capture, which capture.c then does again. */
		IS(ckt_driver.cuStreamEndCapture(stream, &graph),
			CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		ckt_inside_owner_ended(&ckt_worker, 99, ckt_handle_primary(0));
		IS(ckt_long_call_drain(&ckt_worker, -1), 0);
		IS(used(), before);
	}
	ckt_driver.cuStreamDestroy_v2(stream);
	ckt_worker.executor = executor;
}

static void test_range(void)
{
	const struct toy *toy = toy_library();
	uint64_t address, start = 0;
	size_t size = 0;
	MUST(toy->toy_alloc(TOY_LINKED, 1000, &address), CUDA_SUCCESS);
	IS(toy->toy_range(address + 999, &start, &size), CUDA_SUCCESS);
	IS(start, address);
	IS(size, 1000);
	IS(toy->toy_free(address, 0), CUDA_SUCCESS);
}

/* An image has neither its block nor an extent that holds nothing else. */
static void test_image(void)
{
	const struct toy *toy = toy_library();
	struct ckt_memory *memory = &ckt_worker.devices[0].memory;
	uint64_t address, small, mine = inside_memory(3 * MIB, 1);
	MUST(toy->toy_alloc(TOY_LINKED, 3 * MIB, &address), CUDA_SUCCESS);
	MUST(toy->toy_alloc(TOY_LINKED, 512, &small), CUDA_SUCCESS);
	unsigned libraries = 0, programs = 0;
	for (size_t i = 0; i < memory->extent_count; i++) {
		if (memory->extents[i].use == CKT_EXTENT_CACHED)
			continue;
		bool is = ckt_memory_extent_is_library(memory, i);
		if (memory->extents[i].address == address)
			libraries += is;
		if (memory->extents[i].address == mine)
			programs += !is;
	}
	IS(libraries, 1);
	IS(programs, 1);
	IS(toy->toy_free(address, 0), CUDA_SUCCESS);
	IS(toy->toy_free(small, 0), CUDA_SUCCESS);
	inside_free(mine);
}

UNIT_SUITE(libs_inside_memory, {"allocated", test_allocated}, {"executor", test_executor},
	{"limit", test_limit}, {"owned", test_owned}, {"context ends", test_context_ends},
	{"captured", test_captured}, {"refused wait", test_refused_wait}, {"range", test_range},
	{"image", test_image})
