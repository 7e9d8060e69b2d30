/* SPDX-License-Identifier: Apache-2.0 */
/* Creates plans, changes their settings, executes and destroys them; versions. */
#include "softgpu/libs/cufft/plan.h"

#include <cufftXt.h>

cufftResult cufftCreate(cufftHandle *handle)
{
	return ckt_soft_cufft_plan_create(handle);
}

cufftResult cufftDestroy(cufftHandle plan)
{
	return ckt_soft_cufft_plan_destroy(plan);
}

/* Precondition: locked.  Unlocks. */
static cufftResult execute(struct ckt_plan *plan, void *in, void *out, bool inverse)
{
	cufftResult result = ckt_soft_cufft_plan_run(plan, in, out, inverse);
	ckt_soft_cufft_plan_unlock();
	return result;
}

/* Executes if the function's type is the plan's type. */
static cufftResult execute_typed(
	cufftHandle handle, void *in, void *out, cufftType type, int direction)
{
	enum ckt_layout_kind kind = CKT_COMPLEX_TO_COMPLEX;
	enum ckt_layout_precision precision = CKT_SINGLE;
	struct ckt_plan *plan = ckt_soft_cufft_plan_lock(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	cufftResult result = CUFFT_SUCCESS;
	ckt_soft_cufft_layout_from_type(type, &kind, &precision);
	if (!plan->shape)
		result = CUFFT_INVALID_PLAN;
	else if (plan->shape->layout.kind != kind || plan->shape->layout.precision != precision)
		result = CUFFT_INVALID_TYPE;
	else if (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE)
		result = CUFFT_INVALID_VALUE;
	if (result == CUFFT_SUCCESS)
		return execute(plan, in, out, direction == CUFFT_INVERSE);
	ckt_soft_cufft_plan_unlock();
	return result;
}

cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *idata, cufftComplex *odata, int direction)
{
	return execute_typed(plan, idata, odata, CUFFT_C2C, direction);
}

cufftResult cufftExecR2C(cufftHandle plan, cufftReal *idata, cufftComplex *odata)
{
	return execute_typed(plan, idata, odata, CUFFT_R2C, CUFFT_FORWARD);
}

cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *idata, cufftReal *odata)
{
	return execute_typed(plan, idata, odata, CUFFT_C2R, CUFFT_INVERSE);
}

cufftResult cufftExecZ2Z(
	cufftHandle plan, cufftDoubleComplex *idata, cufftDoubleComplex *odata, int direction)
{
	return execute_typed(plan, idata, odata, CUFFT_Z2Z, direction);
}

cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal *idata, cufftDoubleComplex *odata)
{
	return execute_typed(plan, idata, odata, CUFFT_D2Z, CUFFT_FORWARD);
}

cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex *idata, cufftDoubleReal *odata)
{
	return execute_typed(plan, idata, odata, CUFFT_Z2D, CUFFT_INVERSE);
}

/* A plan with a real side has one direction and ignores the argument. */
cufftResult cufftXtExec(cufftHandle handle, void *input, void *output, int direction)
{
	struct ckt_plan *plan = ckt_soft_cufft_plan_lock(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	enum ckt_layout_kind kind = plan->shape ? plan->shape->layout.kind : CKT_COMPLEX_TO_COMPLEX;
	cufftResult result = CUFFT_SUCCESS;
	if (!plan->shape)
		result = CUFFT_INVALID_PLAN;
	else if (kind == CKT_COMPLEX_TO_COMPLEX && direction != CUFFT_FORWARD &&
		direction != CUFFT_INVERSE)
		result = CUFFT_INVALID_VALUE;
	if (result == CUFFT_SUCCESS)
		return execute(plan, input, output,
			kind == CKT_COMPLEX_TO_REAL ||
				(kind == CKT_COMPLEX_TO_COMPLEX && direction == CUFFT_INVERSE));
	ckt_soft_cufft_plan_unlock();
	return result;
}

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream)
{
	struct ckt_plan *plan = ckt_soft_cufft_plan_lock(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	plan->stream = (CUstream)stream;
	ckt_soft_cufft_plan_unlock();
	return CUFFT_SUCCESS;
}

cufftResult cufftSetAutoAllocation(cufftHandle handle, int autoAllocate)
{
	struct ckt_plan *plan = ckt_soft_cufft_plan_lock(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	plan->auto_allocate = autoAllocate != 0;
	ckt_soft_cufft_plan_unlock();
	return CUFFT_SUCCESS;
}

/* The plan's own area stays allocated until the plan ends: queued work may use it. */
cufftResult cufftSetWorkArea(cufftHandle handle, void *workArea)
{
	struct ckt_plan *plan = ckt_soft_cufft_plan_lock(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	plan->work = workArea ? (CUdeviceptr)workArea : plan->own_work;
	ckt_soft_cufft_plan_unlock();
	return CUFFT_SUCCESS;
}

/* The caller gives one area for each GPU. The CPU computes for all GPUs and uses one. */
cufftResult cufftXtSetWorkArea(cufftHandle plan, void **workArea)
{
	return workArea ? cufftSetWorkArea(plan, workArea[0]) : CUFFT_INVALID_VALUE;
}

cufftResult cufftGetSize(cufftHandle handle, size_t *workSize)
{
	if (!workSize)
		return CUFFT_INVALID_VALUE;
	struct ckt_plan *plan = ckt_soft_cufft_plan_lock(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	bool made = plan->shape != NULL;
	if (made) {
		*workSize = ckt_soft_cufft_layout_work_bytes(&plan->shape->layout);
		ckt_plan_spread_size(plan, workSize);
	}
	ckt_soft_cufft_plan_unlock();
	return made ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

/* The work area has a fixed size: a smaller one is not enough, and a larger one is no faster. */
cufftResult cufftXtSetWorkAreaPolicy(
	cufftHandle plan, cufftXtWorkAreaPolicy policy, size_t *workSize)
{
	size_t needed[MAX_CUDA_DESCRIPTOR_GPUS];
	if (policy != CUFFT_WORKAREA_MINIMAL && policy != CUFFT_WORKAREA_USER &&
		policy != CUFFT_WORKAREA_PERFORMANCE)
		return CUFFT_INVALID_VALUE;
	cufftResult result = cufftGetSize(plan, needed);
	if (result != CUFFT_SUCCESS)
		return result;
	if (policy == CUFFT_WORKAREA_USER && (!workSize || *workSize < needed[0]))
		return workSize ? CUFFT_INVALID_SIZE : CUFFT_INVALID_VALUE;
	if (policy != CUFFT_WORKAREA_USER && workSize)
		*workSize = needed[0];
	return CUFFT_SUCCESS;
}

static const struct {
	cufftProperty property;
	int64_t initial;
} properties[CKT_PLAN_PROPERTIES] = {
	{NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT, 0},
	{NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS, 1},
};

static int property_index(cufftProperty property)
{
	for (int i = 0; i < CKT_PLAN_PROPERTIES; i++)
		if (properties[i].property == property)
			return i;
	return -1;
}

/*
 * Stores a property without effect, because nothing is compiled here.  New plans have 0, which
 * stands for the initial value.
 */
cufftResult cufftSetPlanPropertyInt64(
	cufftHandle handle, cufftProperty property, const long long int value)
{
	int index = property_index(property);
	struct ckt_plan *plan = ckt_soft_cufft_plan_lock(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	/* Properties affect how a plan is made, so a made plan refuses them. */
	cufftResult result = plan->shape ? CUFFT_INVALID_PLAN
		: index < 0 || value < 0 ? CUFFT_INVALID_VALUE
					 : CUFFT_SUCCESS;
	if (result == CUFFT_SUCCESS)
		plan->properties[index] = value - properties[index].initial;
	ckt_soft_cufft_plan_unlock();
	return result;
}

cufftResult cufftGetPlanPropertyInt64(
	cufftHandle handle, cufftProperty property, long long int *value)
{
	int index = property_index(property);
	struct ckt_plan *plan = ckt_soft_cufft_plan_lock(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	cufftResult result = index < 0 || !value ? CUFFT_INVALID_VALUE : CUFFT_SUCCESS;
	if (result == CUFFT_SUCCESS)
		*value = plan->properties[index] + properties[index].initial;
	ckt_soft_cufft_plan_unlock();
	return result;
}

cufftResult cufftResetPlanProperty(cufftHandle handle, cufftProperty property)
{
	int index = property_index(property);
	return index < 0 ? CUFFT_INVALID_VALUE
			 : cufftSetPlanPropertyInt64(handle, property, properties[index].initial);
}

cufftResult cufftGetVersion(int *version)
{
	if (!version)
		return CUFFT_INVALID_VALUE;
	*version = CUFFT_VERSION;
	return CUFFT_SUCCESS;
}

cufftResult cufftGetProperty(libraryPropertyType type, int *value)
{
	static const int parts[] = {[MAJOR_VERSION] = CUFFT_VER_MAJOR,
		[MINOR_VERSION] = CUFFT_VER_MINOR,
		[PATCH_LEVEL] = CUFFT_VER_PATCH};
	if (!value || type > PATCH_LEVEL)
		return CUFFT_INVALID_VALUE;
	*value = parts[type];
	return CUFFT_SUCCESS;
}
