/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the generated codecs share (rpc/gen/emit_codec.py): floating-point numbers and arrays of
 * integers.  Rules as in rpc/wire.h.
 */
#pragma once

#include "rpc/wire.h"

/* One word of an array as the message holds it. */
static inline uint32_t ckt_xdr_u32(const uint8_t *xdr, uint32_t index)
{
	uint32_t v;
	memcpy(&v, xdr + (size_t)index * 4, 4);
	return be32toh(v);
}

static inline uint64_t ckt_xdr_u64(const uint8_t *xdr, uint32_t index)
{
	uint64_t v;
	memcpy(&v, xdr + (size_t)index * 8, 8);
	return be64toh(v);
}

static inline uint8_t *ckt_codec_put_f32(uint8_t *p, float f)
{
	uint32_t v;
	memcpy(&v, &f, 4);
	return ckt_put_u32(p, v);
}

static inline uint8_t *ckt_codec_put_f64(uint8_t *p, double f)
{
	uint64_t v;
	memcpy(&v, &f, 8);
	return ckt_put_u64(p, v);
}

static inline float ckt_codec_get_f32(struct ckt_cursor *c)
{
	uint32_t v = ckt_get_u32(c);
	float f;
	memcpy(&f, &v, 4);
	return f;
}

static inline double ckt_codec_get_f64(struct ckt_cursor *c)
{
	uint64_t v = ckt_get_u64(c);
	double f;
	memcpy(&f, &v, 8);
	return f;
}

static inline uint8_t *ckt_codec_put_u32s(uint8_t *p, const uint32_t *words, uint32_t count)
{
	p = ckt_put_u32(p, count);
	for (uint32_t i = 0; i < count; i++)
		p = ckt_put_u32(p, words[i]);
	return p;
}

static inline uint8_t *ckt_codec_put_u64s(uint8_t *p, const uint64_t *words, uint32_t count)
{
	p = ckt_put_u32(p, count);
	for (uint32_t i = 0; i < count; i++)
		p = ckt_put_u64(p, words[i]);
	return p;
}

/* NULL and a count of 0 after a failure. */
static inline const uint8_t *ckt_codec_get_words(
	struct ckt_cursor *c, uint32_t max, uint32_t word_bytes, uint32_t *ret_count)
{
	uint32_t count = ckt_get_u32(c);
	*ret_count = 0;
	if (c->bad || count > max) {
		c->bad = true;
		return NULL;
	}
	const uint8_t *words = ckt_get_fixed(c, (size_t)count * word_bytes);
	if (words)
		*ret_count = count;
	return words;
}
