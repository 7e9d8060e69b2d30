/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the audit log by source; see audit_sources.h. */
#include "server/daemon/audit/audit_sources.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "server/daemon/policy/tokens.h"

static bool is_free(const struct ckt_audit_source *place, int64_t now_ms)
{
	return !place->count && now_ms >= place->until_ms;
}

static struct ckt_audit_source *place_of(
	struct ckt_audit_sources *sources, const struct ckt_identity *source, int64_t now_ms)
{
	struct ckt_audit_source *found = NULL, *shared = &sources->places[CKT_AUDIT_SOURCES];
	for (struct ckt_audit_source *place = sources->places; place < shared; place++) {
		if (ckt_identity_same(&place->identity, source))
			return place;
		if (!found && is_free(place, now_ms))
			found = place;
	}
	if (!found)
		return shared;
	*found = (struct ckt_audit_source){.identity = *source};
	return found;
}

static void copy(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

bool ckt_audit_sources_take(struct ckt_audit_sources *sources, const struct ckt_identity *source,
	unsigned burst, const struct ckt_audit_record *record, int64_t now_ms)
{
	struct ckt_audit_source *place = place_of(sources, source, now_ms);
	if (is_free(place, now_ms)) {
		place->until_ms = now_ms + CKT_AUDIT_SOURCE_MS;
		place->written = 0;
	}
	if (place->written < burst && !place->count) {
		place->written++;
		return true;
	}
	bool is_shared = place == &sources->places[CKT_AUDIT_SOURCES];
	place->count++;
	copy(place->event, sizeof place->event, record->event);
	copy(place->peer, sizeof place->peer, is_shared ? "several" : record->peer);
	copy(place->owner, sizeof place->owner, is_shared ? NULL : record->owner);
	copy(place->call, sizeof place->call, record->call);
	copy(place->reason, sizeof place->reason, record->reason);
	return false;
}

bool ckt_audit_sources_due(
	struct ckt_audit_sources *sources, int64_t now_ms, struct ckt_audit_record *ret_record)
{
	for (unsigned i = 0; i <= CKT_AUDIT_SOURCES; i++) {
		struct ckt_audit_source *place = &sources->places[i];
		if (!place->count || now_ms < place->until_ms)
			continue;
		*ret_record = (struct ckt_audit_record){.event = place->event,
			.peer = place->peer,
			.owner = place->owner,
			.call = place->call,
			.result = "refused",
			.reason = place->reason,
			.count = place->count};
		/* The line that tells of this second is the first one of the next. */
		place->count = 0;
		place->written = 1;
		place->until_ms = now_ms + CKT_AUDIT_SOURCE_MS;
		return true;
	}
	return false;
}

void ckt_audit_source_owner(struct ckt_server *server, const struct ckt_identity *identity,
	char ret_text[CKT_AUDIT_OWNER_TEXT])
{
	char address[INET6_ADDRSTRLEN] = "";
	bool is_v4 = ckt_auth_address_is_v4(identity->network);
	switch (identity->kind) {
	case CKT_IDENTITY_USER:
	case CKT_IDENTITY_TOKEN:
		ckt_owner_text(server, identity->uid, ret_text);
		break;
	case CKT_IDENTITY_ADDRESS:
		inet_ntop(is_v4 ? AF_INET : AF_INET6,
			is_v4 ? identity->network + 12 : identity->network, address,
			sizeof address);
		snprintf(ret_text, CKT_AUDIT_OWNER_TEXT, "host:%s%s", address, is_v4 ? "" : "/64");
		break;
	default:
		*ret_text = 0;
		break;
	}
}
