/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the operations of the control socket share: their lock, and what holds the session still.  Between
 * ckt_operation_begin and ckt_operation_end there is no other operation.  Threading: control threads, and
 * the executor where a comment says so.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct ckt_worker;

/* Under the lock, but for what is atomic. */
struct ckt_operation_state {
	pthread_mutex_t lock;
	_Atomic unsigned waiting; /* operations, for the lock */
	bool held;                /* frozen until RELEASE */
	bool swapped;             /* the session's memory is in the swap store */
	/*
	 * It stands still with the sessions that it shares memory with.  The connection that said so
	 * leads all of them; when it ends, each goes on alone.
	 */
	bool stopped;
	_Atomic bool alone;
};

extern struct ckt_operation_state ckt_operation;

void ckt_operation_begin(void);
void ckt_operation_end(void);

/* Precondition of all: operation begun. */

/* Whether it is stopped with others, and then why nothing else can be done. */
bool ckt_operation_is_tied(char *ret_message, size_t message_size);
/* 0 if the session stands still now, as it may have before; else -errno with the reason. */
int ckt_operation_freeze(
	struct ckt_worker *worker, unsigned deadline_ms, char *ret_message, size_t message_size);
/* Lets the session continue if nothing holds it. */
void ckt_operation_thaw(struct ckt_worker *worker);
/* Paused, and no longer swapped. */
void ckt_operation_set_paused(struct ckt_worker *worker, bool paused);
