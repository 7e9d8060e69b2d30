/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn/send.c over shared memory: while the worker is awake, no launch and no satisfied wait
 * enters the kernel; a full ring is waited for, whoever reads.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/conn/settings.h"
#include "conn_parts.h"
#include "rpc/record.h"
#include "rpc/transport/shared_memory.h"
#include "tests/unit/suite.h"

static struct ckt_transport worker;

static void open_rings(uint64_t bytes)
{
	int memory, fds[2];
	int peer = parts_open();
	ckt_transport_close(&ckt_conn.transport);
	close(peer);
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	MUST(ckt_shared_memory_make(bytes, &memory), 0);
	MUST(ckt_transport_init_shared_memory(&worker, fds[0], memory, bytes, true, NULL), 0);
	MUST(ckt_transport_init_shared_memory(
		     &ckt_conn.transport, fds[1], memory, bytes, false, NULL),
		0);
	close(memory);
	ckt_conn.direct = true;
}

static void close_rings(void)
{
	ckt_conn.direct = false;
	parts_close(-1);
	ckt_transport_close(&worker);
}

/* A worker that never sleeps: takes `count` records, and answers those that are not batched. */
struct awake {
	struct ckt_transport *t;
	unsigned count;
};

static bool take(struct ckt_transport *t, uint8_t *p, size_t size)
{
	while (size) {
		ssize_t n = ckt_transport_read(t, p, size);
		if (n < 0 && n != -EAGAIN)
			return false;
		if (n < 0)
			sched_yield();
		p += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

static void *serve_awake(void *opaque)
{
	const struct awake *awake = opaque;
	uint8_t record[512];
	for (unsigned i = 0; i < awake->count; i++) {
		size_t size;
		struct ckt_call_header header;
		if (!take(awake->t, record, CKT_MARK_SIZE) ||
			ckt_mark_get(record, sizeof record, &size) || !take(awake->t, record, size))
			return NULL;
		struct ckt_cursor c = {.p = record, .end = record + size};
		ckt_call_header_get(&c, &header);
		if (header.flags & CKT_CALL_BATCHED)
			continue;
		uint8_t reply[CKT_MARK_SIZE + CKT_REPLY_HEADER_SIZE + 4];
		uint8_t *p = ckt_mark_put(reply, sizeof reply - CKT_MARK_SIZE);
		p = ckt_reply_header_put(p, &(struct ckt_reply_header){.xid = header.xid});
		ckt_put_u32(p, 0);
		ckt_transport_write(awake->t, reply, sizeof reply);
	}
	return opaque;
}

/* From here on this thread dies of any call that moves a byte, wakes or sleeps. */
static void forbid_calls(void)
{
	static const unsigned calls[] = {SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_sendto,
		SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_poll, SYS_ppoll, SYS_select, SYS_futex,
		SYS_nanosleep, SYS_clock_nanosleep, SYS_sched_yield, SYS_epoll_wait};
	struct sock_filter program[2 * COUNT(calls) + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	size_t n = 1;
	for (size_t i = 0; i < COUNT(calls); i++) {
		program[n++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		program[n++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	}
	program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog filter = {.len = (unsigned short)n, .filter = program};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(3);
}

enum { STEPS = 50, LAUNCHES = 20 };

static int wait_once(void)
{
	struct ckt_call call;
	return ckt_call_begin(&call, 7, 8, 0) ? 1 : ckt_call_wait(&call, NULL) != CUDA_SUCCESS;
}

/* In a child.  rings: over shared memory, else over a socket. */
static void launch_and_wait(bool rings)
{
	pthread_t thread;
	struct awake awake = {.t = &worker, .count = STEPS * (LAUNCHES + 1)};
	if (rings)
		open_rings(CKT_RINGS_BYTES);
	else
		ckt_transport_init_socket(&worker, parts_open());
	/* A flusher that sleeps: who needs it must wake it. */
	ckt_conn.flusher_running = true;
	ckt_conn.flusher_asleep = 1;
	/* A worker of a busy machine may be slow, but the client does not give up polling. */
	ckt_settings.spin_us = 1000000000;
	ckt_settings.spin_given = true;
	if (pthread_create(&thread, NULL, serve_awake, &awake))
		_exit(2);
	forbid_calls();
	for (unsigned i = 0; i < STEPS; i++) {
		for (unsigned n = 0; n < LAUNCHES; n++)
			parts_queue(100);
		if (wait_once())
			_exit(1);
	}
	_exit(ckt_conn.flusher_asleep ? 0 : 4);
}

static int status_of(bool rings)
{
	int status = -1;
	pid_t child = fork();
	if (child == 0)
		launch_and_wait(rings);
	MUST(waitpid(child, &status, 0), child);
	return status;
}

static void test_no_call(void)
{
#ifdef __SANITIZE_THREAD__
	/* The sanitizer has system calls of its own: it sleeps and yields. */
	return;
#endif
	IS(status_of(true), 0);
	/* The filter works: over a socket the first launch ends the process. */
	int status = status_of(false);
	YES(WIFSIGNALED(status));
	IS(WTERMSIG(status), SIGSYS);
}

/*
 * A worker that first has to get rid of its own replies, more than its ring holds, before it takes
 * the commands.
 */
enum { RING = CKT_RINGS_BYTES_MIN, RECORDS = 30, ARGS = 100000, REPLIES = 2000 };

static void *serve_slowly(void *opaque)
{
	static uint8_t record[CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE + ARGS];
	uint8_t reply[CKT_MARK_SIZE + CKT_REPLY_HEADER_SIZE];
	ckt_reply_header_put(ckt_mark_put(reply, sizeof reply - CKT_MARK_SIZE),
		&(struct ckt_reply_header){.xid = 4711});
	for (unsigned i = 0; i < REPLIES; i++)
		if (ckt_transport_write_all(&worker, reply, sizeof reply, -1))
			return NULL;
	for (unsigned i = 0; i < RECORDS; i++) {
		for (size_t at = 0; at < sizeof record;) {
			ssize_t n = ckt_transport_read(&worker, record + at, sizeof record - at);
			if (n == -EAGAIN)
				ckt_transport_wait(&worker, CKT_TRANSPORT_READ, -1);
			else if (n < 0)
				return NULL;
			else
				at += (size_t)n;
		}
		struct ckt_call_header header = {0};
		struct ckt_cursor c = {.p = record + CKT_MARK_SIZE, .end = record + sizeof record};
		if (!ckt_call_header_get(&c, &header) || header.seq != i + 1)
			return NULL;
	}
	return opaque;
}

static bool never(void *stop)
{
	return *(_Atomic bool *)stop;
}

static void *read_for_all(void *stop)
{
	ckt_conn_listen_until(&ckt_conn, never, stop);
	return NULL;
}

static void test_full_ring(void)
{
	int spin_us = ckt_settings.spin_us;
	for (int beside = 0; beside < 2; beside++) {
		pthread_t thread, reader;
		_Atomic bool stop = false;
		void *good;
		open_rings(RING);
		ckt_settings.spin_us = 0;
		ckt_conn.state = CKT_CONN_RESUMING;
		ckt_conn.ack_pending = true; /* nobody asks how far the worker is */
		for (int i = 0; i < RECORDS; i++)
			parts_queue(ARGS);
		ckt_conn.state = CKT_CONN_OPEN;
		/* The other thread sends, too, before it reads: it takes nothing away. */
		if (beside)
			MUST(pthread_create(&reader, NULL, read_for_all, &stop), 0);
		MUST(pthread_create(&thread, NULL, serve_slowly, &worker), 0);
		IS(ckt_conn_send(&ckt_conn), 0);
		pthread_join(thread, &good);
		YES(good != NULL);
		IS(ckt_conn.sent, ckt_conn.tail);
		if (beside) {
			stop = true;
			IS(ckt_transport_write(&worker, "\x80", 1), 1);
			pthread_join(reader, NULL);
		}
		NO(ckt_conn.reading);
		close_rings();
	}
	ckt_settings.spin_us = spin_us;
}

/* The worker dies while a thread waits for room: an error, and not a wait for ever. */
static void *die(void *unused)
{
	while (ckt_conn.sent < RING)
		sched_yield();
	ckt_transport_shutdown(&worker);
	return unused;
}

static void test_dead_worker(void)
{
	pthread_t thread;
	open_rings(RING);
	ckt_conn.state = CKT_CONN_RESUMING;
	parts_queue(ARGS);
	ckt_conn.state = CKT_CONN_OPEN;
	MUST(pthread_create(&thread, NULL, die, NULL), 0);
	IS(ckt_conn_send(&ckt_conn), -EPIPE);
	pthread_join(thread, NULL);
	IS(ckt_conn.sent, RING);
	IS(ckt_conn.head, 0);
	close_rings();
}

UNIT_SUITE(direct_send, {"no call", test_no_call}, {"full ring", test_full_ring},
	{"dead worker", test_dead_worker})
