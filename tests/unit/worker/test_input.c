/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input buffer: bytes come in the order of the stream, whoever took them from the socket; a
 * look sees whole records that are not begun.
 */
#include "server/worker/session/input.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static struct ckt_input input;
static int peer;

static void connect_pair(void)
{
	int ends[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	peer = ends[0];
	ckt_input_connect(&input, ends[1]);
}

static void disconnect(void)
{
	int fd = input.transport.fd;
	ckt_input_connect(&input, -1);
	close(fd);
	close(peer);
}

/* A call with that number and so many bytes of arguments, each of them the number. */
static size_t put(uint8_t *to, uint32_t number, size_t bytes)
{
	uint8_t *p = ckt_put_u32(to, 0x80000000u | (uint32_t)(CKT_CALL_HEADER_SIZE + bytes));
	p = ckt_call_header_put(p,
		&(struct ckt_call_header){
			.prog = CKT_CUDA_PROG, .vers = 1, .proc = number, .seq = number});
	memset(p, (int)number, bytes);
	return (size_t)(p + bytes - to);
}

static void say(const uint8_t *bytes, size_t size)
{
	IS(send(peer, bytes, size, 0), size);
}

struct seen {
	uint32_t numbers[64];
	unsigned count, most;
};

static bool visit(void *data, const struct ckt_call_header *header, struct ckt_cursor *args)
{
	struct seen *seen = data;
	size_t size = (size_t)(args->end - args->p);
	YES(size <= CKT_INPUT_SEEN);
	for (size_t i = 0; i < size; i++)
		IS(args->p[i], header->proc);
	seen->numbers[seen->count++] = header->proc;
	return seen->count < seen->most;
}

static struct seen look(unsigned most, bool taken)
{
	struct seen seen = {.most = most};
	IS(ckt_input_look(&input, visit, &seen), taken);
	return seen;
}

static void test_order(void)
{
	uint8_t bytes[4096], back[4096];
	size_t size = 0, got = 0;
	MUST(ckt_input_init(&input), 0);
	IS(look(64, false).count, 0);
	connect_pair();
	IS(ckt_input_receive(&input), 0);
	for (unsigned i = 1; i <= 6; i++)
		size += put(bytes + size, i, 8 * i);
	/*
	 * Of the third a part; then the rest by another thread, in two turns, with a part of the
	 * last.
	 */
	size_t first = 2 * (CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE) + 24 + 50;
	say(bytes, first);
	IS(ckt_input_receive(&input), 1);
	IS(input.tail, first);
	IS(look(64, false).count, 2);
	say(bytes + first, 200);
	struct seen seen = look(64, true);
	IS(seen.count, 4);
	say(bytes + first + 200, size - 7 - first - 200);
	seen = look(64, true);
	IS(seen.count, 5);
	for (unsigned i = 0; i < seen.count; i++)
		IS(seen.numbers[i], i + 1);
	IS(look(2, false).count, 2);
	say(bytes + size - 7, 7);
	IS(look(64, true).count, 6);
	/* What the executor has begun is not shown. */
	ckt_input_take(&input, CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE + 8);
	seen = look(64, false);
	IS(seen.count, 5);
	IS(seen.numbers[0], 2);
	/* It has all of it, in the order of the stream. */
	got = input.head;
	memcpy(back, input.data, got);
	while (got < size) {
		if (input.head == input.tail)
			IS(ckt_input_receive(&input), 1);
		size_t n = input.tail - input.head;
		memcpy(back + got, input.data + input.head, n);
		ckt_input_take(&input, n);
		got += n;
	}
	IS(got, size);
	YES(!memcmp(back, bytes, size));
	IS(ckt_input_receive(&input), 0);
	IS(look(64, false).count, 0);
	disconnect();
}

static void test_malformed(void)
{
	uint8_t bytes[1024];
	connect_pair();
	size_t size = put(bytes, 1, 4), at = size;
	size += put(bytes + size, 2, 0);
	/* No last fragment. */
	ckt_put_u32(bytes + at, CKT_CALL_HEADER_SIZE);
	say(bytes, size);
	IS(look(64, true).count, 1);
	/* A later look begins again; too long, too short, no call. */
	const uint32_t marks[] = {0x80000000u | (CKT_RECORD_MAX + 1),
		0x80000000u | (CKT_CALL_HEADER_SIZE - 4), 0xffffffffu};
	for (unsigned i = 0; i < 3; i++) {
		disconnect();
		connect_pair();
		ckt_put_u32(bytes + at, marks[i]);
		say(bytes, size);
		IS(look(64, true).count, 1);
	}
	disconnect();
	connect_pair();
	put(bytes + at, 2, 0);
	ckt_put_u32(bytes + at + CKT_MARK_SIZE + 4, 1);
	say(bytes, size);
	IS(look(64, true).count, 1);
	disconnect();
}

/*
 * An end is the executor's to find, behind all that came; what a connection left is gone with it.
 */
static void test_end(void)
{
	uint8_t bytes[256];
	connect_pair();
	size_t size = put(bytes, 1, 4);
	say(bytes, size);
	shutdown(peer, SHUT_WR);
	IS(look(64, true).count, 1);
	IS(look(64, false).count, 1);
	IS(ckt_input_receive(&input), 1);
	IS(input.tail - input.head, size);
	IS(ckt_input_receive(&input), -ECONNRESET);
	disconnect();
	connect_pair();
	say(bytes, size);
	IS(look(64, true).count, 1);
	disconnect();
	connect_pair();
	IS(look(64, false).count, 0);
	IS(ckt_input_receive(&input), 0);
	say(bytes, size);
	IS(look(64, true).count, 1);
	say(bytes, size);
	ckt_input_discard(&input);
	IS(ckt_input_receive(&input), 0);
	IS(look(64, false).count, 0);
	disconnect();
}

/* More than the buffer takes: nothing is lost, and the look has its bound. */
static void test_much(void)
{
	enum { BYTES = 100000 };
	static uint8_t record[CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE + BYTES];
	unsigned said = 0, taken = 0;
	connect_pair();
	size_t size = put(record, 3, BYTES);
	size_t sent = 0, got = 0;
	for (unsigned turn = 0; turn < 4000; turn++) {
		ssize_t n = send(peer, record + sent % size, size - sent % size, MSG_DONTWAIT);
		sent += n > 0 ? (size_t)n : 0;
		said = (unsigned)(sent / size);
		struct seen seen = {.most = 1};
		if (ckt_input_look(&input, visit, &seen))
			taken++;
		if (n < 0 && !seen.count)
			break;
		if (input.ahead_tail == CKT_INPUT_AHEAD_MAX && n < 0)
			break;
	}
	YES(said > 40);
	YES(taken > 10);
	IS(input.ahead_room, CKT_INPUT_AHEAD_MAX);
	while (ckt_input_receive(&input) == 1) {
		got += input.tail - input.head;
		for (size_t i = input.head; i < input.tail; i += 4093)
			if (input.data[i] != record[(got - (input.tail - i)) % size])
				got = 0;
		ckt_input_take(&input, input.tail - input.head);
	}
	IS(got, sent);
	disconnect();
}

UNIT_SUITE(worker / input, {"order", test_order}, {"malformed", test_malformed}, {"end", test_end},
	{"much", test_much})
