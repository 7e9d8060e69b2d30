/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker is deprived of before it is executed: resources and capabilities.  The worker adds
 * the rest itself (server/worker/cage).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_server;

/* By default, and with --cage auto or on; off lets a debugger of the workers' user attach. */
bool ckt_spawn_cage_is_on(const struct ckt_server *server);

/* The variable that tells the worker what to add, as NAME=VALUE. */
void ckt_spawn_cage_variable(const struct ckt_server *server, char *ret_text, size_t text_size);
/* A sentence for the log: what is in force on this host, and what it lacks. */
void ckt_spawn_cage_describe(const struct ckt_server *server, char *ret_text, size_t text_size);

/* How many processes and threads the kernel allows the workers of one user; 0: no limit.  Any process. */
uint64_t ckt_spawn_cage_processes(bool in_namespace);

/*
 * The others are for the child that becomes the worker: they allocate nothing.  They return 0, or
 * -1 and errno.
 */
/*
 * Sets the limits on resources; each has its reason in spawn_cage.c.  in_namespace: whether the
 * worker gets an id of a user namespace (user_namespace.h).
 */
int ckt_spawn_cage_limit(bool in_namespace);
/*
 * Bounds private writable memory, which a worker then cannot map (RLIMIT_DATA); memory that it shares,
 * and address space that it reserves, do not count.  0: no bound.
 */
int ckt_spawn_cage_limit_memory(uint64_t bytes);
/*
 * Empties the bounding set, as far as the server may.  Precondition: not yet the workers' user.
 * It cannot fail: no_new_privs makes the bounding set unreachable anyway.
 */
void ckt_spawn_cage_bound(void);
/* Empties the other sets.  Precondition: already the workers' user. */
int ckt_spawn_cage_drop(void);
