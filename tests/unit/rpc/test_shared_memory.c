/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/transport/shared_memory.c: rings beside a UNIX socket.  Counts system calls by the bytes on the
 * socket: while both sides are awake there is none.
 */
#include "rpc/transport/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/net.h"
#include "tests/unit/suite.h"

enum { RING = CKT_RINGS_BYTES_MIN, STREAM = 4 << 20 };

/* 0: the worker's, which made the file; 1: the client's. */
static struct ckt_transport ends[2];

static void open_both(void)
{
	int fds[2], memory;
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	MUST(ckt_shared_memory_make(RING, &memory), 0);
	for (int i = 0; i < 2; i++)
		MUST(ckt_transport_init_shared_memory(&ends[i], fds[i], memory, RING, i == 0, NULL),
			0);
	close(memory);
}

static void close_both(void)
{
	ckt_transport_close(&ends[0]);
	ckt_transport_close(&ends[1]);
}

static int on_socket(const struct ckt_transport *t)
{
	int bytes = -1;
	IS(ioctl(t->fd, FIONREAD, &bytes), 0);
	return bytes;
}

static void test_bytes(void)
{
	static uint8_t large[2 * RING];
	char data[8];
	open_both();
	TEXT(ckt_transport_name(&ends[0]), "shm");
	for (int i = 0; i < 2; i++) {
		struct ckt_transport *from = &ends[i], *to = &ends[!i];
		IS(ckt_transport_read(to, data, sizeof data), -EAGAIN);
		IS(ckt_transport_write(from, "abc", 3), 3);
		IS(ckt_transport_read(from, data, sizeof data), -EAGAIN);
		IS(ckt_transport_read(to, data, sizeof data), 3);
		IS(memcmp(data, "abc", 3), 0);
		IS(ckt_transport_write(from, large, sizeof large), RING);
		IS(ckt_transport_write(from, large, 1), -EAGAIN);
		IS(ckt_transport_read(to, large, sizeof large), RING);
		IS(on_socket(from) + on_socket(to), 0);
	}
	NO(ckt_transport_vanished(&ends[0], 0));
	NO(ckt_transport_undelivered(&ends[0]));
	pid_t pid;
	uid_t uid;
	IS(ckt_transport_peer_process(&ends[0], &pid, &uid), 0);
	IS(pid, getpid());
	close_both();
}

static void test_parts(void)
{
	char data[16];
	int fd = 7;
	open_both();
	const struct iovec parts[] = {{(void *)"ab", 2}, {NULL, 0}, {(void *)"cde", 3}};
	IS(ckt_transport_write_fd(&ends[0], parts, COUNT(parts), -1), 5);
	IS(ckt_transport_read_fd(&ends[1], data, sizeof data, &fd), 5);
	IS(memcmp(data, "abcde", 5), 0);
	IS(fd, -1);
	/* Descriptors come with a hello alone. */
	IS(ckt_transport_write_fd(&ends[0], parts, COUNT(parts), ends[0].fd), -EOPNOTSUPP);
	IS(ckt_transport_read(&ends[1], data, sizeof data), -EAGAIN);
	static uint8_t large[RING - 3];
	IS(ckt_transport_write(&ends[0], large, sizeof large), sizeof large);
	IS(ckt_transport_write_fd(&ends[0], parts, COUNT(parts), -1), 3);
	IS(ckt_transport_write_fd(&ends[0], parts, COUNT(parts), -1), -EAGAIN);
	close_both();
}

/* A sleeper is woken by one byte; a peer that is awake gets none. */
static void test_wake(void)
{
	char data[RING];
	open_both();
	IS(ckt_transport_wait(&ends[0], CKT_TRANSPORT_READ, 0), 0);
	IS(ckt_transport_write(&ends[1], "a", 1), 1);
	IS(on_socket(&ends[0]), 1);
	IS(ckt_transport_write(&ends[1], "b", 1), 1);
	IS(on_socket(&ends[0]), 1);
	IS(ckt_transport_wait(&ends[0], CKT_TRANSPORT_READ, -1), CKT_TRANSPORT_READ);
	IS(ckt_transport_read(&ends[0], data, sizeof data), 2);
	/* It said that it sleeps before it found the bytes; now it is awake. */
	IS(ckt_transport_write(&ends[1], "c", 1), 1);
	IS(ckt_transport_read(&ends[0], data, sizeof data), 1);
	int before = on_socket(&ends[0]);
	IS(ckt_transport_write(&ends[1], "d", 1), 1);
	IS(on_socket(&ends[0]), before);
	IS(ckt_transport_read(&ends[0], data, sizeof data), 1);
	/* What woke it does not wake it twice. */
	IS(ckt_transport_wait(&ends[0], CKT_TRANSPORT_READ, 0), 0);
	IS(ckt_transport_wait(&ends[0], CKT_TRANSPORT_READ, 0), 0);
	IS(on_socket(&ends[0]), 0);
	close_both();
}

/* A peer that never stops waking: each wait ends, and what is in the ring is found. */
static void test_flood(void)
{
	static char flood[100000];
	char data[4];
	open_both();
	ssize_t sent = send(ends[1].fd, flood, sizeof flood, MSG_DONTWAIT);
	YES(sent > 10000);
	int before = on_socket(&ends[0]);
	IS(ckt_transport_wait(&ends[0], CKT_TRANSPORT_READ, -1), 0);
	int taken = before - on_socket(&ends[0]);
	YES(taken > 0 && taken < before);
	IS(ckt_transport_write(&ends[1], "abc", 3), 3);
	IS(ckt_transport_wait(&ends[0], CKT_TRANSPORT_READ, -1), CKT_TRANSPORT_READ);
	IS(ckt_transport_read(&ends[0], data, sizeof data), 3);
	close_both();
}

static void test_room(void)
{
	static char data[RING];
	open_both();
	IS(ckt_transport_write(&ends[0], data, sizeof data), RING);
	IS(ckt_transport_wait(&ends[0], CKT_TRANSPORT_WRITE, 0), 0);
	IS(ckt_transport_wait(&ends[0], CKT_TRANSPORT_READ | CKT_TRANSPORT_WRITE, 0), 0);
	IS(ckt_transport_read(&ends[1], data, 1), 1);
	IS(on_socket(&ends[0]), 1);
	IS(ckt_transport_wait(&ends[0], CKT_TRANSPORT_READ | CKT_TRANSPORT_WRITE, -1),
		CKT_TRANSPORT_WRITE);
	IS(ckt_transport_write(&ends[0], data, 2), 1);
	close_both();
}

/* The peer ends while the ring is empty, holds bytes, and is full. */
static void test_end(void)
{
	static char data[RING];
	for (size_t held = 0; held <= RING; held += RING / 2) {
		open_both();
		IS(ckt_transport_wait(&ends[1], CKT_TRANSPORT_READ, 0), 0);
		for (size_t at = 0; at < held; at += RING / 2)
			IS(ckt_transport_write(&ends[0], data, RING / 2), RING / 2);
		IS(ckt_transport_write(&ends[1], data, sizeof data), RING);
		ckt_transport_close(&ends[0]);
		YES(ckt_transport_wait(&ends[1], CKT_TRANSPORT_ENDED, -1) & CKT_TRANSPORT_ENDED);
		/* What it wrote before is still there. */
		for (size_t at = 0; at < held; at += RING / 2) {
			IS(ckt_transport_wait(&ends[1], CKT_TRANSPORT_READ, -1),
				CKT_TRANSPORT_READ);
			IS(ckt_transport_read(&ends[1], data, RING / 2), RING / 2);
		}
		IS(ckt_transport_wait(&ends[1], CKT_TRANSPORT_READ, -1), CKT_TRANSPORT_ENDED);
		IS(ckt_transport_read(&ends[1], data, 1), -ECONNRESET);
		IS(ckt_transport_write(&ends[1], data, 1), -EPIPE);
		IS(ckt_transport_wait(&ends[1], CKT_TRANSPORT_WRITE, -1), CKT_TRANSPORT_ENDED);
		close_both();
	}
	/* A shutdown ends both directions here at once, also of a writer that finds no room. */
	open_both();
	IS(ckt_transport_write(&ends[0], data, sizeof data), RING);
	ckt_transport_shutdown(&ends[0]);
	IS(ckt_transport_write(&ends[0], data, 1), -EPIPE);
	IS(ckt_transport_read(&ends[0], data, 1), -ECONNRESET);
	close_both();
	open_both();
	ckt_transport_write(&ends[0], "x", 1);
	ckt_transport_finish(&ends[0]);
	IS(ckt_transport_read(&ends[1], data, 8), 1);
	IS(ckt_transport_wait(&ends[1], CKT_TRANSPORT_READ, -1), CKT_TRANSPORT_ENDED);
	IS(ckt_transport_read(&ends[1], data, 8), -ECONNRESET);
	close_both();
}

static uint8_t *map_shared(size_t bytes, int *ret_fds)
{
	int memory;
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_fds), 0);
	MUST(ckt_shared_memory_make(RING, &memory), 0);
	MUST(ckt_transport_init_shared_memory(&ends[0], ret_fds[0], memory, RING, true, NULL), 0);
	uint8_t *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	YES(map != MAP_FAILED);
	close(memory);
	return map;
}

/* A peer that writes anything at all into the counters: an error, and no byte outside of the ring. */
static void test_hostile_counters(void)
{
	char data[64];
	int fds[2];
	uint8_t *map = map_shared(4096, fds);
	memset(map, 0xff, 4096);
	/* Up to here it is the peer's to say; -1 for the counter of this side's reader is. */
	YES(ckt_transport_wait(&ends[0], CKT_TRANSPORT_READ, -1) & CKT_TRANSPORT_READ);
	IS(ckt_transport_read(&ends[0], data, sizeof data), -EPROTO);
	memset(map, 0x7f, 4096);
	YES(ckt_transport_wait(&ends[0], CKT_TRANSPORT_WRITE, -1) & CKT_TRANSPORT_WRITE);
	IS(ckt_transport_write(&ends[0], "x", 1), -EPROTO);
	munmap(map, 4096);
	ckt_transport_close(&ends[0]);
	close(fds[1]);
}

static int begin_with(int memory, uint64_t bytes)
{
	int fds[2];
	struct ckt_transport t = CKT_TRANSPORT_NONE;
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	int result = ckt_transport_init_shared_memory(&t, fds[0], memory, bytes, false, NULL);
	if (!result)
		ckt_transport_close(&t);
	else
		close(fds[0]);
	close(fds[1]);
	close(memory);
	return result;
}

static int memory_of(off_t size, int seals)
{
	int fd = memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	MUST(ftruncate(fd, size), 0);
	MUST(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* A file that could shrink under a mapping, and files of another size. */
static void test_hostile_file(void)
{
	const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	const off_t size = 4096 + 2 * RING;
	IS(begin_with(memory_of(size, all), RING), 0);
	IS(begin_with(memory_of(size, all & ~F_SEAL_SHRINK), RING), -EPROTO);
	IS(begin_with(memory_of(size, all & ~F_SEAL_GROW), RING), -EPROTO);
	IS(begin_with(memory_of(size, all & ~F_SEAL_SEAL), RING), -EPROTO);
	IS(begin_with(memory_of(size - 1, all), RING), -EPROTO);
	IS(begin_with(memory_of(size + 1, all), RING), -EPROTO);
	IS(begin_with(memory_of(0, all), RING), -EPROTO);
	IS(begin_with(memory_of(size, all), 2 * RING), -EPROTO);
	IS(begin_with(memory_of(size, all), 0), -EPROTO);
	IS(begin_with(memory_of(size, all), RING / 2), -EPROTO);
	IS(begin_with(memory_of(4096 + 2 * (RING + 64), all), RING + 64), -EPROTO);
	IS(begin_with(memory_of(size, all), UINT64_MAX / 2 + 1), -EPROTO);
	IS(begin_with(memory_of(size, all | F_SEAL_WRITE), RING), -EPERM);
	IS(begin_with(open("/dev/null", O_RDWR | O_CLOEXEC), RING), -EPROTO);
	int fds[2], memory = -1;
	MUST(pipe(fds), 0);
	IS(begin_with(fds[0], RING), -EPROTO);
	close(fds[1]);
	IS(ckt_shared_memory_make(RING - 1, &memory), -EINVAL);
	IS(ckt_shared_memory_make(2ull * CKT_RINGS_BYTES_MAX, &memory), -EINVAL);
	IS(memory, -1);
}

/* A reserved place is used again and again, and stays when there are no rings. */
static void test_place(void)
{
	int fds[2], memory;
	uint8_t *place = ckt_shared_memory_reserve(RING);
	MUST(place != NULL, true);
	MUST(ckt_shared_memory_make(RING, &memory), 0);
	for (int i = 0; i < 3; i++) {
		MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
		MUST(ckt_transport_init_shared_memory(&ends[0], fds[0], memory, RING, true, place),
			0);
		MUST(ckt_transport_init_shared_memory(&ends[1], fds[1], memory, RING, false, NULL),
			0);
		YES((uint8_t *)ends[0].state == place);
		ckt_transport_close(&ends[0]);
		ckt_transport_close(&ends[1]);
		/* Something else would be put there if nothing held the addresses. */
		YES(mmap(place, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			    -1, 0) == MAP_FAILED);
		IS(errno, EEXIST);
	}
	close(memory);
}

static uint8_t value_at(size_t at)
{
	return (uint8_t)(at * 7 + at / 251);
}

/* Both sides sleep whenever they can: every byte arrives, in order, and nobody sleeps for ever. */
static void *write_stream(void *unused)
{
	static uint8_t data[3 * RING];
	for (size_t at = 0; at < STREAM;) {
		size_t size = 1 + at % sizeof data;
		if (size > STREAM - at)
			size = STREAM - at;
		for (size_t i = 0; i < size; i++)
			data[i] = value_at(at + i);
		if (ckt_transport_write_all(&ends[1], data, size, -1))
			break;
		at += size;
	}
	return unused;
}

static void test_threads(void)
{
	static uint8_t data[RING];
	pthread_t thread;
	size_t wrong = 0, at = 0;
	open_both();
	MUST(pthread_create(&thread, NULL, write_stream, NULL), 0);
	while (at < STREAM) {
		ssize_t n = ckt_transport_read(&ends[0], data, 1 + at % sizeof data);
		if (n == -EAGAIN) {
			MUST(ckt_transport_wait_until(&ends[0], CKT_TRANSPORT_READ, -1), 0);
			continue;
		}
		if (n < 0)
			break;
		for (ssize_t i = 0; i < n; i++)
			wrong += data[i] != value_at(at + (size_t)i);
		at += (size_t)n;
	}
	pthread_join(thread, NULL);
	IS(at, STREAM);
	IS(wrong, 0);
	close_both();
}

UNIT_SUITE(shared_memory, {"bytes", test_bytes}, {"parts", test_parts}, {"wake", test_wake},
	{"flood", test_flood}, {"room", test_room}, {"end", test_end},
	{"hostile counters", test_hostile_counters}, {"hostile file", test_hostile_file},
	{"place", test_place}, {"threads", test_threads})
