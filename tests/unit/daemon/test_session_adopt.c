/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/session_adopt.c: sockets that dead workers left. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "inside.h"

static void leave_socket(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%.80s/%s", server.socket_dir, name);
	IS(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	close(fd);
}

static bool is_there(const char *name)
{
	char path[256];
	struct stat st;
	snprintf(path, sizeof path, "%.200s/%s", server.socket_dir, name);
	return lstat(path, &st) == 0;
}

static void test_adopt(void)
{
	/* Of a dead worker; and names that no worker has. */
	static const char *const names[] = {"0000000000e1.sock", "0000000000E1.sock",
		"0000000000e.sock", "0000000000e12.sock", "0000000000e1.sick"};
	unsigned before = server.session_count;
	for (size_t i = 0; i < COUNT(names); i++)
		leave_socket(names[i]);
	IS(ckt_session_adopt_all(&server), 0);
	for (size_t i = 0; i < COUNT(names); i++) {
		IS(is_there(names[i]), i != 0);
		char path[256];
		snprintf(path, sizeof path, "%.200s/%s", server.socket_dir, names[i]);
		unlink(path);
	}
	IS(server.session_count, before);
	char kept[sizeof server.socket_dir];
	memcpy(kept, server.socket_dir, sizeof kept);
	snprintf(server.socket_dir, sizeof server.socket_dir, "/nonexistent");
	IS(ckt_session_adopt_all(&server), -ENOENT);
	memcpy(server.socket_dir, kept, sizeof kept);
}

UNIT_SUITE(session_adopt, {"adopt", test_adopt})
