/* SPDX-License-Identifier: Apache-2.0 */
/* Clients' processes; see client_process.h. */
#include "server/worker/session/client_process.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rpc/transport/transport.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

enum { TEXT_MAX = 8192 };

/* Without stdio, so that every worker's allocations are the same. */
static bool read_text(const char *path, char ret_text[TEXT_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, ret_text, TEXT_MAX - 1) : -1;
	if (fd >= 0)
		close(fd);
	ret_text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/*
 * The number that the process has for itself: the last one, in the innermost namespace.  What the
 * kernel tells of its descriptor comes first, because the worker's /proc may not show the process.
 */
static bool calls_itself(int process_fd, int pid, uint32_t claimed_pid)
{
	char path[64], text[TEXT_MAX];
	char *line = NULL;
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", process_fd);
	if (process_fd >= 0 && read_text(path, text))
		line = strstr(text, "\nNSpid:");
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	if (!line && read_text(path, text))
		line = strstr(text, "\nNSpid:");
	if (!line)
		return (uint32_t)pid == claimed_pid;
	line += strlen("\nNSpid:");
	line[strcspn(line, "\n")] = 0;
	char *last = strrchr(line, '\t');
	return last && strtoul(last + 1, NULL, 10) == claimed_pid;
}

/* Clock ticks from the boot to its start; 0 if unknown. */
static unsigned long long start_of(const char *process)
{
	char path[64], text[TEXT_MAX];
	snprintf(path, sizeof path, "/proc/%s/stat", process);
	char *p = read_text(path, text) ? strrchr(text, ')') : NULL;
	/* Field 22; the name, field 2, may hold anything. */
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p + 1, NULL, 10) : 0;
}

/*
 * The number may be another process's by now: one that began after this worker never connected to
 * its server.
 */
int ckt_worker_client_process_by_number(int socket_fd, int pid)
{
	char number[16];
	snprintf(number, sizeof number, "%d", pid);
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -1;
	unsigned long long theirs = start_of(number), ours = start_of("self");
	struct ckt_transport client;
	ckt_transport_init_socket(&client, socket_fd);
	if (theirs && ours && theirs <= ours &&
		ckt_transport_wait(&client, CKT_TRANSPORT_ENDED, 0) == 0)
		return fd;
	close(fd);
	return -1;
}

int ckt_worker_client_process_open(int socket_fd, uint32_t claimed_pid)
{
	struct ckt_transport client;
	pid_t pid;
	uid_t uid;
	int fd = -1;
	socklen_t size = sizeof fd;
	ckt_transport_init_socket(&client, socket_fd);
	if (ckt_transport_peer_process(&client, &pid, &uid) || pid <= 0)
		return -1;
	if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) || fd < 0)
		fd = ckt_worker_client_process_by_number(socket_fd, pid);
	else
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (calls_itself(fd, pid, claimed_pid))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

bool ckt_worker_client_process_is_dead(int process_fd)
{
	struct pollfd p = {.fd = process_fd, .events = POLLIN};
	return process_fd >= 0 && poll(&p, 1, 0) > 0 && p.revents & POLLIN;
}
