/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All CRICKET_* variables, to check a user's spelling and to generate the manual pages. Any thread;
 * no errors.
 */
#pragma once

#include <stddef.h>

struct ckt_environment_variable {
	const char *name;
	const char *description; /* one line */
};

extern const struct ckt_environment_variable ckt_environment_variables[];
extern const size_t ckt_environment_variables_count;

/*
 * The first variable in `environment` at or after *cursor whose name starts with CRICKET_ and is
 * not known, or NULL.  The result points at "NAME=value" inside the environment; *cursor starts at
 * 0.
 */
const char *ckt_environment_unknown(char *const *environment, size_t *cursor);
/*
 * Names each unknown variable on stderr, once in a process.  The client calls it when it opens its
 * first connection.
 */
void ckt_environment_check(void);
