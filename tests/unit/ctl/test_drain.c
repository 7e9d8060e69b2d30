/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/drain/: what moves together, where each goes, what becomes of what cannot, and what is said.
 * Moves are a shell script's, which decides by the name of the session.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/command.h"
#include "ctl/drain/drain.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/worker.h"

/* The server's; sessions with a file of their name in the directory are gone. */
static struct {
	const char *id, *job;
	unsigned state, owner;
} have[8];
static unsigned have_count, begins, stops;
static bool draining;

static const char script[] =
	"#!/bin/sh\n"
	"cd '%s' || exit 9\n"
	"echo \"$*\" >>log\n"
	"while [ $# -gt 0 ]; do case $1 in\n"
	"	migrate|checkpoint) how=$1;;\n"
	"	aaa*|one) id=$1;;\n"
	"esac; shift; done\n"
	"case $how.$id in\n"
	"	migrate.aaa000000002) printf 'cricketctl: it\\033 holds a socket\\n' >&2; echo 'cricketctl: so no' >&2; exit 1;;\n"
	"	migrate.aaa000000003) kill -9 $$;;\n"
	"	migrate.aaa000000004) >aaa000000004; exit 4;;\n"
	"	checkpoint.aaa000000003) exit 7;;\n"
	"esac\n"
	"[ $id = one ] && >aaa000000005 && id=aaa000000006\n"
	">$id\n";

static bool is_gone(const char *id)
{
	return exists(path_in(id));
}

static bool list(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_session sessions[COUNT(have)];
	static ckt_control_list_res res;
	(void)args, (void)fd;
	res = (ckt_control_list_res){.sessions = {0, sessions}};
	for (unsigned i = 0; i < have_count; i++)
		if (!is_gone(have[i].id))
			sessions[res.sessions.sessions_len++] =
				(ckt_control_session){.session = (char *)have[i].id,
					.program_name = (char *)"p\x1b",
					.client = (char *)"",
					.note = (char *)"",
					.uid = have[i].owner,
					.state = have[i].state};
	*ret_xdr = (xdrproc_t)xdr_ckt_control_list_res;
	*ret_res = &res;
	return true;
}

/* One that is "starting" has not answered. */
static bool list2(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static bool_t answered[COUNT(have)];
	static ckt_control_list2_res res;
	list(args, fd, ret_xdr, ret_res);
	const ckt_control_list_res *listed = *ret_res;
	res = (ckt_control_list2_res){
		.list = *listed, .answered = {listed->sessions.sessions_len, answered}};
	for (u_int i = 0; i < listed->sessions.sessions_len; i++)
		answered[i] = listed->sessions.sessions_val[i].state != CKT_STATE_STARTING;
	*ret_xdr = (xdrproc_t)xdr_ckt_control_list2_res;
	*ret_res = &res;
	return true;
}

static bool jobs(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_job sessions[COUNT(have)];
	static ckt_control_jobs_res res;
	(void)args, (void)fd;
	res = (ckt_control_jobs_res){.sessions = {0, sessions}};
	for (unsigned i = 0; i < have_count; i++)
		if (have[i].job)
			sessions[res.sessions.sessions_len++] =
				(ckt_control_job){(char *)have[i].id, (char *)have[i].job};
	*ret_xdr = (xdrproc_t)xdr_ckt_control_jobs_res;
	*ret_res = &res;
	return true;
}

static bool drain(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_drain_res res;
	ckt_control_drain_args call = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_drain_args, &call) == 0);
	begins += call.way == CKT_CONTROL_DRAIN_ON;
	stops += call.way == CKT_CONTROL_DRAIN_STOP;
	/* As the target's, it never drains. */
	res = (ckt_control_drain_res){.result = {.message = (char *)""},
		.draining = draining && call.way != CKT_CONTROL_DRAIN_OFF,
		.since = 5,
		.to = (char *)"b"};
	xdr_free((xdrproc_t)xdr_ckt_control_drain_args, (char *)&call);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_drain_res;
	*ret_res = &res;
	return true;
}

static void prepare(void)
{
	static ckt_control_gpu gpu = {.name = (char *)"g", .memory_bytes = 1 << 30};
	static ckt_control_info_res info = {.build = (char *)"1",
		.host = (char *)"h",
		.driver = (char *)"d",
		.socket = (char *)"s",
		.gpus = {1, &gpu}};
	static char program[200], text[2000];
	begin();
	snprintf(program, sizeof program, "%s", path_in("move"));
	snprintf(text, sizeof text, script, directory);
	write_file(program, text);
	chmod(program, 0700);
	ckt_ctl_drain_program = program;
	replies[CKT_CONTROL_INFO].xdr = (xdrproc_t)xdr_ckt_control_info_res;
	replies[CKT_CONTROL_INFO].res = &info;
	replies[CKT_CONTROL_LIST].answer = list;
	replies[CKT_CONTROL_JOBS].answer = jobs;
	replies[CKT_CONTROL_DRAIN].answer = drain;
	for (unsigned i = 0; i < 10; i++) {
		char name[32];
		snprintf(name, sizeof name, "aaa00000000%u", i);
		remove(path_in(name));
	}
	remove(path_in("log"));
	have_count = begins = stops = 0;
	draining = false;
}

static void add(const char *id, const char *job, unsigned state)
{
	have[have_count].id = id;
	have[have_count].job = job;
	have[have_count].owner = 1000;
	have[have_count++].state = state;
}

static void test_moved(void)
{
	prepare();
	add("aaa000000001", NULL, CKT_STATE_RUNNING);
	add("aaa000000004", NULL, CKT_STATE_RUNNING);
	add("aaa000000005", "one", CKT_STATE_RUNNING);
	add("aaa000000006", "one", CKT_STATE_RUNNING);
	add("aaa000000007", "alone", CKT_STATE_PAUSED);
	IS(run(ckt_ctl_drain, (struct ckt_ctl_args){.to = address, .stop = true}, NULL),
		CKT_EXIT_DONE);
	HAS(out, "session aaa000000001 (p?): moved to ");
	HAS(out, "session aaa000000004 (p?): ended\n");
	HAS(out, "job one (p?): moved to ");
	HAS(out, "session aaa000000007 (p?): moved to ");
	HAS(out, "the server is drained: 0 sessions left, and it ends\n");
	IS(begins, 1);
	IS(stops, 1);
	HAS(read_file(path_in("log")), "migrate --job one --to ");
	HAS(read_file(path_in("log")), "migrate aaa000000007 --to ");
}

static void test_stay(void)
{
	prepare();
	add("aaa000000002", NULL, CKT_STATE_RUNNING);
	add("aaa000000003", NULL, CKT_STATE_RUNNING);
	IS(run(ckt_ctl_drain, (struct ckt_ctl_args){.to = address, .stop = true}, NULL), 12);
	HAS(out, "session aaa000000002 (p?): stays: it? holds a socket\n");
	HAS(out, "session aaa000000003 (p?): stays: its cricketctl was ended by signal 9\n");
	HAS(out, "2 sessions left\n");
	IS(stops, 0);
	/* Saved, where that works. */
	IS(run(ckt_ctl_drain,
		   (struct ckt_ctl_args){
			   .to = address, .save = directory, .jobs = "1", .json = true},
		   NULL),
		11);
	json_t *json = json_loads(out, 0, NULL);
	json_t *units = json_object_get(json, "units");
	IS(json_integer_value(json_object_get(json, "left")), 1);
	TEXT(json_string_value(json_object_get(json_array_get(units, 0), "outcome")), "saved");
	TEXT(json_string_value(json_object_get(json_array_get(units, 1), "outcome")), "stays");
	TEXT(json_string_value(json_object_get(json_array_get(units, 1), "reason")),
		"its cricketctl ended with status 7");
	json_decref(json);
	/* A program that is not there; no server that would have them. */
	remove(path_in("aaa000000002"));
	ckt_ctl_drain_program = "/nowhere/cricketctl";
	IS(run(ckt_ctl_drain, (struct ckt_ctl_args){.to = address}, NULL), 12);
	HAS(out, "stays: its cricketctl ended with status 127");
	draining = true;
	IS(run(ckt_ctl_drain, (struct ckt_ctl_args){.to = address}, NULL), 12);
	HAS(out, "stays: none of the servers of --to can take it now");
	IS(run(ckt_ctl_drain, (struct ckt_ctl_args){0}, NULL), 12);
	HAS(out, "stays: no other server is named");
}

/* What is asked to move one whose worker does not answer says why it stays, or moves it. */
static void test_silent(void)
{
	prepare();
	replies[CKT_CONTROL_LIST2].answer = list2;
	add("aaa000000001", NULL, CKT_STATE_STARTING);
	add("aaa000000002", NULL, CKT_STATE_STARTING);
	IS(run(ckt_ctl_drain, (struct ckt_ctl_args){.to = address}, NULL), 11);
	HAS(out, "session aaa000000001 (p?): moved to ");
	HAS(out, "session aaa000000002 (p?): stays: it? holds a socket\n");
}

static void test_usage(void)
{
	static const struct ckt_ctl_args cases[] = {{.jobs = "0"}, {.jobs = "65"}, {.jobs = "4x"},
		{.to = "a,"}, {.to = "file:/x"}, {.undo = true, .stop = true},
		{.to = "a,b", .client_address = "c"}, {.deadline = "-1"},
		{.to = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		prepare();
		IS(run(ckt_ctl_drain, cases[i], NULL), CKT_EXIT_USAGE);
		IS(seen_count, 0);
	}
}

UNIT_SUITE(drain, {"moved", test_moved}, {"stay", test_stay}, {"silent", test_silent},
	{"usage", test_usage})
