/* SPDX-License-Identifier: Apache-2.0 */
/* A stream that mutates what rpcgen's routines read; see mutate_xdr.h. */
#include "tests/fuzz/mutate_xdr.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT = 4, ATTEMPTS = 4, BYTES_AT_ONCE_MAX = 1 << 16 };

struct stream {
	const uint8_t *in, *in_end;
	uint8_t *out, *out_begin, *out_end;
	unsigned seed;
	unsigned odds; /* one of so many units is changed; 0: none */
};

static struct stream *stream_of(XDR *xdrs)
{
	return (struct stream *)(void *)xdrs->x_private;
}

static bool changes(struct stream *s)
{
	return s->odds && fuzz_random(&s->seed) % s->odds == 0;
}

/* What a value made up begins with: mostly small, so that lists stay short. */
static uint32_t made_up(struct stream *s)
{
	uint32_t r = fuzz_random(&s->seed);
	return r & 0x300 ? r & 3 : fuzz_number(r & 15, &s->seed);
}

/*
 * A unit may be the length of a list, and the routine takes memory for all of it before it sees
 * that there is nothing behind it: seldom so much that it takes long.
 */
static uint32_t affordable(struct stream *s, uint32_t unit)
{
	bool large = unit > 1 << 12 && unit <= 1 << 24;
	return large && fuzz_random(&s->seed) % 16 ? unit & 0xfff : unit;
}

static bool_t get_unit(XDR *xdrs, uint32_t *ret_unit)
{
	struct stream *s = stream_of(xdrs);
	uint32_t unit;
	if (s->out_end - s->out < UNIT)
		return FALSE;
	if (s->in_end - s->in >= UNIT) {
		memcpy(&unit, s->in, UNIT);
		unit = ntohl(unit);
		s->in += UNIT;
		if (changes(s))
			unit = affordable(s, fuzz_number(unit, &s->seed));
	} else {
		s->in = s->in_end;
		unit = affordable(s, made_up(s));
	}
	*ret_unit = unit;
	unit = htonl(unit);
	memcpy(s->out, &unit, UNIT);
	s->out += UNIT;
	return TRUE;
}

static bool_t get_long(XDR *xdrs, long *ret_value)
{
	uint32_t unit = 0;
	bool_t good = get_unit(xdrs, &unit);
	*ret_value = (int32_t)unit;
	return good;
}

static bool_t get_bytes(XDR *xdrs, char *ret_bytes, u_int size)
{
	struct stream *s = stream_of(xdrs);
	if (size > (size_t)(s->out_end - s->out) || size > BYTES_AT_ONCE_MAX)
		return FALSE;
	size_t have = (size_t)(s->in_end - s->in), taken = size < have ? size : have;
	if (taken)
		memcpy(ret_bytes, s->in, taken);
	s->in += taken;
	for (size_t i = taken; i < size; i++)
		ret_bytes[i] = (char)(fuzz_random(&s->seed) & 0x7f);
	if (size && changes(s))
		ret_bytes[fuzz_random(&s->seed) % size] = (char)fuzz_random(&s->seed);
	memcpy(s->out, ret_bytes, size);
	s->out += size;
	return TRUE;
}

static bool_t put_nothing_long(XDR *xdrs, const long *value)
{
	(void)xdrs, (void)value;
	return FALSE;
}

static bool_t put_nothing(XDR *xdrs, const char *bytes, u_int size)
{
	(void)xdrs, (void)bytes, (void)size;
	return FALSE;
}

static u_int get_position(XDR *xdrs)
{
	struct stream *s = stream_of(xdrs);
	return (u_int)(s->out - s->out_begin);
}

static bool_t set_position(XDR *xdrs, u_int position)
{
	(void)xdrs, (void)position;
	return FALSE;
}

/* Never: the routine then asks for one unit after the other. */
static int32_t *in_line(XDR *xdrs, u_int size)
{
	(void)xdrs, (void)size;
	return NULL;
}

static void destroy(XDR *xdrs)
{
	(void)xdrs;
}

static bool_t control(XDR *xdrs, int request, void *data)
{
	(void)xdrs, (void)request, (void)data;
	return FALSE;
}

static bool run(xdrproc_t xdr, size_t value_bytes, struct stream *s)
{
	static struct xdr_ops ops = {.x_getlong = get_long,
		.x_putlong = put_nothing_long,
		.x_getbytes = get_bytes,
		.x_putbytes = put_nothing,
		.x_getpostn = get_position,
		.x_setpostn = set_position,
		.x_inline = in_line,
		.x_destroy = destroy,
		.x_control = control};
	XDR xdrs = {.x_op = XDR_DECODE, .x_ops = &ops, .x_private = s};
	void *value = calloc(1, value_bytes ? value_bytes : 1);
	bool good = value && ((bool_t(*)(XDR *, void *))xdr)(&xdrs, value);
	if (value)
		xdr_free(xdr, value);
	free(value);
	return good;
}

size_t fuzz_mutate_xdr(xdrproc_t xdr, size_t value_bytes, const uint8_t *data, size_t size,
	uint8_t *out, size_t out_size, unsigned seed)
{
	struct stream s = {.out_begin = out, .out_end = out + out_size, .seed = seed};
	s.odds = 2u << fuzz_random(&s.seed) % 7;
	for (unsigned attempt = 0;; attempt++) {
		s.in = data;
		s.in_end = data + size;
		s.out = out;
		if (run(xdr, value_bytes, &s) || attempt == ATTEMPTS)
			break;
		/* A bound was broken, which is worth keeping now and then. */
		if (fuzz_random(&s.seed) % 8 == 0)
			break;
		s.odds *= 2;
	}
	return (size_t)(s.out - out);
}
