/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of bytes in memory that two processes share: one of them writes, the other one reads.
 *
 *	struct ckt_ring_shared   written | taken | reader_sleeps | writer_sleeps   (a cache line each)
 *	data[size]               byte n of the stream lies at n % size
 *
 *	taken <= written <= taken + size: the bytes in between are the reader's
 *
 * Counters only grow.  Each side keeps its own counter in its own memory, and only tells the peer:
 * what the peer writes over it in the shared memory changes nothing.  The peer's counter is
 * checked at each use, and bytes are copied out of the ring once, before anybody looks at them.
 *
 * A side that finds nothing to do says that it sleeps, looks once more, and then sleeps; the other
 * side moves bytes, and then looks whether its peer sleeps:
 *
 *	sleeper: sleeps = 1; fence; read the peer's counter        peer: write the counter; fence; read sleeps
 *
 * Both fences are sequentially consistent, so at least one of the two sees what the other one
 * wrote: the sleeper sees the bytes, or the peer sees the sleeper.
 *
 * Threading: one thread reads while another one writes.  Errors: -EPROTO, the peer's counter is
 * impossible.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CKT_RING_LINE = 64 };

struct ckt_ring_shared {
	_Alignas(CKT_RING_LINE) _Atomic uint64_t written;
	_Alignas(CKT_RING_LINE) _Atomic uint64_t taken;
	_Alignas(CKT_RING_LINE) _Atomic uint32_t reader_sleeps;
	_Alignas(CKT_RING_LINE) _Atomic uint32_t writer_sleeps;
};

/* One side of a ring.  The memory is the caller's. */
struct ckt_byte_ring {
	struct ckt_ring_shared *shared;
	uint8_t *data;
	size_t size; /* a power of two */
	/* The own counter.  Another thread of this side may look whether there is something to do. */
	_Atomic uint64_t position;
};

/*
 * The writer's and the reader's: moves what there is room for, or what is there: 0 to size bytes.
 * *ret_wake: the peer slept, and the caller must wake it; it is told so once.
 */
ssize_t ckt_byte_ring_put(
	struct ckt_byte_ring *ring, const void *data, size_t size, bool *ret_wake);
ssize_t ckt_byte_ring_take(struct ckt_byte_ring *ring, void *data, size_t size, bool *ret_wake);
/* How many bytes the writer may put, or the reader may take. */
ssize_t ckt_byte_ring_room(const struct ckt_byte_ring *ring);
ssize_t ckt_byte_ring_filled(const struct ckt_byte_ring *ring);
/* Says that the reader, or the writer, is about to sleep.  It must look again before it does. */
void ckt_byte_ring_reader_sleeps(struct ckt_byte_ring *ring, bool sleeps);
void ckt_byte_ring_writer_sleeps(struct ckt_byte_ring *ring, bool sleeps);
