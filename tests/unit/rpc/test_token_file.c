/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/token_file.h: what a file of tokens may hold, and who may read it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/token_file.h"
#include "tests/unit/suite.h"

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static char path[] = "/tmp/ckt-tokens-XXXXXX", message[512];

static int read_text(const char *text, mode_t mode, struct ckt_token_file *ret_file)
{
	FILE *file = fopen(path, "w");
	MUST(file != NULL, true);
	fputs(text, file);
	fclose(file);
	chmod(path, mode);
	*message = 0;
	return ckt_token_file_read(path, ret_file, message, sizeof message);
}

static void test_whole(void)
{
	struct ckt_token_file file = {0};
	MUST(read_text("; the lab\n[alice]\nhash = " HASH
		       "\n\n[bob.2]\nroles = user, operator\nprojects = vision , speech\n"
		       "max-sessions = 4\nsession-memory = 8G\nsession-host-memory=512M\n"
		       "expires = 2027-01-31\nhash = " HASH "\n[c]\nhash = " HASH
		       "\nroles = administrator,user\nexpires = 2027-01-31T12:00:01Z\n",
		     0640, &file),
		0);
	IS(file.count, 3);
	const struct ckt_token_entry *alice = ckt_token_file_find(&file, "alice"),
				     *bob = ckt_token_file_find(&file, "bob.2"),
				     *c = ckt_token_file_find(&file, "c");
	MUST(alice && bob && c, true);
	IS(alice->role, CKT_ROLE_USER);
	IS(alice->project_count, 0);
	IS(alice->max_sessions + alice->session_memory + (uint64_t)alice->expires, 0);
	IS(alice->verifier.stored_key[1], 0x11);
	IS(bob->role, CKT_ROLE_OPERATOR);
	IS(bob->project_count, 2);
	TEXT(bob->projects[0], "vision");
	TEXT(bob->projects[1], "speech");
	IS(bob->max_sessions, 4);
	IS(bob->session_memory, 8ull << 30);
	IS(bob->session_host_memory, 512 << 20);
	IS(bob->expires, 1801353600);
	IS(c->role, CKT_ROLE_ADMINISTRATOR);
	IS(c->expires, 1801353600 + 43201);
	CU_ASSERT_PTR_NULL(ckt_token_file_find(&file, "nobody"));
	CU_ASSERT_PTR_EQUAL(ckt_token_file_find_id(&file, bob->verifier.id), alice);
	CU_ASSERT_PTR_EQUAL(ckt_token_file_find_owner(&file, ckt_owner_of_token("c")), c);
	ckt_token_file_free(&file);
	IS(file.count, 0);
	IS(read_text("", 0600, &file), 0);
	IS(file.count, 0);
}

static void test_bad(void)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"[alice]\nroles = user\n", "token 'alice' has no hash"},
		{"[alice]\nroles = user\n[bob]\nhash = " HASH "\n", "token 'alice' has no hash"},
		{"[alice]\nhash = 12\n", ":2: hash of token 'alice': '12': write 64 hex digits"},
		{"[alice]\nhash = " HASH "\nhash = " HASH "\n", ":3: token 'alice' is there twice"},
		{"[alice]\nhash = " HASH "\n[bob]\nhash = " HASH "\n[alice]\nhash = " HASH "\n",
			":6: token 'alice' is there twice"},
		{"[alice]\nhash = " HASH "\nroles = root\n",
			"write of user, operator, administrator"},
		{"[alice]\nhash = " HASH "\nrole = user\n",
			":3: unknown key 'role' of token 'alice'"},
		{"[alice]\nhash = " HASH "\nprojects = a,b,c,d,e,f,g,h,i\n", "up to 8 names"},
		{"[alice]\nhash = " HASH "\nprojects = a b\n", "up to 8 names"},
		{"[alice]\nhash = " HASH "\nmax-sessions = 0\n", "a whole number above 0"},
		{"[alice]\nhash = " HASH "\nmax-sessions = -1\n", "a whole number above 0"},
		{"[alice]\nhash = " HASH "\nsession-memory = much\n", "a size such as"},
		{"[alice]\nhash = " HASH "\nexpires = tomorrow\n", "a day such as"},
		{"[alice]\nhash = " HASH "\nexpires = 2027-02-30\n", "a day such as"},
		{"[Alice]\nhash = " HASH "\n", "'Alice' is no name of a token"},
		{"[-a]\nhash = " HASH "\n", "is no name of a token"},
		{"hash = " HASH "\n", "is no name of a token"},
		{"[a23456789012345678901234567890123]\nhash = " HASH "\n", "is no name of a token"},
		{"[alice]\nnonsense\n", ":2: no 'key = value'"},
	};
	struct ckt_token_file file = {.count = 7};
	for (size_t i = 0; i < COUNT(rows); i++) {
		IS(read_text(rows[i].text, 0600, &file), -EINVAL);
		HAS(message, rows[i].says);
		HAS(message, path);
	}
	IS(read_text("", 0604, &file), -EPERM);
	HAS(message, "chmod 640");
	IS(read_text("", 0620, &file), -EPERM);
	IS(ckt_token_file_read("/nonexistent", &file, message, sizeof message), -ENOENT);
	IS(ckt_token_file_read("/dev/null", &file, message, sizeof message), -EPERM);
	HAS(message, "not a regular file");
	IS(file.count, 7);
}

/* A token's owner is no user's, and nobody's. */
static void test_owner(void)
{
	char name[CKT_TOKEN_NAME_MAX + 1];
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "name-%d", i);
		uint32_t owner = ckt_owner_of_token(name);
		YES(ckt_owner_is_token(owner));
		IS(owner, ckt_owner_of_token(name));
	}
	NO(ckt_owner_is_token(0) || ckt_owner_is_token(1000) || ckt_owner_is_token(0x7fffffff) ||
		ckt_owner_is_token(CKT_UID_UNKNOWN));
	YES(ckt_owner_of_token("alice") != ckt_owner_of_token("bob"));
}

static int setup(void)
{
	int fd = mkstemp(path);
	close(fd);
	return fd < 0;
}

static void test_begin(void)
{
	MUST(setup(), 0);
}

static void test_end(void)
{
	unlink(path);
}

UNIT_SUITE(token_file, {"begin", test_begin}, {"whole", test_whole}, {"bad", test_bad},
	{"owner", test_owner}, {"end", test_end})
