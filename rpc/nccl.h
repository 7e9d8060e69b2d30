/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of NCCL's messages that rpc/api/nccl.api calls "bytes": the operations of a group, the
 * numbers of an ncclConfig_t, and the identity of a communicator.
 *
 * All ranks of a communicator know its identity without exchanging messages: it is the unique ID
 * that the communicator was made from. For a split communicator it is a hash of its parent's
 * identity, of how many were split from the parent before, and of its colour.  It never changes.  A
 * restore makes a communicator from a new unique ID, and the ranks' workers find the same ID by the
 * identity.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "rpc/wire.h"

enum {
	CKT_NCCL_ID_BYTES = 128,
	CKT_NCCL_IDS_MAX = 1024, /* unique ids of one communicator */
	CKT_NCCL_EXCLUDED_MAX = 4096,
	CKT_NCCL_SETTLE_MAX = 1024, /* communicators that are awaited together */
	CKT_NCCL_SETTLE_WORDS = 4,  /* of each: status, ranks, rank, 0 */
	CKT_NCCL_NAME_MAX = 256,
	CKT_NCCL_RANKS_MAX = 1 << 20,
};

/* How a communicator is made; NONE: the attempt failed, as a log remembers. */
enum ckt_nccl_kind {
	CKT_NCCL_INIT,
	CKT_NCCL_SPLIT,
	CKT_NCCL_SHRINK,
	CKT_NCCL_NONE,
	CKT_NCCL_KINDS
};

/* What ends, and how.  FORGET: the client drops it without asking any rank. */
enum ckt_nccl_how {
	CKT_NCCL_FINALIZE,
	CKT_NCCL_DESTROY,
	CKT_NCCL_ABORT,
	CKT_NCCL_REVOKE,
	CKT_NCCL_FORGET,
	CKT_NCCL_HOWS
};

enum ckt_nccl_function {
	CKT_NCCL_ALL_REDUCE,
	CKT_NCCL_REDUCE,
	CKT_NCCL_BROADCAST,
	CKT_NCCL_REDUCE_SCATTER,
	CKT_NCCL_ALL_GATHER,
	CKT_NCCL_ALL_TO_ALL,
	CKT_NCCL_GATHER,
	CKT_NCCL_SCATTER,
	CKT_NCCL_SEND,
	CKT_NCCL_RECEIVE,
	CKT_NCCL_FUNCTIONS
};

/* NCCL's own operators; numbers of the program's operators begin here. */
enum { CKT_NCCL_OPERATORS = 5, CKT_NCCL_OPERATORS_MAX = 4096, CKT_NCCL_OPERATOR_ENDS = 2 };

struct ckt_nccl_operation {
	uint32_t function; /* enum ckt_nccl_function */
	/* an ncclDataType_t; an ncclRedOp_t, or the client's number */
	uint32_t type, operator;
	int32_t root;          /* or the peer */
	uint64_t comm, stream; /* ids */
	uint64_t send, receive, count;
};

enum {
	CKT_NCCL_OPERATION_BYTES = 56,
	CKT_NCCL_OPERATIONS_MAX = 1040384 / CKT_NCCL_OPERATION_BYTES
};

static inline uint8_t *ckt_nccl_operation_put(uint8_t *p, const struct ckt_nccl_operation *o)
{
	p = ckt_put_u32(p, o->function);
	p = ckt_put_u32(p, o->type);
	p = ckt_put_u32(p, o->operator);
	p = ckt_put_u32(p, (uint32_t)o->root);
	p = ckt_put_u64(p, o->comm);
	p = ckt_put_u64(p, o->stream);
	p = ckt_put_u64(p, o->send);
	p = ckt_put_u64(p, o->receive);
	return ckt_put_u64(p, o->count);
}

static inline void ckt_nccl_operation_get(const uint8_t *p, struct ckt_nccl_operation *ret)
{
	struct ckt_cursor c = {.p = p, .end = p + CKT_NCCL_OPERATION_BYTES};
	ret->function = ckt_get_u32(&c);
	ret->type = ckt_get_u32(&c);
	ret->operator= ckt_get_u32(&c);
	ret->root = (int32_t)ckt_get_u32(&c);
	ret->comm = ckt_get_u64(&c);
	ret->stream = ckt_get_u64(&c);
	ret->send = ckt_get_u64(&c);
	ret->receive = ckt_get_u64(&c);
	ret->count = ckt_get_u64(&c);
}

/* An ncclConfig_t as NCCL 2.30 has it; an older release's is a prefix of it and gives its size. */
struct ckt_nccl_config {
	size_t size;
	uint32_t magic, version;
	int32_t blocking, cga_cluster_size, min_ctas, max_ctas;
	const char *net;
	int32_t split_share, traffic_class;
	const char *name;
	int32_t collnet, cta_policy, shrink_share, nvls_ctas, channels_per_peer, nvlink_centric;
	int32_t graph_usage, rma_contexts, p2p_peers, graph_order;
};

#define CKT_NCCL_CONFIG_MAGIC 0xcafebeefu
#define CKT_NCCL_CONFIG_UNSET INT_MIN

/* The offsets of its numbers, in their order on the wire; append new ones. */
enum { CKT_NCCL_NUMBERS = 16, CKT_NCCL_NUMBERS_MAX = 32 };
extern const size_t ckt_nccl_numbers[CKT_NCCL_NUMBERS];

/* How many numbers `bytes` of a config hold; the rest are UNSET. */
void ckt_nccl_config_numbers(
	const struct ckt_nccl_config *config, size_t bytes, uint32_t numbers[CKT_NCCL_NUMBERS]);
/* Copies the numbers as they came, without those that this build does not know. */
void ckt_nccl_config_make(
	const uint8_t *numbers_xdr, uint32_t count, uint32_t version, struct ckt_nccl_config *ret);

/* A rank of a communicator, as an image's log has it. */
struct ckt_nccl_member {
	uint8_t identity[CKT_NCCL_ID_BYTES];
	int32_t ranks, rank;
};

/*
 * Decodes the arguments of procedure nccl_comm (rpc/api/nccl.api); false if they make no
 * communicator.
 */
enum { CKT_NCCL_COMM_PROC = 12 };
bool ckt_nccl_member_read(const uint8_t *args, size_t bytes, struct ckt_nccl_member *ret_member);

/*
 * The identity of a communicator that is made from another; key: the colour, or what else
 * distinguishes it from its siblings.
 */
void ckt_nccl_identity_derive(const uint8_t parent[CKT_NCCL_ID_BYTES], uint32_t number,
	uint32_t kind, const void *key, size_t key_bytes, uint8_t ret_identity[CKT_NCCL_ID_BYTES]);
