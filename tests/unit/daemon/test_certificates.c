/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/policy/certificates.c: whom certificates name while the server runs: shown, renewed,
 * expired, revoked, too many.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/policy/certificates.h"
#include "tests/unit/made_certificates.h"

static struct made authority;
static char ca[128], message[512];

static void begin(void)
{
	snprintf(ca, sizeof ca, "%s", path_in("ca.pem"));
	unlink(path_in("crl.pem"));
	authority =
		made_certificate(&(struct made_wish){.common_name = "ca", .is_authority = 1}, NULL);
	made_write(ca, &authority);
	MUST(ckt_certificates_open(&server, NULL, ca, message, sizeof message), 0);
}

static void end(void)
{
	ckt_certificates_close(&server);
	made_free(&authority);
}

static int take(const struct made_wish *wish, struct ckt_certificate_holder **ret_holder)
{
	struct made_wish client = *wish;
	client.usage = "clientAuth";
	struct made made = made_certificate(&client, &authority);
	*message = 0;
	int result = ckt_certificates_take(
		&server, made.der, made.size, ret_holder, message, sizeof message);
	made_free(&made);
	return result;
}

static void withdraw(const long *serials)
{
	made_write_list(path_in("crl.pem"), &authority, serials, 1000);
	server.certificates.looked_ms = 0;
}

static void test_life(void)
{
	char text[CKT_OWNER_NAME_SIZE];
	struct ckt_certificate_holder *alice, *again;
	uint32_t owner = ckt_owner_of_certificate("alice");
	begin();
	ckt_owner_text(&server, owner, text);
	TEXT(text, "token:?");
	MUST(take(&(struct made_wish){.names = "URI:cricket:user=alice,URI:cricket:role=operator,"
					       "URI:cricket:project=vision",
			  .serial = 7},
		     &alice),
		0);
	IS(alice->owner, owner);
	YES(ckt_owner_is_token(owner) && owner != ckt_owner_of_token("alice"));
	ckt_owner_text(&server, owner, text);
	TEXT(text, "certificate:alice");
	TEXT(ckt_tokens_project(&server, owner), "vision");
	YES(ckt_tokens_operates(&server, owner, owner));
	CU_ASSERT_PTR_EQUAL(ckt_tokens_find_owner(&server, owner), &alice->entry);
	CU_ASSERT_PTR_EQUAL(ckt_certificate_entry(&server, alice), &alice->entry);
	/* Another list, and nobody of ours in it. */
	withdraw((const long[]){6, 8, 0});
	YES(ckt_certificate_entry(&server, alice) != NULL);
	withdraw((const long[]){6, 7, 0});
	CU_ASSERT_PTR_NULL(ckt_certificate_entry(&server, alice));
	CU_ASSERT_PTR_NULL(ckt_tokens_find_owner(&server, owner));
	/* Its sessions keep their owner's name. */
	ckt_owner_text(&server, owner, text);
	TEXT(text, "certificate:alice");
	IS(take(&(struct made_wish){.names = "URI:cricket:user=alice", .serial = 7}, &again),
		-EACCES);
	HAS(message, "'alice' was revoked");
	/* A list that is gone or spoiled brings nobody back. */
	unlink(path_in("crl.pem"));
	server.certificates.looked_ms = 0;
	CU_ASSERT_PTR_NULL(ckt_certificate_entry(&server, alice));
	write_file(path_in("crl.pem"), "nonsense", 0644);
	server.certificates.looked_ms = 0;
	CU_ASSERT_PTR_NULL(ckt_certificate_entry(&server, alice));
	ckt_certificates_give(alice);
	end();
}

static void test_refused(void)
{
	struct ckt_certificate_holder *holder;
	begin();
	IS(take(&(struct made_wish){0}, &holder), -ENOENT);
	IS(take(&(struct made_wish){.names = "URI:cricket:user=Bob"}, &holder), -EINVAL);
	IS(take(&(struct made_wish){.names = "URI:cricket:user=bob", .from_s = -90, .until_s = -30},
		   &holder),
		-EACCES);
	HAS(message, "'bob' has expired");
	IS(take(&(struct made_wish){.names = "URI:cricket:user=bob", .from_s = 90, .until_s = 300},
		   &holder),
		-EACCES);
	HAS(message, "'bob' is not valid yet");
	IS(server.certificates.count, 0);
	end();
}

/* It ends while its holder is connected. */
static void test_expires(void)
{
	struct ckt_certificate_holder *holder;
	begin();
	MUST(take(
		     &(struct made_wish){
			     .names = "URI:cricket:user=bob", .from_s = -90, .until_s = 60},
		     &holder),
		0);
	YES(ckt_certificate_entry(&server, holder) != NULL);
	holder->entry.expires = time(NULL);
	CU_ASSERT_PTR_NULL(ckt_certificate_entry(&server, holder));
	ckt_certificates_give(holder);
	end();
}

/* Two certificates of one name: each has its own rights, and the later one speaks for the owner. */
static void test_renewed(void)
{
	struct ckt_certificate_holder *old, *new, *same;
	uint32_t owner = ckt_owner_of_certificate("carol");
	begin();
	MUST(take(&(struct made_wish){.names = "URI:cricket:user=carol",
			  .from_s = -90,
			  .until_s = 300,
			  .serial = 1},
		     &old),
		0);
	MUST(take(
		     &(struct made_wish){
			     .names = "URI:cricket:user=carol,URI:cricket:role=administrator",
			     .from_s = -30,
			     .until_s = 300,
			     .serial = 2},
		     &new),
		0);
	YES(old != new && old->owner == new->owner);
	IS(ckt_certificate_entry(&server, old)->role, CKT_ROLE_USER);
	IS(ckt_certificate_entry(&server, new)->role, CKT_ROLE_ADMINISTRATOR);
	CU_ASSERT_PTR_EQUAL(ckt_tokens_find_owner(&server, owner), &new->entry);
	withdraw((const long[]){2, 0});
	CU_ASSERT_PTR_EQUAL(ckt_tokens_find_owner(&server, owner), &old->entry);
	IS(server.certificates.count, 2);
	/* The same one again is the same holder. */
	struct made made = made_certificate(
		&(struct made_wish){.names = "URI:cricket:user=dora", .usage = "clientAuth"},
		&authority);
	MUST(ckt_certificates_take(&server, made.der, made.size, &new, message, sizeof message), 0);
	MUST(ckt_certificates_take(&server, made.der, made.size, &same, message, sizeof message),
		0);
	CU_ASSERT_PTR_EQUAL(new, same);
	IS(same->uses, 2);
	made_free(&made);
	end();
}

/* What nobody needs makes room; what is in use does not. */
static void test_full(void)
{
	struct ckt_certificate_holder *first, *other;
	begin();
	MUST(take(&(struct made_wish){.names = "URI:cricket:user=first", .serial = 1}, &first), 0);
	server.certificates.count = CKT_CERTIFICATE_HOLDERS_MAX;
	IS(take(&(struct made_wish){.names = "URI:cricket:user=other", .serial = 2}, &other),
		-ENOSPC);
	HAS(message, "more than 4096 certificates");
	struct ckt_session *session = session_new("0123456789ab");
	session->uid = first->owner;
	ckt_certificates_give(first);
	IS(take(&(struct made_wish){.names = "URI:cricket:user=other", .serial = 2}, &other),
		-ENOSPC);
	session->uid = 0;
	IS(take(&(struct made_wish){.names = "URI:cricket:user=other", .serial = 2}, &other), 0);
	TEXT(server.certificates.holders->entry.name, "other");
	CU_ASSERT_PTR_NULL(server.certificates.holders->next);
	session_drop(session);
	end();
}

/* The single token's number, as if it had the same hash. */
static void test_collision(void)
{
	struct ckt_certificate_holder *holder;
	struct ckt_token_entry entry = {.name = "certificate:erik"};
	begin();
	server.tokens.file = (struct ckt_token_file){.entries = &entry, .count = 1};
	IS(take(&(struct made_wish){.names = "URI:cricket:user=erik"}, &holder), -EEXIST);
	HAS(message, "rename the token");
	server.tokens.file = (struct ckt_token_file){0};
	end();
}

static void test_open(void)
{
	begin();
	end();
	write_file(path_in("crl.pem"), "nonsense", 0644);
	IS(ckt_certificates_open(&server, NULL, ca, message, sizeof message), -EINVAL);
	HAS(message, "crl.pem: it holds no list in PEM");
	ckt_certificates_close(&server);
	IS(ckt_certificates_open(&server, NULL, NULL, message, sizeof message), 0);
	CU_ASSERT_PTR_NULL(server.certificates.paths.revocations);
	ckt_certificates_close(&server);
	unlink(path_in("crl.pem"));
}

UNIT_SUITE(certificates, {"life", test_life}, {"refused", test_refused}, {"expires", test_expires},
	{"renewed", test_renewed}, {"full", test_full}, {"collision", test_collision},
	{"open", test_open})
