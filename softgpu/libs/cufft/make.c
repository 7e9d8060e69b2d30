/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that make plans, and those that return the size of a work area.  Each makes a
 * request to plan.c.
 */
#include "softgpu/libs/cufft/plan.h"

#include <cufftXt.h>

/* A request in ints, converted to int64_t. */
struct wide {
	struct ckt_layout_request request;
	int64_t n[CKT_LAYOUT_RANK], in_embed[CKT_LAYOUT_RANK], out_embed[CKT_LAYOUT_RANK];
};

static cufftResult make(
	cufftHandle handle, const struct ckt_layout_request *request, size_t *ret_work_bytes)
{
	if (!ret_work_bytes)
		return CUFFT_INVALID_VALUE;
	struct ckt_plan *plan = ckt_soft_cufft_plan_lock(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	cufftResult result = ckt_soft_cufft_plan_make(plan, request, ret_work_bytes);
	ckt_soft_cufft_plan_unlock();
	return result;
}

static cufftResult measure(const struct ckt_layout_request *request, size_t *ret_work_bytes)
{
	struct ckt_layout layout;
	if (!ret_work_bytes)
		return CUFFT_INVALID_VALUE;
	cufftResult result = ckt_soft_cufft_layout_init(&layout, request);
	if (result == CUFFT_SUCCESS)
		*ret_work_bytes = ckt_soft_cufft_layout_work_bytes(&layout);
	return result;
}

static cufftResult measure_for(
	cufftHandle handle, const struct ckt_layout_request *request, size_t *ret_work_bytes)
{
	struct ckt_plan *plan = ckt_soft_cufft_plan_lock(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	cufftResult result = measure(request, ret_work_bytes);
	if (result == CUFFT_SUCCESS)
		ckt_plan_spread_size(plan, ret_work_bytes);
	ckt_soft_cufft_plan_unlock();
	return result;
}

static cufftResult create_and_make(
	cufftHandle *ret_handle, const struct ckt_layout_request *request)
{
	cufftHandle handle;
	size_t work_bytes;
	if (!ret_handle)
		return CUFFT_INVALID_VALUE;
	cufftResult result = ckt_soft_cufft_plan_create(&handle);
	if (result != CUFFT_SUCCESS)
		return result;
	result = make(handle, request, &work_bytes);
	if (result == CUFFT_SUCCESS)
		*ret_handle = handle;
	else
		ckt_soft_cufft_plan_destroy(handle);
	return result;
}

/* Makes the plan of a shape without embeds. */
static cufftResult dense(
	struct wide *wide, int rank, int nx, int ny, int nz, cufftType type, int batch)
{
	*wide = (struct wide){.request = {.rank = rank, .batch = batch}, .n = {nx, ny, nz}};
	wide->request.n = wide->n;
	return ckt_soft_cufft_layout_from_type(type, &wide->request.kind, &wide->request.precision)
		? CUFFT_SUCCESS
		: CUFFT_INVALID_TYPE;
}

static cufftResult many(struct wide *wide, int rank, const int *n, const int *in_embed,
	int in_stride, int in_distance, const int *out_embed, int out_stride, int out_distance,
	cufftType type, int batch)
{
	cufftResult result = dense(wide, rank, 0, 0, 0, type, batch);
	if (result != CUFFT_SUCCESS)
		return result;
	if (rank < 1 || rank > CKT_LAYOUT_RANK || !n)
		return CUFFT_INVALID_VALUE;
	for (int axis = 0; axis < rank; axis++) {
		wide->n[axis] = n[axis];
		wide->in_embed[axis] = in_embed ? in_embed[axis] : 0;
		wide->out_embed[axis] = out_embed ? out_embed[axis] : 0;
	}
	struct ckt_layout_request *r = &wide->request;
	r->in_embed = in_embed ? wide->in_embed : NULL;
	r->out_embed = out_embed ? wide->out_embed : NULL;
	r->in_stride = in_stride;
	r->in_distance = in_distance;
	r->out_stride = out_stride;
	r->out_distance = out_distance;
	return CUFFT_SUCCESS;
}

static struct ckt_layout_request many64(int rank, long long *n, long long *in_embed,
	long long in_stride, long long in_distance, long long *out_embed, long long out_stride,
	long long out_distance, long long batch)
{
	/* int64_t is long here, which has the size of long long. */
	return (struct ckt_layout_request){.rank = rank,
		.n = (int64_t *)n,
		.in_embed = (int64_t *)in_embed,
		.out_embed = (int64_t *)out_embed,
		.in_stride = in_stride,
		.in_distance = in_distance,
		.out_stride = out_stride,
		.out_distance = out_distance,
		.batch = batch};
}

cufftResult cufftPlan1d(cufftHandle *plan, int nx, cufftType type, int batch)
{
	struct wide wide;
	cufftResult result = dense(&wide, 1, nx, 0, 0, type, batch);
	return result == CUFFT_SUCCESS ? create_and_make(plan, &wide.request) : result;
}

cufftResult cufftPlan2d(cufftHandle *plan, int nx, int ny, cufftType type)
{
	struct wide wide;
	cufftResult result = dense(&wide, 2, nx, ny, 0, type, 1);
	return result == CUFFT_SUCCESS ? create_and_make(plan, &wide.request) : result;
}

cufftResult cufftPlan3d(cufftHandle *plan, int nx, int ny, int nz, cufftType type)
{
	struct wide wide;
	cufftResult result = dense(&wide, 3, nx, ny, nz, type, 1);
	return result == CUFFT_SUCCESS ? create_and_make(plan, &wide.request) : result;
}

cufftResult cufftPlanMany(cufftHandle *plan, int rank, int *n, int *inembed, int istride, int idist,
	int *onembed, int ostride, int odist, cufftType type, int batch)
{
	struct wide wide;
	cufftResult result =
		many(&wide, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch);
	return result == CUFFT_SUCCESS ? create_and_make(plan, &wide.request) : result;
}

cufftResult cufftMakePlan1d(cufftHandle plan, int nx, cufftType type, int batch, size_t *workSize)
{
	struct wide wide;
	cufftResult result = dense(&wide, 1, nx, 0, 0, type, batch);
	return result == CUFFT_SUCCESS ? make(plan, &wide.request, workSize) : result;
}

cufftResult cufftMakePlan2d(cufftHandle plan, int nx, int ny, cufftType type, size_t *workSize)
{
	struct wide wide;
	cufftResult result = dense(&wide, 2, nx, ny, 0, type, 1);
	return result == CUFFT_SUCCESS ? make(plan, &wide.request, workSize) : result;
}

cufftResult cufftMakePlan3d(
	cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t *workSize)
{
	struct wide wide;
	cufftResult result = dense(&wide, 3, nx, ny, nz, type, 1);
	return result == CUFFT_SUCCESS ? make(plan, &wide.request, workSize) : result;
}

cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int *n, int *inembed, int istride,
	int idist, int *onembed, int ostride, int odist, cufftType type, int batch,
	size_t *workSize)
{
	struct wide wide;
	cufftResult result =
		many(&wide, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch);
	return result == CUFFT_SUCCESS ? make(plan, &wide.request, workSize) : result;
}

cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long *n, long long *inembed,
	long long istride, long long idist, long long *onembed, long long ostride, long long odist,
	cufftType type, long long batch, size_t *workSize)
{
	struct ckt_layout_request request =
		many64(rank, n, inembed, istride, idist, onembed, ostride, odist, batch);
	if (!ckt_soft_cufft_layout_from_type(type, &request.kind, &request.precision))
		return CUFFT_INVALID_TYPE;
	return make(plan, &request, workSize);
}

cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long *n, long long *inembed,
	long long istride, long long idist, cudaDataType inputtype, long long *onembed,
	long long ostride, long long odist, cudaDataType outputtype, long long batch,
	size_t *workSize, cudaDataType executiontype)
{
	struct ckt_layout_request request =
		many64(rank, n, inembed, istride, idist, onembed, ostride, odist, batch);
	if (!ckt_soft_cufft_layout_from_data_types(
		    inputtype, outputtype, executiontype, &request.kind, &request.precision))
		return CUFFT_INVALID_TYPE;
	return make(plan, &request, workSize);
}

cufftResult cufftEstimate1d(int nx, cufftType type, int batch, size_t *workSize)
{
	struct wide wide;
	cufftResult result = dense(&wide, 1, nx, 0, 0, type, batch);
	return result == CUFFT_SUCCESS ? measure(&wide.request, workSize) : result;
}

cufftResult cufftEstimate2d(int nx, int ny, cufftType type, size_t *workSize)
{
	struct wide wide;
	cufftResult result = dense(&wide, 2, nx, ny, 0, type, 1);
	return result == CUFFT_SUCCESS ? measure(&wide.request, workSize) : result;
}

cufftResult cufftEstimate3d(int nx, int ny, int nz, cufftType type, size_t *workSize)
{
	struct wide wide;
	cufftResult result = dense(&wide, 3, nx, ny, nz, type, 1);
	return result == CUFFT_SUCCESS ? measure(&wide.request, workSize) : result;
}

cufftResult cufftEstimateMany(int rank, int *n, int *inembed, int istride, int idist, int *onembed,
	int ostride, int odist, cufftType type, int batch, size_t *workSize)
{
	struct wide wide;
	cufftResult result =
		many(&wide, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch);
	return result == CUFFT_SUCCESS ? measure(&wide.request, workSize) : result;
}

cufftResult cufftGetSize1d(cufftHandle handle, int nx, cufftType type, int batch, size_t *workSize)
{
	struct wide wide;
	cufftResult result = dense(&wide, 1, nx, 0, 0, type, batch);
	return result == CUFFT_SUCCESS ? measure_for(handle, &wide.request, workSize) : result;
}

cufftResult cufftGetSize2d(cufftHandle handle, int nx, int ny, cufftType type, size_t *workSize)
{
	struct wide wide;
	cufftResult result = dense(&wide, 2, nx, ny, 0, type, 1);
	return result == CUFFT_SUCCESS ? measure_for(handle, &wide.request, workSize) : result;
}

cufftResult cufftGetSize3d(
	cufftHandle handle, int nx, int ny, int nz, cufftType type, size_t *workSize)
{
	struct wide wide;
	cufftResult result = dense(&wide, 3, nx, ny, nz, type, 1);
	return result == CUFFT_SUCCESS ? measure_for(handle, &wide.request, workSize) : result;
}

cufftResult cufftGetSizeMany(cufftHandle handle, int rank, int *n, int *inembed, int istride,
	int idist, int *onembed, int ostride, int odist, cufftType type, int batch,
	size_t *workArea)
{
	struct wide wide;
	cufftResult result =
		many(&wide, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch);
	return result == CUFFT_SUCCESS ? measure_for(handle, &wide.request, workArea) : result;
}

cufftResult cufftGetSizeMany64(cufftHandle plan, int rank, long long *n, long long *inembed,
	long long istride, long long idist, long long *onembed, long long ostride, long long odist,
	cufftType type, long long batch, size_t *workSize)
{
	struct ckt_layout_request request =
		many64(rank, n, inembed, istride, idist, onembed, ostride, odist, batch);
	if (!ckt_soft_cufft_layout_from_type(type, &request.kind, &request.precision))
		return CUFFT_INVALID_TYPE;
	return measure_for(plan, &request, workSize);
}

cufftResult cufftXtGetSizeMany(cufftHandle plan, int rank, long long *n, long long *inembed,
	long long istride, long long idist, cudaDataType inputtype, long long *onembed,
	long long ostride, long long odist, cudaDataType outputtype, long long batch,
	size_t *workSize, cudaDataType executiontype)
{
	struct ckt_layout_request request =
		many64(rank, n, inembed, istride, idist, onembed, ostride, odist, batch);
	if (!ckt_soft_cufft_layout_from_data_types(
		    inputtype, outputtype, executiontype, &request.kind, &request.precision))
		return CUFFT_INVALID_TYPE;
	return measure_for(plan, &request, workSize);
}
