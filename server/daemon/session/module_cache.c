/* SPDX-License-Identifier: Apache-2.0 */
/* Caches of modules on disk; see module_cache.h. */
#include "server/daemon/session/module_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"
#include "rpc/module_cache.h"
#include "rpc/net.h"
#include "server/daemon/server.h"
#include "server/daemon/session/kernel_cache.h"
#include "server/daemon/session/module_store.h"
#include "server/daemon/session/session.h"

enum { OWNER_SIZE = 64, PIECE = 256 << 10, STACK_BYTES = 256 << 10, CALL_TIMEOUT_MS = 10000 };

/* An owner's directory while a worker uses it.  The thread's. */
struct owner {
	struct owner *next;
	char name[OWNER_SIZE];
	unsigned users;
	struct ckt_module_store store;
	int error; /* why it cannot be used; 0 */
};

/* A worker's connection.  The thread's, once it is in the list. */
struct connection {
	struct connection *next;
	int fd;
	char name[OWNER_SIZE];
	struct owner *owner; /* NULL until the first message */
	struct ckt_module_cache_message message;
	size_t have;     /* bytes of the message */
	uint64_t coming; /* bytes of a module behind it */
	struct ckt_module_write write;
};

struct ckt_module_cache {
	pthread_t thread;
	int poller, stop;
	uint64_t owner_bytes;
	char directory[CKT_PATH_MAX];
	struct owner *owners;
	bool told; /* that modules cannot be written, since one could be */
	uint8_t piece[PIECE];
	pthread_mutex_t lock; /* of the list */
	struct connection *connections;
};

/* ---- Owners: the thread's */

static void tell_once(struct ckt_module_cache *cache, const char *name, int error)
{
	if (!cache->told)
		ckt_warning("modules are not kept in %s/%s: %s; they are sent again at each start",
			cache->directory, name, strerror(-error));
	cache->told = true;
}

static struct owner *take_owner(struct ckt_module_cache *cache, const char *name)
{
	char path[CKT_PATH_MAX + OWNER_SIZE];
	struct owner *owner = cache->owners;
	while (owner && strcmp(owner->name, name) != 0)
		owner = owner->next;
	if (!owner) {
		owner = calloc(1, sizeof *owner);
		if (!owner)
			return NULL;
		strcpy(owner->name, name);
		snprintf(path, sizeof path, "%s/%s", cache->directory, name);
		owner->error = ckt_module_store_open(&owner->store, path, cache->owner_bytes);
		if (owner->error)
			tell_once(cache, name, owner->error);
		owner->next = cache->owners;
		cache->owners = owner;
	}
	owner->users++;
	return owner;
}

static void drop_owner(struct ckt_module_cache *cache, struct owner *owner)
{
	struct owner **place = &cache->owners;
	if (!owner || --owner->users)
		return;
	while (*place != owner)
		place = &(*place)->next;
	*place = owner->next;
	ckt_module_store_close(&owner->store);
	free(owner);
}

/* ---- Connections */

static void end_connection(struct ckt_module_cache *cache, struct connection *connection)
{
	struct connection **place = &cache->connections;
	pthread_mutex_lock(&cache->lock);
	while (*place != connection)
		place = &(*place)->next;
	*place = connection->next;
	pthread_mutex_unlock(&cache->lock);
	if (connection->owner)
		ckt_module_store_abandon(&connection->owner->store, &connection->write);
	drop_owner(cache, connection->owner);
	/* A child that was just forked may still have the socket, which epoll would go on watching. */
	epoll_ctl(cache->poller, EPOLL_CTL_DEL, connection->fd, NULL);
	close(connection->fd);
	free(connection);
}

static bool answer(struct connection *connection, int fd, uint64_t size)
{
	struct ckt_module_cache_answer answer = {.found = fd >= 0, .size = size};
	struct iovec part = {.iov_base = &answer, .iov_len = sizeof answer};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	ckt_net_fd_put(&message, &room, fd);
	return sendmsg(connection->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof answer;
}

static bool get(struct connection *connection)
{
	struct owner *owner = connection->owner;
	uint64_t size = 0;
	int fd = owner->error
		? owner->error
		: ckt_module_store_find(&owner->store, connection->message.hash, &size);
	bool good = answer(connection, fd, fd >= 0 ? size : 0);
	if (fd >= 0)
		close(fd);
	return good;
}

/* False: the connection ends. */
static bool list(struct connection *connection)
{
	struct {
		struct ckt_module_cache_answer answer;
		uint32_t words[CKT_MODULE_CACHE_WORDS];
	} text = {0};
	unsigned count = 0;
	struct owner *owner = connection->owner;
	int result = owner->error
		? owner->error
		: ckt_module_store_list(&owner->store, text.words, CKT_MODULE_CACHE_WORDS, &count);
	text.answer.size = count * sizeof *text.words;
	text.answer.found = count;
	text.answer.complete = !result;
	size_t size = sizeof text.answer + text.answer.size;
	return send(connection->fd, &text, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

static void begin_write(struct ckt_module_cache *cache, struct connection *connection)
{
	struct owner *owner = connection->owner;
	connection->coming = connection->message.size;
	if (owner->error)
		return;
	int result = ckt_module_store_begin(&owner->store, &connection->write,
		connection->message.hash, connection->message.size);
	if (result && result != -EEXIST && result != -EFBIG)
		tell_once(cache, owner->name, result);
}

/* False: the connection ends. */
static bool serve(struct ckt_module_cache *cache, struct connection *connection)
{
	const struct ckt_module_cache_message *message = &connection->message;
	if (!connection->owner)
		connection->owner = take_owner(cache, connection->name);
	if (!connection->owner)
		return false;
	switch (message->kind) {
	case CKT_MODULE_CACHE_GET:
		return get(connection);
	case CKT_MODULE_CACHE_LIST:
		return list(connection);
	case CKT_MODULE_CACHE_PUT:
		begin_write(cache, connection);
		return true;
	case CKT_MODULE_CACHE_BAD:
		if (!connection->owner->error &&
			ckt_module_store_remove(&connection->owner->store, message->hash))
			ckt_warning("a module in %s/%s did not match its hash, and is removed",
				cache->directory, connection->name);
		return true;
	default:
		return false;
	}
}

/* Bytes of a module; those that cannot be stored are dropped. */
static void take_piece(struct ckt_module_cache *cache, struct connection *connection, size_t size)
{
	struct owner *owner = connection->owner;
	connection->coming -= size;
	if (connection->write.fd < 0)
		return;
	int result = ckt_module_store_write(&connection->write, cache->piece, size);
	if (!result && !connection->coming)
		result = ckt_module_store_finish(&owner->store, &connection->write);
	else if (result)
		ckt_module_store_abandon(&owner->store, &connection->write);
	if (result == -EBADMSG)
		ckt_debug("a worker sent a module that does not match its hash");
	else if (result)
		tell_once(cache, owner->name, result);
	else if (!connection->coming)
		cache->told = false;
}

/* Takes one piece, so that no worker keeps the others waiting.  False: the connection ends. */
static bool take(struct ckt_module_cache *cache, struct connection *connection)
{
	size_t want = sizeof connection->message - connection->have;
	bool module = connection->coming > 0;
	uint8_t *to = module ? cache->piece : (uint8_t *)&connection->message + connection->have;
	if (module)
		want = connection->coming < PIECE ? (size_t)connection->coming : PIECE;
	/* The kernel drops descriptors that come along. */
	ssize_t n = recv(connection->fd, to, want, MSG_DONTWAIT);
	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	if (module) {
		take_piece(cache, connection, (size_t)n);
		return true;
	}
	connection->have += (size_t)n;
	if (connection->have < sizeof connection->message)
		return true;
	connection->have = 0;
	return serve(cache, connection);
}

static void *run(void *opaque)
{
	struct ckt_module_cache *cache = opaque;
	for (;;) {
		struct epoll_event event;
		int n = epoll_wait(cache->poller, &event, 1, -1);
		if (n < 0 && errno != EINTR)
			return NULL;
		if (n <= 0)
			continue;
		if (!event.data.ptr)
			return NULL;
		if (!take(cache, event.data.ptr))
			end_connection(cache, event.data.ptr);
	}
}

int ckt_module_cache_connect(struct ckt_module_cache *cache, const char *owner)
{
	int ends[2];
	struct connection *connection = calloc(1, sizeof *connection);
	if (!connection)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		free(connection);
		return -errno;
	}
	connection->fd = ends[0];
	connection->write.fd = -1;
	snprintf(connection->name, sizeof connection->name, "%s", owner);
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
	pthread_mutex_lock(&cache->lock);
	int result = epoll_ctl(cache->poller, EPOLL_CTL_ADD, ends[0], &event) ? -errno : 0;
	if (!result) {
		connection->next = cache->connections;
		cache->connections = connection;
	}
	pthread_mutex_unlock(&cache->lock);
	if (!result)
		return ends[1];
	close(ends[0]);
	close(ends[1]);
	free(connection);
	return result;
}

/* ---- Start and end */

static int start_thread(struct ckt_module_cache *cache)
{
	return ckt_thread_start(&cache->thread, STACK_BYTES, run, cache);
}

static void free_cache(struct ckt_module_cache *cache)
{
	if (cache->poller >= 0)
		close(cache->poller);
	if (cache->stop >= 0)
		close(cache->stop);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

int ckt_module_cache_start(
	const char *directory, uint64_t owner_bytes, struct ckt_module_cache **ret_cache)
{
	struct ckt_module_cache *cache = calloc(1, sizeof *cache);
	if (!cache)
		return -ENOMEM;
	pthread_mutex_init(&cache->lock, NULL);
	snprintf(cache->directory, sizeof cache->directory, "%s", directory);
	cache->owner_bytes = owner_bytes;
	cache->poller = epoll_create1(EPOLL_CLOEXEC);
	cache->stop = eventfd(0, EFD_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN};
	int result = cache->poller < 0 || cache->stop < 0 ||
			epoll_ctl(cache->poller, EPOLL_CTL_ADD, cache->stop, &event)
		? -errno
		: start_thread(cache);
	if (result)
		free_cache(cache);
	else
		*ret_cache = cache;
	return result;
}

void ckt_module_cache_stop(struct ckt_module_cache *cache)
{
	if (!cache)
		return;
	eventfd_write(cache->stop, 1);
	pthread_join(cache->thread, NULL);
	while (cache->connections)
		end_connection(cache, cache->connections);
	free_cache(cache);
}

/* ---- The server's sessions */

void ckt_module_cache_init(struct ckt_server *server)
{
	char directory[CKT_PATH_MAX];
	const char *told = server->options.module_cache;
	if (told && !strcmp(told, "off"))
		return;
	int result = -ENOENT;
	if (told)
		result = snprintf(directory, sizeof directory, "%s", told) < CKT_PATH_MAX
			? 0
			: -ENAMETOOLONG;
	else if (ckt_kernel_cache_find_base(directory) &&
		strlen(directory) + sizeof "/modules" <= sizeof directory) {
		strcat(directory, "/modules");
		result = 0;
	}
	if (!result)
		result = ckt_module_cache_start(
			directory, server->options.module_cache_size, &server->module_cache);
	if (result)
		ckt_warning("modules are not kept: %s; choose a directory with --module-cache",
			strerror(-result));
}

void ckt_module_cache_fini(struct ckt_server *server)
{
	ckt_module_cache_stop(server->module_cache);
	server->module_cache = NULL;
}

static void answered(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context, (void)result;
	if (error)
		ckt_debug("session %s: its worker takes no cache of modules: %s", session->id,
			strerror(-error));
}

/* Anonymous peers of two addresses are two owners: neither learns what the other has. */
static void name_owner(
	struct ckt_server *server, const struct ckt_identity *owner, char ret_name[OWNER_SIZE])
{
	int length = snprintf(ret_name, OWNER_SIZE, "address-");
	if (owner->kind != CKT_IDENTITY_ADDRESS) {
		ckt_kernel_cache_name(server, owner, ret_name, OWNER_SIZE);
		return;
	}
	for (size_t i = 0; i < sizeof owner->network; i++)
		length += snprintf(ret_name + length, (size_t)(OWNER_SIZE - length), "%02x",
			owner->network[i]);
}

int ckt_module_cache_open(struct ckt_session *session)
{
	char name[OWNER_SIZE];
	struct ckt_server *server = session->server;
	struct ckt_identity owner = session->uid == CKT_UID_UNKNOWN
		? session->identity
		: ckt_identity_of_owner(session->uid);
	if (!server->module_cache || owner.kind == CKT_IDENTITY_NONE ||
		(session->has_modules && ckt_identity_same(&owner, &session->modules_owner)))
		return 0;
	name_owner(server, &owner, name);
	int fd = ckt_module_cache_connect(server->module_cache, name);
	if (fd < 0) {
		ckt_warning("session %s: no cache of modules: %s", session->id, strerror(-fd));
		return 0;
	}
	session->has_modules = true;
	session->modules_owner = owner;
	return ckt_session_call(session, CKT_WORKER_MODULE_CACHE, NULL, NULL, fd, NULL, 0,
		CALL_TIMEOUT_MS, answered, NULL);
}
