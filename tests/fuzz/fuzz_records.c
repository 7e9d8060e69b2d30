/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: the two places that cut a peer's byte stream into records without waiting: the
 * server's record streams, and the worker's input buffer with its look ahead.
 *
 * The bytes are steps, each an operation and what it needs.  Whatever the pieces in which bytes
 * come, both must see the records that a plain cut of the whole stream gives.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/net.h"
#include "rpc/record.h"
#include "server/daemon/peer/record_stream.h"
#include "server/daemon/tls/tls_process.h"
#include "server/worker/session/input.h"
#include "tests/fuzz/fuzz.h"

enum { SENT_MAX = 1 << 15, STEPS_MAX = 64, MAX_BYTES = 4096 };

static struct ckt_loop loop;
static struct ckt_record_stream stream;
static bool ended;
static int end_error;

/* All that was sent, and how far the records that came have got in it. */
static uint8_t sent[SENT_MAX];
static size_t sent_size, seen_size;

static void must_be_next(const uint8_t *data, size_t size)
{
	fuzz_insist(seen_size + CKT_MARK_SIZE + size <= sent_size, "a record out of nothing");
	fuzz_insist(ckt_mark_size(sent + seen_size) == size, "a record of another size");
	fuzz_insist(!memcmp(sent + seen_size + CKT_MARK_SIZE, data, size), "other bytes");
	seen_size += CKT_MARK_SIZE + size;
}

static void on_record(struct ckt_record_stream *s, uint8_t *data, size_t size, int passed_fd)
{
	must_be_next(data, size);
	/* Echoed by some, dropped by others. */
	if (size % 3 == 0) {
		ckt_record_stream_send(s, data, size, passed_fd);
		return;
	}
	free(data);
	if (passed_fd >= 0)
		close(passed_fd);
}

static void on_closed(struct ckt_record_stream *s, int error)
{
	ended = true;
	end_error = error;
	ckt_record_stream_fini(s);
}

static void stop(struct ckt_timer *timer)
{
	(void)timer;
	loop.stop = true;
}

static void run_loop(void)
{
	struct ckt_timer timer = {.fire = stop};
	loop.stop = false;
	ckt_timer_set(&loop, &timer, 0);
	ckt_loop_run(&loop);
	ckt_timer_clear(&timer);
}

static void say(int fd, struct fuzz_input *input, bool pass)
{
	size_t size;
	unsigned want = fuzz_u8(input);
	const uint8_t *bytes = fuzz_bytes(input, want + 1, &size);
	if (!size || sent_size + size > SENT_MAX)
		return;
	struct iovec iov = {(void *)bytes, size};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	if (pass)
		ckt_net_fd_put(&message, &room, fd);
	if (sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size)
		return;
	memcpy(sent + sent_size, bytes, size);
	sent_size += size;
}

/* ---- The server's */

static void drain(int fd)
{
	uint8_t bytes[4096];
	while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
}

static void send_one(struct fuzz_input *input)
{
	size_t size = (size_t)fuzz_u8(input) << 8;
	uint8_t *data = calloc(1, size ? size : 1);
	if (!data)
		return;
	int fd = fuzz_u8(input) & 1 ? dup(loop.epoll_fd) : -1;
	ckt_record_stream_send(&stream, data, size, fd);
}

static void step_of_stream(int peer, struct fuzz_input *input)
{
	switch (fuzz_u8(input) % 12) {
	case 0:
		ckt_record_stream_pause(&stream, true);
		break;
	case 1:
		ckt_record_stream_pause(&stream, false);
		break;
	case 2:
		ckt_record_stream_finish(&stream);
		break;
	case 3:
		shutdown(peer, SHUT_WR);
		break;
	case 4:
		drain(peer);
		break;
	case 5:
		send_one(input);
		break;
	case 6:
		fuzz_fail_allocation(fuzz_u8(input) % 4);
		break;
	case 7:
		shutdown(peer, SHUT_RDWR);
		break;
	case 8:
		say(peer, input, true);
		break;
	case 9:
		/* Its last words, before the loop has looked. */
		say(peer, input, false);
		drain(peer);
		shutdown(peer, SHUT_RDWR);
		break;
	default:
		say(peer, input, false);
	}
}

static void try_stream(struct fuzz_input *input, int fds[2])
{
	stream = (struct ckt_record_stream){.max_bytes = MAX_BYTES,
		.take_fds = fuzz_u8(input) & 1,
		.record = on_record,
		.closed = on_closed};
	int small = 4096;
	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	ended = false;
	if (ckt_record_stream_init(&stream, &loop, fds[1]))
		return;
	for (unsigned n = 0; n < STEPS_MAX && !ended && input->p < input->end; n++) {
		step_of_stream(fds[0], input);
		run_loop();
		fuzz_insist(ended || ckt_record_stream_queued(&stream) < 1 << 24, "a queue");
	}
	fuzz_fail_allocation(0);
	if (ended)
		fuzz_insist(end_error <= 0, "an end without an error number");
	else
		close(ckt_record_stream_detach(&stream));
	fds[1] = -1;
}

/* ---- The worker's */

static struct ckt_input input_buffer;

static bool visit(void *data, const struct ckt_call_header *header, struct ckt_cursor *args)
{
	unsigned *left = data;
	(void)header;
	fuzz_insist((size_t)(args->end - args->p) <= CKT_INPUT_SEEN, "a look sees too much");
	return *left && --*left;
}

/* As the executor takes them. */
static bool take_records(void)
{
	for (;;) {
		size_t have = input_buffer.tail - input_buffer.head, size;
		const uint8_t *p = input_buffer.data + input_buffer.head;
		if (have < CKT_MARK_SIZE)
			return true;
		if (ckt_mark_get(p, CKT_RECORD_MAX, &size))
			return false;
		if (have < CKT_MARK_SIZE + size)
			return true;
		ckt_input_take(&input_buffer, CKT_MARK_SIZE + size);
		must_be_next(p + CKT_MARK_SIZE, size);
	}
}

static void try_input(struct fuzz_input *input, int fds[2])
{
	unsigned most;
	bool open = true;
	ckt_input_connect(&input_buffer, fds[1]);
	for (unsigned n = 0; n < STEPS_MAX && open && input->p < input->end; n++) {
		switch (fuzz_u8(input) % 8) {
		case 0:
			most = fuzz_u8(input);
			fuzz_fail_allocation(most & 64 ? 1 : 0);
			ckt_input_look(&input_buffer, visit, &most);
			fuzz_fail_allocation(0);
			break;
		case 1:
			shutdown(fds[0], SHUT_WR);
			break;
		case 2:
			ckt_input_discard(&input_buffer);
			seen_size = sent_size;
			break;
		case 3:
			open = ckt_input_receive(&input_buffer) >= 0 && take_records();
			break;
		default:
			say(fds[0], input, false);
		}
	}
	ckt_input_connect(&input_buffer, -1);
}

/* More than the buffer holds before it must move what is left to its beginning. */
static void try_long_input(int fds[2])
{
	static uint8_t bytes[1 << 16];
	static unsigned rounds;
	/* Slow, and the same every time. */
	if (rounds++ % 4096)
		return;
	int large = 1 << 20;
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
	ckt_input_connect(&input_buffer, fds[1]);
	ckt_mark_put(bytes, sizeof bytes - CKT_MARK_SIZE - 1);
	for (unsigned i = 0; i < 256; i++) {
		if (send(fds[0], bytes, sizeof bytes - 1, MSG_DONTWAIT) != sizeof bytes - 1)
			break;
		unsigned most = 1;
		if (i % 4 == 3)
			ckt_input_look(&input_buffer, visit, &most);
		while (ckt_input_receive(&input_buffer) > 0)
			if (input_buffer.tail - input_buffer.head > sizeof bytes + 7)
				ckt_input_take(&input_buffer, sizeof bytes - 1);
	}
	ckt_input_connect(&input_buffer, -1);
}

/* The input as what is said of a TLS connection: refused, or as long when it is written. */
static void try_facts(const uint8_t *data, size_t size)
{
	uint8_t again[CKT_TLS_FACTS_MAX];
	struct ckt_tls_facts facts;
	if (!ckt_tls_facts_get(data, size, &facts))
		return;
	uint8_t *end = ckt_tls_facts_put(again, &facts);
	fuzz_insist((size_t)(end - again) == size, "longer or shorter facts");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, data + size};
	int fds[2];
	try_facts(data, size);
	fuzz_insist(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), "no sockets");
	sent_size = seen_size = 0;
	uint8_t which = fuzz_u8(&input);
	if (which == 0xff)
		try_long_input(fds);
	else if (which & 1)
		try_stream(&input, fds);
	else
		try_input(&input, fds);
	close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
	return 0;
}

/* ---- Steps that make sense */

/* A record, in one or two pieces; its head is a call's. */
static size_t put_say(uint8_t *to, uint8_t step, unsigned *seed)
{
	uint8_t record[CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE + 64] = {0};
	size_t body = fuzz_random(seed) % 64, size = CKT_CALL_HEADER_SIZE + body;
	if (fuzz_random(seed) % 4 == 0)
		size = body;
	uint8_t *p = ckt_mark_put(record, fuzz_random(seed) % 8 ? size : fuzz_random(seed));
	if (size >= CKT_CALL_HEADER_SIZE)
		ckt_call_header_put(p,
			&(struct ckt_call_header){
				.prog = CKT_CUDA_PROG, .vers = 1, .proc = body, .seq = body});
	size += CKT_MARK_SIZE;
	size_t cut = fuzz_random(seed) % 2 ? size : 1 + fuzz_random(seed) % size, at = 0;
	for (size_t from = 0; from < size; from += cut, cut = size - from) {
		to[at++] = step;
		to[at++] = (uint8_t)(cut - 1);
		memcpy(to + at, record + from, cut);
		at += cut;
	}
	return at;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	uint8_t piece[512];
	size_t made = 0;
	if (!size || fuzz_random(&seed) % 3 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	switch (fuzz_random(&seed) % 4) {
	case 0:
		piece[made++] = (uint8_t)(fuzz_random(&seed) % 12);
		piece[made++] = (uint8_t)fuzz_random(&seed);
		break;
	default:
		made = put_say(piece, data[0] & 1 ? 8 + fuzz_random(&seed) % 4 : 4, &seed);
		if (!(data[0] & 1))
			piece[made++] = 3; /* the executor receives */
	}
	if (size + made > max_size)
		return LLVMFuzzerMutate(data, size, max_size);
	/* Appended, so that the steps before keep their meaning; or in between. */
	size_t at = fuzz_random(&seed) % 4 ? size : 1 + fuzz_random(&seed) % size;
	memmove(data + at + made, data + at, size - at);
	memcpy(data + at, piece, made);
	return size + made;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	fuzz_insist(!ckt_loop_init(&loop) && !ckt_input_init(&input_buffer), "no loop");
	const char *directory = getenv("CKT_FUZZ_SEEDS");
	if (!directory)
		return 0;
	for (uint8_t which = 0; which < 2; which++) {
		uint8_t seed[1024] = {which, which};
		unsigned random = 7;
		char name[] = "records-0";
		size_t size = 1 + which;
		for (int i = 0; i < 4; i++) {
			size += put_say(seed + size, which ? 9 : 4, &random);
			seed[size++] = which ? 5 : 3;
			seed[size++] = 0;
		}
		name[8] += (char)which;
		fuzz_write_seed(directory, name, seed, size);
	}
	fuzz_write_seed(directory, "records-long", "\xff", 1);
	exit(0);
}
