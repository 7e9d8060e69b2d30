/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that sleep; see sleep.h. */
#include "server/daemon/durable/sleep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "rpc/activity.h"
#include "rpc/net.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/events.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/policy/identity.h"
#include "server/daemon/session/quanta.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/worker_request.h"

#define NS_PER_S INT64_C(1000000000)

enum {
	LOOK_MS = 1000,
	LOOK_LEAST_MS = 100,
	CALL_TIMEOUT_MS = 10000,
	/* As long as a worker waits for its client. */
	RETURN_MS = 8000,
	SKIP_MS = 5000, /* after a failure; doubles up to */
	SKIP_MOST_MS = 300000,
	/* After a try to wake it that failed; doubles up to the second. */
	WAKE_MS = 100,
	WAKE_MOST_MS = 2000,
	/* Each has two descriptors and a directory. */
	SLEEPERS_MAX = 4096,
};

static struct {
	struct ckt_server *server;
	struct ckt_timer look;
	struct ckt_sleeper *first;
	unsigned count;
} sleepers;

/* ---- The list */

const struct ckt_sleeper *ckt_sleep_first(void)
{
	return sleepers.first;
}

struct ckt_sleeper *ckt_sleep_find(const char *session)
{
	struct ckt_sleeper *one = sleepers.first;
	while (one && strcmp(one->chain->id, session) != 0)
		one = one->next;
	return one;
}

bool ckt_sleep_must_wait(const char *session)
{
	const struct ckt_sleeper *sleeper = ckt_sleep_find(session);
	return sleeper && ckt_net_now_ms() < sleeper->not_before_ms;
}

unsigned ckt_sleep_count(const struct ckt_identity *identity)
{
	unsigned count = 0;
	for (const struct ckt_sleeper *one = sleepers.first; one; one = one->next) {
		const struct ckt_identity other = ckt_identity_of_owner(one->owner);
		count += ckt_identity_same(&other, identity);
	}
	return count;
}

static void list(struct ckt_sleeper *sleeper)
{
	struct ckt_sleeper **place = &sleepers.first;
	while (*place && strcmp((*place)->chain->id, sleeper->chain->id) < 0)
		place = &(*place)->next;
	sleeper->next = *place;
	*place = sleeper;
	sleeper->listed = true;
	sleepers.count++;
}

static void unlist(struct ckt_sleeper *sleeper)
{
	struct ckt_sleeper **place = &sleepers.first;
	if (!sleeper->listed)
		return;
	while (*place != sleeper)
		place = &(*place)->next;
	*place = sleeper->next;
	sleeper->listed = false;
	sleepers.count--;
}

static void drop_client(struct ckt_sleeper *sleeper)
{
	int fd = sleeper->client.fd;
	if (sleeper->client.events)
		fd = ckt_loop_remove(&sleepers.server->loop, &sleeper->client);
	if (fd >= 0)
		close(fd);
	sleeper->client = (struct ckt_source){.fd = -1};
}

void ckt_sleeper_free(struct ckt_sleeper *sleeper)
{
	if (!sleeper)
		return;
	unlist(sleeper);
	drop_client(sleeper);
	free(sleeper);
}

struct ckt_sleeper *ckt_sleep_take(const char *session)
{
	struct ckt_sleeper *sleeper = ckt_sleep_find(session);
	if (!sleeper)
		return NULL;
	unlist(sleeper);
	drop_client(sleeper);
	sleeper->chain->sleeper = NULL;
	sleeper->chain = NULL;
	sleeper->tries++;
	return sleeper;
}

void ckt_sleep_describe(const struct ckt_sleeper *sleeper, char *ret_text, size_t size)
{
	char since[32] = "?";
	struct tm tm;
	if (localtime_r(&sleeper->since, &tm))
		strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(ret_text, size, "asleep since %s, %llu KiB on this host", since,
		(unsigned long long)(sleeper->bytes + 1023) / 1024);
}

/* ---- Into sleep */

static void tell_awake(struct ckt_session *session, const char *why)
{
	struct ckt_daemon_sleep *sleep = &session->sleep;
	/* Each reason once. */
	if (strncmp(sleep->note, why, sizeof sleep->note - 1) == 0)
		return;
	snprintf(sleep->note, sizeof sleep->note, "%s", why);
	ckt_info("session %s stays awake: %s", session->id, why);
	ckt_daemon_event(session, CKT_EVENT_NOT_ASLEEP, "%s", why);
}

void ckt_sleep_failed(struct ckt_automatic_chain *chain, const char *why)
{
	struct ckt_session *session = chain->session;
	ckt_sleeper_free(chain->sleeper);
	chain->sleeper = NULL;
	if (!session)
		return;
	int64_t skip_ms = (int64_t)SKIP_MS
		<< (session->sleep.failures < 6 ? session->sleep.failures : 6);
	session->sleep.failures++;
	session->sleep.skip_until_ms =
		ckt_net_now_ms() + (skip_ms < SKIP_MOST_MS ? skip_ms : SKIP_MOST_MS);
	tell_awake(session, why);
}

static void slept(struct ckt_session *session, void *context, int error, void *answer)
{
	const struct ckt_worker_result *res = answer;
	struct ckt_automatic_chain *chain = session->chain;
	int fd = error ? -1 : ckt_daemon_request_take_fd();
	(void)context;
	if (!chain || !chain->sleeper) {
		if (fd >= 0)
			close(fd);
		return;
	}
	chain->busy = false;
	if (error || res->status) {
		if (fd >= 0)
			close(fd);
		chain->state.asleep = false;
		/* What does not answer may sleep all the same, and nobody would know. */
		if (error == -ETIMEDOUT && session->phase == CKT_SESSION_LIVE)
			ckt_session_give_up(session, "its worker does not say whether it sleeps");
		ckt_sleep_failed(chain, error ? ckt_daemon_request_problem(error) : res->message);
		ckt_automatic_wait(chain);
		return;
	}
	chain->sleeper->client.fd = fd;
	chain->sleeper->since = time(NULL);
	session->sleep.falls = true;
	ckt_session_expect_end(session);
}

void ckt_sleep_held(struct ckt_automatic_chain *chain)
{
	chain->busy = true;
	int result = ckt_session_call(chain->session, CKT_WORKER_SLEEP, NULL, NULL, -1,
		(xdrproc_t)xdr_ckt_worker_result, sizeof(struct ckt_worker_result), CALL_TIMEOUT_MS,
		slept, NULL);
	if (!result)
		return;
	chain->busy = false;
	/* With the connection that does not work its hold ends, too. */
	ckt_sleep_failed(chain, strerror(-result));
}

static bool is_free(const struct ckt_session *session)
{
	return session->phase == CKT_SESSION_LIVE && !session->swap.busy && !session->holder &&
		!session->job_hold && !session->preloader && !session->metrics.paused &&
		!session->warm && !(session->chain && session->chain->busy) &&
		(!session->quantum.is_member ||
			(!session->quantum.member.leaving && !session->quantum.member.coming &&
				!session->quantum.member.want_since_ns));
}

/* NULL: it can sleep. */
static const char *obstacle(const struct ckt_session *session)
{
	const struct ckt_activity *page = session->quantum.page;
	if (session->server->options.replicate)
		return "another server has a replica of it (--replicate)";
	switch (__atomic_load_n(&page->sleep, __ATOMIC_RELAXED)) {
	case CKT_ACTIVITY_SLEEP_MAY:
		return NULL;
	case CKT_ACTIVITY_SLEEP_OLD_CLIENT:
		return "its client is of an earlier version, which cannot sleep";
	case CKT_ACTIVITY_SLEEP_NO_CLIENT:
		return "it has no client";
	case CKT_ACTIVITY_SLEEP_TIED:
		return "it shares memory, events or communicators with other sessions";
	default:
		return "its worker does not tell whether it can sleep";
	}
}

void ckt_sleep_note(struct ckt_automatic_chain *chain, const struct ckt_worker_status_res *status)
{
	struct ckt_sleeper *sleeper = chain->sleeper;
	sleeper->client_pid = status->client_pid;
	sleeper->gpu = status->gpu;
	snprintf(sleeper->program, sizeof sleeper->program, "%s", status->program_name);
	snprintf(sleeper->host, sizeof sleeper->host, "%s", status->client);
}

static void begin(struct ckt_session *session)
{
	struct ckt_automatic_chain *chain = session->chain;
	struct ckt_sleeper *sleeper = calloc(1, sizeof *sleeper);
	if (sleeper && !chain)
		chain = ckt_automatic_chain_new(session->server, session->id);
	if (!sleeper || !chain) {
		free(sleeper);
		return;
	}
	session->chain = chain;
	chain->session = session;
	*sleeper = (struct ckt_sleeper){.chain = chain,
		.client.fd = -1,
		.started = session->started,
		.owner = session->uid,
		.gpu = session->status.gpu};
	chain->sleeper = sleeper;
	int result = ckt_automatic_take_held(chain);
	if (result)
		ckt_sleep_failed(chain, strerror(-result));
}

static void look(struct ckt_timer *timer)
{
	struct ckt_server *server = sleepers.server;
	int64_t after_ns = (int64_t)server->options.idle_context * NS_PER_S;
	int64_t now_ns = ckt_now_ns(), now_ms = ckt_net_now_ms();
	for (struct ckt_session *s = server->sessions; s && !server->stopping; s = s->next) {
		int64_t since = ckt_quantum_page_ns(s);
		if (since <= 0 || now_ns - since < after_ns || !is_free(s) ||
			now_ms < s->sleep.skip_until_ms)
			continue;
		const char *why =
			sleepers.count < SLEEPERS_MAX ? obstacle(s) : "too many sessions sleep";
		if (why)
			tell_awake(s, why);
		else
			begin(s);
	}
	int64_t delay_ms = (int64_t)server->options.idle_context * 250;
	ckt_timer_set(&server->loop, timer,
		delay_ms < LOOK_LEAST_MS     ? LOOK_LEAST_MS
			: delay_ms > LOOK_MS ? LOOK_MS
					     : delay_ms);
}

/* ---- Asleep */

static void client_ended(struct ckt_source *source, uint32_t events)
{
	struct ckt_sleeper *sleeper = CKT_CONTAINER(source, struct ckt_sleeper, client);
	(void)events;
	ckt_debug("session %s: the connection of its client has ended", sleeper->chain->id);
	drop_client(sleeper);
	ckt_automatic_wait_for_client(sleeper->chain, RETURN_MS);
}

/* Without a connection it waits for its client as any session that may come back. */
static void watch_client(struct ckt_sleeper *sleeper)
{
	struct ckt_automatic_chain *chain = sleeper->chain;
	sleeper->client.ready = client_ended;
	ckt_timer_clear(&chain->timer);
	if (sleeper->client.fd >= 0 &&
		ckt_loop_add(&sleepers.server->loop, &sleeper->client, EPOLLRDHUP))
		drop_client(sleeper);
	if (sleeper->client.fd < 0)
		ckt_automatic_wait_for_client(
			chain, (int64_t)chain->server->options.claim_timeout * 1000);
}

void ckt_sleep_settle(struct ckt_automatic_chain *chain)
{
	struct ckt_sleeper *sleeper = chain->sleeper;
	sleeper->chain = chain;
	if (!sleeper->since)
		sleeper->since = (time_t)chain->state.when;
	sleeper->generation = chain->state.generation;
	sleeper->executed = chain->state.executed;
	sleeper->bytes = 0;
	for (unsigned i = 0; i < chain->state.count; i++)
		sleeper->bytes += chain->state.images[i].bytes;
	if (!sleeper->listed)
		list(sleeper);
	watch_client(sleeper);
	if (sleeper->tries) {
		int64_t wait_ms = (int64_t)WAKE_MS << (sleeper->tries < 8 ? sleeper->tries : 8);
		sleeper->not_before_ms =
			ckt_net_now_ms() + (wait_ms < WAKE_MOST_MS ? wait_ms : WAKE_MOST_MS);
		return;
	}
	ckt_info("session %s sleeps: %llu KiB on this host", chain->id,
		(unsigned long long)(sleeper->bytes + 1023) / 1024);
}

bool ckt_sleep_is_kept(const struct ckt_hello_args *hello)
{
	for (u_int i = 0; i < hello->capabilities.capabilities_len; i++) {
		const ckt_capability *one = &hello->capabilities.capabilities_val[i];
		if (strcmp(one->name, CKT_CAPABILITY_SLEEP) == 0)
			return hello->kind == CKT_HELLO_RESUME && one->value == CKT_SLEEP_KEEP;
	}
	return false;
}

/* The last thing that is said over the connection; -1 if the client does not take it at once. */
static int answer(struct ckt_peer *peer, const struct ckt_sleeper *sleeper)
{
	ckt_capability kept = {(char *)CKT_CAPABILITY_SLEEP, CKT_SLEEP_KEEP};
	ckt_hello_res res = {.status = CKT_HELLO_OK,
		.ckt_hello_res_u.ok = {.protocol = CKT_PROTOCOL_VERSION,
			.session = sleeper->chain->id,
			.generation = sleeper->generation,
			.executed = sleeper->executed,
			.server = peer->server->host,
			.build = (char *)CKT_VERSION,
			.capabilities = {1, &kept}}};
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_hello_res, &res);
	return ckt_record_stream_queued(&peer->stream) ? -1
						       : ckt_record_stream_detach(&peer->stream);
}

int ckt_sleep_keep(struct ckt_peer *peer, char ret_message[CKT_MESSAGE_MAX])
{
	const struct ckt_hello_args *hello = &peer->hello;
	struct ckt_sleeper *sleeper = ckt_sleep_find(hello->session);
	if (!sleeper)
		return -ENOENT;
	struct ckt_automatic_chain *chain = sleeper->chain;
	int result = ckt_automatic_check_peer(peer, &chain->state, ret_message);
	if (result)
		return result;
	snprintf(sleeper->program, sizeof sleeper->program, "%s", hello->program_name);
	snprintf(sleeper->host, sizeof sleeper->host, "%s", hello->host);
	sleeper->client_pid = hello->pid;
	ckt_peer_hold(peer);
	int fd = answer(peer, sleeper);
	if (ckt_peer_release(peer))
		ckt_peer_close(peer);
	if (fd < 0)
		return 0;
	drop_client(sleeper);
	sleeper->client.fd = fd;
	watch_client(sleeper);
	return 0;
}

void ckt_sleep_woken(struct ckt_session *session)
{
	struct ckt_automatic_chain *chain = session->chain;
	if (chain->state.asleep) {
		chain->state.asleep = false;
		/* Otherwise it would sleep for a server that is started again. */
		ckt_chain_write(chain->dir_fd, &chain->state);
	}
	if (!chain->sleeper)
		return;
	session->started = chain->sleeper->started ? chain->sleeper->started : session->started;
	ckt_sleeper_free(chain->sleeper);
	chain->sleeper = NULL;
	ckt_daemon_event(session, CKT_EVENT_AWAKE, "its program has a command for it");
}

void ckt_sleep_end(struct ckt_sleeper *sleeper, const char *why)
{
	struct ckt_automatic_chain *chain = sleeper->chain;
	ckt_info("session %s: ending it in its sleep: %s", chain->id, why);
	chain->sleeper = NULL;
	ckt_sleeper_free(sleeper);
	ckt_automatic_drop(chain);
}

/* ---- The server begins and ends */

/* Slept when an earlier server ended: unless somebody else has it. */
static void find(struct ckt_server *server, const char *id)
{
	int parent = server->automatic->dir_fd;
	struct ckt_chain_state state;
	int fd = ckt_chain_open(parent, id, false);
	int lock = -1;
	if (fd >= 0 && ckt_chain_read(fd, id, &state) == 0 && state.asleep)
		lock = ckt_chain_lock(fd, false);
	struct ckt_automatic_chain *chain = lock >= 0 ? ckt_automatic_chain_new(server, id) : NULL;
	struct ckt_sleeper *sleeper = chain ? calloc(1, sizeof *sleeper) : NULL;
	if (!sleeper) {
		if (chain)
			ckt_automatic_chain_free(chain);
		if (lock >= 0)
			close(lock);
		if (fd >= 0)
			close(fd);
		return;
	}
	*sleeper = (struct ckt_sleeper){
		.chain = chain, .client.fd = -1, .owner = state.owner, .gpu = state.gpu};
	chain->dir_fd = fd;
	chain->lock_fd = lock;
	chain->state = state;
	chain->sleeper = sleeper;
	ckt_automatic_count(chain, state.owner);
	ckt_automatic_leave(chain);
}

void ckt_sleep_open(struct ckt_server *server)
{
	sleepers.server = server;
	if (!server->automatic)
		return;
	int own = openat(server->automatic->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own >= 0 ? fdopendir(own) : NULL;
	if (!dir && own >= 0)
		close(own);
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (ckt_chain_id_good(entry->d_name) && !ckt_session_find(server, entry->d_name) &&
			sleepers.count < SLEEPERS_MAX)
			find(server, entry->d_name);
	if (dir)
		closedir(dir);
	sleepers.look.fire = look;
	if (server->options.idle_context)
		look(&sleepers.look);
}

void ckt_sleep_close(struct ckt_server *server)
{
	(void)server;
	ckt_timer_clear(&sleepers.look);
}
