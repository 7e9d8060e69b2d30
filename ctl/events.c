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

/* Of no use to people: a line for each piece of memory.  Records (--json) have them. */
static bool is_for_records(const char *name)
{
	static const char *const names[] = {"came", "leased", "freed", "left"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static json_t *candidate_json(const ckt_control_candidate *candidate)
{
	return json_pack("{s:I, s:o, s:o, s:i, s:I, s:I, s:I, s:I, s:I, s:I}", "request",
		(json_int_t)candidate->request, "session", ckt_ctl_json_text(candidate->session),
		"job", *candidate->job ? ckt_ctl_json_text(candidate->job) : json_null(), "gpu",
		(int)candidate->gpu, "bytes", (json_int_t)candidate->bytes, "held_bytes",
		(json_int_t)candidate->held_bytes, "left_bytes", (json_int_t)candidate->left_bytes,
		"arrived", (json_int_t)candidate->arrived, "used", (json_int_t)candidate->used,
		"waited_ms", (json_int_t)candidate->waited_ms);
}

static void add_facts(json_t *object, const ckt_control_fact *fact)
{
	json_t *candidates = json_array();
	for (u_int i = 0; i < fact->candidates.candidates_len; i++)
		json_array_append_new(
			candidates, candidate_json(&fact->candidates.candidates_val[i]));
	json_t *more = json_pack("{s:I, s:o, s:o, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:o}", "at_ms",
		(json_int_t)fact->at_ms, "job",
		*fact->job ? ckt_ctl_json_text(fact->job) : json_null(), "reason",
		*fact->reason ? ckt_ctl_json_text(fact->reason) : json_null(), "request",
		(json_int_t)fact->request, "gpu",
		fact->gpu >= 0 ? json_integer(fact->gpu) : json_null(), "bytes",
		(json_int_t)fact->bytes, "budget_bytes", (json_int_t)fact->budget_bytes,
		"used_bytes", (json_int_t)fact->used_bytes, "waited_ms",
		(json_int_t)fact->waited_ms, "folded", (json_int_t)fact->folded, "candidates",
		candidates);
	json_object_update(object, more);
	json_decref(more);
}

/* One line each, so that a reader need not know where one ends. */
static int print_json(json_t *object)
{
	int failed = json_dumpf(object, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(object);
	putchar('\n');
	return failed ? CKT_EXIT_REFUSED : ckt_ctl_flush();
}

/* owner: empty texts where the server does not say whose it is; fact: NULL: nor more of it. */
static int print_event(const struct ckt_ctl_args *args, const ckt_control_event *event,
	const ckt_control_owner *owner, const ckt_control_fact *fact)
{
	char when[64], program[CKT_NAME_MAX + 1], detail[CKT_MESSAGE_MAX + 1], clean_owner[80];
	ckt_ctl_time_text(event->when, when, sizeof when);
	if (!args->json) {
		if (is_for_records(event->name))
			return CKT_EXIT_DONE;
		printf("%s  %-12s  %-10s  %-16s  %s%s%s\n", when, event->session, event->name,
			*owner->name ? ckt_ctl_clean(owner->name, clean_owner, sizeof clean_owner)
				     : "-",
			ckt_ctl_clean(event->program_name, program, sizeof program),
			*event->detail ? ": " : "",
			ckt_ctl_clean(event->detail, detail, sizeof detail));
		return ckt_ctl_flush();
	}
	json_t *object = json_pack("{s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "number",
		(json_int_t)event->number, "when", when, "event", ckt_ctl_json_text(event->name),
		"session", ckt_ctl_json_text(event->session), "program",
		ckt_ctl_json_text(event->program_name), "owner",
		*owner->name ? ckt_ctl_json_text(owner->name) : json_null(), "project",
		*owner->project ? ckt_ctl_json_text(owner->project) : json_null(), "detail",
		ckt_ctl_json_text(event->detail));
	if (fact)
		add_facts(object, fact);
	return print_json(object);
}

/* The server kept fewer events than happened since the last answer. */
static int print_missed(const struct ckt_ctl_args *args, uint64_t lost)
{
	if (args->json)
		return print_json(
			json_pack("{s:s, s:I}", "event", "missed", "lost", (json_int_t)lost));
	fprintf(stderr, "cricketctl: %llu events were missed: this follower reads too slowly\n",
		(unsigned long long)lost);
	return CKT_EXIT_DONE;
}

/* Follows the events of one server. */
struct follower {
	const struct ckt_ctl_args *args;
	struct ckt_ctl_server server;
	/* what the server, which may be of an earlier version, tells */
	enum { TELLS_FACTS, TELLS_OWNERS, TELLS_EVENTS } tells;
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
		*ret_status = print_event(follower->args, &res.events.events_val[i], &nobody, NULL);
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
			&res.events.events_val[i].owner, NULL);
	if (!result)
		follower->after = res.last;
	xdr_free((xdrproc_t)xdr_ckt_control_owned_events_res, (char *)&res);
	return result;
}

static int follow_facts(struct follower *follower, int64_t deadline_ms, int *ret_status)
{
	ckt_control_events_args call = {.after = follower->after};
	ckt_control_facts_res res = {0};
	int result = ckt_net_call(follower->server.fd, CRICKET_CONTROL_PROG, CKT_CONTROL_FACTS,
		(xdrproc_t)xdr_ckt_control_events_args, &call, (xdrproc_t)xdr_ckt_control_facts_res,
		&res, deadline_ms, -1);
	if (!result && res.lost)
		*ret_status = print_missed(follower->args, res.lost);
	for (u_int i = 0; !result && i < res.facts.facts_len && *ret_status == CKT_EXIT_DONE; i++)
		*ret_status = print_event(follower->args, &res.facts.facts_val[i].event,
			&res.facts.facts_val[i].owner, &res.facts.facts_val[i]);
	if (!result)
		follower->after = res.last;
	xdr_free((xdrproc_t)xdr_ckt_control_facts_res, (char *)&res);
	return result;
}

/* A server that does not know the call ends the connection. */
static int follow(struct follower *follower, int64_t deadline_ms, int *ret_status)
{
	static int (*const calls[])(struct follower *, int64_t, int *) = {
		follow_facts, follow_owned, follow_plain};
	for (;;) {
		int result = calls[follower->tells](follower, deadline_ms, ret_status);
		if (!result || result == -ETIMEDOUT || follower->tells == TELLS_EVENTS ||
			follower->after)
			return result;
		ckt_ctl_disconnect(&follower->server);
		follower->tells++;
		*ret_status = ckt_ctl_connect(follower->args, &follower->server);
		if (*ret_status != CKT_EXIT_DONE)
			return 0;
	}
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
