/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: what a client of kind CONTROL reads of a server before it trusts it, over a
 * socket pair.  The bytes, after four that choose the circumstances, are records without their
 * marks, each behind a two-byte length: greeting, reply to the hello, replies to calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/control.h"
#include "rpc/greeting.h"
#include "rpc/hello.h"
#include "rpc/lane.h"
#include "rpc/net.h"
#include "rpc/record.h"
#include "rpc/session.h"
#include "rpc/starttls.h"
#include "tests/fuzz/mutate_xdr.h"

enum { HEAD = 4, RECORDS = 4, RECORD_MAX = 2000 };
enum {
	IS_UNIX = 1,
	WITH_TOKEN = 2,
	WITH_BAD_TOKEN = 4,
	WITH_WRONG_XID = 8,
	WITH_CALL = 16,
	WITH_PASS = 32,
	IS_RAW = 64,
	WITH_LONG_PROGRAM = 128,
};

static char token_path[] = "/tmp/ckt-fuzz-XXXXXX";

/* The mark, the record, and with WITH_PASS a descriptor beside it. */
static void say(int fd, const uint8_t *data, size_t size, uint8_t flags, uint8_t mark_bit)
{
	uint8_t bytes[CKT_MARK_SIZE + RECORD_MAX];
	uint8_t *p = ckt_mark_put(bytes, size);
	memcpy(p, data, size);
	if (mark_bit)
		bytes[mark_bit / 8 % CKT_MARK_SIZE] ^= (uint8_t)(1u << mark_bit % 8);
	struct iovec iov = {bytes, CKT_MARK_SIZE + size};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	if (flags & WITH_PASS)
		ckt_net_fd_put(&message, &room, fd);
	fuzz_insist(sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) > 0, "no room in a socket");
}

static int64_t deadline_ms;

static void try_call(int fd, bool too_long)
{
	ckt_control_result result = {0};
	static ckt_control_session_args args;
	char session[256];
	memset(session, 'a', sizeof session);
	session[too_long ? sizeof session - 1 : 4] = 0;
	args.session = session;
	if (ckt_net_call(fd, CRICKET_CONTROL_PROG, CKT_CONTROL_KILL,
		    (xdrproc_t)xdr_ckt_control_session_args, &args,
		    (xdrproc_t)xdr_ckt_control_result, &result, deadline_ms, -1))
		return;
	/* What was decoded encodes; a session passes such replies on. */
	uint8_t *data;
	size_t size;
	if (!ckt_net_encode_reply(1, 0, (xdrproc_t)xdr_ckt_control_result, &result, &data, &size))
		free(data);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
}

/* A record of our own, read with its descriptor. */
static void try_read(int fd)
{
	uint8_t *data;
	size_t size;
	int passed;
	if (ckt_net_read_record(fd, RECORD_MAX, deadline_ms, &data, &size, &passed))
		return;
	free(data);
	if (passed >= 0)
		close(passed);
}

/* The answer to a program's hello, which may bring a memory file. */
static void try_answer(int fd)
{
	ckt_hello_res res = {0};
	int memory_fd = -1;
	int result = ckt_hello_answer_read(fd, 1, deadline_ms, &res, &memory_fd);
	fuzz_insist(!result || memory_fd < 0, "a descriptor without an answer");
	if (memory_fd >= 0)
		close(memory_fd);
	xdr_free((xdrproc_t)xdr_ckt_hello_res, (char *)&res);
}

/* Nothing more can be written until the peer reads. */
static void fill(int fd, bool full)
{
	uint8_t bytes[4096] = {0};
	while (full && send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
}

static uint32_t calls; /* as ckt_net_call counts them */

/* The end of the input as the head of a lane's frame: refused, or the same when it is written. */
static void try_lane(const uint8_t *data, size_t size)
{
	uint8_t again[CKT_LANE_HEAD_SIZE];
	struct ckt_lane_head head;
	if (size < sizeof again || ckt_lane_head_get(data + size - sizeof again, &head))
		return;
	fuzz_insist(head.size <= CKT_DATA_MAX, "a piece that is too long");
	ckt_lane_head_put(again, &head);
	fuzz_insist(!memcmp(again, data + size - sizeof again, sizeof again), "another head");
}

/* The end of the input as the call that asks for TLS, or its answer: the same when it is written. */
static void try_starttls(const uint8_t *data, size_t size)
{
	uint8_t call[CKT_STARTTLS_CALL_SIZE], reply[CKT_STARTTLS_REPLY_SIZE], nonce[CKT_NONCE_SIZE];
	uint32_t xid;
	size_t call_size = size < sizeof call ? size : sizeof call;
	if (ckt_starttls_call_get(data + size - call_size, call_size, &xid)) {
		ckt_starttls_call_put(call, xid);
		fuzz_insist(!memcmp(call, data + size - call_size, sizeof call), "another call");
	}
	size_t reply_size = size < sizeof reply ? size : sizeof reply;
	ckt_starttls_reply_put(reply, xid);
	fuzz_insist(!ckt_starttls_reply_get(data + size - reply_size, reply_size, xid) ||
			!memcmp(reply, data + size - reply_size, sizeof reply),
		"another answer");
	memset(nonce, 1, sizeof nonce);
	if (size >= CKT_TLS_EXPORTER_SIZE)
		ckt_starttls_bind(nonce, data + size - CKT_TLS_EXPORTER_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEAD)
		return 0;
	try_lane(data, size);
	try_starttls(data, size);
	struct fuzz_input input = {data, data + size};
	uint8_t flags = fuzz_u8(&input), marks = fuzz_u8(&input), fails = fuzz_u8(&input),
		extra = fuzz_u8(&input);
	int fds[2];
	fuzz_insist(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), "no sockets");
	for (unsigned n = 0; n < RECORDS && input.p < input.end; n++) {
		size_t have;
		size_t length = (size_t)fuzz_u8(&input) << 8;
		length |= fuzz_u8(&input);
		uint8_t record[RECORD_MAX];
		const uint8_t *bytes =
			fuzz_bytes(&input, length < RECORD_MAX ? length : RECORD_MAX, &have);
		memcpy(record, bytes, have);
		/* What a reply belongs to is its xid: the right one, so that its body matters. */
		if (have >= 4 && n && !(flags & WITH_WRONG_XID))
			ckt_put_u32(record, n == 1 ? 1 : calls + 1);
		say(fds[1], record, have, flags, (uint8_t)(n == extra % RECORDS ? marks : 0));
	}
	/* The peer ends, or falls silent; either is seen at once. */
	bool silent = extra & 0x80, full = extra & 0x40;
	deadline_ms = silent || full ? 0 : ckt_net_now_ms() + 1000;
	if (!silent)
		shutdown(fds[1], SHUT_WR);
	if (extra & 0x20)
		shutdown(fds[1], SHUT_RD);
	fill(fds[0], full);
	char message[256] = "", program[2 * CKT_NAME_MAX];
	memset(program, 'p', sizeof program);
	program[flags & WITH_LONG_PROGRAM ? sizeof program - 1 : 8] = 0;
	fuzz_fail_allocation(fails);
	int result = flags & IS_RAW ? -EPROTO
				    : ckt_hello_control(&fds[0], NULL, flags & IS_UNIX, program,
					      flags & WITH_BAD_TOKEN       ? "/nonexistent"
						      : flags & WITH_TOKEN ? token_path
									   : NULL,
					      deadline_ms, message, sizeof message);
	fuzz_insist(result <= 0, "a hello gives 0 or an error");
	if (extra & 0x10 && flags & IS_RAW) {
		try_answer(fds[0]);
	} else if (flags & WITH_CALL) {
		calls++;
		try_call(fds[0], flags & WITH_LONG_PROGRAM);
	} else {
		try_read(fds[0]);
	}
	fuzz_fail_allocation(0);
	close(fds[0]);
	close(fds[1]);
	return 0;
}

/* ---- Valid records */

static size_t put_record(uint8_t *to, const uint8_t *record, size_t size)
{
	to[0] = (uint8_t)(size >> 8);
	to[1] = (uint8_t)size;
	memcpy(to + 2, record, size);
	return size + 2;
}

static xdrproc_t routine_of(unsigned n)
{
	return n == 0    ? (xdrproc_t)xdr_ckt_greeting
		: n == 1 ? (xdrproc_t)xdr_ckt_hello_res
			 : (xdrproc_t)xdr_ckt_control_result;
}

/* Header and body of record n, made of what the input has there. */
static size_t make_record(
	unsigned n, const uint8_t *old, size_t old_size, uint8_t *to, size_t room, unsigned seed)
{
	uint8_t *p;
	size_t header = n ? CKT_REPLY_HEADER_SIZE : CKT_CALL_HEADER_SIZE;
	if (room < header)
		return 0;
	if (n)
		p = ckt_reply_header_put(to, &(struct ckt_reply_header){.xid = n});
	else
		p = ckt_call_header_put(to,
			&(struct ckt_call_header){.xid = 0,
				.prog = CRICKET_CALLBACK_PROG,
				.vers = 1,
				.proc = CKT_CALLBACK_GREETING});
	size_t skip = old_size < header ? old_size : header;
	size_t body = fuzz_mutate_xdr(
		routine_of(n), 4096, old + skip, old_size - skip, p, room - header, seed);
	return header + body;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	uint8_t out[HEAD + RECORDS * (2 + RECORD_MAX)], record[RECORD_MAX];
	if (fuzz_random(&seed) % 4 == 0 || max_size < sizeof out)
		return LLVMFuzzerMutate(data, size, max_size);
	struct fuzz_input input = {data, data + size};
	for (unsigned i = 0; i < HEAD; i++)
		out[i] = fuzz_u8(&input);
	if (fuzz_random(&seed) % 4 == 0)
		out[0] ^= (uint8_t)(1u << fuzz_random(&seed) % 8);
	if (fuzz_random(&seed) % 8 == 0)
		out[2] = (uint8_t)(fuzz_random(&seed) % 12);
	if (fuzz_random(&seed) % 8 == 0)
		out[3] ^= (uint8_t)(0x10u << fuzz_random(&seed) % 4);
	size_t at = HEAD;
	for (unsigned n = 0; n < RECORDS; n++) {
		size_t old_size, length = (size_t)fuzz_u8(&input) << 8;
		length |= fuzz_u8(&input);
		const uint8_t *old = fuzz_bytes(&input, length, &old_size);
		size_t made =
			make_record(n, old, old_size, record, sizeof record, fuzz_random(&seed));
		if (fuzz_random(&seed) % 16 == 0)
			made = LLVMFuzzerMutate(record, made, sizeof record);
		at += put_record(out + at, record, made);
	}
	if (fuzz_random(&seed) % 8 == 0 && at + CKT_LANE_HEAD_SIZE <= sizeof out) {
		bool bytes = fuzz_random(&seed) % 2;
		const struct ckt_lane_head head = {.kind = bytes ? CKT_LANE_DATA : CKT_LANE_ARRIVED,
			.size = bytes ? 1 + fuzz_random(&seed) % CKT_DATA_MAX : 0,
			.piece = fuzz_random(&seed)};
		ckt_lane_head_put(out + at, &head);
		at += CKT_LANE_HEAD_SIZE;
	}
	memcpy(data, out, at);
	return at;
}

static void remove_token(void)
{
	unlink(token_path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	int fd = mkstemp(token_path);
	fuzz_insist(fd >= 0 && write(fd, "a token of enough length\n", 25) == 25, "no token");
	close(fd);
	atexit(remove_token);
	static uint8_t seed[HEAD + RECORDS * (2 + RECORD_MAX)];
	const char *directory = getenv("CKT_FUZZ_SEEDS");
	if (!directory)
		return 0;
	size_t size = LLVMFuzzerCustomMutator(seed, HEAD, sizeof seed, 3);
	fuzz_write_seed(directory, "hello", seed, size);
	exit(0);
}
