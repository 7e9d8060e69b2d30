/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logging, shared by every process of Cricket.  Libraries log at debug only, daemons as they need;
 * a function logs or returns an error, never both.  Never writes to stdout, keeps errno, may be
 * called from any thread.
 *
 * Levels:  error    something the user asked for could not be done
 *          warning  done, but not as asked
 *          info     what an operator wants to read once (daemons)
 *          debug    everything else
 * A client library is quiet unless CRICKET_LOG=LEVEL[:FILE] says otherwise; ckt_log_user() is for
 * the few lines a user must see.
 */
#pragma once

#include <stdbool.h>
#include <stdarg.h>

enum ckt_log_level {
	CKT_LOG_QUIET = 0,
	CKT_LOG_ERROR,
	CKT_LOG_WARNING,
	CKT_LOG_INFO,
	CKT_LOG_DEBUG
};

extern enum ckt_log_level ckt_log_level;

/*
 * name: put before every line, e.g. "cricket-server"; must outlive the process.  file: NULL for
 * stderr; opened for appending.
 */
int ckt_log_init(const char *name, enum ckt_log_level level, const char *file);
/*
 * The same on an open descriptor, which stays the caller's. The worker uses it because opening the
 * file again by its name needs rights to the file.
 */
void ckt_log_init_fd(const char *name, enum ckt_log_level level, int fd);
/*
 * From now on lines go to put() instead, without the time: name as of ckt_log_init.  If it returns
 * false, the line goes to the descriptor, too.  Set before other threads log; NULL: none.
 */
void ckt_log_set_sink(bool (*put)(enum ckt_log_level level, const char *name, const char *line));
/* "error", "warning", "info", "debug", "quiet"; -EINVAL otherwise. */
int ckt_log_level_parse(const char *text, enum ckt_log_level *ret_level);
void ckt_log_write(enum ckt_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* One line on stderr whatever the level: "cricket: ...". */
void ckt_log_user(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define ckt_log(level, ...)                                        \
	do {                                                       \
		if (__builtin_expect((level) <= ckt_log_level, 0)) \
			ckt_log_write((level), __VA_ARGS__);       \
	} while (0)
#define ckt_error(...) ckt_log(CKT_LOG_ERROR, __VA_ARGS__)
#define ckt_warning(...) ckt_log(CKT_LOG_WARNING, __VA_ARGS__)
#define ckt_info(...) ckt_log(CKT_LOG_INFO, __VA_ARGS__)
#define ckt_debug(...) ckt_log(CKT_LOG_DEBUG, __VA_ARGS__)
