/* SPDX-License-Identifier: Apache-2.0 */
/* Leases of workers that have ended; see lease_left.h. */
#include "server/daemon/session/lease_left.h"

#include <stdlib.h>
#include <string.h>

#include "server/daemon/session/memory_wait.h"
#include "server/daemon/session/session.h"

struct ckt_lease_left {
	struct ckt_server *server;
	struct ckt_ledger_holder holder;
	unsigned awaited;
	char *session, *container, *job; /* of the holder's subject */
};

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

struct ckt_lease_left *ckt_lease_left_begin(const struct ckt_session *session)
{
	const struct ckt_ledger_holder *holder = &session->lease.holder;
	struct ckt_lease_left *left =
		session->lease.is_holder && !holder->unsettled ? calloc(1, sizeof *left) : NULL;
	if (!left)
		return NULL;
	left->server = session->server;
	left->awaited = 1;
	left->session = copy(holder->subject.session);
	left->container = copy(holder->subject.container);
	left->job = copy(holder->subject.job);
	left->holder = (struct ckt_ledger_holder){.left = true,
		.subject = {.session = left->session,
			.container = left->container,
			.job = left->job,
			.owner = holder->subject.owner}};
	memcpy(left->holder.leased, holder->leased, sizeof left->holder.leased);
	ckt_ledger_add(&left->server->ledger, &left->holder);
	return left;
}

void ckt_lease_left_await(struct ckt_lease_left *left)
{
	if (left)
		left->awaited++;
}

void ckt_lease_left_answered(struct ckt_lease_left *left)
{
	if (!left || --left->awaited)
		return;
	struct ckt_server *server = left->server;
	ckt_ledger_remove(&server->ledger, &left->holder);
	free(left->session);
	free(left->container);
	free(left->job);
	free(left);
	ckt_memory_wait_look(server);
}
