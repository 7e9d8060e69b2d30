/* Sessions that cannot be saved without others; see alone.h. */
#include "checkpoint/freeze/separable.h"

#include <errno.h>
#include <stdio.h>

#include "checkpoint/session.h"
#include "server/worker/worker.h"

int ckt_alone_check(struct ckt_worker *worker, char *ret_message, size_t message_size)
{
	char tie[600], job[sizeof worker->job];
	pthread_mutex_lock(&worker->mail_lock);
	bool held = worker->hold.wanted;
	snprintf(job, sizeof job, "%s", worker->job);
	pthread_mutex_unlock(&worker->mail_lock);
	if (held || !ckt_session_operations.has_peers(tie, sizeof tie))
		return 0;
	if (*job)
		snprintf(ret_message, message_size,
			"%s: save, or move, all of them together, with cricketctl checkpoint --job %s DIR and cricketctl restore --job DIR",
			tie, job);
	else
		snprintf(ret_message, message_size,
			"%s, and it belongs to no job: start all of them with the same CRICKET_JOB, and save them together with cricketctl checkpoint --job",
			tie);
	return -EBUSY;
}
