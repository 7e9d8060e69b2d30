/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/record.c: marks, and whole records over a transport that moves what it likes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/net.h"
#include "rpc/record.h"
#include "tests/unit/rpc/double_transport.h"
#include "tests/unit/suite.h"

static void test_mark(void)
{
	uint8_t mark[CKT_MARK_SIZE];
	size_t size = 77;
	YES(ckt_mark_put(mark, 0x12345) == mark + CKT_MARK_SIZE);
	IS(memcmp(mark, "\x80\x01\x23\x45", 4), 0);
	IS(ckt_mark_size(mark), 0x12345);
	IS(ckt_mark_get(mark, 0x12345, &size), 0);
	IS(size, 0x12345);
	size = 77;
	IS(ckt_mark_get(mark, 0x12344, &size), -EMSGSIZE);
	/* Not the last fragment: no record of ours, whatever its size. */
	mark[0] = 0;
	IS(ckt_mark_get(mark, SIZE_MAX, &size), -EPROTO);
	IS(size, 77);
	memset(mark, 0xff, sizeof mark);
	IS(ckt_mark_get(mark, 1 << 20, &size), -EMSGSIZE);
}

static int read_steps(
	const int *steps, size_t step_count, const char *bytes, size_t size, int64_t deadline_ms)
{
	struct double_transport d;
	uint8_t *data = NULL;
	size_t got = 0;
	double_init(&d, steps, step_count);
	d.input = (const uint8_t *)bytes;
	d.input_size = size;
	int result = ckt_record_read(&d.transport, 16, deadline_ms, &data, &got, NULL);
	if (result == 0) {
		IS(got, 3);
		IS(memcmp(data, "abc", 3), 0);
		IS(d.input_size, size - 7);
	}
	free(data);
	double_fini(&d);
	return result;
}

static void test_read(void)
{
	static const char record[] = "\x80\0\0\3abcNEXT";
	static const int whole[] = {4, 3}, bytes[] = {1, 1, -EAGAIN, 1, 1, 1, -EAGAIN, 1, 1},
			 gone[] = {4, 1, 0}, reset[] = {4, -ECONNRESET}, late[] = {4, -EAGAIN},
			 vanished[] = {2, -ETIMEDOUT};
	IS(read_steps(whole, COUNT(whole), record, 11, -1), 0);
	IS(read_steps(bytes, COUNT(bytes), record, 11, -1), 0);
	IS(read_steps(gone, COUNT(gone), record, 11, -1), -ECONNRESET);
	IS(read_steps(reset, COUNT(reset), record, 11, -1), -ECONNRESET);
	IS(read_steps(late, COUNT(late), record, 11, ckt_net_now_ms() - 1), -ETIMEDOUT);
	IS(read_steps(vanished, COUNT(vanished), record, 11, -1), -ETIMEDOUT);
	IS(read_steps(NULL, 0, "\0\0\0\3abc", 7, -1), -EPROTO);
	IS(read_steps(NULL, 0, "\x80\0\0\x11", 4, -1), -EMSGSIZE);
	/* Truncated anywhere, it is the peer's end. */
	for (size_t size = 0; size < 7; size++)
		IS(read_steps(NULL, 0, record, size, -1), -ECONNRESET);
}

static void test_descriptors(void)
{
	struct double_transport d;
	uint8_t *data;
	size_t size;
	int fd = -1;
	static const int cut[] = {4, -ECONNRESET};
	double_init(&d, NULL, 0);
	d.input = (const uint8_t *)"\x80\0\0\1x\x80\0\0\1y";
	d.input_size = 10;
	d.passes_fd = dup(d.other_fd);
	IS(ckt_record_read(&d.transport, 16, -1, &data, &size, &fd), 0);
	YES(fd >= 0 && fcntl(fd, F_GETFD) >= 0);
	close(fd);
	free(data);
	/* One that nobody wants is closed, and none is left behind by a record that failed. */
	int unwanted = d.passes_fd = dup(d.other_fd);
	IS(ckt_record_read(&d.transport, 16, -1, &data, &size, NULL), 0);
	free(data);
	YES(fcntl(unwanted, F_GETFD) < 0);
	double_fini(&d);
	double_init(&d, cut, COUNT(cut));
	d.input = (const uint8_t *)"\x80\0\0\1x";
	d.input_size = 5;
	unwanted = d.passes_fd = dup(d.other_fd);
	fd = 99;
	IS(ckt_record_read(&d.transport, 16, -1, &data, &size, &fd), -ECONNRESET);
	IS(fd, 99);
	YES(fcntl(unwanted, F_GETFD) < 0);
	double_fini(&d);
}

static void test_write(void)
{
	static const int steps[] = {-EAGAIN, 2, 3, -EAGAIN, 1};
	static const int broken[] = {2, -ECONNRESET};
	struct double_transport d;
	double_init(&d, steps, COUNT(steps));
	IS(ckt_record_write(&d.transport, (const uint8_t *)"hello", 5, -1, 1), 0);
	IS(d.output_size, 9);
	IS(memcmp(d.output, "\x80\0\0\5hello", 9), 0);
	IS(d.passed_fd, 1);
	double_fini(&d);
	double_init(&d, broken, COUNT(broken));
	IS(ckt_record_write(&d.transport, (const uint8_t *)"hello", 5, -1, -1), -ECONNRESET);
	IS(d.passed_fd, -1);
	double_fini(&d);
	/* One call where the transport takes everything. */
	double_init(&d, NULL, 0);
	IS(ckt_record_write(&d.transport, (const uint8_t *)"hello", 5, -1, -1), 0);
	IS(d.calls, 1);
	double_fini(&d);
}

UNIT_SUITE(record, {"mark", test_mark}, {"read", test_read}, {"descriptors", test_descriptors},
	{"write", test_write})
