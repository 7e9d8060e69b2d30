/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cage of a worker: what it deprives itself of before it hears of its session.  The server has
 * begun (server/daemon/session/spawn_cage.h), and says in CRICKET_CAGE what is left to do:
 *
 *	CRICKET_CAGE=soft:PATH      or nvidia:PATH, with the driver's file
 *	CRICKET_CAGE=soft+network:PATH   or nvidia+network:PATH: the network stays open, which is the host's
 *	CRICKET_CAGE=soft+group:PATH     or nvidia+group:PATH: likewise, but it is the group's
 *
 *	CRICKET_CAGE=none           nothing
 *	CRICKET_CAGE=off            nothing, and a debugger of the same user may attach
 *
 * Without the variable, as when a worker is started by hand, there is no cage either.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether others may trace this process: --cage off. */
bool ckt_cage_is_off(void);
/* The driver's file, if there is a cage to enter; else NULL. */
const char *ckt_cage_driver(void);

/* Whether the host's network stays open to this process, also without a cage. */
bool ckt_cage_has_network(void);

/*
 * Whether the process has as many filters of system calls as this one, which is in its cage: so it
 * is a worker, and not the server, which has fewer.  False where the kernel does not count them
 * (before 5.9), or if this process entered no filter.  Any thread.
 */
bool ckt_cage_has_peer(int pid);

/*
 * refused: the socket that gets the descriptor of refused system calls (see
 * rpc/worker_descriptors.h), closed in every case; what is no such socket is left alone, and the
 * kernel then refuses by itself.  Precondition: one thread, no_new_privs.  0, also where the host
 * offers nothing; or -errno and a sentence: the worker must not continue then.
 */
int ckt_cage_enter(int refused, char *ret_message, size_t message_size);
