/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/systemd_notify.c: sd_notify: one datagram to where NOTIFY_SOCKET says, and nothing
 * where it says nothing of use.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/systemd_notify.h"

static void test_notify(void)
{
	static const bool abstract[] = {false, true};
	char name[64], got[64], longest[200];
	for (size_t i = 0; i < COUNT(abstract); i++) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		snprintf(name, sizeof name, abstract[i] ? "@ckt-notify-%d" : "/tmp/ckt-notify-%d",
			(int)getpid());
		strcpy(address.sun_path, name);
		if (abstract[i])
			address.sun_path[0] = 0;
		int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
		MUST(bind(fd, (struct sockaddr *)&address,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
			0);
		setenv("NOTIFY_SOCKET", name, 1);
		ckt_systemd_notify("READY=1\nSTATUS=x");
		IS(recv(fd, got, sizeof got, MSG_DONTWAIT), 16);
		IS(memcmp(got, "READY=1\nSTATUS=x", 16), 0);
		IS(recv(fd, got, sizeof got, MSG_DONTWAIT), -1);
		close(fd);
		if (!abstract[i])
			unlink(name);
		ckt_systemd_notify("nobody there");
	}
	memset(longest, 'x', sizeof longest - 1);
	longest[0] = '/';
	longest[sizeof longest - 1] = 0;
	const char *const useless[] = {"", "@", "relative", longest};
	for (size_t i = 0; i < COUNT(useless); i++) {
		setenv("NOTIFY_SOCKET", useless[i], 1);
		ckt_systemd_notify("READY=1");
	}
	unsetenv("NOTIFY_SOCKET");
	ckt_systemd_notify("READY=1");
}

UNIT_SUITE(notify, {"notify", test_notify})
