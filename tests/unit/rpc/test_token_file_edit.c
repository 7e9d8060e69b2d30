/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/token_file_edit.c: adding and removing tokens beside what an administrator wrote. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/token_file.h"
#include "tests/unit/suite.h"

static char directory[] = "/tmp/ckt-edit-XXXXXX", path[64], message[512];

static struct ckt_token_entry entry_of(const char *name)
{
	struct ckt_token_entry entry = {0};
	const struct ckt_token token = {.bytes = "0123456789abcdef", .size_bytes = 16};
	snprintf(entry.name, sizeof entry.name, "%s", name);
	ckt_token_verifier_make(&token, &entry.verifier);
	return entry;
}

static void read_file(char *ret_text, size_t size)
{
	FILE *file = fopen(path, "r");
	ret_text[file ? fread(ret_text, 1, size - 1, file) : 0] = 0;
	if (file)
		fclose(file);
}

static void test_add(void)
{
	struct ckt_token_file file;
	struct ckt_token_entry entry = entry_of("alice"), bob = entry_of("bob");
	struct stat st;
	IS(ckt_token_file_add(path, &entry, message, sizeof message), 0);
	stat(path, &st);
	IS(st.st_mode & 07777, 0600);
	chmod(path, 0640);
	bob.role = CKT_ROLE_OPERATOR;
	bob.project_count = 2;
	strcpy(bob.projects[0], "vision");
	strcpy(bob.projects[1], "speech");
	bob.max_sessions = 3;
	bob.session_memory = 5;
	bob.session_host_memory = 6;
	bob.expires = 1801353600;
	IS(ckt_token_file_add(path, &bob, message, sizeof message), 0);
	stat(path, &st);
	IS(st.st_mode & 07777, 0640);
	MUST(ckt_token_file_read(path, &file, message, sizeof message), 0);
	IS(file.count, 2);
	/* Everything comes back as it was given. */
	IS(memcmp(&file.entries[0], &entry, sizeof entry), 0);
	IS(memcmp(&file.entries[1], &bob, sizeof bob), 0);
	ckt_token_file_free(&file);
	IS(ckt_token_file_add(path, &entry, message, sizeof message), -EEXIST);
	HAS(message, "has a token 'alice' already");
}

static void test_remove(void)
{
	static const char before[] = "; by hand\n[alice]\nhash = %s\n; hers\n\n[bob]\nhash = %s\n"
				     "; the end\n[carol]\nhash = %s\n";
	static const char hash[] =
		"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
	char text[2048];
	FILE *file = fopen(path, "w");
	fprintf(file, before, hash, hash, hash);
	fclose(file);
	chmod(path, 0600);
	IS(ckt_token_file_remove(path, "dave", message, sizeof message), -ENOENT);
	HAS(message, "has no token 'dave'");
	IS(ckt_token_file_remove(path, "bob", message, sizeof message), 0);
	read_file(text, sizeof text);
	HAS(text, "; by hand\n[alice]\n");
	HAS(text, "; hers\n\n[carol]\n");
	CU_ASSERT_PTR_NULL(strstr(text, "bob"));
	IS(ckt_token_file_remove(path, "carol", message, sizeof message), 0);
	IS(ckt_token_file_remove(path, "alice", message, sizeof message), 0);
	read_file(text, sizeof text);
	TEXT(text, "; by hand\n");
}

/* What cannot be read or written stays as it is. */
static void test_bad(void)
{
	char text[64], elsewhere[80];
	struct ckt_token_entry entry = entry_of("alice");
	FILE *file = fopen(path, "w");
	fputs("nonsense\n", file);
	fclose(file);
	IS(ckt_token_file_add(path, &entry, message, sizeof message), -EINVAL);
	IS(ckt_token_file_remove(path, "alice", message, sizeof message), -EINVAL);
	read_file(text, sizeof text);
	TEXT(text, "nonsense\n");
	snprintf(elsewhere, sizeof elsewhere, "%s/no/file", directory);
	IS(ckt_token_file_add(elsewhere, &entry, message, sizeof message), -ENOENT);
	HAS(message, elsewhere);
}

static void test_begin(void)
{
	MUST(mkdtemp(directory) != NULL, true);
	snprintf(path, sizeof path, "%s/tokens", directory);
}

static void test_end(void)
{
	char lock[80];
	snprintf(lock, sizeof lock, "%s.lock", path);
	unlink(path);
	unlink(lock);
	IS(rmdir(directory), 0);
}

UNIT_SUITE(token_file_edit, {"begin", test_begin}, {"add", test_add}, {"remove", test_remove},
	{"bad", test_bad}, {"end", test_end})
