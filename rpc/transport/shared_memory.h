/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two byte rings in one memory file as a transport, for peers that share a kernel; see transport.h.
 *
 *	memory file:  page of counters: in, out | ring client -> worker | ring worker -> client
 *	mapping:      page of this process alone | the file
 *
 * A UNIX socket beside it is the lifeline: its end is the connection's end.  A byte on it, whatever
 * it is, wakes a peer that sleeps.  Nothing else crosses the socket, and while both peers are awake
 * nothing at all does: a read or a write is a copy.
 *
 * The worker makes the file, and sends it with the reply to a hello that offers
 * CKT_CAPABILITY_RINGS.  The reply is the last thing that it writes to the socket; what follows, in
 * both directions, goes through the rings.  No descriptor follows a hello, so write_fd refuses one.
 *
 * Whoever maps a file must be sure that it cannot shrink, or a read beyond its end would kill the
 * process (SIGBUS): the file is sealed before it is sent, and whoever gets it checks the seals.  Its
 * pages exist before it is sent, so that a lack of memory shows there and not in a later copy.
 *
 * Threading: as in transport.h, but one thread at a time may wait to read or to write, whichever
 * it is; that thread may not be beside a reader (CKT_TRANSPORT_ONE_WAITER).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/transport/transport.h"

enum {
	/* Of each ring: about a record of the largest size, and both fit into a processor's cache. */
	CKT_RINGS_BYTES = 1 << 20,
	CKT_RINGS_BYTES_MIN = 1 << 12,
	CKT_RINGS_BYTES_MAX = 1 << 26,
};

/*
 * A sealed memory file for two rings of ring_bytes, a power of two. -errno: -ENOSPC and -ENOMEM say
 * that there is no memory for it.  The caller owns *ret_fd.
 */
int ckt_shared_memory_make(uint64_t ring_bytes, int *ret_fd);
/*
 * Reserves addresses for rings of that size, for ever.  A process whose later mappings must not depend
 * on whether it has rings does so early.  NULL: there is no room.
 */
void *ckt_shared_memory_reserve(uint64_t ring_bytes);
/*
 * Maps the file, which stays the caller's and may be closed. place: reserved for this size and not in
 * use, or NULL: anywhere.  Takes the connected UNIX socket over on success alone. made: this side made the file; the peer calls this with false.  -EPROTO: the file
 * is not what ckt_shared_memory_make makes.
 */
int ckt_transport_init_shared_memory(struct ckt_transport *t, int socket_fd, int memory_fd,
	uint64_t ring_bytes, bool made, void *place);
