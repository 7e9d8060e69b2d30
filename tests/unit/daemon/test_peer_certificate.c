/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/peer/peer_certificate.c: what a peer with a certificate may do, and that no other peer
 * gains by one.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/peer/peer_certificate.h"
#include "tests/unit/made_certificates.h"

static struct made authority;

static int ask(const char *names, bool tcp, const char *token, char *ret_text)
{
	ckt_greeting greeting;
	const ckt_hello_args args = hello_args(CKT_HELLO_CONTROL, "");
	struct made made = made_certificate(
		&(struct made_wish){.names = names, .usage = "clientAuth"}, &authority);
	int fd = peer_new(&greeting);
	if (tcp) {
		peer_last()->who.kind = CKT_PEER_REMOTE;
		peer_last()->who.uid = CKT_UID_UNKNOWN;
	}
	if (names)
		ckt_peer_certificate_take(peer_last(), made.der, made.size);
	int status = hello_proving(fd, &args, &greeting, token, NULL, ret_text);
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	made_free(&made);
	/* The caller looks at the peer. */
	if (status != CKT_HELLO_OK) {
		close(fd);
		run_for(3);
		return -1 - status;
	}
	return fd;
}

static void hang_up(int fd)
{
	close(fd);
	run_for(3);
}

static void test_entry(void)
{
	char text[512], message[512];
	authority = made_certificate(&(struct made_wish){.is_authority = 1}, NULL);
	MUST(ckt_certificates_open(&server, NULL, NULL, message, sizeof message), 0);
	server.token = (struct ckt_token){.bytes = "right", .size_bytes = 5};
	IS(ask(NULL, true, NULL, text), -1 - CKT_HELLO_DENIED);
	HAS(text, "requires a token");
	int fd = ask("URI:cricket:user=alice,URI:cricket:role=administrator", true, NULL, text);
	MUST(fd >= 0, true);
	IS(ckt_peer_owner(peer_last()), ckt_owner_of_certificate("alice"));
	IS(ckt_peer_role(peer_last()), CKT_ROLE_ADMINISTRATOR);
	YES(ckt_peer_may(peer_last(), 1000));
	NO(ckt_peer_is_anonymous(peer_last()));
	hang_up(fd);
	IS(server.certificates.holders->uses, 0);
	/* A token beside it counts. */
	fd = ask("URI:cricket:user=alice,URI:cricket:role=administrator", true, "right", text);
	MUST(fd >= 0, true);
	IS(ckt_peer_owner(peer_last()), ckt_owner_of_token(CKT_SINGLE_TOKEN_NAME));
	IS(ckt_peer_role(peer_last()), CKT_ROLE_USER);
	hang_up(fd);
	IS(ask("URI:cricket:user=alice", true, "wrong", text), -1 - CKT_HELLO_DENIED);
	HAS(text, "does not match");
	/* One of another kind, as servers have them: nobody. */
	IS(ask("DNS:gpunode", true, NULL, text), -1 - CKT_HELLO_DENIED);
	HAS(text, "requires a token");
	IS(ask("URI:cricket:user=Alice", true, NULL, text), -1 - CKT_HELLO_DENIED);
	HAS(text, "names a user twice, or none");
	IS(ask("URI:cricket:user=Alice", true, "right", text), -1 - CKT_HELLO_DENIED);
	server.token.size_bytes = 0;
}

/* Of a UNIX socket the kernel knows the user: a certificate there changes nothing. */
static void test_unix(void)
{
	char text[512];
	int fd = ask("URI:cricket:user=alice,URI:cricket:role=administrator", false, NULL, text);
	MUST(fd >= 0, true);
	CU_ASSERT_PTR_NULL(peer_last()->holder);
	IS(ckt_peer_owner(peer_last()), geteuid());
	hang_up(fd);
}

/* Each connection has the rights of its own certificate, until that is revoked. */
static void test_rights(void)
{
	char text[512];
	int first = ask("URI:cricket:user=bob", true, NULL, text);
	MUST(first >= 0, true);
	struct ckt_peer *user = peer_last();
	int second = ask("URI:cricket:user=bob,URI:cricket:role=administrator", true, NULL, text);
	MUST(second >= 0, true);
	IS(ckt_peer_role(user), CKT_ROLE_USER);
	NO(ckt_peer_may(user, 1000));
	YES(ckt_peer_may(user, ckt_owner_of_certificate("bob")));
	IS(ckt_peer_role(peer_last()), CKT_ROLE_ADMINISTRATOR);
	user->holder->entry.expires = 1;
	IS(ckt_peer_role(user), CKT_ROLE_USER);
	YES(ckt_peer_is_anonymous(user));
	NO(ckt_peer_may(user, ckt_owner_of_certificate("bob")));
	hang_up(first);
	hang_up(second);
	ckt_certificates_close(&server);
	made_free(&authority);
}

UNIT_SUITE(peer_certificate, {"entry", test_entry}, {"unix", test_unix}, {"rights", test_rights})
