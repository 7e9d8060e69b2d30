/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Swapping: a session's device memory leaves for the host's, and comes back at its next command.
 *
 *	resident --ckt_session_swap_out--> swapped --ckt_session_swap_in, or a command of its client's--> resident
 *
 * The swap memory of a session is a memory file, bounded with all others by --swap-memory; where that
 * is full, a file without a name in the directory of --swap.  The server makes it and passes it to
 * this worker alone.  It lives as long as the session: what has not changed since the session came in
 * is not written again.  The server counts what its file system says of the file, not what the
 * worker says.  Limits of owners (swap= of limit_rule.h) bound both kinds together.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/worker.h"

struct ckt_server;
struct ckt_session;

/* Of a session.  Zeroed memory has none. */
struct ckt_daemon_swap {
	int fd;
	bool open;        /* fd is its swap memory */
	bool on_disk;     /* a file of --swap */
	bool busy;        /* a call runs */
	uint64_t counted; /* bytes of --swap-memory; while a call runs, what it may come to */
	uint64_t held;    /* the same of either kind, for the limits of owners */
};

/*
 * error 0: it is done, and res says how much.  Otherwise -errno with a sentence, and the session is
 * as it was: -ENOSPC: the swap memory is full; -ENOMEM: the GPU, or the session's limit, is.
 * res: the worker's answer; NULL where it gave none.  The session may end after the call.
 */
typedef void (*ckt_swap_done)(struct ckt_session *session, void *data, int error,
	const ckt_worker_swap_res *res, const char *message);

/*
 * Stops the session between two commands, for deadline_ms at most (0: a minute), and takes its memory
 * off the GPU; its lease goes back to the ledger.  stay: only ckt_session_swap_in brings it back, and
 * no command of its client's.  done is called exactly once, never from within, unless an error is
 * returned: -ENOTSUP: neither --swap-memory nor --swap is given; -EBUSY: a swap of it runs, or
 * somebody holds it.
 */
int ckt_session_swap_out(struct ckt_session *session, bool stay, unsigned deadline_ms,
	ckt_swap_done done, void *data);
/*
 * The same for other sessions of this server, unless its work is tied to other sessions': -EBUSY then
 * comes with a sentence.
 */
int ckt_session_swap_yield(
	struct ckt_session *session, unsigned deadline_ms, ckt_swap_done done, void *data);
/* Takes the lease, and brings the memory in.  As above. */
int ckt_session_swap_in(struct ckt_session *session, ckt_swap_done done, void *data);
/* The same behind a session that leaves: its worker takes the lease in steps (ckt_quantum_follow). */
int ckt_session_swap_follow(struct ckt_session *session, ckt_swap_done done, void *data);
/* One step of sessions that move together (together.h): that of CKT_WORKER_TOGETHER. */
int ckt_session_swap_together(struct ckt_session *session, unsigned step, unsigned deadline_ms,
	ckt_swap_done done, void *data);
/* The worker is gone, and its swap memory with it. */
void ckt_swap_close(struct ckt_session *session);
/* Bytes of --swap-memory that all sessions have. */
uint64_t ckt_swap_used(const struct ckt_server *server);
