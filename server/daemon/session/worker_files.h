/* SPDX-License-Identifier: Apache-2.0 */
/* Files that workers read, where every user reaches them. */
#pragma once

#include <stddef.h>

#include "server/daemon/server.h"

/*
 * Precondition: root.  Copies the file to a place that every user reaches and replaces the path. 0
 * or -errno.
 */
int ckt_daemon_files_copy(char path[CKT_PATH_MAX]);
/* The same for files that need one another: copies all into one directory. */
int ckt_daemon_files_copy_together(
	const char *const *files, size_t count, char ret_directory[CKT_PATH_MAX]);
