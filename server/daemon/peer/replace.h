/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One server takes the place of another on the same socket (--replace), and no connection is refused.
 *
 *	successor			the server that runs
 *	  all but its sockets is ready
 *	  CKT_CONTROL_REPLACE ------->	 accepts nothing from now on: connections wait in the queues
 *	  (one end of a socket pair)	 waits until nothing is half done
 *	  <------------- its lock and its listening sockets, one a packet
 *					 ends; its sessions live on
 *	  the pair's end: listens there, and finds the sessions by their sockets
 *
 * If the server cannot come to rest within CKT_REPLACE_PATIENCE_MS, or the successor goes away, it
 * accepts again, and nothing has happened.
 *
 * Only root and the server's own user may do this, over the UNIX socket.
 *
 * Threading: the loop's thread; the successor's before its loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/daemon/loop.h"

enum { CKT_REPLACE_PATIENCE_MS = 30000 };

struct ckt_server;

/* Of the server that goes.  Zeroed memory: nobody comes. */
struct ckt_replace {
	struct ckt_source channel; /* to the successor */
	bool open;
	bool done; /* it has our sockets: what is on disk stays */
	struct ckt_timer timer;
	long long deadline_ms;
};

/*
 * The successor's: fills server->inherited, and server->lock_fd, once the other has
 * ended.  -ENOENT: no server runs there, so there is nothing to take.  Else -errno with the reason.
 */
int ckt_replace_take(struct ckt_server *server, char *ret_message, size_t message_size);
/* The socket that came for that address, as an option says it or as it is bound, now the caller's; -1: none. */
int ckt_replace_inherited(struct ckt_server *server, const char *asked);
/* Closes what nobody wanted. */
void ckt_replace_fini(struct ckt_server *server);
/*
 * For a reload by systemd, which waits for the process that it starts: goes on in a child, and tells
 * systemd of it once the child calls ckt_replace_ready.  -1: go on, in the child or, without
 * systemd, here (*ret_ready_fd is -1); else the exit status.
 */
int ckt_replace_detach(int *ret_ready_fd);
/* Closes the descriptor; -1: nobody waits. */
void ckt_replace_ready(int ready_fd);
