/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a process: makes one numbered allocation of its executable's own code fail (what
 * is linked statically counts, other libraries do not).  The file that CKT_ALLOC_FAULT names holds
 * two 64-bit numbers: how many allocations are still good (below 0: all), and how many have failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

extern char **environ;
static struct control {
	_Atomic int64_t good, failed;
} * control;
static uintptr_t first, last;

/* The executable is what the first lines of the map belong to. */
static void find_executable(void)
{
	char text[4096], name[256] = "", *line = text;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	ssize_t size = read(fd, text, sizeof text - 1);
	close(fd);
	text[size > 0 ? size : 0] = 0;
	for (char *end; (end = strchr(line, '\n')); line = end + 1) {
		char *path = memchr(line, '/', (size_t)(end - line)), *rest;
		size_t length = path ? (size_t)(end - path) : 0;
		if (!length || length >= sizeof name ||
			(*name && (strlen(name) != length || memcmp(name, path, length) != 0)))
			break;
		memcpy(name, path, length);
		uintptr_t from = strtoul(line, &rest, 16);
		first = first ? first : from;
		last = strtoul(rest + 1, NULL, 16);
	}
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("CKT_ALLOC_FAULT");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	find_executable();
	void *memory = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	control = memory == MAP_FAILED ? NULL : memory;
}

static int fails(const void *caller)
{
	uintptr_t at = (uintptr_t)caller;
	if (!control || at < first || at >= last || control->good < 0 || control->good-- != 0)
		return 0;
	control->failed++;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t count, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes) || fails(__builtin_return_address(0)))
		return NULL;
	return __libc_realloc(old, bytes);
}

char *strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
	return copy ? memcpy(copy, text, size) : NULL;
}
