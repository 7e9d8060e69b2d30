/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/top/top_sample.c: pages of sessions, rates, a server that lies about its pages, one that goes
 * away.
 */
#include "ctl/top/top_sample.h"

#include <string.h>

#include "inside.h"

static ckt_control_watched one = {.session = {.session = (char *)"",
					  .program_name = (char *)"p",
					  .client = (char *)"",
					  .note = (char *)"",
					  .worker_pid = 5},
	.owner = {(char *)"", (char *)""},
	.job = (char *)"",
	.transport = (char *)"unix"};
static unsigned pages;

/* Two pages of a session each, or the same page again and again. */
static bool list(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_watch_res res;
	ckt_control_list_args asked = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_list_args, &asked) == 0);
	one.session.session =
		(char *)(*asked.after && pages == 2 ? "b00000000000" : "a00000000000");
	res = (ckt_control_watch_res){.sessions = {1, &one}, .more = pages != 2 || !*asked.after};
	xdr_free((xdrproc_t)xdr_ckt_control_list_args, (char *)&asked);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_watch_res;
	*ret_res = &res;
	return true;
}

static void test_pages(void)
{
	struct ckt_ctl_args args = {.server = address};
	struct ckt_top_source source;
	struct ckt_top_sample sample;
	begin();
	replies[CKT_CONTROL_WATCH].answer = list;
	pages = 2;
	MUST(ckt_ctl_top_open(&args, &source), CKT_EXIT_DONE);
	IS(ckt_ctl_top_read(&source, NULL, &sample), CKT_EXIT_DONE);
	MUST(sample.count, 2);
	TEXT(sample.list[1].session, "b00000000000");
	ckt_ctl_top_free(&sample);
	/* A server that never comes to the end is not followed. */
	pages = 1;
	IS(ckt_ctl_top_read(&source, NULL, &sample), CKT_EXIT_DONE);
	IS(sample.count, 2);
	ckt_ctl_top_free(&sample);
	ckt_ctl_top_close(&source);
}

static void test_rates(void)
{
	struct ckt_ctl_args args = {.server = address};
	struct ckt_top_source source;
	struct ckt_top_session then = {
		.session = "a00000000000", .counted = true, .worker_pid = 5, .calls = 100};
	struct ckt_top_sample before = {.list = &then, .count = 1}, sample;
	begin();
	replies[CKT_CONTROL_WATCH].answer = list;
	pages = 2;
	one.calls = 300;
	one.received_bytes = one.sent_bytes = 50;
	MUST(ckt_ctl_top_open(&args, &source), CKT_EXIT_DONE);
	IS(ckt_ctl_top_read(&source, &before, &sample), CKT_EXIT_DONE);
	YES(sample.list[0].rated);
	YES(sample.list[0].calls_rate > 0);
	NO(sample.list[1].rated);
	ckt_ctl_top_free(&sample);
	/* A new worker counts from 0, and so does one with fewer calls than before. */
	then.worker_pid = 6;
	IS(ckt_ctl_top_read(&source, &before, &sample), CKT_EXIT_DONE);
	NO(sample.list[0].rated);
	ckt_ctl_top_free(&sample);
	then.worker_pid = 5;
	then.calls = 301;
	IS(ckt_ctl_top_read(&source, &before, &sample), CKT_EXIT_DONE);
	NO(sample.list[0].rated);
	ckt_ctl_top_free(&sample);
	ckt_ctl_top_close(&source);
}

static bool hang_up(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	(void)args, (void)fd, (void)ret_xdr, (void)ret_res;
	return false;
}

static void test_gone(void)
{
	struct ckt_ctl_args args = {.server = address};
	struct ckt_top_source source;
	struct ckt_top_sample sample;
	begin();
	replies[CKT_CONTROL_WATCH].answer = hang_up;
	MUST(ckt_ctl_top_open(&args, &source), CKT_EXIT_DONE);
	IS(ckt_ctl_top_read(&source, NULL, &sample), CKT_EXIT_NO_SERVER);
	HAS(sample.problem, "does not answer");
	ckt_ctl_top_free(&sample);
	/* It connects again. */
	replies[CKT_CONTROL_WATCH].answer = list;
	pages = 2;
	IS(ckt_ctl_top_read(&source, NULL, &sample), CKT_EXIT_DONE);
	IS(sample.count, 2);
	ckt_ctl_top_free(&sample);
	ckt_ctl_disconnect(&source.server);
	strcpy(source.address, "unix:/nowhere");
	IS(ckt_ctl_top_read(&source, NULL, &sample), CKT_EXIT_NO_SERVER);
	HAS(sample.problem, "/nowhere");
	ckt_ctl_top_free(&sample);
}

UNIT_SUITE(top_sample, {"pages", test_pages}, {"rates", test_rates}, {"gone", test_gone})
