/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/events.c: cricketctl events: what there is at once, a line each; with --follow until the
 * server is gone.
 */
#include <jansson.h>
#include <rpc/rpc.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/wire.h"

static unsigned pages;

static bool events(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_event list[2] = {{.number = 5,
						    .when = 0,
						    .name = (char *)"started",
						    .session = (char *)"0123456789ab",
						    .program_name = (char *)"p",
						    .detail = (char *)""},
		{.number = 6,
			.when = 60,
			.name = (char *)"saved",
			.session = (char *)"0123456789ab",
			.program_name = (char *)"p\033",
			.detail = (char *)"7 bytes"}};
	static ckt_control_events_res res;
	ckt_control_events_args asked = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_events_args, &asked) == 0);
	IS(asked.after, pages == 0 ? 0 : 4 + pages);
	/* After the second page the server ends. */
	if (pages == 2)
		return false;
	res = (ckt_control_events_res){.events = {1, &list[pages]}, .last = 5 + pages};
	pages++;
	*ret_xdr = (xdrproc_t)xdr_ckt_control_events_res;
	*ret_res = &res;
	return true;
}

static bool hang_up(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	(void)args, (void)fd, (void)ret_xdr, (void)ret_res;
	return false;
}

/* A server that tells owners; one event, then nobody answers. */
static bool owned(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_owned_event event = {.event = {.number = 5,
							.name = (char *)"started",
							.session = (char *)"0123456789ab",
							.program_name = (char *)"p",
							.detail = (char *)""},
		.owner = {(char *)"token:alice", (char *)"vision"}};
	static ckt_control_owned_events_res res = {.events = {1, &event}, .last = 5};
	(void)args, (void)fd;
	*ret_xdr = (xdrproc_t)xdr_ckt_control_owned_events_res;
	*ret_res = &res;
	return pages++ == 0;
}

static void test_owners(void)
{
	for (int json = 0; json < 2; json++) {
		begin();
		pages = 0;
		replies[CKT_CONTROL_OWNED_EVENTS].answer = owned;
		IS(run(ckt_ctl_events, (struct ckt_ctl_args){.follow = true, .json = json}, NULL),
			CKT_EXIT_NO_SERVER);
		HAS(out, "token:alice");
		if (json)
			HAS(out, "\"project\":\"vision\"");
		/* It is known by then, and not asked as an older one; facts were asked for first. */
		IS(seen_count, 3);
	}
}

/* A page with a decision, a piece of memory and a candidate; some events were missed before. */
static bool facts(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_candidate candidate = {.request = 7,
		.session = (char *)"0123456789ab",
		.job = (char *)"train",
		.bytes = 4096};
	static ckt_control_fact list[2] = {
		{.event = {5, 0, (char *)"leased", (char *)"0123456789ab", (char *)"p", (char *)""},
			.owner = {(char *)"", (char *)""},
			.job = (char *)"",
			.reason = (char *)"",
			.gpu = -1},
		{.event = {6, 0, (char *)"choose", (char *)"", (char *)"", (char *)"so\033many"},
			.owner = {(char *)"", (char *)""},
			.job = (char *)"",
			.reason = (char *)"why",
			.gpu = 2,
			.candidates = {1, &candidate}}};
	static ckt_control_facts_res res = {.facts = {2, list}, .last = 6, .lost = 12};
	ckt_control_events_args asked = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_events_args, &asked) == 0);
	IS(asked.after, pages ? 6 : 0);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_facts_res;
	*ret_res = &res;
	return pages++ == 0;
}

static void test_facts(void)
{
	begin();
	pages = 0;
	replies[CKT_CONTROL_FACTS].answer = facts;
	IS(run(ckt_ctl_events, (struct ckt_ctl_args){.follow = true}, NULL), CKT_EXIT_NO_SERVER);
	HAS(err, "12 events were missed");
	HAS(out, "choose");
	CU_ASSERT_PTR_NULL(strstr(out, "leased"));
	CU_ASSERT_PTR_NULL(strchr(out, '\033'));
	begin();
	pages = 0;
	replies[CKT_CONTROL_FACTS].answer = facts;
	IS(run(ckt_ctl_events, (struct ckt_ctl_args){.follow = true, .json = true}, NULL),
		CKT_EXIT_NO_SERVER);
	HAS(out, "{\"event\":\"missed\",\"lost\":12}\n");
	HAS(out, "\"event\":\"leased\"");
	HAS(out, "\"gpu\":null");
	HAS(out, "\"reason\":\"why\",\"request\":0,\"gpu\":2");
	HAS(out, "\"candidates\":[{\"request\":7,\"session\":\"0123456789ab\",\"job\":\"train\"");
}

static void test_events(void)
{
	for (int json = 0; json < 2; json++) {
		begin();
		pages = 0;
		replies[CKT_CONTROL_EVENTS].answer = events;
		/* A server of an earlier version. */
		replies[CKT_CONTROL_OWNED_EVENTS].answer = hang_up;
		IS(run(ckt_ctl_events, (struct ckt_ctl_args){.follow = true, .json = json}, NULL),
			CKT_EXIT_NO_SERVER);
		IS(pages, 2);
		IS(strlen(out) > 0 && out[strlen(out) - 1] == '\n', true);
		unsigned lines = 0;
		for (const char *p = out; *p; p++)
			lines += *p == '\n';
		IS(lines, 2);
		CU_ASSERT_PTR_NULL(strchr(out, '\033'));
		if (json) {
			json_t *first = json_loads(out, JSON_DISABLE_EOF_CHECK, NULL);
			TEXT(json_string_value(json_object_get(first, "event")), "started");
			IS(json_integer_value(json_object_get(first, "number")), 5);
			TEXT(json_string_value(json_object_get(first, "when")),
				"1970-01-01T00:00:00Z");
			json_decref(first);
		} else {
			HAS(out,
				"1970-01-01T00:01:00Z  0123456789ab  saved       -                 p");
			HAS(out, ": 7 bytes\n");
		}
	}
}

/* The server stands still for longer than anybody waits for a line; then it tells one, and ends. */
static bool slow_facts(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	if (!pages)
		usleep(700000);
	return facts(args, fd, ret_xdr, ret_res);
}

static void test_slow_server(void)
{
	static ckt_control_info_res info = {.build = (char *)"",
		.host = (char *)"",
		.driver = (char *)"",
		.socket = (char *)""};
	begin();
	pages = 0;
	replies[CKT_CONTROL_FACTS].answer = slow_facts;
	replies[CKT_CONTROL_INFO] =
		(struct reply){(xdrproc_t)xdr_ckt_control_info_res, &info, NULL};
	IS(run(ckt_ctl_events, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_NO_SERVER);
	HAS(out, "choose");
}

UNIT_SUITE(events, {"events", test_events}, {"owners", test_owners}, {"facts", test_facts},
	{"slow_server", test_slow_server})
