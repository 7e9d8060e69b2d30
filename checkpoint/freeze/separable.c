/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that cannot be saved without others; see separable.h. */
#include "checkpoint/freeze/separable.h"

#include <errno.h>
#include <stdio.h>

#include "checkpoint/session.h"
#include "checkpoint/state.h"
#include "rpc/job.h"

int ckt_separable_check(struct ckt_worker *worker, char *ret_message, size_t message_size)
{
	char tie[600], job[CKT_JOB_NAME_MAX + 1];
	pthread_mutex_t *lock = ckt_session_operations.lock(worker);
	pthread_mutex_lock(lock);
	bool held = ckt_checkpoint_of(worker)->hold.wanted;
	snprintf(job, sizeof job, "%s", ckt_session_operations.job(worker));
	pthread_mutex_unlock(lock);
	if (held || !ckt_session_operations.has_peers(tie, sizeof tie))
		return 0;
	if (*job)
		snprintf(ret_message, message_size,
			"%s: save or move all of them together, with cricketctl "
			"checkpoint --job %s DIR and cricketctl restore --job DIR",
			tie, job);
	else
		snprintf(ret_message, message_size,
			"%s, and the session belongs to no job: start all of them with "
			"the same CRICKET_JOB, and save them together with cricketctl "
			"checkpoint --job",
			tie);
	return -EBUSY;
}
