/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every message of the CUDA program: the flat coder's bytes equal those of rpcgen's routine,
 * decoding gives back what went in, and no truncated, over-long or ill-padded message is accepted.
 * Messages lie in heap buffers of their exact size, so that the address sanitizer sees every byte
 * read too many.  What the messages are comes from the generator (CODEC_MESSAGES): this file is
 * built for the real table and for the fixture.
 */
#include <rpc/rpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CUnit/Basic.h>

#include "rpc/wire.h"
#include "tests/unit/rpcgen/messages.h"

enum { ROUNDS = 20, CUT_MAX = 512 };

#include CODEC_MESSAGES

static const struct message *current; /* for failure messages */

static void check(bool good, const char *what)
{
	if (!good)
		fprintf(stderr, "\n%s: %s\n", current->name, what);
	CU_ASSERT_TRUE(good);
}

/* Decodes exactly these bytes from a buffer that ends with them. */
static bool accepts(const uint8_t *bytes, size_t size_bytes, void *flat)
{
	uint8_t *exact = own(size_bytes);
	memcpy(exact, bytes, size_bytes);
	struct ckt_cursor cursor = {exact, exact + size_bytes, false};
	return current->get(&cursor, flat);
}

static void round_trip(void)
{
	void *flat = own(current->flat_bytes), *x = own(current->x_bytes),
	     *back = own(current->flat_bytes);
	current->fill(flat, x);
	size_t size = current->size(flat);
	uint8_t *bytes = own(size), *again = own(size);
	check(current->put(bytes, flat) == bytes + size,
		"the encoder's end is not what _size said");

	uint8_t *theirs = own(size + 64);
	XDR xdrs;
	xdrmem_create(&xdrs, (char *)theirs, (unsigned)size + 64, XDR_ENCODE);
	check(current->xdr(&xdrs, x), "rpcgen's routine does not encode it");
	check(xdr_getpos(&xdrs) == size && memcmp(bytes, theirs, size) == 0,
		"the bytes differ from rpcgen's");
	xdr_destroy(&xdrs);

	check(accepts(bytes, size, back), "its own bytes are refused");
	current->own(back);
	check(current->size(back) == size && current->put(again, back) == again + size &&
			memcmp(again, bytes, size) == 0,
		"decoding and encoding again changes it");

	void *waste = own(current->flat_bytes);
	for (size_t cut = 0; cut < size && cut < CUT_MAX; cut++)
		check(!accepts(bytes, cut, waste), "a truncated message is accepted");
	uint8_t *longer = own(size + 4);
	memcpy(longer, bytes, size);
	check(!accepts(longer, size + 4, waste), "a message with something behind it is accepted");
}

static void test_round_trips(void)
{
	srandom(1);
	for (unsigned i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		current = &messages[i];
		for (unsigned round = 0; round < ROUNDS; round++) {
			round_trip();
			free_owned();
		}
	}
}

/*
 * A message of zeros whose part `at` has this many elements, with its length field saying `length`;
 * ret_tail: where the elements end.
 */
static uint8_t *built(
	unsigned at, uint32_t length, size_t elements, size_t *ret_size, size_t *ret_tail)
{
	size_t size = 0, place = 0;
	for (unsigned i = 0; i < current->part_count; i++) {
		const struct part *part = &current->parts[i];
		if (i == at)
			place = size;
		size += part->fixed_bytes
			? part->fixed_bytes
			: 4 + (i == at ? ckt_padded(elements * part->element_bytes) : 0);
	}
	uint8_t *bytes = own(size);
	ckt_put_u32(bytes + place, length);
	*ret_size = size;
	*ret_tail = place + 4 + elements * current->parts[at].element_bytes;
	return bytes;
}

static void test_limits(void)
{
	for (unsigned i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		current = &messages[i];
		void *waste = own(current->flat_bytes);
		for (unsigned at = 0; at < current->part_count; at++) {
			const struct part *part = &current->parts[at];
			if (part->fixed_bytes)
				continue;
			size_t size, tail;
			uint8_t *bytes =
				built(at, (uint32_t)part->limit, part->limit, &size, &tail);
			check(accepts(bytes, size, waste), "a field at its limit is refused");
			bytes = built(at, (uint32_t)part->limit + 1, part->limit + 1, &size, &tail);
			check(!accepts(bytes, size, waste), "a field over its limit is accepted");
			bytes = built(at, UINT32_MAX, 0, &size, &tail);
			check(!accepts(bytes, size, waste), "a length of 2^32 - 1 is accepted");
			bytes = built(at, (uint32_t)part->limit, 0, &size, &tail);
			check(!accepts(bytes, size, waste),
				"a length without its bytes is accepted");
			if (part->element_bytes == 1) {
				bytes = built(at, 1, 1, &size, &tail);
				bytes[tail] = 1;
				check(!accepts(bytes, size, waste),
					"padding that is not zero is accepted");
			}
		}
		free_owned();
	}
}

int main(void)
{
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	CU_pSuite suite = CU_add_suite("codec", NULL, NULL);
	CU_add_test(suite, "round trips, rpcgen's bytes, truncations", test_round_trips);
	CU_add_test(suite, "limits, lengths and padding", test_limits);
	CU_basic_run_tests();
	return CU_get_number_of_failures() > 0 || CU_get_number_of_tests_run() == 0;
}
