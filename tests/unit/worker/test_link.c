/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/module/link.c: the linker: inputs by their hashes, names one behind the other,
 * options as many as values; its image is a blob.
 */
#include <stdlib.h>
#include <string.h>

#include "server/worker/module/jit.h"
#include "tests/unit/worker/inside.h"

static const char good[] =
	".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry one()\n{\n\tret;\n}\n";
static const char bad[] =
	".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry two()\n{\n\tnothing.at.all;\n}\n";

static struct ckt_link_res ask(struct ckt_link_args args, int *ret_result)
{
	uint8_t bytes[4096];
	struct ckt_link_res res = {.status = 999};
	size_t size = ckt_link_args_size(&args);
	ckt_link_args_put(bytes, &args);
	struct inside_reply *reply = inside_call("link", bytes, size, false);
	*ret_result = reply->result;
	if (!reply->result)
		YES(ckt_link_res_get(&reply->results, &res));
	return res;
}

static void test_link(void)
{
	uint8_t hashes[2 * CKT_HASH_SIZE], wrong[CKT_HASH_SIZE];
	uint32_t types[] = {CU_JIT_INPUT_PTX, CU_JIT_INPUT_PTX}, keys[] = {CU_JIT_MAX_REGISTERS};
	uint64_t values[] = {32};
	int result;
	/* without its NUL */
	IS(ckt_blobs_add(&ckt_worker.blobs, good, sizeof good - 1, hashes), 0);
	IS(ckt_blobs_add(&ckt_worker.blobs, bad, sizeof bad, hashes + CKT_HASH_SIZE), 0);
	memset(wrong, 0xee, sizeof wrong);
	struct ckt_link_args args = {.input_types = types,
		.input_types_len = 1,
		.input_hashes = hashes,
		.input_hashes_len = CKT_HASH_SIZE,
		.input_names = "a.ptx",
		.input_names_len = 6,
		.option_keys = keys,
		.option_keys_len = 1,
		.option_values = values,
		.option_values_len = 1,
		.info_log_max = 100,
		.error_log_max = 200};
	size_t blobs = ckt_worker.blobs.count;
	struct ckt_link_res res = ask(args, &result);
	IS(result, CUDA_SUCCESS);
	IS(res.status, CUDA_SUCCESS);
	const struct ckt_blob *blob = ckt_blobs_find(&ckt_worker.blobs, res.hash);
	CU_ASSERT_PTR_NOT_NULL_FATAL(blob);
	IS(blob->size, res.size);
	IS(ckt_worker.blobs.count, blobs + 1);
	/* Linked again it is the same, once. */
	ask(args, &result);
	IS(ckt_worker.blobs.count, blobs + 1);
	/* Errors are the linker's, with its log as long as was asked. */
	args.input_hashes = hashes + CKT_HASH_SIZE;
	res = ask(args, &result);
	IS(result, CUDA_SUCCESS);
	YES(res.status != CUDA_SUCCESS);
	YES(res.error_log_len > 0 && res.error_log_len <= 200);
	args.error_log_max = 0;
	res = ask(args, &result);
	IS(res.error_log_len, 0);
	args.input_hashes = wrong;
	res = ask(args, &result);
	IS(res.status, CUDA_ERROR_NOT_FOUND);
	args.input_hashes = hashes;
	keys[0] = CU_JIT_ERROR_LOG_BUFFER;
	res = ask(args, &result);
	IS(res.status, CUDA_ERROR_NOT_SUPPORTED);
	keys[0] = CU_JIT_MAX_REGISTERS;
	/* No name, or one without an end. */
	args.input_names_len = 0;
	res = ask(args, &result);
	IS(res.status, CUDA_SUCCESS);
	args.input_names_len = 3;
	res = ask(args, &result);
	IS(res.status, CUDA_SUCCESS);
}

static void test_lengths(void)
{
	uint8_t hashes[3 * CKT_HASH_SIZE] = {0};
	uint32_t types[] = {CU_JIT_INPUT_PTX, CU_JIT_INPUT_PTX},
		 keys[2] = {CU_JIT_MAX_REGISTERS, CU_JIT_MAX_REGISTERS};
	uint64_t values[2] = {1, 2};
	static const struct {
		uint32_t types, hashes, keys, values;
	} cases[] = {{1, 0, 0, 0}, {1, 31, 0, 0}, {1, 33, 0, 0}, {2, 32, 0, 0}, {0, 32, 0, 0},
		{1, 32, 1, 0}, {1, 32, 1, 2}};
	int result;
	for (size_t i = 0; i < COUNT(cases); i++) {
		ask((struct ckt_link_args){.input_types = types,
			    .input_types_len = cases[i].types,
			    .input_hashes = hashes,
			    .input_hashes_len = cases[i].hashes,
			    .option_keys = keys,
			    .option_keys_len = cases[i].keys,
			    .option_values = values,
			    .option_values_len = cases[i].values},
			&result);
		IS(result, INSIDE_GARBAGE);
	}
	IS(CUT(link, .input_types = types, .input_types_len = 1, .input_hashes = hashes,
		   .input_hashes_len = 32, .input_names = "x", .input_names_len = 2),
		0);
}

/*
 * An input that points, or claims more than was sent, does not reach the driver, whatever it is
 * said to be.
 */
static void test_forms(void)
{
	static const uint64_t wrapper[] = {0x1466243b1, 8, 8},
			      container[] = {0x001000001ba55ed50, 1 << 20, 0, 0};
	static const CUjitInputType types[] = {CU_JIT_INPUT_CUBIN, CU_JIT_INPUT_PTX,
		CU_JIT_INPUT_FATBINARY, CU_JIT_INPUT_OBJECT, CU_JIT_INPUT_LIBRARY,
		CU_JIT_INPUT_NVVM};
	uint8_t hashes[2][CKT_HASH_SIZE];
	IS(ckt_blobs_add(&ckt_worker.blobs, wrapper, sizeof wrapper, hashes[0]), 0);
	IS(ckt_blobs_add(&ckt_worker.blobs, container, sizeof container, hashes[1]), 0);
	for (size_t i = 0; i < COUNT(types); i++)
		for (size_t k = 0; k < COUNT(hashes); k++) {
			int result;
			struct ckt_link_res res =
				ask((struct ckt_link_args){.input_types = (uint32_t[]){types[i]},
					    .input_types_len = 1,
					    .input_hashes = hashes[k],
					    .input_hashes_len = CKT_HASH_SIZE,
					    .error_log_max = 200},
					&result);
			IS(result, CUDA_SUCCESS);
			IS(res.status, CUDA_ERROR_INVALID_IMAGE);
			YES(res.error_log_len > 0);
		}
}

UNIT_SUITE(link, {"link", test_link}, {"lengths", test_lengths}, {"forms", test_forms})
