/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/transport/connect.c, and whole records over what it connects: what a peer can send, how long
 * is waited, who owns a descriptor that came along.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/net.h"

enum { GUARD_MS = 60000 };

static int pair[2];

static void open_pair(void)
{
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
}

static void close_pair(void)
{
	close(pair[0]);
	close(pair[1]);
}

static int read_sent(const void *bytes, size_t size, size_t max, int timeout_ms)
{
	uint8_t *data = NULL;
	size_t got = 0;
	CU_ASSERT_EQUAL_FATAL(write(pair[0], bytes, size), (ssize_t)size);
	int result =
		ckt_net_read_record(pair[1], max, ckt_net_now_ms() + timeout_ms, &data, &got, NULL);
	free(data);
	return result;
}

static void *slow_writer(void *unused)
{
	/* A record in single bytes. */
	static const char record[] = "\x80\0\0\3abc";
	(void)unused;
	for (int i = 0; i < 7; i++) {
		usleep(2000);
		CU_ASSERT_EQUAL(write(pair[0], record + i, 1), 1);
	}
	return NULL;
}

static void test_records(void)
{
	uint8_t *data;
	size_t size;
	pthread_t thread;
	open_pair();
	pthread_create(&thread, NULL, slow_writer, NULL);
	CU_ASSERT_EQUAL_FATAL(
		ckt_net_read_record(pair[1], 3, ckt_net_now_ms() + 60000, &data, &size, NULL), 0);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(size, 3);
	CU_ASSERT_EQUAL(memcmp(data, "abc", 3), 0);
	free(data);
	/* An empty record is one. */
	CU_ASSERT_EQUAL(read_sent("\x80\0\0\0", 4, 10, GUARD_MS), 0);
	/* No last fragment; too long, found out before anything of it is awaited or allocated. */
	CU_ASSERT_EQUAL(read_sent("\0\0\0\3", 4, 10, GUARD_MS), -EPROTO);
	CU_ASSERT_EQUAL(read_sent("\x80\0\0\x0b", 4, 10, GUARD_MS), -EMSGSIZE);
	CU_ASSERT_EQUAL(read_sent("\xff\xff\xff\xff", 4, CKT_HELLO_MAX, GUARD_MS), -EMSGSIZE);
	/* Half a mark, half a record: a bounded wait. */
	CU_ASSERT_EQUAL(read_sent("\x80\0", 2, 10, 50), -ETIMEDOUT);
	close_pair();
	open_pair();
	CU_ASSERT_EQUAL(read_sent("\x80\0\0\4ab", 6, 10, 50), -ETIMEDOUT);
	close(pair[0]);
	pair[0] = -1;
	CU_ASSERT_EQUAL(ckt_net_read_record(pair[1], 10, -1, &data, &size, NULL), -ECONNRESET);
	close(pair[1]);
}

static void *drain(void *ret_size)
{
	uint8_t *data;
	if (ckt_net_read_record(pair[1], CKT_RECORD_MAX, ckt_net_now_ms() + GUARD_MS, &data,
		    ret_size, NULL) == 0) {
		for (size_t i = 0; i < *(size_t *)ret_size; i += 4093)
			CU_ASSERT_EQUAL(data[i], (uint8_t)(i * 7));
		free(data);
	}
	return NULL;
}

static void test_large(void)
{
	/*
	 * More than the socket holds: a writer goes on in pieces, and gives up in time where nobody
	 * reads.
	 */
	size_t size = CKT_RECORD_MAX, got = 0;
	uint8_t *data = malloc(size);
	pthread_t thread;
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(i * 7);
	open_pair();
	pthread_create(&thread, NULL, drain, &got);
	CU_ASSERT_EQUAL(
		ckt_net_write_record(pair[0], data, size, ckt_net_now_ms() + GUARD_MS, -1), 0);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(got, size);
	CU_ASSERT_EQUAL(
		ckt_net_write_record(pair[0], data, size, ckt_net_now_ms() + 50, -1), -ETIMEDOUT);
	close(pair[1]);
	/* No SIGPIPE. */
	CU_ASSERT_EQUAL(ckt_net_write_record(pair[0], data, 4, -1, -1), -EPIPE);
	close(pair[0]);
	free(data);
}

static int open_descriptors(void)
{
	int count = 0;
	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/*
 * A record of one byte, and two descriptors beside it: as many as the room for one has with its
 * padding.
 */
static void write_two(int socket)
{
	uint8_t bytes[] = {0x80, 0, 0, 1, 'x'};
	int fds[] = {STDERR_FILENO, STDERR_FILENO};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof fds)];
	} control = {0};
	struct iovec part = {.iov_base = bytes, .iov_len = sizeof bytes};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof fds)};
	memcpy(CMSG_DATA(c), fds, sizeof fds);
	CU_ASSERT_EQUAL(sendmsg(socket, &message, 0), sizeof bytes);
}

static void test_descriptors(void)
{
	uint8_t *data;
	size_t size;
	int got = -1, before = open_descriptors();
	open_pair();
	CU_ASSERT_EQUAL(
		ckt_net_write_record(pair[0], (const uint8_t *)"x", 1, -1, STDERR_FILENO), 0);
	CU_ASSERT_EQUAL_FATAL(ckt_net_read_record(pair[1], 10, -1, &data, &size, &got), 0);
	free(data);
	CU_ASSERT_TRUE(got > 2);
	CU_ASSERT_EQUAL(fcntl(got, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(got);
	/* None came. */
	CU_ASSERT_EQUAL(ckt_net_write_record(pair[0], (const uint8_t *)"x", 1, -1, -1), 0);
	CU_ASSERT_EQUAL_FATAL(ckt_net_read_record(pair[1], 10, -1, &data, &size, &got), 0);
	free(data);
	CU_ASSERT_EQUAL(got, -1);
	/* Unasked for, or with a record that is refused: closed here. */
	CU_ASSERT_EQUAL(
		ckt_net_write_record(pair[0], (const uint8_t *)"x", 1, -1, STDERR_FILENO), 0);
	CU_ASSERT_EQUAL_FATAL(ckt_net_read_record(pair[1], 10, -1, &data, &size, NULL), 0);
	free(data);
	CU_ASSERT_EQUAL(
		ckt_net_write_record(pair[0], (const uint8_t *)"too long", 8, -1, STDERR_FILENO),
		0);
	CU_ASSERT_EQUAL(ckt_net_read_record(pair[1], 3, -1, &data, &size, &got), -EMSGSIZE);
	close_pair();
	CU_ASSERT_EQUAL(open_descriptors(), before);
	/* Two at once: one is taken, and the other is not left open. */
	open_pair();
	write_two(pair[0]);
	CU_ASSERT_EQUAL_FATAL(ckt_net_read_record(pair[1], 10, -1, &data, &size, &got), 0);
	free(data);
	CU_ASSERT_TRUE(got > 2);
	close(got);
	write_two(pair[0]);
	CU_ASSERT_EQUAL_FATAL(ckt_net_read_record(pair[1], 10, -1, &data, &size, NULL), 0);
	free(data);
	close_pair();
	CU_ASSERT_EQUAL(open_descriptors(), before);
}

static void test_tcp(void)
{
	struct ckt_address address, real;
	char message[256] = "", path[] = "/tmp/ckt-address-XXXXXX", text[CKT_ADDRESS_TEXT_MAX];
	int listener, fd, accepted;
	CU_ASSERT_EQUAL_FATAL(
		ckt_address_parse("127.0.0.1:0", &address, message, sizeof message), 0);
	CU_ASSERT_EQUAL_FATAL(ckt_net_listen(&address, 0, &listener, message, sizeof message), 0);
	CU_ASSERT_EQUAL_FATAL(ckt_net_local_address(listener, &real), 0);
	CU_ASSERT_STRING_EQUAL(real.host, "127.0.0.1");
	CU_ASSERT_NOT_EQUAL(real.port, 0);
	/* By a file, whose first word counts and which is read each time. */
	int file = mkstemp(path);
	ckt_address_format(&real, text, sizeof text);
	CU_ASSERT_TRUE(dprintf(file, "%s\nanything\n", text) > 0);
	address.type = CKT_ADDRESS_FILE;
	strcpy(address.host, path);
	CU_ASSERT_EQUAL_FATAL(ckt_net_connect(&address, 5000, &fd, message, sizeof message), 0);
	accepted = accept(listener, NULL, NULL);
	CU_ASSERT_TRUE(accepted >= 0);
	CU_ASSERT_EQUAL(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	CU_ASSERT_EQUAL(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
	close(accepted);
	CU_ASSERT_EQUAL(ftruncate(file, 0), 0);
	CU_ASSERT_EQUAL(ckt_net_connect(&address, 5000, &fd, message, sizeof message), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "is empty"));
	/* A file that names a file would go round for ever. */
	CU_ASSERT_EQUAL(pwrite(file, "file:/x", 7, 0), 7);
	CU_ASSERT_EQUAL(ckt_net_connect(&address, 5000, &fd, message, sizeof message), -EINVAL);
	close(file);
	unlink(path);
	CU_ASSERT_EQUAL(ckt_net_connect(&address, 5000, &fd, message, sizeof message), -ENOENT);
	/* Nobody there any more. */
	close(listener);
	message[0] = 0;
	CU_ASSERT_EQUAL(ckt_net_connect(&real, 5000, &fd, message, sizeof message), -ECONNREFUSED);
	CU_ASSERT_STRING_EQUAL(message, "Connection refused");
}

static void test_unix(void)
{
	struct ckt_address address = {.type = CKT_ADDRESS_UNIX};
	char directory[] = "/tmp/ckt-net-XXXXXX", message[256] = "";
	struct stat status;
	int listener, fd;
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	snprintf(address.host, sizeof address.host, "%s/socket", directory);
	CU_ASSERT_EQUAL_FATAL(
		ckt_net_listen(&address, 0600, &listener, message, sizeof message), 0);
	CU_ASSERT_EQUAL(stat(address.host, &status), 0);
	CU_ASSERT_EQUAL(status.st_mode & 0777, 0600);
	CU_ASSERT_EQUAL_FATAL(ckt_net_connect(&address, 5000, &fd, message, sizeof message), 0);
	close(fd);
	/* A path that is taken is not taken away. */
	CU_ASSERT_EQUAL(ckt_net_listen(&address, 0600, &fd, message, sizeof message), -EADDRINUSE);
	close(listener);
	CU_ASSERT_EQUAL(
		ckt_net_connect(&address, 5000, &fd, message, sizeof message), -ECONNREFUSED);
	unlink(address.host);
	CU_ASSERT_EQUAL(ckt_net_connect(&address, 5000, &fd, message, sizeof message), -ENOENT);
	rmdir(directory);
	/* What fits an address and no socket. */
	memset(address.host, 'a', 200);
	CU_ASSERT_EQUAL(
		ckt_net_connect(&address, 5000, &fd, message, sizeof message), -ENAMETOOLONG);
	address.type = CKT_ADDRESS_FILE;
	CU_ASSERT_EQUAL(ckt_net_listen(&address, 0, &fd, message, sizeof message), -EINVAL);
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("net", NULL, NULL);
	CU_add_test(suite, "records", test_records);
	CU_add_test(suite, "large records", test_large);
	CU_add_test(suite, "descriptors", test_descriptors);
	CU_add_test(suite, "tcp and file", test_tcp);
	CU_add_test(suite, "unix", test_unix);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
