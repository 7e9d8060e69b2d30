/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See patch_log.h.
 */
#include "client/patch/patch_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *debug_path; /* "" for stderr; NULL if off */
static const char *refusals_path;

void ckt_patch_log_init(char **environment)
{
	static const char name[] = "CRICKET_LOG=debug", refusals[] = "CRICKET_REFUSALS=";

	refusals_path = NULL;

	for (char **entry = environment; entry && *entry; entry++) {
		if (strncmp(*entry, refusals, sizeof(refusals) - 1) == 0 &&
			(*entry)[sizeof(refusals) - 1])
			refusals_path = *entry + sizeof(refusals) - 1;
		if (strncmp(*entry, name, sizeof(name) - 1) != 0)
			continue;
		const char *rest = *entry + sizeof(name) - 1;
		debug_path = *rest == ':' ? rest + 1 : *rest ? NULL : "";
	}
}

static void say(const char *path, const char *format, va_list arguments)
{
	char line[1024] = "cricket: ";
	int saved = errno, length = 9;
	int fd = path && path[0] ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)
				 : STDERR_FILENO;

	length += vsnprintf(line + length, sizeof(line) - 1 - (size_t)length, format, arguments);
	if (length > (int)sizeof(line) - 2)
		length = sizeof(line) - 2;
	line[length++] = '\n';
	if (fd >= 0 && write(fd, line, (size_t)length) < 0) {
		/* An error of the log cannot be reported. */
	}
	if (fd > STDERR_FILENO)
		close(fd);
	errno = saved;
}

/* The line without its prefix, for the file of base/refusal_log.h, which this library does not link. */
static void note(const char *text, size_t size)
{
	char line[1024];
	struct stat status;
	int saved = errno;
	int fd = open(refusals_path,
		O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);

	size = size < sizeof(line) - 1 ? size : sizeof(line) - 1;
	memcpy(line, text, size);
	line[size++] = '\n';
	if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
		write(fd, line, size) < 0) {
		/* The line is on stderr. */
	}
	if (fd >= 0)
		close(fd);
	errno = saved;
}

void ckt_patch_log_refusal(const char *name, const char *what)
{
	char text[512];

	snprintf(text, sizeof(text), "%s%s", name, what);
	ckt_patch_log("%s", text);
	if (refusals_path)
		note(text, strlen(text));
}

void ckt_patch_log(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(NULL, format, arguments);
	va_end(arguments);
}

void ckt_patch_log_debug(const char *format, ...)
{
	va_list arguments;

	if (!debug_path)
		return;
	va_start(arguments, format);
	say(debug_path, format, arguments);
	va_end(arguments);
}
