/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replay: sends the log's commands to a restored copy, and compares what it answers with what the
 * program got; see replay.h.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "base/log.h"
#include "client/conn/replay.h"
#include "client/conn/settings.h"
#include "rpc/gen/cuda_codec.h"
#include "rpc/nccl.h"
#include "rpc/record.h"

/* How long a query may say that the GPU is not ready, where the program was told that it is. */
enum { QUERY_MS = 60000 };
/* Of `acked` in a command's header; docs/wire.md. */
enum { ACKED_AT = 40 };

/* A command that was sent and whose reply is compared. */
struct outstanding {
	uint32_t xid;
	size_t command;
	bool again; /* a query that was not ready: ask again */
};

struct run {
	struct ckt_conn *conn;
	struct ckt_replay *replay;
	struct ckt_transport *to;
	uint64_t copy, start;
	uint8_t *record; /* the one that is sent */
	uint8_t *receive;
	size_t received;
	struct outstanding *open;
	size_t open_count, open_room;
	uint8_t *done;    /* a flag for each reply */
	uint32_t own_xid; /* of a call of the replay's own; 0: answered */
	int own_status;
	int32_t deferred; /* came along with replies, and no reply of the log had it yet */
	unsigned opened;  /* of replay->opens: sent */
	bool stamped;     /* each command has its place in the replay of its group */
	bool opens_at;    /* the worker takes an address for what the session opens of others */
	uint64_t sent;    /* numbered commands */
	char *message;
	size_t message_size;
};

static const struct ckt_log_reply *reply_of(const struct run *run, const struct ckt_log_command *c)
{
	const struct ckt_replay_log *log = &run->replay->log;
	uint64_t index = c->reply - log->replies_gone - 1;
	return c->reply && index < log->reply_count ? &log->replies[index] : NULL;
}

/* ---- What the worker answers */

static int differs(
	struct run *run, const struct ckt_log_command *c, int32_t was, int32_t is, const char *what)
{
	char call[96];
	ckt_replay_name(c->prog, c->proc, call, sizeof call);
	snprintf(run->message, run->message_size,
		"%s (call %llu) gave %s when it was replayed: it returned %d, and %d the first time; "
		"start the program again",
		call, (unsigned long long)c->seq, what, is, was);
	return -EILSEQ;
}

static int compare(struct run *run, struct outstanding *open, const struct ckt_reply_header *header,
	const struct ckt_cursor *body)
{
	struct ckt_replay_log *log = &run->replay->log;
	const struct ckt_log_command *command = &log->commands[open->command];
	struct ckt_log_reply *was = (struct ckt_log_reply *)reply_of(run, command), is;
	struct ckt_call_header call = {.xid = command->xid,
		.prog = command->prog,
		.proc = command->proc,
		.seq = command->seq};
	ckt_replay_describe(&call, header, body, &is);
	if (!call.seq && is.result == CUDA_ERROR_NOT_READY && !was->result) {
		open->again = true;
		return 0;
	}
	if (is.accept_stat != was->accept_stat || is.result != was->result)
		return differs(run, command, was->result, is.result, "another result");
	if (is.size != was->size || is.hash != was->hash)
		return differs(run, command, was->result, is.result, "other data");
	was->copy = run->copy;
	run->done[was - log->replies] = 1;
	*open = run->open[--run->open_count];
	return 0;
}

static int take_reply(struct run *run, struct ckt_cursor *c)
{
	struct ckt_reply_header header = {0};
	if (!ckt_reply_header_get(c, &header))
		return -EPROTO;
	if (header.deferred && !run->deferred)
		run->deferred = header.deferred;
	if (run->own_xid && header.xid == run->own_xid) {
		run->own_xid = 0;
		run->own_status = c->p < c->end ? (int)ckt_get_u32(c) : 0;
		return header.accept_stat ? -EPROTO : 0;
	}
	for (size_t i = 0; i < run->open_count; i++)
		if (run->open[i].xid == header.xid)
			return compare(run, &run->open[i], &header, c);
	/* A call whose reply the program never got: it asks for it afterwards. */
	return 0;
}

static int take_records(struct run *run)
{
	size_t at = 0;
	int result = 0;
	while (!result && run->received - at >= CKT_MARK_SIZE) {
		size_t size;
		uint32_t type;
		if (ckt_mark_get(run->receive + at, CKT_RECORD_MAX, &size) || size < 8)
			return -EPROTO;
		if (run->received - at < CKT_MARK_SIZE + size)
			break;
		const uint8_t *data = run->receive + at + CKT_MARK_SIZE;
		struct ckt_cursor c = {.p = data, .end = data + size};
		memcpy(&type, data + 4, sizeof type);
		result = type ? take_reply(run, &c) : ckt_conn_take_callback(run->conn, &c);
		at += CKT_MARK_SIZE + size;
	}
	memmove(run->receive, run->receive + at, run->received - at);
	run->received -= at;
	return result;
}

/* Reads what has arrived, after a wait of at most timeout_ms for that or for room to write. */
static int pump(struct run *run, unsigned want, int timeout_ms)
{
	int ready =
		timeout_ms ? ckt_transport_wait(run->to, want | CKT_TRANSPORT_READ, timeout_ms) : 0;
	if (ready < 0 && ready != -EINTR)
		return ready;
	for (;;) {
		ssize_t n = ckt_transport_read(
			run->to, run->receive + run->received, CKT_RECEIVE_SIZE - run->received);
		if (n == -EAGAIN)
			break;
		if (n < 0)
			return (int)n;
		run->received += (size_t)n;
		int result = take_records(run);
		if (result)
			return result;
	}
	return ckt_transport_vanished(run->to, CKT_NET_VANISHED_MS) ? -ETIMEDOUT : 0;
}

static int push(struct run *run, const uint8_t *data, size_t size)
{
	while (size) {
		ssize_t n = ckt_transport_write(run->to, data, size);
		if (n == -EAGAIN) {
			int result = pump(run, CKT_TRANSPORT_WRITE, 1000);
			if (result)
				return result;
			continue;
		}
		if (n < 0)
			return (int)n;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

/* ---- What is sent */

static int ask(struct run *run, uint32_t proc, xdrproc_t xdr, void *args, bool waits)
{
	uint8_t *data;
	size_t size;
	pthread_mutex_lock(&run->conn->lock);
	uint32_t xid = run->conn->next_xid++;
	pthread_mutex_unlock(&run->conn->lock);
	int result = ckt_net_encode_call(xid, CRICKET_SESSION_PROG, proc, xdr, args, &data, &size);
	if (result)
		return result;
	run->own_xid = waits ? xid : 0;
	memcpy(ckt_mark_put(run->record, size), data, size);
	result = push(run, run->record, CKT_MARK_SIZE + size);
	free(data);
	while (!result && run->own_xid)
		result = pump(run, 0, 1000);
	return result;
}

static int send_record(struct run *run, const struct ckt_log_command *command)
{
	int result = ckt_replay_log_read(&run->replay->log, command, run->record);
	/*
	 * A wait is sent before replies that had come when the program made it, so it acknowledges
	 * none; the next numbered command does.
	 */
	if (!command->seq)
		memset(run->record + CKT_MARK_SIZE + ACKED_AT, 0, sizeof(uint64_t));
	return result ? result : push(run, run->record, command->size);
}

/* Failures that depend on what else goes on at the GPU and at its server, and change nothing. */
static bool is_chance(int32_t result)
{
	return result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_NOT_FOUND ||
		result == CKT_RESULT_AGAIN;
}

static int impose(
	struct run *run, const struct ckt_log_command *c, const struct ckt_log_reply *reply)
{
	bool opened = c->prog == CKT_CUDA_PROG && c->proc == CKT_PROC_IPC_MEM_OPEN;
	ckt_impose_args args = {
		.seq = c->seq, .address = opened && !run->opens_at ? 0 : reply->address};
	if (is_chance(reply->result) && c->prog == CKT_CUDA_PROG)
		args.result = reply->result;
	return args.result || args.address
		? ask(run, CKT_SESSION_IMPOSE, (xdrproc_t)xdr_ckt_impose_args, &args, false)
		: 0;
}

static struct outstanding *find_open(struct run *run, const struct ckt_log_reply *reply)
{
	for (size_t i = 0; i < run->open_count; i++)
		if (reply_of(run, &run->replay->log.commands[run->open[i].command]) == reply)
			return &run->open[i];
	return NULL;
}

/* Asks again whether the GPU is ready. */
static int ask_again(struct run *run, struct outstanding *open, int64_t since_ms)
{
	const struct ckt_log_command *command = &run->replay->log.commands[open->command];
	if (ckt_net_now_ms() - since_ms > QUERY_MS)
		return differs(run, command, CUDA_SUCCESS, CUDA_ERROR_NOT_READY, "another result");
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	open->again = false;
	return send_record(run, command);
}

/* The program had this reply before it made the next command. */
static int satisfy(struct run *run, size_t index)
{
	struct ckt_replay_log *log = &run->replay->log;
	const struct ckt_log_reply *reply = &log->replies[index];
	int64_t since_ms = ckt_net_now_ms();
	int result = 0;
	struct outstanding *open;
	while (!result && !run->done[index] && (open = find_open(run, reply)))
		result = open->again ? ask_again(run, open, since_ms) : pump(run, 0, 1000);
	if (result || !reply->deferred || reply->before <= run->start + 1)
		return result;
	if (!run->deferred)
		result = ask(run, CKT_SESSION_ACK, NULL, NULL, true);
	if (!result && run->deferred != reply->deferred) {
		snprintf(run->message, run->message_size,
			"a call before call %llu failed with %d the first time, and with %d when it "
			"was replayed; start the program again",
			(unsigned long long)reply->before, reply->deferred, run->deferred);
		result = -EILSEQ;
	}
	run->deferred = 0;
	return result;
}

/* Libraries are opened where they were, the earlier ones first of all. */
static int open_libraries(struct run *run, uint64_t before)
{
	int result = 0;
	for (; !result && run->opened < run->replay->open_count; run->opened++) {
		const struct ckt_replay_open *open = &run->replay->opens[run->opened];
		size_t size = CKT_MARK_SIZE + ckt_mark_size(open->record);
		if (open->after >= before)
			return 0;
		memcpy(run->record, open->record, size);
		memset(run->record + CKT_MARK_SIZE + ACKED_AT, 0, sizeof(uint64_t));
		run->own_xid = open->xid;
		result = push(run, run->record, size);
		while (!result && run->own_xid)
			result = pump(run, 0, 1000);
	}
	return result;
}

static int expect(struct run *run, size_t index)
{
	const struct ckt_log_command *command = &run->replay->log.commands[index];
	if (CKT_GROW(run->open, run->open_count, run->open_room, 64))
		return -ENOMEM;
	run->open[run->open_count++] = (struct outstanding){.xid = command->xid, .command = index};
	return 0;
}

/* Everything that came before the program made the numbered command. */
static int catch_up(struct run *run, uint64_t seq, bool again, size_t *reply)
{
	const struct ckt_replay_log *log = &run->replay->log;
	int result = 0;
	while (!result && *reply < log->reply_count && log->replies[*reply].before <= seq)
		result = satisfy(run, (*reply)++);
	return result || again ? result : open_libraries(run, seq);
}

/*
 * Tells the command's place, before this client waits for anything: the others must know what it does
 * next.
 */
static int tell_place(struct run *run, size_t index)
{
	const struct ckt_log_command *c = &run->replay->log.commands[index];
	const struct ckt_log_reply *was = reply_of(run, c);
	ckt_stamp_args args;
	if (!run->stamped || (c->seq ? c->seq <= run->start : !was || !was->end))
		return 0;
	if (ckt_replay_stamps_place(
		    &run->replay->stamps, c, was, ckt_settings.reconnect_timeout_ms, &args))
		return ask(run, CKT_SESSION_STAMP, (xdrproc_t)xdr_ckt_stamp_args, &args, false);
	char call[96];
	ckt_replay_name(c->prog, c->proc, call, sizeof call);
	snprintf(run->message, run->message_size,
		"%s (call %llu) has no place in the replay of its group: its worker died before it "
		"told one; start the programs again",
		call, (unsigned long long)c->seq);
	return -EILSEQ;
}

/*
 * The ranks of a communicator met by a unique id whose root died with its worker.  Those in the images
 * are made anew.
 */
static int refuse_communicator(struct run *run, const struct ckt_log_command *command)
{
	snprintf(run->message, run->message_size,
		"nccl_comm (call %llu) made a communicator behind the images of its group, by a unique "
		"ID that is of no more use; start the programs again",
		(unsigned long long)command->seq);
	return -EILSEQ;
}

/* One command of the log; *reply: the first reply that may not have come yet. */
static int send_command(struct run *run, size_t index, size_t *reply)
{
	const struct ckt_log_command *c = &run->replay->log.commands[index];
	const struct ckt_log_reply *was = reply_of(run, c);
	bool again = c->seq && c->seq <= run->start;
	if (!again && c->prog == ckt_lib_prog(CKT_LIB_NCCL) && c->proc == CKT_NCCL_COMM_PROC)
		return refuse_communicator(run, c);
	int result = tell_place(run, index);
	if (!result && c->seq)
		result = catch_up(run, c->seq, again, reply);
	/* Compared before; or a wait that the program is still in, which it asks again by itself. */
	bool skipped = again ? !was || was->copy == run->copy : !c->seq && !was;
	if (result || skipped)
		return result;
	if (was && c->seq && !again)
		result = impose(run, c, was);
	if (!result && was)
		result = expect(run, index);
	if (!result)
		result = send_record(run, c);
	run->sent += c->seq && !again;
	return result ? result : pump(run, 0, 0);
}

static int begin(struct run *run, const struct ckt_hello_ok *ok)
{
	struct ckt_replay *replay = run->replay;
	run->copy = ckt_conn_copy_of(ok);
	run->start = ok->executed;
	ckt_replay_begins(run->conn, run->copy, ok->executed);
	run->record = malloc(CKT_RECORD_MAX + CKT_MARK_SIZE);
	run->receive = malloc(CKT_RECEIVE_SIZE);
	run->done = calloc(replay->log.reply_count + 1, 1);
	if (!run->record || !run->receive || !run->done)
		return -ENOMEM;
	if (ok->executed >= run->conn->executed)
		return 0;
	ckt_replay_args args = {.last = run->conn->executed};
	int result = ask(run, CKT_SESSION_REPLAY, (xdrproc_t)xdr_ckt_replay_args, &args, true);
	if (!result && run->own_status) {
		snprintf(run->message, run->message_size, "the server takes no replay: %s",
			strerror(-run->own_status));
		result = -EILSEQ;
	}
	return result;
}

/* What remains: replies that the program has, and errors that it has not. */
static int finish(struct run *run, size_t reply)
{
	struct ckt_conn *conn = run->conn;
	int result = open_libraries(run, UINT64_MAX);
	while (!result && reply < run->replay->log.reply_count)
		result = satisfy(run, reply++);
	if (!result)
		result = ask(run, CKT_SESSION_ACK, NULL, NULL, true);
	if (!result && run->deferred) {
		pthread_mutex_lock(&conn->lock);
		if (!conn->deferred)
			conn->deferred = (CUresult)run->deferred;
		pthread_mutex_unlock(&conn->lock);
	}
	return result;
}

/* Waits until all members have replayed all: what follows was in nobody's order. */
static int await_group(struct run *run)
{
	ckt_stamps_end_args args = {.patience_ms = ckt_replay_stamps_patience(&run->replay->stamps,
					    ckt_settings.reconnect_timeout_ms, ckt_net_now_ms())};
	int result =
		ask(run, CKT_SESSION_STAMPS_END, (xdrproc_t)xdr_ckt_stamps_end_args, &args, true);
	if (!result && run->own_status) {
		snprintf(run->message, run->message_size,
			"the session has replayed all, but others of its group have not: %s; start "
			"the programs again",
			strerror(-run->own_status));
		result = -EILSEQ;
	}
	return result;
}

/* The worker says that a command waits for others in vain. */
static void name_late(struct run *run)
{
	const struct ckt_replay_log *log = &run->replay->log;
	uint64_t late = run->replay->stamps.late;
	size_t at = ckt_replay_log_behind(log, late - 1);
	char call[96] = "a call";
	while (at < log->command_count && log->commands[at].seq != late)
		at++;
	if (at < log->command_count)
		ckt_replay_name(log->commands[at].prog, log->commands[at].proc, call, sizeof call);
	snprintf(run->message, run->message_size,
		"%s (call %llu) cannot have its place in the replay of its group: the others did "
		"not get so far in time; start the programs again",
		call, (unsigned long long)late);
}

static void end(struct run *run)
{
	struct ckt_conn *conn = run->conn;
	struct ckt_replay *replay = run->replay;
	free(run->record);
	free(run->receive);
	free(run->done);
	free(run->open);
	replay->running = false;
	if (replay->cut_later)
		ckt_replay_durable(conn, replay->cut_later);
	replay->cut_later = 0;
	if (replay->lose_later)
		ckt_replay_lose(conn, replay->lose_later);
}

int ckt_replay_run(struct ckt_conn *conn, struct ckt_transport *to, const struct ckt_hello_ok *ok,
	char *ret_message, size_t message_size)
{
	struct ckt_replay *replay = conn->replay;
	struct run run = {.conn = conn,
		.replay = replay,
		.to = to,
		.message = ret_message,
		.message_size = message_size};
	int64_t began_ms = ckt_net_now_ms();
	size_t reply = 0;
	if (!replay)
		return 0;
	uint64_t copy = ckt_conn_copy_of(ok);
	/* Of a session that begins again before its first command; see struct ckt_replay_open. */
	bool opens = !ok->executed && copy != conn->copy && replay->open_count;
	run.stamped = replay->stamps.on && ckt_conn_told(ok, CKT_CAPABILITY_STAMPED);
	run.opens_at = ckt_conn_told(ok, CKT_CAPABILITY_STAMPED) >= CKT_STAMPED_OPENS;
	if (ok->executed >= conn->executed && copy != replay->partial_copy && !opens &&
		!run.stamped)
		return 0;
	replay->running = true;
	replay->stamps.late = replay->stamps.before = 0;
	int result = begin(&run, ok);
	size_t i = ckt_replay_log_behind(&replay->log, replay->partial_base);
	for (; !result && i < replay->log.command_count; i++)
		result = send_command(&run, i, &reply);
	if (!result)
		result = finish(&run, reply);
	if (!result && run.stamped)
		result = await_group(&run);
	if (result == -EILSEQ && replay->stamps.late)
		name_late(&run);
	if (!result)
		ckt_log_user("session %s: %llu commands replayed in %.1f s", conn->session,
			(unsigned long long)run.sent, (double)(ckt_net_now_ms() - began_ms) / 1000);
	else if (result != -EILSEQ)
		snprintf(ret_message, message_size, "the replay of the session broke off: %s",
			strerror(-result));
	end(&run);
	return result;
}
