/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server itself counts for --metrics, since its start.  Other rooms count here; collect.c
 * reads.  Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bounds.h"
#include "server/daemon/policy/policy.h"

enum {
	CKT_COUNTED_EVENTS = 17, /* enum ckt_event_name */
	CKT_COUNTED_ANSWERS = CKT_POLICY_STOPPING + 1,
	CKT_COUNTED_LIMITS = 5, /* enum ckt_log_limit */
	/* upper bounds of 1 ms, 4 ms and so on; the last has none */
	CKT_STOP_BUCKETS = 10,
	CKT_STOP_FIRST_US = 1000,
};

/* What the policy was asked for. */
enum ckt_counted_question {
	CKT_QUESTION_WAITING,
	CKT_QUESTION_CONTROL,
	CKT_QUESTION_SESSION,
	CKT_QUESTION_STAGE,
	CKT_QUESTION_SAVE,
	CKT_QUESTION_PAUSE,
	CKT_QUESTION_RESUME,
	CKT_QUESTION_MEMORY, /* a worker asked for a lease */
	CKT_COUNTED_QUESTIONS
};

/* What the scheduler did with a turn on a GPU. */
enum ckt_counted_turn {
	CKT_TURN_WAS_GIVEN,
	CKT_TURN_WAS_LIMITED, /* another wants the GPU: it got an end */
	CKT_TURN_WAS_OVERDUE, /* it did not come back in time, and was passed over */
	CKT_COUNTED_TURNS
};

struct ckt_counters {
	uint64_t events[CKT_COUNTED_EVENTS];
	uint64_t decisions[CKT_COUNTED_QUESTIONS][CKT_COUNTED_ANSWERS];
	uint64_t strangers[CKT_COUNTED_LIMITS]; /* messages that strangers brought about */
	uint64_t checkpoints, checkpoint_failures, checkpoint_bytes;
	/* images that count, of --auto-checkpoint; the last one's time */
	uint64_t automatic_images, automatic_failures, automatic_bytes, automatic_last_ms;
	uint64_t returns_from_image, returns_from_nothing;
	uint64_t stops[CKT_STOP_BUCKETS], stop_us;
	uint64_t turns[CKT_DEVICES_MAX][CKT_COUNTED_TURNS];
};

extern struct ckt_counters ckt_counters;

/* An answer to a question; also the probe `decision`. */
void ckt_count_decision(enum ckt_counted_question question, const struct ckt_decision *decision);
/* An image was written, or not.  stopped_us: how long the program stood still; 0: not known. */
void ckt_count_checkpoint(const char *session, bool good, uint64_t bytes, uint64_t stopped_us);
/* Also the probe `turn`.  length_ns: of the turn from now; 0: it has no end. */
void ckt_count_turn(
	const char *session, unsigned gpu, enum ckt_counted_turn what, int64_t length_ns);
/* For labels and probes. */
const char *ckt_counted_question_name(enum ckt_counted_question question);
const char *ckt_counted_turn_name(enum ckt_counted_turn what);
const char *ckt_counted_answer_name(enum ckt_policy_answer answer);
