/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/libs/cublasLt/cublasLt_algo.c: questions that are none. */
#include <stdlib.h>
#include <string.h>

#include "client/libs/cublasLt/handle.h"
#include "tests/unit/cublaslt/bridge.h"

static uint8_t operation[CKT_LT_MATMUL_BYTES], layout[CKT_LT_LAYOUT_BYTES],
	preference[CKT_LT_PREFERENCE_BYTES];
static const uint8_t algo[CKT_LT_ALGO_BYTES] = {1};
static const uint32_t types[6] = {68};

static uint64_t handle_id(void)
{
	uint64_t id = 0;
	MUST(ckt_lt_handle(bridge_handle(), &id), CUBLAS_STATUS_SUCCESS);
	ckt_lt_init(CKT_LT_MATMUL, operation, 256);
	ckt_lt_init(CKT_LT_LAYOUT, layout, CKT_LT_STRUCT_BYTES);
	ckt_lt_init(CKT_LT_PREFERENCE, preference, CKT_LT_STRUCT_BYTES);
	return id;
}

#define ASKED(name, PROC, ...)                                                            \
	({                                                                                \
		struct ckt_##name##_args args_ = {__VA_ARGS__};                           \
		size_t size_ = ckt_##name##_args_size(&args_);                            \
		uint8_t *bytes_ = malloc(size_);                                          \
		ckt_##name##_args_put(bytes_, &args_);                                    \
		int result_ = bridge_raw(CKT_CUBLASLT_PROC_##PROC, bytes_, size_, false); \
		free(bytes_);                                                             \
		result_;                                                                  \
	})

#define PROBLEM                                                                           \
	.operation = operation, .operation_len = sizeof operation, .a_layout = layout,    \
	.a_layout_len = sizeof layout, .b_layout = layout, .b_layout_len = sizeof layout, \
	.c_layout = layout, .c_layout_len = sizeof layout, .d_layout = layout,            \
	.d_layout_len = sizeof layout

static void test_heuristic(void)
{
	uint64_t id = handle_id();
	static uint8_t algos[65536];
#define HEURISTIC(...)                                                                 \
	ASKED(cublasLtMatmulAlgoGetHeuristic, CUBLASLTMATMULALGOGETHEURISTIC, PROBLEM, \
		.preference = preference, __VA_ARGS__)
	IS(HEURISTIC(.handle = id, .preference_len = sizeof preference, .requested = 1),
		CUDA_SUCCESS);
	IS(HEURISTIC(.handle = id, .preference_len = sizeof preference, .requested = 0),
		INSIDE_GARBAGE);
	IS(HEURISTIC(.handle = id, .preference_len = sizeof preference, .requested = 1025),
		INSIDE_GARBAGE);
	IS(HEURISTIC(.handle = id, .preference_len = sizeof preference, .requested = UINT32_MAX),
		INSIDE_GARBAGE);
	IS(HEURISTIC(.handle = id, .preference_len = 0, .requested = 1), INSIDE_GARBAGE);
	IS(HEURISTIC(.handle = id, .preference_len = 44, .requested = 1), INSIDE_GARBAGE);
	/* As many algorithms as results, or none. */
	IS(HEURISTIC(.handle = id, .preference_len = sizeof preference, .requested = 2,
		   .algos = algos, .algos_len = 128),
		CUDA_SUCCESS);
	IS(HEURISTIC(.handle = id, .preference_len = sizeof preference, .requested = 1024,
		   .algos = algos, .algos_len = 65536),
		CUDA_SUCCESS);
	IS(HEURISTIC(.handle = id, .preference_len = sizeof preference, .requested = 2,
		   .algos = algos, .algos_len = 64),
		INSIDE_GARBAGE);
	IS(HEURISTIC(.handle = id, .preference_len = sizeof preference, .requested = 2,
		   .algos = algos, .algos_len = 120),
		INSIDE_GARBAGE);
	IS(HEURISTIC(.handle = 5, .preference_len = sizeof preference, .requested = 1),
		CUDA_ERROR_INVALID_HANDLE);
	IS(ASKED(cublasLtMatmulAlgoGetHeuristic, CUBLASLTMATMULALGOGETHEURISTIC, .handle = id,
		   .preference = preference, .preference_len = sizeof preference, .requested = 1),
		INSIDE_GARBAGE);
	double_calls();
}

/* The same two questions with a stream, which is looked for, and what was wrong of them is. */
static void test_for_stream(void)
{
	uint64_t id = handle_id();
#define FOR_STREAM(...)                                                                         \
	ASKED(cublasLtMatmulAlgoGetHeuristicForStream, CUBLASLTMATMULALGOGETHEURISTICFORSTREAM, \
		PROBLEM, .preference = preference, __VA_ARGS__)
	IS(FOR_STREAM(.handle = id, .preference_len = sizeof preference, .requested = 1),
		CUDA_SUCCESS);
	IS(FOR_STREAM(.handle = id, .preference_len = sizeof preference, .requested = 1,
		   .stream = 12345),
		CUDA_ERROR_INVALID_HANDLE);
	IS(FOR_STREAM(.handle = 5, .preference_len = sizeof preference, .requested = 1),
		CUDA_ERROR_INVALID_HANDLE);
	IS(FOR_STREAM(.handle = id, .preference_len = sizeof preference, .requested = 0),
		INSIDE_GARBAGE);
#define CHECK_FOR_STREAM(...)                                                              \
	ASKED(cublasLtMatmulAlgoCheckForStream, CUBLASLTMATMULALGOCHECKFORSTREAM, PROBLEM, \
		.algo = algo, __VA_ARGS__)
	IS(CHECK_FOR_STREAM(.handle = id, .algo_len = sizeof algo), CUDA_SUCCESS);
	IS(CHECK_FOR_STREAM(.handle = id, .algo_len = sizeof algo, .stream = 12345),
		CUDA_ERROR_INVALID_HANDLE);
	IS(CHECK_FOR_STREAM(.handle = id, .algo_len = 8), INSIDE_GARBAGE);
	double_calls();
}

/* Whatever the library says of how many it found: no more than there is room for is read. */
static void test_results(void)
{
	uint64_t id = handle_id();
	double_results = -5;
	IS(HEURISTIC(.handle = id, .preference_len = sizeof preference, .requested = 1),
		CUDA_SUCCESS);
	IS(ASKED(cublasLtMatmulAlgoGetIds, CUBLASLTMATMULALGOGETIDS, .handle = id, .types = types,
		   .types_len = 6, .requested = 3),
		CUDA_SUCCESS);
	double_results = 2;
	double_calls();
}

static void test_others(void)
{
	uint64_t id = handle_id();
	IS(ASKED(cublasLtMatmulAlgoGetIds, CUBLASLTMATMULALGOGETIDS, .handle = id, .types = types,
		   .types_len = 5, .requested = 1),
		INSIDE_GARBAGE);
	IS(ASKED(cublasLtMatmulAlgoGetIds, CUBLASLTMATMULALGOGETIDS, .handle = id, .types = types,
		   .types_len = 6, .requested = 0),
		INSIDE_GARBAGE);
	IS(ASKED(cublasLtMatmulAlgoGetIds, CUBLASLTMATMULALGOGETIDS, .handle = id, .types = types,
		   .types_len = 6, .requested = 1025),
		INSIDE_GARBAGE);
	IS(ASKED(cublasLtMatmulAlgoGetIds, CUBLASLTMATMULALGOGETIDS, .handle = 1, .types = types,
		   .types_len = 6, .requested = 1),
		CUDA_ERROR_INVALID_HANDLE);
	IS(ASKED(cublasLtMatmulAlgoInit, CUBLASLTMATMULALGOINIT, .handle = id, .types = types,
		   .types_len = 1),
		INSIDE_GARBAGE);
	IS(ASKED(cublasLtMatmulAlgoInit, CUBLASLTMATMULALGOINIT, .handle = 1, .types = types,
		   .types_len = 6),
		CUDA_ERROR_INVALID_HANDLE);
	IS(ASKED(cublasLtMatmulAlgoCheck, CUBLASLTMATMULALGOCHECK, PROBLEM, .handle = id,
		   .algo = algo, .algo_len = 60),
		INSIDE_GARBAGE);
	IS(ASKED(cublasLtMatmulAlgoCheck, CUBLASLTMATMULALGOCHECK, .handle = id, .algo = algo,
		   .algo_len = 64),
		INSIDE_GARBAGE);
	IS(ASKED(cublasLtMatmulAlgoCapGetAttribute, CUBLASLTMATMULALGOCAPGETATTRIBUTE, .algo = algo,
		   .algo_len = 64, .attribute = 6, .size = 4096),
		CUDA_SUCCESS);
	IS(ASKED(cublasLtMatmulAlgoCapGetAttribute, CUBLASLTMATMULALGOCAPGETATTRIBUTE, .algo = algo,
		   .algo_len = 64, .attribute = 6, .size = 4097),
		INSIDE_GARBAGE);
	IS(ASKED(cublasLtMatmulAlgoCapGetAttribute, CUBLASLTMATMULALGOCAPGETATTRIBUTE, .algo = algo,
		   .algo_len = 0, .attribute = 6, .size = 4),
		INSIDE_GARBAGE);
	IS(ASKED(cublasLtMatmulAlgoConfigGetAttribute, CUBLASLTMATMULALGOCONFIGGETATTRIBUTE,
		   .algo = algo, .algo_len = 64, .size = 65),
		INSIDE_GARBAGE);
	IS(ASKED(cublasLtMatmulAlgoConfigSetAttribute, CUBLASLTMATMULALGOCONFIGSETATTRIBUTE,
		   .algo = algo, .algo_len = 64),
		INSIDE_GARBAGE);
	IS(ASKED(cublasLtMatmulAlgoConfigSetAttribute, CUBLASLTMATMULALGOCONFIGSETATTRIBUTE,
		   .algo = algo, .algo_len = 8, .value = algo, .value_len = 4),
		INSIDE_GARBAGE);
	IS(bridge_raw(CKT_CUBLASLT_PROC_CUBLASLT_VERSIONS, algo, 4, false), INSIDE_GARBAGE);
	IS(bridge_raw(CKT_CUBLASLT_PROC_CUBLASLTHEURISTICSCACHEGETCAPACITY, algo, 4, false),
		INSIDE_GARBAGE);
	IS(bridge_raw(CKT_CUBLASLT_PROC_CUBLASLTHEURISTICSCACHESETCAPACITY, algo, 4, false),
		INSIDE_GARBAGE);
	double_calls();
}

UNIT_SUITE(cublasLt_algo, {"heuristic", test_heuristic}, {"for a stream", test_for_stream},
	{"results", test_results}, {"others", test_others})
