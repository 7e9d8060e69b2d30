/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint/format/broker.c: what can be asked for, what is opened, and what is believed of an
 * answer.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/format/broker.h"
#include "rpc/net.h"
#include "tests/unit/suite.h"

static char directory[64], other[64];
static int dirs[2] = {-1, -1};
static struct ckt_broker *broker;
static int asker = -1;

static void begin(enum ckt_broker_right right)
{
	strcpy(directory, "/tmp/ckt-broker-XXXXXX");
	strcpy(other, "/tmp/ckt-broker-XXXXXX");
	MUST(mkdtemp(directory) && mkdtemp(other), 1);
	dirs[0] = open(directory, O_RDONLY | O_DIRECTORY);
	dirs[1] = open(other, O_RDONLY | O_DIRECTORY);
	MUST(ckt_broker_start(dirs, 2, right, &broker, &asker), 0);
}

static void end(void)
{
	char command[160];
	ckt_broker_stop(broker);
	if (asker >= 0)
		close(asker);
	close(dirs[0]);
	close(dirs[1]);
	snprintf(command, sizeof command, "rm -rf %s %s", directory, other);
	IS(system(command), 0);
}

/* Opens and closes: 0 or -errno. */
static int ask(enum ckt_broker_right right, unsigned dir, unsigned file)
{
	int fd = ckt_broker_open(asker, right, dir, file);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void put(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	IS(write(fd, "x", 1), 1);
	close(fd);
}

static void test_make(void)
{
	struct stat st;
	begin(CKT_BROKER_MAKE);
	YES(ckt_broker_is(asker));
	NO(ckt_broker_is(dirs[0]));
	NO(ckt_broker_is(-1));
	int fd = ckt_broker_open(asker, CKT_BROKER_MAKE, 0, 3);
	MUST(fd >= 0, 1);
	IS(write(fd, "abc", 3), 3);
	close(fd);
	IS(fstatat(dirs[0], "data-3", &st, 0), 0);
	IS(st.st_size, 3);
	IS(st.st_mode & 07777, 0600);
	IS(ask(CKT_BROKER_MAKE, 1, CKT_BROKER_MANIFEST), 0);
	IS(faccessat(dirs[1], "manifest", F_OK, 0), 0);
	/* Once, and never through a link. */
	IS(ask(CKT_BROKER_MAKE, 0, 3), -EEXIST);
	IS(symlinkat("elsewhere", dirs[0], "data-4"), 0);
	IS(ask(CKT_BROKER_MAKE, 0, 4), -EEXIST);
	/* Who makes an image reads none. */
	IS(ask(CKT_BROKER_READ, 0, 3), -EPERM);
	IS(ask(CKT_BROKER_MAKE, 2, 3), -EPERM);
	IS(ask(CKT_BROKER_MAKE, 0, CKT_BROKER_FILES_MAX), -EPERM);
	IS(ask(CKT_BROKER_MAKE, 0, CKT_BROKER_FILES_MAX - 1), 0);
	end();
}

static void test_read(void)
{
	begin(CKT_BROKER_READ);
	char byte = 0;
	put(dirs[1], "manifest");
	int fd = ckt_broker_open(asker, CKT_BROKER_READ, 1, CKT_BROKER_MANIFEST);
	MUST(fd >= 0, 1);
	IS(read(fd, &byte, 1), 1);
	IS(write(fd, "y", 1), -1);
	close(fd);
	IS(ask(CKT_BROKER_READ, 0, CKT_BROKER_MANIFEST), -ENOENT);
	IS(ask(CKT_BROKER_MAKE, 0, CKT_BROKER_MANIFEST), -EPERM);
	/* Nothing but plain files, and nothing behind a link. */
	IS(symlinkat("manifest", dirs[1], "data-0"), 0);
	IS(mkdirat(dirs[1], "data-1", 0700), 0);
	IS(mkfifoat(dirs[1], "data-2", 0600), 0);
	IS(ask(CKT_BROKER_READ, 1, 0), -ELOOP);
	IS(ask(CKT_BROKER_READ, 1, 1), -EINVAL);
	IS(ask(CKT_BROKER_READ, 1, 2), -EINVAL);
	IS(ask(CKT_BROKER_READ, 1, 1000), -EPERM);
	end();
}

/* A user's directory with a second name of root's file in it, and root asks for it. */
static void test_foreign_file(void)
{
	if (geteuid()) {
		YES(true);
		return;
	}
	begin(CKT_BROKER_READ);
	put(dirs[0], "data-0");
	put(dirs[0], "data-1");
	IS(fchown(dirs[0], 1001, 1001), 0);
	IS(fchownat(dirs[0], "data-1", 1001, 1001, 0), 0);
	IS(ask(CKT_BROKER_READ, 0, 0), -EPERM);
	IS(ask(CKT_BROKER_READ, 0, 1), 0);
	end();
}

static void test_end(void)
{
	static const char garbage[][24] = {
		"", "short", "twenty bytes of none", "more than twenty bytes"};
	for (size_t i = 1; i < COUNT(garbage); i++) {
		char byte;
		begin(CKT_BROKER_READ);
		IS(send(asker, garbage[i], strlen(garbage[i]), 0), strlen(garbage[i]));
		IS(recv(asker, &byte, 1, 0), 0);
		end();
	}
	begin(CKT_BROKER_MAKE);
	ckt_broker_stop(broker);
	broker = NULL;
	int result = ask(CKT_BROKER_MAKE, 0, 1);
	YES(result == -ECONNRESET || result == -EPIPE || result == -ESTALE);
	IS(faccessat(dirs[0], "data-1", F_OK, 0), -1);
	end();
	IS(ckt_broker_start(dirs, 0, CKT_BROKER_READ, &broker, &asker), -EINVAL);
	IS(ckt_broker_start((int[]){-1}, 1, CKT_BROKER_READ, &broker, &asker), -EBADF);
	broker = NULL;
	asker = -1;
}

/* ---- The other side lies */

struct lie {
	int fd; /* what comes along, -1: nothing */
	int status;
	uint32_t magic;
	unsigned late; /* answers to others before */
	size_t size;
	int expected[2]; /* of a read and of a make; 0: taken */
};

static void tell(int fd, uint32_t tag, const struct lie *lie)
{
	uint8_t data[16] = {0};
	union ckt_net_fd_room room;
	struct iovec part = {.iov_base = data, .iov_len = lie->size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ckt_put_u32(ckt_put_u32(ckt_put_u32(data, lie->magic), tag), (uint32_t)lie->status);
	ckt_net_fd_put(&message, &room, lie->fd);
	IS(sendmsg(fd, &message, MSG_NOSIGNAL), (long long)lie->size);
}

struct liar {
	int fd;
	const struct lie *lie;
};

static void *liar_thread(void *opaque)
{
	struct liar *liar = opaque;
	uint8_t data[20];
	IS(recv(liar->fd, data, sizeof data, 0), 20);
	struct ckt_cursor c = {.p = data + 4, .end = data + 20};
	uint32_t tag = ckt_get_u32(&c);
	for (unsigned i = 0; i < liar->lie->late; i++)
		tell(liar->fd, tag - 1 - i, liar->lie);
	tell(liar->fd, tag, liar->lie);
	return NULL;
}

/* The thread of a broker that has ended closes its descriptors by itself. */
static void wait_for_threads(void)
{
	for (unsigned i = 0, threads = 0; threads != 3 && i < 60000; i++) {
		DIR *tasks = opendir("/proc/self/task");
		for (threads = 0; tasks && readdir(tasks); threads++)
			;
		if (tasks)
			closedir(tasks);
		usleep(1000);
	}
}

static void test_lies(void)
{
	char plain[] = "/tmp/ckt-broker-plain-XXXXXX", full[] = "/tmp/ckt-broker-full-XXXXXX";
	int write_fd = mkstemp(plain), full_fd = mkstemp(full), pair[2];
	int read_only = open(plain, O_RDONLY), write_only = open(plain, O_WRONLY),
	    path = open(plain, O_PATH), dir = open("/tmp", O_RDONLY);
	IS(write(full_fd, "x", 1), 1);
	int full_only = open(full, O_WRONLY);
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	const uint32_t magic = 0x436b4231;
	const struct lie lies[] = {
		{read_only, 0, magic, 0, 12, {0, -EINVAL}},
		{write_only, 0, magic, 0, 12, {-EINVAL, 0}},
		{read_only, 0, magic, 3, 12, {0, -EINVAL}},
		{write_fd, 0, magic, 0, 12, {-EINVAL, -EINVAL}},
		{full_only, 0, magic, 0, 12, {-EINVAL, -EEXIST}},
		{path, 0, magic, 0, 12, {-EINVAL, -EINVAL}},
		{dir, 0, magic, 0, 12, {-EINVAL, -EINVAL}},
		{pair[0], 0, magic, 0, 12, {-EINVAL, -EINVAL}},
		{-1, 0, magic, 0, 12, {-EPROTO, -EPROTO}},
		{read_only, -ENOENT, magic, 0, 12, {-ENOENT, -ENOENT}},
		{-1, 5, magic, 0, 12, {-EPROTO, -EPROTO}},
		{-1, -100000, magic, 0, 12, {-EPROTO, -EPROTO}},
		{read_only, 0, magic + 1, 0, 12, {-EPROTO, -EPROTO}},
		{read_only, 0, magic, 0, 8, {-EPROTO, -EPROTO}},
		{read_only, 0, magic, 0, 16, {-EPROTO, -EPROTO}},
		{read_only, 0, magic, 0, 0,
			{-ECONNRESET,
				-ECONNRESET}}, /* an empty message, and yet with a descriptor */
	};
	wait_for_threads();
	int lowest = dup(read_only);
	close(lowest);
	for (size_t i = 0; i < COUNT(lies); i++)
		for (int make = 0; make < 2; make++) {
			struct liar liar = {.fd = pair[1], .lie = &lies[i]};
			pthread_t thread;
			MUST(pthread_create(&thread, NULL, liar_thread, &liar), 0);
			int fd = ckt_broker_open(
				pair[0], make ? CKT_BROKER_MAKE : CKT_BROKER_READ, 0, 0);
			IS(fd < 0 ? fd : 0, lies[i].expected[make]);
			if (fd >= 0)
				close(fd);
			pthread_join(thread, NULL);
		}
	int lowest_now = dup(read_only);
	close(lowest_now);
	IS(lowest_now, lowest); /* what came along with a wrong answer was closed */
	close(pair[1]);
	int gone = ckt_broker_open(pair[0], CKT_BROKER_READ, 0, 0);
	YES(gone == -ECONNRESET || gone == -EPIPE);
	const int all[] = {write_fd, full_fd, read_only, write_only, path, dir, full_only, pair[0]};
	for (size_t i = 0; i < COUNT(all); i++)
		close(all[i]);
	unlink(plain);
	unlink(full);
}

static void *ask_thread(void *opaque)
{
	return (void *)(intptr_t)ckt_broker_open(*(int *)opaque, CKT_BROKER_MAKE, 0, 1);
}

/* Who does not answer is waited for once, whoever asks, and not once for each file. */
static void test_silence(void)
{
	int pair[2];
	unsigned usual = ckt_broker_answer_ms, asks = 0;
	pthread_t threads[3];
	uint8_t data[20];
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ckt_broker_answer_ms = 50;
	for (size_t i = 0; i < COUNT(threads); i++)
		MUST(pthread_create(&threads[i], NULL, ask_thread, &pair[0]), 0);
	unsigned late = 0, ended = 0;
	for (size_t i = 0; i < COUNT(threads); i++) {
		void *result;
		pthread_join(threads[i], &result);
		late += (intptr_t)result == -ETIMEDOUT;
		ended += (intptr_t)result == -EPIPE || (intptr_t)result == -ECONNRESET;
	}
	ckt_broker_answer_ms = usual;
	IS(late, 1);
	IS(ended, 2);
	while (recv(pair[1], data, sizeof data, MSG_DONTWAIT) == 20)
		asks++;
	IS(asks, 1);
	close(pair[0]);
	close(pair[1]);
}

UNIT_SUITE(broker, {"make", test_make}, {"read", test_read}, {"foreign file", test_foreign_file},
	{"end", test_end}, {"lies", test_lies}, {"silence", test_silence})
