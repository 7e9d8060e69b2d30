/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Algorithms: heuristics, ids, capabilities, configuration.
 *
 * A cublasLtMatmulAlgo_t is 64 bytes that only the genuine library reads; here they are bytes, and
 * every function of them is a question to it, asked once for each content (ask.c).
 */
#include <stdlib.h>
#include <string.h>

#include "client/libs/cublasLt/ask.h"
#include "client/libs/cublasLt/handle.h"
#include "client/libs/cublasLt/logger.h"
#include "client/libs/cublasLt/matmul.h"

enum {
	RESULTS_MAX = 1024, /* of one heuristic, as the table bounds them */
	IDS_MAX = 1024,
	CAP_BYTES_MAX = 4096, /* the longest list of capabilities has 635 tiles */
	CONFIG_BYTES_MAX = 64,
};

_Static_assert(sizeof(cublasLtMatmulAlgo_t) == CKT_LT_ALGO_BYTES, "travels as bytes");
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == CKT_LT_RESULT_BYTES, "travels as bytes");

CKT_LT_CODERS(cublasLtMatmulAlgoGetHeuristic)
CKT_LT_CODERS(cublasLtMatmulAlgoGetHeuristicForStream)
CKT_LT_CODERS(cublasLtMatmulAlgoGetIds)
CKT_LT_CODERS(cublasLtMatmulAlgoInit)
CKT_LT_CODERS(cublasLtMatmulAlgoCheck)
CKT_LT_CODERS(cublasLtMatmulAlgoCheckForStream)
CKT_LT_CODERS(cublasLtMatmulAlgoCapGetAttribute)
CKT_LT_CODERS(cublasLtMatmulAlgoConfigGetAttribute)
CKT_LT_CODERS(cublasLtMatmulAlgoConfigSetAttribute)

/* The descriptors that a heuristic and a check depend on. */
struct problem {
	uint8_t operation[CKT_LT_MATMUL_BYTES];
	uint32_t operation_len;
	uint8_t emulation_bytes[CKT_LT_EMULATION_BYTES];
	uint8_t layout_bytes[4][CKT_LT_LAYOUT_BYTES];
	struct ckt_lt_bytes emulation, layouts[4];
};

/* bytes: where the copy goes. */
static cublasStatus_t take_layout(const void *descriptor, uint8_t *bytes, struct ckt_lt_bytes *ret)
{
	cublasStatus_t status = ckt_lt_descriptor(CKT_LT_LAYOUT, descriptor, ret);
	if (status)
		return status;
	memcpy(bytes, ret->bytes, ret->length);
	ckt_lt_reduce_pointers(CKT_LT_LAYOUT, bytes);
	ret->bytes = bytes;
	return CUBLAS_STATUS_SUCCESS;
}

/* Copies of the descriptors without their addresses, so that equal questions are equal bytes. */
static cublasStatus_t take_problem(
	const void *desc, const void *const layouts[4], struct problem *ret)
{
	struct ckt_lt_bytes operation;
	cublasStatus_t status = ckt_lt_descriptor(CKT_LT_MATMUL, desc, &operation);
	for (unsigned i = 0; !status && i < 4; i++)
		status = take_layout(layouts[i], ret->layout_bytes[i], &ret->layouts[i]);
	if (status)
		return status;
	memcpy(ret->operation, operation.bytes, operation.length);
	ret->operation_len = operation.length;
	ckt_lt_reduce_pointers(CKT_LT_MATMUL, ret->operation);
	ckt_lt_emulation(ret->operation, &ret->emulation);
	if (ret->emulation.length) {
		/* Its own address says nothing, and neither does the one in it. */
		memcpy(ret->emulation_bytes, ret->emulation.bytes, ret->emulation.length);
		ret->emulation.bytes = ret->emulation_bytes;
		ckt_lt_set(CKT_LT_EMULATION, ret->emulation_bytes, 5, &(uint64_t){0}, 8);
		ckt_lt_set(
			CKT_LT_MATMUL, ret->operation, CKT_LT_MATMUL_EMULATION, &(uint64_t){0}, 8);
	}
	return CUBLAS_STATUS_SUCCESS;
}

/* The fields that a question has with a stream and without. */
#define PROBLEM_FIELDS(id, problem)                                                            \
	.handle = id, .operation = (problem)->operation,                                       \
	.operation_len = (problem)->operation_len, .emulation = (problem)->emulation.bytes,    \
	.emulation_len = (problem)->emulation.length, .a_layout = (problem)->layouts[0].bytes, \
	.a_layout_len = (problem)->layouts[0].length, .b_layout = (problem)->layouts[1].bytes, \
	.b_layout_len = (problem)->layouts[1].length, .c_layout = (problem)->layouts[2].bytes, \
	.c_layout_len = (problem)->layouts[2].length, .d_layout = (problem)->layouts[3].bytes, \
	.d_layout_len = (problem)->layouts[3].length

/* Of a question for a stream's context; NULL: for the device. */
struct asked_for {
	uint64_t stream;
};

static cublasStatus_t take_stream(cudaStream_t stream, struct asked_for *ret)
{
	return ckt_lt_status(ckt_client()->stream((CUstream)stream, &ret->stream));
}

/* The algorithms that come in with the results, where the search is limited to theirs. */
static uint8_t *given_algos(const cublasLtMatmulHeuristicResult_t *results, uint32_t count)
{
	uint8_t *algos = malloc((size_t)count * CKT_LT_ALGO_BYTES);
	for (uint32_t i = 0; algos && i < count; i++)
		memcpy(algos + (size_t)i * CKT_LT_ALGO_BYTES, &results[i].algo, CKT_LT_ALGO_BYTES);
	return algos;
}

static cublasStatus_t take_results(struct ckt_cursor *answer, uint32_t room,
	cublasLtMatmulHeuristicResult_t *results, int *ret_count)
{
	struct ckt_cublasLtMatmulAlgoGetHeuristic_res res;
	if (!ckt_cublasLtMatmulAlgoGetHeuristic_res_get(answer, &res) ||
		res.results_len % CKT_LT_RESULT_BYTES ||
		res.results_len / CKT_LT_RESULT_BYTES > room)
		return CUBLAS_STATUS_INTERNAL_ERROR;
	/* As the genuine library does, which leaves the count alone when an argument is wrong. */
	if (res.status != CUBLAS_STATUS_INVALID_VALUE)
		*ret_count = (int)(res.results_len / CKT_LT_RESULT_BYTES);
	memcpy(results, res.results, res.results_len);
	return (cublasStatus_t)res.status;
}

static cublasStatus_t heuristic(uint64_t handle, const struct problem *problem,
	const struct ckt_lt_bytes *preference, uint32_t requested,
	cublasLtMatmulHeuristicResult_t *results, int *ret_count, const struct asked_for *asked)
{
	bool limited =
		ckt_lt_word(CKT_LT_PREFERENCE, preference->bytes,
			CUBLASLT_MATMUL_PREF_SEARCH_MODE) == CUBLASLT_SEARCH_LIMITED_BY_ALGO_ID;
	uint8_t *algos = limited ? given_algos(results, requested) : NULL;
	uint32_t algos_len = limited ? requested * CKT_LT_ALGO_BYTES : 0;
	if (limited && !algos)
		return CUBLAS_STATUS_ALLOC_FAILED;
	struct ckt_cublasLtMatmulAlgoGetHeuristic_args args = {PROBLEM_FIELDS(handle, problem),
		.preference = preference->bytes, .preference_len = preference->length,
		.requested = requested, .algos = algos, .algos_len = algos_len};
	struct ckt_cublasLtMatmulAlgoGetHeuristicForStream_args more = {
		PROBLEM_FIELDS(handle, problem), .preference = preference->bytes,
		.preference_len = preference->length, .requested = requested, .algos = algos,
		.algos_len = algos_len, .stream = asked ? asked->stream : 0};
	struct ckt_lt_question question = asked
		? CKT_LT_QUESTION(CKT_CUBLASLT_PROC_CUBLASLTMATMULALGOGETHEURISTICFORSTREAM,
			  cublasLtMatmulAlgoGetHeuristicForStream, &more, &more.handle)
		: CKT_LT_QUESTION(CKT_CUBLASLT_PROC_CUBLASLTMATMULALGOGETHEURISTIC,
			  cublasLtMatmulAlgoGetHeuristic, &args, &args.handle);
	struct ckt_cursor answer;
	void *bytes;
	cublasStatus_t status = ckt_lt_ask(&question, true, &answer, &bytes);
	free(algos);
	if (status)
		return status;
	status = take_results(&answer, requested, results, ret_count);
	free(bytes);
	return status;
}

static cublasStatus_t get_heuristic(cublasLtHandle_t handle, const void *desc,
	const void *const layouts[4], const void *preference, int requested,
	cublasLtMatmulHeuristicResult_t *results, int *ret_count, const cudaStream_t *stream)
{
	struct problem problem;
	struct ckt_lt_bytes wanted;
	struct asked_for asked;
	uint64_t id;
	cublasStatus_t status = ckt_lt_handle(handle, &id);
	if (!status && (requested <= 0 || !results || !ret_count))
		status = CUBLAS_STATUS_INVALID_VALUE;
	if (!status)
		status = take_problem(desc, layouts, &problem);
	if (!status)
		status = ckt_lt_descriptor(CKT_LT_PREFERENCE, preference, &wanted);
	if (!status && stream)
		status = take_stream(*stream, &asked);
	if (status)
		return status;
	return heuristic(id, &problem, &wanted,
		requested < RESULTS_MAX ? (uint32_t)requested : RESULTS_MAX, results, ret_count,
		stream ? &asked : NULL);
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
	cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
	cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference,
	int requested, cublasLtMatmulHeuristicResult_t results[], int *ret_count)
{
	const void *const layouts[] = {a, b, c, d};
	return ckt_lt_log(__func__,
		get_heuristic(
			handle, desc, layouts, preference, requested, results, ret_count, NULL));
}

/* The answer is kept for each stream: which of them share a green context is not asked. */
CKT_LIB_EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristicForStream(cublasLtHandle_t handle,
	cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
	cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference,
	int requested, cublasLtMatmulHeuristicResult_t results[], int *ret_count,
	cudaStream_t stream)
{
	const void *const layouts[] = {a, b, c, d};
	return ckt_lt_log(__func__,
		get_heuristic(
			handle, desc, layouts, preference, requested, results, ret_count, &stream));
}

static cublasStatus_t take_ids(struct ckt_cursor *answer, uint32_t room, int *ids, int *ret_count)
{
	struct ckt_cublasLtMatmulAlgoGetIds_res res;
	if (!ckt_cublasLtMatmulAlgoGetIds_res_get(answer, &res) || res.ids_len > room)
		return CUBLAS_STATUS_INTERNAL_ERROR;
	for (uint32_t i = 0; i < res.ids_len; i++)
		ids[i] = (int)ckt_xdr_u32(res.ids_xdr, i);
	*ret_count = (int)res.ids_len;
	return (cublasStatus_t)res.status;
}

static cublasStatus_t get_ids(
	cublasLtHandle_t handle, const uint32_t *types, int requested, int *ids, int *ret_count)
{
	struct ckt_cublasLtMatmulAlgoGetIds_args args = {.types = types,
		.types_len = 6,
		.requested = requested < IDS_MAX ? (uint32_t)requested : IDS_MAX};
	struct ckt_lt_question question =
		CKT_LT_QUESTION(CKT_CUBLASLT_PROC_CUBLASLTMATMULALGOGETIDS,
			cublasLtMatmulAlgoGetIds, &args, &args.handle);
	struct ckt_cursor answer;
	void *bytes;
	cublasStatus_t status = ckt_lt_handle(handle, &args.handle);
	if (!status && (requested <= 0 || !ids || !ret_count))
		status = CUBLAS_STATUS_INVALID_VALUE;
	if (!status)
		status = ckt_lt_ask(&question, true, &answer, &bytes);
	if (status)
		return status;
	status = take_ids(&answer, args.requested, ids, ret_count);
	free(bytes);
	return status;
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t handle,
	cublasComputeType_t compute, cudaDataType_t scale, cudaDataType_t a, cudaDataType_t b,
	cudaDataType_t c, cudaDataType_t d, int requested, int ids[], int *ret_count)
{
	const uint32_t types[] = {compute, scale, a, b, c, d};
	return ckt_lt_log(__func__, get_ids(handle, types, requested, ids, ret_count));
}

static cublasStatus_t init(
	cublasLtHandle_t handle, const uint32_t *types, int algo_id, cublasLtMatmulAlgo_t *ret_algo)
{
	struct ckt_cublasLtMatmulAlgoInit_args args = {
		.types = types, .types_len = 6, .algo_id = algo_id};
	struct ckt_lt_question question = CKT_LT_QUESTION(CKT_CUBLASLT_PROC_CUBLASLTMATMULALGOINIT,
		cublasLtMatmulAlgoInit, &args, &args.handle);
	struct ckt_cublasLtMatmulAlgoInit_res res;
	struct ckt_cursor answer;
	void *bytes;
	cublasStatus_t status = ckt_lt_handle(handle, &args.handle);
	if (!status && !ret_algo)
		status = CUBLAS_STATUS_INVALID_VALUE;
	if (!status)
		status = ckt_lt_ask(&question, true, &answer, &bytes);
	if (status)
		return status;
	bool good = ckt_cublasLtMatmulAlgoInit_res_get(&answer, &res) &&
		(res.status || res.algo_len == sizeof *ret_algo);
	status = good ? (cublasStatus_t)res.status : CUBLAS_STATUS_INTERNAL_ERROR;
	if (!status)
		memcpy(ret_algo, res.algo, sizeof *ret_algo);
	free(bytes);
	return status;
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle,
	cublasComputeType_t compute, cudaDataType_t scale, cudaDataType_t a, cudaDataType_t b,
	cudaDataType_t c, cudaDataType_t d, int algo_id, cublasLtMatmulAlgo_t *algo)
{
	const uint32_t types[] = {compute, scale, a, b, c, d};
	return ckt_lt_log(__func__, init(handle, types, algo_id, algo));
}

/* The algorithm in the result is the caller's, and may be the one that is checked. */
static cublasStatus_t take_check(
	struct ckt_cursor *answer, cublasLtMatmulHeuristicResult_t *ret_result)
{
	struct ckt_cublasLtMatmulAlgoCheck_res res;
	if (!ckt_cublasLtMatmulAlgoCheck_res_get(answer, &res) ||
		(!res.status && res.result_len != sizeof *ret_result))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	if (!res.status)
		memcpy((uint8_t *)ret_result + sizeof ret_result->algo,
			res.result + sizeof ret_result->algo,
			sizeof *ret_result - sizeof ret_result->algo);
	return (cublasStatus_t)res.status;
}

static cublasStatus_t check(cublasLtHandle_t handle, const void *desc, const void *const layouts[4],
	const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *ret_result,
	const cudaStream_t *stream)
{
	struct problem problem;
	struct asked_for asked = {0};
	uint64_t id;
	cublasStatus_t status = ckt_lt_handle(handle, &id);
	if (!status && (!algo || !ret_result))
		status = CUBLAS_STATUS_INVALID_VALUE;
	if (!status)
		status = take_problem(desc, layouts, &problem);
	if (!status && stream)
		status = take_stream(*stream, &asked);
	if (status)
		return status;
	struct ckt_cublasLtMatmulAlgoCheck_args args = {PROBLEM_FIELDS(id, &problem),
		.algo = (const uint8_t *)algo, .algo_len = sizeof *algo};
	struct ckt_cublasLtMatmulAlgoCheckForStream_args more = {PROBLEM_FIELDS(id, &problem),
		.algo = (const uint8_t *)algo, .algo_len = sizeof *algo, .stream = asked.stream};
	struct ckt_lt_question question = stream
		? CKT_LT_QUESTION(CKT_CUBLASLT_PROC_CUBLASLTMATMULALGOCHECKFORSTREAM,
			  cublasLtMatmulAlgoCheckForStream, &more, &more.handle)
		: CKT_LT_QUESTION(CKT_CUBLASLT_PROC_CUBLASLTMATMULALGOCHECK,
			  cublasLtMatmulAlgoCheck, &args, &args.handle);
	struct ckt_cursor answer;
	void *bytes;
	status = ckt_lt_ask(&question, true, &answer, &bytes);
	if (status)
		return status;
	status = take_check(&answer, ret_result);
	free(bytes);
	return status;
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle,
	cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
	cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulHeuristicResult_t *result)
{
	return ckt_lt_log(__func__,
		check(handle, desc, (const void *const[]){a, b, c, d}, algo, result, NULL));
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatmulAlgoCheckForStream(cublasLtHandle_t handle,
	cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
	cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulHeuristicResult_t *result, cudaStream_t stream)
{
	return ckt_lt_log(__func__,
		check(handle, desc, (const void *const[]){a, b, c, d}, algo, result, &stream));
}

/* ---- Attributes of an algorithm.  size 0 asks how long the value is */

static bool asks_rightly(
	const void *algo, const void *value, size_t size, const size_t *ret_written)
{
	return algo && (size ? value != NULL : ret_written != NULL);
}

/* Precondition: asks_rightly. */
static cublasStatus_t give_value(int status, const uint8_t *bytes, uint32_t length,
	uint64_t written, void *value, size_t size, size_t *ret_written)
{
	if (status)
		return (cublasStatus_t)status;
	if (length > size || (size && length != written))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	if (length)
		memcpy(value, bytes, length);
	if (ret_written)
		*ret_written = (size_t)written;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get_cap(const cublasLtMatmulAlgo_t *algo, int attribute, void *value,
	size_t size, size_t *ret_written)
{
	struct ckt_cublasLtMatmulAlgoCapGetAttribute_args args = {.algo = (const uint8_t *)algo,
		.algo_len = sizeof *algo,
		.attribute = attribute,
		.size = size < CAP_BYTES_MAX ? (uint32_t)size : CAP_BYTES_MAX};
	struct ckt_lt_question question =
		CKT_LT_QUESTION(CKT_CUBLASLT_PROC_CUBLASLTMATMULALGOCAPGETATTRIBUTE,
			cublasLtMatmulAlgoCapGetAttribute, &args, NULL);
	struct ckt_cublasLtMatmulAlgoCapGetAttribute_res res;
	struct ckt_cursor answer;
	void *bytes;
	if (!asks_rightly(algo, value, size, ret_written))
		return CUBLAS_STATUS_INVALID_VALUE;
	cublasStatus_t status = ckt_lt_ask(&question, true, &answer, &bytes);
	if (status)
		return status;
	status = !ckt_cublasLtMatmulAlgoCapGetAttribute_res_get(&answer, &res)
		? CUBLAS_STATUS_INTERNAL_ERROR
		: give_value(res.status, res.value, res.value_len, res.written, value, size,
			  ret_written);
	free(bytes);
	return status;
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulAlgoCapAttributes_t attribute, void *value, size_t size, size_t *written)
{
	return ckt_lt_log(__func__, get_cap(algo, (int)attribute, value, size, written));
}

static cublasStatus_t get_config(const cublasLtMatmulAlgo_t *algo, int attribute, void *value,
	size_t size, size_t *ret_written)
{
	struct ckt_cublasLtMatmulAlgoConfigGetAttribute_args args = {.algo = (const uint8_t *)algo,
		.algo_len = sizeof *algo,
		.attribute = attribute,
		.size = size < CONFIG_BYTES_MAX ? (uint32_t)size : CONFIG_BYTES_MAX};
	struct ckt_lt_question question =
		CKT_LT_QUESTION(CKT_CUBLASLT_PROC_CUBLASLTMATMULALGOCONFIGGETATTRIBUTE,
			cublasLtMatmulAlgoConfigGetAttribute, &args, NULL);
	struct ckt_cublasLtMatmulAlgoConfigGetAttribute_res res;
	struct ckt_cursor answer;
	void *bytes;
	if (!asks_rightly(algo, value, size, ret_written))
		return CUBLAS_STATUS_INVALID_VALUE;
	cublasStatus_t status = ckt_lt_ask(&question, true, &answer, &bytes);
	if (status)
		return status;
	status = !ckt_cublasLtMatmulAlgoConfigGetAttribute_res_get(&answer, &res)
		? CUBLAS_STATUS_INTERNAL_ERROR
		: give_value(res.status, res.value, res.value_len, res.written, value, size,
			  ret_written);
	free(bytes);
	return status;
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulAlgoConfigAttributes_t attribute, void *value, size_t size, size_t *written)
{
	return ckt_lt_log(__func__, get_config(algo, (int)attribute, value, size, written));
}

static cublasStatus_t set_config(
	cublasLtMatmulAlgo_t *algo, int attribute, const void *value, size_t size)
{
	struct ckt_cublasLtMatmulAlgoConfigSetAttribute_args args = {.algo = (const uint8_t *)algo,
		.algo_len = sizeof *algo,
		.attribute = attribute,
		.value = value,
		.value_len = (uint32_t)size};
	struct ckt_lt_question question =
		CKT_LT_QUESTION(CKT_CUBLASLT_PROC_CUBLASLTMATMULALGOCONFIGSETATTRIBUTE,
			cublasLtMatmulAlgoConfigSetAttribute, &args, NULL);
	struct ckt_cublasLtMatmulAlgoConfigSetAttribute_res res;
	struct ckt_cursor answer;
	void *bytes;
	if (!algo || !value || !size || size > CONFIG_BYTES_MAX)
		return CUBLAS_STATUS_INVALID_VALUE;
	cublasStatus_t status = ckt_lt_ask(&question, true, &answer, &bytes);
	if (status)
		return status;
	bool good = ckt_cublasLtMatmulAlgoConfigSetAttribute_res_get(&answer, &res) &&
		(res.status || res.algo_len == sizeof *algo);
	status = good ? (cublasStatus_t)res.status : CUBLAS_STATUS_INTERNAL_ERROR;
	if (!status)
		memcpy(algo, res.algo, sizeof *algo);
	free(bytes);
	return status;
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulAlgoConfigAttributes_t attribute, const void *value, size_t size)
{
	return ckt_lt_log(__func__, set_config(algo, (int)attribute, value, size));
}
