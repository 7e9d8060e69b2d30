/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to a server; see server.h. */
#include "ctl/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/print.h"
#include "rpc/hello.h"
#include "rpc/identity.h"
#include "rpc/secure.h"
#include "rpc/session.h"
#include "rpc/transport/transport.h"

enum { CONNECT_TIMEOUT_MS = 5000, HELLO_TIMEOUT_MS = 10000 };

static int say_hello(struct ckt_ctl_server *server, char *ret_message, size_t message_size)
{
	char why[CKT_MESSAGE_MAX + 1] = "", name[CKT_SECURE_NAME_MAX];
	ckt_secure_server_name(server->address, name);
	int result = ckt_hello_control(&server->fd, name, server->is_unix, "cricketctl",
		getenv("CRICKET_TOKEN_FILE"), ckt_net_now_ms() + HELLO_TIMEOUT_MS, why, sizeof why);
	if (!result)
		return CKT_EXIT_DONE;
	if (result == -ENOKEY || result == -EACCES) {
		if (result == -ENOKEY)
			snprintf(ret_message, message_size, "%s", why);
		else
			snprintf(ret_message, message_size,
				"the server at %s refuses the connection: %s", server->address,
				why);
		return CKT_EXIT_REFUSED;
	}
	snprintf(ret_message, message_size, "no cricket-server answers at %s: %s", server->address,
		*why ? why
			: result == -EPROTO || result == -EMSGSIZE
			? "the peer speaks another protocol"
			: strerror(-result));
	return CKT_EXIT_NO_SERVER;
}

static int try_address(
	const char *text, struct ckt_ctl_server *ret_server, char *ret_message, size_t message_size)
{
	struct ckt_address address;
	char problem[512];
	struct ckt_ctl_server server = {.fd = -1};
	struct sockaddr_storage peer;
	socklen_t size = sizeof peer;
	snprintf(server.address, sizeof server.address, "%s", text);
	if (ckt_address_parse(text, &address, problem, sizeof problem)) {
		snprintf(ret_message, message_size, "%s", problem);
		return CKT_EXIT_USAGE;
	}
	if (ckt_net_connect(&address, CONNECT_TIMEOUT_MS, &server.fd, problem, sizeof problem)) {
		snprintf(ret_message, message_size,
			"no server at %s: %s; start cricket-server there, or give --server", text,
			problem);
		return CKT_EXIT_NO_SERVER;
	}
	ckt_net_must_read(server.fd, CKT_NET_VANISHED_MS);
	server.is_unix = getpeername(server.fd, (struct sockaddr *)&peer, &size) == 0 &&
		peer.ss_family == AF_UNIX;
	int status = say_hello(&server, ret_message, message_size);
	if (status == CKT_EXIT_DONE)
		*ret_server = server;
	else
		close(server.fd);
	return status;
}

int ckt_ctl_try_connect(const struct ckt_ctl_args *args, struct ckt_ctl_server *ret_server,
	char *ret_message, size_t message_size)
{
	const char *address = args->server ? args->server : getenv("REMOTE_GPU_ADDRESS");
	char path[400], local[CKT_ADDRESS_TEXT_MAX];
	/* A list is for programs, which have a session at each. */
	if (address && strchr(address, ',')) {
		snprintf(ret_message, message_size,
			"'%.200s' names several servers: choose one with --server", address);
		return CKT_EXIT_USAGE;
	}
	if (address && *address)
		return try_address(address, ret_server, ret_message, message_size);
	/* A server of this user's, then the system's. */
	if (ckt_local_socket_path(path, sizeof path, ret_message, message_size) == 0 &&
		access(path, F_OK) == 0)
		snprintf(local, sizeof local, "unix:%s", path);
	else
		strcpy(local, "unix:/run/cricket/socket");
	return try_address(local, ret_server, ret_message, message_size);
}

void ckt_ctl_disconnect(struct ckt_ctl_server *server)
{
	if (server->fd >= 0)
		close(server->fd);
	server->fd = -1;
}

void ckt_ctl_hang_up(struct ckt_ctl_server *server)
{
	struct ckt_transport connection;
	ckt_transport_init_socket(&connection, server->fd);
	ckt_transport_shutdown(&connection);
}

/*
 * TCP, perhaps to this very host: then its UNIX socket leads to the same server, which knows there
 * who we are.
 */
static void go_near(struct ckt_ctl_server *server)
{
	ckt_control_info_res there = {0}, here = {0};
	char host[CKT_NAME_MAX] = "", address[CKT_ADDRESS_TEXT_MAX] = "unix:", message[1200] = "";
	struct ckt_ctl_server near;
	bool same = false;
	if (ckt_net_call(server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_INFO, NULL, NULL,
		    (xdrproc_t)xdr_ckt_control_info_res, &there,
		    ckt_net_now_ms() + HELLO_TIMEOUT_MS, -1))
		return; /* the call that follows says so */
	gethostname(host, sizeof host - 1);
	if (strcmp(host, there.host) == 0 &&
		snprintf(address, sizeof address, "unix:%s", there.socket) < (int)sizeof address &&
		try_address(address, &near, message, sizeof message) == CKT_EXIT_DONE) {
		if (ckt_net_call(near.fd, CRICKET_CONTROL_PROG, CKT_CONTROL_INFO, NULL, NULL,
			    (xdrproc_t)xdr_ckt_control_info_res, &here,
			    ckt_net_now_ms() + HELLO_TIMEOUT_MS, -1) == 0)
			same = here.pid == there.pid && here.started == there.started;
		if (!same)
			ckt_ctl_disconnect(&near);
	}
	xdr_free((xdrproc_t)xdr_ckt_control_info_res, (char *)&there);
	xdr_free((xdrproc_t)xdr_ckt_control_info_res, (char *)&here);
	if (same) {
		ckt_ctl_disconnect(server);
		*server = near;
	}
}

/* always_near: also where a token gives all rights over TCP. */
static int connect_to(
	const struct ckt_ctl_args *args, bool always_near, struct ckt_ctl_server *ret_server)
{
	char message[1200], clean[1200];
	const char *token = getenv("CRICKET_TOKEN_FILE");
	struct ckt_ctl_server server;
	int status = ckt_ctl_try_connect(args, &server, message, sizeof message);
	if (status != CKT_EXIT_DONE) {
		fprintf(stderr, "cricketctl: %s\n", ckt_ctl_clean(message, clean, sizeof clean));
		return status;
	}
	/* Without a token TCP gives no rights at all. */
	if (!server.is_unix && (always_near || !token || !*token))
		go_near(&server);
	*ret_server = server;
	return CKT_EXIT_DONE;
}

int ckt_ctl_connect(const struct ckt_ctl_args *args, struct ckt_ctl_server *ret_server)
{
	return connect_to(args, false, ret_server);
}

int ckt_ctl_connect_near(const struct ckt_ctl_args *args, struct ckt_ctl_server *ret_server)
{
	return connect_to(args, true, ret_server);
}

/* The exit code for what became of a call, said. */
static int said(const struct ckt_ctl_server *server, int result)
{
	if (!result)
		return CKT_EXIT_DONE;
	fprintf(stderr, "cricketctl: the server at %s does not answer: %s\n", server->address,
		strerror(-result));
	return CKT_EXIT_NO_SERVER;
}

int ckt_ctl_call(struct ckt_ctl_server *server, uint32_t proc, xdrproc_t xdr_args, void *args,
	xdrproc_t xdr_result, void *ret_result, int timeout_ms, int pass_fd)
{
	int64_t deadline_ms = timeout_ms < 0 ? -1 : ckt_net_now_ms() + timeout_ms;
	return said(server,
		ckt_net_call(server->fd, CRICKET_CONTROL_PROG, proc, xdr_args, args, xdr_result,
			ret_result, deadline_ms, pass_fd));
}

/* Over a connection of its own, because an older server ends it, and the caller's may hold something. */
static int find_procedure(struct ckt_ctl_server *server, ckt_control_list_args *args,
	int64_t deadline_ms, ckt_control_list2_res *ret_page)
{
	struct ckt_ctl_server other;
	char ignored[1200];
	if (try_address(server->address, &other, ignored, sizeof ignored) != CKT_EXIT_DONE)
		return -ENOTCONN;
	int result = ckt_net_call(other.fd, CRICKET_CONTROL_PROG, CKT_CONTROL_LIST2,
		(xdrproc_t)xdr_ckt_control_list_args, args, (xdrproc_t)xdr_ckt_control_list2_res,
		ret_page, deadline_ms, -1);
	ckt_ctl_disconnect(&other);
	if (result != -ETIMEDOUT)
		server->list_procedure = result ? CKT_CONTROL_LIST : CKT_CONTROL_LIST2;
	return result;
}

int ckt_ctl_list_page(struct ckt_ctl_server *server, const char *after, int timeout_ms,
	ckt_control_list2_res *ret_page)
{
	ckt_control_list_args args = {.after = (char *)after};
	int64_t deadline_ms = ckt_net_now_ms() + timeout_ms;
	bool found = server->list_procedure;
	int result = found ? 0 : find_procedure(server, &args, deadline_ms, ret_page);
	if (server->list_procedure == CKT_CONTROL_LIST)
		return ckt_net_call(server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_LIST,
			(xdrproc_t)xdr_ckt_control_list_args, &args,
			(xdrproc_t)xdr_ckt_control_list_res, &ret_page->list, deadline_ms, -1);
	if (found)
		result = ckt_net_call(server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_LIST2,
			(xdrproc_t)xdr_ckt_control_list_args, &args,
			(xdrproc_t)xdr_ckt_control_list2_res, ret_page, deadline_ms, -1);
	if (!result && ret_page->answered.answered_len != ret_page->list.sessions.sessions_len) {
		xdr_free((xdrproc_t)xdr_ckt_control_list2_res, (char *)ret_page);
		*ret_page = (ckt_control_list2_res){0};
		result = -EPROTO;
	}
	return result;
}

int ckt_ctl_list(struct ckt_ctl_server *server, const char *after, int timeout_ms,
	ckt_control_list2_res *ret_page)
{
	return said(server, ckt_ctl_list_page(server, after, timeout_ms, ret_page));
}

const bool_t *ckt_ctl_answered(const ckt_control_list2_res *page, u_int i)
{
	return i < page->answered.answered_len ? &page->answered.answered_val[i] : NULL;
}

int ckt_ctl_pages_next(struct ckt_ctl_pages *pages, bool more, const char *last)
{
	if (!more || !last)
		return 0;
	if (strcmp(last, pages->after) <= 0 || ++pages->count >= CKT_CTL_PAGES_MAX)
		return -EPROTO;
	snprintf(pages->after, sizeof pages->after, "%s", last);
	return 1;
}

int ckt_ctl_pages_turn(struct ckt_ctl_pages *pages, const struct ckt_ctl_server *server, bool more,
	const char *last, bool *ret_more)
{
	int result = ckt_ctl_pages_next(pages, more, last);
	*ret_more = result > 0;
	if (result >= 0)
		return CKT_EXIT_DONE;
	fprintf(stderr,
		"cricketctl: the list of sessions of the server at %s never ends; is it a "
		"cricket-server?\n",
		server->address);
	return CKT_EXIT_NO_SERVER;
}

int ckt_ctl_result(const ckt_control_result *result)
{
	char clean[CKT_MESSAGE_MAX + 1];
	if (result->status == CKT_CONTROL_OK)
		return CKT_EXIT_DONE;
	fprintf(stderr, "cricketctl: %s\n", ckt_ctl_clean(result->message, clean, sizeof clean));
	return result->status == CKT_CONTROL_NO_SESSION || result->status == CKT_CONTROL_AMBIGUOUS
		? CKT_EXIT_NO_SESSION
		: CKT_EXIT_REFUSED;
}

int ckt_ctl_check_session(const char *text)
{
	size_t length = strlen(text);
	if (length && length <= CKT_SESSION_ID_SIZE && strspn(text, "0123456789abcdef") == length)
		return CKT_EXIT_DONE;
	/* Well written or not, there is no such session. */
	fprintf(stderr,
		"cricketctl: there is no session '%s': an ID has %d digits 0-9 a-f; "
		"see cricketctl ps\n",
		text, CKT_SESSION_ID_SIZE);
	return CKT_EXIT_NO_SESSION;
}

int ckt_ctl_connect_for(
	const struct ckt_ctl_args *args, const char *session, struct ckt_ctl_server *ret_server)
{
	int status = ckt_ctl_connect(args, ret_server);
	if (status == CKT_EXIT_DONE) {
		status = ckt_ctl_check_session(session);
		if (status != CKT_EXIT_DONE)
			ckt_ctl_disconnect(ret_server);
	}
	return status;
}

int ckt_ctl_ask(const struct ckt_ctl_args *args, const char *session, uint32_t proc,
	xdrproc_t xdr_args, void *call, xdrproc_t xdr_result, void *ret_result, int timeout_ms)
{
	struct ckt_ctl_server server;
	int status = session ? ckt_ctl_connect_for(args, session, &server)
			     : ckt_ctl_connect(args, &server);
	if (status != CKT_EXIT_DONE)
		return status;
	status =
		ckt_ctl_call(&server, proc, xdr_args, call, xdr_result, ret_result, timeout_ms, -1);
	ckt_ctl_disconnect(&server);
	return status;
}
