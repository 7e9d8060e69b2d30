/* SPDX-License-Identifier: Apache-2.0 */
/* The process of a session; see session_parts.h. */
#include "server/daemon/session/session_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/session/compiler_process.h"
#include "server/daemon/session/group.h"
#include "server/daemon/session/group_domain.h"
#include "server/daemon/session/restore_again.h"
#include "server/daemon/session/spawn.h"
#include "server/daemon/session/spawn_cage.h"
#include "server/daemon/session/uid_group.h"
#include "server/daemon/session/warm_workers.h"
#include "server/daemon/session/worker_request.h"

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
	ckt_session_path(session, path);
	if (rename(address.host, path) == 0)
		return 0;
	result = -errno;
	snprintf(ret_message, message_size, "%s: %s", path, strerror(-result));
	unlink(address.host);
	close(*ret_fd);
	return result;
}

/* A user, a network and a /dev/shm with the workers of this group. */
static int enter_group(struct ckt_session *session, const struct ckt_identity *group,
	struct ckt_worker_user *ret_user, char *ret_message, size_t message_size)
{
	struct ckt_server *server = session->server;
	int result =
		ckt_uid_group_join(server, group, &session->uid_group, ret_message, message_size);
	if (result == -EUSERS && !session->warm && ckt_warm_free_ids(server))
		result = ckt_uid_group_join(
			server, group, &session->uid_group, ret_message, message_size);
	ckt_uid_group_user(server, session->uid_group, ret_user);
	return result ? result
		      : ckt_group_domain_join(server, group, ret_user, &session->domain,
				ret_message, message_size);
}

static void leave_group(struct ckt_session *session)
{
	ckt_group_domain_leave(session->domain);
	ckt_uid_group_leave(session->uid_group);
	session->domain = NULL;
	session->uid_group = NULL;
}

/* ret_in_space: the variables are its worker's. */
static int join_group(struct ckt_session *session, struct ckt_worker_user *ret_user,
	struct ckt_mps_variables *ret_variables, bool *ret_in_space, char *ret_message,
	size_t message_size)
{
	const struct ckt_identity group = ckt_mps_group(session);
	int result = enter_group(session, &group, ret_user, ret_message, message_size);
	*ret_in_space = !result && ckt_mps_join(session, ret_user, ret_variables);
	if (*ret_in_space || group.kind != CKT_IDENTITY_SHARE_GROUP)
		return result;
	/* With other owners it is for the sake of space alone. */
	leave_group(session);
	return enter_group(session, &session->identity, ret_user, ret_message, message_size);
}

/* The place of compiled kernels that is a group's /dev/shm is not for several owners. */
static const struct ckt_identity *owner_of_cache(const struct ckt_session *session)
{
	bool agreed;
	return session->uid_group && ckt_mps_in_group(session, &agreed) ? NULL : &session->identity;
}

/* Without a compiler the soft GPU interprets. */
static int spawn_with(struct ckt_session *session, const struct ckt_worker_user *user,
	const struct ckt_spawn_descriptors *passed, char *ret_message, size_t message_size)
{
	struct ckt_spawn_descriptors all = *passed;
	all.compiler = ckt_compiler_connect(session->server->compiler);
	all.domain = session->domain;
	int result = ckt_spawn_worker(session->server, owner_of_cache(session), user, &all,
		&session->pid, ret_message, message_size);
	if (all.compiler >= 0)
		close(all.compiler);
	return result;
}

struct ckt_cgroup_limits ckt_session_cgroup_limits(const struct ckt_session *session)
{
	struct ckt_share share;
	ckt_session_ask_share(session, &share);
	return ckt_worker_cgroup_limits(
		session->server, share.host_memory_bytes, share.device_memory_bytes);
}

static int make_cgroup(struct ckt_session *session, char *ret_message, size_t message_size)
{
	struct ckt_server *server = session->server;
	const struct ckt_cgroup_limits limits = ckt_session_cgroup_limits(session);
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
	struct ckt_mps_variables variables;
	bool in_space;
	ckt_worker_bounds_make_room(session->server);
	int result = join_group(session, &user, &variables, &in_space, ret_message, message_size);
	if (!result)
		result = make_cgroup(session, ret_message, message_size);
	if (!result)
		result = listen_for(session, &passed.listener, ret_message, message_size);
	if (result)
		return result;
	passed.cgroup = session->cgroup;
	passed.mps = in_space ? &variables : NULL;
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

int ckt_session_spawn(struct ckt_session *session, char *ret_message, size_t message_size)
{
	int result = spawn(session, ret_message, message_size);
	if (result) {
		ckt_session_free(session, false);
		return result;
	}
	result = ckt_session_watch_worker(session, session->pid);
	if (result) {
		snprintf(ret_message, message_size, "cannot reach the new worker: %s",
			strerror(-result));
		kill(session->pid, SIGKILL);
		waitpid(session->pid, NULL, 0);
		ckt_session_free(session, false);
	}
	return result;
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
	ckt_mps_leave(session);
	int result = spawn(session, ret_message, message_size);
	ckt_group_domain_leave(domain);
	ckt_uid_group_leave(uid_group);
	if (!result && (result = ckt_session_watch_worker(session, session->pid))) {
		kill(session->pid, SIGKILL);
		waitpid(session->pid, NULL, 0);
	}
	return result;
}

void ckt_session_start_afresh(struct ckt_source *source, uint32_t events)
{
	struct ckt_session *session = CKT_CONTAINER(source, struct ckt_session, pidfd);
	struct ckt_session_spec spec;
	char how[128], message[CKT_MESSAGE_MAX] = "the image in memory is gone";
	bool bad;
	if (session->phase != CKT_SESSION_STARTING) {
		ckt_session_worker_gone(source, events);
		return;
	}
	ckt_session_describe_end(session, how, sizeof how, &bad);
	int fd = ckt_loop_remove(&session->server->loop, source);
	if (fd >= 0)
		close(fd);
	int result = ckt_restore_again_spec(session->again, session->server, &spec)
		? replace_worker(session, message, sizeof message)
		: -ENOENT;
	if (result) {
		session->failure = result;
		snprintf(session->failure_message, sizeof session->failure_message, "%s", message);
		ckt_session_worker_gone(source, events);
		return;
	}
	ckt_info("session %s: worker %d started for a restore", session->id, (int)session->pid);
	ckt_session_tell(session, &spec);
}
