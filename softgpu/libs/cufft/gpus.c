/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans for several GPUs.  The numbers are on one GPU after the other, in natural order, before and
 * after a transform.  The CPU gathers the numbers, transforms them, and spreads them again.
 *
 * A batch is split into whole transforms, one transform into whole rows of the first dimension, and
 * one row into numbers.  If the division leaves a remainder, the first GPUs have one more.
 */
#include <cuda_runtime_api.h>
#include <cufftXt.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/libs/cufft/number.h"
#include "softgpu/libs/cufft/plan.h"
#include "softgpu/libs/common/driver.h"

enum { GPUS_MAX = MAX_CUDA_DESCRIPTOR_GPUS };

/* ---- The GPUs of a plan */

static CUresult primary(int gpu, CUcontext *ret_context)
{
	CUresult (*get)(CUdevice *, int);
	CUdevice device;
	*(void **)&get = ckt_softlib_symbol("cuDeviceGet");
	CUresult result = get ? get(&device, gpu) : CUDA_ERROR_NOT_INITIALIZED;
	return result ? result : ckt_softlib_driver()->primary_retain(ret_context, device);
}

cufftResult cufftXtSetGPUs(cufftHandle handle, int nGPUs, int *whichGPUs)
{
	CUcontext context;
	if (nGPUs < 1 || nGPUs > GPUS_MAX || !whichGPUs)
		return CUFFT_INVALID_VALUE;
	for (int i = 0; i < nGPUs; i++) {
		if (ckt_softlib_context(&context) || primary(whichGPUs[i], &context))
			return CUFFT_INVALID_DEVICE;
		for (int before = 0; before < i; before++)
			if (whichGPUs[before] == whichGPUs[i])
				return CUFFT_INVALID_DEVICE;
	}
	struct ckt_plan *plan = ckt_soft_cufft_plan_lock(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	cufftResult result = plan->shape ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
	if (result == CUFFT_SUCCESS) {
		plan->gpu_count = (unsigned)nGPUs;
		memcpy(plan->gpus, whichGPUs, (size_t)nGPUs * sizeof *whichGPUs);
	}
	ckt_soft_cufft_plan_unlock();
	return result;
}

/* A call's copy of what it needs of a plan, because the plan can be destroyed meanwhile. */
struct job {
	struct ckt_shape *shape;
	unsigned gpu_count;
	int gpus[GPUS_MAX];
	uint64_t bytes[GPUS_MAX]; /* on each GPU */
	uint64_t total;
};

/* Waits until all work on the GPUs is done. */
static CUresult wait_for_gpus(const struct job *job)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	CUresult (*synchronize)(void);
	CUcontext before = NULL, context;
	CUresult result = ckt_softlib_context(&before);
	*(void **)&synchronize = ckt_softlib_symbol("cuCtxSynchronize");
	for (unsigned i = 0; !result && i < job->gpu_count; i++) {
		result = primary(job->gpus[i], &context);
		if (!result)
			result = d->ctx_set_current(context);
		if (!result)
			result = synchronize ? synchronize() : CUDA_ERROR_NOT_INITIALIZED;
	}
	d->ctx_set_current(before);
	return result;
}

/* ---- The location of the numbers */

static void split(struct job *job)
{
	const struct ckt_layout *layout = &job->shape->layout;
	int last = layout->rank - 1;
	int64_t length = layout->n[last];
	uint64_t row = ckt_soft_cufft_number_size(layout->precision, false) *
		(uint64_t)(layout->kind == CKT_COMPLEX_TO_COMPLEX ? length : length / 2 + 1);
	uint64_t transform = row;
	for (int axis = 0; axis < last; axis++)
		transform *= (uint64_t)layout->n[axis];
	job->total = transform * (uint64_t)layout->batch;
	uint64_t units = layout->batch > 1 ? (uint64_t)layout->batch
		: last                     ? (uint64_t)layout->n[0]
		       : row / ckt_soft_cufft_number_size(layout->precision, false);
	for (unsigned i = 0; i < job->gpu_count; i++)
		job->bytes[i] = job->total / units *
			(units / job->gpu_count + (i < units % job->gpu_count));
}

/* Holds the plan's shape until _end.  CUFFT_INVALID_PLAN if the plan has no GPUs or is not made. */
static cufftResult begin(cufftHandle handle, struct job *job)
{
	struct ckt_plan *plan = ckt_soft_cufft_plan_lock(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	bool made = plan->shape && plan->gpu_count;
	if (made) {
		*job = (struct job){.shape = plan->shape, .gpu_count = plan->gpu_count};
		memcpy(job->gpus, plan->gpus, sizeof job->gpus);
		ckt_soft_cufft_shape_hold(job->shape);
		split(job);
	}
	ckt_soft_cufft_plan_unlock();
	return made ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

static void end(struct job *job)
{
	ckt_soft_cufft_shape_release(job->shape);
}

/* Checks that the descriptor has the plan's GPUs in the same order, with enough valid memory. */
static cufftResult check(const struct job *job, const cudaLibXtDesc *descriptor)
{
	const cudaXtDesc *memory = descriptor ? descriptor->descriptor : NULL;
	if (!memory)
		return CUFFT_INVALID_VALUE;
	if (memory->nGPUs != (int)job->gpu_count)
		return CUFFT_INVALID_DEVICE;
	for (unsigned i = 0; i < job->gpu_count; i++) {
		if (memory->GPUs[i] != job->gpus[i])
			return CUFFT_INVALID_DEVICE;
		if (memory->size[i] < job->bytes[i])
			return CUFFT_INVALID_SIZE;
		if (job->bytes[i] && !ckt_plan_is_memory(memory->data[i], job->bytes[i]))
			return CUFFT_EXEC_FAILED;
	}
	return CUFFT_SUCCESS;
}

static void gather(const struct job *job, const cudaLibXtDesc *descriptor, uint8_t *host)
{
	for (unsigned i = 0; i < job->gpu_count; host += job->bytes[i++])
		memcpy(host, descriptor->descriptor->data[i], job->bytes[i]);
}

static void spread(const struct job *job, const uint8_t *host, const cudaLibXtDesc *descriptor)
{
	for (unsigned i = 0; i < job->gpu_count; host += job->bytes[i++])
		memcpy(descriptor->descriptor->data[i], host, job->bytes[i]);
}

/* ---- Descriptors */

static cufftResult allocate(const struct job *job, cudaXtDesc *memory)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	CUcontext before, context;
	CUresult result = ckt_softlib_context(&before);
	for (unsigned i = 0; !result && i < job->gpu_count; i++) {
		CUdeviceptr address = 0;
		memory->GPUs[i] = job->gpus[i];
		memory->size[i] = job->bytes[i] + !job->bytes[i];
		result = primary(job->gpus[i], &context);
		if (!result)
			result = d->ctx_set_current(context);
		if (!result)
			result = d->mem_alloc(&address, memory->size[i]);
		memory->data[i] = (void *)address;
		memory->nGPUs = (int)i + 1;
	}
	d->ctx_set_current(before);
	return result ? CUFFT_ALLOC_FAILED : CUFFT_SUCCESS;
}

cufftResult cufftXtFree(cudaLibXtDesc *descriptor)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	if (!descriptor || !descriptor->descriptor || !d)
		return CUFFT_INVALID_VALUE;
	for (int i = 0; i < descriptor->descriptor->nGPUs; i++)
		if (descriptor->descriptor->data[i])
			d->mem_free((CUdeviceptr)descriptor->descriptor->data[i]);
	free(descriptor->descriptor);
	free(descriptor);
	return CUFFT_SUCCESS;
}

cufftResult cufftXtMalloc(cufftHandle plan, cudaLibXtDesc **descriptor, cufftXtSubFormat format)
{
	struct job job;
	if (!descriptor)
		return CUFFT_INVALID_VALUE;
	cufftResult result = begin(plan, &job);
	if (result != CUFFT_SUCCESS)
		return result;
	cudaLibXtDesc *made = calloc(1, sizeof *made);
	cudaXtDesc *memory = calloc(1, sizeof *memory);
	if (made && memory) {
		made->version = memory->version = CUDA_XT_DESCRIPTOR_VERSION + CUDART_VERSION;
		made->descriptor = memory;
		made->library = LIB_FORMAT_CUFFT;
		made->subFormat = (int)format;
		result = allocate(&job, memory);
	} else {
		result = CUFFT_ALLOC_FAILED;
	}
	end(&job);
	if (result == CUFFT_SUCCESS) {
		*descriptor = made;
	} else if (made && memory) {
		cufftXtFree(made);
	} else {
		free(made);
		free(memory);
	}
	return result;
}

/* ---- Copies and executions */

static cufftResult copy(const struct job *job, void *to, void *from, cufftXtCopyType type)
{
	cufftResult result = type == CUFFT_COPY_HOST_TO_DEVICE ? CUFFT_SUCCESS : check(job, from);
	if (result == CUFFT_SUCCESS && type != CUFFT_COPY_DEVICE_TO_HOST)
		result = check(job, to);
	if (result == CUFFT_SUCCESS && wait_for_gpus(job))
		result = CUFFT_EXEC_FAILED;
	uint8_t *host = result == CUFFT_SUCCESS ? malloc(job->total) : NULL;
	if (!host)
		return result == CUFFT_SUCCESS ? CUFFT_ALLOC_FAILED : result;
	if (type == CUFFT_COPY_HOST_TO_DEVICE)
		memcpy(host, from, job->total);
	else
		gather(job, from, host);
	if (type == CUFFT_COPY_DEVICE_TO_HOST)
		memcpy(to, host, job->total);
	else
		spread(job, host, to);
	free(host);
	return CUFFT_SUCCESS;
}

cufftResult cufftXtMemcpy(
	cufftHandle plan, void *dstPointer, void *srcPointer, cufftXtCopyType type)
{
	struct job job;
	if (!dstPointer || !srcPointer || type < 0 || type >= CUFFT_COPY_UNDEFINED)
		return CUFFT_INVALID_VALUE;
	cufftResult result = begin(plan, &job);
	if (result != CUFFT_SUCCESS)
		return result;
	result = copy(&job, dstPointer, srcPointer, type);
	end(&job);
	return result;
}

/* Sets the same marks as the genuine library, although both orders of numbers are the same here. */
static int format_after(int format)
{
	switch (format) {
	case CUFFT_XT_FORMAT_INPLACE:
		return CUFFT_XT_FORMAT_INPLACE_SHUFFLED;
	case CUFFT_XT_FORMAT_INPLACE_SHUFFLED:
		return CUFFT_XT_FORMAT_INPLACE;
	default:
		return CUFFT_XT_FORMAT_OUTPUT;
	}
}

static cufftResult run(
	const struct job *job, const cudaLibXtDesc *input, cudaLibXtDesc *output, bool inverse)
{
	cufftResult result = check(job, input);
	if (result == CUFFT_SUCCESS)
		result = check(job, output);
	if (result == CUFFT_SUCCESS && wait_for_gpus(job))
		result = CUFFT_EXEC_FAILED;
	if (result != CUFFT_SUCCESS)
		return result;
	uint8_t *numbers = malloc(job->total);
	void *work = malloc(ckt_soft_cufft_layout_work_bytes(&job->shape->layout));
	if (numbers && work) {
		gather(job, input, numbers);
		ckt_soft_cufft_layout_run(&job->shape->layout, numbers, numbers, inverse, work);
		spread(job, numbers, output);
		output->subFormat = format_after(input->subFormat);
	} else {
		result = CUFFT_ALLOC_FAILED;
	}
	free(numbers);
	free(work);
	return result;
}

/* any: accept a plan of any type. */
static cufftResult execute(cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output, bool any,
	cufftType type, int direction)
{
	struct job job;
	enum ckt_layout_kind kind = CKT_COMPLEX_TO_COMPLEX;
	enum ckt_layout_precision precision = CKT_SINGLE;
	cufftResult result = begin(plan, &job);
	if (result != CUFFT_SUCCESS)
		return result;
	const struct ckt_layout *layout = &job.shape->layout;
	ckt_soft_cufft_layout_from_type(type, &kind, &precision);
	if (!any && (layout->kind != kind || layout->precision != precision))
		result = CUFFT_INVALID_TYPE;
	else if (layout->kind == CKT_COMPLEX_TO_COMPLEX && direction != CUFFT_FORWARD &&
		direction != CUFFT_INVERSE)
		result = CUFFT_INVALID_VALUE;
	else
		result = run(&job, input, output,
			layout->kind == CKT_COMPLEX_TO_REAL ||
				(layout->kind == CKT_COMPLEX_TO_COMPLEX &&
					direction == CUFFT_INVERSE));
	end(&job);
	return result;
}

cufftResult cufftXtExecDescriptor(
	cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output, int direction)
{
	return execute(plan, input, output, true, CUFFT_C2C, direction);
}

cufftResult cufftXtExecDescriptorC2C(
	cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output, int direction)
{
	return execute(plan, input, output, false, CUFFT_C2C, direction);
}

cufftResult cufftXtExecDescriptorZ2Z(
	cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output, int direction)
{
	return execute(plan, input, output, false, CUFFT_Z2Z, direction);
}

cufftResult cufftXtExecDescriptorR2C(cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output)
{
	return execute(plan, input, output, false, CUFFT_R2C, CUFFT_FORWARD);
}

cufftResult cufftXtExecDescriptorD2Z(cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output)
{
	return execute(plan, input, output, false, CUFFT_D2Z, CUFFT_FORWARD);
}

cufftResult cufftXtExecDescriptorC2R(cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output)
{
	return execute(plan, input, output, false, CUFFT_C2R, CUFFT_INVERSE);
}

cufftResult cufftXtExecDescriptorZ2D(cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output)
{
	return execute(plan, input, output, false, CUFFT_Z2D, CUFFT_INVERSE);
}
