/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/metrics/metrics.c in the test's own loop: addresses, answers, clients that say
 * nothing and more of them than there are places.  tests/server/test_metrics.py has the rest.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/metrics/metrics.h"

/* At one time: no more than the kernel keeps for a server that does not accept. */
enum { CROWD = CKT_METRICS_CONNECTIONS + 36 };

static struct ckt_metrics_server *metrics;
static char address[256], message[512];

static int open_at(const char *text)
{
	snprintf(address, sizeof address, "%s", text);
	server.options.metrics = address;
	*message = 0;
	/* Else NVML would be asked, if this host has one. */
	bool soft = server.driver.soft;
	server.driver.soft = true;
	int result = ckt_metrics_open(&server, &metrics, message, sizeof message);
	server.driver.soft = soft;
	return result;
}

static int client(const char *request)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	strcpy(to.sun_path, address + strlen("unix:"));
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	MUST(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	IS(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	return fd;
}

static char reply[65536];

static bool is_done(void *data)
{
	int fd = *(int *)data;
	size_t have = strlen(reply);
	ssize_t n = recv(fd, reply + have, sizeof reply - 1 - have, MSG_DONTWAIT);
	reply[have + (n > 0 ? (size_t)n : 0)] = 0;
	return n == 0 || (n < 0 && errno != EAGAIN);
}

/* Until it closes the connection. */
static const char *ask(const char *request)
{
	int fd = client(request);
	*reply = 0;
	YES(run_until(is_done, &fd));
	close(fd);
	return reply;
}

static void test_addresses(void)
{
	server.options.metrics = NULL;
	MUST(ckt_metrics_open(&server, &metrics, message, sizeof message), 0);
	CU_ASSERT_PTR_NULL(metrics);
	ckt_metrics_close(metrics);
	IS(open_at("0.0.0.0:0"), -EPERM);
	HAS(message, "--insecure-plaintext");
	server.options.insecure_plaintext = true;
	MUST(open_at("0.0.0.0:0"), 0);
	ckt_metrics_close(metrics);
	server.options.insecure_plaintext = false;
	MUST(open_at(":0"), 0);
	HAS(ckt_metrics_text(metrics), "http://127.0.0.1:");
	ckt_metrics_close(metrics);
	IS(open_at("unix:/no/such/directory/socket"), -ENOENT);
	HAS(message, "cannot listen on 'unix:/no/such/directory/socket'");
	server.options.metrics = NULL;
}

static void open_unix(void)
{
	char text[200];
	snprintf(text, sizeof text, "unix:%s", path_in("metrics"));
	MUST(open_at(text), 0);
}

static void test_answers(void)
{
	struct stat status;
	open_unix();
	MUST(stat(address + 5, &status), 0);
	IS(status.st_mode & 0777, 0600);
	/* A living server keeps it. */
	struct ckt_metrics_server *first = metrics;
	IS(open_at(strdupa(address)), -EADDRINUSE);
	metrics = first;
	HAS(ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), "\r\n\r\nok\n");
	HAS(reply, "HTTP/1.1 200");
	HAS(ask("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 200");
	server.stopping = true;
	HAS(ask("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 503");
	server.stopping = false;
	HAS(ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), "cricket_build_info{version=");
	HAS(ask("GET /x HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 404");
	HAS(ask("PUT /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"), "HTTP/1.1 405");
	ckt_metrics_close(metrics);
	IS(stat(address + 5, &status), -1);
	server.options.metrics = NULL;
}

static void test_crowd(void)
{
	int crowd[CROWD];
	unsigned ended = 0;
	open_unix();
	for (unsigned i = 0; i < CROWD; i++)
		crowd[i] = client("GET /metrics HTTP/1.1\r\n");
	/* The newest is served without a wait for anybody's age: the oldest made room for it. */
	int fd = client("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
	*reply = 0;
	for (int i = 0; i < 1000 && !is_done(&fd); i++)
		run_for(0);
	HAS(reply, "HTTP/1.1 200");
	close(fd);
	for (unsigned i = 0; i < CROWD; i++) {
		char byte;
		ssize_t n = recv(crowd[i], &byte, 1, MSG_DONTWAIT);
		ended += n == 0 || (n < 0 && errno != EAGAIN);
	}
	YES(ended >= CROWD - CKT_METRICS_CONNECTIONS);
	YES(ended < CROWD);
	for (unsigned i = 0; i < CROWD; i++)
		close(crowd[i]);
	ckt_metrics_close(metrics);
	server.options.metrics = NULL;
}

UNIT_SUITE(metrics, {"addresses", test_addresses}, {"answers", test_answers}, {"crowd", test_crowd})
