/* SPDX-License-Identifier: Apache-2.0 */
/* The file broker; see broker.h. */
#include "checkpoint/format/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread.h"
#include "rpc/net.h"

enum {
	MAGIC = 0x436b4231, /* "CkB1" */
	ASK_SIZE = 20,
	ANSWER_SIZE = 12,
	STACK_BYTES = 256 << 10,
};

struct ckt_broker {
	atomic_uint refs;     /* the owner's and the thread's */
	pthread_mutex_t lock; /* held while a file is opened */
	bool dead;
	enum ckt_broker_right right;
	int fd;
	unsigned count;
	int directories[CKT_BROKER_DIRECTORIES_MAX];
	struct ckt_broker_opener opener; /* in place of directories, if it has an open */
};

/* ---- Who opens */

static void unref(struct ckt_broker *broker)
{
	if (atomic_fetch_sub(&broker->refs, 1) != 1)
		return;
	if (broker->opener.open)
		broker->opener.release(broker->opener.context);
	for (unsigned i = 0; i < broker->count && !broker->opener.open; i++)
		close(broker->directories[i]);
	close(broker->fd);
	pthread_mutex_destroy(&broker->lock);
	free(broker);
}

/*
 * In another user's directory a file must belong to that user too: a hard link to a foreign file
 * would otherwise pass on, with our rights, what the directory's owner may not read.
 */
static int check_file(int directory, int fd)
{
	struct stat file, parent;
	if (fstat(fd, &file) || fstat(directory, &parent))
		return -errno;
	if (!S_ISREG(file.st_mode))
		return -EINVAL;
	return parent.st_uid != geteuid() && file.st_uid != parent.st_uid ? -EPERM : 0;
}

static int open_file(int directory, bool make, unsigned file)
{
	char name[32] = "manifest";
	if (file != CKT_BROKER_MANIFEST)
		snprintf(name, sizeof name, "data-%u", file);
	/* O_NONBLOCK: opening a pipe must not wait. */
	int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
		(make ? O_WRONLY | O_CREAT | O_EXCL : O_RDONLY);
	int fd = openat(directory, name, flags, 0600);
	int result = fd < 0 ? -errno : make ? 0 : check_file(directory, fd);
	if (fd >= 0 && result)
		close(fd);
	return result ? result : fd;
}

static int serve_ask(struct ckt_broker *broker, unsigned what, unsigned directory, unsigned file)
{
	if (what != (unsigned)broker->right || directory >= broker->count ||
		(file >= CKT_BROKER_FILES_MAX && file != CKT_BROKER_MANIFEST))
		return -EPERM;
	/* It may take long, so that who stops the broker does not wait for it. */
	if (broker->opener.open)
		return broker->opener.open(broker->opener.context, broker->right, directory, file);
	pthread_mutex_lock(&broker->lock);
	int result = broker->dead
		? -ESTALE
		: open_file(broker->directories[directory], what == CKT_BROKER_MAKE, file);
	pthread_mutex_unlock(&broker->lock);
	return result;
}

static bool answer(int fd, uint32_t tag, int opened)
{
	uint8_t data[ANSWER_SIZE];
	union ckt_net_fd_room room;
	struct iovec part = {.iov_base = data, .iov_len = sizeof data};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ckt_put_u32(
		ckt_put_u32(ckt_put_u32(data, MAGIC), tag), (uint32_t)(opened < 0 ? opened : 0));
	ckt_net_fd_put(&message, &room, opened);
	ssize_t n;
	do
		n = sendmsg(fd, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == sizeof data;
}

static void *serve(void *opaque)
{
	struct ckt_broker *broker = opaque;
	bool good = true;
	while (good) {
		uint8_t data[ASK_SIZE + 1];
		/*
		 * Descriptors that came along are dropped by the kernel, since nothing here has
		 * room for them.
		 */
		ssize_t n = recv(broker->fd, data, sizeof data, 0);
		if (n < 0 && errno == EINTR)
			continue;
		struct ckt_cursor c = {.p = data, .end = data + (n > 0 ? n : 0)};
		good = n == ASK_SIZE && ckt_get_u32(&c) == MAGIC;
		if (!good)
			break;
		uint32_t tag = ckt_get_u32(&c), what = ckt_get_u32(&c), directory = ckt_get_u32(&c),
			 file = ckt_get_u32(&c);
		int opened = serve_ask(broker, what, directory, file);
		good = answer(broker->fd, tag, opened);
		if (opened >= 0)
			close(opened);
	}
	/* Callers that wait for an answer see the end. */
	shutdown(broker->fd, SHUT_RDWR);
	unref(broker);
	return NULL;
}

/* The context stays its owner's: nothing was started. */
static void release_nothing(void *context)
{
	(void)context;
}

static int start_thread(struct ckt_broker *broker)
{
	return ckt_thread_start(NULL, STACK_BYTES, serve, broker);
}

/* Without a thread; *ret_fd is the other end. */
static int make_broker(
	unsigned count, enum ckt_broker_right right, struct ckt_broker **ret_broker, int *ret_fd)
{
	int fds[2];
	if (!count || count > CKT_BROKER_DIRECTORIES_MAX)
		return -EINVAL;
	struct ckt_broker *broker = calloc(1, sizeof *broker);
	if (!broker)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
		free(broker);
		return -errno;
	}
	broker->fd = fds[0];
	broker->right = right;
	atomic_store(&broker->refs, 1);
	pthread_mutex_init(&broker->lock, NULL);
	*ret_broker = broker;
	*ret_fd = fds[1];
	return 0;
}

/* Ends the making of it: it runs, or is gone. */
static int run(
	struct ckt_broker *broker, int result, int fd, struct ckt_broker **ret_broker, int *ret_fd)
{
	if (!result) {
		atomic_store(&broker->refs, 2);
		result = start_thread(broker);
		if (result)
			atomic_store(&broker->refs, 1);
	}
	if (result) {
		broker->opener.release = release_nothing;
		close(fd);
		unref(broker);
		return result;
	}
	*ret_broker = broker;
	*ret_fd = fd;
	return 0;
}

int ckt_broker_start(const int *directories, unsigned count, enum ckt_broker_right right,
	struct ckt_broker **ret_broker, int *ret_fd)
{
	struct ckt_broker *broker;
	int other, result = make_broker(count, right, &broker, &other);
	if (result)
		return result;
	for (unsigned i = 0; i < count && !result; i++) {
		int fd = fcntl(directories[i], F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			result = -errno;
		else
			broker->directories[broker->count++] = fd;
	}
	return run(broker, result, other, ret_broker, ret_fd);
}

int ckt_broker_start_opener(const struct ckt_broker_opener *opener, unsigned count,
	enum ckt_broker_right right, struct ckt_broker **ret_broker, int *ret_fd)
{
	struct ckt_broker *broker;
	int other, result = make_broker(count, right, &broker, &other);
	if (result)
		return result;
	broker->opener = *opener;
	broker->count = count;
	return run(broker, 0, other, ret_broker, ret_fd);
}

void ckt_broker_stop(struct ckt_broker *broker)
{
	if (!broker)
		return;
	pthread_mutex_lock(&broker->lock);
	broker->dead = true;
	pthread_mutex_unlock(&broker->lock);
	shutdown(broker->fd, SHUT_RDWR);
	unref(broker);
}

/* ---- Who asks */

unsigned ckt_broker_answer_ms = 60000;

/* One question at a time: there is one for each file, so no caller waits for long. */
static pthread_mutex_t ask_lock = PTHREAD_MUTEX_INITIALIZER;

bool ckt_broker_is(int fd)
{
	int domain = 0, type = 0;
	socklen_t size = sizeof domain;
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
		getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

static int check_answer(int fd, enum ckt_broker_right right)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) ||
		(flags & O_ACCMODE) != (right == CKT_BROKER_MAKE ? O_WRONLY : O_RDONLY) ||
		flags & O_PATH)
		return -EINVAL;
	return right == CKT_BROKER_MAKE && st.st_size ? -EEXIST : 0;
}

/* Reads the answer to this question, past late answers to others. */
/* Waits for a message and reads it; -EAGAIN: ask again.  The length, or -errno. */
static ssize_t receive_message(
	int broker, int64_t deadline_ms, uint8_t data[ANSWER_SIZE + 1], int *ret_fd)
{
	union ckt_net_fd_room room;
	struct iovec part = {.iov_base = data, .iov_len = ANSWER_SIZE + 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	struct pollfd p = {.fd = broker, .events = POLLIN};
	int64_t left_ms = deadline_ms - ckt_net_now_ms();
	int ready = left_ms > 0 ? poll(&p, 1, (int)left_ms) : 0;
	if (ready == 0)
		return -ETIMEDOUT;
	ckt_net_fd_expect(&message, &room);
	ssize_t n = ready < 0 ? -1 : recvmsg(broker, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	/* An empty message is no end of file to the kernel, and may carry one too. */
	*ret_fd = ckt_net_fd_take(&message);
	return n;
}

/* The answer to the question of that tag; answers to older questions are dropped. */
static int receive(int broker, uint32_t tag, int64_t deadline_ms, int *ret_fd)
{
	for (;;) {
		uint8_t data[ANSWER_SIZE + 1];
		int fd = -1;
		ssize_t n = receive_message(broker, deadline_ms, data, &fd);
		if (n == -EAGAIN)
			continue;
		if (n == -ETIMEDOUT)
			return -ETIMEDOUT;
		struct ckt_cursor c = {.p = data, .end = data + (n > 0 ? n : 0)};
		bool good = n == ANSWER_SIZE && ckt_get_u32(&c) == MAGIC;
		bool ours = good && ckt_get_u32(&c) == tag;
		int status = ours ? (int)ckt_get_u32(&c) : 0;
		if (ours && !status && fd >= 0) {
			*ret_fd = fd;
			return 0;
		}
		if (fd >= 0)
			close(fd);
		if (!good)
			return n == 0 ? -ECONNRESET : -EPROTO;
		if (ours)
			return status >= 0 || status < -4095 ? -EPROTO : status;
	}
}

int ckt_broker_open(int broker, enum ckt_broker_right right, unsigned directory, unsigned file)
{
	static uint32_t last_tag; /* under ask_lock */
	uint8_t data[ASK_SIZE], *p = data;
	int fd = -1;
	pthread_mutex_lock(&ask_lock);
	uint32_t tag = ++last_tag;
	p = ckt_put_u32(ckt_put_u32(ckt_put_u32(p, MAGIC), tag), (uint32_t)right);
	ckt_put_u32(ckt_put_u32(p, directory), file);
	ssize_t n;
	do
		n = send(broker, data, sizeof data, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	int result = n == sizeof data
		? receive(broker, tag, ckt_net_now_ms() + ckt_broker_answer_ms, &fd)
		: n < 0 ? -errno
			: -EPROTO;
	/*
	 * After one failure all waiting and later callers fail at once, instead of each waiting in
	 * turn.
	 */
	if (result == -ETIMEDOUT)
		shutdown(broker, SHUT_RDWR);
	pthread_mutex_unlock(&ask_lock);
	if (!result) {
		result = check_answer(fd, right);
		if (result)
			close(fd);
	}
	return result ? result : fd;
}
