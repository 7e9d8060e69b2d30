/* Admission; see admission.h. */
#include "server/daemon/policy/admission.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/daemon/peer/peer.h"
#include "base/log.h"
#include "server/daemon/session/session.h"
#include "server/daemon/image/stage.h"

enum {
	BUCKETS = 1024,
	STRANGERS_MAX = 4096, /* addresses that failed and have nothing open now */
	FAILURES_FREE = 3,    /* a mistyped path of a token file is no attack */
	FIRST_DELAY_MS = 100,
	FORGET_MS = 60000, /* a failure counts for so long after the last one */
	RIPE_MS = 1000,    /* whoever means it has said hello by then */
};

/* What is known of an address, or of a user, before anybody said hello. */
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

/* ---- Identities */

struct ckt_identity ckt_identity_of(const struct ckt_auth_peer *who, bool token)
{
	struct ckt_identity identity = {.kind = CKT_IDENTITY_ADDRESS};
	if (token)
		return (struct ckt_identity){.kind = CKT_IDENTITY_TOKEN};
	if (who->kind == CKT_PEER_UNIX)
		return (struct ckt_identity){.kind = CKT_IDENTITY_USER, .uid = who->uid};
	memcpy(identity.network, who->address, sizeof identity.network);
	/* Whoever has one address of an IPv6 network has all of the last 64 bits. */
	if (!ckt_auth_address_is_v4(who->address))
		memset(identity.network + 8, 0, 8);
	return identity;
}

struct ckt_identity ckt_identity_of_peer(const struct ckt_peer *peer)
{
	return ckt_identity_of(&peer->who, peer->token);
}

bool ckt_identity_same(const struct ckt_identity *a, const struct ckt_identity *b)
{
	return a->kind == b->kind && a->uid == b->uid &&
		memcmp(a->network, b->network, sizeof a->network) == 0;
}

static bool is_trusted(const struct ckt_identity *identity)
{
	return identity->kind == CKT_IDENTITY_USER &&
		(identity->uid == 0 || identity->uid == geteuid());
}

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

/* Removes what is not worth being remembered; force: one that only failed, too. */
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

static unsigned waiting_max(const struct ckt_server *server)
{
	/*
	 * With few descriptors there are fewer: half of them, since sessions and control need
	 * theirs.
	 */
	unsigned max = server->options.max_waiting, half = server->descriptor_count / 2;
	return half && half < max ? half : max;
}

static unsigned waiting_max_each(const struct ckt_server *server)
{
	unsigned each = server->options.max_waiting_per_peer, half = waiting_max(server) / 2;
	return each ? each : half ? half : 1;
}

/* Among those that have not said hello: the first of this identity, or the last. */
static struct ckt_peer *find_waiting(
	struct ckt_server *server, const struct ckt_identity *identity, bool oldest)
{
	struct ckt_peer *peer = oldest ? server->peers_first : server->peers_last;
	for (; peer; peer = oldest ? peer->next : peer->previous) {
		if (peer->phase == CKT_PEER_GREETED && ckt_identity_same(&peer->source, identity))
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
	/* Its latest: those that came before are closer to their hello. */
	struct ckt_peer *peer = find_waiting(server, &entry->identity, false);
	if (!peer)
		return;
	ckt_log_limited(
		server, CKT_LIMIT_DROPPED, "%s: dropped before its hello: %s", peer->who.text, why);
	ckt_peer_close(peer);
}

void ckt_admit_no_descriptor(struct ckt_server *server)
{
	const struct ckt_source_entry *most =
		server->admission ? most_waiting(server->admission) : NULL;
	ckt_log_limited(server, CKT_LIMIT_DESCRIPTORS,
		"no descriptor for a new connection: raise the limit (ulimit -n, LimitNOFILE)");
	if (most)
		drop_for(server, most, "no descriptor is left");
}

/*
 * Descriptors are given out from the lowest on, so the number of this one says how many are open.
 * The last ones are for root and the server's user, and before those some for peers of which each
 * has few.
 */
static bool descriptor_allows(
	const struct ckt_server *server, const struct ckt_source_entry *entry, int fd)
{
	unsigned total = server->descriptor_count, reserve = total / 16 < 64 ? total / 16 : 64;
	if (!total || (unsigned)fd + 2 * reserve < total)
		return true;
	return is_trusted(&entry->identity) ||
		((unsigned)fd + reserve < total && entry->waiting < 4);
}

/* Whether this one's place is to be had by dropping another one of the same. */
static bool replace_own(struct ckt_server *server, const struct ckt_source_entry *entry)
{
	struct ckt_peer *oldest = find_waiting(server, &entry->identity, true);
	if (!oldest || ckt_net_now_ms() - oldest->since_ms < RIPE_MS)
		return false;
	ckt_peer_close(oldest);
	return true;
}

bool ckt_admit_connection(struct ckt_server *server, const struct ckt_identity *source, int fd)
{
	struct ckt_source_entry *entry = entry_of(server, source, true);
	if (!entry)
		return false;
	/* So that what is dropped below does not take the entry along. */
	entry->waiting++;
	server->admission->waiting++;
	bool good = descriptor_allows(server, entry, fd) &&
		(entry->waiting <= waiting_max_each(server) || is_trusted(source) ||
			replace_own(server, entry));
	if (good && server->admission->waiting > waiting_max(server)) {
		const struct ckt_source_entry *most = most_waiting(server->admission);
		/* It has most itself, counted with this one. */
		good = most != entry || replace_own(server, entry);
		if (most != entry)
			drop_for(server, most,
				"too many wait, and its address has most (--max-waiting)");
	}
	if (good)
		return true;
	ckt_log_limited(server, CKT_LIMIT_DROPPED,
		"a connection was dropped before its hello: its address or user has too many that wait "
		"(--max-waiting-per-peer)");
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
	struct ckt_source_entry *entry = entry_of(server, source, true);
	int64_t now = ckt_net_now_ms();
	unsigned max_ms = server->options.max_delay * 1000;
	if (!entry)
		return max_ms;
	if (now - entry->failed_ms > FORGET_MS)
		entry->failures = 0;
	entry->failed_ms = now;
	if (++entry->failures <= FAILURES_FREE)
		return 0;
	unsigned doublings = entry->failures - FAILURES_FREE - 1;
	unsigned delay_ms = doublings < 16 ? (unsigned)FIRST_DELAY_MS << doublings : max_ms;
	return delay_ms < max_ms ? delay_ms : max_ms;
}

/* ---- Calls */

struct held {
	unsigned control, events, descriptors;
};

static struct held held_by(const struct ckt_server *server, const struct ckt_identity *identity)
{
	struct held held = {.control = ckt_data_connections(identity)};
	for (const struct ckt_peer *peer = server->peers_first; peer; peer = peer->next) {
		struct ckt_identity own = ckt_identity_of_peer(peer);
		if (peer->phase != CKT_PEER_CONTROL || !ckt_identity_same(&own, identity))
			continue;
		held.control++;
		held.events += peer->wants_events;
		held.descriptors += peer->image_count;
	}
	held.descriptors += held.control + ckt_stages_of(server, identity);
	return held;
}

static bool __attribute__((format(printf, 3, 4)))
full(const struct ckt_server *server, char buffer[CKT_MESSAGE_MAX], const char *format, ...)
{
	va_list arguments;
	char what[CKT_MESSAGE_MAX - 150];
	va_start(arguments, format);
	vsnprintf(what, sizeof what, format, arguments);
	va_end(arguments);
	snprintf(buffer, CKT_MESSAGE_MAX, "the server on %.100s: %.360s", server->host, what);
	return false;
}

/* A quarter of all descriptors. */
static unsigned descriptors_max(const struct ckt_server *server)
{
	return server->descriptor_count / 4;
}

bool ckt_admit_hello(struct ckt_peer *peer, char buffer[CKT_MESSAGE_MAX])
{
	struct ckt_server *server = peer->server;
	struct ckt_identity identity = ckt_identity_of_peer(peer);
	unsigned max = waiting_max_each(server), have = 0;
	if (is_trusted(&identity))
		return true;
	for (const struct ckt_peer *other = server->peers_first; other; other = other->next) {
		struct ckt_identity own = ckt_identity_of_peer(other);
		have += other->phase == CKT_PEER_WAITING && ckt_identity_same(&own, &identity);
	}
	return have < max ||
		full(server, buffer,
			"this user or address has %u connections that wait for a session already (--max-waiting-per-peer)",
			max);
}

bool ckt_admit_control(struct ckt_peer *peer, char buffer[CKT_MESSAGE_MAX])
{
	struct ckt_server *server = peer->server;
	struct ckt_identity identity = ckt_identity_of_peer(peer);
	unsigned max = server->options.max_connections_per_user;
	if (is_trusted(&identity) || !max || held_by(server, &identity).control < max)
		return true;
	return full(server, buffer,
		"this user or address has %u control connections already (--max-connections-per-user): end one first",
		max);
}

bool ckt_admit_session(struct ckt_server *server, const struct ckt_identity *identity,
	char buffer[CKT_MESSAGE_MAX])
{
	unsigned all = server->options.max_sessions, max = server->options.max_sessions_per_user,
		 have = 0;
	if (!max && all)
		max = all - all / 4;
	if (is_trusted(identity) || !max)
		return true;
	for (const struct ckt_session *session = server->sessions; session; session = session->next)
		have += ckt_identity_same(&session->identity, identity);
	return have < max ||
		full(server, buffer,
			"this user or address has %u sessions already (--max-sessions-per-user): end one first",
			max);
}

bool ckt_admit_descriptor(struct ckt_peer *peer, char buffer[CKT_MESSAGE_MAX])
{
	struct ckt_identity identity = ckt_identity_of_peer(peer);
	unsigned max = descriptors_max(peer->server);
	if (is_trusted(&identity) || !max || held_by(peer->server, &identity).descriptors < max)
		return true;
	return full(peer->server, buffer,
		"this user or address has %u descriptors of the server's already (a quarter of ulimit -n)",
		max);
}

bool ckt_admit_stage(struct ckt_peer *peer, char buffer[CKT_MESSAGE_MAX])
{
	struct ckt_server *server = peer->server;
	struct ckt_identity identity = ckt_identity_of_peer(peer);
	unsigned max = server->options.max_stages_per_user;
	if (ckt_stages_of_peer(peer) >= CKT_CONTROL_CHAIN_MAX)
		return full(server, buffer,
			"one connection makes %d images at most, as many as a chain has",
			CKT_CONTROL_CHAIN_MAX);
	if (!is_trusted(&identity) && max && ckt_stages_of(server, &identity) >= max)
		return full(server, buffer,
			"this user or address has %u images under way already (--max-stages-per-user): end one first",
			max);
	return ckt_admit_descriptor(peer, buffer);
}

bool ckt_admit_events(struct ckt_peer *peer, char buffer[CKT_MESSAGE_MAX])
{
	struct ckt_server *server = peer->server;
	struct ckt_identity identity = ckt_identity_of_peer(peer);
	/* The other half of its connections stay for calls. */
	unsigned max = (server->options.max_connections_per_user + 1) / 2;
	if (is_trusted(&identity) || !max || held_by(server, &identity).events < max)
		return true;
	return full(server, buffer,
		"this user or address has %u connections that wait for events already (half of --max-connections-per-user)",
		max);
}
