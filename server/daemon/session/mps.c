/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing a GPU in space; see mps.h. */
#include "server/daemon/session/mps.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/net.h"
#include "rpc/worker_descriptors.h"
#include "server/daemon/policy/identity.h"
#include "server/daemon/server.h"
#include "server/daemon/session/group_domain.h"
#include "server/daemon/session/mps_parts.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/uid_group.h"
#include "server/daemon/session/warm_workers.h"
#include "server/daemon/session/worker_bounds.h"

enum {
	/* For the daemon's first answer; the loop waits for it, and so does the session. */
	START_MS = 2000,
	/* After one that did not start. */
	AGAIN_MS = 10000,
	/* A daemon that lived as long is started again at once. */
	LIVED_MS = 10000,
	QUIT_MS = 5000,
};

/* ---- The process */

static void process_ended(struct ckt_source *source, uint32_t events);
static void quit(struct ckt_mps_daemon *daemon);

static int watch(struct ckt_mps_daemon *daemon, pid_t pid)
{
	int fd = pid < 0 ? (int)pid : (int)syscall(SYS_pidfd_open, pid, 0);
	if (pid >= 0 && fd < 0)
		fd = -errno;
	daemon->process = (struct ckt_source){.fd = fd, .ready = process_ended};
	int result = fd < 0 ? fd : ckt_loop_add(&daemon->server->loop, &daemon->process, EPOLLIN);
	if (!result)
		return 0;
	if (fd >= 0)
		close(fd);
	daemon->process.fd = -1;
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return result;
}

static int start(struct ckt_mps_daemon *daemon)
{
	int result = watch(daemon, ckt_mps_process_start(&daemon->place, CKT_MPS_DAEMON));
	daemon->started_ms = ckt_net_now_ms();
	daemon->state = result ? CKT_MPS_DOWN : CKT_MPS_RUNS;
	return result;
}

static void start_again(struct ckt_timer *timer)
{
	struct ckt_mps_daemon *daemon = CKT_CONTAINER(timer, struct ckt_mps_daemon, timer);
	int result = start(daemon);
	if (result) {
		ckt_warning("MPS of GPU %u: not started again: %s", daemon->gpu, strerror(-result));
		ckt_timer_set(&daemon->server->loop, timer, AGAIN_MS);
	}
}

static void kill_late(struct ckt_timer *timer)
{
	struct ckt_mps_daemon *daemon = CKT_CONTAINER(timer, struct ckt_mps_daemon, timer);
	ckt_warning("MPS of GPU %u: killed %s", daemon->gpu,
		daemon->adopted ? "who asked its daemon to quit"
				: "its daemon, which did not quit");
	syscall(SYS_pidfd_send_signal, daemon->process.fd, SIGKILL, NULL, 0);
}

/* ---- The list */

struct ckt_mps_daemon *ckt_mps_daemon_new(struct ckt_server *server, const char *owner,
	const struct ckt_worker_user *user, unsigned gpu)
{
	struct ckt_mps_daemon *daemon = calloc(1, sizeof *daemon);
	if (!daemon)
		return NULL;
	daemon->server = server;
	daemon->gpu = gpu;
	daemon->user = *user;
	daemon->process.fd = -1;
	snprintf(daemon->owner, sizeof daemon->owner, "%s", owner);
	daemon->next = server->mps->list;
	server->mps->list = daemon;
	daemon->place.program = server->mps->program;
	return daemon;
}

const char *ckt_mps_daemon_name(const struct ckt_mps_daemon *daemon)
{
	const char *slash = strrchr(daemon->place.directory, '/');
	return slash ? slash + 1 : "";
}

static void daemon_free(struct ckt_mps_daemon *daemon)
{
	struct ckt_mps_daemon **place = &daemon->server->mps->list;
	while (*place != daemon)
		place = &(*place)->next;
	*place = daemon->next;
	int fd = ckt_loop_remove(&daemon->server->loop, &daemon->process);
	if (fd >= 0)
		close(fd);
	ckt_timer_clear(&daemon->timer);
	rmdir(daemon->place.directory);
	ckt_group_domain_leave(daemon->domain);
	ckt_uid_group_leave(daemon->uid_group);
	free(daemon);
}

static void remove_files(struct ckt_mps_daemon *daemon)
{
	daemon->state = CKT_MPS_REMOVES;
	if (watch(daemon, ckt_mps_process_start(&daemon->place, CKT_MPS_REMOVE)))
		daemon_free(daemon);
}

static void died(struct ckt_mps_daemon *daemon, const char *how)
{
	bool lived = ckt_net_now_ms() - daemon->started_ms >= LIVED_MS;
	daemon->state = CKT_MPS_DOWN;
	ckt_warning("MPS of GPU %u: its daemon ended (%s); starting it again%s", daemon->gpu, how,
		lived ? "" : " later");
	daemon->timer.fire = start_again;
	ckt_timer_set(&daemon->server->loop, &daemon->timer, lived ? 0 : AGAIN_MS / 10);
}

static void process_ended(struct ckt_source *source, uint32_t events)
{
	struct ckt_mps_daemon *daemon = CKT_CONTAINER(source, struct ckt_mps_daemon, process);
	siginfo_t info = {0};
	char how[64];
	(void)events;
	if (waitid((idtype_t)P_PIDFD, (id_t)source->fd, &info, WEXITED | WNOHANG) == 0 &&
		!info.si_pid)
		return;
	close(ckt_loop_remove(&daemon->server->loop, source));
	ckt_timer_clear(&daemon->timer);
	if (daemon->state == CKT_MPS_REMOVES) {
		daemon_free(daemon);
	} else if (daemon->state == CKT_MPS_QUITS) {
		remove_files(daemon);
	} else {
		snprintf(how, sizeof how, info.si_code == CLD_EXITED ? "exit code %d" : "signal %d",
			info.si_status);
		died(daemon, how);
	}
}

/* What workers of today share is not what the earlier server's share (group_domain.h). */
static bool is_open(const struct ckt_mps_daemon *daemon)
{
	const struct ckt_server *server = daemon->server;
	return !daemon->faulted && daemon->state <= CKT_MPS_RUNS &&
		(!daemon->adopted ||
			!(server->own_network || server->own_sockets || server->mounts));
}

static struct ckt_mps_daemon *find(
	struct ckt_mps *mps, const char *owner, const struct ckt_worker_user *user, unsigned gpu)
{
	struct ckt_mps_daemon *daemon = mps->list;
	while (daemon &&
		(!is_open(daemon) || daemon->gpu != gpu || daemon->user.uid != user->uid ||
			strcmp(daemon->owner, owner) != 0))
		daemon = daemon->next;
	return daemon;
}

/* Of this daemon's owner on its GPU, also at a daemon of an earlier server. */
static unsigned contexts_beside(const struct ckt_mps_daemon *daemon)
{
	unsigned count = 0;
	for (const struct ckt_mps_daemon *other = daemon->server->mps->list; other;
		other = other->next)
		if (!other->faulted && other->gpu == daemon->gpu &&
			strcmp(other->owner, daemon->owner) == 0)
			count += other->members;
	return count;
}

/* 0, or -errno and a sentence. */
static int enter_group(struct ckt_mps_daemon *daemon, const struct ckt_identity *owner,
	char *ret_message, size_t message_size)
{
	int result = ckt_uid_group_join(
		daemon->server, owner, &daemon->uid_group, ret_message, message_size);
	if (!result)
		result = ckt_group_domain_join(daemon->server, owner, &daemon->user,
			&daemon->domain, ret_message, message_size);
	daemon->place.domain = daemon->domain;
	return result;
}

static int make_place(struct ckt_mps_daemon *daemon)
{
	struct ckt_server *server = daemon->server;
	char directory[CKT_PATH_MAX];
	uint32_t number;
	if (getrandom(&number, sizeof number, 0) != sizeof number)
		return -EIO;
	snprintf(directory, sizeof directory, "%.4000s/" CKT_MPS_PREFIX "%08x", server->socket_dir,
		number);
	return ckt_mps_process_place(&daemon->place, server, &daemon->user, directory);
}

static struct ckt_mps_daemon *make(struct ckt_session *session, const char *owner,
	const struct ckt_worker_user *user, unsigned gpu, char *ret_message, size_t message_size)
{
	struct ckt_server *server = session->server;
	struct ckt_mps_daemon *daemon = ckt_mps_daemon_new(server, owner, user, gpu);
	snprintf(ret_message, message_size, "out of memory");
	if (!daemon)
		return NULL;
	int result = make_place(daemon);
	if (result)
		snprintf(ret_message, message_size, "the name of %.200s is too long for its pipes",
			server->socket_dir);
	const struct ckt_identity group = ckt_mps_group(session);
	if (!result)
		result = enter_group(daemon, &group, ret_message, message_size);
	if (!result && (result = start(daemon)))
		snprintf(ret_message, message_size, "%s: %s", server->mps->program,
			strerror(-result));
	if (!result && ckt_mps_process_wait(&daemon->place, CKT_MPS_IS_THERE, START_MS) != 0) {
		snprintf(ret_message, message_size,
			"%s does not answer: its log is control.log in %.200s/logs",
			server->mps->program, daemon->place.directory);
		result = -ETIMEDOUT;
	}
	if (!result) {
		ckt_info("GPU %u is shared in space by the sessions of owner %s%s: %s", gpu, owner,
			group.kind == CKT_IDENTITY_SHARE_GROUP
				? ", a share-group of owners with one user and one fault domain"
				: "",
			daemon->place.directory);
		return daemon;
	}
	quit(daemon);
	return NULL;
}

/* ---- Which sessions */

static void tell_once(struct ckt_mps *mps, const char *why)
{
	if (!mps->told)
		ckt_warning("sessions share GPUs in time, and not in space: %s", why);
	mps->told = true;
}

const char *ckt_mps_obstacle(const struct ckt_server *server)
{
	if (!server->mps)
		return "out of memory";
	if (!*server->mps->program)
		return server->driver.soft
			? "the soft GPU has no MPS"
			: "this host has no nvidia-cuda-mps-control: install it, or name it in CRICKET_MPS_CONTROL";
	/* Workers of another user cannot pass through the directory of the sockets. */
	if (server->user.change && !server->mounts)
		return "workers have no mount namespace of their own on this host";
	return NULL;
}

static enum ckt_share_mode mode_of(const struct ckt_session *session)
{
	const struct ckt_server *server = session->server;
	const struct ckt_limit_subject subject = ckt_lease_subject(session);
	enum ckt_share_mode mode = CKT_SHARE_TIME;
	if (server->options.share)
		ckt_share_mode_parse(server->options.share, &mode);
	return ckt_limit_table_share_mode(&server->ledger.limits, &subject, mode);
}

struct ckt_mps_kind ckt_mps_kind_default(const struct ckt_server *server)
{
	const char *share = server->options.share;
	/* Nobody's workers have no group without one of these, and could become anybody's. */
	bool has_group = server->mounts || server->own_network || server->own_sockets;
	return (struct ckt_mps_kind){.space = share && !strcmp(share, "space") && has_group &&
			!ckt_mps_obstacle(server)};
}

/* Who restores for others does not know for whom. */
static const char *group_named(const struct ckt_session *session)
{
	const struct ckt_limit_subject subject = ckt_lease_subject(session);
	return session->unclaimed || (session->restore && session->claimant.for_others)
		? ""
		: ckt_limit_table_share_group(&session->server->ledger.limits, &subject);
}

struct ckt_mps_kind ckt_mps_kind_of(const struct ckt_session *session)
{
	const struct ckt_server *server = session->server;
	struct ckt_mps_kind kind = {.space = mode_of(session) == CKT_SHARE_SPACE};
	const char *why = kind.space ? ckt_mps_obstacle(server) : NULL;
	if (why) {
		if (server->mps)
			tell_once(server->mps, why);
		kind.space = false;
	}
	if (!kind.space)
		return kind;
	ckt_turn_bounds(session, &kind.percent, &kind.below);
	strcpy(kind.group, group_named(session));
	return kind;
}

struct ckt_identity ckt_mps_group(const struct ckt_session *session)
{
	const struct ckt_mps_kind kind =
		session->warm ? session->mps.asked : ckt_mps_kind_of(session);
	return *kind.group ? ckt_identity_of_share_group(kind.group) : session->identity;
}

bool ckt_mps_in_group(const struct ckt_session *session, bool *ret_agreed)
{
	const char *group = session->mps.asked.group;
	*ret_agreed = session->mps.daemon && *group && !strcmp(group, group_named(session));
	return session->mps.daemon && *group;
}

bool ckt_mps_same_kind(const struct ckt_mps_kind *a, const struct ckt_mps_kind *b)
{
	return a->space == b->space && a->percent == b->percent && a->below == b->below &&
		!strcmp(a->group, b->group);
}

static void fill_variables(const struct ckt_mps_daemon *daemon, const struct ckt_mps_kind *kind,
	struct ckt_mps_variables *ret)
{
	*ret = (struct ckt_mps_variables){0};
	strcpy(ret->directory, daemon->place.directory);
	strcpy(ret->text[0], daemon->place.pipes);
	strcpy(ret->text[1], daemon->place.logs);
	strcpy(ret->text[2], "CRICKET_SPACE=1");
	snprintf(ret->text[3], CKT_MPS_VARIABLE_MAX, "CUDA_MPS_CLIENT_PRIORITY=%d", kind->below);
	if (kind->percent)
		snprintf(ret->text[4], CKT_MPS_VARIABLE_MAX, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=%u",
			kind->percent);
}

/* NULL: it has none, for that reason. */
static struct ckt_mps_daemon *daemon_for(struct ckt_session *session,
	const struct ckt_worker_user *user, unsigned gpu, const char **ret_reason)
{
	struct ckt_mps *mps = session->server->mps;
	char owner[CKT_IDENTITY_FILE_NAME], message[CKT_PATH_MAX + 512] = "";
	const struct ckt_identity group = ckt_mps_group(session);
	ckt_identity_file_name(&group, owner);
	struct ckt_mps_daemon *daemon = find(mps, owner, user, gpu);
	if (!daemon && ckt_net_now_ms() >= mps->again_ms)
		daemon = make(session, owner, user, gpu, message, sizeof message);
	if (!daemon) {
		*ret_reason = "its MPS does not start";
		if (*message) {
			tell_once(mps, message);
			mps->again_ms = ckt_net_now_ms() + AGAIN_MS;
		}
		return NULL;
	}
	if (daemon->state != CKT_MPS_RUNS) {
		*ret_reason = "its MPS is being started again";
		return NULL;
	}
	if (contexts_beside(daemon) < CKT_MPS_MEMBERS_MAX)
		return daemon;
	*ret_reason = "its MPS has as many sessions as it can";
	if (!daemon->full_told)
		ckt_warning(
			"MPS of GPU %u has %d sessions: further ones of owner %s share the GPU in time",
			gpu, CKT_MPS_MEMBERS_MAX, owner);
	daemon->full_told = true;
	return NULL;
}

bool ckt_mps_join(struct ckt_session *session, const struct ckt_worker_user *user,
	struct ckt_mps_variables *ret_variables)
{
	struct ckt_mps_member *member = &session->mps;
	unsigned gpus[CKT_DEVICES_MAX];
	*member = (struct ckt_mps_member){
		.asked = session->warm ? member->asked : ckt_mps_kind_of(session)};
	if (!member->asked.space || !ckt_session_gpus(session, gpus)) {
		member->reason = mode_of(session) == CKT_SHARE_SPACE ? "there is no MPS" : NULL;
		return false;
	}
	struct ckt_mps_daemon *daemon = daemon_for(session, user, gpus[0], &member->reason);
	if (!daemon)
		return false;
	session->server->mps->told = false;
	daemon->members++;
	member->daemon = daemon;
	fill_variables(daemon, &member->asked, ret_variables);
	return true;
}

static void quit(struct ckt_mps_daemon *daemon)
{
	bool asks = daemon->adopted &&
		!watch(daemon, ckt_mps_process_start(&daemon->place, CKT_MPS_QUIT));
	ckt_timer_clear(&daemon->timer);
	if (daemon->process.fd < 0) {
		remove_files(daemon);
		return;
	}
	daemon->state = CKT_MPS_QUITS;
	daemon->timer.fire = kill_late;
	ckt_timer_set(&daemon->server->loop, &daemon->timer, QUIT_MS);
	if (!asks && ckt_mps_process_detach(&daemon->place, CKT_MPS_QUIT, 0, -1))
		syscall(SYS_pidfd_send_signal, daemon->process.fd, SIGKILL, NULL, 0);
}

void ckt_mps_leave(struct ckt_session *session)
{
	struct ckt_mps_daemon *daemon = session->mps.daemon;
	session->mps.daemon = NULL;
	if (daemon && --daemon->members == 0)
		quit(daemon);
	if (session->server->mps && session->server->mps->leftovers)
		ckt_mps_settle(session->server);
}

void ckt_mps_give(struct ckt_server *server, const struct ckt_group_domain *domain,
	const struct ckt_identity *owner)
{
	for (struct ckt_mps_daemon *daemon = server->mps ? server->mps->list : NULL; daemon;
		daemon = daemon->next)
		if (daemon->domain == domain && strcmp(daemon->owner, "next") == 0)
			ckt_identity_file_name(owner, daemon->owner);
}

unsigned ckt_mps_members(const struct ckt_session *session)
{
	return session->mps.daemon ? session->mps.daemon->members : 0;
}

/* ---- Ends of members */

int ckt_mps_terminate(struct ckt_session *session)
{
	const struct ckt_mps_daemon *daemon = session->mps.daemon;
	if (!daemon || daemon->state != CKT_MPS_RUNS || session->pidfd.fd < 0 || session->mps.ends)
		return -ESRCH;
	int result = ckt_mps_process_detach(
		&daemon->place, CKT_MPS_TERMINATE, session->pid, session->pidfd.fd);
	session->mps.ends = !result;
	return result;
}

void ckt_mps_fault(struct ckt_session *session)
{
	static const char why[] = "a kernel of a session failed that shares its GPU in space";
	struct ckt_mps_daemon *daemon = session->mps.daemon;
	/* What MPS terminates fails, and nobody else's. */
	if (!daemon || session->mps.ends)
		return;
	ckt_worker_bounds_tell(session, why);
	if (daemon->faulted)
		return;
	daemon->faulted = true;
	ckt_warning("session %s: a kernel failed, and with it the %u sessions that share GPU %u in "
		    "space: all end",
		session->id, daemon->members, daemon->gpu);
	for (struct ckt_session *other = session->server->sessions; other; other = other->next) {
		if (other == session || other->mps.daemon != daemon)
			continue;
		ckt_worker_bounds_tell(other, why);
		ckt_session_give_up(other, why);
	}
	ckt_warm_end_of(session->server, daemon);
}

bool ckt_mps_wants_end(struct ckt_session *session, int status)
{
	if (!session->mps.daemon || session->mps.told_end ||
		(status && status != CKT_WORKER_CUT_OFF_STATUS))
		return false;
	session->mps.told_end = true;
	session->mps.status = status;
	ckt_debug("session %s: its kernels run on: MPS terminates them", session->id);
	ckt_session_expect_end(session);
	ckt_session_kill_worker(session);
	return true;
}

void ckt_mps_unusable(const struct ckt_session *session, const char *message)
{
	char why[512];
	if (!session->mps.daemon || !strstr(message, "CUDA_ERROR_MPS_"))
		return;
	snprintf(why, sizeof why, "a worker cannot use %.200s: %.200s",
		session->server->mps->program, message);
	tell_once(session->server->mps, why);
	session->mps.daemon->faulted = true;
	session->server->mps->again_ms = ckt_net_now_ms() + AGAIN_MS;
}

/* ---- All of them */

void ckt_mps_init(struct ckt_server *server)
{
	const char *told = getenv("CRICKET_MPS_CONTROL");
	const char *path = told       ? told
		: server->driver.soft ? ""
				      : "/usr/bin/nvidia-cuda-mps-control";
	server->mps = calloc(1, sizeof *server->mps);
	if (!server->mps)
		return;
	if (*path == '/' && access(path, X_OK) == 0)
		snprintf(server->mps->program, sizeof server->mps->program, "%.4000s", path);
}

/* Waits for its end. */
static void end_now(struct ckt_mps_daemon *daemon)
{
	if (daemon->state == CKT_MPS_RUNS)
		ckt_mps_process_wait(&daemon->place, CKT_MPS_QUIT, CKT_MPS_FINI_MS);
	if (daemon->process.fd >= 0) {
		struct pollfd ended = {.fd = daemon->process.fd, .events = POLLIN};
		siginfo_t info;
		if (poll(&ended, 1, CKT_MPS_FINI_MS) <= 0)
			syscall(SYS_pidfd_send_signal, daemon->process.fd, SIGKILL, NULL, 0);
		waitid((idtype_t)P_PIDFD, (id_t)daemon->process.fd, &info, WEXITED);
	}
	ckt_mps_process_wait(&daemon->place, CKT_MPS_REMOVE, CKT_MPS_FINI_MS);
	daemon_free(daemon);
}

void ckt_mps_fini(struct ckt_server *server)
{
	if (!server->mps)
		return;
	while (server->mps->list)
		if (server->mps->list->members)
			/* Its workers live on, and the next server ends it after them. */
			daemon_free(server->mps->list);
		else
			end_now(server->mps->list);
	free(server->mps);
	server->mps = NULL;
}
