/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a worker; see session.h. */
#include "server/daemon/session/session_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/worker_descriptors.h"
#include "server/daemon/durable/afresh.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/events.h"
#include "server/daemon/session/group.h"
#include "server/daemon/session/mps_control.h"
#include "server/daemon/session/warm_workers.h"
#include "server/daemon/session/worker_request.h"

enum {
	LAST_REPLIES_MAX = 100,
	/*
	 * Then it is killed, whether MPS has terminated it or not: after the questions that take
	 * that long where MPS is slow, for who dies unterminated may take its neighbours along.
	 */
	TERMINATE_MS = 3 * CKT_MPS_ASK_MS + 1000,
};

void ckt_session_describe_end(
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
		if (session->mps.told_end) {
			info.si_code = CLD_EXITED;
			info.si_status = session->mps.status;
		}
		if (info.si_code == CLD_EXITED && info.si_status == CKT_WORKER_CUT_OFF_STATUS) {
			session->cut_off = true;
			snprintf(ret_text, text_size, "exit code 0");
		} else if (info.si_code == CLD_EXITED &&
			info.si_status == CKT_WORKER_FAULT_STATUS) {
			*ret_bad = session->phase != CKT_SESSION_ENDING;
			snprintf(ret_text, text_size,
				"a kernel failed that shares its GPU in space");
			ckt_mps_fault(session);
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

void ckt_session_worker_gone(struct ckt_source *source, uint32_t events)
{
	struct ckt_session *session = CKT_CONTAINER(source, struct ckt_session, pidfd);
	struct ckt_server *server = session->server;
	char how[CKT_BOUNDS_WHY], message[256];
	bool bad;
	(void)events;
	ckt_session_describe_end(session, how, sizeof how, &bad);
	ckt_session_metrics_close(session);
	if (session->warm) {
		ckt_timer_clear(&session->timer);
		ckt_daemon_request_fail_all(session, -ECONNRESET);
		ckt_warm_gone(session, how);
		ckt_session_free(session, false);
		return;
	}
	ckt_log(bad ? CKT_LOG_WARNING : CKT_LOG_INFO, "session %s: worker %d ended (%s)",
		session->id, (int)session->pid, how);
	snprintf(message, sizeof message, "the session's worker ended (%s)", how);
	ckt_group_ended(session);
	ckt_session_take_out(session);
	server->session_count--;
	ckt_timer_clear(&session->timer);
	ckt_lease_close(session);
	ckt_turn_close(session);
	ckt_daemon_request_fail_all(session, -ECONNRESET);
	bool crashed = bad || (!session->child && session->phase == CKT_SESSION_LIVE);
	ckt_afresh_note_end(session, crashed);
	ckt_automatic_end(session, crashed);
	ckt_session_tell_waiters(&session->on_started, session,
		session->failure ? session->failure : -EIO,
		session->failure ? session->failure_message : message);
	ckt_session_tell_waiters(&session->on_gone, session, 0, message);
	ckt_daemon_event(session,
		bad && !session->failure       ? CKT_EVENT_LOST
			: session->sleep.falls ? CKT_EVENT_ASLEEP
					       : CKT_EVENT_ENDED,
		"%s", session->sleep.falls ? "it was idle for the time of --idle-context" : how);
	char id[CKT_SESSION_ID_SIZE + 1];
	strcpy(id, session->id);
	ckt_session_free(session, false);
	ckt_session_inherit_name(server, id);
	ckt_warm_session_gone(server);
	ckt_server_session_gone(server);
}

static void kill_late(struct ckt_timer *timer)
{
	struct ckt_session *session = CKT_CONTAINER(timer, struct ckt_session, timer);
	syscall(SYS_pidfd_send_signal, session->pidfd.fd, SIGKILL, NULL, 0);
}

void ckt_session_kill_worker(struct ckt_session *session)
{
	if (ckt_mps_terminate(session)) {
		syscall(SYS_pidfd_send_signal, session->pidfd.fd, SIGKILL, NULL, 0);
		return;
	}
	session->timer.fire = kill_late;
	ckt_timer_set(&session->server->loop, &session->timer, TERMINATE_MS);
}

static void kill_now(struct ckt_timer *timer)
{
	struct ckt_session *session = CKT_CONTAINER(timer, struct ckt_session, timer);
	ckt_warning(
		"session %s: killed worker %d, which did not end", session->id, (int)session->pid);
	ckt_session_kill_worker(session);
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
	ckt_timer_set(
		&session->server->loop, &session->timer, result ? 0 : CKT_SESSION_KILL_TIMEOUT_MS);
}

void ckt_session_give_up(struct ckt_session *session, const char *why)
{
	session->cut_off = true;
	ckt_session_kill(session, why);
}

void ckt_session_cut_off(struct ckt_session *session, const char *why)
{
	if (session->phase == CKT_SESSION_ENDING)
		return;
	ckt_info("session %s: ending its worker: %s", session->id, why);
	session->cut_off = true;
	session->phase = CKT_SESSION_ENDING;
	ckt_timer_clear(&session->timer);
	syscall(SYS_pidfd_send_signal, session->pidfd.fd, SIGKILL, NULL, 0);
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
	ckt_timer_set(&session->server->loop, &session->timer, CKT_SESSION_KILL_TIMEOUT_MS);
}

/*
 * A worker that cannot start says why, and ends: its last reply may wait behind others, of which the
 * loop reads one at a time.  What is left of a worker must not keep its session for ever.
 */
static void worker_ended(struct ckt_source *source, uint32_t events)
{
	struct ckt_session *session = CKT_CONTAINER(source, struct ckt_session, pidfd);
	if (session->last_replies < LAST_REPLIES_MAX && ckt_daemon_request_unread(session))
		session->last_replies++;
	else
		ckt_session_worker_gone(source, events);
}

int ckt_session_watch_worker(struct ckt_session *session, pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	session->pid = pid;
	session->pidfd = (struct ckt_source){.fd = fd, .ready = worker_ended};
	session->last_replies = 0;
	int result = ckt_loop_add(&session->server->loop, &session->pidfd, EPOLLIN);
	if (result) {
		close(fd);
		session->pidfd.fd = -1;
	}
	return result;
}
