/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of libcuda.so.1 for the preloaded library.  They handle memory of the program that the
 * kernel cannot access, because its pages are protected until the program touches them
 * (client/cuda/memory/managed.c).  A system call does not fault on such memory but fails.  So the
 * preloaded library calls these functions before a system call (system_calls.c).
 *
 * No function changes errno, and nothing is allocated if `holds` returns false.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ckt_buffers {
	/*
	 * Whether any of the bytes are such memory.  Takes no lock, because signal handlers and
	 * children of vfork also call it.
	 */
	bool (*holds)(const void *address, size_t size);
	/*
	 * Lets the kernel read the bytes (write: also write them) and returns the address to use.
	 * This is another address of the same memory, which stays accessible whatever the GPU uses
	 * meanwhile.  If the bytes are not in one piece of such memory, the result is the same
	 * address.
	 */
	void *(*open)(void *address, size_t size, bool write);
	/* Reports that the kernel wrote these bytes. */
	void (*written)(void *address, size_t size);
};

/*
 * Owned by the preloaded library; libcuda.so.1 sets it when such memory exists.
 * libcricket-client.so exports this name.
 */
extern const struct ckt_buffers *_Atomic cricket_buffers;
