/* SPDX-License-Identifier: Apache-2.0 */
/* The file of refusals; see refusal_log.h. */
#include "base/refusal_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

/*
 * How lines about a refusal begin, or begin and contain: softgpu/context/log.c and
 * softgpu/libs/common/driver.c write them.  A kernel's fault is no refusal, unless it is the call of
 * a refused function.
 */
static const struct {
	const char *beginning, *part;
} refusals[] = {
	{"cricket soft GPU: kernel ", " cannot run: "},
	{"cricket soft GPU: link: ", ""},
	{"cricket soft GPU: module not loaded: ", ""},
	{"cricket soft GPU: ", " is not supported"},
	{"cricket: soft GPU: ", ""},
};

static void append(const char *text, size_t size)
{
	char line[2048];
	struct stat status;
	/* A program that runs with another user's rights does not write where that user says. */
	const char *path = secure_getenv("CRICKET_REFUSALS");

	if (!path || !*path)
		return;
	size = size < sizeof line - 1 ? size : sizeof line - 1;
	for (size_t i = 0; i < size; i++)
		line[i] = (unsigned char)text[i] < 32 || text[i] == 127 ? '?' : text[i];
	line[size] = '\n';
	/* O_NONBLOCK: a FIFO that nobody reads must not stop the program. */
	int fd =
		open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
		ssize_t written = write(fd, line, size + 1);
		(void)written;
	}
	close(fd);
}

void ckt_refusal_say(const char *format, ...)
{
	char text[1024];
	va_list arguments;
	int saved = errno;

	va_start(arguments, format);
	int length = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (length > 0) {
		ckt_log_user("%s", text);
		append(text, strlen(text));
	}
	errno = saved;
}

static void look(const struct ckt_refusal_scan *scan)
{
	size_t size = scan->used < sizeof scan->line ? scan->used : sizeof scan->line;

	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		size_t length = strlen(refusals[i].beginning);
		const char *part = refusals[i].part;

		if (size > length && memcmp(scan->line, refusals[i].beginning, length) == 0 &&
			memmem(scan->line + length, size - length, part, strlen(part))) {
			append(scan->line, size);
			return;
		}
	}
}

void ckt_refusal_scan(struct ckt_refusal_scan *scan, const char *text, size_t size)
{
	int saved = errno;

	/* The text of an empty message is NULL. */
	if (!size)
		return;
	for (const char *end = text + size; text < end;) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t piece = (size_t)((newline ? newline : end) - text);
		size_t room = scan->used < sizeof scan->line ? sizeof scan->line - scan->used : 0;

		memcpy(scan->line + (sizeof scan->line - room), text, piece < room ? piece : room);
		scan->used += piece;
		text += piece;
		if (newline) {
			look(scan);
			scan->used = 0;
			text++;
		}
	}
	errno = saved;
}
