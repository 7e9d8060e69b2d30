/* SPDX-License-Identifier: Apache-2.0 */
/* Takes an automatic image of a session; see automatic.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "checkpoint/format/broker.h"
#include "checkpoint/format/image_key.h"
#include "rpc/net.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/durable/chain_job.h"
#include "server/daemon/durable/chain_mac.h"
#include "server/daemon/durable/group_cut.h"
#include "server/daemon/durable/replica.h"
#include "server/daemon/durable/sealed_chain.h"
#include "server/daemon/durable/sleep.h"
#include "server/daemon/events.h"
#include "server/daemon/image/image_mac.h"
#include "server/daemon/image/image_space.h"
#include "server/daemon/image/memory_images.h"
#include "server/daemon/metrics/counters.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/session/worker_request.h"

enum {
	STATUS_TIMEOUT_MS = 10000,
	DEADLINE_MS = 60000, /* for the GPU to finish what runs */
	WAIT_MAX = 16,       /* times the usual time, after failures */
	FORGIVEN_MS = 600000,
};

/* One image in the making. */
struct image {
	struct ckt_automatic_chain *chain;
	int fd;                          /* its directory */
	struct ckt_sealed_image *sealed; /* its files, with --auto-encrypt */
	bool whole;
	int64_t began_ms;
	struct ckt_worker_save2_args call;
	struct ckt_worker_save2_res saved; /* without its message */
	struct ckt_chain_state state;      /* once it counts */
};

/* Of what happens each time again, the first time is told. */
static void __attribute__((format(printf, 2, 3)))
fail(struct ckt_automatic_chain *chain, const char *format, ...)
{
	char text[sizeof chain->problem];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (chain->sleeper) {
		ckt_sleep_failed(chain, text);
		return;
	}
	if (!*chain->problem) {
		ckt_warning("session %s: no automatic image: %s", chain->id, text);
		ckt_daemon_event(chain->session, CKT_EVENT_UNSAVED, "%s", text);
	}
	strcpy(chain->problem, text);
	ckt_counters.automatic_failures++;
	chain->wait = chain->wait < WAIT_MAX ? chain->wait * 2 : WAIT_MAX;
}

void ckt_automatic_failed(struct ckt_automatic_chain *chain, const char *why)
{
	fail(chain, "%s", why);
}

/* ---- The directory */

static int open_chain(struct ckt_automatic_chain *chain)
{
	struct ckt_automatic *automatic = chain->server->automatic;
	if (chain->dir_fd >= 0)
		return 0;
	int fd = ckt_chain_open(automatic->dir_fd, chain->id, true);
	int lock = fd < 0 ? fd : ckt_chain_lock(fd, !chain->session->child);
	if (lock < 0) {
		if (fd >= 0)
			close(fd);
		return lock;
	}
	/* What an earlier life of the session left serves until the first image of this one. */
	if (ckt_chain_read(fd, chain->id, &chain->state))
		chain->state = (struct ckt_chain_state){0};
	chain->whole_next = true;
	chain->dir_fd = fd;
	chain->lock_fd = lock;
	/* What it named goes. */
	ckt_chain_next_settle(fd, false);
	ckt_chain_clean(fd, &chain->state);
	ckt_automatic_count(chain, chain->session->uid);
	return 0;
}

static uint64_t increments(const struct ckt_chain_state *state)
{
	uint64_t bytes = 0;
	for (unsigned i = 1; i < state->count; i++)
		bytes += state->images[i].bytes;
	return bytes;
}

/* Whether the newest is not encrypted, and should be: nothing is to build on it. */
static bool is_plain(const struct ckt_automatic_chain *chain)
{
	const struct ckt_chain_state *state = &chain->state;
	if (!chain->server->options.auto_encrypt)
		return false;
	int fd = ckt_chain_image_open(chain->dir_fd, state->images[state->count - 1].number, false);
	bool plain = fd < 0 || !ckt_sealed_image_is(fd);
	if (fd >= 0)
		close(fd);
	return plain;
}

/* Whether the next image builds on no other: all that do would become larger than the first. */
static bool is_time_for_whole(const struct ckt_automatic_chain *chain)
{
	const struct ckt_chain_state *state = &chain->state;
	uint64_t last = state->count > 1 ? state->images[state->count - 1].bytes : 0;
	return !state->count || chain->whole_next || state->count >= CKT_CHAIN_IMAGES_MAX - 1 ||
		increments(state) + last > state->images[0].bytes || is_plain(chain);
}

/* ---- Once it is written */

static void told(struct ckt_session *session, void *context, int error, void *answer)
{
	(void)context, (void)answer;
	if (error)
		ckt_debug("session %s: its worker does not know of its image: %s", session->id,
			strerror(-error));
}

/* What does not fall asleep after all goes on. */
static void release(struct ckt_session *session)
{
	struct ckt_worker_release_args args = {.message = (char *)"", .moved_to = (char *)""};
	if (session && session->phase == CKT_SESSION_LIVE)
		ckt_session_call(session, CKT_WORKER_RELEASE,
			(xdrproc_t)xdr_ckt_worker_release_args, &args, -1,
			(xdrproc_t)xdr_ckt_worker_result, sizeof(struct ckt_worker_result),
			STATUS_TIMEOUT_MS, told, NULL);
}

static void image_free(struct image *image, bool remove)
{
	struct ckt_automatic_chain *chain = image->chain;
	ckt_broker_stop(chain->broker);
	chain->broker = NULL;
	ckt_sealed_image_unref(image->sealed);
	if (image->fd >= 0)
		close(image->fd);
	if (remove)
		ckt_chain_image_remove(chain->dir_fd, chain->number);
	if (remove && image->call.hold) {
		release(chain->session);
		ckt_sleeper_free(chain->sleeper);
		chain->sleeper = NULL;
	}
	chain->busy = false;
	chain->image = NULL;
	free(image);
}

/* No image comes of it. */
static void image_fail(struct image *image)
{
	struct ckt_automatic_chain *chain = image->chain;
	image_free(image, true);
	if (chain->cut)
		ckt_group_cut_saved(chain, false);
	else
		ckt_automatic_wait(chain);
}

static struct ckt_chain_state next_state(const struct image *image,
	const struct ckt_session *session, const struct ckt_worker_automatic_res *now)
{
	const struct ckt_automatic_chain *chain = image->chain;
	struct ckt_chain_state state = chain->state;
	bool moved = !state.count || now->executed > state.executed;
	snprintf(state.session, sizeof state.session, "%s", session->id);
	state.owner = session->uid;
	memcpy(state.secret_hash, session->secret_hash, sizeof state.secret_hash);
	state.generation = now->generation;
	state.copy = now->copy;
	state.executed = now->executed;
	state.when = time(NULL);
	memcpy(state.last, image->saved.image, sizeof state.last);
	state.restores = moved ? 0 : state.restores;
	state.gpu = session->status.gpu;
	state.asked = session->asks_for_images;
	state.has_manifest = false;
	state.shared = chain->shares;
	state.member_count = 0;
	/* A worker that is ended in its sleep did not crash. */
	state.asleep = image->call.hold;
	state.restores = state.asleep ? 0 : state.restores;
	if (image->whole)
		state.count = 0;
	state.images[state.count++] = (struct ckt_chain_image){.number = chain->number,
		.bytes = image->sealed ? ckt_sealed_image_bytes(image->sealed)
				       : ckt_chain_image_bytes(image->fd)};
	return state;
}

/* What is on the disk now is what counts. */
static void committed(struct image *image)
{
	struct ckt_automatic_chain *chain = image->chain;
	struct ckt_session *session = chain->session;
	/* It may have lost its replica since; the next state says so. */
	image->state.replicated = chain->state.replicated;
	chain->state = image->state;
	chain->unfit &= image->state.shared;
	chain->whole_next = false;
	chain->taken++;
	ckt_counters.automatic_images++;
	ckt_counters.automatic_bytes += chain->state.images[chain->state.count - 1].bytes;
	ckt_counters.automatic_last_ms = (uint64_t)(ckt_net_now_ms() - image->began_ms);
	chain->problem[0] = 0;
	chain->wait = 1;
	ckt_automatic_count(chain, image->state.owner);
	ckt_debug("session %s: automatic image %llu%s: %llu bytes up to command %llu", chain->id,
		(unsigned long long)chain->number, image->whole ? "" : ", incremental",
		(unsigned long long)chain->state.images[chain->state.count - 1].bytes,
		(unsigned long long)chain->state.executed);
	struct ckt_worker_durable_args args = {.executed = chain->state.executed};
	/* Otherwise the client is told once the replica has it, too. */
	if (ckt_replica_send(chain))
		return;
	if (session && session->phase == CKT_SESSION_LIVE)
		ckt_session_call(session, CKT_WORKER_DURABLE,
			(xdrproc_t)xdr_ckt_worker_durable_args, &args, -1,
			(xdrproc_t)xdr_ckt_worker_result, sizeof(struct ckt_worker_result),
			STATUS_TIMEOUT_MS, told, NULL);
}

static void commit_done(void *context, int result)
{
	struct image *image = context;
	struct ckt_automatic_chain *chain = image->chain;
	chain->committing = false;
	if (!result)
		committed(image);
	else if (chain->session)
		fail(chain, "%s", strerror(-result));
	chain->whole_next |= result != 0;
	bool held = !result && image->call.hold;
	/* Of a cut it counts also as what the next state names. */
	image_free(image, result && !chain->cut);
	if (chain->cut) {
		ckt_group_cut_counted(chain);
		return;
	}
	ckt_automatic_note_share(chain);
	if (chain->session && held)
		ckt_sleep_held(chain);
	else if (chain->session)
		ckt_automatic_wait(chain);
	else if (!chain->committing)
		ckt_automatic_ended(chain);
}

static void drop(struct image *image, const char *problem)
{
	struct ckt_automatic_chain *chain = image->chain;
	if (problem)
		fail(chain, "%s", problem);
	chain->whole_next = true;
	image_fail(image);
}

/* Of a cut: it does not count before those of all others are there. */
static void prepared(void *context, int result)
{
	struct image *image = context;
	struct ckt_automatic_chain *chain = image->chain;
	chain->committing = false;
	if (!result) {
		ckt_group_cut_saved(chain, true);
		return;
	}
	if (chain->session)
		fail(chain, "%s", strerror(-result));
	chain->whole_next = true;
	image_fail(image);
}

void ckt_automatic_image_count(struct ckt_automatic_chain *chain)
{
	struct image *image = chain->image;
	int result = ckt_chain_count(
		&chain->server->loop, chain->dir_fd, &image->state, commit_done, image);
	chain->committing = !result;
	if (result)
		commit_done(image, result);
}

void ckt_automatic_image_drop(struct ckt_automatic_chain *chain)
{
	ckt_chain_next_settle(chain->dir_fd, false);
	chain->whole_next = true;
	image_free(chain->image, true);
}

static int commit(struct image *image)
{
	struct ckt_automatic_chain *chain = image->chain;
	/* It may have got a replica since. */
	image->state.replicated = chain->state.replicated;
	if (chain->cut) {
		ckt_group_cut_name(chain, &image->state);
		int error = ckt_chain_prepare(&chain->server->loop, chain->dir_fd, image->fd,
			&image->state, image->sealed, prepared, image);
		chain->committing = !error;
		return error;
	}
	int result = ckt_chain_commit_sealed(&chain->server->loop, chain->dir_fd, image->fd,
		&image->state, image->sealed, image->whole, commit_done, image);
	chain->committing = !result;
	return result;
}

/* The server's key vouches for its manifest, in a file beside it; the state names the manifest. */
static void vouched(void *context, const uint8_t *data, size_t size, const char *problem)
{
	struct image *image = context;
	struct ckt_image_macs macs;
	int result = problem ? 0 : ckt_image_macs_decode(data, size, &macs);
	if (!problem && !result) {
		memcpy(image->state.manifest, macs.macs[0].manifest, sizeof image->state.manifest);
		image->state.has_manifest = true;
		if (image->sealed)
			result = ckt_sealed_image_vouch(image->sealed, data, size);
	}
	if (!problem && !result)
		result = commit(image);
	if (problem || result)
		drop(image, problem ? problem : strerror(-result));
}

/* The worker says which command is the last in it. */
static void described(struct ckt_session *session, void *context, int error, void *answer)
{
	struct image *image = context;
	const struct ckt_worker_automatic_res *now = answer;
	/* Somebody else has had one written since: what is known is not of this one. */
	bool same = !error && !now->status &&
		memcmp(now->image, image->saved.image, sizeof now->image) == 0;
	int result = error;
	if (same) {
		image->state = next_state(image, session, now);
		const char *id = (const char *)image->saved.image;
		result = !ckt_chain_keys() ? commit(image)
			: image->sealed
			? ckt_image_mac_ask(session, id, vouched, image)
			: ckt_image_mac_write(session, id, image->fd, vouched, image);
		if (!result)
			return;
	}
	drop(image, result ? strerror(-result) : NULL);
}

static void saved(struct ckt_session *session, void *context, int error, void *answer)
{
	struct image *image = context;
	struct ckt_automatic_chain *chain = image->chain;
	struct ckt_worker_save2_res *res = answer;
	struct ckt_worker_automatic_args args = {0};
	int result = error ? error : res->status;
	ckt_broker_stop(chain->broker);
	chain->broker = NULL;
	if (!result) {
		image->saved = *res;
		ckt_count_checkpoint(session->id, true, res->bytes, res->stopped_us);
		int lock = fcntl(chain->lock_fd, F_DUPFD_CLOEXEC, 3);
		result = ckt_session_call(session, CKT_WORKER_AUTOMATIC,
			(xdrproc_t)xdr_ckt_worker_automatic_args, &args, lock,
			(xdrproc_t)xdr_ckt_worker_automatic_res,
			sizeof(struct ckt_worker_automatic_res), STATUS_TIMEOUT_MS, described,
			image);
		if (!result)
			return;
	} else {
		ckt_count_checkpoint(session->id, false, 0, 0);
	}
	/* Somebody else's image came in between: one that builds on none does not mind. */
	bool stale = result == -ESTALE && !chain->whole_next;
	chain->whole_next = true;
	/* Whatever ended the worker is told anyway. */
	if (!stale && error != -ECONNRESET)
		fail(chain, "%s",
			error || !*res->message ? ckt_daemon_request_problem(result)
						: res->message);
	image_fail(image);
}

/* ---- Before that */

static bool has_room(struct ckt_automatic_chain *chain, uint64_t bytes)
{
	struct ckt_decision decision = {0};
	if (chain->space)
		ckt_daemon_image_space_check(chain->space, chain->dir_fd, bytes, &decision);
	if (decision.answer)
		fail(chain, "%s", decision.reason);
	if (decision.answer || !chain->server->options.auto_encrypt)
		return !decision.answer;
	/* What is plain lies in memory until it is encrypted. */
	char reason[CKT_MESSAGE_MAX];
	bool fits = ckt_memory_image_has_room(chain->session, bytes, reason);
	if (!fits)
		fail(chain, "%s", reason);
	return fits;
}

static int begin(struct image *image, struct ckt_session *session)
{
	struct ckt_automatic_chain *chain = image->chain;
	int fd = -1;
	const struct ckt_chain_state *state = &chain->state;
	uint64_t last = state->count ? state->images[state->count - 1].number : 0;
	chain->number = (last > chain->number ? last : chain->number) + 1;
	/* What another server began, which has died. */
	ckt_chain_image_remove(chain->dir_fd, chain->number);
	image->fd = ckt_chain_image_open(chain->dir_fd, chain->number, true);
	int result = image->fd < 0 ? image->fd
		: chain->server->options.auto_encrypt
		? ckt_sealed_image_start(&image->sealed, &chain->broker, &fd)
		: ckt_broker_start(&image->fd, 1, CKT_BROKER_MAKE, &chain->broker, &fd);
	if (result)
		return result;
	image->call = (struct ckt_worker_save2_args){.deadline_ms = DEADLINE_MS,
		.incremental = !image->whole,
		.hold = chain->sleeper != NULL,
		.keep_hashes = true};
	memcpy(image->call.base, state->last, sizeof image->call.base);
	return ckt_session_call_long(session, CKT_WORKER_SAVE2,
		(xdrproc_t)xdr_ckt_worker_save2_args, &image->call, fd,
		(xdrproc_t)xdr_ckt_worker_save2_res, sizeof(struct ckt_worker_save2_res),
		DEADLINE_MS, saved, image);
}

/* False: no image is being taken now. */
static bool take(struct ckt_automatic_chain *chain, struct ckt_session *session,
	const struct ckt_worker_status_res *status)
{
	int result = open_chain(chain);
	if (result == -EBUSY)
		fail(chain, "another server that shares the directory runs this session");
	else if (result)
		fail(chain, "%s", strerror(-result));
	if (result)
		return false;
	bool whole = is_time_for_whole(chain);
	unsigned count = chain->state.count;
	if (!has_room(chain,
		    whole || count < 2 ? status->memory_bytes
				       : chain->state.images[count - 1].bytes))
		return false;
	struct image *image = calloc(1, sizeof *image);
	if (!image)
		return false;
	*image = (struct image){
		.chain = chain, .fd = -1, .whole = whole, .began_ms = ckt_net_now_ms()};
	chain->image = image;
	result = begin(image, session);
	if (!result)
		return true;
	fail(chain, "%s", strerror(-result));
	image_free(image, image->fd >= 0);
	return false;
}

bool ckt_automatic_take_of_cut(struct ckt_automatic_chain *chain)
{
	chain->busy = take(chain, chain->session, &chain->session->status);
	return chain->busy;
}

/* Whether there is anything that the last image does not have. */
static bool has_news(
	const struct ckt_automatic_chain *chain, const struct ckt_worker_status_res *status)
{
	const struct ckt_chain_state *state = &chain->state;
	if (status->state != CKT_STATE_RUNNING && status->state != CKT_STATE_DETACHED)
		return false;
	/* Of itself alone it is not, if it says so of others. */
	bool alone = !chain->shares && (state->member_count || state->shared);
	return !state->count || alone || chain->dir_fd < 0 || status->executed != state->executed ||
		increments(state) > state->images[0].bytes;
}

/* A session that has lived for long since is no program that dies again and again. */
static void forgive(struct ckt_automatic_chain *chain)
{
	if (!chain->state.restores || chain->lock_fd < 0 || !chain->alive_ms ||
		ckt_net_now_ms() - chain->alive_ms < FORGIVEN_MS)
		return;
	chain->state.restores = 0;
	int result = ckt_chain_write(chain->dir_fd, &chain->state);
	if (result)
		fail(chain, "%s", strerror(-result));
}

static void looked(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_automatic_chain *chain = context;
	const struct ckt_worker_status_res *status = answer;
	struct ckt_decision decision;
	chain->busy = false;
	if (error || session->phase != CKT_SESSION_LIVE) {
		if (chain->sleeper)
			ckt_sleep_failed(chain, "its worker does not answer");
		ckt_automatic_wait(chain);
		return;
	}
	forgive(chain);
	ckt_automatic_note_share(chain);
	if (chain->shares && ckt_group_cut_take(chain, has_news(chain, status))) {
		if (!chain->cut)
			ckt_automatic_wait(chain);
		return;
	}
	if (chain->sleeper)
		ckt_sleep_note(chain, status);
	ckt_ask_save(session, NULL, false, &decision);
	if (decision.answer && chain->sleeper)
		fail(chain, "%s", decision.reason);
	else if (!decision.answer && (chain->sleeper || has_news(chain, status)))
		chain->busy = take(chain, session, status);
	if (!chain->busy && chain->sleeper)
		fail(chain, "out of memory");
	if (!chain->busy)
		ckt_automatic_wait(chain);
}

int ckt_automatic_take_held(struct ckt_automatic_chain *chain)
{
	if (chain->busy || chain->cut)
		return -EBUSY;
	int result = ckt_session_call(chain->session, CKT_WORKER_STATUS, NULL, NULL, -1,
		(xdrproc_t)xdr_ckt_worker_status_res, sizeof(struct ckt_worker_status_res),
		STATUS_TIMEOUT_MS, looked, chain);
	chain->busy = !result;
	return result;
}

void ckt_automatic_tick(struct ckt_timer *timer)
{
	struct ckt_automatic_chain *chain = CKT_CONTAINER(timer, struct ckt_automatic_chain, timer);
	struct ckt_session *session = chain->session;
	/* What falls asleep has an image taken anyway. */
	if (session && session->phase == CKT_SESSION_LIVE && !chain->sleeper)
		ckt_automatic_take_held(chain);
	if (session && !chain->busy && !chain->cut)
		ckt_automatic_wait(chain);
}
