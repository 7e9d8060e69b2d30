/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions; see session.h. */
#include "server/daemon/session/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "cudacommon/visible_devices.h"
#include "rpc/greeting.h"
#include "rpc/worker_descriptors.h"
#include "server/daemon/durable/afresh.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/events.h"
#include "server/daemon/image/memory_images.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/session/compiler_process.h"
#include "server/daemon/session/group.h"
#include "server/daemon/session/group_domain.h"
#include "server/daemon/session/job.h"
#include "server/daemon/session/module_cache.h"
#include "server/daemon/session/owner_file.h"
#include "server/daemon/session/pause.h"
#include "server/daemon/session/restore_again.h"
#include "server/daemon/session/restore_claim.h"
#include "server/daemon/session/server_key.h"
#include "server/daemon/session/session_audit.h"
#include "server/daemon/session/session_marks.h"
#include "server/daemon/session/spawn.h"
#include "server/daemon/session/uid_group.h"
#include "server/daemon/session/spawn_cage.h"
#include "server/daemon/session/warm_workers.h"
#include "server/daemon/session/worker_request.h"

enum {
	/* the client of a new session waits longer; a restore reads the whole image */
	START_TIMEOUT_MS = CKT_HELLO_START_MS,
	KILL_TIMEOUT_MS = 5000, /* freeing a large context takes long */
	/*
	 * A worker without a client must be gone within ten seconds; the rest is for noticing and
	 * freeing.
	 */
	DETACHED_TIMEOUT_MS = 8000,
	CALL_TIMEOUT_MS = 10000,
};

static void session_path(const struct ckt_session *session, char ret_path[CKT_PATH_MAX])
{
	snprintf(ret_path, CKT_PATH_MAX, "%.4000s/%s.sock", session->server->socket_dir,
		session->id);
}

struct ckt_session *ckt_session_find(struct ckt_server *server, const char *id)
{
	for (struct ckt_session *session = server->sessions; session; session = session->next)
		if (strcmp(session->id, id) == 0)
			return session;
	return NULL;
}

static void session_insert(struct ckt_session *session)
{
	struct ckt_session **place = &session->server->sessions;
	while (*place && strcmp((*place)->id, session->id) < 0)
		place = &(*place)->next;
	session->next = *place;
	*place = session;
}

static void session_take_out(struct ckt_session *session)
{
	struct ckt_session **place = &session->server->sessions;
	while (*place && *place != session)
		place = &(*place)->next;
	if (*place)
		*place = session->next;
}

static int wait_add(struct ckt_wait **list, ckt_session_waiter call, void *context)
{
	struct ckt_wait *wait = calloc(1, sizeof *wait);
	if (!wait)
		return -ENOMEM;
	wait->call = call;
	wait->context = context;
	while (*list)
		list = &(*list)->next;
	*list = wait;
	return 0;
}

static void wait_call_all(
	struct ckt_wait **list, struct ckt_session *session, int error, const char *message)
{
	while (*list) {
		struct ckt_wait *wait = *list;
		*list = wait->next;
		wait->call(session, wait->context, error, message);
		free(wait);
	}
}

int ckt_session_wait_started(struct ckt_session *session, ckt_session_waiter call, void *context)
{
	if (session->phase == CKT_SESSION_STARTING)
		return wait_add(&session->on_started, call, context);
	if (session->phase == CKT_SESSION_ENDING)
		return -ESRCH;
	call(session, context, 0, "");
	return 0;
}

int ckt_session_wait_gone(struct ckt_session *session, ckt_session_waiter call, void *context)
{
	return wait_add(&session->on_gone, call, context);
}

/* ---- The end of a worker */

static void inherit_name(struct ckt_server *server, const char *id);

static void describe_end(
	struct ckt_session *session, char *ret_text, size_t text_size, bool *ret_bad)
{
	siginfo_t info = {0};
	*ret_bad = false;
	if (*session->end_reason) {
		snprintf(ret_text, text_size, "%s", session->end_reason);
		if (session->child)
			waitid((idtype_t)P_PIDFD, (id_t)session->pidfd.fd, &info,
				WEXITED | WNOHANG);
	} else if (session->child &&
		waitid((idtype_t)P_PIDFD, (id_t)session->pidfd.fd, &info, WEXITED | WNOHANG) == 0 &&
		info.si_pid) {
		if (info.si_code == CLD_EXITED && info.si_status == CKT_WORKER_CUT_OFF_STATUS) {
			session->cut_off = true;
			snprintf(ret_text, text_size, "exit code 0");
		} else if (info.si_code == CLD_EXITED) {
			*ret_bad = info.si_status != 0;
			snprintf(ret_text, text_size, "exit code %d", info.si_status);
		} else {
			*ret_bad = session->phase != CKT_SESSION_ENDING;
			snprintf(ret_text, text_size, "signal %d, %s", info.si_status,
				strsignal(info.si_status));
		}
	} else {
		snprintf(ret_text, text_size,
			"started by an earlier server, which alone could tell how it ended");
	}
}

static void session_free(struct ckt_session *session, bool keep_socket)
{
	char path[CKT_PATH_MAX];
	session_path(session, path);
	ckt_automatic_end(session, true);
	ckt_session_metrics_close(session);
	if (!keep_socket) {
		unlink(path);
		ckt_owner_file_remove(session->server, session->id);
		ckt_session_mark_remove(session->server, session->id, CKT_MARK_PAUSED, 0);
	}
	ckt_timer_clear(&session->timer);
	ckt_timer_clear(&session->pause_timer);
	for (int kind = 0; kind < CKT_LINKS; kind++)
		ckt_record_stream_fini(&session->links[kind].stream);
	ckt_refused_calls_close(&session->refused);
	ckt_group_close(session);
	ckt_lease_close(session);
	ckt_turn_close(session);
	ckt_swap_close(session);
	int fd = ckt_loop_remove(&session->server->loop, &session->pidfd);
	if (fd >= 0)
		close(fd);
	xdr_free((xdrproc_t)xdr_ckt_worker_status_res, &session->status);
	free(session->job_hold);
	/* Kills what the worker left there, which has its user id. */
	ckt_worker_cgroup_remove(session->server, session->cgroup);
	ckt_group_domain_leave(session->domain);
	ckt_uid_group_leave(session->uid_group);
	ckt_restore_again_destroy(session->again);
	free(session);
}

static void worker_gone(struct ckt_source *source, uint32_t events)
{
	struct ckt_session *session = CKT_CONTAINER(source, struct ckt_session, pidfd);
	struct ckt_server *server = session->server;
	char how[CKT_BOUNDS_WHY], message[256];
	bool bad;
	(void)events;
	describe_end(session, how, sizeof how, &bad);
	ckt_session_metrics_close(session);
	if (session->warm) {
		ckt_timer_clear(&session->timer);
		ckt_daemon_request_fail_all(session, -ECONNRESET);
		ckt_warm_gone(session, how);
		session_free(session, false);
		return;
	}
	ckt_log(bad ? CKT_LOG_WARNING : CKT_LOG_INFO, "session %s: worker %d ended (%s)",
		session->id, (int)session->pid, how);
	snprintf(message, sizeof message, "the session's worker ended (%s)", how);
	session_take_out(session);
	server->session_count--;
	ckt_timer_clear(&session->timer);
	ckt_lease_close(session);
	ckt_turn_close(session);
	ckt_daemon_request_fail_all(session, -ECONNRESET);
	bool crashed = bad || (!session->child && session->phase == CKT_SESSION_LIVE);
	ckt_afresh_note_end(session, crashed);
	ckt_automatic_end(session, crashed);
	wait_call_all(&session->on_started, session, session->failure ? session->failure : -EIO,
		session->failure ? session->failure_message : message);
	wait_call_all(&session->on_gone, session, 0, message);
	ckt_daemon_event(session,
		bad && !session->failure       ? CKT_EVENT_LOST
			: session->sleep.falls ? CKT_EVENT_ASLEEP
					       : CKT_EVENT_ENDED,
		"%s", session->sleep.falls ? "it was idle for the time of --idle-context" : how);
	char id[CKT_SESSION_ID_SIZE + 1];
	strcpy(id, session->id);
	session_free(session, false);
	inherit_name(server, id);
	ckt_warm_session_gone(server);
	ckt_server_session_gone(server);
}

static void kill_now(struct ckt_timer *timer)
{
	struct ckt_session *session = CKT_CONTAINER(timer, struct ckt_session, timer);
	ckt_warning(
		"session %s: killed worker %d, which did not end", session->id, (int)session->pid);
	syscall(SYS_pidfd_send_signal, session->pidfd.fd, SIGKILL, NULL, 0);
}

static void kill_answered(struct ckt_session *session, void *context, int error, void *result)
{
	(void)session, (void)context, (void)error, (void)result;
}

void ckt_session_kill(struct ckt_session *session, const char *why)
{
	if (session->phase == CKT_SESSION_ENDING)
		return;
	ckt_info("session %s: ending it: %s", session->id, why);
	session->phase = CKT_SESSION_ENDING;
	session->timer.fire = kill_now;
	int result = ckt_session_call(
		session, CKT_WORKER_KILL, NULL, NULL, -1, NULL, 0, 0, kill_answered, NULL);
	ckt_timer_set(&session->server->loop, &session->timer, result ? 0 : KILL_TIMEOUT_MS);
}

void ckt_session_give_up(struct ckt_session *session, const char *why)
{
	session->cut_off = true;
	ckt_session_kill(session, why);
}

bool ckt_session_may_return(const struct ckt_session *session, bool crashed)
{
	return crashed || session->cut_off || session->failure ||
		(session->server->killing && session->phase == CKT_SESSION_ENDING);
}

void ckt_session_expect_end(struct ckt_session *session)
{
	if (session->phase == CKT_SESSION_ENDING)
		return;
	session->phase = CKT_SESSION_ENDING;
	session->timer.fire = kill_now;
	ckt_timer_set(&session->server->loop, &session->timer, KILL_TIMEOUT_MS);
}

/* ---- The start of a worker */

static int watch(struct ckt_session *session, pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	session->pid = pid;
	session->pidfd = (struct ckt_source){.fd = fd, .ready = worker_gone};
	int result = ckt_loop_add(&session->server->loop, &session->pidfd, EPOLLIN);
	if (result) {
		close(fd);
		session->pidfd.fd = -1;
	}
	return result;
}

static void session_refuse(struct ckt_session *session, int error, const char *message)
{
	ckt_warning("session %s: not started: %s", session->id, message);
	session->failure = error;
	snprintf(session->failure_message, sizeof session->failure_message, "%s", message);
	ckt_session_kill(session, "not started");
}

static void start_late(struct ckt_timer *timer)
{
	session_refuse(CKT_CONTAINER(timer, struct ckt_session, timer), -ETIMEDOUT,
		"the worker did not get ready in time");
}

static void ignore_answer(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context, (void)result;
	if (error)
		ckt_warning("session %s: its worker does not accept its owner: %s", session->id,
			strerror(-error));
}

/* For images, which people look into. */
static int tell_owner_name(struct ckt_session *session)
{
	char name[CKT_OWNER_NAME_SIZE];
	ckt_owner_text(session->server, session->uid, name);
	struct ckt_worker_owner_name_args args = {
		.name = name, .project = (char *)ckt_tokens_project(session->server, session->uid)};
	return ckt_session_call(session, CKT_WORKER_OWNER_NAME,
		(xdrproc_t)xdr_ckt_worker_owner_name_args, &args, -1, NULL, 0, CALL_TIMEOUT_MS,
		ignore_answer, NULL);
}

/* Tells the worker its owner, and our seal of that for its images. */
static int tell_owner(struct ckt_session *session)
{
	struct ckt_worker_owner_args args = {.uid = session->uid};
	ckt_owner_file_write(session);
	/* An ID that only an image named must not come back with our seal. */
	if (session->proven)
		ckt_server_key_seal(session->server, session->id, session->uid,
			session->secret_hash, session->generation, &args);
	int result =
		ckt_session_call(session, CKT_WORKER_OWNER, (xdrproc_t)xdr_ckt_worker_owner_args,
			&args, -1, NULL, 0, CALL_TIMEOUT_MS, ignore_answer, NULL);
	/* A worker that an earlier server started may not know these calls. */
	if (!result && session->child)
		result = tell_owner_name(session);
	if (!result && session->child)
		result = ckt_module_cache_open(session);
	return result;
}

static void remove_marks(struct ckt_session *session)
{
	static const enum ckt_session_mark marks[] = {CKT_MARK_PARKED, CKT_MARK_MOVED};
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		bool any = session->claimant.for_others ||
			(session->proven &&
				!ckt_session_mark_is_proven(
					session->server, session->id, marks[i]));
		ckt_session_mark_remove(
			session->server, session->id, marks[i], any ? 0 : session->uid);
	}
}

static void session_live(struct ckt_session *session)
{
	ckt_timer_clear(&session->timer);
	session->phase = CKT_SESSION_LIVE;
	ckt_info("session %s: worker %d ready%s", session->id, (int)session->pid,
		session->restore ? ", restored" : "");
	if (session->restore && !*session->successor_of)
		remove_marks(session);
	ckt_session_metrics_open(session);
	ckt_automatic_begin(session);
	ckt_quantum_watch(session);
	ckt_daemon_event(session, session->restore ? CKT_EVENT_RESTORED : CKT_EVENT_STARTED,
		"worker %d", (int)session->pid);
	wait_call_all(&session->on_started, session, 0, "");
}

static int take_name(struct ckt_session *session, const char *id)
{
	char old_path[CKT_PATH_MAX], new_path[CKT_PATH_MAX];
	session_path(session, old_path);
	session_take_out(session);
	ckt_owner_file_remove(session->server, session->id);
	snprintf(session->id, sizeof session->id, "%s", id);
	session_insert(session);
	session_path(session, new_path);
	ckt_owner_file_write(session);
	return rename(old_path, new_path) ? -errno : 0;
}

static void inherit_name(struct ckt_server *server, const char *id)
{
	for (struct ckt_session *session = server->sessions; session; session = session->next) {
		if (strcmp(session->successor_of, id) != 0)
			continue;
		session->successor_of[0] = 0;
		ckt_info("session %s: continues as worker %d", id, (int)session->pid);
		if (take_name(session, id))
			ckt_session_kill(session, "cannot rename its socket");
		tell_owner(session);
		remove_marks(session);
		ckt_automatic_begin(session);
		return;
	}
}

/* The image names the session; until then the socket has a temporary name. */
static void restored_named(struct ckt_session *session, void *context, int error, void *result)
{
	struct ckt_worker_origin_res *origin = result;
	struct ckt_session *other = NULL;
	char message[CKT_MESSAGE_MAX];
	bool end = false;
	(void)context;
	if (session->phase != CKT_SESSION_STARTING)
		return;
	if (error || strlen(origin->session) != CKT_SESSION_ID_SIZE ||
		strspn(origin->session, "0123456789abcdef") != CKT_SESSION_ID_SIZE) {
		session_refuse(session, error ? error : -EPROTO,
			"the restored worker does not name its session");
		return;
	}
	/* Another session's worker may have written it. */
	if (*session->bond.session && strcmp(session->bond.session, origin->session) != 0) {
		session_refuse(session, -EBADMSG,
			"the image names another session than the one that its key vouches for");
		return;
	}
	memcpy(session->secret_hash, origin->secret_hash, sizeof session->secret_hash);
	session->generation = origin->generation + 1;
	if (session->chain && session->generation < session->chain->state.generation)
		session->generation = session->chain->state.generation;
	if (!ckt_automatic_fits(session, origin, message)) {
		session_refuse(session, -EBADMSG, message);
		return;
	}
	int claim = ckt_claim_check(session, origin, &other, &end, message);
	if (claim < 0) {
		session->claim_refused = true;
		session_refuse(session, claim, message);
		return;
	}
	if (claim) {
		strcpy(session->successor_of, origin->session);
		if (end)
			ckt_session_kill(other,
				session->proven && !other->proven
					? "its id belongs to another session"
					: "a newer state of the session replaces it");
	} else if (strcmp(origin->session, session->id) != 0 &&
		take_name(session, origin->session)) {
		session_refuse(session, -EIO, "cannot rename the session's socket");
		return;
	}
	if (!claim)
		tell_owner(session);
	session_live(session);
}

static void start_afresh(struct ckt_source *source, uint32_t events);

/* Whether the worker has done the first calls of its start; if not, its waiters are told. */
static bool has_answered(
	struct ckt_session *session, int error, const struct ckt_worker_start_res *res)
{
	/* If the worker is dead, worker_gone tells the waiters how it ended. */
	if (session->phase != CKT_SESSION_STARTING || error == -ECONNRESET)
		return false;
	if (!error && !res->status) {
		ckt_restore_again_destroy(session->again);
		session->again = NULL;
		return true;
	}
	if (!error && res->status == -EXDEV && session->again) {
		ckt_info("session %s: %s", session->id, res->message);
		session->pidfd.ready = start_afresh;
		syscall(SYS_pidfd_send_signal, session->pidfd.fd, SIGKILL, NULL, 0);
		return false;
	}
	session_refuse(session,
		error                     ? error
			: res->status > 0 ? -EPROTO
					  : res->status,
		error ? "the worker did not understand the server" : res->message);
	return false;
}

static void started(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context;
	if (!has_answered(session, error, result))
		return;
	if (session->restore &&
		ckt_session_call(session, CKT_WORKER_ORIGIN, NULL, NULL, -1,
			(xdrproc_t)xdr_ckt_worker_origin_res, sizeof(struct ckt_worker_origin_res),
			CALL_TIMEOUT_MS, restored_named, NULL) == 0)
		return;
	if (session->restore)
		session_refuse(session, -EIO, "the restored worker does not answer");
	else
		session_live(session);
}

/* It stays STARTING: more images come. */
static void preloaded(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context;
	session->preloading = false;
	if (!has_answered(session, error, result))
		return;
	ckt_timer_clear(&session->timer);
	ckt_info("session %s: worker %d has preloaded an image", session->id, (int)session->pid);
	wait_call_all(&session->on_started, session, 0, "");
}

/* Random, or the secret's next ID. */
static int make_id(
	struct ckt_server *server, const uint8_t *secret_hash, char ret_id[CKT_SESSION_ID_SIZE + 1])
{
	uint8_t bytes[CKT_SESSION_ID_SIZE / 2];
	for (unsigned i = 0; secret_hash && i < CKT_SESSION_ID_TRIES; i++) {
		ckt_server_key_session_id(secret_hash, i, ret_id);
		if (!ckt_session_find(server, ret_id) && !ckt_session_mark_exists(server, ret_id))
			return 0;
	}
	if (secret_hash)
		return -EADDRINUSE;
	do {
		if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
			return -EIO;
		for (size_t i = 0; i < sizeof bytes; i++)
			snprintf(ret_id + 2 * i, 3, "%02x", bytes[i]);
	} while (ckt_session_find(server, ret_id));
	return 0;
}

static void image_taken(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_worker_result *res = answer;
	(void)context;
	if (session->phase == CKT_SESSION_STARTING && !error && res->status)
		session_refuse(session, res->status, res->message);
}

/* A chain goes to the worker image by image, before START. */
static int send_images(struct ckt_session *session, const struct ckt_session_spec *spec)
{
	for (u_int i = 0; spec->image_count > 1 && i < spec->image_count; i++) {
		struct ckt_worker_image_args args = {.index = i};
		int fd = fcntl(spec->image_fds[i], F_DUPFD_CLOEXEC, 3);
		int result = fd < 0
			? -errno
			: ckt_session_call(session, CKT_WORKER_IMAGE,
				  (xdrproc_t)xdr_ckt_worker_image_args, &args, fd,
				  (xdrproc_t)xdr_ckt_worker_result,
				  sizeof(struct ckt_worker_result), 0, image_taken, NULL);
		if (result)
			return result;
	}
	return 0;
}

/* Before START: no byte of another manifest is looked at. */
static int send_bond(struct ckt_session *session, const struct ckt_image_bond *bond)
{
	struct ckt_worker_manifest_args args = {.expect = true};
	session->bond = *bond;
	memcpy(args.hash, bond->hash, sizeof args.hash);
	return bond->set ? ckt_session_call(session, CKT_WORKER_MANIFEST,
				   (xdrproc_t)xdr_ckt_worker_manifest_args, &args, -1,
				   (xdrproc_t)xdr_ckt_worker_manifest_res,
				   sizeof(struct ckt_worker_manifest_res), 0, image_taken, NULL)
			 : 0;
}

static void ask_share(const struct ckt_session *session, struct ckt_share *ret_share)
{
	const struct ckt_limit_subject subject = ckt_lease_subject(session);
	ckt_ask_share(session->server, &session->identity, &subject, ret_share);
}

/* Joins the pieces of the client's CUDA_VISIBLE_DEVICES; false if it sent none. */
static bool visible_text(const ckt_hello_args *hello, char ret_text[CKT_VISIBLE_TEXT_MAX + 1])
{
	size_t used = 0;
	bool any = false;
	for (u_int i = 0; i < hello->capabilities.capabilities_len; i++) {
		const ckt_capability *c = &hello->capabilities.capabilities_val[i];
		if (strncmp(c->name, CKT_VISIBLE_CAPABILITY, strlen(CKT_VISIBLE_CAPABILITY)) != 0)
			continue;
		const char *piece = c->name + strlen(CKT_VISIBLE_CAPABILITY);
		size_t length = strlen(piece);
		any = true;
		if (length > CKT_VISIBLE_TEXT_MAX - used)
			break;
		memcpy(ret_text + used, piece, length);
		used += length;
	}
	ret_text[used] = 0;
	return any;
}

/*
 * A program may see fewer GPUs than the server gives it, in an order of its own, but never more.
 * -ENODEV if none remains, -EINVAL if one is named twice.
 */
static int narrow(struct ckt_session *session, const ckt_hello_args *hello)
{
	struct ckt_server *server = session->server;
	char text[CKT_VISIBLE_TEXT_MAX + 1];
	u_int chosen[CKT_DEVICES_MAX];
	struct ckt_share share;
	uint8_t uuids[CKT_DEVICES_MAX][CKT_VISIBLE_UUID];
	if (!visible_text(hello, text))
		return 0;
	ask_share(session, &share);
	for (u_int i = 0; i < share.gpu_count; i++)
		memcpy(uuids[i], server->driver.gpus[share.gpus[i]].uuid, CKT_VISIBLE_UUID);
	session->narrowed = true;
	int visible = ckt_visible_select(text, uuids, share.gpu_count, chosen);
	if (visible < 0)
		return visible;
	session->visible_count = (unsigned)visible;
	for (u_int i = 0; i < session->visible_count; i++)
		session->visible[i] = share.gpus[chosen[i]];
	return session->visible_count ? 0 : -ENODEV;
}

/*
 * The server's GPUs; the requested one changes places with the first, so that a session's further
 * ones stay.
 */
static u_int list_gpus(const struct ckt_session *session, struct ckt_share *share)
{
	u_int wanted = (u_int)session->gpu;
	if (session->narrowed) {
		memcpy(share->gpus, session->visible, session->visible_count * sizeof *share->gpus);
		return session->visible_count;
	}
	const struct ckt_server *server = session->server;
	if (session->gpu < 0 && !server->gpu_count && share->gpu_count == server->driver.gpu_count)
		return 0; /* the worker uses what exists */
	for (u_int i = 0; i < share->gpu_count && session->gpu >= 0; i++)
		if (share->gpus[i] == wanted) {
			share->gpus[i] = share->gpus[0];
			share->gpus[0] = wanted;
			break;
		}
	return share->gpu_count;
}

unsigned ckt_session_gpus(const struct ckt_session *session, unsigned ret_gpus[CKT_DEVICES_MAX])
{
	struct ckt_share share;
	ask_share(session, &share);
	u_int count = list_gpus(session, &share);
	if (!count)
		count = share.gpu_count;
	memcpy(ret_gpus, share.gpus, count * sizeof *ret_gpus);
	return count;
}

static int send_start(struct ckt_session *session, int image_fd, bool ahead)
{
	struct ckt_server *server = session->server;
	char path[CKT_PATH_MAX];
	struct ckt_share share;
	int pass_fd = -1;
	session_path(session, path);
	ask_share(session, &share);
	if (image_fd >= 0) {
		pass_fd = fcntl(image_fd, F_DUPFD_CLOEXEC, 3);
		if (pass_fd < 0)
			return -errno;
	}
	struct ckt_worker_start_args args = {
		.session = session->restore ? "" : session->id,
		.socket = path,
		.driver = server->driver.path,
		.gpus = {.gpus_len = list_gpus(session, &share), .gpus_val = share.gpus},
		.memory_limit_bytes = share.device_memory_bytes,
		.claim_timeout_ms = session->restore ? server->options.claim_timeout * 1000
						     : DETACHED_TIMEOUT_MS,
		.disconnect_timeout_ms = DETACHED_TIMEOUT_MS,
		.restore = session->restore,
		.host_memory_bytes = share.host_memory_bytes,
		.staging_bytes = server->options.staging,
	};
	int result = ckt_session_call(session, ahead ? CKT_WORKER_PRELOAD : CKT_WORKER_START,
		(xdrproc_t)xdr_ckt_worker_start_args, &args, pass_fd,
		(xdrproc_t)xdr_ckt_worker_start_res, sizeof(struct ckt_worker_start_res), 0,
		ahead ? preloaded : started, NULL);
	session->preloading = ahead && !result;
	return result;
}

int ckt_session_preload(struct ckt_session *session, const struct ckt_session_spec *spec)
{
	session->timer.fire = start_late;
	ckt_timer_set(&session->server->loop, &session->timer, START_TIMEOUT_MS);
	int result = send_images(session, spec);
	if (!result)
		result = send_bond(session, &spec->bond);
	if (!result)
		result = send_start(session, spec->image_fd, spec->ahead);
	if (result)
		ckt_session_give_up(session, "cannot reach its worker");
	return result;
}

static char *copy(const char *text)
{
	return strdup(text ? text : "");
}

/* Copies what is listed of a session; without memory it stays as it was. */
static void replace(char **text, const char *by)
{
	char *new = copy(by);
	if (!new)
		return;
	free(*text);
	*text = new;
}

static struct ckt_session *session_new(struct ckt_server *server, const char *id)
{
	struct ckt_session *session = calloc(1, sizeof *session);
	if (!session)
		return NULL;
	session->server = server;
	session->serial = ++server->session_serial;
	session->pidfd.fd = -1;
	for (int kind = 0; kind < CKT_LINKS; kind++)
		session->links[kind].stream.source.fd = -1;
	ckt_refused_calls_init(&session->refused, server, session->id);
	session->uid = CKT_UID_UNKNOWN;
	session->gpu = -1;
	session->started = time(NULL);
	snprintf(session->id, sizeof session->id, "%s", id);
	session->status = (struct ckt_worker_status_res){.session = copy(id),
		.program_name = copy(""),
		.client = copy(""),
		.note = copy(""),
		.uid = CKT_UID_UNKNOWN,
		.started = session->started};
	const struct ckt_worker_status_res *status = &session->status;
	if (!status->session || !status->program_name || !status->client || !status->note) {
		xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&session->status);
		free(session);
		return NULL;
	}
	return session;
}

/*
 * /proc/net/unix shows everybody the name to which a socket was bound, so that name is random; only
 * users who may enter the directory see the file's later name.
 */
static int listen_for(
	const struct ckt_session *session, int *ret_fd, char *ret_message, size_t message_size)
{
	struct ckt_address address = {.type = CKT_ADDRESS_UNIX};
	char path[CKT_PATH_MAX];
	uint32_t number;
	if (getrandom(&number, sizeof number, 0) != sizeof number)
		return -EIO;
	snprintf(address.host, sizeof address.host, "%.230s/new-%08x", session->server->socket_dir,
		number);
	int result = ckt_net_listen(&address, 0600, ret_fd, ret_message, message_size);
	if (result)
		return result;
	session_path(session, path);
	if (rename(address.host, path) == 0)
		return 0;
	result = -errno;
	snprintf(ret_message, message_size, "%s: %s", path, strerror(-result));
	unlink(address.host);
	close(*ret_fd);
	return result;
}

/* Belongs to the session and the process from here on: the caller's wishes. */
static void take_spec(struct ckt_session *session, const struct ckt_session_spec *spec)
{
	struct ckt_share share;
	session->uid = spec->uid;
	session->identity = spec->identity;
	session->claimant = spec->claimant;
	session->proven = spec->hello != NULL;
	session->generation = spec->afresh ? spec->hello->generation + 1 : 1;
	session->restore = spec->image_fd >= 0 || spec->kept;
	session->chain = spec->chain;
	if (spec->chain)
		spec->chain->session = session;
	session->child = true;
	session->gpu = spec->gpu;
	if (spec->hello)
		ckt_daemon_job_of_hello(spec->hello, session->job);
	snprintf(session->container, sizeof session->container, "%s",
		spec->container ? spec->container : "");
	ask_share(session, &share);
	session->status.gpu = spec->gpu >= 0 ? spec->gpu : share.gpu_count ? (int)share.gpus[0] : 0;
}

/* What the client says about itself.  0, or as narrow() with the reason. */
static int take_hello(struct ckt_session *session, const ckt_hello_args *hello, char *ret_message,
	size_t message_size)
{
	int result = narrow(session, hello);
	if (result) {
		snprintf(ret_message, message_size,
			result == -ENODEV ? "CUDA_VISIBLE_DEVICES leaves none of the GPUs of %s"
					  : "CUDA_VISIBLE_DEVICES names a GPU of %s twice",
			session->server->host);
		return result;
	}
	if (session->visible_count)
		session->status.gpu = (int)session->visible[0];
	session->asks_for_images = ckt_automatic_is_asked(hello);
	replace(&session->status.program_name, hello->program_name);
	replace(&session->status.client, hello->host);
	session->status.client_pid = hello->pid;
	return 0;
}

/* The session with its id, and no worker yet. */
static int session_from_spec(struct ckt_server *server, const struct ckt_session_spec *spec,
	struct ckt_session **ret_session, char *ret_message, size_t message_size)
{
	char id[CKT_SESSION_ID_SIZE + 1] = "";
	uint8_t secret_hash[CKT_SECRET_HASH_SIZE] = {0};
	if (spec->hello)
		ckt_auth_hash(spec->hello->secret, CKT_SECRET_SIZE, secret_hash);
	if (spec->afresh)
		snprintf(id, sizeof id, "%s", spec->hello->session);
	int result = spec->afresh ? 0 : make_id(server, spec->hello ? secret_hash : NULL, id);
	if (result == -EADDRINUSE) {
		snprintf(ret_message, message_size,
			"%d sessions already have this client's secret: choose another "
			"one",
			CKT_SESSION_ID_TRIES);
		return result;
	}
	struct ckt_session *session = result ? NULL : session_new(server, id);
	if (!session) {
		if (spec->chain)
			ckt_automatic_leave(spec->chain);
		snprintf(ret_message, message_size, "out of memory");
		return -ENOMEM;
	}
	memcpy(session->secret_hash, secret_hash, sizeof secret_hash);
	take_spec(session, spec);
	result = spec->hello ? take_hello(session, spec->hello, ret_message, message_size) : 0;
	if (result)
		session_free(session, false);
	else
		*ret_session = session;
	return result;
}

/* Without a compiler the soft GPU interprets. */
static int spawn_with(struct ckt_session *session, const struct ckt_worker_user *user,
	struct ckt_spawn_descriptors *passed, char *ret_message, size_t message_size)
{
	passed->compiler = ckt_compiler_connect(session->server->compiler);
	int result = ckt_group_domain_join(session->server, &session->identity, user,
		&session->domain, ret_message, message_size);
	passed->domain = session->domain;
	if (!result)
		result = ckt_spawn_worker(session->server, &session->identity, user, passed,
			&session->pid, ret_message, message_size);
	if (passed->compiler >= 0)
		close(passed->compiler);
	return result;
}

static struct ckt_cgroup_limits cgroup_limits(const struct ckt_session *session)
{
	struct ckt_share share;
	ask_share(session, &share);
	return ckt_worker_cgroup_limits(
		session->server, share.host_memory_bytes, share.device_memory_bytes);
}

static int make_cgroup(struct ckt_session *session, char *ret_message, size_t message_size)
{
	struct ckt_server *server = session->server;
	const struct ckt_cgroup_limits limits = cgroup_limits(session);
	int result = ckt_worker_cgroup_create(server, session->serial, &limits, session->cgroup);
	if (result)
		snprintf(ret_message, message_size,
			"cannot make a cgroup for its worker in %.300s: %s", server->cgroup_dir,
			strerror(-result));
	return result;
}

static int spawn(struct ckt_session *session, char *ret_message, size_t message_size)
{
	struct ckt_spawn_descriptors passed = {.listener = -1, .refused = -1, .compiler = -1};
	struct ckt_worker_user user;
	ckt_worker_bounds_make_room(session->server);
	int result = ckt_uid_group_join(session->server, &session->identity, &session->uid_group,
		ret_message, message_size);
	if (result == -EUSERS && !session->warm && ckt_warm_free_ids(session->server))
		result = ckt_uid_group_join(session->server, &session->identity,
			&session->uid_group, ret_message, message_size);
	if (!result)
		result = make_cgroup(session, ret_message, message_size);
	if (!result)
		result = listen_for(session, &passed.listener, ret_message, message_size);
	if (result)
		return result;
	passed.cgroup = session->cgroup;
	ckt_uid_group_user(session->server, session->uid_group, &user);
	/* Workers may rely on blocking mode. */
	fcntl(passed.listener, F_SETFL, fcntl(passed.listener, F_GETFL) & ~O_NONBLOCK);
	if (ckt_spawn_cage_is_on(session->server))
		result = ckt_refused_calls_open(&session->refused, &passed.refused);
	if (result)
		snprintf(ret_message, message_size, "cannot make a socket for its worker: %s",
			strerror(-result));
	else
		result = spawn_with(session, &user, &passed, ret_message, message_size);
	close(passed.listener);
	if (passed.refused >= 0)
		close(passed.refused);
	return result;
}

/* Tells the new worker what it becomes.  On failure worker_gone cleans up. */
static int tell(struct ckt_session *session, const struct ckt_session_spec *spec)
{
	int result = tell_owner(session);
	if (!result)
		result = ckt_automatic_tell(session);
	if (!result)
		result = ckt_afresh_tell(session, spec);
	if (!result)
		result = ckt_group_open(session);
	if (!result)
		result = ckt_lease_open(session);
	if (!result)
		result = ckt_turn_open(session);
	if (!result)
		result = spec->kept ? ckt_memory_image_send(spec->kept, session)
				    : send_images(session, spec);
	if (!result)
		result = send_bond(session, &spec->bond);
	if (!result)
		result = send_start(session, spec->image_fd, spec->ahead);
	if (result)
		ckt_session_give_up(session, "cannot reach its worker");
	return result;
}

static int start(struct ckt_session *session, const struct ckt_session_spec *spec)
{
	struct ckt_server *server = session->server;
	session_insert(session);
	server->session_count++;
	session->timer.fire = start_late;
	ckt_timer_set(&server->loop, &session->timer, START_TIMEOUT_MS);
	return tell(session, spec);
}

/* On failure the session is freed. */
static int spawn_watched(struct ckt_session *session, char *ret_message, size_t message_size)
{
	int result = spawn(session, ret_message, message_size);
	if (result) {
		session_free(session, false);
		return result;
	}
	result = watch(session, session->pid);
	if (result) {
		snprintf(ret_message, message_size, "cannot reach the new worker: %s",
			strerror(-result));
		kill(session->pid, SIGKILL);
		waitpid(session->pid, NULL, 0);
		session_free(session, false);
	}
	return result;
}

/* ---- Warm workers */

static void warm_late(struct ckt_timer *timer)
{
	struct ckt_session *session = CKT_CONTAINER(timer, struct ckt_session, timer);
	syscall(SYS_pidfd_send_signal, session->pidfd.fd, SIGKILL, NULL, 0);
}

static void warmed(struct ckt_session *session, void *context, int error, void *result)
{
	const struct ckt_worker_start_res *res = result;
	const char *message = error ? "it did not understand the server" : res->message;
	(void)context;
	if (!error)
		error = res->status > 0 ? -EPROTO : res->status;
	/* If it is dead, worker_gone says how it ended. */
	if (error == -ECONNRESET)
		return;
	if (session->warm && session->phase == CKT_SESSION_WARMING) {
		ckt_timer_clear(&session->timer);
		session->phase = error ? CKT_SESSION_WARMING : CKT_SESSION_WARM;
		ckt_warm_ready(session, error, message);
	} else if (error && session->phase == CKT_SESSION_STARTING) {
		session_refuse(session, error, message);
	}
}

static int send_warm(struct ckt_session *session)
{
	struct ckt_server *server = session->server;
	char path[CKT_PATH_MAX];
	struct ckt_share share;
	session_path(session, path);
	ask_share(session, &share);
	struct ckt_worker_start_args args = {
		.session = "",
		.socket = path,
		.driver = server->driver.path,
		.gpus = {.gpus_len = list_gpus(session, &share), .gpus_val = share.gpus},
		.staging_bytes = server->options.staging,
	};
	session->timer.fire = warm_late;
	ckt_timer_set(&server->loop, &session->timer, START_TIMEOUT_MS);
	return ckt_session_call(session, CKT_WORKER_WARM, (xdrproc_t)xdr_ckt_worker_start_args,
		&args, -1, (xdrproc_t)xdr_ckt_worker_start_res, sizeof(struct ckt_worker_start_res),
		0, warmed, NULL);
}

int ckt_session_create_warm(struct ckt_server *server, const struct ckt_warm_spec *spec,
	struct ckt_session **ret_session, char *ret_message, size_t message_size)
{
	char id[CKT_SESSION_ID_SIZE + 1];
	unsigned all[CKT_DEVICES_MAX];
	/* No session's ID, so that the next server does not take it for one. */
	snprintf(id, sizeof id, "warm-%07x", (unsigned)(server->session_serial + 1) & 0xfffffff);
	struct ckt_session *session = session_new(server, id);
	if (!session) {
		snprintf(ret_message, message_size, "out of memory");
		return -ENOMEM;
	}
	session->identity = spec->owner;
	session->child = session->warm = true;
	session->phase = CKT_SESSION_WARMING;
	session->narrowed = ckt_session_gpus(session, all) != spec->gpu_count ||
		memcmp(all, spec->gpus, spec->gpu_count * sizeof *all) != 0;
	session->visible_count = session->narrowed ? spec->gpu_count : 0;
	memcpy(session->visible, spec->gpus, session->visible_count * sizeof *session->visible);
	int result = spawn_watched(session, ret_message, message_size);
	if (result)
		return result;
	*ret_session = session;
	if (send_warm(session))
		warm_late(&session->timer);
	return 0;
}

void ckt_session_end_warm(struct ckt_session *session, const char *why)
{
	if (session->phase == CKT_SESSION_ENDING)
		return;
	ckt_debug("warm worker %d: ending it: %s", (int)session->pid, why);
	session->phase = CKT_SESSION_ENDING;
	syscall(SYS_pidfd_send_signal, session->pidfd.fd, SIGKILL, NULL, 0);
}

void ckt_session_await_warm_end(struct ckt_session *session)
{
	struct pollfd dead = {.fd = session->pidfd.fd, .events = POLLIN};
	ckt_session_end_warm(session, "it is waited for");
	poll(&dead, 1, KILL_TIMEOUT_MS);
	worker_gone(&session->pidfd, EPOLLIN);
}

/* All that is the session's, and not its worker's. */
static void become(struct ckt_session *worker, struct ckt_session *wanted)
{
	struct ckt_worker_status_res status = worker->status;
	worker->status = wanted->status;
	wanted->status = status;
	strcpy(worker->id, wanted->id);
	strcpy(worker->job, wanted->job);
	worker->serial = wanted->serial;
	worker->started = wanted->started;
	worker->uid = wanted->uid;
	worker->identity = wanted->identity;
	worker->claimant = wanted->claimant;
	worker->proven = wanted->proven;
	worker->unclaimed = wanted->unclaimed;
	worker->restore = wanted->restore;
	worker->generation = wanted->generation;
	memcpy(worker->secret_hash, wanted->secret_hash, sizeof worker->secret_hash);
	worker->gpu = wanted->gpu;
	worker->narrowed = wanted->narrowed;
	worker->visible_count = wanted->visible_count;
	memcpy(worker->visible, wanted->visible, sizeof worker->visible);
	worker->warm = false;
	worker->chain = wanted->chain;
	worker->asks_for_images = wanted->asks_for_images;
	wanted->chain = NULL;
	if (worker->chain)
		worker->chain->session = worker;
	worker->phase = CKT_SESSION_STARTING;
}

/* A warm worker that fits becomes the session, which it replaces. */
static bool take_warm(struct ckt_session **session)
{
	struct ckt_session *wanted = *session;
	struct ckt_session *worker = ckt_warm_take(wanted->server, wanted);
	char old_path[CKT_PATH_MAX], new_path[CKT_PATH_MAX];
	if (!worker)
		return false;
	session_path(worker, old_path);
	session_path(wanted, new_path);
	if (rename(old_path, new_path)) {
		ckt_session_await_warm_end(worker);
		return false;
	}
	become(worker, wanted);
	session_free(wanted, true);
	*session = worker;
	const struct ckt_cgroup_limits limits = cgroup_limits(worker);
	ckt_worker_cgroup_limit(worker->server, worker->cgroup, &limits);
	return true;
}

/* The worker is gone, and the session has no other part of it but its group's. */
static int replace_worker(struct ckt_session *session, char *ret_message, size_t message_size)
{
	struct ckt_uid_group *uid_group = session->uid_group;
	struct ckt_group_domain *domain = session->domain;
	ckt_daemon_request_fail_all(session, -ECONNRESET);
	for (int kind = 0; kind < CKT_LINKS; kind++)
		ckt_record_stream_fini(&session->links[kind].stream);
	ckt_refused_calls_close(&session->refused);
	ckt_refused_calls_init(&session->refused, session->server, session->id);
	ckt_group_close(session);
	ckt_worker_cgroup_remove(session->server, session->cgroup);
	session->cgroup[0] = 0;
	session->serial = ++session->server->session_serial;
	session->domain = NULL;
	int result = spawn(session, ret_message, message_size);
	ckt_group_domain_leave(domain);
	ckt_uid_group_leave(uid_group);
	if (!result && (result = watch(session, session->pid))) {
		kill(session->pid, SIGKILL);
		waitpid(session->pid, NULL, 0);
	}
	return result;
}

/* The warm worker that could not take the restore has ended: a fresh one can. */
static void start_afresh(struct ckt_source *source, uint32_t events)
{
	struct ckt_session *session = CKT_CONTAINER(source, struct ckt_session, pidfd);
	struct ckt_session_spec spec;
	char how[128], message[CKT_MESSAGE_MAX] = "the image in memory is gone";
	bool bad;
	if (session->phase != CKT_SESSION_STARTING) {
		worker_gone(source, events);
		return;
	}
	describe_end(session, how, sizeof how, &bad);
	int fd = ckt_loop_remove(&session->server->loop, source);
	if (fd >= 0)
		close(fd);
	int result = ckt_restore_again_spec(session->again, session->server, &spec)
		? replace_worker(session, message, sizeof message)
		: -ENOENT;
	if (result) {
		session->failure = result;
		snprintf(session->failure_message, sizeof session->failure_message, "%s", message);
		worker_gone(source, events);
		return;
	}
	ckt_info("session %s: worker %d started for a restore", session->id, (int)session->pid);
	tell(session, &spec);
}

/* ---- New sessions */

int ckt_session_create(struct ckt_server *server, const struct ckt_session_spec *spec,
	struct ckt_session **ret_session, char *ret_message, size_t message_size)
{
	struct ckt_session *session;
	int result = session_from_spec(server, spec, &session, ret_message, message_size);
	if (result)
		return result;
	bool warm = take_warm(&session);
	result = warm ? 0 : spawn_watched(session, ret_message, message_size);
	if (result)
		return result;
	if (warm && session->restore)
		session->again = ckt_restore_again_create(spec);
	result = start(session, spec);
	if (result) {
		snprintf(ret_message, message_size, "cannot reach the new worker: %s",
			strerror(-result));
		return result;
	}
	ckt_info("session %s: %sworker %d started for %s", session->id, warm ? "warm " : "",
		(int)session->pid, spec->hello ? spec->hello->program_name : "a restore");
	ckt_warm_follow(server, session);
	*ret_session = session;
	return 0;
}

/* ---- Sessions of an earlier server */

static void adopted_status(struct ckt_session *session, void *context, int error, void *result)
{
	struct ckt_worker_status_res *status = result;
	(void)context;
	if (error || session->phase != CKT_SESSION_LIVE) {
		ckt_lease_is_known(session);
		return;
	}
	if (!ckt_owner_file_read(session, &session->uid))
		session->uid = status->uid;
	if (session->uid != CKT_UID_UNKNOWN)
		session->identity = ckt_identity_of_owner(session->uid);
	/* What started us may have taken them off: see worker_cgroup.h. */
	const struct ckt_cgroup_limits limits = cgroup_limits(session);
	ckt_worker_cgroup_limit(session->server, session->cgroup, &limits);
	session->started = status->started;
	memcpy(session->secret_hash, status->secret_hash, sizeof session->secret_hash);
	session->generation = status->generation;
	/* The rest of the earlier server's knowledge is lost. */
	session->proven = ckt_server_key_fits(session->id, (const uint8_t *)status->secret_hash);
	/* Root restored it for a user who has not come yet. */
	session->unclaimed = status->state == CKT_STATE_RESTORED &&
		(session->uid == 0 || session->uid == CKT_UID_UNKNOWN ||
			session->uid == ckt_owner_of_token(CKT_SINGLE_TOKEN_NAME));
	ckt_daemon_pause_adopt(session);
	ckt_daemon_job_adopt(session);
	/* The connection that held it frozen was the dead server's. */
	if (status->state == CKT_STATE_FROZEN)
		ckt_daemon_image_let_go(session);
	/* Its server died before it told the worker what it becomes. */
	if (status->state == CKT_STATE_STARTING && !*status->program_name) {
		ckt_session_give_up(session, "it was never started");
		return;
	}
	/* Last: a worker of an older server does not know these calls, and hangs up. */
	ckt_group_open(session);
	ckt_module_cache_open(session);
	ckt_lease_open(session);
	ckt_turn_open(session);
	ckt_session_metrics_open(session);
	ckt_automatic_begin(session);
	ckt_quantum_watch(session);
}

static int adopt(struct ckt_server *server, const char *id)
{
	pid_t pid = 0;
	uid_t uid = 0;
	struct ckt_session *session = session_new(server, id);
	if (!session)
		return -ENOMEM;
	int result = ckt_daemon_request_connect(session, CKT_LINK_SHORT);
	if (!result)
		result = ckt_transport_peer_process(
			&session->links[CKT_LINK_SHORT].stream.transport, &pid, &uid);
	/* The process that called listen() on it: see spawn.c. */
	if (!result)
		result = watch(session, pid);
	if (result) {
		/* Removes only a dead worker's socket: nothing else leads to a live one. */
		session_free(session, result != -ECONNREFUSED && result != -ESRCH);
		return result;
	}
	session->uid_group = ckt_uid_group_adopt(server, uid);
	ckt_worker_cgroup_adopt(server, pid, session->cgroup);
	session->phase = CKT_SESSION_LIVE;
	/* Until its worker has answered: nothing is ended on a doubt. */
	session->proven = true;
	session_insert(session);
	server->session_count++;
	ckt_info("session %s: found again, worker %d", session->id, (int)session->pid);
	ckt_lease_is_unknown(session);
	result = ckt_session_call(session, CKT_WORKER_STATUS, NULL, NULL, -1,
		(xdrproc_t)xdr_ckt_worker_status_res, sizeof(struct ckt_worker_status_res),
		CALL_TIMEOUT_MS, adopted_status, NULL);
	if (result)
		ckt_lease_is_known(session);
	return result;
}

int ckt_session_adopt_all(struct ckt_server *server)
{
	DIR *dir = opendir(server->socket_dir);
	bool unknown = false;
	if (!dir)
		return -errno;
	ckt_uid_groups_load(server);
	for (struct dirent *entry; (entry = readdir(dir));) {
		char id[CKT_SESSION_ID_SIZE + 1] = "";
		/*
		 * The server died before it named the session: the worker has been told nothing,
		 * and ends.
		 */
		if (strncmp(entry->d_name, "new-", 4) == 0 ||
			strncmp(entry->d_name, "warm-", 5) == 0)
			unlinkat(dirfd(dir), entry->d_name, 0);
		if (strlen(entry->d_name) != CKT_SESSION_ID_SIZE + 5 ||
			strcmp(entry->d_name + CKT_SESSION_ID_SIZE, ".sock") != 0 ||
			strspn(entry->d_name, "0123456789abcdef") != CKT_SESSION_ID_SIZE)
			continue;
		memcpy(id, entry->d_name, CKT_SESSION_ID_SIZE);
		int result = adopt(server, id);
		bool dead = result == -ECONNREFUSED || result == -ESRCH;
		if (result)
			ckt_log(dead ? CKT_LOG_INFO : CKT_LOG_WARNING,
				"session %s: cannot reach its worker: %s", id, strerror(-result));
		unknown |= result && !dead;
	}
	closedir(dir);
	/* A worker that is not found may still serve its client, as the user of any group. */
	if (!unknown)
		ckt_uid_groups_settle(server);
	ckt_owner_files_sweep(server);
	return 0;
}

/* ---- Clients */

struct hand_over {
	bool is_new, is_lane, asks_for_images;
	uint32_t uid; /* the owner that the client would be */
	char job[CKT_JOB_NAME_MAX + 1];
	struct ckt_session_client client;
};

static void client_taken(struct ckt_session *session, void *context, int error, void *result)
{
	struct hand_over *hand_over = context;
	ckt_hello_status status = result ? *(ckt_hello_status *)result : CKT_HELLO_FAILED;
	/* The first connection of the same program is in the audit log. */
	if (!hand_over->is_lane || error || status != CKT_HELLO_OK)
		ckt_session_audit_client(session, &hand_over->client, status, error);
	if (error || status != CKT_HELLO_OK) {
		ckt_info("session %s: the worker did not accept its client: %s", session->id,
			error ? strerror(-error) : "refused");
		if (hand_over->is_new && session->phase == CKT_SESSION_LIVE)
			ckt_session_kill(session, "it has no client");
	} else if (session->unclaimed && hand_over->uid != CKT_UID_UNKNOWN) {
		/* The worker has checked the secret. */
		session->uid = hand_over->uid;
		session->unclaimed = false;
		tell_owner(session);
	}
	if (!error && status == CKT_HELLO_OK && hand_over->asks_for_images)
		ckt_automatic_ask(session);
	if (!error && status == CKT_HELLO_OK && *hand_over->job)
		strcpy(session->job, hand_over->job);
	free(hand_over);
}

static void memory_taken(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context, (void)result;
	if (error)
		ckt_debug("session %s: its worker did not accept its client's memory: %s",
			session->id, strerror(-error));
}

int ckt_session_host_memory(struct ckt_session *session, int fd)
{
	/* Calls over one connection are served in their order. */
	return fd < 0 ? 0
		      : ckt_session_call(session, CKT_WORKER_HOST_MEMORY, NULL, NULL, fd, NULL, 0,
				CALL_TIMEOUT_MS, memory_taken, NULL);
}

int ckt_session_hand_over(struct ckt_session *session, uint32_t xid,
	const struct ckt_hello_args *hello, const struct ckt_auth_peer *peer, int fd, bool is_new)
{
	struct hand_over *hand_over = calloc(1, sizeof *hand_over);
	if (!hand_over) {
		close(fd);
		return -ENOMEM;
	}
	hand_over->is_new = is_new;
	hand_over->is_lane = hello->kind == CKT_HELLO_DATA;
	hand_over->asks_for_images = ckt_automatic_is_asked(hello);
	ckt_daemon_job_of_hello(hello, hand_over->job);
	hand_over->client.who = *peer;
	snprintf(hand_over->client.program, sizeof hand_over->client.program, "%s",
		hello->program_name);
	hand_over->uid = peer->uid;
	struct ckt_worker_client_args args = {
		.xid = xid, .hello = *hello, .peer_uid = peer->uid, .peer = (char *)peer->text};
	int result = ckt_session_call(session, CKT_WORKER_CLIENT,
		(xdrproc_t)xdr_ckt_worker_client_args, &args, fd, (xdrproc_t)xdr_ckt_hello_status,
		sizeof(ckt_hello_status), CALL_TIMEOUT_MS, client_taken, hand_over);
	if (result)
		free(hand_over);
	return result;
}
