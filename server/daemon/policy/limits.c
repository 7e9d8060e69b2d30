/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of fixed limits, each with its option; see policy.h.
 *
 * One identity cannot exhaust what others need.  Root and the server's own user can end every
 * session anyway, so only the totals limit them.
 */
#include <stdarg.h>
#include <stdio.h>

#include "rpc/control.h"
#include "server/daemon/options.h"
#include "server/daemon/policy/policy.h"

enum {
	FAILURES_FREE = 3, /* a mistyped path of a token file is not an attack */
	FIRST_DELAY_MS = 100,
	RESERVE_MAX = 64, /* descriptors, or a sixteenth of all */
	RESERVE_EACH = 4, /* waiting connections of a source that may use the reserve */
	FREE_PART = 20,   /* of the file system, reserved for others */
};

static void yes(struct ckt_decision *ret_decision)
{
	ret_decision->answer = CKT_POLICY_YES;
	ret_decision->reason[0] = 0;
}

static void __attribute__((format(printf, 3, 4)))
no(struct ckt_decision *ret_decision, enum ckt_policy_answer answer, const char *format, ...)
{
	va_list arguments;
	ret_decision->answer = answer;
	va_start(arguments, format);
	vsnprintf(ret_decision->reason, sizeof ret_decision->reason, format, arguments);
	va_end(arguments);
}

/* A limit of this server's. */
static void __attribute__((format(printf, 3, 4))) full(const struct ckt_policy_server *server,
	struct ckt_decision *ret_decision, const char *format, ...)
{
	va_list arguments;
	char what[CKT_MESSAGE_MAX - 150];
	va_start(arguments, format);
	vsnprintf(what, sizeof what, format, arguments);
	va_end(arguments);
	no(ret_decision, CKT_POLICY_FULL, "the server on %.100s: %.360s", server->host, what);
}

/* ---- Connections */

static unsigned waiting_max(const struct ckt_policy_server *server)
{
	/*
	 * With few descriptors the limit is lower: half of them, since sessions and control need
	 * theirs.
	 */
	unsigned max = server->options->max_waiting, half = server->descriptor_max / 2;
	return half && half < max ? half : max;
}

static unsigned waiting_max_each(const struct ckt_policy_server *server)
{
	unsigned each = server->options->max_waiting_per_peer, half = waiting_max(server) / 2;
	return each ? each : half ? half : 1;
}

/*
 * The last descriptors are for root and the server's user; some before those are for sources with
 * few connections.
 */
static bool descriptor_allows(
	const struct ckt_policy_server *server, const struct ckt_connection_facts *facts)
{
	unsigned total = server->descriptor_max,
		 reserve = total / 16 < RESERVE_MAX ? total / 16 : RESERVE_MAX;
	if (!total || facts->descriptor + 2 * reserve < total)
		return true;
	return ckt_identity_is_operator(&facts->source) ||
		(facts->descriptor + reserve < total && facts->source_waiting < RESERVE_EACH);
}

static enum ckt_connection_answer limit_connection(const struct ckt_policy_server *server,
	const struct ckt_connection_facts *facts, struct ckt_decision *ret_decision)
{
	no(ret_decision, CKT_POLICY_FULL,
		"connection dropped before its hello: too many of its address or "
		"user are waiting (--max-waiting-per-peer)");
	if (!descriptor_allows(server, facts))
		return CKT_CONNECTION_REFUSE;
	if (facts->source_waiting > waiting_max_each(server) &&
		!ckt_identity_is_operator(&facts->source))
		return CKT_CONNECTION_REPLACE_OWN;
	if (facts->waiting <= waiting_max(server)) {
		yes(ret_decision);
		return CKT_CONNECTION_ADMIT;
	}
	if (facts->source_has_most)
		return CKT_CONNECTION_REPLACE_OWN;
	no(ret_decision, CKT_POLICY_FULL,
		"too many connections are waiting, and most are from this address "
		"(--max-waiting)");
	return CKT_CONNECTION_REPLACE_MOST;
}

static unsigned limit_denial_delay_ms(const struct ckt_policy_server *server, unsigned failures)
{
	unsigned max_ms = server->options->max_delay * 1000;
	if (failures <= FAILURES_FREE)
		return 0;
	unsigned doublings = failures - FAILURES_FREE - 1;
	unsigned delay_ms = doublings < 16 ? (unsigned)FIRST_DELAY_MS << doublings : max_ms;
	return delay_ms < max_ms ? delay_ms : max_ms;
}

static void limit_entry(const struct ckt_policy_server *server, const struct ckt_entry_facts *facts,
	struct ckt_decision *ret_decision)
{
	/*
	 * A forwarded port makes every peer look local: so a token is required over loopback too,
	 * and no such peer has a uid.
	 */
	bool open = server->options->insecure || (facts->loopback && !server->has_token);
	if (facts->token == CKT_PROOF_WRONG)
		no(ret_decision, CKT_POLICY_DENIED,
			"the token does not match the server's: CRICKET_TOKEN_FILE "
			"must name a copy of its token file, or of a token that its "
			"administrator gave you and has not revoked");
	else if (facts->token == CKT_PROOF_EXPIRED)
		no(ret_decision, CKT_POLICY_DENIED,
			"the token '%s' has expired: ask the server's administrator for "
			"another",
			facts->token_name);
	else if (facts->token == CKT_PROOF_RIGHT || facts->local || open)
		yes(ret_decision);
	else if (server->has_token)
		no(ret_decision, CKT_POLICY_DENIED,
			"this server requires a token: set CRICKET_TOKEN_FILE to a "
			"copy of its token file, or of the token that its administrator "
			"gave you");
	else
		no(ret_decision, CKT_POLICY_DENIED,
			"this server accepts no clients from other hosts: start it "
			"with --tokens or --token-file");
}

/* Whether the limit allows one more for an identity that has so many. */
static bool is_below(const struct ckt_identity *identity, unsigned count, unsigned max)
{
	return ckt_identity_is_operator(identity) || !max || count < max;
}

static void limit_waiting(const struct ckt_policy_server *server,
	const struct ckt_count_facts *facts, struct ckt_decision *ret_decision)
{
	unsigned max = waiting_max_each(server);
	if (is_below(&facts->identity, facts->count, max))
		yes(ret_decision);
	else
		full(server, ret_decision,
			"this user or address already has %u connections that wait for "
			"a session (--max-waiting-per-peer)",
			max);
}

static void limit_control_connection(const struct ckt_policy_server *server,
	const struct ckt_count_facts *facts, struct ckt_decision *ret_decision)
{
	unsigned max = server->options->max_connections_per_user;
	if (is_below(&facts->identity, facts->count, max))
		yes(ret_decision);
	else
		full(server, ret_decision,
			"this user or address already has %u control connections "
			"(--max-connections-per-user): end one first",
			max);
}

static void limit_event_listener(const struct ckt_policy_server *server,
	const struct ckt_count_facts *facts, struct ckt_decision *ret_decision)
{
	/* The other half of its connections is for calls. */
	unsigned max = (server->options->max_connections_per_user + 1) / 2;
	if (is_below(&facts->identity, facts->count, max))
		yes(ret_decision);
	else
		full(server, ret_decision,
			"this user or address already has %u connections that wait for "
			"events (half of --max-connections-per-user)",
			max);
}

static void limit_descriptor(const struct ckt_policy_server *server,
	const struct ckt_count_facts *facts, struct ckt_decision *ret_decision)
{
	unsigned max = server->descriptor_max / 4;
	if (is_below(&facts->identity, facts->count, max))
		yes(ret_decision);
	else
		full(server, ret_decision,
			"this user or address already holds %u of the server's "
			"descriptors (a quarter of ulimit -n)",
			max);
}

static void limit_stage(const struct ckt_policy_server *server, const struct ckt_stage_facts *facts,
	struct ckt_decision *ret_decision)
{
	unsigned max = server->options->max_stages_per_user;
	if (facts->of_connection >= CKT_CONTROL_CHAIN_MAX)
		full(server, ret_decision,
			"one connection makes at most %d images, the length of a chain",
			CKT_CONTROL_CHAIN_MAX);
	else if (!is_below(&facts->identity, facts->of_identity, max))
		full(server, ret_decision,
			"this user or address already has %u images in transfer "
			"(--max-stages-per-user): end one first",
			max);
	else
		limit_descriptor(server,
			&(struct ckt_count_facts){facts->identity, facts->descriptors},
			ret_decision);
}

/* ---- Sessions */

/* Of two limits, of which 0 is none. */
static uint64_t smaller_limit(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static void limit_share(const struct ckt_policy_server *server, const struct ckt_share_facts *facts,
	struct ckt_share *ret_share)
{
	bool all = server->gpu_count == 0;
	unsigned count = all ? server->driver_gpu_count : server->gpu_count;
	*ret_share = (struct ckt_share){
		.device_memory_bytes =
			smaller_limit(server->options->session_memory, facts->token_device_memory),
		.host_memory_bytes = smaller_limit(
			server->options->session_host_memory, facts->token_host_memory)};
	for (unsigned i = 0; i < count && i < CKT_DEVICES_MAX; i++) {
		unsigned gpu = all ? i : server->gpus[i];
		if (!(facts->denied_gpus >> gpu & 1))
			ret_share->gpus[ret_share->gpu_count++] = gpu;
	}
}

/* gpu -1: any at all. */
static bool has_gpu(const struct ckt_policy_server *server, uint64_t denied_gpus, int gpu)
{
	struct ckt_share share;
	limit_share(server, &(struct ckt_share_facts){.denied_gpus = denied_gpus}, &share);
	for (unsigned i = 0; i < share.gpu_count; i++)
		if ((int)share.gpus[i] == gpu)
			return true;
	return gpu < 0 && (share.gpu_count || !denied_gpus);
}

static unsigned sessions_max_each(const struct ckt_policy_server *server)
{
	unsigned all = server->options->max_sessions, each = server->options->max_sessions_per_user;
	return each ? each : all - all / 4;
}

static void limit_session(const struct ckt_policy_server *server,
	const struct ckt_session_facts *facts, struct ckt_decision *ret_decision)
{
	unsigned all = server->options->max_sessions,
		 each = facts->max ? facts->max : sessions_max_each(server);
	if (server->stopping)
		no(ret_decision, CKT_POLICY_STOPPING, "the server on %s is shutting down",
			server->host);
	else if (all && server->session_count >= all)
		no(ret_decision, CKT_POLICY_WAIT,
			facts->restore ? "the server on %s has reached its limit of %u sessions "
					 "(--max-sessions)"
				       : "the server on %s has reached its limit of %u sessions "
					 "(--max-sessions): try again later, or use another "
					 "server",
			server->host, all);
	else if (!has_gpu(server, facts->denied_gpus, -1))
		no(ret_decision, CKT_POLICY_NO_DEVICE,
			"the limits leave this user, job or container no GPU of %s: see cricketctl limit show",
			server->host);
	else if (!has_gpu(server, facts->denied_gpus, facts->gpu))
		no(ret_decision, CKT_POLICY_NO_DEVICE,
			"this server has no GPU %d: see cricketctl info", facts->gpu);
	else if (*facts->full)
		full(server, ret_decision, "%s", facts->full);
	else if (!is_below(&facts->identity, facts->of_identity, each))
		full(server, ret_decision,
			"this user or address already has %u sessions "
			"(%s): end one first",
			each, facts->max ? "max-sessions of the token" : "--max-sessions-per-user");
	else
		yes(ret_decision);
}

static void limit_control(const struct ckt_policy_server *server,
	const struct ckt_control_facts *facts, struct ckt_decision *ret_decision)
{
	(void)server;
	/* Peers without an identity are many users: none may control what another owns. */
	bool is_user = facts->uid != CKT_UID_UNKNOWN, is_token = facts->token,
	     known = is_user || is_token;
	if (facts->secret || (is_user && ckt_uid_is_operator(facts->uid)) ||
		(is_user && facts->uid == facts->owner_uid) ||
		(is_token && facts->token == facts->owner_uid) ||
		(is_token && (facts->role == CKT_ROLE_ADMINISTRATOR || facts->operates)))
		yes(ret_decision);
	else
		no(ret_decision, CKT_POLICY_DENIED,
			known ? "it belongs to another user"
			      : "over TCP without a token the server cannot tell whether "
				"it is yours");
}

/*
 * The key proves a client.  What else is known of the peer must not speak against it: over the UNIX
 * socket its user must be the session's, and the session of one token is not another's.  A client
 * over TCP whose session belongs to a user of this host has no other name to show.
 */
static void limit_client(const struct ckt_policy_server *server,
	const struct ckt_client_facts *facts, struct ckt_decision *ret_decision)
{
	yes(ret_decision);
	bool of_token = ckt_owner_is_token(facts->control.owner_uid);
	if (facts->unclaimed || facts->control.owner_uid == CKT_UID_UNKNOWN ||
		(!facts->local && (!of_token || !facts->control.token)))
		return;
	limit_control(server, &facts->control, ret_decision);
	if (ret_decision->answer)
		no(ret_decision, CKT_POLICY_DENIED, "session %s belongs to another user",
			facts->session);
}

static void limit_pause(const struct ckt_policy_server *server, const struct ckt_busy_facts *facts,
	struct ckt_decision *ret_decision)
{
	(void)server;
	if (facts->live && !facts->held && !facts->held_by_job)
		yes(ret_decision);
	else
		no(ret_decision, CKT_POLICY_BUSY,
			"session %s is starting, ending or being saved: try again", facts->session);
}

static void limit_save(const struct ckt_policy_server *server, const struct ckt_busy_facts *facts,
	struct ckt_decision *ret_decision)
{
	(void)server;
	if (!facts->live)
		no(ret_decision, CKT_POLICY_BUSY, "session %s is starting or ending: try again",
			facts->session);
	else if (facts->held)
		no(ret_decision, CKT_POLICY_BUSY,
			"session %s is held by another checkpoint or migration: try again",
			facts->session);
	else if (facts->held_by_job)
		no(ret_decision, CKT_POLICY_BUSY,
			"session %s is held by a checkpoint of its job: try again", facts->session);
	else
		yes(ret_decision);
}

/* ---- Bytes */

static void limit_image_bytes(
	const struct ckt_image_bytes_facts *facts, struct ckt_decision *ret_decision)
{
	uint64_t max = facts->limit_bytes  ? facts->limit_bytes
		: facts->file_system_known ? facts->file_system_bytes / 2
					   : UINT64_MAX;
	if (ckt_identity_is_operator(&facts->identity))
		yes(ret_decision);
	else if (facts->wanted_bytes > max || facts->taken_bytes > max - facts->wanted_bytes)
		no(ret_decision, CKT_POLICY_FULL,
			"the images of this user or address would exceed "
			"--image-space; remove one first");
	else if (facts->file_system_known &&
		facts->free_bytes < facts->file_system_bytes / FREE_PART + facts->wanted_bytes)
		no(ret_decision, CKT_POLICY_NO_SPACE,
			"the file system of --image-dir is almost full");
	else
		yes(ret_decision);
}

static uint64_t limit_image_memory_bytes(
	const struct ckt_policy_server *server, uint64_t host_bytes)
{
	uint64_t max = server->options->image_memory;
	return max ? max : host_bytes / 2;
}

static void limit_image_memory(const struct ckt_policy_server *server,
	const struct ckt_image_memory_facts *facts, struct ckt_decision *ret_decision)
{
	uint64_t wanted = facts->wanted_bytes, taken = facts->taken_bytes;
	uint64_t max = limit_image_memory_bytes(server, facts->host_bytes);
	if (wanted > max || taken > max - wanted)
		no(ret_decision, CKT_POLICY_FULL,
			"the session has %llu MiB, and images in memory take %llu of "
			"%llu MiB (--image-memory): remove some with 'cricketctl image "
			"remove'",
			(unsigned long long)(wanted >> 20), (unsigned long long)(taken >> 20),
			(unsigned long long)(max >> 20));
	else if (wanted > facts->free_bytes)
		no(ret_decision, CKT_POLICY_NO_SPACE,
			"the session has %llu MiB, but the server's host has only %llu "
			"MiB of memory free: save it in a directory",
			(unsigned long long)(wanted >> 20),
			(unsigned long long)(facts->free_bytes >> 20));
	else
		yes(ret_decision);
}

const struct ckt_policy ckt_policy_limits = {
	.name = "limits",
	.connection = limit_connection,
	.denial_delay_ms = limit_denial_delay_ms,
	.entry = limit_entry,
	.waiting = limit_waiting,
	.control_connection = limit_control_connection,
	.event_listener = limit_event_listener,
	.descriptor = limit_descriptor,
	.stage = limit_stage,
	.session = limit_session,
	.share = limit_share,
	.control = limit_control,
	.client = limit_client,
	.pause = limit_pause,
	.resume = limit_pause,
	.save = limit_save,
	.image_bytes = limit_image_bytes,
	.image_memory_bytes = limit_image_memory_bytes,
	.image_memory = limit_image_memory,
};
