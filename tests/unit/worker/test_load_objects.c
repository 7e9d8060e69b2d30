/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/load/load_objects.c: objects are made again as they were. */
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/unit/worker/restore.h"

#define POOL_ID ckt_handle_make(CKT_KIND_POOL, 1, 2000)

#define ANSWER(w, name, field, ...)                                                \
	({                                                                         \
		struct wire_reply reply_ = WIRE_CALL(w, name, false, __VA_ARGS__); \
		struct ckt_##name##_res res_ = {0};                                \
		CU_ASSERT_EQUAL(reply_.result, CUDA_SUCCESS);                      \
		CU_ASSERT_TRUE(ckt_##name##_res_get(&reply_.results, &res_));      \
		free(reply_.data);                                                 \
		res_.field;                                                        \
	})

static void wait_executed(struct wire *w)
{
	uint64_t executed = 0;
	while (executed < w->seq) {
		ckt_worker_status_res listed = wire_status(w);
		executed = listed.executed;
		xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&listed);
	}
}

/* Settings, priorities, marks of pools, and an error that nobody has heard of yet. */
static void test_settings(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	make_directory(directory);
	struct wire *w = session_new();
	load(w, 0, common);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, cuCtxSetLimit, true, .limit = CU_LIMIT_PRINTF_FIFO_SIZE,
				.value = 2 * MIB)),
		CUDA_SUCCESS);
	CU_ASSERT_EQUAL(
		done(WIRE_CALL(w, cuCtxSetCacheConfig, true, .config = CU_FUNC_CACHE_PREFER_L1)),
		CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, function_set_attribute, true, .function = FUNCTION(ADD),
				.attribute = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
				.value = 50)),
		CUDA_SUCCESS);
	WIRE_BATCH(w, function_set_cache_config, .function = FUNCTION(ADD),
		.config = CU_FUNC_CACHE_PREFER_SHARED);
	WIRE_BATCH(
		w, stream_create, .id = STREAM(0), .flags = CU_STREAM_NON_BLOCKING, .priority = -1);
	WIRE_BATCH(w, pool_create, .id = POOL_ID, .device = 0, .max_bytes = 64 * MIB);
	WIRE_BATCH(w, pool_set_attribute, .pool = POOL_ID,
		.attribute = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, .value = 5 * MIB);
	WIRE_BATCH(w, pool_set_attribute, .pool = POOL_ID,
		.attribute = CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, .value = 0);
	struct wire_reply reply = WIRE_CALL(
		w, mem_alloc_async, true, .size = 3 * MIB, .stream = STREAM(0), .pool = POOL_ID);
	struct ckt_mem_alloc_async_res block = {0};
	CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_mem_alloc_async_res_get(&reply.results, &block));
	free(reply.data);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	uint64_t used = ANSWER(w, pool_get_attribute, value, .pool = POOL_ID,
		.attribute = CU_MEMPOOL_ATTR_USED_MEM_HIGH);
	CU_ASSERT_TRUE(used >= 3 * MIB);
	WIRE_BATCH(w, memset, .dst = 16, .element_size = 4, .value = 1, .width = 1, .height = 1);
	for (int i = 0; i < 2; i++) {
		wait_executed(w);
		save_and_stop(w, directory);
		ckt_image image;
		read_image(directory, &image);
		CU_ASSERT_EQUAL(image.deferred, i ? 0 : CUDA_ERROR_INVALID_VALUE);
		CU_ASSERT_EQUAL(
			image.contexts.contexts_val[0].cache_config, CU_FUNC_CACHE_PREFER_L1);
		CU_ASSERT_EQUAL(image.streams.streams_val[0].priority, -1);
		CU_ASSERT_EQUAL(image.functions.functions_val[ADD].cache_config,
			CU_FUNC_CACHE_PREFER_SHARED);
		xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
		w->deferred = 0;
		restore(w, directory);
		remove_directory(directory);
		CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
		CU_ASSERT_EQUAL(
			ANSWER(w, cuCtxGetLimit, pvalue, .limit = CU_LIMIT_PRINTF_FIFO_SIZE),
			2 * MIB);
		/* Heard of once, with the first answer. */
		CU_ASSERT_EQUAL(w->deferred, i ? 0 : CUDA_ERROR_INVALID_VALUE);
		w->deferred = 0;
		CU_ASSERT_EQUAL(
			ANSWER(w, function_get_attribute, value, .function = FUNCTION(ADD),
				.attribute = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT),
			50);
		CU_ASSERT_EQUAL(ANSWER(w, pool_get_attribute, value, .pool = POOL_ID,
					.attribute = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD),
			5 * MIB);
		CU_ASSERT_EQUAL(ANSWER(w, pool_get_attribute, value, .pool = POOL_ID,
					.attribute = CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC),
			0);
		CU_ASSERT_EQUAL(
			ANSWER(w, pool_get_attribute, value, .pool = POOL_ID,
				.attribute = CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES),
			1);
		CU_ASSERT_EQUAL(ANSWER(w, pool_get_attribute, value, .pool = POOL_ID,
					.attribute = CU_MEMPOOL_ATTR_USED_MEM_HIGH),
			used);
		CU_ASSERT_TRUE(ANSWER(w, pool_get_attribute, value, .pool = POOL_ID,
				       .attribute = CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 3 * MIB);
		CU_ASSERT_EQUAL(w->deferred, 0);
		/* The limit of the pool still holds. */
		CU_ASSERT_EQUAL(done(WIRE_CALL(w, mem_alloc_async, true, .size = 63 * MIB,
					.stream = STREAM(0), .pool = POOL_ID)),
			CUDA_ERROR_OUT_OF_MEMORY);
	}
	WIRE_BATCH(w, mem_free_async, .address = block.address, .stream = STREAM(0));
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ANSWER(w, pool_get_attribute, value, .pool = POOL_ID,
				.attribute = CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
		0);
	session_end(w);
	remove_directory(directory);
}

/* Until it is told more than before. */
static bool told(struct wire *w, unsigned before)
{
	for (int i = 0; i < 60000 && w->notified_count <= before; i++) {
		CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return w->notified_count > before;
}

/*
 * Registrations with the driver: a restored session's new one knows them, and what it tells is
 * newer than all that was told before.
 */
static void test_notifications(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	make_directory(directory);
	struct wire *w = calloc(1, sizeof *w);
	w->devices = "12.0:1G:128M";
	CU_ASSERT_EQUAL_FATAL(wire_start(w, worker_path, driver_path, 0, -1, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_NEW, true), CKT_HELLO_OK);
	CU_ASSERT_EQUAL(
		done(WIRE_CALL(w, device_notify, true, .device = 0, .number = 7)), CUDA_SUCCESS);
	alloc(w, 160 * MIB);
	CU_ASSERT_TRUE(told(w, 0));
	CU_ASSERT_EQUAL(w->notified.number, 7);
	CU_ASSERT_TRUE(w->notified.over_bytes >= 32 * MIB);
	uint64_t before = w->notified.instance;
	save_and_stop(w, directory);
	unsigned count = w->notified_count;
	restore(w, directory);
	/* The latest is told again, since it may have been lost. */
	CU_ASSERT_TRUE(told(w, count));
	CU_ASSERT_EQUAL(w->notified.instance, before);
	count = w->notified_count;
	alloc(w, 64 * MIB);
	CU_ASSERT_TRUE(told(w, count));
	CU_ASSERT_EQUAL(w->notified.number, 7);
	CU_ASSERT_TRUE(w->notified.instance > before);
	CU_ASSERT_TRUE(w->notified.over_bytes >= 96 * MIB);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, device_notify_end, true, .number = 7)), CUDA_SUCCESS);
	session_end(w);
	remove_directory(directory);
}

UNIT_SUITE(load_objects, {"settings", test_settings}, {"notifications", test_notifications})
