/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/cufft/number.c: numbers in memory, and their rounding. */
#include "softgpu/libs/cufft/number.h"

#include <math.h>
#include <string.h>

#include "tests/unit/suite.h"

static uint16_t rounded(enum ckt_layout_precision precision, double value)
{
	uint16_t bits = 0;
	ckt_soft_cufft_number_write(precision, true, &bits, 0, (struct ckt_complex){value, 9});
	return bits;
}

static double number(enum ckt_layout_precision precision, uint16_t bits)
{
	return ckt_soft_cufft_number_read(precision, true, &bits, 0).re;
}

/*
 * Every number of 16 bits comes back; half way to the next goes to the even one, and a little more
 * or less to the nearer.
 */
static void test_short(enum ckt_layout_precision precision, uint16_t infinity)
{
	for (unsigned bits = 0; bits < 0x8000; bits++) {
		double value = number(precision, (uint16_t)bits);
		if (bits > infinity) {
			YES(isnan(value));
			IS(rounded(precision, value), 0x7fff);
			continue;
		}
		IS(rounded(precision, value), bits);
		IS(rounded(precision, -value), bits | 0x8000);
		if (bits + 1 >= infinity)
			continue;
		double next = number(precision, (uint16_t)(bits + 1)), middle = (value + next) / 2;
		IS(rounded(precision, middle), bits & 1 ? bits + 1 : bits);
		IS(rounded(precision, nextafter(middle, 0)), bits);
		IS(rounded(precision, nextafter(middle, INFINITY)), bits + 1);
	}
	YES(isinf(number(precision, infinity)));
}

static void test_half(void)
{
	test_short(CKT_HALF, 0x7c00);
	IS(rounded(CKT_HALF, 1), 0x3c00);
	IS(rounded(CKT_HALF, 65519), 0x7bff);
	IS(rounded(CKT_HALF, 65520), 0x7c00);
	IS(rounded(CKT_HALF, -1e300), 0xfc00);
}

static void test_brain(void)
{
	test_short(CKT_BRAIN, 0x7f80);
	IS(rounded(CKT_BRAIN, 1), 0x3f80);
	IS(rounded(CKT_BRAIN, 1e300), 0x7f80);
	IS(rounded(CKT_BRAIN, -1e300), 0xff80);
}

static void test_complex(void)
{
	static const size_t sizes[] = {2, 2, 4, 8};
	unsigned char memory[64];
	for (enum ckt_layout_precision p = CKT_HALF; p <= CKT_DOUBLE; p++) {
		IS(ckt_soft_cufft_number_size(p, true), sizes[p]);
		IS(ckt_soft_cufft_number_size(p, false), 2 * sizes[p]);
		memset(memory, 0xee, sizeof memory);
		ckt_soft_cufft_number_write(p, false, memory, 2, (struct ckt_complex){1.5, -0.25});
		struct ckt_complex back = ckt_soft_cufft_number_read(p, false, memory, 2);
		YES(back.re == 1.5 && back.im == -0.25);
		YES(ckt_soft_cufft_number_read(p, true, memory, 5).re == -0.25 &&
			ckt_soft_cufft_number_read(p, true, memory, 5).im == 0);
		IS(memory[4 * sizes[p] - 1], 0xee);
		if (6 * sizes[p] < sizeof memory)
			IS(memory[6 * sizes[p]], 0xee);
	}
	float single;
	ckt_soft_cufft_number_write(CKT_SINGLE, true, &single, 0, (struct ckt_complex){0.1, 0});
	YES(single == 0.1f);
}

UNIT_SUITE(number, {"half", test_half}, {"bfloat16", test_brain}, {"complex", test_complex})
