/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl drain: moves all sessions of a server away before maintenance.
 *
 *	DRAIN on: no new sessions -> every session moves, a job as a whole -> those that cannot are saved (--save), or stay and are named
 *				  -> --stop: the server ends, if it has none left
 *
 * The server stays drained until --undo, or its end.  So whatever interrupts this, it continues when
 * it is called again: what has moved is gone, and what was under way goes on at its source.
 */
#include "ctl/drain/drain.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fault_point.h"
#include "ctl/drain/drain_state.h"
#include "ctl/checkpoint.h"
#include "ctl/files.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "rpc/net.h"

enum { SETTLE_MS = 10000, LOOK_NS = 200000000, EXIT_LEFT = 10, EXIT_LEFT_MAX = 99 };

/* ---- The command line */

static int usage(const char *why)
{
	fprintf(stderr, "cricketctl: drain: %s\n", why);
	return CKT_EXIT_USAGE;
}

/* Splits a copy of --to, which stays. */
static int parse_targets(struct ckt_ctl_draining *draining)
{
	static char copy[CKT_CONTROL_DRAIN_TO + 1];
	const char *to = draining->args->to ? draining->args->to : "";
	char *rest = copy, *one;
	struct ckt_address address;
	char message[1200];
	if (strlen(to) >= sizeof copy)
		return usage("--to: the list of servers is too long");
	strcpy(copy, to);
	while (*to && (one = strsep(&rest, ","))) {
		if (ckt_address_parse(one, &address, message, sizeof message) ||
			address.type == CKT_ADDRESS_FILE)
			return usage(
				"--to: write host, host:port or unix:/path, with commas between several");
		if (draining->target_count == CKT_CTL_DRAIN_TARGETS)
			return usage("--to: more than 16 servers");
		draining->targets[draining->target_count++] = one;
	}
	return CKT_EXIT_DONE;
}

static int parse(struct ckt_ctl_draining *draining)
{
	const struct ckt_ctl_args *args = draining->args;
	unsigned deadline_ms;
	char *end = NULL;
	draining->deadline_ms = -1;
	draining->jobs = CKT_CTL_DRAIN_JOBS;
	draining->save = args->save;
	if (args->undo &&
		(args->to || args->save || args->jobs || args->deadline || args->stop ||
			args->client_address))
		return usage("--undo cannot be combined with other options than --server");
	if (args->jobs) {
		long jobs = strtol(args->jobs, &end, 10);
		if (end == args->jobs || *end || jobs < 1 || jobs > CKT_CTL_DRAIN_JOBS_MAX)
			return usage("--jobs: write a number from 1 to 64");
		draining->jobs = (unsigned)jobs;
	}
	int status = parse_targets(draining);
	if (status == CKT_EXIT_DONE && args->client_address && draining->target_count != 1)
		return usage(
			"--client-address: of several servers of --to, clients have none in common");
	if (status == CKT_EXIT_DONE && args->deadline) {
		status = ckt_ctl_parse_deadline(args->deadline, &deadline_ms);
		draining->deadline_ms = ckt_net_now_ms() + deadline_ms;
	}
	return status;
}

/* ---- The work */

/* What is left may end by itself, as long as there is time. */
static int wait_for_ends(struct ckt_ctl_draining *draining, unsigned *left)
{
	int status = CKT_EXIT_DONE;
	while (*left && status == CKT_EXIT_DONE && draining->deadline_ms >= 0 &&
		ckt_net_now_ms() < draining->deadline_ms) {
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		status = ckt_ctl_drain_list(draining, left);
	}
	return status;
}

static size_t count_new(const struct ckt_ctl_draining *draining)
{
	size_t count = 0;
	for (size_t i = 0; i < draining->unit_count; i++)
		count += draining->units[i].state == CKT_UNIT_NEW;
	return count;
}

/* Sessions that were starting or ending at first get some time. */
static int run_passes(struct ckt_ctl_draining *draining, unsigned *ret_left)
{
	int64_t settle_ms = ckt_net_now_ms() + SETTLE_MS;
	int status = ckt_ctl_drain_list(draining, ret_left);
	bool in_time = true;
	while (status == CKT_EXIT_DONE && in_time) {
		unsigned stay = 0;
		if (count_new(draining)) {
			in_time = ckt_ctl_drain_run(draining);
			settle_ms = ckt_net_now_ms() + SETTLE_MS;
		}
		status = ckt_ctl_drain_list(draining, ret_left);
		for (size_t i = 0; i < draining->unit_count; i++)
			if (draining->units[i].state == CKT_UNIT_STAYS)
				stay += draining->units[i].sessions;
		if (!count_new(draining) && (*ret_left <= stay || ckt_net_now_ms() >= settle_ms))
			break;
		if (!count_new(draining))
			nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
	return status == CKT_EXIT_DONE ? wait_for_ends(draining, ret_left) : status;
}

/* ---- What is printed */

static const char *state_name(enum ckt_ctl_unit_state state)
{
	return state == CKT_UNIT_MOVED    ? "moved"
		: state == CKT_UNIT_SAVED ? "saved"
		: state == CKT_UNIT_ENDED ? "ended"
					  : "stays";
}

static json_t *unit_json(const struct ckt_ctl_unit *unit)
{
	json_t *object = json_object();
	json_object_set_new(object, "session", json_string(unit->session));
	json_object_set_new(object, "job", *unit->job ? json_string(unit->job) : json_null());
	json_object_set_new(object, "sessions", json_integer(unit->sessions));
	json_object_set_new(object, "program", ckt_ctl_json_text(unit->program));
	json_object_set_new(object, "outcome", json_string(state_name(unit->state)));
	json_object_set_new(object, "to",
		unit->state == CKT_UNIT_MOVED ? ckt_ctl_json_text(unit->target) : json_null());
	json_object_set_new(
		object, "reason", *unit->reason ? ckt_ctl_json_text(unit->reason) : json_null());
	return object;
}

static void print_unit(const struct ckt_ctl_draining *draining, const struct ckt_ctl_unit *unit)
{
	printf("%s %s (%s): ", *unit->job ? "job" : "session",
		*unit->job ? unit->job : unit->session, unit->program);
	if (unit->state == CKT_UNIT_MOVED)
		printf("moved to %s\n", unit->target);
	else if (unit->state == CKT_UNIT_SAVED)
		printf("saved to %s/%s\n", draining->save, *unit->job ? unit->job : unit->session);
	else if (unit->state == CKT_UNIT_ENDED)
		printf("ended\n");
	else
		printf("stays: %s\n", unit->reason);
}

static int print(const struct ckt_ctl_draining *draining, unsigned left, bool stopped)
{
	json_t *list = json_array();
	for (size_t i = 0; i < draining->unit_count; i++)
		if (draining->args->json)
			json_array_append_new(list, unit_json(&draining->units[i]));
		else
			print_unit(draining, &draining->units[i]);
	if (draining->args->json)
		return ckt_ctl_json_print(json_pack(
			"{s:o, s:i, s:b}", "units", list, "left", (int)left, "stopped", stopped));
	json_decref(list);
	printf("the server is drained: %u session%s left%s\n", left, left == 1 ? "" : "s",
		stopped ? ", and it ends" : "");
	return ckt_ctl_flush();
}

static int undo(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_drain state;
	int status = ckt_ctl_drain_set(args, CKT_CONTROL_DRAIN_OFF, "", &state);
	if (status != CKT_EXIT_DONE)
		return status;
	if (args->json)
		return ckt_ctl_json_print(json_pack("{s:b}", "draining", false));
	printf("the server takes new sessions again\n");
	return ckt_ctl_flush();
}

int ckt_ctl_drain(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_draining draining = {.args = args};
	struct ckt_ctl_drain state;
	unsigned left = 0;
	int status = parse(&draining);
	if (status == CKT_EXIT_DONE && args->undo)
		return undo(args);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_drain_set(
			args, CKT_CONTROL_DRAIN_ON, args->to ? args->to : "", &state);
	if (status == CKT_EXIT_DONE) {
		ckt_fault(CKT_FAULT_CTL_DRAIN_BEGUN);
		status = run_passes(&draining, &left);
	}
	bool stop = status == CKT_EXIT_DONE && args->stop && !left;
	if (stop)
		status = ckt_ctl_drain_set(args, CKT_CONTROL_DRAIN_STOP, "", &state);
	if (status == CKT_EXIT_DONE)
		status = print(&draining, left, stop);
	if (status == CKT_EXIT_DONE && left)
		status = (int)left < EXIT_LEFT_MAX - EXIT_LEFT ? EXIT_LEFT + (int)left
							       : EXIT_LEFT_MAX;
	free(draining.units);
	return status;
}
