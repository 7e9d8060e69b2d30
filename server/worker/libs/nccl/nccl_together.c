/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaving the GPU together with the other ranks of communicators: each worker is found under a name for each
 * rank that it has, and asks those of the other ranks whether they stand still before its memory leaves.
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

/* Beside CKT_GROUP_NOBODY. */
enum { STANDS = 's', RUNS = 'r' };

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

static void answer(struct ckt_worker *worker, const struct ckt_group_name *name, int connection)
{
	const char byte = ckt_ipc_together_stands() ? STANDS : RUNS;
	(void)worker, (void)name;
	send(connection, &byte, sizeof byte, MSG_NOSIGNAL);
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

/* 0: its worker is not there to answer. */
static char ask(const struct ckt_nccl_peer *peer)
{
	const struct ckt_group_name name = name_of(peer->identity, peer->rank);
	char byte = 0;
	int connection = ckt_group_ask(&name, 0);
	if (connection < 0)
		return 0;
	if (ckt_net_receive(connection, &byte, sizeof byte, 0) != sizeof byte)
		byte = 0;
	close(connection);
	return byte;
}

int ckt_worker_nccl_together_check(char *ret_message, size_t message_size)
{
	struct ckt_nccl_peer peer;
	for (size_t i = 0; ckt_worker_nccl_peer(i, &peer); i++) {
		char said = ask(&peer);
		if (said == STANDS)
			continue;
		snprintf(ret_message, message_size,
			said == CKT_GROUP_NOBODY
				? "rank %u of its NCCL communicator is at another server, or of another owner"
				: "rank %u of its NCCL communicator cannot leave with it now",
			peer.rank);
		return -EBUSY;
	}
	return 0;
}
