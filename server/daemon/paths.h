/* SPDX-License-Identifier: Apache-2.0 */
/* Where things of the server's lie. */
#pragma once

#include "server/daemon/server.h"

int ckt_paths_find_worker(char ret_path[CKT_PATH_MAX]);
int ckt_paths_find_replicator(char ret_path[CKT_PATH_MAX]);
int ckt_paths_find_soft(char ret_path[CKT_PATH_MAX]);
int ckt_paths_find_inside(char ret_path[CKT_PATH_MAX]);

/* Makes the missing directories above a file (0755). */
int ckt_paths_make_parent(const char *path);
