/* SPDX-License-Identifier: Apache-2.0 */
/* The two fixed headers, byte by byte, every truncation and every changed constant; the cursor. */
#include <CUnit/Basic.h>

#include "rpc/wire.h"

static const struct ckt_call_header call = {.xid = 0x01020304,
	.prog = CKT_CUDA_PROG,
	.vers = 1,
	.proc = 9,
	.seq = 0x1112131415161718,
	.acked = 0x2122232425262728,
	.thread = 3,
	.flags = CKT_CALL_BATCHED,
	.context = 0x3132333435363738};
static const struct ckt_reply_header reply = {.xid = 0x01020304,
	.executed = 0x1112131415161718,
	.flags = 5,
	.deferred = -2,
	.accept_stat = 4};

static void test_call(void)
{
	static const uint8_t golden[CKT_CALL_HEADER_SIZE] = {1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2,
		0x20, 0x43, 0x4b, 1, 0, 0, 0, 1, 0, 0, 0, 9, 0x20, 0x43, 0x4b, 0x10, 0, 0, 0, 32,
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26,
		0x27, 0x28, 0, 0, 0, 3, 0, 0, 0, 1, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
		0, 0, 0, 0, 0, 0, 0, 0};
	uint8_t bytes[CKT_CALL_HEADER_SIZE];
	struct ckt_call_header back = {0};
	CU_ASSERT_PTR_EQUAL(ckt_call_header_put(bytes, &call), bytes + sizeof bytes);
	CU_ASSERT_EQUAL(memcmp(bytes, golden, sizeof golden), 0);
	struct ckt_cursor c = {bytes, bytes + sizeof bytes, false};
	CU_ASSERT_TRUE(ckt_call_header_get(&c, &back));
	CU_ASSERT_TRUE(ckt_cursor_done(&c));
	CU_ASSERT_EQUAL(memcmp(&back, &call, sizeof call), 0);
	for (size_t size = 0; size < sizeof bytes; size++) {
		c = (struct ckt_cursor){bytes, bytes + size, false};
		CU_ASSERT_FALSE(ckt_call_header_get(&c, &back));
	}
	/*
	 * Message type, RPC version, flavour, its length, verifier's flavour and length: any other
	 * value is no header.
	 */
	static const uint8_t constants[] = {7, 11, 27, 31, 67, 71};
	for (size_t i = 0; i < sizeof constants; i++) {
		bytes[constants[i]] ^= 1;
		c = (struct ckt_cursor){bytes, bytes + sizeof bytes, false};
		CU_ASSERT_FALSE(ckt_call_header_get(&c, &back));
		bytes[constants[i]] ^= 1;
	}
}

static void test_reply(void)
{
	static const uint8_t golden[CKT_REPLY_HEADER_SIZE] = {1, 2, 3, 4, 0, 0, 0, 1, 0, 0, 0, 0,
		0x20, 0x43, 0x4b, 0x10, 0, 0, 0, 16, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
		0, 0, 0, 5, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 4};
	uint8_t bytes[CKT_REPLY_HEADER_SIZE];
	struct ckt_reply_header back = {0};
	CU_ASSERT_PTR_EQUAL(ckt_reply_header_put(bytes, &reply), bytes + sizeof bytes);
	CU_ASSERT_EQUAL(memcmp(bytes, golden, sizeof golden), 0);
	struct ckt_cursor c = {bytes, bytes + sizeof bytes, false};
	CU_ASSERT_TRUE(ckt_reply_header_get(&c, &back));
	CU_ASSERT_EQUAL(back.deferred, -2);
	CU_ASSERT_EQUAL(back.executed, reply.executed);
	CU_ASSERT_EQUAL(back.accept_stat, 4);
	for (size_t size = 0; size < sizeof bytes; size++) {
		c = (struct ckt_cursor){bytes, bytes + size, false};
		CU_ASSERT_FALSE(ckt_reply_header_get(&c, &back));
	}
}

static void test_cursor(void)
{
	uint8_t bytes[16];
	uint8_t *end = ckt_put_opaque(bytes, "abcde", 5);
	CU_ASSERT_EQUAL(end - bytes, 12);
	CU_ASSERT_EQUAL(memcmp(bytes, "\0\0\0\5abcde\0\0\0", 12), 0);
	struct ckt_cursor c = {bytes, bytes + 3, false};
	CU_ASSERT_EQUAL(ckt_get_u32(&c), 0);
	CU_ASSERT_TRUE(c.bad);
	/* Sticky: what would fit is not read any more. */
	c.end = end;
	CU_ASSERT_EQUAL(ckt_get_u32(&c), 0);
	CU_ASSERT_FALSE(ckt_cursor_done(&c));
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("wire", NULL, NULL);
	CU_add_test(suite, "call header", test_call);
	CU_add_test(suite, "reply header", test_reply);
	CU_add_test(suite, "cursor", test_cursor);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
