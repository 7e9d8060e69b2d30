/* SPDX-License-Identifier: Apache-2.0 */
/* Draining; see drain.h. */
#include "server/daemon/durable/sleep.h"
#include "server/daemon/peer/drain.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/peer/peer_audit.h"
#include "server/daemon/systemd_notify.h"

/* "v1 SECONDS SERVERS\n" */
#define HEAD "v1 "
enum { LINE_MAX_BYTES = CKT_CONTROL_DRAIN_TO + 64 };

/* Clients print it, and it is one line of a file. */
static bool is_list(const char *to)
{
	for (const char *p = to; *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
			    (*p >= '0' && *p <= '9') || strchr("._-:/@%[],", *p)))
			return false;
	return true;
}

/* ---- The file */

static void state_path(const struct ckt_server *server, const char *suffix, char *ret_path)
{
	snprintf(ret_path, CKT_PATH_MAX, "%.4000s/draining%s", server->socket_dir, suffix);
}

/* 0 or -errno; then an older file is as it was. */
static int write_state(const struct ckt_server *server, const struct ckt_drain *drain)
{
	char path[CKT_PATH_MAX], fresh[CKT_PATH_MAX];
	state_path(server, "", path);
	state_path(server, "-new", fresh);
	int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int result =
		dprintf(fd, HEAD "%lld %s\n", (long long)drain->since, drain->to) < 0 || fsync(fd)
		? -errno
		: 0;
	close(fd);
	if (!result && rename(fresh, path))
		result = -errno;
	if (result)
		unlink(fresh);
	return result;
}

static int remove_state(const struct ckt_server *server)
{
	char path[CKT_PATH_MAX];
	state_path(server, "", path);
	return unlink(path) && errno != ENOENT ? -errno : 0;
}

static bool parse(char *line, struct ckt_drain *ret_drain)
{
	char *end = strchr(line, '\n'), *to;
	if (!end || strncmp(line, HEAD, sizeof HEAD - 1) != 0)
		return false;
	*end = 0;
	long long since = strtoll(line + sizeof HEAD - 1, &to, 10);
	if (to == line + sizeof HEAD - 1 || *to != ' ' || since < 0 || !is_list(to + 1) ||
		strlen(to + 1) > CKT_CONTROL_DRAIN_TO)
		return false;
	*ret_drain = (struct ckt_drain){.on = true, .since = (time_t)since};
	strcpy(ret_drain->to, to + 1);
	return true;
}

void ckt_drain_open(struct ckt_server *server)
{
	char path[CKT_PATH_MAX], line[LINE_MAX_BYTES + 1];
	state_path(server, "", path);
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t n = read(fd, line, sizeof line - 1);
	close(fd);
	line[n < 0 ? 0 : n] = 0;
	/* Half a file cannot be: who wrote another one meant to drain. */
	if (!parse(line, &server->drain))
		server->drain = (struct ckt_drain){.on = true, .since = server->started};
	ckt_warning("draining, as the server before this one: taking no new sessions; "
		    "'cricketctl drain --undo' ends it");
}

void ckt_drain_close(struct ckt_server *server)
{
	if (server->drain.on && !server->replace.done)
		remove_state(server);
}

/* ---- What follows from it */

bool ckt_drain_refuses(const struct ckt_server *server, char ret_message[CKT_MESSAGE_MAX])
{
	const struct ckt_drain *drain = &server->drain;
	if (!drain->on)
		return false;
	snprintf(ret_message, CKT_MESSAGE_MAX,
		"%.100s is drained for maintenance and takes no new sessions: use %s%s",
		server->host, *drain->to ? "one of the servers " : "another server", drain->to);
	return true;
}

/* NULL: it may. */
static const char *refusal(const struct ckt_peer *peer, const ckt_control_drain_args *args)
{
	const struct ckt_server *server = peer->server;
	if (args->way == CKT_CONTROL_DRAIN_LOOK)
		return NULL;
	if (ckt_peer_role(peer) != CKT_ROLE_ADMINISTRATOR)
		return "only an administrator may drain a server: use its UNIX socket as root or its user, or an administrator's token";
	if (server->stopping || server->replace.open)
		return "the server ends, or is being replaced: ask its successor";
	if (args->way == CKT_CONTROL_DRAIN_ON && !is_list(args->to))
		return "the list of servers is not valid: write addresses with commas between them";
	if (args->way == CKT_CONTROL_DRAIN_STOP && !server->drain.on)
		return "the server takes new sessions: drain it first";
	if (args->way == CKT_CONTROL_DRAIN_STOP && (server->session_count || ckt_sleep_first()))
		return "the server has sessions: move or end them first";
	return NULL;
}

static int begin(struct ckt_server *server, const char *to)
{
	struct ckt_drain fresh = {
		.on = true, .since = server->drain.on ? server->drain.since : time(NULL)};
	snprintf(fresh.to, sizeof fresh.to, "%s", to);
	int result = write_state(server, &fresh);
	if (result)
		return result;
	if (!server->drain.on)
		ckt_info("draining: taking no new sessions, %u are here", server->session_count);
	server->drain = fresh;
	ckt_systemd_notify("STATUS=draining: no new sessions");
	return 0;
}

static int undo(struct ckt_server *server)
{
	int result = remove_state(server);
	if (result)
		return result;
	if (server->drain.on)
		ckt_info("no longer draining: taking new sessions");
	server->drain = (struct ckt_drain){0};
	ckt_systemd_notify("STATUS=");
	return 0;
}

/* 0 or -errno. */
static int act(struct ckt_server *server, const ckt_control_drain_args *args)
{
	switch (args->way) {
	case CKT_CONTROL_DRAIN_LOOK:
		return 0;
	case CKT_CONTROL_DRAIN_ON:
		return begin(server, args->to);
	case CKT_CONTROL_DRAIN_OFF:
		return undo(server);
	case CKT_CONTROL_DRAIN_STOP:
		/* As from outside, once this call has its answer. */
		return kill(getpid(), SIGTERM) ? -errno : 0;
	}
	return -EINVAL; /* XDR's enums take any number */
}

static const char *way_name(ckt_control_drain_way way)
{
	static const char *const names[] = {[CKT_CONTROL_DRAIN_LOOK] = "look",
		[CKT_CONTROL_DRAIN_ON] = "on",
		[CKT_CONTROL_DRAIN_OFF] = "off",
		[CKT_CONTROL_DRAIN_STOP] = "stop"};
	return (unsigned)way < sizeof names / sizeof *names ? names[way] : "?";
}

void ckt_control_drain(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_drain_args *args = decoded;
	struct ckt_server *server = peer->server;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_drain_res res = {.result = {CKT_CONTROL_OK, buffer}};
	const char *why = refusal(peer, args);
	(void)passed_fd;
	ckt_peer_audit_object(peer, way_name(args->way));
	int error = why ? 0 : act(server, args);
	if (why)
		ckt_control_result_set(&res.result, buffer, CKT_CONTROL_REFUSED, "%s", why);
	else if (error == -EINVAL)
		ckt_control_result_set(&res.result, buffer, CKT_CONTROL_REFUSED,
			"the server does not know this way to drain: update it");
	else if (error)
		ckt_control_result_set(&res.result, buffer, CKT_CONTROL_REFUSED,
			"cannot keep the state in %.300s/draining: %s", server->socket_dir,
			strerror(-error));
	res.draining = server->drain.on;
	res.since = server->drain.since;
	res.to = server->drain.to;
	res.sessions = server->session_count;
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_drain_res, &res);
}
