/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlopen as libcricket-client.so exports it: a program that opens a library with a shim
 * (libraries.h), or one that needs such a library, gets the shim.  Under cricket-run the audit
 * module has done both already, and the call goes through untouched.
 *
 *	dlopen("/x/lib/libcublas.so.13")	-> libc's dlopen(the shim)
 *	dlopen("libtorch_cuda.so")		-> libc's dlopen(the shims of what it needs), then of itself: their SONAMEs settle the names
 *
 * libc's function is jumped to and not called, so that it sees the program as its caller: the
 * caller's run path counts.
 *
 * Threading: any thread.  What was opened for a library stays open.
 */
#pragma once

#include <stdbool.h>

/*
 * Before any library is opened; what runs earlier passes through.  Precondition:
 * ckt_patch_libraries_init.
 */
void ckt_dlopen_init(char *const *environment);
/*
 * The name to open instead of `name`, having opened what it needs.  `caller` is an address in the
 * library that calls.
 */
const char *ckt_dlopen_name(const char *name, int flags, const void *caller);
