/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain discrete Fourier transform, written apart from what it judges: sums of n products a
 * number, along each axis.
 */
#pragma once

#include "softgpu/libs/cufft/number.h"
#include "tests/unit/suite.h"

/* in_embed[0] and out_embed[0] of 0: no embeds. */
struct shape {
	enum ckt_layout_kind kind;
	enum ckt_layout_precision precision;
	int rank;
	int64_t n[3], in_embed[3], in_stride, in_distance, out_embed[3], out_stride, out_distance,
		batch;
};

enum { SHAPE_BYTES = 1 << 20 };

struct ckt_layout_request shape_request(const struct shape *shape);
void reference_row(struct ckt_complex *row, size_t n, bool inverse);
/* The whole transform of a shape; in may be out. */
void reference_run(const struct shape *shape, const void *in, void *out, bool inverse);
/* Numbers that a half holds exactly, none like its neighbours. */
void reference_fill(enum ckt_layout_precision precision, void *memory, size_t bytes, unsigned seed);
/* The greatest difference of two memories, relative to the greatest number. */
double reference_difference(
	enum ckt_layout_precision precision, const void *a, const void *b, size_t bytes);
/* What that may be. */
double reference_tolerance(enum ckt_layout_precision precision);
/* Shapes of every form: count of them. */
extern const struct shape reference_shapes[];
extern const size_t reference_shape_count;
