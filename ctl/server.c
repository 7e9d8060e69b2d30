/* The connection to a server; see ctl.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl.h"
#include "rpc/identity.h"
#include "rpc/session.h"

enum { CONNECT_TIMEOUT_MS = 5000, HELLO_TIMEOUT_MS = 10000, HELLO_XID = 1 };

/* The greeting: which protocol, which credentials, and the nonce. */
static int read_greeting(int fd, int64_t deadline_ms, ckt_greeting *ret_greeting)
{
	uint8_t *data;
	size_t size;
	struct ckt_call_header header = {0};
	int result = ckt_net_read_record(fd, CKT_HELLO_MAX, deadline_ms, &data, &size, NULL);
	if (result)
		return result;
	struct ckt_cursor c = {.p = data, .end = data + size};
	if (!ckt_call_header_get(&c, &header) || header.prog != CRICKET_CALLBACK_PROG || header.proc != CKT_CALLBACK_GREETING)
		result = -EPROTO;
	else
		result = ckt_net_decode(&c, (xdrproc_t)xdr_ckt_greeting, ret_greeting);
	free(data);
	return result;
}

/* A hello has a header of its own: no session exists that could count its calls. */
static int write_hello(int fd, int64_t deadline_ms, const ckt_greeting *greeting, const struct ckt_token *token)
{
	uint8_t record[CKT_HELLO_MAX], *p = record;
	char host[CKT_NAME_MAX] = "", none[] = "", program[] = "cricketctl", build[] = CKT_VERSION;
	uint8_t *credential = NULL;
	gethostname(host, sizeof host - 1);
	ckt_hello_args args = {.protocol = CKT_PROTOCOL_VERSION,
			       .kind = CKT_HELLO_CONTROL,
			       .session = none,
			       .program_name = program,
			       .host = host,
			       .pid = (u_int)getpid(),
			       .uid = getuid(),
			       .build = build};
	uint32_t head[] = {HELLO_XID, 0, 2, CRICKET_SESSION_PROG, CRICKET_SESSION_VERS, CKT_SESSION_HELLO};
	for (size_t i = 0; i < sizeof head / sizeof *head; i++)
		p = ckt_put_u32(p, head[i]);
	if (token->size_bytes) {
		p = ckt_put_u32(ckt_put_u32(p, CKT_AUTH_CRICKET_TOKEN), CKT_AUTH_HMAC_SIZE);
		credential = p;
		p += CKT_AUTH_HMAC_SIZE;
	} else {
		p = ckt_put_u32(ckt_put_u32(p, CKT_AUTH_NONE), 0);
	}
	p = ckt_put_u32(ckt_put_u32(p, CKT_AUTH_NONE), 0);
	XDR xdr;
	xdrmem_create(&xdr, (char *)p, (u_int)(record + sizeof record - p), XDR_ENCODE);
	if (!xdr_ckt_hello_args(&xdr, &args))
		return -EMSGSIZE;
	size_t args_size = xdr_getpos(&xdr);
	if (credential)
		ckt_auth_hmac(token, (const uint8_t *)greeting->nonce, p, args_size, credential);
	return ckt_net_write_record(fd, record, (size_t)(p - record) + args_size, deadline_ms, -1);
}

static int read_answer(int fd, int64_t deadline_ms, ckt_hello_res *ret_res)
{
	uint8_t *data;
	size_t size;
	struct ckt_reply_header header = {0};
	int result = ckt_net_read_record(fd, CKT_RECORD_MAX, deadline_ms, &data, &size, NULL);
	if (result)
		return result;
	struct ckt_cursor c = {.p = data, .end = data + size};
	if (!ckt_reply_header_get(&c, &header) || header.xid != HELLO_XID || header.accept_stat)
		result = -EPROTO;
	else
		result = ckt_net_decode(&c, (xdrproc_t)xdr_ckt_hello_res, ret_res);
	free(data);
	return result;
}

/* The token is used only where the server takes one, so that CRICKET_TOKEN_FILE may stay set for all servers. */
static int say_hello(struct ckt_ctl_server *server, char *ret_message, size_t message_size)
{
	int64_t deadline_ms = ckt_net_now_ms() + HELLO_TIMEOUT_MS;
	const char *token_file = getenv("CRICKET_TOKEN_FILE");
	struct ckt_token token = {0};
	ckt_greeting greeting = {0};
	ckt_hello_res res = {0};
	bool takes_token = false;
	int result = read_greeting(server->fd, deadline_ms, &greeting);
	for (u_int i = 0; !result && i < greeting.flavours.flavours_len; i++)
		takes_token |= greeting.flavours.flavours_val[i] == CKT_AUTH_CRICKET_TOKEN;
	if (takes_token && token_file && *token_file && ckt_auth_token_load(token_file, &token, ret_message, message_size)) {
		/* On the local socket who we are is enough. */
		if (!server->is_unix) {
			xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
			return CKT_EXIT_REFUSED;
		}
		token.size_bytes = 0;
	}
	if (!result)
		result = write_hello(server->fd, deadline_ms, &greeting, &token);
	explicit_bzero(&token, sizeof token);
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	if (!result)
		result = read_answer(server->fd, deadline_ms, &res);
	if (result) {
		snprintf(ret_message, message_size, "no cricket-server answers at %s: %s", server->address,
			 result == -EPROTO || result == -EMSGSIZE ? "what is there speaks another protocol" : strerror(-result));
		return CKT_EXIT_NO_SERVER;
	}
	int status = CKT_EXIT_DONE;
	if (res.status != CKT_HELLO_OK) {
		snprintf(ret_message, message_size, "the server at %s refuses: %s", server->address, res.ckt_hello_res_u.refused.message);
		status = CKT_EXIT_REFUSED;
	}
	xdr_free((xdrproc_t)xdr_ckt_hello_res, (char *)&res);
	return status;
}

static int try_address(const char *text, struct ckt_ctl_server *ret_server, char *ret_message, size_t message_size)
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
		snprintf(ret_message, message_size, "no server at %s: %s; start cricket-server there, or give --server", text, problem);
		return CKT_EXIT_NO_SERVER;
	}
	server.is_unix = getpeername(server.fd, (struct sockaddr *)&peer, &size) == 0 && peer.ss_family == AF_UNIX;
	int status = say_hello(&server, ret_message, message_size);
	if (status == CKT_EXIT_DONE)
		*ret_server = server;
	else
		close(server.fd);
	return status;
}

int ckt_ctl_try_connect(const struct ckt_ctl_args *args, struct ckt_ctl_server *ret_server, char *ret_message, size_t message_size)
{
	const char *address = args->server ? args->server : getenv("REMOTE_GPU_ADDRESS");
	char path[400], local[CKT_ADDRESS_TEXT_MAX];
	if (address && *address)
		return try_address(address, ret_server, ret_message, message_size);
	/* A server of this user's, then the system's. */
	if (ckt_local_socket_path(path, sizeof path, ret_message, message_size) == 0 && access(path, F_OK) == 0)
		snprintf(local, sizeof local, "unix:%s", path);
	else
		strcpy(local, "unix:/run/cricket/socket");
	return try_address(local, ret_server, ret_message, message_size);
}

int ckt_ctl_connect(const struct ckt_ctl_args *args, struct ckt_ctl_server *ret_server)
{
	char message[1200], clean[1200];
	int status = ckt_ctl_try_connect(args, ret_server, message, sizeof message);
	if (status != CKT_EXIT_DONE)
		fprintf(stderr, "cricketctl: %s\n", ckt_ctl_clean(message, clean, sizeof clean));
	return status;
}

void ckt_ctl_disconnect(struct ckt_ctl_server *server)
{
	if (server->fd >= 0)
		close(server->fd);
	server->fd = -1;
}

int ckt_ctl_connect_near(const struct ckt_ctl_args *args, struct ckt_ctl_server *ret_server)
{
	struct ckt_ctl_server server;
	ckt_control_info_res there = {0}, here = {0};
	char host[CKT_NAME_MAX] = "", address[CKT_ADDRESS_TEXT_MAX] = "unix:", message[1200] = "";
	struct ckt_ctl_server near;
	int status = ckt_ctl_connect(args, &server);
	if (status != CKT_EXIT_DONE || server.is_unix) {
		*ret_server = server;
		return status;
	}
	/* TCP, perhaps to this very host: then its UNIX socket leads to the same server. */
	status = ckt_ctl_call(&server, CKT_CONTROL_INFO, NULL, NULL, (xdrproc_t)xdr_ckt_control_info_res, &there, HELLO_TIMEOUT_MS, -1);
	if (status != CKT_EXIT_DONE) {
		ckt_ctl_disconnect(&server);
		return status;
	}
	gethostname(host, sizeof host - 1);
	bool same = false;
	if (strcmp(host, there.host) == 0 && snprintf(address, sizeof address, "unix:%s", there.socket) < (int)sizeof address &&
	    try_address(address, &near, message, sizeof message) == CKT_EXIT_DONE) {
		if (ckt_ctl_call(&near, CKT_CONTROL_INFO, NULL, NULL, (xdrproc_t)xdr_ckt_control_info_res, &here, HELLO_TIMEOUT_MS, -1) ==
		    CKT_EXIT_DONE)
			same = here.pid == there.pid && here.started == there.started;
		if (!same)
			ckt_ctl_disconnect(&near);
	}
	xdr_free((xdrproc_t)xdr_ckt_control_info_res, (char *)&there);
	xdr_free((xdrproc_t)xdr_ckt_control_info_res, (char *)&here);
	if (same)
		ckt_ctl_disconnect(&server);
	*ret_server = same ? near : server;
	return CKT_EXIT_DONE;
}

int ckt_ctl_call(struct ckt_ctl_server *server, uint32_t proc, xdrproc_t xdr_args, void *args, xdrproc_t xdr_result, void *ret_result,
		 int timeout_ms, int pass_fd)
{
	int64_t deadline_ms = timeout_ms < 0 ? -1 : ckt_net_now_ms() + timeout_ms;
	int result = ckt_net_call(server->fd, CRICKET_CONTROL_PROG, proc, xdr_args, args, xdr_result, ret_result, deadline_ms, pass_fd);
	if (!result)
		return CKT_EXIT_DONE;
	fprintf(stderr, "cricketctl: the server at %s does not answer: %s\n", server->address, strerror(-result));
	return CKT_EXIT_NO_SERVER;
}

int ckt_ctl_result(const ckt_control_result *result)
{
	char clean[CKT_MESSAGE_MAX + 1];
	if (result->status == CKT_CONTROL_OK)
		return CKT_EXIT_DONE;
	fprintf(stderr, "cricketctl: %s\n", ckt_ctl_clean(result->message, clean, sizeof clean));
	return result->status == CKT_CONTROL_NO_SESSION || result->status == CKT_CONTROL_AMBIGUOUS ? CKT_EXIT_NO_SESSION : CKT_EXIT_REFUSED;
}

int ckt_ctl_check_session(const char *text)
{
	size_t length = strlen(text);
	if (length && length <= CKT_SESSION_ID_SIZE && strspn(text, "0123456789abcdef") == length)
		return CKT_EXIT_DONE;
	/* Well written or not, there is no such session. */
	fprintf(stderr, "cricketctl: there is no session '%s': ids are %d digits 0-9 a-f, see cricketctl ps\n", text, CKT_SESSION_ID_SIZE);
	return CKT_EXIT_NO_SESSION;
}

int ckt_ctl_connect_for(const struct ckt_ctl_args *args, const char *session, struct ckt_ctl_server *ret_server)
{
	int status = ckt_ctl_connect(args, ret_server);
	if (status == CKT_EXIT_DONE) {
		status = ckt_ctl_check_session(session);
		if (status != CKT_EXIT_DONE)
			ckt_ctl_disconnect(ret_server);
	}
	return status;
}
