/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a group's commands (rpc/session.x, docs/durable.md): stamps of what runs for the first
 * time, and the places of what a replay runs again.
 *
 *	first time:	a command begins -> its stamp is noted, in order of numbers -> told before the next reply
 *	replay:		STAMP -> the command waits until the others' slots (rpc/stamps.h) reach its stamp -> runs ... STAMPS_END
 *
 * A stamp is CLOCK_MONOTONIC in nanoseconds, which all workers of a host share: no worker writes
 * what another reads while the program runs.
 *
 * Threading: the executor, unless it says otherwise.
 */
#pragma once

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpc/session.h"

struct ckt_call_header;
struct ckt_wcall;
struct ckt_worker;

/* At the worker's start, before its cage: what names this host's clock.  0: nothing does. */
void ckt_stamps_init(void);
uint64_t ckt_stamps_clock(void);

/* ---- What runs for the first time */

/* A client has come: whether it keeps what it has sent.  A new one says so only with its first command. */
void ckt_stamps_hello(bool kept);
/* A command's header came: whether the client keeps what it sends. */
void ckt_stamps_look(const struct ckt_call_header *header);
/* Whether the client keeps all; any thread. */
bool ckt_stamps_kept(void);
/* The command begins, or begins again in a replay.  Before it counts as executed. */
void ckt_stamps_begin(struct ckt_worker *worker, uint64_t seq);
/* Before a reply: tells what was not told.  xid: of a call of the program; 0: none.  Any thread. */
void ckt_stamps_tell(struct ckt_worker *worker, uint64_t epoch, uint32_t xid);
/* A client has come that knows of commands up to `acked`: tells it the stamps behind that. */
void ckt_stamps_connect(struct ckt_worker *worker, uint64_t acked);

/* ---- A replay in a group */

/* The session's replay is one: takes over the page's descriptor.  Any thread, before START.  0 or -errno. */
int ckt_stamps_join(int fd, unsigned slot, unsigned count);
/* Whether it is, and has not ended. */
bool ckt_stamps_replaying(void);
/* False: not the place of a command that can come next. */
bool ckt_stamps_take(struct ckt_worker *worker, const ckt_stamp_args *args);
/* Takes over the call, which is answered once all members are so far.  False: not in a replay. */
bool ckt_stamps_end(struct ckt_wcall *call, unsigned patience_ms);
/* Whether the next command waits, or STAMPS_END does; whether anything does, so that it is asked soon. */
bool ckt_stamps_stops(struct ckt_worker *worker);
extern bool ckt_stamps_waits;
/* A call of a replay was answered so.  Any thread. */
void ckt_stamps_answered(uint32_t xid, CUresult result);

/* ---- For these two files */

/* The bytes of CKT_CALLBACK_STAMPS without stamps of commands. */
enum { CKT_STAMPS_FIXED = 8 + 4 + 4 + 8 + 8 };
/* A new connection: what the earlier one had announced does not come. */
void ckt_stamps_come(void);
/* Whether that number is the one that has its place now: it begins. */
bool ckt_stamps_pass(uint64_t seq);
