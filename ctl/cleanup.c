/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an interrupted cricketctl removes: one directory at a time, registered while it is in the
 * making.
 *
 * Threading: a thread waits for the signals, so that nothing is done in a handler; it starts with
 * the first registration, before any other thread of ours, which so have them blocked.  Where
 * somebody has blocked them already (checkpoint --every reads them itself) there is none.
 */
#include "ctl/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ctl/files.h"

enum { TRIES = 50, TRY_NS = 10000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char registered[CKT_CTL_PATH_SIZE + 32];
static sigset_t signals;

static void *wait_thread(void *opaque)
{
	int number = 0;
	struct timespec pause = {.tv_nsec = TRY_NS};
	(void)opaque;
	while (sigwait(&signals, &number))
		;
	pthread_mutex_lock(&lock);
	/* A worker that still writes there may create a file between two steps of the removal. */
	for (unsigned i = 0; i < TRIES && *registered; i++) {
		ckt_ctl_tree_remove(AT_FDCWD, registered, 0);
		if (access(registered, F_OK))
			break;
		nanosleep(&pause, NULL);
	}
	_exit(128 + number);
}

static void start(void)
{
	static bool started;
	sigset_t before;
	pthread_t thread;
	if (started)
		return;
	started = true;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	if (pthread_sigmask(SIG_BLOCK, &signals, &before) || sigismember(&before, SIGINT))
		return;
	if (pthread_create(&thread, NULL, wait_thread, NULL))
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	else
		pthread_detach(thread);
}

void ckt_ctl_cleanup_set(const char *path)
{
	if (path)
		start();
	pthread_mutex_lock(&lock);
	snprintf(registered, sizeof registered, "%s", path ? path : "");
	pthread_mutex_unlock(&lock);
}
