/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn/connect.c (client/conn/conn.h): one attempt at one address, against a server that
 * answers once.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/conn/settings.h"
#include "conn_parts.h"
#include "cudacommon/visible_devices.h"
#include "rpc/transport/shared_memory.h"
#include "tests/unit/suite.h"

static struct server {
	/*
	 * enum ckt_hello_status; -1: closes instead of greeting, -2: greets with nonsense, -3:
	 * answers so
	 */
	int listener, status;
	uint32_t flavour;
	uint32_t hello_flavour, pieces; /* what came */
	bool rings;                     /* the last hello offered them */
	unsigned again;                 /* how many more connections are served */
	unsigned hellos, kinds;         /* how many came; a bit for each kind */
	/* what an answer to such a hello grants; 0: nothing. memory_fd: -1: none comes with it */
	uint64_t grants;
	int memory_fd;
	uint8_t credential[CKT_CREDENTIAL_MAX], secret[CKT_SECRET_SIZE];
	uint32_t credential_size;
	struct ckt_challenge challenge;
	struct ckt_credential proofs;
	bool proven; /* the key */
	/* the answer comes so long after the hello, or once the client has given up; 0: at once */
	int answer_after_ms;
	_Atomic bool client_over;
	char session[32];
} server;

static const uint8_t nonce[CKT_NONCE_SIZE]; /* of every greeting */

static void greet(int fd)
{
	uint32_t flavours[] = {server.flavour, CKT_AUTH_NONE};
	struct ckt_greeting greeting = {.protocol = 1,
		.flavours = {server.flavour == CKT_AUTH_CRICKET_PROOF ? 2 : 1, flavours}};
	uint8_t *data;
	size_t size;
	if (server.status == -2) {
		ckt_net_write_record(fd, (const uint8_t *)"HTTP/1.1", 8, -1, -1);
		return;
	}
	ckt_net_encode_call(0, CRICKET_CALLBACK_PROG, CKT_CALLBACK_GREETING,
		(xdrproc_t)xdr_ckt_greeting, &greeting, &data, &size);
	ckt_net_write_record(fd, data, size, -1, -1);
	free(data);
}

static void answer_hello(int fd)
{
	struct ckt_hello_args hello = {0};
	struct ckt_hello_res res = {.status = (enum ckt_hello_status)server.status};
	ckt_capability capability;
	uint64_t grants = 0;
	uint8_t *data;
	size_t size;
	if (ckt_net_read_record(fd, CKT_HELLO_MAX, ckt_net_now_ms() + 60000, &data, &size, NULL))
		return;
	struct ckt_cursor flavour = {.p = data + 24, .end = data + size};
	server.hello_flavour = ckt_get_u32(&flavour);
	server.credential_size = ckt_get_u32(&flavour);
	memcpy(server.credential, flavour.p,
		server.credential_size < sizeof server.credential ? server.credential_size : 0);
	struct ckt_cursor c = {.p = data + 40 + server.credential_size, .end = data + size};
	server.challenge = (struct ckt_challenge){
		.nonce = nonce, .args = c.p, .args_bytes = (size_t)(c.end - c.p)};
	server.proven = server.hello_flavour == CKT_AUTH_CRICKET_PROOF &&
		ckt_credential_get(server.credential, server.credential_size, &server.proofs) &&
		ckt_session_key_check(&server.challenge, &server.proofs);
	if (ckt_net_decode(&c, (xdrproc_t)xdr_ckt_hello_args, &hello) == 0) {
		server.pieces = hello.capabilities.capabilities_len;
		server.rings = server.pieces &&
			!strcmp(hello.capabilities.capabilities_val[server.pieces - 1].name,
				CKT_CAPABILITY_RINGS);
		server.pieces -= server.rings;
		server.hellos++;
		server.kinds |= 1u << hello.kind;
		snprintf(server.session, sizeof server.session, "%s", hello.session);
		memcpy(server.secret, hello.secret, sizeof server.secret);
		xdr_free((xdrproc_t)xdr_ckt_hello_args, (char *)&hello);
	}
	free(data);
	int64_t from_ms = ckt_net_now_ms() + server.answer_after_ms;
	while (!server.client_over && ckt_net_now_ms() < from_ms)
		poll(NULL, 0, 10);
	if (server.status == CKT_HELLO_OK) {
		res.ckt_hello_res_u.ok = (struct ckt_hello_ok){.protocol = 1,
			.session = (char *)PARTS_SESSION,
			.generation = 3,
			.executed = 4,
			.server = (char *)"fake",
			.build = (char *)"test"};
		grants = server.rings ? server.grants : 0;
		capability = (ckt_capability){(char *)CKT_CAPABILITY_RINGS, grants};
		res.ckt_hello_res_u.ok.capabilities.capabilities_val = &capability;
		res.ckt_hello_res_u.ok.capabilities.capabilities_len = grants != 0;
	} else {
		res.ckt_hello_res_u.refused.message = (char *)"because";
		res.ckt_hello_res_u.refused.moved_to = (char *)"elsewhere:1";
	}
	if (server.status == -3)
		ckt_net_write_record(fd, (const uint8_t *)"nonsense", 8, -1, -1);
	else if (!ckt_net_encode_reply(0, 0, (xdrproc_t)xdr_ckt_hello_res, &res, &data, &size)) {
		ckt_net_write_record(fd, data, size, -1, grants ? server.memory_fd : -1);
		free(data);
	}
}

/* A client that cannot use the rings that it was granted comes again, without them. */
static void *serve(void *unused)
{
	do {
		poll(&(struct pollfd){.fd = server.listener, .events = POLLIN}, 1, 60000);
		int fd = accept(server.listener, NULL, NULL);
		if (server.status != -1)
			greet(fd);
		if (server.status != -1 && server.status != -2)
			answer_hello(fd);
		close(fd);
	} while (server.again && server.again--);
	return NULL;
}

static char path[64], message[CKT_MESSAGE_MAX], moved[CKT_ADDRESS_MAX + 1], over[8];
static int limit_ms = 60000; /* of an attempt */

static int attempt(
	int status, uint32_t flavour, enum ckt_hello_kind kind, struct ckt_hello_ok *ret_ok)
{
	struct ckt_address address = {.type = CKT_ADDRESS_UNIX};
	char text[80];
	pthread_t thread;
	struct ckt_transport made = CKT_TRANSPORT_NONE;
	snprintf(path, sizeof path, "/tmp/ckt-connect-%d", (int)getpid());
	snprintf(address.host, sizeof address.host, "%s", path);
	snprintf(text, sizeof text, "unix:%s", path);
	*moved = 0;
	server.status = status;
	server.flavour = flavour;
	server.hello_flavour = 4711;
	server.hellos = server.kinds = 0;
	server.client_over = false;
	MUST(ckt_net_listen(&address, 0600, &server.listener, message, sizeof message), 0);
	MUST(pthread_create(&thread, NULL, serve, NULL), 0);
	int result = ckt_connect(&ckt_conn, text, kind, limit_ms, &made, ret_ok, moved,
		sizeof moved, message, sizeof message);
	server.client_over = true;
	IS(ckt_transport_open(&made), result == 0);
	snprintf(over, sizeof over, "%s", ckt_transport_name(&made));
	ckt_transport_close(&made);
	pthread_join(thread, NULL);
	close(server.listener);
	unlink(path);
	return result;
}

static void test_answers(void)
{
	static const struct {
		int status, result;
		const char *says;
	} rows[] = {
		{CKT_HELLO_MOVED, -EREMCHG, "because"},
		{CKT_HELLO_NO_SESSION, -ENOENT, "because"},
		{CKT_HELLO_PARKED, -EAGAIN, "because"},
		{CKT_HELLO_SHUTTING_DOWN, -EAGAIN, "because"},
		{CKT_HELLO_NO_DEVICE, -ENODEV, "because"},
		{CKT_HELLO_INVALID_DEVICE, -ENXIO, "because"},
		{CKT_HELLO_DENIED, -EACCES, "because"},
		{CKT_HELLO_FULL, -EACCES, "because"},
		{CKT_HELLO_STALE, -EACCES, "because"},
		{CKT_HELLO_BAD_VERSION, -EACCES, "because"},
		{-2, -EPROTO, "check that this is a cricket-server's port"},
		{-3, -EPROTO, "check that this is a cricket-server's port"},
	};
	ckt_conn.visible = NULL;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ckt_hello_ok ok = {0};
		ckt_conn.parked = false;
		IS(attempt(rows[i].status, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), rows[i].result);
		HAS(message, rows[i].says);
		TEXT(moved, rows[i].status == CKT_HELLO_MOVED ? "elsewhere:1" : "");
		IS(ckt_conn.parked, rows[i].status == CKT_HELLO_PARKED);
	}
	ckt_conn.parked = false;
	struct ckt_hello_ok ok = {0};
	YES(attempt(-1, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok) < 0);
	HAS(message, "during the hello");
	MUST(attempt(CKT_HELLO_OK, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), 0);
	TEXT(ok.session, PARTS_SESSION);
	IS(ok.generation, 3);
	IS(ok.executed, 4);
	xdr_free((xdrproc_t)xdr_ckt_hello_ok, (char *)&ok);
}

/*
 * A new session names none; one that is looked for names itself, and its GPUs were chosen long ago.
 */
static void test_hello(void)
{
	char visible[CKT_HELLO_MAX];
	struct ckt_hello_ok ok = {0};
	strcpy(ckt_conn.session, PARTS_SESSION);
	ckt_conn.visible = "";
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), -EACCES);
	IS(server.pieces, 3); /* and calls again, and sleep */
	TEXT(server.session, "");
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_NONE, CKT_HELLO_RESUME, &ok), -EACCES);
	IS(server.pieces, 2);
	TEXT(server.session, PARTS_SESSION);
	memset(visible, '1', CKT_VISIBLE_TEXT_MAX + 1);
	visible[CKT_VISIBLE_TEXT_MAX + 1] = 0;
	ckt_conn.visible = visible;
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), -EMSGSIZE);
	HAS(message, "CUDA_VISIBLE_DEVICES is longer");
	visible[CKT_VISIBLE_TEXT_MAX] = 0;
	ckt_conn.visible = visible;
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), -EACCES);
	IS(server.pieces, (CKT_VISIBLE_TEXT_MAX + CKT_VISIBLE_PIECE - 1) / CKT_VISIBLE_PIECE + 2);
	ckt_conn.visible = NULL;
}

static void test_token(void)
{
	char file[] = "/tmp/ckt-connect-token-XXXXXX";
	struct ckt_hello_ok ok = {0};
	int fd = mkstemp(file);
	memset(&ckt_settings, 0, sizeof ckt_settings);
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_CRICKET_TOKEN, CKT_HELLO_NEW, &ok), -EACCES);
	HAS(message, "set CRICKET_TOKEN_FILE");
	IS(server.hello_flavour, 4711);
	ckt_settings.token_file = "/nonexistent";
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_CRICKET_TOKEN, CKT_HELLO_NEW, &ok), -EACCES);
	HAS(message, "No such file");
	ckt_settings.token_file = file;
	IS(write(fd, " \n", 2), 2);
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_CRICKET_TOKEN, CKT_HELLO_NEW, &ok), -EACCES);
	HAS(message, "is empty");
	IS(pwrite(fd, "secret\n", 7, 0), 7);
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_CRICKET_TOKEN, CKT_HELLO_NEW, &ok), -EACCES);
	IS(server.hello_flavour, CKT_AUTH_CRICKET_TOKEN);
	/* Nobody who does not ask for it is shown anything made of it. */
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), -EACCES);
	IS(server.hello_flavour, CKT_AUTH_NONE);
	ckt_settings.token_file = NULL;
	close(fd);
	unlink(file);
}

/* The session's key never travels, and a server of an earlier version gets a secret instead. */
static void test_key(void)
{
	struct ckt_hello_ok ok = {0};
	uint8_t secret[CKT_SECRET_SIZE], wanted[CKT_SECRET_SIZE];
	memset(&ckt_settings, 0, sizeof ckt_settings);
	MUST(ckt_session_key_new(&ckt_conn.key), 0);
	ckt_session_key_secret(ckt_conn.key->public_key, wanted);
	for (int kind = CKT_HELLO_NEW; kind <= CKT_HELLO_DATA; kind++) {
		if (kind == CKT_HELLO_CONTROL)
			continue;
		IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_CRICKET_PROOF, (enum ckt_hello_kind)kind,
			   &ok),
			-EACCES);
		IS(server.hello_flavour, CKT_AUTH_CRICKET_PROOF);
		YES(server.proven);
		NO(server.proofs.has_token);
		IS(memcmp(server.secret, wanted, sizeof wanted), 0);
		IS(memcmp(server.proofs.public_key, ckt_conn.key->public_key, CKT_PUBLIC_KEY_SIZE),
			0);
	}
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), -EACCES);
	IS(server.hello_flavour, CKT_AUTH_NONE);
	NO(ckt_session_secret_is_key(server.secret));
	memcpy(secret, server.secret, sizeof secret);
	/* The session that it began moves to a server of this version. */
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_CRICKET_PROOF, CKT_HELLO_RESUME, &ok), -EACCES);
	IS(memcmp(server.secret, secret, sizeof secret), 0);
	IS(server.hello_flavour, CKT_AUTH_NONE);
}

static void test_nobody(void)
{
	struct ckt_hello_ok ok = {0};
	struct ckt_transport made = CKT_TRANSPORT_NONE;
	memset(&ckt_settings, 0, sizeof ckt_settings);
	IS(ckt_connect(&ckt_conn, "host:port", CKT_HELLO_NEW, 1000, &made, &ok, moved, sizeof moved,
		   message, sizeof message),
		-EINVAL);
	YES(*message);
	IS(ckt_connect(&ckt_conn, "unix:/nonexistent", CKT_HELLO_NEW, 1000, &made, &ok, moved,
		   sizeof moved, message, sizeof message),
		-ENOENT);
	HAS(message, "set REMOTE_GPU_ADDRESS to a host that runs cricket-server");
	ckt_settings.address_given = true;
	IS(ckt_connect(&ckt_conn, "unix:/nonexistent", CKT_HELLO_NEW, 1000, &made, &ok, moved,
		   sizeof moved, message, sizeof message),
		-ENOENT);
	HAS(message, "REMOTE_GPU_ADDRESS is right");
	NO(ckt_transport_open(&made));
}

/* Over a UNIX socket the client offers rings, and uses those that it gets if it can. */
static void test_rings(void)
{
	struct ckt_hello_ok ok = {0};
	memset(&ckt_settings, 0, sizeof ckt_settings);
	MUST(ckt_shared_memory_make(CKT_RINGS_BYTES_MIN, &server.memory_fd), 0);
	server.grants = CKT_RINGS_BYTES_MIN;
	for (int kind = CKT_HELLO_NEW; kind <= CKT_HELLO_RESUME; kind++) {
		IS(attempt(CKT_HELLO_OK, CKT_AUTH_NONE, (enum ckt_hello_kind)kind, &ok), 0);
		YES(server.rings);
		TEXT(over, "shm");
		IS(ok.executed, 4);
		xdr_free((xdrproc_t)xdr_ckt_hello_ok, (char *)&ok);
	}
	/* A further connection for data has none, and neither has a client that was told so. */
	IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_NONE, CKT_HELLO_DATA, &ok), -EACCES);
	NO(server.rings);
	ckt_settings.transport = CKT_TRANSPORT_UNIX;
	IS(attempt(CKT_HELLO_OK, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), 0);
	NO(server.rings);
	TEXT(over, "unix");
	xdr_free((xdrproc_t)xdr_ckt_hello_ok, (char *)&ok);
	ckt_settings.transport = CKT_TRANSPORT_TCP;
	IS(attempt(CKT_HELLO_OK, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), -EPROTONOSUPPORT);
	HAS(message, "CRICKET_TRANSPORT=tcp, but unix:");
	ckt_settings.transport = CKT_TRANSPORT_SHM;
	IS(attempt(CKT_HELLO_OK, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), 0);
	TEXT(over, "shm");
	xdr_free((xdrproc_t)xdr_ckt_hello_ok, (char *)&ok);
	server.grants = 0;
	IS(attempt(CKT_HELLO_OK, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), -EPROTONOSUPPORT);
	HAS(message, "CRICKET_TRANSPORT=shm, but the server gave no shared memory");
	ckt_settings.transport = CKT_TRANSPORT_AUTO;
	IS(attempt(CKT_HELLO_OK, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), 0);
	TEXT(over, "unix");
	xdr_free((xdrproc_t)xdr_ckt_hello_ok, (char *)&ok);
	close(server.memory_fd);
}

/* A server that grants what is of no use: the client takes its session up again on the socket. */
static void test_bad_rings(void)
{
	struct ckt_hello_ok ok = {0};
	int unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	MUST(ftruncate(unsealed, 4096 + 2 * CKT_RINGS_BYTES_MIN), 0);
	const int memory[] = {unsealed, -1, unsealed};
	const uint64_t grants[] = {CKT_RINGS_BYTES_MIN, CKT_RINGS_BYTES_MIN, UINT64_MAX};
	memset(&ckt_settings, 0, sizeof ckt_settings);
	for (size_t i = 0; i < COUNT(memory); i++) {
		server.memory_fd = memory[i];
		server.grants = grants[i];
		server.again = 1;
		ckt_conn.no_rings = false;
		parts_stderr_begin();
		IS(attempt(CKT_HELLO_OK, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), 0);
		/* ssh, for one, passes no descriptor on: nothing to tell the user. */
		if (memory[i] >= 0)
			HAS(parts_stderr_end(), "cannot use the server's shared memory");
		else
			TEXT(parts_stderr_end(), "");
		IS(server.hellos, 2);
		IS(server.kinds, 1 << CKT_HELLO_NEW | 1 << CKT_HELLO_RESUME);
		NO(server.rings);
		TEXT(over, "unix");
		TEXT(server.session, PARTS_SESSION);
		xdr_free((xdrproc_t)xdr_ckt_hello_ok, (char *)&ok);
		/* It does not try again. */
		IS(attempt(CKT_HELLO_DENIED, CKT_AUTH_NONE, CKT_HELLO_RESUME, &ok), -EACCES);
		NO(server.rings);
		ckt_conn.no_rings = false;
		ckt_settings.transport = CKT_TRANSPORT_SHM;
		IS(attempt(CKT_HELLO_OK, CKT_AUTH_NONE, CKT_HELLO_NEW, &ok), -EPROTONOSUPPORT);
		HAS(message, "cannot use the server's shared memory");
		ckt_settings.transport = CKT_TRANSPORT_AUTO;
	}
	server.grants = 0;
	close(unsealed);
}

/*
 * A server that greets, but answers after the limit: the client waits for the worker of a new session,
 * and not for a session that may be elsewhere.
 */
static void test_late_answer(void)
{
	static const struct {
		enum ckt_hello_kind kind;
		int answer_ms, result;
	} rows[] = {
		{CKT_HELLO_NEW, 60000, 0},
		{CKT_HELLO_NEW, 0, -ETIMEDOUT},
		{CKT_HELLO_RESUME, 60000, -ETIMEDOUT},
		{CKT_HELLO_DATA, 60000, -ETIMEDOUT},
	};
	memset(&ckt_settings, 0, sizeof ckt_settings);
	/* The greeting comes within it, though somebody stands still for a second. */
	limit_ms = 2000;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ckt_hello_ok ok = {0};
		ckt_settings.answer_timeout_ms = rows[i].answer_ms;
		/* Behind the limit, which begins before the hello; or behind the client's end. */
		server.answer_after_ms = rows[i].result ? 60000 : limit_ms + 100;
		IS(attempt(CKT_HELLO_OK, CKT_AUTH_NONE, rows[i].kind, &ok), rows[i].result);
		IS(server.hellos, 1);
		if (rows[i].result)
			HAS(message, "the server took the hello, but did not answer it");
		xdr_free((xdrproc_t)xdr_ckt_hello_ok, (char *)&ok);
	}
	limit_ms = 60000;
	server.answer_after_ms = 0;
}

UNIT_SUITE(connect, {"answers", test_answers}, {"hello", test_hello}, {"token", test_token},
	{"key", test_key}, {"nobody", test_nobody}, {"rings", test_rings},
	{"bad rings", test_bad_rings}, {"late answer", test_late_answer})
