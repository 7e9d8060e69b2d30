/* SPDX-License-Identifier: Apache-2.0 */
/* The systemd notification protocol: one datagram to the socket that NOTIFY_SOCKET names. */
#include "server/daemon/systemd_notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/daemon/server.h"

void ckt_systemd_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = path ? strlen(path) : 0;
	if (length < 2 || length >= sizeof address.sun_path || (*path != '/' && *path != '@'))
		return;
	memcpy(address.sun_path, path, length);
	/* '@' stands for the abstract name space. */
	if (*path == '@')
		address.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
	close(fd);
}
