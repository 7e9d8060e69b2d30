/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting and listening; see net.h. */
#include "rpc/net.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "rpc/transport/transport.h"

int64_t ckt_net_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void ckt_net_prepare(int fd)
{
	int one = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	ckt_net_keep_alive(fd);
}

static int connect_one(int family, const struct sockaddr *address, socklen_t length,
	int64_t deadline_ms, int *ret_fd)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int result = connect(fd, address, length) ? -errno : 0;
	if (result == -EINPROGRESS || result == -EAGAIN) {
		/*
		 * A UNIX socket with a full backlog returns EAGAIN, and the caller must try again.
		 */
		while (result == -EAGAIN && ckt_net_now_ms() < deadline_ms) {
			poll(NULL, 0, 10);
			result = connect(fd, address, length) ? -errno : 0;
		}
		if (result == -EINPROGRESS) {
			struct ckt_transport t;
			ckt_transport_init_socket(&t, fd);
			result = ckt_transport_wait_until(&t, CKT_TRANSPORT_WRITE, deadline_ms);
			int error = 0;
			socklen_t size = sizeof error;
			if (!result && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0)
				result = -error;
		}
	}
	if (result) {
		close(fd);
		return result;
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	if (family != AF_UNIX)
		ckt_net_prepare(fd);
	*ret_fd = fd;
	return 0;
}

static int unix_sockaddr(
	const char *path, struct sockaddr_un *ret, char *ret_message, size_t message_size)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof ret->sun_path) {
		snprintf(ret_message, message_size, "the socket path is longer than %zu bytes",
			sizeof ret->sun_path - 1);
		return -ENAMETOOLONG;
	}
	strcpy(ret->sun_path, path);
	return 0;
}

int ckt_net_read_address_file(
	const char *path, struct ckt_address *ret_address, char *ret_message, size_t message_size)
{
	char line[CKT_ADDRESS_TEXT_MAX];
	FILE *file = fopen(path, "re");
	if (!file) {
		int error = errno;
		snprintf(ret_message, message_size, "%s: %s", path, strerror(error));
		return -error;
	}
	char *text = fgets(line, sizeof line, file);
	fclose(file);
	if (!text) {
		snprintf(ret_message, message_size, "%s is empty; it must hold one address", path);
		return -EINVAL;
	}
	text[strcspn(text, " \t\r\n")] = 0;
	int result = ckt_address_parse(text, ret_address, ret_message, message_size);
	if (!result && ret_address->type == CKT_ADDRESS_FILE) {
		snprintf(ret_message, message_size, "%s names another file", path);
		return -EINVAL;
	}
	return result;
}

static int resolve(const struct ckt_address *address, int flags, struct addrinfo **ret,
	char *ret_message, size_t message_size)
{
	char port[8];
	snprintf(port, sizeof port, "%u", address->port);
	struct addrinfo hints = {.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = flags | AI_NUMERICSERV};
	int error = getaddrinfo(address->host[0] ? address->host : NULL, port, &hints, ret);
	if (!error)
		return 0;
	snprintf(ret_message, message_size, "%s",
		error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
	return error == EAI_SYSTEM ? -errno : -EHOSTUNREACH;
}

static int connect_within(const struct ckt_address *address, int64_t deadline_ms, int *ret_fd,
	char *ret_message, size_t message_size)
{
	int result;
	if (address->type == CKT_ADDRESS_UNIX) {
		struct sockaddr_un un;
		result = unix_sockaddr(address->host, &un, ret_message, message_size);
		if (!result) {
			result = connect_one(
				AF_UNIX, (struct sockaddr *)&un, sizeof un, deadline_ms, ret_fd);
			if (result)
				snprintf(ret_message, message_size, "%s", strerror(-result));
		}
		return result;
	}
	struct addrinfo *list = NULL;
	result = resolve(address, 0, &list, ret_message, message_size);
	if (result)
		return result;
	result = -EHOSTUNREACH;
	for (struct addrinfo *a = list; a; a = a->ai_next) {
		result = connect_one(a->ai_family, a->ai_addr, a->ai_addrlen, deadline_ms, ret_fd);
		if (!result)
			break;
	}
	freeaddrinfo(list);
	if (result)
		snprintf(ret_message, message_size, "%s", strerror(-result));
	return result;
}

int ckt_net_connect(const struct ckt_address *address, int timeout_ms, int *ret_fd,
	char *ret_message, size_t message_size)
{
	int64_t deadline_ms = ckt_net_now_ms() + timeout_ms;
	if (address->type != CKT_ADDRESS_FILE)
		return connect_within(address, deadline_ms, ret_fd, ret_message, message_size);
	struct ckt_address from_file;
	char text[CKT_ADDRESS_TEXT_MAX], cause[128];
	int result =
		ckt_net_read_address_file(address->host, &from_file, ret_message, message_size);
	if (result)
		return result;
	result = connect_within(&from_file, deadline_ms, ret_fd, cause, sizeof cause);
	if (result) {
		/* The caller knows only the file's name. */
		ckt_address_format(&from_file, text, sizeof text);
		snprintf(ret_message, message_size, "%s: %s", text, cause);
	}
	return result;
}

static int listen_on(
	int family, const struct sockaddr *address, socklen_t length, int mode, int *ret_fd)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int one = 1, result = 0;
	if (family != AF_UNIX)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
	/* Nobody can connect until listen(), so the mode is set in time. */
	if (bind(fd, address, length) ||
		(family == AF_UNIX &&
			chmod(((const struct sockaddr_un *)address)->sun_path, (mode_t)mode)) ||
		listen(fd, 512))
		result = -errno;
	if (result) {
		close(fd);
		return result;
	}
	*ret_fd = fd;
	return 0;
}

int ckt_net_listen(const struct ckt_address *address, int mode, int *ret_fd, char *ret_message,
	size_t message_size)
{
	int result;
	if (address->type == CKT_ADDRESS_FILE) {
		snprintf(ret_message, message_size, "file: cannot be an address to listen on");
		return -EINVAL;
	}
	if (address->type == CKT_ADDRESS_UNIX) {
		struct sockaddr_un un;
		result = unix_sockaddr(address->host, &un, ret_message, message_size);
		if (!result) {
			result =
				listen_on(AF_UNIX, (struct sockaddr *)&un, sizeof un, mode, ret_fd);
			if (result)
				snprintf(ret_message, message_size, "%s", strerror(-result));
		}
		return result;
	}
	struct addrinfo *list = NULL;
	result = resolve(address, AI_PASSIVE, &list, ret_message, message_size);
	if (result)
		return result;
	result = listen_on(list->ai_family, list->ai_addr, list->ai_addrlen, 0, ret_fd);
	freeaddrinfo(list);
	if (result)
		snprintf(ret_message, message_size, "%s", strerror(-result));
	return result;
}

int ckt_net_local_address(int fd, struct ckt_address *ret_address)
{
	struct sockaddr_storage storage;
	socklen_t length = sizeof storage;
	if (getsockname(fd, (struct sockaddr *)&storage, &length))
		return -errno;
	struct ckt_address address = {.type = CKT_ADDRESS_TCP};
	char port[8];
	if (getnameinfo((struct sockaddr *)&storage, length, address.host, sizeof address.host,
		    port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
		return -EINVAL;
	address.port = (uint16_t)atoi(port);
	*ret_address = address;
	return 0;
}
