/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker may take of its host; see worker_bounds.h. */
#include "server/daemon/session/worker_bounds.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "server/daemon/policy/identity.h"
#include "server/daemon/server.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/spawn_cage.h"
#include "server/daemon/session/warm_workers.h"

enum {
	LOOK_MS = 500,
	GONE_MS = 1000,
	/* As the cgroup of a worker has (worker_cgroup.c). */
	THREADS_MAX = 4096,
};

/* A host with less is about to end processes by itself, and not always the right ones. */
#define RESERVE_MAX (UINT64_C(1) << 30)

/* ---- What they have */

int ckt_worker_use_read(const char *path, struct ckt_worker_use *ret_use)
{
	struct ckt_worker_use use = {0};
	char line[256];
	uint64_t kib;
	FILE *file = fopen(path, "re");
	if (!file)
		return -errno;
	while (fgets(line, sizeof line, file)) {
		if (sscanf(line, "RssAnon: %" SCNu64, &kib) == 1 ||
			sscanf(line, "RssShmem: %" SCNu64, &kib) == 1 ||
			sscanf(line, "VmSwap: %" SCNu64, &kib) == 1)
			use.memory_bytes += kib << 10;
		sscanf(line, "Uid: %u", &use.uid);
		sscanf(line, "Threads: %" SCNu64, &use.threads);
	}
	fclose(file);
	if (!use.threads)
		return -EBADMSG;
	*ret_use = use;
	return 0;
}

static void read_host(const struct ckt_server *server, struct ckt_worker_host *ret_host)
{
	char line[256];
	uint64_t kib;
	*ret_host = (struct ckt_worker_host){
		.threads = ckt_spawn_cage_processes(server->user.user_namespace)};
	FILE *file = fopen("/proc/meminfo", "re");
	while (file && fgets(line, sizeof line, file)) {
		if (sscanf(line, "MemTotal: %" SCNu64, &kib) == 1)
			ret_host->memory_bytes = kib << 10;
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
			ret_host->available_bytes = kib << 10;
	}
	if (file)
		fclose(file);
}

/* ---- Who is to end */

/* With `uid', of that user's alone. */
static uint64_t sum_of(const struct ckt_worker_use *uses, unsigned count, const unsigned *uid,
	const unsigned *owner, bool memory)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < count; i++)
		if ((!uid || uses[i].uid == *uid) && (!owner || uses[i].owner == *owner))
			sum += memory ? uses[i].memory_bytes : uses[i].threads;
	return sum;
}

/*
 * The largest worker of the owner who has most, so that nobody can have another owner's worker ended by
 * starting many small ones.  -1: there is none.
 */
static int largest(
	const struct ckt_worker_use *uses, unsigned count, const unsigned *uid, bool memory)
{
	int most = -1;
	uint64_t most_sum = 0, most_own = 0;
	for (unsigned i = 0; i < count; i++) {
		if (uses[i].spare || (uid && uses[i].uid != *uid))
			continue;
		uint64_t sum = sum_of(uses, count, uid, &uses[i].owner, memory),
			 own = memory ? uses[i].memory_bytes : uses[i].threads;
		if (most >= 0 && (sum < most_sum || (sum == most_sum && own <= most_own)))
			continue;
		most = (int)i;
		most_sum = sum;
		most_own = own;
	}
	return most;
}

static int choose_by_threads(const struct ckt_worker_use *uses, unsigned count,
	const struct ckt_worker_host *host, char ret_why[CKT_BOUNDS_WHY])
{
	for (unsigned i = 0; i < count; i++)
		if (uses[i].threads > THREADS_MAX && !uses[i].spare) {
			snprintf(ret_why, CKT_BOUNDS_WHY,
				"its worker has %" PRIu64 " threads, and may have %d",
				uses[i].threads, THREADS_MAX);
			return (int)i;
		}
	for (unsigned i = 0; i < count && host->threads; i++) {
		uint64_t sum = sum_of(uses, count, &uses[i].uid, NULL, false);
		if (sum < host->threads - host->threads / 8)
			continue;
		int most = largest(uses, count, &uses[i].uid, false);
		if (most < 0)
			continue;
		snprintf(ret_why, CKT_BOUNDS_WHY,
			"its worker has %" PRIu64 " threads, and the workers of its user %" PRIu64
			" of %" PRIu64 " (RLIMIT_NPROC)",
			uses[most].threads, sum, host->threads);
		return most;
	}
	return -1;
}

static int choose_by_memory(const struct ckt_worker_use *uses, unsigned count,
	const struct ckt_worker_host *host, char ret_why[CKT_BOUNDS_WHY])
{
	uint64_t reserve = host->memory_bytes / 64;
	int most = largest(uses, count, NULL, true);
	if (host->available_bytes >= (reserve < RESERVE_MAX ? reserve : RESERVE_MAX) || most < 0 ||
		sum_of(uses, count, NULL, &uses[most].owner, true) < host->memory_bytes / 4)
		return -1;
	snprintf(ret_why, CKT_BOUNDS_WHY,
		"its worker has %" PRIu64 " MiB of memory, and the host %" PRIu64
		" MiB left of %" PRIu64,
		uses[most].memory_bytes >> 20, host->available_bytes >> 20,
		host->memory_bytes >> 20);
	return most;
}

int ckt_worker_bounds_choose(const struct ckt_worker_use *uses, unsigned count,
	const struct ckt_worker_host *host, char ret_why[CKT_BOUNDS_WHY])
{
	int chosen = choose_by_threads(uses, count, host, ret_why);
	return chosen >= 0 || !host->memory_bytes ? chosen
						  : choose_by_memory(uses, count, host, ret_why);
}

/* ---- Looking */

struct uses {
	struct ckt_worker_use *list;
	unsigned count, room;
};

void ckt_worker_bounds_tell(const struct ckt_session *session, const char *why)
{
	struct ckt_worker_bounds *bounds = &session->server->bounds;
	struct ckt_bounds_told *told = &bounds->told[bounds->next++ % CKT_BOUNDS_TOLD];
	snprintf(told->session, sizeof told->session, "%s", session->id);
	snprintf(told->why, sizeof told->why, "%s", why);
}

static void end(struct ckt_session *session, const char *why)
{
	ckt_worker_bounds_tell(session, why);
	snprintf(session->end_reason, sizeof session->end_reason, "%s", why);
	ckt_warning("session %s: its worker takes too much of the host: %s", session->id, why);
	ckt_session_kill(session, why);
	/* It does not get the time to answer. */
	ckt_session_kill_worker(session);
}

/* The index of the first one of the same owner. */
static unsigned owner_of(
	struct ckt_session *const *sessions, unsigned count, const struct ckt_session *session)
{
	unsigned i = 0;
	while (i < count && !ckt_identity_same(&sessions[i]->identity, &session->identity))
		i++;
	return i;
}

/* Their threads are the user's, too; behind those of sessions. */
static void add_warm(pid_t pid, void *opaque)
{
	struct uses *uses = opaque;
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	if (uses->count == uses->room || ckt_worker_use_read(path, &uses->list[uses->count]))
		return;
	uses->list[uses->count].owner = UINT_MAX;
	uses->list[uses->count++].spare = true;
}

/* The one that it ended; NULL: none. */
static struct ckt_session *look(struct ckt_server *server)
{
	unsigned count = 0;
	char path[64], why[CKT_BOUNDS_WHY];
	struct ckt_session *ended = NULL;
	if (!server->session_count)
		return NULL;
	unsigned room = server->session_count + CKT_WARM_MAX;
	struct ckt_worker_use *uses = calloc(room, sizeof *uses);
	struct ckt_session **sessions = calloc(server->session_count, sizeof *sessions);
	for (struct ckt_session *s = server->sessions;
		s && uses && sessions && count < server->session_count; s = s->next) {
		snprintf(path, sizeof path, "/proc/%d/status", (int)s->pid);
		if (s->phase == CKT_SESSION_ENDING || ckt_worker_use_read(path, &uses[count]))
			continue;
		uses[count].owner = owner_of(sessions, count, s);
		sessions[count++] = s;
	}
	struct ckt_worker_host host;
	read_host(server, &host);
	struct uses all = {.list = uses, .count = count, .room = uses ? room : count};
	ckt_warm_visit(server, add_warm, &all);
	int chosen = count ? ckt_worker_bounds_choose(uses, all.count, &host, why) : -1;
	if (chosen >= 0) {
		ended = sessions[chosen];
		end(ended, why);
	}
	free(uses);
	free(sessions);
	return ended;
}

static void look_again(struct ckt_timer *timer);

static void look_later(struct ckt_server *server)
{
	server->bounds.timer.fire = look_again;
	ckt_timer_set(&server->loop, &server->bounds.timer, LOOK_MS);
}

static void look_again(struct ckt_timer *timer)
{
	struct ckt_server *server = CKT_CONTAINER(timer, struct ckt_server, bounds.timer);
	/* Without workers nobody wakes the server. */
	if (!server->session_count)
		return;
	look(server);
	look_later(server);
}

void ckt_worker_bounds_init(struct ckt_server *server)
{
	if (!*server->cgroup_dir)
		look_later(server);
}

void ckt_worker_bounds_make_room(struct ckt_server *server)
{
	/* The kernel keeps those of a cgroup. */
	if (*server->cgroup_dir)
		return;
	if (!server->bounds.timer.link)
		look_later(server);
	struct ckt_session *ended = look(server);
	struct pollfd dead = {.fd = ended ? ended->pidfd.fd : -1, .events = POLLIN};
	if (ended)
		poll(&dead, 1, GONE_MS);
}

const char *ckt_worker_bounds_why(const struct ckt_server *server, const char *session)
{
	for (unsigned i = 0; i < CKT_BOUNDS_TOLD; i++)
		if (*session && strcmp(server->bounds.told[i].session, session) == 0)
			return server->bounds.told[i].why;
	return NULL;
}
