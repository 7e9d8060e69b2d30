/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/module/module.c: blobs, modules, functions and variables by their commands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/module/module.h"
#include "tests/unit/worker/inside.h"

static const char good[] =
	".version 8.0\n.target sm_70\n.address_size 64\n.visible .global .align 4 .u32 value = 7;\n"
	".visible .entry one(.param .u64 a, .param .u32 b)\n{\n\tret;\n}\n.visible .entry two()\n{\n\tret;\n}\n";
static const char bad[] =
	".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry two()\n{\n\tnothing.at.all;\n}\n";
static uint8_t hashes[3][CKT_HASH_SIZE]; /* of good, of bad, of nothing */

static struct ckt_module_load_res load(uint64_t id, const uint8_t *hash, uint32_t log_max)
{
	struct ckt_module_load_res res = {.status = 999};
	struct inside_reply *reply = INSIDE(module_load, false, .id = id, .hash = hash,
		.hash_len = CKT_HASH_SIZE, .error_log_max = log_max);
	IS(reply->result, CUDA_SUCCESS);
	YES(ckt_module_load_res_get(&reply->results, &res));
	return res;
}

static void test_load(void)
{
	uint64_t id = ID(MODULE, 201);
	uint32_t keys[2] = {CU_JIT_MAX_REGISTERS, CU_JIT_ERROR_LOG_BUFFER};
	uint64_t values[2] = {32, 4096}, objects = ckt_worker.objects.count;
	IS(ckt_blobs_add(&ckt_worker.blobs, good, sizeof good, hashes[0]), 0);
	IS(ckt_blobs_add(&ckt_worker.blobs, bad, sizeof bad, hashes[1]), 0);
	memset(hashes[2], 0xee, CKT_HASH_SIZE);
	for (uint32_t length = 0; length < CKT_HASH_SIZE; length++)
		IS(ASK(module_load, .id = id, .hash = hashes[0], .hash_len = length),
			INSIDE_GARBAGE);
	IS(ASK(module_load, .id = id, .hash = hashes[0], .hash_len = CKT_HASH_SIZE,
		   .option_keys = keys, .option_keys_len = 2, .option_values = values,
		   .option_values_len = 1),
		INSIDE_GARBAGE);
	/* Its result is the module's, and no object is left where it failed. */
	IS(load(id, hashes[2], 0).status, CUDA_ERROR_NOT_FOUND);
	IS(load(ID(STREAM, 299), hashes[0], 0).status, CUDA_ERROR_INVALID_VALUE);
	struct ckt_module_load_res res = load(id, hashes[1], 64);
	YES(res.status != CUDA_SUCCESS && res.error_log_len > 0 && res.error_log_len <= 64);
	IS(load(id, hashes[1], 0).error_log_len, 0);
	struct inside_reply *reply = INSIDE(module_load, false, .id = id, .hash = hashes[0],
		.hash_len = CKT_HASH_SIZE, .option_keys = keys + 1, .option_keys_len = 1,
		.option_values = values, .option_values_len = 1);
	YES(ckt_module_load_res_get(&reply->results, &res));
	/* an address of the client's is none here */
	IS(res.status, CUDA_ERROR_NOT_SUPPORTED);
	IS(ckt_worker.objects.count, objects);
	size_t journal = ckt_worker.checkpoint.journal.count;
	reply = INSIDE(module_load, false, .id = id, .hash = hashes[0], .hash_len = CKT_HASH_SIZE,
		.option_keys = keys, .option_keys_len = 1, .option_values = values,
		.option_values_len = 1);
	YES(ckt_module_load_res_get(&reply->results, &res));
	MUST(res.status, CUDA_SUCCESS);
	IS(ckt_worker.checkpoint.journal.count, journal + 1);
	const struct ckt_object *object = ckt_objects_find(&ckt_worker.objects, id);
	MUST(object->module.option_count, 1);
	IS(object->module.option_keys[0], CU_JIT_MAX_REGISTERS);
	IS(object->module.option_values[0], 32);
	IS(memcmp(object->module.hash, hashes[0], CKT_HASH_SIZE), 0);
	IS(load(id, hashes[0], 0).status, CUDA_ERROR_INVALID_VALUE);
	IS(ckt_worker.objects.count, objects + 1);
	IS(CUT(module_load, .id = id, .hash = hashes[0], .hash_len = CKT_HASH_SIZE), 0);
}

/*
 * What points into the client's memory, or claims more than was sent, does not reach the driver: it
 * would follow it, or read on.
 */
static void test_forms(void)
{
	static const struct {
		size_t size;
		uint64_t words[4];
	} cases[] = {{24, {0x1466243b1, 8, 8}}, {24, {0x2466243b1, 0, 8}}, {16, {0x1466243b1, 8}},
		{16, {0x001000001ba55ed50, 1 << 20}},
		{32, {0x001000001ba55ed50, 1 << 20, 0x4000000001, 1 << 20}},
		{20, {0x00010102464c457f, 0}}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint8_t hash[CKT_HASH_SIZE];
		IS(ckt_blobs_add(&ckt_worker.blobs, cases[i].words, cases[i].size, hash), 0);
		struct ckt_module_load_res res = load(ID(MODULE, 250), hash, 200);
		IS(res.status, CUDA_ERROR_INVALID_IMAGE);
		YES(res.error_log_len > 0);
	}
}

#define NAME(text) .name = text, .name_len = sizeof text - 1

static void test_functions(void)
{
	uint64_t module = ID(MODULE, 201), id = ID(FUNCTION, 201);
	struct ckt_module_get_function_res res;
	struct inside_reply *reply =
		INSIDE(module_get_function, false, .module = module, .id = id, NAME("one"));
	MUST(reply->result, CUDA_SUCCESS);
	YES(ckt_module_get_function_res_get(&reply->results, &res));
	MUST(res.param_offsets_len, 2);
	MUST(res.param_sizes_len, 2);
	IS(ckt_xdr_u32(res.param_offsets_xdr, 1), 8);
	IS(ckt_xdr_u32(res.param_sizes_xdr, 0), 8);
	IS(ckt_xdr_u32(res.param_sizes_xdr, 1), 4);
	IS(res.attribute_values_len, CU_FUNC_ATTRIBUTE_MAX);
	IS(ASK(module_get_function, .module = module, .id = id, NAME("two")),
		CUDA_ERROR_INVALID_VALUE);
	IS(ASK(module_get_function, .module = module, .id = ID(FUNCTION, 202), NAME("three")),
		CUDA_ERROR_NOT_FOUND);
	IS(ASK(module_get_function, .module = module, .id = ID(FUNCTION, 202), NAME("one\0x")),
		INSIDE_GARBAGE);
	IS(ASK(module_get_function, .module = module, .id = ID(FUNCTION, 202), NAME("")),
		CUDA_ERROR_NOT_FOUND);
	IS(ASK(module_get_function, .module = ID(MODULE, 299), .id = ID(FUNCTION, 202),
		   NAME("one")),
		CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(module_get_function, .module = id, .id = ID(FUNCTION, 202), NAME("one")),
		CUDA_ERROR_INVALID_HANDLE);
	/* One entry an attribute, the last value. */
	struct ckt_object *object = ckt_objects_find(&ckt_worker.objects, id);
	for (int i = 1; i <= 3; i++)
		IS(ASK(function_set_attribute, .function = id,
			   .attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
			   .value = 1024 * i),
			CUDA_SUCCESS);
	MUST(object->function.set_count, 1);
	IS(object->function.sets[0].value, 3072);
	IS(ASK(function_set_attribute, .function = id, .attribute = UINT32_MAX, .value = 1),
		CUDA_ERROR_INVALID_VALUE);
	IS(ASK(function_set_attribute, .function = id,
		   .attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, .value = -1),
		CUDA_ERROR_INVALID_VALUE);
	IS(object->function.sets[0].value, 3072);
	IS(ASK(function_get_attribute, .function = id, .attribute = CU_FUNC_ATTRIBUTE_NUM_REGS),
		CUDA_SUCCESS);
	IS(ASK(function_get_attribute, .function = id, .attribute = UINT32_MAX),
		CUDA_ERROR_INVALID_VALUE);
	NO(object->function.cache_config_set);
	IS(ASK(function_set_cache_config, .function = id, .config = CU_FUNC_CACHE_PREFER_L1),
		CUDA_SUCCESS);
	YES(object->function.cache_config_set &&
		object->function.cache_config == CU_FUNC_CACHE_PREFER_L1);
	const uint64_t wrong[] = {0, module, ID(FUNCTION, 299), UINT64_MAX};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		IS(ASK(function_set_attribute, .function = wrong[i]), CUDA_ERROR_INVALID_HANDLE);
		IS(ASK(function_get_attribute, .function = wrong[i]), CUDA_ERROR_INVALID_HANDLE);
		IS(ASK(function_set_cache_config, .function = wrong[i]), CUDA_ERROR_INVALID_HANDLE);
	}
	IS(CUT(module_get_function, .module = module, .id = id, NAME("one")), 0);
	IS(CUT(function_set_attribute, .function = id), 0);
	IS(CUT(function_get_attribute, .function = id), 0);
	IS(CUT(function_set_cache_config, .function = id), 0);
}

static void test_names(void)
{
	uint64_t module = ID(MODULE, 201);
	struct ckt_object *object = ckt_objects_find(&ckt_worker.objects, module);
	struct ckt_module_get_variable_res variable = {0};
	struct inside_reply *reply =
		INSIDE(module_get_variable, false, .module = module, NAME("value"));
	MUST(reply->result, CUDA_SUCCESS);
	YES(ckt_module_get_variable_res_get(&reply->results, &variable));
	IS(variable.size, 4);
	IS(variable.managed, 0);
	IS(inside_word(variable.address), 7);
	IS(ASK(module_get_global, .module = module, NAME("value")), CUDA_SUCCESS);
	IS(object->module.seen_count, 1); /* asked for twice, noted once */
	IS(ASK(module_get_global, .module = module, NAME("none")), CUDA_ERROR_NOT_FOUND);
	IS(ASK(module_get_global, .module = module, NAME("value\0")), INSIDE_GARBAGE);
	IS(ASK(module_get_variable, .module = module, NAME("\0")), INSIDE_GARBAGE);
	IS(ASK(module_get_global, .module = ID(MODULE, 299), NAME("value")),
		CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(module_get_variable, .module = ID(MODULE, 299), NAME("value")),
		CUDA_ERROR_INVALID_HANDLE);
	char name[16];
	for (unsigned i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "v%u", i % 10);
		ckt_module_note_seen(object, name);
	}
	IS(object->module.seen_count, 11);
	static const struct {
		uint32_t first, bytes;
	} lists[] = {{0, 8}, {1, 4}, {2, 0}, {3, 0}, {UINT32_MAX, 0}};
	for (size_t i = 0; i < COUNT(lists); i++) {
		struct ckt_module_list_functions_res res = {0};
		reply = INSIDE(
			module_list_functions, false, .module = module, .first = lists[i].first);
		MUST(reply->result, CUDA_SUCCESS);
		YES(ckt_module_list_functions_res_get(&reply->results, &res));
		IS(res.total, 2);
		IS(res.names_len, lists[i].bytes);
	}
	IS(ASK(module_list_functions, .module = ID(MODULE, 299)), CUDA_ERROR_INVALID_HANDLE);
	IS(CUT(module_get_global, .module = module, NAME("valu")), 0);
	IS(CUT(module_get_variable, .module = module, NAME("valu")), 0);
	IS(CUT(module_list_functions, .module = module), 0);
}

static void test_blobs(void)
{
	static const struct {
		uint64_t offset;
		uint32_t size;
		int result;
	} reads[] = {{0, sizeof good, 0}, {sizeof good, 0, 0},
		{0, sizeof good + 1, CUDA_ERROR_INVALID_VALUE},
		{sizeof good + 1, 0, CUDA_ERROR_INVALID_VALUE},
		{UINT64_MAX, 1, CUDA_ERROR_INVALID_VALUE},
		{1, UINT32_MAX, CUDA_ERROR_INVALID_VALUE}};
	for (size_t i = 0; i < COUNT(reads); i++)
		IS(ASK(blob_read, .hash = hashes[0], .hash_len = CKT_HASH_SIZE,
			   .offset = reads[i].offset, .size = reads[i].size),
			reads[i].result);
	IS(ASK(blob_read, .hash = hashes[2], .hash_len = CKT_HASH_SIZE), CUDA_ERROR_NOT_FOUND);
	for (unsigned i = 0; i <= 2; i += 2) {
		struct ckt_blob_have_res res = {.have = 9};
		struct inside_reply *reply =
			INSIDE(blob_have, false, .hash = hashes[i], .hash_len = CKT_HASH_SIZE);
		YES(ckt_blob_have_res_get(&reply->results, &res));
		IS(res.have, i == 0);
	}
	IS(ASK(blob_have, .hash = hashes[0], .hash_len = 31), INSIDE_GARBAGE);
	IS(ASK(blob_read, .hash = hashes[0], .hash_len = 31), INSIDE_GARBAGE);
	/* Pieces behind their blob's end, or of none that was begun. */
	IS(ASK(blob_data, .hash = hashes[2], .hash_len = CKT_HASH_SIZE, .total = 4, .offset = 4,
		   .data = hashes[0], .data_len = 4),
		INSIDE_GARBAGE);
	IS(ASK(blob_data, .hash = hashes[2], .hash_len = CKT_HASH_SIZE, .total = 4, .offset = 0,
		   .data = hashes[0], .data_len = 5),
		INSIDE_GARBAGE);
	IS(ASK(blob_data, .hash = hashes[2], .hash_len = CKT_HASH_SIZE, .total = 4,
		   .offset = UINT64_MAX, .data = hashes[0], .data_len = 4),
		INSIDE_GARBAGE);
	IS(ASK(blob_data, .hash = hashes[2], .hash_len = 0), INSIDE_GARBAGE);
}

static void test_unload(void)
{
	uint64_t module = ID(MODULE, 201);
	IS(ASK(module_unload, .id = ID(MODULE, 299)), CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(module_unload, .id = ID(FUNCTION, 201)), CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(module_unload, .id = module), CUDA_SUCCESS);
	IS(ASK(module_unload, .id = module), CUDA_ERROR_INVALID_HANDLE);
	/* Its functions go with it. */
	CU_ASSERT_PTR_NULL(ckt_objects_find(&ckt_worker.objects, ID(FUNCTION, 201)));
	IS(CUT(module_unload, .id = module), 0);
}

UNIT_SUITE(module, {"forms", test_forms}, {"load", test_load}, {"functions", test_functions},
	{"names", test_names}, {"blobs", test_blobs}, {"unload", test_unload})
