/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/cufft/cufft_gpus.c: messages as they come from a client, and such as only a
 * liar sends.
 */
#include "server/worker/libs/cufft/cufft.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/cufft_double.h"

static struct ckt_cursor results;

/* Sends a message; every shorter one is garbage. */
#define SEND(NAME, name, ...)                                                                    \
	({                                                                                       \
		struct ckt_##name##_args args_ = {__VA_ARGS__};                                  \
		size_t size_ = ckt_##name##_args_size(&args_);                                   \
		uint8_t *bytes_ = calloc(1, size_ + 4);                                          \
		ckt_##name##_args_put(bytes_, &args_);                                           \
		for (size_t cut_ = 0; cut_ < size_; cut_++)                                      \
			IS(double_run(CKT_CUFFT_PROC_##NAME, bytes_, cut_, false, &results),     \
				INSIDE_GARBAGE);                                                 \
		int result_ = double_run(CKT_CUFFT_PROC_##NAME, bytes_, size_, false, &results); \
		free(bytes_);                                                                    \
		result_;                                                                         \
	})

static int status(void)
{
	return (int)ckt_get_u32(&results);
}

static uint64_t new_plan(unsigned gpus)
{
	static unsigned n = 900;
	uint64_t id = ID(LIB_OBJECT, n++);
	const uint64_t contexts[] = {ckt_handle_primary(1), ckt_handle_primary(0)};
	MUST(ASK(primary_ctx_retain, .device = 1), CUDA_SUCCESS);
	MUST(SEND(CUFFTCREATE, cufftCreate, .plan = id), CUDA_SUCCESS);
	if (gpus) {
		MUST(SEND(CUFFTXTSETGPUS, cufftXtSetGPUs, .plan = id, .contexts = contexts,
			     .contexts_len = gpus),
			CUDA_SUCCESS);
		MUST(status(), CUFFT_SUCCESS);
	}
	return id;
}

static void test_set_gpus(void)
{
	const uint64_t wrong[] = {ckt_handle_primary(0), ID(STREAM, 5)};
	double_begin();
	uint64_t plan = new_plan(2);
	/* As the session numbers its devices, in the order of the client. */
	HAS(double_calls(), " [1 0])");
	IS(SEND(CUFFTXTSETGPUS, cufftXtSetGPUs, .plan = plan, .contexts = wrong, .contexts_len = 2),
		CUDA_ERROR_INVALID_CONTEXT);
	IS(SEND(CUFFTXTSETGPUS, cufftXtSetGPUs, .plan = plan, .contexts = wrong, .contexts_len = 0),
		INSIDE_GARBAGE);
	IS(SEND(CUFFTXTSETGPUS, cufftXtSetGPUs, .plan = 5, .contexts = wrong, .contexts_len = 1),
		CUDA_ERROR_INVALID_HANDLE);
	TEXT(double_calls(), "");
	/* What the library refuses does not count. */
	double_status = CUFFT_INVALID_DEVICE;
	IS(SEND(CUFFTXTSETGPUS, cufftXtSetGPUs, .plan = plan, .contexts = wrong, .contexts_len = 1),
		CUDA_SUCCESS);
	IS(status(), CUFFT_INVALID_DEVICE);
	double_status = CUFFT_SUCCESS;
	IS(SEND(XT_SIZES, xt_sizes, .plan = plan), CUDA_SUCCESS);
	IS(ckt_get_u32(&results), 2);
}

/* A size for each GPU, from whatever function tells sizes, those of older builds included. */
static void test_sizes(void)
{
	const uint64_t n[] = {8};
	double_begin();
	uint64_t plan = new_plan(2);
	double_bytes = 1000;
	IS(SEND(CUFFTMAKEPLAN1D, cufftMakePlan1d, .plan = plan, .nx = 8, .type = CUFFT_C2C,
		   .batch = 1),
		CUDA_SUCCESS);
	IS(status(), CUFFT_SUCCESS);
	IS(ckt_get_u64(&results), 1000);
	IS(SEND(XT_SIZES, xt_sizes, .plan = plan), CUDA_SUCCESS);
	IS(ckt_get_u32(&results), 2);
	IS(ckt_get_u64(&results), 1000);
	IS(ckt_get_u64(&results), 1001);
	double_bytes = 2000;
	IS(SEND(FFT_MAKE, fft_make, .plan = plan, .form = 1, .given = 1, .n = n, .n_len = 1,
		   .type = CUFFT_C2C, .batch = 1),
		CUDA_SUCCESS);
	IS(SEND(FFT_MEASURE, fft_measure, .plan = plan, .form = 1, .given = 1, .n = n, .n_len = 1,
		   .type = CUFFT_C2C, .batch = 1),
		CUDA_SUCCESS);
	IS(SEND(FFT_SIZE, fft_size, .plan = plan), CUDA_SUCCESS);
	IS(SEND(CUFFTXTSETWORKAREAPOLICY, cufftXtSetWorkAreaPolicy, .plan = plan, .given = 1),
		CUDA_SUCCESS);
	IS(SEND(XT_SIZES, xt_sizes, .plan = plan), CUDA_SUCCESS);
	IS(ckt_get_u32(&results), 2);
	IS(ckt_get_u64(&results), 2000);
	IS(ckt_get_u64(&results), 2001);
	double_bytes = 4096;
	/* Of a plan that was given none: one. */
	IS(SEND(XT_SIZES, xt_sizes, .plan = new_plan(0)), CUDA_SUCCESS);
	IS(ckt_get_u32(&results), 1);
	IS(SEND(XT_SIZES, xt_sizes, .plan = 5), CUDA_ERROR_INVALID_HANDLE);
}

static void test_work_areas(void)
{
	const uint64_t areas[] = {0x1000, 0x2000, 0x3000};
	double_begin();
	uint64_t plan = new_plan(2);
	double_calls();
	IS(SEND(XT_SET_WORK_AREA, xt_set_work_area, .plan = plan, .areas = areas, .areas_len = 2),
		CUDA_SUCCESS);
	HAS(double_calls(), " 0x1000 0x2000)");
	/* As many as the library reads. */
	for (uint32_t count = 0; count < 4; count++)
		if (count != 2)
			IS(SEND(XT_SET_WORK_AREA, xt_set_work_area, .plan = plan, .areas = areas,
				   .areas_len = count),
				INSIDE_GARBAGE);
	TEXT(double_calls(), "");
}

#define PIECES(first, second)                           \
	{                                               \
		first, 0x10000, 64, second, 0x20000, 32 \
	}

static void test_execute(void)
{
	const uint64_t pieces[] = PIECES(0, 1), wrong[] = PIECES(0, 2);
	static const char *const names[] = {
		"_any(", "_c2c(", "_r2c(", "_c2r(", "_z2z(", "_d2z(", "_z2d("};
	static const uint32_t functions[] = {
		0, CUFFT_C2C, CUFFT_R2C, CUFFT_C2R, CUFFT_Z2Z, CUFFT_D2Z, CUFFT_Z2D};
	double_begin();
	uint64_t plan = new_plan(2);
	double_calls();
	for (unsigned i = 0; i < COUNT(functions); i++) {
		IS(SEND(XT_EXECUTE, xt_execute, .plan = plan, .function = functions[i], .same = 1,
			   .in_format = 2, .input = pieces, .input_len = 6, .out_format = 2,
			   .output = pieces, .output_len = 6, .direction = -1),
			CUDA_SUCCESS);
		IS(status(), CUFFT_SUCCESS);
		IS(ckt_get_u32(&results), CUFFT_XT_FORMAT_INPLACE_SHUFFLED);
		IS(ckt_get_u32(&results), CUFFT_XT_FORMAT_INPLACE_SHUFFLED);
		const char *calls = double_calls();
		HAS(calls, names[i]);
		/* GPUs by their place in the plan's list. */
		HAS(calls, " {2 1:0x10000+64 0:0x20000+32} same");
	}
	IS(SEND(XT_EXECUTE, xt_execute, .plan = plan, .function = CUFFT_C2C, .in_format = 0,
		   .input = pieces, .input_len = 6, .out_format = 1, .output = pieces,
		   .output_len = 3),
		CUDA_SUCCESS);
	IS(status(), CUFFT_SUCCESS);
	IS(ckt_get_u32(&results), 0);
	HAS(double_calls(), "{0 1:0x10000+64 0:0x20000+32} {1 1:0x10000+64}");
	IS(SEND(XT_EXECUTE, xt_execute, .plan = plan, .function = 999, .input = pieces,
		   .input_len = 6, .output = pieces, .output_len = 6),
		CUDA_SUCCESS);
	IS(status(), CUFFT_INVALID_TYPE);
	/* A GPU that the plan has not got, half a piece, a stream and a plan that are none. */
	IS(SEND(XT_EXECUTE, xt_execute, .plan = plan, .input = wrong, .input_len = 6,
		   .output = pieces, .output_len = 6),
		INSIDE_GARBAGE);
	IS(SEND(XT_EXECUTE, xt_execute, .plan = plan, .input = pieces, .input_len = 4,
		   .output = pieces, .output_len = 6),
		INSIDE_GARBAGE);
	IS(SEND(XT_EXECUTE, xt_execute, .plan = plan, .stream = ID(STREAM, 99), .input = pieces,
		   .input_len = 6, .output = pieces, .output_len = 6),
		CUDA_ERROR_INVALID_HANDLE);
	IS(SEND(XT_EXECUTE, xt_execute, .plan = 5), CUDA_ERROR_INVALID_HANDLE);
	TEXT(double_calls(), "");
	double_status = CUFFT_EXEC_FAILED;
	IS(SEND(XT_EXECUTE, xt_execute, .plan = plan, .function = CUFFT_C2C, .input = pieces,
		   .input_len = 6, .output = pieces, .output_len = 6),
		CUDA_SUCCESS);
	IS(status(), CUFFT_EXEC_FAILED);
}

static void test_copy(void)
{
	const uint64_t pieces[] = PIECES(1, 0),
		       huge[] = {0, 0x10000, UINT64_MAX - 2, 1, 0x20000, 8};
	uint64_t staging;
	double_begin();
	uint64_t plan = new_plan(2);
	MUST(ckt_memory_alloc(&ckt_worker.devices[0].memory, 4096, 1, &staging), CUDA_SUCCESS);
	double_calls();
	memset((void *)staging, 3, 4096);
	((uint8_t *)staging)[0] = 9;
	IS(SEND(XT_COPY, xt_copy, .plan = plan, .type = CUFFT_COPY_HOST_TO_DEVICE,
		   .staging = staging, .staging_bytes = 4096, .to_format = 2, .to = pieces,
		   .to_len = 6),
		CUDA_SUCCESS);
	IS(status(), CUFFT_SUCCESS);
	HAS(double_calls(), " 0 {2 0:0x10000+64 1:0x20000+32} 9 3)");
	IS(SEND(XT_COPY, xt_copy, .plan = plan, .type = CUFFT_COPY_DEVICE_TO_HOST,
		   .staging = staging, .staging_bytes = 4096, .from_format = 3, .from = pieces,
		   .from_len = 6),
		CUDA_SUCCESS);
	IS(status(), CUFFT_SUCCESS);
	HAS(double_calls(), " 1 {3 0:0x10000+64 1:0x20000+32})");
	IS(((uint8_t *)staging)[4095], 77);
	IS(SEND(XT_COPY, xt_copy, .plan = plan, .type = CUFFT_COPY_DEVICE_TO_DEVICE, .to_format = 2,
		   .to = pieces, .to_len = 6, .from_format = 3, .from = pieces, .from_len = 6),
		CUDA_SUCCESS);
	HAS(double_calls(), "{2 0:0x10000+64 1:0x20000+32} {3 0:0x10000+64 1:0x20000+32})");
	/* The host's side is there where it belongs, is the session's, and is no more than memory has. */
	IS(SEND(XT_COPY, xt_copy, .plan = plan, .type = CUFFT_COPY_HOST_TO_DEVICE, .to = pieces,
		   .to_len = 6),
		INSIDE_GARBAGE);
	IS(SEND(XT_COPY, xt_copy, .plan = plan, .type = CUFFT_COPY_DEVICE_TO_DEVICE,
		   .staging = staging, .staging_bytes = 8, .to = pieces, .to_len = 6),
		INSIDE_GARBAGE);
	IS(SEND(XT_COPY, xt_copy, .plan = plan, .type = 3, .to = pieces, .to_len = 6),
		INSIDE_GARBAGE);
	IS(SEND(XT_COPY, xt_copy, .plan = plan, .type = CUFFT_COPY_HOST_TO_DEVICE,
		   .staging = staging, .staging_bytes = 4096, .to = huge, .to_len = 6),
		INSIDE_GARBAGE);
	TEXT(double_calls(), "");
	IS(SEND(XT_COPY, xt_copy, .plan = plan, .type = CUFFT_COPY_HOST_TO_DEVICE, .staging = 64,
		   .staging_bytes = 4096, .to = pieces, .to_len = 6),
		CUDA_SUCCESS);
	IS(status(), CUFFT_EXEC_FAILED);
	TEXT(double_calls(), "");
	ckt_memory_free_library(&ckt_worker.devices[0].memory, staging);
}

static void test_memory(void)
{
	double_begin();
	uint64_t plan = new_plan(2);
	double_calls();
	IS(SEND(XT_MEMORY, xt_memory, .plan = plan, .format = 2), CUDA_SUCCESS);
	IS(status(), CUFFT_SUCCESS);
	/* The double has GPU 0 first, which is the plan's second. */
	IS(ckt_get_u32(&results), 4);
	IS(ckt_get_u64(&results), 1);
	IS(ckt_get_u64(&results), 4096);
	IS(ckt_get_u64(&results), 0);
	IS(ckt_get_u64(&results), 4097);
	HAS(double_calls(), "xt_free(2)");
	double_status = CUFFT_ALLOC_FAILED;
	IS(SEND(XT_MEMORY, xt_memory, .plan = plan, .format = 2), CUDA_SUCCESS);
	IS(status(), CUFFT_ALLOC_FAILED);
	IS(ckt_get_u32(&results), 0);
	IS(SEND(XT_MEMORY, xt_memory, .plan = 5, .format = 2), CUDA_ERROR_INVALID_HANDLE);
}

static void test_query(void)
{
	double_begin();
	uint64_t plan = new_plan(2);
	IS(SEND(CUFFTXTQUERYPLAN, cufftXtQueryPlan, .plan = plan, .type = 0), CUDA_SUCCESS);
	IS(status(), CUFFT_SUCCESS);
	IS(ckt_get_u32(&results), sizeof(cufftXt1dFactors));
	cufftXt1dFactors factors;
	memcpy(&factors, results.p, sizeof factors);
	IS(factors.size, 4711);
	IS(factors.factor2Shift, 12);
	IS(SEND(CUFFTXTQUERYPLAN, cufftXtQueryPlan, .plan = plan, .type = 1),
		CUDA_ERROR_INVALID_VALUE);
}

/* An older library has none of it. */
static void test_lacking(void)
{
	const uint64_t context = ckt_handle_primary(0);
	double_begin();
	uint64_t plan = new_plan(0);
	ckt_cufft.cufftXtSetGPUs = NULL;
	ckt_cufft.cufftXtQueryPlan = NULL;
	ckt_cufft.cufftXtSetWorkArea = NULL;
	ckt_cufft.cufftXtMalloc = NULL;
	IS(SEND(CUFFTXTSETGPUS, cufftXtSetGPUs, .plan = plan, .contexts = &context,
		   .contexts_len = 1),
		CUDA_ERROR_NOT_SUPPORTED);
	IS(SEND(CUFFTXTQUERYPLAN, cufftXtQueryPlan, .plan = plan), CUDA_ERROR_NOT_SUPPORTED);
	IS(SEND(XT_SET_WORK_AREA, xt_set_work_area, .plan = plan, .areas = &context,
		   .areas_len = 1),
		CUDA_ERROR_NOT_SUPPORTED);
	IS(SEND(XT_MEMORY, xt_memory, .plan = plan), CUDA_SUCCESS);
	IS(status(), CUFFT_NOT_SUPPORTED);
}

UNIT_SUITE(cufft_gpus, {"which GPUs", test_set_gpus}, {"sizes", test_sizes},
	{"work areas", test_work_areas}, {"executions", test_execute}, {"copies", test_copy},
	{"how much memory", test_memory}, {"factors", test_query},
	{"an older library", test_lacking})
