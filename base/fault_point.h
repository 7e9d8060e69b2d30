/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points at which a test can kill a process, to examine what the process leaves behind.
 * CRICKET_FAULT=N kills the process that reaches point N immediately (SIGKILL), as kill -9 or a
 * power cut would. The numbers are stable.  In other kinds of process the variable does nothing, so
 * all processes can share one environment.  Threading: none needed.
 */
#pragma once

#include <stdbool.h>

enum ckt_fault_point {
	/* cricket-server */
	/* the worker has written an image, but nobody was told */
	CKT_FAULT_SERVER_SAVED = 101,
	/* the mark of a parked or moved session is written, but its worker was not told */
	CKT_FAULT_SERVER_RELEASE = 102,
	CKT_FAULT_SERVER_RESTORED = 103,    /* a session is restored, but nobody was told */
	CKT_FAULT_SERVER_STAGE_MADE = 104,  /* a stage is made, but nobody was told */
	CKT_FAULT_SERVER_STAGE_WRITE = 105, /* a piece of an image arrived */
	CKT_FAULT_SERVER_STAGE_READ = 106,  /* a piece of an image is about to leave */
	CKT_FAULT_SERVER_PAUSED = 107,      /* a worker is paused, but nobody was told */
	/* cricketctl */
	CKT_FAULT_CTL_CHECKPOINT_MADE = 201,  /* the partial directory is made */
	CKT_FAULT_CTL_CHECKPOINT_SAVED = 202, /* the image is complete in it */
	/* the directory has its name; a session to be stopped is still held */
	CKT_FAULT_CTL_CHECKPOINT_RENAMED = 203,
	/* during the transfer of an image from the server */
	CKT_FAULT_CTL_FETCH = 204,
	CKT_FAULT_CTL_SEND = 205, /* and to it */
	/* the new state file is written but not yet renamed */
	CKT_FAULT_CTL_STATE_FILE = 206,
	CKT_FAULT_CTL_MIGRATE_ROUND = 207, /* a round is saved */
	CKT_FAULT_CTL_MIGRATE_HELD = 208,  /* the source is frozen for the last time */
	/* the target has the session, but the source was not told to end */
	CKT_FAULT_CTL_MIGRATE_RESTORED = 209,
	CKT_FAULT_CTL_MIGRATE_RELEASED = 210, /* the source has ended */
	/* the target has taken a round, but the session still runs at the source */
	CKT_FAULT_CTL_MIGRATE_AHEAD = 211,
	/* the client is quiet and its session held, but nothing is saved */
	CKT_FAULT_CTL_CLIENT_QUIET = 212,
	/* CRIU has written the client; with --stop the client is frozen */
	CKT_FAULT_CTL_CLIENT_SAVED = 213,
	CKT_FAULT_CTL_CLIENT_RESTORE = 214, /* the session is restored, but its client is not */
	/* the image is claimed, but no server was asked to restore it */
	CKT_FAULT_CTL_CLAIMED = 215,
	/* worker: a communicator of a session that comes back is about to be made anew */
	CKT_FAULT_RANKS_RETURN = 216,
	/* a job is restored at the target, but no session was told to end at its source */
	CKT_FAULT_CTL_JOB_MOVE_RESTORED = 220,
	CKT_FAULT_CTL_JOB_MOVE_RELEASED = 221, /* the first session of it has ended there */
	CKT_FAULT_CTL_DRAIN_BEGUN = 222,       /* the server drains, but nothing has moved */
	CKT_FAULT_CTL_DRAIN_MOVED = 223,       /* a session has moved, others have not */
	CKT_FAULT_REPLICA_SENT = 224,          /* an image is at the other server, in a stage */
	CKT_FAULT_REPLICA_IMAGES = 225,        /* all are, but they do not count there */
	CKT_FAULT_REPLICA_KEPT = 226,          /* they count there, but nobody knows it here */
	/* the files of a certificate are on the disk, but the ledger does not know it */
	CKT_FAULT_SLEEP = 227, /* the image of a session that is to sleep counts */
	/* cricket-server: the ranks of communicators are held with no work left, and none was told to stop */
	CKT_FAULT_TOGETHER_MET = 228,
	CKT_FAULT_CTL_CERTIFICATE_WRITTEN = 230,
	/* the ledger knows it, but its files have no names */
	CKT_FAULT_CTL_CERTIFICATE_LEDGER = 231,
	/* the first of its files has replaced an older one */
	CKT_FAULT_CTL_CERTIFICATE_NAMED = 232,
	/* worker: a step of a swapped session has left, others have not; fail: the next one cannot */
	CKT_FAULT_SWAP_LEAVES = 236,
	CKT_FAULT_SWAP_RETURNS = 237, /* the same, and what has left cannot come back */
	/* a step of it has come in, others have not; fail: the next one cannot */
	CKT_FAULT_SWAP_ARRIVES = 238,
	/* the lease of a step is granted behind another session; fail: it cannot be allocated */
	CKT_FAULT_SWAP_GRANTED = 239,
	/* worker: it stands still with the sessions that it shares memory with; fail: it does not */
	CKT_FAULT_TOGETHER_STOPPED = 240,
	CKT_FAULT_TOGETHER_DROPPED = 241, /* it has given up what it opened of them */
	/* all have, and its own memory is about to leave; fail: it cannot */
	CKT_FAULT_TOGETHER_LEAVES = 242,
	CKT_FAULT_TOGETHER_CAME = 243,  /* it has come in, but others cannot open its memory yet */
	CKT_FAULT_TOGETHER_OPENS = 244, /* all have, but it has not opened theirs */
	/* cricket-server: all have given up what they opened, but none was told to leave */
	CKT_FAULT_TOGETHER_SERVER = 245,
	/* server: a cut of sessions that share: all are held and drained, and no image is begun */
	CKT_FAULT_CUT_HELD = 246,
	CKT_FAULT_CUT_NEXT = 247,  /* the image and the next state of one are on the disk */
	CKT_FAULT_CUT_SAVED = 248, /* those of all are */
	/* all clients of a group have come, and no session is started */
	CKT_FAULT_GROUP_RETURNS = 250,
};

void ckt_fault(enum ckt_fault_point point);
/*
 * Kills the process if CRICKET_FAULT is the point's number, and returns true if it is "fail:" and
 * that number.
 */
bool ckt_fault_reached(int point);
