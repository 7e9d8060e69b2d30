/* SPDX-License-Identifier: Apache-2.0 */
/* Handles, and what is asked of the library as a whole. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "client/libs/cublasLt/handle.h"
#include "client/libs/cublasLt/ask.h"
#include "client/libs/cublasLt/logger.h"
#include "client/libs/major.h"
#include "rpc/handle.h"

static struct ckt_lib_opened opened;

cublasStatus_t ckt_lt_open(void)
{
	uint32_t proc = CKT_LIB_PROC(CKT_LIB_CUBLASLT, CKT_CUBLASLT_PROC_CUBLASLT_OPEN);
	return ckt_lt_status(ckt_lib_open(&opened, "cublasLt", proc, ckt_lib_major * 10000));
}

cublasStatus_t ckt_lt_handle(cublasLtHandle_t handle, uint64_t *ret_id)
{
	const struct ckt_lib_object *object = (const void *)handle;
	if (!object || ckt_handle_kind(object->id) != CKT_KIND_LIB_OBJECT)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	*ret_id = object->id;
	return ckt_lt_open();
}

int ckt_cublasLt_unsupported(const char *name, bool *once)
{
	const struct ckt_client_table *client = ckt_client();
	if (client)
		client->unsupported(name, once);
	return CUBLAS_STATUS_NOT_SUPPORTED;
}

/* Asks for the object; what the server's library said of it. */
static cublasStatus_t create_at_server(uint64_t id)
{
	const struct ckt_client_table *client = ckt_client();
	struct ckt_cublasLtCreate_args args = {.id = id};
	struct ckt_cublasLtCreate_res res;
	struct ckt_call call;
	struct ckt_reply reply;
	CUresult result = client->begin(&call,
		CKT_LIB_PROC(CKT_LIB_CUBLASLT, CKT_CUBLASLT_PROC_CUBLASLTCREATE),
		ckt_cublasLtCreate_args_size(&args), CKT_CALL_F_NUMBERED);
	if (result)
		return ckt_lt_status(result);
	ckt_cublasLtCreate_args_put(call.p, &args);
	result = client->wait(&call, &reply);
	if (result)
		return ckt_lt_status(result);
	bool good = ckt_cublasLtCreate_res_get(&reply.results, &res);
	client->release(&reply);
	return good ? (cublasStatus_t)res.status : CUBLAS_STATUS_INTERNAL_ERROR;
}

static cublasStatus_t create(cublasLtHandle_t *ret_handle)
{
	if (!ret_handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	cublasStatus_t status = ckt_lt_open();
	if (status)
		return status;
	const struct ckt_client_table *client = ckt_client();
	struct ckt_lt_context *made = calloc(1, sizeof *made);
	uint64_t id = made ? client->object_make() : 0;
	if (!id) {
		free(made);
		return CUBLAS_STATUS_ALLOC_FAILED;
	}
	status = create_at_server(id);
	if (status) {
		client->object_drop(id);
		free(made);
		return status;
	}
	*made = (struct ckt_lt_context){.object.id = id, .magic = CKT_LT_MAGIC};
	*ret_handle = (cublasLtHandle_t)made;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_LIB_EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
	return ckt_lt_log(__func__, create(handle));
}

static cublasStatus_t destroy(cublasLtHandle_t handle)
{
	struct ckt_lt_context *ours = (void *)handle;
	uint64_t id;
	if (!ours)
		return CUBLAS_STATUS_INVALID_VALUE;
	cublasStatus_t status = ckt_lt_handle(handle, &id);
	/* cuBLAS ends its own. */
	if (!status && ours->magic != CKT_LT_MAGIC)
		status = CUBLAS_STATUS_INVALID_VALUE;
	if (status)
		return status;
	const struct ckt_client_table *client = ckt_client();
	struct ckt_cublasLtDestroy_args args = {.id = id};
	int answer = 0;
	struct ckt_call call;
	CUresult result = client->begin(&call,
		CKT_LIB_PROC(CKT_LIB_CUBLASLT, CKT_CUBLASLT_PROC_CUBLASLTDESTROY),
		ckt_cublasLtDestroy_args_size(&args), CKT_CALL_F_BATCHED);
	if (!result) {
		ckt_cublasLtDestroy_args_put(call.p, &args);
		result = client->queue_status(&call, &answer);
	}
	client->object_drop(id);
	*ours = (struct ckt_lt_context){0};
	free(ours);
	return ckt_lt_answer(result, answer);
}

CKT_LIB_EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
	return ckt_lt_log(__func__, destroy(handle));
}

/* ---- Versions: those of the library at the server, which is the one that computes */

static size_t no_bytes(const void *args)
{
	(void)args;
	return 0;
}

static uint8_t *put_nothing(uint8_t *p, const void *args)
{
	(void)args;
	return p;
}

static cublasStatus_t versions(struct ckt_cublasLt_versions_res *ret)
{
	struct ckt_lt_question question = {
		.proc = CKT_CUBLASLT_PROC_CUBLASLT_VERSIONS, .size = no_bytes, .put = put_nothing};
	struct ckt_cursor results;
	void *answer;
	cublasStatus_t status = ckt_lt_ask(&question, true, &results, &answer);
	if (status)
		return status;
	bool good = ckt_cublasLt_versions_res_get(&results, ret);
	free(answer);
	return good ? (cublasStatus_t)ret->status : CUBLAS_STATUS_INTERNAL_ERROR;
}

CKT_LIB_EXPORT size_t cublasLtGetVersion(void)
{
	struct ckt_cublasLt_versions_res res;
	return versions(&res) ? 0 : (size_t)res.version;
}

CKT_LIB_EXPORT size_t cublasLtGetCudartVersion(void)
{
	struct ckt_cublasLt_versions_res res;
	return versions(&res) ? 0 : (size_t)res.cudart_version;
}

CKT_LIB_EXPORT cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int *value)
{
	struct ckt_cublasLt_versions_res res;
	if (!value || type < MAJOR_VERSION || type > PATCH_LEVEL)
		return CUBLAS_STATUS_INVALID_VALUE;
	cublasStatus_t status = versions(&res);
	if (!status)
		*value = type == MAJOR_VERSION  ? res.major
			: type == MINOR_VERSION ? res.minor
						: res.patch;
	return ckt_lt_log(__func__, status);
}

/* ---- The genuine library's own cache of heuristics */

static cublasStatus_t get_capacity(size_t *ret_capacity)
{
	struct ckt_lt_question question = {
		.proc = CKT_CUBLASLT_PROC_CUBLASLTHEURISTICSCACHEGETCAPACITY,
		.size = no_bytes,
		.put = put_nothing};
	struct ckt_cublasLtHeuristicsCacheGetCapacity_res res;
	struct ckt_cursor results;
	void *answer;
	cublasStatus_t status = ret_capacity ? ckt_lt_ask(&question, false, &results, &answer)
					     : CUBLAS_STATUS_INVALID_VALUE;
	if (status)
		return status;
	status = ckt_cublasLtHeuristicsCacheGetCapacity_res_get(&results, &res)
		? (cublasStatus_t)res.status
		: CUBLAS_STATUS_INTERNAL_ERROR;
	if (!status)
		*ret_capacity = (size_t)res.capacity;
	free(answer);
	return status;
}

CKT_LIB_EXPORT cublasStatus_t cublasLtHeuristicsCacheGetCapacity(size_t *capacity)
{
	return ckt_lt_log(__func__, get_capacity(capacity));
}

static cublasStatus_t set_capacity(size_t capacity)
{
	struct ckt_cublasLtHeuristicsCacheSetCapacity_args args = {.capacity = capacity};
	int answer = 0;
	struct ckt_call call;
	cublasStatus_t status = ckt_lt_open();
	if (status)
		return status;
	const struct ckt_client_table *client = ckt_client();
	CUresult result = client->begin(&call,
		CKT_LIB_PROC(
			CKT_LIB_CUBLASLT, CKT_CUBLASLT_PROC_CUBLASLTHEURISTICSCACHESETCAPACITY),
		ckt_cublasLtHeuristicsCacheSetCapacity_args_size(&args), CKT_CALL_F_BATCHED);
	if (result)
		return ckt_lt_status(result);
	ckt_cublasLtHeuristicsCacheSetCapacity_args_put(call.p, &args);
	result = client->queue_status(&call, &answer);
	return ckt_lt_answer(result, answer);
}

CKT_LIB_EXPORT cublasStatus_t cublasLtHeuristicsCacheSetCapacity(size_t capacity)
{
	return ckt_lt_log(__func__, set_capacity(capacity));
}

/*
 * Which instructions the library may use on its CPU, which is the server's: a wish that is kept and
 * given back, and changes nothing there.
 */
CKT_LIB_EXPORT unsigned cublasLtDisableCpuInstructionsSetMask(unsigned mask)
{
	static _Atomic unsigned masked;
	return atomic_exchange(&masked, mask);
}

/* ---- Statuses */

static const struct {
	cublasStatus_t status;
	const char *name, *text;
} statuses[] = {
	{CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
	{CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED",
		"the library was not initialized"},
	{CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED",
		"the resource allocation failed"},
	{CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
		"an unsupported value or parameter was passed to the function"},
	{CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH",
		"the function requires an architectural feature absent from the device"},
	{CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR",
		"an access to GPU memory space failed"},
	{CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED",
		"the function failed to launch on the GPU"},
	{CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR",
		"an internal operation failed"},
	{CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED",
		"the requested functionality is not supported"},
	{CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR", "the license check failed"},
};

CKT_LIB_EXPORT const char *cublasLtGetStatusName(cublasStatus_t status)
{
	for (unsigned i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].status == status)
			return statuses[i].name;
	return "unrecognized status";
}

CKT_LIB_EXPORT const char *cublasLtGetStatusString(cublasStatus_t status)
{
	for (unsigned i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].status == status)
			return statuses[i].text;
	return "unrecognized status";
}
