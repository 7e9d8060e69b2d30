/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/peer/record_stream.c: records without waiting: pieces of every size, nothing read
 * beyond a record, descriptors, bounds.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/net.h"
#include "server/daemon/peer/record_stream.h"

static struct ckt_loop loop;
static struct ckt_record_stream stream;
static int peer;
static uint8_t got[64];
static size_t got_size;
static int got_fd, records, closed_error;
static bool was_closed;

static void record(struct ckt_record_stream *s, uint8_t *data, size_t size, int passed_fd)
{
	(void)s;
	memcpy(got, data, size < sizeof got ? size : sizeof got);
	got_size = size;
	got_fd = passed_fd;
	records++;
	free(data);
	loop.stop = true;
}

static void closed(struct ckt_record_stream *s, int error)
{
	(void)s;
	was_closed = true;
	closed_error = error;
	loop.stop = true;
}

static void late(struct ckt_timer *timer)
{
	(void)timer;
	loop.stop = true;
}

static void run(void)
{
	struct ckt_timer timer = {.fire = late};
	loop.stop = false;
	ckt_timer_set(&loop, &timer, 200);
	ckt_loop_run(&loop);
	ckt_timer_clear(&timer);
}

static void begin(size_t max_bytes, bool take_fds)
{
	int fds[2];
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	peer = fds[1];
	records = 0;
	was_closed = false;
	got_fd = -1;
	CU_ASSERT_EQUAL_FATAL(ckt_loop_init(&loop), 0);
	stream = (struct ckt_record_stream){
		.max_bytes = max_bytes, .take_fds = take_fds, .record = record, .closed = closed};
	CU_ASSERT_EQUAL_FATAL(ckt_record_stream_init(&stream, &loop, fds[0]), 0);
}

static void end(void)
{
	ckt_record_stream_fini(&stream);
	ckt_record_stream_fini(&stream);
	ckt_loop_fini(&loop);
	close(peer);
}

static void test_pieces(void)
{
	static const uint8_t bytes[] = {0x80, 0, 0, 5, 'h', 'e', 'l', 'l', 'o', 0x80, 0, 0, 0};
	for (size_t cut = 1; cut < 9; cut++) {
		begin(16, false);
		CU_ASSERT_EQUAL(write(peer, bytes, cut), (ssize_t)cut);
		run();
		CU_ASSERT_EQUAL(records, 0);
		CU_ASSERT_EQUAL(write(peer, bytes + cut, sizeof bytes - cut),
			(ssize_t)(sizeof bytes - cut));
		run();
		CU_ASSERT_EQUAL(records, 1);
		CU_ASSERT_EQUAL(got_size, 5);
		CU_ASSERT_EQUAL(memcmp(got, "hello", 5), 0);
		/*
		 * What lies behind the record is still in the socket: it belongs to whom the socket
		 * is handed to.
		 */
		int left = -1;
		CU_ASSERT_EQUAL(ioctl(stream.source.fd, FIONREAD, &left), 0);
		CU_ASSERT_EQUAL(left, 4);
		run();
		CU_ASSERT_EQUAL(records, 2);
		CU_ASSERT_EQUAL(got_size, 0);
		end();
	}
}

static void expect_close(const void *bytes, size_t size, int error)
{
	begin(16, false);
	CU_ASSERT_EQUAL(write(peer, bytes, size), (ssize_t)size);
	run();
	CU_ASSERT(was_closed);
	CU_ASSERT_EQUAL(closed_error, error);
	CU_ASSERT_EQUAL(records, 0);
	end();
}

static void test_bounds(void)
{
	expect_close("\x80\0\0\x11", 4, -EMSGSIZE);
	expect_close("\xff\xff\xff\xff", 4, -EMSGSIZE);
	expect_close("\0\0\0\x04", 4, -EPROTO);
	begin(16, false);
	CU_ASSERT_EQUAL(write(peer, "\x80\0\0\x10", 4), 4);
	shutdown(peer, SHUT_WR);
	run();
	CU_ASSERT(was_closed);
	CU_ASSERT_EQUAL(closed_error, -ECONNRESET);
	end();
}

static void test_descriptors(void)
{
	int fds[2];
	begin(16, true);
	CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
	CU_ASSERT_EQUAL(ckt_net_write_record(peer, (const uint8_t *)"abcd", 4, -1, fds[1]), 0);
	close(fds[1]);
	run();
	CU_ASSERT_EQUAL(records, 1);
	CU_ASSERT_FATAL(got_fd >= 0);
	CU_ASSERT(fcntl(got_fd, F_GETFD) & FD_CLOEXEC);
	CU_ASSERT_EQUAL(write(got_fd, "x", 1), 1);
	close(got_fd);
	/* And out. */
	uint8_t *data = malloc(4), *back;
	size_t size;
	int received = -1;
	memcpy(data, "wxyz", 4);
	CU_ASSERT_EQUAL(ckt_record_stream_send(&stream, data, 4, fds[0]), 0);
	CU_ASSERT_EQUAL(fcntl(fds[0], F_GETFD), -1);
	CU_ASSERT_EQUAL(
		ckt_net_read_record(peer, 16, ckt_net_now_ms() + 60000, &back, &size, &received),
		0);
	CU_ASSERT_EQUAL(size, 4);
	CU_ASSERT_EQUAL(memcmp(back, "wxyz", 4), 0);
	CU_ASSERT(received >= 0);
	close(received);
	free(back);
	end();
	/* Not wanted: never received. */
	begin(16, false);
	CU_ASSERT_EQUAL(ckt_net_write_record(peer, (const uint8_t *)"abcd", 4, -1, peer), 0);
	run();
	CU_ASSERT_EQUAL(records, 1);
	CU_ASSERT_EQUAL(got_fd, -1);
	end();
}

/* More than the socket takes at once, then closed: everything arrives before the end. */
static void test_finish(void)
{
	enum { SIZE = 1 << 20 };
	begin(16, false);
	uint8_t *data = malloc(SIZE), *back = malloc(SIZE + 4);
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)(i * 7 >> 3);
	CU_ASSERT_EQUAL(ckt_record_stream_send(&stream, data, SIZE, -1), 0);
	CU_ASSERT(ckt_record_stream_queued(&stream) > 0);
	ckt_record_stream_finish(&stream);
	size_t have = 0;
	while (have < SIZE + 4) {
		ssize_t n = recv(peer, back + have, SIZE + 4 - have, MSG_DONTWAIT);
		if (n > 0) {
			have += (size_t)n;
			continue;
		}
		CU_ASSERT_FALSE_FATAL(was_closed);
		struct ckt_timer timer = {.fire = late};
		loop.stop = false;
		ckt_timer_set(&loop, &timer, 1);
		ckt_loop_run(&loop);
		ckt_timer_clear(&timer);
	}
	run();
	CU_ASSERT(was_closed);
	CU_ASSERT_EQUAL(closed_error, 0);
	bool same = true;
	for (size_t i = 0; i < SIZE; i++)
		same &= back[4 + i] == (uint8_t)(i * 7 >> 3);
	CU_ASSERT(same);
	free(back);
	end();
}

static void test_pause(void)
{
	begin(16, false);
	ckt_record_stream_pause(&stream, true);
	CU_ASSERT_EQUAL(write(peer, "\x80\0\0\x01x", 5), 5);
	run();
	CU_ASSERT_EQUAL(records, 0);
	CU_ASSERT_FALSE(was_closed);
	ckt_record_stream_pause(&stream, false);
	run();
	CU_ASSERT_EQUAL(records, 1);
	ckt_record_stream_pause(&stream, true);
	close(peer);
	peer = -1;
	run();
	CU_ASSERT(was_closed);
	end();
}

/* As a child has one that was forked just then. */
static void test_copies(void)
{
	char byte;
	begin(16, false);
	int copy = dup(stream.source.fd);
	uint8_t *data = malloc(4);
	memcpy(data, "wxyz", 4);
	CU_ASSERT_EQUAL(ckt_record_stream_send(&stream, data, 4, -1), 0);
	ckt_record_stream_fini(&stream);
	/* What was written arrives, then the end. */
	uint8_t *back = NULL;
	size_t size = 0;
	CU_ASSERT_EQUAL(ckt_net_read_record(peer, 16, -1, &back, &size, NULL), 0);
	CU_ASSERT_EQUAL(size, 4);
	CU_ASSERT_EQUAL(recv(peer, &byte, 1, MSG_DONTWAIT), 0);
	CU_ASSERT_EQUAL(send(peer, "x", 1, MSG_NOSIGNAL), -1);
	CU_ASSERT_EQUAL(errno, EPIPE);
	free(back);
	close(copy);
	/* Handed over instead, it stays open. */
	begin(16, false);
	copy = ckt_record_stream_detach(&stream);
	ckt_record_stream_fini(&stream);
	CU_ASSERT_EQUAL(recv(peer, &byte, 1, MSG_DONTWAIT), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	close(copy);
	end();
}

/* What a peer said before it ended is read, although what is queued for it can no longer be sent. */
static void test_last_words(void)
{
	static const uint8_t bytes[] = {0x80, 0, 0, 1, 'a', 0x80, 0, 0, 1, 'b'};
	begin(16, false);
	for (int i = 0; i < 64; i++) {
		uint8_t *data = calloc(1, 65536);
		CU_ASSERT_PTR_NOT_NULL_FATAL(data);
		CU_ASSERT_EQUAL(ckt_record_stream_send(&stream, data, 65536, -1), 0);
	}
	CU_ASSERT(ckt_record_stream_queued(&stream) > 0);
	CU_ASSERT_EQUAL(write(peer, bytes, sizeof bytes), (ssize_t)sizeof bytes);
	close(peer);
	run();
	CU_ASSERT_EQUAL(records, 1);
	CU_ASSERT(!was_closed);
	CU_ASSERT_EQUAL(ckt_record_stream_queued(&stream), 0);
	run();
	CU_ASSERT_EQUAL(records, 2);
	CU_ASSERT_EQUAL(got[0], 'b');
	CU_ASSERT(!was_closed);
	run();
	CU_ASSERT(was_closed);
	peer = -1;
	end();
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("stream", NULL, NULL);
	CU_add_test(suite, "pieces", test_pieces);
	CU_add_test(suite, "bounds", test_bounds);
	CU_add_test(suite, "descriptors", test_descriptors);
	CU_add_test(suite, "finish", test_finish);
	CU_add_test(suite, "pause", test_pause);
	CU_add_test(suite, "copies", test_copies);
	CU_add_test(suite, "last words", test_last_words);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
