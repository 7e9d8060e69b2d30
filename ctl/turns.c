/* SPDX-License-Identifier: Apache-2.0 */
/* What ps knows of sessions that share GPUs in time; see turns.h. */
#include "ctl/turns.h"

#include <stdio.h>

#include "rpc/control.h"

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

void ckt_ctl_turns_read(const struct ckt_ctl_args *args, struct ckt_ctl_listing *ret_turns)
{
	static const struct ckt_ctl_listing_kind kind =
		CKT_CTL_LISTING_KIND(CKT_CONTROL_TURNS, ckt_control_turns_res, turns);
	ckt_ctl_listing_read(args, &kind, ret_turns);
}

json_t *ckt_ctl_turns_json(const struct ckt_ctl_listing *turns, const char *session)
{
	json_t *list = json_array();
	const ckt_control_turn *turn = NULL;
	while ((turn = ckt_ctl_listing_next(turns, session, turn)))
		json_array_append_new(list,
			json_pack("{s:i, s:s, s:I, s:I, s:f, s:i, s:s, s:i}", "gpu", (int)turn->gpu,
				"state", state_name(turn->state), "used_us",
				(json_int_t)turn->used_us, "turns", (json_int_t)turn->turns,
				"weight_percent", turn->weight / 10.0, "cap_percent",
				(int)turn->cap, "class", class_name(turn->latency_class),
				"priority", turn->priority));
	return list;
}

void ckt_ctl_turns_print(const struct ckt_ctl_listing *turns, const char *session)
{
	const ckt_control_turn *turn = NULL;
	while ((turn = ckt_ctl_listing_next(turns, session, turn))) {
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
