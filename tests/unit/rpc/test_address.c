/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/transport/address.c: text forms of addresses: what is one, what is none and says so. */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <string.h>

#include "rpc/net.h"

static void expect(
	const char *text, int type, const char *host, unsigned port, const char *formatted)
{
	struct ckt_address address;
	char message[256] = "", back[CKT_ADDRESS_TEXT_MAX];
	CU_ASSERT_EQUAL_FATAL(ckt_address_parse(text, &address, message, sizeof message), 0);
	CU_ASSERT_EQUAL((int)address.type, type);
	CU_ASSERT_STRING_EQUAL(address.host, host);
	if (type == CKT_ADDRESS_TCP)
		CU_ASSERT_EQUAL(address.port, port);
	ckt_address_format(&address, back, sizeof back);
	CU_ASSERT_STRING_EQUAL(back, formatted);
}

static void test_good(void)
{
	expect("gpunode", CKT_ADDRESS_TCP, "gpunode", 7350, "gpunode:7350");
	expect("gpunode:1", CKT_ADDRESS_TCP, "gpunode", 1, "gpunode:1");
	expect("10.0.0.1:65535", CKT_ADDRESS_TCP, "10.0.0.1", 65535, "10.0.0.1:65535");
	expect(":0", CKT_ADDRESS_TCP, "", 0, ":0");
	expect("[::1]:99", CKT_ADDRESS_TCP, "::1", 99, "[::1]:99");
	expect("[fe80::2]", CKT_ADDRESS_TCP, "fe80::2", 7350, "[fe80::2]:7350");
	expect("fe80::2", CKT_ADDRESS_TCP, "fe80::2", 7350, "[fe80::2]:7350");
	expect("unix:/run/cricket/socket", CKT_ADDRESS_UNIX, "/run/cricket/socket", 0,
		"unix:/run/cricket/socket");
	expect("file:here is one", CKT_ADDRESS_FILE, "here is one", 0, "file:here is one");
}

static void test_bad(void)
{
	static const char *const bad[] = {"", "host:", "host:x", "host:-1", "host:+1", "host:65536",
		"host:70000000000000000000", "host:1 ", "[::1", "[::1]x",
		"[::1]:", "unix:", "file:", "[]"};
	char longest[700] = "unix:/";
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct ckt_address address = {.port = 4711};
		char message[256] = "";
		CU_ASSERT_NOT_EQUAL(
			ckt_address_parse(bad[i], &address, message, sizeof message), 0);
		CU_ASSERT_NOT_EQUAL(message[0], 0);
		/* Written on success only. */
		CU_ASSERT_EQUAL(address.port, 4711);
	}
	memset(longest + 6, 'a', 600);
	for (int skip = 0; skip <= 6; skip += 6) {
		struct ckt_address address;
		char message[256] = "";
		CU_ASSERT_NOT_EQUAL(
			ckt_address_parse(longest + skip, &address, message, sizeof message), 0);
		CU_ASSERT_NOT_EQUAL(message[0], 0);
	}
}

static void test_split(void)
{
	static const struct {
		const char *list, *first, *last;
		unsigned count;
	} good[] = {
		{"a,b:7351", "a:7350", "b:7351", 2},
		{"one", "one:7350", "one:7350", 1},
		{"unix:/s,::1,file:x", "unix:/s", "file:x", 3},
		{"a:1,a:2,a:3,a:4,a:5,a:6,a:7,a:8", "a:1", "a:8", 8},
	};
	static const struct {
		const char *list, *says;
	} bad[] = {
		{"", "address 1 of the list '' is empty"},
		{",a", "address 1 of the list"},
		{"a,", "address 2 of the list 'a,' is empty: remove the extra comma"},
		{"a,,b", "address 2 of the list"},
		{"a,a:7350", "'a:7350' is in the list twice"},
		{"unix:/s,unix:/s", "'unix:/s' is in the list twice"},
		{"a,local:",
			"'local:' is this machine's own driver and cannot be combined with other addresses"},
		{"local:/x/libcuda.so.1,a", "cannot be combined with other addresses"},
		{"a,b:x", "'b:x': 'x' is not a port number"},
		{"a:1,a:2,a:3,a:4,a:5,a:6,a:7,a:8,a:9", "more than 8 addresses"},
	};
	char texts[CKT_SERVERS_MAX][CKT_ADDRESS_TEXT_MAX], message[512],
		longest[CKT_ADDRESS_TEXT_MAX + 8] = "a,";
	unsigned count;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		CU_ASSERT_EQUAL_FATAL(
			ckt_address_split(good[i].list, texts, &count, message, sizeof message), 0);
		CU_ASSERT_EQUAL_FATAL(count, good[i].count);
		CU_ASSERT_STRING_EQUAL(texts[0], good[i].first);
		CU_ASSERT_STRING_EQUAL(texts[count - 1], good[i].last);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		count = 77;
		CU_ASSERT_NOT_EQUAL(
			ckt_address_split(bad[i].list, texts, &count, message, sizeof message), 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(message, bad[i].says));
		CU_ASSERT_EQUAL(count, 77);
	}
	memset(longest + 2, 'b', CKT_ADDRESS_TEXT_MAX);
	CU_ASSERT_NOT_EQUAL(ckt_address_split(longest, texts, &count, message, sizeof message), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "address 2 of the list is longer"));
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("address", NULL, NULL);
	CU_add_test(suite, "addresses", test_good);
	CU_add_test(suite, "no addresses", test_bad);
	CU_add_test(suite, "lists", test_split);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
