/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that share memory, events or communicators; see automatic.h.
 *
 * They would have to go back together, to one cut.  Automatic images are taken of each session
 * alone, so from the first time on none is taken, and those that exist do not count any more.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/durable/chain_job.h"
#include "server/daemon/durable/group_cut.h"
#include "server/daemon/durable/replica.h"
#include "server/daemon/session/session.h"

static void written(void *context, int result)
{
	struct ckt_automatic_chain *chain = context;
	chain->committing = false;
	if (result)
		ckt_warning("session %s: cannot write that it shares: %s", chain->id,
			strerror(-result));
	chain->state.shared |= !result;
	if (!chain->session)
		ckt_automatic_ended(chain);
	else if (!result)
		ckt_replica_send(chain);
}

void ckt_automatic_note_share(struct ckt_automatic_chain *chain)
{
	if (!chain->shares || chain->state.shared || !chain->state.count || chain->committing ||
		chain->cut || ckt_group_is_covered(chain))
		return;
	struct ckt_chain_state state = chain->state;
	state.shared = true;
	int result = ckt_chain_commit(
		&chain->server->loop, chain->dir_fd, chain->dir_fd, &state, false, written, chain);
	chain->committing = !result;
	if (result)
		ckt_warning("session %s: cannot write that it shares: %s", chain->id,
			strerror(-result));
}

void ckt_automatic_share(struct ckt_session *session)
{
	if (!session->chain)
		return;
	if (!session->chain->shares)
		ckt_info("session %s: " CKT_AUTOMATIC_SHARES, session->id);
	session->chain->shares = true;
	ckt_automatic_note_share(session->chain);
}
