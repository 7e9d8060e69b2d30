/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stamps of a durable session's commands, by which its group replays (CRICKET_DURABLE=2): rpc/session.x,
 * docs/durable.md.
 *
 *	callback STAMPS -> the command is in the log? there : kept until it comes there
 *	                -> of a reply: kept until the reply comes
 *
 * Threading: the reader's place (conn.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/conn/replay_log.h"
#include "rpc/session.h"

struct ckt_replay_stamps {
	bool on;     /* the program asks, and the server's workers can */
	bool shares; /* it shared memory with others: it comes back with them, or not at all */
	/* The clock of the worker that is connected, and the first command that it stamped. */
	uint64_t clock, since;
	/* Of commands that are not in the log: first ... first + count - 1. */
	uint64_t first, *list;
	size_t count, room;
	uint32_t end_xid; /* the reply that comes next, and its stamp; 0: none */
	uint64_t end;
	uint64_t cut;    /* of the last command that the log has dropped */
	int64_t told_ms; /* when stamps came last */
	uint64_t late;   /* the command of a replay that cannot have its place; 0: none */
	uint64_t before; /* of a replay: the stamp of the command that was sent last */
};

void ckt_replay_stamps_fini(struct ckt_replay_stamps *stamps);
/* What the worker says.  False: nothing that a worker says. */
bool ckt_replay_stamps_take(struct ckt_replay_stamps *stamps, struct ckt_replay_log *log,
	uint64_t kept, const ckt_stamps_args *args);
/* The stamp of the command that goes into the log; 0: not told. */
uint64_t ckt_replay_stamps_of(struct ckt_replay_stamps *stamps, uint64_t seq);
/* That of the reply. */
uint64_t ckt_replay_stamps_end(struct ckt_replay_stamps *stamps, uint32_t xid);
/* Commands up to the number are about to leave the log. */
void ckt_replay_stamps_cut(
	struct ckt_replay_stamps *stamps, const struct ckt_replay_log *log, uint64_t executed);
/* Another worker is connected, which has executed so much. */
void ckt_replay_stamps_attach(struct ckt_replay_stamps *stamps, uint64_t clock, uint64_t executed);
/* What a hello says of them; began: commands up to that are forgotten. */
uint64_t ckt_replay_stamps_told(const struct ckt_replay_stamps *stamps, uint64_t began);
/* The place of a command in a replay.  False: it has none. */
bool ckt_replay_stamps_place(struct ckt_replay_stamps *stamps,
	const struct ckt_log_command *command, const struct ckt_log_reply *reply,
	int64_t patience_ms, ckt_stamp_args *ret);
/* How long the others may take once this one has replayed all. */
unsigned ckt_replay_stamps_patience(
	const struct ckt_replay_stamps *stamps, int64_t patience_ms, int64_t now_ms);
