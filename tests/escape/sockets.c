/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts by sockets: kinds of them that no worker needs, the server, and other workers. */
#include <errno.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rpc/net.h"
#include "rpc/record.h"
#include "rpc/transport/transport.h"
#include "rpc/wire.h"
#include "server/worker/worker.h"
#include "tests/escape/agent.h"
#include "tests/escape/attempts.h"

enum { ANSWER_S = 2 };

static int make(int domain, int type, int protocol)
{
	int fd = socket(domain, type | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int reach(int type, const void *address, socklen_t size)
{
	int fd = socket(((const struct sockaddr *)address)->sa_family, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int result = connect(fd, address, size) ? -errno : 0;
	close(fd);
	return result;
}

static int send_raw(void)
{
	return make(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

static int open_packet(void)
{
	return make(AF_PACKET, SOCK_RAW, 0);
}

static int open_vsock(void)
{
	return make(AF_VSOCK, SOCK_STREAM, 0);
}

static int open_algorithms(void)
{
	return make(AF_ALG, SOCK_SEQPACKET, 0);
}

/* Whether it answers; `call` is a record for it, or what comes first. */
static int talk(const char *path, const uint8_t *call, size_t size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = ANSWER_S};
	char answer[64];
	if (!*path)
		return -EINVAL;
	snprintf(address.sun_path, sizeof address.sun_path, "%.107s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), result = 0;
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	struct ckt_transport to;
	ckt_transport_init_socket(&to, fd);
	if (connect(fd, (struct sockaddr *)&address, sizeof address))
		result = -errno;
	else if (size && ckt_record_write(&to, call, size, ckt_net_now_ms() + ANSWER_S * 1000, -1))
		result = -ECONNRESET;
	if (!result) {
		ssize_t n = recv(fd, answer, sizeof answer, 0);
		result = n > 0 ? 0 : n == 0 ? -ECONNRESET : -errno;
	}
	close(fd);
	return result;
}

/* It greets everybody whom it lets in, and its own user controls all sessions by it. */
static int connect_server(void)
{
	return talk(ckt_escape_told("socket"), NULL, 0);
}

/* By it the server controls the victim: asks for its state here. */
static int connect_worker(void)
{
	uint8_t call[CKT_CALL_HEADER_SIZE];
	const struct ckt_call_header header = {.xid = 1,
		.prog = CRICKET_WORKER_PROG,
		.vers = CRICKET_WORKER_VERS,
		.proc = CKT_WORKER_STATUS};
	ckt_call_header_put(call, &header);
	return talk(ckt_escape_told("victim-socket"), call, sizeof call);
}

/* By it workers share memory: a name of the abstract ones, after the zero. */
static int connect_abstract(void)
{
	const char *name = ckt_escape_told("victim-abstract");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(name);
	if (!length || length >= sizeof address.sun_path)
		return -EINVAL;
	memcpy(address.sun_path + 1, name, length);
	return reach(SOCK_SEQPACKET, &address,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length));
}

static int find_abstract_in(const char *path)
{
	char line[512];
	const char *name = ckt_escape_told("victim-abstract");
	FILE *file = fopen(path, "re");
	int result = file ? -ENOENT : -errno;
	while (file && *name && result && fgets(line, sizeof line, file))
		if (strstr(line, name))
			result = 0;
	if (file)
		fclose(file);
	return result;
}

/* The names of all abstract sockets: of the own network, of the server's and of the victim's. */
static int find_abstract(void)
{
	char path[64];
	int result = find_abstract_in("/proc/net/unix");
	if (result) {
		snprintf(path, sizeof path, "/proc/%ld/net/unix", ckt_escape_told_number("server"));
		result = find_abstract_in(path);
	}
	if (result) {
		snprintf(path, sizeof path, "/proc/%ld/net/unix", ckt_escape_told_number("victim"));
		result = find_abstract_in(path);
	}
	return result;
}

const struct ckt_escape_attempt ckt_escape_sockets[] = {
	{"inet-raw", send_raw},
	{"packet", open_packet},
	{"vsock", open_vsock},
	{"alg", open_algorithms},
	{"socket-server", connect_server},
	{"socket-worker", connect_worker},
	{"socket-abstract", connect_abstract},
	{"socket-names", find_abstract},
	{NULL, NULL},
};
