/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cricketctl top shows, a page of sessions in one answer.  Each worker that may be seen is
 * asked for its status and its counts, at the same time; one that does not answer is told without
 * counts.
 */
#include <stdlib.h>
#include <string.h>

#include "rpc/net.h"
#include "rpc/worker.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/policy/tokens.h"
#include "server/daemon/session/memory_wait.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/worker_request.h"

/* As of CONNECTIONS: one worker must not hold up the others. */
enum { COUNTS_TIMEOUT_MS = 3000 };

/* What a worker has counted. */
struct counts {
	char session[CKT_SESSION_ID_SIZE + 1], transport[CKT_CONTROL_TRANSPORT + 1];
	unsigned lanes;
	uint64_t calls, waits;
	int64_t received_bytes, sent_bytes; /* -1: an earlier worker */
};

struct watching {
	struct ckt_peer *peer;
	unsigned left; /* answers to come, and one for the asking itself */
	char after[CKT_SESSION_ID_SIZE + 1];
	unsigned count;
	struct counts counts[CKT_CONTROL_WATCH_MAX];
};

/* The strings of one answer. */
struct page {
	ckt_control_watched sessions[CKT_CONTROL_WATCH_MAX];
	char owners[CKT_CONTROL_WATCH_MAX][CKT_OWNER_NAME_SIZE];
};

static bool listed(const struct watching *watching, const struct ckt_session *session)
{
	return strcmp(session->id, watching->after) > 0 &&
		ckt_peer_may_session(watching->peer, session);
}

static const struct counts *counts_of(const struct watching *watching, const char *session)
{
	static const struct counts none = {.received_bytes = -1, .sent_bytes = -1};
	for (unsigned i = 0; i < watching->count; i++)
		if (strcmp(watching->counts[i].session, session) == 0)
			return &watching->counts[i];
	return &none;
}

struct numbers {
	int64_t swapped_bytes, waiting_ms, switches; /* -1: not known */
};

/* It waits for memory or a turn, whichever it waits for longer; -1: it never waits for either. */
static int64_t waiting_ms(const struct ckt_session *session)
{
	if (!session->turn.member_of && ckt_memory_when_full(session) == CKT_WHEN_FULL_FAIL)
		return -1;
	int64_t longest = ckt_turn_waiting_ms(session);
	for (const struct ckt_wait_request *r = session->server->waits.first; r; r = r->next) {
		int64_t waited_ms = ckt_net_now_ms() - r->since_ms;
		if (ckt_memory_wait_session(r) == session && waited_ms > longest)
			longest = waited_ms;
	}
	return longest;
}

/* A session loses the GPU at the end of its turn, and when it is swapped out. */
static struct numbers numbers_of(const struct ckt_session *session)
{
	struct numbers numbers = {-1, waiting_ms(session), ckt_turn_switches(session)};
	struct ckt_quantum_view view;
	if (!ckt_quantum_describe(session, &view))
		return numbers;
	numbers.swapped_bytes = (int64_t)view.swapped_bytes;
	if (view.waited_ms > numbers.waiting_ms)
		numbers.waiting_ms = view.waited_ms;
	numbers.switches = (numbers.switches < 0 ? 0 : numbers.switches) + (int64_t)view.outs;
	return numbers;
}

static ckt_control_watched describe(
	const struct watching *watching, struct ckt_session *session, char *owner)
{
	const struct counts *counts = counts_of(watching, session->id);
	const struct numbers numbers = numbers_of(session);
	ckt_owner_text(watching->peer->server, session->uid, owner);
	return (ckt_control_watched){.session = ckt_control_describe(session),
		.owner = {owner, (char *)ckt_tokens_project(watching->peer->server, session->uid)},
		.job = session->job,
		.transport = (char *)counts->transport,
		.lanes = counts->lanes,
		.calls = counts->calls,
		.waits = counts->waits,
		.received_bytes = counts->received_bytes,
		.sent_bytes = counts->sent_bytes,
		.share_permille = ckt_turn_share_permille(session),
		.swapped_bytes = numbers.swapped_bytes,
		.waiting_ms = numbers.waiting_ms,
		.switches = numbers.switches};
}

static void answered(struct watching *watching)
{
	if (--watching->left)
		return;
	struct ckt_peer *peer = watching->peer;
	struct page *page = calloc(1, sizeof *page);
	ckt_control_watch_res res = {.sessions = {0, page ? page->sessions : NULL}};
	for (struct ckt_session *session = peer->server->sessions; page && session;
		session = session->next) {
		u_int n = res.sessions.sessions_len;
		if (!listed(watching, session))
			continue;
		res.more = n == CKT_CONTROL_WATCH_MAX;
		if (res.more)
			break;
		page->sessions[n] = describe(watching, session, page->owners[n]);
		res.sessions.sessions_len++;
	}
	if (ckt_peer_release(peer)) {
		if (page)
			ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_watch_res, &res);
		else
			ckt_peer_close(peer);
	}
	free(page);
	free(watching);
}

static void take_row(struct counts *counts, const ckt_worker_stat *row)
{
	const size_t prefix = strlen(CKT_STAT_TRANSPORT);
	if (strncmp(row->name, CKT_STAT_TRANSPORT, prefix) == 0) {
		*counts->transport = 0;
		strncat(counts->transport, row->name + prefix, CKT_CONTROL_TRANSPORT);
		counts->lanes = (unsigned)row->calls;
	} else if (strcmp(row->name, CKT_STAT_RECEIVED) == 0) {
		counts->received_bytes = (int64_t)row->bytes;
	} else if (strcmp(row->name, CKT_STAT_SENT) == 0) {
		counts->sent_bytes = (int64_t)row->bytes;
	} else if (strcmp(row->name, CKT_STAT_MODULE_HITS) != 0 &&
		strcmp(row->name, CKT_STAT_MODULE_MISSES) != 0) {
		counts->calls += row->calls;
		counts->waits += row->waited;
	}
}

static void counts_came(struct ckt_session *session, void *context, int error, void *decoded)
{
	struct watching *watching = context;
	const struct ckt_worker_stats_res *res = decoded;
	if (!error && watching->count < CKT_CONTROL_WATCH_MAX) {
		struct counts *counts = &watching->counts[watching->count++];
		*counts = (struct counts){
			.transport = "none", .received_bytes = -1, .sent_bytes = -1};
		strcpy(counts->session, session->id);
		for (u_int i = 0; i < res->stats.stats_len; i++)
			take_row(counts, &res->stats.stats_val[i]);
	}
	answered(watching);
}

static void status_came(struct ckt_session *session, void *context, int error, void *result)
{
	ckt_control_keep_status(session, error, result);
	answered(context);
}

void ckt_control_watch(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_list_args *args = decoded;
	struct watching *watching = calloc(1, sizeof *watching);
	unsigned asked = 0;
	(void)passed_fd;
	if (!watching) {
		ckt_peer_close(peer);
		return;
	}
	watching->peer = peer;
	watching->left = 1;
	strcpy(watching->after, args->after);
	ckt_peer_hold(peer);
	for (struct ckt_session *session = peer->server->sessions;
		session && asked < CKT_CONTROL_WATCH_MAX; session = session->next) {
		if (!listed(watching, session))
			continue;
		asked++;
		if (session->phase != CKT_SESSION_LIVE)
			continue;
		/* A worker answers in this order: one with counts has told its status, too. */
		watching->left += ckt_control_ask_status(
					  session, COUNTS_TIMEOUT_MS, status_came, watching) == 0;
		watching->left += ckt_session_call(session, CKT_WORKER_STATS, NULL, NULL, -1,
					  (xdrproc_t)xdr_ckt_worker_stats_res,
					  sizeof(struct ckt_worker_stats_res), COUNTS_TIMEOUT_MS,
					  counts_came, watching) == 0;
	}
	answered(watching);
}
