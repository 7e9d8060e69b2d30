/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/warm_workers.h: workers that wait for a session: how many, who gets which, and when they end.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "rpc/group.h"
#include "server/daemon/session/warm_workers.h"

enum { GPUS = 3 };

/* Answers every call with status 0 and an empty sentence. */
static const char answering[] =
	"#!/usr/bin/python3\n"
	"import socket\n"
	"connection = socket.socket(fileno=3).accept()[0]\n"
	"while True:\n"
	"    size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), 'big') & 0x7fffffff\n"
	"    xid = connection.recv(size, socket.MSG_WAITALL)[:4]\n"
	"    if not xid: break\n"
	"    head = bytes.fromhex('000000010000000020434b1000000010')\n"
	"    connection.sendall((0x80000000 | 48).to_bytes(4, 'big') + xid + head + bytes(28))\n";

static struct counts {
	unsigned wanted, making, ready;
} wanted;

static struct counts count(void)
{
	struct counts now;
	ckt_warm_count(&server, &now.wanted, &now.making, &now.ready);
	return now;
}

static bool are_ready(void *data)
{
	(void)data;
	struct counts now = count();
	return now.ready == wanted.ready && now.making == 0;
}

static void begin(const char *number, const char *script)
{
	server.options.warm = (char *)number;
	server.options.log_level = (char *)"error";
	server.driver.gpu_count = GPUS;
	getrlimit(RLIMIT_NOFILE, &server.descriptors);
	snprintf(server.worker_path, sizeof server.worker_path, "%s", path_in("warm.py"));
	write_file(server.worker_path, script, 0755);
	ckt_warm_init(&server);
}

static void end(void)
{
	struct counts now;
	ckt_warm_fini(&server);
	now = count();
	IS(now.wanted + now.making + now.ready, 0);
	IS(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
	IS(errno, ECHILD);
	server.options.warm = NULL;
	server.driver.gpu_count = 1;
}

static void await(unsigned ready)
{
	wanted.ready = ready;
	YES(run_until(are_ready, NULL));
}

/* A session that asks for these GPUs; none: as most do. */
static struct ckt_session asking(unsigned gpus, ...)
{
	struct ckt_session session = {.server = &server,
		.gpu = -1,
		.identity = {.kind = CKT_IDENTITY_USER, .uid = 7},
		.narrowed = gpus > 0,
		.visible_count = gpus};
	va_list list;
	va_start(list, gpus);
	for (unsigned i = 0; i < gpus; i++)
		session.visible[i] = va_arg(list, unsigned);
	va_end(list);
	return session;
}

/* Takes one that fits, and ends it. */
static bool take(const struct ckt_session *session)
{
	struct ckt_session *taken = ckt_warm_take(&server, session);
	if (!taken)
		return false;
	IS(strncmp(taken->id, "warm-", 5), 0);
	kill(taken->pid, SIGKILL);
	/* It is in no list any more: nobody but us hears of its end. */
	ckt_session_await_warm_end(taken);
	return true;
}

static void test_numbers(void)
{
	server.driver.soft = true;
	begin(NULL, answering);
	IS(count().wanted, 0); /* the soft GPU's */
	end();
	server.driver.soft = false;
	begin("0", answering);
	IS(count().wanted, 0);
	run_for(20);
	IS(count().making, 0);
	end();
	begin(NULL, answering);
	IS(count().wanted, 1);
	unsigned before = server.session_count;
	await(GPUS);
	IS(server.session_count, before);
	CU_ASSERT_PTR_NULL(server.sessions);
	end();
}

static void test_taking(void)
{
	struct ckt_session usual = asking(0), all = asking(3, 0, 1, 2), second = asking(1, 1),
			   others = asking(2, 2, 0);
	begin("2", answering);
	await(2 * GPUS);
	/* The whole list is the usual one; another order or choice is not. */
	YES(take(&all));
	NO(take(&others));
	YES(take(&second));
	YES(take(&usual));
	NO(take(&usual));
	YES(take(&second));
	NO(take(&second));
	await(2 * GPUS);
	/* The next ones are like the last session. */
	ckt_warm_follow(&server, &others);
	run_for(300);
	await(2 * GPUS);
	YES(take(&others));
	struct ckt_session third = asking(1, 2);
	NO(take(&third));
	/* No list has a GPU that the server has not. */
	struct ckt_session strange = asking(1, 9);
	ckt_warm_follow(&server, &strange);
	NO(take(&strange));
	end();
}

static char answer_of(int socket)
{
	char byte = 0;
	for (int i = 0; i < 6000 && recv(socket, &byte, 1, MSG_DONTWAIT) != 1; i++)
		run_for(10);
	return byte;
}

static void test_short_memory(void)
{
	struct ckt_session first = asking(1, 0), second = asking(1, 1);
	int ends[2];
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	begin("2", answering);
	await(2 * GPUS);
	/* Of a GPU that it does not see: nothing. */
	ckt_warm_give_up(&first, 1, ends[0]);
	IS(answer_of(ends[1]), CKT_GROUP_NOBODY);
	IS(count().ready, 2 * GPUS);
	ckt_warm_give_up(&first, 77, ends[0]);
	IS(answer_of(ends[1]), CKT_GROUP_NOBODY);
	ckt_warm_give_up(&second, 1, ends[0]);
	IS(count().ready, 2 * GPUS - 2);
	IS(answer_of(ends[1]), CKT_GROUP_FREED);
	/* There are none, and none are made, until a session ends. */
	ckt_warm_give_up(&second, 1, ends[0]);
	IS(answer_of(ends[1]), CKT_GROUP_NOBODY);
	run_for(300);
	IS(count().ready, 2 * GPUS - 2);
	NO(take(&second));
	ckt_warm_session_gone(&server);
	await(2 * GPUS);
	close(ends[0]);
	close(ends[1]);
	end();
}

/* Of that long, with a second before the second one, two before the third, and so on. */
static uint64_t most_tries(int64_t took_ms)
{
	uint64_t tries = 1;
	for (int64_t pause_ms = 1000; took_ms >= pause_ms; tries++, pause_ms *= 2)
		took_ms -= pause_ms;
	return tries;
}

static uint64_t serial;

static bool has_died(void *data)
{
	(void)data;
	return server.session_serial > serial && count().making == 0;
}

static void test_dying(void)
{
	serial = server.session_serial;
	int64_t begun_ms = ckt_net_now_ms();
	begin("1", "#!/bin/sh\nexit 3\n");
	YES(run_until(has_died, NULL));
	IS(count().ready, 0);
	/* It is not started over and over, however long this takes. */
	run_for(600);
	uint64_t tries = server.session_serial - serial;
	YES(tries <= most_tries(ckt_net_now_ms() - begun_ms));
	IS(count().ready, 0);
	end();
	begin("1", answering);
	snprintf(server.worker_path, sizeof server.worker_path, "/nonexistent");
	run_for(50);
	IS(count().making, 0);
	end();
}

UNIT_SUITE(warm_workers, {"numbers", test_numbers}, {"taking", test_taking},
	{"short memory", test_short_memory}, {"dying", test_dying})
