/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/executor.c: the command stream of a real worker, byte by byte: what is no
 * command ends the connection and not the session, what is none of ours is answered, records come
 * in any pieces, and a newer connection takes over.  argv[1] the worker, argv[2] the soft
 * libcuda.so.1.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/net.h"
#include "tests/unit/worker/wire_session.h"

/* True where the other side ends the connection; what it still says is passed over. */
static bool is_closed(int fd)
{
	char bytes[256];
	struct pollfd p = {.fd = fd, .events = POLLIN};
	while (poll(&p, 1, 60000) > 0)
		if (read(fd, bytes, sizeof bytes) <= 0)
			return true;
	return false;
}

/* ---- What is no command */

enum { SIZE = CKT_CALL_HEADER_SIZE + 8 };

static void test_no_commands(void)
{
	struct wire *w = session_new();
	uint64_t block = alloc(w, 64), seq = w->seq;
	const struct ckt_call_header good = {.xid = 5,
		.prog = CKT_CUDA_PROG,
		.vers = CKT_CUDA_VERS,
		.proc = wire_proc("mem_alloc"),
		.seq = seq + 1,
		.acked = seq,
		.context = ckt_handle_primary(0)};
	for (int kind = 0;; kind++) {
		uint8_t record[4 + SIZE] = {0};
		struct ckt_call_header header = good;
		uint32_t mark = 0x80000000u | SIZE, word = 0, at = 0;
		switch (kind) {
		case 0:
			mark = SIZE;
			break; /* more fragments to come */
		case 1:
			mark = 0x80000000u | (CKT_RECORD_MAX + 1);
			break;
		case 2:
			mark = UINT32_MAX;
			break;
		case 3:
			mark = 0x80000000u;
			break;
		case 4:
			mark = 0x80000000u | (CKT_CALL_HEADER_SIZE - 4);
			break;
		case 5:
			at = 8, word = 1;
			break; /* a reply */
		case 6:
			at = 12, word = 3;
			break; /* RPC version 3 */
		case 7:
			at = 28, word = 0;
			break; /* another flavour */
		/* a credential of another size */
		case 8:
			at = 32, word = 400;
			break;
		case 9:
			header.prog = 100003;
			break; /* NFS */
		/* changes state without a number */
		case 10:
			header.seq = 0;
			break;
		case 11:
			header.seq = seq;
			header.seq += 2;
			break; /* a gap */
		case 12:
			header.seq = UINT64_MAX;
			break;
		/* has seen what was not said */
		case 13:
			header.acked = seq + 1;
			break;
		/* a question with a number */
		case 14:
			header.proc = wire_proc("mem_get_info");
			break;
		case 15:
			header.proc = wire_proc("mem_get_info"), header.seq = 0,
			header.flags = CKT_CALL_BATCHED;
			break;
		/* numbered, and nobody will ever execute it */
		case 16:
			header.proc = UINT32_MAX;
			break;
		case 17:
			header.vers = 9;
			break;
		case 18:
			header.prog = CRICKET_SESSION_PROG, header.vers = 1,
			header.proc = CKT_SESSION_ACK;
			break;
		default:
			kind = -1;
			break;
		}
		if (kind < 0)
			break;
		ckt_put_u64(ckt_call_header_put(ckt_put_u32(record, mark), &header), 64);
		if (at)
			ckt_put_u32(record + at, word);
		CU_ASSERT_EQUAL(write(w->fd, record, sizeof record), sizeof record);
		bool closed = is_closed(w->fd);
		if (!closed)
			fprintf(stderr, "kind %d: the connection lives\n", kind);
		CU_ASSERT_TRUE(closed);
		wire_disconnect(w);
		CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
		/* Nothing of it was executed. */
		CU_ASSERT_EQUAL(w->executed, seq);
	}
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, mem_free, true, .address = block)), CUDA_SUCCESS);
	session_end(w);
}

/* ---- What is none of ours: said, and the connection goes on */

static void ask(struct wire *w, struct ckt_call_header header, uint32_t accept_stat)
{
	uint8_t record[CKT_CALL_HEADER_SIZE];
	header.xid = ++w->xid;
	header.acked = w->acked;
	ckt_call_header_put(record, &header);
	CU_ASSERT_EQUAL(ckt_net_write_record(w->fd, record, sizeof record, -1, -1), 0);
	struct wire_reply reply = wire_read(w, header.xid);
	CU_ASSERT_EQUAL(reply.accept_stat, accept_stat);
	free(reply.data);
}

static void test_unknown(void)
{
	struct wire *w = session_new();
	ask(w,
		(struct ckt_call_header){
			.prog = CKT_CUDA_PROG, .vers = CKT_CUDA_VERS, .proc = 0xffffff},
		3);
	ask(w,
		(struct ckt_call_header){.prog = CKT_CUDA_PROG,
			.vers = CKT_CUDA_VERS + 1,
			.proc = wire_proc("mem_get_info")},
		2);
	ask(w, (struct ckt_call_header){.prog = CRICKET_SESSION_PROG, .vers = 1, .proc = 77}, 3);
	/* A context that is none (any more), and what never was one. */
	static const struct {
		enum ckt_kind kind;
		CUresult result;
	} strangers[] = {{CKT_KIND_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED},
		{CKT_KIND_STREAM, CUDA_ERROR_INVALID_CONTEXT}};
	for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
		uint8_t record[CKT_CALL_HEADER_SIZE];
		uint32_t xid = ++w->xid;
		ckt_call_header_put(record,
			&(struct ckt_call_header){.xid = xid,
				.prog = CKT_CUDA_PROG,
				.vers = CKT_CUDA_VERS,
				.proc = wire_proc("ctx_synchronize"),
				.context = ckt_handle_make(strangers[i].kind, 7, 100)});
		CU_ASSERT_EQUAL(ckt_net_write_record(w->fd, record, sizeof record, -1, -1), 0);
		CU_ASSERT_EQUAL(done(wire_read(w, xid)), strangers[i].result);
	}
	alloc(w, 64);
	session_end(w);
}

/*
 * ---- Pieces: each of many records ends somewhere else in what one read brings, and all together
 * wrap the input buffer
 */

static void test_pieces(void)
{
	enum { RECORDS = 60, DATA = 300001, STEP = 65521 };
	struct wire *w = session_new();
	uint64_t block = alloc(w, DATA), first = w->seq;
	uint8_t *stream = malloc((size_t)RECORDS * (DATA + 512)), *p = stream, *data = malloc(DATA);
	for (int i = 0; i < RECORDS; i++) {
		uint32_t length = i == RECORDS - 1 ? DATA : (uint32_t)(1 + (i * 7919) % DATA);
		memset(data, i + 1, length);
		struct ckt_memcpy_htod_args args = {.dst = block, .data = data, .data_len = length};
		size_t size = CKT_CALL_HEADER_SIZE + ckt_memcpy_htod_args_size(&args);
		p = ckt_put_u32(p, 0x80000000u | (uint32_t)size);
		p = ckt_call_header_put(p,
			&(struct ckt_call_header){.xid = ++w->xid,
				.prog = CKT_CUDA_PROG,
				.vers = CKT_CUDA_VERS,
				.proc = wire_proc("memcpy_htod"),
				.seq = ++w->seq,
				.acked = first,
				.flags = CKT_CALL_BATCHED,
				.context = ckt_handle_primary(0)});
		p = ckt_memcpy_htod_args_put(p, &args);
	}
	/* Single bytes to begin with, then odd pieces. */
	for (uint8_t *at = stream; at < p;) {
		size_t piece = at < stream + 300  ? 1
			: (size_t)(p - at) < STEP ? (size_t)(p - at)
						  : STEP;
		ssize_t n = write(w->fd, at, piece);
		CU_ASSERT_TRUE_FATAL(n > 0);
		at += n;
	}
	struct wire_reply reply = WIRE_CALL(w, memcpy_dtoh, true, .src = block, .size = DATA);
	struct ckt_memcpy_dtoh_res res = {0};
	CU_ASSERT_TRUE(reply.result == CUDA_SUCCESS &&
		ckt_memcpy_dtoh_res_get(&reply.results, &res) && res.data_len == DATA);
	memset(data, RECORDS, DATA);
	CU_ASSERT_EQUAL(memcmp(res.data, data, DATA), 0);
	free(reply.data);
	free(stream);
	free(data);
	CU_ASSERT_EQUAL(wire_stat_calls(w, "memcpy_htod"), RECORDS);
	session_end(w);
}

/* ---- The same session's next connection */

static void test_takeover(void)
{
	struct wire *w = session_new();
	alloc(w, 64);
	int old = dup(w->fd);
	/* Half a record lies in the worker's buffer. */
	CU_ASSERT_EQUAL(write(old, "\x80\0\0\x60half", 8), 8);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	CU_ASSERT_TRUE(is_closed(old));
	close(old);
	CU_ASSERT_EQUAL(w->executed, w->seq);
	alloc(w, 64);
	session_end(w);
}

UNIT_SUITE(executor, {"no commands", test_no_commands}, {"unknown", test_unknown},
	{"pieces", test_pieces}, {"takeover", test_takeover})
