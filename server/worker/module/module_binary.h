/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The images that a program loads as modules: PTX text, machine code, or a fat binary of several of
 * these.  The layout of fat binaries is not documented; it was read from nvcc 13.0's output and is
 * checked at every step:
 *
 *	container  u32 0xba55ed50 | u16 version 1 | u16 header size | u64 bytes of entries behind it
 *	entry      u16 kind (1 PTX, 2 machine code) | u16 | u32 header size (64 at least)
 *	           | u64 payload size | u32 compressed size | u32 | u16 minor | u16 major
 *	           | u32 capability | at 40 u64 flags | at 56 u64 uncompressed size | payload
 *	flags      0x2000: LZ4 block, 0x8000: zstd frame
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CKT_BINARY_MAGIC 0xba55ed50u
/*
 * The first word of a program's own pointer to a container, which is valid only in the program's
 * process.
 */
#define CKT_BINARY_WRAPPER_MAGIC 0x466243b1u

enum { CKT_BINARY_KIND_PTX = 1, CKT_BINARY_KIND_CODE = 2 };

/* One entry of a container, not unpacked. */
struct ckt_binary_entry {
	unsigned kind, capability;
	const uint8_t *header, *payload;
	uint64_t header_size, payload_size;
	uint64_t compressed, unpacked, flags; /* compressed: 0 if the payload is not compressed */
};

struct ckt_binary_cursor {
	const uint8_t *at, *end;
};

/* A cursor over the entries of a container; false if the container is incomplete. */
bool ckt_module_binary_open(
	const uint8_t *image, size_t size, struct ckt_binary_cursor *ret_cursor);
/* 1: the next entry; 0: there are no more; -EBADMSG: the bytes are not an entry. */
int ckt_module_binary_next(struct ckt_binary_cursor *cursor, struct ckt_binary_entry *ret_entry);
/*
 * The uncompressed payload; the caller frees it. -EBADMSG, -EFBIG if it exceeds max_bytes, or
 * -ENOMEM.
 */
int ckt_module_binary_unpack(
	const struct ckt_binary_entry *entry, uint64_t max_bytes, uint8_t **ret_data);

struct ckt_binary_part {
	enum { CKT_BINARY_OTHER, CKT_BINARY_PTX, CKT_BINARY_CODE } kind;
	unsigned capability; /* of machine code, 90 for 9.0; 0: unknown */
	const uint8_t *data; /* unpacked */
	size_t size;
};

/*
 * Calls for each part that can be unpacked; an image that is not a fat binary is one part.  0, the
 * first result of call that is not 0, or -ENOMEM.
 */
int ckt_module_binary_walk(const uint8_t *image, size_t size,
	int (*call)(void *opaque, const struct ckt_binary_part *part), void *opaque);

/*
 * Whether a GPU of that capability (90 for 9.0) can run the image.  If this cannot be determined,
 * the answer is yes, and the driver decides.
 */
bool ckt_module_binary_fits(
	const uint8_t *image, size_t size, unsigned capability, bool *ret_has_ptx);
