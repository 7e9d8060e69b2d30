/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/compiled/cache.c: objects of machine code are found again, only where they are the
 * user's own, and not too many of them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "softgpu/ptx/compiled/compile.h"

static char top[64], before[512];

static void begin(void)
{
	const char *old = getenv("XDG_CACHE_HOME");
	snprintf(before, sizeof before, "%s", old ? old : "");
	strcpy(top, "/tmp/ptx-cache-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(top));
	setenv("XDG_CACHE_HOME", top, 1);
}

static void end(void)
{
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", top);
	IS(system(command), 0);
	if (*before)
		setenv("XDG_CACHE_HOME", before, 1);
	else
		unsetenv("XDG_CACHE_HOME");
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	fclose(file);
}

static void test_folder(void)
{
	char path[256], small[8];
	struct stat st;
	begin();
	IS(ckt_ptx_cache_folder(path, sizeof path), 0);
	IS(stat(path, &st), 0);
	IS(st.st_mode & 0777, 0700);
	HAS(path, "/cricket/kernels");
	IS(ckt_ptx_cache_folder(small, sizeof small), -ENAMETOOLONG);
	/* Others may not write to it, and it is no link to somewhere else. */
	IS(chmod(path, 0777), 0);
	IS(ckt_ptx_cache_folder(path, sizeof path), -EPERM);
	IS(rmdir(path), 0);
	IS(symlink("/tmp", path), 0);
	IS(ckt_ptx_cache_folder(path, sizeof path), -EPERM);
	end();
}

static void test_key(void)
{
	char a[CKT_PTX_KEY], b[CKT_PTX_KEY];
	ckt_ptx_cache_key("text", "maker", a);
	IS(strlen(a), CKT_PTX_KEY - 1);
	ckt_ptx_cache_key("text", "maker", b);
	TEXT(b, a);
	ckt_ptx_cache_key("text2", "maker", b);
	NO(!strcmp(a, b));
	ckt_ptx_cache_key("text", "maker2", b);
	NO(!strcmp(a, b));
	/* What belongs to which is told apart. */
	ckt_ptx_cache_key("ttext", "maker", a);
	ckt_ptx_cache_key("text", "makert", b);
	NO(!strcmp(a, b));
}

static unsigned count(const char *folder)
{
	unsigned n = 0;
	DIR *dir = opendir(folder);
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

/* A descriptor without a name, as the compiler leaves it. */
static int object_new(const char *text)
{
	int fd = memfd_create("object", MFD_CLOEXEC);
	IS(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

static void test_objects(void)
{
	char folder[256], file[300], path[512], found[512], key[CKT_PTX_KEY];
	begin();
	MUST(ckt_ptx_cache_folder(folder, sizeof folder), 0);
	ckt_ptx_cache_key("text", "maker", key);
	NO(ckt_ptx_cache_find(folder, key, path, sizeof path));
	snprintf(file, sizeof file, "%s/new", folder);
	IS(ckt_ptx_cache_store(folder, key, -1, path, sizeof path), -EBADF);
	IS(count(folder), 0);
	int object = object_new("object");
	IS(ckt_ptx_cache_store(folder, key, object, path, sizeof path), 0);
	YES(ckt_ptx_cache_find(folder, key, found, sizeof found));
	TEXT(found, path);
	/* Made twice it is there once; a name that is not taken gives way. */
	IS(ckt_ptx_cache_store(folder, key, object, path, sizeof path), 0);
	IS(count(folder), 1);
	IS(chmod(path, 0722), 0);
	IS(ckt_ptx_cache_store(folder, key, object, path, sizeof path), 0);
	YES(ckt_ptx_cache_find(folder, key, found, sizeof found));
	close(object);
	/* One that others could have written is not taken, nor a link. */
	IS(chmod(path, 0722), 0);
	NO(ckt_ptx_cache_find(folder, key, found, sizeof found));
	IS(unlink(path), 0);
	write_text(file, "object");
	IS(symlink(file, path), 0);
	NO(ckt_ptx_cache_find(folder, key, found, sizeof found));
	end();
}

static void test_bounded(void)
{
	char folder[256], path[600], file[300], key[CKT_PTX_KEY], left[600];
	begin();
	MUST(ckt_ptx_cache_folder(folder, sizeof folder), 0);
	for (unsigned k = 0; k < 1024; k++) {
		char text[16];
		snprintf(text, sizeof text, "%u", k);
		ckt_ptx_cache_key(text, "", key);
		snprintf(path, sizeof path, "%s/%s.so", folder, key);
		write_text(path, "");
		IS(utimensat(AT_FDCWD, path,
			   (struct timespec[2]){{.tv_sec = 1000 + k}, {.tv_sec = 1000 + k}}, 0),
			0);
	}
	/* A folder that an ended process left goes, a young one and what is nobody's stay. */
	snprintf(left, sizeof left, "%s/" CKT_PTX_LEFTOVER "old", folder);
	IS(mkdir(left, 0700), 0);
	IS(utimensat(AT_FDCWD, left, (struct timespec[2]){{.tv_sec = 1000}, {.tv_sec = 1000}}, 0),
		0);
	snprintf(left, sizeof left, "%s/" CKT_PTX_LEFTOVER "young", folder);
	IS(mkdir(left, 0700), 0);
	ckt_ptx_cache_sweep(folder);
	IS(count(folder), 1024 + 1);
	snprintf(file, sizeof file, "%s/new", folder);
	int object = object_new("object");
	ckt_ptx_cache_key("new", "", key);
	IS(ckt_ptx_cache_store(folder, key, object, path, sizeof path), 0);
	close(object);
	IS(count(folder), 768 + 1);
	IS(access(left, F_OK), 0);
	YES(ckt_ptx_cache_find(folder, key, path, sizeof path));
	ckt_ptx_cache_key("0", "", key);
	NO(ckt_ptx_cache_find(folder, key, path, sizeof path));
	ckt_ptx_cache_key("1023", "", key);
	YES(ckt_ptx_cache_find(folder, key, path, sizeof path));
	end();
}

UNIT_SUITE(cache, {"folder", test_folder}, {"key", test_key}, {"objects", test_objects},
	{"bounded", test_bounded})
