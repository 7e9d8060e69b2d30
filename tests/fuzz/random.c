/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for mutators; see fuzz.h. */
#include "tests/fuzz/fuzz.h"

/* xorshift: the same on every machine for the same seed. */
uint32_t fuzz_random(unsigned *seed)
{
	uint32_t x = *seed ? *seed : 0x9e3779b9u;
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return *seed = x;
}

uint32_t fuzz_number(uint32_t old, unsigned *seed)
{
	uint32_t r = fuzz_random(seed);
	switch (r >> 8 & 15) {
	case 0:
		return old + 1;
	case 1:
		return old - 1;
	case 2:
		return old ^ 1u << (r & 31);
	case 3:
		return 1u << (r & 31);
	case 4:
		return UINT32_MAX - (r & 3);
	case 5:
		return fuzz_random(seed);
	case 6:
		return INT32_MAX + (r & 3) - 1;
	default:
		return r & 7;
	}
}
