/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn/replay.c: what is kept, what ends durability, and which copies of a session are
 * accepted.  A whole replay: tests/server/test_durable.py.
 */
#include "client/conn/replay.h"

#include <errno.h>
#include <string.h>

#include "client/conn/settings.h"
#include "conn_parts.h"
#include "rpc/gen/cuda_codec.h"
#include "rpc/record.h"
#include "tests/unit/suite.h"

static ckt_capability told[4];
static struct ckt_hello_ok ok;

static const struct ckt_hello_ok *answer(
	bool knows, uint64_t copy, uint64_t before, uint64_t executed)
{
	told[0] = (ckt_capability){(char *)CKT_CAPABILITY_COPY, copy};
	told[1] = (ckt_capability){(char *)CKT_CAPABILITY_DURABLE, knows};
	told[2] = (ckt_capability){(char *)CKT_CAPABILITY_BEFORE, before};
	ok = (struct ckt_hello_ok){.executed = executed,
		.capabilities = {.capabilities_len = 3, .capabilities_val = told}};
	return &ok;
}

static int open_durable(void)
{
	int peer = parts_open();
	memset(&ckt_settings, 0, sizeof ckt_settings);
	ckt_settings.durable = true;
	ckt_settings.replay_memory_bytes = 64 << 20;
	ckt_settings.replay_directory = "/tmp";
	ckt_conn.copy = ckt_conn.offered_copy = 100;
	ckt_conn.executed = 0;
	ckt_replay_open(&ckt_conn, answer(true, 100, 0, 0));
	MUST(ckt_conn.replay != NULL, 1);
	return peer;
}

static void close_durable(int peer)
{
	if (ckt_conn.replay) {
		parts_stderr_begin();
		ckt_replay_lose(&ckt_conn, "the test ends");
		parts_stderr_end();
	}
	ckt_settings.durable = false;
	ckt_conn.copy = ckt_conn.offered_copy = 0;
	ckt_conn.executed = 0;
	parts_close(peer);
}

static void keep(uint32_t prog, uint32_t proc, uint64_t seq, uint32_t xid)
{
	uint8_t record[CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE];
	ckt_call_header_put(ckt_mark_put(record, CKT_CALL_HEADER_SIZE),
		&(struct ckt_call_header){
			.xid = xid, .prog = prog, .vers = 1, .proc = proc, .seq = seq});
	ckt_replay_keep(&ckt_conn, record);
}

static void test_kept(void)
{
	int peer = open_durable();
	struct ckt_replay_log *log = &ckt_conn.replay->log;
	keep(CKT_CUDA_PROG, CKT_PROC_LAUNCH_KERNEL, 1, 1);
	keep(CKT_CUDA_PROG, CKT_PROC_STREAM_SYNCHRONIZE, 0, 2);
	keep(CRICKET_SESSION_PROG, CKT_SESSION_ENVIRONMENT, 0, 3);
	keep(CKT_CUDA_PROG, CKT_PROC_MEM_FREE, 2, 4);
	IS(log->command_count, 3);
	/* What opens a library is kept for good. */
	keep(CKT_LIB_PROG + CKT_LIB_CUFFT, 1, 0, 8);
	IS(log->command_count, 3);
	IS(ckt_conn.replay->open_count, 2);
	IS(ckt_conn.replay->opens[0].after, 1);
	IS(ckt_conn.replay->opens[1].after, 2);
	/* Questions change nothing; a query counts only where its answer ordered something. */
	keep(CKT_CUDA_PROG, CKT_PROC_MEM_GET_INFO, 0, 5);
	keep(CKT_CUDA_PROG, CKT_PROC_EVENT_QUERY, 0, 6);
	keep(CRICKET_SESSION_PROG, CKT_SESSION_ACK, 0, 7);
	IS(log->command_count, 3);
	ckt_conn.next_seq = 3;
	/* A number that was never given changes nothing. */
	ckt_replay_durable(&ckt_conn, 3);
	IS(ckt_conn.replay->began, 0);
	ckt_replay_durable(&ckt_conn, 1);
	IS(log->command_count, 2);
	/* Nor does one that goes back; and what is forgotten is not kept again. */
	ckt_replay_durable(&ckt_conn, 0);
	keep(CKT_CUDA_PROG, CKT_PROC_LAUNCH_KERNEL, 1, 1);
	IS(log->command_count, 2);
	IS(ckt_conn.replay->open_count, 2);
	IS(ckt_conn.replay->began, 1);
	ckt_capability c[CKT_REPLAY_PAST_MAX + 3];
	IS(ckt_replay_capabilities(&ckt_conn, c), 2);
	IS(c[0].value, 2);
	IS(c[1].value, 100);
	close_durable(peer);
	IS(ckt_replay_capabilities(&ckt_conn, c), 0);
}

static void print(uint32_t fd)
{
	uint8_t message[CKT_CALL_HEADER_SIZE + 8 + 4];
	uint8_t *p = ckt_call_header_put(message,
		&(struct ckt_call_header){
			.prog = CRICKET_CALLBACK_PROG, .vers = 1, .proc = CKT_CALLBACK_OUTPUT});
	ckt_put_opaque(ckt_put_u32(p, fd), "\n", 1);
	struct ckt_cursor c = {.p = message, .end = message + sizeof message};
	IS(ckt_conn_take_callback(&ckt_conn, &c), 0);
}

/* A kernel prints again in a replay; a library's text does no harm. */
static void test_printed(void)
{
	int peer = open_durable();
	print(CKT_OUTPUT_LIBRARY);
	YES(ckt_conn.replay != NULL);
	parts_stderr_begin();
	print(1);
	HAS(parts_stderr_end(), "a kernel of it prints");
	YES(ckt_conn.replay == NULL);
	close_durable(peer);
}

static void test_lost(void)
{
	static const struct {
		uint32_t prog, proc;
		const char *why;
	} rows[] = {
		{CKT_CUDA_PROG, CKT_PROC_HOST_FUNC, "it uses host functions"},
		{CKT_CUDA_PROG, CKT_PROC_IPC_MEM_GET, "shares memory"},
		{CKT_CUDA_PROG, CKT_PROC_PHYSICAL_IMPORT, "shares memory"},
		{CKT_CUDA_PROG, CKT_PROC_DEVICE_NOTIFY, "notifications"},
		{CKT_CUDA_PROG, CKT_PROC_HOST_MAP, "pinned memory"},
		{CKT_CUDA_PROG, CKT_PROC_LANE_DTOH, "lanes"},
		{CKT_LIB_PROG + CKT_LIB_NCCL, 1, "NCCL"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		int peer = open_durable();
		parts_stderr_begin();
		keep(rows[i].prog, rows[i].proc, 1, 1);
		YES(strstr(parts_stderr_end(), rows[i].why) != NULL);
		YES(ckt_conn.replay == NULL);
		/* Once. */
		parts_stderr_begin();
		ckt_replay_lose(&ckt_conn, "again");
		TEXT(parts_stderr_end(), "");
		close_durable(peer);
	}
	/* No room: the session goes on without. */
	int peer = open_durable();
	ckt_conn.replay->log.limit = 0;
	parts_stderr_begin();
	keep(CKT_CUDA_PROG, CKT_PROC_LAUNCH_KERNEL, 1, 1);
	YES(strstr(parts_stderr_end(), "CRICKET_REPLAY_MEMORY") != NULL);
	YES(ckt_conn.replay == NULL);
	close_durable(peer);
	/* A server that does not know replays. */
	peer = parts_open();
	ckt_settings.durable = true;
	parts_stderr_begin();
	ckt_replay_open(&ckt_conn, answer(false, 100, 0, 0));
	YES(strstr(parts_stderr_end(), "too old") != NULL);
	YES(ckt_conn.replay == NULL);
	close_durable(peer);
}

static bool accepts(bool knows, uint64_t copy, uint64_t before, uint64_t executed)
{
	char message[CKT_MESSAGE_MAX] = "";
	bool good = ckt_replay_accepts(
		&ckt_conn, answer(knows, copy, before, executed), "there", message, sizeof message);
	IS(good, !*message);
	return good;
}

static void attach(uint64_t copy, uint64_t executed)
{
	ckt_replay_attached(&ckt_conn, answer(true, copy, 0, executed));
}

static void test_copies(void)
{
	int peer = open_durable();
	ckt_conn.next_seq = 1000;
	ckt_conn.executed = 50;
	/* The same worker, which cannot have forgotten anything. */
	YES(accepts(true, 100, 0, 50));
	YES(accepts(true, 100, 0, 60));
	NO(accepts(true, 100, 0, 49));
	/* Copies from images of it, older and newer than what is known. */
	YES(accepts(true, 101, 100, 0));
	YES(accepts(true, 101, 100, 30));
	YES(accepts(true, 101, 100, 60));
	/* A server of an earlier version, a copy of nothing known, and a fresh session. */
	NO(accepts(false, 101, 100, 30));
	NO(accepts(true, 101, 77, 30));
	NO(accepts(true, 101, 0, 30));
	/* Older than the log. */
	ckt_replay_durable(&ckt_conn, 20);
	NO(accepts(true, 101, 100, 19));
	YES(accepts(true, 101, 100, 20));
	/* It goes on at 101, with command 50 as the last one of 100. */
	attach(101, 30);
	IS(ckt_conn.copy, 101);
	ckt_conn.executed = 80;
	YES(accepts(true, 102, 100, 50));
	/* What 100 did behind that, this program does not know of. */
	NO(accepts(true, 102, 100, 51));
	YES(accepts(true, 102, 101, 81));
	/* The first worker itself, which was only cut off, is no copy of an image. */
	NO(accepts(true, 100, 0, 50));
	/* Forgotten: what lies before the log. */
	ckt_replay_durable(&ckt_conn, 60);
	attach(102, 70);
	NO(accepts(true, 103, 100, 50));
	YES(accepts(true, 103, 101, 70));
	/* As many as there is room for; the oldest goes first. */
	for (unsigned i = 0; i < CKT_REPLAY_PAST_MAX; i++)
		attach(200 + i, 70);
	NO(accepts(true, 999, 101, 70));
	YES(accepts(true, 999, 102, 70));
	ckt_capability c[CKT_REPLAY_PAST_MAX + 3];
	ckt_conn.replay->partial_copy = 998;
	IS(ckt_replay_capabilities(&ckt_conn, c), CKT_REPLAY_PAST_MAX + 3);
	/* One that a replay had reached half way. */
	YES(accepts(true, 998, 77, 60));
	/* It said that an image stays, and then that it has not executed so much. */
	NO(accepts(true, 998, 77, 59));
	NO(accepts(true, 998, 102, 59));
	close_durable(peer);
}

/* Whether the session may begin again, a second after it was absent. */
static bool begins(void)
{
	struct ckt_replay *replay = ckt_conn.replay;
	ckt_replay_absent(&ckt_conn);
	replay->absent_ms = 0;
	NO(ckt_replay_afresh_begin(&ckt_conn));
	if (!replay->absent_ms)
		return false;
	replay->absent_ms -= 1000;
	bool good = ckt_replay_afresh_begin(&ckt_conn);
	IS(good, ckt_replay_asks_afresh(&ckt_conn));
	return good;
}

/* A session that begins again from nothing. */
static void test_afresh(void)
{
	ckt_capability c[CKT_REPLAY_PAST_MAX + 4];
	int peer = open_durable();
	ckt_conn.next_seq = 1000;
	ckt_conn.executed = 5;
	parts_stderr_begin();
	YES(begins());
	IS(ckt_replay_capabilities(&ckt_conn, c), 3);
	TEXT(c[2].name, CKT_CAPABILITY_AFRESH);
	/* Not reached: another try. */
	ckt_replay_afresh_end(&ckt_conn, -EAGAIN);
	IS(ckt_replay_capabilities(&ckt_conn, c), 2);
	for (unsigned i = 0; i < 3; i++) {
		YES(begins());
		ckt_replay_afresh_end(&ckt_conn, 0);
	}
	/* Three lives without progress; with progress it goes on. */
	ckt_conn.executed = 6;
	for (unsigned i = 0; i < 3; i++) {
		YES(begins());
		ckt_replay_afresh_end(&ckt_conn, 0);
	}
	NO(begins());
	HAS(parts_stderr_end(), "died 4 times after command 6");
	close_durable(peer);
	/* Refused: never again, until it has gone on. */
	peer = open_durable();
	YES(begins());
	ckt_replay_absent(&ckt_conn);
	ckt_replay_afresh_end(&ckt_conn, -ENOENT);
	NO(begins());
	attach(101, 0);
	IS(ckt_conn.replay->absent_ms, 0);
	YES(begins());
	ckt_replay_afresh_end(&ckt_conn, -EAGAIN);
	/* A place that may have it. */
	ckt_conn.replay->absent = false;
	NO(ckt_replay_afresh_begin(&ckt_conn));
	IS(ckt_conn.replay->absent_ms, 0);
	/* Something is forgotten. */
	ckt_conn.next_seq = 1000;
	ckt_replay_durable(&ckt_conn, 1);
	NO(begins());
	close_durable(peer);
	NO(ckt_replay_asks_afresh(&ckt_conn));
	NO(ckt_replay_afresh_begin(&ckt_conn));
}

UNIT_SUITE(replay, {"kept", test_kept}, {"printed", test_printed}, {"lost", test_lost},
	{"copies", test_copies}, {"afresh", test_afresh})
