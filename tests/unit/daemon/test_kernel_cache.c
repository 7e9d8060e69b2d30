/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/kernel_cache.c: a directory for each owner, and nobody else's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/kernel_cache.h"

enum { WORKERS = 4250, OTHERS = 4251 };

static const char *const names[] = {"CACHE_DIRECTORY", "XDG_CACHE_HOME", "HOME", "CUDA_CACHE_PATH"};
enum { NAMES = sizeof names / sizeof *names };
static char *kept[NAMES];
static char directory_of[CKT_PATH_MAX];

static void begin(bool soft)
{
	for (int i = 0; i < NAMES; i++) {
		kept[i] = getenv(names[i]) ? strdup(getenv(names[i])) : NULL;
		unsetenv(names[i]);
	}
	server.driver.soft = soft;
}

static void end(void)
{
	char command[128];
	for (int i = 0; i < NAMES; i++) {
		if (!kept[i] || setenv(names[i], kept[i], 1))
			unsetenv(names[i]);
		free(kept[i]);
	}
	snprintf(command, sizeof command, "rm -rf %s/cache", directory);
	IS(system(command), 0);
	server.driver.soft = false;
	server.options.uid_range = NULL;
}

static const char *open_for(uint32_t owner, const struct ckt_worker_user *user)
{
	const struct ckt_identity identity = ckt_identity_of_owner(owner);
	strcpy(directory_of, "x");
	ckt_kernel_cache_open(&server, &identity, user, directory_of);
	return directory_of;
}

/* The worker's user, which a test without privileges cannot give anything. */
static struct ckt_worker_user workers(void)
{
	return (struct ckt_worker_user){.change = geteuid() == 0, .uid = WORKERS, .gid = WORKERS};
}

static void test_owners(void)
{
	const struct ckt_worker_user user = workers();
	char first[CKT_PATH_MAX], text[CKT_PATH_MAX + 32];
	struct stat status;
	begin(true);
	setenv("CACHE_DIRECTORY", path_in("cache:/other"), 1);
	strcpy(first, open_for(1001, &user));
	YES(strncmp(first, path_in("cache/owner-"), strlen(path_in("cache/owner-"))) == 0);
	IS(strlen(first) - strlen(path_in("cache/owner-")), 32);
	IS(stat(first, &status), 0);
	IS(status.st_uid, user.change ? WORKERS : geteuid());
	IS(status.st_mode & 07777, 0700);
	/* The same again, and another for another. */
	TEXT(open_for(1001, &user), first);
	YES(strcmp(open_for(1002, &user), first) != 0);
	ckt_kernel_cache_variable(&server, first, text, sizeof text);
	YES(strncmp(text, "XDG_CACHE_HOME=/", 16) == 0);
	ckt_kernel_cache_variable(&server, "", text, sizeof text);
	TEXT(text, "");
	/* A worker that is nobody's yet has none. */
	ckt_kernel_cache_open(&server, NULL, &user, directory_of);
	TEXT(directory_of, "");
	end();
}

/* A link, or the directory of somebody else, in a base in which others make names. */
static void test_foreign(void)
{
	const struct ckt_worker_user user = workers();
	char path[CKT_PATH_MAX];
	struct stat status;
	begin(true);
	setenv("CACHE_DIRECTORY", path_in("cache"), 1);
	strcpy(path, open_for(1001, &user));
	IS(rmdir(path), 0);
	IS(symlink("/etc", path), 0);
	TEXT(open_for(1001, &user), "");
	IS(stat("/etc", &status), 0);
	IS(status.st_uid, 0);
	IS(unlink(path), 0);
	IS(mkdir(path, 0777), 0);
	IS(chmod(path, 0777), 0);
	if (geteuid() == 0) {
		IS(chown(path, OTHERS, OTHERS), 0);
		TEXT(open_for(1001, &user), "");
		IS(stat(path, &status), 0);
		IS(status.st_uid, OTHERS);
		IS(chown(path, WORKERS, WORKERS), 0);
	}
	/* Others could write there. */
	TEXT(open_for(1001, &user), "");
	IS(rmdir(path), 0);
	TEXT(open_for(1001, &user), path);
	end();
}

static void test_bases(void)
{
	const struct ckt_worker_user self = {0};
	struct ckt_worker_user user = workers();
	char text[CKT_PATH_MAX + 32];
	begin(false);
	/* NVIDIA's driver has none unless it is told. */
	setenv("CACHE_DIRECTORY", path_in("cache"), 1);
	TEXT(open_for(1001, &self), "");
	setenv("CUDA_CACHE_PATH", path_in("cache"), 1);
	HAS(open_for(1001, &self), "/cache/owner-");
	ckt_kernel_cache_variable(&server, directory_of, text, sizeof text);
	YES(strncmp(text, "CUDA_CACHE_PATH=/", 17) == 0);
	/* An id of a range is another owner's one day. */
	server.options.uid_range = (char *)"1804500-1804509";
	user.change = true;
	server.mounts = true;
	TEXT(open_for(1001, &user), "/dev/shm/.cuda-cache");
	server.mounts = false;
	TEXT(open_for(1001, &user), "");
	server.driver.soft = true;
	TEXT(open_for(1001, &user), "");
	server.options.uid_range = NULL;
	/* What cannot be made is no cache. */
	setenv("CACHE_DIRECTORY", "/proc/nowhere", 1);
	TEXT(open_for(1001, &self), "");
	end();
}

UNIT_SUITE(kernel_cache, {"owners", test_owners}, {"foreign", test_foreign}, {"bases", test_bases})
