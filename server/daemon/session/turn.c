/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that share GPUs in time; see turn.h. */
#include "server/daemon/session/turn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "rpc/turn.h"
#include "server/daemon/decision_events.h"
#include "server/daemon/metrics/counters.h"
#include "server/daemon/session/lease.h"
#include "server/daemon/session/session.h"

enum {
	/* Packets that are handled before others get their turn. */
	AT_A_TIME = 16,
	CALL_TIMEOUT_MS = 10000,
	/* MPS does not take processors back from a kernel: what others find free at once. */
	BELOW_PERCENT = 90,
	/* A share is of at least so much time. */
	LOOK_MS = 500,
};

#define NS_PER_MS INT64_C(1000000)
#define SHARING \
	(CKT_LIMIT_SETS_SHARE | CKT_LIMIT_SETS_CAP | CKT_LIMIT_SETS_CLASS | CKT_LIMIT_SETS_PRIORITY)

static unsigned gpu_of(const struct ckt_turn_gpu *gpu)
{
	return (unsigned)(gpu - gpu->server->turns);
}

/* Whose the member is; NULL: of a session that is gone. */
static struct ckt_session *owner_of(
	const struct ckt_turn_gpu *gpu, const struct ckt_turn_member *member)
{
	for (struct ckt_session *s = gpu->server->sessions; s; s = s->next)
		if (s->turn.members && member == &s->turn.members[gpu_of(gpu)])
			return s;
	return NULL;
}

/* ---- Weights */

struct counting {
	unsigned share, sessions; /* of the rule */
};

/* The rule of that kind that fits and says the least; its sessions divide what it says. */
static const struct ckt_limit_rule *find_rule(
	const struct ckt_server *server, const struct ckt_limit_subject *subject, unsigned sets)
{
	const struct ckt_limit_rule *found = NULL;
	const struct ckt_limit_table *limits = &server->ledger.limits;
	for (size_t i = 0; i < limits->count; i++) {
		const struct ckt_limit_rule *rule = &limits->rules[i];
		if (!(rule->sets & sets) || !ckt_limit_fits(rule, subject))
			continue;
		if (!found || (sets == CKT_LIMIT_SETS_SHARE && rule->share < found->share) ||
			(sets == CKT_LIMIT_SETS_CAP && rule->cap < found->cap) ||
			(sets == CKT_LIMIT_SETS_PRIORITY && rule->priority < found->priority) ||
			(sets == CKT_LIMIT_SETS_CLASS && rule->class > found->class))
			found = rule;
	}
	return found;
}

static struct counting count_rule(const struct ckt_server *server, unsigned gpu,
	const struct ckt_limit_rule *rule, const struct ckt_limit_subject *subject)
{
	struct counting counting = {rule->share, 0};
	for (const struct ckt_session *s = server->sessions; s; s = s->next) {
		const struct ckt_limit_subject other = ckt_lease_subject(s);
		counting.sessions +=
			s->turn.member_of >> gpu & 1 && ckt_limit_counts(rule, subject, &other);
	}
	return counting;
}

/* Permille of the GPU for one whose rule says no share: what is left, and never nothing. */
static unsigned rest(const struct ckt_server *server, unsigned gpu)
{
	double used = 0;
	unsigned others = 0;
	for (const struct ckt_session *s = server->sessions; s; s = s->next) {
		const struct ckt_limit_subject subject = ckt_lease_subject(s);
		const struct ckt_limit_rule *rule;
		if (!(s->turn.member_of >> gpu & 1))
			continue;
		rule = find_rule(server, &subject, CKT_LIMIT_SETS_SHARE);
		if (!rule) {
			others++;
			continue;
		}
		struct counting counting = count_rule(server, gpu, rule, &subject);
		used += counting.sessions ? (double)counting.share / counting.sessions : 0;
	}
	double left = used < 99 && others ? (100 - used) * 10 / others : 10;
	return left < 1 ? 1 : (unsigned)left;
}

static void weigh(struct ckt_server *server, unsigned gpu)
{
	unsigned left = rest(server, gpu);
	for (struct ckt_session *s = server->sessions; s; s = s->next) {
		if (!(s->turn.member_of >> gpu & 1))
			continue;
		const struct ckt_limit_subject subject = ckt_lease_subject(s);
		struct ckt_turn_member *member = &s->turn.members[gpu];
		const struct ckt_limit_rule *rule =
			find_rule(server, &subject, CKT_LIMIT_SETS_SHARE);
		member->weight = left;
		if (rule) {
			struct counting counting = count_rule(server, gpu, rule, &subject);
			member->weight =
				counting.share * 10 / (counting.sessions | !counting.sessions);
		}
		member->weight += !member->weight;
		rule = find_rule(server, &subject, CKT_LIMIT_SETS_CAP);
		member->cap = 0;
		if (rule) {
			struct counting counting = count_rule(server, gpu, rule, &subject);
			member->cap = rule->cap / (counting.sessions | !counting.sessions);
			member->cap += !member->cap;
		}
		rule = find_rule(server, &subject, CKT_LIMIT_SETS_PRIORITY);
		member->priority = rule ? rule->priority : 0;
		rule = find_rule(server, &subject, CKT_LIMIT_SETS_CLASS);
		member->class = rule ? rule->class : CKT_TURN_PLAIN;
	}
}

void ckt_turn_bounds(const struct ckt_session *session, unsigned *ret_percent, bool *ret_below)
{
	const struct ckt_limit_subject subject = ckt_lease_subject(session);
	const struct ckt_limit_rule *rule =
		find_rule(session->server, &subject, CKT_LIMIT_SETS_CAP);
	*ret_percent = rule ? rule->cap : 0;
	rule = find_rule(session->server, &subject, CKT_LIMIT_SETS_CLASS);
	*ret_below = rule && rule->class == CKT_TURN_BEST_EFFORT;
	if (*ret_below && !*ret_percent)
		*ret_percent = BELOW_PERCENT;
}

/* ---- Channels */

static void close_channel(struct ckt_session *session)
{
	if (!session->turn.open)
		return;
	session->turn.open = false;
	close(ckt_loop_remove(&session->server->loop, &session->turn.channel));
}

/* What it does next, nobody knows; but it has no other's turn. */
static void distrust(struct ckt_session *session, const char *what)
{
	close_channel(session);
	ckt_warning("session %s: its worker %d sent %s", session->id, (int)session->pid, what);
	ckt_session_kill(session, "its worker does not keep to its turns");
}

static void tell(
	struct ckt_session *session, unsigned gpu, const struct ckt_turn_decision *decision)
{
	struct ckt_turn_message message = {
		.kind = decision->step == CKT_TURN_GIVES ? CKT_TURN_GIVE : CKT_TURN_LIMIT,
		.gpu = gpu,
		.number = decision->number,
		/* It runs before others whenever it likes, and need not keep the GPU for that. */
		.wants = decision->member->class == CKT_TURN_LATENCY,
		.length_ns = decision->step == CKT_TURN_GIVES && !decision->length_ns
			? CKT_TURN_NO_END
			: decision->length_ns,
		.pace_ns = decision->pace_ns};
	ckt_count_turn(session->id, gpu,
		message.kind == CKT_TURN_GIVE ? CKT_TURN_WAS_GIVEN : CKT_TURN_WAS_LIMITED,
		decision->length_ns);
	if (send(session->turn.channel.fd, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) !=
		sizeof message)
		distrust(session, "wishes without reading the answers");
}

static void step(struct ckt_turn_gpu *gpu);

static int64_t drain_ns(const struct ckt_server *server)
{
	return (int64_t)server->options.drain * 1000 * NS_PER_MS;
}

/* The turn should have come back: the next one need not wait for it. */
static void give_up(struct ckt_turn_gpu *gpu)
{
	unsigned number = gpu_of(gpu);
	struct ckt_turn_ring *ring = &gpu->ring;
	struct ckt_session *session = owner_of(gpu, ring->holder);
	if (session) {
		session->turn.overdue |= UINT64_C(1) << number;
		session->turn.overdue_number[number] = ring->number;
		ckt_count_turn(session->id, number, CKT_TURN_WAS_OVERDUE, 0);
		ckt_decision_event(session->server, session, CKT_EVENT_OVERDUE,
			&(struct ckt_event_facts){
				.reason = "it does not give its turn back", .gpu = (int)number},
			"GPU %u: the next session goes on beside it", number);
		ckt_warning("session %s: it does not give GPU %u back: a kernel of it runs on, or "
			    "its worker waits in the driver; the next session goes on beside it",
			session->id, number);
	}
	ckt_turn_yield(ring, ring->holder, ring->number, false, ckt_now_ns());
}

static void set_timer(struct ckt_turn_gpu *gpu, int64_t again_ns)
{
	const struct ckt_turn_ring *ring = &gpu->ring;
	int64_t now = ckt_now_ns(), due = again_ns;
	if (ring->holder && ring->end_ns) {
		int64_t overdue = ring->end_ns + drain_ns(gpu->server);
		due = due && due < overdue ? due : overdue;
	}
	if (!due) {
		ckt_timer_clear(&gpu->timer);
		return;
	}
	ckt_timer_set(&gpu->server->loop, &gpu->timer,
		due > now ? (due - now + NS_PER_MS - 1) / NS_PER_MS : 0);
}

static void fire(struct ckt_timer *timer)
{
	struct ckt_turn_gpu *gpu = CKT_CONTAINER(timer, struct ckt_turn_gpu, timer);
	const struct ckt_turn_ring *ring = &gpu->ring;
	if (ring->holder && ring->end_ns && ckt_now_ns() >= ring->end_ns + drain_ns(gpu->server))
		give_up(gpu);
	step(gpu);
}

/* Those that want the GPU and would have it, had they no cap. */
static void tell_capped(struct ckt_turn_gpu *gpu)
{
	const struct ckt_turn_ring *ring = &gpu->ring;
	for (struct ckt_turn_member *m = ring->first; m && !ring->holder; m = m->next) {
		struct ckt_session *session = m->wants && m->cap ? owner_of(gpu, m) : NULL;
		if (session)
			ckt_decision_event(gpu->server, session, CKT_EVENT_CAPPED,
				&(struct ckt_event_facts){
					.reason = "its cap= is used up", .gpu = (int)gpu_of(gpu)},
				"GPU %u is free, and its cap of %u%% is used up", gpu_of(gpu),
				m->cap);
	}
}

static void step(struct ckt_turn_gpu *gpu)
{
	struct ckt_turn_decision decision;
	for (;;) {
		ckt_turn_decide(&gpu->ring, ckt_now_ns(), &decision);
		struct ckt_session *session = decision.step ? owner_of(gpu, decision.member) : NULL;
		if (!session)
			break;
		tell(session, gpu_of(gpu), &decision);
	}
	if (decision.again_ns)
		tell_capped(gpu);
	set_timer(gpu, decision.again_ns);
}

static void join(struct ckt_session *session, unsigned gpu)
{
	struct ckt_server *server = session->server;
	session->turn.member_of |= UINT64_C(1) << gpu;
	weigh(server, gpu);
	ckt_turn_add(&server->turns[gpu].ring, &session->turn.members[gpu], ckt_now_ns());
}

static void want(struct ckt_session *session, unsigned gpu)
{
	if (!(session->turn.member_of >> gpu & 1))
		join(session, gpu);
	if (!session->turn.members[gpu].wants)
		session->turn.wanted_ns[gpu] = ckt_now_ns();
	ckt_turn_want(&session->server->turns[gpu].ring, &session->turn.members[gpu]);
}

static bool yield(struct ckt_session *session, const struct ckt_turn_message *message)
{
	struct ckt_daemon_turn *turn = &session->turn;
	unsigned gpu = message->gpu;
	struct ckt_turn_ring *ring = &session->server->turns[gpu].ring;
	if (!(turn->member_of >> gpu & 1))
		return false;
	if (turn->overdue >> gpu & 1 && turn->overdue_number[gpu] == message->number) {
		turn->overdue &= ~(UINT64_C(1) << gpu);
		ckt_decision_event(session->server, session, CKT_EVENT_BACK,
			&(struct ckt_event_facts){.gpu = (int)gpu},
			"GPU %u: it has given its turn back", gpu);
		if (message->wants)
			want(session, gpu);
		return true;
	}
	turn->wanted_ns[gpu] = ckt_now_ns();
	return ckt_turn_yield(
		ring, &turn->members[gpu], message->number, message->wants, ckt_now_ns());
}

/* False: nothing more is there, or the channel is closed. */
static bool take_packet(struct ckt_session *session)
{
	struct ckt_turn_message message;
	ssize_t n =
		recv(session->turn.channel.fd, &message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		close_channel(session);
		return false;
	}
	bool good = n == sizeof message && message.gpu < CKT_DEVICES_MAX;
	if (good && message.kind == CKT_TURN_WANT)
		want(session, message.gpu);
	else if (good && message.kind == CKT_TURN_YIELD)
		good = yield(session, &message);
	else
		good = false;
	if (good)
		step(&session->server->turns[message.gpu]);
	else
		distrust(session, "what is no wish for a turn");
	return session->turn.open;
}

static void channel_ready(struct ckt_source *source, uint32_t events)
{
	struct ckt_session *session = CKT_CONTAINER(source, struct ckt_session, turn.channel);
	(void)events;
	for (int i = 0; i < AT_A_TIME && take_packet(session); i++)
		;
}

/* A worker of an earlier version takes no turns, and runs when it likes. */
static void joined(struct ckt_session *session, void *context, int error, void *result)
{
	const struct ckt_worker_result *res = result;
	(void)context;
	if (error || res->status)
		ckt_warning("session %s: its worker takes no turns: %s", session->id,
			strerror(error ? -error : -res->status));
}

static bool is_sharing(const struct ckt_server *server)
{
	const struct ckt_limit_table *limits = &server->ledger.limits;
	for (size_t i = 0; i < limits->count; i++)
		if (limits->rules[i].sets & SHARING)
			return true;
	return false;
}

static int make_rings(struct ckt_server *server)
{
	if (server->turns)
		return 0;
	server->turns = calloc(CKT_DEVICES_MAX, sizeof *server->turns);
	for (unsigned gpu = 0; server->turns && gpu < CKT_DEVICES_MAX; gpu++) {
		server->turns[gpu].server = server;
		server->turns[gpu].timer.fire = fire;
	}
	return server->turns ? 0 : -ENOMEM;
}

int ckt_turn_open(struct ckt_session *session)
{
	struct ckt_daemon_turn *turn = &session->turn;
	struct ckt_server *server = session->server;
	int ends[2];
	if (turn->open || !is_sharing(server) || session->mps.daemon)
		return 0;
	if (make_rings(server))
		return -ENOMEM;
	if (!turn->members)
		turn->members = calloc(CKT_DEVICES_MAX, sizeof *turn->members);
	if (!turn->members)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	turn->channel = (struct ckt_source){.fd = ends[0], .ready = channel_ready};
	int result = ckt_loop_add(&server->loop, &turn->channel, EPOLLIN);
	if (result) {
		close(ends[0]);
		close(ends[1]);
		return result;
	}
	turn->open = true;
	return ckt_session_call(session, CKT_WORKER_TURN, NULL, NULL, ends[1],
		(xdrproc_t)xdr_ckt_worker_result, sizeof(ckt_worker_result), CALL_TIMEOUT_MS,
		joined, NULL);
}

static void leave(struct ckt_session *session)
{
	struct ckt_daemon_turn *turn = &session->turn;
	uint64_t gpus = turn->member_of;
	close_channel(session);
	turn->member_of = turn->overdue = 0;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		if (gpus >> gpu & 1) {
			ckt_turn_remove(&session->server->turns[gpu].ring, &turn->members[gpu]);
			weigh(session->server, gpu);
			step(&session->server->turns[gpu]);
		}
}

void ckt_turn_close(struct ckt_session *session)
{
	leave(session);
	free(session->turn.members);
	session->turn.members = NULL;
}

void ckt_turns_limits_changed(struct ckt_server *server)
{
	bool sharing = is_sharing(server);
	for (struct ckt_session *s = server->sessions; s; s = s->next)
		if (!sharing)
			leave(s);
		else if (ckt_turn_open(s))
			ckt_warning("session %s: no memory for its turns", s->id);
	for (unsigned gpu = 0; server->turns && gpu < CKT_DEVICES_MAX; gpu++) {
		weigh(server, gpu);
		step(&server->turns[gpu]);
	}
}

/* ---- Decisions from outside */

bool ckt_turn_decided(struct ckt_session *session, bool give, const char *by, char *ret_message,
	size_t message_size)
{
	struct ckt_server *server = session->server;
	const struct ckt_daemon_turn *turn = &session->turn;
	bool decided = false;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++) {
		struct ckt_turn_ring *ring =
			turn->member_of >> gpu & 1 ? &server->turns[gpu].ring : NULL;
		if (!ring || (ring->holder == &turn->members[gpu]) == give)
			continue;
		if (give)
			ckt_turn_next(ring, &turn->members[gpu]);
		else
			ckt_turn_end(ring);
		ckt_decision_event(server, session, CKT_EVENT_DECIDED,
			&(struct ckt_event_facts){.gpu = (int)gpu}, "%s of GPU %u, by %s",
			give ? "the next turn" : "the end of its turn", gpu, by);
		step(&server->turns[gpu]);
		decided = true;
	}
	if (!decided)
		snprintf(ret_message, message_size,
			!turn->member_of
				? "session %s takes no turns: limits say no share, cap, class or priority, or it has run nothing yet"
				: give ? "session %s has its turn"
				       : "session %s has no turn that could end",
			session->id);
	return decided;
}

/* ---- Listings */

int ckt_turn_share_permille(struct ckt_session *session)
{
	struct ckt_daemon_turn *turn = &session->turn;
	int64_t now = ckt_now_ns();
	uint64_t used = 0;
	if (!turn->member_of)
		return -1;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		if (turn->member_of >> gpu & 1)
			used += ckt_turn_used_ns(
				&session->server->turns[gpu].ring, &turn->members[gpu], now);
	int64_t passed = now - turn->seen_ns;
	if (!turn->seen_ns)
		turn->share_permille = 0;
	else if (passed >= NS_PER_MS * LOOK_MS)
		turn->share_permille =
			(int)((used - turn->seen_used_ns) / ((uint64_t)passed / 1000 + 1));
	if (!turn->seen_ns || passed >= NS_PER_MS * LOOK_MS) {
		turn->seen_ns = now;
		turn->seen_used_ns = used;
	}
	return turn->share_permille;
}

int64_t ckt_turn_waiting_ms(const struct ckt_session *session)
{
	const struct ckt_daemon_turn *turn = &session->turn;
	int64_t longest = 0, now = ckt_now_ns();
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		if (turn->member_of >> gpu & 1 && turn->members[gpu].wants &&
			now - turn->wanted_ns[gpu] > longest)
			longest = now - turn->wanted_ns[gpu];
	return longest / NS_PER_MS;
}

int64_t ckt_turn_switches(const struct ckt_session *session)
{
	const struct ckt_daemon_turn *turn = &session->turn;
	int64_t switches = 0;
	if (!turn->member_of)
		return -1;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		if (turn->member_of >> gpu & 1)
			switches += (int64_t)turn->members[gpu].turns -
				(session->server->turns[gpu].ring.holder == &turn->members[gpu]);
	return switches;
}

void ckt_turns_fini(struct ckt_server *server)
{
	for (unsigned gpu = 0; server->turns && gpu < CKT_DEVICES_MAX; gpu++)
		ckt_timer_clear(&server->turns[gpu].timer);
	free(server->turns);
	server->turns = NULL;
}
