/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/uid_files.c: what a worker left for the next owner of its user id: trees,
 * however deep and however named, links, pipes and System V objects.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/uid_files.h"

enum { WORKERS = 1804291, DEPTH = 1000, DESCRIPTORS = 200 };

static bool is_there(const char *path)
{
	struct stat status;
	return lstat(path, &status) == 0;
}

static void file(const char *path, uid_t uid)
{
	write_file(path, "x", 0600);
	IS(lchown(path, uid, uid), 0);
}

static void folder(const char *path, uid_t uid)
{
	IS(mkdir(path, 0700), 0);
	IS(chown(path, uid, uid), 0);
}

static void test_kinds(void)
{
	char area[96], path[160];
	if (geteuid() != 0) {
		printf("skipped kinds: not root\n");
		IS(ckt_uid_files_remove_from("/nowhere", geteuid()), 0);
		return;
	}
	snprintf(area, sizeof area, "%s", path_in("area"));
	IS(mkdir(area, 01777), 0);
#define IN(name) (snprintf(path, sizeof path, "%s/%s", area, name), path)
	file(IN("theirs"), WORKERS);
	file(IN("root"), 0);
	folder(IN("root.d"), 0);
	file(IN("root.d/theirs"), WORKERS);
	folder(IN("tree"), WORKERS);
	folder(IN("tree/a"), WORKERS);
	folder(IN("tree/a/b"), 0);
	file(IN("tree/a/b/root"), 0);
	folder(IN("tree/cricket-cleaning-0"), WORKERS);
	file(IN("tree/cricket-cleaning-0/x"), WORKERS);
	file(IN("tree/cricket-cleaning-1"), WORKERS);
	/* Links are removed, not followed. */
	IS(symlink("../root.d", IN("tree/link")), 0);
	IS(symlink("root", IN("link")), 0);
	IS(lchown(IN("link"), WORKERS, WORKERS), 0);
	IS(mkfifo(IN("pipe"), 0600), 0);
	IS(lchown(IN("pipe"), WORKERS, WORKERS), 0);
	IS(ckt_uid_files_remove_from(area, WORKERS), 0);
	NO(is_there(IN("theirs")) || is_there(IN("tree")) || is_there(IN("link")) ||
		is_there(IN("pipe")));
	YES(is_there(IN("root")) && is_there(IN("root.d/theirs")));
	unlink(IN("root.d/theirs"));
	rmdir(IN("root.d"));
	unlink(IN("root"));
	IS(rmdir(area), 0);
}

/* Deeper than any path may be long, and than there are descriptors. */
static void test_deep(void)
{
	char area[96];
	struct rlimit before, few;
	if (geteuid() != 0)
		return;
	snprintf(area, sizeof area, "%s", path_in("deep"));
	IS(mkdir(area, 0700), 0);
	IS(chmod(area, 0777), 0);
	pid_t pid = fork();
	if (pid == 0) {
		bool good = chdir(area) == 0 && setegid(WORKERS) == 0 && seteuid(WORKERS) == 0;
		for (int i = 0; i < DEPTH && good; i++)
			good = mkdir("down", 0700) == 0 && mkdir("side", 0700) == 0 &&
				mkdir("side/s", 0700) == 0 && chdir("down") == 0;
		_exit(!good);
	}
	int status = -1;
	IS(waitpid(pid, &status, 0), pid);
	IS(status, 0);
	MUST(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){DESCRIPTORS, before.rlim_max};
	MUST(setrlimit(RLIMIT_NOFILE, &few), 0);
	IS(ckt_uid_files_remove_from(area, WORKERS), 0);
	MUST(setrlimit(RLIMIT_NOFILE, &before), 0);
	IS(rmdir(area), 0);
}

static void test_sysv(void)
{
	struct shmid_ds shared;
	struct semid_ds semaphores;
	struct msqid_ds queue;
	int ids[3], own = shmget(IPC_PRIVATE, 4096, 0600);
	if (geteuid() != 0 || own < 0) {
		printf("skipped sysv: not root, or this kernel has none\n");
		return;
	}
	int pipe_fds[2];
	MUST(pipe(pipe_fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		bool good = setresuid(WORKERS, WORKERS, WORKERS) == 0;
		ids[0] = shmget(IPC_PRIVATE, 4096, 0666);
		ids[1] = semget(IPC_PRIVATE, 1, 0666);
		ids[2] = msgget(IPC_PRIVATE, 0666);
		_exit(!good || write(pipe_fds[1], ids, sizeof ids) != sizeof ids);
	}
	MUST(read(pipe_fds[0], ids, sizeof ids), sizeof ids);
	waitpid(pid, NULL, 0);
	YES(ids[0] >= 0 && ids[1] >= 0 && ids[2] >= 0);
	YES(shmctl(ids[0], IPC_STAT, &shared) == 0 &&
		semctl(ids[1], 0, IPC_STAT, &semaphores) == 0 &&
		msgctl(ids[2], IPC_STAT, &queue) == 0);
	IS(ckt_uid_files_remove_sysv(WORKERS), 0);
	IS(shmctl(ids[0], IPC_STAT, &shared), -1);
	IS(semctl(ids[1], 0, IPC_STAT, &semaphores), -1);
	IS(msgctl(ids[2], IPC_STAT, &queue), -1);
	IS(shmctl(own, IPC_STAT, &shared), 0);
	shmctl(own, IPC_RMID, NULL);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	IS(ckt_uid_files_remove(WORKERS), 0);
}

UNIT_SUITE(uid_files, {"kinds", test_kinds}, {"deep", test_deep}, {"sysv", test_sysv})
