/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory file that holds the program's pinned memory, where the worker is on this host and
 * shares it; see rpc/hostmem.h.
 *
 *	made with the first hello over a UNIX socket --granted--> SHARED --resumed where it cannot be--> LOST, for good
 *
 * Threading: any; the state changes only in ckt_host_memory_answer, which one thread at a time
 * calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/session.h"

/* The descriptor for a hello, -1 if none is sent.  It stays ours. */
int ckt_host_memory_file(void);
/*
 * Handles the reply to a hello.  True if the worker's copy of the memory must be filled:
 * ckt_host_memory_fill.
 */
bool ckt_host_memory_answer(const struct ckt_hello_ok *ok);
/* Whether memory can be shared now, and its addresses. */
bool ckt_host_memory_place(uint64_t *ret_base, uint64_t *ret_bytes);
/*
 * Maps the file's part [offset, offset + size) at its own address.  False if that fails: something
 * else uses those addresses, or the file's descriptor number.
 */
bool ckt_host_memory_map(uint64_t offset, uint64_t size);
/* Frees the addresses, and returns the file's pages to the system. */
void ckt_host_memory_unmap(uint64_t offset, uint64_t size);

/*
 * Called on LOST, without any lock and before anything is sent over fd: the memory is no longer
 * shared, and ckt_host_memory_fill must send its contents.  0 or -errno.
 */
extern int (*_Atomic ckt_host_memory_lost)(int fd);
/* 0 or -errno.  size 0: the last piece. */
int ckt_host_memory_fill(int fd, uint64_t address, const void *data, uint64_t size);
