/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a transform, one batch at a time.  It reads the numbers into the work area as doubles,
 * transforms them along one axis after the other, and writes them.
 *
 *     work area: the box of complex numbers | one row | scratch of the longest transform
 *
 * A real side has whole rows along the last axis.  The box has the first n / 2 + 1 numbers of each
 * row; the rest follows by symmetry.  The imaginary parts of a row's first and middle number are
 * ignored if a real row results, as in cuFFT.
 */
#include "softgpu/libs/cufft/layout.h"

#include <string.h>

#include "softgpu/libs/cufft/number.h"

static bool real_side(const struct ckt_layout *layout, bool input)
{
	return layout->kind == (input ? CKT_REAL_TO_COMPLEX : CKT_COMPLEX_TO_REAL);
}

/* The count of numbers along an axis on a side. */
static int64_t numbers(const struct ckt_layout *layout, int axis, bool real)
{
	bool halved = layout->kind != CKT_COMPLEX_TO_COMPLEX && !real && axis == layout->rank - 1;
	return halved ? layout->n[axis] / 2 + 1 : layout->n[axis];
}

/*
 * Lays out contiguous rows.  padded: real rows are as long as the complex rows that replace them.
 */
static bool dense_side(
	const struct ckt_layout *layout, bool input, bool padded, struct ckt_layout_side *ret_side)
{
	bool real = real_side(layout, input);
	int64_t stride = 1;
	for (int axis = layout->rank - 1; axis >= 0; axis--) {
		ret_side->strides[axis] = stride;
		int64_t count = real && padded && axis == layout->rank - 1
			? 2 * (layout->n[axis] / 2 + 1)
			: numbers(layout, axis, real);
		if (__builtin_mul_overflow(stride, count, &stride))
			return false;
	}
	ret_side->distance = stride;
	return true;
}

static bool embedded_side(const struct ckt_layout *layout, const int64_t *embed, int64_t stride,
	int64_t distance, struct ckt_layout_side *ret_side)
{
	if (stride < 1 || distance < 0)
		return false;
	for (int axis = layout->rank - 1; axis >= 0; axis--) {
		ret_side->strides[axis] = stride;
		/* The first embed has no effect: the distance between batches replaces it. */
		if (axis &&
			(embed[axis] < 1 || __builtin_mul_overflow(stride, embed[axis], &stride)))
			return false;
	}
	ret_side->distance = distance;
	return true;
}

static bool power_of_two(int64_t n)
{
	return !(n & (n - 1));
}

/* Counts the bytes of a side.  False if they are 2^62 or more. */
static bool side_bytes(const struct ckt_layout *layout, const struct ckt_layout_side *side,
	bool input, uint64_t *ret_bytes)
{
	bool real = real_side(layout, input);
	unsigned __int128 last = (unsigned __int128)(layout->batch - 1) * (uint64_t)side->distance;
	for (int axis = 0; axis < layout->rank; axis++)
		last += (unsigned __int128)(numbers(layout, axis, real) - 1) *
			(uint64_t)side->strides[axis];
	last = (last + 1) * ckt_soft_cufft_number_size(layout->precision, real);
	*ret_bytes = (uint64_t)last;
	return last < (unsigned __int128)1 << 62;
}

cufftResult ckt_soft_cufft_layout_init(
	struct ckt_layout *layout, const struct ckt_layout_request *request)
{
	*layout = (struct ckt_layout){.kind = request->kind,
		.precision = request->precision,
		.rank = request->rank,
		.batch = request->batch,
		.basic = !request->in_embed || !request->out_embed};
	if (request->rank < 1 || request->rank > CKT_LAYOUT_RANK || !request->n)
		return CUFFT_INVALID_VALUE;
	if (request->batch < 1)
		return CUFFT_INVALID_SIZE;
	int64_t total = 1;
	for (int axis = 0; axis < request->rank; axis++) {
		int64_t n = layout->n[axis] = request->n[axis];
		/*
		 * No memory holds more than 2^40 numbers, and their products could overflow the
		 * types.
		 */
		if (n < 1 || n > (int64_t)1 << 40 || __builtin_mul_overflow(total, n, &total) ||
			total > (int64_t)1 << 40)
			return CUFFT_INVALID_SIZE;
		if (request->precision < CKT_SINGLE && !power_of_two(n))
			return CUFFT_INVALID_SIZE;
	}
	if (layout->basic) {
		if (!dense_side(layout, true, false, &layout->in) ||
			!dense_side(layout, false, false, &layout->out))
			return CUFFT_INVALID_SIZE;
	} else if (!embedded_side(layout, request->in_embed, request->in_stride,
			   request->in_distance, &layout->in) ||
		!embedded_side(layout, request->out_embed, request->out_stride,
			request->out_distance, &layout->out)) {
		return CUFFT_INVALID_VALUE;
	}
	uint64_t bytes;
	return side_bytes(layout, &layout->in, true, &bytes) &&
			side_bytes(layout, &layout->out, false, &bytes)
		? CUFFT_SUCCESS
		: CUFFT_INVALID_SIZE;
}

cufftResult ckt_soft_cufft_layout_make(struct ckt_layout *layout)
{
	for (int axis = 0; axis < layout->rank; axis++) {
		layout->along[axis] = ckt_soft_cufft_transform_create((size_t)layout->n[axis]);
		if (!layout->along[axis]) {
			ckt_soft_cufft_layout_fini(layout);
			return CUFFT_ALLOC_FAILED;
		}
	}
	return CUFFT_SUCCESS;
}

void ckt_soft_cufft_layout_fini(struct ckt_layout *layout)
{
	for (int axis = 0; axis < CKT_LAYOUT_RANK; axis++) {
		ckt_soft_cufft_transform_destroy(layout->along[axis]);
		layout->along[axis] = NULL;
	}
}

bool ckt_soft_cufft_layout_from_type(
	cufftType type, enum ckt_layout_kind *ret_kind, enum ckt_layout_precision *ret_precision)
{
	*ret_precision = type == CUFFT_Z2Z || type == CUFFT_D2Z || type == CUFFT_Z2D ? CKT_DOUBLE
										     : CKT_SINGLE;
	switch (type) {
	case CUFFT_C2C:
	case CUFFT_Z2Z:
		*ret_kind = CKT_COMPLEX_TO_COMPLEX;
		return true;
	case CUFFT_R2C:
	case CUFFT_D2Z:
		*ret_kind = CKT_REAL_TO_COMPLEX;
		return true;
	case CUFFT_C2R:
	case CUFFT_Z2D:
		*ret_kind = CKT_COMPLEX_TO_REAL;
		return true;
	}
	return false;
}

bool ckt_soft_cufft_layout_from_data_types(cudaDataType in, cudaDataType out,
	cudaDataType execution, enum ckt_layout_kind *ret_kind,
	enum ckt_layout_precision *ret_precision)
{
	static const struct {
		cudaDataType real, complex;
		enum ckt_layout_precision precision;
	} types[] = {{CUDA_R_16F, CUDA_C_16F, CKT_HALF}, {CUDA_R_16BF, CUDA_C_16BF, CKT_BRAIN},
		{CUDA_R_32F, CUDA_C_32F, CKT_SINGLE}, {CUDA_R_64F, CUDA_C_64F, CKT_DOUBLE}};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		if (execution != types[i].complex)
			continue;
		*ret_precision = types[i].precision;
		*ret_kind = in == types[i].real ? CKT_REAL_TO_COMPLEX
			: out == types[i].real  ? CKT_COMPLEX_TO_REAL
						: CKT_COMPLEX_TO_COMPLEX;
		return (in == types[i].complex || in == types[i].real) &&
			(out == types[i].complex || out == types[i].real) &&
			(in == types[i].complex || out == types[i].complex);
	}
	return false;
}

/* The count of numbers along an axis of the box. */
static size_t box(const struct ckt_layout *layout, int axis)
{
	return (size_t)numbers(layout, axis, false);
}

static size_t box_numbers(const struct ckt_layout *layout)
{
	size_t total = 1;
	for (int axis = 0; axis < layout->rank; axis++)
		total *= box(layout, axis);
	return total;
}

static size_t longest_row(const struct ckt_layout *layout)
{
	size_t longest = 0;
	for (int axis = 0; axis < layout->rank; axis++)
		if ((size_t)layout->n[axis] > longest)
			longest = (size_t)layout->n[axis];
	return longest;
}

size_t ckt_soft_cufft_layout_work_bytes(const struct ckt_layout *layout)
{
	size_t scratch = 0;
	for (int axis = 0; axis < layout->rank; axis++) {
		size_t one = ckt_soft_cufft_transform_scratch_of((size_t)layout->n[axis]);
		scratch = one > scratch ? one : scratch;
	}
	return (box_numbers(layout) + longest_row(layout) + scratch) * sizeof(struct ckt_complex);
}

static struct ckt_layout_side side_of(const struct ckt_layout *layout, bool input, bool in_place)
{
	struct ckt_layout_side side = input ? layout->in : layout->out;
	if (layout->basic && in_place && real_side(layout, input))
		dense_side(layout, input, true, &side);
	return side;
}

size_t ckt_soft_cufft_layout_extent(const struct ckt_layout *layout, bool input, bool in_place)
{
	struct ckt_layout_side side = side_of(layout, input, in_place);
	uint64_t bytes = 0;
	side_bytes(layout, &side, input, &bytes);
	return (size_t)bytes;
}

struct run {
	const struct ckt_layout *layout;
	struct ckt_complex *box, *row, *scratch;
	bool inverse;
};

/* Transforms every row of the box along an axis that is complete on both sides. */
static void transform_axis(const struct run *run, int axis)
{
	const struct ckt_layout *layout = run->layout;
	size_t n = box(layout, axis), step = 1;
	for (int after = axis + 1; after < layout->rank; after++)
		step *= box(layout, after);
	size_t rows = box_numbers(layout) / n;
	for (size_t r = 0; r < rows; r++) {
		struct ckt_complex *first = run->box + r / step * step * n + r % step;
		for (size_t k = 0; k < n; k++)
			run->row[k] = first[k * step];
		ckt_soft_cufft_transform_run(
			layout->along[axis], run->row, run->scratch, run->inverse);
		for (size_t k = 0; k < n; k++)
			first[k * step] = run->row[k];
	}
}

static void transform_outer_axes(const struct run *run)
{
	for (int axis = 0; axis < run->layout->rank - 1; axis++)
		transform_axis(run, axis);
}

/* The offset of row `index` along the last axis, in numbers of its side. */
static int64_t row_offset(
	const struct ckt_layout *layout, const struct ckt_layout_side *side, size_t index)
{
	int64_t offset = 0;
	for (int axis = layout->rank - 2; axis >= 0; axis--) {
		offset += (int64_t)(index % (size_t)layout->n[axis]) * side->strides[axis];
		index /= (size_t)layout->n[axis];
	}
	return offset;
}

/* Reads a row.  A real row is transformed at once, because the box keeps only half of it. */
static void read_row(const struct run *run, const struct ckt_layout_side *side, const void *in,
	int64_t offset, struct ckt_complex *to)
{
	const struct ckt_layout *layout = run->layout;
	int last = layout->rank - 1;
	bool real = layout->kind == CKT_REAL_TO_COMPLEX;
	struct ckt_complex *row = real ? run->row : to;
	size_t n = (size_t)numbers(layout, last, real);
	for (size_t k = 0; k < n; k++)
		row[k] = ckt_soft_cufft_number_read(
			layout->precision, real, in, offset + (int64_t)k * side->strides[last]);
	if (real) {
		ckt_soft_cufft_transform_run(layout->along[last], row, run->scratch, false);
		memcpy(to, row, box(layout, last) * sizeof *to);
	}
}

static void write_row(const struct run *run, const struct ckt_layout_side *side, void *out,
	int64_t offset, struct ckt_complex *from)
{
	const struct ckt_layout *layout = run->layout;
	int last = layout->rank - 1;
	bool real = layout->kind == CKT_COMPLEX_TO_REAL;
	struct ckt_complex *row = real ? run->row : from;
	size_t n = (size_t)layout->n[last], half = n / 2 + 1;
	if (real) {
		memcpy(row, from, half * sizeof *row);
		for (size_t k = half; k < n; k++)
			row[k] = (struct ckt_complex){from[n - k].re, -from[n - k].im};
		ckt_soft_cufft_transform_run(layout->along[last], row, run->scratch, true);
	}
	n = (size_t)numbers(layout, last, real);
	for (size_t k = 0; k < n; k++)
		ckt_soft_cufft_number_write(layout->precision, real, out,
			offset + (int64_t)k * side->strides[last], row[k]);
}

void ckt_soft_cufft_layout_run(
	const struct ckt_layout *layout, const void *in, void *out, bool inverse, void *work)
{
	struct run run = {.layout = layout, .box = work, .inverse = inverse};
	run.row = run.box + box_numbers(layout);
	run.scratch = run.row + longest_row(layout);
	struct ckt_layout_side from = side_of(layout, true, in == out),
			       to = side_of(layout, false, in == out);
	size_t per_row = box(layout, layout->rank - 1), rows = box_numbers(layout) / per_row;
	for (int64_t b = 0; b < layout->batch; b++) {
		for (size_t r = 0; r < rows; r++)
			read_row(&run, &from, in, b * from.distance + row_offset(layout, &from, r),
				run.box + r * per_row);
		transform_outer_axes(&run);
		if (layout->kind == CKT_COMPLEX_TO_COMPLEX)
			transform_axis(&run, layout->rank - 1);
		for (size_t r = 0; r < rows; r++)
			write_row(&run, &to, out, b * to.distance + row_offset(layout, &to, r),
				run.box + r * per_row);
	}
}
