/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that have not said hello; see admission.h. */
#include "server/daemon/policy/admission.h"

#include <limits.h>
#include <stdlib.h>

#include "server/daemon/log_limited.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/peer/peer_audit.h"
#include "server/daemon/policy/ask.h"

enum {
	BUCKETS = 1024,
	STRANGERS_MAX = 4096, /* addresses that failed and have no open connection */
	FORGET_MS = 60000,    /* how long a failure counts after the last one */
	RIPE_MS = 1000,       /* a genuine client has said hello by then */
};

/* What is known of an address, or of a user, before a hello. */
struct ckt_source_entry {
	struct ckt_source_entry *next;
	struct ckt_identity identity;
	unsigned waiting, failures;
	int64_t failed_ms;
};

struct ckt_admission {
	struct ckt_source_entry *buckets[BUCKETS];
	unsigned entries, waiting;
};

/* ---- Sources */

static struct ckt_admission *admission_of(struct ckt_server *server)
{
	if (!server->admission)
		server->admission = calloc(1, sizeof *server->admission);
	return server->admission;
}

static struct ckt_source_entry **bucket_of(
	struct ckt_admission *admission, const struct ckt_identity *identity)
{
	uint32_t hash = 2166136261u ^ identity->uid ^ (uint32_t)identity->kind << 30;
	for (size_t i = 0; i < sizeof identity->network; i++)
		hash = (hash ^ identity->network[i]) * 16777619u;
	return &admission->buckets[(hash ^ hash >> 16) % BUCKETS];
}

static bool is_idle(const struct ckt_source_entry *entry, int64_t now)
{
	return !entry->waiting && (!entry->failures || now - entry->failed_ms > FORGET_MS);
}

/* Removes entries that need not be remembered; force: also one that has only failures. */
static void sweep(struct ckt_admission *admission, bool force)
{
	int64_t now = ckt_net_now_ms();
	for (unsigned i = 0; i < BUCKETS; i++) {
		for (struct ckt_source_entry **place = &admission->buckets[i]; *place;) {
			struct ckt_source_entry *entry = *place;
			if (!is_idle(entry, now) && !(force && !entry->waiting)) {
				place = &entry->next;
				continue;
			}
			*place = entry->next;
			admission->entries--;
			free(entry);
		}
	}
}

static struct ckt_source_entry *entry_of(
	struct ckt_server *server, const struct ckt_identity *identity, bool make)
{
	struct ckt_admission *admission = admission_of(server);
	if (!admission)
		return NULL;
	struct ckt_source_entry **bucket = bucket_of(admission, identity), *entry = *bucket;
	while (entry && !ckt_identity_same(&entry->identity, identity))
		entry = entry->next;
	if (entry || !make)
		return entry;
	if (admission->entries >= STRANGERS_MAX)
		sweep(admission, false);
	if (admission->entries >= STRANGERS_MAX)
		sweep(admission, true);
	entry = calloc(1, sizeof *entry);
	if (!entry)
		return NULL;
	entry->identity = *identity;
	entry->next = *bucket;
	*bucket = entry;
	admission->entries++;
	return entry;
}

static void entry_drop(struct ckt_admission *admission, struct ckt_source_entry *entry)
{
	struct ckt_source_entry **place = bucket_of(admission, &entry->identity);
	if (!is_idle(entry, ckt_net_now_ms()))
		return;
	while (*place != entry)
		place = &(*place)->next;
	*place = entry->next;
	admission->entries--;
	free(entry);
}

void ckt_admission_fini(struct ckt_server *server)
{
	for (unsigned i = 0; server->admission && i < BUCKETS; i++)
		for (struct ckt_source_entry *entry = server->admission->buckets[i], *next; entry;
			entry = next) {
			next = entry->next;
			free(entry);
		}
	free(server->admission);
	server->admission = NULL;
}

/* ---- Connections */

/* Among those that have not said hello: the first of this identity, or the last. */
static struct ckt_peer *find_waiting(
	struct ckt_server *server, const struct ckt_identity *identity, bool oldest)
{
	struct ckt_peer *peer = oldest ? server->peers_first : server->peers_last;
	for (; peer; peer = oldest ? peer->next : peer->previous) {
		if ((peer->phase == CKT_PEER_GREETED || peer->phase == CKT_PEER_SECURING) &&
			ckt_identity_same(&peer->source, identity))
			return peer;
	}
	return NULL;
}

static const struct ckt_source_entry *most_waiting(const struct ckt_admission *admission)
{
	const struct ckt_source_entry *most = NULL;
	for (unsigned i = 0; i < BUCKETS; i++)
		for (const struct ckt_source_entry *entry = admission->buckets[i]; entry;
			entry = entry->next)
			if (entry->waiting && (!most || entry->waiting > most->waiting))
				most = entry;
	return most;
}

static void drop_for(
	struct ckt_server *server, const struct ckt_source_entry *entry, const char *why)
{
	/* Drops its latest: earlier ones are closer to their hello. */
	struct ckt_peer *peer = find_waiting(server, &entry->identity, false);
	if (!peer)
		return;
	ckt_daemon_log_limited(
		server, CKT_LIMIT_DROPPED, "%s: dropped before its hello: %s", peer->who.text, why);
	ckt_peer_audit_dropped(peer, why);
	ckt_peer_close(peer);
}

void ckt_admit_no_descriptor(struct ckt_server *server)
{
	const struct ckt_source_entry *most =
		server->admission ? most_waiting(server->admission) : NULL;
	ckt_daemon_log_limited(server, CKT_LIMIT_DESCRIPTORS,
		"no descriptor for a new connection: raise the limit (ulimit -n, "
		"LimitNOFILE)");
	if (most)
		drop_for(server, most, "no descriptor is left");
}

/* Whether a place can be freed by dropping another connection of the same source. */
static bool replace_own(
	struct ckt_server *server, const struct ckt_source_entry *entry, const char *why)
{
	struct ckt_peer *oldest = find_waiting(server, &entry->identity, true);
	if (!oldest || ckt_net_now_ms() - oldest->since_ms < RIPE_MS)
		return false;
	ckt_peer_audit_dropped(oldest, why);
	ckt_peer_close(oldest);
	return true;
}

static bool make_place(
	struct ckt_server *server, struct ckt_source_entry *entry, unsigned descriptor)
{
	const struct ckt_policy_server facts_of_server = ckt_policy_server_of(server);
	struct ckt_decision decision;
	for (;;) {
		const struct ckt_source_entry *most = most_waiting(server->admission);
		const struct ckt_connection_facts facts = {.source = entry->identity,
			.source_waiting = entry->waiting,
			.waiting = server->admission->waiting,
			.source_has_most = most == entry,
			.descriptor = descriptor};
		switch (server->policy->connection(&facts_of_server, &facts, &decision)) {
		case CKT_CONNECTION_ADMIT:
			return true;
		case CKT_CONNECTION_REPLACE_MOST:
			drop_for(server, most, decision.reason);
			return true;
		case CKT_CONNECTION_REPLACE_OWN:
			if (replace_own(server, entry, decision.reason))
				break;
			/* fallthrough */
		case CKT_CONNECTION_REFUSE:
			ckt_daemon_log_limited(server, CKT_LIMIT_DROPPED, "%s", decision.reason);
			ckt_peer_audit_turned_away(server, &entry->identity, decision.reason);
			return false;
		}
	}
}

bool ckt_admit_connection(struct ckt_server *server, const struct ckt_identity *source, int fd)
{
	struct ckt_source_entry *entry = entry_of(server, source, true);
	if (!entry)
		return false;
	/* So that dropping one below does not remove the entry. */
	entry->waiting++;
	server->admission->waiting++;
	if (make_place(server, entry, (unsigned)fd))
		return true;
	ckt_admit_greeted(server, source);
	return false;
}

void ckt_admit_greeted(struct ckt_server *server, const struct ckt_identity *source)
{
	struct ckt_source_entry *entry = entry_of(server, source, false);
	if (!entry || !entry->waiting)
		return;
	entry->waiting--;
	server->admission->waiting--;
	entry_drop(server->admission, entry);
}

unsigned ckt_admit_failed(struct ckt_server *server, const struct ckt_identity *source)
{
	const struct ckt_policy_server facts = ckt_policy_server_of(server);
	struct ckt_source_entry *entry = entry_of(server, source, true);
	int64_t now = ckt_net_now_ms();
	/* If there is no memory, all wait. */
	if (!entry)
		return server->policy->denial_delay_ms(&facts, UINT_MAX);
	if (now - entry->failed_ms > FORGET_MS)
		entry->failures = 0;
	entry->failed_ms = now;
	entry->failures++;
	return server->policy->denial_delay_ms(&facts, entry->failures);
}
