/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/ps.c: cricketctl ps: the keys that scripts read, pages of sessions, a peer's text on a
 * terminal.
 */
#include <jansson.h>
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/wire.h"
#include "rpc/worker.h"

static ckt_control_session sessions[2] = {
	{.session = (char *)"0123456789ab",
		.program_name = (char *)"prog\033[2J",
		.client = (char *)"host",
		.client_pid = 7,
		.gpu = 1,
		.memory_bytes = 1536,
		.state = 1,
		.started = 0,
		.note = (char *)"a note"},
	{.session = (char *)"fffffffffff0",
		.program_name = (char *)"\xff\xfe",
		.client = (char *)"",
		.state = 99,
		.note = (char *)""},
};

/* One session a page. */
static bool list(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_list_res res;
	ckt_control_list_args asked = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_list_args, &asked) == 0);
	unsigned at = *asked.after ? 1 : 0;
	res = (ckt_control_list_res){.sessions = {1, &sessions[at]}, .more = at == 0};
	IS(strcmp(asked.after, at ? "0123456789ab" : ""), 0);
	xdr_free((xdrproc_t)xdr_ckt_control_list_args, (char *)&asked);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_list_res;
	*ret_res = &res;
	return true;
}

/* The same in one page: the first one's worker has answered, the second one's has not. */
static bool_t answered[2] = {true, false};
static ckt_control_list2_res both = {
	.list = {.sessions = {2, sessions}}, .answered = {2, answered}};

static ckt_control_job job = {(char *)"0123456789ab", (char *)"mine"};
static ckt_control_jobs_res jobs = {.sessions = {1, &job}};

static ckt_control_connection connection = {(char *)"0123456789ab", (char *)"tcp", 4};
static ckt_control_connections_res connections = {.sessions = {1, &connection}};

static ckt_control_turn turn = {.session = (char *)"0123456789ab",
	.gpu = 2,
	.state = CKT_CONTROL_TURN_OVERDUE,
	.used_us = 1500000,
	.turns = 7,
	.weight = 305,
	.cap = 40,
	.latency_class = 2,
	.priority = -3};
static ckt_control_turns_res turns = {.turns = {1, &turn}};

static bool hang_up(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	(void)args, (void)fd, (void)ret_xdr, (void)ret_res;
	return false;
}

static void test_json(void)
{
	static const char *const keys[] = {"session", "program", "client", "pid", "gpu",
		"memory_bytes", "state", "answered", "started", "job", "owner", "project",
		"transport", "lanes", "turns", "sharing", "waits", "swapping", "share_percent",
		"swapped_bytes", "waiting_ms", "switches", "note"};
	static ckt_control_watched one = {.session = {.session = (char *)"0123456789ab",
						  .program_name = (char *)"",
						  .client = (char *)"",
						  .note = (char *)""},
		.owner = {(char *)"", (char *)""},
		.job = (char *)"",
		.transport = (char *)"",
		.share_permille = 305,
		.swapped_bytes = 3 << 20,
		.waiting_ms = 40,
		.switches = -1};
	static ckt_control_watch_res watched = {.sessions = {1, &one}};
	static ckt_control_owner owner = {(char *)"token:alice", (char *)"vision"};
	static ckt_control_owners_res owners = {.owners = {1, &owner}};
	static ckt_control_warm_res warm = {.wanted = 4, .making = 1, .ready = 3};
	begin();
	replies[CKT_CONTROL_LIST].answer = list;
	replies[CKT_CONTROL_JOBS] =
		(struct reply){(xdrproc_t)xdr_ckt_control_jobs_res, &jobs, NULL};
	replies[CKT_CONTROL_OWNERS] =
		(struct reply){(xdrproc_t)xdr_ckt_control_owners_res, &owners, NULL};
	replies[CKT_CONTROL_CONNECTIONS] =
		(struct reply){(xdrproc_t)xdr_ckt_control_connections_res, &connections, NULL};
	replies[CKT_CONTROL_WARM] =
		(struct reply){(xdrproc_t)xdr_ckt_control_warm_res, &warm, NULL};
	replies[CKT_CONTROL_TURNS] =
		(struct reply){(xdrproc_t)xdr_ckt_control_turns_res, &turns, NULL};
	replies[CKT_CONTROL_WATCH] =
		(struct reply){(xdrproc_t)xdr_ckt_control_watch_res, &watched, NULL};
	IS(run(ckt_ctl_ps, (struct ckt_ctl_args){.json = true}, NULL), CKT_EXIT_DONE);
	json_t *json = json_loads(out, 0, NULL), *array = json_object_get(json, "sessions"),
	       *first = json_array_get(array, 0);
	IS(json_object_size(json), 2);
	IS(json_integer_value(json_object_get(json, "warm")), 3);
	IS(json_array_size(array), 2);
	IS(json_object_size(first), COUNT(keys));
	for (size_t i = 0; i < COUNT(keys); i++)
		CU_ASSERT_PTR_NOT_NULL(json_object_get(first, keys[i]));
	TEXT(json_string_value(json_object_get(first, "note")), "a note");
	/* Only where there is one. */
	IS(json_object_size(json_array_get(array, 1)), COUNT(keys) - 1);
	TEXT(json_string_value(json_object_get(first, "session")), "0123456789ab");
	TEXT(json_string_value(json_object_get(first, "state")), "running");
	TEXT(json_string_value(json_object_get(first, "started")), "1970-01-01T00:00:00Z");
	IS(json_integer_value(json_object_get(first, "memory_bytes")), 1536);
	TEXT(json_string_value(json_object_get(first, "job")), "mine");
	YES(json_is_null(json_object_get(json_array_get(array, 1), "job")));
	TEXT(json_string_value(json_object_get(first, "owner")), "token:alice");
	TEXT(json_string_value(json_object_get(first, "project")), "vision");
	TEXT(json_string_value(json_object_get(first, "transport")), "tcp");
	IS(json_integer_value(json_object_get(first, "lanes")), 4);
	YES(json_is_null(json_object_get(json_array_get(array, 1), "transport")));
	YES(json_is_null(json_object_get(json_array_get(array, 1), "lanes")));
	const json_t *array_of_sessions = array;
	array = json_object_get(first, "turns");
	IS(json_array_size(array), 1);
	TEXT(json_string_value(json_object_get(json_array_get(array, 0), "state")), "overdue");
	TEXT(json_string_value(json_object_get(json_array_get(array, 0), "class")), "best-effort");
	IS(json_integer_value(json_object_get(json_array_get(array, 0), "used_us")), 1500000);
	YES(json_real_value(json_object_get(first, "share_percent")) == 30.5);
	IS(json_integer_value(json_object_get(first, "swapped_bytes")), 3 << 20);
	IS(json_integer_value(json_object_get(first, "waiting_ms")), 40);
	YES(json_is_null(json_object_get(first, "switches")));
	YES(json_is_null(json_object_get(json_array_get(array_of_sessions, 1), "waiting_ms")));
	/* It does not tell who answered. */
	YES(json_is_null(json_object_get(first, "answered")));
	json_decref(json);
	IS(seen_count, 19);
	/* An older server ends that connection. */
	replies[CKT_CONTROL_WARM].answer = hang_up;
	IS(run(ckt_ctl_ps, (struct ckt_ctl_args){.json = true}, NULL), CKT_EXIT_DONE);
	HAS(out, "\"warm\": null");
}

static void test_answered(void)
{
	begin();
	replies[CKT_CONTROL_LIST2] =
		(struct reply){(xdrproc_t)xdr_ckt_control_list2_res, &both, NULL};
	sessions[1].state = CKT_STATE_DETACHED;
	IS(run(ckt_ctl_ps, (struct ckt_ctl_args){.json = true}, NULL), CKT_EXIT_DONE);
	json_t *json = json_loads(out, 0, NULL), *array = json_object_get(json, "sessions"),
	       *second = json_array_get(array, 1);
	YES(json_is_true(json_object_get(json_array_get(array, 0), "answered")));
	YES(json_is_false(json_object_get(second, "answered")));
	TEXT(json_string_value(json_object_get(second, "state")), "detached");
	json_decref(json);
	IS(run(ckt_ctl_ps, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_DONE);
	HAS(out, "  running   ");
	HAS(out, "  detached? ");
	sessions[1].state = 99;
}

static void test_text(void)
{
	begin();
	replies[CKT_CONTROL_LIST].answer = list;
	/* An older server knows nothing of jobs, and ends that connection. */
	replies[CKT_CONTROL_JOBS].answer = hang_up;
	replies[CKT_CONTROL_OWNERS].answer = hang_up;
	replies[CKT_CONTROL_CONNECTIONS].answer = hang_up;
	replies[CKT_CONTROL_TURNS] =
		(struct reply){(xdrproc_t)xdr_ckt_control_turns_res, &turns, NULL};
	IS(run(ckt_ctl_ps, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_DONE);
	HAS(out,
		"GPU 2 in turns: overdue, weight 30.5%, cap 40%, class best-effort, priority -3, used 1.5 s in 7 turns");
	HAS(out, "fffffffffff0");
	HAS(out, "  -       uid:0");
	replies[CKT_CONTROL_CONNECTIONS] =
		(struct reply){(xdrproc_t)xdr_ckt_control_connections_res, &connections, NULL};
	replies[CKT_CONTROL_JOBS] =
		(struct reply){(xdrproc_t)xdr_ckt_control_jobs_res, &jobs, NULL};
	IS(run(ckt_ctl_ps, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_DONE);
	HAS(out, "  mine\n");
	HAS(out, "  tcp+4   uid:0");
	HAS(out, "SESSION");
	HAS(out, "0123456789ab");
	HAS(out, "fffffffffff0");
	HAS(out, "1.5 KiB");
	HAS(out, "uid:0");
	HAS(out, "note: a note");
	CU_ASSERT_PTR_NULL(strchr(out, '\033'));
	IS(run(ckt_ctl_ps, (struct ckt_ctl_args){.server = "unix:/nowhere", .json = true}, NULL),
		CKT_EXIT_NO_SERVER);
	TEXT(out, "");
}

static unsigned asked_for;

/* The same session over and over. */
static bool endless(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_list_res res = {.sessions = {1, sessions}, .more = true};
	(void)args, (void)fd;
	asked_for++;
	*ret_xdr = (xdrproc_t)xdr_ckt_control_list_res;
	*ret_res = &res;
	return true;
}

/* Another session each time; the numbers rise, as those of a real list do. */
static bool infinite(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static char id[CKT_SESSION_ID_SIZE + 1];
	static ckt_control_session one = {.session = id,
		.program_name = (char *)"",
		.client = (char *)"",
		.note = (char *)""};
	static ckt_control_list_res res = {.sessions = {1, &one}, .more = true};
	(void)args, (void)fd;
	snprintf(id, sizeof id, "%012x", asked_for++);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_list_res;
	*ret_res = &res;
	return true;
}

static void test_endless(void)
{
	static ckt_control_jobs_res more_jobs = {.sessions = {1, &job}, .more = true};
	static ckt_control_turns_res more_turns = {.turns = {1, &turn}, .more = true};
	begin();
	asked_for = 0;
	replies[CKT_CONTROL_LIST].answer = endless;
	replies[CKT_CONTROL_JOBS] =
		(struct reply){(xdrproc_t)xdr_ckt_control_jobs_res, &more_jobs, NULL};
	replies[CKT_CONTROL_TURNS] =
		(struct reply){(xdrproc_t)xdr_ckt_control_turns_res, &more_turns, NULL};
	IS(run(ckt_ctl_ps, (struct ckt_ctl_args){.json = true}, NULL), CKT_EXIT_NO_SERVER);
	HAS(err, "never ends");
	TEXT(out, "");
	IS(asked_for, 2);
	begin();
	asked_for = 0;
	replies[CKT_CONTROL_LIST].answer = infinite;
	IS(run(ckt_ctl_ps, (struct ckt_ctl_args){.json = true}, NULL), CKT_EXIT_NO_SERVER);
	HAS(err, "never ends");
	IS(asked_for, CKT_CTL_PAGES_MAX);
}

UNIT_SUITE(ps, {"json", test_json}, {"answered", test_answered}, {"text", test_text},
	{"endless", test_endless})
