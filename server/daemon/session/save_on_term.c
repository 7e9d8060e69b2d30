/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --on-term checkpoint:DIR: at SIGTERM every session is written to DIR/SESSION and ended, its
 * client told to wait.  For batch systems that announce the end of a job.  A session that cannot be
 * written is ended like without the option, after the grace period.
 */
#include "server/daemon/session/save_on_term.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "checkpoint/format/broker.h"
#include "server/daemon/events.h"
#include "server/daemon/image/image_mac.h"
#include "server/daemon/metrics/counters.h"
#include "server/daemon/paths.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/session/session_marks.h"
#include "server/daemon/session/worker_request.h"

enum { DEADLINE_MS = 60000, RELEASE_TIMEOUT_MS = 60000, HOLD_TIMEOUT_MS = 5000 };

struct save {
	struct ckt_server *server;
	struct ckt_broker *broker;
	int parent_fd, directory_fd;
	char session[CKT_SESSION_ID_SIZE + 1], partial[CKT_SESSION_ID_SIZE + 16];
	uint64_t bytes, stopped_us;
};

static void remove_partial(const struct save *save)
{
	int fd = openat(
		save->parent_fd, save->partial, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	unlinkat(save->parent_fd, save->partial, AT_REMOVEDIR);
}

static void release_done(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_worker_result *res = answer;
	(void)context;
	if (error || res->status)
		ckt_session_kill(session, "its image is written, and it does not end by itself");
	else
		ckt_session_expect_end(session);
}

/* The image gets its name, or nothing of it remains.  why: NULL, or what went wrong. */
static int keep(struct save *save, const char **why)
{
	if (!*why && !fsync(save->directory_fd) &&
		!renameat(save->parent_fd, save->partial, save->parent_fd, save->session) &&
		!fsync(save->parent_fd))
		return 0;
	int result = *why ? -EIO : -errno;
	*why = *why ? *why : strerror(-result);
	return result;
}

/* session: NULL if it is gone.  written: the worker says that it has written the image. */
static void finish(struct save *save, struct ckt_session *session, bool written, const char *why)
{
	struct ckt_worker_release_args args = {.end = true,
		.parked = true,
		.message = (char *)"the server was told to end",
		.moved_to = (char *)""};
	int result = keep(save, &why);
	ckt_count_checkpoint(save->session, !result, save->bytes, save->stopped_us);
	if (result) {
		ckt_error("session %s: not saved at SIGTERM: %s", save->session, why);
		remove_partial(save);
		if (session && written)
			ckt_daemon_image_let_go(session);
	} else if (session) {
		ckt_info("session %s: saved at SIGTERM", save->session);
		ckt_daemon_event(session, CKT_EVENT_SAVED, "%llu bytes, at SIGTERM",
			(unsigned long long)save->bytes);
		ckt_session_mark_write(save->server, save->session, CKT_MARK_PARKED, session->uid,
			session->proven, session->status.program_name);
		if (ckt_session_call(session, CKT_WORKER_RELEASE,
			    (xdrproc_t)xdr_ckt_worker_release_args, &args, -1,
			    (xdrproc_t)xdr_ckt_worker_result, sizeof(struct ckt_worker_result),
			    RELEASE_TIMEOUT_MS, release_done, NULL))
			ckt_session_kill(
				session, "its image is written, and its worker cannot be reached");
	}
	close(save->directory_fd);
	close(save->parent_fd);
	save->server->term_saves--;
	free(save);
}

static void vouched(void *context, const uint8_t *data, size_t size, const char *problem)
{
	struct save *save = context;
	(void)data, (void)size;
	finish(save, ckt_session_find(save->server, save->session), true, problem);
}

static void save_done(struct ckt_session *session, void *context, int error, void *answer)
{
	struct save *save = context;
	struct ckt_worker_save2_res *res = answer;
	ckt_broker_stop(save->broker);
	int result = error ? error : res->status;
	const char *why = !result       ? NULL
		: !error && res->status ? res->message
					: ckt_daemon_request_problem(result);
	save->bytes = error ? 0 : res->bytes;
	save->stopped_us = error ? 0 : res->stopped_us;
	if (result || !save->server->image_keys ||
		ckt_image_mac_write(session, res->image, save->directory_fd, vouched, save))
		finish(save, session, !result,
			result || !save->server->image_keys ? why
							    : "no key can vouch for its image");
}

static int save_begin(struct ckt_server *server, struct ckt_session *session, const char *parent)
{
	struct ckt_worker_save2_args args = {.deadline_ms = DEADLINE_MS, .hold = true};
	struct save *save = calloc(1, sizeof *save);
	if (!save)
		return -ENOMEM;
	*save = (struct save){.server = server, .directory_fd = -1};
	snprintf(save->session, sizeof save->session, "%s", session->id);
	snprintf(save->partial, sizeof save->partial, "%s.partial", session->id);
	save->parent_fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = save->parent_fd < 0 ? -errno : 0, fd = -1;
	if (!result) {
		remove_partial(save);
		if (mkdirat(save->parent_fd, save->partial, 0700))
			result = -errno;
	}
	if (!result) {
		save->directory_fd = openat(save->parent_fd, save->partial,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		result = save->directory_fd < 0 ? -errno
						: ckt_broker_start(&save->directory_fd, 1,
							  CKT_BROKER_MAKE, &save->broker, &fd);
	}
	if (!result) {
		result = ckt_session_call_long(session, CKT_WORKER_SAVE2,
			(xdrproc_t)xdr_ckt_worker_save2_args, &args, fd,
			(xdrproc_t)xdr_ckt_worker_save2_res, sizeof(struct ckt_worker_save2_res),
			DEADLINE_MS, save_done, save);
		fd = -1;
	}
	if (!result) {
		server->term_saves++;
		return 0;
	}
	ckt_broker_stop(save->broker);
	if (fd >= 0)
		close(fd);
	if (save->directory_fd >= 0)
		close(save->directory_fd);
	if (save->parent_fd >= 0) {
		remove_partial(save);
		close(save->parent_fd);
	}
	free(save);
	return result;
}

static const char *directory_of(const struct ckt_server *server)
{
	return strchr(server->options.on_term, ':') + 1;
}

static void begin(struct ckt_session *session)
{
	int result = save_begin(session->server, session, directory_of(session->server));
	if (result)
		ckt_error("session %s: not saved at SIGTERM: %s", session->id, strerror(-result));
}

static void held(struct ckt_session *session, void *context, int error, void *answer)
{
	const struct ckt_worker_hold_res *res = answer;
	(void)context;
	session->server->term_saves--;
	if (error || res->status)
		ckt_warning("session %s: not held with its job: %s", session->id,
			error ? ckt_daemon_request_problem(error) : res->message);
	if (session->phase == CKT_SESSION_LIVE)
		begin(session);
}

/*
 * A session that shares something with others is saved only if they are saved too, and here all
 * are.  False: it is not held, and is saved at once.
 */
static bool hold_with_job(struct ckt_session *session)
{
	struct ckt_worker_hold_args args = {.action = CKT_HOLD_STOP};
	if (!*session->job || session->job_hold ||
		ckt_session_call(session, CKT_WORKER_HOLD, (xdrproc_t)xdr_ckt_worker_hold_args,
			&args, -1, (xdrproc_t)xdr_ckt_worker_hold_res,
			sizeof(struct ckt_worker_hold_res), HOLD_TIMEOUT_MS, held, NULL))
		return false;
	session->server->term_saves++;
	return true;
}

void ckt_session_save_all_on_term(struct ckt_server *server)
{
	char probe[CKT_PATH_MAX];
	struct ckt_decision decision;
	if (!server->options.on_term)
		return;
	snprintf(probe, sizeof probe, "%.4000s/x", directory_of(server));
	int made = ckt_paths_make_parent(probe);
	for (struct ckt_session *session = server->sessions; session; session = session->next) {
		ckt_ask_save(session, NULL, false, &decision);
		if (decision.answer)
			continue;
		if (made)
			ckt_error("session %s: not saved at SIGTERM: %s", session->id,
				strerror(-made));
		else if (!hold_with_job(session))
			begin(session);
	}
}
