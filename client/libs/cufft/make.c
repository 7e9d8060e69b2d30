/* The functions that make plans and tell their sizes: each is a shape, which travels in one message. */
#include "client/libs/cufft/cufft.h"

#include <string.h>

/* bits of `given` */
enum { GIVEN_N = 1, GIVEN_IN = 2, GIVEN_OUT = 4 };

struct shape {
	struct ckt_fft_make_args args;	/* without the plan, and arrays that point below */
	uint64_t n[CKT_FFT_RANK_MAX], in_embed[CKT_FFT_RANK_MAX], out_embed[CKT_FFT_RANK_MAX];
};

static void point(struct shape *shape, uint32_t rank)
{
	struct ckt_fft_make_args *a = &shape->args;
	a->n = shape->n;
	a->in_embed = shape->in_embed;
	a->out_embed = shape->out_embed;
	a->n_len = a->given & GIVEN_N ? rank : 0;
	a->in_embed_len = a->given & GIVEN_IN ? rank : 0;
	a->out_embed_len = a->given & GIVEN_OUT ? rank : 0;
}

static void dense(struct shape *shape, uint32_t rank, int nx, int ny, int nz, cufftType type, int batch)
{
	*shape = (struct shape){.args = {.form = rank, .given = GIVEN_N, .type = (int32_t)type, .batch = batch}};
	shape->n[0] = (uint64_t)(int64_t)nx;
	shape->n[1] = (uint64_t)(int64_t)ny;
	shape->n[2] = (uint64_t)(int64_t)nz;
	point(shape, rank);
}

static bool has_rank(int rank, const void *n)
{
	return rank >= 1 && rank <= CKT_FFT_RANK_MAX && n;
}

static void widen(uint64_t *to, const int *from, int rank)
{
	for (int i = 0; from && i < rank; i++)
		to[i] = (uint64_t)(int64_t)from[i];
}

static cufftResult many(struct shape *shape, int rank, const int *n, const int *in, int in_stride, int in_distance, const int *out,
	int out_stride, int out_distance, cufftType type, int batch)
{
	if (!has_rank(rank, n))
		return CUFFT_INVALID_VALUE;
	*shape = (struct shape){.args = {.form = CKT_FFT_MANY, .given = GIVEN_N | (in ? GIVEN_IN : 0) | (out ? GIVEN_OUT : 0), .in_stride = in_stride,
		.in_distance = in_distance, .out_stride = out_stride, .out_distance = out_distance, .type = (int32_t)type, .batch = batch}};
	widen(shape->n, n, rank);
	widen(shape->in_embed, in, rank);
	widen(shape->out_embed, out, rank);
	point(shape, (uint32_t)rank);
	return CUFFT_SUCCESS;
}

static cufftResult many64(struct shape *shape, enum ckt_fft_form form, int rank, const long long *n, const long long *in, long long in_stride,
	long long in_distance, const long long *out, long long out_stride, long long out_distance, long long batch)
{
	if (!has_rank(rank, n))
		return CUFFT_INVALID_VALUE;
	size_t bytes = (size_t)rank * sizeof *n;
	*shape = (struct shape){.args = {.form = form, .given = GIVEN_N | (in ? GIVEN_IN : 0) | (out ? GIVEN_OUT : 0), .in_stride = in_stride,
		.in_distance = in_distance, .out_stride = out_stride, .out_distance = out_distance, .batch = batch}};
	memcpy(shape->n, n, bytes);
	if (in)
		memcpy(shape->in_embed, in, bytes);
	if (out)
		memcpy(shape->out_embed, out, bytes);
	point(shape, (uint32_t)rank);
	return CUFFT_SUCCESS;
}

static cufftResult make(cufftHandle handle, struct shape *shape, size_t *ret_bytes)
{
	struct ckt_fft_plan plan;
	struct ckt_fft_make_res res;
	if (!ret_bytes)
		return CUFFT_INVALID_VALUE;
	if (!ckt_fft_plan_get(handle, &plan))
		return CUFFT_INVALID_PLAN;
	shape->args.plan = plan.id;
	cufftResult status = CKT_FFT_WAIT(FFT_MAKE, fft_make, &shape->args, &res, CKT_CALL_F_NUMBERED);
	if (status != CUFFT_SUCCESS)
		return status;
	plan.made = true;
	plan.type = shape->args.form == CKT_FFT_XT ? 0 : shape->args.type;
	plan.real = shape->args.form == CKT_FFT_XT ? shape->args.in_type != shape->args.out_type : plan.type != CUFFT_C2C && plan.type != CUFFT_Z2Z;
	ckt_fft_plan_put(handle, &plan);
	*ret_bytes = res.work_bytes;
	return CUFFT_SUCCESS;
}

static cufftResult create_and_make(cufftHandle *ret_handle, struct shape *shape)
{
	cufftHandle handle;
	size_t bytes;
	if (!ret_handle)
		return CUFFT_INVALID_VALUE;
	cufftResult status = cufftCreate(&handle);
	if (status != CUFFT_SUCCESS)
		return status;
	status = make(handle, shape, &bytes);
	if (status == CUFFT_SUCCESS)
		*ret_handle = handle;
	else
		cufftDestroy(handle);
	return status;
}

/* plan 0: an estimate. */
static cufftResult measure(uint64_t plan, const struct shape *shape, size_t *ret_bytes)
{
	struct ckt_fft_measure_res res;
	const struct ckt_fft_make_args *a = &shape->args;
	if (!ret_bytes)
		return CUFFT_INVALID_VALUE;
	struct ckt_fft_measure_args args = {.plan = plan, .form = a->form, .given = a->given, .n = a->n, .n_len = a->n_len, .in_embed = a->in_embed,
		.in_embed_len = a->in_embed_len, .out_embed = a->out_embed, .out_embed_len = a->out_embed_len, .in_stride = a->in_stride,
		.in_distance = a->in_distance, .out_stride = a->out_stride, .out_distance = a->out_distance, .type = a->type, .in_type = a->in_type,
		.out_type = a->out_type, .execution_type = a->execution_type, .batch = a->batch};
	cufftResult status = CKT_FFT_WAIT(FFT_MEASURE, fft_measure, &args, &res, 0);
	if (status == CUFFT_SUCCESS)
		*ret_bytes = res.work_bytes;
	return status;
}

static cufftResult measure_for(cufftHandle handle, const struct shape *shape, size_t *ret_bytes)
{
	struct ckt_fft_plan plan;
	return ckt_fft_plan_get(handle, &plan) ? measure(plan.id, shape, ret_bytes) : CUFFT_INVALID_PLAN;
}

cufftResult cufftPlan1d(cufftHandle *plan, int nx, cufftType type, int batch)
{
	struct shape shape;
	dense(&shape, 1, nx, 0, 0, type, batch);
	return create_and_make(plan, &shape);
}

cufftResult cufftPlan2d(cufftHandle *plan, int nx, int ny, cufftType type)
{
	struct shape shape;
	dense(&shape, 2, nx, ny, 0, type, 1);
	return create_and_make(plan, &shape);
}

cufftResult cufftPlan3d(cufftHandle *plan, int nx, int ny, int nz, cufftType type)
{
	struct shape shape;
	dense(&shape, 3, nx, ny, nz, type, 1);
	return create_and_make(plan, &shape);
}

cufftResult cufftPlanMany(cufftHandle *plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride, int odist,
	cufftType type, int batch)
{
	struct shape shape;
	cufftResult status = many(&shape, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch);
	return status == CUFFT_SUCCESS ? create_and_make(plan, &shape) : status;
}

cufftResult cufftMakePlan1d(cufftHandle plan, int nx, cufftType type, int batch, size_t *workSize)
{
	struct shape shape;
	dense(&shape, 1, nx, 0, 0, type, batch);
	return make(plan, &shape, workSize);
}

cufftResult cufftMakePlan2d(cufftHandle plan, int nx, int ny, cufftType type, size_t *workSize)
{
	struct shape shape;
	dense(&shape, 2, nx, ny, 0, type, 1);
	return make(plan, &shape, workSize);
}

cufftResult cufftMakePlan3d(cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t *workSize)
{
	struct shape shape;
	dense(&shape, 3, nx, ny, nz, type, 1);
	return make(plan, &shape, workSize);
}

cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride, int odist,
	cufftType type, int batch, size_t *workSize)
{
	struct shape shape;
	cufftResult status = many(&shape, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch);
	return status == CUFFT_SUCCESS ? make(plan, &shape, workSize) : status;
}

cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long *n, long long *inembed, long long istride, long long idist,
	long long *onembed, long long ostride, long long odist, cufftType type, long long batch, size_t *workSize)
{
	struct shape shape;
	cufftResult status = many64(&shape, CKT_FFT_MANY64, rank, n, inembed, istride, idist, onembed, ostride, odist, batch);
	if (status != CUFFT_SUCCESS)
		return status;
	shape.args.type = (int32_t)type;
	return make(plan, &shape, workSize);
}

static void set_types(struct shape *shape, cudaDataType in, cudaDataType out, cudaDataType execution)
{
	shape->args.in_type = (int32_t)in;
	shape->args.out_type = (int32_t)out;
	shape->args.execution_type = (int32_t)execution;
}

cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long *n, long long *inembed, long long istride, long long idist,
	cudaDataType inputtype, long long *onembed, long long ostride, long long odist, cudaDataType outputtype, long long batch,
	size_t *workSize, cudaDataType executiontype)
{
	struct shape shape;
	cufftResult status = many64(&shape, CKT_FFT_XT, rank, n, inembed, istride, idist, onembed, ostride, odist, batch);
	if (status != CUFFT_SUCCESS)
		return status;
	set_types(&shape, inputtype, outputtype, executiontype);
	return make(plan, &shape, workSize);
}

cufftResult cufftEstimate1d(int nx, cufftType type, int batch, size_t *workSize)
{
	struct shape shape;
	dense(&shape, 1, nx, 0, 0, type, batch);
	return measure(0, &shape, workSize);
}

cufftResult cufftEstimate2d(int nx, int ny, cufftType type, size_t *workSize)
{
	struct shape shape;
	dense(&shape, 2, nx, ny, 0, type, 1);
	return measure(0, &shape, workSize);
}

cufftResult cufftEstimate3d(int nx, int ny, int nz, cufftType type, size_t *workSize)
{
	struct shape shape;
	dense(&shape, 3, nx, ny, nz, type, 1);
	return measure(0, &shape, workSize);
}

cufftResult cufftEstimateMany(int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride, int odist, cufftType type,
	int batch, size_t *workSize)
{
	struct shape shape;
	cufftResult status = many(&shape, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch);
	return status == CUFFT_SUCCESS ? measure(0, &shape, workSize) : status;
}

cufftResult cufftGetSize1d(cufftHandle handle, int nx, cufftType type, int batch, size_t *workSize)
{
	struct shape shape;
	dense(&shape, 1, nx, 0, 0, type, batch);
	return measure_for(handle, &shape, workSize);
}

cufftResult cufftGetSize2d(cufftHandle handle, int nx, int ny, cufftType type, size_t *workSize)
{
	struct shape shape;
	dense(&shape, 2, nx, ny, 0, type, 1);
	return measure_for(handle, &shape, workSize);
}

cufftResult cufftGetSize3d(cufftHandle handle, int nx, int ny, int nz, cufftType type, size_t *workSize)
{
	struct shape shape;
	dense(&shape, 3, nx, ny, nz, type, 1);
	return measure_for(handle, &shape, workSize);
}

cufftResult cufftGetSizeMany(cufftHandle handle, int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride, int odist,
	cufftType type, int batch, size_t *workArea)
{
	struct shape shape;
	cufftResult status = many(&shape, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch);
	return status == CUFFT_SUCCESS ? measure_for(handle, &shape, workArea) : status;
}

cufftResult cufftGetSizeMany64(cufftHandle plan, int rank, long long *n, long long *inembed, long long istride, long long idist,
	long long *onembed, long long ostride, long long odist, cufftType type, long long batch, size_t *workSize)
{
	struct shape shape;
	cufftResult status = many64(&shape, CKT_FFT_MANY64, rank, n, inembed, istride, idist, onembed, ostride, odist, batch);
	if (status != CUFFT_SUCCESS)
		return status;
	shape.args.type = (int32_t)type;
	return measure_for(plan, &shape, workSize);
}

cufftResult cufftXtGetSizeMany(cufftHandle plan, int rank, long long *n, long long *inembed, long long istride, long long idist,
	cudaDataType inputtype, long long *onembed, long long ostride, long long odist, cudaDataType outputtype, long long batch,
	size_t *workSize, cudaDataType executiontype)
{
	struct shape shape;
	cufftResult status = many64(&shape, CKT_FFT_XT, rank, n, inembed, istride, idist, onembed, ostride, odist, batch);
	if (status != CUFFT_SUCCESS)
		return status;
	set_types(&shape, inputtype, outputtype, executiontype);
	return measure_for(plan, &shape, workSize);
}

cufftResult cufftGetSize(cufftHandle handle, size_t *workSize)
{
	struct ckt_fft_plan plan;
	struct ckt_fft_size_res res;
	if (!workSize)
		return CUFFT_INVALID_VALUE;
	if (!ckt_fft_plan_get(handle, &plan))
		return CUFFT_INVALID_PLAN;
	struct ckt_fft_size_args args = {.plan = plan.id};
	cufftResult status = CKT_FFT_WAIT(FFT_SIZE, fft_size, &args, &res, 0);
	if (status == CUFFT_SUCCESS)
		*workSize = res.work_bytes;
	return status;
}
