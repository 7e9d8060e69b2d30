/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending: threads write the ring's encoded bytes to the connection in the order of encoding.
 *
 * A waiting thread sends before it waits.  Over shared memory every thread sends at once.  The
 * flusher sends commands that no thread waits for.  The flusher is a thread that sleeps on a futex
 * while there is nothing to do.  After each write it polls for a short time, so that a row of
 * launches needs no wake-up.  One write of the flusher sends everything that was encoded during the
 * write before.  On a crowded machine (base/crowd.h) the flusher sleeps for that time instead, and a
 * launching thread need not wake it: fewer writes send the same, and the processor is free.
 *
 * While the program is idle, the flusher sometimes reads what arrived.  Otherwise the client would
 * notice a moved or stopped session only at the program's next call, which may be too late.  It looks
 * less often while nothing happens: the watcher (watch.c) tells it of the connection's end.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client/conn/conn.h"
#include "client/conn/settings.h"
#include "client/trace/recorder.h"
#include "base/clock.h"
#include "base/crowd.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/timed_wait.h"

/* A bound on a wait that another thread's signal ends. */
enum { READER_NS = 10000000 };

/* Precondition: read_lock held. */
static bool reader_free(const struct ckt_conn *conn)
{
	return !conn->reading && atomic_load(&conn->state) == CKT_CONN_OPEN;
}

/*
 * Another thread reads.  If only one thread may wait, the peer wakes that one when there is room
 * again: it then signals.  Precondition: read_lock held.
 */
static void wait_for_reader(struct ckt_conn *conn)
{
	ckt_transport_pollfd(&conn->transport, CKT_TRANSPORT_WRITE);
	if (ckt_transport_ready(&conn->transport, CKT_TRANSPORT_WRITE))
		return;
	conn->sleepers++;
	ckt_cond_wait_until(&conn->read_cond, &conn->read_lock, ckt_now_ns() + READER_NS);
	conn->sleepers--;
}

/*
 * The connection takes no more.  The worker may itself wait until the client takes its replies, so
 * this thread also reads if no other thread does.
 */
static void wait_writable(struct ckt_conn *conn)
{
	bool one_waiter = ckt_transport_is(&conn->transport, CKT_TRANSPORT_ONE_WAITER);
	pthread_mutex_lock(&conn->read_lock);
	bool mine = reader_free(conn);
	if (mine) {
		conn->reading = true;
		pthread_mutex_unlock(&conn->read_lock);
		int ready = ckt_transport_wait(
			&conn->transport, CKT_TRANSPORT_READ | CKT_TRANSPORT_WRITE, 100);
		/* The next send notices a broken connection again. */
		if (ready > 0 && ready & CKT_TRANSPORT_READ)
			ckt_conn_read(conn, 0);
		pthread_mutex_lock(&conn->read_lock);
		conn->reading = false;
		if (conn->sleepers)
			pthread_cond_broadcast(&conn->read_cond);
	} else if (one_waiter) {
		wait_for_reader(conn);
	}
	pthread_mutex_unlock(&conn->read_lock);
	if (!mine && !one_waiter)
		ckt_transport_wait(&conn->transport, CKT_TRANSPORT_WRITE, 10);
}

/* Precondition: send_lock held. wait: send everything, else only what the socket takes at once. */
static int send_some(struct ckt_conn *conn, bool wait)
{
	for (;;) {
		uint64_t sent = atomic_load_explicit(&conn->sent, memory_order_relaxed);
		uint64_t end = atomic_load_explicit(&conn->tail, memory_order_acquire);
		if (sent == end)
			return 0;
		if (__builtin_expect(atomic_load(&conn->asleep), 0))
			return -ECONNRESET;
		/*
		 * At most one lap's end lies between sent and tail, so one remembered gap is
		 * enough.
		 */
		uint64_t gap = atomic_load_explicit(&conn->gap_start, memory_order_relaxed);
		uint64_t lap_end = (sent / CKT_RING_SIZE + 1) * CKT_RING_SIZE;
		if (sent == gap) {
			atomic_store_explicit(&conn->sent, lap_end, memory_order_release);
			continue;
		}
		if (end > lap_end)
			end = lap_end;
		if (gap > sent && gap < end)
			end = gap;
		ssize_t n = ckt_transport_write(
			&conn->transport, conn->ring + sent % CKT_RING_SIZE, end - sent);
		if (n > 0 && ckt_trace_get())
			ckt_trace_sent((uint64_t)n);
		if (n >= 0)
			atomic_store_explicit(
				&conn->sent, sent + (uint64_t)n, memory_order_release);
		else if (n != -EAGAIN)
			return (int)n;
		else if (!wait)
			return 0;
		else if (ckt_transport_vanished(&conn->transport, CKT_NET_VANISHED_MS))
			return -ETIMEDOUT;
		else
			wait_writable(conn);
	}
}

/* About the time of another thread's system call. */
enum { LOCK_SPINS = 256 };

/* To sleep until another thread's system call ends takes longer than that call. */
static void lock_for_sending(struct ckt_conn *conn)
{
	for (int i = 0; ckt_settings.spin_us && i < LOCK_SPINS; i++) {
		if (pthread_mutex_trylock(&conn->send_lock) == 0)
			return;
		__builtin_ia32_pause();
	}
	pthread_mutex_lock(&conn->send_lock);
}

int ckt_conn_send(struct ckt_conn *conn)
{
	int saved_errno = errno;
	lock_for_sending(conn);
	int result = atomic_load(&conn->state) == CKT_CONN_OPEN ? send_some(conn, true) : 0;
	pthread_mutex_unlock(&conn->send_lock);
	errno = saved_errno;
	return result;
}

/* ---- The flusher */

/*
 * An idle program reads within IDLE_NS what nobody waits for, and after IDLE_LOOKS looks without a
 * command in between within LONG_IDLE_S.
 */
enum { FLUSHER_SPINS = 2000, IDLE_NS = 250000000, IDLE_LOOKS = 8, LONG_IDLE_S = 1 };
/*
 * About 3 us for a thread that waits right behind its command: it then sends both with one system call.
 * Sending the command alone takes longer, and holds up the wait.
 */
enum { HOLD_SPINS = 64 };
/* As long as a brief spin, so that a waiting GPU is not noticed. */
enum { NAP_NS = CKT_CROWD_SPIN_NS };

static bool unsent(struct ckt_conn *conn)
{
	return atomic_load_explicit(&conn->sent, memory_order_acquire) !=
		atomic_load_explicit(&conn->tail, memory_order_acquire);
}

/*
 * After a write: true if there is more to send.  The flusher asks at most once in a millisecond
 * whether the machine is crowded.
 */
static bool flusher_spin(struct ckt_conn *conn)
{
	int64_t now_ns = ckt_now_ns();
	ckt_crowd_look(&conn->flusher_crowd, now_ns);
	if (ckt_crowd_is(&conn->flusher_crowd, now_ns)) {
		nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
		return unsent(conn);
	}
	for (int i = 0; i < FLUSHER_SPINS; i++) {
		if (unsent(conn))
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

/*
 * True if something may have arrived that no thread waits for. looks: those without a command in
 * between.
 */
static bool flusher_sleep(struct ckt_conn *conn, unsigned looks)
{
	if (ckt_settings.spin_us && flusher_spin(conn))
		return false;
	bool late = false;
	atomic_store(&conn->flusher_asleep, 1);
	if (!unsent(conn)) {
		/*
		 * Only the flusher reads replies that no thread waits for (copies in the
		 * background).
		 */
		struct timespec timeout = {.tv_nsec = IDLE_NS};
		if (atomic_load(&conn->async_pending))
			timeout.tv_nsec = 1000000;
		else if (looks >= IDLE_LOOKS)
			timeout = (struct timespec){.tv_sec = LONG_IDLE_S};
		late = syscall(SYS_futex, &conn->flusher_asleep, FUTEX_WAIT_PRIVATE, 1, &timeout,
			       NULL, 0) < 0 &&
			errno == ETIMEDOUT;
	}
	atomic_store(&conn->flusher_asleep, 0);
	return late || atomic_load(&conn->async_pending);
}

static void hold_off(struct ckt_conn *conn)
{
	for (int i = 0; ckt_settings.spin_us && i < HOLD_SPINS && unsent(conn); i++)
		__builtin_ia32_pause();
}

static void read_in_background(struct ckt_conn *conn)
{
	uint64_t epoch = conn->epoch;
	int result = 0;
	pthread_mutex_lock(&conn->read_lock);
	if (reader_free(conn)) {
		conn->reading = true;
		pthread_mutex_unlock(&conn->read_lock);
		/* A wait, because a look into shared memory does not show the connection's end. */
		if (ckt_transport_wait(&conn->transport, CKT_TRANSPORT_READ, 0) != 0)
			result = ckt_conn_read(conn, 0);
		pthread_mutex_lock(&conn->read_lock);
		conn->reading = false;
		if (conn->sleepers)
			pthread_cond_broadcast(&conn->read_cond);
	}
	pthread_mutex_unlock(&conn->read_lock);
	if (result && result != -EAGAIN)
		ckt_conn_broken(conn, epoch, result);
}

static void *flusher_main(void *opaque)
{
	struct ckt_conn *conn = opaque;
	uint64_t tail = 0;
	unsigned looks = 0;
	while (atomic_load(&conn->state) != CKT_CONN_LOST) {
		if (atomic_load(&conn->state) == CKT_CONN_RESUMING)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		bool look = flusher_sleep(conn, looks);
		look |= atomic_exchange(&conn->flusher_look, false);
		looks = conn->tail == tail ? looks + 1 : 0;
		tail = conn->tail;
		uint64_t epoch = conn->epoch;
		hold_off(conn);
		int result = unsent(conn) ? ckt_conn_send(conn) : 0;
		if (result)
			ckt_conn_broken(conn, epoch, result);
		else if (look && !atomic_load(&conn->asleep))
			read_in_background(conn);
	}
	return NULL;
}

void ckt_conn_flusher_start(struct ckt_conn *conn)
{
	int error = ckt_thread_start(&conn->flusher, 0, flusher_main, conn);
	conn->flusher_running = !error;
	if (error)
		ckt_debug("cannot start a thread that sends in the background (%d): "
			  "ignoring, every call is sent at once",
			-error);
}

/*
 * Sends the first command of a row at once, because waking the flusher takes longer.  The flusher
 * sends the rest, and handles a broken connection.
 */
static void send_first(struct ckt_conn *conn)
{
	int saved_errno = errno;
	if (pthread_mutex_trylock(&conn->send_lock) == 0) {
		if (atomic_load(&conn->state) == CKT_CONN_OPEN)
			send_some(conn, false);
		pthread_mutex_unlock(&conn->send_lock);
	}
	errno = saved_errno;
}

/*
 * Where a write is a copy, each thread sends its own commands, and nothing is left for the flusher:
 * true.  It is the flusher's after all if another thread sends, if there is no room, and if the
 * connection broke.
 */
static bool send_at_once(struct ckt_conn *conn)
{
	if (!atomic_load_explicit(&conn->direct, memory_order_relaxed) ||
		pthread_mutex_trylock(&conn->send_lock))
		return false;
	bool sent = atomic_load(&conn->state) == CKT_CONN_OPEN && !send_some(conn, false) &&
		!unsent(conn);
	pthread_mutex_unlock(&conn->send_lock);
	return sent;
}

void ckt_conn_flusher_look(struct ckt_conn *conn)
{
	atomic_store(&conn->flusher_look, true);
	atomic_store(&conn->flusher_asleep, 0);
	syscall(SYS_futex, &conn->flusher_asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void ckt_conn_flusher_kick(struct ckt_conn *conn)
{
	if (__builtin_expect(!conn->flusher_running, 0)) {
		uint64_t epoch = conn->epoch;
		int result = ckt_conn_send(conn);
		if (result)
			ckt_conn_broken(conn, epoch, result);
		return;
	}
	if (send_at_once(conn))
		return;
	if (atomic_load(&conn->flusher_asleep) && atomic_exchange(&conn->flusher_asleep, 0)) {
		if (ckt_settings.spin_us)
			send_first(conn);
		syscall(SYS_futex, &conn->flusher_asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
}
