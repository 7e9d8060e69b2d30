/* SPDX-License-Identifier: Apache-2.0 */
/* cricket-server --replace; see replace.h. */
#include "server/daemon/peer/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/hello.h"
#include "rpc/net.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/session/session.h"
#include "server/daemon/systemd_notify.h"

enum { LOOK_MS = 20, CONNECT_TIMEOUT_MS = 5000, HELLO_TIMEOUT_MS = 10000, END_TIMEOUT_MS = 30000 };

/* A packet carries one descriptor, but the last. */
enum kind { KIND_LOCK = 1, KIND_LISTENER = 2, KIND_END = 3 };

struct packet {
	uint32_t kind;
	char asked[CKT_ADDRESS_TEXT_MAX]; /* of a listener: as its server was told */
	char text[CKT_ADDRESS_TEXT_MAX];  /* and as it is bound */
};

/* ---- The server that goes */

/* What is half done, in words; NULL: nothing. */
static const char *unfinished(const struct ckt_server *server)
{
	for (const struct ckt_session *s = server->sessions; s; s = s->next) {
		if (s->phase != CKT_SESSION_LIVE)
			return "a session begins or ends";
		if (s->holder || s->job_hold)
			return "a session is held for a checkpoint or a migration";
		/* A client's socket goes to its worker in such a call. */
		for (int kind = 0; kind < CKT_LINKS; kind++)
			if (s->links[kind].requests)
				return "a worker has not answered a call";
	}
	for (const struct ckt_peer *peer = server->peers_first; peer; peer = peer->next)
		if (peer->phase != CKT_PEER_CONTROL)
			return "a program says hello, or waits for a session";
		else if (peer->holds && !peer->wants_events)
			return "a call of cricketctl is under way";
	return server->stages ? "an image travels" : NULL;
}

static void listen_again(struct ckt_server *server)
{
	for (unsigned i = 0; i < server->listener_count; i++)
		ckt_loop_change(&server->loop, &server->listeners[i].source, EPOLLIN);
}

static void give_up(struct ckt_server *server, const char *why)
{
	struct ckt_replace *replace = &server->replace;
	ckt_warning("another server does not take this one's place: %s", why);
	ckt_timer_clear(&replace->timer);
	close(ckt_loop_remove(&server->loop, &replace->channel));
	replace->open = false;
	listen_again(server);
}

static bool give(int channel, enum kind kind, const struct ckt_listener *listener, int fd)
{
	struct packet packet = {.kind = kind};
	struct iovec part = {.iov_base = &packet, .iov_len = sizeof packet};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	if (listener) {
		snprintf(packet.asked, sizeof packet.asked, "%s", listener->asked);
		snprintf(packet.text, sizeof packet.text, "%s", listener->text);
	}
	ckt_net_fd_put(&message, &room, fd);
	return sendmsg(channel, &message, MSG_NOSIGNAL) == sizeof packet;
}

static void look(struct ckt_timer *timer)
{
	struct ckt_server *server = CKT_CONTAINER(timer, struct ckt_server, replace.timer);
	struct ckt_replace *replace = &server->replace;
	const char *left = unfinished(server);
	if (server->stopping || (left && ckt_net_now_ms() >= replace->deadline_ms)) {
		give_up(server, server->stopping ? "this one ends" : left);
		return;
	}
	if (left) {
		ckt_timer_set(&server->loop, timer, LOOK_MS);
		return;
	}
	int channel = replace->channel.fd;
	bool done = give(channel, KIND_LOCK, NULL, server->lock_fd);
	for (unsigned i = 0; done && i < server->listener_count; i++)
		done = give(channel, KIND_LISTENER, &server->listeners[i],
			server->listeners[i].source.fd);
	if (!done || !give(channel, KIND_END, NULL, -1)) {
		give_up(server, "it does not take the sockets");
		return;
	}
	ckt_info("another server takes this one's place with %u sessions", server->session_count);
	replace->done = true;
	server->loop.stop = true;
}

static void successor_gone(struct ckt_source *source, uint32_t events)
{
	struct ckt_server *server = CKT_CONTAINER(source, struct ckt_server, replace.channel);
	(void)events;
	give_up(server, "it has ended");
}

static const char *refusal(const struct ckt_peer *peer, int passed_fd)
{
	const struct ckt_server *server = peer->server;
	int type = 0;
	socklen_t size = sizeof type;
	if (peer->who.uid == CKT_UID_UNKNOWN || !ckt_uid_is_operator(peer->who.uid))
		return "only root and the server's user may replace it, over its UNIX socket";
	if (passed_fd < 0 || getsockopt(passed_fd, SOL_SOCKET, SO_TYPE, &type, &size) ||
		type != SOCK_SEQPACKET)
		return "no channel for its sockets came along";
	if (server->replace.open || server->stopping)
		return "it ends, or is being replaced already";
	if (server->kept)
		return "it keeps images in memory, which would be lost: write or remove them (cricketctl image list)";
	return NULL;
}

void ckt_control_replace(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	struct ckt_server *server = peer->server;
	struct ckt_replace *replace = &server->replace;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {CKT_CONTROL_OK, buffer};
	const char *why = refusal(peer, *passed_fd);
	(void)decoded;
	if (!why) {
		replace->channel = (struct ckt_source){.fd = *passed_fd, .ready = successor_gone};
		if (ckt_loop_add(&server->loop, &replace->channel, 0))
			why = "out of memory";
	}
	if (why) {
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "%s", why);
	} else {
		*passed_fd = -1;
		replace->open = true;
		for (unsigned i = 0; i < server->listener_count; i++)
			ckt_loop_change(&server->loop, &server->listeners[i].source, 0);
		replace->deadline_ms = ckt_net_now_ms() + CKT_REPLACE_PATIENCE_MS;
		replace->timer.fire = look;
		ckt_timer_set(&server->loop, &replace->timer, 0);
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

/* ---- The successor */

/* A control connection; -ENOENT: nobody answers. */
static int connect_other(
	const struct ckt_server *server, int *ret_fd, char *ret_message, size_t size)
{
	struct ckt_address address = {.type = CKT_ADDRESS_UNIX};
	char why[CKT_MESSAGE_MAX + 1] = "";
	strcpy(address.host, server->socket_path);
	if (ckt_net_connect(&address, CONNECT_TIMEOUT_MS, ret_fd, why, sizeof why))
		return -ENOENT;
	int result = ckt_hello_control(ret_fd, NULL, true, "cricket-server", NULL,
		ckt_net_now_ms() + HELLO_TIMEOUT_MS, why, sizeof why);
	if (result) {
		snprintf(ret_message, size,
			"--replace: the server at '%.200s' refuses the connection: %s",
			server->socket_path, *why ? why : strerror(-result));
		close(*ret_fd);
	}
	return result;
}

static int ask(const struct ckt_server *server, int fd, int channel, char *ret_message, size_t size)
{
	ckt_control_result res = {0};
	int result = ckt_net_call(fd, CRICKET_CONTROL_PROG, CKT_CONTROL_REPLACE, NULL, NULL,
		(xdrproc_t)xdr_ckt_control_result, &res, ckt_net_now_ms() + HELLO_TIMEOUT_MS,
		channel);
	if (result)
		snprintf(ret_message, size,
			"--replace: the server at '%.200s' does not answer: %s; an earlier version "
			"cannot be replaced: end it, and start this one",
			server->socket_path, strerror(-result));
	else if (res.status != CKT_CONTROL_OK)
		snprintf(ret_message, size, "--replace: the server at '%.200s' refuses: %.400s",
			server->socket_path, res.message);
	result = result ? result : res.status == CKT_CONTROL_OK ? 0 : -EPERM;
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&res);
	return result;
}

/* One packet within the time; -errno: the other end is gone or says nothing. */
static int take_packet(int channel, int64_t deadline_ms, struct packet *ret_packet, int *ret_fd)
{
	struct iovec part = {.iov_base = ret_packet, .iov_len = sizeof *ret_packet};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	struct timeval limit = {0};
	int64_t left = deadline_ms - ckt_net_now_ms();
	if (left <= 0)
		return -ETIMEDOUT;
	limit.tv_sec = left / 1000 + 1;
	setsockopt(channel, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	ckt_net_fd_expect(&message, &room);
	ssize_t n = ckt_net_receive_message(channel, &message, MSG_CMSG_CLOEXEC);
	*ret_fd = n >= 0 ? ckt_net_fd_take(&message) : -1;
	ret_packet->asked[sizeof ret_packet->asked - 1] = 0;
	ret_packet->text[sizeof ret_packet->text - 1] = 0;
	if (n == sizeof *ret_packet)
		return 0;
	if (*ret_fd >= 0)
		close(*ret_fd);
	return n < 0 ? -errno : -ECONNRESET;
}

static int take_sockets(struct ckt_server *server, int channel)
{
	int64_t deadline = ckt_net_now_ms() + CKT_REPLACE_PATIENCE_MS + LOOK_MS * 50;
	struct packet packet;
	int fd, result;
	while (!(result = take_packet(channel, deadline, &packet, &fd)) &&
		packet.kind != KIND_END) {
		if (packet.kind == KIND_LOCK && fd >= 0 && server->lock_fd < 0) {
			server->lock_fd = fd;
		} else if (packet.kind == KIND_LISTENER && fd >= 0 &&
			server->inherited_count <= CKT_LISTEN_MAX) {
			struct ckt_listener *one = &server->inherited[server->inherited_count++];
			one->source.fd = fd;
			snprintf(one->asked, sizeof one->asked, "%s", packet.asked);
			snprintf(one->text, sizeof one->text, "%s", packet.text);
		} else {
			if (fd >= 0)
				close(fd);
			return -EPROTO;
		}
	}
	if (!result && server->lock_fd < 0)
		result = -EPROTO;
	/* Until it has ended: its sessions are then ours to find. */
	if (!result &&
		take_packet(channel, ckt_net_now_ms() + END_TIMEOUT_MS, &packet, &fd) == -EAGAIN)
		result = -ETIMEDOUT;
	return result;
}

int ckt_replace_take(struct ckt_server *server, char *ret_message, size_t message_size)
{
	int fd, ends[2];
	int result = connect_other(server, &fd, ret_message, message_size);
	if (result)
		return result;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		close(fd);
		return -errno;
	}
	result = ask(server, fd, ends[1], ret_message, message_size);
	close(ends[1]);
	close(fd);
	if (!result) {
		result = take_sockets(server, ends[0]);
		if (result)
			snprintf(ret_message, message_size,
				"--replace: the server at '%.200s' does not give its sockets: %s; its "
				"log says why",
				server->socket_path, strerror(-result));
	}
	close(ends[0]);
	return result;
}

int ckt_replace_inherited(struct ckt_server *server, const char *asked)
{
	for (unsigned i = 0; i < server->inherited_count; i++) {
		struct ckt_listener *one = &server->inherited[i];
		if (one->source.fd < 0 || (strcmp(one->asked, asked) && strcmp(one->text, asked)))
			continue;
		int fd = one->source.fd;
		one->source.fd = -1;
		return fd;
	}
	return -1;
}

void ckt_replace_fini(struct ckt_server *server)
{
	for (unsigned i = 0; i < server->inherited_count; i++)
		if (server->inherited[i].source.fd >= 0)
			close(server->inherited[i].source.fd);
	server->inherited_count = 0;
	ckt_timer_clear(&server->replace.timer);
	if (server->replace.open)
		close(ckt_loop_remove(&server->loop, &server->replace.channel));
	server->replace.open = false;
}

/* ---- Beside systemd */

int ckt_replace_detach(int *ret_ready_fd)
{
	int ends[2];
	char byte = 0, text[32];
	*ret_ready_fd = -1;
	if (!getenv("NOTIFY_SOCKET"))
		return -1;
	if (pipe2(ends, O_CLOEXEC))
		return EXIT_FAILURE;
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		*ret_ready_fd = ends[1];
		return -1;
	}
	close(ends[1]);
	bool ready = pid > 0 && read(ends[0], &byte, 1) == 1;
	close(ends[0]);
	if (!ready)
		return EXIT_FAILURE;
	snprintf(text, sizeof text, "MAINPID=%d", (int)pid);
	ckt_systemd_notify(text);
	return EXIT_SUCCESS;
}

void ckt_replace_ready(int ready_fd)
{
	if (ready_fd < 0)
		return;
	ssize_t ignored = write(ready_fd, "", 1);
	(void)ignored;
	close(ready_fd);
}
