/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's driver API as the soft GPU exports it.
 *
 * The soft GPU's driver runs everything on the CPU.  Device memory is memory of this process, and a
 * device address is the address itself.  Handles are not pointers but numbers that are never used
 * twice, so a stale one is noticed.  Threading: every API function may be called from any thread;
 * each object says which lock guards it.  Order of locks: device, context, stream, event, object
 * table, memory table; a later one may be taken under an earlier one, never the reverse.  Errors:
 * CUresult everywhere, as data.  Nothing happens at load time; threads are made by the first work
 * that needs one.
 */
#pragma once

/*
 * The version script decides what is exported, but it can only choose among what the compiler did
 * not hide: so this comes before any other header that includes cuda.h.
 */
#pragma GCC visibility push(default)
#include <cuda.h>
#include <cudaProfiler.h>
#pragma GCC visibility pop
