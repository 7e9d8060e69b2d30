/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/libs/accepted_calls.c: a bounded set of hashes, which forgets where it is full; what of an
 * address matters.
 */
#include "client/libs/libs.h"
#include "rpc/cublaslt.h"
#include "tests/unit/suite.h"

static void test_set(void)
{
	ckt_lib_taken_clear();
	NO(ckt_lib_taken(5));
	ckt_lib_take(5);
	YES(ckt_lib_taken(5));
	NO(ckt_lib_taken(5 + 1024));
	/* 0 is a hash as any other, also where it is an empty place. */
	NO(ckt_lib_taken(0));
	ckt_lib_take(0);
	YES(ckt_lib_taken(0));
	ckt_lib_taken_clear();
	NO(ckt_lib_taken(5));
}

/* Eight of a bucket are kept, the last among them. */
static void test_full(void)
{
	unsigned kept = 0;
	ckt_lib_taken_clear();
	for (uint64_t i = 1; i <= 100; i++) {
		ckt_lib_take(i << 10);
		YES(ckt_lib_taken(i << 10));
	}
	for (uint64_t i = 1; i <= 100; i++)
		kept += ckt_lib_taken(i << 10);
	IS(kept, 8);
	ckt_lib_taken_clear();
}

static void test_alignment(void)
{
	IS(ckt_lib_alignment(0), 0);
	IS(ckt_lib_alignment(0x7f0000000001), 1);
	IS(ckt_lib_alignment(0x7f0000000110), 16);
	IS(ckt_lib_alignment(0x7f0000000000), CKT_LT_ALIGNMENT_MAX);
}

/* A sequence that grows has few contents, and one of no rows is another. */
static void test_number(void)
{
	static const uint64_t expected[] = {0, 1, 2, 1, 4, 1, 2, 1, 8, 1, 2, 1, 4, 1, 2, 1, 16, 1};
	for (uint64_t i = 0; i < COUNT(expected); i++)
		IS(ckt_lib_number(i), expected[i]);
	IS(ckt_lib_number(1024), 16);
	IS(ckt_lib_number((uint64_t)-6), 2);
	NO(ckt_lib_content((const uint64_t[]){1, 2}, 2) ==
		ckt_lib_content((const uint64_t[]){2, 1}, 2));
	NO(ckt_lib_content((const uint64_t[]){1, 0}, 2) ==
		ckt_lib_content((const uint64_t[]){1}, 1));
	IS(ckt_lib_content((const uint64_t[]){1, 2}, 2),
		ckt_lib_content((const uint64_t[]){1, 2}, 2));
}

/* A table in which waiting answers `answer`, or fails. */
static CUresult wait_result;
static uint8_t answer[4];
static size_t answer_bytes = sizeof answer;

static CUresult fake_wait(struct ckt_call *call, struct ckt_reply *ret_reply)
{
	*ret_reply = (struct ckt_reply){.results = {.p = answer, .end = answer + answer_bytes}};
	return wait_result;
}

static void fake_release(struct ckt_reply *reply)
{
}

static void test_learn(void)
{
	const struct ckt_client_table table = {.wait = fake_wait, .release = fake_release};
	struct ckt_call call = {0};
	int status = 0;
	ckt_lib_taken_clear();
	answer[3] = 15;
	IS(ckt_lib_learn(&table, &call, 7, &status), CUDA_SUCCESS);
	IS(status, 15);
	NO(ckt_lib_taken(7));
	wait_result = CUDA_ERROR_UNKNOWN;
	answer[3] = 0;
	IS(ckt_lib_learn(&table, &call, 7, &status), CUDA_ERROR_UNKNOWN);
	NO(ckt_lib_taken(7));
	wait_result = CUDA_SUCCESS;
	/* An answer that holds no status is none. */
	answer_bytes = 0;
	IS(ckt_lib_learn(&table, &call, 7, &status), CUDA_ERROR_UNKNOWN);
	NO(ckt_lib_taken(7));
	answer_bytes = sizeof answer;
	IS(ckt_lib_learn(&table, &call, 7, &status), CUDA_SUCCESS);
	IS(status, 0);
	YES(ckt_lib_taken(7));
	ckt_lib_taken_clear();
}

UNIT_SUITE(first, {"set", test_set}, {"full", test_full}, {"alignment", test_alignment},
	{"numbers", test_number}, {"learn", test_learn})
