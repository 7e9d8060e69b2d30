/* SPDX-License-Identifier: Apache-2.0 */
/* The server's own counts; see counters.h. */
#include "server/daemon/metrics/counters.h"

#include "base/probes.h"
#include "server/daemon/events.h"
#include "server/daemon/log_limited.h"

_Static_assert(CKT_COUNTED_EVENTS == CKT_EVENT_NOT_ASLEEP + 1, "all events");
_Static_assert((int)CKT_COUNTED_LIMITS == (int)CKT_LIMITS, "all kinds");

struct ckt_counters ckt_counters;

static const char *const questions[CKT_COUNTED_QUESTIONS] = {
	"waiting", "control", "session", "stage", "save", "pause", "resume", "memory"};
static const char *const answers[CKT_COUNTED_ANSWERS] = {
	"yes", "wait", "full", "no_space", "denied", "busy", "no_device", "stopping"};

static const char *const turns[CKT_COUNTED_TURNS] = {"given", "limited", "overdue"};

const char *ckt_counted_turn_name(enum ckt_counted_turn what)
{
	return turns[what];
}

void ckt_count_turn(
	const char *session, unsigned gpu, enum ckt_counted_turn what, int64_t length_ns)
{
	ckt_counters.turns[gpu][what]++;
	CKT_PROBE4(turn, session, gpu, turns[what], length_ns);
}

const char *ckt_counted_question_name(enum ckt_counted_question question)
{
	return questions[question];
}

const char *ckt_counted_answer_name(enum ckt_policy_answer answer)
{
	return answers[answer];
}

void ckt_count_decision(enum ckt_counted_question question, const struct ckt_decision *decision)
{
	ckt_counters.decisions[question][decision->answer]++;
	CKT_PROBE3(decision, questions[question], (int)decision->answer, decision->reason);
}

void ckt_count_checkpoint(const char *session, bool good, uint64_t bytes, uint64_t stopped_us)
{
	CKT_PROBE4(checkpoint, session, (int)good, bytes, stopped_us);
	if (!good) {
		ckt_counters.checkpoint_failures++;
		return;
	}
	ckt_counters.checkpoints++;
	ckt_counters.checkpoint_bytes += bytes;
	if (!stopped_us)
		return;
	unsigned bucket = 0;
	for (uint64_t bound = CKT_STOP_FIRST_US;
		bucket < CKT_STOP_BUCKETS - 1 && stopped_us > bound; bound *= 4)
		bucket++;
	ckt_counters.stops[bucket]++;
	ckt_counters.stop_us += stopped_us;
}
