/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an interrupted cricketctl removes: directories, registered while they are in the making.
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

enum { TRIES = 50, TRY_NS = 10000000, DIRECTORIES = 2, NAME_SIZE = CKT_CTL_PATH_SIZE + 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char registered[DIRECTORIES][NAME_SIZE]; /* empty: none */
static sigset_t signals;

/* Whether anything is left. */
static bool remove_all(void)
{
	bool left = false;
	/* The last one first: it may be the one that is not encrypted. */
	for (unsigned i = DIRECTORIES; i-- > 0;) {
		if (!*registered[i])
			continue;
		ckt_ctl_tree_remove(AT_FDCWD, registered[i], 0);
		left |= access(registered[i], F_OK) == 0;
	}
	return left;
}

static void *wait_thread(void *opaque)
{
	int number = 0;
	struct timespec pause = {.tv_nsec = TRY_NS};
	(void)opaque;
	while (sigwait(&signals, &number))
		;
	pthread_mutex_lock(&lock);
	/* Those who write there may create a file between two steps of the removal. */
	for (unsigned i = 0; i < TRIES && remove_all(); i++)
		nanosleep(&pause, NULL);
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

void ckt_ctl_cleanup_add(const char *path)
{
	unsigned i = 0;
	start();
	pthread_mutex_lock(&lock);
	while (i < DIRECTORIES - 1 && *registered[i])
		i++;
	snprintf(registered[i], NAME_SIZE, "%s", path);
	pthread_mutex_unlock(&lock);
}

void ckt_ctl_cleanup_drop(const char *path)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < DIRECTORIES; i++)
		if (strcmp(registered[i], path) == 0)
			registered[i][0] = 0;
	pthread_mutex_unlock(&lock);
}
