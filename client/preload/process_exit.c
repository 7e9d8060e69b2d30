/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _exit and _Exit, as libcricket-client.so exports them; see process_exit.h.  A raw exit_group, and
 * libc's own exit at the end of exit(), do not come here.
 */
#include "client/preload/process_exit.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

__attribute__((visibility("protected"))) void (*_Atomic cricket_at_exit)(void);

static void (*next)(int status);

/* Sanitizers have an _exit, too, and say there what they found. */
__attribute__((constructor)) static void resolve(void)
{
	int saved = errno;
	next = (void (*)(int))dlsym(RTLD_NEXT, "_exit");
	errno = saved;
}

EXPORT void _exit(int status)
{
	void (*at_exit)(void) = cricket_at_exit;
	if (at_exit)
		at_exit();
	if (next)
		next(status);
	/* Before the constructor. */
	for (;;)
		syscall(SYS_exit_group, status);
}

EXPORT void _Exit(int status)
{
	_exit(status);
}
