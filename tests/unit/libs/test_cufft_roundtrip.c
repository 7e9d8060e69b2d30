/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every generated function of cuFFT, from the shim (client/libs/cufft) through its message and the
 * worker's handler to a double of the genuine library: what it is called with is what the program
 * gave, and the plan is on the program's stream before it is executed.
 */
#include "client/libs/cufft/cufft.h"
#include "server/worker/libs/cufft/cufft.h"
#include "tests/unit/libs/roundtrip.h"

#define REFUSED_STATUS CUFFT_INVALID_VALUE
#define NO_OBJECT_STATUS CUFFT_INVALID_PLAN

enum { REAL_PLAN = 77 };

static cufftHandle plan_of_the_test;
static unsigned streams_set;
static cudaStream_t stream_set;

static cufftHandle test_object_plan(void)
{
	return plan_of_the_test;
}

static void expect_object(cufftHandle plan)
{
	cufftHandle real = REAL_PLAN;
	expect_put(&real, sizeof real);
}

/* A value that the function takes; the passes differ. */
static int test_enum(const char *type)
{
	bool second = test_pass == PASS_LONGEST;
	if (!strcmp(type, "cufftType"))
		return second ? CUFFT_Z2Z : CUFFT_C2C;
	if (!strcmp(type, "cudaDataType"))
		return second ? CUDA_C_64F : CUDA_C_32F;
	return 1 + second;
}

#include "tests/unit/libs/cufft_roundtrip.inc"

static cufftResult create(cufftHandle *ret)
{
	*ret = REAL_PLAN;
	return CUFFT_SUCCESS;
}

static cufftResult destroy(cufftHandle plan)
{
	return plan == REAL_PLAN ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

static cufftResult set_stream(cufftHandle plan, cudaStream_t stream)
{
	streams_set++;
	stream_set = stream;
	return plan == REAL_PLAN ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

static void begin(void)
{
	double_install();
	ckt_cufft.cufftCreate = create;
	ckt_cufft.cufftDestroy = destroy;
	ckt_cufft.cufftSetStream = set_stream;
	streams_set = 0;
	test_pass = PASS_SMALL;
	MUST(cufftCreate(&plan_of_the_test), CUFFT_SUCCESS);
}

static void end(void)
{
	IS(cufftDestroy(plan_of_the_test), CUFFT_SUCCESS);
	IS(loop_deferred(), CUDA_SUCCESS);
}

static void test_everything(void)
{
	begin();
	/* All that the table has but what is written by hand. */
	YES(sizeof roundtrips / sizeof *roundtrips >= 31);
	roundtrip_mode(roundtrips, sizeof roundtrips / sizeof *roundtrips);
	IS(streams_set, 0);
	end();
}

static void test_streams(void)
{
	begin();
	test_cufftMakePlan1d();
	MUST(cufftSetStream(plan_of_the_test, (cudaStream_t)2), CUFFT_SUCCESS);
	IS(streams_set, 0);
	test_cufftExecC2C();
	IS(streams_set, 1);
	/* The driver's own per-thread stream. */
	YES(stream_set == (cudaStream_t)CU_STREAM_PER_THREAD);
	test_cufftExecZ2D();
	IS(streams_set, 1);
	MUST(cufftSetStream(plan_of_the_test, NULL), CUFFT_SUCCESS);
	test_cufftXtExec();
	IS(streams_set, 2);
	YES(stream_set == NULL);
	end();
}

/* A stream that captures gets the call as a node, with its stream; nothing is sent. */
static void test_captures(void)
{
	begin();
	test_cufftMakePlan1d();
	loop_captures = true;
	loop_captured = 0;
	loop_mark();
	IS(cufftExecC2C(plan_of_the_test, NULL, NULL, CUFFT_FORWARD), CUFFT_SUCCESS);
	IS(loop_captured, CKT_LIB_PROC(CKT_LIB_CUFFT, CKT_CUFFT_PROC_CUFFTEXECC2C));
	IS(loop_batched + loop_waited, 0);
	loop_capture_ended = true;
	IS(cufftExecC2C(plan_of_the_test, NULL, NULL, CUFFT_FORWARD), CUFFT_EXEC_FAILED);
	loop_captures = loop_capture_ended = false;
	end();
}

/* Arrays that are not as long as the rank says come from no client of ours. */
static void test_wrong_arrays(void)
{
	static const uint8_t bytes[12] = {4};
	begin();
	struct ckt_lib_object *plan = ckt_cufft_take_plan(plan_of_the_test);
	const struct {
		int32_t rank;
		uint32_t n, inembed, onembed;
	} wrong[] = {{3, 8, 12, 12}, {3, 12, 8, 12}, {3, 12, 12, 4}, {0, 0, 0, 0}, {-1, 12, 0, 0},
		{1, 4, 0, 12}, {2, 0, 8, 8}};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		const struct ckt_cufftMakePlanMany_args args = {.plan = plan->id,
			.rank = wrong[i].rank,
			.n = bytes,
			.n_len = wrong[i].n,
			.inembed = bytes,
			.inembed_len = wrong[i].inembed,
			.onembed = bytes,
			.onembed_len = wrong[i].onembed};
		uint8_t message[256];
		size_t size = (size_t)(ckt_cufftMakePlanMany_args_put(message, &args) - message);
		const struct ckt_proc *proc = &ckt_cufft_procs[CKT_CUFFT_PROC_CUFFTMAKEPLANMANY];
		IS(inside_run(ckt_lib_prog(CKT_LIB_CUFFT), CKT_CUFFT_PROC_CUFFTMAKEPLANMANY, proc,
			   message, size, false)
				->result,
			CKT_WCALL_GARBAGE);
	}
	end();
}

UNIT_SUITE(cufft_roundtrip, {"everything", test_everything}, {"streams", test_streams},
	{"captures", test_captures}, {"wrong arrays", test_wrong_arrays})
