/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines on stderr.  A worker opens this library by path, so the library has its own small logger.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/context/log.h"

static void write_line(const char *format, va_list args)
{
	int saved = errno;
	char line[2048] = "cricket soft GPU: ";
	size_t used = strlen(line);
	int n = vsnprintf(line + used, sizeof(line) - used - 1, format, args);
	if (n > 0)
		used += (size_t)n < sizeof(line) - used - 1 ? (size_t)n : sizeof(line) - used - 2;
	line[used++] = '\n';
	/*
	 * One write for each line, so that lines of several processes do not mix.  Errors of a
	 * closed stderr are ignored.
	 */
	if (write(STDERR_FILENO, line, used) < 0)
		errno = saved;
	errno = saved;
}

void ckt_soft_say(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	write_line(format, args);
	va_end(args);
}

/*
 * Whether a text is new, by its hash (FNV-1a); a line is lost with a probability of 2^-64.  If the
 * table is full, each further text is logged every time.
 */
static bool is_new(const char *text)
{
	enum { SAID_MAX = 1024 };
	static uint64_t said[SAID_MAX];
	static size_t n_said;
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint64_t hash = 0xcbf29ce484222325;
	for (const char *p = text; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 0x100000001b3;
	pthread_mutex_lock(&lock);
	size_t i = 0;
	while (i < n_said && said[i] != hash)
		i++;
	bool found = i < n_said;
	if (!found && n_said < SAID_MAX)
		said[n_said++] = hash;
	pthread_mutex_unlock(&lock);
	return !found;
}

void ckt_soft_say_once(const char *format, ...)
{
	char text[2048];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (is_new(text))
		ckt_soft_say("%s", text);
	else
		ckt_soft_debug("%s", text);
}

void ckt_soft_debug(const char *format, ...)
{
	static atomic_int enabled = -1;
	int on = atomic_load(&enabled);
	if (on < 0) {
		const char *value = getenv("CRICKET_LOG");
		on = value && strncmp(value, "debug", 5) == 0;
		atomic_store(&enabled, on);
	}
	if (!on)
		return;
	va_list args;
	va_start(args, format);
	write_line(format, args);
	va_end(args);
}

CUresult ckt_soft_unsupported(atomic_bool *said, const char *what)
{
	if (!atomic_exchange(said, true))
		ckt_soft_say_once("%s is not supported", what);
	return CUDA_ERROR_NOT_SUPPORTED;
}
