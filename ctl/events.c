/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl events [--follow]: what happened to sessions, and with --follow what happens from now
 * on.
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/session.h"

/* LATE_MS: between the answers over two connections, which a network may delay differently. */
enum { TIMEOUT_MS = 15000, SOON_MS = 50, LATE_MS = 250 };

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

/* An answer to any of them. */
union page {
	ckt_control_facts_res facts;
	ckt_control_owned_events_res owned;
	ckt_control_events_res plain;
};

static int print_facts(struct follower *follower, const union page *page)
{
	const ckt_control_facts_res *res = &page->facts;
	int status = res->lost ? print_missed(follower->args, res->lost) : CKT_EXIT_DONE;
	for (u_int i = 0; i < res->facts.facts_len && status == CKT_EXIT_DONE; i++)
		status = print_event(follower->args, &res->facts.facts_val[i].event,
			&res->facts.facts_val[i].owner, &res->facts.facts_val[i]);
	follower->after = res->last;
	return status;
}

static int print_owned(struct follower *follower, const union page *page)
{
	const ckt_control_owned_events_res *res = &page->owned;
	int status = CKT_EXIT_DONE;
	for (u_int i = 0; i < res->events.events_len && status == CKT_EXIT_DONE; i++)
		status = print_event(follower->args, &res->events.events_val[i].event,
			&res->events.events_val[i].owner, NULL);
	follower->after = res->last;
	return status;
}

static int print_plain(struct follower *follower, const union page *page)
{
	static const ckt_control_owner nobody = {.name = (char *)"", .project = (char *)""};
	const ckt_control_events_res *res = &page->plain;
	int status = CKT_EXIT_DONE;
	for (u_int i = 0; i < res->events.events_len && status == CKT_EXIT_DONE; i++)
		status = print_event(follower->args, &res->events.events_val[i], &nobody, NULL);
	follower->after = res->last;
	return status;
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};
	return poll(&one, 1, timeout_ms) > 0;
}

/*
 * Existing events are told at once.  If none comes, the server either waits for the next one or is
 * slow.  Once it has answered another question, it has read the first one, too.  0, -ENODATA: there
 * are none, or -errno: it does not answer.
 */
static int wait_for_existing(struct follower *follower)
{
	struct ckt_ctl_server other;
	ckt_control_info_res info = {0};
	char message[1200];
	if (readable(follower->server.fd, SOON_MS))
		return 0;
	if (ckt_ctl_try_connect(follower->args, &other, message, sizeof message) != CKT_EXIT_DONE)
		return -ENOTCONN;
	int result = ckt_net_call(other.fd, CRICKET_CONTROL_PROG, CKT_CONTROL_INFO, NULL, NULL,
		(xdrproc_t)xdr_ckt_control_info_res, &info, ckt_net_now_ms() + TIMEOUT_MS, -1);
	xdr_free((xdrproc_t)xdr_ckt_control_info_res, (char *)&info);
	ckt_ctl_disconnect(&other);
	if (result)
		return result;
	return readable(follower->server.fd, LATE_MS) ? 0 : -ENODATA;
}

/* 0 or -errno of the call; *ret_status: of printing. */
static int follow_one(struct follower *follower, int *ret_status)
{
	static const struct {
		uint32_t proc;
		xdrproc_t xdr;
		int (*print)(struct follower *, const union page *);
	} calls[] = {
		[TELLS_FACTS] = {CKT_CONTROL_FACTS, (xdrproc_t)xdr_ckt_control_facts_res,
			print_facts},
		[TELLS_OWNERS] = {CKT_CONTROL_OWNED_EVENTS,
			(xdrproc_t)xdr_ckt_control_owned_events_res, print_owned},
		[TELLS_EVENTS] = {CKT_CONTROL_EVENTS, (xdrproc_t)xdr_ckt_control_events_res,
			print_plain},
	};
	ckt_control_events_args args = {.after = follower->after};
	union page page;
	uint32_t xid;
	memset(&page, 0, sizeof page);
	int result = ckt_net_ask(follower->server.fd, CRICKET_CONTROL_PROG,
		calls[follower->tells].proc, (xdrproc_t)xdr_ckt_control_events_args, &args,
		ckt_net_now_ms() + TIMEOUT_MS, -1, &xid);
	if (!result && !follower->args->follow)
		result = wait_for_existing(follower);
	if (!result)
		result = ckt_net_answer(
			follower->server.fd, xid, calls[follower->tells].xdr, &page, -1);
	if (!result)
		*ret_status = calls[follower->tells].print(follower, &page);
	xdr_free(calls[follower->tells].xdr, (char *)&page);
	return result;
}

/* A server that does not know the call ends the connection. */
static int follow(struct follower *follower, int *ret_status)
{
	for (;;) {
		int result = follow_one(follower, ret_status);
		if (!result || result == -ENODATA || follower->tells == TELLS_EVENTS ||
			follower->after)
			return result;
		ckt_ctl_disconnect(&follower->server);
		follower->tells++;
		*ret_status = ckt_ctl_connect(follower->args, &follower->server);
		if (*ret_status != CKT_EXIT_DONE)
			return 0;
	}
}

int ckt_ctl_events(const struct ckt_ctl_args *args)
{
	struct follower follower = {.args = args};
	int status = ckt_ctl_connect(args, &follower.server);
	if (status != CKT_EXIT_DONE)
		return status;
	while (status == CKT_EXIT_DONE) {
		int result = follow(&follower, &status);
		if (!args->follow && result == -ENODATA)
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
