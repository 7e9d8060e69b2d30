/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that take no signals: those are for a daemon's loop, or for the threads of the program
 * that a library serves.  Threading: any.
 */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/*
 * stack_bytes of 0: as much as the system gives.  ret_thread of NULL: the thread is detached.
 * 0 or -errno.
 */
static inline int ckt_thread_start(
	pthread_t *ret_thread, size_t stack_bytes, void *(*run)(void *context), void *context)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	int error = pthread_attr_init(&attributes);
	if (error)
		return -error;
	if (!ret_thread)
		pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (stack_bytes)
		pthread_attr_setstacksize(&attributes, stack_bytes);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(ret_thread ? ret_thread : &thread, &attributes, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -error;
}
