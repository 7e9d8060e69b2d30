/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/uid_processes.c: processes of one user id that do not want to end: children
 * that outlive a worker, forks without end, a first thread that has ended.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/uid_processes.h"

enum { WORKERS = 1804289, OTHERS = 1804290 };

/* Runs as that user until it is killed; told when it has begun. */
static pid_t begin(uid_t uid, void (*work)(void))
{
	int pipe_fds[2];
	char byte;
	MUST(pipe(pipe_fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
			_exit(1);
		prctl(PR_SET_DUMPABLE, 0);
		if (write(pipe_fds[1], "x", 1) == 1)
			work();
		_exit(0);
	}
	MUST(read(pipe_fds[0], &byte, 1), 1);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return pid;
}

static void sleep_long(void)
{
	for (;;)
		pause();
}

/* Each process lives for a moment, and its child goes on. */
static void run_ahead(void)
{
	setsid();
	for (;;)
		if (fork() > 0)
			_exit(0);
}

static void *second_thread(void *nothing)
{
	sleep_long();
	return nothing;
}

static void end_first_thread(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, second_thread, NULL) == 0)
		syscall(SYS_exit, 0);
}

static void ignore_signals(void)
{
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_IGN);
	sleep_long();
}

static bool none_left(void *data)
{
	(void)data;
	return !ckt_uid_processes_any(WORKERS);
}

static void one(void (*work)(void))
{
	pid_t other = begin(OTHERS, sleep_long), pid = begin(WORKERS, work);
	int status;
	IS(ckt_uid_processes_kill(WORKERS, 0), 0);
	waitpid(pid, &status, 0);
	YES(run_until(none_left, NULL));
	/* Nobody else's. */
	YES(ckt_uid_processes_any(OTHERS));
	IS(kill(other, SIGKILL), 0);
	waitpid(other, &status, 0);
	NO(ckt_uid_processes_any(OTHERS));
}

static void test_kill(void)
{
	if (geteuid() != 0) {
		printf("skipped kill: not root\n");
		YES(ckt_uid_processes_any(geteuid()));
		YES(ckt_uid_processes_kill(0, 0) < 0);
		return;
	}
	NO(ckt_uid_processes_any(WORKERS));
	/* None is there, which is fine. */
	IS(ckt_uid_processes_kill(WORKERS, 0), 0);
	/* Root's are everybody's. */
	IS(ckt_uid_processes_kill(0, 0), -EPERM);
	one(sleep_long);
	one(run_ahead);
	one(ignore_signals);
}

/* Its first thread is a zombie, and it lives. */
static void test_threads(void)
{
	siginfo_t info;
	if (geteuid() != 0)
		return;
	pid_t pid = begin(WORKERS, end_first_thread);
	/* No moment at which the first thread is gone can be waited for: all are looked at. */
	for (int i = 0; i < 50; i++) {
		YES(ckt_uid_processes_any(WORKERS));
		run_for(1);
	}
	IS(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	IS(ckt_uid_processes_kill(WORKERS, 0), 0);
	YES(run_until(none_left, NULL));
	IS(waitpid(pid, NULL, 0), pid);
}

/* A zombie that nobody waits for does not count. */
static void test_zombie(void)
{
	if (geteuid() != 0)
		return;
	pid_t pid = begin(WORKERS, ignore_signals);
	IS(ckt_uid_processes_kill(WORKERS, 0), 0);
	YES(run_until(none_left, NULL));
	IS(waitpid(pid, NULL, WNOHANG), pid);
}

UNIT_SUITE(uid_processes, {"kill", test_kill}, {"threads", test_threads}, {"zombie", test_zombie})
