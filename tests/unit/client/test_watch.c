/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn/watch.c (client/conn/conn.h): who sleeps until the connection ends, and leaves it
 * alone when told.
 */
#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn_parts.h"
#include "tests/unit/suite.h"

static bool watching(bool wanted)
{
	bool now = !wanted;
	for (int i = 0; i < 60000 && now != wanted; i++) {
		poll(NULL, 0, 1);
		pthread_mutex_lock(&ckt_conn.read_lock);
		now = ckt_conn.watching;
		pthread_mutex_unlock(&ckt_conn.read_lock);
	}
	return now == wanted;
}

static unsigned threads(void)
{
	unsigned count = 0;
	DIR *tasks = opendir("/proc/self/task");
	while (tasks && readdir(tasks))
		count++;
	if (tasks)
		closedir(tasks);
	return count;
}

static uint64_t executed(void)
{
	pthread_mutex_lock(&ckt_conn.lock);
	uint64_t now = ckt_conn.executed;
	pthread_mutex_unlock(&ckt_conn.lock);
	return now;
}

static void test_watch(void)
{
	int peer = parts_open();
	unsigned before = threads();
	ckt_conn_watch_start(&ckt_conn);
	YES(watching(true));
	/* What arrives does not wake it: it is read by whoever makes a call. */
	parts_reply(peer, &(struct ckt_reply_header){.xid = 4711, .executed = 9}, NULL, 0);
	poll(NULL, 0, 20);
	YES(watching(true));
	IS(executed(), 0);
	/*
	 * An end that nobody asked for is left to the next call, though what came before it is
	 * read.
	 */
	shutdown(peer, SHUT_RDWR);
	YES(watching(false));
	for (int i = 0; i < 60000 && executed() != 9; i++)
		poll(NULL, 0, 1);
	IS(executed(), 9);
	IS(ckt_conn.state, CKT_CONN_OPEN);
	/* Another connection is watched in turn, and left before its descriptor is closed. */
	ckt_conn_take_reader(&ckt_conn);
	close(ckt_conn.transport.fd);
	close(peer);
	pthread_mutex_lock(&ckt_conn.state_lock);
	peer = parts_open();
	pthread_cond_broadcast(&ckt_conn.state_cond);
	pthread_mutex_unlock(&ckt_conn.state_lock);
	ckt_conn_leave_reader(&ckt_conn);
	YES(watching(true));
	ckt_conn_take_reader(&ckt_conn);
	pthread_mutex_lock(&ckt_conn.state_lock);
	ckt_conn.state = CKT_CONN_RESUMING;
	pthread_mutex_unlock(&ckt_conn.state_lock);
	ckt_conn_watch_leave(&ckt_conn);
	NO(ckt_conn.watching);
	ckt_conn_leave_reader(&ckt_conn);
	/* It ends with the session. */
	pthread_mutex_lock(&ckt_conn.state_lock);
	ckt_conn.state = CKT_CONN_LOST;
	pthread_cond_broadcast(&ckt_conn.state_cond);
	pthread_mutex_unlock(&ckt_conn.state_lock);
	/* Before the next test's connection stands there. */
	for (int i = 0; i < 60000 && threads() > before; i++)
		poll(NULL, 0, 1);
	YES(threads() <= before);
	parts_close(peer);
}

UNIT_SUITE(watch, {"watch", test_watch})
