/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/libs/cublasLt/matmul.c, and with it the worker's handlers: every parameter of
 * cublasLtMatmul and cublasLtMatrixTransform arrives at the library, in every pointer mode, and
 * what is wrong is refused here.
 */
#include <stdlib.h>
#include <string.h>

#include "client/libs/libs.h"
#include "tests/unit/cublaslt/bridge.h"

static cublasLtMatmulDesc_t op;
static cublasLtMatrixLayout_t layouts[4];
static cublasLtMatmulAlgo_t algo = {{0x11, 2, 3, 4, 5, 6, 7, 0x88}};

static void *at(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static void make(cublasComputeType_t compute, cudaDataType_t scale)
{
	bridge_handle();
	bridge_deferred = 0;
	double_calls();
	MUST(cublasLtMatmulDescCreate(&op, compute, scale), CUBLAS_STATUS_SUCCESS);
	for (unsigned i = 0; i < 4; i++)
		MUST(cublasLtMatrixLayoutCreate(&layouts[i], CUDA_R_16F, 10 + i, 20 + i, 30 + i),
			CUBLAS_STATUS_SUCCESS);
}

static void end(void)
{
	cublasLtMatmulDescDestroy(op);
	for (unsigned i = 0; i < 4; i++)
		cublasLtMatrixLayoutDestroy(layouts[i]);
	IS(bridge_deferred, 0);
}

static cublasStatus_t multiply(
	const void *alpha, const void *beta, const cublasLtMatmulAlgo_t *with)
{
	return cublasLtMatmul(bridge_handle(), op, alpha, at(0x1000), layouts[0], at(0x2000),
		layouts[1], beta, at(0x3000), layouts[2], at(0x4000), layouts[3], with, at(0x5000),
		12345, NULL);
}

#define LAYOUTS "a=0x1000 A={0=2 2=a 3=14 4=1e} b=0x2000 B={0=2 2=b 3=15 4=1f} "
#define REST "c=0x3000 C={0=2 2=c 3=16 4=20} d=0x4000 D={0=2 2=d 3=17 4=21} "
#define WITH_ALGO "algo=11..88 workspace=0x5000 bytes=12345 stream=legacy\n"

static void test_host(void)
{
	float alpha = 1.5f, beta = -2;
	make(CUBLAS_COMPUTE_32F, CUDA_R_32F);
	bridge_reset();
	IS(multiply(&alpha, &beta, &algo), CUBLAS_STATUS_SUCCESS);
	TEXT(double_calls(),
		"cublasLtMatmul handle=4a4d op={0=44 1=0} alpha=host:0000c03f " LAYOUTS
		"beta=host:000000c0 " REST WITH_ALGO);
	IS(bridge_total(), 1);
	/* Without an algorithm, D = C, no memory at all: the library's to judge. */
	IS(cublasLtMatmul(bridge_handle(), op, &alpha, NULL, layouts[0], NULL, layouts[0], &beta,
		   NULL, layouts[0], NULL, layouts[0], NULL, NULL, 0, NULL),
		CUBLAS_STATUS_SUCCESS);
	HAS(double_calls(),
		"d=0 D={0=2 2=a 3=14 4=1e} algo=NULL workspace=0 bytes=0 stream=legacy\n");
	end();
}

/* Matrices whose sizes lie on the device; and what CUDA 13.2 brought for the operation. */
static void test_grouped(void)
{
	float alpha = 1, beta = 0;
	cublasLtMatrixLayout_t grouped[4];
	make(CUBLAS_COMPUTE_32F, CUDA_R_32F);
	for (unsigned i = 0; i < 4; i++)
		MUST(cublasLtGroupedMatrixLayoutCreate(&grouped[i], CUDA_R_16BF, 3,
			     at(0x10000 + i * 0x100), at(0x20000), at(0x30000)),
			CUBLAS_STATUS_SUCCESS);
	cublasLtMatrixLayoutSetAttribute(
		grouped[1], (cublasLtMatrixLayoutAttribute_t)12, &(int32_t){1}, 4);
	cublasLtMatmulDescSetAttribute(op, (cublasLtMatmulDescAttributes_t)39, &(int64_t){7}, 8);
	cublasLtMatmulDescSetAttribute(op, (cublasLtMatmulDescAttributes_t)40, &(int64_t){-8}, 8);
	cublasLtMatmulDescSetAttribute(op, (cublasLtMatmulDescAttributes_t)41, &(int32_t){4}, 4);
	/* A factor for each of a batch lies on the device. */
	bridge_reset();
	IS(cublasLtMatmul(bridge_handle(), op, &alpha, at(0x1000), grouped[0], at(0x2000),
		   grouped[1], &beta, at(0x3000), grouped[2], at(0x4000), grouped[3], NULL, NULL, 0,
		   NULL),
		CUBLAS_STATUS_NOT_SUPPORTED);
	IS(bridge_total(), 0);
	cublasLtMatmulDescSetAttribute(
		op, CUBLASLT_MATMUL_DESC_POINTER_MODE, &(int){CUBLASLT_POINTER_MODE_DEVICE}, 4);
	IS(cublasLtMatmul(bridge_handle(), op, at(0x6000), at(0x1000), grouped[0], at(0x2000),
		   grouped[1], at(0x6100), at(0x3000), grouped[2], at(0x4000), grouped[3], NULL,
		   NULL, 0, NULL),
		CUBLAS_STATUS_SUCCESS);
	TEXT(double_calls(),
		"cublasLtMatmul handle=4a4d op={0=44 1=0 2=1 39=7 40=fffffffffffffff8 41=4} alpha=0x6000 "
		"a=0x1000 A={0=e 2=0 3=0 4=0 5=3 8=2 9=10000 10=20000 11=30000} b=0x2000 B={0=e 2=0 3=0 4=0 5=3 8=2 9=10100 10=20000 11=30000 12=1} "
		"beta=0x6100 c=0x3000 C={0=e 2=0 3=0 4=0 5=3 8=2 9=10200 10=20000 11=30000} d=0x4000 "
		"D={0=e 2=0 3=0 4=0 5=3 8=2 9=10300 10=20000 11=30000} algo=NULL workspace=0 bytes=0 stream=legacy\n");
	/* The same content at other addresses need not be waited for. */
	cublasLtMatrixLayoutSetAttribute(
		grouped[2], (cublasLtMatrixLayoutAttribute_t)9, &(uint64_t){0x50200}, 8);
	IS(cublasLtMatmul(bridge_handle(), op, at(0x6000), at(0x1000), grouped[0], at(0x2000),
		   grouped[1], at(0x6100), at(0x3000), grouped[2], at(0x4000), grouped[3], NULL,
		   NULL, 0, NULL),
		CUBLAS_STATUS_SUCCESS);
	HAS(double_calls(), "9=50200");
	for (unsigned i = 0; i < 4; i++)
		cublasLtMatrixLayoutDestroy(grouped[i]);
	IS(cublasLtGroupedMatrixLayoutCreate(NULL, CUDA_R_16BF, 3, NULL, NULL, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	uint64_t room[32];
	IS(cublasLtGroupedMatrixLayoutInit_internal(
		   (void *)room, 111, CUDA_R_16BF, 3, NULL, NULL, NULL),
		CUBLAS_STATUS_ALLOC_FAILED);
	IS(cublasLtGroupedMatrixLayoutInit_internal(
		   (void *)room, 112, CUDA_R_16BF, 3, NULL, NULL, NULL),
		CUBLAS_STATUS_SUCCESS);
	IS(cublasLtGroupedMatrixLayoutInit_internal(NULL, 112, CUDA_R_16BF, 3, NULL, NULL, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	end();
}

/* By the scale type: as many bytes as it has, the longest too. */
static void test_scale_types(void)
{
	static const struct {
		cublasComputeType_t compute;
		cudaDataType_t scale;
		const char *text;
	} types[] = {{CUBLAS_COMPUTE_16F, CUDA_R_16F, "alpha=host:0102 "},
		{CUBLAS_COMPUTE_64F, CUDA_R_64F, "alpha=host:0102030405060708 "},
		{CUBLAS_COMPUTE_32F, CUDA_C_32F, "alpha=host:0102030405060708 "},
		{CUBLAS_COMPUTE_32I, CUDA_R_32I, "alpha=host:01020304 "},
		{CUBLAS_COMPUTE_64F, CUDA_C_64F, "alpha=host:0102030405060708090a0b0c0d0e0f10 "}};
	uint8_t alpha[16], beta[16] = {0xff, 0xee};
	for (unsigned i = 0; i < 16; i++)
		alpha[i] = (uint8_t)(i + 1);
	for (unsigned i = 0; i < COUNT(types); i++) {
		make(types[i].compute, types[i].scale);
		IS(multiply(alpha, beta, &algo), CUBLAS_STATUS_SUCCESS);
		HAS(double_calls(), types[i].text);
		end();
	}
	make(CUBLAS_COMPUTE_32F, (cudaDataType_t)99);
	IS(multiply(alpha, beta, &algo), CUBLAS_STATUS_INVALID_VALUE);
	TEXT(double_calls(), "");
	end();
}

static void test_pointer_modes(void)
{
	static const struct {
		int mode;
		const char *alpha, *beta;
	} modes[] = {{CUBLASLT_POINTER_MODE_DEVICE, "alpha=0x7700 ", "beta=0x7800 "},
		{CUBLASLT_POINTER_MODE_DEVICE_VECTOR, "alpha=0x7700 ", "beta=0x7800 "},
		{CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO, "alpha=0x7700 ", "beta=0 "}};
	float beta = 2;
	make(CUBLAS_COMPUTE_32F, CUDA_R_32F);
	for (unsigned i = 0; i < COUNT(modes); i++) {
		IS(cublasLtMatmulDescSetAttribute(
			   op, CUBLASLT_MATMUL_DESC_POINTER_MODE, &modes[i].mode, 4),
			CUBLAS_STATUS_SUCCESS);
		IS(multiply(at(0x7700),
			   modes[i].mode == CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO
				   ? NULL
				   : at(0x7800),
			   &algo),
			CUBLAS_STATUS_SUCCESS);
		const char *calls = double_calls();
		HAS(calls, modes[i].alpha);
		HAS(calls, modes[i].beta);
	}
	IS(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_POINTER_MODE,
		   &(int){CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST}, 4),
		CUBLAS_STATUS_SUCCESS);
	IS(multiply(at(0x7700), &beta, &algo), CUBLAS_STATUS_SUCCESS);
	const char *calls = double_calls();
	HAS(calls, "alpha=0x7700 ");
	HAS(calls, "beta=host:00000040 ");
	/* Missing scalars, and a mode that is none. */
	IS(multiply(NULL, &beta, &algo), CUBLAS_STATUS_INVALID_VALUE);
	IS(multiply(at(0x7700), NULL, &algo), CUBLAS_STATUS_INVALID_VALUE);
	for (int mode = 0; mode < 3; mode++) {
		cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, 4);
		IS(multiply(NULL, &beta, &algo), CUBLAS_STATUS_INVALID_VALUE);
		IS(multiply(&beta, NULL, &algo), CUBLAS_STATUS_INVALID_VALUE);
	}
	cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_POINTER_MODE, &(int){5}, 4);
	IS(multiply(&beta, &beta, &algo), CUBLAS_STATUS_INVALID_VALUE);
	TEXT(double_calls(), "");
	end();
}

/* All attributes with a value of their own, those of layouts too. */
static void test_attributes(void)
{
	float one = 1;
	unsigned count;
	make(CUBLAS_COMPUTE_32F, CUDA_R_32F);
	const struct ckt_lt_attribute *all = ckt_lt_attributes(CKT_LT_MATMUL, &count);
	for (unsigned i = 0; i < count; i++) {
		uint64_t value = 0x40u + all[i].number;
		/* A stride of factors is for those on the device: test_grouped. */
		bool stride = all[i].number == CKT_LT_MATMUL_ALPHA_BATCH_STRIDE ||
			all[i].number == CKT_LT_MATMUL_BETA_BATCH_STRIDE;
		if (all[i].number > 2 &&
			all[i].number != CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR && !stride)
			IS(cublasLtMatmulDescSetAttribute(op,
				   (cublasLtMatmulDescAttributes_t)all[i].number, &value,
				   all[i].size),
				CUBLAS_STATUS_SUCCESS);
	}
	all = ckt_lt_attributes(CKT_LT_LAYOUT, &count);
	for (unsigned i = 0; i < count; i++)
		IS(cublasLtMatrixLayoutSetAttribute(layouts[3],
			   (cublasLtMatrixLayoutAttribute_t)all[i].number,
			   &(uint64_t){0x90u + all[i].number}, all[i].size),
			CUBLAS_STATUS_SUCCESS);
	IS(multiply(&one, &one, NULL), CUBLAS_STATUS_SUCCESS);
	const char *calls = double_calls();
	HAS(calls,
		"op={0=44 1=0 3=43 4=44 5=45 6=46 7=47 8=48 10=4a 11=4b 12=4c 13=4d 14=4e 15=4f 16=50 17=51 18=52 19=53 20=54 21=55 22=56 23=57 24=58 "
		"25=59 26=5a 31=5f 32=60 33=61 34=62 35=63 36=64 37=65 41=69}");
	HAS(calls, "D={0=90 1=91 2=92 3=93 4=94 5=95 6=96 7=97 8=98 9=99 10=9a 11=9b 12=9c 13=9d}");
	end();
}

static void test_emulation(void)
{
	cublasLtEmulationDesc_t emulation;
	float one = 1;
	make(CUBLAS_COMPUTE_32F, CUDA_R_32F);
	MUST(cublasLtEmulationDescCreate(&emulation), CUBLAS_STATUS_SUCCESS);
	cublasLtEmulationDescSetAttribute(
		emulation, CUBLASLT_EMULATION_DESC_STRATEGY, &(int){2}, 4);
	cublasLtEmulationDescSetAttribute(emulation,
		CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_COUNT_POINTER, &(uint64_t){0x6600},
		8);
	cublasLtMatmulDescSetAttribute(
		op, CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, &emulation, sizeof emulation);
	IS(multiply(&one, &one, &algo), CUBLAS_STATUS_SUCCESS);
	HAS(double_calls(), "op={0=44 1=0 emulation={0=2 5=6600}}");
	/* What it is when the matmul is called. */
	cublasLtEmulationDescSetAttribute(
		emulation, CUBLASLT_EMULATION_DESC_STRATEGY, &(int){3}, 4);
	IS(multiply(&one, &one, &algo), CUBLAS_STATUS_SUCCESS);
	HAS(double_calls(), "op={0=44 1=0 emulation={0=3 5=6600}}");
	cublasLtEmulationDescDestroy(emulation);
	end();
}

/*
 * Every address that the call names is told before it runs; one of the host's is replaced by the
 * device's, in attributes too.
 */
static void test_addresses(void)
{
	cublasLtEmulationDesc_t emulation;
	uint64_t bias = 0x7f0000000100, counts = 0x7f0000000200;
	make(CUBLAS_COMPUTE_32F, CUDA_R_32F);
	cublasLtEmulationDescCreate(&emulation);
	cublasLtEmulationDescSetAttribute(emulation,
		CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_COUNT_POINTER, &counts, 8);
	cublasLtMatmulDescSetAttribute(
		op, CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, &emulation, sizeof emulation);
	cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, 8);
	cublasLtMatmulDescSetAttribute(
		op, CUBLASLT_MATMUL_DESC_POINTER_MODE, &(int){CUBLASLT_POINTER_MODE_DEVICE}, 4);
	bridge_moves = 0x10;
	IS(cublasLtMatmul(bridge_handle(), op, at(0x7f0000001000), at(0x7f0000002000), layouts[0],
		   at(0x7f0000003000), layouts[1], at(0x7f0000004000), at(0x7f0000005000),
		   layouts[2], at(0x7f0000006000), layouts[3], NULL, at(0x7f0000007000), 1, NULL),
		CUBLAS_STATUS_SUCCESS);
	bridge_moves = 0;
	/* Seven of the call, ten of the descriptor but for the emulation's, one of that. */
	IS(bridge_address_count, 7 + 10 + 1);
	IS(bridge_addresses[0], 0x7f0000001000);
	IS(bridge_addresses[6], 0x7f0000007000);
	const char *calls = double_calls();
	HAS(calls, "8=7f0000000110 emulation={5=7f0000000210}}");
	HAS(calls, "alpha=0x7f0000001010 a=0x7f0000002010 ");
	HAS(calls, "b=0x7f0000003010 ");
	HAS(calls, "beta=0x7f0000004010 c=0x7f0000005010 ");
	HAS(calls, "d=0x7f0000006010 ");
	HAS(calls, "workspace=0x7f0000007010 ");
	/* The program's own descriptor is as it was. */
	cublasLtMatmulDescGetAttribute(op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, 8, NULL);
	IS(bias, 0x7f0000000100);
	cublasLtEmulationDescDestroy(emulation);
	end();
}

static void test_nulls(void)
{
	float one = 1;
	make(CUBLAS_COMPUTE_32F, CUDA_R_32F);
	bridge_reset();
	IS(cublasLtMatmul(NULL, op, &one, NULL, layouts[0], NULL, layouts[1], &one, NULL,
		   layouts[2], NULL, layouts[3], NULL, NULL, 0, NULL),
		CUBLAS_STATUS_NOT_INITIALIZED);
	uint64_t nothing[8] = {0};
	IS(cublasLtMatmul((cublasLtHandle_t)nothing, op, &one, NULL, layouts[0], NULL, layouts[1],
		   &one, NULL, layouts[2], NULL, layouts[3], NULL, NULL, 0, NULL),
		CUBLAS_STATUS_NOT_INITIALIZED);
	IS(cublasLtMatmul(bridge_handle(), NULL, &one, NULL, layouts[0], NULL, layouts[1], &one,
		   NULL, layouts[2], NULL, layouts[3], NULL, NULL, 0, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	for (unsigned missing = 0; missing < 4; missing++) {
		cublasLtMatrixLayout_t some[4];
		memcpy(some, layouts, sizeof some);
		some[missing] = NULL;
		IS(cublasLtMatmul(bridge_handle(), op, &one, NULL, some[0], NULL, some[1], &one,
			   NULL, some[2], NULL, some[3], NULL, NULL, 0, NULL),
			CUBLAS_STATUS_INVALID_VALUE);
	}
	/* Bytes that are no descriptor. */
	cublasLtMatmulDescOpaque_t none;
	memset(&none, 0xee, sizeof none);
	IS(cublasLtMatmul(bridge_handle(), &none, &one, NULL, layouts[0], NULL, layouts[1], &one,
		   NULL, layouts[2], NULL, layouts[3], NULL, NULL, 0, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(bridge_total(), 0);
	TEXT(double_calls(), "");
	end();
}

/*
 * A content is waited for until the library has taken it; what makes no difference to the library
 * makes none here.
 */
static void test_first(void)
{
	float one = 1, two = 2, zero = 0;
	ckt_lib_taken_clear();
	make(CUBLAS_COMPUTE_32F, CUDA_R_32F);
	bridge_reset();
	double_status = CUBLAS_STATUS_NOT_SUPPORTED;
	IS(multiply(&one, &one, NULL), CUBLAS_STATUS_NOT_SUPPORTED);
	double_status = CUBLAS_STATUS_INVALID_VALUE;
	IS(multiply(&one, &one, NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(multiply(&one, &one, NULL), CUBLAS_STATUS_SUCCESS);
	IS(bridge_waited(), 3);
	IS(multiply(&one, &one, NULL), CUBLAS_STATUS_SUCCESS);
	IS(multiply(&two, &two, NULL), CUBLAS_STATUS_SUCCESS);
	IS(cublasLtMatmul(bridge_handle(), op, &one, at(0x11000), layouts[0], at(0x22000),
		   layouts[1], &one, at(0x33000), layouts[2], at(0x44000), layouts[3], NULL,
		   at(0x55000), 12345, NULL),
		CUBLAS_STATUS_SUCCESS);
	IS(bridge_waited(), 3);
	IS(bridge_total(), 6);
	/*
	 * Others: an algorithm, beta 0, alignment, no matrix, C in place of D, another layout,
	 * another descriptor, another workspace.
	 */
	static const struct {
		uint64_t a, c, d, bytes;
	} others[] = {{0x1001, 0x3000, 0x4000, 12345}, {0, 0x3000, 0x4000, 12345},
		{0x1000, 0x4000, 0x4000, 12345}, {0x1000, 0x3000, 0x4000, 1}};
	IS(multiply(&one, &one, &algo), CUBLAS_STATUS_SUCCESS);
	IS(multiply(&one, &zero, NULL), CUBLAS_STATUS_SUCCESS);
	for (unsigned i = 0; i < COUNT(others); i++)
		IS(cublasLtMatmul(bridge_handle(), op, &one, at(others[i].a), layouts[0],
			   at(0x2000), layouts[1], &one, at(others[i].c), layouts[2],
			   at(others[i].d), layouts[3], NULL, at(0x5000), others[i].bytes, NULL),
			CUBLAS_STATUS_SUCCESS);
	cublasLtMatrixLayoutSetAttribute(layouts[2], CUBLASLT_MATRIX_LAYOUT_LD, &(uint64_t){77}, 8);
	IS(multiply(&one, &one, NULL), CUBLAS_STATUS_SUCCESS);
	cublasLtMatmulDescSetAttribute(
		op, CUBLASLT_MATMUL_DESC_EPILOGUE, &(int){CUBLASLT_EPILOGUE_RELU}, 4);
	IS(multiply(&one, &one, NULL), CUBLAS_STATUS_SUCCESS);
	IS(bridge_waited(), 3 + 8);
	end();
}

/*
 * What the library says of a batched call is the session's; with CRICKET_SYNC=1 it is the call's.
 */
static void test_errors(void)
{
	float one = 1;
	make(CUBLAS_COMPUTE_32F, CUDA_R_32F);
	IS(multiply(&one, &one, NULL), CUBLAS_STATUS_SUCCESS);
	double_status = CUBLAS_STATUS_NOT_SUPPORTED;
	IS(multiply(&one, &one, NULL), CUBLAS_STATUS_SUCCESS);
	IS(bridge_deferred, CUDA_ERROR_UNKNOWN);
	bridge_deferred = 0;
	bridge_sync = true;
	double_status = CUBLAS_STATUS_NOT_SUPPORTED;
	IS(multiply(&one, &one, NULL), CUBLAS_STATUS_NOT_SUPPORTED);
	IS(multiply(&one, &one, NULL), CUBLAS_STATUS_SUCCESS);
	bridge_sync = false;
	/* An attribute that the server's older library does not have. */
	cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE, &(int){4}, 4);
	double_unknown = CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE;
	double_calls();
	IS(multiply(&one, &one, NULL), CUBLAS_STATUS_INVALID_VALUE);
	double_unknown = -1;
	IS(bridge_deferred, 0);
	TEXT(double_calls(), "");
	/* The session's own errors, by cuBLAS's names. */
	static const struct {
		CUresult result;
		cublasStatus_t status;
	} of[] = {{CUDA_ERROR_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED},
		{CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, CUBLAS_STATUS_NOT_INITIALIZED},
		{CUDA_ERROR_OUT_OF_MEMORY, CUBLAS_STATUS_ALLOC_FAILED},
		{CUDA_ERROR_INVALID_HANDLE, CUBLAS_STATUS_INVALID_VALUE},
		{CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED},
		{CUDA_ERROR_ILLEGAL_ADDRESS, CUBLAS_STATUS_EXECUTION_FAILED}};
	for (unsigned i = 0; i < COUNT(of); i++) {
		bridge_fails = of[i].result;
		IS(multiply(&one, &one, NULL), of[i].status);
	}
	bridge_fails = CUDA_SUCCESS;
	end();
}

static void test_transform(void)
{
	cublasLtMatrixTransformDesc_t desc;
	float alpha = 1, beta = 2;
	make(CUBLAS_COMPUTE_32F, CUDA_R_32F);
	MUST(cublasLtMatrixTransformDescCreate(&desc, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
	cublasLtMatrixTransformDescSetAttribute(
		desc, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, &(int){1}, 4);
	IS(cublasLtMatrixTransform(bridge_handle(), desc, &alpha, at(0x1000), layouts[0], &beta,
		   at(0x2000), layouts[1], at(0x3000), layouts[2], NULL),
		CUBLAS_STATUS_SUCCESS);
	TEXT(double_calls(),
		"cublasLtMatrixTransform handle=4a4d op={0=0 2=1} alpha=host:0000803f a=0x1000 A={0=2 2=a 3=14 4=1e} beta=host:00000040 "
		"b=0x2000 B={0=2 2=b 3=15 4=1f} c=0x3000 C={0=2 2=c 3=16 4=20} stream=legacy\n");
	/* One matrix alone. */
	IS(cublasLtMatrixTransform(bridge_handle(), desc, &alpha, at(0x1000), layouts[0], NULL,
		   NULL, NULL, at(0x3000), layouts[2], NULL),
		CUBLAS_STATUS_SUCCESS);
	HAS(double_calls(), "beta=0 b=0 B=NULL c=0x3000 ");
	/* A matrix needs its layout, the result above all, and both their scalars. */
	IS(cublasLtMatrixTransform(bridge_handle(), desc, &alpha, at(0x1000), NULL, &beta,
		   at(0x2000), layouts[1], at(0x3000), layouts[2], NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatrixTransform(bridge_handle(), desc, &alpha, at(0x1000), layouts[0], &beta,
		   at(0x2000), NULL, at(0x3000), layouts[2], NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatrixTransform(bridge_handle(), desc, &alpha, at(0x1000), layouts[0], &beta,
		   at(0x2000), layouts[1], at(0x3000), NULL, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatrixTransform(bridge_handle(), desc, NULL, at(0x1000), layouts[0], &beta,
		   at(0x2000), layouts[1], at(0x3000), layouts[2], NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatrixTransform(bridge_handle(), desc, &alpha, at(0x1000), layouts[0], NULL,
		   at(0x2000), layouts[1], at(0x3000), layouts[2], NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatrixTransform(bridge_handle(), NULL, &alpha, at(0x1000), layouts[0], &beta,
		   at(0x2000), layouts[1], at(0x3000), layouts[2], NULL),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtMatrixTransform(NULL, desc, &alpha, at(0x1000), layouts[0], &beta, at(0x2000),
		   layouts[1], at(0x3000), layouts[2], NULL),
		CUBLAS_STATUS_NOT_INITIALIZED);
	TEXT(double_calls(), "");
	/* Scalars on the device. */
	cublasLtMatrixTransformDescSetAttribute(
		desc, CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, &(int){1}, 4);
	IS(cublasLtMatrixTransform(bridge_handle(), desc, at(0x7700), at(0x1000), layouts[0],
		   at(0x7800), at(0x2000), layouts[1], at(0x3000), layouts[2], NULL),
		CUBLAS_STATUS_SUCCESS);
	const char *calls = double_calls();
	HAS(calls, "alpha=0x7700 ");
	HAS(calls, "beta=0x7800 ");
	cublasLtMatrixTransformDescDestroy(desc);
	end();
}

/*
 * On a stream that captures the same message becomes a node, and runs when the worker captures it.
 */
static void test_capture(void)
{
	cublasLtMatrixTransformDesc_t desc;
	float alpha = 1.5f, beta = -2;
	make(CUBLAS_COMPUTE_32F, CUDA_R_32F);
	bridge_reset();
	bridge_captures = true;
	IS(multiply(&alpha, &beta, &algo), CUBLAS_STATUS_SUCCESS);
	IS(bridge_total(), 0);
	TEXT(double_calls(), "");
	IS(bridge_captured_proc, CKT_CUBLASLT_PROC_CUBLASLTMATMUL);
	IS(bridge_raw(bridge_captured_proc, bridge_captured, bridge_captured_bytes, true),
		CUDA_SUCCESS);
	TEXT(double_calls(),
		"cublasLtMatmul handle=4a4d op={0=44 1=0} alpha=host:0000c03f " LAYOUTS
		"beta=host:000000c0 " REST WITH_ALGO);
	cublasLtMatrixTransformDescCreate(&desc, CUDA_R_32F);
	IS(cublasLtMatrixTransform(bridge_handle(), desc, &alpha, at(0x1000), layouts[0], &beta,
		   at(0x2000), layouts[1], at(0x3000), layouts[2], NULL),
		CUBLAS_STATUS_SUCCESS);
	IS(bridge_captured_proc, CKT_CUBLASLT_PROC_CUBLASLTMATRIXTRANSFORM);
	IS(bridge_raw(bridge_captured_proc, bridge_captured, bridge_captured_bytes, true),
		CUDA_SUCCESS);
	HAS(double_calls(), "cublasLtMatrixTransform handle=4a4d ");
	/* What is refused is refused there too. */
	IS(multiply(NULL, &beta, &algo), CUBLAS_STATUS_INVALID_VALUE);
	bridge_captures = false;
	cublasLtMatrixTransformDescDestroy(desc);
	free(bridge_captured);
	bridge_captured = NULL;
	end();
}

UNIT_SUITE(matmul, {"scalars on the host", test_host}, {"scale types", test_scale_types},
	{"grouped", test_grouped}, {"pointer modes", test_pointer_modes},
	{"attributes", test_attributes}, {"emulation", test_emulation},
	{"addresses", test_addresses}, {"nulls", test_nulls}, {"first", test_first},
	{"errors", test_errors}, {"transform", test_transform}, {"capture", test_capture})
