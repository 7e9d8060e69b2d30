/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the generated messages (codec_messages.inc) are made of: their description, random contents,
 * and memory that lives until the end of a round.  For the tests of the coders and for the fuzzer,
 * which writes its seeds with it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/wire.h"

/*
 * One stretch of a message's bytes: fixed_bytes of them, or (0) a length and `limit` elements of
 * element_bytes at most.
 */
struct part {
	size_t fixed_bytes;
	size_t element_bytes, limit;
};

struct message {
	const char *name;
	void (*fill)(void *flat, void *x); /* the same random content for both */
	/* decoded arrays of integers into host order, for encoding again */
	void (*own)(void *flat);
	size_t (*size)(const void *flat);
	uint8_t *(*put)(uint8_t *p, const void *flat);
	bool (*get)(struct ckt_cursor *c, void *flat);
	bool_t (*xdr)(XDR *xdrs, void *x);
	size_t flat_bytes, x_bytes;
	const struct part *parts;
	unsigned part_count;
};

/* What the fillers allocate lives until the end of the round. */
static void *owned[4096];
static unsigned owned_count;

static void *own(size_t size_bytes)
{
	if (owned_count == sizeof(owned) / sizeof(owned[0]))
		abort();
	return owned[owned_count++] = calloc(1, size_bytes ? size_bytes : 1);
}

static void free_owned(void)
{
	while (owned_count)
		free(owned[--owned_count]);
}

static uint32_t random_u32(void)
{
	return (uint32_t)random() << 16 ^ (uint32_t)random();
}

static uint64_t random_u64(void)
{
	return (uint64_t)random_u32() << 32 | random_u32();
}

/*
 * Finite, so that rpcgen's routine does not meet a signalling NaN that the processor changes on the
 * way.
 */
static __attribute__((unused)) float random_float(void)
{
	return (float)(int32_t)random_u32() / 1024;
}

static __attribute__((unused)) double random_double(void)
{
	return (double)(int64_t)random_u64() / 1048576;
}

static __attribute__((unused)) void random_bytes(void *p, size_t size_bytes)
{
	for (size_t i = 0; i < size_bytes; i++)
		((uint8_t *)p)[i] = (uint8_t)random();
}

static __attribute__((unused)) uint32_t random_length(uint32_t limit)
{
	return (uint32_t)random() % (limit < 21 ? limit + 1 : 21);
}

static __attribute__((unused)) char *random_text(uint32_t length)
{
	char *text = own(length + 1);
	for (uint32_t i = 0; i < length; i++)
		text[i] = (char)(1 + random() % 255);
	return text;
}

static __attribute__((unused)) void *random_array(uint32_t count, size_t element_bytes)
{
	void *array = own(count * element_bytes);
	random_bytes(array, count * element_bytes);
	return array;
}

static __attribute__((unused)) const uint32_t *own_u32s(const uint8_t *xdr, uint32_t count)
{
	uint32_t *words = own(count * sizeof(*words));
	for (uint32_t i = 0; i < count; i++)
		words[i] = (uint32_t)xdr[4 * i] << 24 | xdr[4 * i + 1] << 16 | xdr[4 * i + 2] << 8 |
			xdr[4 * i + 3];
	return words;
}

static __attribute__((unused)) const uint64_t *own_u64s(const uint8_t *xdr, uint32_t count)
{
	uint64_t *words = own(count * sizeof(*words));
	for (uint32_t i = 0; i < count; i++)
		for (unsigned byte = 0; byte < 8; byte++)
			words[i] = words[i] << 8 | xdr[8 * i + byte];
	return words;
}
