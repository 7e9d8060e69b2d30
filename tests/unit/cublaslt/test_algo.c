/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/libs/cublasLt/algo.c: algorithms travel as bytes, and every parameter of their functions
 * arrives.
 */
#include <stdlib.h>
#include <string.h>

#include "client/libs/cublasLt/cache.h"
#include "tests/unit/cublaslt/bridge.h"

static cublasLtMatmulDesc_t op;
static cublasLtMatrixLayout_t layouts[4];
static cublasLtMatmulPreference_t preference;
static const cublasLtMatmulAlgo_t some = {{0x11, 2, 3, 4, 5, 6, 7, 0x88}};

static void make(void)
{
	bridge_handle();
	ckt_lt_cache_clear();
	cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F);
	for (unsigned i = 0; i < 4; i++)
		cublasLtMatrixLayoutCreate(&layouts[i], CUDA_R_16F, 10 + i, 20 + i, 30 + i);
	cublasLtMatmulPreferenceCreate(&preference);
	double_calls();
	bridge_reset();
}

static void end(void)
{
	cublasLtMatmulDescDestroy(op);
	for (unsigned i = 0; i < 4; i++)
		cublasLtMatrixLayoutDestroy(layouts[i]);
	cublasLtMatmulPreferenceDestroy(preference);
	double_results = 2;
}

static cublasStatus_t ask(int requested, cublasLtMatmulHeuristicResult_t *results, int *count)
{
	return cublasLtMatmulAlgoGetHeuristic(bridge_handle(), op, layouts[0], layouts[1],
		layouts[2], layouts[3], preference, requested, results, count);
}

#define PROBLEM \
	"op={0=44 1=0} A={0=2 2=a 3=14 4=1e} B={0=2 2=b 3=15 4=1f} C={0=2 2=c 3=16 4=20} D={0=2 2=d 3=17 4=21}"

static void test_heuristic(void)
{
	static cublasLtMatmulHeuristicResult_t results[2000];
	int count = -1;
	make();
	cublasLtMatmulPreferenceSetAttribute(
		preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &(uint64_t){0x2000}, 8);
	cublasLtMatmulPreferenceSetAttribute(
		preference, CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, &(float){1}, 4);
	IS(ask(5, results, &count), CUBLAS_STATUS_SUCCESS);
	TEXT(double_calls(),
		"cublasLtMatmulAlgoGetHeuristic handle=4a4d " PROBLEM
		" preference={1=2000 9=3f800000} requested=5 given=0..0\n");
	IS(count, 2);
	IS(results[1].algo.data[0], 101);
	IS(results[1].algo.data[7], 108);
	IS(results[1].workspaceSize, 2048);
	YES(results[1].wavesCount == 1);
	IS(results[1].state, CUBLAS_STATUS_SUCCESS);
	/* None is an answer too. */
	double_results = 0;
	IS(ask(6, results, &count), CUBLAS_STATUS_SUCCESS);
	IS(count, 0);
	/* The most that travel, and more than that. */
	double_results = 1024;
	IS(ask(1024, results, &count), CUBLAS_STATUS_SUCCESS);
	IS(count, 1024);
	IS(results[1023].algo.data[0], 102301);
	double_results = 2000;
	IS(ask(2000, results, &count), CUBLAS_STATUS_SUCCESS);
	IS(count, 1024);
	end();
}

/* Of a search that is limited to algorithms, those in the results go along. */
static void test_limited(void)
{
	cublasLtMatmulHeuristicResult_t results[3] = {
		{.algo = {{5}}}, {.algo = {{6}}}, {.algo = {{7, 0, 0, 0, 0, 0, 0, 9}}}};
	int count;
	make();
	cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_SEARCH_MODE,
		&(int){CUBLASLT_SEARCH_LIMITED_BY_ALGO_ID}, 4);
	IS(ask(3, results, &count), CUBLAS_STATUS_SUCCESS);
	HAS(double_calls(), "preference={0=1} requested=3 given=5..9\n");
	memset(results, 0, sizeof results);
	results[0].algo.data[0] = 8;
	IS(ask(3, results, &count), CUBLAS_STATUS_SUCCESS);
	HAS(double_calls(), "given=8..0\n");
	end();
}

static void test_heuristic_wrong(void)
{
	cublasLtMatmulHeuristicResult_t results[2];
	int count = 7;
	make();
	IS(ask(0, results, &count), CUBLAS_STATUS_INVALID_VALUE);
	IS(count, 7);
	IS(ask(-1, results, &count), CUBLAS_STATUS_INVALID_VALUE);
	IS(ask(1, NULL, &count), CUBLAS_STATUS_INVALID_VALUE);
	IS(ask(1, results, NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoGetHeuristic(NULL, op, layouts[0], layouts[1], layouts[2], layouts[3],
		   preference, 1, results, &count),
		CUBLAS_STATUS_NOT_INITIALIZED);
	IS(cublasLtMatmulAlgoGetHeuristic(bridge_handle(), NULL, layouts[0], layouts[1], layouts[2],
		   layouts[3], preference, 1, results, &count),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoGetHeuristic(bridge_handle(), op, layouts[0], layouts[1], layouts[2],
		   NULL, preference, 1, results, &count),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoGetHeuristic(bridge_handle(), op, layouts[0], layouts[1], layouts[2],
		   layouts[3], NULL, 1, results, &count),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(bridge_total(), 0);
	double_status = CUBLAS_STATUS_NOT_SUPPORTED;
	IS(ask(2, results, &count), CUBLAS_STATUS_NOT_SUPPORTED);
	end();
}

static void test_ids(void)
{
	static int ids[2000];
	int count = 0;
	make();
	IS(cublasLtMatmulAlgoGetIds(bridge_handle(), CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F,
		   CUDA_R_16BF, CUDA_R_8I, CUDA_R_64F, 3, ids, &count),
		CUBLAS_STATUS_SUCCESS);
	TEXT(double_calls(),
		"cublasLtMatmulAlgoGetIds handle=4a4d types=68,0,2,14,3,1 requested=3\n");
	IS(count, 2);
	IS(ids[1], 21);
	double_results = 1024;
	IS(cublasLtMatmulAlgoGetIds(bridge_handle(), CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F,
		   CUDA_R_16BF, CUDA_R_8I, CUDA_R_64F, 2000, ids, &count),
		CUBLAS_STATUS_SUCCESS);
	IS(count, 1024);
	IS(ids[1023], 1043);
	bridge_reset();
	IS(cublasLtMatmulAlgoGetIds(bridge_handle(), CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F,
		   CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, 0, ids, &count),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoGetIds(bridge_handle(), CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F,
		   CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, 1, NULL, &count),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoGetIds(bridge_handle(), CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F,
		   CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, 1, ids, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoGetIds(NULL, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F,
		   CUDA_R_16F, CUDA_R_16F, 1, NULL, NULL),
		CUBLAS_STATUS_NOT_INITIALIZED);
	IS(bridge_total(), 0);
	end();
}

static void test_init_and_check(void)
{
	cublasLtMatmulAlgo_t algo = {{0}};
	make();
	IS(cublasLtMatmulAlgoInit(bridge_handle(), CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F,
		   CUDA_R_16BF, CUDA_R_8I, CUDA_R_64F, 17, &algo),
		CUBLAS_STATUS_SUCCESS);
	TEXT(double_calls(), "cublasLtMatmulAlgoInit handle=4a4d types=68,0,2,14,3,1 id=17\n");
	IS(algo.data[0], 17);
	IS(algo.data[7], 77);
	IS(cublasLtMatmulAlgoInit(bridge_handle(), CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F,
		   CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, 17, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoInit(NULL, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F,
		   CUDA_R_16F, CUDA_R_16F, 17, NULL),
		CUBLAS_STATUS_NOT_INITIALIZED);
	double_status = CUBLAS_STATUS_INVALID_VALUE;
	IS(cublasLtMatmulAlgoInit(bridge_handle(), CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F,
		   CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, 999, &algo),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(algo.data[0], 17);
	double_calls();
	/* The algorithm may be the result's own, which stays as it is. */
	cublasLtMatmulHeuristicResult_t result = {.algo = some};
	IS(cublasLtMatmulAlgoCheck(bridge_handle(), op, layouts[0], layouts[1], layouts[2],
		   layouts[3], &result.algo, &result),
		CUBLAS_STATUS_SUCCESS);
	TEXT(double_calls(), "cublasLtMatmulAlgoCheck handle=4a4d " PROBLEM " algo=11..88\n");
	IS(memcmp(&result.algo, &some, sizeof some), 0);
	IS(result.workspaceSize, 4096);
	YES(result.wavesCount == 2);
	IS(cublasLtMatmulAlgoCheck(bridge_handle(), op, layouts[0], layouts[1], layouts[2],
		   layouts[3], NULL, &result),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoCheck(bridge_handle(), op, layouts[0], layouts[1], layouts[2],
		   layouts[3], &some, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoCheck(
		   NULL, op, layouts[0], layouts[1], layouts[2], layouts[3], &some, &result),
		CUBLAS_STATUS_NOT_INITIALIZED);
	double_status = CUBLAS_STATUS_ARCH_MISMATCH;
	algo = some;
	algo.data[3] = 99;
	IS(cublasLtMatmulAlgoCheck(bridge_handle(), op, layouts[0], layouts[1], layouts[2],
		   layouts[3], &algo, &result),
		CUBLAS_STATUS_ARCH_MISMATCH);
	IS(result.workspaceSize, 4096);
	end();
}

/*
 * What is asked of a stream's context goes with the stream, and is another question for another
 * stream.
 */
static void test_for_stream(void)
{
	cublasLtMatmulHeuristicResult_t results[2] = {0}, checked = {.algo = some};
	int count = 0;
	make();
	/* A library that cannot tell contexts apart answers for the device. */
	IS(cublasLtMatmulAlgoGetHeuristicForStream(bridge_handle(), op, layouts[0], layouts[1],
		   layouts[2], layouts[3], preference, 2, results, &count, NULL),
		CUBLAS_STATUS_SUCCESS);
	TEXT(double_calls(),
		"cublasLtMatmulAlgoGetHeuristic handle=4a4d " PROBLEM
		" preference={} requested=2 given=0..0\n");
	ckt_lt_cache_clear();
	double_install_newer();
	IS(cublasLtMatmulAlgoGetHeuristicForStream(bridge_handle(), op, layouts[0], layouts[1],
		   layouts[2], layouts[3], preference, 2, results, &count, NULL),
		CUBLAS_STATUS_SUCCESS);
	TEXT(double_calls(),
		"stream=legacy cublasLtMatmulAlgoGetHeuristic handle=4a4d " PROBLEM
		" preference={} requested=2 given=0..0\n");
	IS(count, 2);
	IS(results[1].workspaceSize, 2048);
	bridge_reset();
	IS(cublasLtMatmulAlgoGetHeuristicForStream(bridge_handle(), op, layouts[0], layouts[1],
		   layouts[2], layouts[3], preference, 2, results, &count, NULL),
		CUBLAS_STATUS_SUCCESS);
	IS(bridge_total(), 0);
	IS(cublasLtMatmulAlgoGetHeuristicForStream(bridge_handle(), op, layouts[0], layouts[1],
		   layouts[2], layouts[3], preference, 2, results, &count, cudaStreamPerThread),
		CUBLAS_STATUS_SUCCESS);
	HAS(double_calls(), "stream=thread ");
	IS(cublasLtMatmulAlgoCheckForStream(bridge_handle(), op, layouts[0], layouts[1], layouts[2],
		   layouts[3], &checked.algo, &checked, cudaStreamPerThread),
		CUBLAS_STATUS_SUCCESS);
	TEXT(double_calls(),
		"stream=thread cublasLtMatmulAlgoCheck handle=4a4d " PROBLEM " algo=11..88\n");
	IS(checked.workspaceSize, 4096);
	IS(cublasLtMatmulAlgoCheckForStream(bridge_handle(), op, layouts[0], layouts[1], layouts[2],
		   layouts[3], NULL, &checked, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoGetHeuristicForStream(NULL, op, layouts[0], layouts[1], layouts[2],
		   layouts[3], preference, 2, results, &count, NULL),
		CUBLAS_STATUS_NOT_INITIALIZED);
	double_install();
	end();
}

static void test_capabilities(void)
{
	uint32_t list[2000], word = 0;
	size_t written = 0;
	make();
	double_results = 635;
	IS(cublasLtMatmulAlgoCapGetAttribute(&some, CUBLASLT_ALGO_CAP_TILE_IDS, NULL, 0, &written),
		CUBLAS_STATUS_SUCCESS);
	IS(written, 635 * 4);
	TEXT(double_calls(),
		"cublasLtMatmulAlgoCapGetAttribute algo=11..88 attribute=6 value=0 size=0\n");
	IS(cublasLtMatmulAlgoCapGetAttribute(
		   &some, CUBLASLT_ALGO_CAP_TILE_IDS, list, sizeof list, &written),
		CUBLAS_STATUS_SUCCESS);
	IS(written, 635 * 4);
	IS(list[0], 0x04030201);
	IS(cublasLtMatmulAlgoCapGetAttribute(&some, CUBLASLT_ALGO_CAP_TILE_IDS, list, 8, &written),
		CUBLAS_STATUS_SUCCESS);
	IS(written, 8);
	IS(cublasLtMatmulAlgoCapGetAttribute(
		   &some, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, &word, 4, NULL),
		CUBLAS_STATUS_SUCCESS);
	IS(word, 0x04030201);
	IS(cublasLtMatmulAlgoCapGetAttribute(
		   &some, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, list, 8, &written),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoCapGetAttribute(
		   &some, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, list, 5000, &written),
		CUBLAS_STATUS_INVALID_VALUE);
	bridge_reset();
	IS(cublasLtMatmulAlgoCapGetAttribute(
		   &some, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, &word, 4, NULL),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasLtMatmulAlgoCapGetAttribute(
		   NULL, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, &word, 4, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoCapGetAttribute(
		   &some, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, NULL, 4, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoCapGetAttribute(
		   &some, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, &word, 0, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(bridge_total(), 0);
	end();
}

static void test_config(void)
{
	cublasLtMatmulAlgo_t algo = some;
	uint32_t word = 0;
	size_t written = 0;
	make();
	IS(cublasLtMatmulAlgoConfigGetAttribute(
		   &algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &word, 4, &written),
		CUBLAS_STATUS_SUCCESS);
	TEXT(double_calls(),
		"cublasLtMatmulAlgoConfigGetAttribute algo=11..88 attribute=1 value=1 size=4\n");
	IS(word, 9);
	IS(written, 4);
	IS(cublasLtMatmulAlgoConfigGetAttribute(
		   &algo, CUBLASLT_ALGO_CONFIG_TILE_ID, NULL, 0, &written),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasLtMatmulAlgoConfigGetAttribute(
		   &algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &word, 100, &written),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoConfigGetAttribute(
		   NULL, CUBLASLT_ALGO_CONFIG_TILE_ID, &word, 4, &written),
		CUBLAS_STATUS_INVALID_VALUE);
	double_calls();
	word = 0x55;
	IS(cublasLtMatmulAlgoConfigSetAttribute(&algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &word, 4),
		CUBLAS_STATUS_SUCCESS);
	TEXT(double_calls(),
		"cublasLtMatmulAlgoConfigSetAttribute algo=11..88 attribute=2 value=55 size=4\n");
	IS(algo.data[1], 0x55);
	IS(algo.data[0], 0x11);
	/* The same setting of the same bytes again is known. */
	bridge_reset();
	algo = some;
	IS(cublasLtMatmulAlgoConfigSetAttribute(&algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &word, 4),
		CUBLAS_STATUS_SUCCESS);
	IS(algo.data[1], 0x55);
	IS(cublasLtMatmulAlgoConfigSetAttribute(NULL, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &word, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoConfigSetAttribute(&algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, NULL, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoConfigSetAttribute(&algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &word, 0),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatmulAlgoConfigSetAttribute(&algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &word, 65),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(bridge_total(), 0);
	double_status = CUBLAS_STATUS_INVALID_VALUE;
	word = 0x66;
	IS(cublasLtMatmulAlgoConfigSetAttribute(&algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &word, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(algo.data[1], 0x55);
	end();
}

UNIT_SUITE(algo, {"heuristic", test_heuristic}, {"limited search", test_limited},
	{"wrong heuristics", test_heuristic_wrong}, {"ids", test_ids},
	{"init and check", test_init_and_check}, {"for a stream", test_for_stream},
	{"capabilities", test_capabilities}, {"configuration", test_config})
