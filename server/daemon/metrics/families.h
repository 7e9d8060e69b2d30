/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The families of metrics: their names and what they mean, and the two formats in which they are
 * written: OpenMetrics 1.0, and Prometheus's older text.  docs/metrics.md has the same table.
 *
 * Threading: any; a writer belongs to one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum ckt_metric {
	CKT_METRIC_BUILD,
	CKT_METRIC_SESSIONS,
	CKT_METRIC_SESSIONS_MAX,
	CKT_METRIC_DRAINING,
	CKT_METRIC_SESSION_EVENTS,
	CKT_METRIC_CONNECTIONS,
	CKT_METRIC_WARM,
	CKT_METRIC_GPU_MEMORY,
	CKT_METRIC_GPU_HELD,
	CKT_METRIC_GPU_ALLOWED,
	CKT_METRIC_GPU_LEASED,
	CKT_METRIC_GPU_SWAPPED,
	CKT_METRIC_GPU_FREE,
	CKT_METRIC_GPU_INFO,
	CKT_METRIC_GPU_UP,
	CKT_METRIC_GPU_USED,
	CKT_METRIC_GPU_BUSY,
	CKT_METRIC_GPU_CELSIUS,
	CKT_METRIC_GPU_WATTS,
	CKT_METRIC_GPU_THROTTLED,
	CKT_METRIC_GPU_ERRORS,
	CKT_METRIC_GPU_AGE,
	CKT_METRIC_CALLS,
	CKT_METRIC_WAITS,
	CKT_METRIC_RECEIVED,
	CKT_METRIC_SENT,
	CKT_METRIC_FAILURES,
	CKT_METRIC_LATENCY,
	CKT_METRIC_CHECKPOINTS,
	CKT_METRIC_CHECKPOINT_BYTES,
	CKT_METRIC_STOPS,
	CKT_METRIC_AUTOMATIC_PERIOD,
	CKT_METRIC_AUTOMATIC_IMAGES,
	CKT_METRIC_AUTOMATIC_BYTES,
	CKT_METRIC_AUTOMATIC_SECONDS,
	CKT_METRIC_AUTOMATIC_AGE,
	CKT_METRIC_RETURNS,
	CKT_METRIC_REPLICA_BEHIND,
	CKT_METRIC_REPLICA_LEASE,
	CKT_METRIC_REPLICAS_HELD,
	CKT_METRIC_REPLICA_BYTES,
	CKT_METRIC_MIGRATIONS,
	CKT_METRIC_DECISIONS,
	CKT_METRIC_TURNS,
	CKT_METRIC_TURN_SECONDS,
	CKT_METRIC_STRANGERS,
	CKT_METRIC_CERTIFICATES,
	CKT_METRIC_SCRAPES,
	CKT_METRIC_SCRAPE_SECONDS,
	CKT_METRIC_CPU,
	CKT_METRIC_RESIDENT,
	CKT_METRIC_VIRTUAL,
	CKT_METRIC_OPEN_FDS,
	CKT_METRIC_MAX_FDS,
	CKT_METRIC_START,
	CKT_METRICS
};

struct ckt_metric_family {
	const char *name; /* of a counter: without _total */
	const char *type; /* counter, gauge or histogram */
	const char *help;
};

extern const struct ckt_metric_family ckt_metric_families[CKT_METRICS];

struct ckt_metric_writer {
	FILE *to; /* the caller's */
	bool openmetrics;
	enum ckt_metric now;
};

/* The family's head; its samples follow. */
void ckt_metric_begin(struct ckt_metric_writer *writer, enum ckt_metric metric);
/*
 * A sample.  labels: pairs of a name and a value, NULL behind the last; NULL: none.  Values are
 * escaped.
 */
void ckt_metric_put(struct ckt_metric_writer *writer, const char *const *labels, double value);
/*
 * A histogram.  counts: of each bucket alone; bounds: their upper ones in seconds, without that of
 * the last, which has none.
 */
void ckt_metric_put_histogram(struct ckt_metric_writer *writer, const char *const *labels,
	const uint64_t *counts, const double *bounds, unsigned buckets, double sum);
void ckt_metric_end(struct ckt_metric_writer *writer);
