/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs on a stream: cublasLtMatmul and cublasLtMatrixTransform, sent and forgotten.
 *
 * Checked here is what the documentation says and the client can know: the handle, descriptors that
 * are there and are some, scalars that are there, memory where it is needed.  Whether types, orders
 * and an algorithm go together the genuine library knows, so a content is waited for until the
 * library has taken it once (client/libs/accepted_calls.c).
 */
#include <stdlib.h>
#include <string.h>

#include "client/libs/cublasLt/matmul.h"
#include "client/libs/cublasLt/ask.h"
#include "client/libs/cublasLt/handle.h"
#include "client/libs/cublasLt/logger.h"

cublasStatus_t ckt_lt_descriptor(
	enum ckt_lt_kind kind, const void *descriptor, struct ckt_lt_bytes *ret)
{
	size_t size = descriptor ? ckt_lt_bytes(kind, descriptor) : 0;
	if (!size)
		return CUBLAS_STATUS_INVALID_VALUE;
	*ret = (struct ckt_lt_bytes){descriptor, (uint32_t)size};
	return CUBLAS_STATUS_SUCCESS;
}

void ckt_lt_emulation(const void *matmul, struct ckt_lt_bytes *ret)
{
	const void *emulation = NULL;
	*ret = (struct ckt_lt_bytes){0};
	ckt_lt_get(
		CKT_LT_MATMUL, matmul, CKT_LT_MATMUL_EMULATION, &emulation, sizeof emulation, NULL);
	if (emulation)
		*ret = (struct ckt_lt_bytes){emulation, CKT_LT_EMULATION_BYTES};
}

/* alpha or beta on the wire: bytes, or an address. */
struct scalar {
	const uint8_t *bytes;
	uint32_t length;
	uint64_t address;
};

static cublasStatus_t host_scalar(const void *value, uint32_t type, struct scalar *ret)
{
	unsigned size = ckt_lt_scalar_bytes(type);
	if (!value || !size)
		return CUBLAS_STATUS_INVALID_VALUE;
	*ret = (struct scalar){.bytes = value, .length = size};
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t device_scalar(const void *value, struct scalar *ret)
{
	if (!value)
		return CUBLAS_STATUS_INVALID_VALUE;
	*ret = (struct scalar){.address = (uintptr_t)value};
	return CUBLAS_STATUS_SUCCESS;
}

/* optional: beta of a transform without a second matrix is not looked at. */
static cublasStatus_t scalars(uint32_t mode, uint32_t type, const void *alpha, const void *beta,
	bool optional, struct scalar *ret_alpha, struct scalar *ret_beta)
{
	*ret_beta = (struct scalar){0};
	bool needs_beta = !(optional && !beta);
	cublasStatus_t status;
	switch (mode) {
	case CKT_LT_POINTER_HOST:
		status = host_scalar(alpha, type, ret_alpha);
		return status || !needs_beta ? status : host_scalar(beta, type, ret_beta);
	case CKT_LT_POINTER_DEVICE:
	case CKT_LT_POINTER_VECTOR:
		status = device_scalar(alpha, ret_alpha);
		return status || !needs_beta ? status : device_scalar(beta, ret_beta);
	case CKT_LT_POINTER_ALPHA_VECTOR_BETA_ZERO:
		return device_scalar(alpha, ret_alpha);
	case CKT_LT_POINTER_ALPHA_VECTOR_BETA_HOST:
		status = device_scalar(alpha, ret_alpha);
		return status ? status : host_scalar(beta, type, ret_beta);
	default:
		return CUBLAS_STATUS_INVALID_VALUE;
	}
}

/*
 * Every address that the call names, so that memory which host and device share is brought to the
 * device.
 */
enum { ADDRESSES_MAX = 48 };
struct addresses {
	uint64_t all[ADDRESSES_MAX];
	unsigned count;
};

static void note(struct addresses *addresses, uint64_t address)
{
	addresses->all[addresses->count++] = address;
}

/*
 * Those of a matmul descriptor, of its emulation descriptor or of a layout, out of the bytes or,
 * put true, back into them.
 */
static void descriptor_addresses(enum ckt_lt_kind kind, uint8_t *descriptor, size_t size,
	struct addresses *addresses, bool put)
{
	unsigned count;
	const struct ckt_lt_attribute *all = ckt_lt_attributes(kind, &count);
	for (unsigned i = 0; i < count; i++) {
		if (!all[i].pointer || (size_t)all[i].offset + all[i].size > size ||
			(kind == CKT_LT_MATMUL && all[i].number == CKT_LT_MATMUL_EMULATION))
			continue;
		if (put) {
			memcpy(descriptor + all[i].offset, &addresses->all[addresses->count++], 8);
		} else {
			uint64_t address;
			memcpy(&address, descriptor + all[i].offset, 8);
			note(addresses, address);
		}
	}
}

CKT_LT_CODERS(cublasLtMatmul)
CKT_LT_CODERS(cublasLtMatrixTransform)

/*
 * Before work on the stream.  *ret_captures: the stream captures, and addresses stay as they are.
 */
static cublasStatus_t prepare(
	cudaStream_t stream, struct addresses *addresses, uint64_t *ret_stream, bool *ret_captures)
{
	const struct ckt_client_table *client = ckt_client();
	CUresult result = client->stream((CUstream)stream, ret_stream);
	if (!result)
		result = client->before_work(*ret_stream, addresses->all, addresses->count);
	*ret_captures = result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && client->capture;
	return *ret_captures ? CUBLAS_STATUS_SUCCESS : ckt_lt_status(result);
}

/* The call becomes the next node of the stream's capture. */
static cublasStatus_t capture(const struct ckt_lt_question *work, uint64_t stream)
{
	size_t size = work->size(work->args);
	uint8_t *args = malloc(size);
	bool captured = false;
	if (!args)
		return CUBLAS_STATUS_ALLOC_FAILED;
	work->put(args, work->args);
	CUresult result = ckt_client()->capture(
		stream, CKT_LIB_PROC(CKT_LIB_CUBLASLT, work->proc), args, size, 0, &captured);
	free(args);
	/* Another thread ended the capture in between. */
	if (!result && !captured)
		result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return ckt_lt_status(result);
}

/* content: as content_of has it. */
static cublasStatus_t put_on_stream(
	const struct ckt_lt_question *work, uint64_t stream, bool captures, uint64_t content)
{
	const struct ckt_client_table *client = ckt_client();
	struct ckt_call call;
	int answer = 0;
	if (captures)
		return capture(work, stream);
	bool taken = ckt_lib_taken(content);
	CUresult result = client->begin(&call, CKT_LIB_PROC(CKT_LIB_CUBLASLT, work->proc),
		work->size(work->args), taken ? CKT_CALL_F_BATCHED : CKT_CALL_F_NUMBERED);
	if (result)
		return ckt_lt_status(result);
	work->put(call.p, work->args);
	result = taken ? client->queue_status(&call, &answer)
		       : ckt_lib_learn(client, &call, content, &answer);
	return ckt_lt_answer(result, answer);
}

/*
 * ---- What the status of a call depends on: all but the values of addresses, alpha and the stream
 */

static uint64_t hash_bytes(uint64_t hash, struct ckt_lt_bytes of)
{
	return ckt_lt_hash(hash ^ of.length, of.bytes, of.length);
}

/* Of a layout: all but where the arrays of grouped matrices lie. */
static uint64_t hash_layout(uint64_t hash, struct ckt_lt_bytes of)
{
	uint8_t layout[CKT_LT_LAYOUT_BYTES];
	memcpy(layout, of.bytes, of.length);
	ckt_lt_reduce_pointers(CKT_LT_LAYOUT, layout);
	return ckt_lt_hash(hash ^ of.length, layout, of.length);
}

/* Of a scalar: where it lies, and of beta whether it is 0, as a matrix is then not looked at. */
static uint64_t hash_scalar(uint64_t hash, const uint8_t *bytes, uint32_t length, uint64_t address)
{
	bool zero = true;
	for (uint32_t i = 0; i < length; i++)
		zero &= !bytes[i];
	uint64_t words[] = {length, zero, ckt_lib_alignment(address)};
	return ckt_lt_hash(hash, (const uint8_t *)words, sizeof words);
}

static uint64_t content_of_matmul(const struct ckt_cublasLtMatmul_args *args)
{
	uint8_t operation[CKT_LT_MATMUL_BYTES];
	memcpy(operation, args->operation, args->operation_len);
	ckt_lt_reduce_pointers(CKT_LT_MATMUL, operation);
	/* Emulation descriptors are told apart by what is in them. */
	static const uint64_t none;
	ckt_lt_set(CKT_LT_MATMUL, operation, CKT_LT_MATMUL_EMULATION, &none, sizeof none);
	uint64_t words[] = {ckt_client()->context(), ckt_lib_alignment(args->a),
		ckt_lib_alignment(args->b), ckt_lib_alignment(args->c), ckt_lib_alignment(args->d),
		args->c == args->d, ckt_lib_alignment(args->workspace), args->workspace_bytes};
	uint64_t hash =
		ckt_lt_hash(CKT_CUBLASLT_PROC_CUBLASLTMATMUL, (const uint8_t *)words, sizeof words);
	hash = hash_bytes(hash, (struct ckt_lt_bytes){operation, args->operation_len});
	hash = hash_bytes(hash, (struct ckt_lt_bytes){args->emulation, args->emulation_len});
	hash = hash_scalar(hash, args->alpha, args->alpha_len, args->alpha_address);
	hash = hash_scalar(hash, args->beta, args->beta_len, args->beta_address);
	hash = hash_layout(hash, (struct ckt_lt_bytes){args->a_layout, args->a_layout_len});
	hash = hash_layout(hash, (struct ckt_lt_bytes){args->b_layout, args->b_layout_len});
	hash = hash_layout(hash, (struct ckt_lt_bytes){args->c_layout, args->c_layout_len});
	hash = hash_layout(hash, (struct ckt_lt_bytes){args->d_layout, args->d_layout_len});
	return hash_bytes(hash, (struct ckt_lt_bytes){args->algo, args->algo_len});
}

static uint64_t content_of_transform(const struct ckt_cublasLtMatrixTransform_args *args)
{
	uint64_t words[] = {ckt_client()->context(), ckt_lib_alignment(args->a),
		ckt_lib_alignment(args->b), ckt_lib_alignment(args->c), args->a == args->c,
		args->b == args->c};
	uint64_t hash = ckt_lt_hash(
		CKT_CUBLASLT_PROC_CUBLASLTMATRIXTRANSFORM, (const uint8_t *)words, sizeof words);
	hash = hash_bytes(hash, (struct ckt_lt_bytes){args->operation, args->operation_len});
	hash = hash_scalar(hash, args->alpha, args->alpha_len, args->alpha_address);
	hash = hash_scalar(hash, args->beta, args->beta_len, args->beta_address);
	hash = hash_bytes(hash, (struct ckt_lt_bytes){args->a_layout, args->a_layout_len});
	hash = hash_bytes(hash, (struct ckt_lt_bytes){args->b_layout, args->b_layout_len});
	return hash_bytes(hash, (struct ckt_lt_bytes){args->c_layout, args->c_layout_len});
}

/* Copies of the descriptors, in which addresses may change. */
struct operation {
	uint8_t bytes[CKT_LT_MATMUL_BYTES];
	uint8_t emulation[CKT_LT_EMULATION_BYTES];
	uint8_t layouts[4][CKT_LT_LAYOUT_BYTES];
	uint32_t length, emulation_length, layout_lengths[4];
};

/* layouts: four. */
static cublasStatus_t take_operation(
	const void *descriptor, const void *const *layouts, struct operation *ret)
{
	struct ckt_lt_bytes operation, emulation, layout;
	cublasStatus_t status = ckt_lt_descriptor(CKT_LT_MATMUL, descriptor, &operation);
	for (int i = 0; !status && i < 4; i++) {
		status = ckt_lt_descriptor(CKT_LT_LAYOUT, layouts[i], &layout);
		if (status)
			break;
		memcpy(ret->layouts[i], layout.bytes, layout.length);
		ret->layout_lengths[i] = layout.length;
	}
	if (status)
		return status;
	memcpy(ret->bytes, operation.bytes, operation.length);
	ret->length = operation.length;
	ckt_lt_emulation(ret->bytes, &emulation);
	if (emulation.length)
		memcpy(ret->emulation, emulation.bytes, emulation.length);
	ret->emulation_length = emulation.length;
	return CUBLAS_STATUS_SUCCESS;
}

static void operation_addresses(struct operation *operation, struct addresses *addresses, bool put)
{
	descriptor_addresses(CKT_LT_MATMUL, operation->bytes, operation->length, addresses, put);
	descriptor_addresses(CKT_LT_EMULATION, operation->emulation, operation->emulation_length,
		addresses, put);
	/* Other layouts have none. */
	for (int i = 0; i < 4; i++)
		if (ckt_lt_word(CKT_LT_LAYOUT, operation->layouts[i], CKT_LT_LAYOUT_BATCH_MODE) ==
			CKT_LT_BATCH_GROUPED)
			descriptor_addresses(CKT_LT_LAYOUT, operation->layouts[i],
				operation->layout_lengths[i], addresses, put);
}

/* Precondition: all but addresses and the stream is in args. */
static cublasStatus_t send_matmul(
	struct ckt_cublasLtMatmul_args *args, struct operation *operation, cudaStream_t stream)
{
	struct addresses addresses = {
		.all = {args->alpha_address, args->a, args->b, args->beta_address, args->c, args->d,
			args->workspace},
		.count = 7};
	operation_addresses(operation, &addresses, false);
	bool captures;
	cublasStatus_t status = prepare(stream, &addresses, &args->stream, &captures);
	if (status)
		return status;
	args->alpha_address = addresses.all[0];
	args->a = addresses.all[1];
	args->b = addresses.all[2];
	args->beta_address = addresses.all[3];
	args->c = addresses.all[4];
	args->d = addresses.all[5];
	args->workspace = addresses.all[6];
	addresses.count = 7;
	operation_addresses(operation, &addresses, true);
	struct ckt_lt_question work =
		CKT_LT_QUESTION(CKT_CUBLASLT_PROC_CUBLASLTMATMUL, cublasLtMatmul, args, NULL);
	return put_on_stream(&work, args->stream, captures, content_of_matmul(args));
}

static cublasStatus_t matmul(cublasLtHandle_t handle, const void *desc, const void *alpha,
	const void *a, const void *a_desc, const void *b, const void *b_desc, const void *beta,
	const void *c, const void *c_desc, void *d, const void *d_desc,
	const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes,
	cudaStream_t stream)
{
	struct operation operation;
	struct scalar scale_a, scale_b;
	const void *const descriptors[] = {a_desc, b_desc, c_desc, d_desc};
	uint64_t id;
	cublasStatus_t status = ckt_lt_handle(handle, &id);
	if (!status)
		status = take_operation(desc, descriptors, &operation);
	if (!status && ckt_lt_strides_on_host(operation.bytes))
		status = CUBLAS_STATUS_NOT_SUPPORTED;
	if (!status)
		status = scalars(
			ckt_lt_word(CKT_LT_MATMUL, operation.bytes, CKT_LT_MATMUL_POINTER_MODE),
			ckt_lt_word(CKT_LT_MATMUL, operation.bytes, CKT_LT_MATMUL_SCALE_TYPE),
			alpha, beta, false, &scale_a, &scale_b);
	if (status)
		return status;
	struct ckt_cublasLtMatmul_args args = {.handle = id,
		.operation = operation.bytes,
		.operation_len = operation.length,
		.emulation = operation.emulation,
		.emulation_len = operation.emulation_length,
		.alpha = scale_a.bytes,
		.alpha_len = scale_a.length,
		.alpha_address = scale_a.address,
		.a = (uintptr_t)a,
		.a_layout = operation.layouts[0],
		.a_layout_len = operation.layout_lengths[0],
		.b = (uintptr_t)b,
		.b_layout = operation.layouts[1],
		.b_layout_len = operation.layout_lengths[1],
		.beta = scale_b.bytes,
		.beta_len = scale_b.length,
		.beta_address = scale_b.address,
		.c = (uintptr_t)c,
		.c_layout = operation.layouts[2],
		.c_layout_len = operation.layout_lengths[2],
		.d = (uintptr_t)d,
		.d_layout = operation.layouts[3],
		.d_layout_len = operation.layout_lengths[3],
		.algo = (const uint8_t *)algo,
		.algo_len = algo ? sizeof *algo : 0,
		.workspace = (uintptr_t)workspace,
		.workspace_bytes = workspace_bytes};
	return send_matmul(&args, &operation, stream);
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
	const void *alpha, const void *a, cublasLtMatrixLayout_t a_desc, const void *b,
	cublasLtMatrixLayout_t b_desc, const void *beta, const void *c,
	cublasLtMatrixLayout_t c_desc, void *d, cublasLtMatrixLayout_t d_desc,
	const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes,
	cudaStream_t stream)
{
	return ckt_lt_log(__func__,
		matmul(handle, desc, alpha, a, a_desc, b, b_desc, beta, c, c_desc, d, d_desc, algo,
			workspace, workspace_bytes, stream));
}

/* A matrix without a layout is an error; a layout without its matrix is not looked at. */
static cublasStatus_t optional_layout(
	const void *matrix, const void *descriptor, struct ckt_lt_bytes *ret)
{
	*ret = (struct ckt_lt_bytes){0};
	return matrix || descriptor ? ckt_lt_descriptor(CKT_LT_LAYOUT, descriptor, ret)
				    : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t transform(cublasLtHandle_t handle, const void *desc, const void *alpha,
	const void *a, const void *a_desc, const void *beta, const void *b, const void *b_desc,
	void *c, const void *c_desc, cudaStream_t stream)
{
	struct ckt_lt_bytes operation, layout_a, layout_b, layout_c;
	struct scalar scale_a, scale_b;
	uint64_t id;
	cublasStatus_t status = ckt_lt_handle(handle, &id);
	if (!status)
		status = ckt_lt_descriptor(CKT_LT_TRANSFORM, desc, &operation);
	if (!status)
		status = optional_layout(a, a_desc, &layout_a);
	if (!status)
		status = optional_layout(b, b_desc, &layout_b);
	if (!status)
		status = ckt_lt_descriptor(CKT_LT_LAYOUT, c_desc, &layout_c);
	if (!status)
		status = scalars(ckt_lt_word(CKT_LT_TRANSFORM, desc, CKT_LT_TRANSFORM_POINTER_MODE),
			ckt_lt_word(CKT_LT_TRANSFORM, desc, CKT_LT_TRANSFORM_SCALE_TYPE), alpha,
			beta, !b, &scale_a, &scale_b);
	if (status)
		return status;
	struct ckt_cublasLtMatrixTransform_args args = {.handle = id,
		.operation = operation.bytes,
		.operation_len = operation.length,
		.alpha = scale_a.bytes,
		.alpha_len = scale_a.length,
		.a_layout = layout_a.bytes,
		.a_layout_len = layout_a.length,
		.beta = scale_b.bytes,
		.beta_len = scale_b.length,
		.b_layout = layout_b.bytes,
		.b_layout_len = layout_b.length,
		.c_layout = layout_c.bytes,
		.c_layout_len = layout_c.length};
	struct addresses addresses = {
		.all = {scale_a.address, (uintptr_t)a, scale_b.address, (uintptr_t)b, (uintptr_t)c},
		.count = 5};
	bool captures;
	status = prepare(stream, &addresses, &args.stream, &captures);
	if (status)
		return status;
	args.alpha_address = addresses.all[0];
	args.a = addresses.all[1];
	args.beta_address = addresses.all[2];
	args.b = addresses.all[3];
	args.c = addresses.all[4];
	struct ckt_lt_question work = CKT_LT_QUESTION(
		CKT_CUBLASLT_PROC_CUBLASLTMATRIXTRANSFORM, cublasLtMatrixTransform, &args, NULL);
	return put_on_stream(&work, args.stream, captures, content_of_transform(&args));
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t handle,
	cublasLtMatrixTransformDesc_t desc, const void *alpha, const void *a,
	cublasLtMatrixLayout_t a_desc, const void *beta, const void *b,
	cublasLtMatrixLayout_t b_desc, void *c, cublasLtMatrixLayout_t c_desc, cudaStream_t stream)
{
	return ckt_lt_log(__func__,
		transform(handle, desc, alpha, a, a_desc, beta, b, b_desc, c, c_desc, stream));
}
