/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a program forks, a thread that the child lacks may hold any of our locks, and nobody would
 * release it. So the child makes them new (ckt_fork_renew), before anything of it runs.  The data
 * that they protect may be half changed. The child gets no CUDA where that matters
 * (client/conn/conn.c, client/cudart/init.c), so it does not read them.
 *
 *	static CKT_LOCK(lock);			a mutex that a child gets free
 *	CKT_IN_CHILD(forked)			calls forked() in the child: for locks inside of objects, and other kinds
 *
 * Each macro puts a pointer into a section of its own, so that a library finds its own entries.
 * tests/unit/locks.py checks that no mutex is declared in another way.
 */
#pragma once

#include <pthread.h>

#define CKT_LOCK(name)                                    \
	pthread_mutex_t name = PTHREAD_MUTEX_INITIALIZER; \
	static pthread_mutex_t *const ckt_lock_##name     \
		__attribute__((section("ckt_locks"), used)) = &name
#define CKT_IN_CHILD(function)                             \
	static void (*const ckt_in_child_##function)(void) \
		__attribute__((section("ckt_in_child"), used)) = function

extern pthread_mutex_t *const __start_ckt_locks[] __attribute__((weak, visibility("hidden")));
extern pthread_mutex_t *const __stop_ckt_locks[] __attribute__((weak, visibility("hidden")));
extern void (*const __start_ckt_in_child[])(void) __attribute__((weak, visibility("hidden")));
extern void (*const __stop_ckt_in_child[])(void) __attribute__((weak, visibility("hidden")));

/* In a child of fork, on its only thread. */
static inline void ckt_fork_renew(void)
{
	for (pthread_mutex_t *const *lock = __start_ckt_locks; lock < __stop_ckt_locks; lock++)
		**lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	for (void (*const *forked)(void) = __start_ckt_in_child; forked < __stop_ckt_in_child;
		forked++)
		(*forked)();
}
