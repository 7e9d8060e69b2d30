/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/cufft/cufft_make.c: shapes that no client sends; those that clients send:
 * tests/unit/client_cufft/test_make.c.
 */
#include <stdlib.h>

#include "server/worker/libs/cufft/cufft.h"
#include "tests/unit/worker/cufft_double.h"

static struct ckt_cursor results;

static int make(struct ckt_fft_make_args args)
{
	size_t size = ckt_fft_make_args_size(&args);
	uint8_t *bytes = calloc(1, size + 4);
	ckt_fft_make_args_put(bytes, &args);
	int result = double_run(CKT_CUFFT_PROC_FFT_MAKE, bytes, size, false, &results);
	for (size_t cut = 0; cut < size; cut++)
		IS(double_run(CKT_CUFFT_PROC_FFT_MAKE, bytes, cut, false, &(struct ckt_cursor){0}),
			INSIDE_GARBAGE);
	/* The same as a question. */
	if (result == INSIDE_GARBAGE)
		IS(double_run(
			   CKT_CUFFT_PROC_FFT_MEASURE, bytes, size, false, &(struct ckt_cursor){0}),
			INSIDE_GARBAGE);
	free(bytes);
	return result;
}

static void test_wrong(void)
{
	uint64_t n[3] = {4, 5, 6};
	uint8_t create[8];
	double_begin();
	ckt_put_u64(create, ID(LIB_OBJECT, 700));
	MUST(double_run(CKT_CUFFT_PROC_CUFFTCREATE, create, 8, false, &results), CUDA_SUCCESS);
	struct ckt_fft_make_args good = {.plan = ID(LIB_OBJECT, 700),
					 .form = 5,
					 .given = 7,
					 .n = n,
					 .n_len = 3,
					 .in_embed = n,
					 .in_embed_len = 3,
					 .out_embed = n,
					 .out_embed_len = 3,
					 .type = CUFFT_C2C,
					 .batch = 1},
				 args;
	IS(make(good), CUDA_SUCCESS);
	IS(ckt_get_u32(&results), CUFFT_SUCCESS);
	IS(ckt_get_u64(&results), 4096);
	args = good, args.form = 0;
	IS(make(args), INSIDE_GARBAGE);
	args = good, args.form = 7;
	IS(make(args), INSIDE_GARBAGE);
	args = good, args.n_len = 0;
	IS(make(args), INSIDE_GARBAGE);
	/* A line has one length, a plane two. */
	args = good, args.form = 1;
	IS(make(args), INSIDE_GARBAGE);
	args = good, args.in_embed_len = 2;
	IS(make(args), INSIDE_GARBAGE);
	args = good, args.given = 3;
	IS(make(args), INSIDE_GARBAGE);
	args = good, args.out_embed_len = 0;
	IS(make(args), INSIDE_GARBAGE);
	args = good, args.plan = ID(LIB_OBJECT, 701);
	IS(make(args), CUDA_ERROR_INVALID_HANDLE);
	double_calls();
}

/* There are no estimates of the wide forms. */
static void test_estimate(void)
{
	uint64_t n[1] = {4};
	double_begin();
	struct ckt_fft_measure_args args = {.form = 6, .given = 1, .n = n, .n_len = 1};
	uint8_t bytes[256];
	uint8_t *end = ckt_fft_measure_args_put(bytes, &args);
	IS(double_run(CKT_CUFFT_PROC_FFT_MEASURE, bytes, (size_t)(end - bytes), false, &results),
		CUDA_SUCCESS);
	IS(ckt_get_u32(&results), CUFFT_NOT_SUPPORTED);
	TEXT(double_calls(), "");
	args.plan = ID(LIB_OBJECT, 702);
	end = ckt_fft_measure_args_put(bytes, &args);
	IS(double_run(CKT_CUFFT_PROC_FFT_MEASURE, bytes, (size_t)(end - bytes), false, &results),
		CUDA_ERROR_INVALID_HANDLE);
}

UNIT_SUITE(cufft_make, {"wrong", test_wrong}, {"estimate", test_estimate})
