/* SPDX-License-Identifier: Apache-2.0 */
/* Families of metrics, and how they are written; see families.h. */
#include "server/daemon/metrics/families.h"

#include <string.h>

const struct ckt_metric_family ckt_metric_families[CKT_METRICS] = {
	[CKT_METRIC_BUILD] = {"cricket_build_info", "gauge",
		"Always 1; the labels tell the version and the kind of driver."},
	[CKT_METRIC_SESSIONS] = {"cricket_sessions", "gauge", "Sessions by owner and state."},
	[CKT_METRIC_SESSIONS_MAX] = {"cricket_sessions_max", "gauge",
		"Sessions that the server takes at one time (--max-sessions); 0: no limit."},
	[CKT_METRIC_DRAINING] = {"cricket_draining", "gauge",
		"1: the server takes no new sessions (cricketctl drain)."},
	[CKT_METRIC_SESSION_EVENTS] = {"cricket_session_events", "counter",
		"Events of sessions, as cricketctl events tells them."},
	[CKT_METRIC_CONNECTIONS] = {"cricket_connections", "gauge",
		"Connections that the server itself serves: waiting for a worker, or of cricketctl."},
	[CKT_METRIC_WARM] = {"cricket_warm_workers", "gauge",
		"Workers without a session (--warm): ready, or being made."},
	[CKT_METRIC_GPU_MEMORY] = {"cricket_gpu_memory_bytes", "gauge", "Memory of the GPU."},
	[CKT_METRIC_GPU_HELD] = {"cricket_gpu_memory_held_bytes", "gauge",
		"Memory of the GPU that sessions of the owner hold."},
	[CKT_METRIC_GPU_ALLOWED] = {"cricket_gpu_memory_allowed_bytes", "gauge",
		"What all sessions may hold of the GPU: --gpu-memory, else all of it."},
	[CKT_METRIC_GPU_LEASED] = {"cricket_gpu_memory_leased_bytes", "gauge",
		"What the server has granted to sessions of the GPU, with their contexts."},
	[CKT_METRIC_GPU_SWAPPED] = {"cricket_gpu_memory_swapped_bytes", "gauge",
		"Memory that swapped sessions had on the GPU."},
	[CKT_METRIC_GPU_FREE] = {"cricket_gpu_memory_free_bytes", "gauge",
		"What the server would still grant of the GPU, and no more than is free there."},
	[CKT_METRIC_GPU_INFO] = {"cricket_gpu_info", "gauge",
		"Always 1; the labels tell which GPU it is."},
	[CKT_METRIC_GPU_UP] = {"cricket_gpu_up", "gauge",
		"1: the GPU answers; 0: it is lost, or NVML is silent about it."},
	[CKT_METRIC_GPU_USED] = {"cricket_gpu_memory_used_bytes", "gauge",
		"Memory of the GPU that is taken, by whomever: as NVML says, else what sessions "
		"hold."},
	[CKT_METRIC_GPU_BUSY] = {"cricket_gpu_utilization_ratio", "gauge",
		"Share of NVML's last period in which a kernel ran on the GPU."},
	[CKT_METRIC_GPU_CELSIUS] = {"cricket_gpu_temperature_celsius", "gauge",
		"Temperature of the GPU, by NVML."},
	[CKT_METRIC_GPU_WATTS] = {"cricket_gpu_power_watts", "gauge",
		"Power that the GPU takes, by NVML."},
	[CKT_METRIC_GPU_THROTTLED] = {"cricket_gpu_throttled", "gauge",
		"1: the GPU's clocks are lowered for that reason, by NVML."},
	[CKT_METRIC_GPU_ERRORS] = {"cricket_gpu_ecc_errors", "counter",
		"ECC errors of the GPU since its driver was loaded, by NVML."},
	[CKT_METRIC_GPU_AGE] = {"cricket_gpu_sample_age_seconds", "gauge",
		"Age of what NVML said last of the GPU."},
	[CKT_METRIC_CALLS] = {"cricket_calls", "counter",
		"Calls of the owner's sessions by class."},
	[CKT_METRIC_WAITS] = {"cricket_waited_calls", "counter",
		"Those of them whose caller waits for the reply."},
	[CKT_METRIC_RECEIVED] = {"cricket_received_bytes", "counter",
		"Bytes of commands from programs, without those of lanes."},
	[CKT_METRIC_SENT] = {"cricket_sent_bytes", "counter",
		"Bytes of replies to programs, without those of lanes."},
	[CKT_METRIC_FAILURES] = {"cricket_call_failures", "counter", "Calls that failed, by kind."},
	[CKT_METRIC_LATENCY] = {"cricket_waited_call_seconds", "histogram",
		"Time from the execution of a waited call until its reply, by class."},
	[CKT_METRIC_CHECKPOINTS] = {"cricket_checkpoints", "counter",
		"Images of sessions that were written, or not."},
	[CKT_METRIC_CHECKPOINT_BYTES] = {"cricket_checkpoint_bytes", "counter",
		"Bytes of those that were written."},
	[CKT_METRIC_STOPS] = {"cricket_checkpoint_stop_seconds", "histogram",
		"How long programs stood still for an image."},
	[CKT_METRIC_AUTOMATIC_PERIOD] = {"cricket_automatic_image_period_seconds", "gauge",
		"Time between two automatic images of a session (--auto-checkpoint); 0: off."},
	[CKT_METRIC_AUTOMATIC_IMAGES] = {"cricket_automatic_images", "counter",
		"Automatic images that were written and count, or not."},
	[CKT_METRIC_AUTOMATIC_BYTES] = {"cricket_automatic_image_bytes", "counter",
		"Bytes on the disk of those that were written."},
	[CKT_METRIC_AUTOMATIC_SECONDS] = {"cricket_automatic_image_last_seconds", "gauge",
		"Time from the begin of the last one until it counted."},
	[CKT_METRIC_AUTOMATIC_AGE] = {"cricket_automatic_image_age_seconds", "gauge",
		"Age of the newest automatic image, or of the session if it has none; 0: nothing "
		"was executed since."},
	[CKT_METRIC_RETURNS] = {"cricket_session_returns", "counter",
		"Sessions that began to come back after a crash: from an automatic image, or from "
		"nothing."},
	[CKT_METRIC_REPLICA_BEHIND] = {"cricket_replica_behind_commands", "gauge",
		"Commands of the session that its replica at the other server does not have."},
	[CKT_METRIC_REPLICA_LEASE] = {"cricket_replica_lease_seconds", "gauge",
		"Time until the worker ends unless the other server is reached; 0: there is no "
		"lease."},
	[CKT_METRIC_REPLICAS_HELD] = {"cricket_replicas_held", "gauge",
		"Replicas of other servers' sessions that were renewed here since the start."},
	[CKT_METRIC_REPLICA_BYTES] = {"cricket_replica_held_bytes", "gauge",
		"Bytes of their images on the disk."},
	[CKT_METRIC_MIGRATIONS] = {"cricket_migrations", "counter",
		"Sessions that moved to another server."},
	[CKT_METRIC_DECISIONS] = {"cricket_decisions", "counter",
		"Answers of the policy, by question and answer."},
	[CKT_METRIC_TURNS] = {"cricket_turns", "counter",
		"Turns on GPUs that limits share in time, by what the scheduler did."},
	[CKT_METRIC_TURN_SECONDS] = {"cricket_turn_seconds", "counter",
		"Time that sessions of the owner had the GPU in their turns."},
	[CKT_METRIC_STRANGERS] = {"cricket_refusals", "counter",
		"What the server refused or missed, by kind; the log holds the first of each."},
	[CKT_METRIC_CERTIFICATES] = {"cricket_certificate_expiry_timestamp_seconds", "gauge",
		"When a certificate of TLS expires, in seconds since the epoch."},
	[CKT_METRIC_SCRAPES] = {"cricket_scrapes", "counter",
		"Texts of metrics that the server has made."},
	[CKT_METRIC_SCRAPE_SECONDS] = {"cricket_scrape_seconds", "counter",
		"Time that the server took to make them."},
	[CKT_METRIC_CPU] = {"process_cpu_seconds", "counter",
		"Processor time of the server, without its workers."},
	[CKT_METRIC_RESIDENT] = {"process_resident_memory_bytes", "gauge",
		"Resident memory of the server."},
	[CKT_METRIC_VIRTUAL] = {"process_virtual_memory_bytes", "gauge",
		"Address space of the server."},
	[CKT_METRIC_OPEN_FDS] = {"process_open_fds", "gauge",
		"Open file descriptors of the server."},
	[CKT_METRIC_MAX_FDS] = {"process_max_fds", "gauge",
		"File descriptors that the server may open; 0: not known."},
	[CKT_METRIC_START] = {"process_start_time_seconds", "gauge",
		"When the server started, in seconds since the epoch."},
};

static bool is_counter(const struct ckt_metric_family *family)
{
	return strcmp(family->type, "counter") == 0;
}

void ckt_metric_begin(struct ckt_metric_writer *writer, enum ckt_metric metric)
{
	const struct ckt_metric_family *family = &ckt_metric_families[metric];
	/* The older format knows no families: there the suffix is part of the name. */
	const char *suffix = is_counter(family) && !writer->openmetrics ? "_total" : "";
	writer->now = metric;
	fprintf(writer->to, "# HELP %s%s %s\n", family->name, suffix, family->help);
	fprintf(writer->to, "# TYPE %s%s %s\n", family->name, suffix, family->type);
}

static void put_value(FILE *to, const char *value)
{
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", to);
		else if (*value == '"' || *value == '\\')
			fprintf(to, "\\%c", *value);
		else
			fputc((unsigned char)*value < 32 || *value == 127 ? '?' : *value, to);
	}
}

/* bound: the value of the label `le`; NULL: none. */
static void put(struct ckt_metric_writer *writer, const char *suffix, const char *const *labels,
	const char *bound, double value)
{
	FILE *to = writer->to;
	const char *between = "{";
	fprintf(to, "%s%s", ckt_metric_families[writer->now].name, suffix);
	for (; labels && *labels; labels += 2) {
		fprintf(to, "%s%s=\"", between, labels[0]);
		put_value(to, labels[1]);
		fputc('"', to);
		between = ",";
	}
	if (bound) {
		fprintf(to, "%sle=\"%s\"", between, bound);
		between = ",";
	}
	fprintf(to, "%s %.17g\n", *between == ',' ? "}" : "", value);
}

void ckt_metric_put(struct ckt_metric_writer *writer, const char *const *labels, double value)
{
	put(writer, is_counter(&ckt_metric_families[writer->now]) ? "_total" : "", labels, NULL,
		value);
}

void ckt_metric_put_histogram(struct ckt_metric_writer *writer, const char *const *labels,
	const uint64_t *counts, const double *bounds, unsigned buckets, double sum)
{
	uint64_t count = 0;
	char bound[32];
	for (unsigned i = 0; i < buckets; i++) {
		count += counts[i];
		/* OpenMetrics asks for a point in it; with it both formats have one text. */
		snprintf(bound, sizeof bound, "%.9g", i + 1 < buckets ? bounds[i] : 0);
		if (!strpbrk(bound, ".e"))
			strcat(bound, ".0");
		put(writer, "_bucket", labels, i + 1 < buckets ? bound : "+Inf", (double)count);
	}
	put(writer, "_sum", labels, NULL, sum);
	put(writer, "_count", labels, NULL, (double)count);
}

void ckt_metric_end(struct ckt_metric_writer *writer)
{
	if (writer->openmetrics)
		fputs("# EOF\n", writer->to);
}
