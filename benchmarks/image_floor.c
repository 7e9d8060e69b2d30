/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What limits saving and restoring on a machine, without a GPU: the rate of hashing, of writing to
 * a directory and of reading back, each alone and together, over threads.
 *
 *	image_floor DIR [THREADS [GIB]]
 *
 * One line a row: what, threads, GB/s of all threads.  Two thirds of GIB (default 8) stand in DIR
 * at a time; they are removed.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint/format/blake3.h"

enum { CHUNK = 2 << 20, THREADS_MAX = 64 };
enum { HASH = 1, WRITE = 2, READ = 4 };

static struct task {
	pthread_t thread;
	int fd, what;
	size_t chunks;
	uint8_t *data;
	uint8_t sum[32];
} tasks[THREADS_MAX];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void *work(void *opaque)
{
	struct task *t = opaque;
	for (size_t i = 0; i < t->chunks; i++) {
		uint8_t *data = t->data + (i % 2) * CHUNK;
		if (t->what & READ && pread(t->fd, data, CHUNK, (off_t)(i * CHUNK)) != CHUNK)
			fail("reading");
		if (t->what & HASH)
			ckt_blake3(data, CHUNK, t->sum);
		if (t->what & WRITE && pwrite(t->fd, data, CHUNK, (off_t)(i * CHUNK)) != CHUNK)
			fail("writing");
	}
	return NULL;
}

static double now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static void row(const char *name, int what, int threads)
{
	double begin = now();
	size_t chunks = 0;
	for (int i = 0; i < threads; i++) {
		tasks[i].what = what;
		chunks += tasks[i].chunks;
		if (pthread_create(&tasks[i].thread, NULL, work, &tasks[i]))
			fail("starting a thread");
	}
	for (int i = 0; i < threads; i++)
		pthread_join(tasks[i].thread, NULL);
	printf("%-16s %3d threads %7.2f GB/s\n", name, threads,
		(double)chunks * CHUNK / (now() - begin) / 1e9);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: image_floor DIR [THREADS [GIB]]\n");
		return 2;
	}
	int threads = argc > 2 ? atoi(argv[2]) : (int)sysconf(_SC_NPROCESSORS_ONLN);
	size_t gib = argc > 3 ? (size_t)atoi(argv[3]) : 8;
	if (threads < 1 || threads > THREADS_MAX || chdir(argv[1])) {
		fprintf(stderr,
			"image_floor: %s: no such directory, or %d threads are not 1 to %d\n",
			argv[1], threads, THREADS_MAX);
		return 2;
	}
	for (int i = 0; i < threads; i++) {
		char name[] = "image_floor.XXXXXX";
		tasks[i].fd = mkstemp(name);
		unlink(name);
		tasks[i].chunks = (gib << 30) / CHUNK / (size_t)threads;
		tasks[i].data = mmap(NULL, 2 * CHUNK, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (tasks[i].fd < 0 || tasks[i].data == MAP_FAILED)
			fail("making a file");
		for (size_t k = 0; k < 2 * CHUNK; k++)
			tasks[i].data[k] = (uint8_t)(k * 2654435761u >> 13);
	}
	row("hash", HASH, threads);
	row("write", WRITE, threads);
	row("read", READ, threads);
	row("read again", READ, threads);
	row("write again", WRITE, threads);
	row("read + hash", READ | HASH, threads);
	for (int i = 0; i < threads; i++)
		if (ftruncate(tasks[i].fd, 0))
			fail("emptying a file");
	row("hash + write", HASH | WRITE, threads);
	return 0;
}
