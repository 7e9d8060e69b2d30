/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts to take all of a resource.  Each has a bound of its own, above the limit that must stop
 * it and far below what the machine has: beyond it the attempt got in.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/escape/agent.h"
#include "tests/escape/attempts.h"

enum {
	/* Above the 256 MiB and 16k names of a worker's own /tmp (spawn_mounts.c). */
	FILL_BYTES = 300 << 20,
	FILL_NAMES = 17000,
	PIECE_BYTES = 1 << 20,
	MEMORY_BYTES = 300 << 20,
	THREADS = 4000,
	THREADS_MAX = 8000,
	STACK_BYTES = 128 << 10,
	HOLD_MS = 100,
	TRIES_MAX = 30,
};

/* ---- Disks */

static int fill(const char *path)
{
	static char piece[PIECE_BYTES];
	memset(piece, 'x', sizeof piece);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), result = 0;
	if (fd < 0)
		return -errno;
	for (size_t done = 0; done < FILL_BYTES && !result; done += sizeof piece)
		if (write(fd, piece, sizeof piece) != sizeof piece)
			result = -(errno ? errno : ENOSPC);
	close(fd);
	unlink(path);
	return result;
}

static int fill_tmp(void)
{
	return fill("/tmp/escape-fill");
}

static int fill_var_tmp(void)
{
	return fill("/var/tmp/escape-fill");
}

/* The host's.  A group's own is for its workers to fill, and has a fixed size. */
static int fill_shm(void)
{
	struct stat shm;
	if (stat("/dev/shm", &shm))
		return -errno;
	int result = fill("/dev/shm/escape-fill");
	return result || (long)shm.st_dev == ckt_escape_told_number("shm-device") ? result : -EXDEV;
}

static int fill_names(void)
{
	char path[64];
	int result = 0, count = 0;
	for (; count < FILL_NAMES && !result; count++) {
		snprintf(path, sizeof path, "/tmp/escape-%d", count);
		int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		result = fd < 0 ? -errno : 0;
		if (fd >= 0)
			close(fd);
	}
	while (count-- > 0) {
		snprintf(path, sizeof path, "/tmp/escape-%d", count);
		unlink(path);
	}
	return result;
}

/* ---- Limits */

static int raise_limit(__rlimit_resource_t resource)
{
	struct rlimit limit;
	if (getrlimit(resource, &limit))
		return -errno;
	limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
	return setrlimit(resource, &limit) ? -errno : 0;
}

static int raise_core(void)
{
	return raise_limit(RLIMIT_CORE);
}

static int raise_processes(void)
{
	return raise_limit(RLIMIT_NPROC);
}

static int raise_priority(void)
{
	errno = 0;
	int now = getpriority(PRIO_PROCESS, 0);
	return setpriority(PRIO_PROCESS, 0, now - 1) ? -errno : 0;
}

/* ---- What is held until the next plan */

static void *held;
static size_t held_bytes;
static pthread_t threads[THREADS_MAX];
static int thread_count;
static atomic_bool go_on;

void ckt_escape_let_go(void)
{
	if (held)
		munmap(held, held_bytes);
	held = NULL;
	atomic_store(&go_on, true);
	while (thread_count)
		pthread_join(threads[--thread_count], NULL);
}

/* As much as the plan says. */
static long told_or(const char *key, long usual)
{
	long told = ckt_escape_told_number(key);
	return told > 0 ? told : usual;
}

static int take_memory(void)
{
	held_bytes = (size_t)told_or("memory-bytes", MEMORY_BYTES);
	void *memory = mmap(NULL, held_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	held = memory;
	return 0;
}

static void *wait_for_next(void *opaque)
{
	while (!atomic_load(&go_on))
		poll(NULL, 0, HOLD_MS);
	return opaque;
}

/* Threads count as processes do, and are cheaper. */
static int take_threads(void)
{
	pthread_attr_t attributes;
	int error = pthread_attr_init(&attributes);
	if (!error)
		error = pthread_attr_setstacksize(&attributes, STACK_BYTES);
	atomic_store(&go_on, false);
	long most = told_or("threads", THREADS);
	/* Who wants all takes what others give back. */
	for (int tries = 0; tries < TRIES_MAX && (!error || error == EAGAIN) &&
		thread_count < (most < THREADS_MAX ? most : THREADS_MAX);) {
		error = pthread_create(&threads[thread_count], &attributes, wait_for_next, NULL);
		thread_count += !error;
		if (error == EAGAIN && ++tries < TRIES_MAX)
			poll(NULL, 0, HOLD_MS);
	}
	pthread_attr_destroy(&attributes);
	return -error;
}

const struct ckt_escape_attempt ckt_escape_resources[] = {
	{"fill-tmp", fill_tmp},
	{"fill-var-tmp", fill_var_tmp},
	{"fill-shm", fill_shm},
	{"fill-names", fill_names},
	{"limit-core", raise_core},
	{"limit-processes", raise_processes},
	{"limit-priority", raise_priority},
	{"memory-bomb", take_memory},
	{"thread-bomb", take_threads},
	{NULL, NULL},
};
