/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/turn.c: turns of workers on a GPU, those that do not give them back, and
 * workers that say what cannot be.
 */
#include "server/daemon/session/turn.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inside.h"
#include "rpc/turn.h"

enum { SESSIONS = 3 };

static struct ckt_session *sessions[SESSIONS];
static int channels[SESSIONS];

static void limit(const char *line)
{
	struct ckt_limit_rule rule;
	char message[256] = "";
	MUST(ckt_limit_rule_parse(line, &rule, message, sizeof message), 0);
	MUST(ckt_limit_table_put(&server.ledger.limits, &rule), 0);
}

static void open_turn(int i)
{
	worker.turn_channel = -1;
	MUST(ckt_turn_open(sessions[i]), 0);
	run_for(2);
	channels[i] = worker.turn_channel;
	worker.turn_channel = 0;
}

/* Two of one owner, and one of another's. */
static void begin(const char *const *lines, size_t count)
{
	static const char *const ids[SESSIONS] = {"aaaaaaaaaaa1", "aaaaaaaaaaa2", "bbbbbbbbbbb1"};
	server.options.drain = 5;
	for (size_t i = 0; i < count; i++)
		limit(lines[i]);
	for (int i = 0; i < SESSIONS; i++) {
		sessions[i] = session_new(ids[i]);
		sessions[i]->uid = i < 2 ? 1001 : 1002;
		sessions[i]->child = true;
		open_turn(i);
		IS(ckt_turn_open(sessions[i]), 0); /* once */
	}
}

static void end(void)
{
	for (int i = 0; i < SESSIONS; i++) {
		ckt_turn_close(sessions[i]);
		ckt_turn_close(sessions[i]);
		session_drop(sessions[i]);
		if (channels[i] >= 0)
			close(channels[i]);
	}
	ckt_limit_table_free(&server.ledger.limits);
	YES(!server.turns || !server.turns[0].ring.first);
	ckt_turns_fini(&server);
}

static void say(int i, enum ckt_turn_kind kind, uint32_t number, bool wants)
{
	struct ckt_turn_message message = {.kind = kind, .number = number, .wants = wants};
	MUST(send(channels[i], &message, sizeof message, MSG_NOSIGNAL), sizeof message);
	run_for(3);
}

/* The kind of the message that has come; 0: none, -1: the channel is closed. */
static int told(int i, struct ckt_turn_message *ret_message)
{
	ssize_t n = recv(channels[i], ret_message, sizeof *ret_message, MSG_DONTWAIT);
	return n > 0 ? (int)ret_message->kind : n ? 0 : -1;
}

static void test_turns(void)
{
	static const char *const lines[] = {"user=1001 share=60"};
	struct ckt_turn_message give, message;
	begin(lines, COUNT(lines));
	say(0, CKT_TURN_WANT, 0, true);
	IS(told(0, &give), CKT_TURN_GIVE);
	IS(give.length_ns, CKT_TURN_NO_END);
	IS(give.wants, false);
	IS(told(1, &message), 0);
	/* The second: the first is told once when to end, and it is its own end that counts. */
	say(1, CKT_TURN_WANT, 0, true);
	IS(told(0, &message), CKT_TURN_LIMIT);
	IS(message.number, give.number);
	YES(message.length_ns >= 0 && message.length_ns <= CKT_TURN_QUANTUM_NS);
	IS(told(0, &message), 0);
	IS(told(1, &message), 0);
	say(0, CKT_TURN_YIELD, give.number, false);
	IS(told(1, &give), CKT_TURN_GIVE);
	IS(give.length_ns, CKT_TURN_NO_END);
	/* One owner's share is divided among those of it that were there. */
	IS(sessions[0]->turn.members[0].weight, 300);
	IS(sessions[1]->turn.members[0].weight, 300);
	say(2, CKT_TURN_WANT, 0, true);
	IS(sessions[2]->turn.members[0].weight, 400);
	/* A session that ends leaves its turn. */
	ckt_turn_close(sessions[1]);
	IS(told(2, &give), CKT_TURN_GIVE);
	IS(sessions[0]->turn.members[0].weight, 600);
	end();
}

/* Without a rule that shares time nobody is told anything; with the first one all are. */
static void test_live(void)
{
	static const char *const lines[] = {"user=1001 memory=1G"};
	begin(lines, COUNT(lines));
	IS(channels[0], -1);
	YES(!server.turns);
	limit("user=1002 class=latency");
	worker.turn_channel = -1;
	memset(worker.calls, 0, sizeof worker.calls);
	ckt_turns_limits_changed(&server);
	run_for(3);
	/* The worker of this test keeps one of the three, and closes the others. */
	IS(worker.calls[CKT_WORKER_TURN], SESSIONS);
	IS(sessions[0]->turn.open + sessions[1]->turn.open + sessions[2]->turn.open, 1);
	close(worker.turn_channel);
	ckt_limit_table_free(&server.ledger.limits);
	ckt_turns_limits_changed(&server);
	YES(!sessions[0]->turn.open && !sessions[1]->turn.open && !sessions[2]->turn.open);
	worker.turn_channel = 0;
	end();
}

static void test_class(void)
{
	static const char *const lines[] = {
		"user=1002 class=latency", "user=1001 class=best-effort cap=50"};
	struct ckt_turn_message give, message;
	begin(lines, COUNT(lines));
	say(0, CKT_TURN_WANT, 0, true);
	IS(told(0, &give), CKT_TURN_GIVE);
	/* Its cap, of which the two have one part each: not without an end. */
	YES(give.length_ns > 0);
	IS(sessions[0]->turn.members[0].cap, 50);
	/* One that is over by itself is not told of another end. */
	server.turns[0].ring.end_ns = INT64_MAX / 2;
	say(2, CKT_TURN_WANT, 0, true);
	IS(told(0, &message), CKT_TURN_LIMIT);
	IS(message.length_ns, 0);
	IS(message.pace_ns, CKT_TURN_PACE_TIGHT_NS);
	say(0, CKT_TURN_YIELD, give.number, true);
	IS(told(2, &give), CKT_TURN_GIVE);
	IS(give.wants, true);
	end();
}

static bool is_overdue(void *data)
{
	return ((struct ckt_session *)data)->turn.overdue != 0;
}

static void test_overdue(void)
{
	static const char *const lines[] = {"user=1001 share=50"};
	struct ckt_turn_message stuck, give;
	begin(lines, COUNT(lines));
	server.options.drain = 0;
	say(0, CKT_TURN_WANT, 0, true);
	IS(told(0, &stuck), CKT_TURN_GIVE);
	say(1, CKT_TURN_WANT, 0, true);
	IS(told(0, &give), CKT_TURN_LIMIT);
	YES(run_until(is_overdue, sessions[0]));
	IS(told(1, &give), CKT_TURN_GIVE);
	/* The second is not overdue soon. */
	server.options.drain = 60;
	/* It comes back late, and wants more. */
	say(0, CKT_TURN_YIELD, stuck.number, true);
	IS(sessions[0]->turn.overdue, 0);
	YES(sessions[0]->turn.members[0].wants);
	say(1, CKT_TURN_YIELD, give.number, false);
	IS(told(0, &give), CKT_TURN_GIVE);
	/* The late one's number is used up. */
	say(1, CKT_TURN_YIELD, stuck.number, true);
	IS(sessions[1]->turn.open, false);
	end();
}

/* Each is the end of the session that says it, and nothing to the others. */
static void test_lies(void)
{
	static const char *const lines[] = {"user=1001 share=50"};
	static const struct ckt_turn_message lies[] = {
		{.kind = CKT_TURN_YIELD},              /* it never wanted */
		{.kind = CKT_TURN_YIELD, .number = 1}, /* another's */
		{.kind = CKT_TURN_GIVE, .number = 1},  /* the server's to say */
		{.kind = CKT_TURN_LIMIT, .number = 1},
		{.kind = 0},
		{.kind = CKT_TURN_WANT, .gpu = CKT_DEVICES_MAX},
		{.kind = CKT_TURN_WANT, .gpu = UINT32_MAX},
	};
	struct ckt_turn_message give;
	for (size_t i = 0; i <= COUNT(lies); i++) {
		begin(lines, COUNT(lines));
		say(0, CKT_TURN_WANT, 0, true);
		IS(told(0, &give), CKT_TURN_GIVE);
		size_t size = i < COUNT(lies) ? sizeof *lies : 7;
		MUST(send(channels[1], &lies[i % COUNT(lies)], size, MSG_NOSIGNAL), size);
		run_for(3);
		IS(sessions[1]->turn.open, false);
		IS(sessions[1]->phase, CKT_SESSION_ENDING);
		IS(sessions[0]->turn.open, true);
		YES(server.turns[0].ring.holder == &sessions[0]->turn.members[0]);
		end();
	}
}

/* One that asks without end, and reads nothing: the room of its own channel ends it. */
static void test_flood(void)
{
	static const char *const lines[] = {"user=1001 share=50"};
	begin(lines, COUNT(lines));
	for (int i = 0; i < 100000 && sessions[0]->turn.open; i++) {
		struct ckt_turn_message want = {.kind = CKT_TURN_WANT};
		struct ckt_turn_message yield = {.kind = CKT_TURN_YIELD,
			.number = server.turns ? server.turns[0].ring.number : 0};
		send(channels[0], &want, sizeof want, MSG_NOSIGNAL | MSG_DONTWAIT);
		run_for(0);
		yield.number = server.turns[0].ring.number;
		send(channels[0], &yield, sizeof yield, MSG_NOSIGNAL | MSG_DONTWAIT);
		run_for(0);
	}
	YES(!sessions[0]->turn.open);
	end();
}

UNIT_SUITE(turn, {"turns", test_turns}, {"live", test_live}, {"class", test_class},
	{"overdue", test_overdue}, {"lies", test_lies}, {"flood", test_flood})
