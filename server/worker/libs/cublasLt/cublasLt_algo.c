/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLASLt's queries: heuristics, ids, capabilities, configurations.  The client caches the
 * results.
 */
#include <stdlib.h>
#include <string.h>

#include "server/worker/libs/cublasLt/cublasLt.h"
#include "server/worker/worker.h"

enum { RESULTS_MAX = 1024, IDS_MAX = 1024, CAP_BYTES_MAX = 4096, CONFIG_BYTES_MAX = 64 };

static void free_pointer(void *p)
{
	free(*(void **)p);
}

#define FREED __attribute__((cleanup(free_pointer)))

/* Encodes the results of a message. */
#define ANSWER(name, call, res)                                                                 \
	({                                                                                      \
		ckt_##name##_res_put(ckt_wcall_results(call, ckt_##name##_res_size(res)), res); \
		CUDA_SUCCESS;                                                                   \
	})

struct problem {
	void *operation, *layouts[4];
};

/* CKT_WCALL_GARBAGE or a cublasStatus_t.  layouts: four. */
static int take_problem(const struct ckt_cublaslt_bytes *operation,
	const struct ckt_cublaslt_bytes *layouts, struct problem *ret)
{
	int status = operation->length
		? ckt_cublaslt_descriptor(CKT_CUBLASLT_OPERATION, operation, &ret->operation)
		: CKT_WCALL_GARBAGE;
	for (int i = 0; !status && i < 4; i++)
		status = layouts[i].length
			? ckt_cublaslt_descriptor(CKT_CUBLASLT_A + i, &layouts[i], &ret->layouts[i])
			: CKT_WCALL_GARBAGE;
	return status;
}

/* Two messages have these fields. */
#define TAKE_PROBLEM(args, ret)                                                             \
	take_problem(&(struct ckt_cublaslt_bytes){(args)->operation, (args)->operation_len, \
			     (args)->emulation, (args)->emulation_len},                     \
		(const struct ckt_cublaslt_bytes[]){                                        \
			{.bytes = (args)->a_layout, .length = (args)->a_layout_len},        \
			{.bytes = (args)->b_layout, .length = (args)->b_layout_len},        \
			{.bytes = (args)->c_layout, .length = (args)->c_layout_len},        \
			{.bytes = (args)->d_layout, .length = (args)->d_layout_len}},       \
		ret)

static bool is_heuristic(const struct ckt_cublasLtMatmulAlgoGetHeuristic_args *args)
{
	return args->requested && args->requested <= RESULTS_MAX && args->preference_len &&
		(!args->algos_len || args->algos_len == args->requested * CKT_LT_ALGO_BYTES);
}

/*
 * The stream whose context a query is for; NULL: for the device, or the library is too old to
 * distinguish.
 */
struct asked_for {
	CUstream stream;
};

static cublasStatus_t get_heuristic(cublasLtHandle_t handle, const struct problem *of,
	void *preference, uint32_t requested, cublasLtMatmulHeuristicResult_t *results,
	int *ret_count, const struct asked_for *asked)
{
	void *const *layouts = of->layouts;
	if (asked && ckt_cublasLt.cublasLtMatmulAlgoGetHeuristicForStream)
		return ckt_cublasLt.cublasLtMatmulAlgoGetHeuristicForStream(handle, of->operation,
			layouts[0], layouts[1], layouts[2], layouts[3], preference, (int)requested,
			results, ret_count, (cudaStream_t)asked->stream);
	return ckt_cublasLt.cublasLtMatmulAlgoGetHeuristic(handle, of->operation, layouts[0],
		layouts[1], layouts[2], layouts[3], preference, (int)requested, results, ret_count);
}

static int answer_heuristic(struct ckt_wcall *call,
	const struct ckt_cublasLtMatmulAlgoGetHeuristic_args *asked_with,
	const struct asked_for *asked)
{
	const struct ckt_cublasLtMatmulAlgoGetHeuristic_args args = *asked_with;
	struct problem problem;
	cublasLtHandle_t handle;
	void *preference = NULL;
	int count = 0;
	if (!is_heuristic(&args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cublaslt_handle(call->worker, args.handle, &handle);
	if (result)
		return result;
	int status = TAKE_PROBLEM(&args, &problem);
	if (!status)
		status = ckt_cublaslt_descriptor(CKT_CUBLASLT_PREFERENCE,
			&(struct ckt_cublaslt_bytes){
				.bytes = args.preference, .length = args.preference_len},
			&preference);
	if (status == CKT_WCALL_GARBAGE)
		return status;
	FREED cublasLtMatmulHeuristicResult_t *results = calloc(args.requested, sizeof *results);
	if (!results)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < args.requested && args.algos_len; i++)
		memcpy(&results[i].algo, args.algos + (size_t)i * CKT_LT_ALGO_BYTES,
			CKT_LT_ALGO_BYTES);
	if (!status)
		status = (int)get_heuristic(
			handle, &problem, preference, args.requested, results, &count, asked);
	if (count < 0 || (uint32_t)count > args.requested)
		count = 0;
	struct ckt_cublasLtMatmulAlgoGetHeuristic_res res = {.status = status,
		.results = (const uint8_t *)results,
		.results_len = (uint32_t)count * CKT_LT_RESULT_BYTES};
	return ANSWER(cublasLtMatmulAlgoGetHeuristic, call, &res);
}

int ckt_worker_cublasLtMatmulAlgoGetHeuristic(struct ckt_wcall *call)
{
	struct ckt_cublasLtMatmulAlgoGetHeuristic_args args;
	return ckt_cublasLtMatmulAlgoGetHeuristic_args_get(&call->args, &args)
		? answer_heuristic(call, &args, NULL)
		: CKT_WCALL_GARBAGE;
}

/* The fields that two messages have in common, as an initializer of the shorter one. */
#define PROBLEM_FIELDS(args)                                                  \
	.handle = (args).handle, .operation = (args).operation,               \
	.operation_len = (args).operation_len, .emulation = (args).emulation, \
	.emulation_len = (args).emulation_len, .a_layout = (args).a_layout,   \
	.a_layout_len = (args).a_layout_len, .b_layout = (args).b_layout,     \
	.b_layout_len = (args).b_layout_len, .c_layout = (args).c_layout,     \
	.c_layout_len = (args).c_layout_len, .d_layout = (args).d_layout,     \
	.d_layout_len = (args).d_layout_len

/* Both queries have the same results. */
int ckt_worker_cublasLtMatmulAlgoGetHeuristicForStream(struct ckt_wcall *call)
{
	struct ckt_cublasLtMatmulAlgoGetHeuristicForStream_args args;
	struct asked_for asked;
	if (!ckt_cublasLtMatmulAlgoGetHeuristicForStream_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_object_stream(call->worker, args.stream, &asked.stream);
	if (result)
		return result;
	const struct ckt_cublasLtMatmulAlgoGetHeuristic_args plain = {PROBLEM_FIELDS(args),
		.preference = args.preference, .preference_len = args.preference_len,
		.requested = args.requested, .algos = args.algos, .algos_len = args.algos_len};
	return answer_heuristic(call, &plain, &asked);
}

int ckt_worker_cublasLtMatmulAlgoGetIds(struct ckt_wcall *call)
{
	struct ckt_cublasLtMatmulAlgoGetIds_args args;
	cublasLtHandle_t handle;
	uint32_t types[6];
	int ids[IDS_MAX], count = 0;
	if (!ckt_cublasLtMatmulAlgoGetIds_args_get(&call->args, &args) || args.types_len != 6 ||
		!args.requested || args.requested > IDS_MAX)
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cublaslt_handle(call->worker, args.handle, &handle);
	if (result)
		return result;
	for (unsigned i = 0; i < 6; i++)
		types[i] = ckt_xdr_u32(args.types_xdr, i);
	int status = (int)ckt_cublasLt.cublasLtMatmulAlgoGetIds(handle,
		(cublasComputeType_t)types[0], (cudaDataType_t)types[1], (cudaDataType_t)types[2],
		(cudaDataType_t)types[3], (cudaDataType_t)types[4], (cudaDataType_t)types[5],
		(int)args.requested, ids, &count);
	if (status || count < 0 || (uint32_t)count > args.requested)
		count = 0;
	struct ckt_cublasLtMatmulAlgoGetIds_res res = {
		.status = status, .ids = (const uint32_t *)ids, .ids_len = (uint32_t)count};
	return ANSWER(cublasLtMatmulAlgoGetIds, call, &res);
}

int ckt_worker_cublasLtMatmulAlgoInit(struct ckt_wcall *call)
{
	struct ckt_cublasLtMatmulAlgoInit_args args;
	cublasLtHandle_t handle;
	cublasLtMatmulAlgo_t algo = {0};
	uint32_t types[6];
	if (!ckt_cublasLtMatmulAlgoInit_args_get(&call->args, &args) || args.types_len != 6)
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cublaslt_handle(call->worker, args.handle, &handle);
	if (result)
		return result;
	for (unsigned i = 0; i < 6; i++)
		types[i] = ckt_xdr_u32(args.types_xdr, i);
	struct ckt_cublasLtMatmulAlgoInit_res res = {
		.algo = (const uint8_t *)&algo, .algo_len = sizeof algo};
	res.status = (int)ckt_cublasLt.cublasLtMatmulAlgoInit(handle, (cublasComputeType_t)types[0],
		(cudaDataType_t)types[1], (cudaDataType_t)types[2], (cudaDataType_t)types[3],
		(cudaDataType_t)types[4], (cudaDataType_t)types[5], args.algo_id, &algo);
	return ANSWER(cublasLtMatmulAlgoInit, call, &res);
}

static cublasStatus_t check(cublasLtHandle_t handle, const struct problem *of,
	const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *ret,
	const struct asked_for *asked)
{
	void *const *layouts = of->layouts;
	if (asked && ckt_cublasLt.cublasLtMatmulAlgoCheckForStream)
		return ckt_cublasLt.cublasLtMatmulAlgoCheckForStream(handle, of->operation,
			layouts[0], layouts[1], layouts[2], layouts[3], algo, ret,
			(cudaStream_t)asked->stream);
	return ckt_cublasLt.cublasLtMatmulAlgoCheck(
		handle, of->operation, layouts[0], layouts[1], layouts[2], layouts[3], algo, ret);
}

static int answer_check(struct ckt_wcall *call, const struct ckt_cublasLtMatmulAlgoCheck_args *args,
	const struct asked_for *asked)
{
	struct problem problem;
	cublasLtHandle_t handle;
	cublasLtMatmulAlgo_t algo;
	cublasLtMatmulHeuristicResult_t checked = {0};
	if (args->algo_len != sizeof algo)
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cublaslt_handle(call->worker, args->handle, &handle);
	if (result)
		return result;
	int status = TAKE_PROBLEM(args, &problem);
	if (status == CKT_WCALL_GARBAGE)
		return status;
	memcpy(&algo, args->algo, sizeof algo);
	if (!status)
		status = (int)check(handle, &problem, &algo, &checked, asked);
	struct ckt_cublasLtMatmulAlgoCheck_res res = {.status = status,
		.result = (const uint8_t *)&checked,
		.result_len = sizeof checked};
	return ANSWER(cublasLtMatmulAlgoCheck, call, &res);
}

int ckt_worker_cublasLtMatmulAlgoCheck(struct ckt_wcall *call)
{
	struct ckt_cublasLtMatmulAlgoCheck_args args;
	return ckt_cublasLtMatmulAlgoCheck_args_get(&call->args, &args)
		? answer_check(call, &args, NULL)
		: CKT_WCALL_GARBAGE;
}

int ckt_worker_cublasLtMatmulAlgoCheckForStream(struct ckt_wcall *call)
{
	struct ckt_cublasLtMatmulAlgoCheckForStream_args args;
	struct asked_for asked;
	if (!ckt_cublasLtMatmulAlgoCheckForStream_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_object_stream(call->worker, args.stream, &asked.stream);
	if (result)
		return result;
	const struct ckt_cublasLtMatmulAlgoCheck_args plain = {
		PROBLEM_FIELDS(args), .algo = args.algo, .algo_len = args.algo_len};
	return answer_check(call, &plain, &asked);
}

int ckt_worker_cublasLtMatmulAlgoCapGetAttribute(struct ckt_wcall *call)
{
	struct ckt_cublasLtMatmulAlgoCapGetAttribute_args args;
	cublasLtMatmulAlgo_t algo;
	_Alignas(16) uint8_t value[CAP_BYTES_MAX] = {0};
	size_t written = 0;
	if (!ckt_cublasLtMatmulAlgoCapGetAttribute_args_get(&call->args, &args) ||
		args.algo_len != sizeof algo || args.size > sizeof value)
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cublaslt_need(call->worker);
	if (result)
		return result;
	memcpy(&algo, args.algo, sizeof algo);
	struct ckt_cublasLtMatmulAlgoCapGetAttribute_res res = {.value = value};
	res.status = (int)ckt_cublasLt.cublasLtMatmulAlgoCapGetAttribute(&algo,
		(cublasLtMatmulAlgoCapAttributes_t)args.attribute, args.size ? value : NULL,
		args.size, &written);
	res.written = written;
	res.value_len = res.status || !args.size ? 0
		: written < args.size            ? (uint32_t)written
						 : args.size;
	return ANSWER(cublasLtMatmulAlgoCapGetAttribute, call, &res);
}

int ckt_worker_cublasLtMatmulAlgoConfigGetAttribute(struct ckt_wcall *call)
{
	struct ckt_cublasLtMatmulAlgoConfigGetAttribute_args args;
	cublasLtMatmulAlgo_t algo;
	_Alignas(16) uint8_t value[CONFIG_BYTES_MAX] = {0};
	size_t written = 0;
	if (!ckt_cublasLtMatmulAlgoConfigGetAttribute_args_get(&call->args, &args) ||
		args.algo_len != sizeof algo || args.size > sizeof value)
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cublaslt_need(call->worker);
	if (result)
		return result;
	memcpy(&algo, args.algo, sizeof algo);
	struct ckt_cublasLtMatmulAlgoConfigGetAttribute_res res = {.value = value};
	res.status = (int)ckt_cublasLt.cublasLtMatmulAlgoConfigGetAttribute(&algo,
		(cublasLtMatmulAlgoConfigAttributes_t)args.attribute, args.size ? value : NULL,
		args.size, &written);
	res.written = written;
	res.value_len = res.status || !args.size ? 0
		: written < args.size            ? (uint32_t)written
						 : args.size;
	return ANSWER(cublasLtMatmulAlgoConfigGetAttribute, call, &res);
}

int ckt_worker_cublasLtMatmulAlgoConfigSetAttribute(struct ckt_wcall *call)
{
	struct ckt_cublasLtMatmulAlgoConfigSetAttribute_args args;
	cublasLtMatmulAlgo_t algo;
	_Alignas(16) uint8_t value[CONFIG_BYTES_MAX] = {0};
	if (!ckt_cublasLtMatmulAlgoConfigSetAttribute_args_get(&call->args, &args) ||
		args.algo_len != sizeof algo || !args.value_len)
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cublaslt_need(call->worker);
	if (result)
		return result;
	memcpy(&algo, args.algo, sizeof algo);
	memcpy(value, args.value, args.value_len);
	struct ckt_cublasLtMatmulAlgoConfigSetAttribute_res res = {
		.algo = (const uint8_t *)&algo, .algo_len = sizeof algo};
	res.status = (int)ckt_cublasLt.cublasLtMatmulAlgoConfigSetAttribute(
		&algo, (cublasLtMatmulAlgoConfigAttributes_t)args.attribute, value, args.value_len);
	return ANSWER(cublasLtMatmulAlgoConfigSetAttribute, call, &res);
}

int ckt_worker_cublasLt_versions(struct ckt_wcall *call)
{
	struct ckt_cublasLt_versions_res res = {0};
	if (!ckt_cursor_done(&call->args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cublaslt_need(call->worker);
	if (result)
		return result;
	res.version = ckt_cublasLt.cublasLtGetVersion();
	res.cudart_version = ckt_cublasLt.cublasLtGetCudartVersion();
	int *const properties[] = {&res.major, &res.minor, &res.patch};
	for (int i = 0; !res.status && i < 3; i++)
		res.status = (int)ckt_cublasLt.cublasLtGetProperty(
			(libraryPropertyType)i, properties[i]);
	return ANSWER(cublasLt_versions, call, &res);
}

int ckt_worker_cublasLtHeuristicsCacheGetCapacity(struct ckt_wcall *call)
{
	struct ckt_cublasLtHeuristicsCacheGetCapacity_res res = {0};
	size_t capacity = 0;
	if (!ckt_cursor_done(&call->args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cublaslt_need(call->worker);
	if (result)
		return result;
	res.status = (int)ckt_cublasLt.cublasLtHeuristicsCacheGetCapacity(&capacity);
	res.capacity = capacity;
	return ANSWER(cublasLtHeuristicsCacheGetCapacity, call, &res);
}

/*
 * A larger cache takes the worker's memory, so a capacity above the library's own default is
 * refused.
 */
int ckt_worker_cublasLtHeuristicsCacheSetCapacity(struct ckt_wcall *call)
{
	static bool once;
	enum { CAPACITY_MAX = 65536 };
	struct ckt_cublasLtHeuristicsCacheSetCapacity_args args;
	if (!ckt_cublasLtHeuristicsCacheSetCapacity_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cublaslt_need(call->worker);
	if (result)
		return result;
	uint64_t capacity = args.capacity < CAPACITY_MAX ? args.capacity : CAPACITY_MAX;
	return ckt_library_done(
		call, (int)ckt_cublasLt.cublasLtHeuristicsCacheSetCapacity(capacity), &once);
}
