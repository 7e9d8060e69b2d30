/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of modules; see module_store.h. */
#include "server/daemon/session/module_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/daemon/paths.h"

enum {
	/* Another server's count may be off by what we wrote since. */
	WRITES_MAX = 64,
	/* So that reading the directory stays short. */
	FILES_MAX = 4096,
	/* Nobody writes a module for an hour. */
	ABANDONED_S = 3600,
};
static const char temporary_prefix[] = ".new-";

struct file {
	char name[CKT_STORE_NAME];
	uint64_t size;
	struct timespec used;
};

struct listing {
	struct file *files;
	size_t count, room;
};

/* Of this process; another server's have another number, or are counted twice until they are there. */
static int own_prefix(char ret_text[CKT_STORE_TEMPORARY])
{
	return snprintf(ret_text, CKT_STORE_TEMPORARY, "%s%d-", temporary_prefix, (int)getpid());
}

static void name_of(const uint8_t hash[CKT_STORE_HASH], char ret_name[CKT_STORE_NAME])
{
	for (int i = 0; i < CKT_STORE_HASH; i++)
		snprintf(ret_name + 2 * i, 3, "%02x", hash[i]);
}

static bool is_module(const char *name)
{
	return strlen(name) == CKT_STORE_NAME - 1 &&
		strspn(name, "0123456789abcdef") == CKT_STORE_NAME - 1;
}

static int add_file(struct listing *listing, const char *name, const struct stat *status)
{
	if (listing->count == listing->room) {
		size_t room = listing->room ? 2 * listing->room : 64;
		struct file *files = reallocarray(listing->files, room, sizeof *files);
		if (!files)
			return -ENOMEM;
		listing->files = files;
		listing->room = room;
	}
	struct file *file = &listing->files[listing->count++];
	snprintf(file->name, sizeof file->name, "%s", name);
	file->size = (uint64_t)status->st_size;
	file->used = status->st_mtim;
	return 0;
}

/* Counts all files.  The listing holds the modules, and is the caller's also on failure. */
static int read_directory(struct ckt_module_store *store, struct listing *listing)
{
	int fd = openat(store->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	int result = directory ? 0 : -errno;
	if (!directory && fd >= 0)
		close(fd);
	char own[CKT_STORE_TEMPORARY];
	size_t own_length = (size_t)own_prefix(own);
	uint64_t bytes = store->pending;
	struct dirent *entry;
	while (!result && (entry = readdir(directory))) {
		struct stat status;
		bool temporary =
			strncmp(entry->d_name, temporary_prefix, sizeof temporary_prefix - 1) == 0;
		if ((!temporary && !is_module(entry->d_name)) ||
			fstatat(store->directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW))
			continue;
		if (temporary && time(NULL) - status.st_mtime > ABANDONED_S) {
			unlinkat(store->directory, entry->d_name, 0);
			continue;
		}
		if (!temporary || strncmp(entry->d_name, own, own_length) != 0)
			bytes += (uint64_t)status.st_size;
		if (!temporary)
			result = add_file(listing, entry->d_name, &status);
	}
	if (directory)
		closedir(directory);
	store->bytes = bytes;
	store->writes = 0;
	return result;
}

static int by_use(const void *a, const void *b)
{
	const struct timespec *x = &((const struct file *)a)->used,
			      *y = &((const struct file *)b)->used;
	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static int make_room(struct ckt_module_store *store, uint64_t size)
{
	struct listing listing = {0};
	int result = 0;
	if (store->bytes + size <= store->max_bytes && store->writes < WRITES_MAX)
		return 0;
	result = read_directory(store, &listing);
	if (!result && listing.count)
		qsort(listing.files, listing.count, sizeof *listing.files, by_use);
	for (size_t i = 0; !result && i < listing.count &&
		(store->bytes + size > store->max_bytes || listing.count - i > FILES_MAX);
		i++) {
		if (unlinkat(store->directory, listing.files[i].name, 0) && errno != ENOENT)
			result = -errno;
		else
			store->bytes -= listing.files[i].size;
	}
	if (!result && store->bytes + size > store->max_bytes)
		result = -ENOSPC;
	free(listing.files);
	return result;
}

int ckt_module_store_open(struct ckt_module_store *store, const char *path, uint64_t max_bytes)
{
	struct listing listing = {0};
	struct stat status;
	*store = (struct ckt_module_store){.directory = -1, .max_bytes = max_bytes};
	int result = ckt_paths_make_parent(path);
	if (result)
		return result;
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status))
		result = -errno;
	else if (status.st_uid != geteuid() || status.st_mode & 022)
		result = -EPERM;
	store->directory = fd;
	if (!result)
		result = read_directory(store, &listing);
	free(listing.files);
	if (result)
		ckt_module_store_close(store);
	return result;
}

void ckt_module_store_close(struct ckt_module_store *store)
{
	if (store->directory >= 0)
		close(store->directory);
	store->directory = -1;
}

int ckt_module_store_find(
	struct ckt_module_store *store, const uint8_t hash[CKT_STORE_HASH], uint64_t *ret_size)
{
	char name[CKT_STORE_NAME];
	struct stat status;
	name_of(hash, name);
	int fd = openat(
		store->directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) || !S_ISREG(status.st_mode)) {
		close(fd);
		return -ENOENT;
	}
	/* On a file system that cannot be written to, the order of use does not matter. */
	futimens(fd, NULL);
	*ret_size = (uint64_t)status.st_size;
	return fd;
}

int ckt_module_store_list(
	struct ckt_module_store *store, uint32_t *ret_words, unsigned max, unsigned *ret_count)
{
	struct listing listing = {0};
	unsigned count = 0;
	char word[9];
	int result = read_directory(store, &listing);
	if (!result && listing.count)
		qsort(listing.files, listing.count, sizeof *listing.files, by_use);
	for (size_t i = listing.count; !result && i && count < max; i--) {
		snprintf(word, sizeof word, "%.8s", listing.files[i - 1].name);
		ret_words[count++] = (uint32_t)strtoul(word, NULL, 16);
	}
	if (!result && listing.count > count)
		result = -EAGAIN;
	free(listing.files);
	*ret_count = count;
	return result;
}

bool ckt_module_store_remove(struct ckt_module_store *store, const uint8_t hash[CKT_STORE_HASH])
{
	char name[CKT_STORE_NAME];
	struct stat status;
	name_of(hash, name);
	bool counted = fstatat(store->directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
	if (unlinkat(store->directory, name, 0))
		return false;
	if (counted && (uint64_t)status.st_size <= store->bytes)
		store->bytes -= (uint64_t)status.st_size;
	return true;
}

int ckt_module_store_begin(struct ckt_module_store *store, struct ckt_module_write *write,
	const uint8_t hash[CKT_STORE_HASH], uint64_t size)
{
	static unsigned number; /* one thread writes */
	uint64_t has;
	*write = (struct ckt_module_write){.fd = -1, .size = size, .left = size};
	int found = ckt_module_store_find(store, hash, &has);
	if (found >= 0)
		close(found);
	if (found >= 0 && has == size)
		return -EEXIST;
	/* A file of another size is damaged. */
	if (found >= 0)
		ckt_module_store_remove(store, hash);
	if (!size || size > store->max_bytes)
		return -EFBIG;
	int result = make_room(store, size);
	if (result)
		return result;
	int length = own_prefix(write->temporary);
	snprintf(write->temporary + length, sizeof write->temporary - (size_t)length, "%u",
		number++);
	write->fd = openat(store->directory, write->temporary,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (write->fd < 0)
		return -errno;
	memcpy(write->hash, hash, sizeof write->hash);
	sha256_init(&write->sha);
	store->bytes += size;
	store->pending += size;
	store->writes++;
	return 0;
}

int ckt_module_store_write(struct ckt_module_write *write, const uint8_t *data, size_t size)
{
	if (size > write->left)
		return -EMSGSIZE;
	sha256_update(&write->sha, size, data);
	write->left -= size;
	while (size) {
		ssize_t n = TEMP_FAILURE_RETRY(
			pwrite(write->fd, data, size, (off_t)(write->size - write->left - size)));
		if (n <= 0)
			return n ? -errno : -ENOSPC;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

int ckt_module_store_finish(struct ckt_module_store *store, struct ckt_module_write *write)
{
	uint8_t really[CKT_STORE_HASH];
	char name[CKT_STORE_NAME];
	sha256_digest(&write->sha, sizeof really, really);
	int result = write->left || memcmp(really, write->hash, sizeof really) ? -EBADMSG : 0;
	name_of(write->hash, name);
	/* Two workers may have sent the same module. */
	if (!result)
		ckt_module_store_remove(store, write->hash);
	if (!result && renameat(store->directory, write->temporary, store->directory, name))
		result = -errno;
	if (result) {
		ckt_module_store_abandon(store, write);
		return result;
	}
	close(write->fd);
	write->fd = -1;
	store->pending -= write->size;
	return 0;
}

void ckt_module_store_abandon(struct ckt_module_store *store, struct ckt_module_write *write)
{
	if (write->fd < 0)
		return;
	close(write->fd);
	write->fd = -1;
	unlinkat(store->directory, write->temporary, 0);
	store->pending -= write->size;
	store->bytes = store->bytes > write->size ? store->bytes - write->size : 0;
}
