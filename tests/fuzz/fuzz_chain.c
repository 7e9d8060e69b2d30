/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a session's directory in --auto-dir, which others may have written to
 * (server/daemon/durable/chain_store.c), and the keys that vouch for it (chain_mac.c).
 *
 * The head says what lies there: files, links, directories and locks of others; the rest is the text
 * of `state`.  What is read stays the same when it is written and read again; with a key nothing
 * counts that the key did not sign; and nothing outside of the directory is touched.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/format/image_key.h"
#include "checkpoint/format/sealed_file.h"
#include "server/daemon/durable/chain_mac.h"
#include "server/daemon/durable/chain_store.h"
#include "tests/fuzz/fuzz.h"

#define SESSION "0123456789ab"
/* The image that is there. */
#define IMAGE "7"

enum { HEAD = 6, INPUT_MAX = 12288, TEXT_SIZE = 16384 };

/* The first byte of the head. */
enum { KEYED = 1, SIGNED = 2, NAMES_MANIFEST = 4, DURABLE = 8, IS_NO_PRIVATE_DIRECTORY = 16 };

/* How a name of the directory is there. */
enum { PLAIN, LINK, DIRECTORY, OPEN_TO_ALL, TWO_NAMES, NONE, FULL, HELD, KINDS };

static const uint8_t salt[CKT_SEALED_SALT] = {5};
static struct ckt_image_keys keys;
static char place[64];
static int parent = -1, outside = -1;

static void remove_all(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			unlinkat(fd, entry->d_name, 0))
			remove_all(fd, entry->d_name);
	if (dir)
		closedir(dir);
	unlinkat(at, name, AT_REMOVEDIR);
}

static void leave(void)
{
	remove_all(AT_FDCWD, place);
}

static void write_file(int at, const char *name, mode_t mode, const void *data, size_t size)
{
	int fd = openat(at, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	fuzz_insist(fd >= 0 && write(fd, data, size) == (ssize_t)size, "no file");
	fuzz_insist(!fchmod(fd, mode) && !close(fd), "no file");
}

static void prepare(void)
{
	if (keys.count)
		return;
	snprintf(place, sizeof place, "/dev/shm/ckt-fuzz-chain-XXXXXX");
	fuzz_insist(mkdtemp(place), "no directory");
	atexit(leave);
	parent = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fuzz_insist(!mkdirat(parent, "outside", 0700), "no directory");
	outside = openat(parent, "outside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	write_file(outside, "state", 0600, "another's", 9);
	keys.count = 1;
	ckt_image_key_init(&keys.keys[0], (const uint8_t[CKT_IMAGE_KEY_BYTES]){1});
}

/* ---- What lies there */

static void plant(int dir_fd, const char *name, uint8_t kind, const void *data, size_t size)
{
	char other[32];
	switch (kind % KINDS) {
	case LINK:
		fuzz_insist(!symlinkat("../outside/state", dir_fd, name), "no link");
		break;
	case DIRECTORY:
		fuzz_insist(!mkdirat(dir_fd, name, 0700), "no directory");
		break;
	case NONE:
		break;
	default:
		write_file(dir_fd, name, kind % KINDS == OPEN_TO_ALL ? 0644 : 0600, data, size);
	}
	snprintf(other, sizeof other, "%s-too", name);
	if (kind % KINDS == TWO_NAMES)
		fuzz_insist(!linkat(dir_fd, name, dir_fd, other, 0), "no second name");
}

/* The image IMAGE; what is its manifest, if there is one. */
static void plant_image(int dir_fd, uint8_t kind)
{
	static const char manifest[] = "the manifest";
	kind %= KINDS;
	if (kind == LINK)
		fuzz_insist(!symlinkat("../outside", dir_fd, IMAGE), "no link");
	if (kind == LINK || kind == NONE)
		return;
	fuzz_insist(!mkdirat(dir_fd, IMAGE, kind == OPEN_TO_ALL ? 0755 : 0700), "no directory");
	int image = openat(dir_fd, IMAGE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (kind == HELD) {
		write_file(image, "plain", 0600, manifest, sizeof manifest);
		int from = openat(image, "plain", O_RDONLY | O_CLOEXEC);
		int to = openat(image, "manifest", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		fuzz_insist(!ckt_sealed_write(&keys.keys[0], salt, "manifest", from, to),
			"no encrypted file");
		close(from);
		close(to);
	} else if (kind != DIRECTORY) {
		write_file(image, "manifest", 0600, manifest, sizeof manifest);
	}
	close(image);
}

/* The hash that a state must name so that the image counts. */
static void manifest_hash(char ret_text[2 * CKT_IMAGE_HASH + 1])
{
	static uint8_t hash[CKT_IMAGE_HASH];
	if (!*hash) {
		write_file(parent, "hashed", 0600, "the manifest", sizeof "the manifest");
		int fd = openat(parent, "hashed", O_RDONLY | O_CLOEXEC);
		fuzz_insist(!ckt_image_file_hash(fd, hash), "no hash");
		close(fd);
	}
	for (unsigned i = 0; i < sizeof hash; i++)
		snprintf(ret_text + 2 * i, 3, "%02x", hash[i]);
}

/* The text of the input; signed as a server does it, where the head says so. */
static size_t make_text(const uint8_t *data, size_t size, uint8_t how, char *ret_text)
{
	char hash[2 * CKT_IMAGE_HASH + 1];
	memcpy(ret_text, data, size);
	ret_text[size] = 0;
	if (how & NAMES_MANIFEST) {
		manifest_hash(hash);
		size += (size_t)snprintf(ret_text + size, 128, "manifest %s\n", hash);
	}
	if (how & SIGNED) {
		ckt_chain_keys_set(&keys);
		size = strlen(ret_text);
		int length = ckt_chain_mac_sign(ret_text, size, TEXT_SIZE);
		fuzz_insist(length > (int)size, "not signed");
		size = (size_t)length;
		strcpy(ret_text + size, "end\n");
		size += 4;
	}
	return size;
}

/* ---- What must hold */

static bool is_signed(const char *text)
{
	enum { MAC = 2 * CKT_IMAGE_HASH };
	static const char end[] = "\nend\n";
	char wanted[MAC + 1];
	uint8_t sum[CKT_IMAGE_HASH];
	size_t length = strlen(text), tail = MAC + sizeof end - 1;
	const char *line = NULL;
	for (const char *next = text; (next = strstr(next, "mac ")); next++)
		if (next == text || next[-1] == '\n')
			line = next;
	if (!line || length < tail)
		return false;
	ckt_image_key_state_mac(&keys.keys[0], text, (size_t)(line - text), sum);
	for (unsigned i = 0; i < sizeof sum; i++)
		snprintf(wanted + 2 * i, 3, "%02x", sum[i]);
	return memcmp(text + length - tail, wanted, MAC) == 0;
}

static size_t read_text(int dir_fd, char *ret_text)
{
	int fd = openat(dir_fd, "state", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret_text, TEXT_SIZE);
	fuzz_insist(n >= 0, "no state where one was written");
	close(fd);
	return (size_t)n;
}

/* Written and read again it is the same, twice. */
static void check_again(int dir_fd, const struct ckt_chain_state *state)
{
	static char first[TEXT_SIZE], second[TEXT_SIZE];
	struct ckt_chain_state again;
	fuzz_insist(!ckt_chain_write(dir_fd, state), "a state cannot be written");
	size_t size = read_text(dir_fd, first);
	fuzz_insist(!ckt_chain_read(dir_fd, SESSION, &again), "a state cannot be read again");
	fuzz_insist(!ckt_chain_write(dir_fd, &again), "a state cannot be written again");
	fuzz_insist(read_text(dir_fd, second) == size && !memcmp(first, second, size),
		"a state changes when written again");
	fuzz_insist(again.executed == state->executed && again.owner == state->owner &&
			again.generation == state->generation && again.count == state->count &&
			again.gpu == state->gpu && again.shared == state->shared &&
			again.replica_ms == state->replica_ms &&
			again.replicated == state->replicated &&
			again.has_manifest == state->has_manifest &&
			again.member_count == state->member_count &&
			(!state->member_count || ckt_chain_same_cut(&again, state)),
		"a state is another one when read again");
}

static void check_state(
	int dir_fd, const struct ckt_chain_state *state, uint8_t how, const char *text, size_t size)
{
	uint64_t bytes = 0;
	fuzz_insist(ckt_chain_id_good(state->session) && !strcmp(state->session, SESSION),
		"another session's state");
	fuzz_insist(strlen(text) == size, "a part of a file");
	fuzz_insist(!(how & KEYED) || is_signed(text), "a state that the key did not sign");
	fuzz_insist(state->count <= CKT_CHAIN_IMAGES_MAX, "a number of images");
	for (unsigned i = 0; i < state->count; i++) {
		const struct ckt_chain_image *image = &state->images[i];
		fuzz_insist(image->number > (i ? state->images[i - 1].number : 0) &&
				image->number <= INT64_MAX,
			"a number of an image");
		bytes += image->bytes;
		fuzz_insist(bytes >= image->bytes && bytes <= INT64_MAX, "sizes of images");
	}
	fuzz_insist(!state->member_count ||
			(state->member_count > 1 && ckt_chain_has_member(state, SESSION)),
		"a group of one, or of others");
	for (unsigned i = 1; i < state->member_count; i++)
		fuzz_insist(strcmp(state->members[i - 1], state->members[i]) < 0,
			"a member of a group that is there twice");
	fuzz_insist(state->gpu >= -1 && state->gpu < CKT_DEVICES_MAX, "a GPU");
	check_again(dir_fd, state);
}

/* What a client's hello and the newest image have to say. */
static void check_images(int dir_fd, const struct ckt_chain_state *state, uint8_t how, uint8_t seen)
{
	char message[CKT_MESSAGE_MAX] = "", hash[2 * CKT_IMAGE_HASH + 1];
	ckt_capability durable = {.name = (char *)CKT_CAPABILITY_DURABLE, .value = seen};
	ckt_capability other = {.name = (char *)"another", .value = 1};
	ckt_capability list[] = {other, durable};
	struct ckt_hello_args hello = {
		.acked = seen, .capabilities = {how & DURABLE ? 2 : 1, list}};
	int result = ckt_chain_check_age(&hello, state, message);
	fuzz_insist((result != 0) == (*message != 0), "an error has a sentence");
	uint64_t needs = how & DURABLE && seen ? seen - 1u : seen;
	fuzz_insist(result || !(how & KEYED) || state->executed >= needs,
		"images that are older than the program");
	*message = 0;
	result = ckt_chain_check_newest(dir_fd, state, message);
	fuzz_insist((result != 0) == (*message != 0), "an error has a sentence");
	if (result || !(how & KEYED) || !state->count)
		return;
	manifest_hash(hash);
	for (unsigned i = 0; i < CKT_IMAGE_HASH; i++) {
		char byte[3];
		snprintf(byte, sizeof byte, "%02x", state->manifest[i]);
		fuzz_insist(!memcmp(byte, hash + 2 * i, 2), "a manifest that no key vouches for");
	}
	fuzz_insist(state->images[state->count - 1].number == 7, "an image that is not there");
}

static void try_lock(int dir_fd, uint8_t kind)
{
	int other = kind % KINDS == HELD ? ckt_chain_lock(dir_fd, false) : -1;
	ckt_chain_is_over(dir_fd);
	int lock = ckt_chain_lock(dir_fd, kind & 128);
	fuzz_insist(lock < 0 || other < 0 || kind & 128, "two have the lock");
	bool bad = kind % KINDS == LINK || kind % KINDS == DIRECTORY || kind % KINDS == TWO_NAMES;
	fuzz_insist(lock < 0 || !bad, "a lock of another kind");
	fuzz_insist(lock < 0 || kind & 128 || !ckt_chain_is_over(dir_fd), "an old end");
	if (lock >= 0)
		close(lock);
	if (other >= 0)
		close(other);
}

static void try_images(int dir_fd, const struct ckt_chain_state *state)
{
	int image = ckt_chain_image_open(dir_fd, 7, false);
	if (image >= 0) {
		struct stat st;
		ckt_chain_image_bytes(image);
		fuzz_insist(!fstat(image, &st) && !(st.st_mode & 0077), "an image of others");
		close(image);
	}
	int fresh = ckt_chain_image_open(dir_fd, 9, true);
	fuzz_insist(fresh >= 0 || fresh == -EEXIST, "no new image");
	if (fresh >= 0)
		close(fresh);
	ckt_chain_image_remove(dir_fd, 9);
	ckt_chain_clean_beside(dir_fd, SESSION, state);
	ckt_chain_clean(dir_fd, state);
}

/* ---- One directory */

static void try_directory(const uint8_t *head, const char *text, size_t size)
{
	struct ckt_chain_state state, parsed;
	static char copy[TEXT_SIZE];
	fuzz_insist(ckt_chain_open(parent, "../" SESSION, true) == -EINVAL, "no id of a session");
	fuzz_insist(ckt_chain_open(parent, SESSION, false) == -ENOENT, "an old directory");
	int fd = ckt_chain_open(parent, SESSION, true);
	fuzz_insist(fd >= 0, "no directory");
	plant(fd, "state", head[1], text, size);
	plant_image(fd, head[2]);
	plant(fd, "lock", head[3], "1", head[3] % KINDS == FULL);
	plant(fd, "8", head[4], "a file", 6);
	plant(fd, "state.next", head[4], text, size);
	ckt_chain_keys_set(head[0] & KEYED ? &keys : NULL);
	fuzz_insist(ckt_chain_keys() == (head[0] & KEYED ? &keys : NULL), "other keys");
	int result = ckt_chain_read(fd, SESSION, &state);
	char message[CKT_MESSAGE_MAX];
	if (!ckt_chain_next_read(fd, SESSION, &parsed))
		fuzz_insist(!(head[0] & KEYED) || is_signed(text),
			"a next state that the key did not sign");
	if (result)
		ckt_chain_refusal(result, SESSION, message);
	else
		check_state(fd, &state, head[0], text, size);
	/* A directory of that name cannot be replaced. */
	if (!result && !ckt_chain_next_write(fd, &state))
		fuzz_insist(!ckt_chain_next_read(fd, SESSION, &parsed),
			"a next state cannot be read again");
	/* As another server sends it. */
	memcpy(copy, text, size + 1);
	bool vouched = !ckt_chain_mac_check(copy);
	fuzz_insist(!vouched || !(head[0] & KEYED) || ckt_chain_mac_is_there(copy), "no MAC");
	if (!ckt_chain_state_parse(copy, &parsed) && vouched)
		check_images(fd, &parsed, head[0], head[5]);
	try_lock(fd, head[3]);
	try_images(fd, result ? NULL : &state);
	ckt_chain_next_settle(fd, head[4] & 128);
	if (head[0] & IS_NO_PRIVATE_DIRECTORY) {
		fchmod(fd, 0750);
		fuzz_insist(
			ckt_chain_open(parent, SESSION, false) == -EPERM, "a directory of others");
	}
	ckt_chain_remove(parent, fd, SESSION);
	close(fd);
	struct stat st;
	fuzz_insist(!fstatat(outside, "state", &st, AT_SYMLINK_NOFOLLOW) && st.st_size == 9,
		"something outside was changed");
	remove_all(parent, SESSION);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[TEXT_SIZE];
	if (size < HEAD || size > INPUT_MAX)
		return 0;
	prepare();
	size_t length = make_text(data + HEAD, size - HEAD, data[0], text);
	try_directory(data, text, length);
	return 0;
}

/* ---- The mutator: lines, and their words */

struct lines {
	char text[INPUT_MAX];
	char *line[256];
	unsigned count;
};

static void split(struct lines *lines, const uint8_t *data, size_t size)
{
	memcpy(lines->text, data, size);
	lines->text[size] = 0;
	lines->count = 0;
	for (char *line = strtok(lines->text, "\n"); line && lines->count < 255;
		line = strtok(NULL, "\n"))
		lines->line[lines->count++] = line;
}

static const char *word_of(unsigned *seed)
{
	static const char *const words[] = {"version 1", ("session " SESSION), "owner 4294967295",
		"owner 4294967296", "generation 18446744073709551615", "copy 1", "executed 5",
		"when 18446744073709551615", "restores 1000", "restores 1001", "acked 3", "gpu 64",
		"gpu 65", "asked 1", "shared 1", "asleep 1", "replica 2000", "replica 4294967296",
		"replicated 1", "cut c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1", "cut 0",
		"member 0123456789aa", ("member " SESSION), "member 0123456789ac", "member 0",
		"image 7 100", "image 9223372036854775807 1", "image 9223372036854775808 1",
		"image 8 9223372036854775807", "image 0 1", "image 7", "manifest 00", "mac 0",
		"end", "what 1", "secret 0", "last 0", ""};
	return words[fuzz_random(seed) % (sizeof words / sizeof *words)];
}

static void change(struct lines *lines, unsigned *seed)
{
	unsigned at = lines->count ? fuzz_random(seed) % lines->count : 0;
	switch (fuzz_random(seed) % 4) {
	case 0: /* one more */
		if (lines->count == 255)
			return;
		memmove(&lines->line[at + 1], &lines->line[at],
			(lines->count - at) * sizeof *lines->line);
		lines->line[at] = (char *)word_of(seed);
		lines->count++;
		return;
	case 1: /* one less */
		if (lines->count > 1)
			memmove(&lines->line[at], &lines->line[at + 1],
				(--lines->count - at) * sizeof *lines->line);
		return;
	case 2:
		if (lines->count)
			lines->line[at] = (char *)word_of(seed);
		return;
	default:
		if (lines->count > 1) {
			char *other = lines->line[0];
			lines->line[0] = lines->line[at];
			lines->line[at] = other;
		}
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	static struct lines lines;
	if (size < HEAD || fuzz_random(&seed) % 4 == 0 || size >= INPUT_MAX)
		return LLVMFuzzerMutate(data, size, max_size);
	if (fuzz_random(&seed) % 3 == 0) {
		data[fuzz_random(&seed) % HEAD] = (uint8_t)fuzz_random(&seed);
		return size;
	}
	split(&lines, data + HEAD, size - HEAD);
	change(&lines, &seed);
	size_t used = HEAD;
	for (unsigned i = 0; i < lines.count; i++) {
		size_t length = strlen(lines.line[i]);
		if (used + length + 1 > max_size)
			break;
		memcpy(data + used, lines.line[i], length);
		used += length;
		data[used++] = '\n';
	}
	return used;
}

/* ---- Seeds */

static void seed_of(const char *to, const char *name, const uint8_t head[HEAD], const char *text)
{
	uint8_t seed[INPUT_MAX];
	size_t size = strlen(text) + (head[5] == 255);
	memcpy(seed, head, HEAD);
	memcpy(seed + HEAD, text, size);
	fuzz_write_seed(to, name, seed, HEAD + size);
}

static void write_seeds(const char *to)
{
	static const char lines[] =
		"version 1\nsession " SESSION
		"\nowner 1000\nsecret 0000000000000000000000000000000000000000000000000000000000000000\n"
		"generation 3\ncopy 4\nexecuted 77\nwhen 1234\nlast 00000000000000000000000000000000\n"
		"restores 1\nacked 70\ngpu 1\nasked 1\nasleep 1\nimage 4 1000\nimage 7 20\nshared 1\nreplica 2000\nreplicated 1\n"
		"cut c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1\nmember 0123456789aa\nmember " SESSION "\n";
	static const uint8_t hows[] = {0, KEYED | SIGNED | NAMES_MANIFEST, KEYED | SIGNED, KEYED,
		SIGNED, KEYED | SIGNED | DURABLE};
	char text[2048], name[32];
	for (uint8_t how = 0; how < sizeof hows; how++)
		for (uint8_t kind = 0; kind < KINDS; kind++) {
			const bool keyed = hows[how] & SIGNED;
			const uint8_t head[][HEAD] = {{hows[how], kind, 0, 0, 0, 70},
				{hows[how], 0, kind, 0, 0, 90}, {hows[how], 0, 0, kind, kind, 1},
				{hows[how] | IS_NO_PRIVATE_DIRECTORY, 0, 0, kind | 128, 0, 0}};
			snprintf(text, sizeof text, "%s%s", lines, keyed ? "" : "end\n");
			for (unsigned i = 0; i < sizeof head / sizeof *head; i++) {
				snprintf(name, sizeof name, "state-%u-%u-%u", how, kind, i);
				seed_of(to, name, head[i], text);
			}
		}
	static const char *const bad[] = {"", "version 2\nend\n", "session\nend\n", "end\n",
		"session " SESSION "\nend\nend\n", "session " SESSION "\nend\n\n",
		"session 0123456789ac\nend\n", "session " SESSION "\nowner 4294967296\nend\n",
		"session " SESSION "\nimage 2 1\nimage 1 1\nend\n", "image 1\nend\n",
		"session " SESSION "\nlast 0g\nend\n", "session " SESSION "\nwhat 1\nend\n"};
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(name, sizeof name, "bad-%u", i);
		seed_of(to, name, (const uint8_t[HEAD]){0}, bad[i]);
	}
	/* With a zero behind its end. */
	seed_of(to, "longer", (const uint8_t[HEAD]){[5] = 255}, "session " SESSION "\nend\n");
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
