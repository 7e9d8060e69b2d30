/* SPDX-License-Identifier: Apache-2.0 */
/* Automatic images on the disk; see chain_store.h. */
#include "server/daemon/durable/chain_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_io.h"
#include "rpc/identity.h"
#include "server/daemon/durable/chain_mac.h"
#include "server/daemon/durable/replica.h"

#define STATE "state"
#define FRESH "state.new"
#define NEXT "state.next"
#define LOCK "lock"

enum {
	VERSION = 1,
	TEXT_MAX = 8192,
	NAME_SIZE = 24,
	LEASE_MAX_MS = CKT_REPLICA_LEASE_MAX_S * 1000,
};

bool ckt_chain_id_good(const char *session)
{
	return strlen(session) == CKT_SESSION_ID_SIZE &&
		strspn(session, "0123456789abcdef") == CKT_SESSION_ID_SIZE;
}

static bool is_private(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & 0077);
}

int ckt_chain_open(int parent_fd, const char *session, bool make)
{
	if (!ckt_chain_id_good(session))
		return -EINVAL;
	if (make && mkdirat(parent_fd, session, 0700) && errno != EEXIST)
		return -errno;
	int fd = openat(parent_fd, session, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
	if (is_private(fd))
		return fd;
	close(fd);
	return -EPERM;
}

/* ---- The lock */

static int set_lock(int fd, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

/* A plain file that nobody else has a name for. */
static int open_lock(int dir_fd, int flags)
{
	struct stat st;
	int fd = openat(dir_fd, LOCK, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
		st.st_uid == geteuid())
		return fd;
	close(fd);
	return -EPERM;
}

int ckt_chain_lock(int dir_fd, bool beside)
{
	/* The second description is the session's, and never has the exclusive lock. */
	int first = open_lock(dir_fd, O_RDWR | O_CREAT);
	if (first < 0)
		return first;
	int second = open_lock(dir_fd, O_RDWR);
	int result = second < 0 ? second : beside ? 0 : set_lock(first, F_WRLCK);
	/* What an earlier worker said of its end. */
	if (!result && !beside && ftruncate(first, 0))
		result = -errno;
	if (!result)
		result = beside ? 0 : set_lock(first, F_RDLCK);
	if (!result)
		result = set_lock(second, F_RDLCK);
	close(first);
	if (result && second >= 0)
		close(second);
	return result ? result : second;
}

bool ckt_chain_is_over(int dir_fd)
{
	struct stat st;
	return fstatat(dir_fd, LOCK, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
		st.st_size > 0;
}

/* ---- The state */

static void put_hex(char *ret_text, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		snprintf(ret_text + 2 * i, 3, "%02x", data[i]);
}

static bool get_hex(const char *text, uint8_t *ret_data, size_t size)
{
	if (strlen(text) != 2 * size || strspn(text, "0123456789abcdef") != 2 * size)
		return false;
	for (size_t i = 0; i < size; i++) {
		char pair[3] = {text[2 * i], text[2 * i + 1], 0};
		ret_data[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return true;
}

static bool get_number(const char *text, uint64_t *ret_value)
{
	char *end;
	errno = 0;
	*ret_value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

struct text {
	char *data;
	size_t size;
	int used; /* negative: it does not fit */
};

static void __attribute__((format(printf, 2, 3))) add(struct text *text, const char *format, ...)
{
	va_list arguments;
	if (text->used < 0)
		return;
	va_start(arguments, format);
	size_t left = text->size - (size_t)text->used;
	int more = vsnprintf(text->data + text->used, left, format, arguments);
	va_end(arguments);
	text->used = more >= 0 && (size_t)more < left ? text->used + more : -E2BIG;
}

/* A server of an earlier version reads states without these lines. */
static void add_rare_lines(struct text *text, const struct ckt_chain_state *state)
{
	if (state->shared)
		add(text, "shared 1\n");
	if (state->member_count) {
		char cut[2 * CKT_CHAIN_CUT + 1];
		put_hex(cut, state->cut, CKT_CHAIN_CUT);
		add(text, "cut %s\n", cut);
	}
	for (unsigned i = 0; i < state->member_count; i++)
		add(text, "member %s\n", state->members[i]);
	if (state->replica_ms)
		add(text, "replica %u\n", state->replica_ms);
	if (state->replicated)
		add(text, "replicated 1\n");
	if (state->has_manifest) {
		char manifest[2 * CKT_CHAIN_HASH + 1];
		put_hex(manifest, state->manifest, CKT_CHAIN_HASH);
		add(text, "manifest %s\n", manifest);
	}
}

static int format(const struct ckt_chain_state *state, char *ret_text, size_t size)
{
	char secret[2 * CKT_SECRET_HASH_SIZE + 1], last[2 * CKT_IMAGE_ID_SIZE + 1];
	struct text text = {.data = ret_text, .size = size};
	put_hex(secret, state->secret_hash, CKT_SECRET_HASH_SIZE);
	put_hex(last, state->last, CKT_IMAGE_ID_SIZE);
	add(&text,
		"version %d\nsession %s\nowner %" PRIu32 "\nsecret %s\ngeneration %" PRIu64
		"\ncopy %" PRIu64 "\nexecuted %" PRIu64 "\nwhen %" PRIu64
		"\nlast %s\nrestores %u\nacked %" PRIu64 "\ngpu %u\nasked %d\n",
		VERSION, state->session, state->owner, secret, state->generation, state->copy,
		state->executed, (uint64_t)state->when, last, state->restores, state->acked,
		(unsigned)(state->gpu + 1), state->asked);
	/* A server of an earlier version reads states without this line. */
	if (state->asleep)
		add(&text, "asleep 1\n");
	for (unsigned i = 0; i < state->count; i++)
		add(&text, "image %" PRIu64 " %" PRIu64 "\n", state->images[i].number,
			state->images[i].bytes);
	add_rare_lines(&text, state);
	if (text.used >= 0)
		text.used = ckt_chain_mac_sign(ret_text, (size_t)text.used, size);
	add(&text, "end\n");
	return text.used;
}

/* Numbers that another one can follow, and sizes whose sum is a number. */
static bool is_image(const struct ckt_chain_image *image)
{
	return image->number && image->number <= INT64_MAX &&
		image->bytes <= INT64_MAX / CKT_CHAIN_IMAGES_MAX;
}

static bool add_image(struct ckt_chain_state *state, char *text)
{
	char *bytes = strchr(text, ' ');
	struct ckt_chain_image image;
	if (!bytes || state->count == CKT_CHAIN_IMAGES_MAX)
		return false;
	*bytes++ = 0;
	if (!get_number(text, &image.number) || !get_number(bytes, &image.bytes) ||
		!is_image(&image) ||
		(state->count && image.number <= state->images[state->count - 1].number))
		return false;
	state->images[state->count++] = image;
	return true;
}

/* Sorted, so that none is there twice. */
static bool add_member(struct ckt_chain_state *state, const char *id)
{
	unsigned count = state->member_count;
	if (count == CKT_CHAIN_MEMBERS_MAX || !ckt_chain_id_good(id) ||
		(count && strcmp(id, state->members[count - 1]) <= 0))
		return false;
	snprintf(state->members[state->member_count++], CKT_SESSION_ID_SIZE + 1, "%.12s", id);
	return true;
}

bool ckt_chain_has_member(const struct ckt_chain_state *state, const char *session)
{
	for (unsigned i = 0; i < state->member_count; i++)
		if (strcmp(state->members[i], session) == 0)
			return true;
	return false;
}

bool ckt_chain_same_cut(const struct ckt_chain_state *a, const struct ckt_chain_state *b)
{
	bool same = a->member_count && a->member_count == b->member_count && a->owner == b->owner &&
		memcmp(a->cut, b->cut, sizeof a->cut) == 0;
	for (unsigned i = 0; i < a->member_count && same; i++)
		same = strcmp(a->members[i], b->members[i]) == 0;
	return same;
}

/* A cut has members, this session among them, and nothing else has. */
static bool is_whole(const struct ckt_chain_state *state, bool has_cut)
{
	return *state->session &&
		(has_cut ? state->member_count > 1 && ckt_chain_has_member(state, state->session)
			 : !state->member_count);
}

/* The numbers of a state, by name. */
static bool take_number(struct ckt_chain_state *state, const char *name, const char *value)
{
	uint64_t number;
	if (!get_number(value, &number) || (strcmp(name, "owner") == 0 && number > UINT32_MAX))
		return false;
	if (strcmp(name, "owner") == 0)
		state->owner = (uint32_t)number;
	else if (strcmp(name, "generation") == 0)
		state->generation = number;
	else if (strcmp(name, "copy") == 0)
		state->copy = number;
	else if (strcmp(name, "executed") == 0)
		state->executed = number;
	else if (strcmp(name, "when") == 0)
		state->when = (int64_t)(number & INT64_MAX);
	else if (strcmp(name, "restores") == 0)
		state->restores = number < 1000 ? (unsigned)number : 1000;
	else if (strcmp(name, "acked") == 0)
		state->acked = number;
	else if (strcmp(name, "gpu") == 0)
		state->gpu = number <= CKT_DEVICES_MAX ? (int)number - 1 : -1;
	else if (strcmp(name, "asked") == 0)
		state->asked = number != 0;
	else if (strcmp(name, "shared") == 0)
		state->shared = number != 0;
	else if (strcmp(name, "replica") == 0)
		state->replica_ms = number < LEASE_MAX_MS ? (unsigned)number : LEASE_MAX_MS;
	else if (strcmp(name, "replicated") == 0)
		state->replicated = number != 0;
	else if (strcmp(name, "asleep") == 0)
		state->asleep = number != 0;
	else
		return strcmp(name, "version") == 0 && number == VERSION;
	return true;
}

static bool take_line(struct ckt_chain_state *state, char *name, char *value)
{
	if (strcmp(name, "session") == 0) {
		snprintf(state->session, sizeof state->session, "%.12s", value);
		return ckt_chain_id_good(value);
	}
	if (strcmp(name, "secret") == 0)
		return get_hex(value, state->secret_hash, sizeof state->secret_hash);
	if (strcmp(name, "last") == 0)
		return get_hex(value, state->last, sizeof state->last);
	if (strcmp(name, "image") == 0)
		return add_image(state, value);
	if (strcmp(name, "cut") == 0)
		return get_hex(value, state->cut, sizeof state->cut);
	if (strcmp(name, "member") == 0)
		return add_member(state, value);
	if (strcmp(name, "manifest") == 0) {
		state->has_manifest = get_hex(value, state->manifest, sizeof state->manifest);
		return state->has_manifest;
	}
	/* Who reads the state has checked it, if there are keys. */
	if (strcmp(name, "mac") == 0)
		return true;
	return take_number(state, name, value);
}

int ckt_chain_state_parse(char *text, struct ckt_chain_state *ret_state)
{
	struct ckt_chain_state state = {.gpu = -1, .owner = CKT_UID_UNKNOWN};
	char *next;
	bool has_cut = false;
	for (char *line = text; (next = strchr(line, '\n')); line = next) {
		*next++ = 0;
		if (strcmp(line, "end") == 0 && !*next && is_whole(&state, has_cut)) {
			*ret_state = state;
			return 0;
		}
		char *value = strchr(line, ' ');
		if (!value)
			return -EBADMSG;
		*value++ = 0;
		if (!take_line(&state, line, value))
			return -EBADMSG;
		has_cut |= strcmp(line, "cut") == 0;
	}
	return -EBADMSG;
}

static int read_state(
	int dir_fd, const char *name, const char *session, struct ckt_chain_state *ret_state)
{
	char text[TEXT_MAX + 1];
	struct stat st;
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	bool good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		!(st.st_mode & 0077);
	ssize_t n = good ? read(fd, text, TEXT_MAX) : -1;
	close(fd);
	if (!good)
		return -EPERM;
	if (n < 0)
		return -EIO;
	text[n] = 0;
	/* All of the file is the text: nothing behind a zero, or behind what was read. */
	if ((size_t)n != strlen(text) || n != st.st_size)
		return -EBADMSG;
	int result = ckt_chain_mac_check(text);
	if (!result)
		result = ckt_chain_state_parse(text, ret_state);
	return result ? result : strcmp(ret_state->session, session) ? -EBADMSG : 0;
}

int ckt_chain_read(int dir_fd, const char *session, struct ckt_chain_state *ret_state)
{
	return read_state(dir_fd, STATE, session, ret_state);
}

int ckt_chain_next_read(int dir_fd, const char *session, struct ckt_chain_state *ret_state)
{
	return read_state(dir_fd, NEXT, session, ret_state);
}

static int write_state(int dir_fd, const char *name, const struct ckt_chain_state *state)
{
	char text[TEXT_MAX];
	int size = format(state, text, sizeof text);
	if (size < 0)
		return size;
	unlinkat(dir_fd, FRESH, 0);
	int fd = openat(dir_fd, FRESH, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int result = ckt_write_synced(fd, text, (size_t)size);
	close(fd);
	if (!result && renameat(dir_fd, FRESH, dir_fd, name))
		result = -errno;
	if (!result && fsync(dir_fd))
		result = -errno;
	if (result)
		unlinkat(dir_fd, FRESH, 0);
	return result;
}

int ckt_chain_write(int dir_fd, const struct ckt_chain_state *state)
{
	return write_state(dir_fd, STATE, state);
}

int ckt_chain_next_write(int dir_fd, const struct ckt_chain_state *state)
{
	return write_state(dir_fd, NEXT, state);
}

int ckt_chain_next_settle(int dir_fd, bool counts)
{
	int result = counts ? renameat(dir_fd, NEXT, dir_fd, STATE) : unlinkat(dir_fd, NEXT, 0);
	if (result)
		return counts || errno != ENOENT ? -errno : 0;
	return fsync(dir_fd) ? -errno : 0;
}

/* ---- Images */

static void image_name(uint64_t number, char ret_name[NAME_SIZE])
{
	snprintf(ret_name, NAME_SIZE, "%" PRIu64, number);
}

int ckt_chain_image_open(int dir_fd, uint64_t number, bool make)
{
	char name[NAME_SIZE];
	image_name(number, name);
	if (make && mkdirat(dir_fd, name, 0700))
		return -errno;
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (is_private(fd))
		return fd;
	close(fd);
	return -EPERM;
}

uint64_t ckt_chain_image_bytes(int image_fd)
{
	uint64_t bytes = 0;
	int own = openat(image_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own >= 0 ? fdopendir(own) : NULL;
	if (!dir && own >= 0)
		close(own);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		struct stat st;
		if (fstatat(own, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode))
			bytes += (uint64_t)st.st_blocks * 512;
	}
	if (dir)
		closedir(dir);
	return bytes;
}

/* Files only are in it; a link goes, and not what it leads to. */
static void remove_directory(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir && fd >= 0)
		close(fd);
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	if (unlinkat(parent_fd, name, AT_REMOVEDIR) && (errno == ENOTDIR || errno == ELOOP))
		unlinkat(parent_fd, name, 0);
}

void ckt_chain_image_remove(int dir_fd, uint64_t number)
{
	char name[NAME_SIZE];
	image_name(number, name);
	remove_directory(dir_fd, name);
}

static bool is_named(const struct ckt_chain_state *state, const char *name)
{
	char image[NAME_SIZE];
	for (unsigned i = 0; state && i < state->count; i++) {
		image_name(state->images[i].number, image);
		if (strcmp(name, image) == 0)
			return true;
	}
	return false;
}

static void clean(
	int dir_fd, const struct ckt_chain_state *state, const struct ckt_chain_state *next)
{
	int own = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own >= 0 ? fdopendir(own) : NULL;
	if (!dir && own >= 0)
		close(own);
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (*entry->d_name >= '0' && *entry->d_name <= '9' &&
			!is_named(state, entry->d_name) && !is_named(next, entry->d_name))
			remove_directory(dir_fd, entry->d_name);
	if (dir)
		closedir(dir);
}

void ckt_chain_clean(int dir_fd, const struct ckt_chain_state *state)
{
	clean(dir_fd, state, NULL);
}

void ckt_chain_clean_beside(int dir_fd, const char *session, const struct ckt_chain_state *next)
{
	struct ckt_chain_state state;
	int result = ckt_chain_read(dir_fd, session, &state);
	/* Of one that cannot be read nobody knows what it names. */
	if (!result || result == -ENOENT)
		clean(dir_fd, result ? NULL : &state, next);
}

void ckt_chain_remove(int parent_fd, int dir_fd, const char *session)
{
	/* First what makes the rest an image. */
	unlinkat(dir_fd, STATE, 0);
	unlinkat(dir_fd, FRESH, 0);
	unlinkat(dir_fd, NEXT, 0);
	/* See replica.h. */
	unlinkat(dir_fd, "replica", 0);
	unlinkat(dir_fd, "replica.new", 0);
	unlinkat(dir_fd, "replicated", 0);
	ckt_chain_clean(dir_fd, NULL);
	unlinkat(dir_fd, LOCK, 0);
	unlinkat(parent_fd, session, AT_REMOVEDIR);
}
