/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logging; see log.h.  A line is one write(2), so that lines of several processes on one file do
 * not mix.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum ckt_log_level ckt_log_level = CKT_LOG_WARNING;

static const char *log_name = "cricket";
static int log_fd = STDERR_FILENO;
static bool (*log_sink)(enum ckt_log_level level, const char *name, const char *line);

static const char *const level_names[] = {"quiet", "error", "warning", "info", "debug"};

int ckt_log_init(const char *name, enum ckt_log_level level, const char *file)
{
	int fd = STDERR_FILENO;
	if (file) {
		fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		if (fd < 0)
			return -errno;
	}
	log_name = name;
	log_fd = fd;
	ckt_log_level = level;
	return 0;
}

void ckt_log_init_fd(const char *name, enum ckt_log_level level, int fd)
{
	log_name = name;
	log_fd = fd;
	ckt_log_level = level;
}

void ckt_log_set_sink(bool (*put)(enum ckt_log_level level, const char *name, const char *line))
{
	log_sink = put;
}

int ckt_log_level_parse(const char *text, enum ckt_log_level *ret_level)
{
	for (unsigned i = 0; i < sizeof level_names / sizeof *level_names; i++) {
		if (strcmp(text, level_names[i]) == 0) {
			*ret_level = (enum ckt_log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

enum { LINE_SIZE = 2048 };

/* With a line's end, and without a NUL.  Its size. */
static size_t make_line(
	char line[LINE_SIZE], const char *prefix, const char *format, va_list arguments)
{
	int saved_errno = errno;
	int n = snprintf(line, LINE_SIZE, "%s", prefix);
	errno = saved_errno;
	int m = vsnprintf(line + n, LINE_SIZE - (size_t)n - 1, format, arguments);
	size_t length = (size_t)n + (m < 0 ? 0 : (size_t)m);
	if (length > LINE_SIZE - 2)
		length = LINE_SIZE - 2;
	/*
	 * A peer may have chosen parts of the line: it stays one line, and holds no commands for a
	 * terminal.
	 */
	for (size_t i = (size_t)n; i < length; i++)
		if ((unsigned char)line[i] < 32 || line[i] == 127)
			line[i] = '?';
	line[length++] = '\n';
	return length;
}

static void write_line(int fd, const char *prefix, const char *format, va_list arguments)
{
	char line[LINE_SIZE];
	int saved_errno = errno;
	size_t length = make_line(line, prefix, format, arguments);
	ssize_t written = write(fd, line, length);
	(void)written;
	errno = saved_errno;
}

/* Whether the line is written. */
static bool sink_line(enum ckt_log_level level, const char *format, va_list arguments)
{
	char line[LINE_SIZE];
	int saved_errno = errno;
	line[make_line(line, "", format, arguments) - 1] = 0;
	bool done = log_sink(level, log_name, line);
	errno = saved_errno;
	return done;
}

void ckt_log_write(enum ckt_log_level level, const char *format, ...)
{
	char prefix[128];
	struct timespec now;
	struct tm tm;
	int saved_errno = errno;
	va_list arguments;
	if (log_sink) {
		va_start(arguments, format);
		bool done = sink_line(level, format, arguments);
		va_end(arguments);
		if (done)
			return;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	snprintf(prefix, sizeof prefix, "%02d:%02d:%02d.%03ld %s[%d] %s: ", tm.tm_hour, tm.tm_min,
		tm.tm_sec, now.tv_nsec / 1000000, log_name, (int)getpid(), level_names[level]);
	errno = saved_errno;
	va_start(arguments, format);
	write_line(log_fd, prefix, format, arguments);
	va_end(arguments);
}

void ckt_log_user(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	write_line(STDERR_FILENO, "cricket: ", format, arguments);
	va_end(arguments);
}
