/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/parting.c: the client hears why its connection ends, and what was sent
 * before arrives.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/greeting.h"
#include "server/worker/session/parting.h"
#include "tests/unit/worker/inside.h"

static struct ckt_worker worker;
static int peer;

static void connect_client(void)
{
	int fds[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	peer = fds[1];
	worker.client_fd = fds[0];
	worker.client_epoch = 7;
	ckt_output_init(&worker.output);
	MUST(ckt_input_init(&worker.input), 0);
	ckt_input_connect(&worker.input, fds[0]);
	MUST(ckt_output_connect(&worker.output, fds[0], 7, NULL, 0), 0);
}

/* The procedure of the only record that came, after which the stream ends. */
static uint32_t heard(const char *text)
{
	uint8_t bytes[4096];
	struct ckt_call_header header = {0};
	ssize_t got = 0, n;
	while ((n = read(peer, bytes + got, sizeof bytes - (size_t)got)) > 0)
		got += n;
	IS(n, 0);
	MUST(got >= CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE, true);
	struct ckt_cursor cursor = {bytes + CKT_MARK_SIZE, bytes + got};
	YES(ckt_call_header_get(&cursor, &header));
	IS(header.prog, CRICKET_CALLBACK_PROG);
	if (text)
		YES(memmem(bytes, (size_t)got, text, strlen(text)) != NULL);
	close(peer);
	close(worker.client_fd);
	ckt_output_connect(&worker.output, -1, 0, NULL, 0);
	ckt_input_connect(&worker.input, -1);
	worker.client_fd = -1;
	free(worker.input.data);
	free(worker.output.data);
	return header.proc;
}

static void test_goodbye(void)
{
	connect_client();
	strcpy(worker.parting.moved_to, "10.0.0.2:7350");
	ckt_parting_end(&worker, false);
	IS(heard("10.0.0.2:7350"), CKT_CALLBACK_MOVED);
	connect_client();
	worker.parting.moved_to[0] = 0;
	worker.parting.parked = true;
	strcpy(worker.parting.message, "maintenance");
	ckt_parting_end(&worker, false);
	IS(heard("maintenance"), CKT_CALLBACK_PARKED);
}

static void test_nobody(void)
{
	worker.client_fd = -1;
	ckt_parting_end(&worker, false);
	ckt_parting_flush(&worker, INT64_MAX);
	IS(worker.client_fd, -1);
}

UNIT_SUITE(parting, {"goodbye", test_goodbye}, {"nobody", test_nobody})
