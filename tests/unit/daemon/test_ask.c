/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/policy/ask.c: the facts are those of the server's own lists. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/job.h"

static struct ckt_decision decision;

static bool asked(void (*ask)(const struct ckt_peer *peer, struct ckt_decision *ret_decision),
	const struct ckt_peer *peer)
{
	ask(peer, &decision);
	return !decision.answer;
}

static void test_calls(void)
{
	struct ckt_peer peers[6];
	memset(peers, 0, sizeof peers);
	server.options.max_connections_per_user = 4;
	for (size_t i = 0; i < COUNT(peers); i++) {
		peers[i] = (struct ckt_peer){.server = &server,
			.who = {.kind = CKT_PEER_UNIX, .uid = 1001},
			.phase = CKT_PEER_CONTROL,
			.next = i + 1 < COUNT(peers) ? &peers[i + 1] : NULL};
		peers[i].wants_events = i < 2;
	}
	peers[5].who.uid = 1002;
	server.peers_first = &peers[0];
	NO(asked(ckt_ask_control_connection, &peers[0]));
	HAS(decision.reason, "--max-connections-per-user");
	YES(asked(ckt_ask_control_connection, &peers[5]));
	NO(asked(ckt_ask_event_listener, &peers[0]));
	HAS(decision.reason, "wait for events");
	YES(asked(ckt_ask_event_listener, &peers[5]));
	peers[0].who.uid = 0;
	YES(asked(ckt_ask_control_connection, &peers[0]) &&
		asked(ckt_ask_event_listener, &peers[0]));
	/* Descriptors: a quarter of all. */
	server.descriptor_count = 32;
	peers[1].image_count = 5;
	NO(asked(ckt_ask_descriptor, &peers[1]));
	HAS(decision.reason, "ulimit -n");
	YES(asked(ckt_ask_descriptor, &peers[5]));
	server.descriptor_count = 0;
	for (size_t i = 0; i < 4; i++)
		peers[i].phase = CKT_PEER_WAITING;
	server.options.max_waiting = 4;
	server.options.max_waiting_per_peer = 3;
	NO(asked(ckt_ask_waiting, &peers[1]));
	YES(asked(ckt_ask_waiting, &peers[5]));
	server.peers_first = NULL;
}

static void test_sessions(void)
{
	static const char *const ids[] = {"0000000000a1", "0000000000a2", "0000000000a3"};
	struct ckt_session *sessions[3];
	struct ckt_peer peer = {.server = &server, .who = {.kind = CKT_PEER_UNIX, .uid = 1001}};
	for (size_t i = 0; i < 3; i++) {
		sessions[i] = session_new(ids[i]);
		sessions[i]->identity =
			(struct ckt_identity){.kind = CKT_IDENTITY_USER, .uid = 1001};
	}
	server.options.max_sessions = 4;
	server.options.max_sessions_per_user = 3;
	ckt_ask_session(&peer, false, -1, &decision);
	IS(decision.answer, CKT_POLICY_FULL);
	peer.who.uid = 1002;
	ckt_ask_session(&peer, false, -1, &decision);
	IS(decision.answer, CKT_POLICY_YES);
	/* The driver finds one GPU. */
	ckt_ask_session(&peer, true, 1, &decision);
	IS(decision.answer, CKT_POLICY_NO_DEVICE);
	server.options.max_sessions = 3;
	ckt_ask_session(&peer, false, -1, &decision);
	IS(decision.answer, CKT_POLICY_WAIT);
	server.options.max_sessions = server.options.max_sessions_per_user = 0;
	for (size_t i = 0; i < 3; i++)
		session_drop(sessions[i]);
}

static void test_share(void)
{
	const struct ckt_identity anybody = {.kind = CKT_IDENTITY_TOKEN};
	struct ckt_share share;
	server.options.session_memory = 5;
	server.options.session_host_memory = 6;
	ckt_ask_share(&server, &anybody, NULL, &share);
	YES(share.gpu_count == 1 && share.gpus[0] == 0);
	YES(share.device_memory_bytes == 5 && share.host_memory_bytes == 6);
	server.options.session_memory = server.options.session_host_memory = 0;
}

/* By the limits of owners. */
static void test_owners(void)
{
	struct ckt_limit_rule rule;
	char message[128];
	struct ckt_share share;
	struct ckt_peer peer = {.server = &server, .who = {.kind = CKT_PEER_UNIX, .uid = 1001}};
	uint64_t total, left;
	unsigned gpus = server.driver.gpu_count;
	server.driver.gpu_count = 3;
	MUST(ckt_limit_rule_parse(
		     "user=1001 sessions=1 gpus=1-2 memory=8M", &rule, message, sizeof message),
		0);
	MUST(ckt_limit_table_put(&server.ledger.limits, &rule), 0);
	ckt_ask_share_of_peer(&peer, &share);
	YES(share.gpu_count == 2 && share.gpus[0] == 1 && share.gpus[1] == 2);
	ckt_ask_memory_of_peer(&peer, 1, &total, &left);
	YES(total == 8 << 20 && left == 8 << 20);
	ckt_ask_session(&peer, true, 0, &decision);
	IS(decision.answer, CKT_POLICY_NO_DEVICE);
	ckt_ask_session(&peer, true, 1, &decision);
	IS(decision.answer, CKT_POLICY_YES);
	/* One is enough; another user has another sum. */
	struct ckt_session *session = session_new("0000000000a1");
	session->uid = 1001;
	MUST(ckt_lease_open(session), 0);
	ckt_ask_session(&peer, false, -1, &decision);
	IS(decision.answer, CKT_POLICY_FULL);
	HAS(decision.reason, "user=1001 already has the 1 sessions of its limit");
	peer.who.uid = 1002;
	ckt_ask_session(&peer, false, -1, &decision);
	IS(decision.answer, CKT_POLICY_YES);
	/* A context more needs room on the GPU. */
	server.ledger.context_bytes = CKT_LEDGER_CONTEXT_BYTES;
	server.ledger.budgets[0] = server.ledger.budgets[1] = server.ledger.budgets[2] =
		CKT_LEDGER_CONTEXT_BYTES;
	ckt_ask_session(&peer, true, 0, &decision);
	IS(decision.answer, CKT_POLICY_FULL);
	HAS(decision.reason, "--gpu-memory");
	ckt_ask_session(&peer, true, 2, &decision);
	IS(decision.answer, CKT_POLICY_YES);
	ckt_ask_session(&peer, false, -1, &decision);
	IS(decision.answer, CKT_POLICY_YES);
	/* A number that nobody checked. */
	ckt_ask_session(&peer, true, INT_MAX, &decision);
	IS(decision.answer, CKT_POLICY_NO_DEVICE);
	/* GPUs that do not exist have no budget, and no room either. */
	server.ledger.budgets[1] = server.ledger.budgets[2] = 1 << 20;
	ckt_ask_session(&peer, false, -1, &decision);
	IS(decision.answer, CKT_POLICY_FULL);
	HAS(decision.reason, "no GPU has room for one more context");
	server.ledger.context_bytes = 0;
	memset(server.ledger.budgets, 0, sizeof server.ledger.budgets);
	/* A limit that leaves no GPU at all. */
	peer.who.uid = 1001;
	server.ledger.limits.rules[0].gpus = 1 << 7;
	ckt_ask_session(&peer, false, -1, &decision);
	IS(decision.answer, CKT_POLICY_NO_DEVICE);
	HAS(decision.reason, "cricketctl limit show");
	ckt_lease_close(session);
	session_drop(session);
	ckt_limit_table_free(&server.ledger.limits);
	server.driver.gpu_count = gpus;
}

static void test_busy(void)
{
	struct ckt_session *session = session_new("0000000000a1");
	struct ckt_peer peer = {.server = &server}, holder = peer;
	struct ckt_job_hold hold = {.peer = &holder};
	ckt_ask_save(session, &peer, false, &decision);
	IS(decision.answer, CKT_POLICY_YES);
	session->holder = &holder;
	ckt_ask_save(session, &peer, false, &decision);
	IS(decision.answer, CKT_POLICY_BUSY);
	ckt_ask_save(session, &peer, true, &decision);
	IS(decision.answer, CKT_POLICY_YES);
	ckt_ask_pause(session, &decision);
	IS(decision.answer, CKT_POLICY_BUSY);
	session->holder = NULL;
	session->job_hold = &hold;
	ckt_ask_save(session, &peer, false, &decision);
	HAS(decision.reason, "of its job");
	ckt_ask_save(session, &holder, false, &decision);
	IS(decision.answer, CKT_POLICY_YES);
	/* The server, as it ends, saves what stands with its job. */
	ckt_ask_save(session, NULL, false, &decision);
	IS(decision.answer, CKT_POLICY_YES);
	ckt_ask_resume(session, &decision);
	IS(decision.answer, CKT_POLICY_BUSY);
	session->job_hold = NULL;
	ckt_ask_resume(session, &decision);
	IS(decision.answer, CKT_POLICY_YES);
	session_drop(session);
}

UNIT_SUITE(ask, {"calls", test_calls}, {"sessions", test_sessions}, {"share", test_share},
	{"owners", test_owners}, {"busy", test_busy})
