/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that sends replicas, cricket-replicator, and the lines between it and the server:
 *
 *	server: send S / go S / stop S / leave S / drop S
 *	process: ready S / kept S UNTIL EXECUTED [CUT] / lease S UNTIL / lost S / refused S REASON / unreachable S REASON
 *
 * leave: S is neither sent nor leased any more, and stays there.  CUT is of the state that was sent
 * (chain_store.h).  UNTIL is of CLOCK_BOOTTIME in ms, counted from before the call that the other server answered.
 * The process ends with the server, whose socket it reads; if it dies, another one starts.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stddef.h>

#include "server/daemon/server.h"

enum { CKT_REPLICATOR_LINE_MAX = 512 };

struct ckt_replicator_process;
/* words: at most 4, the last one with all that is left; they stay the caller's of this function. */
typedef void (*ckt_replicator_line)(struct ckt_server *server, char *words[4]);
typedef void (*ckt_replicator_again)(struct ckt_server *server);

/* again: another process has started, and knows nothing.  0 or -errno with the reason. */
int ckt_replicator_start(struct ckt_server *server, ckt_replicator_line line,
	ckt_replicator_again again, struct ckt_replicator_process **ret_process, char *ret_message,
	size_t message_size);
/* A line; without a process it is lost, and `again` comes. */
void ckt_replicator_tell(
	struct ckt_replicator_process *process, const char *word, const char *session);
void ckt_replicator_stop(struct ckt_replicator_process *process);
