/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of workers; see group.h. */
#include "server/daemon/session/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/log.h"
#include "rpc/net.h"
#include "rpc/worker.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/session/lease_left.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/session_audit.h"
#include "server/daemon/session/warm_workers.h"

enum {
	/* Packets that are handled before others get their turn: some microseconds each. */
	AT_A_TIME = 16,
	CALL_TIMEOUT_MS = 10000,
	GONE_TIMEOUT_MS = 2000,
};

static bool is_being_restored(const struct ckt_session *session)
{
	return session->restore && session->phase == CKT_SESSION_STARTING;
}

bool ckt_group_is_same(const struct ckt_session *a, const struct ckt_session *b)
{
	if (a == b)
		return true;
	if (is_being_restored(a) || is_being_restored(b))
		return a->restore && b->restore && a->claimant.owner == b->claimant.owner;
	return a->uid == b->uid;
}

/* ---- Names */

static bool has_claimed(const struct ckt_group_member *member, const struct ckt_group_name *name)
{
	for (size_t i = 0; i < member->claim_count; i++)
		if (ckt_group_same_name(&member->claims[i], name))
			return true;
	return false;
}

static void claim(struct ckt_group_member *member, const struct ckt_group_name *name)
{
	if (has_claimed(member, name) || member->claim_count >= CKT_GROUP_CLAIMS_MAX ||
		CKT_GROW(member->claims, member->claim_count, member->claim_room, 4))
		return;
	member->claims[member->claim_count++] = *name;
}

static void drop(struct ckt_group_member *member, const struct ckt_group_name *name)
{
	for (size_t i = 0; i < member->claim_count; i++)
		if (ckt_group_same_name(&member->claims[i], name)) {
			member->claims[i] = member->claims[--member->claim_count];
			return;
		}
}

static bool has_id(const struct ckt_session *session, const struct ckt_group_name *name)
{
	const struct ckt_group_name own = ckt_group_session(session->id, sizeof session->id);
	return ckt_group_same_name(&own, name);
}

/*
 * The nth of the asking session's group that has the name; NULL: none.  *ret_stranger: a session
 * outside of the group that has it, or NULL.
 */
static struct ckt_session *find(const struct ckt_session *asking, const struct ckt_group_name *name,
	unsigned nth, const struct ckt_session **ret_stranger)
{
	*ret_stranger = NULL;
	for (int by_claim = 0; by_claim < 2; by_claim++)
		for (struct ckt_session *session = asking->server->sessions; session;
			session = session->next) {
			bool named = has_id(session, name);
			if (by_claim ? named || !has_claimed(&session->group, name) : !named)
				continue;
			if (!ckt_group_is_same(asking, session))
				*ret_stranger = session;
			else if (session->group.open && nth-- == 0)
				return session;
		}
	return NULL;
}

/* ---- Packets */

/* Without waiting: whoever does not take its packets is not found. */
static bool offer(
	const struct ckt_session *session, const struct ckt_group_name *name, int connection)
{
	struct ckt_group_message packet = {.kind = CKT_GROUP_OFFER, .name = *name};
	struct iovec part = {.iov_base = &packet, .iov_len = sizeof packet};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	ckt_net_fd_put(&message, &room, connection);
	return sendmsg(session->group.channel.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
		sizeof packet;
}

static void refuse(struct ckt_session *session, const struct ckt_session *stranger)
{
	if (session->group.refused)
		return;
	session->group.refused = true;
	ckt_session_audit_share(session, stranger);
}

/* What they do over that connection, nobody here sees. */
static void note_share(struct ckt_session *session)
{
	session->group.shares = true;
	ckt_automatic_share(session);
}

/* Those of more mates than that are not known together, and so do not leave. */
enum { MATES_MAX = 1024 };

static bool is_mate(const struct ckt_session *session, const struct ckt_session *other)
{
	for (size_t i = 0; i < session->group.mate_count; i++)
		if (session->group.mates[i] == other->serial)
			return true;
	return false;
}

static void note_mate(struct ckt_session *session, const struct ckt_session *other)
{
	struct ckt_group_member *member = &session->group;
	if (!is_mate(session, other) && member->mate_count < MATES_MAX &&
		!CKT_GROW(member->mates, member->mate_count, member->mate_room, 4))
		member->mates[member->mate_count++] = other->serial;
}

static bool has_rank_of(
	const struct ckt_group_member *member, const struct ckt_group_name *communicator)
{
	for (size_t i = 0; i < member->claim_count; i++)
		if (ckt_group_is_rank(&member->claims[i]) &&
			ckt_group_same_communicator(&member->claims[i], communicator))
			return true;
	return false;
}

bool ckt_group_has_ranks(const struct ckt_session *session)
{
	for (size_t i = 0; i < session->group.claim_count; i++)
		if (ckt_group_is_rank(&session->group.claims[i]))
			return true;
	return false;
}

static void note_mates(struct ckt_session *a, struct ckt_session *b)
{
	note_mate(a, b);
	note_mate(b, a);
}

static void note_connected(struct ckt_session *a, struct ckt_session *b)
{
	ckt_group_connect(a, b);
	note_share(a);
	note_share(b);
}

/*
 * Ranks of one communicator leave the GPU and come back together, though they may ask each other for
 * nothing: NVIDIA's library meets without the server.
 */
static void note_ranks(struct ckt_session *session, const struct ckt_group_name *name)
{
	for (struct ckt_session *s = session->server->sessions; s; s = s->next)
		if (s != session && ckt_group_is_same(session, s) && has_rank_of(&s->group, name)) {
			note_connected(session, s);
			note_mates(session, s);
		}
}

static void ask(struct ckt_session *session, const struct ckt_group_message *packet, int connection)
{
	const struct ckt_session *stranger;
	const char nobody = CKT_GROUP_NOBODY;
	const struct ckt_group_name memory = ckt_group_memory();
	if (ckt_group_same_name(&packet->name, &memory)) {
		ckt_warm_give_up(session, packet->nth, connection);
		return;
	}
	struct ckt_session *found = find(session, &packet->name, packet->nth, &stranger);
	if (found && offer(found, &packet->name, connection)) {
		if (found != session) {
			note_connected(session, found);
			/* Roots of communicators are asked for by names of their own. */
			if (ckt_group_is_session(&packet->name) || ckt_group_is_rank(&packet->name))
				note_mates(session, found);
		}
		return;
	}
	if (!found && stranger && packet->nth == 0)
		refuse(session, stranger);
	send(connection, &nobody, sizeof nobody, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* False: the message is malformed, or the worker has ended. */
static bool take_packet(struct ckt_session *session, bool *ret_more)
{
	struct ckt_group_member *member = &session->group;
	struct ckt_group_message packet;
	struct iovec part = {.iov_base = &packet, .iov_len = sizeof packet};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	ckt_net_fd_expect(&message, &room);
	ssize_t n = recvmsg(member->channel.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	*ret_more = n > 0;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	int connection = ckt_net_fd_take(&message);
	bool good = n == sizeof packet && !(message.msg_flags & MSG_TRUNC) &&
		(packet.kind == CKT_GROUP_ASK) == (connection >= 0) &&
		packet.kind >= CKT_GROUP_CLAIM && packet.kind <= CKT_GROUP_ASK;
	if (good && packet.kind == CKT_GROUP_CLAIM) {
		claim(member, &packet.name);
		if (ckt_group_is_rank(&packet.name))
			note_ranks(session, &packet.name);
	}
	if (good && packet.kind == CKT_GROUP_DROP)
		drop(member, &packet.name);
	else if (good && packet.kind == CKT_GROUP_ASK)
		ask(session, &packet, connection);
	if (connection >= 0)
		close(connection);
	return good;
}

static void channel_ready(struct ckt_source *source, uint32_t events)
{
	struct ckt_session *session = CKT_CONTAINER(source, struct ckt_session, group.channel);
	bool more = true, good = true;
	(void)events;
	for (int i = 0; i < AT_A_TIME && more && good; i++)
		good = take_packet(session, &more);
	if (good)
		return;
	ckt_group_ended(session);
	ckt_group_close(session);
}

/* Whom it tells that a session has ended, and by which name. */
struct parting {
	struct ckt_group_name name;
	struct ckt_lease_left *left;
};

/* Without waiting: whoever does not take its packets is not told. */
static void send_gone(const struct ckt_session *to, const struct ckt_group_name *name)
{
	struct ckt_group_message packet = {.kind = CKT_GROUP_GONE, .name = *name};
	if (to->group.open)
		send(to->group.channel.fd, &packet, sizeof packet, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* An earlier worker knows the packet alone, and says nothing. */
static void took_gone(struct ckt_session *session, void *context, int error, void *result)
{
	struct parting *parting = context;
	(void)result;
	if (error && error != -ETIMEDOUT)
		send_gone(session, &parting->name);
	ckt_lease_left_answered(parting->left);
	free(parting);
}

static void tell_gone(
	struct ckt_session *to, const struct ckt_group_name *name, struct ckt_lease_left *left)
{
	struct parting *parting = calloc(1, sizeof *parting);
	ckt_worker_gone_args args;
	memcpy(args.name, name->bytes, sizeof args.name);
	if (!parting) {
		send_gone(to, name);
		return;
	}
	*parting = (struct parting){.name = *name, .left = left};
	ckt_lease_left_await(left);
	int error = ckt_session_call(to, CKT_WORKER_OWNER_GONE, (xdrproc_t)xdr_ckt_worker_gone_args,
		&args, -1, NULL, 0, GONE_TIMEOUT_MS, took_gone, parting);
	if (error)
		took_gone(to, parting, error, NULL);
}

/* Handles name it by its id, or by the one that it has from an image and claims. */
static void tell_names_gone(
	struct ckt_session *to, const struct ckt_session *session, struct ckt_lease_left *left)
{
	const struct ckt_group_name own = ckt_group_session(session->id, sizeof session->id);
	tell_gone(to, &own, left);
	for (size_t i = 0; i < session->group.claim_count; i++)
		if (ckt_group_is_session(&session->group.claims[i]))
			tell_gone(to, &session->group.claims[i], left);
}

void ckt_group_ended(struct ckt_session *session)
{
	if (!session->group.open)
		return;
	struct ckt_lease_left *left = NULL;
	for (struct ckt_session *s = session->server->sessions; s; s = s->next) {
		if (s == session || !s->group.open || !is_mate(s, session))
			continue;
		left = left ? left : ckt_lease_left_begin(session);
		tell_names_gone(s, session, left);
	}
	ckt_lease_left_answered(left);
}

/* ---- Channels */

/* It is nobody's mate any more. */
static void forget_mates(struct ckt_session *session)
{
	for (struct ckt_session *s = session->server->sessions; s; s = s->next)
		for (size_t i = 0; i < s->group.mate_count; i++)
			if (s->group.mates[i] == session->serial)
				s->group.mates[i--] = s->group.mates[--s->group.mate_count];
	free(session->group.mates);
	session->group.mates = NULL;
	session->group.mate_count = session->group.mate_room = 0;
}

void ckt_group_close(struct ckt_session *session)
{
	struct ckt_group_member *member = &session->group;
	if (!member->open)
		return;
	member->open = false;
	close(ckt_loop_remove(&session->server->loop, &member->channel));
	forget_mates(session);
	free(member->claims);
	member->claims = NULL;
	member->claim_count = member->claim_room = 0;
}

static void answered(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context, (void)result;
	if (error)
		ckt_debug("session %s: its worker takes no group channel: %s", session->id,
			strerror(-error));
}

int ckt_group_open(struct ckt_session *session)
{
	struct ckt_group_member *member = &session->group;
	int ends[2];
	if (member->open)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	member->channel = (struct ckt_source){.fd = ends[0], .ready = channel_ready};
	int result = ckt_loop_add(&session->server->loop, &member->channel, EPOLLIN);
	if (result) {
		close(ends[0]);
		close(ends[1]);
		return result;
	}
	member->open = true;
	return ckt_session_call(session, CKT_WORKER_GROUP, NULL, NULL, ends[1], NULL, 0,
		CALL_TIMEOUT_MS, answered, NULL);
}
