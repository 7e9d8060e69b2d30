/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of workers with a user id each; see uid_group.h. */
#include "server/daemon/session/uid_group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "server/daemon/policy/identity.h"
#include "server/daemon/server.h"
#include "server/daemon/session/uid_clean.h"
#include "server/daemon/session/uid_range.h"
#include "server/daemon/session/user_namespace.h"

#define RECORD_PREFIX "uid-"

enum {
	/*
	 * Cleaning usually takes some milliseconds.  If all ids are taken and one is being cleaned, a
	 * session waits for it that long, and with it the server.
	 */
	DRAW_WAIT_MS = 300,
	FINI_WAIT_MS = 2000,
	RETRY_MS = 10000,
};

struct ckt_uid_group {
	struct ckt_server *server;
	struct ckt_uid_group *next;
	uid_t uid;
	/* as ckt_identity_file_name; "": not known, and nobody joins */
	char owner[CKT_IDENTITY_FILE_NAME];
	unsigned workers;
	int lock_fd; /* -1: the lock is another's, or cannot be made */
	bool cleaning, told;
	struct ckt_source cleaner; /* a pidfd; -1: none runs */
	struct ckt_timer again;
};

struct ckt_uid_groups {
	struct ckt_uid_range range;
	uid_t last; /* drawn; the one that was free for the longest time comes next */
	struct ckt_uid_group *list;
};

static void clean(struct ckt_uid_group *group);

/* ---- Files */

static void record_path(const struct ckt_uid_group *group, char ret_path[CKT_PATH_MAX])
{
	snprintf(ret_path, CKT_PATH_MAX, "%.4000s/" RECORD_PREFIX "%u", group->server->socket_dir,
		group->uid);
}

static int record_write(const struct ckt_uid_group *group)
{
	char path[CKT_PATH_MAX];
	record_path(group, path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	size_t size = strlen(group->owner);
	int result = fd < 0 ? -errno : write(fd, group->owner, size) == (ssize_t)size ? 0 : -EIO;
	if (fd >= 0)
		close(fd);
	return result;
}

static void record_read(struct ckt_uid_group *group)
{
	char path[CKT_PATH_MAX];
	record_path(group, path);
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, group->owner, sizeof group->owner - 1) : 0;
	if (fd >= 0)
		close(fd);
	group->owner[n > 0 ? n : 0] = 0;
}

/*
 * The same for all servers of root's, or of one user, on the host: two with one range never draw the
 * same id.  False: there is no place for it, and what the id has must tell (uid_clean.h).
 */
static bool lock_path(uid_t uid, char ret_path[CKT_PATH_MAX])
{
	const char *runtime = geteuid() == 0 ? "/run" : getenv("XDG_RUNTIME_DIR");
	if (!runtime || *runtime != '/')
		return false;
	snprintf(ret_path, CKT_PATH_MAX, "%.4000s/cricket", runtime);
	mkdir(ret_path, 0755);
	snprintf(ret_path, CKT_PATH_MAX, "%.4000s/cricket/uid-%u.lock", runtime, uid);
	return true;
}

/* -1 and EWOULDBLOCK: another server has drawn that id. */
static int take_lock(uid_t uid)
{
	char path[CKT_PATH_MAX];
	struct stat status;
	errno = ENOENT;
	while (lock_path(uid, path)) {
		int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		bool taken = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
		/* Who had it may have removed the file in the meantime. */
		if (fd < 0 || (taken && (fstat(fd, &status) || status.st_nlink)))
			return fd;
		close(fd);
		if (!taken) {
			errno = EWOULDBLOCK;
			return -1;
		}
	}
	return -1;
}

static void release_lock(int fd, uid_t uid)
{
	char path[CKT_PATH_MAX];
	if (fd < 0)
		return;
	if (lock_path(uid, path))
		unlink(path);
	close(fd);
}

/* ---- The list */

static struct ckt_uid_group *find_uid(const struct ckt_uid_groups *groups, uid_t uid)
{
	struct ckt_uid_group *group = groups->list;
	while (group && group->uid != uid)
		group = group->next;
	return group;
}

static struct ckt_uid_group *find_owner(const struct ckt_uid_groups *groups, const char *owner)
{
	struct ckt_uid_group *group = groups->list;
	while (group && (group->cleaning || strcmp(group->owner, owner) != 0))
		group = group->next;
	return group;
}

static struct ckt_uid_group *group_new(struct ckt_server *server, uid_t uid, const char *owner)
{
	struct ckt_uid_group *group = calloc(1, sizeof *group);
	if (!group)
		return NULL;
	group->server = server;
	group->uid = uid;
	group->lock_fd = group->cleaner.fd = -1;
	snprintf(group->owner, sizeof group->owner, "%s", owner);
	group->next = server->uid_groups->list;
	server->uid_groups->list = group;
	return group;
}

static void group_free(struct ckt_uid_group *group)
{
	struct ckt_uid_group **place = &group->server->uid_groups->list;
	while (*place != group)
		place = &(*place)->next;
	*place = group->next;
	ckt_timer_clear(&group->again);
	int fd = ckt_loop_remove(&group->server->loop, &group->cleaner);
	if (fd >= 0)
		close(fd);
	release_lock(group->lock_fd, group->uid);
	free(group);
}

/* ---- Cleaning */

static void clean_again(struct ckt_timer *timer)
{
	clean(CKT_CONTAINER(timer, struct ckt_uid_group, again));
}

static void clean_failed(struct ckt_uid_group *group, int result)
{
	static const char *const what[] = {
		[CKT_UID_CLEAN] = "nobody could look",
		[CKT_UID_PROCESSES_LEFT] = "processes of it are left",
		[CKT_UID_FILES_LEFT] = "files of it are left in /dev/shm, /tmp or /var/tmp",
	};
	ckt_log(group->told ? CKT_LOG_DEBUG : CKT_LOG_WARNING,
		"user id %u stays unused: %s; trying again every %d s", group->uid,
		what[result > 0 && result <= CKT_UID_FILES_LEFT ? result : 0], RETRY_MS / 1000);
	group->told = true;
	group->again.fire = clean_again;
	ckt_timer_set(&group->server->loop, &group->again, RETRY_MS);
}

static void cleaned(struct ckt_source *source, uint32_t events)
{
	struct ckt_uid_group *group = CKT_CONTAINER(source, struct ckt_uid_group, cleaner);
	siginfo_t info = {0};
	(void)events;
	if (waitid((idtype_t)P_PIDFD, (id_t)source->fd, &info, WEXITED | WNOHANG) == 0 &&
		!info.si_pid)
		return;
	int fd = ckt_loop_remove(&group->server->loop, source);
	if (fd >= 0)
		close(fd);
	if (info.si_code != CLD_EXITED || info.si_status != CKT_UID_CLEAN) {
		clean_failed(group, info.si_code == CLD_EXITED ? info.si_status : 0);
		return;
	}
	char path[CKT_PATH_MAX];
	record_path(group, path);
	unlink(path);
	ckt_debug("user id %u is free: its processes and files are gone", group->uid);
	group_free(group);
}

/* Without a pidfd the child is nobody's: it is waited for at once. */
static int watch(struct ckt_uid_group *group, pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	group->cleaner = (struct ckt_source){.fd = fd, .ready = cleaned};
	if (fd >= 0 && ckt_loop_add(&group->server->loop, &group->cleaner, EPOLLIN) == 0)
		return 0;
	int result = -errno;
	if (fd >= 0)
		close(fd);
	group->cleaner.fd = -1;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return result;
}

static void clean(struct ckt_uid_group *group)
{
	group->cleaning = true;
	pid_t pid = ckt_uid_clean_start(group->uid, group->server->user.user_namespace);
	if (pid < 0 || watch(group, pid))
		clean_failed(group, 0);
}

/* Waits until one of those that are being cleaned is done, or the time is over. */
static bool wait_for_cleaner(struct ckt_uid_groups *groups, int timeout_ms)
{
	struct pollfd fds[64];
	nfds_t count = 0;
	for (struct ckt_uid_group *group = groups->list; group; group = group->next)
		if (group->cleaner.fd >= 0 && count < sizeof fds / sizeof *fds)
			fds[count++] = (struct pollfd){.fd = group->cleaner.fd, .events = POLLIN};
	if (!count || poll(fds, count, timeout_ms) <= 0)
		return false;
	for (struct ckt_uid_group *group = groups->list, *next; group; group = next) {
		next = group->next;
		for (nfds_t i = 0; i < count; i++)
			if (fds[i].fd == group->cleaner.fd && fds[i].revents) {
				cleaned(&group->cleaner, EPOLLIN);
				break;
			}
	}
	return true;
}

/* ---- Drawing */

/* NULL and -errno: -EUSERS if none is free. */
static struct ckt_uid_group *draw(struct ckt_server *server, const char *owner, int *ret_error)
{
	struct ckt_uid_groups *groups = server->uid_groups;
	const struct ckt_uid_range *range = &groups->range;
	uid_t uid = groups->last;
	for (uint64_t i = 0; i <= (uint64_t)range->last - range->first; i++) {
		uid = uid == range->last ? range->first : uid + 1;
		if (find_uid(groups, uid))
			continue;
		int lock = take_lock(uid);
		if (lock < 0 && errno == EWOULDBLOCK)
			continue;
		/*
		 * It may be of a server that was killed and is not started again with its socket,
		 * of a container, or of whoever got the same ids.
		 */
		if (!ckt_uid_clean_now(uid, server->user.user_namespace)) {
			release_lock(lock, uid);
			continue;
		}
		struct ckt_uid_group *group = group_new(server, uid, owner);
		*ret_error = group ? record_write(group) : -ENOMEM;
		if (!group) {
			release_lock(lock, uid);
			return NULL;
		}
		group->lock_fd = lock;
		if (*ret_error) {
			group_free(group);
			return NULL;
		}
		groups->last = uid;
		ckt_debug("user id %u is drawn for the sessions of %s", uid, owner);
		return group;
	}
	*ret_error = -EUSERS;
	return NULL;
}

int ckt_uid_group_join(struct ckt_server *server, const struct ckt_identity *owner,
	struct ckt_uid_group **ret_group, char *ret_message, size_t message_size)
{
	struct ckt_uid_groups *groups = server->uid_groups;
	char name[CKT_IDENTITY_FILE_NAME];
	int error = 0;
	*ret_group = NULL;
	if (!groups || !groups->range.first)
		return 0;
	ckt_identity_file_name(owner, name);
	struct ckt_uid_group *group = find_owner(groups, name);
	if (!group)
		group = draw(server, name, &error);
	if (!group && error == -EUSERS && wait_for_cleaner(groups, DRAW_WAIT_MS))
		group = draw(server, name, &error);
	if (!group && error == -EUSERS)
		snprintf(ret_message, message_size,
			"no user id of --uid-range %u-%u is free for one more owner's sessions: "
			"end other sessions, or start the server with a larger range",
			groups->range.first, groups->range.last);
	else if (!group)
		snprintf(ret_message, message_size, "cannot note a user id in %.200s: %s",
			server->socket_dir, strerror(-error));
	if (!group)
		return error;
	group->workers++;
	*ret_group = group;
	return 0;
}

bool ckt_uid_group_exists(const struct ckt_server *server, const struct ckt_identity *owner)
{
	char name[CKT_IDENTITY_FILE_NAME];
	ckt_identity_file_name(owner, name);
	return server->uid_groups && find_owner(server->uid_groups, name);
}

int ckt_uid_group_give(struct ckt_uid_group *group, const struct ckt_identity *owner)
{
	char before[CKT_IDENTITY_FILE_NAME];
	if (!group)
		return 0;
	strcpy(before, group->owner);
	ckt_identity_file_name(owner, group->owner);
	int result = record_write(group);
	if (result)
		strcpy(group->owner, before);
	else
		ckt_debug("user id %u is given to the sessions of %s", group->uid, group->owner);
	return result;
}

void ckt_uid_group_leave(struct ckt_uid_group *group)
{
	if (group && --group->workers == 0)
		clean(group);
}

void ckt_uid_group_user(const struct ckt_server *server, const struct ckt_uid_group *group,
	struct ckt_worker_user *ret_user)
{
	*ret_user = server->user;
	if (group) {
		ret_user->uid = group->uid;
		ret_user->gid = (gid_t)group->uid;
	}
}

/* ---- An earlier server's */

void ckt_uid_groups_load(struct ckt_server *server)
{
	DIR *dir = server->uid_groups && server->user.change ? opendir(server->socket_dir) : NULL;
	for (const struct dirent *entry; dir && (entry = readdir(dir));) {
		struct ckt_uid_range one;
		char both[64];
		if (strncmp(entry->d_name, RECORD_PREFIX, strlen(RECORD_PREFIX)) != 0)
			continue;
		const char *number = entry->d_name + strlen(RECORD_PREFIX);
		if (snprintf(both, sizeof both, "%.20s-%.20s", number, number) >=
				(int)sizeof both ||
			ckt_uid_range_parse(both, &one) || find_uid(server->uid_groups, one.first))
			continue;
		struct ckt_uid_group *group = group_new(server, one.first, "");
		if (!group)
			break;
		record_read(group);
		group->lock_fd = take_lock(group->uid);
	}
	if (dir)
		closedir(dir);
}

struct ckt_uid_group *ckt_uid_group_adopt(struct ckt_server *server, uid_t uid)
{
	if (!server->uid_groups)
		return NULL;
	struct ckt_uid_group *group = find_uid(server->uid_groups, uid);
	if (!group && ckt_uid_range_has(&server->uid_groups->range, uid) &&
		(group = group_new(server, uid, "")))
		group->lock_fd = take_lock(uid);
	if (group)
		group->workers++;
	return group;
}

void ckt_uid_groups_settle(struct ckt_server *server)
{
	for (struct ckt_uid_group *group = server->uid_groups ? server->uid_groups->list : NULL;
		group; group = group->next)
		if (!group->workers && !group->cleaning)
			clean(group);
}

/* ---- All of them */

/* A server that is not root.  Without a namespace there is no range. */
static void enter_namespace(struct ckt_server *server, struct ckt_uid_range *range,
	char *ret_message, size_t message_size)
{
	char why[512];
	int fd;
	if (ckt_user_namespace_open(range, &fd, why, sizeof why)) {
		snprintf(ret_message, message_size,
			"--uid-range: the workers of all owners share the server's user: %s", why);
		*range = (struct ckt_uid_range){0};
		return;
	}
	server->user = (struct ckt_worker_user){.change = true,
		.user_namespace = fd,
		.keeps_groups = ckt_user_namespace_needs_groups(NULL)};
}

int ckt_uid_groups_init(struct ckt_server *server, char *ret_message, size_t message_size)
{
	const char *text = server->options.uid_range;
	struct ckt_uid_range range = {0};
	*ret_message = 0;
	/* The option's check has parsed it before. */
	if (text &&
		(ckt_uid_range_parse(text, &range) ||
			ckt_uid_range_check(
				&range, geteuid(), NULL, NULL, ret_message, message_size)))
		return -EINVAL;
	if (range.first && !server->user.change)
		enter_namespace(server, &range, ret_message, message_size);
	server->uid_groups = calloc(1, sizeof *server->uid_groups);
	if (!server->uid_groups) {
		snprintf(ret_message, message_size, "cannot start: out of memory");
		return -ENOMEM;
	}
	server->uid_groups->range = range;
	server->uid_groups->last = range.last;
	if (range.first) {
		server->user.uid = range.first;
		server->user.gid = (gid_t)range.first;
		snprintf(server->user.name, sizeof server->user.name, "%u", range.first);
	}
	return 0;
}

void ckt_uid_groups_fini(struct ckt_server *server)
{
	struct ckt_uid_groups *groups = server->uid_groups;
	if (!groups)
		return;
	while (wait_for_cleaner(groups, FINI_WAIT_MS))
		;
	while (groups->list)
		group_free(groups->list);
	free(groups);
	server->uid_groups = NULL;
	if (server->user.user_namespace)
		close(server->user.user_namespace);
	server->user.user_namespace = 0;
}

bool ckt_uid_groups_describe(const struct ckt_server *server, char *ret_text, size_t text_size)
{
	const struct ckt_uid_groups *groups = server->uid_groups;
	if (!groups || !groups->range.first)
		return false;
	snprintf(ret_text, text_size, "workers: a user id for each owner, %u to %u, %s%s",
		groups->range.first, groups->range.last,
		server->user.keeps_groups             ? "with the server's groups"
			: server->user.user_namespace ? "in a user namespace"
						      : "with the groups of --user",
		server->mounts
			? ""
			: "; /tmp and /dev/shm are the host's: mount namespaces are refused");
	return true;
}
