/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping the executor for an image.
 *
 * Threading: control threads, but for ckt_checkpoint_freeze_executor.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/worker.h"

struct ckt_worker;

/* Under the lock of session.h, but for what the executor alone touches while it stops. */
struct ckt_freeze {
	bool wanted, frozen;
	_Atomic int error;
	int64_t deadline_ms;
	char message[CKT_MESSAGE_MAX]; /* what would not finish */
	bool end;                      /* the session ends instead of continuing */
	bool quiesce;                  /* the executor, frozen, is to part from the client */
	int64_t since_ns;              /* CLOCK_MONOTONIC */
};

/*
 * Stops the executor between commands with everything finished; 0 or -errno and a sentence naming
 * what would not finish.
 */
int ckt_checkpoint_freeze(
	struct ckt_worker *worker, unsigned deadline_ms, char *ret_message, size_t message_size);
void ckt_checkpoint_thaw(struct ckt_worker *worker, bool end);
/*
 * Tells the client to be quiet and ends its connection.  Precondition: frozen, and nobody thaws
 * meanwhile.
 */
void ckt_checkpoint_quiesce(struct ckt_worker *worker);
/* The executor's side. */
void ckt_checkpoint_freeze_executor(struct ckt_worker *worker);
