/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session that sleeps: its worker has ended, and an image has all of it (cricket-server
 * --idle-context).
 *
 *	OPEN --SLEEP--> OPEN, asleep --a command, or a thread that waits--> RESUMING --> OPEN
 *
 * The connection stays open, and only shows the server that the program lives.  Nothing is written to
 * it or read from it: what the worker did not execute is sent again to the next one.  So a command
 * that crosses SLEEP wakes the session at once.
 */
#include <errno.h>

#include "client/conn/conn.h"
#include "base/log.h"

int ckt_conn_take_sleep(struct ckt_conn *conn, struct ckt_cursor *c)
{
	struct ckt_sleep_args args = {0};
	if (ckt_net_decode(c, (xdrproc_t)xdr_ckt_sleep_args, &args))
		return -EPROTO;
	pthread_mutex_lock(&conn->lock);
	ckt_conn_trim(conn, args.executed);
	pthread_mutex_unlock(&conn->lock);
	ckt_debug("session %s sleeps", conn->session);
	/* Whoever sends from here on notices it, and whoever sent before has left a command. */
	atomic_store(&conn->asleep, true);
	return -ECONNRESET;
}

bool ckt_conn_rests(struct ckt_conn *conn)
{
	pthread_mutex_lock(&conn->lock);
	bool rests = conn->pending.next == &conn->pending &&
		conn->head == atomic_load(&conn->tail) && !atomic_load(&conn->async_pending);
	pthread_mutex_unlock(&conn->lock);
	return rests;
}
