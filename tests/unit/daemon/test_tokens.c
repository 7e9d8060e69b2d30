/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/policy/tokens.c: the file of tokens while the server runs: added, revoked, expired
 * and broken.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/policy/tokens.h"

static char *path, message[512];

static void add(const char *name, enum ckt_role role, const char *project, time_t expires)
{
	struct ckt_token_entry entry = {.role = role, .expires = expires};
	struct ckt_token token = {.size_bytes = strlen(name)};
	memcpy(token.bytes, name, token.size_bytes);
	snprintf(entry.name, sizeof entry.name, "%s", name);
	if (project)
		snprintf(entry.projects[entry.project_count++], sizeof entry.projects[0], "%s",
			project);
	ckt_token_verifier_make(&token, &entry.verifier);
	MUST(ckt_token_file_add(path, &entry, message, sizeof message), 0);
	ckt_tokens_refresh(&server);
}

static void withdraw(const char *name)
{
	MUST(ckt_token_file_remove(path, name, message, sizeof message), 0);
	ckt_tokens_refresh(&server);
}

/* The status of the hello of a peer over TCP that proves this token. */
static int ask(const char *token, char *ret_text)
{
	ckt_greeting greeting;
	const ckt_hello_args args = hello_args(CKT_HELLO_CONTROL, "");
	int fd = peer_new(&greeting);
	peer_last()->who.kind = CKT_PEER_REMOTE;
	peer_last()->who.uid = CKT_UID_UNKNOWN;
	int status = hello_proving(fd, &args, &greeting, token, NULL, ret_text);
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	close(fd);
	run_for(3);
	return status;
}

static void test_file(void)
{
	char text[512];
	path = strdup(path_in("tokens"));
	/* Wrong ones are answered at once. */
	server.options.max_delay = 0;
	NO(ckt_tokens_known(&server));
	IS(ckt_tokens_open(&server, message, sizeof message), 0);
	server.options.tokens = path;
	YES(ckt_tokens_known(&server));
	IS(ckt_tokens_open(&server, message, sizeof message), -ENOENT);
	HAS(message, path);
	write_file(path, "", 0600);
	IS(ckt_tokens_open(&server, message, sizeof message), 0);
	IS(ask(NULL, text), CKT_HELLO_DENIED);
	HAS(text, "requires a token");
	IS(ask("alice", text), CKT_HELLO_DENIED);
	HAS(text, "has not revoked");
	add("alice", CKT_ROLE_USER, NULL, 0);
	IS(ask("alice", text), CKT_HELLO_OK);
	IS(ask("bob", text), CKT_HELLO_DENIED);
	add("bob", CKT_ROLE_USER, NULL, 100);
	IS(ask("bob", text), CKT_HELLO_DENIED);
	HAS(text, "the token 'bob' has expired");
	withdraw("alice");
	IS(ask("alice", text), CKT_HELLO_DENIED);
	HAS(text, "does not match");
	/* Broken by hand: what was read before stays. */
	withdraw("bob");
	add("bob", CKT_ROLE_USER, NULL, 0);
	write_file(path, "[bob\n", 0600);
	ckt_tokens_refresh(&server);
	IS(ask("bob", text), CKT_HELLO_OK);
	/* Gone: so are its tokens. */
	unlink(path);
	ckt_tokens_refresh(&server);
	IS(ask("bob", text), CKT_HELLO_DENIED);
	write_file(path, "", 0600);
	add("token", CKT_ROLE_USER, NULL, 0);
	server.token = (struct ckt_token){.bytes = "right", .size_bytes = 5};
	IS(ckt_tokens_open(&server, message, sizeof message), -EEXIST);
	HAS(message, "rename this one");
	server.token.size_bytes = 0;
	write_file(path, "", 0600);
	ckt_tokens_refresh(&server);
}

static struct ckt_peer peer_of(const char *token)
{
	return (struct ckt_peer){.server = &server,
		.token = ckt_owner_of_token(token),
		.who = {.kind = CKT_PEER_REMOTE, .uid = CKT_UID_UNKNOWN}};
}

static void test_rights(void)
{
	uint32_t alice = ckt_owner_of_token("alice"), dave = ckt_owner_of_token("dave");
	const struct ckt_peer as_alice = peer_of("alice"), as_bob = peer_of("bob"),
			      as_carol = peer_of("carol"), as_root = peer_of("root");
	add("alice", CKT_ROLE_USER, "vision", 0);
	add("bob", CKT_ROLE_OPERATOR, "vision", 0);
	add("carol", CKT_ROLE_OPERATOR, "speech", 0);
	add("dave", CKT_ROLE_USER, NULL, 0);
	add("root", CKT_ROLE_ADMINISTRATOR, NULL, 0);
	YES(ckt_peer_may(&as_alice, alice) && ckt_peer_may(&as_bob, alice) &&
		ckt_peer_may(&as_root, alice));
	NO(ckt_peer_may(&as_carol, alice));
	/* Who is of no project has no operator. */
	NO(ckt_peer_may(&as_alice, dave) || ckt_peer_may(&as_bob, dave) ||
		ckt_peer_may(&as_carol, dave));
	/* A user of this host, and nobody, are an administrator's alone. */
	NO(ckt_peer_may(&as_bob, 1000) || ckt_peer_may(&as_bob, CKT_UID_UNKNOWN));
	YES(ckt_peer_may(&as_root, 1000) && ckt_peer_may(&as_root, CKT_UID_UNKNOWN));
	IS(ckt_peer_owner(&as_alice), alice);
	IS(ckt_peer_role(&as_bob), CKT_ROLE_OPERATOR);
	IS(ckt_peer_role(&as_root), CKT_ROLE_ADMINISTRATOR);
	NO(ckt_peer_is_anonymous(&as_alice));
	TEXT(ckt_tokens_project(&server, alice), "vision");
	TEXT(ckt_tokens_project(&server, dave), "");
	/* Revoked while it is connected. */
	withdraw("alice");
	NO(ckt_peer_may(&as_alice, alice));
	IS(ckt_peer_owner(&as_alice), CKT_UID_UNKNOWN);
	YES(ckt_peer_is_anonymous(&as_alice));
	/* Her project is forgotten with her. */
	NO(ckt_peer_may(&as_bob, alice));
	withdraw("root");
	NO(ckt_peer_may(&as_root, 1000));
}

static void test_text(void)
{
	static const struct {
		const char *token;
		uint32_t owner;
		const char *text;
	} rows[] = {{NULL, 1000, "uid:1000"}, {NULL, 0, "uid:0"}, {NULL, CKT_UID_UNKNOWN, "nobody"},
		{"bob", 0, "token:bob"}, {"gone", 0, "token:?"}};
	char text[CKT_OWNER_NAME_SIZE];
	for (size_t i = 0; i < COUNT(rows); i++) {
		ckt_owner_text(&server,
			rows[i].token ? ckt_owner_of_token(rows[i].token) : rows[i].owner, text);
		TEXT(text, rows[i].text);
	}
	ckt_tokens_close(&server);
	server.options.tokens = NULL;
	free(path);
}

UNIT_SUITE(tokens, {"file", test_file}, {"rights", test_rights}, {"text", test_text})
