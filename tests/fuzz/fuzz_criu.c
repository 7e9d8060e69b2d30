/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: CRIU's responses (ctl/client/criu_message.c).  The first byte lets an
 * allocation fail, the rest is a protocol buffer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/client/criu_message.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ckt_criu_response response;
	if (!size)
		return 0;
	/* In just as many bytes, so that a read behind them is seen. */
	uint8_t *copy = malloc(size);
	memcpy(copy, data + 1, size - 1);
	fuzz_fail_allocation(data[0] < 0xf0 ? 0 : data[0] & 15);
	int result = ckt_ctl_criu_response_decode(copy, size - 1, &response);
	fuzz_fail_allocation(0);
	free(copy);
	fuzz_insist(result == 0 || result == -EPROTO, "another error");
	fuzz_insist(memchr(response.script, 0, sizeof response.script) &&
			memchr(response.message, 0, sizeof response.message),
		"a text without an end");
	fuzz_insist(response.version <= 42949672 * 100u, "a version beyond its digits");
	/* The other way: a request with the texts in it, into room that may not suffice. */
	CktCtlCriu__Request request = CKT_CTL_CRIU__REQUEST__INIT;
	CktCtlCriu__Options opts = CKT_CTL_CRIU__OPTIONS__INIT;
	uint8_t room[128];
	request.has_type = true;
	request.type = response.type;
	request.opts = &opts;
	opts.log_file = response.message;
	fuzz_insist(ckt_ctl_criu_request_encode(&request, room, sizeof room) <= sizeof room,
		"a request beyond its room");
	return 0;
}

/* ---- Fields: a key, then a number or a length and bytes */

static size_t put_number(uint8_t *to, uint64_t value)
{
	size_t at = 0;
	for (; value > 127; value >>= 7)
		to[at++] = (uint8_t)(value | 128);
	to[at++] = (uint8_t)value;
	return at;
}

static size_t put_field(uint8_t *to, unsigned *seed, unsigned depth)
{
	static const uint8_t known[] = {1, 2, 3, 4, 5, 7, 9, 10, 15, 31};
	unsigned field = known[fuzz_random(seed) % sizeof known];
	static const uint8_t number[] = {1, 2, 7};
	bool is_number = depth ? fuzz_random(seed) % 2 : memchr(number, (int)field, 3) != NULL;
	if (fuzz_random(seed) % 8 == 0) {
		/* Of a kind that fits nothing. */
		size_t at = put_number(to, field << 3 | (fuzz_random(seed) & 7));
		return at + put_number(to + at, fuzz_random(seed));
	}
	size_t at = put_number(to, field << 3 | (is_number ? 0 : 2));
	if (is_number)
		return at + put_number(to + at, fuzz_number(field, seed));
	uint8_t inner[64];
	size_t size = 0;
	if (depth == 0 && field != 9)
		size = put_field(inner, seed, 1);
	else
		for (unsigned n = fuzz_random(seed) % 48; size < n; size++)
			inner[size] = (uint8_t)('a' + size % 26);
	at += put_number(to + at, fuzz_random(seed) % 16 ? size : fuzz_random(seed));
	memcpy(to + at, inner, size);
	return at + size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	uint8_t field[128];
	size_t made = put_field(field, &seed, 0);
	if (!size || size + made > max_size || fuzz_random(&seed) % 3 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	memcpy(data + size, field, made);
	return size + made;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	static const uint8_t seed[] = {0, 0x08, 6, 0x10, 1, 0x22, 3, 0x08, 0xac, 0x02, 0x2a, 6,
		0x0a, 4, 'p', 'o', 's', 't', 0x38, 13, 0x4a, 2, 'n', 'o', 0x52, 6, 0x08, 4, 0x10, 1,
		0x20, 2};
	const char *directory = getenv("CKT_FUZZ_SEEDS");
	if (!directory)
		return 0;
	fuzz_write_seed(directory, "criu", seed, sizeof seed);
	exit(0);
}
