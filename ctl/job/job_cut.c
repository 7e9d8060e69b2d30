/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a moment at which no session of a job has anything left to do; see rpc/job_cut.h. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/job/job.h"
#include "ctl/print.h"
#include "rpc/job_cut.h"
#include "rpc/net.h"
#include "rpc/session.h"

enum {
	LOOK_NS = 1000000,
	SLOW_LOOK_NS = 10000000,
	SLOW_MS = 1000,
};

/* The main thread's. */
static struct ckt_job_rank *cuts[CKT_CTL_RANKS_MAX];

static void collect(const struct ckt_ctl_job *job)
{
	for (unsigned i = 0; i < job->rank_count; i++)
		cuts[i] = &job->ranks[i].cut;
}

static int refuse_late(const struct ckt_ctl_job *job, unsigned deadline_ms)
{
	char text[600], message[2400], clean[CKT_MESSAGE_MAX + 1];
	unsigned late = ckt_job_cut_late(cuts, job->rank_count);
	unsigned others = job->rank_count - ckt_job_cut_drained(cuts, job->rank_count) - 1;
	const struct ckt_ctl_rank *first = &job->ranks[late];
	if (late == job->rank_count)
		return ckt_ctl_refuse(job->name,
			"the sessions did not freeze together within the deadline: try "
			"again, or give a longer --deadline");
	int used = snprintf(message, sizeof message, "%s did not drain within %u s: %s",
		ckt_ctl_rank_text(first, text, sizeof text), deadline_ms / 1000,
		*first->message ? ckt_ctl_clean(first->message, clean, sizeof clean)
				: "its work does not finish");
	if (ckt_job_cut_most(cuts, job->rank_count))
		used += snprintf(message + used, sizeof message - (size_t)used,
			"; it has issued %llu collectives, the furthest session %llu",
			(unsigned long long)first->cut.issued,
			(unsigned long long)ckt_job_cut_most(cuts, job->rank_count));
	if (others)
		used += snprintf(message + used, sizeof message - (size_t)used,
			"; %u other session%s did not drain either", others,
			others == 1 ? "" : "s");
	snprintf(message + used, sizeof message - (size_t)used,
		"; all sessions continue: end that work, or give a longer --deadline");
	return ckt_ctl_refuse(job->name, message);
}

int ckt_ctl_job_cut(struct ckt_ctl_job *job, unsigned deadline_ms)
{
	struct ckt_job_cut cut;
	ckt_job_cut_begin(&cut, ckt_net_now_ms());
	for (;;) {
		int status = ckt_ctl_job_look(job);
		int64_t now_ms = ckt_net_now_ms();
		if (status != CKT_EXIT_DONE)
			return status;
		collect(job);
		if (ckt_job_cut_decide(&cut, cuts, job->rank_count, now_ms))
			return CKT_EXIT_DONE;
		if (now_ms - job->held_ms >= deadline_ms)
			return refuse_late(job, deadline_ms);
		nanosleep(&(struct timespec){.tv_nsec = !cut.stepping &&
						  now_ms - cut.since_ms > SLOW_MS
					  ? SLOW_LOOK_NS
					  : LOOK_NS},
			NULL);
	}
}
