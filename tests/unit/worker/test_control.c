/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/control.h: the control socket: what is answered before a session has begun,
 * and what ends a connection.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "checkpoint/save/save.h"
#include "rpc/net.h"
#include "rpc/worker.h"
#include "server/worker/session/automatic.h"
#include "server/worker/session/control.h"
#include "server/worker/worker.h"
#include "tests/unit/worker/inside.h"

static struct sockaddr_un address = {.sun_family = AF_UNIX};

static int connect_new(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

/* False where the connection ended instead. */
static bool ask(int fd, uint32_t prog, uint32_t proc, xdrproc_t xdr_args, void *args,
	xdrproc_t xdr_res, void *res)
{
	uint8_t *data;
	size_t size;
	MUST(ckt_net_encode_call(5, prog, proc, xdr_args, args, &data, &size), 0);
	IS(ckt_net_write_record(fd, data, size, ckt_net_now_ms() + 60000, -1), 0);
	free(data);
	if (ckt_net_read_record(fd, 1 << 20, ckt_net_now_ms() + 60000, &data, &size, NULL))
		return false;
	struct ckt_cursor c = {.p = data, .end = data + size};
	struct ckt_reply_header header = {0};
	bool good = ckt_reply_header_get(&c, &header) && header.xid == 5 && !header.accept_stat &&
		(!xdr_res || !ckt_net_decode(&c, xdr_res, res));
	free(data);
	return good;
}

static void test_calls(void)
{
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "/tmp/ckt-control-%d", (int)getpid());
	MUST(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	MUST(listen(listener, 8), 0);
	MUST(ckt_worker_control_start(&ckt_worker, listener), 0);
	NO(ckt_worker_control_started());
	int fd = connect_new();
	YES(ask(fd, CRICKET_WORKER_PROG, CKT_WORKER_NULL, NULL, NULL, NULL, NULL));
	ckt_worker_status_res status = {0};
	YES(ask(fd, CRICKET_WORKER_PROG, CKT_WORKER_STATUS, NULL, NULL,
		(xdrproc_t)xdr_ckt_worker_status_res, &status));
	TEXT(status.session, "0123456789ab");
	IS(status.state, CKT_STATE_FROZEN);
	IS(status.worker_pid, getpid());
	xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&status);
	ckt_worker_stats_res stats = {0};
	YES(ask(fd, CRICKET_WORKER_PROG, CKT_WORKER_STATS, NULL, NULL,
		(xdrproc_t)xdr_ckt_worker_stats_res, &stats));
	YES(stats.stats.stats_len <= CKT_STATS);
	/* Rows that count no calls come first; those of the bytes each way among them. */
	MUST(stats.stats.stats_len >= 5, 1);
	TEXT(stats.stats.stats_val[3].name, CKT_STAT_RECEIVED);
	TEXT(stats.stats.stats_val[4].name, CKT_STAT_SENT);
	xdr_free((xdrproc_t)xdr_ckt_worker_stats_res, (char *)&stats);
	/* Only what is held is of a cut. */
	ckt_worker_cut_args cut = {0};
	ckt_worker_result told = {0};
	YES(ask(fd, CRICKET_WORKER_PROG, CKT_WORKER_CUT, (xdrproc_t)xdr_ckt_worker_cut_args, &cut,
		(xdrproc_t)xdr_ckt_worker_result, &told));
	IS(told.status, -EINVAL);
	HAS(told.message, "not held");
	xdr_free((xdrproc_t)xdr_ckt_worker_result, (char *)&told);
	/* Only what is to be restored is pre-loaded; the worker stays. */
	ckt_worker_start_args start = {
		.session = (char *)"", .socket = (char *)"", .driver = (char *)""};
	ckt_worker_start_res res = {0};
	YES(ask(fd, CRICKET_WORKER_PROG, CKT_WORKER_PRELOAD, (xdrproc_t)xdr_ckt_worker_start_args,
		&start, (xdrproc_t)xdr_ckt_worker_start_res, &res));
	IS(res.status, -EINVAL);
	HAS(res.message, "only for a session that is to be restored");
	xdr_free((xdrproc_t)xdr_ckt_worker_start_res, (char *)&res);
	/* A client before there is a session, and without a socket. */
	ckt_worker_client_args client = {.hello = {.session = (char *)"",
						 .program_name = (char *)"",
						 .host = (char *)"",
						 .build = (char *)""},
		.peer = (char *)""};
	ckt_hello_status hello = CKT_HELLO_OK;
	YES(ask(fd, CRICKET_WORKER_PROG, CKT_WORKER_CLIENT, (xdrproc_t)xdr_ckt_worker_client_args,
		&client, (xdrproc_t)xdr_ckt_hello_status, &hello));
	IS(hello, CKT_HELLO_FAILED);
	NO(ckt_worker.has_owner);
	close(fd);
}

/* What the server asks and tells because of automatic images: automatic.h. */
static void test_automatic(void)
{
	ckt_worker_automatic_args args = {.generation = 1, .last_copy = 99};
	ckt_worker_automatic_res res = {0};
	ckt_worker_durable_args durable = {.executed = 7};
	ckt_worker_result told = {0};
	struct ckt_save save = {.executed = 42};
	memset(save.image, 0x11, sizeof save.image);
	int fd = connect_new();
	NO(ckt_automatic_was(99));
	YES(ask(fd, CRICKET_WORKER_PROG, CKT_WORKER_AUTOMATIC,
		(xdrproc_t)xdr_ckt_worker_automatic_args, &args,
		(xdrproc_t)xdr_ckt_worker_automatic_res, &res));
	IS(res.status, 0);
	IS(res.executed, 0);
	YES(ckt_automatic_was(99) && !ckt_automatic_was(0) && !ckt_automatic_was(98));
	ckt_automatic_saved(&save);
	/* Zeros change nothing. */
	args = (ckt_worker_automatic_args){0};
	YES(ask(fd, CRICKET_WORKER_PROG, CKT_WORKER_AUTOMATIC,
		(xdrproc_t)xdr_ckt_worker_automatic_args, &args,
		(xdrproc_t)xdr_ckt_worker_automatic_res, &res));
	IS(res.executed, 42);
	IS(memcmp(res.image, save.image, sizeof res.image), 0);
	YES(ckt_automatic_was(99));
	/* A session gets what it is given, and never less than its image says. */
	struct ckt_worker restored = {.generation = 5, .copy = 3};
	ckt_automatic_restored(&restored);
	YES(restored.generation == 5 && restored.copy == 3);
	restored.generation = 0;
	ckt_automatic_restored(&restored);
	IS(restored.generation, 1);
	/* Without a lock nobody is told of the end. */
	ckt_automatic_over();
	YES(ask(fd, CRICKET_WORKER_PROG, CKT_WORKER_DURABLE, (xdrproc_t)xdr_ckt_worker_durable_args,
		&durable, (xdrproc_t)xdr_ckt_worker_result, &told));
	/* A command that was not executed yet is in no image. */
	IS(told.status, -EINVAL);
	xdr_free((xdrproc_t)xdr_ckt_worker_result, (char *)&told);
	durable.executed = 0;
	told = (ckt_worker_result){0};
	YES(ask(fd, CRICKET_WORKER_PROG, CKT_WORKER_DURABLE, (xdrproc_t)xdr_ckt_worker_durable_args,
		&durable, (xdrproc_t)xdr_ckt_worker_result, &told));
	IS(told.status, 0);
	xdr_free((xdrproc_t)xdr_ckt_worker_result, (char *)&told);
	close(fd);
}

/*
 * Each of these ends its connection, and the next one is served: more of them than there are
 * threads.
 */
static void test_garbage(void)
{
	const struct {
		uint32_t prog, proc;
	} wrong[] = {{CRICKET_WORKER_PROG, 63}, {CRICKET_WORKER_PROG, UINT32_MAX},
		{CRICKET_WORKER_PROG + 1, CKT_WORKER_NULL}, {0, CKT_WORKER_STATUS},
		{CRICKET_WORKER_PROG, CKT_WORKER_START}, {CRICKET_WORKER_PROG, CKT_WORKER_PRELOAD},
		{CRICKET_WORKER_PROG, CKT_WORKER_CLIENT}};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		int fd = connect_new();
		NO(ask(fd, wrong[i].prog, wrong[i].proc, NULL, NULL, NULL, NULL));
		close(fd);
	}
	for (size_t size = 0; size < 24; size += 3) {
		static const uint8_t zeros[24];
		int fd = connect_new();
		uint8_t *data = NULL;
		size_t got;
		IS(ckt_net_write_record(fd, zeros, size, ckt_net_now_ms() + 60000, -1), 0);
		YES(ckt_net_read_record(fd, 65536, ckt_net_now_ms() + 60000, &data, &got, NULL) !=
			0);
		close(fd);
	}
	int fd = connect_new();
	YES(ask(fd, CRICKET_WORKER_PROG, CKT_WORKER_NULL, NULL, NULL, NULL, NULL));
	close(fd);
	unlink(address.sun_path);
}

/* Behind the suite of ipc.c, whose socket is made anew here. */
UNIT_SUITE(worker_control, {"calls", test_calls}, {"automatic", test_automatic},
	{"garbage", test_garbage})
