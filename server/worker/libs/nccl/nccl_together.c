/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaving the GPU together with the other ranks of communicators: each worker is found under a name for each
 * rank that it has, and asks those of the other ranks whether they stand still before its memory leaves.
 * So it asks before an image of its group's cut whether they are held for the same one.
 *
 * The communicators stay as they are, with what NCCL has allocated: it is none of the program's, and other ranks
 * map it.  No memory of the program's is known to NCCL beyond a collective, for nothing is registered (nccl.c),
 * and all of it comes back at the same addresses, also for collectives in graphs.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/libs/nccl/nccl.h"
#include "server/worker/module/blob.h"
#include "server/worker/session/activity.h"
#include "server/worker/session/group.h"
#include "server/worker/worker.h"

/* Beside CKT_GROUP_NOBODY. */
enum { STANDS = 's', RUNS = 'r' };

/* What a worker says of itself.  Those before this build say the first byte alone, and read no more. */
struct said {
	char stands;
	char cut[CKT_HOLD_CUT_TEXT]; /* for which it is held; empty: none */
};
_Static_assert(sizeof(struct said) == 1 + CKT_HOLD_CUT_TEXT, "no padding");

static struct ckt_group_name name_of(const uint8_t *identity, uint32_t rank)
{
	struct ckt_group_name name;
	uint8_t hash[CKT_HASH_SIZE];
	_Static_assert(sizeof name.bytes == CKT_GROUP_COMMUNICATOR + sizeof rank, "a name fits");
	ckt_blob_hash(identity, CKT_NCCL_ID_BYTES, hash);
	memcpy(name.bytes, CKT_GROUP_RANK, CKT_GROUP_RANK_PREFIX);
	memcpy(name.bytes + CKT_GROUP_RANK_PREFIX, hash,
		CKT_GROUP_COMMUNICATOR - CKT_GROUP_RANK_PREFIX);
	memcpy(name.bytes + CKT_GROUP_COMMUNICATOR, &rank, sizeof rank);
	return name;
}

static void read_cut(struct ckt_worker *worker, char ret_cut[CKT_HOLD_CUT_TEXT])
{
	const struct ckt_hold *hold = &worker->checkpoint.hold;
	pthread_mutex_lock(&worker->mail_lock);
	snprintf(ret_cut, CKT_HOLD_CUT_TEXT, "%s", hold->wanted ? hold->cut : "");
	pthread_mutex_unlock(&worker->mail_lock);
}

static void answer(struct ckt_worker *worker, const struct ckt_group_name *name, int connection)
{
	struct said said = {.stands = ckt_ipc_together_stands() ? STANDS : RUNS};
	(void)name;
	read_cut(worker, said.cut);
	send(connection, &said, sizeof said, MSG_NOSIGNAL);
}

void ckt_worker_nccl_together_add(const struct ckt_nccl_comm *comm)
{
	static bool once;
	const struct ckt_group_name name = name_of(comm->identity, (uint32_t)comm->rank);
	if (comm->ranks < 2)
		return;
	int error = ckt_group_claim(&name, answer);
	/* Without a group channel nobody could leave together. */
	if (error == -ENOSPC && !once) {
		ckt_warning("the session has too many communicators to leave the GPU together with "
			    "their other ranks");
		once = true;
	}
	ckt_activity_shares();
}

void ckt_worker_nccl_together_remove(const struct ckt_nccl_comm *comm)
{
	const struct ckt_group_name name = name_of(comm->identity, (uint32_t)comm->rank);
	if (comm->ranks > 1)
		ckt_group_drop(&name);
}

/* Zeros: its worker is not there to answer. */
static struct said ask(const struct ckt_nccl_peer *peer)
{
	const struct ckt_group_name name = name_of(peer->identity, peer->rank);
	struct said said = {0};
	int connection = ckt_group_ask(&name, 0);
	if (connection < 0)
		return said;
	/* One packet, of an earlier worker a shorter one. */
	if (ckt_net_receive(connection, &said, sizeof said, 0) <= 0)
		said = (struct said){0};
	close(connection);
	said.cut[sizeof said.cut - 1] = 0;
	return said;
}

static int refuse(const struct ckt_nccl_peer *peer, const struct said *said, const char *why,
	char *ret_message, size_t message_size)
{
	snprintf(ret_message, message_size, "rank %u of its NCCL communicator %s", peer->rank,
		said->stands == CKT_GROUP_NOBODY ? "is at another server, or of another owner"
						 : why);
	return -EBUSY;
}

int ckt_worker_nccl_together_check(char *ret_message, size_t message_size)
{
	struct ckt_nccl_peer peer;
	for (size_t i = 0; ckt_worker_nccl_peer(i, &peer); i++) {
		const struct said said = ask(&peer);
		if (said.stands != STANDS)
			return refuse(&peer, &said, "cannot leave with it now", ret_message,
				message_size);
	}
	return 0;
}

int ckt_worker_nccl_cut_check(struct ckt_worker *worker, char *ret_message, size_t message_size)
{
	char cut[CKT_HOLD_CUT_TEXT];
	struct ckt_nccl_peer peer;
	read_cut(worker, cut);
	for (size_t i = 0; *cut && ckt_worker_nccl_peer(i, &peer); i++) {
		const struct said said = ask(&peer);
		if (strcmp(said.cut, cut) != 0)
			return refuse(&peer, &said, "is of another group, or does not stand still",
				ret_message, message_size);
	}
	return 0;
}
