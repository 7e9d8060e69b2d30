/* SPDX-License-Identifier: Apache-2.0 */
/* How both sides read a config and an identity of NCCL; see nccl.h. */
#include "rpc/nccl.h"

const size_t ckt_nccl_numbers[CKT_NCCL_NUMBERS] = {
	offsetof(struct ckt_nccl_config, blocking),
	offsetof(struct ckt_nccl_config, cga_cluster_size),
	offsetof(struct ckt_nccl_config, min_ctas),
	offsetof(struct ckt_nccl_config, max_ctas),
	offsetof(struct ckt_nccl_config, split_share),
	offsetof(struct ckt_nccl_config, traffic_class),
	offsetof(struct ckt_nccl_config, collnet),
	offsetof(struct ckt_nccl_config, cta_policy),
	offsetof(struct ckt_nccl_config, shrink_share),
	offsetof(struct ckt_nccl_config, nvls_ctas),
	offsetof(struct ckt_nccl_config, channels_per_peer),
	offsetof(struct ckt_nccl_config, nvlink_centric),
	offsetof(struct ckt_nccl_config, graph_usage),
	offsetof(struct ckt_nccl_config, rma_contexts),
	offsetof(struct ckt_nccl_config, p2p_peers),
	offsetof(struct ckt_nccl_config, graph_order),
};

void ckt_nccl_config_numbers(
	const struct ckt_nccl_config *config, size_t bytes, uint32_t numbers[CKT_NCCL_NUMBERS])
{
	for (unsigned i = 0; i < CKT_NCCL_NUMBERS; i++) {
		numbers[i] = (uint32_t)CKT_NCCL_CONFIG_UNSET;
		if (ckt_nccl_numbers[i] + sizeof(uint32_t) <= bytes)
			memcpy(&numbers[i], (const uint8_t *)config + ckt_nccl_numbers[i],
				sizeof(uint32_t));
	}
}

void ckt_nccl_config_make(
	const uint8_t *numbers_xdr, uint32_t count, uint32_t version, struct ckt_nccl_config *ret)
{
	*ret = (struct ckt_nccl_config){
		.size = sizeof *ret, .magic = CKT_NCCL_CONFIG_MAGIC, .version = version};
	for (uint32_t i = 0; i < CKT_NCCL_NUMBERS; i++) {
		uint32_t number = (uint32_t)CKT_NCCL_CONFIG_UNSET;
		if (i < count) {
			memcpy(&number, numbers_xdr + 4 * (size_t)i, 4);
			number = be32toh(number);
		}
		memcpy((uint8_t *)ret + ckt_nccl_numbers[i], &number, sizeof number);
	}
}

bool ckt_nccl_member_read(const uint8_t *args, size_t bytes, struct ckt_nccl_member *ret_member)
{
	struct ckt_cursor c = {.p = args, .end = args + bytes};
	uint32_t length = 0;
	/*
	 * Skips its own id and its parent's, and after the kind colour, key and flags: a restore
	 * does not use them.
	 */
	ckt_get_u64(&c);
	ckt_get_u64(&c);
	int32_t ranks = (int32_t)ckt_get_u32(&c), rank = (int32_t)ckt_get_u32(&c);
	uint32_t kind = ckt_get_u32(&c);
	for (int i = 0; i < 3; i++)
		ckt_get_u32(&c);
	const uint8_t *identity = ckt_get_opaque(&c, CKT_NCCL_ID_BYTES, &length);
	if (c.bad || length != CKT_NCCL_ID_BYTES || kind >= CKT_NCCL_NONE || ranks < 1 ||
		ranks > CKT_NCCL_RANKS_MAX || rank < 0 || rank >= ranks)
		return false;
	*ret_member = (struct ckt_nccl_member){.ranks = ranks, .rank = rank};
	memcpy(ret_member->identity, identity, CKT_NCCL_ID_BYTES);
	return true;
}

/* FNV-1a. */
static uint64_t hash(uint64_t state, const void *data, size_t size)
{
	const uint8_t *bytes = data;
	for (size_t i = 0; i < size; i++)
		state = (state ^ bytes[i]) * 0x100000001b3ull;
	return state;
}

void ckt_nccl_identity_derive(const uint8_t parent[CKT_NCCL_ID_BYTES], uint32_t number,
	uint32_t kind, const void *key, size_t key_bytes, uint8_t ret_identity[CKT_NCCL_ID_BYTES])
{
	static const uint64_t seeds[] = {0xcbf29ce484222325ull, 0x9e3779b97f4a7c15ull};
	static const char mark[8] = "ckt-nccl";
	uint8_t words[8];
	ckt_put_u32(ckt_put_u32(words, number), kind);
	memset(ret_identity, 0, CKT_NCCL_ID_BYTES);
	memcpy(ret_identity, mark, sizeof mark);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t state =
			hash(hash(hash(seeds[i], parent, CKT_NCCL_ID_BYTES), words, sizeof words),
				key, key_bytes);
		ckt_put_u64(ret_identity + sizeof mark + 8 * i, state);
	}
}
