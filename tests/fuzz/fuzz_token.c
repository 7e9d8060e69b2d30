/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: the proofs of a hello (rpc/credential.c) and the file of tokens
 * (rpc/token_file.c).
 *
 * The first byte says which, the second which allocation fails; the rest is a credential's body or
 * the text of the file.  A proof of a changed credential must not hold, and what is read of a file
 * must be within its bounds.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/credential.h"
#include "rpc/token_file.h"
#include "tests/fuzz/fuzz.h"

enum { HEAD = 2, IS_FILE = 1, TEXT_MAX = 4096, IS_OPEN_TO_ALL = 2, IS_NO_FILE = 4 };

static const struct ckt_token token = {.bytes = "a token of enough length", .size_bytes = 24};

static void try_credential(const uint8_t *data, size_t size)
{
	static const uint8_t nonce[CKT_NONCE_SIZE];
	const struct ckt_challenge challenge = {.nonce = nonce, .args = "args", .args_bytes = 4};
	struct ckt_credential credential, right = {0};
	struct ckt_token_verifier verifier;
	uint8_t again[CKT_CREDENTIAL_MAX];
	ckt_token_verifier_make(&token, &verifier);
	ckt_token_prove(&token, &challenge, &right);
	fuzz_insist(ckt_token_check(&verifier, &challenge, &right), "a proof does not hold");
	if (!ckt_credential_get(data, size, &credential))
		return;
	uint8_t *end = ckt_credential_put(again, &credential);
	fuzz_insist((size_t)(end - again) == size && !memcmp(again, data, size),
		"a credential changes when encoded again");
	bool same = credential.has_token &&
		!memcmp(credential.token_proof, right.token_proof, CKT_PROOF_SIZE);
	fuzz_insist(ckt_token_check(&verifier, &challenge, &credential) == same,
		"a proof without the token");
}

static void check_file(const struct ckt_token_file *file)
{
	for (unsigned i = 0; i < file->count; i++) {
		const struct ckt_token_entry *entry = &file->entries[i];
		fuzz_insist(ckt_token_name_is_good(entry->name) &&
				ckt_token_file_find(file, entry->name) == entry,
			"a name");
		fuzz_insist(
			ckt_token_file_find_owner(file, ckt_owner_of_token(entry->name)) == entry,
			"two tokens of one owner");
		fuzz_insist(ckt_token_file_find_id(file, entry->verifier.id), "no hash");
		fuzz_insist(ckt_owner_is_token(ckt_owner_of_token(entry->name)), "an owner");
		fuzz_insist(ckt_owner_is_token(ckt_owner_of_certificate(entry->name)),
			"an owner by certificate");
		fuzz_insist(entry->project_count <= CKT_TOKEN_PROJECTS_MAX &&
				ckt_role_name(entry->role),
			"projects or a role");
	}
}

static void try_file(uint8_t how, uint8_t fails, const uint8_t *text, size_t size)
{
	char path[64], message[1024] = "";
	struct ckt_token_file file = {0};
	int fd = memfd_create("tokens", MFD_CLOEXEC);
	fuzz_insist(fd >= 0 && write(fd, text, size) == (ssize_t)size, "no file");
	fchmod(fd, how & IS_OPEN_TO_ALL ? 0644 : 0640);
	snprintf(path, sizeof path, how & IS_NO_FILE ? "/dev/null" : "/proc/self/fd/%d", fd);
	fuzz_fail_allocation(fails);
	int result = ckt_token_file_read(
		how & 8 ? "/nonexistent" : path, &file, message, sizeof message);
	fuzz_fail_allocation(0);
	fuzz_insist(result <= 0 && (result != 0) == (*message != 0),
		"an error has a sentence, and nothing else has");
	if (!result) {
		fuzz_insist(!(how & (IS_OPEN_TO_ALL | IS_NO_FILE | 8)), "a file of others");
		check_file(&file);
		ckt_token_file_find(&file, "none");
		ckt_token_file_find_id(&file, (const uint8_t *)"nobodyid");
		ckt_token_file_find_owner(&file, 1);
		ckt_token_file_free(&file);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEAD || size > TEXT_MAX)
		return 0;
	if (data[0] & IS_FILE)
		try_file(data[0], data[1] & 15, data + HEAD, size - HEAD);
	else
		try_credential(data + HEAD, size - HEAD);
	return 0;
}

/* Words of the file's grammar, and numbers that are good, wrong and too large. */
static const char *const words[] = {"[alice]\n", "[bob]\n", "[-x]\n", "[]\n", "roles = ", "user",
	"operator", "administrator", ", ", "projects = ", "max-sessions = ", "session-memory = ",
	"session-host-memory = ", "expires = ", "2027-01-31", "2027-02-31", "2027-01-31T12:00:00Z",
	"1900-01-01", "512M", "0", "7", "1000001", "8G", "\n", "unknown = 1\n", "# words\n",
	"hash = 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n",
	"hash = 1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n",
	"a,b,c,d,e,f,g,h,i", "words without a sign\n"};
enum { WORDS = sizeof words / sizeof *words };

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	if (size < HEAD || !(data[0] & IS_FILE) || fuzz_random(&seed) % 4 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	const char *word = words[fuzz_random(&seed) % WORDS];
	size_t length = strlen(word), at = HEAD + fuzz_random(&seed) % (size - HEAD + 1);
	if (size + length > max_size)
		return LLVMFuzzerMutate(data, size, max_size);
	/* Mostly where a line begins. */
	while (fuzz_random(&seed) % 16 && at > HEAD && data[at - 1] != '\n')
		at--;
	memmove(data + at + length, data + at, size - at);
	memcpy(data + at, word, length);
	return size + length;
}

static void write_file_seed(const char *to, const char *name, uint8_t how, const char *text)
{
	uint8_t seed[TEXT_MAX] = {how};
	size_t length = strlen(text);
	memcpy(seed + HEAD, text, length);
	fuzz_write_seed(to, name, seed, HEAD + length);
}

static void write_seeds(const char *to)
{
	static const uint8_t kinds[] = {1, 3, 5, 9};
	static const uint8_t nonce[CKT_NONCE_SIZE];
	const struct ckt_challenge challenge = {.nonce = nonce, .args = "args", .args_bytes = 4};
	struct ckt_credential credential = {.has_key = true};
	uint8_t seed[HEAD + CKT_CREDENTIAL_MAX] = {0};
	char name[16], text[TEXT_MAX - HEAD];
	snprintf(text, sizeof text,
		"[alice]\n%sroles = user, operator\nprojects = a, b\n"
		"max-sessions = 7\nsession-memory = 8G\nsession-host-memory = 512M\n"
		"expires = 2027-01-31\n[bob]\n%s",
		words[26], words[27]);
	for (unsigned i = 0; i < sizeof kinds; i++) {
		snprintf(name, sizeof name, "file-%u", kinds[i]);
		write_file_seed(to, name, kinds[i], text);
	}
	for (unsigned i = 0; i < WORDS; i++) {
		snprintf(name, sizeof name, "word-%u", i);
		snprintf(text, sizeof text, "[alice]\n%s%s\n", words[26], words[i]);
		write_file_seed(to, name, IS_FILE, text);
		for (unsigned k = 0; k < 14; k++) {
			if (!strstr(words[k], " = "))
				continue;
			snprintf(name, sizeof name, "pair-%u-%u", k, i);
			snprintf(text, sizeof text, "[alice]\n%s%s%s\n", words[26], words[k],
				words[i]);
			write_file_seed(to, name, IS_FILE, text);
		}
	}
	/* A bool is 0 or 1. */
	fuzz_write_seed(to, "credential-two", (const uint8_t[HEAD + 8]){[HEAD + 3] = 2}, HEAD + 8);
	ckt_token_prove(&token, &challenge, &credential);
	uint8_t *end = ckt_credential_put(seed + HEAD, &credential);
	fuzz_write_seed(to, "credential", seed, (size_t)(end - seed));
	seed[HEAD + 20] ^= 1;
	fuzz_write_seed(to, "credential-wrong", seed, (size_t)(end - seed));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *to = getenv("CKT_FUZZ_SEEDS");
	(void)argc, (void)argv;
	if (!to)
		return 0;
	write_seeds(to);
	exit(0);
}
