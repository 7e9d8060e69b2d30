/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sessions were connected with which; see group.h.
 *
 * Only the server knows it, because it made the connections.  Sessions are known by their serials:
 * one that is being restored gets its id late.  One whose worker died is awaited by its id, as its
 * client may come back; what an image says of a group is awaited in the same way.
 */
#include "server/daemon/session/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "rpc/net.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/session/session.h"

struct member {
	struct ckt_session *session;
	char id[CKT_SESSION_ID_SIZE + 1];
};

struct members {
	struct member *list;
	size_t count, room;
};

/* Also of one that is being restored. */
static const char *id_of(const struct ckt_session *session)
{
	return session->chain ? session->chain->id : session->id;
}

static bool is_partner(const struct ckt_group_member *member, uint64_t serial, const char *id)
{
	for (size_t i = 0; i < member->partner_count; i++) {
		const struct ckt_group_partner *one = &member->partners[i];
		if (serial ? one->serial == serial : strcmp(one->id, id) == 0)
			return true;
	}
	return false;
}

static void add(struct ckt_group_member *member, uint64_t serial, const char *id, int64_t until_ms)
{
	if (is_partner(member, serial, id) ||
		CKT_GROW(member->partners, member->partner_count, member->partner_room, 4))
		return;
	struct ckt_group_partner *one = &member->partners[member->partner_count++];
	*one = (struct ckt_group_partner){.serial = serial, .until_ms = until_ms};
	snprintf(one->id, sizeof one->id, "%.12s", id);
}

void ckt_group_connect(struct ckt_session *a, struct ckt_session *b)
{
	add(&a->group, b->serial, id_of(b), 0);
	add(&b->group, a->serial, id_of(a), 0);
}

static int64_t patience(const struct ckt_session *session)
{
	return ckt_net_now_ms() + (int64_t)session->server->options.claim_timeout * 1000;
}

void ckt_group_await(struct ckt_session *session, const char *id)
{
	if (strcmp(id, id_of(session)) != 0)
		add(&session->group, 0, id, patience(session));
}

static void drop(struct ckt_group_member *member, size_t index)
{
	member->partners[index] = member->partners[--member->partner_count];
}

/* Who shared with others through it still does, as far as anybody can tell. */
static void inherit(struct ckt_session *heir, const struct ckt_session *from)
{
	for (size_t i = 0; i < from->group.partner_count; i++) {
		const struct ckt_group_partner *one = &from->group.partners[i];
		if (one->serial != heir->serial && strcmp(one->id, id_of(heir)) != 0)
			add(&heir->group, one->serial, one->id, one->until_ms);
	}
}

static void leave(
	struct ckt_session *other, const struct ckt_session *session, const char *id, bool returns)
{
	for (size_t i = 0; i < other->group.partner_count; i++) {
		struct ckt_group_partner *one = &other->group.partners[i];
		if (one->serial != session->serial)
			continue;
		if (!returns) {
			drop(&other->group, i);
			return;
		}
		one->serial = 0;
		one->until_ms = patience(session);
		snprintf(one->id, sizeof one->id, "%.12s", id);
		inherit(other, session);
		return;
	}
}

void ckt_group_leave(struct ckt_session *session, const char *id, bool returns)
{
	struct ckt_session *other = session->server->sessions;
	for (; other; other = other->next)
		leave(other, session, id, returns);
}

static struct ckt_session *find(struct ckt_server *server, const struct ckt_group_partner *partner)
{
	struct ckt_session *session = server->sessions;
	while (session &&
		(partner->serial ? session->serial != partner->serial
				 : strcmp(id_of(session), partner->id) != 0))
		session = session->next;
	return session;
}

static int put(struct members *members, struct ckt_session *session, const char *id)
{
	for (size_t i = 0; i < members->count; i++)
		if (strcmp(members->list[i].id, id) == 0)
			return 0;
	if (CKT_GROW(members->list, members->count, members->room, 8))
		return -ENOMEM;
	struct member *one = &members->list[members->count++];
	*one = (struct member){.session = session};
	snprintf(one->id, sizeof one->id, "%.12s", id);
	return 0;
}

/* The first member may be in the server's list no longer. */
static int put_partners(struct members *members, struct ckt_session *session)
{
	struct ckt_session *first = members->list[0].session;
	struct ckt_group_member *member = &session->group;
	int result = 0;
	for (size_t i = 0; i < member->partner_count && !result; i++) {
		struct ckt_group_partner *one = &member->partners[i];
		struct ckt_session *found =
			first->serial == one->serial ? first : find(session->server, one);
		if (!found && (one->serial || ckt_net_now_ms() >= one->until_ms)) {
			drop(member, i--);
			continue;
		}
		if (found)
			one->serial = found->serial;
		result = put(members, found, found ? id_of(found) : one->id);
	}
	return result;
}

bool ckt_group_each(struct ckt_session *session, ckt_group_look look, void *context)
{
	struct members members = {0};
	bool more = put(&members, session, id_of(session)) == 0;
	for (size_t i = 0; i < members.count && more; i++)
		if (members.list[i].session)
			more = put_partners(&members, members.list[i].session) == 0;
	for (size_t i = 0; i < members.count && more; i++)
		more = look(members.list[i].session, members.list[i].id, context);
	free(members.list);
	return more;
}
