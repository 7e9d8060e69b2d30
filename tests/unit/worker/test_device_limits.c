/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What counts against a session's limit of device memory besides its allocations: modules
 * (server/worker/module/module.c), limits of contexts and local memory (checkpoint/journal.c),
 * streams, graphs, the extents that small blocks hold.  Also after a restore.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/wire_session.h"

enum { LIMIT = 64 * MIB };

void ckt_blob_hash(const void *data, size_t size, uint8_t ret_hash[32]);

static struct wire *limited(void)
{
	struct wire *w = calloc(1, sizeof *w);
	CU_ASSERT_EQUAL_FATAL(wire_start(w, worker_path, driver_path, LIMIT, -1, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_NEW, true), CKT_HELLO_OK);
	return w;
}

static uint64_t left(struct wire *w)
{
	struct ckt_mem_get_info_res res = {0};
	struct wire_reply reply = WIRE_CALL(w, mem_get_info, false);
	YES(!reply.result && ckt_mem_get_info_res_get(&reply.results, &res));
	free(reply.data);
	return res.free;
}

static uint64_t used(struct wire *w)
{
	ckt_worker_status_res status = wire_status(w);
	uint64_t bytes = status.memory_bytes;
	xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&status);
	return bytes;
}

static CUresult load(struct wire *w, uint64_t id, uint64_t bytes)
{
	char ptx[256];
	uint8_t hash[32];
	struct ckt_module_load_res res = {.status = 999};
	int size = snprintf(ptx, sizeof ptx,
		".version 8.0\n.target sm_70\n.address_size 64\n.visible .global .align 4 .b8 big[%llu];\n",
		(unsigned long long)bytes);
	ckt_blob_hash(ptx, (size_t)size, hash);
	WIRE_BATCH(w, blob_data, .hash = hash, .hash_len = 32, .total = (uint64_t)size,
		.data = (const uint8_t *)ptx, .data_len = (uint32_t)size);
	struct wire_reply reply =
		WIRE_CALL(w, module_load, true, .id = id, .hash = hash, .hash_len = 32);
	YES(!reply.result && ckt_module_load_res_get(&reply.results, &res));
	free(reply.data);
	return (CUresult)res.status;
}

static void test_modules(void)
{
	struct wire *w = limited();
	uint64_t before = used(w), free_before = left(w);
	IS(load(w, MODULE(1), (uint64_t)3 << 30), CUDA_ERROR_OUT_OF_MEMORY);
	IS(used(w), before);
	IS(load(w, MODULE(1), 40 * MIB), CUDA_SUCCESS);
	YES(used(w) - before >= 40 * MIB && used(w) - before < 41 * MIB);
	YES(free_before - left(w) >= 40 * MIB);
	IS(load(w, MODULE(2), 40 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	IS(done(WIRE_CALL(w, mem_alloc, true, .size = 40 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
	IS(done(WIRE_CALL(w, module_unload, true, .id = MODULE(1))), CUDA_SUCCESS);
	IS(used(w), before);
	IS(left(w), free_before);
	IS(load(w, MODULE(2), 40 * MIB), CUDA_SUCCESS);
	session_end(w);
}

static CUresult set_limit(struct wire *w, uint32_t limit, uint64_t value)
{
	return done(WIRE_CALL(w, cuCtxSetLimit, true, .limit = limit, .value = value));
}

static void test_limits(void)
{
	struct wire *w = limited();
	uint64_t before = used(w);
	IS(set_limit(w, CU_LIMIT_MALLOC_HEAP_SIZE, (uint64_t)1 << 30), CUDA_ERROR_OUT_OF_MEMORY);
	IS(set_limit(w, CU_LIMIT_PRINTF_FIFO_SIZE, (uint64_t)1 << 30), CUDA_ERROR_OUT_OF_MEMORY);
	IS(set_limit(w, CU_LIMIT_STACK_SIZE, 64 << 10), CUDA_ERROR_OUT_OF_MEMORY);
	IS(used(w), before);
	IS(set_limit(w, CU_LIMIT_MALLOC_HEAP_SIZE, 32 * MIB), CUDA_SUCCESS);
	YES(used(w) - before >= 20 * MIB);
	IS(done(WIRE_CALL(w, mem_alloc, true, .size = 48 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
	session_end(w);
}

/* A small block holds the extent that it lies in. */
static void test_extents(void)
{
	enum { HALF = MIB / 2 + 512 };
	struct wire *w = limited();
	uint64_t address[64];
	unsigned count = 0;
	for (; count < 64; count++) {
		struct ckt_mem_alloc_res res = {0};
		struct wire_reply reply = WIRE_CALL(w, mem_alloc, true, .size = HALF);
		if (!reply.result)
			ckt_mem_alloc_res_get(&reply.results, &res);
		CUresult result = reply.result;
		address[count] = res.address;
		free(reply.data);
		if (result)
			break;
	}
	/* Three to an extent; with two of each given back, none of the extents is free. */
	YES(count > 60);
	uint64_t kept = 0;
	for (unsigned i = 0; i < count; i++) {
		if (i % 3)
			IS(done(WIRE_CALL(w, mem_free, true, .address = address[i])), CUDA_SUCCESS);
		else
			kept += (uint64_t)HALF;
	}
	YES((uint64_t)LIMIT - left(w) >= 3 * kept);
	session_end(w);
}

/*
 * An array's end runs beside the executor: who asks for memory behind it gets what it gave back,
 * and is told so.
 */
static void test_given_back(void)
{
	struct wire *w = limited();
	uint64_t free_before = left(w), array = ckt_handle_make(CKT_KIND_ARRAY, 1, 1500);
	for (int i = 0; i < 20; i++) {
		IS(done(WIRE_CALL(w, array_create, true, .id = array, .width = 1024, .height = 2560,
			   .format = CU_AD_FORMAT_FLOAT, .channels = 4)),
			CUDA_SUCCESS);
		WIRE_BATCH(w, array_destroy, .id = array);
		if (i % 2)
			IS(left(w), free_before);
		if (i % 3)
			continue;
		struct ckt_mem_alloc_res res = {0};
		struct wire_reply reply = WIRE_CALL(w, mem_alloc, true, .size = 40 * MIB);
		YES(!reply.result && ckt_mem_alloc_res_get(&reply.results, &res));
		free(reply.data);
		IS(done(WIRE_CALL(w, mem_free, true, .address = res.address)), CUDA_SUCCESS);
	}
	session_end(w);
}

/* The server's present limit holds, and what of a session does not fit is refused by name. */
static void test_restore(void)
{
	char directory[] = "/tmp/ckt-limits-XXXXXX", message[CKT_MESSAGE_MAX] = "";
	make_directory(directory);
	struct wire *w = session_new();
	IS(load(w, MODULE(1), 48 * MIB), CUDA_SUCCESS);
	alloc(w, 40 * MIB);
	save_and_stop(w, directory);
	free(w->log);
	free(w);
	w = calloc(1, sizeof *w);
	w->memory_limit = LIMIT;
	YES(try_restore(w, directory, message) != 0);
	HAS(message, "--session-memory");
	free(w);
	w = calloc(1, sizeof *w);
	w->memory_limit = 2 * LIMIT;
	MUST(try_restore(w, directory, message), 0);
	MUST(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	w->seq = w->acked = w->executed;
	YES(used(w) >= 88 * MIB);
	IS(done(WIRE_CALL(w, mem_alloc, true, .size = 40 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
	session_end(w);
	remove_directory(directory);
}

UNIT_SUITE(device_limits, {"modules", test_modules}, {"limits", test_limits},
	{"extents", test_extents}, {"given back", test_given_back}, {"restore", test_restore})
