/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/transport/transport.c: what all transports have in common, over a double. */
#include <errno.h>
#include <string.h>

#include "rpc/net.h"
#include "rpc/transport/transport.h"
#include "tests/unit/rpc/double_transport.h"
#include "tests/unit/suite.h"

static void test_write_all(void)
{
	/* Short writes and a full transport: all bytes go, in order, none twice. */
	static const int steps[] = {2, -EAGAIN, 1, 4, -EAGAIN, 3};
	struct double_transport d;
	double_init(&d, steps, COUNT(steps));
	IS(ckt_transport_write_all(&d.transport, "0123456789", 10, -1), 0);
	IS(d.output_size, 10);
	IS(memcmp(d.output, "0123456789", 10), 0);
	IS(d.calls, 6);
	double_fini(&d);

	static const int broken[] = {2, -EPIPE};
	double_init(&d, broken, COUNT(broken));
	IS(ckt_transport_write_all(&d.transport, "0123456789", 10, -1), -EPIPE);
	IS(d.output_size, 2);
	double_fini(&d);

	static const int full[] = {2, -EAGAIN};
	double_init(&d, full, COUNT(full));
	IS(ckt_transport_write_all(&d.transport, "0123456789", 10, ckt_net_now_ms() - 1),
		-ETIMEDOUT);
	double_fini(&d);
}

static void test_read_all(void)
{
	static const int steps[] = {2, -EAGAIN, 1, 4, -EAGAIN, 3};
	char got[11] = "";
	struct double_transport d;
	double_init(&d, steps, COUNT(steps));
	d.input = (const uint8_t *)"0123456789NEXT";
	d.input_size = 14;
	IS(ckt_transport_read_all(&d.transport, got, 10), 0);
	TEXT(got, "0123456789");
	IS(d.input_size, 4);
	double_fini(&d);

	static const int broken[] = {2, -ECONNRESET};
	double_init(&d, broken, COUNT(broken));
	d.input = (const uint8_t *)"01";
	d.input_size = 2;
	IS(ckt_transport_read_all(&d.transport, got, 10), -ECONNRESET);
	double_fini(&d);
}

static void test_wait(void)
{
	struct double_transport d;
	double_init(&d, NULL, 0);
	/* The events are the transport's: this one waits for room where it is asked to read. */
	IS(ckt_transport_wait(&d.transport, CKT_TRANSPORT_READ, -1), CKT_TRANSPORT_WRITE);
	IS(ckt_transport_wait(&d.transport, CKT_TRANSPORT_ENDED, 0), 0);
	/* Bytes that lie inside are found without a poll. */
	d.pending = true;
	IS(ckt_transport_wait(&d.transport, CKT_TRANSPORT_READ, -1), CKT_TRANSPORT_READ);
	IS(ckt_transport_wait(&d.transport, CKT_TRANSPORT_ENDED, 0), 0);
	IS(ckt_transport_wait_until(&d.transport, CKT_TRANSPORT_READ, -1), 0);
	d.pending = false;
	IS(ckt_transport_wait_until(&d.transport, CKT_TRANSPORT_ENDED, ckt_net_now_ms() + 2),
		-ETIMEDOUT);
	YES(ckt_transport_vanished(&d.transport, 4));
	NO(ckt_transport_vanished(&d.transport, 5));
	double_fini(&d);
}

static void test_end(void)
{
	struct double_transport d;
	double_init(&d, NULL, 0);
	YES(ckt_transport_open(&d.transport));
	ckt_transport_finish(&d.transport);
	YES(d.finished && !d.shut_down);
	ckt_transport_shutdown(&d.transport);
	YES(d.shut_down);
	ckt_transport_close(&d.transport);
	YES(d.closed);
	NO(ckt_transport_open(&d.transport));
	IS(ckt_transport_pollfd(&d.transport, CKT_TRANSPORT_READ).fd, -1);
	/* A second end does nothing. */
	d.closed = d.shut_down = d.finished = false;
	ckt_transport_finish(&d.transport);
	ckt_transport_close(&d.transport);
	ckt_transport_shutdown(&d.transport);
	NO(d.closed || d.shut_down || d.finished);
	/* What was released is not closed. */
	d.transport.fd = d.ready_fd;
	IS(ckt_transport_release(&d.transport), d.ready_fd);
	ckt_transport_close(&d.transport);
	NO(d.closed);
	double_fini(&d);
}

UNIT_SUITE(transport, {"write all", test_write_all}, {"read all", test_read_all},
	{"wait", test_wait}, {"end", test_end})
