/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport: the only way in which bytes of sessions and of control move.
 *
 * A transport is one connection to one peer.  Its user sees a stream of bytes in both directions;
 * descriptors can travel with the bytes where both ends share a kernel.  rpc/record.h makes whole
 * records of the stream.  Only rpc/transport/ calls recv, send and their relatives on such a
 * connection (tests/unit/transport.py checks the sources).
 *
 *	client/conn, ctl, client/nvml, server/daemon, server/worker
 *	        |  ckt_transport_read / _write / _wait / _shutdown / _close
 *	        v
 *	struct ckt_transport --operations--> socket.c (TCP and UNIX)
 *	                                   |--> shared_memory.c (rings beside a UNIX socket)
 *	                                   \--> tls.c (TLS over TCP)
 *
 * Ownership: whoever embeds the structure owns the connection and closes it with
 * ckt_transport_close.  ckt_transport_init_socket takes the descriptor over, and
 * ckt_transport_release gives it back: the server hands an accepted socket to a worker that way.
 * A copy of a descriptor in a second structure (the worker's input and output) never closes it.
 *
 * Blocking: read and write never block; ckt_transport_wait does.  Both move at least one byte or
 * return an error.  A short count is normal and says nothing about the peer.
 *
 * Errors: a count, or -EAGAIN (nothing can move now), -ECONNRESET (the peer ended the stream),
 * -ETIMEDOUT (the peer vanished), or another -errno.  After any error but -EAGAIN the connection
 * is over; only shutdown and close are left.  errno is not part of the interface.
 *
 * Threads: one thread may read while another one writes.  Two readers, or two writers, exclude each
 * other by a lock of their own.  Any thread may wait, ask `vanished` or shut down while the
 * transport is open; with CKT_TRANSPORT_ONE_WAITER only one thread may wait to read or to write, and
 * nobody reads meanwhile.  Init, close and release run while no other thread is inside.
 *
 * What another transport brings:
 * - TLS with keys in the kernel (not built): the descriptor itself would go on to the worker, and
 *   ckt_tls_relay would not be needed.
 * - RDMA: `fd` is the completion channel, `write` posts buffers and `read` copies from posted ones.
 *   It cannot pass descriptors: read_fd never returns one and write_fd refuses with -EOPNOTSUPP.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct ckt_transport;

/* What to wait for, and what is ready. */
enum {
	CKT_TRANSPORT_READ = 1,
	CKT_TRANSPORT_WRITE = 2,
	/* The peer has ended its side, or the connection failed; failures are always reported. */
	CKT_TRANSPORT_ENDED = 4,
};

/* What is special about a transport. */
enum {
	/* While the peer is awake, read and write do not enter the kernel. */
	CKT_TRANSPORT_NO_CALL = 1,
	/*
	 * One thread at a time may wait, for whatever all threads want: the peer wakes one. ENDED alone
	 * does not count.
	 */
	CKT_TRANSPORT_ONE_WAITER = 2,
};

struct ckt_transport_operations {
	const char *name; /* for messages */
	unsigned flags;
	/* size > 0. */
	ssize_t (*read)(struct ckt_transport *t, void *data, size_t size);
	ssize_t (*write)(struct ckt_transport *t, const void *data, size_t size);
	/* A descriptor that came along becomes the caller's: *ret_fd, else -1. */
	ssize_t (*read_fd)(struct ckt_transport *t, void *data, size_t size, int *ret_fd);
	/* pass_fd goes with the first byte that is written and stays the caller's; -1: none. */
	ssize_t (*write_fd)(
		struct ckt_transport *t, const struct iovec *parts, size_t count, int pass_fd);
	/*
	 * Before a poll: the events of poll(2) that `want` (CKT_TRANSPORT_...) takes.  The peer may be
	 * told that this side is about to sleep.
	 */
	short (*events)(struct ckt_transport *t, unsigned want);
	/*
	 * Between `events` and the poll: what of `want` is possible that no poll announces.  NULL:
	 * nothing.
	 */
	unsigned (*ready)(struct ckt_transport *t, unsigned want);
	/* After the poll: what is possible.  NULL: what revents say. */
	unsigned (*polled)(struct ckt_transport *t, unsigned want, short revents);
	/* Data are under way, and the peer's host has given no sign for that long. */
	bool (*vanished)(struct ckt_transport *t, unsigned after_ms);
	/* The process at the other end; -EOPNOTSUPP where the transport crosses hosts. */
	int (*peer_process)(struct ckt_transport *t, pid_t *ret_pid, uid_t *ret_uid);
	/* Something was written that would be lost if this host failed now. */
	bool (*undelivered)(struct ckt_transport *t);
	/*
	 * Ends the writing side: the peer reads an end after all written bytes.  Reading continues.
	 */
	void (*finish)(struct ckt_transport *t);
	/* Both directions end at once, for every process that has a copy. */
	void (*shutdown)(struct ckt_transport *t);
	/* Frees `state` and closes fd. */
	void (*close)(struct ckt_transport *t);
};

/* The members are rpc/transport's own; they are here so that an owner can embed a transport. */
struct ckt_transport {
	const struct ckt_transport_operations *operations;
	_Atomic int fd; /* to wait on; -1: not connected */
	void *state;    /* the operations' own */
};

extern const struct ckt_transport_operations ckt_transport_socket_operations;
#define CKT_TRANSPORT_NONE                                               \
	{                                                                \
		.operations = &ckt_transport_socket_operations, .fd = -1 \
	}
/* A connected TCP or UNIX stream socket; -1: none.  Takes fd over. */
void ckt_transport_init_socket(struct ckt_transport *t, int fd);

static inline bool ckt_transport_open(const struct ckt_transport *t)
{
	return t->fd >= 0;
}
/* As the operations.  Precondition: open. */
static inline ssize_t ckt_transport_read(struct ckt_transport *t, void *data, size_t size)
{
	return t->operations->read(t, data, size);
}
static inline ssize_t ckt_transport_write(struct ckt_transport *t, const void *data, size_t size)
{
	return t->operations->write(t, data, size);
}
static inline ssize_t ckt_transport_read_fd(
	struct ckt_transport *t, void *data, size_t size, int *ret_fd)
{
	return t->operations->read_fd(t, data, size, ret_fd);
}
static inline ssize_t ckt_transport_write_fd(
	struct ckt_transport *t, const struct iovec *parts, size_t count, int pass_fd)
{
	return t->operations->write_fd(t, parts, count, pass_fd);
}
/*
 * Around a poll of the caller's own: pollfd, then ready, which is 0 if the poll must wait, then
 * polled.
 */
static inline unsigned ckt_transport_ready(struct ckt_transport *t, unsigned want)
{
	return t->operations->ready ? t->operations->ready(t, want) : 0;
}
unsigned ckt_transport_polled(struct ckt_transport *t, unsigned want, short revents);
static inline bool ckt_transport_is(const struct ckt_transport *t, unsigned flag)
{
	return t->operations->flags & flag;
}
static inline bool ckt_transport_vanished(struct ckt_transport *t, unsigned after_ms)
{
	return t->operations->vanished(t, after_ms);
}
static inline bool ckt_transport_undelivered(struct ckt_transport *t)
{
	return t->operations->undelivered(t);
}
/* One entry for a poll over several descriptors; a closed transport gets fd -1. */
static inline struct pollfd ckt_transport_pollfd(struct ckt_transport *t, unsigned want)
{
	int fd = t->fd;
	return (struct pollfd){
		.fd = fd, .events = fd < 0 ? (short)0 : t->operations->events(t, want)};
}
int ckt_transport_peer_process(struct ckt_transport *t, pid_t *ret_pid, uid_t *ret_uid);

/*
 * Waits until one of `want` is possible: the set of those that are, 0 after timeout_ms (-1: never),
 * or -errno, -EINTR among them.  A failed connection reports CKT_TRANSPORT_ENDED in any case.
 */
int ckt_transport_wait(struct ckt_transport *t, unsigned want, int timeout_ms);
/* The same until CLOCK_MONOTONIC deadline_ms (-1: forever), through signals.  0 or -errno. */
int ckt_transport_wait_until(struct ckt_transport *t, unsigned want, int64_t deadline_ms);
/* Writes everything and waits while the transport accepts no more.  0 or -errno. */
int ckt_transport_write_all(
	struct ckt_transport *t, const void *data, size_t size, int64_t deadline_ms);
/* Reads exactly size bytes, however long that takes.  0 or -errno. */
int ckt_transport_read_all(struct ckt_transport *t, void *data, size_t size);

/* These do nothing if the transport is not open. */
void ckt_transport_finish(struct ckt_transport *t);
void ckt_transport_shutdown(struct ckt_transport *t);
void ckt_transport_close(struct ckt_transport *t);
/*
 * Takes the descriptor out, now the caller's; the transport is closed without touching it.  Only of a
 * socket.
 */
int ckt_transport_release(struct ckt_transport *t);
/* *to, which is closed, becomes what *from is, and *from is closed. */
void ckt_transport_move(struct ckt_transport *to, struct ckt_transport *from);
/* "tcp", "tls", "unix" or "shm"; "none" if it is not open. */
const char *ckt_transport_name(const struct ckt_transport *t);
