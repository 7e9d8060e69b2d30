/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/nccl.c: operations, configs and identities as both sides see them. */
#include "rpc/nccl.h"

#include "tests/unit/suite.h"

static void test_operation(void)
{
	const struct ckt_nccl_operation sent = {.function = 3,
		.type = 7,
		.operator= 11,
		.root = -2,
		.comm = 1ull << 60 | 5,
		.stream = 2,
		.send = 0x200000000100,
		.receive = ~0ull,
		.count = 1ull << 40};
	struct ckt_nccl_operation got;
	uint8_t bytes[CKT_NCCL_OPERATION_BYTES];
	IS(ckt_nccl_operation_put(bytes, &sent) - bytes, CKT_NCCL_OPERATION_BYTES);
	memset(&got, 0xff, sizeof got);
	ckt_nccl_operation_get(bytes, &got);
	YES(got.function == 3 && got.type == 7 && got.operator== 11 && got.root == - 2);
	YES(got.comm == sent.comm && got.stream == 2 && got.send == sent.send &&
		got.receive == ~0ull && got.count == 1ull << 40);
}

/* A config of NCCL 2.17 ends with split_share; what it does not have is unset. */
static void test_config(void)
{
	struct ckt_nccl_config config = {.size = sizeof config, .magic = CKT_NCCL_CONFIG_MAGIC},
			       made;
	uint32_t numbers[CKT_NCCL_NUMBERS];
	uint8_t xdr[4 * CKT_NCCL_NUMBERS], *p = xdr;
	for (unsigned i = 0; i < CKT_NCCL_NUMBERS; i++) {
		int32_t value = 100 + (int32_t)i;
		memcpy((uint8_t *)&config + ckt_nccl_numbers[i], &value, sizeof value);
	}
	ckt_nccl_config_numbers(&config, offsetof(struct ckt_nccl_config, traffic_class), numbers);
	IS(numbers[0], 100);
	IS(numbers[4], 104);
	IS((int32_t)numbers[5], CKT_NCCL_CONFIG_UNSET);
	ckt_nccl_config_numbers(&config, sizeof config, numbers);
	IS(numbers[15], 115);
	for (unsigned i = 0; i < CKT_NCCL_NUMBERS; i++)
		p = ckt_put_u32(p, numbers[i]);
	ckt_nccl_config_make(xdr, CKT_NCCL_NUMBERS, 22809, &made);
	IS(made.size, sizeof made);
	IS(made.magic, CKT_NCCL_CONFIG_MAGIC);
	IS(made.version, 22809);
	IS(made.blocking, 100);
	IS(made.graph_order, 115);
	YES(!made.net && !made.name);
	/* A client that knows fewer, and one that knows more. */
	ckt_nccl_config_make(xdr, 2, 1, &made);
	IS(made.cga_cluster_size, 101);
	IS(made.min_ctas, CKT_NCCL_CONFIG_UNSET);
	ckt_nccl_config_make(NULL, 0, 1, &made);
	IS(made.blocking, CKT_NCCL_CONFIG_UNSET);
}

/* Each number is a field of its own, within the struct and no pointer's place. */
static void test_places(void)
{
	for (unsigned i = 0; i < CKT_NCCL_NUMBERS; i++) {
		YES(ckt_nccl_numbers[i] >= offsetof(struct ckt_nccl_config, blocking) &&
			ckt_nccl_numbers[i] + 4 <= sizeof(struct ckt_nccl_config));
		YES(ckt_nccl_numbers[i] != offsetof(struct ckt_nccl_config, net) &&
			ckt_nccl_numbers[i] != offsetof(struct ckt_nccl_config, name));
		YES(!i || ckt_nccl_numbers[i] > ckt_nccl_numbers[i - 1]);
	}
}

static void test_identity(void)
{
	uint8_t parent[CKT_NCCL_ID_BYTES] = {1, 2, 3},
		other[CKT_NCCL_ID_BYTES] = {1, 2, 3, [127] = 1}, a[CKT_NCCL_ID_BYTES],
		b[CKT_NCCL_ID_BYTES];
	int color = 0, second = 1;
	ckt_nccl_identity_derive(parent, 0, CKT_NCCL_SPLIT, &color, sizeof color, a);
	ckt_nccl_identity_derive(parent, 0, CKT_NCCL_SPLIT, &color, sizeof color, b);
	YES(!memcmp(a, b, sizeof a));
	ckt_nccl_identity_derive(parent, 1, CKT_NCCL_SPLIT, &color, sizeof color, b);
	YES(memcmp(a, b, sizeof a));
	ckt_nccl_identity_derive(parent, 0, CKT_NCCL_SHRINK, &color, sizeof color, b);
	YES(memcmp(a, b, sizeof a));
	ckt_nccl_identity_derive(parent, 0, CKT_NCCL_SPLIT, &second, sizeof second, b);
	YES(memcmp(a, b, sizeof a));
	ckt_nccl_identity_derive(other, 0, CKT_NCCL_SPLIT, &color, sizeof color, b);
	YES(memcmp(a, b, sizeof a));
}

/* The arguments of nccl_comm as a log has them, up to the identity. */
static size_t put_comm(uint8_t *bytes, int ranks, int rank, uint32_t kind, uint32_t identity_bytes)
{
	static const uint8_t identity[CKT_NCCL_ID_BYTES + 4] = {1, 2, 3};
	uint8_t *p = ckt_put_u64(ckt_put_u64(bytes, 7), 8);
	p = ckt_put_u32(ckt_put_u32(ckt_put_u32(p, (uint32_t)ranks), (uint32_t)rank), kind);
	for (uint32_t i = 0; i < 3; i++)
		p = ckt_put_u32(p, 100 + i);
	p = ckt_put_u32(p, identity_bytes);
	memcpy(p, identity, identity_bytes);
	return (size_t)(p + identity_bytes - bytes);
}

static void test_member(void)
{
	uint8_t bytes[256];
	struct ckt_nccl_member member = {0};
	size_t size = put_comm(bytes, 4, 3, CKT_NCCL_SPLIT, CKT_NCCL_ID_BYTES);
	YES(ckt_nccl_member_read(bytes, size, &member));
	YES(member.ranks == 4 && member.rank == 3 && member.identity[0] == 1 &&
		member.identity[2] == 3 && !member.identity[127]);
	/* What follows is of no matter, but nothing may lack. */
	YES(ckt_nccl_member_read(bytes, size + 8, &member));
	unsigned taken = 0;
	for (size_t n = 0; n < size; n++)
		taken += ckt_nccl_member_read(bytes, n, &member);
	IS(taken, 0);
	const struct {
		int ranks, rank;
		uint32_t kind, identity_bytes;
	} wrong[] = {{4, 4, 0, 128}, {4, -1, 0, 128}, {0, 0, 0, 128}, {-1, -1, CKT_NCCL_NONE, 128},
		{4, 3, CKT_NCCL_NONE, 128}, {4, 3, 99, 128}, {CKT_NCCL_RANKS_MAX + 1, 3, 0, 128},
		{4, 3, 0, 124}, {4, 3, 0, 132}};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		size = put_comm(bytes, wrong[i].ranks, wrong[i].rank, wrong[i].kind,
			wrong[i].identity_bytes);
		NO(ckt_nccl_member_read(bytes, size, &member));
	}
}

UNIT_SUITE(nccl_messages, {"a rank in a log", test_member},
	{"an operation goes there and back", test_operation},
	{"configs of older and newer releases", test_config},
	{"the numbers of a config are where they should be", test_places},
	{"identities differ in all that tells communicators apart", test_identity})
