/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: what a client reads while it sends its commands again (client/conn/replay_run.c),
 * from a worker that answers what it likes.
 *
 * An input: a head of 8 bytes, 4 bytes for each command of the log, and then one step for each
 * record that the worker gets and for each wait of the client: a byte for what the worker does, and
 * one for how.  A step of 0 is the right answer.  Commands that are numbered must come in order, once
 * each, and a replay must not succeed if an answer was not the first time's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "client/conn/conn.h"
#include "client/conn/replay.h"
#include "client/conn/settings.h"
#include "rpc/gen/cuda_codec.h"
#include "rpc/record.h"
#include "tests/fuzz/fuzz.h"

enum { COMMANDS_MAX = 24, BODY_MAX = 64, OUT_MAX = 8192, ASKED_MAX = 64, WAITS_MAX = 400 };
enum { OWN_XID = 1000, OPEN_XID = 500, COPY_BEFORE = 100, COPY = 200 };
enum step {
	STEP_RIGHT,
	STEP_NOT_READY,
	STEP_RESULT,
	STEP_DATA,
	STEP_DEFERRED,
	STEP_REFUSED,
	STEP_SHORT,
	STEP_BYTES,
	STEP_CALLBACK,
	STEP_SILENT,
	STEP_END,
	STEP_HALF,
	STEPS
};
/* Of a command: what it is. */
enum kind { KIND_ALLOC, KIND_LAUNCH, KIND_COPY, KIND_WAIT, KIND_QUERY, KIND_LOAD, KINDS };
enum { ANSWERED = 8, DEFERRED = 16, CHANCE = 32, LIBRARY = 64, UNTOLD = 128 };

/* What the program got the first time. */
static struct first {
	uint64_t seq;
	uint32_t xid;
	enum kind kind;
	bool answered, deferred;
	uint8_t body[BODY_MAX];
	size_t size;
} firsts[COMMANDS_MAX];
static unsigned first_count;

static struct fuzz_input input;
static uint8_t out[OUT_MAX], in[2 * (CKT_RECORD_MAX + CKT_MARK_SIZE)];
static size_t out_size, in_size;
static uint32_t asked[ASKED_MAX]; /* xids that the worker has not answered */
static unsigned asked_count, waits;
static uint64_t last_seq, start;
static bool ended, lied, again, refuses, stamped;
static int64_t now_ms;

/* ---- Time passes only here */

int64_t __wrap_ckt_net_now_ms(void);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
void __wrap_ckt_log_user(const char *format, ...);

int64_t __wrap_ckt_net_now_ms(void)
{
	return now_ms += 1000;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)time, (void)left;
	return 0;
}

void __wrap_ckt_log_user(const char *format, ...)
{
	(void)format;
}

/* ---- The worker */

static void say(const uint8_t *data, size_t size)
{
	if (size > OUT_MAX - out_size)
		size = OUT_MAX - out_size;
	memcpy(out + out_size, data, size);
	out_size += size;
}

static void say_record(const uint8_t *data, size_t size)
{
	uint8_t mark[CKT_MARK_SIZE];
	ckt_mark_put(mark, size);
	say(mark, sizeof mark);
	say(data, size);
}

static const struct first *first_of(uint32_t xid)
{
	for (unsigned i = 0; i < first_count; i++)
		if (firsts[i].xid == xid)
			return &firsts[i];
	return NULL;
}

static void answer(enum step step, uint8_t how)
{
	uint8_t record[CKT_REPLY_HEADER_SIZE + BODY_MAX] = {0}, *p;
	if (!asked_count)
		return;
	uint32_t xid = asked[0];
	memmove(asked, asked + 1, --asked_count * sizeof *asked);
	const struct first *first = first_of(xid);
	struct ckt_reply_header header = {.xid = xid,
		.accept_stat = step == STEP_REFUSED ? how % 6 : 0,
		.deferred = step == STEP_DEFERRED ? 1 + how % 3 : 0};
	p = ckt_reply_header_put(record, &header);
	size_t size = first ? first->size : 4;
	if (first)
		memcpy(p, first->body, size);
	else if (refuses)
		p[3] = 1;
	if (step == STEP_NOT_READY)
		ckt_put_u32(p, CUDA_ERROR_NOT_READY);
	if (step == STEP_RESULT)
		ckt_put_u32(p, how);
	if (step == STEP_DATA)
		p[how % size] ^= 1 + how / 64;
	bool waits_for = first && !first->seq && step == STEP_NOT_READY &&
		!ckt_get_u32(&(struct ckt_cursor){.p = first->body, .end = first->body + 4});
	/* Behind a failure there are no results; what a compiler says is told anew. */
	size_t counts = !first || memcmp(first->body, "\0\0\0", 4) ? 4
		: first->kind == KIND_LOAD && size > 8             ? 8
								   : size;
	bool differs = first && (memcmp(p, first->body, counts) || header.accept_stat);
	lied |= first && first->answered && first->seq > start && differs && !waits_for;
	if (step == STEP_SHORT)
		say_record(record, how % (CKT_REPLY_HEADER_SIZE + 4));
	else
		say_record(record, CKT_REPLY_HEADER_SIZE + size);
}

static void callback(uint8_t how)
{
	uint8_t record[CKT_CALL_HEADER_SIZE + BODY_MAX] = {0};
	if (stamped && how < 32) {
		/* No stamps, no reply's end, but a command that is late. */
		uint8_t *late = ckt_call_header_put(record,
			&(struct ckt_call_header){.prog = CRICKET_CALLBACK_PROG,
				.vers = 1,
				.proc = CKT_CALLBACK_STAMPS});
		ckt_put_u64(late + 24, how);
		say_record(record, CKT_CALL_HEADER_SIZE + 32);
		return;
	}
	uint8_t *p = ckt_call_header_put(record,
		&(struct ckt_call_header){.prog = CRICKET_CALLBACK_PROG + how / 128,
			.vers = 1,
			.proc = how & 64 ? CKT_CALLBACK_DURABLE : CKT_CALLBACK_PARKED});
	p[7] = how & 31;
	say_record(record, CKT_CALL_HEADER_SIZE + (how & 32 ? 4 : 8));
}

static void do_step(void)
{
	uint8_t step = fuzz_u8(&input), how = fuzz_u8(&input);
	size_t have;
	switch (step % STEPS) {
	case STEP_BYTES:
		say(fuzz_bytes(&input, how % 48, &have), have);
		break;
	case STEP_CALLBACK:
		callback(how);
		break;
	case STEP_SILENT:
		break;
	case STEP_END:
		ended = true;
		break;
	case STEP_HALF:
		again = true;
		break;
	default:
		answer((enum step)(step % STEPS), how);
	}
}

/* A whole record of the client's. */
static void take(const uint8_t *record, size_t size)
{
	struct ckt_call_header header = {0};
	struct ckt_cursor c = {.p = record, .end = record + size};
	if (ckt_call_header_get(&c, &header) && header.prog != CRICKET_SESSION_PROG) {
		if (header.seq > start) {
			fuzz_insist(header.seq == last_seq + 1, "a command is not the next one");
			last_seq = header.seq;
		}
	} else {
		memcpy(&header.xid, record, sizeof header.xid);
		header.xid = __builtin_bswap32(header.xid);
		/* These alone have no reply. */
		uint32_t proc = header.proc ? header.proc : size > 24 ? record[23] : 0;
		if (proc == CKT_SESSION_IMPOSE || proc == CKT_SESSION_STAMP)
			header.xid = 0;
	}
	if (header.xid && asked_count < ASKED_MAX)
		asked[asked_count++] = header.xid;
	do_step();
}

/* ---- The connection */

static ssize_t fake_write(struct ckt_transport *t, const void *data, size_t size)
{
	(void)t;
	if (ended)
		return -EPIPE;
	if (again) {
		again = false;
		return -EAGAIN;
	}
	if (size > 7 && fuzz_random(&(unsigned){(unsigned)size + last_seq}) % 4 == 0)
		size /= 2;
	memcpy(in + in_size, data, size);
	in_size += size;
	size_t record;
	while (in_size >= CKT_MARK_SIZE && !ckt_mark_get(in, CKT_RECORD_MAX, &record) &&
		in_size >= CKT_MARK_SIZE + record) {
		take(in + CKT_MARK_SIZE, record);
		in_size -= CKT_MARK_SIZE + record;
		memmove(in, in + CKT_MARK_SIZE + record, in_size);
	}
	return (ssize_t)size;
}

static ssize_t fake_read(struct ckt_transport *t, void *data, size_t size)
{
	(void)t;
	if (!out_size)
		return ended ? -ECONNRESET : -EAGAIN;
	if (size > out_size)
		size = out_size;
	memcpy(data, out, size);
	out_size -= size;
	memmove(out, out + size, out_size);
	return (ssize_t)size;
}

static bool fake_vanished(struct ckt_transport *t, unsigned after_ms)
{
	(void)t, (void)after_ms;
	return waits > WAITS_MAX;
}

int __wrap_ckt_transport_wait(struct ckt_transport *t, unsigned want, int timeout_ms);
int __wrap_ckt_transport_wait(struct ckt_transport *t, unsigned want, int timeout_ms)
{
	(void)t, (void)timeout_ms;
	waits++;
	do_step();
	if (waits % 16 == 15)
		return -EINTR;
	return waits == WAITS_MAX - 1 ? -EIO : (int)want;
}

static const struct ckt_transport_operations operations = {
	.name = "fake", .read = fake_read, .write = fake_write, .vanished = fake_vanished};

/* ---- The log */

static const uint32_t procedures[KINDS] = {[KIND_ALLOC] = CKT_PROC_MEM_ALLOC,
	[KIND_LAUNCH] = CKT_PROC_LAUNCH_KERNEL,
	[KIND_COPY] = CKT_PROC_MEMCPY_DTOH,
	[KIND_WAIT] = CKT_PROC_STREAM_SYNCHRONIZE,
	[KIND_QUERY] = CKT_PROC_EVENT_QUERY,
	[KIND_LOAD] = CKT_PROC_MODULE_LOAD};

static struct ckt_call_header header_of(const struct first *first)
{
	return (struct ckt_call_header){.xid = first->xid,
		.prog = CKT_CUDA_PROG,
		.vers = 1,
		.proc = procedures[first->kind],
		.seq = first->seq};
}

static void add_reply(const struct first *first, uint64_t before)
{
	struct ckt_call_header call = header_of(first);
	struct ckt_reply_header header = {.deferred = first->deferred ? 1 : 0};
	struct ckt_cursor body = {.p = first->body, .end = first->body + first->size};
	struct ckt_log_reply reply;
	ckt_replay_describe(&call, &header, &body, &reply);
	reply.before = before;
	reply.end = stamped ? 1000 * first->xid + 500 : 0;
	ckt_replay_log_reply(&ckt_conn.replay->log, &reply);
}

static void add_library(uint64_t seq)
{
	uint8_t record[CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE];
	ckt_call_header_put(ckt_mark_put(record, CKT_CALL_HEADER_SIZE),
		&(struct ckt_call_header){.xid = OPEN_XID + (uint32_t)seq,
			.prog = CKT_LIB_PROG + CKT_LIB_CUFFT,
			.vers = 1,
			.proc = 1});
	ckt_replay_keep(&ckt_conn, record);
}

/* A command with what the program got for it; *seq: the last one's number. */
static void add(uint64_t *seq)
{
	uint8_t kind = fuzz_u8(&input), result = fuzz_u8(&input), size = fuzz_u8(&input),
		late = fuzz_u8(&input);
	struct first *first = &firsts[first_count++];
	uint8_t record[CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE + 8] = {0};
	*first = (struct first){.xid = first_count,
		.kind = (enum kind)(kind % 8 % KINDS),
		.answered = kind & ANSWERED,
		.deferred = kind & DEFERRED,
		.size = 4 + size % (BODY_MAX - 4)};
	bool numbered = first->kind != KIND_WAIT && first->kind != KIND_QUERY;
	first->seq = numbered ? ++*seq : 0;
	memset(first->body + 4, size, first->size - 4);
	first->body[3] = kind & CHANCE ? CUDA_ERROR_OUT_OF_MEMORY : result % 8 ? 0 : result / 8;
	struct ckt_call_header header = header_of(first);
	ckt_call_header_put(ckt_mark_put(record, sizeof record - CKT_MARK_SIZE), &header);
	ckt_replay_log_command(&ckt_conn.replay->log, record,
		&(struct ckt_log_command){.seq = header.seq,
			.size = sizeof record,
			.xid = header.xid,
			.prog = header.prog,
			.proc = header.proc,
			.stamp = stamped && !(kind & UNTOLD) ? 1000 * header.xid : 0});
	ckt_conn.replay->last = *seq;
	if (first->answered)
		add_reply(first, *seq + 1 + late % 4);
	if (kind & LIBRARY)
		add_library(*seq);
}

static void open_replay(void)
{
	static ckt_capability durable = {(char *)CKT_CAPABILITY_DURABLE, 1};
	const struct ckt_hello_ok ok = {.capabilities = {1, &durable}};
	ckt_settings.durable = true;
	ckt_settings.replay_memory_bytes = 64 << 20;
	ckt_settings.replay_directory = "/nonexistent";
	ckt_conn.copy = ckt_conn.offered_copy = COPY_BEFORE;
	ckt_conn.deferred = CUDA_SUCCESS;
	ckt_conn.next_xid = OWN_XID;
	ckt_replay_open(&ckt_conn, &ok);
	if (ckt_conn.replay && stamped)
		ckt_conn.replay->stamps.on = ckt_conn.replay->stamps.clock = 7;
}

/* One attempt; partial: the one before broke off at the same copy. */
static void run(uint64_t executed)
{
	static ckt_capability told[] = {{(char *)CKT_CAPABILITY_COPY, COPY},
		{(char *)CKT_CAPABILITY_DURABLE, 1}, {(char *)CKT_CAPABILITY_BEFORE, COPY_BEFORE},
		{(char *)CKT_CAPABILITY_STAMPED, 1}};
	char message[CKT_MESSAGE_MAX] = "";
	struct ckt_transport to = {.operations = &operations, .fd = -1};
	const struct ckt_hello_ok ok = {.executed = executed, .capabilities = {3 + stamped, told}};
	/* As the caller does. */
	if (!ckt_replay_accepts(&ckt_conn, &ok, "here", message, sizeof message))
		return;
	start = last_seq = executed;
	asked_count = waits = 0;
	out_size = in_size = 0;
	ended = lied = again = false;
	int result = ckt_replay_run(&ckt_conn, &to, &ok, message, sizeof message);
	fuzz_insist(result <= 0, "a replay gives 0 or an error");
	fuzz_insist(!result || *message, "an error without a message");
	fuzz_insist(result || !lied, "another answer than the first time's is taken");
	fuzz_insist(!ckt_conn.replay || !ckt_conn.replay->running, "it still runs");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t seq = 0;
	input = (struct fuzz_input){data, data + size};
	uint8_t count = fuzz_u8(&input), executed = fuzz_u8(&input), known = fuzz_u8(&input),
		fails = fuzz_u8(&input), cut = fuzz_u8(&input), twice = fuzz_u8(&input);
	refuses = fuzz_u8(&input) == 0xff;
	stamped = fuzz_u8(&input) & 1;
	now_ms = 0;
	first_count = 0;
	open_replay();
	for (unsigned i = 0; ckt_conn.replay && i < count % (COMMANDS_MAX + 1); i++)
		add(&seq);
	ckt_conn.next_seq = seq + 1;
	ckt_conn.executed = known & 0x80 ? known % (seq + 1) : seq;
	if (cut & 0x80)
		ckt_replay_durable(&ckt_conn, cut % (seq + 1));
	uint64_t began = ckt_conn.replay ? ckt_conn.replay->began : 0;
	executed = (uint8_t)(began + executed % (seq - began + 1));
	if (ckt_conn.replay) {
		fuzz_fail_allocation(fails & 0x80 ? fails & 7 : 0);
		run(executed);
		fuzz_fail_allocation(0);
	}
	/* The copy has executed what it got, or less. */
	if (ckt_conn.replay && ckt_conn.replay->partial_copy && (twice & 1))
		run(last_seq > executed && (twice & 2) ? last_seq : executed);
	ckt_replay_lose(&ckt_conn, "the input is over");
	return 0;
}

/* ---- Valid inputs */

static void seed(const char *to, const char *name, const uint8_t *head, const uint8_t *commands,
	unsigned count, const uint8_t *steps, size_t steps_size)
{
	uint8_t bytes[8 + 4 * COMMANDS_MAX + 256] = {0};
	memcpy(bytes, head, 8);
	bytes[0] = (uint8_t)count;
	memcpy(bytes + 8, commands, 4 * (size_t)count);
	memcpy(bytes + 8 + 4 * (size_t)count, steps, steps_size);
	fuzz_write_seed(to, name, bytes, 8 + 4 * (size_t)count + steps_size);
}

static void write_seeds(const char *to)
{
	enum { A = ANSWERED, N = 6 };
	static const uint8_t whole[8] = {0}, again_head[8] = {0, 0, 0, 0, 0, 3},
			     cut[8] = {0, 0, 0, 0, 0x81}, no[8] = {0, 0, 0, 0, 0, 0, 0xff};
	static const uint8_t commands[4 * N] = {KIND_ALLOC | A | LIBRARY, 1, 8, 0, KIND_LAUNCH, 1,
		0, 0, KIND_QUERY | A, 1, 0, 0, KIND_COPY | A, 1, 30, 0, KIND_WAIT | A | DEFERRED, 1,
		0, 0, KIND_LOAD | A | CHANCE, 1, 4, 0};
	static const uint8_t plain[4 * 3] = {
		KIND_ALLOC | A, 1, 8, 0, KIND_QUERY | A, 1, 0, 0, KIND_COPY | A, 1, 30, 0};
	static const uint8_t wrong[STEPS] = {0};
	char name[24];
	seed(to, "whole", whole, commands, N, wrong, 0);
	seed(to, "plain", whole, plain, 3, wrong, 0);
	seed(to, "cut", cut, commands, N, wrong, 0);
	seed(to, "refused", no, commands, N, wrong, 0);
	for (uint8_t step = 0; step < STEPS; step++)
		for (uint8_t at = 0; at < 8; at++) {
			uint8_t steps[64] = {0};
			steps[2 * at] = step;
			steps[2 * at + 1] = 1;
			snprintf(name, sizeof name, "step-%u-%u", step, at);
			seed(to, name, again_head, step % 2 ? plain : commands, step % 2 ? 3 : N,
				steps, sizeof steps);
			seed(to, strcat(name, "b"), again_head, step % 2 ? commands : plain,
				step % 2 ? N : 3, steps, sizeof steps);
		}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *to = getenv("CKT_FUZZ_SEEDS");
	(void)argc, (void)argv;
	if (to) {
		write_seeds(to);
		exit(0);
	}
	ckt_log_init("fuzz", CKT_LOG_ERROR, NULL);
	ckt_conn_init(&ckt_conn);
	return 0;
}
