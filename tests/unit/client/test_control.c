/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn/control.h: a connection for a question; every way that there is none says which
 * server and why.
 */
#include "client/conn/control.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/conn/settings.h"
#include "conn_parts.h"
#include "tests/unit/suite.h"

static void *hang_up(void *listener)
{
	int fd = accept((int)(intptr_t)listener, NULL, NULL);
	if (fd >= 0)
		close(fd);
	return NULL;
}

static void test_failures(void)
{
	struct ckt_address here = {.type = CKT_ADDRESS_UNIX};
	char message[2 * CKT_MESSAGE_MAX] = "", text[128];
	int fd = -7, listener;
	pthread_t thread;
	ckt_settings.address_given = true;
	IS(ckt_conn_control_connect(
		   "a:b:c:d:", ckt_net_now_ms() + 1000, &fd, message, sizeof message) < 0,
		true);
	YES(*message);
	YES(ckt_conn_control_connect("unix:/nonexistent/socket", ckt_net_now_ms() + 1000, &fd,
		    message, sizeof message) < 0);
	TEXT(message, "no server at unix:/nonexistent/socket: No such file or directory");
	ckt_settings.address_given = false;
	YES(ckt_conn_control_connect("unix:/nonexistent/socket", ckt_net_now_ms() + 1000, &fd,
		    message, sizeof message) < 0);
	HAS(message, "; set REMOTE_GPU_ADDRESS to a host that runs cricket-server");
	/* Somebody is there, but no server. */
	snprintf(here.host, sizeof here.host, "/tmp/ckt-control-%d", (int)getpid());
	snprintf(text, sizeof text, "unix:%.100s", here.host);
	MUST(ckt_net_listen(&here, 0600, &listener, message, sizeof message), 0);
	fcntl(listener, F_SETFL, 0);
	MUST(pthread_create(&thread, NULL, hang_up, (void *)(intptr_t)listener), 0);
	YES(ckt_conn_control_connect(text, ckt_net_now_ms() + 60000, &fd, message, sizeof message) <
		0);
	HAS(message, text);
	HAS(message, "check that this is a cricket-server's port");
	pthread_join(thread, NULL);
	close(listener);
	unlink(here.host);
	IS(fd, -7);
}

UNIT_SUITE(control, {"failures", test_failures})
