/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user that workers run as: who it is, whether it can run a worker, and becoming it.  One
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ckt_server;
struct ckt_worker_user;

/*
 * Fills server->user.  0 with a warning or an empty text, or -errno and a sentence.
 */
int ckt_spawn_find_user(struct ckt_server *server, char *ret_message, size_t message_size);
/* Whether that user could execute the worker and read the driver. */
int ckt_spawn_check(struct ckt_server *server, char *ret_message, size_t message_size);
/* Whether that user may read all these files. */
bool ckt_spawn_user_reads(const struct ckt_server *server, const char *const *files, size_t count);
/* For a child of the server's: there is no way back.  0 or -errno. */
int ckt_spawn_become_user(const struct ckt_worker_user *user);
