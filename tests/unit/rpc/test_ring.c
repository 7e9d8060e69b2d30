/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/transport/ring.c: bytes in order, room, sleepers, and a peer that lies. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "rpc/transport/ring.h"
#include "tests/unit/suite.h"

enum { SIZE = 64, STREAM = 1 << 20 };

static struct ckt_ring_shared shared;
static uint8_t bytes[SIZE];
static struct ckt_byte_ring writer, reader;

static void begin(uint64_t position)
{
	memset(bytes, 0, sizeof bytes);
	atomic_store(&shared.written, position);
	atomic_store(&shared.taken, position);
	atomic_store(&shared.reader_sleeps, 0);
	atomic_store(&shared.writer_sleeps, 0);
	writer = reader = (struct ckt_byte_ring){
		.shared = &shared, .data = bytes, .size = SIZE, .position = position};
}

static void test_bytes(void)
{
	uint8_t data[SIZE + 1], got[SIZE + 1];
	bool wake;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i + 1);
	/* Also where the counters wrap, which takes centuries. */
	static const uint64_t positions[] = {0, 1, SIZE - 1, SIZE, UINT64_MAX - 10};
	for (size_t i = 0; i < COUNT(positions); i++) {
		begin(positions[i]);
		IS(ckt_byte_ring_room(&writer), SIZE);
		IS(ckt_byte_ring_filled(&reader), 0);
		IS(ckt_byte_ring_take(&reader, got, sizeof got, &wake), 0);
		/* More than there is room for: what fits. */
		IS(ckt_byte_ring_put(&writer, data, sizeof data, &wake), SIZE);
		IS(ckt_byte_ring_put(&writer, data, sizeof data, &wake), 0);
		IS(ckt_byte_ring_room(&writer), 0);
		IS(ckt_byte_ring_filled(&reader), SIZE);
		IS(ckt_byte_ring_take(&reader, got, 10, &wake), 10);
		IS(memcmp(got, data, 10), 0);
		IS(ckt_byte_ring_room(&writer), 10);
		IS(ckt_byte_ring_put(&writer, data, 3, &wake), 3);
		IS(ckt_byte_ring_take(&reader, got, sizeof got, &wake), SIZE - 7);
		IS(memcmp(got, data + 10, SIZE - 10), 0);
		IS(memcmp(got + SIZE - 10, data, 3), 0);
		IS(ckt_byte_ring_take(&reader, got, sizeof got, &wake), 0);
		NO(wake);
	}
}

static void test_sleepers(void)
{
	uint8_t data[SIZE] = {0};
	bool wake;
	begin(0);
	ckt_byte_ring_reader_sleeps(&reader, true);
	IS(ckt_byte_ring_put(&writer, data, 1, &wake), 1);
	YES(wake);
	/* It is told once. */
	IS(ckt_byte_ring_put(&writer, data, 1, &wake), 1);
	NO(wake);
	ckt_byte_ring_reader_sleeps(&reader, true);
	ckt_byte_ring_reader_sleeps(&reader, false);
	IS(ckt_byte_ring_put(&writer, data, SIZE, &wake), SIZE - 2);
	NO(wake);
	/* Nothing moved: nobody is woken for it. */
	ckt_byte_ring_reader_sleeps(&reader, true);
	IS(ckt_byte_ring_put(&writer, data, 1, &wake), 0);
	NO(wake);
	ckt_byte_ring_writer_sleeps(&writer, true);
	IS(ckt_byte_ring_take(&reader, data, 1, &wake), 1);
	YES(wake);
	IS(ckt_byte_ring_take(&reader, data, 1, &wake), 1);
	NO(wake);
}

/* What the peer says is checked each time, and what it says of this side's counter is not read. */
static void test_lies(void)
{
	uint8_t data[SIZE] = {0};
	bool wake;
	static const uint64_t written[] = {SIZE + 1, UINT64_MAX, 1ull << 63, 1ull << 32};
	for (size_t i = 0; i < COUNT(written); i++) {
		begin(0);
		atomic_store(&shared.written, written[i]);
		IS(ckt_byte_ring_filled(&reader), -EPROTO);
		IS(ckt_byte_ring_take(&reader, data, sizeof data, &wake), -EPROTO);
		IS(reader.position, 0);
	}
	static const uint64_t taken[] = {1, UINT64_MAX - SIZE, 1ull << 63, 1ull << 32};
	for (size_t i = 0; i < COUNT(taken); i++) {
		begin(0);
		atomic_store(&shared.taken, taken[i]);
		IS(ckt_byte_ring_room(&writer), -EPROTO);
		IS(ckt_byte_ring_put(&writer, data, sizeof data, &wake), -EPROTO);
		IS(writer.position, 0);
	}
	begin(0);
	IS(ckt_byte_ring_put(&writer, "abc", 3, &wake), 3);
	atomic_store(&shared.taken, 2);
	IS(ckt_byte_ring_take(&reader, data, 1, &wake), 1);
	IS(data[0], 'a');
	IS(atomic_load(&shared.taken), 1);
	atomic_store(&shared.written, 1000);
	IS(ckt_byte_ring_put(&writer, "d", 1, &wake), 1);
	IS(ckt_byte_ring_take(&reader, data, SIZE, &wake), 3);
	IS(memcmp(data, "bcd", 3), 0);
}

static uint8_t value_at(size_t at)
{
	return (uint8_t)(at * 7 + at / 251);
}

static void *write_stream(void *unused)
{
	uint8_t data[100];
	bool wake;
	for (size_t at = 0; at < STREAM;) {
		size_t size = 1 + at % sizeof data;
		if (size > STREAM - at)
			size = STREAM - at;
		for (size_t i = 0; i < size; i++)
			data[i] = value_at(at + i);
		ssize_t n = ckt_byte_ring_put(&writer, data, size, &wake);
		if (n < 0)
			break;
		if (n == 0)
			sched_yield();
		at += (size_t)n;
	}
	return unused;
}

static void test_threads(void)
{
	pthread_t thread;
	uint8_t data[SIZE];
	size_t wrong = 0;
	bool wake;
	begin(UINT64_MAX - 1000);
	MUST(pthread_create(&thread, NULL, write_stream, NULL), 0);
	for (size_t at = 0; at < STREAM;) {
		ssize_t n = ckt_byte_ring_take(&reader, data, 1 + at % sizeof data, &wake);
		if (n < 0)
			break;
		if (n == 0)
			sched_yield();
		for (ssize_t i = 0; i < n; i++)
			wrong += data[i] != value_at(at + (size_t)i);
		at += (size_t)n;
	}
	pthread_join(thread, NULL);
	IS(wrong, 0);
	IS(ckt_byte_ring_filled(&reader), 0);
}

UNIT_SUITE(ring, {"bytes", test_bytes}, {"sleepers", test_sleepers}, {"lies", test_lies},
	{"threads", test_threads})
