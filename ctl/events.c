/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl events [--follow]: what happened to sessions, and with --follow what happens from now
 * on.
 */
#include <errno.h>
#include <jansson.h>
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

static int print_event(const struct ckt_ctl_args *args, const ckt_control_event *event)
{
	char when[64], program[CKT_NAME_MAX + 1], detail[CKT_MESSAGE_MAX + 1];
	ckt_ctl_time_text(event->when, when, sizeof when);
	if (!args->json) {
		printf("%s  %-12s  %-10s  %s%s%s\n", when, event->session, event->name,
			ckt_ctl_clean(event->program_name, program, sizeof program),
			*event->detail ? ": " : "",
			ckt_ctl_clean(event->detail, detail, sizeof detail));
		return ckt_ctl_flush();
	}
	/* One line each, so that a reader need not know where one ends. */
	json_t *object = json_pack("{s:I, s:s, s:o, s:o, s:o, s:o}", "number",
		(json_int_t)event->number, "when", when, "event", ckt_ctl_json_text(event->name),
		"session", ckt_ctl_json_text(event->session), "program",
		ckt_ctl_json_text(event->program_name), "detail", ckt_ctl_json_text(event->detail));
	int failed = json_dumpf(object, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(object);
	putchar('\n');
	return failed ? CKT_EXIT_REFUSED : ckt_ctl_flush();
}

/* Existing events arrive at once; if the server waits, there are none. */
int ckt_ctl_events(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_server server;
	ckt_control_events_args call = {0};
	int status = ckt_ctl_connect(args, &server);
	if (status != CKT_EXIT_DONE)
		return status;
	for (;;) {
		ckt_control_events_res res = {0};
		int result = ckt_net_call(server.fd, CRICKET_CONTROL_PROG, CKT_CONTROL_EVENTS,
			(xdrproc_t)xdr_ckt_control_events_args, &call,
			(xdrproc_t)xdr_ckt_control_events_res, &res,
			args->follow ? -1 : ckt_net_now_ms() + ANSWER_MS, -1);
		if (result) {
			if (!args->follow && result == -ETIMEDOUT)
				break;
			fprintf(stderr, "cricketctl: the server at %s does not answer: %s\n",
				server.address, strerror(-result));
			status = CKT_EXIT_NO_SERVER;
			break;
		}
		for (u_int i = 0; i < res.events.events_len && status == CKT_EXIT_DONE; i++)
			status = print_event(args, &res.events.events_val[i]);
		call.after = res.last;
		xdr_free((xdrproc_t)xdr_ckt_control_events_res, (char *)&res);
		if (status != CKT_EXIT_DONE)
			break;
	}
	ckt_ctl_disconnect(&server);
	return status;
}
