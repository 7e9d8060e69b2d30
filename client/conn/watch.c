/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watcher: a thread that sleeps until the worker ends the connection, and looks then whether
 * this process is to be quiet.
 *
 * Everything else that the worker says is read by whoever makes a call next.  But a process is
 * saved while it computes, too, and then nobody reads.  The thread waits for the end of the
 * connection alone, so what arrives before does not wake it.  An end without that request it leaves
 * to the next call: a program that needs its GPU no more is not to hear that its server went away.
 */
#include <errno.h>
#include <signal.h>

#include "client/conn/conn.h"
#include "base/log.h"

/* Waits until the connection of this epoch ends.  False: it is not ours to wait for. */
static bool wait_for_end(struct ckt_conn *conn, uint64_t epoch)
{
	pthread_mutex_lock(&conn->read_lock);
	bool watch = atomic_load(&conn->state) == CKT_CONN_OPEN && conn->epoch == epoch;
	conn->watching = watch;
	pthread_mutex_unlock(&conn->read_lock);
	if (!watch)
		return false;
	while (ckt_transport_wait(&conn->transport, CKT_TRANSPORT_ENDED, -1) == -EINTR)
		;
	pthread_mutex_lock(&conn->read_lock);
	conn->watching = false;
	pthread_cond_broadcast(&conn->read_cond);
	pthread_mutex_unlock(&conn->read_lock);
	return true;
}

/*
 * Who resumes holds the reader's place, and the state is RESUMING: it stays off what is about to be
 * closed.
 */
static void look(struct ckt_conn *conn, uint64_t epoch)
{
	ckt_conn_take_reader(conn);
	if (conn->epoch == epoch && atomic_load(&conn->state) == CKT_CONN_OPEN)
		while (ckt_conn_read(conn, 0) == 0)
			;
	ckt_conn_leave_reader(conn);
	if (atomic_load(&conn->quiesce))
		ckt_conn_broken(conn, epoch, -ECONNRESET);
}

static void *watch_main(void *opaque)
{
	struct ckt_conn *conn = opaque;
	while (atomic_load(&conn->state) != CKT_CONN_LOST) {
		uint64_t epoch = conn->epoch;
		if (wait_for_end(conn, epoch))
			look(conn, epoch);
		pthread_mutex_lock(&conn->state_lock);
		while (conn->epoch == epoch && atomic_load(&conn->state) != CKT_CONN_LOST)
			pthread_cond_wait(&conn->state_cond, &conn->state_lock);
		pthread_mutex_unlock(&conn->state_lock);
	}
	return NULL;
}

void ckt_conn_watch_start(struct ckt_conn *conn)
{
	sigset_t all, before;
	pthread_t thread;
	/* The program's signals are for the program's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int error = pthread_create(&thread, NULL, watch_main, conn);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		ckt_debug("cannot start a thread that watches the connection (%d): "
			  "ignoring, the process can be saved only while it waits in a "
			  "call",
			error);
	else
		pthread_detach(thread);
}

void ckt_conn_watch_leave(struct ckt_conn *conn)
{
	ckt_transport_shutdown(&conn->transport);
	pthread_mutex_lock(&conn->read_lock);
	while (conn->watching)
		pthread_cond_wait(&conn->read_cond, &conn->read_lock);
	pthread_mutex_unlock(&conn->read_lock);
}
