/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/trace.c: cricketctl trace: begins, reads and ends a trace. */
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"

static ckt_traced_call one = {.name = (char *)"memset", .kernel = (char *)""};
static ckt_control_trace_res res;
static unsigned reads;

/* The first read brings two pieces; the session ends with the third. */
static bool answer_read(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	(void)args, (void)fd;
	reads++;
	res = (ckt_control_trace_res){
		.result = {CKT_CONTROL_OK, (char *)""}, .more = reads == 1, .calls = {1, &one}};
	if (reads == 3)
		res = (ckt_control_trace_res){
			.result = {CKT_CONTROL_NO_SESSION, (char *)"there is no session"}};
	*ret_xdr = (xdrproc_t)xdr_ckt_control_trace_res;
	*ret_res = &res;
	return true;
}

static bool answer_start(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_trace_res started;
	(void)args, (void)fd;
	started = (ckt_control_trace_res){
		.result = {CKT_CONTROL_OK, (char *)""}, .trace = 77, .dropped = 3};
	*ret_xdr = (xdrproc_t)xdr_ckt_control_trace_res;
	*ret_res = &started;
	return true;
}

static size_t records_in(const char *path)
{
	json_t *list = json_load_file(path, 0, NULL);
	size_t size = json_array_size(list);
	json_decref(list);
	return size;
}

static void test_session_ends(void)
{
	const char *path = path_in("t.json");
	begin();
	reads = 0;
	replies[CKT_CONTROL_TRACE] = (struct reply){.answer = answer_start};
	replies[CKT_CONTROL_TRACE_READ] = (struct reply){.answer = answer_read};
	IS(run(ckt_ctl_trace, (struct ckt_ctl_args){.output = path, .gpu_time = true}, "0123",
		   NULL),
		CKT_EXIT_DONE);
	HAS(out, "2 records in");
	HAS(err, "the trace ends here: there is no session");
	IS(records_in(path), 2 + 2 + 1);
	calls_are((const uint32_t[]){CKT_CONTROL_TRACE, CKT_CONTROL_TRACE_READ,
			  CKT_CONTROL_TRACE_READ, CKT_CONTROL_TRACE_READ},
		4);
	ckt_control_trace_args args = {0};
	YES(decode(0, (xdrproc_t)xdr_ckt_control_trace_args, &args));
	IS(args.action, CKT_TRACE_ACTION_START);
	YES(args.gpu_time);
	xdr_free((xdrproc_t)xdr_ckt_control_trace_args, (char *)&args);
	memset(&args, 0, sizeof args);
	YES(decode(1, (xdrproc_t)xdr_ckt_control_trace_args, &args));
	IS(args.trace, 77);
	xdr_free((xdrproc_t)xdr_ckt_control_trace_args, (char *)&args);
}

static void test_refused(void)
{
	static ckt_control_trace_res refused = {
		.result = {CKT_CONTROL_REFUSED, (char *)"being traced already"}};
	const char *path = path_in("refused.json");
	begin();
	replies[CKT_CONTROL_TRACE] =
		(struct reply){(xdrproc_t)xdr_ckt_control_trace_res, &refused, NULL};
	IS(run(ckt_ctl_trace, (struct ckt_ctl_args){.output = path}, "0123", NULL),
		CKT_EXIT_REFUSED);
	HAS(err, "being traced already");
	NO(exists(path));
	IS(run(ckt_ctl_trace, (struct ckt_ctl_args){0}, "0123", NULL), CKT_EXIT_USAGE);
	HAS(err, "-o FILE");
	IS(run(ckt_ctl_trace, (struct ckt_ctl_args){.output = path, .seconds = "0"}, "0123", NULL),
		CKT_EXIT_USAGE);
	IS(run(ckt_ctl_trace, (struct ckt_ctl_args){.output = path, .seconds = "1s"}, "0123", NULL),
		CKT_EXIT_USAGE);
	IS(run(ckt_ctl_trace, (struct ckt_ctl_args){.output = path_in("no/t")}, "0123", NULL),
		CKT_EXIT_REFUSED);
	HAS(err, "No such file or directory");
}

UNIT_SUITE(trace, {"the session ends", test_session_ends}, {"refused", test_refused})
