/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/preload/ld_cache.c: the machine's own cache, caches made by hand in both layouts, and
 * broken ones.
 */
#include "client/preload/ld_cache.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/suite.h"

struct entry {
	int32_t flags;
	uint32_t key, value, os_version;
	uint64_t hwcap;
};

struct cache {
	char magic[20];
	uint32_t count, strings_bytes, unused[5];
	struct entry entries[4];
	char strings[128];
};

static char path[] = "/tmp/ckt-cache-XXXXXX";

static void save(const void *before, size_t before_bytes, const struct cache *cache, size_t bytes)
{
	strcpy(strrchr(path, '-'), "-XXXXXX");
	int fd = mkstemp(path);
	if (fd < 0 || write(fd, before, before_bytes) != (ssize_t)before_bytes ||
		write(fd, cache, bytes) != (ssize_t)bytes)
		CU_FAIL_FATAL("cannot write");
	close(fd);
}

static uint32_t add(struct cache *cache, const char *text)
{
	uint32_t at = cache->strings_bytes;
	strcpy(cache->strings + at, text);
	cache->strings_bytes += (uint32_t)strlen(text) + 1;
	return (uint32_t)offsetof(struct cache, strings) + at;
}

static struct cache make(void)
{
	struct cache cache = {.count = 4};
	memcpy(cache.magic, "glibc-ld.so.cache1.1", 20);
	uint32_t name = add(&cache, "libsolver.so.12");
	/* Of another architecture, for some processors, the one, and a second. */
	cache.entries[0] = (struct entry){
		.flags = 0x0003, .key = name, .value = add(&cache, "/32/libsolver.so.12")};
	cache.entries[1] = (struct entry){.flags = 0x0303,
		.key = name,
		.value = add(&cache, "/fast/libsolver.so.12"),
		.hwcap = 1};
	cache.entries[2] = (struct entry){
		.flags = 0x0303, .key = name, .value = add(&cache, "/cuda/libsolver.so.12")};
	cache.entries[3] = (struct entry){
		.flags = 0x0303, .key = name, .value = add(&cache, "/old/libsolver.so.12")};
	return cache;
}

static void test_found(void)
{
	static const char old[16 + 12 * 2] = "ld.so-1.7.0\0\2";
	struct cache cache = make();
	char found[PATH_MAX] = "";
	for (unsigned with_old = 0; with_old < 2; with_old++) {
		save(old, with_old ? sizeof old : 0, &cache, sizeof cache);
		YES(ckt_ld_cache_find(path, "libsolver.so.12", found, sizeof found));
		TEXT(found, "/cuda/libsolver.so.12");
		NO(ckt_ld_cache_find(path, "libsolver.so.1", found, sizeof found));
		NO(ckt_ld_cache_find(
			path, "libsolver.so.12", found, strlen("/cuda/libsolver.so.12")));
		unlink(path);
	}
	NO(ckt_ld_cache_find("/nowhere", "libsolver.so.12", found, sizeof found));
	NO(ckt_ld_cache_find("/etc/passwd", "libsolver.so.12", found, sizeof found));
}

/* As ldconfig writes it here. */
static void test_machine(void)
{
	char found[PATH_MAX];
	if (access("/etc/ld.so.cache", R_OK) != 0)
		return;
	YES(ckt_ld_cache_find("/etc/ld.so.cache", "libc.so.6", found, sizeof found));
	YES(found[0] == '/' && access(found, R_OK) == 0);
}

static void test_broken(void)
{
	struct cache cache = make(), changed;
	char found[PATH_MAX];
	size_t missed = 0;
	for (size_t length = 1; length < sizeof cache; length++) {
		save("", 0, &cache, length);
		missed += !ckt_ld_cache_find(path, "libsolver.so.12", found, sizeof found);
		unlink(path);
	}
	YES(missed > offsetof(struct cache, strings));
	for (size_t i = 0; i < sizeof cache; i++) {
		changed = cache;
		((uint8_t *)&changed)[i] ^= 0xff;
		save("", 0, &changed, sizeof changed);
		if (ckt_ld_cache_find(path, "libsolver.so.12", found, sizeof found))
			YES(strlen(found) < sizeof cache);
		unlink(path);
	}
}

UNIT_SUITE(ld_cache, {"found", test_found}, {"machine", test_machine}, {"broken", test_broken})
