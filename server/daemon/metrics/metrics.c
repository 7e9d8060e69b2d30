/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server of --metrics; see metrics.h. */
#include "server/daemon/metrics/metrics.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/daemon/metrics/collect.h"
#include "server/daemon/metrics/owners.h"
#include "server/daemon/nvml/gpu_health.h"
#include "server/daemon/peer/listen.h"
#include "server/daemon/server.h"

#define TYPE_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define TYPE_TEXT "text/plain; version=0.0.4; charset=utf-8"
#define TYPE_PLAIN "text/plain; charset=utf-8"

/* Ended early, so that a new connection finds room. */
enum { ROOM = 8 };

struct connection {
	struct connection *next;
	int fd; /* libmicrohttpd's */
	int64_t begun_ms;
	bool ended;
};

/* One of the two formats. */
struct made {
	struct MHD_Response *response;
	int64_t when_ms;
};

struct ckt_metrics_server {
	struct ckt_server *server;
	struct MHD_Daemon *daemon;
	struct ckt_source source; /* libmicrohttpd's epoll descriptor */
	struct ckt_timer timer;
	struct connection *oldest, **end;
	unsigned count;
	struct made made[2];
	char path[108]; /* of a UNIX socket; empty: TCP */
	char text[CKT_ADDRESS_TEXT_MAX + 32];
};

/* ---- Answers */

static enum MHD_Result answer(
	struct MHD_Connection *connection, unsigned status, struct MHD_Response *response)
{
	return response ? MHD_queue_response(connection, status, response) : MHD_NO;
}

/* The response is the caller's; NULL without memory. */
static struct MHD_Response *respond(
	const char *text, size_t size, enum MHD_ResponseMemoryMode mode, const char *type)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(size, (void *)text, mode);
	if (!response)
		return NULL;
	MHD_add_response_header(response, "Content-Type", type);
	/* No client keeps a connection: the age of each is bounded. */
	MHD_add_response_header(response, "Connection", "close");
	return response;
}

static enum MHD_Result answer_text(
	struct MHD_Connection *connection, unsigned status, const char *text)
{
	struct MHD_Response *response =
		respond(text, strlen(text), MHD_RESPMEM_MUST_COPY, TYPE_PLAIN);
	if (response && status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, "Allow", "GET, HEAD");
	enum MHD_Result result = answer(connection, status, response);
	if (response)
		MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer_metrics(
	struct ckt_metrics_server *metrics, struct MHD_Connection *connection)
{
	const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
	bool openmetrics = accept && strstr(accept, "application/openmetrics-text");
	struct made *made = &metrics->made[openmetrics];
	int64_t now = ckt_net_now_ms();
	if (made->response && now - made->when_ms >= CKT_METRICS_FRESH_MS) {
		/* Connections that still send it keep it. */
		MHD_destroy_response(made->response);
		made->response = NULL;
	}
	if (!made->response) {
		size_t size;
		ckt_gpu_health_want(metrics->server);
		char *text = ckt_metrics_collect(metrics->server, openmetrics, &size);
		if (text)
			made->response = respond(text, size, MHD_RESPMEM_MUST_FREE,
				openmetrics ? TYPE_OPENMETRICS : TYPE_TEXT);
		made->when_ms = now;
	}
	return answer(connection, MHD_HTTP_OK, made->response);
}

static enum MHD_Result answer_ready(
	struct ckt_metrics_server *metrics, struct MHD_Connection *connection)
{
	const char *reason;
	char text[128];
	if (ckt_metrics_ready(metrics->server, &reason))
		return answer_text(connection, MHD_HTTP_OK, "ready\n");
	snprintf(text, sizeof text, "%s\n", reason);
	return answer_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, text);
}

static enum MHD_Result request(void *context, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_size,
	void **request_context)
{
	struct ckt_metrics_server *metrics = context;
	(void)version, (void)upload, (void)request_context;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
		*upload_size = 0;
		return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	}
	if (strcmp(url, "/metrics") == 0)
		return answer_metrics(metrics, connection);
	if (strcmp(url, "/healthz") == 0)
		return answer_text(connection, MHD_HTTP_OK, "ok\n");
	if (strcmp(url, "/readyz") == 0)
		return answer_ready(metrics, connection);
	return answer_text(connection, MHD_HTTP_NOT_FOUND, "see /metrics, /healthz and /readyz\n");
}

/* ---- Connections */

/* libmicrohttpd finds it closed when it runs next. */
static void end(struct connection *connection)
{
	if (!connection->ended)
		shutdown(connection->fd, SHUT_RDWR);
	connection->ended = true;
}

static void end_oldest(struct ckt_metrics_server *metrics)
{
	struct connection *connection = metrics->oldest;
	unsigned open = metrics->count;
	/* Those that are ended already make room, too. */
	for (; connection && connection->ended; connection = connection->next)
		open--;
	if (connection && open > CKT_METRICS_CONNECTIONS - ROOM)
		end(connection);
}

static void watch(void *context, struct MHD_Connection *mhd, void **socket_context,
	enum MHD_ConnectionNotificationCode code)
{
	struct ckt_metrics_server *metrics = context;
	struct connection *connection = *socket_context;
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
		connection = info ? calloc(1, sizeof *connection) : NULL;
		if (!connection)
			return;
		*connection =
			(struct connection){.fd = info->connect_fd, .begun_ms = ckt_net_now_ms()};
		*metrics->end = connection;
		metrics->end = &connection->next;
		metrics->count++;
		*socket_context = connection;
		end_oldest(metrics);
	} else if (connection) {
		struct connection **place = &metrics->oldest;
		while (*place != connection)
			place = &(*place)->next;
		*place = connection->next;
		if (metrics->end == &connection->next)
			metrics->end = place;
		metrics->count--;
		free(connection);
		*socket_context = NULL;
	}
}

static void run(struct ckt_metrics_server *metrics)
{
	MHD_UNSIGNED_LONG_LONG wait;
	int64_t now = ckt_net_now_ms(), next = -1;
	for (struct connection *c = metrics->oldest; c; c = c->next)
		if (now - c->begun_ms >= CKT_METRICS_AGE_MS)
			end(c);
	unsigned before = metrics->count;
	MHD_run(metrics->daemon);
	for (struct connection *c = metrics->oldest; c && next < 0; c = c->next)
		if (!c->ended)
			next = c->begun_ms + CKT_METRICS_AGE_MS - now;
	if (MHD_get_timeout(metrics->daemon, &wait) == MHD_YES &&
		(next < 0 || wait < (MHD_UNSIGNED_LONG_LONG)next))
		next = (int64_t)wait;
	/* With all places taken it does not listen, and takes that up at its next run alone. */
	if (before >= CKT_METRICS_CONNECTIONS && metrics->count < before)
		next = 0;
	if (next >= 0)
		ckt_timer_set(&metrics->server->loop, &metrics->timer, next);
	else
		ckt_timer_clear(&metrics->timer);
}

static void ready(struct ckt_source *source, uint32_t events)
{
	(void)events;
	run(CKT_CONTAINER(source, struct ckt_metrics_server, source));
}

static void late(struct ckt_timer *timer)
{
	run(CKT_CONTAINER(timer, struct ckt_metrics_server, timer));
}

/* ---- The start */

/* A socket that a server left behind; anything else is not ours to remove. */
static int remove_old(const char *path)
{
	struct ckt_address address = {.type = CKT_ADDRESS_UNIX};
	char message[256];
	struct stat status;
	int fd;
	if (lstat(path, &status))
		return 0;
	if (!S_ISSOCK(status.st_mode))
		return -EEXIST;
	snprintf(address.host, sizeof address.host, "%s", path);
	if (ckt_net_connect(&address, 1000, &fd, message, sizeof message) == 0) {
		close(fd);
		return -EADDRINUSE;
	}
	return unlink(path) ? -errno : 0;
}

static int listen_at(
	struct ckt_metrics_server *metrics, int *ret_fd, char *ret_message, size_t message_size)
{
	const struct ckt_options *options = &metrics->server->options;
	struct ckt_address address;
	char problem[256] = "", bound[CKT_ADDRESS_TEXT_MAX];
	int result = ckt_address_parse(options->metrics, &address, problem, sizeof problem);
	bool is_unix = !result && address.type == CKT_ADDRESS_UNIX;
	if (is_unix)
		result = remove_old(address.host);
	else if (!result && !*address.host)
		strcpy(address.host, "127.0.0.1");
	if (!result)
		result = ckt_net_listen(&address, 0600, ret_fd, problem, sizeof problem);
	if (result) {
		snprintf(ret_message, message_size,
			"--metrics: cannot listen on '%s': %s; give another address",
			options->metrics, *problem ? problem : strerror(-result));
		return result;
	}
	if (is_unix) {
		snprintf(metrics->path, sizeof metrics->path, "%s", address.host);
		snprintf(metrics->text, sizeof metrics->text, "unix:%s", address.host);
		return 0;
	}
	if (!ckt_listen_is_loopback(*ret_fd) && !options->insecure_plaintext) {
		snprintf(ret_message, message_size,
			"--metrics: other hosts can reach '%s', and its text names owners without "
			"encryption: give a loopback address or unix:PATH, or add "
			"--insecure-plaintext",
			options->metrics);
		close(*ret_fd);
		return -EPERM;
	}
	if (ckt_net_local_address(*ret_fd, &address))
		address.port = 0;
	ckt_address_format(&address, bound, sizeof bound);
	snprintf(metrics->text, sizeof metrics->text, "http://%s/metrics", bound);
	return 0;
}

/* The descriptor becomes libmicrohttpd's.  NULL: it does not start. */
static struct MHD_Daemon *start(struct ckt_metrics_server *metrics, int fd)
{
	struct MHD_Daemon *daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, request, metrics,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)CKT_METRICS_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)(CKT_METRICS_AGE_MS / 1000), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CKT_METRICS_REQUEST_BYTES, MHD_OPTION_NOTIFY_CONNECTION, watch, metrics,
		MHD_OPTION_END);
	if (!daemon)
		close(fd);
	return daemon;
}

int ckt_metrics_open(struct ckt_server *server, struct ckt_metrics_server **ret_metrics,
	char *ret_message, size_t message_size)
{
	*ret_metrics = NULL;
	if (!server->options.metrics)
		return 0;
	struct ckt_metrics_server *metrics = calloc(1, sizeof *metrics);
	if (!metrics)
		return -ENOMEM;
	int fd;
	metrics->server = server;
	metrics->end = &metrics->oldest;
	metrics->source.fd = -1;
	metrics->timer.fire = late;
	int result = listen_at(metrics, &fd, ret_message, message_size);
	if (result) {
		free(metrics);
		return result;
	}
	metrics->daemon = start(metrics, fd);
	const union MHD_DaemonInfo *info = metrics->daemon
		? MHD_get_daemon_info(metrics->daemon, MHD_DAEMON_INFO_EPOLL_FD)
		: NULL;
	metrics->source = (struct ckt_source){.fd = info ? info->epoll_fd : -1, .ready = ready};
	result = info ? ckt_loop_add(&server->loop, &metrics->source, EPOLLIN) : -ENOMEM;
	if (result) {
		metrics->source.fd = -1;
		snprintf(ret_message, message_size, "--metrics: cannot serve '%s': %s",
			server->options.metrics, strerror(-result));
		ckt_metrics_close(metrics);
		return result;
	}
	ckt_gpu_health_begin(server);
	*ret_metrics = metrics;
	return 0;
}

void ckt_metrics_close(struct ckt_metrics_server *metrics)
{
	if (!metrics)
		return;
	ckt_gpu_health_end(metrics->server);
	if (metrics->source.fd >= 0)
		ckt_loop_remove(&metrics->server->loop, &metrics->source);
	ckt_timer_clear(&metrics->timer);
	if (metrics->daemon)
		MHD_stop_daemon(metrics->daemon);
	for (int i = 0; i < 2; i++)
		if (metrics->made[i].response)
			MHD_destroy_response(metrics->made[i].response);
	if (*metrics->path)
		unlink(metrics->path);
	ckt_metrics_owners_fini();
	free(metrics);
}

const char *ckt_metrics_text(const struct ckt_metrics_server *metrics)
{
	return metrics->text;
}
