/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events with all that a policy is told, for cricketctl events and for schedulers outside of the
 * server.  Each caller is told of the sessions that it may see.  What all sessions hold of a GPU, and
 * the choices that a scheduler is asked for, are for administrators.
 */
#include <stdlib.h>

#include "rpc/net.h"
#include "server/daemon/decision_events.h"
#include "server/daemon/event_ring.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/policy/tokens.h"
#include "server/daemon/session/memory_wait.h"
#include "server/daemon/session/session.h"

/* The strings and lists of one answer. */
struct page {
	ckt_control_fact facts[CKT_CONTROL_FACTS_MAX];
	char owners[CKT_CONTROL_FACTS_MAX][CKT_OWNER_NAME_SIZE];
	ckt_control_candidate candidates[CKT_CONTROL_CANDIDATES_MAX];
};

static bool may_see(const struct ckt_peer *peer, const struct ckt_kept_event *kept)
{
	return kept->general ? ckt_control_is_administrator(peer) : ckt_peer_may(peer, kept->uid);
}

static void fill_candidates(
	struct ckt_server *server, ckt_control_candidate *list, ckt_control_fact *fact)
{
	const struct ckt_scheduler *scheduler = &server->scheduler;
	fact->candidates.candidates_val = list;
	for (unsigned i = 0; i < scheduler->count; i++) {
		const struct ckt_wait_facts *facts = &scheduler->candidates[i];
		const struct ckt_wait_request *r = server->waits.first;
		while (r && r->number != facts->request)
			r = r->next;
		if (!r)
			continue;
		const struct ckt_session *session = ckt_memory_wait_session(r);
		int64_t waited_ms = ckt_net_now_ms() - r->since_ms;
		list[fact->candidates.candidates_len++] =
			(ckt_control_candidate){.request = facts->request,
				.session = (char *)session->id,
				.job = (char *)session->job,
				.gpu = facts->gpu,
				.bytes = facts->bytes,
				.held_bytes = facts->held_bytes,
				.left_bytes = facts->left_bytes,
				.arrived = facts->arrived,
				.used = facts->used,
				.waited_ms = waited_ms > 0 ? (uint64_t)waited_ms : 0};
	}
}

static void fill(struct ckt_peer *peer, const struct ckt_kept_event *kept, bool all,
	struct page *page, u_int n)
{
	const struct ckt_event_facts *facts = &kept->facts;
	ckt_control_fact *fact = &page->facts[n];
	if (!kept->general)
		ckt_owner_text(peer->server, kept->uid, page->owners[n]);
	*fact = (ckt_control_fact){.event = {.number = kept->number,
					   .when = kept->when,
					   .name = (char *)ckt_daemon_event_text(kept->name),
					   .session = (char *)kept->session,
					   .program_name = (char *)kept->program,
					   .detail = (char *)kept->detail},
		.owner = {page->owners[n],
			(char *)(kept->general ? "" : ckt_tokens_project(peer->server, kept->uid))},
		.job = (char *)kept->job,
		.at_ms = kept->at_ms,
		.reason = (char *)(facts->reason ? facts->reason : ""),
		.request = facts->request,
		.gpu = facts->gpu,
		.bytes = facts->bytes,
		.budget_bytes = all ? kept->budget_bytes : 0,
		.used_bytes = all ? kept->used_bytes : 0,
		.waited_ms = facts->waited_ms > 0 ? (uint64_t)facts->waited_ms : 0,
		.folded = kept->folded};
	if (all && kept->number == peer->server->scheduler.choice)
		fill_candidates(peer->server, page->candidates, fact);
}

bool ckt_daemon_facts_tell(struct ckt_peer *peer)
{
	bool all = ckt_control_is_administrator(peer);
	struct page *page = calloc(1, sizeof *page);
	ckt_control_facts_res res = {.facts = {0, page ? page->facts : NULL},
		.last = peer->events_after,
		.lost = ckt_event_ring_lost(peer->events_after)};
	const struct ckt_kept_event *kept;
	while (page && res.facts.facts_len < CKT_CONTROL_FACTS_MAX &&
		(kept = ckt_event_ring_next(res.last, true))) {
		res.last = kept->number;
		if (may_see(peer, kept))
			fill(peer, kept, all, page, res.facts.facts_len++);
	}
	/* What is lost is told with the next event that there is for the peer. */
	bool any = res.facts.facts_len != 0;
	if (any || !res.lost)
		peer->events_after = res.last;
	if (any) {
		peer->wants_events = false;
		ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_facts_res, &res);
	}
	free(page);
	return any;
}

void ckt_control_facts(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_events_args *args = decoded;
	uint64_t last = ckt_event_ring_last();
	(void)passed_fd;
	peer->events_after = args->after > last ? last : args->after;
	peer->wants_facts = true;
	peer->facts_calls++;
	if (!peer->follows && ckt_control_is_administrator(peer)) {
		peer->follows = true;
		ckt_scheduler_came(peer->server);
	}
	if (!ckt_daemon_facts_tell(peer))
		ckt_daemon_events_listen(peer);
}
