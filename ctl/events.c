/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl events [--follow]: what happened to sessions, and with --follow what happens from now
 * on.
 */
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/session.h"

enum { ANSWER_MS = 300 };

/* owner: empty texts where the server does not say whose it is. */
static int print_event(const struct ckt_ctl_args *args, const ckt_control_event *event,
	const ckt_control_owner *owner)
{
	char when[64], program[CKT_NAME_MAX + 1], detail[CKT_MESSAGE_MAX + 1], clean_owner[80];
	ckt_ctl_time_text(event->when, when, sizeof when);
	if (!args->json) {
		printf("%s  %-12s  %-10s  %-16s  %s%s%s\n", when, event->session, event->name,
			*owner->name ? ckt_ctl_clean(owner->name, clean_owner, sizeof clean_owner)
				     : "-",
			ckt_ctl_clean(event->program_name, program, sizeof program),
			*event->detail ? ": " : "",
			ckt_ctl_clean(event->detail, detail, sizeof detail));
		return ckt_ctl_flush();
	}
	/* One line each, so that a reader need not know where one ends. */
	json_t *object = json_pack("{s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "number",
		(json_int_t)event->number, "when", when, "event", ckt_ctl_json_text(event->name),
		"session", ckt_ctl_json_text(event->session), "program",
		ckt_ctl_json_text(event->program_name), "owner",
		*owner->name ? ckt_ctl_json_text(owner->name) : json_null(), "project",
		*owner->project ? ckt_ctl_json_text(owner->project) : json_null(), "detail",
		ckt_ctl_json_text(event->detail));
	int failed = json_dumpf(object, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(object);
	putchar('\n');
	return failed ? CKT_EXIT_REFUSED : ckt_ctl_flush();
}

/* Follows the events of one server. */
struct follower {
	const struct ckt_ctl_args *args;
	struct ckt_ctl_server server;
	bool plain; /* the server is of an earlier version, which does not tell owners */
	uint64_t after;
};

/* 0 or -errno of the call; *ret_status: of printing. */
static int follow_plain(struct follower *follower, int64_t deadline_ms, int *ret_status)
{
	static const ckt_control_owner nobody = {.name = (char *)"", .project = (char *)""};
	ckt_control_events_args call = {.after = follower->after};
	ckt_control_events_res res = {0};
	int result = ckt_net_call(follower->server.fd, CRICKET_CONTROL_PROG, CKT_CONTROL_EVENTS,
		(xdrproc_t)xdr_ckt_control_events_args, &call,
		(xdrproc_t)xdr_ckt_control_events_res, &res, deadline_ms, -1);
	for (u_int i = 0; !result && i < res.events.events_len && *ret_status == CKT_EXIT_DONE; i++)
		*ret_status = print_event(follower->args, &res.events.events_val[i], &nobody);
	if (!result)
		follower->after = res.last;
	xdr_free((xdrproc_t)xdr_ckt_control_events_res, (char *)&res);
	return result;
}

static int follow_owned(struct follower *follower, int64_t deadline_ms, int *ret_status)
{
	ckt_control_events_args call = {.after = follower->after};
	ckt_control_owned_events_res res = {0};
	int result = ckt_net_call(follower->server.fd, CRICKET_CONTROL_PROG,
		CKT_CONTROL_OWNED_EVENTS, (xdrproc_t)xdr_ckt_control_events_args, &call,
		(xdrproc_t)xdr_ckt_control_owned_events_res, &res, deadline_ms, -1);
	for (u_int i = 0; !result && i < res.events.events_len && *ret_status == CKT_EXIT_DONE; i++)
		*ret_status = print_event(follower->args, &res.events.events_val[i].event,
			&res.events.events_val[i].owner);
	if (!result)
		follower->after = res.last;
	xdr_free((xdrproc_t)xdr_ckt_control_owned_events_res, (char *)&res);
	return result;
}

/* A server that does not know the call ends the connection. */
static int follow(struct follower *follower, int64_t deadline_ms, int *ret_status)
{
	int result = follower->plain ? follow_plain(follower, deadline_ms, ret_status)
				     : follow_owned(follower, deadline_ms, ret_status);
	if (!result || result == -ETIMEDOUT || follower->plain || follower->after)
		return result;
	ckt_ctl_disconnect(&follower->server);
	follower->plain = true;
	*ret_status = ckt_ctl_connect(follower->args, &follower->server);
	return *ret_status == CKT_EXIT_DONE ? follow_plain(follower, deadline_ms, ret_status) : 0;
}

/* Existing events arrive at once; if the server waits, there are none. */
int ckt_ctl_events(const struct ckt_ctl_args *args)
{
	struct follower follower = {.args = args};
	int status = ckt_ctl_connect(args, &follower.server);
	if (status != CKT_EXIT_DONE)
		return status;
	while (status == CKT_EXIT_DONE) {
		int result = follow(
			&follower, args->follow ? -1 : ckt_net_now_ms() + ANSWER_MS, &status);
		if (!args->follow && result == -ETIMEDOUT)
			break;
		if (result) {
			fprintf(stderr, "cricketctl: the server at %s does not answer: %s\n",
				follower.server.address, strerror(-result));
			status = CKT_EXIT_NO_SERVER;
		}
	}
	ckt_ctl_disconnect(&follower.server);
	return status;
}
