/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlopen as libcricket-client.so exports it.  A program that opens a library with a shim
 * (libraries.h), or one that needs such a library, gets the shim.  Under cricket-run the audit
 * module has already done this, and the call passes through unchanged.
 *
 *	dlopen("/x/lib/libcublas.so.13")	-> libc's dlopen(the shim)
 *	dlopen("libtorch_cuda.so")		-> libc's dlopen(the shims of what it needs), then of itself: it finds their SONAMEs loaded
 *
 * The code jumps to libc's function and does not call it, so that libc sees the program as its
 * caller. libc needs the caller's run path.
 *
 * Threading: any thread.  Shims that were opened for a library stay open.
 */
#pragma once

#include <stdbool.h>

/*
 * Call before any library is opened; earlier calls of dlopen pass through.  Precondition:
 * ckt_patch_libraries_init.
 */
void ckt_dlopen_init(char *const *environment);
/*
 * The name to open instead of `name`, after opening the shims that it needs.  `caller` is an
 * address in the calling library.
 */
const char *ckt_dlopen_name(const char *name, int flags, const void *caller);
