/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a worker may use, as tables; all others stay closed to it. */
#pragma once

#include <stdbool.h>

struct ckt_landlock;

/* driver: the path of its file.  0 or -errno. */
int ckt_cage_paths_allow(struct ckt_landlock *landlock, const char *driver, bool soft);
