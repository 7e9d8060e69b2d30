/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to a control daemon of MPS; see mps_control.h. */
#include "server/daemon/session/mps_control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rpc/net.h"

/* Room for the PIDs of all clients of a server, of which there are 48 at most. */
enum { ANSWER_MAX = 4096, COMMAND_MAX = 64, LOOK_NS = 10000000 };

static void execute(const struct ckt_mps_control *control, const int input[2], const int output[2])
{
	const char *const arguments[] = {"nvidia-cuda-mps-control", NULL};
	if (dup2(input[0], STDIN_FILENO) >= 0 && dup2(output[1], STDOUT_FILENO) >= 0)
		execve(control->program, (char *const *)arguments,
			(char *const *)control->environment);
	_exit(127);
}

/* Until the program has closed its output.  0 or -ETIMEDOUT. */
static int read_answer(int fd, char *ret_answer, size_t answer_size)
{
	int64_t end_ms = ckt_net_now_ms() + CKT_MPS_ASK_MS;
	size_t have = 0;
	for (;;) {
		char rest[256];
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		int64_t left_ms = end_ms - ckt_net_now_ms();
		if (left_ms <= 0 || poll(&ready, 1, (int)left_ms) <= 0)
			return -ETIMEDOUT;
		size_t room = answer_size - 1 - have;
		ssize_t n = read(fd, room ? ret_answer + have : rest, room ? room : sizeof rest);
		if (n <= 0)
			return 0;
		have += room ? (size_t)n : 0;
		ret_answer[have] = 0;
	}
}

static int converse(
	pid_t pid, int input, int output, const char *command, char *ret_answer, size_t answer_size)
{
	int status = 0;
	size_t length = strlen(command);
	bool written = write(input, command, length) == (ssize_t)length;
	close(input);
	int result = written ? read_answer(output, ret_answer, answer_size) : -EPIPE;
	if (result)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return result ? result : WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
}

int ckt_mps_control_ask(const struct ckt_mps_control *control, const char *command,
	char *ret_answer, size_t answer_size)
{
	int input[2], output[2];
	*ret_answer = 0;
	if (pipe2(input, O_CLOEXEC))
		return -errno;
	if (pipe2(output, O_CLOEXEC)) {
		int error = errno;
		close(input[0]);
		close(input[1]);
		return -error;
	}
	pid_t pid = fork();
	if (pid == 0)
		execute(control, input, output);
	int result = pid < 0 ? -errno : 0;
	close(input[0]);
	close(output[1]);
	/* One that ended at once is no reason to die. */
	signal(SIGPIPE, SIG_IGN);
	if (!result)
		result = converse(pid, input[1], output[0], command, ret_answer, answer_size);
	else
		close(input[1]);
	close(output[0]);
	return result;
}

bool ckt_mps_control_is_there(const struct ckt_mps_control *control, int timeout_ms)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	int64_t end_ms = ckt_net_now_ms() + timeout_ms;
	char answer[ANSWER_MAX];
	while (ckt_mps_control_ask(control, "get_server_list\n", answer, sizeof answer)) {
		if (ckt_net_now_ms() >= end_ms)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* Takes the next number of a list; 0: there is none. */
static long next_number(const char **list)
{
	*list += strcspn(*list, "0123456789");
	return strtol(*list, (char **)list, 10);
}

static bool has_client(const struct ckt_mps_control *control, long server, pid_t client)
{
	char command[COMMAND_MAX], answer[ANSWER_MAX];
	snprintf(command, sizeof command, "get_client_list %ld\n", server);
	if (ckt_mps_control_ask(control, command, answer, sizeof answer))
		return false;
	const char *list = answer;
	for (long number; (number = next_number(&list));)
		if (number == client)
			return true;
	return false;
}

int ckt_mps_control_terminate(const struct ckt_mps_control *control, pid_t client)
{
	char servers[ANSWER_MAX], command[COMMAND_MAX], answer[ANSWER_MAX];
	int result = ckt_mps_control_ask(control, "get_server_list\n", servers, sizeof servers);
	if (result)
		return result;
	const char *list = servers;
	for (long server; (server = next_number(&list));) {
		if (!has_client(control, server, client))
			continue;
		snprintf(command, sizeof command, "terminate_client %ld %d\n", server, (int)client);
		return ckt_mps_control_ask(control, command, answer, sizeof answer);
	}
	return -ESRCH;
}
