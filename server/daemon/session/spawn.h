/* SPDX-License-Identifier: Apache-2.0 */
/* Starting workers. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct ckt_identity;
struct ckt_server;

/*
 * Starts a worker of this owner with listen_fd as its descriptor 3.  The worker is the one that the kernel names
 * as the other end of a later connection to that socket (SO_PEERCRED).
 */
int ckt_spawn_worker(struct ckt_server *server, const struct ckt_identity *owner, int listen_fd,
	pid_t *ret_pid, char *ret_message, size_t message_size);
