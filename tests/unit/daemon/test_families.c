/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/metrics/families.c: both formats, escaped values, histograms. */
#include <stdlib.h>
#include <string.h>

#include "inside.h"
#include "server/daemon/metrics/families.h"

static char *text;
static size_t size;

static struct ckt_metric_writer begin(bool openmetrics, enum ckt_metric metric)
{
	struct ckt_metric_writer to = {
		.to = open_memstream(&text, &size), .openmetrics = openmetrics};
	CU_ASSERT_PTR_NOT_NULL_FATAL(to.to);
	ckt_metric_begin(&to, metric);
	return to;
}

static void end(struct ckt_metric_writer *to, const char *expected)
{
	ckt_metric_end(to);
	fclose(to->to);
	HAS(text, expected);
	free(text);
}

static void test_formats(void)
{
	struct ckt_metric_writer to = begin(false, CKT_METRIC_MIGRATIONS);
	ckt_metric_put(&to, NULL, 3);
	end(&to, "# TYPE cricket_migrations_total counter\ncricket_migrations_total 3\n");
	to = begin(true, CKT_METRIC_MIGRATIONS);
	ckt_metric_put(&to, NULL, 3);
	end(&to, "# TYPE cricket_migrations counter\ncricket_migrations_total 3\n# EOF\n");
	to = begin(true, CKT_METRIC_SESSIONS_MAX);
	ckt_metric_put(&to, NULL, 1e15);
	end(&to, "# TYPE cricket_sessions_max gauge\ncricket_sessions_max 1000000000000000\n");
}

static void test_labels(void)
{
	struct ckt_metric_writer to = begin(false, CKT_METRIC_SESSIONS);
	ckt_metric_put(&to,
		(const char *const[]){"owner", "a\"b\\c\nx\x01\x7f\xc3\xbc", "state", "", NULL},
		0.5);
	end(&to, "cricket_sessions{owner=\"a\\\"b\\\\c\\nx?\?\xc3\xbc\",state=\"\"} 0.5\n");
}

static void test_histogram(void)
{
	static const uint64_t counts[] = {1, 0, 2};
	static const double bounds[] = {0.001, 4};
	struct ckt_metric_writer to = begin(true, CKT_METRIC_STOPS);
	ckt_metric_put_histogram(&to, NULL, counts, bounds, 3, 12.5);
	end(&to,
		"cricket_checkpoint_stop_seconds_bucket{le=\"0.001\"} 1\n"
		"cricket_checkpoint_stop_seconds_bucket{le=\"4.0\"} 1\n"
		"cricket_checkpoint_stop_seconds_bucket{le=\"+Inf\"} 3\n"
		"cricket_checkpoint_stop_seconds_sum 12.5\n"
		"cricket_checkpoint_stop_seconds_count 3\n");
	to = begin(true, CKT_METRIC_LATENCY);
	ckt_metric_put_histogram(
		&to, (const char *const[]){"class", "copy", NULL}, counts, bounds, 1, 1);
	end(&to, "cricket_waited_call_seconds_bucket{class=\"copy\",le=\"+Inf\"} 1\n");
}

UNIT_SUITE(
	families, {"formats", test_formats}, {"labels", test_labels}, {"histogram", test_histogram})
