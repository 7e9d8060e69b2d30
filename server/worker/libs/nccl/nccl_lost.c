/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A communicator of which a rank's worker has died, in a group that can come back (docs/durable.md): the
 * collectives of the other ranks fail, and none of their programs may be told, because it could not forget
 * that in a replay.
 *
 *	a reply is about to leave -> a communicator has failed? it waits until the server ends this worker
 *	  -> the server has not, because nobody came for the dead one: the program is told
 */
#include <time.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/worker/libs/nccl/nccl.h"
#include "server/worker/session/stamps.h"
#include "server/worker/worker.h"

enum { LOOK_NS = 10000000 };

/* The dead one's client comes at once, but its host and ours may stand still for a while. */
unsigned ckt_worker_nccl_await_ms = 30000;

/* Whether all that the program has seen since the images can be done again without it. */
static bool can_return(struct ckt_worker *worker)
{
	uint64_t saved = atomic_load(&worker->impose.saved);
	return ckt_stamps_kept() && atomic_load(&worker->impose.durable) && saved &&
		atomic_load(&worker->replies.executed) > saved;
}

void ckt_worker_nccl_await_return(struct ckt_worker *worker)
{
	if (!can_return(worker) || !ckt_worker_nccl_has_failed(false))
		return;
	ckt_info("a communicator has failed: what follows waits for the return of the group");
	int64_t until_ms = ckt_net_now_ms() + ckt_worker_nccl_await_ms;
	while (ckt_net_now_ms() < until_ms)
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	ckt_worker_nccl_has_failed(true);
	ckt_warning(
		"a communicator has failed, and its group did not come back: the program goes on");
}
