/* SPDX-License-Identifier: Apache-2.0 */
/* Starting workers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ckt_server;

/* Whether the workers' user may read all these files. */
bool ckt_spawn_user_reads(const struct ckt_server *server, const char *const *files, size_t count);
int ckt_spawn_find_user(struct ckt_server *server, char *ret_message, size_t message_size);
/* Whether that user could execute the worker and read the driver. */
int ckt_spawn_check(struct ckt_server *server, char *ret_message, size_t message_size);
/*
 * Starts a worker with listen_fd as its descriptor 3.  The worker is the one that the kernel names
 * as the other end of a later connection to that socket (SO_PEERCRED).
 */
int ckt_spawn_worker(struct ckt_server *server, int listen_fd, pid_t *ret_pid, char *ret_message,
	size_t message_size);
