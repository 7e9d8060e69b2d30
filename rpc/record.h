/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records: the record mark of ONC RPC over a stream (RFC 5531, section 11), and whole records over
 * a transport.
 *
 *	mark (4 bytes, big endian)        | data
 *	bit 31: last fragment, always set | bits 30..0: bytes that follow
 *
 * Errors: 0 or -errno; -EPROTO for bytes that are not a record, -EMSGSIZE for a record above the
 * given bound, -ETIMEDOUT.  Threading: as the transport.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/transport/transport.h"
#include "rpc/wire.h"

/* Writes the mark of a record of `size` bytes; returns where its data begin. */
static inline uint8_t *ckt_mark_put(uint8_t *p, size_t size)
{
	return ckt_put_u32(p, UINT32_C(0x80000000) | (uint32_t)size);
}

/* Bytes of the record whose mark is at p.  For marks of our own. */
static inline size_t ckt_mark_size(const uint8_t *p)
{
	struct ckt_cursor mark = {.p = p, .end = p + CKT_MARK_SIZE};
	return ckt_get_u32(&mark) & UINT32_C(0x7fffffff);
}

/* The same for a peer's mark.  Refuses fragments, which no peer of ours sends. */
static inline int ckt_mark_get(const uint8_t *p, size_t max_bytes, size_t *ret_size)
{
	size_t size = ckt_mark_size(p);
	if (!(*p & 0x80))
		return -EPROTO;
	if (size > max_bytes)
		return -EMSGSIZE;
	*ret_size = size;
	return 0;
}

/*
 * The parts of a record that remain after `sent` bytes, mark included; returns their number.
 * Copies nothing.
 */
size_t ckt_record_parts(const uint8_t mark[CKT_MARK_SIZE], const uint8_t *data, size_t size,
	size_t sent, struct iovec ret_parts[2]);

/*
 * deadline_ms: CLOCK_MONOTONIC milliseconds; -1 for none.  *ret_data is malloc'd, the caller frees
 * it.  ret_fd (may be NULL) gets a descriptor that came along, or -1.
 */
int ckt_record_read(struct ckt_transport *t, size_t max_bytes, int64_t deadline_ms,
	uint8_t **ret_data, size_t *ret_size, int *ret_fd);
/* pass_fd: -1 for none; stays the caller's. */
int ckt_record_write(struct ckt_transport *t, const uint8_t *data, size_t size, int64_t deadline_ms,
	int pass_fd);
