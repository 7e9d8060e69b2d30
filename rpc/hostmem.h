/*
 * Pinned memory that a client and its worker share, where both are on one host.
 *
 * The client keeps all of its pinned memory in one memory file and sends the descriptor with every
 * hello over a UNIX socket (SCM_RIGHTS). A worker that can use it answers with two capabilities,
 * which name a stretch of addresses that it keeps free: the byte at offset N of the file has the
 * address base + N on both sides, and, once HOST_MAP has told the driver of it, on the GPU.
 */
#pragma once

#include <stdint.h>

#define CKT_CAPABILITY_HOST_BASE "host-base"
#define CKT_CAPABILITY_HOST_BYTES "host-bytes"

/*
 * Something is mapped of which the worker has nothing yet: after a hello without the file, or one
 * that the worker could not use.
 */
#define CKT_CAPABILITY_HOST_UNFILLED "host-unfilled"

/* What is mapped begins and ends at multiples of this. */
#define CKT_HOST_GRAIN ((uint64_t)64 << 10)
