/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libcuda.so.1 offers the preloaded library: memory of the program that the kernel cannot use
 * as it is, because its pages are closed until the program touches them
 * (client/cuda/memory/managed.c).  A system call does not fault but fails, so the preloaded library
 * asks before it makes one (system_calls.c).
 *
 * Nothing here touches errno, and nothing allocates where `holds` says false.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ckt_buffers {
	/*
	 * Whether any of the bytes are such memory.  Takes no lock: for signal handlers and
	 * children of vfork, too.
	 */
	bool (*holds)(const void *address, size_t size);
	/*
	 * Lets the kernel read the bytes (write: also write them) and gives the address that it
	 * should use: another one of the same memory, which stays open whatever the GPU is given
	 * meanwhile, or the same where the bytes do not lie in one piece of it.
	 */
	void *(*open)(void *address, size_t size, bool write);
	/* The kernel wrote these bytes. */
	void (*written)(void *address, size_t size);
};

/*
 * The preloaded library's; libcuda.so.1 fills it in once there is such memory.  The one name of
 * ours that leaves a library.
 */
extern const struct ckt_buffers *_Atomic cricket_buffers;
