/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files a worker, and the process that compiles for workers, may use, as tables; all others
 * stay closed to them.
 */
#pragma once

#include <stdbool.h>

struct ckt_landlock;

/* driver: the path of its file.  network: what NCCL needs for it, too.  0 or -errno. */
int ckt_cage_paths_allow(
	struct ckt_landlock *landlock, const char *driver, bool soft, bool network);
/* The compiler's files, and all of the directory.  0 or -errno. */
int ckt_cage_paths_allow_compiler(struct ckt_landlock *landlock, const char *directory);
