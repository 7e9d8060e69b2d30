/* SPDX-License-Identifier: Apache-2.0 */
/* Restores under an id that an image names; see restore_claim.h. */
#include "server/daemon/session/restore_claim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server/daemon/policy/ask.h"
#include "server/daemon/session/session_marks.h"
#include "server/daemon/session/server_key.h"

struct ckt_claimant ckt_claimant_of(const struct ckt_peer *peer)
{
	const struct ckt_control_facts facts = ckt_peer_control_facts(peer, CKT_UID_UNKNOWN);
	return (struct ckt_claimant){.owner = ckt_peer_owner(peer),
		.shown = peer->shown,
		.uid = facts.uid,
		.token = facts.token,
		.role = facts.role,
		.for_others = ckt_peer_role(peer) == CKT_ROLE_ADMINISTRATOR ||
			facts.token == ckt_owner_of_token(CKT_SINGLE_TOKEN_NAME)};
}

bool ckt_claimant_may(
	struct ckt_server *server, const struct ckt_claimant *claimant, uint32_t owner_uid)
{
	const struct ckt_policy_server server_facts = ckt_policy_server_of(server);
	const struct ckt_control_facts facts = {.uid = claimant->uid,
		.token = claimant->token,
		.role = claimant->role,
		.operates = claimant->role >= CKT_ROLE_OPERATOR &&
			ckt_tokens_operates(server, claimant->token, owner_uid),
		.owner_uid = owner_uid};
	struct ckt_decision decision;
	server->policy->control(&server_facts, &facts, &decision);
	return !decision.answer;
}

/* A seal must name a real user; an anonymous owner stays anonymous. */
static void settle_owner(
	struct ckt_session *session, const struct ckt_worker_origin_res *origin, bool sealed)
{
	const struct ckt_claimant *by = &session->claimant;
	session->uid = by->owner;
	session->unclaimed = false;
	if (!by->for_others)
		return;
	if (sealed && origin->uid != CKT_UID_UNKNOWN)
		session->uid = origin->uid;
	else
		session->unclaimed = by->uid == 0 || by->token;
}

/* Another user stopped the session here, or moved it away: that user's program waits for it. */
static int check_marks(
	const struct ckt_session *session, const char *id, char ret_message[CKT_MESSAGE_MAX])
{
	static const enum ckt_session_mark marks[] = {CKT_MARK_PARKED, CKT_MARK_MOVED};
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		char text[CKT_ADDRESS_MAX + 1];
		uint32_t owner;
		if (!ckt_session_mark_read(
			    session->server, id, marks[i], &owner, text, sizeof text) ||
			ckt_claimant_may(session->server, &session->claimant, owner))
			continue;
		/* No owner is known, or the owner got the ID from an image: the proof decides. */
		if (session->proven &&
			(owner == CKT_UID_UNKNOWN ||
				!ckt_session_mark_is_proven(session->server, id, marks[i])))
			continue;
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"session %s was last here and belongs to another user: restore "
			"it as that user or as root",
			id);
		return -EPERM;
	}
	return 0;
}

/* A server that drains takes its own sessions back, and those that change GPUs. */
static bool was_here(struct ckt_server *server, const char *id)
{
	char text[CKT_ADDRESS_MAX + 1];
	uint32_t owner;
	return ckt_session_mark_read(server, id, CKT_MARK_PARKED, &owner, text, sizeof text) ||
		ckt_session_find(server, id);
}

int ckt_claim_check(struct ckt_session *session, const struct ckt_worker_origin_res *origin,
	struct ckt_session **ret_other, bool *ret_end, char ret_message[CKT_MESSAGE_MAX])
{
	const char *id = origin->session;
	int sealed = ckt_server_key_seal_check(session->server, origin);
	if (sealed < 0) {
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"the image names this server as its writer, but its seal is "
			"wrong: the image was changed");
		return sealed;
	}
	session->proven = sealed || ckt_server_key_fits(id, (const uint8_t *)origin->secret_hash);
	settle_owner(session, origin, sealed);
	int result = check_marks(session, id, ret_message);
	if (!result && !sealed && !was_here(session->server, id) &&
		ckt_drain_refuses(session->server, ret_message))
		result = -EBUSY;
	struct ckt_session *other = result || strcmp(id, session->id) == 0
		? NULL
		: ckt_session_find(session->server, id);
	if (result || !other)
		return result;
	bool may = ckt_claimant_may(session->server, &session->claimant, other->uid) ||
		(session->claimant.shown && session->claimant.shown == other->serial);
	*ret_other = other;
	*ret_end = false;
	/* It moves from one GPU of this server to another. */
	if (may && other->holder)
		return 1;
	/* An unclaimed copy of an earlier move: the session itself is frozen at its source. */
	*ret_end = true;
	if (may && session->preloader)
		return 1;
	if (session->proven && !other->proven)
		return 1;
	if (may)
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"session %s is already here: end it first with 'cricketctl kill %s'", id,
			id);
	else
		snprintf(ret_message, CKT_MESSAGE_MAX,
			"session %s is already here and belongs to another user", id);
	return -EEXIST;
}
