/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/libs/nccl/nccl_group.c: what a client may not send, what fails, and counts. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/nccl_kit.h"

static uint8_t bytes[2 * CKT_NCCL_OPERATION_BYTES];

static int send_one(struct ckt_nccl_operation o, uint32_t size)
{
	ckt_nccl_operation_put(bytes, &o);
	return NCCL(NCCL_GROUP, nccl_group, true, .operations = bytes, .operations_len = size)
		->result;
}

static void test_refused(void)
{
	struct ckt_nccl_operation o = {
		.type = ncclFloat, .comm = NCCL_ID(1), .stream = 2, .count = 1};
	nccl_begin();
	nccl_make(NCCL_ID(1), 2, 0);
	uint64_t before = ckt_worker_nccl_issued(&ckt_worker);
	IS(send_one(o, 0), INSIDE_GARBAGE);
	IS(send_one(o, CKT_NCCL_OPERATION_BYTES - 1), INSIDE_GARBAGE);
	IS(send_one(o, CKT_NCCL_OPERATION_BYTES + 4), INSIDE_GARBAGE);
	o.comm = NCCL_ID(2);
	IS(send_one(o, CKT_NCCL_OPERATION_BYTES), CUDA_ERROR_INVALID_HANDLE);
	o.comm = NCCL_ID(1);
	o.stream = 12345;
	IS(send_one(o, CKT_NCCL_OPERATION_BYTES), CUDA_ERROR_INVALID_HANDLE);
	o.stream = 2;
	o.function = CKT_NCCL_FUNCTIONS;
	IS(send_one(o, CKT_NCCL_OPERATION_BYTES), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_worker_nccl_issued(&ckt_worker) - before, 0);
	TEXT(double_said(), "");
	/* An operator that there is not: nothing of the group is counted. */
	o.function = CKT_NCCL_ALL_REDUCE;
	o.operator= 9;
	IS(send_one(o, CKT_NCCL_OPERATION_BYTES), CUDA_ERROR_UNKNOWN);
	IS(ckt_worker_nccl_issued(&ckt_worker) - before, 0);
	o.operator= ncclSum;
	IS(send_one(o, CKT_NCCL_OPERATION_BYTES), CUDA_SUCCESS);
	IS(nccl_group(NCCL_ID(1), 3), CUDA_SUCCESS);
	IS(ckt_worker_nccl_issued(&ckt_worker) - before, 4);
	IS(NCCL(NCCL_GROUP_MEET, nccl_group_meet, false, .simulate = 2, .operations = bytes,
		   .operations_len = CKT_NCCL_OPERATION_BYTES)
			->result,
		INSIDE_GARBAGE);
	IS(nccl_end(NCCL_ID(1), CKT_NCCL_DESTROY), ncclSuccess);
	IS(double_living(), 0);
}

static int operator_of(uint32_t number, uint32_t residence, uint32_t length)
{
	static const uint8_t scalar[16] = {1, 2};
	return NCCL(NCCL_OPERATOR, nccl_operator, true, .comm = NCCL_ID(3), .operator= number,
		.type = ncclFloat, .residence = residence, .scalar = scalar, .scalar_len = length)
		->result;
}

static void test_operators(void)
{
	nccl_begin();
	nccl_make(NCCL_ID(3), 2, 0);
	IS(operator_of(4, 1, 8), INSIDE_GARBAGE);
	IS(operator_of(CKT_NCCL_OPERATORS + CKT_NCCL_OPERATORS_MAX, 1, 8), INSIDE_GARBAGE);
	IS(operator_of(5, 3, 8), INSIDE_GARBAGE);
	IS(operator_of(5, 1, 7), INSIDE_GARBAGE);
	TEXT(double_said(), "");
	IS(operator_of(5, 1, 8), CUDA_SUCCESS);
	/* The last one of a number counts; the one before ends. */
	IS(operator_of(5, 1, 8), CUDA_SUCCESS);
	const char *said = double_said(),
		   *made = strstr(said, "CreatePreMulSum 1000 of 0102 type 7"),
		   *ended = strstr(said, "Destroy 1000 ");
	YES(made && ended && made < ended && strstr(ended, "CreatePreMulSum 1001 of 0102 type 7"));
	IS(operator_of(5, CKT_NCCL_OPERATOR_ENDS, 0), CUDA_SUCCESS);
	/* It has ended already, as a restore's log may say again. */
	IS(operator_of(5, CKT_NCCL_OPERATOR_ENDS, 0), CUDA_SUCCESS);
	double_said();
	double_answer("ncclRedOpCreatePreMulSum", ncclInvalidArgument);
	IS(operator_of(6, 0, 8), CUDA_ERROR_UNKNOWN);
	IS(nccl_end(NCCL_ID(3), CKT_NCCL_DESTROY), ncclSuccess);
	IS(double_living(), 0);
	IS(double_astray(), 0);
}

UNIT_SUITE(worker_nccl_group, {"groups that are none", test_refused}, {"operators", test_operators})
