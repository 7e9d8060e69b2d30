/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of bytes between two processes; see ring.h. */
#include "rpc/transport/ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

static uint64_t position_of(const struct ckt_byte_ring *ring)
{
	return atomic_load_explicit(&ring->position, memory_order_relaxed);
}

ssize_t ckt_byte_ring_room(const struct ckt_byte_ring *ring)
{
	uint64_t taken = atomic_load_explicit(&ring->shared->taken, memory_order_acquire);
	uint64_t filled = position_of(ring) - taken;
	return filled > ring->size ? -EPROTO : (ssize_t)(ring->size - filled);
}

ssize_t ckt_byte_ring_filled(const struct ckt_byte_ring *ring)
{
	uint64_t written = atomic_load_explicit(&ring->shared->written, memory_order_acquire);
	uint64_t filled = written - position_of(ring);
	return filled > ring->size ? -EPROTO : (ssize_t)filled;
}

/* Whether the peer sleeps, after its counter's partner was written.  See ring.h for the fence. */
static bool must_wake(_Atomic uint32_t *sleeps)
{
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(sleeps, memory_order_relaxed) &&
		atomic_exchange_explicit(sleeps, 0, memory_order_relaxed);
}

ssize_t ckt_byte_ring_put(struct ckt_byte_ring *ring, const void *data, size_t size, bool *ret_wake)
{
	*ret_wake = false;
	ssize_t room = ckt_byte_ring_room(ring);
	if (room <= 0)
		return room;
	uint64_t position = position_of(ring);
	size_t n = size < (size_t)room ? size : (size_t)room, at = position & (ring->size - 1),
	       first = n < ring->size - at ? n : ring->size - at;
	memcpy(ring->data + at, data, first);
	memcpy(ring->data, (const uint8_t *)data + first, n - first);
	atomic_store_explicit(&ring->position, position + n, memory_order_relaxed);
	atomic_store_explicit(&ring->shared->written, position + n, memory_order_release);
	*ret_wake = must_wake(&ring->shared->reader_sleeps);
	return (ssize_t)n;
}

ssize_t ckt_byte_ring_take(struct ckt_byte_ring *ring, void *data, size_t size, bool *ret_wake)
{
	*ret_wake = false;
	ssize_t filled = ckt_byte_ring_filled(ring);
	if (filled <= 0)
		return filled;
	uint64_t position = position_of(ring);
	size_t n = size < (size_t)filled ? size : (size_t)filled, at = position & (ring->size - 1),
	       first = n < ring->size - at ? n : ring->size - at;
	memcpy(data, ring->data + at, first);
	memcpy((uint8_t *)data + first, ring->data, n - first);
	atomic_store_explicit(&ring->position, position + n, memory_order_relaxed);
	atomic_store_explicit(&ring->shared->taken, position + n, memory_order_release);
	*ret_wake = must_wake(&ring->shared->writer_sleeps);
	return (ssize_t)n;
}

static void say(_Atomic uint32_t *sleeps, bool value)
{
	atomic_store_explicit(sleeps, value, memory_order_relaxed);
	if (value)
		atomic_thread_fence(memory_order_seq_cst);
}

void ckt_byte_ring_reader_sleeps(struct ckt_byte_ring *ring, bool sleeps)
{
	say(&ring->shared->reader_sleeps, sleeps);
}

void ckt_byte_ring_writer_sleeps(struct ckt_byte_ring *ring, bool sleeps)
{
	say(&ring->shared->writer_sleeps, sleeps);
}
