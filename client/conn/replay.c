/* SPDX-License-Identifier: Apache-2.0 */
/* What a durable session keeps, and which copy of the session it accepts; see replay.h. */
#include "client/conn/replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/log.h"
#include "client/conn/settings.h"
#include "rpc/gen/cuda_codec.h"
#include "rpc/record.h"

/* ---- The beginning and the end */

void ckt_replay_open(struct ckt_conn *conn, const struct ckt_hello_ok *ok)
{
	if (!ckt_settings.durable)
		return;
	if (conn->mode & CKT_CONN_SEVERAL) {
		ckt_log_user("CRICKET_DURABLE: a program on several servers cannot be durable: "
			     "ignoring it");
		return;
	}
	if (!ckt_conn_told(ok, CKT_CAPABILITY_DURABLE)) {
		ckt_log_user(
			"CRICKET_DURABLE: the server at %s is too old for it: session %s is not "
			"durable",
			conn->address_text, conn->session);
		return;
	}
	conn->replay = calloc(1, sizeof *conn->replay);
	if (!conn->replay)
		return;
	ckt_replay_log_init(&conn->replay->log, ckt_settings.replay_memory_bytes,
		ckt_settings.replay_directory);
	conn->replay->stamps.clock = ckt_conn_told(ok, CKT_CAPABILITY_STAMPS);
	conn->replay->stamps.on = ckt_settings.durable_group && conn->replay->stamps.clock;
	conn->stamped = conn->replay->stamps.on;
}

void ckt_replay_lose(struct ckt_conn *conn, const char *why)
{
	struct ckt_replay *replay = conn->replay;
	if (!replay)
		return;
	if (replay->running) {
		replay->lose_later = why;
		return;
	}
	ckt_log_user("session %s is not durable any more: %s", conn->session, why);
	conn->replay = NULL;
	conn->stamped = false;
	ckt_replay_stamps_fini(&replay->stamps);
	for (unsigned i = 0; i < replay->open_count; i++)
		free(replay->opens[i].record);
	ckt_replay_log_fini(&replay->log);
	free(replay);
}

static void lose_by(struct ckt_conn *conn, int error)
{
	ckt_replay_lose(conn,
		error == -ENOSPC || error == -EFBIG || error == -ENOMEM
			? "CRICKET_REPLAY_MEMORY and the file in TMPDIR are full"
			: strerror(-error));
}

void ckt_replay_durable(struct ckt_conn *conn, uint64_t executed)
{
	struct ckt_replay *replay = conn->replay;
	if (!replay || executed <= replay->began ||
		executed >= atomic_load_explicit(&conn->next_seq, memory_order_relaxed))
		return;
	if (executed != replay->cut_later)
		replay->base_copy = replay->running ? replay->partial_copy : conn->offered_copy;
	if (replay->running) {
		if (executed > replay->cut_later)
			replay->cut_later = executed;
		return;
	}
	replay->began = executed;
	ckt_replay_stamps_cut(&replay->stamps, &replay->log, executed);
	ckt_replay_log_cut(&replay->log, executed);
}

/* ---- What is kept */

/* Of every table of a forwarded library in rpc/api/. */
enum { LIBRARY_OPEN = 1 };

/* Its group must replay, too. */
static bool is_sharing(const struct ckt_call_header *header)
{
	if (header->prog == ckt_lib_prog(CKT_LIB_NCCL))
		return header->proc != LIBRARY_OPEN;
	if (header->prog != CKT_CUDA_PROG)
		return false;
	switch (header->proc) {
	case CKT_PROC_IPC_MEM_GET:
	case CKT_PROC_IPC_MEM_OPEN:
	case CKT_PROC_IPC_EVENT_GET:
	case CKT_PROC_IPC_EVENT_OPEN:
	case CKT_PROC_PHYSICAL_EXPORT:
	case CKT_PROC_PHYSICAL_IMPORT:
		return true;
	default:
		return false;
	}
}

/* Calls whose effects are not the session's alone, or that the program takes part in. */
static const char *why_never(const struct ckt_replay *replay, const struct ckt_call_header *header)
{
	bool nccl = header->prog == ckt_lib_prog(CKT_LIB_NCCL);
	if (nccl || is_sharing(header))
		return replay->stamps.on ? NULL
			: nccl           ? "it uses NCCL"
					 : "it shares memory or events with other sessions";
	if (header->prog != CKT_CUDA_PROG)
		return NULL;
	switch (header->proc) {
	case CKT_PROC_HOST_FUNC:
		return "it uses host functions";
	case CKT_PROC_HOST_MAP:
		return "it shares pinned memory with the server";
	case CKT_PROC_LANE_HTOD:
	case CKT_PROC_LANE_DTOH:
		return "it uses lanes";
	case CKT_PROC_DEVICE_NOTIFY:
		return "it asked for notifications of the driver";
	default:
		return NULL;
	}
}

/* A wait for the GPU, which orders what the program does behind it; query: only where it is done. */
static bool is_wait(const struct ckt_call_header *header, bool query)
{
	if (header->seq)
		return false;
	if (header->prog != CKT_CUDA_PROG)
		return false;
	switch (header->proc) {
	case CKT_PROC_CTX_SYNCHRONIZE:
	case CKT_PROC_STREAM_SYNCHRONIZE:
	case CKT_PROC_EVENT_SYNCHRONIZE:
		return !query;
	case CKT_PROC_STREAM_QUERY:
	case CKT_PROC_EVENT_QUERY:
		return query;
	default:
		return false;
	}
}

/* The first call of a forwarded library, and what comes before that: without them the worker has none. */
static bool is_setting(const struct ckt_call_header *header)
{
	enum ckt_lib lib = ckt_lib_of_prog(header->prog);
	if (lib != CKT_LIB_CUDA && lib != CKT_LIB_COUNT)
		return !header->seq && header->proc == LIBRARY_OPEN;
	return header->prog == CRICKET_SESSION_PROG &&
		(header->proc == CKT_SESSION_ENVIRONMENT || header->proc == CKT_SESSION_WINDOW);
}

static int add_command(
	struct ckt_conn *conn, const uint8_t *record, const struct ckt_call_header *header)
{
	return ckt_replay_log_command(&conn->replay->log, record,
		&(struct ckt_log_command){.seq = header->seq,
			.size = (uint32_t)(CKT_MARK_SIZE + ckt_mark_size(record)),
			.xid = header->xid,
			.prog = header->prog,
			.proc = header->proc,
			.stamp = ckt_replay_stamps_of(&conn->replay->stamps, header->seq)});
}

static void keep_setting(
	struct ckt_conn *conn, const uint8_t *record, const struct ckt_call_header *header)
{
	struct ckt_replay *replay = conn->replay;
	size_t size = CKT_MARK_SIZE + ckt_mark_size(record);
	bool room = replay->open_count < CKT_REPLAY_OPENS_MAX && size <= CKT_REPLAY_OPEN_BYTES;
	uint8_t *copy = room ? malloc(size) : NULL;
	if (!copy) {
		ckt_replay_lose(conn, "it opened libraries too often");
		return;
	}
	memcpy(copy, record, size);
	replay->opens[replay->open_count++] =
		(struct ckt_replay_open){.after = replay->last, .xid = header->xid, .record = copy};
}

void ckt_replay_keep(struct ckt_conn *conn, const uint8_t *record)
{
	struct ckt_call_header header = {0};
	struct ckt_cursor c = {
		.p = record + CKT_MARK_SIZE, .end = record + CKT_MARK_SIZE + ckt_mark_size(record)};
	if (!ckt_call_header_get(&c, &header))
		return;
	if (header.seq)
		conn->replay->last = header.seq;
	if (header.seq && header.seq <= conn->replay->began) {
		conn->replay->stamps.shares |= is_sharing(&header);
		return;
	}
	const char *why = why_never(conn->replay, &header);
	if (why) {
		ckt_replay_lose(conn, why);
		return;
	}
	conn->replay->stamps.shares |= is_sharing(&header);
	if (is_setting(&header)) {
		keep_setting(conn, record, &header);
		return;
	}
	if (!header.seq && !is_wait(&header, false))
		return;
	int result = add_command(conn, record, &header);
	if (result)
		lose_by(conn, result);
}

/* The address that an allocation gave; 0: the call is none. */
static uint64_t address_of(const struct ckt_call_header *header, struct ckt_cursor results)
{
	if (header->prog != CKT_CUDA_PROG)
		return 0;
	switch (header->proc) {
	case CKT_PROC_MEM_ALLOC:
	case CKT_PROC_MEM_ALLOC_ASYNC:
	case CKT_PROC_GRAPH_MEM_ALLOC:
	case CKT_PROC_ADDRESS_RESERVE:
	case CKT_PROC_IPC_MEM_OPEN:
		return ckt_get_u64(&results);
	default:
		return 0;
	}
}

bool ckt_call_durable(void)
{
	return ckt_call_conn->replay != NULL;
}

/* What a compiler says holds times: only the status before it is compared. */
static bool is_told_anew(const struct ckt_call_header *header)
{
	return header->prog == CKT_CUDA_PROG &&
		(header->proc == CKT_PROC_MODULE_LOAD || header->proc == CKT_PROC_LINK);
}

void ckt_replay_describe(const struct ckt_call_header *header,
	const struct ckt_reply_header *reply_header, const struct ckt_cursor *body,
	struct ckt_log_reply *ret)
{
	struct ckt_cursor results = *body;
	*ret = (struct ckt_log_reply){.seq = header->seq,
		.xid = header->xid,
		.accept_stat = reply_header->accept_stat,
		.deferred = reply_header->deferred};
	if (reply_header->accept_stat)
		return;
	ret->result = (int32_t)ckt_get_u32(&results);
	if (ret->result || results.bad)
		return;
	ret->address = address_of(header, results);
	ret->size = (uint32_t)(results.end - results.p);
	if (is_told_anew(header) && ret->size > 4)
		ret->size = 4;
	ret->hash = XXH3_64bits(results.p, ret->size);
}

void ckt_replay_note(struct ckt_conn *conn, const struct ckt_reply_header *header,
	const struct ckt_waiter *waiter, const struct ckt_cursor *results)
{
	struct ckt_call_header call = {0};
	struct ckt_log_reply reply;
	if (!waiter->message) {
		ckt_replay_lose(conn, "the program has no memory for a copy of a call");
		return;
	}
	struct ckt_cursor c = {.p = waiter->message + CKT_MARK_SIZE,
		.end = waiter->message + waiter->message_size};
	if (!ckt_call_header_get(&c, &call) || (call.seq && call.seq <= conn->replay->began))
		return;
	if (waiter->session_proc)
		reply = (struct ckt_log_reply){.deferred = header->deferred};
	else
		ckt_replay_describe(&call, header, results, &reply);
	bool query = is_wait(&call, true) && !reply.result;
	if (!call.seq && !query && !is_wait(&call, false)) {
		/* A question: nothing of it but another command's error counts. */
		if (!header->deferred)
			return;
		reply = (struct ckt_log_reply){.deferred = header->deferred};
	}
	reply.before = atomic_load_explicit(&conn->next_seq, memory_order_relaxed);
	reply.end = ckt_replay_stamps_end(&conn->replay->stamps, call.xid);
	int result = query ? add_command(conn, waiter->message, &call) : 0;
	if (!result)
		result = ckt_replay_log_reply(&conn->replay->log, &reply);
	if (result)
		lose_by(conn, result);
}

int ckt_replay_take_stamps(struct ckt_conn *conn, struct ckt_cursor *c)
{
	struct ckt_replay *replay = conn->replay;
	ckt_stamps_args args = {0};
	if (ckt_net_decode(c, (xdrproc_t)xdr_ckt_stamps_args, &args))
		return -EPROTO;
	bool good = !replay ||
		ckt_replay_stamps_take(&replay->stamps, &replay->log, replay->last, &args);
	xdr_free((xdrproc_t)xdr_ckt_stamps_args, (char *)&args);
	if (!good)
		return -EPROTO;
	return replay && replay->running && replay->stamps.late ? -EILSEQ : 0;
}

/* ---- Copies */

unsigned ckt_replay_capabilities(const struct ckt_conn *conn, ckt_capability *ret)
{
	const struct ckt_replay *replay = conn->replay;
	unsigned count = 0;
	if (!replay)
		return 0;
	ret[count++] = (ckt_capability){(char *)CKT_CAPABILITY_DURABLE, replay->began + 1};
	ret[count++] = (ckt_capability){(char *)CKT_CAPABILITY_PAST, conn->copy};
	if (replay->stamps.on)
		ret[count++] = (ckt_capability){(char *)CKT_CAPABILITY_STAMPS,
			ckt_replay_stamps_told(&replay->stamps, replay->began)};
	if (replay->asks_afresh)
		ret[count++] = (ckt_capability){(char *)CKT_CAPABILITY_AFRESH, 1};
	if (replay->partial_copy)
		ret[count++] = (ckt_capability){(char *)CKT_CAPABILITY_PAST, replay->partial_copy};
	for (unsigned i = 0; i < replay->past_count; i++)
		ret[count++] = (ckt_capability){(char *)CKT_CAPABILITY_PAST, replay->past[i].copy};
	return count;
}

/* The last command that the copy executed, as far as it is known to be this session's past; 0: none. */
static uint64_t until(const struct ckt_conn *conn, uint64_t copy)
{
	const struct ckt_replay *replay = conn->replay;
	if (copy && copy == conn->copy)
		return UINT64_MAX;
	/* A replay runs nothing new. */
	if (copy && copy == replay->partial_copy)
		return conn->executed;
	for (unsigned i = replay->past_count; i-- > 0;)
		if (replay->past[i].copy == copy)
			return replay->past[i].until;
	return 0;
}

bool ckt_replay_accepts(const struct ckt_conn *conn, const struct ckt_hello_ok *ok,
	const char *address, char *ret_message, size_t message_size)
{
	const struct ckt_replay *replay = conn->replay;
	uint64_t copy = ckt_conn_copy_of(ok), before = ckt_conn_told(ok, CKT_CAPABILITY_BEFORE),
		 known = until(conn, before);
	/* The same worker, or the one that a replay had reached. */
	if (copy == conn->copy && ok->executed >= conn->executed)
		return true;
	if (copy && copy == replay->partial_copy && ok->executed <= conn->executed &&
		ok->executed >= replay->began)
		return true;
	if (!ckt_conn_told(ok, CKT_CAPABILITY_DURABLE) || !before || !known)
		snprintf(ret_message, message_size,
			"%.256s holds a copy of the session whose past this program does not know",
			address);
	else if (ok->executed > known)
		snprintf(ret_message, message_size,
			"%.256s holds a copy of the session that went on without this program: it "
			"executed command %llu, of which %llu are known",
			address, (unsigned long long)ok->executed, (unsigned long long)known);
	else if (replay->stamps.shares && ok->executed < conn->executed &&
		!ckt_conn_told(ok, CKT_CAPABILITY_STAMPED))
		snprintf(ret_message, message_size,
			"%.256s holds an older state of the session alone, which shared memory with "
			"others: all must come back together",
			address);
	else if (ok->executed < replay->began)
		snprintf(ret_message, message_size,
			"%.256s holds an older state of the session than the program kept commands of: "
			"command %llu, and commands from %llu on are kept",
			address, (unsigned long long)ok->executed,
			(unsigned long long)replay->began + 1);
	else
		return true;
	return false;
}

static void remember(struct ckt_replay *replay, uint64_t copy, uint64_t executed)
{
	unsigned kept = 0;
	/* What lies before the log's beginning is forgotten. */
	for (unsigned i = 0; i < replay->past_count; i++)
		if (replay->past[i].until >= replay->began && replay->past[i].copy != copy)
			replay->past[kept++] = replay->past[i];
	/* The oldest goes, but not the one whose image stays. */
	unsigned gone = kept && replay->past[0].copy == replay->base_copy;
	if (kept == CKT_REPLAY_PAST_MAX)
		memmove(replay->past + gone, replay->past + gone + 1,
			(--kept - gone) * sizeof *replay->past);
	replay->past[kept++] = (struct ckt_replay_past){.copy = copy, .until = executed};
	replay->past_count = kept;
}

void ckt_replay_begins(struct ckt_conn *conn, uint64_t copy, uint64_t executed)
{
	struct ckt_replay *replay = conn->replay;
	if (copy == replay->partial_copy)
		return;
	if (replay->partial_copy)
		remember(replay, replay->partial_copy, conn->executed);
	replay->partial_copy = copy;
	replay->partial_base = executed;
}

void ckt_replay_attached(struct ckt_conn *conn, const struct ckt_hello_ok *ok)
{
	struct ckt_replay *replay = conn->replay;
	uint64_t copy = ckt_conn_copy_of(ok);
	if (!replay || copy == conn->copy)
		return;
	remember(replay, conn->copy, ok->executed > conn->executed ? ok->executed : conn->executed);
	conn->copy = copy;
	ckt_replay_stamps_attach(&replay->stamps, ckt_conn_told(ok, CKT_CAPABILITY_STAMPS),
		ok->executed > conn->executed ? ok->executed : conn->executed);
	replay->partial_copy = 0;
	replay->refused_afresh = false;
	replay->absent_ms = 0;
}
