/* SPDX-License-Identifier: Apache-2.0 */
/* Containers of clients; see client_container.h. */
#include "server/daemon/peer/client_container.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rpc/identity.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum { LINE_BYTES = 4096 };

static bool counts_memory(const char *controllers, const char *end)
{
	char list[256] = ",";
	size_t length = (size_t)(end - controllers);
	if (length > sizeof list - 3)
		return false;
	memcpy(list + 1, controllers, length);
	memcpy(list + 1 + length, ",", 2);
	return strstr(list, ",memory,") != NULL;
}

void ckt_client_container_read(const char *path, char *ret_cgroup, size_t cgroup_size)
{
	FILE *file = fopen(path, "re");
	char line[LINE_BYTES];
	*ret_cgroup = 0;
	while (file && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = 0;
		/* "ID:CONTROLLERS:PATH" */
		char *controllers = strchr(line, ':');
		char *cgroup = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!cgroup || strlen(cgroup + 1) >= cgroup_size)
			continue;
		bool unified = strncmp(line, "0::", 3) == 0;
		if ((unified && !*ret_cgroup) || counts_memory(controllers + 1, cgroup))
			strcpy(ret_cgroup, cgroup + 1);
	}
	if (file)
		fclose(file);
}

/* Whether the number still means who connected. */
static bool is_same(int fd, const struct ckt_auth_peer *who, const char *directory)
{
	int pidfd = -1;
	socklen_t size = sizeof pidfd;
	struct stat st;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0) {
		bool lives = syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0;
		close(pidfd);
		return lives;
	}
	/* Not of an old kernel: the process is gone. */
	if (errno != ENOPROTOOPT)
		return false;
	return stat(directory, &st) == 0 && st.st_uid == who->uid;
}

void ckt_client_container(
	int fd, const struct ckt_auth_peer *who, char *ret_cgroup, size_t cgroup_size)
{
	char directory[32], path[48];
	*ret_cgroup = 0;
	if (who->kind != CKT_PEER_UNIX || who->pid <= 0)
		return;
	snprintf(directory, sizeof directory, "/proc/%d", who->pid);
	snprintf(path, sizeof path, "%s/cgroup", directory);
	ckt_client_container_read(path, ret_cgroup, cgroup_size);
	/* Afterwards: what was read is then of a process that lived all the time. */
	if (!is_same(fd, who, directory))
		*ret_cgroup = 0;
}
