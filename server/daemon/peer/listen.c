/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets on which the server listens, and the files that publish their addresses. */
#include "server/daemon/peer/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "server/daemon/paths.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/peer/replace.h"
#include "server/daemon/policy/admission.h"
#include "server/daemon/tls/tls_process.h"

static void listener_ready(struct ckt_source *source, uint32_t events)
{
	struct ckt_listener *listener = CKT_CONTAINER(source, struct ckt_listener, source);
	(void)events;
	/* Without O_NONBLOCK: the socket goes to a worker, which may count on the usual mode. */
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0) {
		ckt_peer_accept(listener->server, fd);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		ckt_admit_no_descriptor(listener->server);
		/*
		 * Otherwise the connection would stay in the queue and wake the loop again at once.
		 */
		usleep(10000);
	}
}

static int add_listener(struct ckt_server *server, int fd, const char *asked, const char *text)
{
	struct ckt_listener *listener = &server->listeners[server->listener_count];
	listener->server = server;
	listener->source = (struct ckt_source){.fd = fd, .ready = listener_ready};
	snprintf(listener->asked, sizeof listener->asked, "%s", asked);
	snprintf(listener->text, sizeof listener->text, "%s", text);
	int result = ckt_loop_add(&server->loop, &listener->source, EPOLLIN);
	if (result)
		close(fd);
	else
		server->listener_count++;
	return result;
}

bool ckt_listen_is_loopback(int fd)
{
	struct sockaddr_storage storage;
	socklen_t size = sizeof storage;
	if (getsockname(fd, (struct sockaddr *)&storage, &size))
		return false;
	if (storage.ss_family == AF_INET)
		return ntohl(((struct sockaddr_in *)&storage)->sin_addr.s_addr) >> 24 == 127;
	return storage.ss_family == AF_INET6 &&
		IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&storage)->sin6_addr);
}

static int listen_tcp(
	struct ckt_server *server, const char *text, char *ret_message, size_t message_size)
{
	struct ckt_address address;
	char problem[256], bound[CKT_ADDRESS_TEXT_MAX];
	int fd;
	int result = ckt_address_parse(text, &address, problem, sizeof problem);
	/*
	 * ":7350" keeps the default host: only an explicit 0.0.0.0 or [::] opens the server to the
	 * network.
	 */
	if (!result && !*address.host)
		strcpy(address.host, "127.0.0.1");
	fd = result ? -1 : ckt_replace_inherited(server, text);
	if (!result && fd < 0)
		result = ckt_net_listen(&address, 0, &fd, problem, sizeof problem);
	if (result) {
		snprintf(ret_message, message_size, "--listen: '%s': %s%s", text, problem,
			result == -EADDRINUSE
				? "; another server may have it: give another port, or :0 with --address-file"
				: "");
		return result;
	}
	if (!ckt_listen_is_loopback(fd) && !ckt_tokens_known(server) &&
		!server->certificates.paths.authority && !server->options.insecure) {
		snprintf(ret_message, message_size,
			"--listen: other hosts can reach '%s': give --tokens FILE or --token-file FILE "
			"(or --insecure if everyone may use the GPUs)",
			text);
		close(fd);
		return -EPERM;
	}
	if (!ckt_listen_is_loopback(fd) && !ckt_tls_is_on(server) &&
		!server->options.insecure_plaintext) {
		snprintf(ret_message, message_size,
			"--listen: other hosts can reach '%s', and nothing is encrypted: give --tls-certificate FILE and --tls-key FILE "
			"(or --insecure-plaintext inside a network that you trust, or through a tunnel)",
			text);
		close(fd);
		return -EPERM;
	}
	if (!ckt_listen_is_loopback(fd) && !ckt_tls_is_on(server))
		ckt_warning("%s: connections are %s and not encrypted: use it inside a network "
			    "that you trust, or through a tunnel",
			text,
			server->options.insecure ? "neither authenticated"
						 : "authenticated by tokens");
	result = ckt_net_local_address(fd, &address);
	if (result) {
		close(fd);
		snprintf(ret_message, message_size, "--listen: '%s': %s", text, strerror(-result));
		return result;
	}
	ckt_address_format(&address, bound, sizeof bound);
	return add_listener(server, fd, text, bound);
}

/* Whether a server answers on the socket. */
static bool is_alive(const struct ckt_address *address)
{
	char message[256];
	int fd;
	if (ckt_net_connect(address, 1000, &fd, message, sizeof message))
		return false;
	close(fd);
	return true;
}

/*
 * The lock beside the socket, which the kernel releases when we die.  -EWOULDBLOCK if another
 * server has it.  An ending server removes the file, so the path must still name the locked file.
 */
static int take_lock(struct ckt_server *server)
{
	char path[CKT_PATH_MAX + 8];
	snprintf(path, sizeof path, "%s.lock", server->socket_path);
	for (;;) {
		struct stat opened, named;
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return -errno;
		int result = flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &opened) ? -errno : 0;
		if (!result && lstat(path, &named) == 0 && named.st_ino == opened.st_ino &&
			named.st_dev == opened.st_dev) {
			server->lock_fd = fd;
			return 0;
		}
		close(fd);
		if (result)
			return result;
	}
}

/* The lock, and nothing in the way of the socket. */
static int claim_path(struct ckt_server *server, const struct ckt_address *address,
	char *ret_message, size_t message_size)
{
	const char *path = server->socket_path;
	struct stat st;
	int result = ckt_paths_make_parent(path);
	if (!result)
		result = take_lock(server);
	if (result && result != -EWOULDBLOCK) {
		snprintf(ret_message, message_size,
			"--socket: '%s': %s: give a path in your own directory", path,
			strerror(-result));
		return result;
	}
	if (result || is_alive(address)) {
		snprintf(ret_message, message_size,
			"--socket: a running server uses '%s': end that server, or "
			"give another path",
			path);
		return -EADDRINUSE;
	}
	/* The socket of a dead server; anything but a socket is not ours to remove. */
	if (lstat(path, &st) == 0) {
		if (!S_ISSOCK(st.st_mode)) {
			snprintf(ret_message, message_size,
				"--socket: '%s' exists and is not a socket: give "
				"another path",
				path);
			return -EEXIST;
		}
		unlink(path);
	}
	return 0;
}

static int listen_unix(struct ckt_server *server, char *ret_message, size_t message_size)
{
	struct ckt_address address = {.type = CKT_ADDRESS_UNIX};
	char problem[256];
	const char *path = server->socket_path;
	struct stat st;
	int fd;
	/* "SOCKET.d/" + id + ".sock" must fit a socket address too. */
	if (strlen(path) + 2 + 1 + 12 + 5 >= 108) {
		snprintf(ret_message, message_size,
			"--socket: '%s' is too long (more than 87 bytes): give a "
			"shorter path",
			path);
		return -ENAMETOOLONG;
	}
	strcpy(address.host, path);
	int result = 0;
	bool inherits = server->lock_fd >= 0;
	if (!inherits)
		result = claim_path(server, &address, ret_message, message_size);
	if (result)
		return result;
	if (mkdir(server->socket_dir, 0700) && errno != EEXIST)
		result = -errno;
	if (!result &&
		(lstat(server->socket_dir, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
			st.st_mode & 0077))
		result = -EPERM;
	if (result) {
		snprintf(ret_message, message_size,
			"--socket: '%s' must be a directory of this user with mode 0700 (%s)",
			server->socket_dir, strerror(-result));
		return result;
	}
	/* Everybody may connect: SO_PEERCRED tells who it is. */
	fd = inherits ? ckt_replace_inherited(server, path) : -1;
	if (fd < 0)
		result = ckt_net_listen(&address, 0666, &fd, problem, sizeof problem);
	if (result) {
		snprintf(ret_message, message_size, "--socket: '%s': %s", path, problem);
		return result;
	}
	server->socket_bound = true;
	return add_listener(server, fd, path, path);
}

int ckt_listen_open(struct ckt_server *server, char *ret_message, size_t message_size)
{
	const struct ckt_list *list = &server->options.listen;
	int result = listen_unix(server, ret_message, message_size);
	for (unsigned i = 0; !result && i < list->count; i++) {
		if (strcmp(list->items[i], "none") != 0) {
			result = listen_tcp(server, list->items[i], ret_message, message_size);
		} else if (list->count > 1) {
			snprintf(ret_message, message_size,
				"--listen: 'none' cannot be combined with other "
				"addresses: leave one out");
			result = -EINVAL;
		}
	}
	return result;
}

/* A wildcard address is of no use to a client on another host. */
static void client_address(
	const struct ckt_server *server, const char *bound, char *ret_text, size_t text_size)
{
	struct ckt_address address;
	char message[64];
	if (ckt_address_parse(bound, &address, message, sizeof message) == 0 &&
		(strcmp(address.host, "0.0.0.0") == 0 || strcmp(address.host, "::") == 0))
		snprintf(address.host, sizeof address.host, "%s", server->host);
	ckt_address_format(&address, ret_text, text_size);
}

int ckt_listen_write_address_file(struct ckt_server *server, char *ret_message, size_t message_size)
{
	const char *path = server->options.address_file;
	char temporary[CKT_PATH_MAX], text[CKT_ADDRESS_TEXT_MAX];
	int result = 0;
	if (!path)
		return 0;
	snprintf(temporary, sizeof temporary, "%.4000s.%d", path, (int)getpid());
	FILE *file = fopen(temporary, "we");
	if (!file) {
		result = -errno;
	} else {
		for (unsigned i = 1; i < server->listener_count; i++) {
			client_address(server, server->listeners[i].text, text, sizeof text);
			fprintf(file, "%s\n", text);
		}
		if (server->listener_count == 1)
			fprintf(file, "unix:%s\n", server->socket_path);
		if (ferror(file))
			result = -EIO;
		if (fclose(file) && !result)
			result = -errno;
		if (!result && rename(temporary, path))
			result = -errno;
		if (result)
			unlink(temporary);
	}
	if (result)
		snprintf(ret_message, message_size,
			"--address-file: '%s': %s: give a path in a directory that you "
			"can write",
			path, strerror(-result));
	else
		server->address_file_written = true;
	return result;
}

void ckt_listen_close(struct ckt_server *server)
{
	char lock_path[CKT_PATH_MAX + 8];
	/* What lies on disk is then another server's. */
	bool replaced = server->replace.done;
	for (unsigned i = 0; i < server->listener_count; i++) {
		int fd = ckt_loop_remove(&server->loop, &server->listeners[i].source);
		if (fd >= 0)
			close(fd);
	}
	server->listener_count = 0;
	if (server->address_file_written && !replaced)
		unlink(server->options.address_file);
	if (server->socket_bound && !replaced) {
		unlink(server->socket_path);
		/* Stays if sockets of sessions remain. */
		rmdir(server->socket_dir);
	}
	if (server->lock_fd >= 0) {
		snprintf(lock_path, sizeof lock_path, "%s.lock", server->socket_path);
		if (server->socket_bound && !replaced)
			unlink(lock_path);
		close(server->lock_fd);
	}
	server->lock_fd = -1;
}
