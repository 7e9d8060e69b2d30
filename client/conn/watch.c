/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watcher: a thread that sleeps until the worker ends the connection, and then checks whether
 * the server asked this process to be quiet.
 *
 * The thread that makes the next call reads everything else that the worker sends.  But a process
 * may also be saved while it computes, and then no thread reads.  The watcher waits only for the
 * end of the connection, so data that arrives earlier does not wake it.  Without a request to be
 * quiet, the next call handles the end, or the flusher after PATIENCE_NS.  A program that no longer
 * needs its GPU, because it ends, must not see a message about its server.
 */
#include <errno.h>
#include <time.h>

#include "client/conn/conn.h"
#include "base/log.h"
#include "base/thread.h"

enum { PATIENCE_NS = 250000000 };

/* Waits until the connection of this epoch ends.  False: the connection is not to be watched. */
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
 * The resuming thread is the reader, and the state is RESUMING.  So this function does not touch a
 * descriptor that is about to be closed.
 */
static void look(struct ckt_conn *conn, uint64_t epoch)
{
	ckt_conn_take_reader(conn);
	if (conn->epoch == epoch && atomic_load(&conn->state) == CKT_CONN_OPEN)
		while (ckt_conn_read(conn, 0) == 0)
			;
	ckt_conn_leave_reader(conn);
	if (atomic_load(&conn->quiesce)) {
		ckt_conn_broken(conn, epoch, -ECONNRESET);
	} else {
		nanosleep(&(struct timespec){.tv_nsec = PATIENCE_NS}, NULL);
		ckt_conn_flusher_look(conn);
	}
}

static void *watch_main(void *opaque)
{
	struct ckt_conn *conn = opaque;
	while (atomic_load(&conn->state) != CKT_CONN_LOST) {
		uint64_t epoch = conn->epoch;
		if (wait_for_end(conn, epoch))
			look(conn, epoch);
		if (atomic_load(&conn->asleep)) {
			ckt_conn_keep(conn);
			continue;
		}
		pthread_mutex_lock(&conn->state_lock);
		while (conn->epoch == epoch && atomic_load(&conn->state) != CKT_CONN_LOST)
			pthread_cond_wait(&conn->state_cond, &conn->state_lock);
		pthread_mutex_unlock(&conn->state_lock);
	}
	return NULL;
}

void ckt_conn_watch_start(struct ckt_conn *conn)
{
	int error = ckt_thread_start(NULL, 0, watch_main, conn);
	if (error)
		ckt_debug("cannot start a thread that watches the connection (%d): "
			  "ignoring, the process can be saved only while it waits in a "
			  "call",
			-error);
}

void ckt_conn_watch_leave(struct ckt_conn *conn)
{
	ckt_transport_shutdown(&conn->transport);
	pthread_mutex_lock(&conn->read_lock);
	while (conn->watching)
		pthread_cond_wait(&conn->read_cond, &conn->read_lock);
	pthread_mutex_unlock(&conn->read_lock);
}
