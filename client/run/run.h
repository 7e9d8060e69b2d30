/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricket-run: shared between its files.  Single-threaded.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/option_table.h"

struct ckt_run_options {
	const char *server; /* --server; NULL: REMOTE_GPU_ADDRESS as it is */
	bool soft;
	bool verbose;
	char **command; /* NULL-terminated */
};

enum ckt_run_option {
	RUN_OPTION_SERVER,
	RUN_OPTION_SOFT,
	RUN_OPTION_VERBOSE,
	RUN_OPTION_HELP,
	RUN_OPTION_VERSION,
	RUN_OPTIONS,
};
extern const struct ckt_option run_option_table[RUN_OPTIONS];

/* Where the libraries lie, with no slash at the end; false with a line on stderr. */
bool ckt_run_find_libraries(char ret_directory[PATH_MAX]);
/*
 * The absolute path of a program of ours, beside cricket-run or at `built` in a build tree; false
 * when it is at neither.
 */
bool ckt_run_find_program(const char *name, const char *built, char ret_path[PATH_MAX]);
/* Sets what makes the next exec end up in our libraries. */
bool ckt_run_prepare_environment(const struct ckt_run_options *options, const char *address);
/*
 * Replaces this process by the command; returns only to say with which status to exit: 127 not
 * found, 126 found but refused.
 */
int ckt_run_exec(char **command);
/* Runs the command beside a private server on the soft GPU; the status to exit with. */
int ckt_run_soft(const struct ckt_run_options *options);
void ckt_run_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
