/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/session.h: sessions: who waits for them, their end, GPUs that a program
 * leaves itself, sockets that dead workers left.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "inside.h"
#include "cudacommon/visible_devices.h"

static unsigned told;
static int told_error;

static void tell(struct ckt_session *session, void *context, int error, const char *message)
{
	(void)session, (void)context, (void)message;
	told++;
	told_error = error;
}

static void test_waiting(void)
{
	struct ckt_session *session = session_new("0000000000d1");
	YES(ckt_session_find(&server, "0000000000d1") == session);
	CU_ASSERT_PTR_NULL(ckt_session_find(&server, "0000000000d"));
	CU_ASSERT_PTR_NULL(ckt_session_find(&server, ""));
	told = 0;
	IS(ckt_session_wait_started(session, tell, NULL), 0);
	IS(told, 1); /* at once: it lives */
	IS(told_error, 0);
	ckt_session_kill(session, "a test");
	IS(session->phase, CKT_SESSION_ENDING);
	YES(session->timer.link != NULL);
	ckt_session_kill(session, "a test");
	ckt_session_expect_end(session);
	run_for(20);
	IS(worker.calls[CKT_WORKER_KILL], 1); /* asked once */
	IS(ckt_session_wait_started(session, tell, NULL), -ESRCH);
	IS(told, 1);
	session_drop(session);
	/* One that ends by itself is not asked. */
	session = session_new("0000000000d2");
	ckt_session_expect_end(session);
	run_for(20);
	IS(session->phase, CKT_SESSION_ENDING);
	IS(worker.calls[CKT_WORKER_KILL], 0);
	session_drop(session);
}

static void test_visible(void)
{
	static const struct {
		const char *text;
		int result;
		const char *says;
	} cases[] = {{"", -ENODEV, "leaves none of the GPUs of here"},
		{"-1", -ENODEV, "leaves none"}, {"7", -ENODEV, "leaves none"},
		{"GPU-ffffffff", -ENODEV, "leaves none"},
		{"0,0", -EINVAL, "names a GPU of here twice"}};
	unsigned before = server.session_count;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char name[128], message[256] = "";
		ckt_capability capability = {.name = name};
		ckt_hello_args hello = hello_args(CKT_HELLO_NEW, "");
		struct ckt_session *session;
		snprintf(name, sizeof name, "%s%s", CKT_VISIBLE_CAPABILITY, cases[i].text);
		hello.capabilities.capabilities_len = 1;
		hello.capabilities.capabilities_val = &capability;
		struct ckt_session_spec spec = {.hello = &hello, .image_fd = -1, .gpu = -1};
		IS(ckt_session_create(&server, &spec, &session, message, sizeof message),
			cases[i].result);
		HAS(message, cases[i].says);
		IS(server.session_count, before);
	}
}

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

UNIT_SUITE(session, {"waiting", test_waiting}, {"visible", test_visible}, {"adopt", test_adopt})
