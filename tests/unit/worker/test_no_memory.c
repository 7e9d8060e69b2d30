/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation of the worker's own code fails once, one after another: the call that wanted it
 * fails or does without, the same call succeeds afterwards, and the session goes on.  The linker
 * puts the functions below in the place of malloc and its like (meson.build: --wrap) in the
 * worker's code, but not in the driver's.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/save/save.h"
#include "server/worker/module/module.h"
#include "server/worker/objects/context.h"
#include "tests/unit/worker/graphs.h"
#include "tests/unit/worker/inside_image.h"

/* Allocations until the one that fails; below 0: none does. */
static atomic_long countdown = -1;
static atomic_bool fired;

static bool fails(void)
{
	if (atomic_load(&countdown) < 0 || atomic_fetch_sub(&countdown, 1) != 0)
		return false;
	fired = true;
	errno = ENOMEM;
	return true;
}

#define WRAPPED(type, name, parameters, arguments)               \
	type __real_##name parameters;                           \
	type __wrap_##name parameters;                           \
	type __wrap_##name parameters                            \
	{                                                        \
		return fails() ? NULL : __real_##name arguments; \
	}
WRAPPED(void *, malloc, (size_t size), (size))
WRAPPED(void *, calloc, (size_t count, size_t size), (count, size))
WRAPPED(void *, realloc, (void *old, size_t size), (old, size))
WRAPPED(void *, reallocarray, (void *old, size_t count, size_t size), (old, count, size))
WRAPPED(char *, strdup, (const char *text), (text))

static void arm(long number)
{
	fired = false;
	countdown = number;
}

/* True where the fault came. */
static bool disarm(void)
{
	countdown = -1;
	return fired;
}

/* The same over the handlers of several calls, one behind the other, and nothing in between. */
static long left_number;

static void watch(bool runs)
{
	if (runs) {
		countdown = left_number;
	} else {
		left_number = countdown;
		countdown = -1;
	}
}

static void arm_calls(long number)
{
	fired = false;
	left_number = number;
	inside_watch = watch;
}

static bool disarm_calls(void)
{
	inside_watch = NULL;
	return disarm();
}

/*
 * How often a call was repeated until no allocation of it failed; each repetition begins where the
 * one before has left the session.
 */
#define EACH_FAULT(statement, undo)                                                         \
	({                                                                                  \
		long number_ = 0;                                                           \
		for (bool more_ = true; more_ && number_ < 5000; number_++) {               \
			arm_calls(number_);                                                 \
			int result_ = (statement);                                          \
			more_ = disarm_calls();                                             \
			if (result_ != CUDA_SUCCESS && result_ != CUDA_ERROR_OUT_OF_MEMORY) \
				IS(result_, CUDA_ERROR_OUT_OF_MEMORY);                      \
			if (!more_)                                                         \
				IS(result_, CUDA_SUCCESS);                                  \
			else if (result_ == CUDA_SUCCESS)                                   \
				undo;                                                       \
		}                                                                           \
		number_;                                                                    \
	})

static const char ptx[] =
	".version 8.0\n.target sm_70\n.address_size 64\n"
	".visible .global .align 4 .u32 total = 77;\n.visible .entry nothing(.param .u64 where)\n{\n\tret;\n}\n";

static uint64_t address_in(struct inside_reply *reply)
{
	return reply->result ? 0 : ckt_get_u64(&reply->results);
}

static void test_memory(void)
{
	uint64_t at = 0;
	/* More than one list has room for from the start. */
	for (uint64_t size = 256; size <= 4 << 20; size *= 4)
		for (int i = 0; i < 40; i++) {
			EACH_FAULT(({
				struct inside_reply *r =
					INSIDE(mem_alloc, false, .device = 0, .size = size);
				at = address_in(r);
				r->result;
			}),
				IS(ASK(mem_free, .address = at), CUDA_SUCCESS));
			/* A free that found no memory freed nothing, or all of it. */
			if (i % 2)
				for (int result = 1, n = 0; result && n < 100; n++) {
					arm_calls(n);
					result = ASK(mem_free, .address = at);
					disarm_calls();
					YES(!result || result == CUDA_ERROR_OUT_OF_MEMORY);
				}
		}
	ckt_memory_free_owned(&ckt_worker.devices[0].memory, 0);
	IS(ckt_memory_used(&ckt_worker.devices[0].memory), 0);
}

static void test_pools(void)
{
	uint64_t at[200], used;
	EACH_FAULT(ASK(pool_create, .id = ID(POOL, 61)),
		IS(ASK(pool_destroy, .id = ID(POOL, 61)), CUDA_SUCCESS));
	for (unsigned i = 0; i < COUNT(at); i++)
		EACH_FAULT(({
			struct inside_reply *r = INSIDE(mem_alloc_async, false,
				.pool = ID(POOL, 61), .size = 1 << 12, .stream = 1);
			at[i] = address_in(r);
			r->result;
		}),
			IS(INSIDE(mem_free_async, true, .address = at[i], .stream = 1)->result,
				CUDA_SUCCESS));
	for (unsigned i = 0; i < COUNT(at); i++)
		EACH_FAULT(
			INSIDE(mem_free_async, true, .address = at[i], .stream = 1)->result, break);
	ckt_driver.cuCtxSynchronize();
	IS(INSIDE(pool_trim, true, .pool = ID(POOL, 61))->result, CUDA_SUCCESS);
	struct ckt_account account =
		ckt_memory_account(&ckt_worker.devices[0].memory, ID(POOL, 61));
	used = account.used;
	IS(used, 0);
	IS(account.reserved, 0);
	IS(ASK(pool_destroy, .id = ID(POOL, 61)), CUDA_SUCCESS);
}

static void test_mappings(void)
{
	uint64_t at[40];
	for (unsigned i = 0; i < COUNT(at); i++) {
		uint64_t id = ID(PHYSICAL, 100 + i), size = 2 << 20;
		EACH_FAULT(({
			struct inside_reply *r = INSIDE(address_reserve, false, .size = size);
			at[i] = address_in(r);
			r->result;
		}),
			IS(ASK(address_free, .address = at[i], .size = size), CUDA_SUCCESS));
		EACH_FAULT(ASK(physical_create, .id = id, .size = size),
			IS(ASK(physical_release, .id = id), CUDA_SUCCESS));
		EACH_FAULT(ASK(mem_map, .address = at[i], .size = size, .physical = id),
			IS(ASK(mem_unmap, .address = at[i], .size = size), CUDA_SUCCESS));
	}
	for (unsigned i = 0; i < COUNT(at); i++) {
		IS(ASK(mem_unmap, .address = at[i], .size = 2 << 20), CUDA_SUCCESS);
		IS(ASK(physical_release, .id = ID(PHYSICAL, 100 + i)), CUDA_SUCCESS);
		IS(ASK(address_free, .address = at[i], .size = 2 << 20), CUDA_SUCCESS);
	}
}

static void make_objects(void)
{
	uint8_t hash[CKT_HASH_SIZE];
	struct ckt_module_load_res load = {.status = 0};
	IS(ckt_blobs_add(&ckt_worker.blobs, ptx, sizeof ptx, hash), 0);
	EACH_FAULT(({
		struct inside_reply *r = INSIDE(module_load, false, .id = ID(MODULE, 61),
			.hash = hash, .hash_len = CKT_HASH_SIZE, .info_log_max = 100,
			.error_log_max = 100);
		int result = r->result;
		if (!result && ckt_module_load_res_get(&r->results, &load))
			result = (int)load.status;
		/* Loaded, but there was no memory to say so. */
		struct ckt_object *module = ckt_objects_find(&ckt_worker.objects, ID(MODULE, 61));
		if (result && module)
			ckt_module_unload(&ckt_worker, module);
		result;
	}),
		ckt_module_unload(
			&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(MODULE, 61))));
	EACH_FAULT(({
		int result = ASK(module_get_function, .module = ID(MODULE, 61),
			.id = ID(FUNCTION, 61), .name = "nothing", .name_len = 7);
		struct ckt_object *function =
			ckt_objects_find(&ckt_worker.objects, ID(FUNCTION, 61));
		if (result && function)
			ckt_objects_remove(&ckt_worker.objects, function);
		result;
	}),
		ckt_objects_remove(&ckt_worker.objects,
			ckt_objects_find(&ckt_worker.objects, ID(FUNCTION, 61))));
	EACH_FAULT(
		ASK(module_get_variable, .module = ID(MODULE, 61), .name = "total", .name_len = 5),
		(void)0);
	EACH_FAULT(ASK(module_list_functions, .module = ID(MODULE, 61)), (void)0);
	for (unsigned i = 0; i < 40; i++) {
		EACH_FAULT(ASK(stream_create, .id = ID(STREAM, 100 + i), .flags = i % 2),
			IS(ASK(stream_destroy, .id = ID(STREAM, 100 + i)), CUDA_SUCCESS));
		EACH_FAULT(ASK(event_create, .id = ID(EVENT, 100 + i)),
			IS(ASK(event_destroy, .id = ID(EVENT, 100 + i)), CUDA_SUCCESS));
	}
	uint64_t filled = inside_memory(4096, 1);
	EACH_FAULT(({
		struct description d;
		graph_begin(&d);
		graph_fill(&d, 1, filled, 5, 4, 4);
		int result = graph_instantiate(&d, ID(GRAPH, 61), ID(GRAPH_EXEC, 61));
		struct ckt_object *exec = ckt_objects_find(&ckt_worker.objects, ID(GRAPH_EXEC, 61));
		struct ckt_object *data = ckt_objects_find(&ckt_worker.objects, ID(GRAPH, 61));
		if (result && exec)
			ckt_object_destroy(&ckt_worker, exec);
		if (result && data)
			ckt_object_destroy(&ckt_worker, data);
		result;
	}),
		ckt_object_destroy(
			&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(GRAPH_EXEC, 61))));
	EACH_FAULT(INSIDE(graph_launch, true, .exec = ID(GRAPH_EXEC, 61), .stream = 1)->result,
		(void)0);
	EACH_FAULT(ASK(stream_synchronize, .stream = 1), (void)0);
	EACH_FAULT(ASK(ctx_synchronize, .id = 0), (void)0);
}

/*
 * Every kind of object, made under faults, then saved under faults: the save fails with a sentence
 * or does without what it wanted.
 */
static void test_save(void)
{
	make_objects();
	uint64_t memory = inside_memory(3 << 20, 0x1234);
	MUST(ckt_vmm_physical_make(&ckt_worker, ID(PHYSICAL, 61), 0, 2 << 20, 0), CUDA_SUCCESS);
	IS(ASK(array_create, .id = ID(ARRAY, 61), .width = 16, .height = 4,
		   .format = CU_AD_FORMAT_FLOAT, .channels = 1),
		CUDA_SUCCESS);
	IS(ASK(pool_create, .id = ID(POOL, 62)), CUDA_SUCCESS);
	long number = 0, failed = 0;
	for (bool more = true; more && number < 5000; number++) {
		struct ckt_save s = {.keep_hashes = number % 2 == 0};
		image_files_new();
		arm(number);
		int result = image_save(&s);
		more = disarm();
		failed += result != 0;
		if (result && result != -ENOMEM && result != -EIO)
			IS(result, -ENOMEM);
		if (result)
			YES(image_message[0] != 0);
		if (!more)
			IS(result, 0);
		if (!result) {
			ckt_image *image = image_read();
			IS(image_word(image, memory), 0x1234);
			IS(image->arrays.arrays_len, 1);
			image_free(image);
		}
		image_files_close();
		IS(inside_word(memory), 0x1234);
	}
	/* There are some, and most of them matter. */
	YES(number > 50 && failed > number / 2);
	IS(ASK(array_destroy, .id = ID(ARRAY, 61)), CUDA_SUCCESS);
	IS(ASK(physical_release, .id = ID(PHYSICAL, 61)), CUDA_SUCCESS);
}

UNIT_SUITE(no_memory, {"memory", test_memory}, {"pools", test_pools}, {"mappings", test_mappings},
	{"objects, and an image of them", test_save})
