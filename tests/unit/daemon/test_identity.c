/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/policy/identity.c: whom things count for. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "tests/unit/made_certificates.h"

static struct ckt_auth_peer address(uint8_t last)
{
	return (struct ckt_auth_peer){.kind = CKT_PEER_LOOPBACK,
		.uid = CKT_UID_UNKNOWN,
		.address = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = last}};
}

static void test_identities(void)
{
	struct ckt_auth_peer a = address(2), b = address(3),
			     six = {.kind = CKT_PEER_REMOTE,
				     .address = {0x20, 1, [7] = 1, [15] = 1}},
			     neighbour = six, other = six;
	neighbour.address[15] = neighbour.address[8] = 9;
	other.address[7] = 2;
	struct ckt_identity of[] = {ckt_identity_of(&a), ckt_identity_of(&b), ckt_identity_of(&six),
		ckt_identity_of(&other), ckt_identity_of_owner(ckt_owner_of_token("alice")),
		ckt_identity_of_owner(ckt_owner_of_token("bob")),
		ckt_identity_of(&(struct ckt_auth_peer){.kind = CKT_PEER_UNIX, .uid = 7}),
		ckt_identity_of(&(struct ckt_auth_peer){.kind = CKT_PEER_UNIX, .uid = 8})};
	for (size_t i = 0; i < COUNT(of); i++)
		for (size_t k = 0; k < COUNT(of); k++)
			IS(ckt_identity_same(&of[i], &of[k]), i == k);
	/* A network of 64 bits is one host's; a token is one identity wherever it is shown. */
	struct ckt_identity near = ckt_identity_of(&neighbour),
			    token = ckt_identity_of_owner(ckt_owner_of_token("alice")),
			    user = ckt_identity_of_owner(7);
	YES(ckt_identity_same(&near, &of[2]));
	YES(ckt_identity_same(&token, &of[4]));
	YES(ckt_identity_same(&user, &of[6]));
}

static void test_operators(void)
{
	const struct ckt_identity operators[] = {{.kind = CKT_IDENTITY_USER, .uid = 0},
		{.kind = CKT_IDENTITY_USER, .uid = geteuid()}},
				  others[] = {{.kind = CKT_IDENTITY_USER, .uid = geteuid() + 1},
					  {.kind = CKT_IDENTITY_TOKEN},
					  {.kind = CKT_IDENTITY_ADDRESS},
					  {.kind = CKT_IDENTITY_NONE}};
	for (size_t i = 0; i < COUNT(operators); i++)
		YES(ckt_identity_is_operator(&operators[i]));
	for (size_t i = 0; i < COUNT(others); i++)
		NO(ckt_identity_is_operator(&others[i]));
	YES(ckt_uid_is_operator(0) && ckt_uid_is_operator(geteuid()));
	NO(ckt_uid_is_operator(geteuid() + 1) || ckt_uid_is_operator(CKT_UID_UNKNOWN));
}

static void test_names(void)
{
	static const struct {
		struct ckt_identity identity;
		const char *name;
	} cases[] = {{{.kind = CKT_IDENTITY_USER, .uid = 7}, "7"},
		{{.kind = CKT_IDENTITY_ADDRESS}, "anonymous"}, {{0}, "anonymous"},
		{{.kind = CKT_IDENTITY_NEXT}, "next"},
		{{.kind = CKT_IDENTITY_SHARE_GROUP, .group = "lab-14-letters"}, "@lab-14-letters"}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char name[CKT_IDENTITY_FILE_NAME];
		ckt_identity_file_name(&cases[i].identity, name);
		IS(strcmp(name, cases[i].name), 0);
	}
}

/* More is in test_certificates.c. */
static void test_certificate(void)
{
	char message[256];
	struct ckt_certificate certificate;
	struct ckt_identity identity = {0};
	struct made_wish wish = {.names = "URI:cricket:user=alice", .usage = "clientAuth"};
	struct made made = made_certificate(&wish, NULL);
	MUST(ckt_identity_of_certificate(
		     made.der, made.size, &certificate, &identity, message, sizeof message),
		0);
	IS(identity.kind, CKT_IDENTITY_TOKEN);
	IS(identity.uid, ckt_owner_of_certificate("alice"));
	TEXT(certificate.user, "alice");
	IS(ckt_identity_of_certificate(
		   made.der, made.size - 1, &certificate, &identity, message, sizeof message),
		-EINVAL);
	made_free(&made);
	wish.names = NULL;
	made = made_certificate(&wish, NULL);
	IS(ckt_identity_of_certificate(
		   made.der, made.size, &certificate, &identity, message, sizeof message),
		-ENOENT);
	made_free(&made);
}

UNIT_SUITE(identity, {"certificate", test_certificate}, {"names", test_names},
	{"identities", test_identities}, {"operators", test_operators})
