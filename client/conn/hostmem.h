/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory file that holds the program's pinned memory, if the worker is on this host and shares
 * it; see rpc/hostmem.h.
 *
 *	made with the first hello over a UNIX socket --granted--> SHARED --resumed where it cannot be--> LOST, for good
 *
 * Threading: any thread.  The state changes only in ckt_host_memory_answer, which one thread at a
 * time calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/session.h"
#include "rpc/transport/transport.h"

/* The descriptor for a hello, or -1 if none is sent.  This module keeps ownership. */
int ckt_host_memory_file(void);
/*
 * Handles the reply to a hello.  True if ckt_host_memory_fill must fill the worker's copy of the
 * memory.
 */
bool ckt_host_memory_answer(const struct ckt_hello_ok *ok);
/* Whether the memory is shared now, and its addresses. */
bool ckt_host_memory_place(uint64_t *ret_base, uint64_t *ret_bytes);
/*
 * Maps the file's part [offset, offset + size) at its own address.  False if that fails, for
 * example because the program uses those addresses or the file's descriptor number.
 */
bool ckt_host_memory_map(uint64_t offset, uint64_t size);
/* Frees the addresses, and returns the file's pages to the system. */
void ckt_host_memory_unmap(uint64_t offset, uint64_t size);

/*
 * Called on LOST, without any lock and before anything is sent over the new connection: the memory is no longer
 * shared, and ckt_host_memory_fill must send its contents.  0 or -errno.
 */
extern int (*_Atomic ckt_host_memory_lost)(struct ckt_transport *to);
/* Sends one piece. 0 or -errno. size 0: the end of the contents. */
int ckt_host_memory_fill(
	struct ckt_transport *to, uint64_t address, const void *data, uint64_t size);
