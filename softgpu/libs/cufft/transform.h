/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discrete Fourier transforms of one row of complex numbers, in double precision, of any length.
 *
 * Lengths whose primes are small are split by these (mixed radix); any other length becomes a
 * convolution of a power of two (Bluestein's algorithm), so that a long prime costs n log n as
 * well.  A transform is read only once it is made: threads may share it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ckt_complex {
	double re, im;
};

struct ckt_transform;

/* NULL: no memory.  length: 1 or more. */
struct ckt_transform *ckt_soft_cufft_transform_create(size_t length);
void ckt_soft_cufft_transform_destroy(struct ckt_transform *transform);
size_t ckt_soft_cufft_transform_length(const struct ckt_transform *transform);
/* How many numbers of scratch a run of that length needs. */
size_t ckt_soft_cufft_transform_scratch_of(size_t length);
/* In place, not scaled: exponent -2 pi i / n, or + if inverse. */
void ckt_soft_cufft_transform_run(const struct ckt_transform *transform, struct ckt_complex *row,
	struct ckt_complex *scratch, bool inverse);
