/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn/gpu_trace.c: what it asks a worker, what it takes from the answers, and when it stops
 * to ask; the connection and the file are the test's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/conn/conn.h"
#include "client/conn/gpu_trace.h"
#include "client/trace/gpu_track.h"
#include "client/trace/recorder.h"
#include "rpc/net.h"
#include "tests/unit/suite.h"

static struct ckt_conn server = {.state = CKT_CONN_OPEN, .number = 0, .server = "node"};
struct ckt_conn *ckt_conns[CKT_SERVERS_MAX] = {&server};
unsigned ckt_conn_count = 1;
struct ckt_trace_state ckt_trace_state;
const struct ckt_trace_table *ckt_trace_on;

/* The worker. */
static _Atomic unsigned asked[4]; /* by action; 3: after STOP */
static _Atomic int next_status;   /* of the next READ */
static _Atomic bool knows_nothing;
static unsigned left; /* records that it has */
static uint64_t number = 40;
enum { WORKER_BEHIND_NS = 50000000 };
/* The file. */
static _Atomic unsigned written;
static uint64_t lost;
static int64_t start_ns;

static void answer_with(ckt_gpu_trace_res *res, const ckt_gpu_trace_args *args)
{
	static ckt_traced_call calls[2];
	asked[args->action]++;
	*res = (ckt_gpu_trace_res){.trace = number, .now_ns = ckt_now_ns() - WORKER_BEHIND_NS};
	if (args->action == CKT_TRACE_ACTION_START) {
		res->trace = ++number;
		return;
	}
	res->status = atomic_exchange(&next_status, 0);
	if (args->trace != number)
		res->status = -ESRCH;
	if (res->status)
		return;
	for (; left && res->calls.calls_len < 2; left--)
		calls[res->calls.calls_len++] = (ckt_traced_call){.name = (char *)"memset",
			.kernel = (char *)"",
			.start_ns = ckt_now_ns() - WORKER_BEHIND_NS,
			.duration_ns = left == 1 ? -5 : 10};
	res->calls.calls_val = calls;
	res->more = left > 0;
	res->dropped = left ? 3 : 0;
}

CUresult ckt_conn_session_tell(struct ckt_conn *conn, uint32_t proc, xdrproc_t xdr_args, void *args,
	ckt_call_done done, void *data)
{
	static char buffer[65536];
	ckt_gpu_trace_res res;
	XDR xdr;
	if (conn != &server || proc != CKT_SESSION_GPU_TRACE ||
		xdr_args != (xdrproc_t)xdr_ckt_gpu_trace_args)
		abort();
	struct ckt_cursor none = {0};
	if (knows_nothing) {
		asked[0]++;
		done(data, CUDA_ERROR_NOT_SUPPORTED, &none);
		return CUDA_SUCCESS;
	}
	answer_with(&res, args);
	xdrmem_create(&xdr, buffer, sizeof buffer, XDR_ENCODE);
	if (!xdr_ckt_gpu_trace_res(&xdr, &res))
		abort();
	struct ckt_cursor results = {
		.p = (uint8_t *)buffer, .end = (uint8_t *)buffer + xdr_getpos(&xdr)};
	done(data, CUDA_SUCCESS, &results);
	return CUDA_SUCCESS;
}

void ckt_conn_listen_until(struct ckt_conn *conn, bool (*finished)(void *data), void *data)
{
	if (conn != &server || !finished(data))
		abort();
}

void ckt_trace_gpu_server(unsigned number_, const char *name)
{
	IS(number_, 0);
	TEXT(name, "node");
}

void ckt_trace_gpu_put(unsigned number_, const struct ckt_trace_gpu *record)
{
	if (number_ || strcmp(record->name, "memset") != 0 || record->duration_ns > 10)
		abort();
	start_ns = (int64_t)record->start_ns;
	written++;
}

void ckt_trace_gpu_dropped(unsigned number_, uint64_t records)
{
	lost += number_ ? 1000 : records;
}

static void wait_for(const _Atomic unsigned *what, unsigned at_least)
{
	while (atomic_load(what) < at_least)
		usleep(1000);
}

static void test_off(void)
{
	unsetenv("CRICKET_TRACE_GPU");
	ckt_gpu_trace_start();
	setenv("CRICKET_TRACE_GPU", "1", 1);
	/* Without a file. */
	ckt_gpu_trace_start();
	IS(asked[CKT_TRACE_ACTION_START], 0);
	ckt_gpu_trace_end(NULL);
	IS(asked[CKT_TRACE_ACTION_STOP], 0);
}

static void test_follows(void)
{
	static const struct ckt_trace_table table;
	ckt_trace_on = &table;
	ckt_trace_state.to_file = true;
	left = 5;
	int64_t begun_ns = ckt_now_ns();
	ckt_gpu_trace_start();
	wait_for(&written, 5);
	IS(lost, 6);
	/* On this clock. */
	YES(start_ns >= begun_ns && start_ns <= ckt_now_ns());
	/* A restored session: its worker knows of no trace. */
	IS(asked[CKT_TRACE_ACTION_START], 1);
	next_status = -ESRCH;
	wait_for(&asked[CKT_TRACE_ACTION_START], 2);
	/* Ask again is no end. */
	next_status = -EAGAIN;
	wait_for(&asked[CKT_TRACE_ACTION_READ], atomic_load(&asked[CKT_TRACE_ACTION_READ]) + 2);
	IS(asked[CKT_TRACE_ACTION_START], 2);
	YES(ckt_trace_state.before_end == ckt_gpu_trace_end);
	ckt_gpu_trace_end(NULL);
	IS(asked[CKT_TRACE_ACTION_STOP], 1);
	ckt_gpu_trace_end(NULL);
	IS(asked[CKT_TRACE_ACTION_STOP], 1);
}

/* A server of an earlier version is asked once. */
static void test_earlier_server(void)
{
	unsigned before = asked[0];
	knows_nothing = true;
	ckt_gpu_trace_start();
	IS(asked[0], before + 1);
	usleep(150000);
	ckt_gpu_trace_end(NULL);
	IS(asked[0], before + 1);
}

UNIT_SUITE(gpu_trace, {"off", test_off}, {"follows", test_follows},
	{"earlier server", test_earlier_server})
