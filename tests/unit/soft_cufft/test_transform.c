/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/cufft/transform.c: rows of every length against a plain transform. */
#include "softgpu/libs/cufft/transform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/soft_cufft/reference.h"

static double value(size_t i)
{
	return (double)((i * 2654435761u >> 7) % 2001) / 1000 - 1;
}

static struct ckt_complex *row_of(size_t n)
{
	struct ckt_complex *row = malloc(n * sizeof *row);
	for (size_t i = 0; i < n; i++)
		row[i] = (struct ckt_complex){value(2 * i), value(2 * i + 1)};
	return row;
}

static void run(struct ckt_complex *row, size_t n, bool inverse)
{
	struct ckt_transform *t = ckt_soft_cufft_transform_create(n);
	struct ckt_complex *scratch =
		malloc(ckt_soft_cufft_transform_scratch_of(n) * sizeof *scratch);
	IS(ckt_soft_cufft_transform_length(t), n);
	ckt_soft_cufft_transform_run(t, row, scratch, inverse);
	free(scratch);
	ckt_soft_cufft_transform_destroy(t);
}

static void whole(size_t n, bool inverse)
{
	struct ckt_complex *got = row_of(n), *expected = row_of(n);
	run(got, n, inverse);
	reference_row(expected, n, inverse);
	double difference = reference_difference(CKT_DOUBLE, got, expected, n * sizeof *got);
	if (difference > 2e-14)
		fprintf(stderr, "length %zu: %g\n", n, difference);
	YES(difference <= 2e-14);
	free(got);
	free(expected);
}

static void test_lengths(void)
{
	/*
	 * All small ones, so every radix and every kind of mixture, and primes beyond the radices.
	 */
	for (size_t n = 1; n <= 150; n++)
		whole(n, n & 1);
	static const size_t more[] = {211, 256, 343, 509, 512, 997, 1001, 1024, 1147};
	for (size_t i = 0; i < COUNT(more); i++) {
		whole(more[i], false);
		whole(more[i], true);
	}
}

/* Of long rows a few numbers are summed up. */
static void test_long(void)
{
	static const size_t lengths[] = {1 << 16, 65537, 30030, 99991, 2 * 49999, 177147, 262144};
	for (size_t i = 0; i < COUNT(lengths); i++) {
		size_t n = lengths[i];
		struct ckt_complex *in = row_of(n), *out = row_of(n);
		run(out, n, false);
		for (size_t k = 1; k < n; k += n / 3) {
			long double re = 0, im = 0;
			for (size_t j = 0; j < n; j++) {
				long double angle = -2 * M_PIl * (long double)(k * j % n) /
					(long double)n,
					    c = cosl(angle), s = sinl(angle);
				re += in[j].re * c - in[j].im * s;
				im += in[j].re * s + in[j].im * c;
			}
			double error = hypot((double)re - out[k].re, (double)im - out[k].im);
			if (error > 1e-9)
				fprintf(stderr, "length %zu, number %zu: off by %g\n", n, k, error);
			YES(error <= 1e-9);
		}
		run(out, n, true);
		double greatest = 0;
		for (size_t j = 0; j < n; j++)
			greatest = fmax(greatest,
				hypot(out[j].re / (double)n - in[j].re,
					out[j].im / (double)n - in[j].im));
		YES(greatest < 1e-12);
		free(in);
		free(out);
	}
}

static void test_scratch(void)
{
	IS(ckt_soft_cufft_transform_scratch_of(60), 60);
	/* 37 is a prime beyond the radices: a convolution of 128. */
	IS(ckt_soft_cufft_transform_scratch_of(37), 256);
	ckt_soft_cufft_transform_destroy(NULL);
}

UNIT_SUITE(transform, {"every length", test_lengths}, {"long rows", test_long},
	{"scratch", test_scratch})
