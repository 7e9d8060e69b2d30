/* Sockets and whole records; see net.h. */
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

int64_t ckt_net_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* 0 when ready; -ETIMEDOUT. */
static int wait_ready(int fd, short events, int64_t deadline_ms)
{
	for (;;) {
		int timeout = -1;
		if (deadline_ms >= 0) {
			int64_t left = deadline_ms - ckt_net_now_ms();
			if (left <= 0)
				return -ETIMEDOUT;
			timeout = left > 1000000 ? 1000000 : (int)left;
		}
		struct pollfd p = {.fd = fd, .events = events};
		int n = poll(&p, 1, timeout);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

static int connect_one(int family, const struct sockaddr *address, socklen_t length,
	int64_t deadline_ms, int *ret_fd)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int result = connect(fd, address, length) ? -errno : 0;
	if (result == -EINPROGRESS || result == -EAGAIN) {
		/* A UNIX socket with a full backlog says EAGAIN and must be asked again. */
		while (result == -EAGAIN && ckt_net_now_ms() < deadline_ms) {
			poll(NULL, 0, 10);
			result = connect(fd, address, length) ? -errno : 0;
		}
		if (result == -EINPROGRESS) {
			result = wait_ready(fd, POLLOUT, deadline_ms);
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
	if (family != AF_UNIX) {
		int one = 1;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		ckt_net_keep_alive(fd);
	}
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

static int read_address_file(
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
		snprintf(
			ret_message, message_size, "%s is empty: it should hold one address", path);
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
	int result = read_address_file(address->host, &from_file, ret_message, message_size);
	if (result)
		return result;
	result = connect_within(&from_file, deadline_ms, ret_fd, cause, sizeof cause);
	if (result) {
		/* The caller knows the file's name alone. */
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
	/* Until listen() nobody can connect, so the mode is right before it counts. */
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
		snprintf(ret_message, message_size, "file: is no address to listen on");
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

/* ---- Descriptors */

void ckt_net_fd_put(struct msghdr *message, union ckt_net_fd_room *room, int fd)
{
	if (fd < 0)
		return;
	*room = (union ckt_net_fd_room){.bytes = {0}};
	message->msg_control = room;
	message->msg_controllen = sizeof *room;
	struct cmsghdr *c = CMSG_FIRSTHDR(message);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
}

void ckt_net_fd_expect(struct msghdr *message, union ckt_net_fd_room *room)
{
	message->msg_control = room;
	message->msg_controllen = sizeof *room;
}

int ckt_net_fd_take(struct msghdr *message)
{
	int taken = -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
			int fd;
			memcpy(&fd, (const char *)c + at, sizeof fd);
			if (taken < 0)
				taken = fd;
			else
				close(fd);
		}
	}
	return taken;
}

/* ---- Records */

static int receive(int fd, void *data, size_t size, int64_t deadline_ms, int *ret_fd)
{
	uint8_t *p = data;
	while (size) {
		union ckt_net_fd_room room;
		struct iovec iov = {.iov_base = p, .iov_len = size};
		struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
		ckt_net_fd_expect(&message, &room);
		ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			if (errno != EAGAIN)
				return -errno;
			int result = wait_ready(fd, POLLIN, deadline_ms);
			if (result)
				return result;
			continue;
		}
		int passed = ckt_net_fd_take(&message);
		if (ret_fd && *ret_fd < 0)
			*ret_fd = passed;
		else if (passed >= 0)
			close(passed);
		if (n == 0)
			return -ECONNRESET;
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

int ckt_net_read_record(int fd, size_t max_bytes, int64_t deadline_ms, uint8_t **ret_data,
	size_t *ret_size, int *ret_fd)
{
	uint8_t mark[CKT_MARK_SIZE];
	int passed = -1;
	uint8_t *data = NULL;
	int result = receive(fd, mark, sizeof mark, deadline_ms, &passed);
	if (!result) {
		uint32_t word;
		memcpy(&word, mark, sizeof word);
		word = be32toh(word);
		size_t size = word & 0x7fffffff;
		if (!(word >> 31))
			result = -EPROTO;
		else if (size > max_bytes)
			result = -EMSGSIZE;
		else if (!(data = malloc(size ? size : 1)))
			result = -ENOMEM;
		else
			result = receive(fd, data, size, deadline_ms, &passed);
		if (!result)
			*ret_size = size;
	}
	if (result || !ret_fd) {
		if (passed >= 0)
			close(passed);
	} else {
		*ret_fd = passed;
	}
	if (result) {
		free(data);
		return result;
	}
	*ret_data = data;
	return 0;
}

int ckt_net_write_record(int fd, const uint8_t *data, size_t size, int64_t deadline_ms, int pass_fd)
{
	uint8_t mark[CKT_MARK_SIZE];
	ckt_put_u32(mark, 0x80000000u | (uint32_t)size);
	size_t sent = 0, total = size + sizeof mark;
	while (sent < total) {
		struct iovec iov[2];
		int parts = 0;
		if (sent < sizeof mark)
			iov[parts++] = (struct iovec){
				.iov_base = mark + sent, .iov_len = sizeof mark - sent};
		size_t skip = sent < sizeof mark ? 0 : sent - sizeof mark;
		iov[parts++] =
			(struct iovec){.iov_base = (void *)(data + skip), .iov_len = size - skip};
		struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)parts};
		union ckt_net_fd_room room;
		ckt_net_fd_put(&message, &room, sent ? -1 : pass_fd);
		ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			sent += (size_t)n;
		} else if (errno == EAGAIN) {
			int result = wait_ready(fd, POLLOUT, deadline_ms);
			if (result)
				return result;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}
