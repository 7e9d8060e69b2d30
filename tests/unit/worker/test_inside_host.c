/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/inside/inside_host.c: pinned, managed and physical memory of a library is the
 * driver's, and counts as long as it is there.
 */
#include <pthread.h>
#include <string.h>

#include "server/worker/libs/inside/inside.h"
#include "server/worker/objects/device.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/session/long_call.h"
#include "tests/unit/worker/inside.h"
#include "tests/unit/worker/toy.h"

enum { MIB = 1 << 20 };

static void test_pinned(void)
{
	const struct toy *toy = toy_library();
	uint64_t before = ckt_budget_used();
	void *address;
	MUST(toy->toy_host(3 * MIB, &address), CUDA_SUCCESS);
	memset(address, 1, 3 * MIB);
	IS(ckt_budget_used() - before, 3 * MIB);
	IS(ckt_inside_figures().host_bytes, 3 * MIB);
	IS(toy->toy_host_free(address), CUDA_SUCCESS);
	IS(ckt_budget_used(), before);
	IS(ckt_inside_figures().host_bytes, 0);
	/* The driver waits for the GPU: on the executor, aside. */
	MUST(toy->toy_host(MIB, &address), CUDA_SUCCESS);
	pthread_t executor = ckt_worker.executor;
	ckt_worker.executor = pthread_self();
	IS(toy->toy_host_free(address), CUDA_SUCCESS);
	IS(ckt_long_call_drain(&ckt_worker, -1), 0);
	IS(ckt_budget_used(), before);
	ckt_worker.executor = executor;
}

static void test_no_host_memory(void)
{
	const struct toy *toy = toy_library();
	void *address;
	ckt_budget_init(ckt_budget_used() + 2 * MIB);
	IS(toy->toy_host(4 * MIB, &address), CUDA_ERROR_OUT_OF_MEMORY);
	IS(toy->toy_host(MIB, &address), CUDA_SUCCESS);
	IS(toy->toy_host_free(address), CUDA_SUCCESS);
	ckt_budget_init(0);
}

static void test_device(void)
{
	const struct toy *toy = toy_library();
	struct ckt_memory *memory = &ckt_worker.devices[0].memory;
	uint64_t before = ckt_memory_charged(memory), address, handle;
	MUST(toy->toy_managed(2 * MIB, &address), CUDA_SUCCESS);
	YES(ckt_worker_device_of(&ckt_worker, address) == NULL);
	IS(ckt_memory_charged(memory) - before, 2 * MIB);
	IS(toy->toy_free(address, 0), CUDA_SUCCESS);
	IS(ckt_memory_charged(memory), before);
	MUST(toy->toy_physical(4 * MIB, &handle), CUDA_SUCCESS);
	IS(ckt_memory_charged(memory) - before, 4 * MIB);
	IS(ckt_inside_figures().other_bytes, 4 * MIB);
	IS(toy->toy_physical_free(handle), CUDA_SUCCESS);
	IS(ckt_memory_charged(memory), before);
	/* A limit that it does not fit: nothing is made, and nothing counts. */
	uint64_t limit = memory->limit;
	memory->limit = memory->held + CKT_MEMORY_RESERVED + 2 * MIB;
	IS(toy->toy_managed(4 * MIB, &address), CUDA_ERROR_OUT_OF_MEMORY);
	IS(toy->toy_physical(4 * MIB, &handle), CUDA_ERROR_OUT_OF_MEMORY);
	IS(ckt_memory_charged(memory), before);
	memory->limit = limit;
}

UNIT_SUITE(libs_inside_host, {"pinned", test_pinned}, {"no host memory", test_no_host_memory},
	{"device", test_device})
