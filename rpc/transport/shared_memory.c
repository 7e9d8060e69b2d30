/* SPDX-License-Identifier: Apache-2.0 */
/* Rings in shared memory as a transport; see shared_memory.h. */
#include "rpc/transport/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/transport/ring.h"

enum {
	OWN_BYTES = 4096, /* struct rings, before the file */
	COUNTERS_BYTES = 4096,
	WAKES_MAX = 16, /* system calls in a row for bytes that wake */
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
};
_Static_assert(2 * sizeof(struct ckt_ring_shared) <= COUNTERS_BYTES, "counters fit into a page");

/* Nothing that the peer could write to. */
struct rings {
	size_t map_bytes; /* from here, the file included */
	bool reserved;    /* the addresses outlive the connection */
	struct ckt_byte_ring in, out;
	/* this side said that it sleeps, and nothing has arrived since */
	_Atomic bool reader_sleeps, writer_sleeps;
	_Atomic bool ended; /* the socket's end was seen */
};
_Static_assert(sizeof(struct rings) <= OWN_BYTES, "the process's own part fits into its page");

static struct rings *rings_of(const struct ckt_transport *t)
{
	return t->state;
}

/* A full socket already holds bytes that wake the peer; an end shows in the next wait. */
static void wake_peer(const struct ckt_transport *t)
{
	int saved_errno = errno;
	send(t->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	errno = saved_errno;
}

static ssize_t rings_read(struct ckt_transport *t, void *data, size_t size)
{
	struct rings *rings = rings_of(t);
	/* Read before the ring: what the peer wrote before it ended is there by then. */
	bool wake, ended = atomic_load_explicit(&rings->ended, memory_order_acquire);
	ssize_t n = ckt_byte_ring_take(&rings->in, data, size, &wake);
	if (n == 0) {
		/* Whoever polls comes back at once: the other half of the processor's core may work. */
		__builtin_ia32_pause();
		return ended ? -ECONNRESET : -EAGAIN;
	}
	if (n < 0)
		return n;
	if (atomic_load_explicit(&rings->reader_sleeps, memory_order_relaxed)) {
		atomic_store_explicit(&rings->reader_sleeps, false, memory_order_relaxed);
		ckt_byte_ring_reader_sleeps(&rings->in, false);
	}
	if (wake)
		wake_peer(t);
	return n;
}

static ssize_t rings_write(struct ckt_transport *t, const void *data, size_t size)
{
	struct rings *rings = rings_of(t);
	bool wake;
	if (atomic_load_explicit(&rings->ended, memory_order_relaxed))
		return -EPIPE;
	ssize_t n = ckt_byte_ring_put(&rings->out, data, size, &wake);
	if (n <= 0)
		return n ? n : -EAGAIN;
	if (atomic_load_explicit(&rings->writer_sleeps, memory_order_relaxed)) {
		atomic_store_explicit(&rings->writer_sleeps, false, memory_order_relaxed);
		ckt_byte_ring_writer_sleeps(&rings->out, false);
	}
	if (wake)
		wake_peer(t);
	return n;
}

static ssize_t rings_read_fd(struct ckt_transport *t, void *data, size_t size, int *ret_fd)
{
	*ret_fd = -1;
	return rings_read(t, data, size);
}

static ssize_t rings_write_fd(
	struct ckt_transport *t, const struct iovec *parts, size_t count, int pass_fd)
{
	ssize_t moved = 0;
	if (pass_fd >= 0)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < count; i++) {
		ssize_t n =
			parts[i].iov_len ? rings_write(t, parts[i].iov_base, parts[i].iov_len) : 0;
		if (n < 0)
			return moved ? moved : n;
		moved += n;
		if ((size_t)n < parts[i].iov_len)
			break;
	}
	return moved;
}

static short rings_events(struct ckt_transport *t, unsigned want)
{
	struct rings *rings = rings_of(t);
	if (want & CKT_TRANSPORT_READ) {
		atomic_store_explicit(&rings->reader_sleeps, true, memory_order_relaxed);
		ckt_byte_ring_reader_sleeps(&rings->in, true);
	}
	if (want & CKT_TRANSPORT_WRITE) {
		atomic_store_explicit(&rings->writer_sleeps, true, memory_order_relaxed);
		ckt_byte_ring_writer_sleeps(&rings->out, true);
	}
	return (short)((want & (CKT_TRANSPORT_READ | CKT_TRANSPORT_WRITE) ? POLLIN : 0) |
		(want & CKT_TRANSPORT_ENDED ? POLLRDHUP : 0));
}

/* An impossible counter is a reason to read or write: the call returns the error. */
static unsigned rings_ready(struct ckt_transport *t, unsigned want)
{
	struct rings *rings = rings_of(t);
	unsigned ready = 0;
	if (want & CKT_TRANSPORT_READ && ckt_byte_ring_filled(&rings->in))
		ready |= CKT_TRANSPORT_READ;
	if (want & CKT_TRANSPORT_WRITE && ckt_byte_ring_room(&rings->out))
		ready |= CKT_TRANSPORT_WRITE;
	return ready;
}

/*
 * Takes the bytes that woke this side off the socket.  A peer that sends more than it may keeps this
 * thread from sleeping, but not from its work.
 */
static void take_wakes(struct ckt_transport *t)
{
	uint8_t bytes[64];
	ssize_t n = sizeof bytes;
	for (unsigned i = 0; i < WAKES_MAX && n == sizeof bytes; i++)
		do
			n = recv(t->fd, bytes, sizeof bytes, MSG_DONTWAIT);
		while (n < 0 && errno == EINTR);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		atomic_store_explicit(&rings_of(t)->ended, true, memory_order_release);
}

static unsigned rings_polled(struct ckt_transport *t, unsigned want, short revents)
{
	unsigned ended =
		revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL) ? CKT_TRANSPORT_ENDED : 0;
	if (!(want & (CKT_TRANSPORT_READ | CKT_TRANSPORT_WRITE)))
		return ended;
	if (ended)
		atomic_store_explicit(&rings_of(t)->ended, true, memory_order_release);
	else if (revents)
		take_wakes(t);
	if (atomic_load_explicit(&rings_of(t)->ended, memory_order_acquire))
		ended = CKT_TRANSPORT_ENDED;
	return rings_ready(t, want) | ended;
}

/* The peer's kernel is ours. */
static bool rings_vanished(struct ckt_transport *t, unsigned after_ms)
{
	(void)t;
	(void)after_ms;
	return false;
}

static int rings_peer_process(struct ckt_transport *t, pid_t *ret_pid, uid_t *ret_uid)
{
	struct ckt_transport socket;
	ckt_transport_init_socket(&socket, t->fd);
	return ckt_transport_peer_process(&socket, ret_pid, ret_uid);
}

/* The peer's mapping outlives ours. */
static bool rings_undelivered(struct ckt_transport *t)
{
	(void)t;
	return false;
}

static void rings_finish(struct ckt_transport *t)
{
	shutdown(t->fd, SHUT_WR);
}

static void rings_shutdown(struct ckt_transport *t)
{
	atomic_store_explicit(&rings_of(t)->ended, true, memory_order_release);
	shutdown(t->fd, SHUT_RDWR);
}

/* Gives the pages back, and the addresses if they are not reserved. */
static void unmap(struct rings *rings)
{
	if (rings->reserved)
		(void)mmap(rings, rings->map_bytes, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	else
		munmap(rings, rings->map_bytes);
}

static void rings_close(struct ckt_transport *t)
{
	unmap(rings_of(t));
	t->state = NULL;
	close(t->fd);
}

static const struct ckt_transport_operations rings_operations = {
	.name = "shm",
	.flags = CKT_TRANSPORT_NO_CALL | CKT_TRANSPORT_ONE_WAITER,
	.read = rings_read,
	.write = rings_write,
	.read_fd = rings_read_fd,
	.write_fd = rings_write_fd,
	.ready = rings_ready,
	.events = rings_events,
	.polled = rings_polled,
	.vanished = rings_vanished,
	.peer_process = rings_peer_process,
	.undelivered = rings_undelivered,
	.finish = rings_finish,
	.shutdown = rings_shutdown,
	.close = rings_close,
};

/* ---- The file */

static bool is_size(uint64_t ring_bytes)
{
	return ring_bytes >= CKT_RINGS_BYTES_MIN && ring_bytes <= CKT_RINGS_BYTES_MAX &&
		!(ring_bytes & (ring_bytes - 1));
}

int ckt_shared_memory_make(uint64_t ring_bytes, int *ret_fd)
{
	off_t size = (off_t)(COUNTERS_BYTES + 2 * ring_bytes);
	if (!is_size(ring_bytes))
		return -EINVAL;
	int fd = memfd_create("cricket-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	int result = ftruncate(fd, size) ? -errno : 0;
	if (!result && fallocate(fd, 0, 0, size))
		result = -errno;
	if (!result && fcntl(fd, F_ADD_SEALS, SEALS))
		result = -errno;
	if (result) {
		close(fd);
		return result;
	}
	*ret_fd = fd;
	return 0;
}

static int check_file(int fd, uint64_t ring_bytes)
{
	struct stat st;
	if (!is_size(ring_bytes) || fstat(fd, &st))
		return -EPROTO;
	int seals = fcntl(fd, F_GET_SEALS);
	bool good = seals >= 0 && (seals & SEALS) == SEALS &&
		st.st_size == (off_t)(COUNTERS_BYTES + 2 * ring_bytes);
	return good ? 0 : -EPROTO;
}

static size_t mapped_bytes(uint64_t ring_bytes)
{
	return OWN_BYTES + COUNTERS_BYTES + 2 * ring_bytes;
}

void *ckt_shared_memory_reserve(uint64_t ring_bytes)
{
	void *place = mmap(NULL, mapped_bytes(ring_bytes), PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return place == MAP_FAILED ? NULL : place;
}

static int map(int memory_fd, uint64_t ring_bytes, void *place, struct rings **ret_rings)
{
	void *base = place ? place : ckt_shared_memory_reserve(ring_bytes);
	if (!base)
		return -ENOMEM;
	struct rings *rings = mmap(base, OWN_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (rings != MAP_FAILED) {
		rings->map_bytes = mapped_bytes(ring_bytes);
		rings->reserved = place;
	}
	size_t file_bytes = COUNTERS_BYTES + 2 * ring_bytes;
	if (rings == MAP_FAILED ||
		mmap((uint8_t *)base + OWN_BYTES, file_bytes, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_FIXED, memory_fd, 0) == MAP_FAILED) {
		int error = errno;
		if (rings != MAP_FAILED)
			unmap(rings);
		else if (!place)
			munmap(base, mapped_bytes(ring_bytes));
		return -error;
	}
	/* A child that is forked has no session, and must not hold the parent's memory. */
	madvise(base, rings->map_bytes, MADV_DONTFORK);
	*ret_rings = rings;
	return 0;
}

int ckt_transport_init_shared_memory(struct ckt_transport *t, int socket_fd, int memory_fd,
	uint64_t ring_bytes, bool made, void *place)
{
	struct rings *rings = NULL;
	int result = check_file(memory_fd, ring_bytes);
	if (!result)
		result = map(memory_fd, ring_bytes, place, &rings);
	if (result)
		return result;
	struct ckt_ring_shared *shared = (struct ckt_ring_shared *)((uint8_t *)rings + OWN_BYTES);
	struct ckt_byte_ring up = {.shared = shared, .size = ring_bytes},
			     down = {.shared = shared + 1, .size = ring_bytes};
	up.data = (uint8_t *)shared + COUNTERS_BYTES;
	down.data = up.data + ring_bytes;
	rings->in = made ? up : down;
	rings->out = made ? down : up;
	t->operations = &rings_operations;
	t->state = rings;
	t->fd = socket_fd;
	return 0;
}
