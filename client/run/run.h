/* SPDX-License-Identifier: Apache-2.0 */
/* cricket-run: declarations shared between its files.  Single-threaded. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/option_table.h"

struct ckt_run_options {
	const char *server;        /* --server; NULL: REMOTE_GPU_ADDRESS is not changed */
	const char *place;         /* --place; NULL: all servers are used */
	const char *replay_memory; /* --replay-memory; NULL: the environment says */
	bool soft;
	bool verbose;
	char **command; /* NULL-terminated */
};

enum ckt_run_option {
	RUN_OPTION_SERVER,
	RUN_OPTION_PLACE,
	RUN_OPTION_REPLAY_MEMORY,
	RUN_OPTION_SOFT,
	RUN_OPTION_VERBOSE,
	RUN_OPTION_HELP,
	RUN_OPTION_VERSION,
	RUN_OPTIONS,
};
extern const struct ckt_option run_option_table[RUN_OPTIONS];

/* The directory of the libraries, without a slash at the end.  False after one line on stderr. */
bool ckt_run_find_libraries(char ret_directory[PATH_MAX]);
/*
 * The absolute path of one of Cricket's programs: beside cricket-run, or at `built` in a build
 * tree.  False if it is in neither place.
 */
bool ckt_run_find_program(const char *name, const char *built, char ret_path[PATH_MAX]);
/* Sets the environment so that the next exec loads our libraries. */
bool ckt_run_prepare_environment(const struct ckt_run_options *options, const char *address);
/*
 * Replaces this process by the command.  Returns only on failure, with the exit status: 127 not
 * found, 126 found but refused.
 */
int ckt_run_exec(char **command);
/*
 * Chooses one of the servers, separated by commas (NULL: those of REMOTE_GPU_ADDRESS), for a new
 * program.  False after a line on stderr.
 */
bool ckt_run_place(const char *policy, const char *servers, char *ret_address, size_t size);
/* Runs the command beside a private server on the soft GPU; returns the exit status. */
int ckt_run_soft(const struct ckt_run_options *options);
void ckt_run_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
