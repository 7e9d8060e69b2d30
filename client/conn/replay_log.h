/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that a durable session sent, and what the program got for them: what replay.h sends
 * again after a restore.
 *
 *	commands	|first ... last|	records as they were sent, in that order
 *	replies		|oldest ... newest|	in the order in which they came
 *	bytes		pieces of 4 MiB, in memory up to a bound, then in a file without a name
 *
 * A cut drops what is in an image that stays.
 *
 * Errors: 0 or -errno; -ENOSPC: neither the memory's bound nor the file has room.  Threading: the
 * owner locks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_log_command {
	uint64_t seq; /* 0: a wait that is not numbered */
	uint64_t position;
	uint32_t size; /* with the record mark */
	uint32_t xid;
	uint32_t prog, proc;
	uint64_t reply; /* number of its reply, from 1; 0: none has come */
	uint64_t stamp; /* when it began, of its group's clock; 0: not known */
};

struct ckt_log_reply {
	uint64_t seq;    /* 0: of a wait that is not numbered */
	uint64_t before; /* no command from this number on was encoded when it came */
	uint64_t hash, address, copy;
	uint64_t end;       /* when it was sent, of the same clock; 0: not known */
	uint32_t xid, size; /* of the results */
	int32_t result;
	uint32_t accept_stat;
	int32_t deferred; /* the error of an earlier command that came along */
};

struct ckt_log_piece {
	uint8_t *memory; /* NULL: in the file, at its own position */
	size_t used;
};

struct ckt_replay_log {
	uint64_t limit;        /* bytes of memory */
	uint64_t memory;       /* used: pieces and lists */
	const char *directory; /* of the file; stays the caller's */
	int fd;                /* -1: there is no file yet */
	struct ckt_log_piece *pieces;
	size_t piece_count, piece_room;
	uint64_t first_piece; /* number of pieces[0] */
	struct ckt_log_command *commands;
	size_t command_count, command_room;
	struct ckt_log_reply *replies;
	size_t reply_count, reply_room;
	uint64_t replies_gone; /* numbers of replies that a cut dropped */
};

/* CKT_LOG_WAITS: commands behind a wait, at most, among which its reply finds it. */
enum { CKT_LOG_PIECE = 4 << 20, CKT_LOG_WAITS = 1 << 16 };

void ckt_replay_log_init(struct ckt_replay_log *log, uint64_t limit, const char *directory);
void ckt_replay_log_fini(struct ckt_replay_log *log);
/* Adds a record; what says all about it but its position. */
int ckt_replay_log_command(
	struct ckt_replay_log *log, const uint8_t *record, const struct ckt_log_command *what);
/* Adds the reply to the command of its number, or to the wait of its xid; without one it counts too. */
int ckt_replay_log_reply(struct ckt_replay_log *log, const struct ckt_log_reply *reply);
/* Copies the record of a command, of its size. */
int ckt_replay_log_read(
	struct ckt_replay_log *log, const struct ckt_log_command *command, uint8_t *ret_record);
/* Drops the commands up to the number, and their replies. */
void ckt_replay_log_cut(struct ckt_replay_log *log, uint64_t executed);
/* Index of the first command behind the number; command_count if there is none. */
size_t ckt_replay_log_behind(const struct ckt_replay_log *log, uint64_t executed);
