/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt's handles and the calls that run on a stream; see cublasLt.h. */
#include "server/worker/libs/cublasLt/cublasLt.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "rpc/gen/cublas_functions.h"
#include "server/worker/libs/library_long_call.h"
#include "server/worker/objects/context.h"
#include "server/worker/worker.h"

static uint32_t version(void)
{
	return ckt_cublasLt.cublasLtGetVersion ? (uint32_t)ckt_cublasLt.cublasLtGetVersion() : 0;
}

static void destroy_object(struct ckt_worker *worker, struct ckt_object *object)
{
	(void)worker;
	if (object->real)
		ckt_cublasLt.cublasLtDestroy(object->real);
}

const struct ckt_library ckt_library_cublasLt = {
	.name = "cublasLt",
	.soname = "libcublasLt.so",
	.lib = CKT_LIB_CUBLASLT,
	.procs = ckt_cublasLt_procs,
	.proc_count = &ckt_cublasLt_proc_count,
	.functions = &ckt_cublasLt_functions,
	.version = version,
	.object_bytes = 64 << 10,
	.destroy = destroy_object,
	.ends_beside = true,
};

CUresult ckt_cublaslt_need(struct ckt_worker *worker)
{
	char message[1024] = "";
	if (__builtin_expect(ckt_library_loaded(CKT_LIB_CUBLASLT)->open, 1))
		return CUDA_SUCCESS;
	CUresult result =
		ckt_library_open(worker, &ckt_library_cublasLt, 0, message, sizeof message);
	if (result)
		ckt_warning("%s", message);
	return result;
}

CUresult ckt_cublaslt_handle(struct ckt_worker *worker, uint64_t id, cublasLtHandle_t *ret_handle)
{
	struct ckt_object *object =
		ckt_library_object_find(worker, CKT_LIB_CUBLASLT, CKT_CUBLASLT_TYPE_HANDLE, id);
	if (!object)
		object =
			ckt_library_object_find(worker, CKT_LIB_CUBLAS, CKT_CUBLAS_TYPE_HANDLE, id);
	if (!object || !object->real)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_handle = object->real;
	return ckt_cublaslt_need(worker);
}

int ckt_worker_cublasLt_open(struct ckt_wcall *call)
{
	return ckt_library_open_call(call, &ckt_library_cublasLt);
}

struct making {
	struct ckt_library_long_call beside;
	uint64_t id;
	cublasLtHandle_t real;
	cublasStatus_t status;
};

static void make(struct ckt_library_long_call *beside)
{
	struct making *making = (struct making *)beside;
	making->status = ckt_cublasLt.cublasLtCreate(&making->real);
	beside->failed = making->status != CUBLAS_STATUS_SUCCESS;
}

static int made(struct ckt_library_long_call *beside)
{
	const struct making *making = (struct making *)beside;
	struct ckt_wcall *call = beside->call;
	struct ckt_object *object;
	struct ckt_cublasLtCreate_res res = {.status = (int32_t)making->status};
	call->status = res.status;
	if (!res.status) {
		CUresult result = ckt_library_object_add(call->worker, &ckt_library_cublasLt,
			CKT_CUBLASLT_TYPE_HANDLE, making->id, making->real, NULL, &object);
		if (result) {
			ckt_cublasLt.cublasLtDestroy(making->real);
			return result;
		}
	}
	ckt_cublasLtCreate_res_put(
		ckt_wcall_results(call, ckt_cublasLtCreate_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_cublasLtCreate(struct ckt_wcall *call)
{
	struct ckt_cublasLtCreate_args args;
	if (!ckt_cublasLtCreate_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cublaslt_need(call->worker);
	struct making *making = result ? NULL : calloc(1, sizeof *making);
	if (!making)
		return result ? result : CUDA_ERROR_OUT_OF_MEMORY;
	*making = (struct making){
		.beside = {.run = make, .done = made, .owner = args.id}, .id = args.id};
	return ckt_library_long_call(call, &making->beside);
}

int ckt_worker_cublasLtDestroy(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_cublasLtDestroy_args args;
	if (!ckt_cublasLtDestroy_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object = ckt_library_object_find(
		call->worker, CKT_LIB_CUBLASLT, CKT_CUBLASLT_TYPE_HANDLE, args.id);
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	ckt_object_destroy(call->worker, object);
	return ckt_library_done(call, CUBLAS_STATUS_SUCCESS, &once);
}

/* ---- alpha and beta */

/* Aligned as the library may expect of a host value. */
struct scalar {
	_Alignas(16) uint8_t bytes[CKT_LT_SCALAR_BYTES];
	const void *pointer;
};

/*
 * The pointer mode decides whether the library gets a host address, so mode and message must agree:
 * the client's word alone is not enough.
 */
static bool take_scalar(bool on_host, uint32_t type, const uint8_t *bytes, uint32_t length,
	uint64_t address, struct scalar *ret)
{
	memset(ret->bytes, 0, sizeof ret->bytes);
	if (length != (on_host ? ckt_lt_scalar_bytes(type) : 0) || (on_host && !length))
		return false;
	if (length)
		memcpy(ret->bytes, bytes, length);
	ret->pointer = on_host ? (const void *)ret->bytes : (const void *)(uintptr_t)address;
	return true;
}

static bool alpha_on_host(uint32_t mode)
{
	return mode == CKT_LT_POINTER_HOST;
}

static bool beta_on_host(uint32_t mode)
{
	return mode == CKT_LT_POINTER_HOST || mode == CKT_LT_POINTER_ALPHA_VECTOR_BETA_HOST;
}

static const void *device(uint64_t address)
{
	return (const void *)(uintptr_t)address;
}

/* ---- Matmul */

struct operands {
	void *operation, *layouts[4];
	struct scalar alpha, beta;
};

/* CKT_WCALL_GARBAGE or a cublasStatus_t. */
static int take_matmul(const struct ckt_cublasLtMatmul_args *args, struct operands *ret)
{
	const struct ckt_cublaslt_bytes operation = {
		args->operation, args->operation_len, args->emulation, args->emulation_len};
	const struct ckt_cublaslt_bytes layouts[] = {
		{.bytes = args->a_layout, .length = args->a_layout_len},
		{.bytes = args->b_layout, .length = args->b_layout_len},
		{.bytes = args->c_layout, .length = args->c_layout_len},
		{.bytes = args->d_layout, .length = args->d_layout_len}};
	if (!args->operation_len || (args->algo_len && args->algo_len != CKT_LT_ALGO_BYTES))
		return CKT_WCALL_GARBAGE;
	int status = ckt_cublaslt_descriptor(CKT_CUBLASLT_OPERATION, &operation, &ret->operation);
	for (int i = 0; !status && i < 4; i++)
		status = layouts[i].length
			? ckt_cublaslt_descriptor(CKT_CUBLASLT_A + i, &layouts[i], &ret->layouts[i])
			: CKT_WCALL_GARBAGE;
	if (status)
		return status;
	if (ckt_lt_strides_on_host(args->operation))
		return CKT_WCALL_GARBAGE;
	uint32_t mode = ckt_lt_word(CKT_LT_MATMUL, args->operation, CKT_LT_MATMUL_POINTER_MODE),
		 type = ckt_lt_word(CKT_LT_MATMUL, args->operation, CKT_LT_MATMUL_SCALE_TYPE);
	bool good = mode <= CKT_LT_POINTER_ALPHA_VECTOR_BETA_HOST &&
		take_scalar(alpha_on_host(mode), type, args->alpha, args->alpha_len,
			args->alpha_address, &ret->alpha) &&
		take_scalar(beta_on_host(mode), type, args->beta, args->beta_len,
			args->beta_address, &ret->beta);
	return good ? CUBLAS_STATUS_SUCCESS : CKT_WCALL_GARBAGE;
}

int ckt_worker_cublasLtMatmul(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_cublasLtMatmul_args args;
	struct operands operands;
	cublasLtMatmulAlgo_t algo;
	cublasLtHandle_t handle;
	CUstream stream;
	if (!ckt_cublasLtMatmul_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cublaslt_handle(call->worker, args.handle, &handle);
	if (!result)
		result = ckt_object_stream(call->worker, args.stream, &stream);
	if (result)
		return result;
	int status = take_matmul(&args, &operands);
	if (status == CKT_WCALL_GARBAGE)
		return status;
	if (args.algo_len)
		memcpy(&algo, args.algo, sizeof algo);
	if (!status)
		status = (int)ckt_cublasLt.cublasLtMatmul(handle, operands.operation,
			operands.alpha.pointer, device(args.a), operands.layouts[0], device(args.b),
			operands.layouts[1], operands.beta.pointer, device(args.c),
			operands.layouts[2], (void *)(uintptr_t)args.d, operands.layouts[3],
			args.algo_len ? &algo : NULL, (void *)(uintptr_t)args.workspace,
			args.workspace_bytes, (cudaStream_t)stream);
	return ckt_library_done(call, status, &once);
}

/* ---- Transform */

static int take_transform(const struct ckt_cublasLtMatrixTransform_args *args, struct operands *ret)
{
	const struct ckt_cublaslt_bytes operation = {
		.bytes = args->operation, .length = args->operation_len};
	const struct ckt_cublaslt_bytes layouts[] = {
		{.bytes = args->a_layout, .length = args->a_layout_len},
		{.bytes = args->b_layout, .length = args->b_layout_len},
		{.bytes = args->c_layout, .length = args->c_layout_len}};
	if (!args->operation_len || !args->c_layout_len)
		return CKT_WCALL_GARBAGE;
	int status = ckt_cublaslt_descriptor(CKT_CUBLASLT_TRANSFORM, &operation, &ret->operation);
	for (int i = 0; !status && i < 3; i++)
		status = ckt_cublaslt_descriptor(CKT_CUBLASLT_A + i, &layouts[i], &ret->layouts[i]);
	if (status)
		return status;
	uint32_t mode =
		ckt_lt_word(CKT_LT_TRANSFORM, args->operation, CKT_LT_TRANSFORM_POINTER_MODE);
	uint32_t type = ckt_lt_word(CKT_LT_TRANSFORM, args->operation, CKT_LT_TRANSFORM_SCALE_TYPE);
	/* Without a second matrix there may be no beta; its address is then NULL in any mode. */
	bool no_beta = !args->b && !args->beta_len && !args->beta_address;
	bool good = mode <= CKT_LT_POINTER_ALPHA_VECTOR_BETA_HOST &&
		take_scalar(alpha_on_host(mode), type, args->alpha, args->alpha_len,
			args->alpha_address, &ret->alpha) &&
		take_scalar(beta_on_host(mode) && !no_beta, type, args->beta, args->beta_len,
			args->beta_address, &ret->beta);
	return good ? CUBLAS_STATUS_SUCCESS : CKT_WCALL_GARBAGE;
}

int ckt_worker_cublasLtMatrixTransform(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_cublasLtMatrixTransform_args args;
	struct operands operands;
	cublasLtHandle_t handle;
	CUstream stream;
	if (!ckt_cublasLtMatrixTransform_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_cublaslt_handle(call->worker, args.handle, &handle);
	if (!result)
		result = ckt_object_stream(call->worker, args.stream, &stream);
	if (result)
		return result;
	int status = take_transform(&args, &operands);
	if (status == CKT_WCALL_GARBAGE)
		return status;
	if (!status)
		status = (int)ckt_cublasLt.cublasLtMatrixTransform(handle, operands.operation,
			operands.alpha.pointer, device(args.a), operands.layouts[0],
			operands.beta.pointer, device(args.b), operands.layouts[1],
			(void *)(uintptr_t)args.c, operands.layouts[2], (cudaStream_t)stream);
	return ckt_library_done(call, status, &once);
}
