/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes of cuFFT's plans in one message, as earlier builds sent them and their images hold them.
 * The genuine function that the program called makes or measures the plan.
 */
#include <stdlib.h>

#include "server/worker/libs/library_long_call.h"
#include "server/worker/libs/cufft/cufft.h"
#include "server/worker/worker.h"

enum { FORM_1D = 1, FORM_2D, FORM_3D, FORM_MANY, FORM_MANY64, FORM_XT };
enum { RANK_MAX = 3, GIVEN_IN = 2, GIVEN_OUT = 4 };

/* A message's shape in the types of the functions; functions with ints get the low words. */
struct shape {
	struct ckt_fft_measure_args args;
	int rank;
	long long n64[RANK_MAX], in64[RANK_MAX], out64[RANK_MAX];
	int n[RANK_MAX], in[RANK_MAX], out[RANK_MAX];
	bool has_in, has_out;
};

static void words(const uint8_t *xdr, uint32_t count, long long *ret_wide, int *ret_narrow)
{
	for (uint32_t i = 0; i < count; i++) {
		ret_wide[i] = (long long)ckt_xdr_u64(xdr, i);
		ret_narrow[i] = (int)ret_wide[i];
	}
}

/* False if no client sends such a message. */
static bool unpack(struct shape *s)
{
	const struct ckt_fft_measure_args *a = &s->args;
	s->rank = (int)a->n_len;
	s->has_in = a->given & GIVEN_IN;
	s->has_out = a->given & GIVEN_OUT;
	if (a->form < FORM_1D || a->form > FORM_XT || !a->n_len ||
		(a->form <= FORM_3D && a->n_len != a->form))
		return false;
	if (a->in_embed_len != (s->has_in ? a->n_len : 0) ||
		a->out_embed_len != (s->has_out ? a->n_len : 0))
		return false;
	words(a->n_xdr, a->n_len, s->n64, s->n);
	words(a->in_embed_xdr, a->in_embed_len, s->in64, s->in);
	words(a->out_embed_xdr, a->out_embed_len, s->out64, s->out);
	return true;
}

/* For a function that an older library lacks. */
#define CALL(function, ...) (function ? function(__VA_ARGS__) : CUFFT_NOT_SUPPORTED)
#define TYPE ((cufftType)a->type)
#define DENSE_1D s->n[0], TYPE, (int)a->batch
#define DENSE_2D s->n[0], s->n[1], TYPE
#define DENSE_3D s->n[0], s->n[1], s->n[2], TYPE
#define MANY                                                                                \
	s->rank, s->n, s->has_in ? s->in : NULL, (int)a->in_stride, (int)a->in_distance,    \
		s->has_out ? s->out : NULL, (int)a->out_stride, (int)a->out_distance, TYPE, \
		(int)a->batch
#define WIDE_IN s->rank, s->n64, s->has_in ? s->in64 : NULL, a->in_stride, a->in_distance
#define WIDE_OUT s->has_out ? s->out64 : NULL, a->out_stride, a->out_distance

/* The MakePlan function of each form of a shape; GetSize has the same parameters. */
struct by_form {
	__typeof__(&cufftMakePlan1d) dense_1d;
	__typeof__(&cufftMakePlan2d) dense_2d;
	__typeof__(&cufftMakePlan3d) dense_3d;
	__typeof__(&cufftMakePlanMany) many;
	__typeof__(&cufftMakePlanMany64) many64;
	__typeof__(&cufftXtMakePlanMany) xt;
};

#define BY_FORM(Verb)                                                                            \
	{                                                                                        \
		ckt_cufft.cufft##Verb##1d, ckt_cufft.cufft##Verb##2d, ckt_cufft.cufft##Verb##3d, \
			ckt_cufft.cufft##Verb##Many, ckt_cufft.cufft##Verb##Many64,              \
			ckt_cufft.cufftXt##Verb##Many                                            \
	}

/* Makes the plan, or measures one. */
static cufftResult call_by_form(
	const struct by_form *functions, cufftHandle plan, struct shape *s, size_t *bytes)
{
	const struct ckt_fft_measure_args *a = &s->args;
	switch (a->form) {
	case FORM_1D:
		return CALL(functions->dense_1d, plan, DENSE_1D, bytes);
	case FORM_2D:
		return CALL(functions->dense_2d, plan, DENSE_2D, bytes);
	case FORM_3D:
		return CALL(functions->dense_3d, plan, DENSE_3D, bytes);
	case FORM_MANY:
		return CALL(functions->many, plan, MANY, bytes);
	case FORM_MANY64:
		return CALL(functions->many64, plan, WIDE_IN, WIDE_OUT, TYPE, a->batch, bytes);
	default:
		return CALL(functions->xt, plan, WIDE_IN, (cudaDataType)a->in_type, WIDE_OUT,
			(cudaDataType)a->out_type, a->batch, bytes,
			(cudaDataType)a->execution_type);
	}
}

/* The two 64-bit forms have no estimates. */
static cufftResult estimate(struct shape *s, size_t *bytes)
{
	const struct ckt_fft_measure_args *a = &s->args;
	switch (a->form) {
	case FORM_1D:
		return CALL(ckt_cufft.cufftEstimate1d, DENSE_1D, bytes);
	case FORM_2D:
		return CALL(ckt_cufft.cufftEstimate2d, DENSE_2D, bytes);
	case FORM_3D:
		return CALL(ckt_cufft.cufftEstimate3d, DENSE_3D, bytes);
	case FORM_MANY:
		return CALL(ckt_cufft.cufftEstimateMany, MANY, bytes);
	default:
		return CUFFT_NOT_SUPPORTED;
	}
}

/* A plan that is being made: the library loads modules, compiles, and fills tables for it. */
struct making {
	struct ckt_library_long_call beside;
	struct shape shape;
	cufftHandle plan;
	size_t *bytes; /* of the plan's notes: one for each of its GPUs */
	cufftResult status;
};

static void make(struct ckt_library_long_call *beside)
{
	struct making *making = (struct making *)beside;
	const struct by_form functions = BY_FORM(MakePlan);
	*making->bytes = 0;
	making->status = call_by_form(&functions, making->plan, &making->shape, making->bytes);
	beside->failed = ckt_worker_cufft_out_of_memory(making->status);
}

static int made(struct ckt_library_long_call *beside)
{
	const struct making *making = (struct making *)beside;
	struct ckt_wcall *call = beside->call;
	struct ckt_fft_make_res res = {
		.status = (int32_t)making->status, .work_bytes = *making->bytes};
	call->status = res.status;
	ckt_fft_make_res_put(ckt_wcall_results(call, ckt_fft_make_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_fft_make(struct ckt_wcall *call)
{
	/* Both messages have the same fields in the same order. */
	struct shape shape = {0};
	struct ckt_object *object;
	cufftHandle plan;
	_Static_assert(sizeof(struct ckt_fft_make_args) == sizeof(struct ckt_fft_measure_args),
		"make and measure carry the same shape");
	if (!ckt_fft_measure_args_get(&call->args, &shape.args) || !unpack(&shape))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_cufft_plan(call->worker, shape.args.plan, &object, &plan);
	if (result)
		return result;
	struct making *making = calloc(1, sizeof *making);
	if (!making)
		return CUDA_ERROR_OUT_OF_MEMORY;
	making->shape = shape;
	making->plan = plan;
	making->bytes = ckt_cufft_sizes(object);
	making->beside.run = make;
	making->beside.done = made;
	making->beside.owner = shape.args.plan;
	return ckt_library_long_call(call, &making->beside);
}

int ckt_worker_fft_measure(struct ckt_wcall *call)
{
	struct shape shape = {0};
	struct ckt_object *object;
	cufftHandle plan;
	size_t estimated = 0, *bytes = &estimated;
	if (!ckt_fft_measure_args_get(&call->args, &shape.args) || !unpack(&shape))
		return CKT_WCALL_GARBAGE;
	struct ckt_fft_measure_res res = {0};
	if (!shape.args.plan) {
		res.status = (int32_t)estimate(&shape, bytes);
	} else {
		CUresult result =
			ckt_worker_cufft_plan(call->worker, shape.args.plan, &object, &plan);
		if (result)
			return result;
		const struct by_form functions = BY_FORM(GetSize);
		bytes = ckt_cufft_sizes(object);
		*bytes = 0;
		res.status = (int32_t)call_by_form(&functions, plan, &shape, bytes);
	}
	res.work_bytes = *bytes;
	ckt_fft_measure_res_put(ckt_wcall_results(call, ckt_fft_measure_res_size(&res)), &res);
	return CUDA_SUCCESS;
}
