/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/libs/cufft/layout.c: every form against a plain transform, and shapes that are refused.
 */
#include "softgpu/libs/cufft/layout.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/soft_cufft/reference.h"

/*
 * A side that does not fit its own other side cannot be in place: batches would run over each
 * other.
 */
static bool may_be_in_place(const struct shape *s)
{
	return !s->in_embed[0] || !s->out_embed[0] ||
		(s->kind == CKT_COMPLEX_TO_COMPLEX && s->in_stride == s->out_stride &&
			s->in_distance == s->out_distance &&
			!memcmp(s->in_embed, s->out_embed, sizeof s->in_embed));
}

static void run(const struct shape *s, bool inverse, bool in_place)
{
	struct ckt_layout layout;
	struct ckt_layout_request request = shape_request(s);
	MUST(ckt_soft_cufft_layout_init(&layout, &request), CUFFT_SUCCESS);
	size_t in_bytes = ckt_soft_cufft_layout_extent(&layout, true, in_place),
	       out_bytes = ckt_soft_cufft_layout_extent(&layout, false, in_place);
	if (in_place)
		in_bytes = out_bytes = in_bytes > out_bytes ? in_bytes : out_bytes;
	/* Exactly as large as it says, so that a sanitizer sees what goes beyond. */
	void *in = malloc(in_bytes), *out = in_place ? in : malloc(out_bytes),
	     *expected = malloc(out_bytes), *before = malloc(in_bytes);
	void *work = malloc(ckt_soft_cufft_layout_work_bytes(&layout));
	reference_fill(s->precision, in, in_bytes, 7);
	reference_fill(s->precision, out, out_bytes, in_place ? 7 : 99);
	memcpy(expected, out, out_bytes);
	memcpy(before, in, in_bytes);
	/* A spectrum of real numbers is its own mirror where the mirror is in the half as well. */
	reference_run(s, in_place ? expected : in, expected, inverse);
	MUST(ckt_soft_cufft_layout_make(&layout), CUFFT_SUCCESS);
	ckt_soft_cufft_layout_run(&layout, in, out, inverse, work);
	double difference = reference_difference(s->precision, out, expected, out_bytes);
	if (difference > reference_tolerance(s->precision))
		fprintf(stderr, "shape %d: off by %g\n", (int)(s - reference_shapes), difference);
	YES(difference <= reference_tolerance(s->precision));
	if (!in_place) {
		YES(!memcmp(in, before, in_bytes));
		free(out);
	}
	free(in);
	free(expected);
	free(before);
	free(work);
	ckt_soft_cufft_layout_fini(&layout);
	ckt_soft_cufft_layout_fini(&layout);
}

/*
 * The reference takes the whole spectrum of several axes from its half, which needs one that is
 * symmetric: these are tested by a round trip.
 */
static bool needs_symmetry(const struct shape *s)
{
	return s->kind == CKT_COMPLEX_TO_REAL;
}

static void test_forms(void)
{
	for (size_t i = 0; i < reference_shape_count; i++) {
		const struct shape *s = &reference_shapes[i];
		bool inverse = s->kind == CKT_COMPLEX_TO_REAL;
		if (needs_symmetry(s))
			continue;
		run(s, inverse, false);
		if (s->kind == CKT_COMPLEX_TO_COMPLEX)
			run(s, true, false);
		if (may_be_in_place(s))
			run(s, inverse, true);
	}
}

/* To complex numbers and back gives n times what was there. */
static void there_and_back(
	int rank, int64_t nx, int64_t ny, int64_t nz, int64_t batch, bool in_place)
{
	struct shape there = {CKT_REAL_TO_COMPLEX, CKT_DOUBLE, rank, {nx, ny, nz}, .batch = batch},
		     back = there;
	back.kind = CKT_COMPLEX_TO_REAL;
	struct ckt_layout forward, backward;
	struct ckt_layout_request request = shape_request(&there),
				  back_request = shape_request(&back);
	MUST(ckt_soft_cufft_layout_init(&forward, &request), CUFFT_SUCCESS);
	MUST(ckt_soft_cufft_layout_init(&backward, &back_request), CUFFT_SUCCESS);
	MUST(ckt_soft_cufft_layout_make(&forward), CUFFT_SUCCESS);
	MUST(ckt_soft_cufft_layout_make(&backward), CUFFT_SUCCESS);
	size_t reals = ckt_soft_cufft_layout_extent(&forward, true, in_place),
	       complexes = ckt_soft_cufft_layout_extent(&forward, false, in_place);
	size_t room = reals > complexes ? reals : complexes;
	double *real = malloc(room), *again = malloc(room),
	       *spectrum = in_place ? real : malloc(complexes);
	void *work = malloc(ckt_soft_cufft_layout_work_bytes(&forward));
	double scale = 1;
	for (int axis = 0; axis < rank; axis++)
		scale *= (double)there.n[axis];
	IS(ckt_soft_cufft_layout_extent(&backward, false, in_place), reals);
	reference_fill(CKT_DOUBLE, real, room, 3);
	memcpy(again, real, room);
	ckt_soft_cufft_layout_run(&forward, real, spectrum, false, work);
	ckt_soft_cufft_layout_run(&backward, spectrum, real, true, work);
	/* Of padded rows the padding is nobody's. */
	int64_t n = there.n[rank - 1], row = in_place ? 2 * (n / 2 + 1) : n;
	for (size_t i = 0; i < reals / sizeof *real; i++)
		if ((int64_t)i % row < n)
			CU_ASSERT_DOUBLE_EQUAL(real[i] / scale, again[i], 1e-13);
	if (!in_place)
		free(spectrum);
	free(real);
	free(again);
	free(work);
	ckt_soft_cufft_layout_fini(&forward);
	ckt_soft_cufft_layout_fini(&backward);
}

static void test_real(void)
{
	for (int in_place = 0; in_place < 2; in_place++) {
		there_and_back(1, 8, 1, 1, 3, in_place);
		there_and_back(1, 9, 1, 1, 3, in_place);
		there_and_back(1, 2, 1, 1, 1, in_place);
		there_and_back(2, 5, 8, 1, 2, in_place);
		there_and_back(2, 8, 41, 1, 1, in_place);
		there_and_back(3, 3, 4, 7, 2, in_place);
	}
	/*
	 * One axis needs no symmetry but of its first and middle number, whose imaginary parts do
	 * not count.
	 */
	for (size_t i = 0; i < reference_shape_count; i++) {
		const struct shape *s = &reference_shapes[i];
		struct ckt_layout layout;
		struct ckt_layout_request request = shape_request(s);
		if (!needs_symmetry(s) || s->rank != 1)
			continue;
		MUST(ckt_soft_cufft_layout_init(&layout, &request), CUFFT_SUCCESS);
		MUST(ckt_soft_cufft_layout_make(&layout), CUFFT_SUCCESS);
		unsigned char in[8192], real_ends[8192], out[8192] = {0}, expected[8192] = {0};
		void *work = malloc(ckt_soft_cufft_layout_work_bytes(&layout));
		reference_fill(s->precision, in, sizeof in, 5);
		memcpy(real_ends, in, sizeof in);
		int64_t distance = s->in_embed[0] ? s->in_distance : s->n[0] / 2 + 1;
		for (int64_t b = 0; b < s->batch; b++)
			for (int64_t k = 0; k <= s->n[0] / 2; k++)
				if (2 * k % s->n[0] == 0)
					ckt_soft_cufft_number_write(s->precision, false, real_ends,
						b * distance + k,
						(struct ckt_complex){
							ckt_soft_cufft_number_read(s->precision,
								false, in, b * distance + k)
								.re,
							0});
		reference_run(s, real_ends, expected, true);
		ckt_soft_cufft_layout_run(&layout, in, out, true, work);
		YES(reference_difference(s->precision, out, expected, sizeof out) <=
			reference_tolerance(s->precision));
		free(work);
		ckt_soft_cufft_layout_fini(&layout);
	}
}

static cufftResult try(struct shape shape)
{
	struct ckt_layout layout;
	struct ckt_layout_request request = shape_request(&shape);
	return ckt_soft_cufft_layout_init(&layout, &request);
}

static void test_refused(void)
{
	struct shape good = {CKT_COMPLEX_TO_COMPLEX, CKT_SINGLE, 2, {4, 4, 1}, {4, 4, 1}, 1, 16,
			     {4, 4, 1}, 1, 16, 1},
		     s;
	IS(try(good), CUFFT_SUCCESS);
	s = good, s.rank = 0;
	IS(try(s), CUFFT_INVALID_VALUE);
	s = good, s.rank = 4;
	IS(try(s), CUFFT_INVALID_VALUE);
	s = good, s.n[1] = 0;
	IS(try(s), CUFFT_INVALID_SIZE);
	s = good, s.n[0] = -4;
	IS(try(s), CUFFT_INVALID_SIZE);
	s = good, s.n[0] = s.n[1] = (int64_t)1 << 32;
	IS(try(s), CUFFT_INVALID_SIZE);
	s = good, s.batch = 0;
	IS(try(s), CUFFT_INVALID_SIZE);
	s = good, s.in_stride = 0;
	IS(try(s), CUFFT_INVALID_VALUE);
	s = good, s.out_embed[1] = -1;
	IS(try(s), CUFFT_INVALID_VALUE);
	s = good, s.in_distance = -1;
	IS(try(s), CUFFT_INVALID_VALUE);
	s = good, s.in_embed[1] = INT64_MAX, s.in_stride = 8;
	IS(try(s), CUFFT_INVALID_VALUE);
	s = good, s.out_distance = INT64_MAX, s.batch = 1000;
	IS(try(s), CUFFT_INVALID_SIZE);
	/* 16-bit numbers: powers of two only, as cuFFT has it. */
	s = good, s.precision = CKT_HALF;
	IS(try(s), CUFFT_SUCCESS);
	s.n[1] = 3;
	IS(try(s), CUFFT_INVALID_SIZE);
	IS(ckt_soft_cufft_layout_init(
		   &(struct ckt_layout){0}, &(struct ckt_layout_request){.rank = 1, .batch = 1}),
		CUFFT_INVALID_VALUE);
}

static void test_types(void)
{
	enum ckt_layout_kind kind;
	enum ckt_layout_precision precision;
	YES(ckt_soft_cufft_layout_from_type(CUFFT_R2C, &kind, &precision) &&
		kind == CKT_REAL_TO_COMPLEX && precision == CKT_SINGLE);
	YES(ckt_soft_cufft_layout_from_type(CUFFT_Z2D, &kind, &precision) &&
		kind == CKT_COMPLEX_TO_REAL && precision == CKT_DOUBLE);
	YES(ckt_soft_cufft_layout_from_type(CUFFT_Z2Z, &kind, &precision) &&
		kind == CKT_COMPLEX_TO_COMPLEX && precision == CKT_DOUBLE);
	NO(ckt_soft_cufft_layout_from_type(0, &kind, &precision));
	YES(ckt_soft_cufft_layout_from_data_types(
		    CUDA_R_16F, CUDA_C_16F, CUDA_C_16F, &kind, &precision) &&
		kind == CKT_REAL_TO_COMPLEX);
	YES(ckt_soft_cufft_layout_from_data_types(
		    CUDA_C_16BF, CUDA_R_16BF, CUDA_C_16BF, &kind, &precision) &&
		kind == CKT_COMPLEX_TO_REAL && precision == CKT_BRAIN);
	YES(ckt_soft_cufft_layout_from_data_types(
		    CUDA_C_64F, CUDA_C_64F, CUDA_C_64F, &kind, &precision) &&
		precision == CKT_DOUBLE);
	NO(ckt_soft_cufft_layout_from_data_types(
		CUDA_R_32F, CUDA_R_32F, CUDA_C_32F, &kind, &precision));
	NO(ckt_soft_cufft_layout_from_data_types(
		CUDA_C_32F, CUDA_C_32F, CUDA_C_64F, &kind, &precision));
	NO(ckt_soft_cufft_layout_from_data_types(
		CUDA_C_32F, CUDA_C_32F, CUDA_R_32F, &kind, &precision));
}

UNIT_SUITE(layout, {"every form", test_forms}, {"real numbers", test_real},
	{"refused", test_refused}, {"types", test_types})
