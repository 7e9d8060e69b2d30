/* SPDX-License-Identifier: Apache-2.0 */
/* The replicas that this server keeps for others; see replica.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/durable/chain_job.h"
#include "server/daemon/durable/chain_mac.h"
#include "server/daemon/durable/replica.h"
#include "server/daemon/image/image_space.h"
#include "server/daemon/image/stage.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/session/session_marks.h"

#define MARK "replica"

enum { MARK_SIZE = 256 };

struct held {
	struct held *next;
	char id[CKT_SESSION_ID_SIZE + 1];
	int64_t end_ms; /* CLOCK_MONOTONIC, of its lease */
	int64_t when;   /* it was renewed last; seconds since the epoch */
	uint32_t owner;
	uint64_t executed;
	struct ckt_image_space *space;
	uint64_t counted;
};

static struct held *all;
static int64_t started_ms;

void ckt_replica_keep_init(void)
{
	started_ms = ckt_net_now_ms();
}

static struct held *find(const char *id)
{
	struct held *held = all;
	while (held && strcmp(held->id, id) != 0)
		held = held->next;
	return held;
}

static struct held *find_or_make(const char *id)
{
	struct held *held = find(id);
	if (!held)
		held = calloc(1, sizeof *held);
	if (!held || *held->id)
		return held;
	snprintf(held->id, sizeof held->id, "%.12s", id);
	held->next = all;
	all = held;
	return held;
}

static void forget(const char *id)
{
	struct held **place = &all, *held = find(id);
	if (!held)
		return;
	while (*place != held)
		place = &(*place)->next;
	*place = held->next;
	if (held->space)
		ckt_daemon_image_space_release(held->space, held->counted);
	ckt_daemon_image_space_put(held->space);
	free(held);
}

unsigned ckt_replica_held(uint64_t *ret_bytes)
{
	unsigned count = 0;
	*ret_bytes = 0;
	for (const struct held *held = all; held; held = held->next) {
		*ret_bytes += held->counted;
		count++;
	}
	return count;
}

bool ckt_replica_held_next(const char *after, struct ckt_replica_facts *ret_facts)
{
	const struct held *next = NULL;
	for (const struct held *held = all; held; held = held->next)
		if (strcmp(held->id, after) > 0 && (!next || strcmp(held->id, next->id) < 0))
			next = held;
	if (!next)
		return false;
	int64_t left_ms = next->end_ms - ckt_net_now_ms();
	*ret_facts = (struct ckt_replica_facts){.owner = next->owner,
		.executed = next->executed,
		.when = next->when,
		.lease_ms = left_ms > 0 ? (unsigned)left_ms : 0,
		.bytes = next->counted,
		.problem = ""};
	memcpy(ret_facts->session, next->id, sizeof ret_facts->session);
	return true;
}

void ckt_replica_keep_fini(void)
{
	while (all)
		forget(all->id);
}

/* ---- The mark: the lease's length, so that a server that was started again waits as long */

/* With keys they vouch for it, and for whose it is; no state begins so. */
static int format_mark(const char *session, unsigned lease_ms, char ret_text[MARK_SIZE])
{
	if (!ckt_chain_keys())
		return snprintf(ret_text, MARK_SIZE, "%u\n", lease_ms);
	int size =
		snprintf(ret_text, MARK_SIZE, "mark replica %.12s\nlease %u\n", session, lease_ms);
	size = ckt_chain_mac_sign(ret_text, (size_t)size, MARK_SIZE);
	return size + snprintf(ret_text + size, MARK_SIZE - (size_t)size, "end\n");
}

/* 0: it is damaged, or no key vouches for it. */
static unsigned parse_mark(const char *session, const char *text)
{
	char wanted[MARK_SIZE];
	const char *number = text;
	if (ckt_chain_keys()) {
		int size = snprintf(wanted, sizeof wanted, "mark replica %.12s\nlease ", session);
		number = ckt_chain_mac_check(text) || strncmp(text, wanted, (size_t)size) != 0
			? ""
			: text + size;
	}
	unsigned long lease = strtoul(number, NULL, 10);
	return lease <= CKT_REPLICA_LEASE_MAX_S * 1000 ? (unsigned)lease : 0;
}

/* -ENOENT: there is none.  A damaged one is as good as the longest. */
static int read_mark(int dir_fd, const char *session, unsigned *ret_lease_ms)
{
	char text[MARK_SIZE] = "";
	int fd = openat(dir_fd, MARK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	unsigned lease_ms = n > 0 ? parse_mark(session, text) : 0;
	*ret_lease_ms = lease_ms ? lease_ms : CKT_REPLICA_LEASE_MAX_S * 1000;
	return 0;
}

static int write_mark(int dir_fd, const char *session, unsigned lease_ms)
{
	char text[MARK_SIZE];
	unsigned before;
	if (read_mark(dir_fd, session, &before) == 0 && before == lease_ms)
		return 0;
	int size = format_mark(session, lease_ms, text);
	unlinkat(dir_fd, MARK ".new", 0);
	int fd = openat(
		dir_fd, MARK ".new", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int result = write(fd, text, (size_t)size) == size && fsync(fd) == 0 ? 0 : -EIO;
	close(fd);
	if (!result && renameat(dir_fd, MARK ".new", dir_fd, MARK))
		result = -errno;
	if (!result && fsync(dir_fd))
		result = -errno;
	return result;
}

bool ckt_replica_is_leased(
	int dir_fd, const char *session, unsigned promised_ms, unsigned *ret_left_s)
{
	unsigned lease_ms = 0;
	if (read_mark(dir_fd, session, &lease_ms) && !promised_ms)
		return false;
	lease_ms = lease_ms > promised_ms ? lease_ms : promised_ms;
	const struct held *held = find(session);
	/* What an earlier server of ours promised is not known. */
	int64_t end_ms = started_ms + lease_ms, now_ms = ckt_net_now_ms();
	if (held && held->end_ms > end_ms)
		end_ms = held->end_ms;
	*ret_left_s = end_ms > now_ms ? (unsigned)((end_ms - now_ms + 999) / 1000) : 0;
	return end_ms > now_ms;
}

int ckt_replica_take(int dir_fd, const char *session)
{
	if (unlinkat(dir_fd, MARK, 0) && (errno != ENOENT || !find(session)))
		return errno == ENOENT ? 0 : -errno;
	forget(session);
	ckt_info("session %s: goes on from its replica here: the lease of its server is over",
		session);
	return fsync(dir_fd) ? -errno : 0;
}

/* ---- Calls */

/* NULL: it may. */
static const char *refusal(const struct ckt_peer *peer, const char *session, bool make)
{
	if (!ckt_control_is_administrator(peer))
		return "only an administrator may keep replicas here: give its token with --replicate-token";
	if (!peer->server->automatic)
		return "this server keeps no automatic images, and so no replicas: start it with --auto-checkpoint";
	/* Leases of replicas that are here go on: without them their sessions would end. */
	if (make && (peer->server->drain.on || peer->server->stopping))
		return "this server is drained or ends, and takes no images for replicas";
	if (!ckt_chain_id_good(session))
		return "that is no session ID";
	return NULL;
}

/* With keys, what the state says of it counts more than a file that anybody may have put there. */
static bool is_replica(struct ckt_server *server, int dir_fd, const char *session)
{
	struct ckt_chain_state state;
	unsigned lease_ms;
	if (ckt_session_find(server, session))
		return false;
	if (ckt_chain_keys() && ckt_chain_read(dir_fd, session, &state) == 0)
		return state.replica_ms != 0;
	return read_mark(dir_fd, session, &lease_ms) == 0;
}

/*
 * The chain's directory, the caller's, if it is a replica; make: or nothing yet, and it becomes one.
 * -ENOENT: it is the session's own here, or not here any more.
 */
static int open_replica(struct ckt_server *server, const char *session, bool make)
{
	struct stat st;
	int fd = ckt_chain_open(server->automatic->dir_fd, session, make);
	if (fd < 0)
		return fd;
	bool is = is_replica(server, fd, session);
	bool own = fstatat(fd, "state", &st, AT_SYMLINK_NOFOLLOW) == 0 ||
		fstatat(fd, "lock", &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!is && (own || !make || ckt_session_mark_exists(server, session))) {
		close(fd);
		return -ENOENT;
	}
	int result = is ? 0 : write_mark(fd, session, CKT_REPLICA_LEASE_S * 1000);
	if (result)
		close(fd);
	return result ? result : fd;
}

/* 0 and the result's text, or the descriptor. */
static int begin(struct ckt_peer *peer, const char *session, bool make,
	ckt_control_result *ret_result, char buffer[CKT_MESSAGE_MAX])
{
	const char *why = refusal(peer, session, make);
	int fd = why ? -EPERM : open_replica(peer->server, session, make);
	buffer[0] = 0;
	*ret_result = (ckt_control_result){CKT_CONTROL_OK, buffer};
	if (why)
		ckt_control_result_set(ret_result, buffer, CKT_CONTROL_REFUSED, "%s", why);
	else if (fd == -ENOENT)
		ckt_control_result_set(ret_result, buffer, CKT_CONTROL_NO_SESSION,
			"session %.12s is no replica at %.100s: it goes on there, or has ended",
			session, peer->server->host);
	else if (fd < 0)
		ckt_control_result_set(ret_result, buffer, CKT_CONTROL_REFUSED,
			"the directory of session %.12s in --auto-dir at %.100s: %s", session,
			peer->server->host, strerror(-fd));
	return fd;
}

void ckt_control_replica_look(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_replica_look_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX];
	u_quad_t numbers[CKT_CONTROL_REPLICA_IMAGES];
	ckt_control_replica_look_res res = {.images = {0, numbers}};
	int fd = begin(peer, args->session, true, &res.result, buffer);
	int own = fd < 0 ? -1 : openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own >= 0 ? fdopendir(own) : NULL;
	(void)passed_fd;
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (*entry->d_name >= '1' && *entry->d_name <= '9' &&
			res.images.images_len < CKT_CONTROL_REPLICA_IMAGES)
			numbers[res.images.images_len++] = strtoull(entry->d_name, NULL, 10);
	if (dir)
		closedir(dir);
	if (fd >= 0)
		close(fd);
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_replica_look_res, &res);
}

void ckt_control_replica_image(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_replica_image_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX], name[24];
	ckt_control_result result;
	(void)passed_fd;
	int fd = begin(peer, args->session, false, &result, buffer);
	if (fd >= 0) {
		snprintf(name, sizeof name, "%llu", (unsigned long long)args->number);
		/* While a state is written, images that none names are removed. */
		int lock = ckt_chain_lock(fd, false);
		int error = lock < 0 ? lock
			: !args->number || args->number > INT64_MAX
			? -EINVAL
			: ckt_stage_give(peer, args->stage, fd, name);
		if (lock >= 0)
			close(lock);
		if (error)
			ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
				"image %s of session %.12s: %s", name, args->session,
				error == -EXDEV
					? "--image-dir and --auto-dir are not on one file system"
					: strerror(-error));
		close(fd);
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

/* ---- KEEP */

struct keep {
	struct ckt_peer *peer;
	int dir_fd, lock_fd;
	unsigned lease_ms;
	struct ckt_chain_state state;
};

static void keep_free(struct keep *keep)
{
	if (keep->lock_fd >= 0)
		close(keep->lock_fd);
	if (keep->dir_fd >= 0)
		close(keep->dir_fd);
	free(keep);
}

static void answer(void *context, int error)
{
	struct keep *keep = context;
	struct held *held = find_or_make(keep->state.session);
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {CKT_CONTROL_OK, buffer};
	if (error) {
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"the replica of session %s: %s", keep->state.session, strerror(-error));
	} else if (held) {
		held->when = time(NULL);
		held->owner = keep->state.owner;
		held->executed = keep->state.executed;
		const struct ckt_identity identity = ckt_identity_of_owner(keep->state.owner);
		held->end_ms = ckt_net_now_ms() + keep->lease_ms;
		if (!held->space)
			held->space = ckt_daemon_image_space_get(keep->peer->server, &identity);
		if (held->space)
			ckt_daemon_image_space_release(held->space, held->counted);
		held->counted = 0;
		for (unsigned i = 0; i < keep->state.count; i++)
			held->counted += keep->state.images[i].bytes;
		if (held->space)
			ckt_daemon_image_space_note(held->space, held->counted);
	}
	if (ckt_peer_release(keep->peer))
		ckt_peer_reply(keep->peer, (xdrproc_t)xdr_ckt_control_result, &result);
	keep_free(keep);
}

static void kept(void *context, int error)
{
	struct keep *keep = context;
	/* Those of its group may need it. */
	close(keep->lock_fd);
	keep->lock_fd = -1;
	if (!error && keep->state.member_count) {
		error = ckt_replica_count(keep->peer->server, &keep->state, answer, keep);
		if (!error)
			return;
	}
	answer(keep, error);
}

/* Each image must be here; its size is what it takes here. */
static int measure(struct keep *keep)
{
	for (unsigned i = 0; i < keep->state.count; i++) {
		int fd = ckt_chain_image_open(keep->dir_fd, keep->state.images[i].number, false);
		if (fd < 0)
			return fd;
		keep->state.images[i].bytes = ckt_chain_image_bytes(fd);
		close(fd);
	}
	return keep->state.count ? 0 : -EINVAL;
}

static int has_room(const struct keep *keep, struct ckt_decision *ret_decision)
{
	const struct ckt_identity identity = ckt_identity_of_owner(keep->state.owner);
	const struct held *held = find(keep->state.session);
	uint64_t bytes = 0, counted = held ? held->counted : 0;
	struct ckt_image_space *space = ckt_daemon_image_space_get(keep->peer->server, &identity);
	for (unsigned i = 0; i < keep->state.count; i++)
		bytes += keep->state.images[i].bytes;
	if (space && bytes > counted)
		ckt_daemon_image_space_check(space, keep->dir_fd, bytes - counted, ret_decision);
	ckt_daemon_image_space_put(space);
	return ret_decision->answer ? -EDQUOT : 0;
}

/* The sender's key must be one of ours.  With an error there is a sentence in buffer. */
static int check_keys(
	const ckt_control_replica_keep_args *args, const char *host, char buffer[CKT_MESSAGE_MAX])
{
	int result = ckt_chain_mac_check(args->state);
	if (!result && !ckt_chain_keys() && ckt_chain_mac_is_there(args->state)) {
		snprintf(buffer, CKT_MESSAGE_MAX,
			"a key vouches for its images, and %.40s has none: start it with the same "
			"--image-key",
			host);
		return -ENOKEY;
	}
	if (result)
		ckt_chain_refusal(result, args->session, buffer);
	return result;
}

/* What the sender says of it; it must not be older than what is here.  why: as above. */
static int take_state(
	struct keep *keep, const ckt_control_replica_keep_args *args, char why[CKT_MESSAGE_MAX])
{
	struct ckt_chain_state before;
	/* The parser writes in it. */
	int result = check_keys(args, keep->peer->server->host, why);
	if (!result)
		result = ckt_chain_state_parse(args->state, &keep->state);
	if (!result && strcmp(keep->state.session, args->session) != 0)
		result = -EBADMSG;
	if (!result && ckt_chain_read(keep->dir_fd, args->session, &before) == 0 &&
		(before.generation > keep->state.generation ||
			memcmp(before.secret_hash, keep->state.secret_hash,
				sizeof before.secret_hash) != 0))
		result = -ESTALE;
	/* Here it is another server's, whatever it is there. */
	keep->state.replicated = false;
	keep->state.replica_ms = ckt_chain_keys() ? keep->lease_ms : 0;
	return result;
}

/* From here on the lock is ours, so no session starts from it. */
static int keep_start(
	struct keep *keep, const ckt_control_replica_keep_args *args, char buffer[CKT_MESSAGE_MAX])
{
	struct ckt_decision decision = {0};
	char why[CKT_MESSAGE_MAX] = "";
	int result = take_state(keep, args, why);
	if (!result)
		result = measure(keep);
	if (!result)
		result = ckt_chain_check_newest(keep->dir_fd, &keep->state, why);
	if (!result)
		result = has_room(keep, &decision);
	if (!result)
		keep->lock_fd = ckt_chain_lock(keep->dir_fd, false);
	if (!result)
		result = keep->lock_fd < 0
			? keep->lock_fd
			: write_mark(keep->dir_fd, args->session, keep->lease_ms);
	struct held *held = result ? NULL : find_or_make(args->session);
	if (!result && !held)
		result = -ENOMEM;
	if (!result) {
		held->end_ms = ckt_net_now_ms() + keep->lease_ms;
		result = ckt_chain_commit_foreign(
			&keep->peer->server->loop, keep->dir_fd, &keep->state, kept, keep);
	}
	if (*why)
		snprintf(buffer, CKT_MESSAGE_MAX, "%s", why);
	else
		snprintf(buffer, CKT_MESSAGE_MAX, "the replica of session %.12s at %.100s: %.300s",
			args->session, keep->peer->server->host,
			decision.answer ? decision.reason : strerror(result < 0 ? -result : 0));
	return result;
}

static bool is_lease(unsigned lease_ms)
{
	return lease_ms >= CKT_REPLICA_LEASE_MIN_S * 1000 &&
		lease_ms <= CKT_REPLICA_LEASE_MAX_S * 1000;
}

void ckt_control_replica_keep(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_replica_keep_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_result result;
	(void)passed_fd;
	int fd = begin(peer, args->session, false, &result, buffer);
	struct keep *keep = fd < 0 || !is_lease(args->lease_ms) ? NULL : calloc(1, sizeof *keep);
	if (keep) {
		*keep = (struct keep){
			.peer = peer, .dir_fd = fd, .lock_fd = -1, .lease_ms = args->lease_ms};
		ckt_peer_hold(peer);
		if (keep_start(keep, args, buffer) == 0)
			return;
		ckt_peer_release(peer);
		keep_free(keep);
		result = (ckt_control_result){CKT_CONTROL_REFUSED, buffer};
	} else if (fd >= 0) {
		close(fd);
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"a lease takes from %d s to %d s", CKT_REPLICA_LEASE_MIN_S,
			CKT_REPLICA_LEASE_MAX_S);
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

/* ---- LEASE and DROP */

void ckt_control_replica_lease(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_replica_lease_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_result result;
	(void)passed_fd;
	int fd = begin(peer, args->session, false, &result, buffer);
	if (fd >= 0) {
		int error = is_lease(args->lease_ms) ? write_mark(fd, args->session, args->lease_ms)
						     : -EINVAL;
		struct held *held = error ? NULL : find_or_make(args->session);
		if (held) {
			held->end_ms = ckt_net_now_ms() + args->lease_ms;
			held->when = time(NULL);
		} else {
			ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
				"the lease of session %.12s: %s", args->session,
				strerror(error ? -error : ENOMEM));
		}
		close(fd);
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

struct drop {
	struct ckt_peer *peer;
	int lock_fd;
};

static void dropped(void *context, int error)
{
	struct drop *drop = context;
	ckt_control_result result = {CKT_CONTROL_OK, (char *)""};
	(void)error;
	close(drop->lock_fd);
	if (ckt_peer_release(drop->peer))
		ckt_peer_reply(drop->peer, (xdrproc_t)xdr_ckt_control_result, &result);
	free(drop);
}

void ckt_control_replica_drop(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_session_args *args = decoded;
	struct ckt_server *server = peer->server;
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_result result;
	(void)passed_fd;
	int fd = begin(peer, args->session, false, &result, buffer);
	int lock = fd < 0 ? -1 : ckt_chain_lock(fd, false);
	struct drop *drop = lock < 0 ? NULL : malloc(sizeof *drop);
	int error = fd < 0 ? 0 : lock < 0 ? lock : drop ? 0 : -ENOMEM;
	if (drop) {
		*drop = (struct drop){peer, lock};
		ckt_peer_hold(peer);
		forget(args->session);
		error = ckt_chain_drop(
			&server->loop, server->automatic->dir_fd, fd, args->session, dropped, drop);
		if (error) {
			ckt_peer_release(peer);
			free(drop);
		}
	}
	if (fd >= 0)
		close(fd);
	if (drop && !error)
		return;
	if (lock >= 0)
		close(lock);
	if (error)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"the replica of session %.12s: %s", args->session, strerror(-error));
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}
