/* server/worker/libs/inside_memory.c: what a library allocates lies in the window, counts, is nobody else's, and goes. */
#include <pthread.h>
#include <string.h>

#include "server/worker/aside.h"
#include "server/worker/libs/inside.h"
#include "tests/unit/worker/inside.h"
#include "tests/unit/worker/toy.h"

enum { MIB = 1 << 20 };

static bool in_window(uint64_t address)
{
	return address >= ckt_worker.devices[0].memory.base && address - ckt_worker.devices[0].memory.base < ckt_worker.slice_size;
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
		IS(ckt_memory_free_begin(&ckt_worker.devices[0].memory, address, &owner), CUDA_ERROR_INVALID_VALUE);
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
	IS(ckt_aside_drain(&ckt_worker, -1), 0);
	IS(used(), before);
	MUST(toy->toy_alloc(TOY_ASYNC, 4 * MIB, &address), CUDA_SUCCESS);
	IS(toy->toy_free(address, 1), CUDA_SUCCESS);
	IS(ckt_aside_drain(&ckt_worker, -1), 0);
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

static void test_owned(void)
{
	const struct toy *toy = toy_library();
	uint64_t address[3], before = used();
	for (unsigned i = 0; i < 3; i++) {
		uint64_t outer = ckt_inside_enter(i ? 40 + i : 0);
		MUST(toy->toy_alloc(TOY_LINKED, 2 * MIB, &address[i]), CUDA_SUCCESS);
		ckt_inside_leave(outer);
	}
	ckt_inside_free_owned(&ckt_worker, 41);
	IS(used() - before, 4 * MIB);
	IS(toy->toy_free(address[1], 0), CUDA_ERROR_INVALID_VALUE);
	ckt_inside_free_owned(&ckt_worker, 42);
	IS(used() - before, 2 * MIB);
	/* Of no object: the library's own, and neither the program's nor another owner's end takes it. */
	ckt_memory_free_owned(&ckt_worker.devices[0].memory, ckt_worker.current->id);
	IS(inside_word(address[0]), inside_word(address[0]));
	IS(toy->toy_free(address[0], 0), CUDA_SUCCESS);
	IS(used(), before);
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

UNIT_SUITE(libs_inside_memory, {"allocated", test_allocated}, {"executor", test_executor}, {"limit", test_limit}, {"owned", test_owned},
	   {"range", test_range}, {"image", test_image})
