/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas of sessions that share count at one moment; see replica.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/daemon/durable/automatic.h"
#include "server/daemon/durable/chain_job.h"
#include "server/daemon/durable/group_cut.h"
#include "server/daemon/durable/replica.h"
#include "server/daemon/server.h"

/* Of one cut, whose next states become states. */
struct counting {
	ckt_chain_job_done done;
	void *context;
	unsigned left; /* members, and one for the beginning itself */
	int result;
};

static void counted(struct counting *counting, int result)
{
	if (result && !counting->result)
		counting->result = result;
	if (--counting->left)
		return;
	counting->done(counting->context, counting->result);
	free(counting);
}

/* No image of it may come meanwhile: what no state names is removed. */
struct member {
	struct counting *counting;
	int lock_fd;
};

static void member_counted(void *context, int result)
{
	struct member *member = context;
	close(member->lock_fd);
	counted(member->counting, result);
	free(member);
}

static int count_member(struct ckt_server *server, struct counting *counting, const char *id)
{
	struct ckt_chain_state state;
	struct member *member = calloc(1, sizeof *member);
	int fd = ckt_chain_open(server->automatic->dir_fd, id, false);
	int result = !member ? -ENOMEM : fd < 0 ? fd : ckt_chain_next_read(fd, id, &state);
	if (!result) {
		*member = (struct member){counting, ckt_chain_lock(fd, false)};
		result = member->lock_fd < 0
			? member->lock_fd
			: ckt_chain_count(&server->loop, fd, &state, member_counted, member);
		if (result && member->lock_fd >= 0)
			close(member->lock_fd);
	}
	if (fd >= 0)
		close(fd);
	counting->left += !result;
	if (result)
		free(member);
	return result;
}

int ckt_replica_count(struct ckt_server *server, const struct ckt_chain_state *state,
	ckt_chain_job_done done, void *context)
{
	bool next[CKT_CHAIN_MEMBERS_MAX] = {false};
	struct counting *counting = calloc(1, sizeof *counting);
	if (!counting)
		return -ENOMEM;
	*counting = (struct counting){.done = done, .context = context, .left = 1};
	bool whole = ckt_group_cut_is_whole(server, state, next);
	int result = 0;
	for (unsigned i = 0; i < state->member_count && whole && !result; i++)
		if (next[i])
			result = count_member(server, counting, state->members[i]);
	counted(counting, result);
	return 0;
}
