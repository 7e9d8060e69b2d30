/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/durable/afresh.c: who may have a session begin again from nothing.  The server
 * drains, so what passes all other checks is told so.  Sessions that do begin:
 * tests/server/test_afresh.py.
 */
#include "server/daemon/durable/afresh.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/policy/admission.h"
#include "server/daemon/session/server_key.h"
#include "server/daemon/session/session_marks.h"

#define PASSES "is drained for maintenance"

static struct ckt_session_key key;
static char id[CKT_SESSION_ID_SIZE + 1], text[512];
static ckt_capability capabilities[3];

static ckt_hello_args args_of(const char *session)
{
	ckt_hello_args args = hello_args(CKT_HELLO_RESUME, session);
	ckt_session_key_secret(key.public_key, (uint8_t *)args.secret);
	capabilities[0] = (ckt_capability){(char *)CKT_CAPABILITY_DURABLE, 1};
	capabilities[1] = (ckt_capability){(char *)CKT_CAPABILITY_COPY, 7};
	capabilities[2] = (ckt_capability){(char *)CKT_CAPABILITY_AFRESH, 1};
	args.capabilities.capabilities_val = capabilities;
	args.capabilities.capabilities_len = 3;
	args.generation = 1;
	return args;
}

static int ask(const ckt_hello_args *args, const struct ckt_session_key *by)
{
	ckt_greeting greeting;
	int fd = peer_new(&greeting), status = hello_proving(fd, args, &greeting, NULL, by, text);
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	close(fd);
	run_for(3);
	return status;
}

static bool passes(const ckt_hello_args *args)
{
	return ask(args, &key) == CKT_HELLO_FAILED && strstr(text, PASSES);
}

static void begin(void)
{
	uint8_t secret[CKT_SECRET_SIZE], hash[CKT_SECRET_HASH_SIZE];
	MUST(ckt_session_key_make(&key), 0);
	ckt_session_key_secret(key.public_key, secret);
	ckt_auth_hash(secret, sizeof secret, hash);
	ckt_server_key_session_id(hash, 0, id);
	server.drain.on = true;
}

static void test_who(void)
{
	struct ckt_session_key other;
	begin();
	ckt_hello_args args = args_of(id);
	YES(passes(&args));
	/* Another's id, with a key of one's own; and another's fingerprint. */
	MUST(ckt_session_key_make(&other), 0);
	ckt_session_key_secret(other.public_key, (uint8_t *)args.secret);
	IS(ask(&args, &other), CKT_HELLO_DENIED);
	HAS(text, "does not match the session's id");
	args = args_of(id);
	IS(ask(&args, &other), CKT_HELLO_DENIED);
	/* A secret that everybody on the way could read is no key. */
	memset(args.secret, 0x31, sizeof args.secret);
	IS(ask(&args, NULL), CKT_HELLO_NO_SESSION);
	/* Names that are none, and a generation without a next one. */
	args = args_of("../../../etc");
	IS(ask(&args, &key), CKT_HELLO_NO_SESSION);
	args = args_of(id);
	args.generation = UINT64_MAX;
	IS(ask(&args, &key), CKT_HELLO_NO_SESSION);
	server.drain.on = false;
	/* The tests that follow are the same source, which has guessed twice. */
	ckt_admission_fini(&server);
}

/* A client that has not everything, or does not ask. */
static void test_what(void)
{
	begin();
	for (unsigned i = 0; i < 3; i++) {
		ckt_hello_args args = args_of(id);
		capabilities[i].value = 0;
		IS(ask(&args, &key), CKT_HELLO_NO_SESSION);
	}
	ckt_hello_args args = args_of(id);
	/* It has forgotten the first command. */
	capabilities[0].value = 2;
	IS(ask(&args, &key), CKT_HELLO_NO_SESSION);
	args = args_of(id);
	args.kind = CKT_HELLO_DATA;
	IS(ask(&args, &key), CKT_HELLO_NO_SESSION);
	server.drain.on = false;
}

/* Sessions that are somewhere else, wait, were ended, or may still have a worker. */
static void test_where(void)
{
	static const enum ckt_session_mark marks[] = {CKT_MARK_MOVED, CKT_MARK_PARKED};
	static const int answers[] = {CKT_HELLO_MOVED, CKT_HELLO_PARKED};
	char path[CKT_PATH_MAX + 32];
	begin();
	ckt_hello_args args = args_of(id);
	for (unsigned i = 0; i < 2; i++) {
		MUST(ckt_session_mark_write(&server, id, marks[i], CKT_UID_UNKNOWN, true, "b:1"),
			0);
		IS(ask(&args, &key), answers[i]);
		ckt_session_mark_remove(&server, id, marks[i], 0);
		YES(passes(&args));
	}
	snprintf(path, sizeof path, "%s/%s.sock", server.socket_dir, id);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	IS(ask(&args, &key), CKT_HELLO_FAILED);
	HAS(text, "may still have a worker");
	unlink(path);
	YES(passes(&args));
	struct ckt_session session = {.server = &server};
	strcpy(session.id, id);
	/* A crash, and an end of the server's own, are none on purpose. */
	ckt_afresh_note_end(&session, true);
	YES(passes(&args));
	session.cut_off = true;
	ckt_afresh_note_end(&session, false);
	YES(passes(&args));
	session.cut_off = false;
	ckt_afresh_note_end(&session, false);
	IS(ask(&args, &key), CKT_HELLO_NO_SESSION);
	server.drain.on = false;
}

/* Whoever holds the lock of its images, here or at a server that shares them, may run it. */
static void test_lock(void)
{
	static char dir[128];
	char message[256] = "";
	snprintf(dir, sizeof dir, "%s", path_in("afresh"));
	server.options.auto_checkpoint = (char *)"1h";
	server.options.auto_dir = dir;
	MUST(ckt_automatic_init(&server, message, sizeof message), 0);
	begin();
	ckt_hello_args args = args_of(id);
	YES(passes(&args));
	int fd = ckt_chain_open(server.automatic->dir_fd, id, true);
	int lock = ckt_chain_lock(fd, false);
	CU_ASSERT_FATAL(lock >= 0);
	IS(ask(&args, &key), CKT_HELLO_FAILED);
	HAS(text, "may still have a worker");
	/* What a first image left that never counted. */
	close(lock);
	YES(passes(&args));
	lock = ckt_chain_lock(fd, false);
	ckt_chain_remove(server.automatic->dir_fd, fd, id);
	close(lock);
	close(fd);
	server.drain.on = false;
	ckt_automatic_fini(&server);
	server.options.auto_checkpoint = server.options.auto_dir = NULL;
}

UNIT_SUITE(
	afresh, {"who", test_who}, {"what", test_what}, {"where", test_where}, {"lock", test_lock})
