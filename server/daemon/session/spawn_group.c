/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a group that are no workers; see spawn_group.h. */
#include "server/daemon/session/spawn_group.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/daemon/server.h"
#include "server/daemon/session/group_domain.h"
#include "server/daemon/session/spawn_cage.h"
#include "server/daemon/session/spawn_mounts.h"
#include "server/daemon/session/spawn_proc.h"
#include "server/daemon/session/spawn_user.h"
#include "server/daemon/session/user_namespace.h"

struct starting {
	struct ckt_server *server;
	const struct ckt_group_process *process;
	const struct ckt_spawn_mounts *mounts;
};

/* While the child may still write to the server's directory.  0, or -1 and errno. */
static int make_directory(const struct ckt_group_process *process)
{
	const struct ckt_worker_user *user = process->user;
	if (mkdir(process->directory, 0700) == 0)
		return user->change ? lchown(process->directory, user->uid, user->gid) : 0;
	return errno == EEXIST ? 0 : -1;
}

/* The streams are /dev/null, and no other descriptor of the server's stays. */
static int place_descriptors(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
		if (null < 0 || dup2(null, stream) < 0)
			return -1;
	if (fd >= 0 && fd != CKT_GROUP_PROCESS_FD && dup2(fd, CKT_GROUP_PROCESS_FD) < 0)
		return -1;
	syscall(SYS_close_range, fd >= 0 ? CKT_GROUP_PROCESS_FD + 1 : CKT_GROUP_PROCESS_FD, ~0u, 0);
	return 0;
}

static int enter(const struct starting *starting)
{
	const struct ckt_group_process *process = starting->process;
	const struct ckt_worker_user *user = process->user;
	if (ckt_user_namespace_enter(user->user_namespace, user->gid) || make_directory(process) ||
		ckt_group_domain_enter(process->domain) || setsid() < 0 ||
		ckt_spawn_cage_limit(user->user_namespace) ||
		ckt_spawn_mounts_enter(starting->mounts) || place_descriptors(process->fd))
		return -1;
	ckt_spawn_cage_bound();
	errno = -ckt_spawn_become_user(user);
	return errno || ckt_spawn_cage_drop() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -1 : 0;
}

static void run(void *opaque)
{
	const struct starting *starting = opaque;
	sigset_t none;
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	_exit(enter(starting) ? CKT_GROUP_PROCESS_FAILED
			      : starting->process->run(starting->process->context));
}

pid_t ckt_group_process_start(struct ckt_server *server, const struct ckt_group_process *process)
{
	/* MPS looks at its clients, which a worker's own /proc would hide. */
	static const struct ckt_spawn_proc hosts;
	struct ckt_spawn_mounts mounts;
	struct starting starting = {server, process, &mounts};
	ckt_spawn_mounts_init(&mounts, server, process->user, process->domain != NULL, "");
	ckt_spawn_mounts_keep(&mounts, process->directory);
	ckt_spawn_mounts_keep_directory_of(&mounts, process->program);
	mounts.proc = &hosts;
	pid_t pid = ckt_group_domain_fork(process->domain, run, &starting);
	int result = pid < 0 ? -errno : pid;
	ckt_spawn_mounts_fini(&mounts);
	return result;
}
