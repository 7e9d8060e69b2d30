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

/* The descriptor for a hello, -1 where none goes along.  It stays ours. */
int ckt_host_memory_file(void);
/*
 * What a hello was answered.  True where what the worker has of the memory is to be filled:
 * ckt_host_memory_fill.
 */
bool ckt_host_memory_answer(const struct ckt_hello_ok *ok);
/* Whether memory can be shared now, and at which addresses. */
bool ckt_host_memory_place(uint64_t *ret_base, uint64_t *ret_bytes);
/*
 * The file's part [offset, offset + size) at its own address.  False where it cannot be had: those
 * addresses or the file's number are somebody else's.
 */
bool ckt_host_memory_map(uint64_t offset, uint64_t size);
/* The addresses are free again, and the file's pages go back to the system. */
void ckt_host_memory_unmap(uint64_t offset, uint64_t size);

/*
 * Called on LOST, without any lock and before anything is sent over fd: the memory is not shared
 * any more, and what it holds is to be told with ckt_host_memory_fill.  0 or -errno.
 */
extern int (*_Atomic ckt_host_memory_lost)(int fd);
/* 0 or -errno.  size 0: that was all. */
int ckt_host_memory_fill(int fd, uint64_t address, const void *data, uint64_t size);
