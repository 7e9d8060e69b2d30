/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/cufft/cufft.c: handlers over a recording double, by messages as they come from
 * a client, whole, cut off and wrong.
 */
#include "server/worker/session/long_call.h"
#include "server/worker/libs/cufft/cufft.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/cufft_double.h"

static struct ckt_cursor results;

/* Sends a message; every shorter one, and a longer one, is garbage. */
#define SEND(NAME, name, batched, ...)                                                             \
	({                                                                                         \
		struct ckt_##name##_args args_ = {__VA_ARGS__};                                    \
		size_t size_ = ckt_##name##_args_size(&args_);                                     \
		uint8_t *bytes_ = calloc(1, size_ + 4);                                            \
		ckt_##name##_args_put(bytes_, &args_);                                             \
		for (size_t cut_ = 0; cut_ < size_; cut_++)                                        \
			IS(double_run(CKT_CUFFT_PROC_##NAME, bytes_, cut_, batched, &results),     \
				INSIDE_GARBAGE);                                                   \
		IS(double_run(CKT_CUFFT_PROC_##NAME, bytes_, size_ + 4, batched, &results),        \
			INSIDE_GARBAGE);                                                           \
		int result_ = double_run(CKT_CUFFT_PROC_##NAME, bytes_, size_, batched, &results); \
		free(bytes_);                                                                      \
		result_;                                                                           \
	})

static uint64_t id(unsigned n)
{
	return ID(LIB_OBJECT, 500 + n);
}

static int status(void)
{
	return (int)ckt_get_u32(&results);
}

static void test_life(void)
{
	double_begin();
	IS(SEND(CUFFTCREATE, cufftCreate, false, .plan = id(1)), CUDA_SUCCESS);
	IS(status(), CUFFT_SUCCESS);
	HAS(double_calls(), "create()");
	/* An id that is taken, and one that is none: what was created for it goes again. */
	YES(SEND(CUFFTCREATE, cufftCreate, false, .plan = id(1)) != CUDA_SUCCESS);
	HAS(double_calls(), "destroy(");
	YES(SEND(CUFFTCREATE, cufftCreate, false, .plan = 5) != CUDA_SUCCESS);
	HAS(double_calls(), "destroy(");
	double_status = CUFFT_SETUP_FAILED;
	IS(SEND(CUFFTCREATE, cufftCreate, false, .plan = id(2)), CUDA_SUCCESS);
	IS(status(), CUFFT_SETUP_FAILED);
	double_status = CUFFT_SUCCESS;
	YES(ckt_library_object_find(&ckt_worker, CKT_LIB_CUFFT, CKT_CUFFT_TYPE_PLAN, id(2)) ==
		NULL);
	double_calls();
	IS(SEND(CUFFTDESTROY, cufftDestroy, true, .plan = id(1)), 0);
	IS(double_deferred(), CUDA_SUCCESS);
	/* Beside the executor: the genuine one may wait for the GPU. */
	ckt_long_call_drain(&ckt_worker, -1);
	HAS(double_calls(), "destroy(");
	SEND(CUFFTDESTROY, cufftDestroy, true, .plan = id(1));
	IS(double_deferred(), CUDA_ERROR_INVALID_HANDLE);
	TEXT(double_calls(), "");
}

static void test_settings(void)
{
	double_begin();
	MUST(SEND(CUFFTCREATE, cufftCreate, false, .plan = id(3)), CUDA_SUCCESS);
	double_calls();
	SEND(FFT_SET_WORK_AREA, fft_set_work_area, true, .plan = id(3), .address = 0x7000);
	HAS(double_calls(), "0x7000)");
	SEND(FFT_SET_AUTO_ALLOCATION, fft_set_auto_allocation, true, .plan = id(3), .allocate = -1);
	HAS(double_calls(), " -1)");
	IS(double_deferred(), CUDA_SUCCESS);
	double_status = CUFFT_INVALID_SIZE;
	SEND(FFT_SET_AUTO_ALLOCATION, fft_set_auto_allocation, true, .plan = id(3), .allocate = 0);
	IS(double_deferred(), CUDA_ERROR_UNKNOWN);
	IS(SEND(FFT_GET_PROPERTY, fft_get_property, false, .plan = id(3), .property = 2),
		CUDA_SUCCESS);
	IS(status(), CUFFT_INVALID_SIZE);
	IS((int64_t)ckt_get_u64(&results), -77);
	/* Plans that are none. */
	IS(SEND(FFT_SIZE, fft_size, false, .plan = id(9)), CUDA_ERROR_INVALID_HANDLE);
	IS(SEND(FFT_SET_PROPERTY, fft_set_property, false, .plan = id(9)),
		CUDA_ERROR_INVALID_HANDLE);
	IS(SEND(FFT_GET_PROPERTY, fft_get_property, false, .plan = id(9)),
		CUDA_ERROR_INVALID_HANDLE);
	IS(SEND(CUFFTXTSETWORKAREAPOLICY, cufftXtSetWorkAreaPolicy, false, .plan = id(9)),
		CUDA_ERROR_INVALID_HANDLE);
	SEND(FFT_SET_WORK_AREA, fft_set_work_area, true, .plan = id(9));
	IS(double_deferred(), CUDA_ERROR_INVALID_HANDLE);
	SEND(FFT_SET_AUTO_ALLOCATION, fft_set_auto_allocation, true, .plan = ckt_handle_primary(0));
	IS(double_deferred(), CUDA_ERROR_INVALID_HANDLE);
	SEND(CUFFTDESTROY, cufftDestroy, true, .plan = id(3));
	double_deferred();
}

static void test_execute(void)
{
	double_begin();
	MUST(SEND(CUFFTCREATE, cufftCreate, false, .plan = id(4)), CUDA_SUCCESS);
	MUST(SEND(CUFFTCREATE, cufftCreate, false, .plan = id(5)), CUDA_SUCCESS);
	double_calls();
	SEND(FFT_EXECUTE, fft_execute, true, .plan = id(4), .function = CUFFT_R2C, .stream = 0,
		.in = 0x100, .out = 0x200, .direction = -1);
	const char *calls = double_calls();
	HAS(calls, "exec_r2c(");
	HAS(calls, "0x100 0x200");
	NO(strstr(calls, "set_stream"));
	/* A stream is told once, and again where it is another. */
	SEND(FFT_EXECUTE, fft_execute, true, .plan = id(4), .function = CUFFT_R2C, .stream = 2,
		.in = 0x100, .out = 0x200);
	HAS(double_calls(), "set_stream(");
	SEND(FFT_EXECUTE, fft_execute, true, .plan = id(4), .function = CUFFT_R2C, .stream = 2,
		.in = 0x100, .out = 0x200);
	NO(strstr(double_calls(), "set_stream("));
	SEND(FFT_EXECUTE, fft_execute, true, .plan = id(5), .function = 0, .stream = 2, .in = 0x100,
		.out = 0x200, .direction = 1);
	calls = double_calls();
	HAS(calls, "set_stream(");
	HAS(calls, "exec_xt(");
	IS(double_deferred(), CUDA_SUCCESS);
	/* A stream that is none, a function that is none, a plan that is none, a failure. */
	SEND(FFT_EXECUTE, fft_execute, true, .plan = id(4), .function = CUFFT_R2C,
		.stream = ID(STREAM, 99));
	IS(double_deferred(), CUDA_ERROR_INVALID_HANDLE);
	TEXT(double_calls(), "");
	SEND(FFT_EXECUTE, fft_execute, true, .plan = id(4), .function = 12345);
	IS(double_deferred(), CUDA_ERROR_UNKNOWN);
	SEND(FFT_EXECUTE, fft_execute, true, .plan = id(9), .function = CUFFT_R2C);
	IS(double_deferred(), CUDA_ERROR_INVALID_HANDLE);
	double_status = CUFFT_EXEC_FAILED;
	SEND(FFT_EXECUTE, fft_execute, true, .plan = id(4), .function = CUFFT_C2C, .direction = 1);
	IS(double_deferred(), CUDA_ERROR_UNKNOWN);
	SEND(CUFFTDESTROY, cufftDestroy, true, .plan = id(4));
	SEND(CUFFTDESTROY, cufftDestroy, true, .plan = id(5));
	double_deferred();
}

/* Functions that the opened library lacks are not supported, and nobody calls them. */
static void test_lacking(void)
{
	double_begin();
	MUST(SEND(CUFFTCREATE, cufftCreate, false, .plan = id(6)), CUDA_SUCCESS);
	ckt_cufft.cufftSetPlanPropertyInt64 = NULL;
	ckt_cufft.cufftXtExec = NULL;
	ckt_cufft.cufftGetVersion = NULL;
	IS(SEND(FFT_SET_PROPERTY, fft_set_property, false, .plan = id(6)), CUDA_SUCCESS);
	IS(status(), CUFFT_NOT_SUPPORTED);
	SEND(FFT_EXECUTE, fft_execute, true, .plan = id(6), .function = 0);
	IS(double_deferred(), CUDA_ERROR_UNKNOWN);
	IS(ckt_library_cufft.version(), 0);
	double_begin();
	IS(ckt_library_cufft.version(), 12345);
	SEND(CUFFTDESTROY, cufftDestroy, true, .plan = id(6));
}

static void test_registered(void)
{
	YES(ckt_library_of(CKT_LIB_CUFFT) == &ckt_library_cufft);
	YES(ckt_library_named("cufft") == &ckt_library_cufft);
	IS(ckt_library_cufft.functions->count, sizeof(struct ckt_cufft_functions) / sizeof(void *));
	/*
	 * What was set before a plan is made counts for it: rpc/api/cufft.api, and the message of
	 * the builds before.
	 */
	static const unsigned making[] = {CKT_CUFFT_PROC_CUFFTMAKEPLAN1D,
		CKT_CUFFT_PROC_CUFFTMAKEPLAN2D, CKT_CUFFT_PROC_CUFFTMAKEPLAN3D,
		CKT_CUFFT_PROC_CUFFTMAKEPLANMANY, CKT_CUFFT_PROC_CUFFTMAKEPLANMANY64,
		CKT_CUFFT_PROC_CUFFTXTMAKEPLANMANY, CKT_CUFFT_PROC_FFT_MAKE};
	for (size_t i = 0; i < COUNT(making); i++)
		IS(ckt_library_cufft.procs[making[i]].flags & (CKT_PROC_SETS | CKT_PROC_SEALS),
			CKT_PROC_SETS | CKT_PROC_SEALS);
	for (unsigned i = 0; i < *ckt_library_cufft.proc_count; i++)
		YES(!ckt_library_cufft.procs[i].handler == !ckt_library_cufft.procs[i].name);
}

UNIT_SUITE(cufft, {"life", test_life}, {"settings", test_settings}, {"execute", test_execute},
	{"lacking", test_lacking}, {"registered", test_registered})
