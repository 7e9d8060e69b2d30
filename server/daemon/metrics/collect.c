/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of /metrics; see collect.h. */
#include "server/daemon/metrics/collect.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/daemon/durable/sleep.h"
#include "server/daemon/events.h"
#include "server/daemon/metrics/automatic_metrics.h"
#include "server/daemon/metrics/counters.h"
#include "server/daemon/metrics/families.h"
#include "server/daemon/metrics/gpu_metrics.h"
#include "server/daemon/metrics/owners.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/warm_workers.h"

/* As ckt_session_state, and what the worker itself does not know. */
enum { STATES = CKT_STATE_ASLEEP + 1, OWNERS = CKT_METRICS_OWNERS + 1 };
static const char *const states[STATES] = {"starting", "running", "detached", "restored", "frozen",
	"ending", "paused", "swapped", "asleep"};
static const char *const classes[CKT_CALL_CLASSES] = {
	"launch", "copy", "memory", "module", "wait", "library", "other"};
static const char *const failures[CKT_CALL_FAILURES] = {
	"invalid", "memory", "unsupported", "execution", "library", "other"};
static const char *const strangers[CKT_LIMITS] = {
	"hello", "connection", "descriptor", "image", "system_call"};

/* The sums of now, over sessions. */
struct sums {
	unsigned sessions[OWNERS][STATES];
	uint64_t held[OWNERS][CKT_DEVICES_MAX];
	uint64_t latency[CKT_CALL_CLASSES][CKT_LATENCY_BUCKETS], latency_ns[CKT_CALL_CLASSES];
};

static uint64_t scrapes, scrape_ns;

static unsigned state_of(const struct ckt_session *session)
{
	uint64_t seen = session->metrics.page ? session->metrics.seen.state : session->status.state;
	if (session->phase == CKT_SESSION_STARTING)
		return CKT_STATE_STARTING;
	if (session->phase == CKT_SESSION_ENDING)
		return CKT_STATE_ENDING;
	if (session->metrics.paused)
		return CKT_STATE_PAUSED;
	if (session->holder || session->job_hold)
		return CKT_STATE_FROZEN;
	if (session->quantum.member.out)
		return CKT_STATE_SWAPPED;
	/* A worker that writes cannot be asleep. */
	return seen < CKT_STATE_ASLEEP ? (unsigned)seen : CKT_STATE_RUNNING;
}

static void add_held(const struct ckt_session *session, uint64_t held[CKT_DEVICES_MAX])
{
	const struct ckt_worker_status_res *status = &session->status;
	/* Without a page: what the worker said last, of its first GPU. */
	if (!session->metrics.page && status->gpu >= 0 && status->gpu < CKT_DEVICES_MAX)
		held[status->gpu] += status->memory_bytes;
	for (unsigned gpu = 0; session->metrics.page && gpu < CKT_DEVICES_MAX; gpu++)
		held[gpu] += session->metrics.seen.memory_bytes[gpu];
}

static unsigned place_of_owner(unsigned owner)
{
	return owner < CKT_METRICS_OWNERS ? owner : CKT_METRICS_OWNERS;
}

static void add_up(struct ckt_server *server, struct sums *sums)
{
	memset(sums, 0, sizeof *sums);
	for (const struct ckt_sleeper *one = ckt_sleep_first(); one; one = one->next)
		sums->sessions[place_of_owner(ckt_metrics_owner_index(server, one->owner))]
			      [CKT_STATE_ASLEEP]++;
	for (struct ckt_session *session = server->sessions; session; session = session->next) {
		unsigned owner = ckt_metrics_owner_index(server, session->uid);
		ckt_session_metrics_add(session, ckt_metrics_owner_at(owner));
		ckt_session_metrics_add_turns(session, ckt_metrics_owner_turns(owner));
		unsigned place = place_of_owner(owner);
		sums->sessions[place][state_of(session)]++;
		add_held(session, sums->held[place]);
	}
	for (unsigned owner = 0; owner < ckt_metrics_owner_count(); owner++) {
		const struct ckt_session_metrics *from = ckt_metrics_owner_at(owner);
		for (unsigned c = 0; c < CKT_CALL_CLASSES; c++) {
			sums->latency_ns[c] += from->latency_ns[c];
			for (unsigned i = 0; i < CKT_LATENCY_BUCKETS; i++)
				sums->latency[c][i] += from->latency[c][i];
		}
	}
}

/* Where the sums of the owner of that name are: the last name is of "other". */
static unsigned place_of(unsigned owner)
{
	return owner + 1 < ckt_metrics_owner_count() ? owner : CKT_METRICS_OWNERS;
}

/* ---- Families */

static void put_server(struct ckt_server *server, struct ckt_metric_writer *to)
{
	unsigned wanted, making, ready;
	ckt_metric_begin(to, CKT_METRIC_BUILD);
	ckt_metric_put(to,
		(const char *const[]){"version", CKT_VERSION, "driver",
			server->driver.soft ? "soft" : "real", NULL},
		1);
	ckt_metric_begin(to, CKT_METRIC_SESSIONS_MAX);
	ckt_metric_put(to, NULL, server->options.max_sessions);
	ckt_metric_begin(to, CKT_METRIC_DRAINING);
	ckt_metric_put(to, NULL, server->drain.on);
	unsigned waiting = 0, control = 0;
	for (const struct ckt_peer *peer = server->peers_first; peer; peer = peer->next) {
		waiting += peer->phase != CKT_PEER_CONTROL;
		control += peer->phase == CKT_PEER_CONTROL;
	}
	ckt_metric_begin(to, CKT_METRIC_CONNECTIONS);
	ckt_metric_put(to, (const char *const[]){"kind", "waiting", NULL}, waiting);
	ckt_metric_put(to, (const char *const[]){"kind", "control", NULL}, control);
	ckt_warm_count(server, &wanted, &making, &ready);
	ckt_metric_begin(to, CKT_METRIC_WARM);
	ckt_metric_put(to, (const char *const[]){"state", "making", NULL}, making);
	ckt_metric_put(to, (const char *const[]){"state", "ready", NULL}, ready);
}

static void put_sessions(struct ckt_metric_writer *to, const struct sums *sums)
{
	ckt_metric_begin(to, CKT_METRIC_SESSIONS);
	for (unsigned owner = 0; owner < ckt_metrics_owner_count(); owner++)
		for (unsigned state = 0; state < STATES; state++)
			ckt_metric_put(to,
				(const char *const[]){"owner", ckt_metrics_owner_name(owner),
					"state", states[state], NULL},
				sums->sessions[place_of(owner)][state]);
	ckt_metric_begin(to, CKT_METRIC_SESSION_EVENTS);
	for (unsigned event = 0; event < CKT_COUNTED_EVENTS; event++)
		ckt_metric_put(to,
			(const char *const[]){
				"event", ckt_daemon_event_text((enum ckt_event_name)event), NULL},
			(double)ckt_counters.events[event]);
}

/* One value for each GPU. */
static void put_gpus(struct ckt_metric_writer *to, enum ckt_metric metric, unsigned count,
	uint64_t (*value)(struct ckt_server *server, unsigned gpu), struct ckt_server *server)
{
	char number[16];
	ckt_metric_begin(to, metric);
	for (unsigned gpu = 0; gpu < count; gpu++) {
		snprintf(number, sizeof number, "%u", gpu);
		ckt_metric_put(
			to, (const char *const[]){"gpu", number, NULL}, (double)value(server, gpu));
	}
}

static uint64_t total_of(struct ckt_server *server, unsigned gpu)
{
	return server->driver.gpus[gpu].memory_bytes;
}

static uint64_t allowed_of(struct ckt_server *server, unsigned gpu)
{
	uint64_t budget = server->ledger.budgets[gpu];
	return budget ? budget : total_of(server, gpu);
}

static uint64_t leased_of(struct ckt_server *server, unsigned gpu)
{
	return ckt_ledger_budget_used(&server->ledger, gpu);
}

static uint64_t swapped_of(struct ckt_server *server, unsigned gpu)
{
	return ckt_quantum_swapped_bytes(server, gpu);
}

static void put_memory(
	struct ckt_server *server, struct ckt_metric_writer *to, const struct sums *sums)
{
	unsigned count = server->driver.gpu_count;
	char number[16];
	if (count > CKT_DEVICES_MAX)
		count = CKT_DEVICES_MAX;
	put_gpus(to, CKT_METRIC_GPU_MEMORY, count, total_of, server);
	put_gpus(to, CKT_METRIC_GPU_ALLOWED, count, allowed_of, server);
	put_gpus(to, CKT_METRIC_GPU_LEASED, count, leased_of, server);
	put_gpus(to, CKT_METRIC_GPU_SWAPPED, count, swapped_of, server);
	ckt_metric_begin(to, CKT_METRIC_GPU_HELD);
	for (unsigned gpu = 0; gpu < count; gpu++) {
		snprintf(number, sizeof number, "%u", gpu);
		for (unsigned owner = 0; owner < ckt_metrics_owner_count(); owner++)
			ckt_metric_put(to,
				(const char *const[]){"gpu", number, "owner",
					ckt_metrics_owner_name(owner), NULL},
				(double)sums->held[place_of(owner)][gpu]);
	}
	uint64_t held[CKT_DEVICES_MAX] = {0};
	for (unsigned owner = 0; owner < OWNERS; owner++)
		for (unsigned gpu = 0; gpu < count; gpu++)
			held[gpu] += sums->held[owner][gpu];
	ckt_metrics_put_gpus(server, to, held);
}

/* Counts of each owner, by one more label. */
static void put_owners(struct ckt_metric_writer *to, enum ckt_metric metric, const char *label,
	const char *const *names, unsigned count, size_t offset)
{
	ckt_metric_begin(to, metric);
	for (unsigned owner = 0; owner < ckt_metrics_owner_count(); owner++) {
		const uint64_t *counts =
			(const uint64_t *)((const char *)ckt_metrics_owner_at(owner) + offset);
		for (unsigned i = 0; i < count; i++)
			ckt_metric_put(to,
				(const char *const[]){"owner", ckt_metrics_owner_name(owner), label,
					names[i], NULL},
				(double)counts[i]);
	}
}

static void put_calls(struct ckt_metric_writer *to, const struct sums *sums)
{
	double bounds[CKT_LATENCY_BUCKETS];
	put_owners(to, CKT_METRIC_CALLS, "class", classes, CKT_CALL_CLASSES,
		offsetof(struct ckt_session_metrics, calls));
	put_owners(to, CKT_METRIC_WAITS, "class", classes, CKT_CALL_CLASSES,
		offsetof(struct ckt_session_metrics, waited));
	put_owners(to, CKT_METRIC_RECEIVED, "class", classes, CKT_CALL_CLASSES,
		offsetof(struct ckt_session_metrics, bytes_in));
	put_owners(to, CKT_METRIC_SENT, "class", classes, CKT_CALL_CLASSES,
		offsetof(struct ckt_session_metrics, bytes_out));
	put_owners(to, CKT_METRIC_FAILURES, "kind", failures, CKT_CALL_FAILURES,
		offsetof(struct ckt_session_metrics, failures));
	for (unsigned i = 0; i < CKT_LATENCY_BUCKETS; i++)
		bounds[i] = CKT_LATENCY_FIRST_NS * 1e-9 * (double)(UINT64_C(1) << 2 * i);
	ckt_metric_begin(to, CKT_METRIC_LATENCY);
	for (unsigned c = 0; c < CKT_CALL_CLASSES; c++)
		ckt_metric_put_histogram(to, (const char *const[]){"class", classes[c], NULL},
			sums->latency[c], bounds, CKT_LATENCY_BUCKETS,
			(double)sums->latency_ns[c] * 1e-9);
}

static void put_turns(struct ckt_server *server, struct ckt_metric_writer *to)
{
	char number[16];
	unsigned count = server->driver.gpu_count;
	ckt_metric_begin(to, CKT_METRIC_TURNS);
	for (unsigned gpu = 0; gpu < count && gpu < CKT_DEVICES_MAX; gpu++)
		for (unsigned what = 0; what < CKT_COUNTED_TURNS; what++) {
			snprintf(number, sizeof number, "%u", gpu);
			ckt_metric_put(to,
				(const char *const[]){"gpu", number, "step",
					ckt_counted_turn_name((enum ckt_counted_turn)what), NULL},
				(double)ckt_counters.turns[gpu][what]);
		}
	ckt_metric_begin(to, CKT_METRIC_TURN_SECONDS);
	for (unsigned gpu = 0; gpu < count && gpu < CKT_DEVICES_MAX; gpu++)
		for (unsigned owner = 0; owner < ckt_metrics_owner_count(); owner++) {
			snprintf(number, sizeof number, "%u", gpu);
			ckt_metric_put(to,
				(const char *const[]){"gpu", number, "owner",
					ckt_metrics_owner_name(owner), NULL},
				(double)ckt_metrics_owner_turns(owner)[gpu] * 1e-9);
		}
}

static void put_events(struct ckt_server *server, struct ckt_metric_writer *to)
{
	const struct ckt_counters *counters = &ckt_counters;
	double bounds[CKT_STOP_BUCKETS];
	ckt_metric_begin(to, CKT_METRIC_CHECKPOINTS);
	ckt_metric_put(to, (const char *const[]){"result", "written", NULL},
		(double)counters->checkpoints);
	ckt_metric_put(to, (const char *const[]){"result", "failed", NULL},
		(double)counters->checkpoint_failures);
	ckt_metric_begin(to, CKT_METRIC_CHECKPOINT_BYTES);
	ckt_metric_put(to, NULL, (double)counters->checkpoint_bytes);
	for (unsigned i = 0; i < CKT_STOP_BUCKETS; i++)
		bounds[i] = CKT_STOP_FIRST_US * 1e-6 * (double)(UINT64_C(1) << 2 * i);
	ckt_metric_begin(to, CKT_METRIC_STOPS);
	ckt_metric_put_histogram(to, NULL, counters->stops, bounds, CKT_STOP_BUCKETS,
		(double)counters->stop_us * 1e-6);
	ckt_metrics_put_automatic(server, to);
	ckt_metric_begin(to, CKT_METRIC_MIGRATIONS);
	ckt_metric_put(to, NULL, (double)counters->events[CKT_EVENT_MOVED]);
	ckt_metric_begin(to, CKT_METRIC_DECISIONS);
	for (unsigned question = 0; question < CKT_COUNTED_QUESTIONS; question++)
		for (unsigned answer = 0; answer < CKT_COUNTED_ANSWERS; answer++)
			ckt_metric_put(to,
				(const char *const[]){"question",
					ckt_counted_question_name(
						(enum ckt_counted_question)question),
					"answer",
					ckt_counted_answer_name((enum ckt_policy_answer)answer),
					NULL},
				(double)counters->decisions[question][answer]);
	put_turns(server, to);
	ckt_metric_begin(to, CKT_METRIC_STRANGERS);
	for (unsigned kind = 0; kind < CKT_LIMITS; kind++)
		ckt_metric_put(to, (const char *const[]){"kind", strangers[kind], NULL},
			(double)counters->strangers[kind]);
}

static void put_certificates(struct ckt_server *server, struct ckt_metric_writer *to)
{
	time_t end;
	ckt_metric_begin(to, CKT_METRIC_CERTIFICATES);
	for (int which = 0; which < CKT_EXPIRINGS; which++)
		if (ckt_certificate_expiry_of(server, (enum ckt_expiring)which, &end))
			ckt_metric_put(to,
				(const char *const[]){"certificate",
					ckt_expiring_name((enum ckt_expiring)which), NULL},
				(double)end);
}

/* ---- The process */

static unsigned open_descriptors(void)
{
	unsigned count = 0;
	DIR *list = opendir("/proc/self/fd");
	while (list && readdir(list))
		count++;
	if (list)
		closedir(list);
	/* Neither the two names of directories nor the list itself. */
	return count > 3 ? count - 3 : 0;
}

static void put_single(struct ckt_metric_writer *to, enum ckt_metric metric, double value)
{
	ckt_metric_begin(to, metric);
	ckt_metric_put(to, NULL, value);
}

static void put_process(struct ckt_server *server, struct ckt_metric_writer *to)
{
	struct rusage usage = {0};
	unsigned long size = 0, resident = 0;
	double page = (double)sysconf(_SC_PAGESIZE);
	FILE *file = fopen("/proc/self/statm", "re");
	if (file && fscanf(file, "%lu %lu", &size, &resident) != 2)
		size = resident = 0;
	if (file)
		fclose(file);
	getrusage(RUSAGE_SELF, &usage);
	put_single(to, CKT_METRIC_CPU,
		(double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6);
	put_single(to, CKT_METRIC_RESIDENT, (double)resident * page);
	put_single(to, CKT_METRIC_VIRTUAL, (double)size * page);
	put_single(to, CKT_METRIC_OPEN_FDS, open_descriptors());
	put_single(to, CKT_METRIC_MAX_FDS, server->descriptor_count);
	put_single(to, CKT_METRIC_START, (double)server->started);
}

char *ckt_metrics_collect(struct ckt_server *server, bool openmetrics, size_t *ret_size)
{
	static struct sums sums;
	char *text = NULL;
	int64_t begun = ckt_now_ns();
	struct ckt_metric_writer to = {
		.to = open_memstream(&text, ret_size), .openmetrics = openmetrics};
	if (!to.to)
		return NULL;
	scrapes++;
	add_up(server, &sums);
	put_server(server, &to);
	put_sessions(&to, &sums);
	put_memory(server, &to, &sums);
	put_calls(&to, &sums);
	put_events(server, &to);
	put_certificates(server, &to);
	put_process(server, &to);
	put_single(&to, CKT_METRIC_SCRAPES, (double)scrapes);
	scrape_ns += (uint64_t)(ckt_now_ns() - begun);
	put_single(&to, CKT_METRIC_SCRAPE_SECONDS, (double)scrape_ns * 1e-9);
	ckt_metric_end(&to);
	bool bad = ferror(to.to);
	if (fclose(to.to) || bad) {
		free(text);
		return NULL;
	}
	return text;
}

bool ckt_metrics_ready(const struct ckt_server *server, const char **ret_reason)
{
	*ret_reason = server->stopping      ? "the server ends"
		: server->drain.on          ? "the server drains: it takes no new sessions"
		: !server->driver.gpu_count ? "the driver has no GPU"
		: server->options.max_sessions &&
			server->session_count >= server->options.max_sessions
		? "all sessions of --max-sessions are taken"
		: NULL;
	return !*ret_reason;
}
