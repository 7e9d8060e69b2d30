/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/module_store.c: modules in a directory, within a bound. */
#include "server/daemon/session/module_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"

enum { MODULE = 1000, ROOM = 3 * MODULE };

static struct ckt_module_store store;

/* Contents that a number stands for. */
static const uint8_t *contents(unsigned number)
{
	static uint8_t data[MODULE];
	memset(data, (int)number, sizeof data);
	return data;
}

static const uint8_t *hash_of(unsigned number)
{
	static uint8_t hash[CKT_STORE_HASH];
	struct sha256_ctx sha;
	sha256_init(&sha);
	sha256_update(&sha, MODULE, contents(number));
	sha256_digest(&sha, sizeof hash, hash);
	return hash;
}

static int put(unsigned number)
{
	struct ckt_module_write write;
	int result = ckt_module_store_begin(&store, &write, hash_of(number), MODULE);
	if (!result)
		result = ckt_module_store_write(&write, contents(number), 400);
	if (!result)
		result = ckt_module_store_write(&write, contents(number), MODULE - 400);
	return result ? result : ckt_module_store_finish(&store, &write);
}

static bool has(unsigned number)
{
	uint8_t data[MODULE + 1];
	uint64_t size = 0;
	int fd = ckt_module_store_find(&store, hash_of(number), &size);
	if (fd < 0)
		return false;
	IS(size, MODULE);
	IS(read(fd, data, sizeof data), MODULE);
	IS(memcmp(data, contents(number), MODULE), 0);
	IS(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	close(fd);
	/* Its use is later than that of others, also for a file system's clock. */
	usleep(20000);
	return true;
}

static unsigned count_files(void)
{
	unsigned count = 0;
	DIR *files = opendir(path_in("store/owner"));
	for (struct dirent *entry; files && (entry = readdir(files));)
		count += entry->d_name[0] != '.' || strncmp(entry->d_name, ".new", 4) == 0;
	if (files)
		closedir(files);
	return count;
}

static void begin(void)
{
	MUST(ckt_module_store_open(&store, path_in("store/owner"), ROOM), 0);
}

static void end(void)
{
	char command[128];
	ckt_module_store_close(&store);
	snprintf(command, sizeof command, "rm -rf %s/store", directory);
	IS(system(command), 0);
}

static void test_modules(void)
{
	struct stat status;
	begin();
	IS(stat(path_in("store/owner"), &status), 0);
	IS(status.st_mode & 07777, 0700);
	NO(has(1));
	IS(put(1), 0);
	YES(has(1));
	IS(put(1), -EEXIST);
	IS(put(2), 0);
	IS(store.bytes, 2 * MODULE);
	IS(store.pending, 0);
	YES(ckt_module_store_remove(&store, hash_of(1)));
	NO(ckt_module_store_remove(&store, hash_of(1)));
	NO(has(1));
	IS(store.bytes, MODULE);
	/* The next server finds the rest. */
	ckt_module_store_close(&store);
	begin();
	IS(store.bytes, MODULE);
	YES(has(2));
	end();
}

static void test_bound(void)
{
	begin();
	IS(put(1), 0);
	usleep(20000);
	IS(put(2), 0);
	usleep(20000);
	IS(put(3), 0);
	usleep(20000);
	IS(store.bytes, ROOM);
	YES(has(1));
	/* The second was not used for longest. */
	IS(put(4), 0);
	NO(has(2));
	YES(has(1) && has(3) && has(4));
	IS(store.bytes, ROOM);
	/* What is being written has its room. */
	struct ckt_module_write writes[3], none;
	for (unsigned i = 0; i < 3; i++)
		IS(ckt_module_store_begin(&store, &writes[i], hash_of(10 + i), MODULE), 0);
	IS(count_files(), 3);
	IS(store.bytes, ROOM);
	IS(ckt_module_store_begin(&store, &none, hash_of(20), MODULE), -ENOSPC);
	IS(none.fd, -1);
	for (unsigned i = 0; i < 3; i++)
		ckt_module_store_abandon(&store, &writes[i]);
	ckt_module_store_abandon(&store, &writes[0]);
	IS(count_files(), 0);
	IS(store.bytes, 0);
	IS(ckt_module_store_begin(&store, &none, hash_of(20), ROOM + 1), -EFBIG);
	IS(ckt_module_store_begin(&store, &none, hash_of(20), UINT64_MAX), -EFBIG);
	IS(ckt_module_store_begin(&store, &none, hash_of(20), 0), -EFBIG);
	end();
}

static uint32_t word_of(unsigned number)
{
	const uint8_t *hash = hash_of(number);
	return (uint32_t)hash[0] << 24 | (uint32_t)hash[1] << 16 | (uint32_t)hash[2] << 8 | hash[3];
}

static void test_list(void)
{
	uint32_t words[3];
	unsigned count = 9;
	begin();
	IS(ckt_module_store_list(&store, words, 3, &count), 0);
	IS(count, 0);
	for (unsigned i = 1; i <= 3; i++) {
		IS(put(i), 0);
		usleep(20000);
	}
	YES(has(2));
	/* The last used first. */
	IS(ckt_module_store_list(&store, words, 3, &count), 0);
	IS(count, 3);
	YES(words[0] == word_of(2) && words[1] == word_of(3) && words[2] == word_of(1));
	IS(ckt_module_store_list(&store, words, 2, &count), -EAGAIN);
	IS(count, 2);
	YES(words[0] == word_of(2) && words[1] == word_of(3));
	end();
}

/* Bytes that are not what the hash says leave nothing. */
static void test_lies(void)
{
	struct ckt_module_write write;
	begin();
	IS(ckt_module_store_begin(&store, &write, hash_of(1), MODULE), 0);
	IS(ckt_module_store_write(&write, contents(2), MODULE), 0);
	IS(ckt_module_store_finish(&store, &write), -EBADMSG);
	IS(write.fd, -1);
	/* Too few, and too many. */
	IS(ckt_module_store_begin(&store, &write, hash_of(1), MODULE), 0);
	IS(ckt_module_store_write(&write, contents(1), MODULE - 1), 0);
	IS(ckt_module_store_write(&write, contents(1), 2), -EMSGSIZE);
	IS(ckt_module_store_finish(&store, &write), -EBADMSG);
	IS(count_files(), 0);
	IS(store.bytes, 0);
	IS(store.pending, 0);
	end();
}

/* Two workers send the same one, and a file that lost its end is replaced. */
static void test_again(void)
{
	struct ckt_module_write first, second;
	char path[256];
	begin();
	IS(ckt_module_store_begin(&store, &first, hash_of(1), MODULE), 0);
	IS(ckt_module_store_begin(&store, &second, hash_of(1), MODULE), 0);
	IS(ckt_module_store_write(&first, contents(1), MODULE), 0);
	IS(ckt_module_store_write(&second, contents(1), MODULE), 0);
	IS(ckt_module_store_finish(&store, &first), 0);
	IS(ckt_module_store_finish(&store, &second), 0);
	IS(count_files(), 1);
	IS(store.bytes, MODULE);
	int length = snprintf(path, sizeof path, "%s/", path_in("store/owner"));
	for (int i = 0; i < CKT_STORE_HASH; i++)
		length += sprintf(path + length, "%02x", hash_of(1)[i]);
	IS(truncate(path, 10), 0);
	IS(put(1), 0);
	YES(has(1));
	/* A link in a module's place leads nowhere. */
	IS(unlink(path), 0);
	IS(symlink("/etc/passwd", path), 0);
	NO(has(1));
	IS(put(1), 0);
	YES(has(1));
	end();
}

static void test_left_behind(void)
{
	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	begin();
	ckt_module_store_close(&store);
	write_file(path_in("store/owner/.new-1-1"), "old", 0600);
	IS(utimensat(AT_FDCWD, path_in("store/owner/.new-1-1"), old, 0), 0);
	write_file(path_in("store/owner/.new-1-2"), "young", 0600);
	write_file(path_in("store/owner/notes"), "somebody's", 0600);
	begin();
	IS(access(path_in("store/owner/.new-1-1"), F_OK), -1);
	IS(access(path_in("store/owner/.new-1-2"), F_OK), 0);
	IS(access(path_in("store/owner/notes"), F_OK), 0);
	IS(store.bytes, 5);
	end();
}

/* A directory in which others can write, or that is a link, or that cannot be made. */
static void test_foreign(void)
{
	begin();
	ckt_module_store_close(&store);
	IS(chmod(path_in("store/owner"), 0770), 0);
	IS(ckt_module_store_open(&store, path_in("store/owner"), ROOM), -EPERM);
	IS(store.directory, -1);
	IS(rmdir(path_in("store/owner")), 0);
	IS(symlink("/tmp", path_in("store/owner")), 0);
	YES(ckt_module_store_open(&store, path_in("store/owner"), ROOM) < 0);
	if (geteuid() == 0) {
		IS(unlink(path_in("store/owner")), 0);
		IS(mkdir(path_in("store/owner"), 0700), 0);
		IS(chown(path_in("store/owner"), 4250, 4250), 0);
		IS(ckt_module_store_open(&store, path_in("store/owner"), ROOM), -EPERM);
	}
	YES(ckt_module_store_open(&store, "/proc/nowhere/owner", ROOM) < 0);
	end();
}

UNIT_SUITE(module_store, {"modules", test_modules}, {"bound", test_bound}, {"list", test_list},
	{"lies", test_lies}, {"again", test_again}, {"left behind", test_left_behind},
	{"foreign", test_foreign})
