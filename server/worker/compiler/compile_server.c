/* SPDX-License-Identifier: Apache-2.0 */
/* The process that compiles for workers; see compile_server.h. */
#include "server/worker/compiler/compile_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "cudacommon/kernel_compiler.h"
#include "rpc/net.h"
#include "rpc/worker_descriptors.h"
#include "server/worker/cage/compiler_cage.h"
#include "server/worker/compiler/compile_job.h"

enum { JOBS_MAX = 4 /* at a time; workers need processors as well */ };

struct peer {
	int fd;
	struct job *job; /* NULL: its next request may be read */
	uint32_t serial;
};

struct job {
	struct ckt_compile_job compilation;
	struct peer *peer; /* NULL: it is gone, and nobody wants the object */
	int64_t deadline_ms;
};

static struct {
	int control; /* -1: the server is gone */
	struct peer **peers;
	struct pollfd *polled;
	size_t peer_count, capacity;
	size_t next; /* whose turn it is when a compilation may begin */
	struct job jobs[JOBS_MAX];
	unsigned job_count; /* that may run at a time */
	uint64_t directories;
	char scratch[64];
} server;

/* ---- Workers */

static void peer_remove(size_t index)
{
	struct peer *peer = server.peers[index];
	if (peer->job)
		peer->job->peer = NULL;
	/* The worker must not wait for us, whoever else has its socket. */
	shutdown(peer->fd, SHUT_RDWR);
	close(peer->fd);
	free(peer);
	server.peers[index] = server.peers[--server.peer_count];
}

/* With room in both arrays; the control socket and all jobs are polled, too. */
static bool make_room(void)
{
	if (server.peer_count < server.capacity)
		return true;
	size_t capacity = server.capacity ? server.capacity * 2 : 16;
	struct peer **peers = realloc(server.peers, capacity * sizeof *peers);
	if (peers)
		server.peers = peers;
	struct pollfd *polled = realloc(server.polled, (capacity + 1 + JOBS_MAX) * sizeof *polled);
	if (polled)
		server.polled = polled;
	if (peers && polled)
		server.capacity = capacity;
	return peers && polled;
}

static void peer_add(int fd)
{
	struct peer *peer = make_room() ? calloc(1, sizeof *peer) : NULL;
	if (!peer) {
		close(fd);
		return;
	}
	peer->fd = fd;
	server.peers[server.peer_count++] = peer;
}

/* One descriptor with exactly those bytes; -1: none, -2: the other side is gone or talks nonsense. */
static int receive(int socket, void *bytes, size_t size)
{
	char more[64];
	struct iovec part = {.iov_base = more, .iov_len = sizeof more};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	ckt_net_fd_expect(&message, &room);
	ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -1 : -2;
	int fd = ckt_net_fd_take(&message);
	if ((size_t)n == size && fd >= 0) {
		memcpy(bytes, more, size);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -2;
}

static void take_worker(void)
{
	char byte = 0;
	int fd = receive(server.control, &byte, 1);
	if (fd >= 0 && byte == CKT_COMPILE_WORKER_BYTE) {
		peer_add(fd);
	} else if (fd >= 0) {
		close(fd);
	} else if (fd == -2) {
		close(server.control);
		server.control = -1;
	}
}

/* ---- Compilations */

static bool answer(const struct peer *peer, int error, int object)
{
	struct ckt_kernel_answer text = {.serial = peer->serial, .error = error};
	struct iovec part = {.iov_base = &text, .iov_len = sizeof text};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	ckt_net_fd_put(&message, &room, object);
	/* A worker that reads no answers must not hold us up. */
	return sendmsg(peer->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof text;
}

static size_t peer_index(const struct peer *peer)
{
	size_t i = 0;
	while (server.peers[i] != peer)
		i++;
	return i;
}

static void job_finish(struct job *job)
{
	int object = -1, result = ckt_compile_job_finish(&job->compilation, &object);
	struct peer *peer = job->peer;
	job->peer = NULL;
	if (peer) {
		peer->job = NULL;
		if (!answer(peer, result, object))
			peer_remove(peer_index(peer));
	}
	if (object >= 0)
		close(object);
}

static struct job *idle_job(void)
{
	for (unsigned i = 0; i < server.job_count; i++)
		if (server.jobs[i].compilation.pidfd < 0)
			return &server.jobs[i];
	return NULL;
}

static bool is_request(const struct ckt_kernel_request *request, int text)
{
	off_t size = request->magic == CKT_KERNEL_REQUEST && ckt_kernel_file_is_sealed(text)
		? lseek(text, 0, SEEK_END)
		: -1;
	return size > 0 && size <= CKT_KERNEL_TEXT_MAX;
}

/* False: the worker is to be dropped. */
static bool take_request(struct peer *peer, struct job *job)
{
	struct ckt_kernel_request request = {0};
	char directory[CKT_COMPILE_DIRECTORY_MAX];
	int text = receive(peer->fd, &request, sizeof request);
	if (text == -1)
		return true;
	if (text < 0 || !is_request(&request, text)) {
		if (text >= 0)
			close(text);
		return false;
	}
	snprintf(directory, sizeof directory, "%s/%llu", server.scratch,
		(unsigned long long)server.directories++);
	peer->serial = request.serial;
	int result = ckt_compile_job_start(&job->compilation, text, directory);
	close(text);
	if (result)
		return answer(peer, result, -1);
	job->peer = peer;
	job->deadline_ms = ckt_net_now_ms() + CKT_COMPILE_WALL_MS;
	peer->job = job;
	return true;
}

/* ---- The loop */

static int64_t poll_timeout(void)
{
	int64_t now = ckt_net_now_ms(), least = -1;
	for (unsigned i = 0; i < server.job_count; i++) {
		const struct job *job = &server.jobs[i];
		int64_t left = job->deadline_ms > now ? job->deadline_ms - now : 0;
		if (job->compilation.pidfd >= 0 && (least < 0 || left < least))
			least = left;
	}
	return least;
}

static void wait_for_events(void)
{
	/* poll() skips what is negative. */
	server.polled[0] = (struct pollfd){.fd = server.control, .events = POLLIN};
	for (unsigned i = 0; i < JOBS_MAX; i++)
		server.polled[1 + i] =
			(struct pollfd){.fd = server.jobs[i].compilation.pidfd, .events = POLLIN};
	bool idle = idle_job() != NULL;
	for (size_t i = 0; i < server.peer_count; i++)
		server.polled[1 + JOBS_MAX + i] = (struct pollfd){.fd = server.peers[i]->fd,
			.events = idle && !server.peers[i]->job ? POLLIN : 0};
	if (poll(server.polled, 1 + JOBS_MAX + server.peer_count, (int)poll_timeout()) < 0)
		for (size_t i = 0; i < 1 + JOBS_MAX + server.peer_count; i++)
			server.polled[i].revents = 0;
}

static void finish_jobs(void)
{
	int64_t now = ckt_net_now_ms();
	for (unsigned i = 0; i < JOBS_MAX; i++) {
		struct job *job = &server.jobs[i];
		/* Nobody waits for what a worker that is gone had asked for. */
		if (job->compilation.pidfd >= 0 &&
			(server.polled[1 + i].revents || now >= job->deadline_ms || !job->peer))
			job_finish(job);
	}
}

/* One request of each worker in turn, so that one that asks all the time delays nobody twice. */
static void serve_peers(size_t count)
{
	for (size_t n = 0; n < count && server.peer_count; n++) {
		size_t i = server.next++ % count;
		struct job *job = idle_job();
		if (job && i < server.peer_count && !server.peers[i]->job &&
			!take_request(server.peers[i], job))
			peer_remove(i);
	}
}

/* Those whose socket is closed; backwards, because the last one takes the place. */
static void drop_peers(size_t count)
{
	for (size_t i = count; i-- > 0;)
		if (server.polled[1 + JOBS_MAX + i].revents & (POLLHUP | POLLERR | POLLNVAL))
			peer_remove(i);
}

static void run(void)
{
	while (server.control >= 0 || server.peer_count) {
		wait_for_events();
		size_t count = server.peer_count;
		bool more = server.polled[0].revents;
		drop_peers(count);
		finish_jobs();
		serve_peers(server.peer_count);
		if (more)
			take_worker();
	}
}

static void init(int control)
{
	struct rlimit descriptors;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	server.control = control;
	server.job_count = processors < 1 ? 1
		: processors < JOBS_MAX   ? (unsigned)processors
					  : JOBS_MAX;
	for (unsigned i = 0; i < JOBS_MAX; i++)
		ckt_compile_job_init(&server.jobs[i].compilation);
	fcntl(control, F_SETFD, FD_CLOEXEC);
	signal(SIGPIPE, SIG_IGN);
	/* Texts are the programs', and exec has reset what the server set. */
	prctl(PR_SET_DUMPABLE, 0);
	if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0) {
		descriptors.rlim_cur = descriptors.rlim_max;
		setrlimit(RLIMIT_NOFILE, &descriptors);
	}
}

int ckt_compile_server_main(int control)
{
	init(control);
	strcpy(server.scratch, "/tmp/cricket-compiler-XXXXXX");
	if (!make_room() || !mkdtemp(server.scratch)) {
		ckt_error("cannot compile for workers: /tmp: %s", strerror(errno));
		return 1;
	}
	int result = ckt_compiler_cage_enter(server.scratch, CKT_COMPILER_CAGE_OUTER);
	if (result)
		ckt_error("cannot compile for workers: its cage: %s", strerror(-result));
	else
		run();
	for (unsigned i = 0; i < JOBS_MAX; i++)
		if (server.jobs[i].compilation.pidfd >= 0)
			job_finish(&server.jobs[i]);
	rmdir(server.scratch);
	return result != 0;
}
