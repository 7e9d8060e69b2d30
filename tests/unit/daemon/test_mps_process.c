/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/mps_process.c: the daemon, questions by processes of its group, and what is left of it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_mps.h"
#include "server/daemon/session/mps_process.h"

static struct ckt_mps_process_place place;
static struct ckt_worker_user user;

static pid_t begin(void)
{
	place = (struct ckt_mps_process_place){.program = fake_mps()};
	MUST(ckt_mps_process_place(&place, &server, &user, path_in("pipes")), 0);
	pid_t pid = ckt_mps_process_start(&place, CKT_MPS_DAEMON);
	YES(pid > 0);
	MUST(ckt_mps_process_wait(&place, CKT_MPS_IS_THERE, 60000), 0);
	return pid;
}

static int end(pid_t pid)
{
	int status = -1;
	IS(ckt_mps_process_wait(&place, CKT_MPS_QUIT, 60000), 0);
	YES(waitpid(pid, &status, 0) == pid);
	IS(ckt_mps_process_wait(&place, CKT_MPS_REMOVE, 60000), 0);
	IS(rmdir(place.directory), 0);
	unlink(path_in("told"));
	return status;
}

static void test_life(void)
{
	pid_t pid = begin();
	struct stat status;
	IS(stat(place.directory, &status), 0);
	IS(status.st_mode & 07777, 0700);
	write_file(path_in("pipes/logs/control.log"), "", 0600);
	int how = end(pid);
	YES(WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM);
}

static void test_names(void)
{
	char longest[200];
	memset(longest, 'x', sizeof longest);
	longest[0] = '/';
	longest[84] = 0;
	IS(ckt_mps_process_place(&place, &server, &user, longest), 0);
	HAS(place.logs, "CUDA_MPS_LOG_DIRECTORY=/xxx");
	longest[84] = 'x';
	longest[85] = 0;
	IS(ckt_mps_process_place(&place, &server, &user, longest), -ENAMETOOLONG);
}

static void test_no_daemon(void)
{
	place = (struct ckt_mps_process_place){.program = "/nonexistent"};
	MUST(ckt_mps_process_place(&place, &server, &user, path_in("pipes")), 0);
	pid_t pid = ckt_mps_process_start(&place, CKT_MPS_DAEMON);
	int status = 0;
	YES(waitpid(pid, &status, 0) == pid);
	IS(WEXITSTATUS(status), 126);
	/* It gives up by itself, or is killed. */
	IS(ckt_mps_process_wait(&place, CKT_MPS_IS_THERE, 60000), 1);
	IS(ckt_mps_process_wait(&place, CKT_MPS_IS_THERE, 0), -ETIMEDOUT);
	ckt_mps_process_wait(&place, CKT_MPS_REMOVE, 60000);
	IS(rmdir(place.directory), 0);
}

static bool is_dead(void *data)
{
	return waitpid(*(pid_t *)data, NULL, WNOHANG) == *(pid_t *)data;
}

static int children(void)
{
	int count = 0;
	for (const char *p = read_file("/proc/thread-self/children"); *p; p++)
		count += *p == ' ';
	return count;
}

static bool is_children(void *data)
{
	return children() == *(int *)data;
}

/* A client is terminated, and then killed; one that MPS does not know is killed, too. */
static void test_terminate(void)
{
	pid_t daemon = begin();
	int before = children();
	for (int known = 1; known >= 0; known--) {
		char number[32], said[64];
		pid_t client = fork();
		if (client == 0)
			for (;;)
				pause();
		snprintf(number, sizeof number, "%d\n", known ? (int)client : 9);
		write_file(path_in("clients"), number, 0600);
		unlink(path_in("told"));
		int fd = (int)syscall(SYS_pidfd_open, client, 0);
		IS(ckt_mps_process_detach(&place, CKT_MPS_TERMINATE, client, fd), 0);
		YES(run_until(is_dead, &client));
		snprintf(said, sizeof said, "terminate_client 71 %d\n", (int)client);
		IS(strstr(read_file(path_in("told")), said) != NULL, known);
		close(fd);
	}
	/* Their processes are waited for. */
	YES(run_until(is_children, &before));
	unlink(path_in("clients"));
	end(daemon);
}

UNIT_SUITE(mps_process, {"life", test_life}, {"names", test_names}, {"no daemon", test_no_daemon},
	{"terminate", test_terminate})
