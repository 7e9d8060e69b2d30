/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a worker's command stream (server/worker/session/executor.c) with its numbering
 * and stored replies (replies.c), on a made-up library instead of a driver.
 *
 * Steps, each one byte for what happens, one for how, a two-byte length and that many bytes.  The
 * executor's poll() runs them (-Wl,--wrap) and ends the input where there are no more.  A numbered
 * call is executed once and in its turn, a reply answers a question of its own connection, and no
 * call is lost.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "checkpoint/freeze/freeze.h"
#include "rpc/net.h"
#include "rpc/record.h"
#include "rpc/session.h"
#include "server/worker/libs/libs.h"
#include "server/worker/session/call_trace.h"
#include "server/worker/session/executor.h"
#include "server/worker/session/start.h"
#include "server/worker/session/turn.h"
#include "server/worker/worker.h"
#include "tests/fuzz/mutate_xdr.h"

enum { STEP_HEAD = 4, STEPS_MAX = 48, BODY_MAX = 1500, LATER_MAX = 64, HEADER_CHOICES = 8 };
enum { QUIET = 0x80, LARGE = 1 << 20, BATCHED = 1, KEPT = 2 };
enum step {
	STEP_CALL,
	STEP_SESSION,
	STEP_CLIENT,
	STEP_RECORD,
	STEP_BYTES,
	STEP_READ,
	STEP_HANG_UP,
	STEP_FINISH,
	STEP_FREEZE,
	STEP_HOLD,
	STEP_POOR,
	STEP_FULL,
	STEPS
};
/* Of STEP_FULL. */
enum {
	FULL_REPLIES = 1,
	FULL_CALLS = 2,
	FULL_TRACED = 4,
	FULL_POOLS = 8,
	FULL_SETTLES = 16,
	FULL_TURNS = 32,
	FULL_STAMPS = 64
};

static struct ckt_worker *const worker = &ckt_worker;
static struct fuzz_input input;
static unsigned steps_done, full;
static jmp_buf over;
static void *(*executor)(void *);

/* The client. */
static int peer = -1;
static uint32_t next_xid, first_xid; /* of this connection */
static bool anything;                /* it said records whose numbers nobody knows */
/* The session. */
/* The number of the last call that ran, the last one that was sent, and what had been executed then. */
static uint64_t last_run, sent, sent_of;
static struct ckt_wcall *later[LATER_MAX];
static unsigned later_count, stops, looks;

/* ---- The library */

static int finish_with(struct ckt_wcall *call)
{
	uint32_t first = ckt_get_u32(&call->args), size = ckt_get_u32(&call->args) % 2048;
	if (call->header.flags & CKT_CALL_BATCHED)
		return first % 4 == 3 ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
	size_t bytes = first % 16 == 14 ? LARGE : size;
	memset(ckt_wcall_results(call, bytes), 7, bytes);
	return first % 4 == 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static int finish_later(struct ckt_wcall *call)
{
	if (later_count == LATER_MAX)
		return CUDA_ERROR_NOT_READY;
	later[later_count++] = call;
	return CKT_WCALL_LATER;
}

static int garbage(struct ckt_wcall *call)
{
	(void)call;
	return CKT_WCALL_GARBAGE;
}

static int no_room(struct ckt_wcall *call)
{
	(void)call;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static const struct ckt_proc procs[] = {
	{.name = "question", .handler = finish_with},
	{.name = "batched", .handler = finish_with, .flags = CKT_PROC_NUMBERED | CKT_PROC_BATCHED},
	{.name = "numbered", .handler = finish_with, .flags = CKT_PROC_NUMBERED},
	{.name = "later", .handler = finish_later, .flags = CKT_PROC_NUMBERED},
	{.name = "question later", .handler = finish_later},
	{.name = "garbage", .handler = garbage, .flags = CKT_PROC_NUMBERED},
	{.name = "no room", .handler = no_room, .flags = CKT_PROC_NUMBERED},
	{.name = NULL},
};
enum { PROCS = sizeof procs / sizeof *procs };
static const unsigned proc_count = PROCS;
static const struct ckt_library library = {
	.name = "fuzz", .lib = CKT_LIB_CUDA, .procs = procs, .proc_count = &proc_count};

/* ---- What the executor calls */

int __wrap_pthread_create(
	pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *data);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
const struct ckt_library *__wrap_ckt_library_of_prog(uint32_t prog);
int __wrap_ckt_worker_lib_state_run(struct ckt_wcall *call);
CUresult __wrap_ckt_worker_use_context(struct ckt_worker *of, uint64_t id);
_Noreturn void __wrap_ckt_worker_end(const char *why);
int __wrap_ckt_worker_session_devices_fill(struct ckt_worker *of, ckt_devices_res *ret);
int __wrap_ckt_window_part(struct ckt_worker *of, uint32_t part, uint32_t parts);
void __wrap_ckt_checkpoint_freeze_executor(struct ckt_worker *of);
void __wrap_ckt_hold_take(struct ckt_worker *of);
bool __wrap_ckt_hold_stops(struct ckt_worker *of);
void __wrap_ckt_hold_spend(struct ckt_worker *of);
void __wrap_ckt_hold_refresh(struct ckt_worker *of);
bool __wrap_ckt_hold_check(struct ckt_worker *of);
bool __wrap_ckt_turn_stops(struct ckt_worker *of);
bool __wrap_ckt_turn_stopped(void);
bool __wrap_ckt_stamps_replaying(void);
bool __wrap_ckt_stamps_stops(struct ckt_worker *of);
bool __wrap_ckt_turn_look(struct ckt_worker *of, bool idle);
bool __wrap_ckt_hold_keep(struct ckt_worker *of, uint64_t epoch,
	const struct ckt_reply_header *header, const uint8_t *body, size_t size);
int __wrap_ckt_lookahead_start(struct ckt_worker *of);
bool __wrap_ckt_long_call_settle(struct ckt_worker *of);
bool __wrap_ckt_impose_wait(struct ckt_worker *of);
void __wrap_ckt_worker_pools_poll(struct ckt_worker *of);
void __wrap_ckt_printed_send(struct ckt_worker *of);
struct ckt_traced_event *__wrap_ckt_call_trace_begin(struct ckt_wcall *call);
void __wrap_ckt_call_trace_linger(void);
unsigned __real_ckt_wcalls_open(void);
unsigned __wrap_ckt_wcalls_open(void);
bool __real_ckt_replies_full(struct ckt_replies *replies);
bool __wrap_ckt_replies_full(struct ckt_replies *replies);

int __wrap_pthread_create(
	pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *data)
{
	(void)thread, (void)attributes;
	fuzz_insist(data == worker, "another thread");
	executor = run;
	return 0;
}

const struct ckt_library *__wrap_ckt_library_of_prog(uint32_t prog)
{
	return prog == CKT_CUDA_PROG ? &library : NULL;
}

int __wrap_ckt_worker_lib_state_run(struct ckt_wcall *call)
{
	fuzz_insist(call->args.p <= call->args.end, "arguments that end before they begin");
	fuzz_insist(
		!(call->header.flags & CKT_CALL_BATCHED) || call->proc->flags & CKT_PROC_BATCHED,
		"a call that is never batched");
	fuzz_insist(!call->header.seq == !(call->proc->flags & CKT_PROC_NUMBERED), "a number");
	if (call->header.seq) {
		/* One that found no memory is tried again. */
		bool again =
			(full & FULL_SETTLES || worker->impose.seq) && call->header.seq == last_run;
		fuzz_insist(call->header.seq == worker->replies.executed &&
				(again || call->header.seq > last_run),
			"a call out of its turn");
		last_run = call->header.seq;
	}
	return call->proc->handler(call);
}

/* Once for each call: its memory is taken, and then it is not. */
bool __wrap_ckt_impose_wait(struct ckt_worker *of)
{
	static uint64_t waited;
	bool waits = of->impose.seq && waited != of->impose.seq;
	waited = waits ? of->impose.seq : 0;
	return waits;
}

CUresult __wrap_ckt_worker_use_context(struct ckt_worker *of, uint64_t id)
{
	(void)of;
	return id & 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

void __wrap_ckt_worker_end(const char *why)
{
	(void)why;
	longjmp(over, 1);
}

int __wrap_ckt_worker_session_devices_fill(struct ckt_worker *of, ckt_devices_res *ret)
{
	(void)of;
	*ret = (ckt_devices_res){0};
	return full & FULL_REPLIES ? -ENOMEM : 0;
}

int __wrap_ckt_window_part(struct ckt_worker *of, uint32_t part, uint32_t parts)
{
	(void)of;
	return part < parts ? 0 : -EINVAL;
}

void __wrap_ckt_checkpoint_freeze_executor(struct ckt_worker *of)
{
	of->checkpoint.freeze.wanted = false;
}

void __wrap_ckt_hold_take(struct ckt_worker *of)
{
	(void)of;
}

/* For some looks, so that the input goes on. */
bool __wrap_ckt_hold_stops(struct ckt_worker *of)
{
	(void)of;
	return stops && --stops;
}

void __wrap_ckt_hold_spend(struct ckt_worker *of)
{
	(void)of;
}

void __wrap_ckt_hold_refresh(struct ckt_worker *of)
{
	(void)of;
}

bool __wrap_ckt_hold_check(struct ckt_worker *of)
{
	return of->checkpoint.hold.on;
}

/* Every command waits for the session's turn, once. */
static bool turn_stopped, stamps_stopped;

bool __wrap_ckt_turn_stops(struct ckt_worker *of)
{
	(void)of;
	turn_stopped = !turn_stopped;
	return turn_stopped;
}

bool __wrap_ckt_stamps_replaying(void)
{
	return full & FULL_STAMPS;
}

/* Every other time. */
bool __wrap_ckt_stamps_stops(struct ckt_worker *of)
{
	(void)of;
	stamps_stopped = !stamps_stopped;
	return stamps_stopped;
}

bool __wrap_ckt_turn_stopped(void)
{
	return turn_stopped;
}

bool __wrap_ckt_turn_look(struct ckt_worker *of, bool idle)
{
	(void)of, (void)idle;
	return false;
}

bool __wrap_ckt_hold_keep(struct ckt_worker *of, uint64_t epoch,
	const struct ckt_reply_header *header, const uint8_t *body, size_t size)
{
	(void)of, (void)epoch, (void)header, (void)body, (void)size;
	return false;
}

int __wrap_ckt_lookahead_start(struct ckt_worker *of)
{
	(void)of;
	return 0;
}

bool __wrap_ckt_long_call_settle(struct ckt_worker *of)
{
	(void)of;
	return full & FULL_SETTLES;
}

void __wrap_ckt_worker_pools_poll(struct ckt_worker *of)
{
	of->pools.synchronized = false;
}

void __wrap_ckt_printed_send(struct ckt_worker *of)
{
	(void)of;
}

struct ckt_traced_event *__wrap_ckt_call_trace_begin(struct ckt_wcall *call)
{
	(void)call;
	return NULL;
}

void __wrap_ckt_call_trace_linger(void)
{
}

unsigned __wrap_ckt_wcalls_open(void)
{
	return full & FULL_CALLS ? UINT16_MAX : __real_ckt_wcalls_open();
}

bool __wrap_ckt_replies_full(struct ckt_replies *replies)
{
	return full & FULL_REPLIES || __real_ckt_replies_full(replies);
}

/* ---- The client */

static void say(const uint8_t *data, size_t size)
{
	if (peer >= 0)
		(void)!send(peer, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void say_record(const uint8_t *data, size_t size)
{
	uint8_t bytes[CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE + BODY_MAX];
	memcpy(ckt_mark_put(bytes, size), data, size);
	say(bytes, CKT_MARK_SIZE + size);
}

static void say_call(struct ckt_call_header header, const uint8_t *args, size_t size)
{
	uint8_t record[CKT_CALL_HEADER_SIZE + BODY_MAX];
	header.xid = ++next_xid;
	uint8_t *p = ckt_call_header_put(record, &header);
	memcpy(p, args, size);
	say_record(record, (size_t)(p - record) + size);
}

/* Which of the numbers around the right one. */
static uint64_t number_near(uint64_t right, uint8_t choice)
{
	static const int64_t off[] = {0, 0, 0, 0, 0, 0, 1, -1, -2, 2, -3, 100};
	return choice == 0xff ? 0 : right + (uint64_t)off[choice % (sizeof off / sizeof *off)];
}

static void say_library_call(const uint8_t *data, size_t size)
{
	uint8_t choices[HEADER_CHOICES] = {0};
	size_t skip = size < HEADER_CHOICES ? size : HEADER_CHOICES;
	memcpy(choices, data, skip);
	bool numbered = choices[0] % PROCS > 0 && choices[0] % PROCS != 4;
	uint64_t executed = worker->replies.executed;
	if (sent_of != executed)
		sent = sent_of = executed;
	uint64_t seq = numbered || choices[1] > 0xf0 ? number_near(sent + 1, choices[1]) : 0;
	struct ckt_call_header header = {.prog = choices[4] > 0xf0 ? choices[4] : CKT_CUDA_PROG,
		.vers = choices[4] == 0xf0 ? 2 : CKT_LIB_VERS,
		.proc = choices[4] == 0xef ? UINT16_MAX : choices[0] % PROCS,
		.seq = seq,
		.acked = choices[2] ? number_near(executed, choices[2]) : 0,
		.thread = 1,
		.flags = (choices[3] & BATCHED ? CKT_CALL_BATCHED : 0) |
			(choices[3] & KEPT ? CKT_CALL_STAMPED : 0),
		.context = choices[5]};
	if (seq == sent + 1)
		sent++;
	say_call(header, data + skip, size - skip);
}

static void say_session_call(uint8_t how, const uint8_t *data, size_t size)
{
	struct ckt_call_header header = {.prog = CRICKET_SESSION_PROG,
		.vers = how > 0xf8 ? 2 : 1,
		.proc = how % 16,
		.seq = (how & 0xf0) == 0x70,
		.acked = (how & 0xf0) == 0x60 ? worker->replies.executed + 1 : 0,
		.flags = (how & 0xf0) == 0x50 ? CKT_CALL_BATCHED : 0};
	say_call(header, data, size);
}

/* Replies and nothing else, each to a question of this connection. */
/* What it tells a client that keeps its commands. */
static bool is_stamps(struct ckt_cursor c)
{
	struct ckt_call_header header;
	ckt_stamps_args args = {0};
	if (!ckt_call_header_get(&c, &header) || header.prog != CRICKET_CALLBACK_PROG ||
		header.proc != CKT_CALLBACK_STAMPS)
		return false;
	fuzz_insist(!ckt_net_decode(&c, (xdrproc_t)xdr_ckt_stamps_args, &args), "no stamps");
	xdr_free((xdrproc_t)xdr_ckt_stamps_args, (char *)&args);
	return true;
}

static void read_replies(void)
{
	static uint8_t bytes[LARGE + (1 << 16)];
	static size_t have;
	if (peer < 0) {
		have = 0;
		return;
	}
	for (;;) {
		ssize_t n = recv(peer, bytes + have, sizeof bytes - have, MSG_DONTWAIT);
		if (n <= 0)
			break;
		have += (size_t)n;
		size_t at = 0, size;
		while (have - at >= CKT_MARK_SIZE) {
			struct ckt_reply_header header;
			fuzz_insist(!ckt_mark_get(bytes + at, CKT_RECORD_MAX, &size), "no record");
			if (have - at < CKT_MARK_SIZE + size)
				break;
			struct ckt_cursor c = {.p = bytes + at + CKT_MARK_SIZE,
				.end = bytes + at + CKT_MARK_SIZE + size};
			at += CKT_MARK_SIZE + size;
			if (is_stamps(c))
				continue;
			fuzz_insist(ckt_reply_header_get(&c, &header), "no reply");
			fuzz_insist(anything || (header.xid >= first_xid && header.xid <= next_xid),
				"a reply to another connection's question");
		}
		memmove(bytes, bytes + at, have - at);
		have -= at;
	}
}

static void hang_up(void)
{
	if (peer >= 0)
		close(peer);
	peer = -1;
	read_replies();
}

/* A new connection, as the daemon's side hands it over. */
static void new_client(uint8_t how)
{
	int fds[2], small = 1;
	fuzz_insist(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), "no sockets");
	hang_up();
	if (worker->new_client.fd >= 0)
		close(worker->new_client.fd);
	if (worker->new_client.memory_fd >= 0)
		close(worker->new_client.memory_fd);
	if (how & 1)
		setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	first_xid = ++next_xid;
	anything = false;
	worker->new_client.fd = fds[1];
	worker->new_client.memory_fd = how & 2 ? memfd_create("fuzz", MFD_CLOEXEC) : -1;
	worker->new_client.xid = next_xid;
	worker->new_client.takes_rings = false;
	worker->new_client.durable = how & 4;
	worker->mail = true;
	peer = fds[0];
	/* It is gone before it is answered. */
	if ((how & 12) == 12)
		hang_up();
}

/* ---- Steps */

static void finish_one(uint8_t how, const uint8_t *data, size_t size)
{
	if (!later_count)
		return;
	struct ckt_wcall *call = later[how % later_count];
	later_count--;
	later[how % (later_count + 1)] = later[later_count];
	if (size && !(call->header.flags & CKT_CALL_BATCHED))
		memcpy(ckt_wcall_results(call, size), data, size);
	ckt_wcall_finish(call, size ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
	ckt_executor_wake(worker);
}

static void do_step(uint8_t step, uint8_t how, const uint8_t *data, size_t size)
{
	switch ((step & 0x7f) % STEPS) {
	case STEP_CALL:
		say_library_call(data, size);
		break;
	case STEP_SESSION:
		say_session_call(how, data, size);
		break;
	case STEP_CLIENT:
		new_client(how);
		break;
	case STEP_RECORD:
		anything = true;
		say_record(data, size);
		break;
	case STEP_BYTES:
		anything = true;
		say(data, size);
		break;
	case STEP_READ:
		read_replies();
		break;
	case STEP_HANG_UP:
		hang_up();
		break;
	case STEP_FINISH:
		finish_one(how, data, size);
		break;
	case STEP_FREEZE:
		worker->checkpoint.freeze.wanted = true;
		worker->mail = true;
		break;
	case STEP_HOLD:
		worker->checkpoint.hold.on = how & 1;
		stops = how >> 5;
		break;
	case STEP_POOR:
		fuzz_fail_allocation(how % 8);
		break;
	default:
		full = how;
		turn_stopped = stamps_stopped = false;
		atomic_store(&ckt_turn_on, (how & FULL_TURNS) != 0);
		ckt_call_trace_on = how & FULL_TRACED;
		worker->pools.synchronized = how & FULL_POOLS;
	}
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	if (!count || fds[0].fd != worker->wake_fd)
		return __real_poll(fds, count, timeout);
	if (input.p >= input.end || steps_done >= STEPS_MAX)
		longjmp(over, 1);
	for (bool more = true; more && input.p < input.end && steps_done < STEPS_MAX;
		steps_done++) {
		size_t have;
		uint8_t step = fuzz_u8(&input), how = fuzz_u8(&input);
		size_t length = (size_t)fuzz_u8(&input) << 8;
		length |= fuzz_u8(&input);
		const uint8_t *bytes =
			fuzz_bytes(&input, length < BODY_MAX ? length : BODY_MAX, &have);
		do_step(step, how, bytes, have);
		more = step & QUIET;
	}
	fuzz_insist(++looks < 10000, "the executor looks for ever");
	return __real_poll(fds, count, 0);
}

/* ---- Inputs */

static void begin(void)
{
	steps_done = full = stops = looks = 0;
	next_xid = 1;
	last_run = sent = sent_of = 0;
	worker->checkpoint.hold.on = worker->checkpoint.freeze.wanted = false;
	worker->pools.synchronized = false;
	worker->mail = false;
	worker->deferred = 0;
	worker->state = CKT_STATE_DETACHED;
	worker->spin_ns = 0;
	ckt_call_trace_on = false;
	ckt_replies_init(&worker->replies);
	/* Every session was restored; the client says whether it is durable. */
	worker->copy_before = 1;
	worker->impose = (struct ckt_impose){0};
}

static void end(void)
{
	fuzz_fail_allocation(0);
	full = 0;
	turn_stopped = stamps_stopped = false;
	atomic_store(&ckt_turn_on, false);
	ckt_executor_disconnect(worker, "the input is over");
	while (later_count)
		finish_one(0, NULL, 0);
	fuzz_insist(!ckt_wcalls_open(), "a call is lost");
	ckt_replies_fini(&worker->replies);
	if (worker->new_client.fd >= 0)
		close(worker->new_client.fd);
	if (worker->new_client.memory_fd >= 0)
		close(worker->new_client.memory_fd);
	worker->new_client.fd = worker->new_client.memory_fd = -1;
	read_replies();
	hang_up();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input = (struct fuzz_input){data, data + size};
	begin();
	if (setjmp(over) == 0)
		executor(worker);
	end();
	return 0;
}

/* ---- Steps that make sense */

/* By procedure of the session program. */
static const struct {
	xdrproc_t xdr;
	size_t bytes;
} session_calls[16] = {
	[CKT_SESSION_WINDOW] = {(xdrproc_t)xdr_ckt_window_args, sizeof(ckt_window_args)},
	[CKT_SESSION_ENVIRONMENT] = {(xdrproc_t)xdr_ckt_environment_args,
		sizeof(ckt_environment_args)},
	[CKT_SESSION_HOST_FILL] = {(xdrproc_t)xdr_ckt_host_fill_args, sizeof(ckt_host_fill_args)},
	[CKT_SESSION_REPLAY] = {(xdrproc_t)xdr_ckt_replay_args, sizeof(ckt_replay_args)},
	[CKT_SESSION_IMPOSE] = {(xdrproc_t)xdr_ckt_impose_args, sizeof(ckt_impose_args)},
	[CKT_SESSION_STAMP] = {(xdrproc_t)xdr_ckt_stamp_args, sizeof(ckt_stamp_args)},
	[CKT_SESSION_STAMPS_END] = {
		(xdrproc_t)xdr_ckt_stamps_end_args, sizeof(ckt_stamps_end_args)}};

static size_t put_step(
	uint8_t *to, uint8_t step, uint8_t how, const uint8_t *old, size_t size, unsigned seed)
{
	uint8_t *body = to + STEP_HEAD;
	if (step % STEPS == STEP_SESSION && session_calls[how % 16].xdr) {
		size = fuzz_mutate_xdr(session_calls[how % 16].xdr, session_calls[how % 16].bytes,
			old, size, body, BODY_MAX, seed);
		if (size && fuzz_random(&seed) % 8 == 0)
			size = fuzz_random(&seed) % size;
	} else {
		memmove(body, old, size);
		if (size > 1 && fuzz_random(&seed) % 2)
			body[fuzz_random(&seed) % (size < 16 ? size : 16)] =
				(uint8_t)fuzz_random(&seed);
	}
	to[0] = step;
	to[1] = how;
	to[2] = (uint8_t)(size >> 8);
	to[3] = (uint8_t)size;
	return STEP_HEAD + size;
}

/* A call that a client would make; a step of another kind now and then. */
static size_t put_new(uint8_t *to, unsigned *seed)
{
	uint8_t body[HEADER_CHOICES + 16] = {(uint8_t)(fuzz_random(seed) % (PROCS - 1))};
	uint8_t step = STEP_CALL, how = (uint8_t)fuzz_random(seed);
	size_t size = sizeof body;
	body[1] = fuzz_random(seed) % 4 ? 0 : (uint8_t)(fuzz_random(seed) % 12);
	body[3] = body[0] == 1;
	body[2] = fuzz_random(seed) % 4 == 0;
	body[HEADER_CHOICES + 3] = (uint8_t)fuzz_random(seed);
	if (fuzz_random(seed) % 3 == 0) {
		step = (uint8_t)(fuzz_random(seed) % STEPS);
		/* Most of the session's calls are those that it has. */
		how = step == STEP_SESSION && fuzz_random(seed) % 4 ? how % 10 : how;
		size = step == STEP_FINISH ? how % sizeof body : 0;
	}
	if (fuzz_random(seed) % 4 == 0)
		step |= QUIET;
	return put_step(to, step, how, body, size, fuzz_random(seed) % 4 ? 2 : fuzz_random(seed));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	static uint8_t out[(STEPS_MAX + 1) * (STEP_HEAD + BODY_MAX)];
	struct fuzz_input from = {data, data + size};
	size_t at = 0, have;
	unsigned n = 0;
	if (fuzz_random(&seed) % 8 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	for (; n < STEPS_MAX && from.p < from.end; n++) {
		uint8_t step = fuzz_u8(&from), how = fuzz_u8(&from);
		size_t length = (size_t)fuzz_u8(&from) << 8;
		length |= fuzz_u8(&from);
		const uint8_t *old =
			fuzz_bytes(&from, length < BODY_MAX ? length : BODY_MAX, &have);
		unsigned what = fuzz_random(&seed) % 32;
		if (what == 0)
			continue;
		if (what == 1)
			how = (uint8_t)fuzz_random(&seed);
		if (what < 6) {
			at += put_step(out + at, step, how, old, have, fuzz_random(&seed));
			continue;
		}
		memcpy(out + at, (uint8_t[]){step, how, (uint8_t)(have >> 8), (uint8_t)have}, 4);
		memcpy(out + at + STEP_HEAD, old, have);
		at += STEP_HEAD + have;
	}
	if (n < STEPS_MAX && fuzz_random(&seed) % 2)
		at += put_new(out + at, &seed);
	if (!at || at > max_size)
		return LLVMFuzzerMutate(data, size, max_size);
	memcpy(data, out, at);
	return at;
}

static size_t put_bytes(uint8_t *to, uint8_t step, uint8_t how, const uint8_t *data, size_t size)
{
	to[0] = step;
	to[1] = how;
	to[2] = (uint8_t)(size >> 8);
	to[3] = (uint8_t)size;
	memcpy(to + STEP_HEAD, data, size);
	return STEP_HEAD + size;
}

static void write_seeds(const char *to)
{
	static uint8_t seed[STEPS_MAX * (STEP_HEAD + BODY_MAX)];
	static const uint8_t nothing[1];
	size_t at;
	for (unsigned number = 0; number < 48; number++) {
		unsigned random = number + 1;
		char name[] = "executor-00";
		at = put_step(seed, STEP_CLIENT, number % 4 == 3, nothing, 0, 2);
		/* Every call of the session, with and without arguments. */
		if (number < 16) {
			at += put_step(
				seed + at, STEP_SESSION, (uint8_t)number, nothing, 0, number);
			at += put_step(seed + at, STEP_SESSION, (uint8_t)(number | 0x50), nothing,
				0, number + 100);
			at += put_step(seed + at, STEP_READ, 0, nothing, 0, 2);
		}
		/* Something is full, or wanted. */
		if (number >= 16)
			at += put_step(
				seed + at, STEP_FULL, (uint8_t)(1u << number % 8), nothing, 0, 2);
		for (unsigned i = 0; i < 24; i++)
			at += put_new(seed + at, &random);
		name[9] += (char)(number / 10);
		name[10] += (char)(number % 10);
		fuzz_write_seed(to, name, seed, at);
	}
	/* More than one look at the input takes, with and without answers that wait. */
	static const uint8_t small[HEADER_CHOICES + 8] = {1, 0, 0, BATCHED};
	static const uint8_t large_one[HEADER_CHOICES + 8] = {2};
	static const uint8_t no_room_call[HEADER_CHOICES + 8] = {6};
	at = put_step(seed, STEP_CLIENT, 0, nothing, 0, 2);
	for (unsigned i = 0; i < STEPS_MAX - 4; i++) {
		at += put_step(seed + at, STEP_CALL | QUIET, 0, small, sizeof small, 2);
		memcpy(seed + at - sizeof small, small, sizeof small);
	}
	fuzz_write_seed(to, "many", seed, at);
	/* A replay of five commands: one as it comes, one that fails as told, one at an address of nobody. */
	static const uint8_t replay[] = {0, 0, 0, 0, 0, 0, 0, 5};
	at = put_step(seed, STEP_CLIENT, 4, nothing, 0, 2);
	at += put_bytes(seed + at, STEP_SESSION, CKT_SESSION_REPLAY, replay, sizeof replay);
	at += put_bytes(seed + at, STEP_SESSION, CKT_SESSION_REPLAY, replay, sizeof replay);
	for (uint8_t number = 1; number < 5; number++) {
		const uint8_t impose[] = {0, 0, 0, 0, 0, 0, 0, number, 0, 0, 0, number == 2 ? 2 : 0,
			0, 0, 0, 0, 0, 0, 0, number == 4};
		at += put_bytes(
			seed + at, STEP_SESSION, CKT_SESSION_IMPOSE | 0x50, impose, sizeof impose);
		at += put_bytes(seed + at, STEP_CALL, 0,
			number == 3          ? no_room_call
				: number % 2 ? small
					     : large_one,
			sizeof small);
	}
	at += put_step(seed + at, STEP_READ, 0, nothing, 0, 2);
	fuzz_write_seed(to, "replay", seed, at);
	/* A record that comes in pieces. */
	static const uint8_t head[CKT_MARK_SIZE + 8] = {0x80, 0, 0, CKT_CALL_HEADER_SIZE};
	static const uint8_t rest[CKT_CALL_HEADER_SIZE - 8];
	at = put_step(seed, STEP_CLIENT, 0, nothing, 0, 2);
	at += put_step(seed + at, STEP_BYTES, 0, head, sizeof head, 2);
	memcpy(seed + at - sizeof head, head, sizeof head);
	at += put_step(seed + at, STEP_BYTES, 0, rest, sizeof rest, 2);
	fuzz_write_seed(to, "pieces", seed, at);
	/* One that reads nothing while large answers pile up, and then reads. */
	static const uint8_t large[HEADER_CHOICES + 8] = {2, [HEADER_CHOICES + 3] = 14};
	at = put_step(seed, STEP_CLIENT, 1, nothing, 0, 2);
	for (unsigned i = 0; i < 16; i++) {
		at += put_step(seed + at, STEP_CALL | QUIET, 0, large, sizeof large, 2);
		memcpy(seed + at - sizeof large, large, sizeof large);
	}
	for (unsigned i = 0; i < 20; i++)
		at += put_step(seed + at, STEP_READ, 0, nothing, 0, 2);
	fuzz_write_seed(to, "unread", seed, at);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *to = getenv("CKT_FUZZ_SEEDS");
	(void)argc, (void)argv;
	if (to) {
		write_seeds(to);
		exit(0);
	}
	ckt_log_init("fuzz", CKT_LOG_QUIET, NULL);
	worker->stats = calloc(CKT_STATS, sizeof *worker->stats);
	worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fuzz_insist(worker->stats && worker->wake_fd >= 0, "no worker");
	worker->client_fd = worker->new_client.fd = worker->new_client.memory_fd = -1;
	ckt_output_init(&worker->output);
	ckt_worker_lanes_init(&worker->lanes);
	fuzz_insist(!ckt_executor_start(worker) && executor, "no executor");
	ckt_executor_go(worker);
	return 0;
}
