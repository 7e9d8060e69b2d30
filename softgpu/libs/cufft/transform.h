/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discrete Fourier transforms of one row of complex numbers of any length, in double precision.
 *
 * Lengths with small primes are split by these primes (mixed radix).  Any other length becomes a
 * convolution of a power of two (Bluestein's algorithm), so that a large prime costs n log n, too.
 * A transform is not changed after its creation: threads may share it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ckt_complex {
	double re, im;
};

struct ckt_transform;

/* NULL if there is not enough memory.  length: 1 or more. */
struct ckt_transform *ckt_soft_cufft_transform_create(size_t length);
void ckt_soft_cufft_transform_destroy(struct ckt_transform *transform);
size_t ckt_soft_cufft_transform_length(const struct ckt_transform *transform);
/* The count of scratch numbers that a run of that length needs. */
size_t ckt_soft_cufft_transform_scratch_of(size_t length);
/* Transforms the row in place, without scaling: exponent -2 pi i / n, or + if inverse. */
void ckt_soft_cufft_transform_run(const struct ckt_transform *transform, struct ckt_complex *row,
	struct ckt_complex *scratch, bool inverse);
