/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/connection.c: the answer to a hello, and what the connection runs over from
 * then on.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/greeting.h"
#include "rpc/net.h"
#include "rpc/transport/shared_memory.h"
#include "server/worker/session/connection.h"
#include "tests/unit/worker/inside.h"

enum { XID = 9, EPOCH = 7 };

static struct ckt_worker worker;
static int client_fd;
static struct ckt_hello_res answer;
static int memory_fd;

static void connect_client(void)
{
	int fds[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	client_fd = fds[1];
	worker.client_fd = fds[0];
	worker.client_epoch = EPOCH;
	worker.copy = 4711;
	strcpy(worker.session, "0123456789ab");
	ckt_transport_init_socket(&worker.client_transport, fds[0]);
	ckt_output_init(&worker.output);
	MUST(ckt_input_init(&worker.input), 0);
	ckt_input_connect(&worker.input, fds[0]);
}

static void part(void)
{
	ckt_output_connect(&worker.output, -1, 0, NULL, 0);
	ckt_input_connect(&worker.input, -1);
	ckt_transport_close(&worker.client_transport);
	close(client_fd);
	free(worker.input.data);
	free(worker.output.data);
	xdr_free((xdrproc_t)xdr_ckt_hello_res, (char *)&answer);
	memset(&answer, 0, sizeof answer);
	if (memory_fd >= 0)
		close(memory_fd);
}

static uint64_t answered(const char *name)
{
	const struct ckt_hello_ok *ok = &answer.ckt_hello_res_u.ok;
	for (u_int i = 0; i < ok->capabilities.capabilities_len; i++)
		if (!strcmp(ok->capabilities.capabilities_val[i].name, name))
			return ok->capabilities.capabilities_val[i].value;
	return 0;
}

static void read_answer(void)
{
	MUST(ckt_hello_answer_read(client_fd, XID, ckt_net_now_ms() + 60000, &answer, &memory_fd),
		0);
	IS(answer.status, CKT_HELLO_OK);
	TEXT(answer.ckt_hello_res_u.ok.session, "0123456789ab");
	IS(answered(CKT_CAPABILITY_COPY), 4711);
}

static void say(void)
{
	uint8_t *p = ckt_output_begin(&worker.output, EPOCH, 8);
	MUST(p != NULL, true);
	memcpy(p, "12345678", 8);
	ckt_output_end(&worker.output);
	IS(ckt_output_flush(&worker.output), 0);
}

static void test_socket(void)
{
	char data[64];
	connect_client();
	IS(ckt_worker_connection_answer(&worker, XID, false), 0);
	TEXT(ckt_transport_name(&worker.client_transport), "unix");
	IS(ckt_output_flush(&worker.output), 0);
	read_answer();
	IS(memory_fd, -1);
	IS(answered(CKT_CAPABILITY_RINGS), 0);
	say();
	IS(recv(client_fd, data, sizeof data, MSG_DONTWAIT), 12);
	part();
}

static void test_rings(void)
{
	struct ckt_transport client;
	char data[64];
	connect_client();
	IS(ckt_worker_connection_answer(&worker, XID, true), 0);
	TEXT(ckt_transport_name(&worker.client_transport), "shm");
	/* The answer is there before anybody flushes. */
	read_answer();
	YES(memory_fd >= 0);
	IS(answered(CKT_CAPABILITY_RINGS), CKT_RINGS_BYTES);
	MUST(ckt_transport_init_shared_memory(
		     &client, client_fd, memory_fd, CKT_RINGS_BYTES, false, NULL),
		0);
	say();
	IS(ckt_transport_read(&client, data, sizeof data), 12);
	IS(memcmp(data + 4, "12345678", 8), 0);
	IS(ckt_transport_write(&client, "abcd", 4), 4);
	IS(ckt_input_receive(&worker.input), 1);
	IS(worker.input.tail - worker.input.head, 4);
	IS(memcmp(worker.input.data, "abcd", 4), 0);
	IS(recv(client_fd, data, sizeof data, MSG_DONTWAIT), -1);
	ckt_transport_close(&client);
	client_fd = -1;
	part();
}

/* Without memory for the rings, the connection is what it would be without the offer. */
static void test_no_memory(void)
{
	struct rlimit before, none = {.rlim_cur = 4096};
	MUST(getrlimit(RLIMIT_FSIZE, &before), 0);
	none.rlim_max = before.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	connect_client();
	MUST(setrlimit(RLIMIT_FSIZE, &none), 0);
	IS(ckt_worker_connection_answer(&worker, XID, true), 0);
	MUST(setrlimit(RLIMIT_FSIZE, &before), 0);
	TEXT(ckt_transport_name(&worker.client_transport), "unix");
	IS(ckt_output_flush(&worker.output), 0);
	read_answer();
	IS(memory_fd, -1);
	IS(answered(CKT_CAPABILITY_RINGS), 0);
	part();
}

/* A client that left before it was answered. */
static void test_gone(void)
{
	for (int rings = 0; rings < 2; rings++) {
		connect_client();
		close(client_fd);
		client_fd = memory_fd = -1;
		signal(SIGPIPE, SIG_IGN);
		int result = ckt_worker_connection_answer(&worker, XID, rings);
		if (!result)
			result = ckt_output_flush(&worker.output);
		IS(result, -EPIPE);
		part();
	}
}

UNIT_SUITE(connection, {"socket", test_socket}, {"rings", test_rings},
	{"no memory", test_no_memory}, {"gone", test_gone})
