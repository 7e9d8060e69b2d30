/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flat coding of XDR (RFC 4506) and of the two fixed message headers (docs/wire.md).
 *
 * Encoders write where the caller has room for exactly the size that the matching _size function
 * gave, and return the end. Decoders read through a cursor that remembers the first failure: after
 * any sequence of gets, `bad` says whether all of them lay inside the message; values read after a
 * failure are zero.  Peer bytes are never trusted: every length is checked against its bound.
 */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	CKT_RECORD_MAX = (1 << 20) + 4096, /* bytes of one record, mark not counted */
	CKT_HELLO_MAX = 4096,              /* bytes of the first record of a connection */
	CKT_DATA_MAX = 1 << 20,            /* payload bytes of one data-carrying call */
	CKT_CALL_HEADER_SIZE = 72,
	CKT_REPLY_HEADER_SIZE = 40, /* up to the CUresult */
	CKT_MARK_SIZE = 4,

	CKT_AUTH_NONE = 0,
	CKT_AUTH_TLS = 7, /* RFC 9289: in a greeting: the server can begin TLS */
	CKT_AUTH_CRICKET = 0x20434b10,
	CKT_AUTH_CRICKET_TOKEN = 0x20434b11,
	CKT_AUTH_CRICKET_PROOF = 0x20434b12, /* rpc/credential.h */
	/* In a greeting: the server knows tokens, and takes them in AUTH_CRICKET_PROOF. */
	CKT_AUTH_CRICKET_NAMED = 0x20434b13,

	CKT_CUDA_PROG = 0x20434b01,
	CKT_CUDA_VERS = 1,

	/* Header flags: no reply will be sent; the program sleeps while it waits for the GPU. */
	CKT_CALL_BATCHED = 1,
	CKT_CALL_SLEEPS = 2,
	/* The client keeps the command, and wants to know its stamp (rpc/session.x). */
	CKT_CALL_STAMPED = 4,
};

/*
 * The forwarded libraries.  Each is an ONC RPC program on the session's connection. It has the
 * header, the numbering, the batching and the leading CUresult of CUDA's own program.
 */
enum ckt_lib {
	CKT_LIB_CUDA,
	CKT_LIB_CUBLAS,
	CKT_LIB_CUBLASLT,
	CKT_LIB_CUFFT,
	CKT_LIB_CUSOLVER,
	CKT_LIB_CUSPARSE,
	CKT_LIB_CURAND,
	CKT_LIB_CUDNN,
	CKT_LIB_NCCL,
	CKT_LIB_COUNT,
};

enum {
	CKT_LIB_PROG = 0x20434b20, /* plus the library's number: its program */
	CKT_LIB_VERS = 1,
	CKT_LIB_PROC_MAX = 2047, /* the highest number of a procedure */
};

/* A procedure and its library in one word; CUDA's procedures are themselves. */
#define CKT_LIB_PROC(lib, proc) ((uint32_t)(lib) << 16 | (uint32_t)(proc))

static inline uint32_t ckt_lib_prog(uint32_t lib)
{
	return lib == CKT_LIB_CUDA ? (uint32_t)CKT_CUDA_PROG : CKT_LIB_PROG + lib;
}

/* CKT_LIB_COUNT if no library has that program. */
static inline enum ckt_lib ckt_lib_of_prog(uint32_t prog)
{
	if (prog == CKT_CUDA_PROG)
		return CKT_LIB_CUDA;
	return prog > CKT_LIB_PROG && prog < CKT_LIB_PROG + CKT_LIB_COUNT
		? (enum ckt_lib)(prog - CKT_LIB_PROG)
		: CKT_LIB_COUNT;
}

struct ckt_call_header {
	uint32_t xid;
	uint32_t prog, vers, proc;
	uint64_t seq; /* 0: not numbered */
	uint64_t acked;
	uint32_t thread;
	uint32_t flags;
	uint64_t context;
};

struct ckt_reply_header {
	uint32_t xid;
	uint64_t executed;
	uint32_t flags;
	int32_t deferred;
	/*
	 * 0 SUCCESS, 1 PROG_UNAVAIL, 2 PROG_MISMATCH, 3 PROC_UNAVAIL, 4 GARBAGE_ARGS, 5 SYSTEM_ERR
	 */
	uint32_t accept_stat;
};

struct ckt_cursor {
	const uint8_t *p, *end;
	bool bad;
};

static inline uint8_t *ckt_put_u32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, 4);
	return p + 4;
}

static inline uint8_t *ckt_put_u64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, 8);
	return p + 8;
}

static inline size_t ckt_padded(size_t size_bytes)
{
	return (size_bytes + 3) & ~(size_t)3;
}

/* Bytes without a length, padded with zeros to a multiple of four. */
static inline uint8_t *ckt_put_fixed(uint8_t *p, const void *data, size_t size_bytes)
{
	if (size_bytes)
		memcpy(p, data, size_bytes);
	size_t padded = ckt_padded(size_bytes);
	memset(p + size_bytes, 0, padded - size_bytes);
	return p + padded;
}

/* Length, bytes, padding: XDR's opaque<> and string<>. */
static inline uint8_t *ckt_put_opaque(uint8_t *p, const void *data, uint32_t size_bytes)
{
	return ckt_put_fixed(ckt_put_u32(p, size_bytes), data, size_bytes);
}

static inline bool ckt_cursor_need(struct ckt_cursor *c, size_t size_bytes)
{
	if (__builtin_expect(c->bad || (size_t)(c->end - c->p) < size_bytes, 0)) {
		c->bad = true;
		return false;
	}
	return true;
}

static inline uint32_t ckt_get_u32(struct ckt_cursor *c)
{
	uint32_t v;
	if (!ckt_cursor_need(c, 4))
		return 0;
	memcpy(&v, c->p, 4);
	c->p += 4;
	return be32toh(v);
}

static inline uint64_t ckt_get_u64(struct ckt_cursor *c)
{
	uint64_t v;
	if (!ckt_cursor_need(c, 8))
		return 0;
	memcpy(&v, c->p, 8);
	c->p += 8;
	return be64toh(v);
}

/* The bytes stay in the message.  Padding must be zero, as XDR wants it. */
static inline const uint8_t *ckt_get_fixed(struct ckt_cursor *c, size_t size_bytes)
{
	size_t padded = ckt_padded(size_bytes);
	if (!ckt_cursor_need(c, padded))
		return NULL;
	const uint8_t *data = c->p;
	for (size_t i = size_bytes; i < padded; i++)
		if (data[i])
			c->bad = true;
	c->p += padded;
	return c->bad ? NULL : data;
}

/* ret_size is 0 and the result NULL after a failure.  An empty opaque gives a non-NULL pointer. */
static inline const uint8_t *ckt_get_opaque(
	struct ckt_cursor *c, uint32_t max_bytes, uint32_t *ret_size)
{
	uint32_t size = ckt_get_u32(c);
	*ret_size = 0;
	if (c->bad || size > max_bytes) {
		c->bad = true;
		return NULL;
	}
	const uint8_t *data = ckt_get_fixed(c, size);
	if (data)
		*ret_size = size;
	return data;
}

/* True if everything was read and nothing is left over. */
static inline bool ckt_cursor_done(const struct ckt_cursor *c)
{
	return !c->bad && c->p == c->end;
}

/*
 * Both write exactly CKT_CALL_HEADER_SIZE / CKT_REPLY_HEADER_SIZE bytes (no record mark, no result)
 * and return the end.
 */
uint8_t *ckt_call_header_put(uint8_t *p, const struct ckt_call_header *header);
uint8_t *ckt_reply_header_put(uint8_t *p, const struct ckt_reply_header *header);
/* Leave the cursor after the header; false (cursor bad) if the bytes are not such a header. */
bool ckt_call_header_get(struct ckt_cursor *c, struct ckt_call_header *ret_header);
bool ckt_reply_header_get(struct ckt_cursor *c, struct ckt_reply_header *ret_header);
