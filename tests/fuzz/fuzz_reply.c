/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: what a client reads of its server once it is connected (client/conn/reply.c):
 * replies for threads that wait, callbacks, and the progress that frees the ring.
 *
 * Steps, each one byte for what happens, one for how, a two-byte length and that many bytes.  Each
 * waiter must be answered once, and the ring must never be freed beyond what was sent.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "client/conn/conn.h"
#include "client/conn/replay.h"
#include "client/conn/settings.h"
#include "rpc/record.h"
#include "tests/fuzz/mutate_xdr.h"

enum { STEP_HEAD = 4, STEPS_MAX = 24, BODY_MAX = 2000, WAITERS_MAX = 16, SENT_MAX = 12 };
enum { RECORD_BYTES = 64, CONTEXTS = 16, PATIENTLY = 0xbf, DURABLE = 0x7f, STAMPS = 0x7b };
enum step {
	STEP_ASK,
	STEP_REPLY,
	STEP_CALLBACK,
	STEP_RECORD,
	STEP_BYTES,
	STEP_END,
	STEP_SEND,
	STEPS
};
/* How a thread asks. */
enum { BY_CALLBACK = 1, SESSION_PROC = 2, WITH_REPLY = 4, LONG_MESSAGE = 8 };

static uint8_t ring[CKT_RING_SIZE], receive[CKT_RECEIVE_SIZE];
static int peer = -1;

/* ---- Whoever waits */

static struct ckt_waiter *waiters[WAITERS_MAX]; /* in order of their xids, which begin with 1 */
static struct ckt_reply replies[WAITERS_MAX];
static unsigned answers[WAITERS_MAX], waiter_count;

static void answered(void *data, CUresult result, struct ckt_cursor *results)
{
	unsigned *count = data;
	(void)result;
	fuzz_insist(++*count == 1, "a call is answered twice");
	fuzz_insist(results->p <= results->end, "results that end before they begin");
}

static void ask(uint8_t how)
{
	if (waiter_count == WAITERS_MAX)
		return;
	struct ckt_waiter *waiter = calloc(1, sizeof *waiter);
	if (!waiter)
		return;
	unsigned index = waiter_count++;
	*waiter = (struct ckt_waiter){.xid = index + 1,
		.context = how >> 4,
		.session_proc = how & SESSION_PROC,
		.message = waiter->message_small};
	answers[index] = 0;
	replies[index] = (struct ckt_reply){0};
	if (how & BY_CALLBACK) {
		waiter->callback = answered;
		waiter->data = &answers[index];
		if (how & LONG_MESSAGE)
			waiter->message = calloc(1, 300);
		ckt_conn.async_pending++;
	} else if (how & WITH_REPLY) {
		waiter->reply = &replies[index];
	}
	/* Those that wait by themselves stay the target's; the others are freed with their answer. */
	waiters[index] = how & BY_CALLBACK ? NULL : waiter;
	struct ckt_waiter **bucket = &ckt_conn.buckets[waiter->xid % CKT_WAITER_BUCKETS];
	waiter->hash_next = *bucket;
	*bucket = waiter;
	waiter->prev = ckt_conn.pending.prev;
	waiter->next = &ckt_conn.pending;
	waiter->prev->next = waiter->next->prev = waiter;
}

static void check_answers(void)
{
	for (unsigned i = 0; i < waiter_count; i++) {
		struct ckt_waiter *waiter = waiters[i];
		fuzz_insist(waiter ? waiter->done : answers[i] == 1, "a call without an answer");
		if (waiter && waiter->reply && !waiter->result)
			fuzz_insist(replies[i].results.p <= replies[i].results.end, "no results");
		free(replies[i].owned);
		free(waiter);
	}
	fuzz_insist(!ckt_conn.async_pending, "calls that nobody waits for are counted");
	waiter_count = 0;
}

/* ---- What the library does with it */

static unsigned interruptions;

ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);

/* The program's own output goes nowhere, in pieces, with interruptions and errors. */
ssize_t __wrap_write(int fd, const void *data, size_t size)
{
	if (fd != STDOUT_FILENO && fd != STDERR_FILENO)
		return __real_write(fd, data, size);
	if (++interruptions % 4 == 1) {
		errno = EINTR;
		return -1;
	}
	return interruptions % 16 == 15 ? 0 : (ssize_t)(size < 100 ? size : 100);
}

static void host_call(struct ckt_conn *conn, const struct ckt_host_call_args *call)
{
	fuzz_insist(conn == &ckt_conn && call, "a host function of nobody");
}

static void notify(struct ckt_conn *conn, const struct ckt_notify_args *args)
{
	fuzz_insist(conn == &ckt_conn && args, "a notification of nobody");
}

/* ---- Steps */

static void say(const uint8_t *data, size_t size)
{
	(void)!send(peer, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void say_record(const uint8_t *data, size_t size)
{
	uint8_t bytes[CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE + BODY_MAX];
	memcpy(ckt_mark_put(bytes, size), data, size);
	say(bytes, CKT_MARK_SIZE + size);
}

/* Two bytes say how far the worker is and what went wrong earlier; then the results. */
static void reply(uint8_t how, const uint8_t *data, size_t size)
{
	uint8_t record[CKT_REPLY_HEADER_SIZE + BODY_MAX];
	uint8_t *p = ckt_reply_header_put(record,
		&(struct ckt_reply_header){.xid = how % (WAITERS_MAX + 2),
			.executed = size > 0 ? data[0] : 0,
			.deferred = size > 1 ? data[1] : 0,
			.accept_stat = how > 0xf0 ? how & 7 : 0});
	size_t skip = size < 2 ? size : 2;
	memcpy(p, data + skip, size - skip);
	say_record(record, (size_t)(p - record) + size - skip);
}

static unsigned procedure(uint8_t how)
{
	return how == DURABLE   ? CKT_CALLBACK_DURABLE
		: how == STAMPS ? CKT_CALLBACK_STAMPS
				: how % 10;
}

static void callback(uint8_t how, const uint8_t *data, size_t size)
{
	uint8_t record[CKT_CALL_HEADER_SIZE + BODY_MAX];
	uint8_t *p = ckt_call_header_put(record,
		&(struct ckt_call_header){.prog = CRICKET_CALLBACK_PROG + (how >> 7),
			.vers = 1,
			.proc = procedure(how)});
	memcpy(p, data, size);
	say_record(record, (size_t)(p - record) + size);
}

/* A command of the program, as send.c leaves it in the ring; a zero word marks the ring's end. */
static void queue(uint64_t seq)
{
	struct ckt_conn *conn = &ckt_conn;
	size_t at = conn->sent % CKT_RING_SIZE;
	if (CKT_RING_SIZE - at < CKT_MARK_SIZE + RECORD_BYTES) {
		memset(ring + at, 0, CKT_MARK_SIZE);
		conn->sent = (conn->sent / CKT_RING_SIZE + 1) * CKT_RING_SIZE;
		at = 0;
	}
	ckt_mark_put(ring + at, RECORD_BYTES);
	ckt_put_u64(ring + at + CKT_MARK_SIZE + 32, seq);
	conn->tail = conn->sent = conn->sent + CKT_MARK_SIZE + RECORD_BYTES;
}

static int read_some(uint8_t how)
{
	int result = ckt_conn_read(&ckt_conn, how == PATIENTLY);
	fuzz_insist(result <= 0, "reading gives 0 or an error");
	fuzz_insist(ckt_conn.head <= ckt_conn.sent, "the ring is freed beyond what was sent");
	fuzz_insist(ckt_conn.receive_start <= ckt_conn.receive_end &&
			ckt_conn.receive_end <= CKT_RECEIVE_SIZE,
		"the buffer");
	fuzz_insist(ckt_conn.fault_count <= CKT_FAULTS_MAX, "more faults than there is room for");
	fuzz_insist(memchr(ckt_conn.moved_to, 0, sizeof ckt_conn.moved_to), "an endless address");
	return result;
}

/* False: the connection is over. */
static bool do_step(uint8_t step, uint8_t how, const uint8_t *data, size_t size, uint64_t *seq)
{
	switch (step % STEPS) {
	case STEP_ASK:
		ask(how);
		return true;
	case STEP_REPLY:
		reply(how, data, size);
		break;
	case STEP_CALLBACK:
		callback(how, data, size);
		break;
	case STEP_RECORD:
		say_record(data, size);
		break;
	case STEP_BYTES:
		say(data, size);
		break;
	case STEP_END:
		shutdown(peer, SHUT_WR);
		break;
	default:
		fuzz_fail_allocation(how & 0x80 ? how & 3 : 0);
		for (unsigned n = 0; n < how % SENT_MAX; n++)
			queue(++*seq);
	}
	/* Several may come at once. */
	int result = how & 0x40 ? -EAGAIN : read_some(how);
	return !result || result == -EAGAIN;
}

static void open_connection(bool keeps)
{
	struct ckt_conn *conn = &ckt_conn;
	int fds[2];
	fuzz_insist(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), "no sockets");
	ckt_transport_init_socket(&conn->transport, fds[0]);
	peer = fds[1];
	conn->ring = ring;
	conn->receive = receive;
	/* A record does not fit any more where the ring ends. */
	conn->head = CKT_RING_SIZE - 3 * RECORD_BYTES;
	conn->sent = conn->tail = conn->head;
	conn->executed = 0;
	conn->deferred = conn->error = CUDA_SUCCESS;
	conn->fault_count = 0;
	conn->receive_start = conn->receive_end = 0;
	conn->moved_to[0] = 0;
	conn->asleep = false;
	conn->next_seq = 2;
	conn->state = CKT_CONN_OPEN;
	/* Every second one keeps what leaves the ring. */
	ckt_capability durable = {(char *)CKT_CAPABILITY_DURABLE, 1};
	const struct ckt_hello_ok ok = {.capabilities = {1, &durable}};
	ckt_settings.durable = keeps;
	ckt_settings.replay_memory_bytes = 1 << 20;
	ckt_replay_open(conn, &ok);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, data + size};
	uint64_t seq = 0;
	bool open = true;
	open_connection(size % 2);
	for (unsigned n = 0; open && n < STEPS_MAX && input.p < input.end; n++) {
		size_t have;
		uint8_t step = fuzz_u8(&input), how = fuzz_u8(&input);
		size_t length = (size_t)fuzz_u8(&input) << 8;
		length |= fuzz_u8(&input);
		const uint8_t *bytes =
			fuzz_bytes(&input, length < BODY_MAX ? length : BODY_MAX, &have);
		open = do_step(step, how, bytes, have, &seq);
	}
	for (unsigned i = 0; i < 2 && open; i++)
		open = read_some(0) == 0;
	fuzz_fail_allocation(0);
	for (uint64_t context = 0; context < CONTEXTS; context++) {
		ckt_call_context = context;
		ckt_call_fault();
		ckt_call_forget_fault(context);
		fuzz_insist(!ckt_call_fault(), "a fault that is forgotten is still there");
	}
	ckt_waiter_finish_all(&ckt_conn, CUDA_ERROR_UNKNOWN);
	check_answers();
	ckt_replay_lose(&ckt_conn, "the input is over");
	ckt_transport_close(&ckt_conn.transport);
	close(peer);
	return 0;
}

/* ---- Valid steps */

/* By procedure of the callback program. */
static const struct {
	xdrproc_t xdr;
	size_t bytes;
} callbacks[] = {[CKT_CALLBACK_OUTPUT] = {(xdrproc_t)xdr_ckt_output_args, sizeof(ckt_output_args)},
	[CKT_CALLBACK_MOVED] = {(xdrproc_t)xdr_ckt_moved_args, sizeof(ckt_moved_args)},
	[CKT_CALLBACK_HOST_CALL] = {(xdrproc_t)xdr_ckt_host_call_args, sizeof(ckt_host_call_args)},
	[CKT_CALLBACK_NOTIFY] = {(xdrproc_t)xdr_ckt_notify_args, sizeof(ckt_notify_args)},
	[CKT_CALLBACK_MODULES] = {(xdrproc_t)xdr_ckt_modules_args, sizeof(ckt_modules_args)},
	[CKT_CALLBACK_DURABLE] = {(xdrproc_t)xdr_ckt_durable_args, sizeof(ckt_durable_args)},
	[CKT_CALLBACK_SLEEP] = {(xdrproc_t)xdr_ckt_sleep_args, sizeof(ckt_sleep_args)},
	[CKT_CALLBACK_STAMPS] = {(xdrproc_t)xdr_ckt_stamps_args, sizeof(ckt_stamps_args)}};
enum { CALLBACKS = sizeof callbacks / sizeof *callbacks };

static size_t put_step(
	uint8_t *to, uint8_t step, uint8_t how, const uint8_t *old, size_t size, unsigned seed)
{
	unsigned proc = procedure(how);
	uint8_t *body = to + STEP_HEAD;
	if (step % STEPS == STEP_CALLBACK && proc < CALLBACKS && callbacks[proc].xdr) {
		size = fuzz_mutate_xdr(callbacks[proc].xdr, callbacks[proc].bytes, old, size, body,
			BODY_MAX, seed);
	} else {
		memmove(body, old, size);
		/* How far the worker is, an earlier error, the result. */
		if (size > 5 && fuzz_random(&seed) % 2)
			body[fuzz_random(&seed) % 6] = (uint8_t)fuzz_random(&seed);
	}
	to[0] = step;
	to[1] = how;
	to[2] = (uint8_t)(size >> 8);
	to[3] = (uint8_t)size;
	return STEP_HEAD + size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	static uint8_t out[(STEPS_MAX + 1) * (STEP_HEAD + BODY_MAX)];
	static const uint8_t fresh[300];
	struct fuzz_input input = {data, data + size};
	size_t at = 0, have;
	unsigned n = 0;
	if (fuzz_random(&seed) % 8 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	for (; n < STEPS_MAX && input.p < input.end; n++) {
		uint8_t step = fuzz_u8(&input), how = fuzz_u8(&input);
		size_t length = (size_t)fuzz_u8(&input) << 8;
		length |= fuzz_u8(&input);
		const uint8_t *old =
			fuzz_bytes(&input, length < BODY_MAX ? length : BODY_MAX, &have);
		if (fuzz_random(&seed) % 16 == 0)
			continue;
		if (fuzz_random(&seed) % 8 == 0)
			how = (uint8_t)fuzz_random(&seed);
		at += put_step(out + at, step, how, old, have, fuzz_random(&seed));
	}
	if (n < STEPS_MAX && fuzz_random(&seed) % 2) {
		uint8_t step = (uint8_t)(fuzz_random(&seed) % STEPS);
		have = step == STEP_REPLY || step == STEP_RECORD ? fuzz_random(&seed) % sizeof fresh
								 : 0;
		at += put_step(out + at, step, (uint8_t)fuzz_random(&seed), fresh, have,
			fuzz_random(&seed));
	}
	if (!at || at > max_size)
		return LLVMFuzzerMutate(data, size, max_size);
	memcpy(data, out, at);
	return at;
}

static void write_seeds(const char *to)
{
	static uint8_t seed[32 * (STEP_HEAD + BODY_MAX)], body[600];
	size_t at = 0;
	char name[16];
	/* Every way to ask, commands in the ring, and a reply that frees them; two with a fault. */
	for (unsigned how = 0; how < 12; how++)
		at += put_step(seed + at, STEP_ASK, (uint8_t)(how | how << 4), body, 0, 1);
	at += put_step(seed + at, STEP_SEND, SENT_MAX - 1, body, 0, 1);
	for (uint8_t xid = 1; xid < 14; xid++) {
		size_t size = xid == 8 ? sizeof body : xid < 3 ? 3 : 40;
		body[0] = xid;
		at += put_step(seed + at, STEP_REPLY, xid, body, 0, 1);
		seed[at - 2] = (uint8_t)(size >> 8);
		seed[at - 1] = (uint8_t)size;
		memcpy(seed + at, body, size);
		if (xid % 4 == 2 && size > 5)
			seed[at + 4] = 2, seed[at + 5] = 0xbc; /* CUDA_ERROR_ILLEGAL_ADDRESS */
		at += size;
	}
	fuzz_write_seed(to, "replies", seed, at);
	fuzz_write_seed(to, "silence", seed, put_step(seed, STEP_BYTES, PATIENTLY, body, 0, 1));
	for (uint8_t proc = 0; proc < 10; proc++) {
		at = put_step(seed, STEP_ASK, 0, body, 0, 1);
		at += put_step(seed + at, STEP_CALLBACK, proc, body, 0, proc);
		at += put_step(seed + at, STEP_CALLBACK, proc, body, 0, proc + 20);
		at += put_step(seed + at, STEP_END, 0, body, 0, 1);
		memcpy(name, "callback-0", 11);
		name[9] += (char)proc;
		fuzz_write_seed(to, name, seed, at);
	}
}

/* An image that stays, of commands that have left the ring; and a length that is no number. */
static void write_durable_seed(const char *to)
{
	static uint8_t seed[16 * (STEP_HEAD + BODY_MAX)], body[64];
	for (unsigned odd = 0; odd < 2; odd++) {
		size_t at = put_step(seed, STEP_ASK, 0, body, 0, 1);
		at += put_step(seed + at, STEP_SEND, SENT_MAX - 1, body, 0, 1);
		at += put_step(seed + at, STEP_REPLY, 1, body, 0, 1);
		seed[at - 1] = 40;
		memset(seed + at, 0, 40);
		seed[at] = 5;
		at += 40;
		for (unsigned size = 4; size <= 8; size += 4) {
			uint8_t *step = seed + at;
			memset(step, 0, STEP_HEAD + size);
			step[0] = STEP_CALLBACK;
			step[1] = DURABLE;
			step[3] = (uint8_t)size;
			step[STEP_HEAD + size - 1] = 1;
			at += STEP_HEAD + size;
		}
		/* A byte alone is no step. */
		fuzz_write_seed(to, odd ? "durable-1" : "durable-0", seed, at + odd);
	}
}

/* What a soft GPU says on stderr, in two pieces: lines that are refusals, one that is not, a long one. */
static void write_stderr_seed(const char *to)
{
	static const char *const pieces[] = {
		"cricket soft GPU: kernel k cannot run: x\nno refusal\n"
		"cricket: soft GPU: y\ncricket soft GPU: li",
		"nk: z\ncricket soft GPU: cuX is not supported\ncricket soft GPU: kernel fault\n"};
	static uint8_t seed[4 * (STEP_HEAD + BODY_MAX)];
	size_t at = 0;
	for (unsigned i = 0; i < 2; i++) {
		size_t length = strlen(pieces[i]), size = 8 + (length + 3) / 4 * 4;
		uint8_t *step = seed + at, *body = step + STEP_HEAD;
		step[0] = STEP_CALLBACK;
		step[1] = CKT_CALLBACK_OUTPUT;
		step[2] = (uint8_t)(size >> 8);
		step[3] = (uint8_t)size;
		body[3] = 2; /* the descriptor */
		body[7] = (uint8_t)length;
		memcpy(body + 8, pieces[i], length);
		at += STEP_HEAD + size;
	}
	fuzz_write_seed(to, "stderr", seed, at);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *to = getenv("CKT_FUZZ_SEEDS");
	(void)argc, (void)argv;
	if (to) {
		write_durable_seed(to);
		write_seeds(to);
		write_stderr_seed(to);
		exit(0);
	}
	ckt_log_init("fuzz", CKT_LOG_ERROR, NULL);
	ckt_conn_init(&ckt_conn);
	ckt_conn_host_call = host_call;
	ckt_conn_notify = notify;
	return 0;
}
