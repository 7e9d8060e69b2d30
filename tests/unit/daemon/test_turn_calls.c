/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/peer/turn_calls.c: who shares a GPU, as it is told page by page. */
#include <string.h>
#include <unistd.h>

#include "inside.h"

static ckt_control_turns_res res;

static void ask(int fd, const char *after)
{
	ckt_control_list_args args = {.after = (char *)after};
	xdr_free((xdrproc_t)xdr_ckt_control_turns_res, (char *)&res);
	memset(&res, 0, sizeof res);
	YES(control(fd, CKT_CONTROL_TURNS, (xdrproc_t)xdr_ckt_control_list_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_turns_res, &res));
}

static void add(struct ckt_session *session, uint64_t gpus)
{
	session->turn.members = calloc(CKT_DEVICES_MAX, sizeof *session->turn.members);
	session->turn.member_of = gpus;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		session->turn.members[gpu] = (struct ckt_turn_member){.weight = 10 + gpu,
			.class = CKT_TURN_BEST_EFFORT,
			.priority = -5,
			.cap = 40,
			.used_ns = 2500000,
			.turns = 3};
}

static void test_told(void)
{
	static struct ckt_turn_gpu gpus[CKT_DEVICES_MAX];
	enum { SESSIONS = 9 };
	struct ckt_session *sessions[SESSIONS];
	char id[] = "0000000000d0";
	server.turns = gpus;
	for (int i = 0; i < SESSIONS; i++, id[sizeof id - 2]++)
		sessions[i] = session_new(id);
	/* Not of one that shares nothing; all GPUs of the others: more than a page has. */
	for (int i = 1; i < SESSIONS; i++)
		add(sessions[i], i == 1 ? 5 : UINT64_MAX);
	sessions[1]->turn.overdue = 1;
	sessions[1]->turn.members[2].wants = true;
	gpus[7].ring.holder = &sessions[2]->turn.members[7];
	int fd = control_new();
	ask(fd, "");
	MUST(res.turns.turns_len, 2 + 7 * CKT_DEVICES_MAX);
	ckt_control_turn *first = res.turns.turns_val;
	TEXT(first[0].session, "0000000000d1");
	IS(first[0].state, CKT_CONTROL_TURN_OVERDUE);
	IS(first[1].gpu, 2);
	IS(first[1].state, CKT_CONTROL_TURN_WAITS);
	IS(first[1].weight, 12);
	IS(first[1].latency_class, 2);
	IS(first[1].priority, -5);
	IS(first[1].cap, 40);
	IS(first[1].used_us, 2500);
	IS(first[1].turns, 3);
	IS(first[2 + 6].state, CKT_CONTROL_TURN_IDLE);
	IS(first[2 + 7].state, CKT_CONTROL_TURN_HAS);
	NO(res.more);
	/* One GPU more than a page has. */
	sessions[1]->turn.member_of = UINT64_MAX;
	sessions[0]->turn.members = calloc(CKT_DEVICES_MAX, sizeof *sessions[0]->turn.members);
	sessions[0]->turn.member_of = 1;
	ask(fd, "");
	IS(res.turns.turns_len, 1 + 7 * CKT_DEVICES_MAX);
	YES(res.more);
	ask(fd, "0000000000d7");
	IS(res.turns.turns_len, CKT_DEVICES_MAX);
	NO(res.more);
	close(fd);
	for (int i = 0; i < SESSIONS; i++) {
		free(sessions[i]->turn.members);
		sessions[i]->turn = (struct ckt_daemon_turn){0};
		session_drop(sessions[i]);
	}
	xdr_free((xdrproc_t)xdr_ckt_control_turns_res, (char *)&res);
	server.turns = NULL;
}

UNIT_SUITE(turn_calls, {"told", test_told})
