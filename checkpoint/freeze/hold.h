/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session that is stopped with its job: the worker executes no command of its client, while the
 * GPU finishes its work.
 *
 *	STOP -> stopped, draining -> drained
 *	STEP n -> executes up to n further commands, because another session's work waits for something that they do -> stopped again
 *	END, or the end of the connection that said STOP -> continues
 *
 * Unlike a frozen session (freeze.c) it can continue for a few commands, and no thread waits inside
 * the worker.  While a host function of the program runs, the worker executes commands in any case,
 * because the function's end is one of them.  It withholds replies meanwhile, so that the program
 * does not issue one host function after another, as long as they end one by one: they may need
 * what another thread of the program does.
 *
 * Threading: ckt_hold_set, ckt_hold_look, ckt_hold_copied and ckt_hold_keep from any thread; the
 * rest is the executor's.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/worker.h"

struct ckt_reply_header;
struct ckt_worker;

/* A cut's name as text: no name of a job. */
enum { CKT_HOLD_CUT_TEXT = 2 * CKT_WORKER_CUT_SIZE + 2 };

struct ckt_hold {
	/* mail_lock */
	bool wanted;
	uint64_t epoch;            /* of the latest STOP or STEP */
	uint64_t commands, issued; /* of that step */
	bool copied;
	char cut[CKT_HOLD_CUT_TEXT];   /* the server's, of a group; empty: it stands with its job */
	char message[CKT_MESSAGE_MAX]; /* what is unfinished */

	/* The executor's. */
	bool on;
	uint64_t seen; /* the epoch that it uses */
	uint64_t issued_bound;
	bool host_seen;      /* a host function ran since STOP */
	uint64_t host_ended; /* how many had ended when that was last looked at */
	int64_t since_ns;    /* when the last one ended, or replies were withheld again */
	int64_t patience_ns;

	_Atomic uint64_t left;    /* commands that may still be executed */
	_Atomic uint64_t drained; /* epoch in which no work was left; 0: not */
	_Atomic bool withhold;    /* replies are kept for now */
};

/* 0 or -errno with the reason. */
int ckt_hold_set(struct ckt_worker *worker, uint32_t action, uint64_t commands, uint64_t issued,
	char *ret_message, size_t message_size);
/* ret_message: the result's, CKT_MESSAGE_MAX bytes. */
void ckt_hold_look(struct ckt_worker *worker, struct ckt_worker_hold_res *ret, char *ret_message);
/* Until it continues it stands with the sessions of that cut, and not with its job.  0, or -EINVAL: it is not held. */
int ckt_hold_name_cut(struct ckt_worker *worker, const uint8_t cut[CKT_WORKER_CUT_SIZE]);
/* What sessions that stand together have in common: a cut, or a job; "": nothing.  Precondition: mail_lock held. */
const char *ckt_hold_with(struct ckt_worker *worker);
/* An image has copied all that it needs of the session. */
void ckt_hold_copied(struct ckt_worker *worker);

/* Precondition: mail_lock held. */
void ckt_hold_take(struct ckt_worker *worker);
/* Whether commands wait. */
bool ckt_hold_stops(struct ckt_worker *worker);
/* Keeps a reply for later; false if it is to be sent. */
bool ckt_hold_keep(struct ckt_worker *worker, uint64_t epoch, const struct ckt_reply_header *header,
	const uint8_t *body, size_t size);
/* Sends the kept replies, and keeps no more. */
void ckt_hold_give(struct ckt_worker *worker);
/* Decides anew whether replies are withheld. */
void ckt_hold_refresh(struct ckt_worker *worker);
/* A command is about to be executed. */
void ckt_hold_spend(struct ckt_worker *worker);
/* Finds out whether anything is unfinished; true if the caller must ask again soon. */
bool ckt_hold_check(struct ckt_worker *worker);
