/* SPDX-License-Identifier: Apache-2.0 */
/* Who the workers run as; see spawn_user.h. */
#include "server/daemon/session/spawn_user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/daemon/server.h"
#include "server/daemon/session/spawn_mounts.h"
#include "server/daemon/session/user_namespace.h"
#include "server/daemon/session/worker_files.h"

int ckt_spawn_find_user(struct ckt_server *server, char *ret_message, size_t message_size)
{
	struct ckt_worker_user *user = &server->user;
	const char *name = server->options.user;
	if (geteuid() != 0) {
		struct passwd *self = name ? getpwuid(geteuid()) : NULL;
		if (name && (!self || strcmp(self->pw_name, name) != 0)) {
			snprintf(ret_message, message_size,
				"--user: '%s': only root can start workers as another user; leave it out",
				name);
			return -EPERM;
		}
		return 0;
	}
	struct passwd *entry = getpwnam(name ? name : "cricket");
	if (!entry && name) {
		snprintf(ret_message, message_size,
			"--user: user '%s' does not exist; create it with 'useradd "
			"--system %s', or name another",
			name, name);
		return -EINVAL;
	}
	ret_message[0] = 0;
	if (!entry) {
		snprintf(ret_message, message_size,
			"user 'cricket' does not exist (useradd --system cricket): "
			"workers run as 'nobody'; --user NAME names another");
		entry = getpwnam("nobody");
	}
	if (!entry || entry->pw_uid == 0) {
		snprintf(ret_message, message_size,
			entry ? "--user: '%s' is root, but workers never run as root: name "
				"another user"
			      : "--user: neither user '%s' nor 'nobody' exists: name "
				"another user",
			name ? name : "cricket");
		return -EINVAL;
	}
	user->change = true;
	user->uid = entry->pw_uid;
	user->gid = entry->pw_gid;
	snprintf(user->name, sizeof user->name, "%s", entry->pw_name);
	user->group_count = CKT_USER_GROUPS_MAX;
	if (getgrouplist(entry->pw_name, entry->pw_gid, user->groups, &user->group_count) < 0)
		user->group_count = CKT_USER_GROUPS_MAX;
	return 0;
}

int ckt_spawn_become_user(const struct ckt_worker_user *user)
{
	if (user->change &&
		((!user->keeps_groups && setgroups((size_t)user->group_count, user->groups)) ||
			setresgid(user->gid, user->gid, user->gid) ||
			setresuid(user->uid, user->uid, user->uid)))
		return -errno;
	return 0;
}

/* What keeps the workers' user from running a worker: the exit status of a child that looks. */
enum obstacle {
	NO_OBSTACLE,
	CANNOT_BECOME_USER,
	CANNOT_EXECUTE_WORKER,
	CANNOT_READ_DRIVER,
	CANNOT_READ_INSIDE, /* inside_path */
	CANNOT_READ_FILE,
};

/* For a child that looks: as a worker, with its mounts. */
static bool become_worker(const struct ckt_server *server)
{
	const struct ckt_worker_user *user = &server->user;
	struct ckt_spawn_mounts mounts;
	if (user->user_namespace) {
		ckt_spawn_mounts_init(&mounts, server, user, false, "");
		if (ckt_user_namespace_enter(user->user_namespace, user->gid) ||
			ckt_spawn_mounts_enter(&mounts))
			return false;
	}
	return ckt_spawn_become_user(user) == 0 &&
		(!user->user_namespace || ckt_user_namespace_drop() == 0);
}

static enum obstacle look_as_user(const struct ckt_server *server)
{
	if (!become_worker(server))
		return CANNOT_BECOME_USER;
	if (access(server->worker_path, X_OK))
		return CANNOT_EXECUTE_WORKER;
	if (access(server->driver.path, R_OK))
		return CANNOT_READ_DRIVER;
	return *server->inside_path && access(server->inside_path, R_OK) ? CANNOT_READ_INSIDE
									 : NO_OBSTACLE;
}

static enum obstacle wait_obstacle(pid_t pid)
{
	int status = 0;
	if (pid < 0)
		return CANNOT_BECOME_USER;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? (enum obstacle)WEXITSTATUS(status) : CANNOT_BECOME_USER;
}

/* As the workers' user. */
static enum obstacle try_user(const struct ckt_server *server)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit((int)look_as_user(server));
	return wait_obstacle(pid);
}

bool ckt_spawn_user_reads(const struct ckt_server *server, const char *const *files, size_t count)
{
	pid_t pid = fork();
	if (pid == 0) {
		enum obstacle obstacle = become_worker(server) ? NO_OBSTACLE : CANNOT_BECOME_USER;
		for (size_t i = 0; i < count && !obstacle; i++)
			obstacle = access(files[i], R_OK) ? CANNOT_READ_FILE : NO_OBSTACLE;
		_exit((int)obstacle);
	}
	return wait_obstacle(pid) == NO_OBSTACLE;
}

int ckt_spawn_check(struct ckt_server *server, char *ret_message, size_t message_size)
{
	enum obstacle obstacle = try_user(server);
	/* Only root may reach our own files; the operator's driver is the operator's to open. */
	bool root = server->user.change && !server->user.user_namespace;
	if (root && obstacle == CANNOT_EXECUTE_WORKER &&
		ckt_daemon_files_copy(server->worker_path) == 0)
		obstacle = try_user(server);
	if (root && obstacle == CANNOT_READ_DRIVER && server->driver.soft &&
		ckt_daemon_files_copy(server->driver.path) == 0)
		obstacle = try_user(server);
	if (root && obstacle == CANNOT_READ_INSIDE &&
		ckt_daemon_files_copy(server->inside_path) == 0)
		obstacle = try_user(server);
	snprintf(server->inside_variable, sizeof server->inside_variable, "CRICKET_INSIDE=%s",
		server->inside_path);
	/* Only programs with libraries miss it, and they get a message. */
	if (obstacle == CANNOT_READ_INSIDE) {
		*server->inside_path = 0;
		obstacle = NO_OBSTACLE;
	}
	const char *name = server->user.change ? server->user.name : "this user";
	if (obstacle == CANNOT_BECOME_USER)
		snprintf(ret_message, message_size, "cannot become user '%s'", name);
	else if (obstacle)
		snprintf(ret_message, message_size,
			"user '%s' may not %s %s: give that user access to it and to "
			"the directories above, or use --user NAME",
			name, obstacle == CANNOT_EXECUTE_WORKER ? "execute" : "read",
			obstacle == CANNOT_EXECUTE_WORKER ? server->worker_path
							  : server->driver.path);
	else
		return 0;
	return -EACCES;
}
