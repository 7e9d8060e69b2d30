/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's handlers in the test's own process, over the double of tests/unit/nccl. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "tests/unit/nccl/double.h"
#include "tests/unit/worker/inside.h"

#define NCCL_ID(n) ckt_handle_make(CKT_KIND_LIB_OBJECT, 1, 9000 + (n))

static inline struct inside_reply *nccl_run(
	uint32_t proc, const uint8_t *args, size_t size, bool batched)
{
	return inside_run(
		ckt_lib_prog(CKT_LIB_NCCL), proc, &ckt_nccl_procs[proc], args, size, batched);
}

#define NCCL(PROC, name, batched, ...)                                          \
	({                                                                      \
		struct ckt_##name##_args args_ = {__VA_ARGS__};                 \
		size_t size_ = ckt_##name##_args_size(&args_);                  \
		uint8_t *bytes_ = malloc(size_ + 1);                            \
		ckt_##name##_args_put(bytes_, &args_);                          \
		struct inside_reply *reply_ =                                   \
			nccl_run(CKT_NCCL_PROC_##PROC, bytes_, size_, batched); \
		free(bytes_);                                                   \
		reply_;                                                         \
	})

/* The worker does its ordinary work: no restore. */
static inline void nccl_begin(void)
{
	double_begin();
	ckt_worker.go = true;
}

static inline struct inside_reply *nccl_send(
	uint64_t id, int ranks, int rank, uint32_t kind, uint64_t parent)
{
	static uint8_t identity[CKT_NCCL_ID_BYTES] = {5, 6};
	return NCCL(NCCL_COMM, nccl_comm, true, .id = id, .parent = parent, .ranks = ranks,
		.rank = rank, .kind = kind, .identity = identity, .identity_len = sizeof identity,
		.ids = identity, .ids_len = kind == CKT_NCCL_INIT ? sizeof identity : 0);
}

/* The status of its making. */
static inline int nccl_settle(uint64_t id)
{
	struct ckt_nccl_settle_res res;
	struct inside_reply *reply =
		NCCL(NCCL_SETTLE, nccl_settle, false, .comms = &id, .comms_len = 1);
	MUST(reply->result, CUDA_SUCCESS);
	MUST(ckt_nccl_settle_res_get(&reply->results, &res) &&
			res.states_len == CKT_NCCL_SETTLE_WORDS,
		true);
	return (int)ckt_xdr_u32(res.states_xdr, 0);
}

static inline void nccl_make(uint64_t id, int ranks, int rank)
{
	MUST(nccl_send(id, ranks, rank, CKT_NCCL_INIT, 0)->result, CUDA_SUCCESS);
	MUST(nccl_settle(id), ncclSuccess);
	double_said();
}

static inline int nccl_end(uint64_t id, uint32_t how)
{
	struct ckt_nccl_end_res res;
	struct inside_reply *reply = NCCL(NCCL_END, nccl_end, false, .comm = id, .how = how);
	MUST(reply->result, CUDA_SUCCESS);
	MUST(ckt_nccl_end_res_get(&reply->results, &res), true);
	return res.status;
}

/* So many sums of one element, batched: the session's error. */
static inline int nccl_group(uint64_t comm, unsigned count)
{
	struct ckt_nccl_operation o = {.function = CKT_NCCL_ALL_REDUCE,
		.type = ncclFloat,
		.comm = comm,
		.stream = 2,
		.send = 16,
		.receive = 32,
		.count = 1};
	uint8_t *bytes = malloc(count * CKT_NCCL_OPERATION_BYTES + 1), *p = bytes;
	for (unsigned i = 0; i < count; i++)
		p = ckt_nccl_operation_put(p, &o);
	int result = NCCL(NCCL_GROUP, nccl_group, true, .operations = bytes,
		.operations_len = (uint32_t)(p - bytes))
			     ->result;
	free(bytes);
	return result;
}
