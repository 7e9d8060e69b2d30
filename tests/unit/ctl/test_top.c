/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/top/top.c: one sample as a table and as JSON, what a peer's text does in them: nothing; and
 * what is refused.
 */
#include <jansson.h>
#include <rpc/rpc.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"
#include "rpc/net.h"

static ckt_control_watched sessions[2] = {
	{.session = {.session = (char *)"0123456789ab",
		 .program_name = (char *)"prog\033[2J\x9bm\xc2\x9b",
		 .client = (char *)"host",
		 .client_pid = 7,
		 .worker_pid = 70,
		 .memory_bytes = 1536,
		 .state = 1,
		 .note = (char *)"a note"},
		.owner = {(char *)"token:al\033]0;ice", (char *)"vision"},
		.job = (char *)"mine",
		.transport = (char *)"tcp",
		.lanes = 4,
		.share_permille = 371,
		.swapped_bytes = 3 << 20,
		.waiting_ms = 1500,
		.switches = 9},
	{.session = {.session = (char *)"fffffffffff0",
		 .program_name = (char *)"quiet",
		 .client = (char *)"",
		 .gpu = 1,
		 .memory_bytes = 1 << 30,
		 .state = 6,
		 .note = (char *)""},
		.owner = {(char *)"", (char *)""},
		.job = (char *)"",
		.transport = (char *)"",
		.received_bytes = -1,
		.sent_bytes = -1,
		.share_permille = -1,
		.swapped_bytes = -1,
		.waiting_ms = -1,
		.switches = -1},
};
static ckt_control_watch_res watched = {.sessions = {2, sessions}};

/* The counts of the first session grow with each reading. */
static bool watch(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	(void)args, (void)fd;
	sessions[0].calls += 1000000;
	sessions[0].waits += 100000;
	sessions[0].received_bytes += 1 << 30;
	sessions[0].sent_bytes += 1 << 20;
	*ret_xdr = (xdrproc_t)xdr_ckt_control_watch_res;
	*ret_res = &watched;
	return true;
}

static bool hang_up(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	(void)args, (void)fd, (void)ret_xdr, (void)ret_res;
	return false;
}

static void test_once(void)
{
	begin();
	replies[CKT_CONTROL_WATCH].answer = watch;
	IS(run(ckt_ctl_top, (struct ckt_ctl_args){.once = true, .delay = "0.1"}, NULL),
		CKT_EXIT_DONE);
	IS(seen_count, 2);
	HAS(out, "SESSION      PROGRAM");
	HAS(out, "0123456789ab prog?[2J?m??");
	HAS(out, "token:al?]0;ice");
	HAS(out, " 37% ");
	HAS(out, " 3.0M ");
	HAS(out, " 1.5s ");
	HAS(out, " tcp+4");
	HAS(out, " running ");
	HAS(out, " paused? ");
	YES(strpbrk(out, "\033\x9b") == NULL);
	/* A server that ends the connection is one of an earlier version. */
	replies[CKT_CONTROL_WATCH].answer = hang_up;
	IS(run(ckt_ctl_top, (struct ckt_ctl_args){.once = true, .delay = "0.1"}, NULL),
		CKT_EXIT_NO_SERVER);
	HAS(err, "one of an earlier version cannot: use cricketctl ps");
}

static void test_json(void)
{
	begin();
	replies[CKT_CONTROL_WATCH].answer = watch;
	IS(run(ckt_ctl_top, (struct ckt_ctl_args){.json = true, .delay = "0.1"}, NULL),
		CKT_EXIT_DONE);
	json_t *json = json_loads(out, 0, NULL), *list = json_object_get(json, "sessions"),
	       *first = json_array_get(list, 0), *second = json_array_get(list, 1);
	IS(json_array_size(list), 2);
	TEXT(json_string_value(json_object_get(first, "owner")), "token:al?]0;ice");
	YES(json_integer_value(json_object_get(first, "calls_per_second")) > 0);
	YES(json_integer_value(json_object_get(first, "received_bytes_per_second")) >
		json_integer_value(json_object_get(first, "sent_bytes_per_second")));
	IS(json_integer_value(json_object_get(first, "switches")), 9);
	YES(json_is_true(json_object_get(first, "answered")));
	YES(json_is_false(json_object_get(second, "answered")));
	YES(json_is_null(json_object_get(second, "owner")));
	YES(json_is_null(json_object_get(second, "calls_per_second")));
	YES(json_is_null(json_object_get(second, "share_percent")));
	YES(json_is_null(json_object_get(second, "transport")));
	json_decref(json);
}

static void test_refused(void)
{
	static const char *const bad[] = {"0", "-1", "nan", "1s", "3601", "x"};
	begin();
	for (size_t i = 0; i < COUNT(bad); i++) {
		IS(run(ckt_ctl_top, (struct ckt_ctl_args){.delay = bad[i]}, NULL), CKT_EXIT_USAGE);
		HAS(err, "is no number of seconds");
	}
	/* The output goes to a file. */
	IS(run(ckt_ctl_top, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_USAGE);
	HAS(err, "no terminal; print one sample with --once");
	IS(run(ckt_ctl_top, (struct ckt_ctl_args){.server = "unix:/nowhere"}, NULL),
		CKT_EXIT_NO_SERVER);
}

UNIT_SUITE(top, {"once", test_once}, {"json", test_json}, {"refused", test_refused})
