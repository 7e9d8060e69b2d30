/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/soft_cufft/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ckt_layout_request shape_request(const struct shape *s)
{
	return (struct ckt_layout_request){.kind = s->kind,
		.precision = s->precision,
		.rank = s->rank,
		.n = s->n,
		.in_embed = s->in_embed[0] ? s->in_embed : NULL,
		.out_embed = s->out_embed[0] ? s->out_embed : NULL,
		.in_stride = s->in_stride,
		.in_distance = s->in_distance,
		.out_stride = s->out_stride,
		.out_distance = s->out_distance,
		.batch = s->batch};
}

void reference_row(struct ckt_complex *row, size_t n, bool inverse)
{
	struct ckt_complex *out = calloc(n, sizeof *out);
	for (size_t k = 0; k < n; k++) {
		long double re = 0, im = 0;
		for (size_t j = 0; j < n; j++) {
			long double angle = (inverse ? 2 : -2) * M_PIl * (long double)(k * j % n) /
				(long double)n;
			long double c = cosl(angle), s = sinl(angle);
			re += row[j].re * c - row[j].im * s;
			im += row[j].re * s + row[j].im * c;
		}
		out[k] = (struct ckt_complex){(double)re, (double)im};
	}
	memcpy(row, out, n * sizeof *row);
	free(out);
}

/* Index of a number in memory, by cuFFT's documentation of the data layout. */
static int64_t place(
	const struct shape *s, bool input, bool in_place, int64_t b, const int64_t at[3])
{
	const int64_t *embed = input ? s->in_embed : s->out_embed;
	bool real = s->kind == (input ? CKT_REAL_TO_COMPLEX : CKT_COMPLEX_TO_REAL);
	int64_t sizes[3] = {1, 1, 1}, stride = 1, distance, index = 0;
	if (s->in_embed[0] && s->out_embed[0]) {
		memcpy(sizes, embed, sizeof sizes);
		stride = input ? s->in_stride : s->out_stride;
		distance = input ? s->in_distance : s->out_distance;
	} else {
		memcpy(sizes, s->n, sizeof sizes);
		int64_t *last = &sizes[s->rank - 1], half = *last / 2 + 1;
		if (s->kind != CKT_COMPLEX_TO_COMPLEX)
			*last = !real ? half : in_place ? 2 * half : *last;
		distance = 1;
		for (int axis = 0; axis < s->rank; axis++)
			distance *= sizes[axis];
	}
	for (int axis = 0; axis < s->rank; axis++)
		index = index * (axis ? sizes[axis] : 0) + at[axis];
	return b * distance + index * stride;
}

static void along(const struct shape *s, struct ckt_complex *box, int axis, bool inverse)
{
	size_t n = (size_t)s->n[axis], step = 1, total = 1;
	for (int other = 0; other < s->rank; other++)
		total *= (size_t)s->n[other];
	for (int other = axis + 1; other < s->rank; other++)
		step *= (size_t)s->n[other];
	struct ckt_complex *row = calloc(n, sizeof *row);
	for (size_t i = 0; i < total; i++) {
		if (i / step % n)
			continue;
		for (size_t k = 0; k < n; k++)
			row[k] = box[i + k * step];
		reference_row(row, n, inverse);
		for (size_t k = 0; k < n; k++)
			box[i + k * step] = row[k];
	}
	free(row);
}

static void index_of(const struct shape *s, size_t i, int64_t at[3])
{
	for (int axis = s->rank - 1; axis >= 0; axis--) {
		at[axis] = (int64_t)(i % (size_t)s->n[axis]);
		i /= (size_t)s->n[axis];
	}
}

/* What lies beyond the half of a row is its mirror's conjugate. */
static struct ckt_complex mirrored(
	const struct shape *s, const void *in, bool in_place, int64_t b, int64_t at[3])
{
	int last = s->rank - 1;
	int64_t n = s->n[last], mirror[3] = {0};
	if (at[last] <= n / 2) {
		struct ckt_complex value = ckt_soft_cufft_number_read(
			s->precision, false, in, place(s, true, in_place, b, at));
		return value;
	}
	for (int axis = 0; axis <= last; axis++)
		mirror[axis] = (s->n[axis] - at[axis]) % s->n[axis];
	struct ckt_complex value = ckt_soft_cufft_number_read(
		s->precision, false, in, place(s, true, in_place, b, mirror));
	return (struct ckt_complex){value.re, -value.im};
}

void reference_run(const struct shape *s, const void *in, void *out, bool inverse)
{
	size_t total = 1;
	bool in_place = in == out;
	for (int axis = 0; axis < s->rank; axis++)
		total *= (size_t)s->n[axis];
	struct ckt_complex *box = calloc(total, sizeof *box);
	for (int64_t b = 0; b < s->batch; b++) {
		int64_t at[3] = {0};
		for (size_t i = 0; i < total; i++) {
			index_of(s, i, at);
			box[i] = s->kind == CKT_COMPLEX_TO_REAL
				? mirrored(s, in, in_place, b, at)
				: ckt_soft_cufft_number_read(s->precision,
					  s->kind == CKT_REAL_TO_COMPLEX, in,
					  place(s, true, in_place, b, at));
		}
		for (int axis = 0; axis < s->rank; axis++)
			along(s, box, axis, inverse);
		for (size_t i = 0; i < total; i++) {
			index_of(s, i, at);
			if (s->kind == CKT_REAL_TO_COMPLEX &&
				at[s->rank - 1] > s->n[s->rank - 1] / 2)
				continue;
			ckt_soft_cufft_number_write(s->precision, s->kind == CKT_COMPLEX_TO_REAL,
				out, place(s, false, in_place, b, at), box[i]);
		}
	}
	free(box);
}

void reference_fill(enum ckt_layout_precision precision, void *memory, size_t bytes, unsigned seed)
{
	size_t count = bytes / ckt_soft_cufft_number_size(precision, true);
	for (size_t i = 0; i < count; i++) {
		seed = seed * 1103515245 + 12345;
		ckt_soft_cufft_number_write(precision, true, memory, (int64_t)i,
			(struct ckt_complex){((int)(seed >> 16 & 127) - 64) / 64.0, 0});
	}
}

double reference_difference(
	enum ckt_layout_precision precision, const void *a, const void *b, size_t bytes)
{
	size_t count = bytes / ckt_soft_cufft_number_size(precision, true);
	double greatest = 1e-300, difference = 0;
	for (size_t i = 0; i < count; i++) {
		double x = ckt_soft_cufft_number_read(precision, true, a, (int64_t)i).re,
		       y = ckt_soft_cufft_number_read(precision, true, b, (int64_t)i).re;
		greatest = fmax(greatest, fabs(y));
		difference = fmax(difference, isfinite(x) ? fabs(x - y) : INFINITY);
	}
	return difference / greatest;
}

double reference_tolerance(enum ckt_layout_precision precision)
{
	static const double tolerances[] = {
		[CKT_HALF] = 1e-3, [CKT_BRAIN] = 8e-3, [CKT_SINGLE] = 1e-7, [CKT_DOUBLE] = 1e-14};
	return tolerances[precision];
}

#define C CKT_COMPLEX_TO_COMPLEX
#define R CKT_REAL_TO_COMPLEX
#define I CKT_COMPLEX_TO_REAL
#define PLAIN(kind, precision, rank, nx, ny, nz, batch)                          \
	{                                                                        \
		kind, precision, rank, {nx, ny, nz}, {0}, 0, 0, {0}, 0, 0, batch \
	}

const struct shape reference_shapes[] = {
	PLAIN(C, CKT_SINGLE, 1, 1, 1, 1, 1),
	PLAIN(C, CKT_SINGLE, 1, 60, 1, 1, 3),
	PLAIN(C, CKT_DOUBLE, 1, 97, 1, 1, 2),
	PLAIN(C, CKT_SINGLE, 2, 5, 12, 1, 1),
	PLAIN(C, CKT_DOUBLE, 3, 3, 4, 5, 1),
	PLAIN(R, CKT_SINGLE, 1, 16, 1, 1, 4),
	PLAIN(R, CKT_DOUBLE, 1, 15, 1, 1, 2),
	PLAIN(R, CKT_SINGLE, 2, 6, 7, 1, 2),
	PLAIN(R, CKT_DOUBLE, 3, 3, 2, 8, 1),
	PLAIN(I, CKT_SINGLE, 1, 16, 1, 1, 4),
	PLAIN(I, CKT_DOUBLE, 1, 15, 1, 1, 2),
	PLAIN(I, CKT_SINGLE, 1, 1, 1, 1, 3),
	PLAIN(C, CKT_HALF, 2, 8, 16, 1, 1),
	PLAIN(C, CKT_BRAIN, 1, 32, 1, 1, 2),
	PLAIN(R, CKT_HALF, 1, 64, 1, 1, 2),
	PLAIN(I, CKT_BRAIN, 1, 16, 1, 1, 1),
	/* Every second number, and columns of a matrix. */
	{C, CKT_SINGLE, 1, {12, 1, 1}, {12, 1, 1}, 2, 30, {12, 1, 1}, 1, 12, 3},
	{C, CKT_DOUBLE, 1, {9, 1, 1}, {9, 1, 1}, 4, 1, {9, 1, 1}, 4, 1, 4},
	{C, CKT_SINGLE, 2, {4, 6, 1}, {4, 8, 1}, 3, 110, {5, 7, 1}, 2, 80, 2},
	{C, CKT_DOUBLE, 3, {2, 3, 4}, {2, 5, 6}, 1, 77, {9, 3, 5}, 2, 100, 2},
	{R, CKT_SINGLE, 2, {4, 6, 1}, {4, 7, 1}, 2, 64, {4, 5, 1}, 3, 70, 2},
	{R, CKT_DOUBLE, 3, {2, 3, 5}, {2, 4, 8}, 1, 70, {2, 3, 4}, 1, 25, 2},
	{I, CKT_SINGLE, 1, {10, 1, 1}, {6, 1, 1}, 1, 8, {10, 1, 1}, 2, 21, 3},
	/* One embed alone counts as none. */
	{C, CKT_SINGLE, 1, {8, 1, 1}, {16, 1, 1}, 2, 40, {0}, 5, 50, 2},
};
const size_t reference_shape_count = COUNT(reference_shapes);
