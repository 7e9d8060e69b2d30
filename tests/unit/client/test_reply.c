/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn/reply.c (client/conn/conn.h): replies find their waiters, callbacks their places, and
 * what is neither ends the connection.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn_parts.h"
#include "tests/unit/suite.h"

static struct answer {
	unsigned count;
	CUresult result;
	size_t size;
	uint32_t first;
} answer;

static void note(void *data, CUresult result, struct ckt_cursor *results)
{
	struct answer *noted = data;
	noted->count++;
	noted->result = result;
	noted->size = (size_t)(results->end - results->p);
	noted->first = noted->size >= 4 ? ckt_get_u32(results) : 0;
}

/* A call whose answer is noted; its xid. */
static uint32_t ask(uint64_t context, struct answer *noted)
{
	struct ckt_call call;
	*noted = (struct answer){0};
	ckt_call_context = context;
	MUST(ckt_call_begin(&call, 7, 0, CKT_CALL_F_NUMBERED), CUDA_SUCCESS);
	ckt_call_async(&call, note, noted);
	ckt_call_context = 0;
	return call.xid;
}

static void answer_with(int peer, uint32_t xid, CUresult result)
{
	uint8_t body[4];
	ckt_put_u32(body, result);
	parts_reply(peer, &(struct ckt_reply_header){.xid = xid}, body, sizeof body);
	IS(ckt_conn_read(&ckt_conn, 0), 0);
}

static void test_results(void)
{
	static const size_t sizes[] = {0, 4, 256, 260, 2048};
	int peer = parts_open();
	for (size_t i = 0; i < COUNT(sizes); i++) {
		uint8_t body[4096] = {0};
		struct ckt_call call;
		struct ckt_reply reply;
		memset(body + 4, 0x5a, sizes[i]);
		MUST(ckt_call_begin(&call, 7, 8, 0), CUDA_SUCCESS);
		ckt_put_u64(call.p, 1);
		/* Written before anyone waits: the waiting thread reads it itself. */
		parts_reply(peer, &(struct ckt_reply_header){.xid = call.xid}, body, 4 + sizes[i]);
		IS(ckt_call_wait(&call, &reply), CUDA_SUCCESS);
		IS(reply.results.end - reply.results.p, sizes[i]);
		IS(memcmp(reply.results.p, body + 4, sizes[i]), 0);
		/* Only what is longer needs memory of its own. */
		IS(reply.owned != NULL, sizes[i] > sizeof reply.small);
		ckt_call_reply_release(&reply);
	}
	parts_close(peer);
}

/* A call that has done nothing is sent again, with a number of its own; not one without a thread. */
static struct {
	int peer;
	size_t whole;
	uint32_t xid;
	uint8_t first[CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE + 300];
	uint8_t second[CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE + 300];
	bool good;
} twice;

/* The server's side: answers with "again", and then the second call. */
static void *answer_twice(void *opaque)
{
	uint8_t body[4];
	(void)opaque;
	twice.good = parts_read(twice.peer, twice.first, twice.whole);
	ckt_put_u32(body, CKT_RESULT_AGAIN);
	parts_reply(twice.peer, &(struct ckt_reply_header){.xid = twice.xid}, body, sizeof body);
	twice.good &= parts_read(twice.peer, twice.second, twice.whole);
	ckt_put_u32(body, CUDA_SUCCESS);
	parts_reply(
		twice.peer, &(struct ckt_reply_header){.xid = twice.xid + 1}, body, sizeof body);
	return NULL;
}

static void test_again(void)
{
	struct ckt_call call;
	pthread_t thread;
	for (unsigned size = 8; size <= 300; size += 292) {
		const size_t whole = CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE + size;
		int peer = parts_open();
		MUST(ckt_call_begin(&call, 7, size, CKT_CALL_F_NUMBERED), CUDA_SUCCESS);
		memset(call.p, 0x33, size);
		uint32_t xid = twice.xid = call.xid;
		uint64_t seq = call.seq;
		twice.peer = peer;
		twice.whole = whole;
		MUST(pthread_create(&thread, NULL, answer_twice, NULL), 0);
		IS(ckt_call_wait(&call, NULL), CUDA_SUCCESS);
		pthread_join(thread, NULL);
		YES(twice.good);
		IS(call.seq, seq + 1);
		struct ckt_cursor c = {
			.p = twice.second + CKT_MARK_SIZE, .end = twice.second + whole};
		struct ckt_call_header header;
		YES(ckt_call_header_get(&c, &header));
		IS(header.xid, xid + 1);
		IS(header.seq, seq + 1);
		IS(header.acked, seq);
		IS(header.proc, 7);
		IS(memcmp(twice.first + whole - size, twice.second + whole - size, size), 0);
		parts_close(peer);
	}
	int peer = parts_open();
	answer_with(peer, ask(0, &answer), (CUresult)CKT_RESULT_AGAIN);
	IS(answer.count, 1);
	IS(answer.result, CUDA_ERROR_OUT_OF_MEMORY);
	parts_close(peer);
}

static void test_pieces(void)
{
	uint8_t record[CKT_MARK_SIZE + CKT_REPLY_HEADER_SIZE + 8];
	struct answer second;
	int peer = parts_open();
	uint32_t xid = ask(0, &answer), second_xid = ask(0, &second);
	ckt_put_u32(record, 0x80000000u | (sizeof record - CKT_MARK_SIZE));
	uint8_t *p = ckt_reply_header_put(
		record + CKT_MARK_SIZE, &(struct ckt_reply_header){.xid = xid});
	ckt_put_u32(ckt_put_u32(p, CUDA_SUCCESS), 77);
	IS(ckt_conn_read(&ckt_conn, 0), -EAGAIN);
	IS(ckt_conn_read(&ckt_conn, 1), -EAGAIN);
	for (size_t i = 0; i < sizeof record; i++) {
		IS(answer.count, 0);
		IS(write(peer, record + i, 1), 1);
		IS(ckt_conn_read(&ckt_conn, 0), 0);
	}
	IS(answer.count, 1);
	IS(answer.first, 77);
	/*
	 * A reply that comes twice, and one that nobody asked for, are passed over; several may
	 * come at once.
	 */
	IS(write(peer, record, sizeof record), sizeof record);
	parts_reply(peer, &(struct ckt_reply_header){.xid = 4711}, NULL, 0);
	parts_reply(peer, &(struct ckt_reply_header){.xid = second_xid}, record, 0);
	IS(ckt_conn_read(&ckt_conn, 0), 0);
	IS(answer.count, 1);
	IS(second.count, 1);
	/* Without a CUresult it says nothing. */
	IS(second.result, CUDA_ERROR_UNKNOWN);
	IS(ckt_conn.async_pending, 0);
	close(peer);
	errno = 5;
	IS(ckt_conn_read(&ckt_conn, 0), -ECONNRESET);
	IS(errno, 5);
	parts_close(-1);
}

static void put_call(uint8_t *p, uint32_t prog, uint32_t proc)
{
	ckt_call_header_put(p, &(struct ckt_call_header){.prog = prog, .vers = 1, .proc = proc});
}

static void test_hostile_bytes(void)
{
	enum { WHOLE = CKT_CALL_HEADER_SIZE };
	static const struct {
		const char *what;
		uint32_t mark; /* 0: the right one */
		size_t size;
		uint32_t prog, proc; /* prog 0: a reply's header */
		uint32_t flipped;    /* word of it that is another */
		int result;
	} rows[] = {
		{"reply", 0, CKT_REPLY_HEADER_SIZE, 0, 0, 0, 0},
		{"not the last fragment", 8, 8, 0, 0, 0, -EPROTO},
		{"longer than any record", 0x80000000u | (CKT_RECORD_MAX + 1), 8, 0, 0, 0, -EPROTO},
		{"no type", 0, 7, 0, 0, 0, -EPROTO},
		{"empty", 0x80000000u, 0, 0, 0, 0, -EPROTO},
		{"short reply", 0, CKT_REPLY_HEADER_SIZE - 4, 0, 0, 0, -EPROTO},
		{"denied reply", 0, CKT_REPLY_HEADER_SIZE, 0, 0, 2, -EPROTO},
		{"reply with another credential", 0, CKT_REPLY_HEADER_SIZE, 0, 0, 3, -EPROTO},
		{"short call", 0, WHOLE - 4, CRICKET_CALLBACK_PROG, CKT_CALLBACK_PARKED, 0,
			-EPROTO},
		{"call of another program", 0, WHOLE, CKT_CUDA_PROG, 1, 0, -EPROTO},
		{"output without arguments", 0, WHOLE, CRICKET_CALLBACK_PROG, CKT_CALLBACK_OUTPUT,
			0, -EPROTO},
		{"move without arguments", 0, WHOLE, CRICKET_CALLBACK_PROG, CKT_CALLBACK_MOVED, 0,
			-EPROTO},
		{"host call without arguments", 0, WHOLE, CRICKET_CALLBACK_PROG,
			CKT_CALLBACK_HOST_CALL, 0, -EPROTO},
		{"notification without arguments", 0, WHOLE, CRICKET_CALLBACK_PROG,
			CKT_CALLBACK_NOTIFY, 0, -EPROTO},
		{"modules without arguments", 0, WHOLE, CRICKET_CALLBACK_PROG, CKT_CALLBACK_MODULES,
			0, -EPROTO},
		{"callback of a later server", 0, WHOLE, CRICKET_CALLBACK_PROG, 4711, 0, 0},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		uint8_t bytes[CKT_MARK_SIZE + 128] = {0};
		int peer = parts_open();
		ckt_put_u32(
			bytes, rows[i].mark ? rows[i].mark : 0x80000000u | (uint32_t)rows[i].size);
		if (rows[i].prog)
			put_call(bytes + CKT_MARK_SIZE, rows[i].prog, rows[i].proc);
		else
			ckt_reply_header_put(
				bytes + CKT_MARK_SIZE, &(struct ckt_reply_header){.xid = 9});
		if (rows[i].flipped)
			bytes[CKT_MARK_SIZE + 4 * rows[i].flipped + 3] ^= 1;
		MUST(write(peer, bytes, CKT_MARK_SIZE + rows[i].size),
			CKT_MARK_SIZE + rows[i].size);
		unit_is(ckt_conn_read(&ckt_conn, 0), rows[i].result, rows[i].what, __FILE__,
			__LINE__, false);
		NO(ckt_conn.parked);
		parts_close(peer);
	}
}

static void test_refused(void)
{
	int peer = parts_open();
	uint32_t xid = ask(0, &answer);
	parts_stderr_begin();
	parts_reply(peer, &(struct ckt_reply_header){.xid = xid, .accept_stat = 3}, NULL, 0);
	IS(ckt_conn_read(&ckt_conn, 0), 0);
	HAS(parts_stderr_end(), "accept_stat 3");
	IS(answer.result, CUDA_ERROR_NOT_SUPPORTED);
	IS(ckt_call_fault(), CUDA_SUCCESS);
	parts_close(peer);
}

static void test_faults(void)
{
	static const struct {
		CUresult error;
		bool sticky;
	} rows[] = {
		{CUDA_ERROR_ILLEGAL_ADDRESS, true},
		{CUDA_ERROR_LAUNCH_FAILED, true},
		{CUDA_ERROR_ASSERT, true},
		{CUDA_ERROR_MISALIGNED_ADDRESS, true},
		{CUDA_ERROR_LAUNCH_TIMEOUT, true},
		{CUDA_ERROR_ECC_UNCORRECTABLE, true},
		{CUDA_ERROR_INVALID_VALUE, false},
		{CUDA_ERROR_OUT_OF_MEMORY, false},
		{CUDA_ERROR_NOT_READY, false},
	};
	struct ckt_call call;
	int peer = parts_open();
	for (size_t i = 0; i < COUNT(rows); i++) {
		answer_with(peer, ask(5, &answer), rows[i].error);
		IS(answer.result, rows[i].error);
		ckt_call_context = 5;
		IS(ckt_call_fault(), rows[i].sticky ? rows[i].error : CUDA_SUCCESS);
		if (rows[i].sticky)
			IS(ckt_call_begin(&call, 7, 0, 0), rows[i].error);
		ckt_call_context = 6;
		IS(ckt_call_fault(), CUDA_SUCCESS);
		ckt_call_forget_fault(5);
		ckt_call_context = 5;
		IS(ckt_call_fault(), CUDA_SUCCESS);
	}
	parts_close(peer);
}

/*
 * The first error of a context stays; more contexts than there is room for are let go, not written
 * behind it.
 */
static void test_fault_limit(void)
{
	int peer = parts_open();
	uint32_t xids[CKT_FAULTS_MAX + 1];
	static struct answer answers[CKT_FAULTS_MAX + 1];
	struct answer again;
	uint32_t later = ask(1, &again);
	for (unsigned i = 0; i <= CKT_FAULTS_MAX; i++)
		xids[i] = ask(1 + i, &answers[i]);
	for (unsigned i = 0; i <= CKT_FAULTS_MAX; i++)
		answer_with(peer, xids[i], CUDA_ERROR_ILLEGAL_ADDRESS);
	answer_with(peer, later, CUDA_ERROR_ASSERT);
	IS(ckt_conn.fault_count, CKT_FAULTS_MAX);
	IS(ckt_conn_fault(&ckt_conn, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
	IS(ckt_conn_fault(&ckt_conn, CKT_FAULTS_MAX), CUDA_ERROR_ILLEGAL_ADDRESS);
	IS(ckt_conn_fault(&ckt_conn, CKT_FAULTS_MAX + 1), CUDA_SUCCESS);
	ckt_call_forget_fault(3);
	IS(ckt_conn.fault_count, CKT_FAULTS_MAX - 1);
	IS(ckt_conn_fault(&ckt_conn, 3), CUDA_SUCCESS);
	IS(ckt_conn_fault(&ckt_conn, CKT_FAULTS_MAX), CUDA_ERROR_ILLEGAL_ADDRESS);
	ckt_call_forget_fault(4711);
	IS(ckt_conn.fault_count, CKT_FAULTS_MAX - 1);
	parts_close(peer);
}

/* The first deferred error is kept and comes with the next call that itself succeeded. */
static void test_deferred(void)
{
	uint8_t body[4] = {0};
	struct ckt_call call;
	int peer = parts_open();
	parts_reply(peer,
		&(struct ckt_reply_header){.xid = 4711, .deferred = CUDA_ERROR_INVALID_HANDLE},
		NULL, 0);
	parts_reply(peer,
		&(struct ckt_reply_header){.xid = 4711, .deferred = CUDA_ERROR_OUT_OF_MEMORY}, NULL,
		0);
	IS(ckt_conn_read(&ckt_conn, 0), 0);
	for (int i = 0; i < 2; i++) {
		MUST(ckt_call_begin(&call, 7, 0, 0), CUDA_SUCCESS);
		parts_reply(peer, &(struct ckt_reply_header){.xid = call.xid}, body, sizeof body);
		IS(ckt_call_wait(&call, NULL), i ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
	}
	parts_close(peer);
}

static void test_trim(void)
{
	enum { SIZE = CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE };
	int peer = parts_open();
	for (int i = 0; i < 3; i++)
		parts_queue(16);
	ckt_conn_trim(&ckt_conn, 0);
	IS(ckt_conn.head, 0);
	ckt_conn_trim(&ckt_conn, 1);
	IS(ckt_conn.head, SIZE + 16);
	/* A reply that was overtaken says less than is known. */
	ckt_conn_trim(&ckt_conn, 0);
	IS(ckt_conn.head, SIZE + 16);
	IS(ckt_conn.executed, 1);
	/* What has not been sent stays, whatever the peer says. */
	ckt_conn.state = CKT_CONN_RESUMING;
	parts_queue(16);
	ckt_conn_trim(&ckt_conn, UINT64_MAX);
	IS(ckt_conn.head, 3 * (SIZE + 16));
	parts_close(peer);
	/* The gap at the ring's end is no record. */
	peer = parts_open();
	ckt_conn.head = ckt_conn.last_ack_position = CKT_RING_SIZE - 100;
	ckt_conn.sent = ckt_conn.tail = CKT_RING_SIZE - 100;
	parts_queue(64);
	IS(ckt_conn.tail, CKT_RING_SIZE + SIZE + 64);
	ckt_conn_trim(&ckt_conn, 1);
	IS(ckt_conn.head, CKT_RING_SIZE + SIZE + 64);
	parts_close(peer);
}

static void test_finish_all(void)
{
	struct answer answers[3];
	int peer = parts_open();
	ckt_waiter_finish_all(&ckt_conn, CUDA_ERROR_DEVICE_UNAVAILABLE);
	for (size_t i = 0; i < COUNT(answers); i++)
		ask(0, &answers[i]);
	IS(ckt_conn.async_pending, COUNT(answers));
	ckt_waiter_finish_all(&ckt_conn, CUDA_ERROR_DEVICE_UNAVAILABLE);
	for (size_t i = 0; i < COUNT(answers); i++) {
		IS(answers[i].count, 1);
		IS(answers[i].result, CUDA_ERROR_DEVICE_UNAVAILABLE);
		IS(answers[i].size, 0);
	}
	IS(ckt_conn.async_pending, 0);
	parts_close(peer);
}

/* ---- Callbacks */

static void callback(int peer, uint32_t proc, xdrproc_t xdr, void *args)
{
	uint8_t *data;
	size_t size;
	MUST(ckt_net_encode_call(0, CRICKET_CALLBACK_PROG, proc, xdr, args, &data, &size), 0);
	MUST(ckt_net_write_record(peer, data, size, -1, -1), 0);
	free(data);
	IS(ckt_conn_read(&ckt_conn, 0), 0);
}

static struct ckt_host_call_args seen;

static void host_call(struct ckt_conn *conn, const struct ckt_host_call_args *args)
{
	YES(conn == &ckt_conn);
	seen = *args;
}

static struct ckt_notify_args notified_seen;

static void notified(struct ckt_conn *conn, const struct ckt_notify_args *args)
{
	(void)conn;
	notified_seen = *args;
}

static void test_callbacks(void)
{
	int peer = parts_open();
	callback(peer, CKT_CALLBACK_MOVED, (xdrproc_t)xdr_ckt_moved_args,
		&(struct ckt_moved_args){.address = (char *)"elsewhere:1"});
	TEXT(ckt_conn.moved_to, "elsewhere:1");
	callback(peer, CKT_CALLBACK_PARKED, (xdrproc_t)xdr_ckt_parked_args,
		&(struct ckt_parked_args){.message = (char *)"why"});
	YES(ckt_conn.parked);
	NO(ckt_conn.quiesce);
	callback(peer, CKT_CALLBACK_QUIESCE, (xdrproc_t)(void (*)(void))xdr_void, NULL);
	YES(ckt_conn.quiesce);
	struct ckt_host_call_args args = {
		.instance = 1, .number = 2, .exec = 3, .status = CUDA_ERROR_ASSERT};
	callback(peer, CKT_CALLBACK_HOST_CALL, (xdrproc_t)xdr_ckt_host_call_args, &args);
	ckt_conn_host_call = host_call;
	callback(peer, CKT_CALLBACK_HOST_CALL, (xdrproc_t)xdr_ckt_host_call_args, &args);
	ckt_conn_host_call = NULL;
	IS(seen.instance, 1);
	IS(seen.number, 2);
	IS(seen.exec, 3);
	IS(seen.status, CUDA_ERROR_ASSERT);
	struct ckt_notify_args told = {.number = 4,
		.instance = 5,
		.type = CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET,
		.over_bytes = 6};
	callback(peer, CKT_CALLBACK_NOTIFY, (xdrproc_t)xdr_ckt_notify_args, &told);
	ckt_conn_notify = notified;
	callback(peer, CKT_CALLBACK_NOTIFY, (xdrproc_t)xdr_ckt_notify_args, &told);
	ckt_conn_notify = NULL;
	IS(notified_seen.number, 4);
	IS(notified_seen.instance, 5);
	IS(notified_seen.type, CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET);
	IS(notified_seen.over_bytes, 6);
	u_int words[] = {7, 0x01020304};
	struct ckt_modules_args modules = {.hashes = {2, words}};
	callback(peer, CKT_CALLBACK_MODULES, (xdrproc_t)xdr_ckt_modules_args, &modules);
	IS(ckt_call_module_hint((const uint8_t[32]){1, 2, 3, 4}), CKT_MODULE_KEPT);
	parts_stderr_begin();
	callback(peer, CKT_CALLBACK_OUTPUT, (xdrproc_t)xdr_ckt_output_args,
		&(struct ckt_output_args){.fd = 2, .data = {6, (char *)"kernel"}});
	TEXT(parts_stderr_end(), "kernel");
	parts_close(peer);
}

static void put_output(int peer, int fd, const char *text)
{
	callback(peer, CKT_CALLBACK_OUTPUT, (xdrproc_t)xdr_ckt_output_args,
		&(struct ckt_output_args){.fd = fd, .data = {(u_int)strlen(text), (char *)text}});
}

/* A worker's lines on stderr reach CRICKET_REFUSALS; kernels print on stdout, which never does. */
static void test_refusals(void)
{
	char path[] = "/tmp/ckt-reply-XXXXXX", text[256];
	int fd = mkstemp(path), peer = parts_open();
	setenv("CRICKET_REFUSALS", path, 1);
	parts_stderr_begin();
	put_output(peer, 2, "\ncricket soft GPU: ker");
	put_output(peer, 1, "cricket soft GPU: kernel forged cannot run: x\n");
	put_output(peer, 2, "nel k cannot run: x\nno refusal\n");
	HAS(parts_stderr_end(), "kernel k cannot run: x\nno refusal\n");
	unsetenv("CRICKET_REFUSALS");
	ssize_t n = read(fd, text, sizeof text - 1);
	text[n > 0 ? n : 0] = 0;
	TEXT(text, "cricket soft GPU: kernel k cannot run: x\n");
	close(fd);
	unlink(path);
	parts_close(peer);
}

UNIT_SUITE(reply, {"results", test_results}, {"again", test_again}, {"pieces", test_pieces},
	{"hostile bytes", test_hostile_bytes}, {"refused", test_refused}, {"faults", test_faults},
	{"fault limit", test_fault_limit}, {"deferred", test_deferred}, {"trim", test_trim},
	{"finish all", test_finish_all}, {"callbacks", test_callbacks}, {"refusals", test_refusals})
