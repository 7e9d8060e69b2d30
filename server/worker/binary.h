/*
 * What a program hands over as a module: PTX text, machine code, or a fat binary of several of these.  The fat binary's layout is not
 * documented; read off nvcc 13.0's output and checked at every step:
 *
 *	container  u32 0xba55ed50 | u16 version 1 | u16 header size | u64 bytes of entries behind it
 *	entry      u16 kind (1 PTX, 2 machine code) | u16 | u32 header size (64 at least) | u64 payload size | u32 compressed size | u32 |
 *	           u16 minor | u16 major | u32 capability | at 40 u64 flags | at 56 u64 uncompressed size | payload
 *	flags      0x2000: LZ4 block, 0x8000: zstd frame
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_binary_part {
	enum { CKT_BINARY_OTHER, CKT_BINARY_PTX, CKT_BINARY_CODE } kind;
	unsigned capability;	/* of machine code, 90 for 9.0; 0: not known */
	const uint8_t *data;	/* unpacked */
	size_t size;
};

/*
 * Calls for each part that can be unpacked; what does not look like a fat binary is one part.  0, the first result of call that is not
 * 0, or -ENOMEM.
 */
int ckt_binary_walk(const uint8_t *image, size_t size, int (*call)(void *opaque, const struct ckt_binary_part *part), void *opaque);

/* Whether a GPU of that capability (90 for 9.0) can run the image.  What cannot be told counts as yes: the driver decides. */
bool ckt_binary_fits(const uint8_t *image, size_t size, unsigned capability, bool *ret_has_ptx);
