/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transforms of one row:
 *
 *	length n = p * m with primes up to LARGEST_RADIX:
 *		p rows of m, each transformed, then m butterflies of p
 *	any other length n:
 *		X[k] = c[k] * sum over j of (x[j] c[j]) * conj(c[k - j]), c[k] = exp(-i pi k k / n)
 *		This is a convolution: it uses transforms of the power of two that holds 2n - 1.
 */
#include "softgpu/libs/cufft/transform.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A butterfly of p costs p * p; above this length, the convolution is cheaper. */
#define LARGEST_RADIX 31
#define MAX_FACTORS 64

struct ckt_transform {
	size_t length;
	size_t factors[MAX_FACTORS];
	size_t factor_count;
	struct ckt_complex *roots; /* exp(-2 pi i k / length) */
	/* For lengths with a large prime: the data of the convolution. */
	struct ckt_transform *inner;
	struct ckt_complex *chirp;  /* c[k] */
	struct ckt_complex *kernel; /* conj(c), transformed by inner, divided by its length */
};

static struct ckt_complex multiply(struct ckt_complex a, struct ckt_complex b)
{
	return (struct ckt_complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static struct ckt_complex add(struct ckt_complex a, struct ckt_complex b)
{
	return (struct ckt_complex){a.re + b.re, a.im + b.im};
}

static struct ckt_complex subtract(struct ckt_complex a, struct ckt_complex b)
{
	return (struct ckt_complex){a.re - b.re, a.im - b.im};
}

/*
 * exp(-2 pi i k / n), k < n.  The angle is first reduced below 45 degrees in integers, so long rows
 * lose no digits.
 */
static struct ckt_complex root(uint64_t k, uint64_t n)
{
	/* In units of 1 / (8 n) of a turn. */
	unsigned __int128 eighths = (unsigned __int128)k * 8;
	unsigned octant = (unsigned)(eighths / n);
	double rest = (double)(uint64_t)(eighths - (unsigned __int128)octant * n);
	if (octant & 1)
		rest = (double)n - rest;
	double angle = rest / (double)n * (M_PI / 4), c = cos(angle), s = sin(angle);
	switch (octant) {
	case 0:
		return (struct ckt_complex){c, -s};
	case 1:
		return (struct ckt_complex){s, -c};
	case 2:
		return (struct ckt_complex){-s, -c};
	case 3:
		return (struct ckt_complex){-c, -s};
	case 4:
		return (struct ckt_complex){-c, s};
	case 5:
		return (struct ckt_complex){-s, c};
	case 6:
		return (struct ckt_complex){s, c};
	default:
		return (struct ckt_complex){c, s};
	}
}

/*
 * Splits the length into its small primes.  Returns the remaining factor: 1 if all primes are
 * small.
 */
static size_t factorize(size_t length, size_t factors[MAX_FACTORS], size_t *ret_count)
{
	size_t rest = length, count = 0;
	while (rest % 4 == 0) {
		factors[count++] = 4;
		rest /= 4;
	}
	for (size_t p = 2; p <= LARGEST_RADIX && rest > 1; p++)
		while (rest % p == 0) {
			factors[count++] = p;
			rest /= p;
		}
	*ret_count = count;
	return rest;
}

/* The smallest power of two that holds the convolution. */
static size_t convolution_length(size_t length)
{
	size_t m = 1;
	while (m < 2 * length - 1)
		m *= 2;
	return m;
}

static bool make_roots(struct ckt_transform *t)
{
	t->roots = malloc(t->length * sizeof *t->roots);
	if (!t->roots)
		return false;
	for (size_t k = 0; k < t->length; k++)
		t->roots[k] = root(k, t->length);
	return true;
}

static bool make_convolution(struct ckt_transform *t)
{
	size_t n = t->length, m = convolution_length(n);
	t->inner = ckt_soft_cufft_transform_create(m);
	t->chirp = malloc(n * sizeof *t->chirp);
	t->kernel = calloc(m, sizeof *t->kernel);
	struct ckt_complex *scratch = malloc(m * sizeof *scratch);
	if (!t->inner || !t->chirp || !t->kernel || !scratch) {
		free(scratch);
		return false;
	}
	for (size_t k = 0; k < n; k++) {
		/* The angle is k * k / 2n of a turn. */
		t->chirp[k] = root((uint64_t)((unsigned __int128)k * k % (2 * n)), 2 * n);
		struct ckt_complex conjugate = {t->chirp[k].re, -t->chirp[k].im};
		t->kernel[k] = conjugate;
		if (k)
			t->kernel[m - k] = conjugate;
	}
	ckt_soft_cufft_transform_run(t->inner, t->kernel, scratch, false);
	free(scratch);
	return true;
}

struct ckt_transform *ckt_soft_cufft_transform_create(size_t length)
{
	struct ckt_transform *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->length = length;
	if (factorize(length, t->factors, &t->factor_count) == 1 ? make_roots(t)
								 : make_convolution(t))
		return t;
	ckt_soft_cufft_transform_destroy(t);
	return NULL;
}

void ckt_soft_cufft_transform_destroy(struct ckt_transform *t)
{
	if (!t)
		return;
	ckt_soft_cufft_transform_destroy(t->inner);
	free(t->roots);
	free(t->chirp);
	free(t->kernel);
	free(t);
}

size_t ckt_soft_cufft_transform_length(const struct ckt_transform *t)
{
	return t->length;
}

size_t ckt_soft_cufft_transform_scratch_of(size_t length)
{
	size_t factors[MAX_FACTORS], count;
	return factorize(length, factors, &count) == 1 ? length : 2 * convolution_length(length);
}

/* Multiplies by -i. */
static struct ckt_complex turned(struct ckt_complex a)
{
	return (struct ckt_complex){a.im, -a.re};
}

static void butterflies_2(
	const struct ckt_transform *t, struct ckt_complex *out, size_t m, size_t step)
{
	for (size_t k = 0; k < m; k++) {
		struct ckt_complex odd = multiply(out[k + m], t->roots[k * step]);
		out[k + m] = subtract(out[k], odd);
		out[k] = add(out[k], odd);
	}
}

static void butterflies_4(
	const struct ckt_transform *t, struct ckt_complex *out, size_t m, size_t step)
{
	for (size_t k = 0; k < m; k++) {
		struct ckt_complex a = out[k], b = multiply(out[k + m], t->roots[k * step]);
		struct ckt_complex c = multiply(out[k + 2 * m], t->roots[2 * k * step]),
				   d = multiply(out[k + 3 * m], t->roots[3 * k * step]);
		struct ckt_complex sum = add(a, c), difference = subtract(a, c), odd = add(b, d),
				   cross = turned(subtract(b, d));
		out[k] = add(sum, odd);
		out[k + m] = add(difference, cross);
		out[k + 2 * m] = subtract(sum, odd);
		out[k + 3 * m] = subtract(difference, cross);
	}
}

static void butterflies(
	const struct ckt_transform *t, struct ckt_complex *out, size_t p, size_t m, size_t step)
{
	struct ckt_complex part[LARGEST_RADIX];
	size_t apart = t->length / p;
	for (size_t k = 0; k < m; k++) {
		for (size_t q = 0; q < p; q++)
			part[q] = multiply(out[k + q * m], t->roots[q * k * step]);
		for (size_t r = 0; r < p; r++) {
			struct ckt_complex sum = part[0];
			for (size_t q = 1; q < p; q++)
				sum = add(sum, multiply(part[q], t->roots[q * r % p * apart]));
			out[k + r * m] = sum;
		}
	}
}

/* Transforms in[0], in[step], ... into the length / step numbers of out. */
static void split(const struct ckt_transform *t, struct ckt_complex *out,
	const struct ckt_complex *in, size_t level, size_t step)
{
	if (level == t->factor_count) {
		*out = *in;
		return;
	}
	size_t p = t->factors[level], m = t->length / step / p;
	for (size_t q = 0; q < p; q++)
		split(t, out + q * m, in + q * step, level + 1, step * p);
	if (p == 2)
		butterflies_2(t, out, m, step);
	else if (p == 4)
		butterflies_4(t, out, m, step);
	else
		butterflies(t, out, p, m, step);
}

static void conjugate_row(struct ckt_complex *row, size_t length)
{
	for (size_t k = 0; k < length; k++)
		row[k].im = -row[k].im;
}

static void convolve(
	const struct ckt_transform *t, struct ckt_complex *row, struct ckt_complex *scratch)
{
	size_t n = t->length, m = t->inner->length;
	struct ckt_complex *padded = scratch;
	memset(padded, 0, m * sizeof *padded);
	for (size_t k = 0; k < n; k++)
		padded[k] = multiply(row[k], t->chirp[k]);
	ckt_soft_cufft_transform_run(t->inner, padded, scratch + m, false);
	for (size_t k = 0; k < m; k++)
		padded[k] = multiply(padded[k], t->kernel[k]);
	ckt_soft_cufft_transform_run(t->inner, padded, scratch + m, true);
	for (size_t k = 0; k < n; k++) {
		struct ckt_complex sum = multiply(padded[k], t->chirp[k]);
		row[k] = (struct ckt_complex){sum.re / (double)m, sum.im / (double)m};
	}
}

void ckt_soft_cufft_transform_run(const struct ckt_transform *t, struct ckt_complex *row,
	struct ckt_complex *scratch, bool inverse)
{
	/* The inverse is the conjugate of the transform of the conjugate. */
	if (inverse)
		conjugate_row(row, t->length);
	if (t->inner) {
		convolve(t, row, scratch);
	} else {
		memcpy(scratch, row, t->length * sizeof *row);
		split(t, row, scratch, 0, 1);
	}
	if (inverse)
		conjugate_row(row, t->length);
}
