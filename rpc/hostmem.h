/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned memory that a client shares with its worker on the same host.  The client keeps all of its
 * pinned memory in one memory file and sends the descriptor with every hello over a UNIX socket
 * (SCM_RIGHTS). A worker that can use it replies with two capabilities, which name a range of
 * addresses that it keeps free: the byte at offset N of the file has the address base + N on both
 * sides, and, once HOST_MAP has registered it with the driver, on the GPU.
 */
#pragma once

#include <stdint.h>

#define CKT_CAPABILITY_HOST_BASE "host-base"
#define CKT_CAPABILITY_HOST_BYTES "host-bytes"

/*
 * Memory is mapped that the worker does not have yet: after a hello without the file, or one that
 * the worker could not use.
 */
#define CKT_CAPABILITY_HOST_UNFILLED "host-unfilled"

/* A mapped range begins and ends at multiples of this. */
#define CKT_HOST_GRAIN ((uint64_t)64 << 10)
