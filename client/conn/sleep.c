/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session that sleeps: its worker has ended, and an image has all of it (cricket-server
 * --idle-context).
 *
 *	OPEN --SLEEP--> OPEN, asleep --a command, or a thread that waits--> RESUMING --> OPEN
 *
 * The connection stays open, and only shows the server that the program lives.  Nothing is written to
 * it or read from it.  If it breaks, the watcher makes another one.  What the worker did not execute is
 * sent again to the next one.  So a command that crosses SLEEP wakes the session at once.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

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

enum { CONNECT_MS = 3000, KEEP_FIRST_MS = 50, KEEP_MOST_MS = 2000 };

/* Precondition: state_lock held, asleep, OPEN.  False: not now. */
static bool offer(struct ckt_conn *conn)
{
	char message[CKT_MESSAGE_MAX], moved[CKT_ADDRESS_MAX + 1];
	struct ckt_hello_ok ok = {0};
	struct ckt_transport found;
	conn->keeping = true;
	int result = ckt_connect(conn, conn->address_text, CKT_HELLO_RESUME, CONNECT_MS, &found,
		&ok, moved, sizeof moved, message, sizeof message);
	conn->keeping = false;
	if (result) {
		ckt_debug("session %s: the server does not keep its connection: %s", conn->session,
			message);
		return false;
	}
	bool kept = ckt_conn_told(&ok, CKT_CAPABILITY_SLEEP) == CKT_SLEEP_KEEP;
	xdr_free((xdrproc_t)xdr_ckt_hello_ok, (char *)&ok);
	if (!kept) {
		/* An earlier server has woken it: the program comes at its next command. */
		ckt_transport_close(&found);
		return false;
	}
	ckt_conn_take_reader(conn);
	pthread_mutex_lock(&conn->send_lock);
	ckt_transport_close(&conn->transport);
	ckt_transport_move(&conn->transport, &found);
	conn->direct = false;
	pthread_mutex_unlock(&conn->send_lock);
	ckt_conn_leave_reader(conn);
	return true;
}

void ckt_conn_keep(struct ckt_conn *conn)
{
	bool kept = false, sleeps = true;
	for (unsigned wait_ms = KEEP_FIRST_MS; sleeps && !kept;
		wait_ms = wait_ms < KEEP_MOST_MS ? wait_ms * 2 : KEEP_MOST_MS) {
		pthread_mutex_lock(&conn->state_lock);
		sleeps = atomic_load(&conn->asleep) && atomic_load(&conn->state) == CKT_CONN_OPEN;
		kept = sleeps && offer(conn);
		pthread_mutex_unlock(&conn->state_lock);
		const struct timespec pause = {
			.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000L};
		if (sleeps && !kept)
			nanosleep(&pause, NULL);
	}
}
