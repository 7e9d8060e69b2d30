/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of every question; see ask.h. */
#include "server/daemon/policy/ask.h"

#include <stdio.h>
#include <string.h>

#include "server/daemon/durable/sleep.h"
#include "server/daemon/image/stage.h"
#include "server/daemon/metrics/counters.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/server.h"
#include "server/daemon/session/job.h"
#include "server/daemon/session/memory_wait.h"
#include "server/daemon/session/session.h"

struct ckt_policy_server ckt_policy_server_of(const struct ckt_server *server)
{
	return (struct ckt_policy_server){.options = &server->options,
		.host = server->host,
		.descriptor_max = server->descriptor_count,
		.session_count = server->session_count,
		.driver_gpu_count = server->driver.gpu_count,
		.gpus = server->gpus,
		.gpu_count = server->gpu_count,
		.stopping = server->stopping,
		.has_token = ckt_tokens_known(server)};
}

struct ckt_identity ckt_identity_of_peer(const struct ckt_peer *peer)
{
	uint32_t owner = ckt_peer_owner(peer);
	return owner == CKT_UID_UNKNOWN ? ckt_identity_of(&peer->who)
					: ckt_identity_of_owner(owner);
}

/* Of the identity's token; NULL: it is none. */
static const struct ckt_token_entry *token_of(
	struct ckt_server *server, const struct ckt_identity *identity)
{
	return identity->kind == CKT_IDENTITY_TOKEN ? ckt_tokens_find_owner(server, identity->uid)
						    : NULL;
}

/* The counts of peers of one identity. */
struct held {
	unsigned waiting, control, events, descriptors;
};

static struct held held_by(const struct ckt_server *server, const struct ckt_identity *identity)
{
	struct held held = {.control = ckt_stage_data_connections(identity)};
	for (const struct ckt_peer *peer = server->peers_first; peer; peer = peer->next) {
		struct ckt_identity own = ckt_identity_of_peer(peer);
		if (!ckt_identity_same(&own, identity))
			continue;
		held.waiting += peer->phase == CKT_PEER_WAITING;
		if (peer->phase != CKT_PEER_CONTROL)
			continue;
		held.control++;
		held.events += peer->wants_events;
		held.descriptors += peer->image_count;
	}
	held.descriptors += held.control + ckt_stages_of(server, identity);
	return held;
}

/* The facts of a question about what this peer's identity has. */
struct peer_facts {
	struct ckt_policy_server server;
	const struct ckt_policy *policy;
	struct ckt_identity identity;
	struct held held;
};

static struct peer_facts facts_of(const struct ckt_peer *peer)
{
	struct peer_facts facts = {.server = ckt_policy_server_of(peer->server),
		.policy = peer->server->policy,
		.identity = ckt_identity_of_peer(peer)};
	facts.held = held_by(peer->server, &facts.identity);
	return facts;
}

void ckt_ask_waiting(const struct ckt_peer *peer, struct ckt_decision *ret_decision)
{
	const struct peer_facts facts = facts_of(peer);
	const struct ckt_count_facts count = {facts.identity, facts.held.waiting};
	facts.policy->waiting(&facts.server, &count, ret_decision);
	ckt_count_decision(CKT_QUESTION_WAITING, ret_decision);
}

void ckt_ask_control_connection(const struct ckt_peer *peer, struct ckt_decision *ret_decision)
{
	const struct peer_facts facts = facts_of(peer);
	const struct ckt_count_facts count = {facts.identity, facts.held.control};
	facts.policy->control_connection(&facts.server, &count, ret_decision);
	ckt_count_decision(CKT_QUESTION_CONTROL, ret_decision);
}

void ckt_ask_event_listener(const struct ckt_peer *peer, struct ckt_decision *ret_decision)
{
	const struct peer_facts facts = facts_of(peer);
	const struct ckt_count_facts count = {facts.identity, facts.held.events};
	facts.policy->event_listener(&facts.server, &count, ret_decision);
}

void ckt_ask_descriptor(const struct ckt_peer *peer, struct ckt_decision *ret_decision)
{
	const struct peer_facts facts = facts_of(peer);
	const struct ckt_count_facts count = {facts.identity, facts.held.descriptors};
	facts.policy->descriptor(&facts.server, &count, ret_decision);
}

void ckt_ask_stage(const struct ckt_peer *peer, struct ckt_decision *ret_decision)
{
	const struct peer_facts facts = facts_of(peer);
	const struct ckt_stage_facts stage = {.identity = facts.identity,
		.of_connection = ckt_stages_of_peer(peer),
		.of_identity = ckt_stages_of(peer->server, &facts.identity),
		.descriptors = facts.held.descriptors};
	facts.policy->stage(&facts.server, &stage, ret_decision);
	ckt_count_decision(CKT_QUESTION_STAGE, ret_decision);
}

/* Whom limits may fit of what the peer would make, or of the program that it is. */
struct peer_subject {
	struct ckt_limit_subject subject;
	char job[CKT_JOB_NAME_MAX + 1];
};

static bool is_of(const struct ckt_session *session, const struct ckt_peer *peer)
{
	return session->uid == ckt_peer_owner(peer) &&
		session->status.client_pid == peer->hello.pid && peer->hello.host &&
		strcmp(session->status.client, peer->hello.host) == 0;
}

static void subject_of(const struct ckt_peer *peer, struct peer_subject *ret)
{
	ckt_daemon_job_of_hello(&peer->hello, ret->job);
	/* A program that asks about GPUs, as nvidia-smi or by NVML: what its session sees. */
	const struct ckt_session *session = peer->server->sessions;
	while (session && !is_of(session, peer))
		session = session->next;
	if (session && peer->phase == CKT_PEER_CONTROL) {
		ret->subject = ckt_lease_subject(session);
		return;
	}
	ret->subject = (struct ckt_limit_subject){.session = "",
		.container = peer->container,
		.job = ret->job,
		.owner = ckt_peer_owner(peer)};
}

/* Whether one of the GPUs that the session would have, or the one that it wants, has room for it. */
static bool has_room(struct ckt_server *server, const struct ckt_limit_subject *subject,
	const struct ckt_session_facts *facts)
{
	struct ckt_share share;
	bool room = false;
	/* The peer's own number; the policy refuses those that do not exist. */
	if (facts->gpu >= CKT_DEVICES_MAX)
		return true;
	if (facts->gpu >= 0)
		return ckt_memory_wait_admits(server, (unsigned)facts->gpu);
	ckt_ask_share(server, &facts->identity, subject, &share);
	for (unsigned i = 0; i < share.gpu_count; i++)
		room |= ckt_memory_wait_admits(server, share.gpus[i]);
	return room || !share.gpu_count;
}

/* The smallest limit of its owner that has no room for one more. */
static void find_full(struct ckt_server *server, const struct ckt_limit_subject *subject,
	struct ckt_session_facts *facts)
{
	const struct ckt_ledger *ledger = &server->ledger;
	const struct ckt_limit_rule *rule = ckt_ledger_full(ledger, subject);
	facts->denied_gpus = ~ckt_ledger_gpus(ledger, subject);
	if (rule)
		snprintf(facts->full, sizeof facts->full,
			"%s=%.80s already has the %u sessions of its limit: end one first",
			ckt_limit_key_name(rule->key), rule->name, rule->sessions);
	else if (!has_room(server, subject, facts))
		snprintf(facts->full, sizeof facts->full,
			"no GPU has room for one more context (--gpu-memory): end a session first");
}

void ckt_ask_session(
	const struct ckt_peer *peer, bool restore, int gpu, struct ckt_decision *ret_decision)
{
	const struct ckt_policy_server server = ckt_policy_server_of(peer->server);
	struct ckt_session_facts facts = {
		.identity = ckt_identity_of_peer(peer), .gpu = gpu, .restore = restore};
	const struct ckt_token_entry *token = token_of(peer->server, &facts.identity);
	struct peer_subject own;
	facts.max = token ? token->max_sessions : 0;
	subject_of(peer, &own);
	find_full(peer->server, &own.subject, &facts);
	for (const struct ckt_session *session = peer->server->sessions; session;
		session = session->next)
		facts.of_identity += ckt_identity_same(&session->identity, &facts.identity);
	/* One that wakes is none of these any more. */
	facts.of_identity += ckt_sleep_count(&facts.identity);
	peer->server->policy->session(&server, &facts, ret_decision);
	ckt_count_decision(CKT_QUESTION_SESSION, ret_decision);
}

void ckt_ask_share_of_peer(const struct ckt_peer *peer, struct ckt_share *ret_share)
{
	const struct ckt_identity identity = ckt_identity_of_peer(peer);
	struct peer_subject own;
	subject_of(peer, &own);
	ckt_ask_share(peer->server, &identity, &own.subject, ret_share);
}

void ckt_ask_memory_of_peer(
	const struct ckt_peer *peer, unsigned gpu, uint64_t *ret_total, uint64_t *ret_left)
{
	struct peer_subject own;
	subject_of(peer, &own);
	*ret_total = ckt_ledger_total(&peer->server->ledger, &own.subject, gpu);
	*ret_left = ckt_ledger_left(&peer->server->ledger, &own.subject, gpu, true);
}

void ckt_ask_share(struct ckt_server *server, const struct ckt_identity *identity,
	const struct ckt_limit_subject *subject, struct ckt_share *ret_share)
{
	const struct ckt_policy_server server_facts = ckt_policy_server_of(server);
	const struct ckt_token_entry *token = token_of(server, identity);
	const struct ckt_share_facts facts = {.identity = *identity,
		.token_device_memory = token ? token->session_memory : 0,
		.token_host_memory = token ? token->session_host_memory : 0,
		.denied_gpus = subject ? ~ckt_ledger_gpus(&server->ledger, subject) : 0};
	server->policy->share(&server_facts, &facts, ret_share);
}

static struct ckt_busy_facts busy_of(const struct ckt_session *session)
{
	return (struct ckt_busy_facts){.session = session->id,
		.live = session->phase == CKT_SESSION_LIVE,
		.held = session->holder != NULL,
		.held_by_job = session->job_hold != NULL};
}

void ckt_ask_save(const struct ckt_session *session, const struct ckt_peer *peer, bool beside,
	struct ckt_decision *ret_decision)
{
	const struct ckt_policy_server server = ckt_policy_server_of(session->server);
	struct ckt_busy_facts facts = busy_of(session);
	facts.held &= !beside;
	facts.held_by_job = peer && ckt_daemon_job_is_foreign(session, peer);
	session->server->policy->save(&server, &facts, ret_decision);
	ckt_count_decision(CKT_QUESTION_SAVE, ret_decision);
}

void ckt_ask_pause(const struct ckt_session *session, struct ckt_decision *ret_decision)
{
	const struct ckt_policy_server server = ckt_policy_server_of(session->server);
	const struct ckt_busy_facts facts = busy_of(session);
	session->server->policy->pause(&server, &facts, ret_decision);
	ckt_count_decision(CKT_QUESTION_PAUSE, ret_decision);
}

void ckt_ask_resume(const struct ckt_session *session, struct ckt_decision *ret_decision)
{
	const struct ckt_policy_server server = ckt_policy_server_of(session->server);
	const struct ckt_busy_facts facts = busy_of(session);
	session->server->policy->resume(&server, &facts, ret_decision);
	ckt_count_decision(CKT_QUESTION_RESUME, ret_decision);
}
