/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/group_partners.c: who shares with whom, also of sessions whose workers are gone. */
#include <string.h>

#include "inside.h"
#include "server/daemon/session/group.h"

enum { SESSIONS = 4 };

static struct ckt_session *sessions[SESSIONS];

struct seen {
	unsigned count, gone;
	unsigned limit; /* stops behind so many; 0: never */
	char ids[256];
};

static bool look(struct ckt_session *member, const char *id, void *context)
{
	struct seen *seen = context;
	seen->count++;
	seen->gone += !member;
	strcat(strcat(seen->ids, id + CKT_SESSION_ID_SIZE - 1), " ");
	return seen->count != seen->limit;
}

static struct seen group_of(struct ckt_session *session)
{
	struct seen seen = {0};
	YES(ckt_group_each(session, look, &seen));
	return seen;
}

static void test_partners(void)
{
	static const char *const ids[SESSIONS] = {
		"00000000000a", "00000000000b", "00000000000c", "00000000000d"};
	for (int i = 0; i < SESSIONS; i++)
		sessions[i] = session_new(ids[i]);
	server.options.claim_timeout = 60;
	TEXT(group_of(sessions[0]).ids, "a ");
	ckt_group_connect(sessions[0], sessions[1]);
	ckt_group_connect(sessions[1], sessions[0]);
	ckt_group_connect(sessions[1], sessions[2]);
	/* Through others, too; each once. */
	TEXT(group_of(sessions[0]).ids, "a b c ");
	TEXT(group_of(sessions[2]).ids, "c b a ");
	TEXT(group_of(sessions[3]).ids, "d ");
	struct seen seen = {.limit = 2};
	NO(ckt_group_each(sessions[0], look, &seen));
	IS(seen.count, 2);
	/* One that may come back is awaited, and found by its id. */
	ckt_group_leave(sessions[1], sessions[1]->id, true);
	session_drop(sessions[1]);
	seen = group_of(sessions[0]);
	TEXT(seen.ids, "a b c ");
	IS(seen.gone, 1);
	/* Also through it. */
	TEXT(group_of(sessions[2]).ids, "c b a ");
	sessions[1] = session_new(ids[1]);
	ckt_group_await(sessions[1], ids[1]);
	ckt_group_await(sessions[1], ids[2]);
	seen = group_of(sessions[0]);
	TEXT(seen.ids, "a b c ");
	IS(seen.gone, 0);
	/* Not for ever. */
	ckt_group_leave(sessions[2], sessions[2]->id, true);
	session_drop(sessions[2]);
	IS(group_of(sessions[1]).gone, 1);
	for (int s = 0; s < 2; s++)
		for (size_t i = 0; i < sessions[s]->group.partner_count; i++)
			sessions[s]->group.partners[i].until_ms = 1;
	TEXT(group_of(sessions[1]).ids, "b a ");
	/* One that has ended is no member, whoever has its id next. */
	ckt_group_leave(sessions[0], sessions[0]->id, false);
	session_drop(sessions[0]);
	sessions[0] = session_new(ids[0]);
	TEXT(group_of(sessions[1]).ids, "b ");
	/* While one ends it is in no list. */
	ckt_group_connect(sessions[0], sessions[3]);
	struct ckt_session *first = server.sessions;
	YES(first == sessions[0]);
	server.sessions = first->next;
	TEXT(group_of(first).ids, "a d ");
	server.sessions = first;
	session_drop(sessions[0]);
	session_drop(sessions[1]);
	session_drop(sessions[3]);
}

UNIT_SUITE(group_partners, {"partners", test_partners})
