/* SPDX-License-Identifier: Apache-2.0 */
/* Which file a process writes its trace to.  Threading: one thread. */
#pragma once

#include <stddef.h>

/*
 * Puts the process's id in place of each %p.  0, or -ENAMETOOLONG.
 */
int ckt_trace_path_expand(const char *pattern, int pid, char *ret_path, size_t size);
/*
 * Opens the file for this process alone and empties it.  If a living process has it, opens
 * PATH.PID instead, which ret_path then names.  A descriptor, or -errno.
 */
int ckt_trace_file_open(const char *pattern, int pid, char *ret_path, size_t size);
