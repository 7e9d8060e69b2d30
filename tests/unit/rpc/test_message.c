/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/message.c: small calls through rpcgen's routines: every truncation of a message is refused,
 * and a peer that answers something else.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "rpc/net.h"
#include "rpc/session.h"

static int pair[2];

static void test_truncations(void)
{
	ckt_greeting greeting = {.protocol = 3}, back;
	uint8_t *data;
	size_t size;
	for (u_int i = 0; i < sizeof greeting.nonce; i++)
		greeting.nonce[i] = (char)i;
	CU_ASSERT_EQUAL_FATAL(ckt_net_encode_call(7, CRICKET_CALLBACK_PROG, CKT_CALLBACK_GREETING,
				      (xdrproc_t)xdr_ckt_greeting, &greeting, &data, &size),
		0);
	for (size_t cut = 0; cut <= size; cut++) {
		/* In memory of that very size, so that a sanitizer sees a read beyond it. */
		uint8_t *exact = malloc(cut ? cut : 1);
		memcpy(exact, data, cut);
		struct ckt_cursor c = {exact, exact + cut, false};
		struct ckt_call_header header;
		bool good = ckt_call_header_get(&c, &header);
		CU_ASSERT_EQUAL(good, cut >= CKT_CALL_HEADER_SIZE);
		memset(&back, 0, sizeof back);
		CU_ASSERT_EQUAL(ckt_net_decode(&c, (xdrproc_t)xdr_ckt_greeting, &back),
			cut == size ? 0 : -EPROTO);
		if (cut == size) {
			CU_ASSERT_EQUAL(back.protocol, 3);
			CU_ASSERT_EQUAL(
				memcmp(back.nonce, greeting.nonce, sizeof greeting.nonce), 0);
			xdr_free((xdrproc_t)xdr_ckt_greeting, &back);
		}
		free(exact);
	}
	/* One word too many. */
	data = realloc(data, size + 4);
	memset(data + size, 0, 4);
	struct ckt_cursor c = {data + CKT_CALL_HEADER_SIZE, data + size + 4, false};
	memset(&back, 0, sizeof back);
	CU_ASSERT_EQUAL(ckt_net_decode(&c, (xdrproc_t)xdr_ckt_greeting, &back), -EPROTO);
	free(data);
}

enum answer { RIGHT, OTHER_XID, NOT_ACCEPTED, SHORT, NONE };

static void *answer(void *argument)
{
	uint8_t *data, reply[CKT_REPLY_HEADER_SIZE];
	size_t size;
	struct ckt_call_header header = {0};
	if (ckt_net_read_record(
		    pair[1], CKT_RECORD_MAX, ckt_net_now_ms() + 60000, &data, &size, NULL))
		return NULL;
	struct ckt_cursor c = {data, data + size, false};
	CU_ASSERT_TRUE(ckt_call_header_get(&c, &header));
	CU_ASSERT_TRUE(ckt_cursor_done(&c));
	free(data);
	enum answer how = *(enum answer *)argument;
	struct ckt_reply_header head = {
		.xid = header.xid + (how == OTHER_XID), .accept_stat = how == NOT_ACCEPTED ? 3 : 0};
	ckt_reply_header_put(reply, &head);
	if (how != NONE)
		ckt_net_write_record(pair[1], reply, sizeof reply - (how == SHORT),
			ckt_net_now_ms() + 60000, -1);
	return NULL;
}

/*
 * Declared without parameters by some releases of libtirpc, which makes its cast a warning of its
 * own.
 */
static const xdrproc_t nothing = (xdrproc_t)(void (*)(void))xdr_void;

static void test_call(void)
{
	static const int expected[] = {0, -EPROTO, -EPROTO, -EPROTO, -ETIMEDOUT};
	for (enum answer how = RIGHT; how <= NONE; how++) {
		pthread_t thread;
		CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		pthread_create(&thread, NULL, answer, &how);
		int64_t deadline_ms = ckt_net_now_ms() + (how == NONE ? 100 : 60000);
		CU_ASSERT_EQUAL(
			ckt_net_call(pair[0], 1, 2, nothing, NULL, nothing, NULL, deadline_ms, -1),
			expected[how]);
		pthread_join(thread, NULL);
		close(pair[0]);
		close(pair[1]);
	}
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("message", NULL, NULL);
	CU_add_test(suite, "truncations", test_truncations);
	CU_add_test(suite, "call and reply", test_call);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
