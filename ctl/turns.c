/* SPDX-License-Identifier: Apache-2.0 */
/* What ps knows of sessions that share GPUs in time; see turns.h. */
#include "ctl/turns.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/server.h"
#include "rpc/net.h"

enum { TIMEOUT_MS = 15000 };

static const char *state_name(ckt_control_turn_state state)
{
	static const char *const names[] = {[CKT_CONTROL_TURN_IDLE] = "idle",
		[CKT_CONTROL_TURN_WAITS] = "waits",
		[CKT_CONTROL_TURN_HAS] = "runs",
		[CKT_CONTROL_TURN_OVERDUE] = "overdue"};
	return (unsigned)state < sizeof names / sizeof *names ? names[state] : "?";
}

static const char *class_name(unsigned number)
{
	static const char *const names[] = {"latency", "none", "best-effort"};
	return number < sizeof names / sizeof *names ? names[number] : "?";
}

static bool add(struct ckt_ctl_turns *turns, const ckt_control_turn *one)
{
	ckt_control_turn *more = reallocarray(turns->list, turns->count + 1, sizeof *more);
	if (!more)
		return false;
	turns->list = more;
	more[turns->count] = *one;
	more[turns->count].session = strdup(one->session);
	return more[turns->count++].session;
}

void ckt_ctl_turns_read(const struct ckt_ctl_args *args, struct ckt_ctl_turns *ret_turns)
{
	/* A connection of its own: an older server ends it. */
	struct ckt_ctl_server server;
	struct ckt_ctl_pages pages = {0};
	bool more = ckt_ctl_connect(args, &server) == CKT_EXIT_DONE, connected = more;
	*ret_turns = (struct ckt_ctl_turns){0};
	while (more) {
		ckt_control_list_args call = {.after = pages.after};
		ckt_control_turns_res res = {0};
		more = ckt_net_call(server.fd, CRICKET_CONTROL_PROG, CKT_CONTROL_TURNS,
			       (xdrproc_t)xdr_ckt_control_list_args, &call,
			       (xdrproc_t)xdr_ckt_control_turns_res, &res,
			       ckt_net_now_ms() + TIMEOUT_MS, -1) == 0;
		const char *last = NULL;
		for (u_int i = 0; i < res.turns.turns_len && more; i++) {
			last = res.turns.turns_val[i].session;
			more = add(ret_turns, &res.turns.turns_val[i]);
		}
		more = more && ckt_ctl_pages_next(&pages, res.more, last) > 0;
		xdr_free((xdrproc_t)xdr_ckt_control_turns_res, (char *)&res);
	}
	if (connected)
		ckt_ctl_disconnect(&server);
}

void ckt_ctl_turns_free(struct ckt_ctl_turns *turns)
{
	for (size_t i = 0; i < turns->count; i++)
		free(turns->list[i].session);
	free(turns->list);
	*turns = (struct ckt_ctl_turns){0};
}

json_t *ckt_ctl_turns_json(const struct ckt_ctl_turns *turns, const char *session)
{
	json_t *list = json_array();
	for (size_t i = 0; i < turns->count; i++) {
		const ckt_control_turn *turn = &turns->list[i];
		if (strcmp(turn->session, session) == 0)
			json_array_append_new(list,
				json_pack("{s:i, s:s, s:I, s:I, s:f, s:i, s:s, s:i}", "gpu",
					(int)turn->gpu, "state", state_name(turn->state), "used_us",
					(json_int_t)turn->used_us, "turns", (json_int_t)turn->turns,
					"weight_percent", turn->weight / 10.0, "cap_percent",
					(int)turn->cap, "class", class_name(turn->latency_class),
					"priority", turn->priority));
	}
	return list;
}

void ckt_ctl_turns_print(const struct ckt_ctl_turns *turns, const char *session)
{
	for (size_t i = 0; i < turns->count; i++) {
		const ckt_control_turn *turn = &turns->list[i];
		if (strcmp(turn->session, session) != 0)
			continue;
		printf("              GPU %u in turns: %s, weight %.1f%%", turn->gpu,
			state_name(turn->state), turn->weight / 10.0);
		if (turn->cap)
			printf(", cap %u%%", turn->cap);
		if (turn->latency_class != 1)
			printf(", class %s", class_name(turn->latency_class));
		if (turn->priority)
			printf(", priority %d", turn->priority);
		printf(", used %.1f s in %llu turns\n", (double)turn->used_us / 1e6,
			(unsigned long long)turn->turns);
	}
}
