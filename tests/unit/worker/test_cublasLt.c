/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/cublasLt/cublasLt.c: what a peer may not say.  That every parameter arrives at
 * the library is tests/unit/cublaslt/test_matmul.c's.
 */
#include <stdlib.h>
#include <string.h>

#include "client/libs/cublasLt/handle.h"
#include "tests/unit/cublaslt/bridge.h"

static uint8_t operation[CKT_LT_MATMUL_BYTES], layout[CKT_LT_LAYOUT_BYTES],
	transform[CKT_LT_TRANSFORM_BYTES];
static const uint8_t one[16] = {0, 0, 0x80, 0x3f};

static uint64_t handle_id(void)
{
	uint64_t id = 0;
	MUST(ckt_lt_handle(bridge_handle(), &id), CUBLAS_STATUS_SUCCESS);
	ckt_lt_init(CKT_LT_MATMUL, operation, 256);
	ckt_lt_init(CKT_LT_LAYOUT, layout, CKT_LT_STRUCT_BYTES);
	ckt_lt_init(CKT_LT_TRANSFORM, transform, 64);
	return id;
}

static struct ckt_cublasLtMatmul_args good(void)
{
	return (struct ckt_cublasLtMatmul_args){.handle = handle_id(),
		.operation = operation,
		.operation_len = sizeof operation,
		.alpha = one,
		.alpha_len = 4,
		.beta = one,
		.beta_len = 4,
		.a_layout = layout,
		.a_layout_len = sizeof layout,
		.b_layout = layout,
		.b_layout_len = sizeof layout,
		.c_layout = layout,
		.c_layout_len = sizeof layout,
		.d_layout = layout,
		.d_layout_len = sizeof layout};
}

static int multiply(const struct ckt_cublasLtMatmul_args *args)
{
	size_t size = ckt_cublasLtMatmul_args_size(args);
	uint8_t *bytes = malloc(size);
	ckt_cublasLtMatmul_args_put(bytes, args);
	int result = bridge_raw(CKT_CUBLASLT_PROC_CUBLASLTMATMUL, bytes, size, false);
	free(bytes);
	return result;
}

static void test_cut(void)
{
	struct ckt_cublasLtMatmul_args args = good();
	size_t size = ckt_cublasLtMatmul_args_size(&args);
	uint8_t *bytes = calloc(1, size + 4);
	ckt_cublasLtMatmul_args_put(bytes, &args);
	IS(bridge_raw(CKT_CUBLASLT_PROC_CUBLASLTMATMUL, bytes, size, false), CUDA_SUCCESS);
	for (size_t cut = 0; cut < size; cut++)
		IS(bridge_raw(CKT_CUBLASLT_PROC_CUBLASLTMATMUL, bytes, cut, false), INSIDE_GARBAGE);
	IS(bridge_raw(CKT_CUBLASLT_PROC_CUBLASLTMATMUL, bytes, size + 4, false), INSIDE_GARBAGE);
	free(bytes);
}

/*
 * An address of the worker's own memory never comes from the peer: the library reads scalars of the
 * host where the worker put them.
 */
static void test_scalars(void)
{
	struct ckt_cublasLtMatmul_args args = good();
	args.alpha_len = 0;
	args.alpha_address = 0x1234;
	IS(multiply(&args), INSIDE_GARBAGE);
	args = good();
	args.beta_len = 8;
	IS(multiply(&args), INSIDE_GARBAGE);
	args = good();
	for (uint32_t mode = 1; mode < 7; mode++) {
		ckt_lt_set(CKT_LT_MATMUL, operation, CKT_LT_MATMUL_POINTER_MODE, &mode, 4);
		IS(multiply(&args), INSIDE_GARBAGE);
	}
	ckt_lt_set(CKT_LT_MATMUL, operation, CKT_LT_MATMUL_POINTER_MODE, &(int){0}, 4);
	ckt_lt_set(CKT_LT_MATMUL, operation, CKT_LT_MATMUL_SCALE_TYPE, &(int){77}, 4);
	IS(multiply(&args), INSIDE_GARBAGE);
	args.alpha_len = args.beta_len = 0;
	IS(multiply(&args), INSIDE_GARBAGE);
}

static void test_lengths(void)
{
	struct ckt_cublasLtMatmul_args args = good();
	static const uint32_t wrong[] = {0, 3, 4, 52, 60, 64};
	for (unsigned i = 0; i < COUNT(wrong); i++) {
		uint8_t bytes[256] = {0};
		args = good();
		args.c_layout = bytes;
		args.c_layout_len = wrong[i];
		IS(multiply(&args), INSIDE_GARBAGE);
		args = good();
		args.operation = bytes;
		args.operation_len = wrong[i];
		IS(multiply(&args), INSIDE_GARBAGE);
	}
	args = good();
	args.algo = one;
	args.algo_len = 16;
	IS(multiply(&args), INSIDE_GARBAGE);
	args = good();
	args.emulation = one;
	args.emulation_len = 16;
	IS(multiply(&args), INSIDE_GARBAGE);
	/* Factors for each of a batch, of which one came. */
	args = good();
	ckt_lt_set(CKT_LT_MATMUL, operation, CKT_LT_MATMUL_ALPHA_BATCH_STRIDE, &(int64_t){1}, 8);
	IS(multiply(&args), INSIDE_GARBAGE);
	ckt_lt_set(CKT_LT_MATMUL, operation, CKT_LT_MATMUL_ALPHA_BATCH_STRIDE, &(int64_t){0}, 8);
	/* A form that there is not, and one whose bytes are more than came. */
	args = good();
	operation[0] = 7;
	IS(multiply(&args), INSIDE_GARBAGE);
	operation[0] = 4;
	IS(multiply(&args), INSIDE_GARBAGE);
	args.operation_len = 160;
	IS(multiply(&args), CUDA_SUCCESS);
}

static void test_ids(void)
{
	struct ckt_cublasLtMatmul_args args = good();
	args.handle = 0;
	IS(multiply(&args), CUDA_ERROR_INVALID_HANDLE);
	args.handle = ID(STREAM, 1);
	IS(multiply(&args), CUDA_ERROR_INVALID_HANDLE);
	args = good();
	args.stream = ID(STREAM, 999);
	IS(multiply(&args), CUDA_ERROR_INVALID_HANDLE);
	uint8_t bytes[8];
	ckt_put_u64(bytes, ID(LIB_OBJECT, 900));
	IS(bridge_raw(CKT_CUBLASLT_PROC_CUBLASLTDESTROY, bytes, 8, false),
		CUDA_ERROR_INVALID_HANDLE);
	IS(bridge_raw(CKT_CUBLASLT_PROC_CUBLASLTDESTROY, bytes, 4, false), INSIDE_GARBAGE);
	/*
	 * An id that is taken, and one of another kind: the library's handle does not stay behind.
	 */
	ckt_put_u64(bytes, handle_id());
	double_calls();
	IS(bridge_raw(CKT_CUBLASLT_PROC_CUBLASLTCREATE, bytes, 8, false), CUDA_ERROR_INVALID_VALUE);
	TEXT(double_calls(), "cublasLtCreate\ncublasLtDestroy handle=4a4d\n");
	ckt_put_u64(bytes, ID(EVENT, 900));
	IS(bridge_raw(CKT_CUBLASLT_PROC_CUBLASLTCREATE, bytes, 8, false), CUDA_ERROR_INVALID_VALUE);
	double_calls();
}

static void test_transform(void)
{
	struct ckt_cublasLtMatrixTransform_args args = {.handle = handle_id(),
		.operation = transform,
		.operation_len = sizeof transform,
		.alpha = one,
		.alpha_len = 4,
		.c_layout = layout,
		.c_layout_len = sizeof layout};
	uint8_t bytes[1024] = {0};
	size_t size = ckt_cublasLtMatrixTransform_args_size(&args);
	ckt_cublasLtMatrixTransform_args_put(bytes, &args);
	IS(bridge_raw(CKT_CUBLASLT_PROC_CUBLASLTMATRIXTRANSFORM, bytes, size, false), CUDA_SUCCESS);
	for (size_t cut = 0; cut < size; cut++)
		IS(bridge_raw(CKT_CUBLASLT_PROC_CUBLASLTMATRIXTRANSFORM, bytes, cut, false),
			INSIDE_GARBAGE);
	/* A second matrix without beta. */
	args.b = 0x1000;
	ckt_cublasLtMatrixTransform_args_put(bytes, &args);
	IS(bridge_raw(CKT_CUBLASLT_PROC_CUBLASLTMATRIXTRANSFORM, bytes, size, false),
		INSIDE_GARBAGE);
	args.b = 0;
	args.beta_address = 0x1000;
	ckt_cublasLtMatrixTransform_args_put(bytes, &args);
	IS(bridge_raw(CKT_CUBLASLT_PROC_CUBLASLTMATRIXTRANSFORM, bytes, size, false),
		INSIDE_GARBAGE);
	args.beta_address = 0;
	args.c_layout_len = 0;
	size = ckt_cublasLtMatrixTransform_args_size(&args);
	ckt_cublasLtMatrixTransform_args_put(bytes, &args);
	IS(bridge_raw(CKT_CUBLASLT_PROC_CUBLASLTMATRIXTRANSFORM, bytes, size, false),
		INSIDE_GARBAGE);
	double_calls();
}

/* A stream of the session's arrives as the driver's. */
static void test_stream(void)
{
	struct ckt_cublasLtMatmul_args args = good();
	double_calls();
	args.stream = 1;
	IS(multiply(&args), CUDA_SUCCESS);
	HAS(double_calls(), "stream=legacy\n");
	IS(ASK(stream_create, .id = ID(STREAM, 77)), CUDA_SUCCESS);
	args.stream = ID(STREAM, 77);
	IS(multiply(&args), CUDA_SUCCESS);
	HAS(double_calls(), "stream=made\n");
}

UNIT_SUITE(cublasLt, {"cut messages", test_cut}, {"scalars", test_scalars},
	{"lengths", test_lengths}, {"ids", test_ids}, {"transform", test_transform},
	{"stream", test_stream})
