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
#include <unistd.h>

static const char *debug_path; /* "" for stderr; NULL if off */

void ckt_patch_log_init(char **environment)
{
	static const char name[] = "CRICKET_LOG=debug";

	for (char **entry = environment; entry && *entry; entry++) {
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
