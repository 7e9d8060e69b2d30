/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that wait for a session; see warm_workers.h. */
#include "server/daemon/session/warm_workers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/group.h"
#include "rpc/net.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/server.h"
#include "server/daemon/session/group_domain.h"
#include "server/daemon/session/kernel_cache.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/uid_group.h"

enum {
	/* A session that starts should have the processors and the driver to itself. */
	REFILL_MS = 100,
	/* An owner's programs that run one after the other are that close. */
	LINGER_MS = 10000,
	/* After one that died by itself; doubled each time, until one is taken. */
	RETRY_MS = 1000,
	RETRY_MAX_MS = 300000,
	/* After memory was short, unless a session ends. */
	SHORT_MS = 60000,
	ASKERS_MAX = 64,
};

/* What the workers of a GPU are like. */
struct like {
	unsigned gpus[CKT_DEVICES_MAX], count; /* it first */
	struct ckt_identity owner;             /* CKT_IDENTITY_NEXT: nobody yet */
	struct ckt_mps_kind kind;              /* as the last session's */
	int64_t short_until_ms;                /* none are made before */
};

/* Who waits for the memory of a GPU. */
struct asker {
	unsigned gpu;
	int socket;
};

struct ckt_warm_workers {
	struct ckt_server *server;
	struct ckt_session *list;
	unsigned wanted; /* of each GPU */
	unsigned gpu_count;
	struct like likes[CKT_DEVICES_MAX];
	struct ckt_timer fill_timer, linger_timer;
	unsigned retry_ms;
	struct asker askers[ASKERS_MAX];
	unsigned asker_count;
	bool told; /* why none can be made */
	/* Owners' workers share something, and their own caches of compiled kernels. */
	bool owners_differ, owners_cache;
};

static const struct ckt_identity nobody = {.kind = CKT_IDENTITY_NEXT};

static void fill(struct ckt_warm_workers *warm);

static unsigned count_wanted(const struct ckt_server *server)
{
	if (server->options.warm)
		return (unsigned)strtoul(server->options.warm, NULL, 10);
	/* On the soft GPU a fresh worker is soon ready. */
	return server->driver.soft ? 0 : 1;
}

static bool is_nobodys(const struct ckt_identity *owner)
{
	return owner->kind == CKT_IDENTITY_NEXT;
}

/* As groups and caches tell owners apart. */
static bool same_owner(const struct ckt_identity *a, const struct ckt_identity *b)
{
	char one[CKT_IDENTITY_FILE_NAME], other[CKT_IDENTITY_FILE_NAME];
	ckt_identity_file_name(a, one);
	ckt_identity_file_name(b, other);
	return strcmp(one, other) == 0;
}

/* Whether a worker of one owner can serve another. */
static bool do_owners_differ(const struct ckt_server *server)
{
	return (server->options.uid_range && server->user.change) || server->own_network ||
		server->own_sockets || server->mounts || ckt_kernel_cache_is_owners(server);
}

static struct like *like_of(struct ckt_warm_workers *warm, unsigned gpu)
{
	for (unsigned i = 0; i < warm->gpu_count; i++)
		if (warm->likes[i].gpus[0] == gpu)
			return &warm->likes[i];
	return NULL;
}

static bool is_like(const struct ckt_session *worker, const struct like *like)
{
	unsigned gpus[CKT_DEVICES_MAX];
	return ckt_session_gpus(worker, gpus) == like->count &&
		memcmp(gpus, like->gpus, like->count * sizeof *gpus) == 0 &&
		same_owner(&worker->identity, &like->owner) &&
		ckt_mps_same_kind(&worker->mps.asked, &like->kind);
}

static void take_out(struct ckt_warm_workers *warm, const struct ckt_session *worker)
{
	struct ckt_session **place = &warm->list;
	while (*place && *place != worker)
		place = &(*place)->next;
	if (*place)
		*place = worker->next;
}

/* ---- Making them */

static void fill_soon(struct ckt_warm_workers *warm, int64_t delay_ms)
{
	if (!warm->fill_timer.link || warm->fill_timer.due_ms > ckt_net_now_ms() + delay_ms)
		ckt_timer_set(&warm->server->loop, &warm->fill_timer, delay_ms);
}

static void fill_now(struct ckt_timer *timer)
{
	fill(CKT_CONTAINER(timer, struct ckt_warm_workers, fill_timer));
}

static void later_again(struct ckt_warm_workers *warm)
{
	ckt_timer_clear(&warm->fill_timer);
	fill_soon(warm, warm->retry_ms);
	warm->retry_ms = warm->retry_ms < RETRY_MAX_MS / 2 ? 2 * warm->retry_ms : RETRY_MAX_MS;
}

static void make(struct ckt_warm_workers *warm, const struct like *like)
{
	const struct ckt_warm_spec spec = {.owner = like->owner,
		.gpus = like->gpus,
		.gpu_count = like->count,
		.kind = like->kind};
	char message[CKT_MESSAGE_MAX] = "";
	struct ckt_session *worker;
	if (ckt_session_create_warm(warm->server, &spec, &worker, message, sizeof message)) {
		ckt_log(warm->told ? CKT_LOG_DEBUG : CKT_LOG_WARNING,
			"no warm worker: %s; trying again later", message);
		warm->told = true;
		later_again(warm);
		return;
	}
	worker->next = warm->list;
	warm->list = worker;
}

/* Nobody's worker would have no cache of compiled kernels: the first owner's session brings the first. */
static unsigned wanted_of(const struct ckt_warm_workers *warm, const struct like *like)
{
	return (is_nobodys(&like->owner) && warm->owners_cache) ||
			ckt_net_now_ms() < like->short_until_ms
		? 0
		: warm->wanted;
}

/* Those of this GPU that are right; others are ended. */
static unsigned count_right(
	struct ckt_warm_workers *warm, const struct like *like, bool *ret_making)
{
	unsigned count = 0;
	for (struct ckt_session *worker = warm->list; worker; worker = worker->next) {
		unsigned gpus[CKT_DEVICES_MAX];
		*ret_making |= worker->phase == CKT_SESSION_WARMING;
		if (!ckt_session_gpus(worker, gpus) || gpus[0] != like->gpus[0])
			continue;
		if (is_like(worker, like) && count < wanted_of(warm, like) &&
			worker->phase != CKT_SESSION_ENDING)
			count++;
		else
			ckt_session_end_warm(worker, "others are wanted");
	}
	return count;
}

/* One is made at a time. */
static void fill(struct ckt_warm_workers *warm)
{
	const struct like *first = NULL;
	int64_t now = ckt_net_now_ms(), next = INT64_MAX;
	bool making = false;
	for (unsigned i = 0; i < warm->gpu_count; i++) {
		int64_t until = warm->likes[i].short_until_ms;
		if (until > now && until < next)
			next = until;
		if (count_right(warm, &warm->likes[i], &making) <
				wanted_of(warm, &warm->likes[i]) &&
			!first)
			first = &warm->likes[i];
	}
	if (next < INT64_MAX)
		fill_soon(warm, next - now + 1);
	if (first && !making && !warm->server->stopping)
		make(warm, first);
}

/* ---- Sharing in space */

void ckt_warm_end_of(struct ckt_server *server, const struct ckt_mps_daemon *daemon)
{
	for (struct ckt_session *worker = server->warm ? server->warm->list : NULL; worker;
		worker = worker->next)
		if (worker->mps.daemon == daemon)
			ckt_session_end_warm(
				worker, "a kernel failed that shares its GPU in space");
}

/* ---- Short memory */

static bool has_memory_of(const struct ckt_session *worker, unsigned gpu)
{
	unsigned gpus[CKT_DEVICES_MAX];
	return ckt_session_gpus(worker, gpus) && gpus[0] == gpu;
}

static unsigned end_of_gpu(struct ckt_warm_workers *warm, unsigned gpu)
{
	unsigned count = 0;
	for (struct ckt_session *worker = warm->list; worker; worker = worker->next)
		if (has_memory_of(worker, gpu)) {
			ckt_session_end_warm(worker, "its GPU is short of memory");
			count++;
		}
	return count;
}

static void answer(int asker, char byte)
{
	send(asker, &byte, sizeof byte, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool sees(const struct ckt_session *session, unsigned gpu)
{
	unsigned gpus[CKT_DEVICES_MAX];
	unsigned count = ckt_session_gpus(session, gpus);
	for (unsigned i = 0; i < count; i++)
		if (gpus[i] == gpu)
			return true;
	return false;
}

void ckt_warm_give_up(const struct ckt_session *session, unsigned gpu, int asker)
{
	struct ckt_warm_workers *warm = session->server->warm;
	struct like *like = warm && sees(session, gpu) ? like_of(warm, gpu) : NULL;
	unsigned count = like ? end_of_gpu(warm, gpu) : 0;
	int socket =
		count && warm->asker_count < ASKERS_MAX ? fcntl(asker, F_DUPFD_CLOEXEC, 3) : -1;
	if (like)
		like->short_until_ms = ckt_net_now_ms() + SHORT_MS;
	if (socket >= 0)
		warm->askers[warm->asker_count++] = (struct asker){.gpu = gpu, .socket = socket};
	else
		answer(asker, CKT_GROUP_NOBODY);
	if (count)
		ckt_info("session %s: GPU %u is short of memory: ending its %u warm worker%s",
			session->id, gpu, count, count == 1 ? "" : "s");
}

/* Once the last of a GPU is dead. */
static void answer_askers(struct ckt_warm_workers *warm)
{
	for (unsigned i = warm->asker_count; i-- > 0;) {
		const struct asker asker = warm->askers[i];
		bool left = false;
		for (struct ckt_session *worker = warm->list; worker; worker = worker->next)
			left |= has_memory_of(worker, asker.gpu);
		if (left)
			continue;
		warm->askers[i] = warm->askers[--warm->asker_count];
		answer(asker.socket, CKT_GROUP_FREED);
		close(asker.socket);
	}
}

void ckt_warm_ready(struct ckt_session *session, int error, const char *message)
{
	struct ckt_warm_workers *warm = session->server->warm;
	if (error) {
		ckt_log(warm->told ? CKT_LOG_DEBUG : CKT_LOG_WARNING,
			"warm worker %d: not started: %s", (int)session->pid, message);
		warm->told = true;
		return;
	}
	ckt_debug("warm worker %d: ready", (int)session->pid);
	fill(warm);
}

void ckt_warm_gone(struct ckt_session *session, const char *how)
{
	struct ckt_warm_workers *warm = session->server->warm;
	bool asked = session->phase == CKT_SESSION_ENDING;
	ckt_log(asked || warm->told ? CKT_LOG_DEBUG : CKT_LOG_WARNING, "warm worker %d ended (%s)",
		(int)session->pid, how);
	take_out(warm, session);
	answer_askers(warm);
	if (asked)
		fill_soon(warm, 0);
	else
		later_again(warm);
}

/* ---- Who takes them */

static bool fits(const struct ckt_session *worker, const struct ckt_session *wanted)
{
	unsigned has[CKT_DEVICES_MAX], wants[CKT_DEVICES_MAX];
	unsigned count = ckt_session_gpus(wanted, wants);
	const struct ckt_server *server = worker->server;
	if (worker->phase == CKT_SESSION_ENDING || ckt_session_gpus(worker, has) != count ||
		memcmp(has, wants, count * sizeof *has) != 0)
		return false;
	const struct ckt_mps_kind kind = ckt_mps_kind_of(wanted);
	if (!ckt_mps_same_kind(&worker->mps.asked, &kind))
		return false;
	if (!is_nobodys(&worker->identity))
		return same_owner(&worker->identity, &wanted->identity);
	return !server->warm->owners_differ ||
		!(server->warm->owners_cache || ckt_uid_group_exists(server, &wanted->identity) ||
			ckt_group_domain_exists(server, &wanted->identity));
}

/* The group "next" becomes this owner's, with all workers in it.  0 or -errno. */
static int give_group(struct ckt_warm_workers *warm, const struct ckt_session *worker,
	const struct ckt_identity *owner)
{
	struct ckt_group_domain *domain = worker->domain;
	const struct ckt_uid_group *uid_group = worker->uid_group;
	int result = ckt_uid_group_give(worker->uid_group, owner);
	if (result || (!domain && !uid_group))
		return result;
	ckt_group_domain_give(domain, owner);
	ckt_mps_give(warm->server, domain, owner);
	for (struct ckt_session *other = warm->list; other; other = other->next)
		if (is_nobodys(&other->identity) && other->domain == domain &&
			other->uid_group == uid_group)
			other->identity = *owner;
	for (unsigned i = 0; i < warm->gpu_count; i++)
		if (is_nobodys(&warm->likes[i].owner))
			warm->likes[i].owner = *owner;
	return 0;
}

struct ckt_session *ckt_warm_take(struct ckt_server *server, const struct ckt_session *wanted)
{
	struct ckt_warm_workers *warm = server->warm;
	struct ckt_session *found = NULL;
	for (struct ckt_session *worker = warm ? warm->list : NULL; worker; worker = worker->next)
		if (fits(worker, wanted) && (!found || worker->phase == CKT_SESSION_WARM))
			found = worker;
	if (!found || (is_nobodys(&found->identity) && give_group(warm, found, &wanted->identity)))
		return NULL;
	take_out(warm, found);
	warm->retry_ms = RETRY_MS;
	warm->told = false;
	return found;
}

void ckt_warm_follow(struct ckt_server *server, const struct ckt_session *session)
{
	struct ckt_warm_workers *warm = server->warm;
	unsigned gpus[CKT_DEVICES_MAX];
	if (!warm)
		return;
	unsigned count = ckt_session_gpus(session, gpus);
	struct like *like = count ? like_of(warm, gpus[0]) : NULL;
	if (!like)
		return;
	memcpy(like->gpus, gpus, count * sizeof *gpus);
	like->count = count;
	like->kind = session->mps.asked;
	if (warm->owners_differ)
		like->owner = session->identity;
	fill_soon(warm, REFILL_MS);
}

/* ---- Owners that go */

static bool has_session(const struct ckt_server *server, const struct ckt_identity *owner)
{
	for (const struct ckt_session *session = server->sessions; session; session = session->next)
		if (same_owner(&session->identity, owner))
			return true;
	return false;
}

void ckt_warm_visit(
	const struct ckt_server *server, void (*visit)(pid_t pid, void *opaque), void *opaque)
{
	for (const struct ckt_session *worker = server->warm ? server->warm->list : NULL; worker;
		worker = worker->next)
		if (worker->pid > 0)
			visit(worker->pid, opaque);
}

bool ckt_warm_free_ids(struct ckt_server *server)
{
	bool any = false;
	for (struct ckt_session *worker = server->warm ? server->warm->list : NULL, *next; worker;
		worker = next) {
		next = worker->next;
		if (has_session(server, &worker->identity))
			continue;
		any = true;
		ckt_session_await_warm_end(worker);
	}
	return any;
}

static void forget_owners(struct ckt_timer *timer)
{
	struct ckt_warm_workers *warm = CKT_CONTAINER(timer, struct ckt_warm_workers, linger_timer);
	for (unsigned i = 0; i < warm->gpu_count; i++)
		if (!has_session(warm->server, &warm->likes[i].owner)) {
			warm->likes[i].owner = nobody;
			warm->likes[i].kind = ckt_mps_kind_default(warm->server);
		}
	fill(warm);
}

void ckt_warm_session_gone(struct ckt_server *server)
{
	struct ckt_warm_workers *warm = server->warm;
	if (!warm || server->stopping)
		return;
	for (unsigned i = 0; i < warm->gpu_count; i++)
		warm->likes[i].short_until_ms = 0;
	fill_soon(warm, REFILL_MS);
	if (warm->owners_differ)
		ckt_timer_set(&server->loop, &warm->linger_timer, LINGER_MS);
}

/* ---- All of them */

void ckt_warm_count(const struct ckt_server *server, unsigned *ret_wanted, unsigned *ret_making,
	unsigned *ret_ready)
{
	const struct ckt_warm_workers *warm = server->warm;
	*ret_wanted = warm ? warm->wanted : 0;
	*ret_making = *ret_ready = 0;
	for (const struct ckt_session *worker = warm ? warm->list : NULL; worker;
		worker = worker->next) {
		*ret_making += worker->phase == CKT_SESSION_WARMING;
		*ret_ready += worker->phase == CKT_SESSION_WARM;
	}
}

void ckt_warm_init(struct ckt_server *server)
{
	unsigned wanted = count_wanted(server);
	struct ckt_warm_workers *warm = wanted ? calloc(1, sizeof *warm) : NULL;
	struct ckt_share share;
	if (!warm)
		return;
	ckt_ask_share(server, &nobody, NULL, &share);
	warm->server = server;
	warm->wanted = wanted;
	warm->owners_differ = do_owners_differ(server);
	warm->owners_cache = ckt_kernel_cache_is_owners(server);
	warm->retry_ms = RETRY_MS;
	warm->fill_timer.fire = fill_now;
	warm->linger_timer.fire = forget_owners;
	for (unsigned i = 0; i < share.gpu_count; i++) {
		/* What most programs ask for, and on other GPUs those with CUDA_VISIBLE_DEVICES. */
		struct like *like = &warm->likes[warm->gpu_count++];
		like->count = i ? 1 : share.gpu_count;
		memcpy(like->gpus, share.gpus + i, like->count * sizeof *like->gpus);
		like->owner = nobody;
		like->kind = ckt_mps_kind_default(server);
	}
	server->warm = warm;
	fill_soon(warm, 0);
}

void ckt_warm_fini(struct ckt_server *server)
{
	struct ckt_warm_workers *warm = server->warm;
	if (!warm)
		return;
	warm->wanted = 0;
	for (struct ckt_session *worker = warm->list; worker; worker = worker->next)
		ckt_session_end_warm(worker, "the server ends");
	while (warm->list)
		ckt_session_await_warm_end(warm->list);
	for (unsigned i = 0; i < warm->asker_count; i++)
		close(warm->askers[i].socket);
	ckt_timer_clear(&warm->fill_timer);
	ckt_timer_clear(&warm->linger_timer);
	server->warm = NULL;
	free(warm);
}
