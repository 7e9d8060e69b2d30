/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/libs/cufft/gpus.c: transforms over two devices, beside the plain transform of the same
 * numbers.
 */
#include "softgpu/libs/cufft/plan.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/soft_cufft/api.h"

static int both[] = {0, 1};

static cufftHandle new_plan(void)
{
	cufftHandle plan = 0;
	api_context();
	MUST(cufftCreate(&plan), CUFFT_SUCCESS);
	return plan;
}

static void test_set_gpus(void)
{
	int same[] = {0, 0}, none[] = {0, 99};
	size_t sizes[2] = {0, 0}, size;
	cudaLibXtDesc *made;
	cufftHandle plan = new_plan();
	IS(cufftXtSetGPUs(plan, 2, same), CUFFT_INVALID_DEVICE);
	IS(cufftXtSetGPUs(plan, 2, none), CUFFT_INVALID_DEVICE);
	IS(cufftXtSetGPUs(plan, 0, both), CUFFT_INVALID_VALUE);
	IS(cufftXtSetGPUs(plan, 65, both), CUFFT_INVALID_VALUE);
	IS(cufftXtSetGPUs(plan, 2, NULL), CUFFT_INVALID_VALUE);
	IS(cufftXtSetGPUs(999, 2, both), CUFFT_INVALID_PLAN);
	IS(cufftXtSetGPUs(plan, 2, both), CUFFT_SUCCESS);
	IS(cufftXtMalloc(plan, &made, CUFFT_XT_FORMAT_INPLACE), CUFFT_INVALID_PLAN);
	int n[] = {8}, embed[] = {9};
	IS(cufftMakePlanMany(plan, 1, n, embed, 2, 18, embed, 2, 18, CUFFT_C2C, 2, sizes),
		CUFFT_NOT_SUPPORTED);
	IS(cufftMakePlan1d(plan, 8, CUFFT_C2C, 1, sizes), CUFFT_SUCCESS);
	YES(sizes[0] > 0 && sizes[0] == sizes[1]);
	sizes[1] = 0;
	IS(cufftGetSize(plan, sizes), CUFFT_SUCCESS);
	IS(sizes[1], sizes[0]);
	sizes[1] = 0;
	IS(cufftGetSize1d(plan, 8, CUFFT_C2C, 1, sizes), CUFFT_SUCCESS);
	IS(sizes[1], sizes[0]);
	IS(cufftXtSetWorkAreaPolicy(plan, CUFFT_WORKAREA_MINIMAL, &size), CUFFT_SUCCESS);
	IS(size, sizes[0]);
	/* They are set before the plan is made. */
	IS(cufftXtSetGPUs(plan, 2, both), CUFFT_INVALID_PLAN);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	/* A plan that was given none has no descriptors. */
	plan = new_plan();
	MUST(cufftMakePlan1d(plan, 8, CUFFT_C2C, 1, sizes), CUFFT_SUCCESS);
	IS(cufftXtMalloc(plan, &made, CUFFT_XT_FORMAT_INPLACE), CUFFT_INVALID_PLAN);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
}

/* One transform there and back, of `count` complex numbers. */
static void there_and_back(cufftHandle plan, cufftHandle back, size_t count, double scale)
{
	cudaLibXtDesc *numbers, *sorted;
	float *given = malloc(count * 8), *got = malloc(count * 8);
	for (size_t i = 0; i < 2 * count; i++)
		given[i] = (float)((i * 7919) % 101) - 50;
	IS(cufftXtMalloc(plan, &numbers, CUFFT_XT_FORMAT_INPLACE), CUFFT_SUCCESS);
	IS(cufftXtMalloc(plan, &sorted, CUFFT_XT_FORMAT_INPLACE), CUFFT_SUCCESS);
	IS(numbers->descriptor->nGPUs, 2);
	size_t bytes = numbers->descriptor->size[0] + numbers->descriptor->size[1];
	YES(bytes >= count * 8);
	IS(cufftXtMemcpy(plan, numbers, given, CUFFT_COPY_HOST_TO_DEVICE), CUFFT_SUCCESS);
	IS(cufftXtExecDescriptor(plan, numbers, numbers, CUFFT_FORWARD), CUFFT_SUCCESS);
	IS(numbers->subFormat, CUFFT_XT_FORMAT_INPLACE_SHUFFLED);
	IS(cufftXtMemcpy(plan, sorted, numbers, CUFFT_COPY_DEVICE_TO_DEVICE), CUFFT_SUCCESS);
	IS(cufftXtMemcpy(plan, got, sorted, CUFFT_COPY_DEVICE_TO_HOST), CUFFT_SUCCESS);
	/* The first number of a spectrum is the sum; a real transform's padding is not in it. */
	IS(cufftXtExecDescriptor(back, numbers, numbers, CUFFT_INVERSE), CUFFT_SUCCESS);
	IS(numbers->subFormat, CUFFT_XT_FORMAT_INPLACE);
	float spectrum = got[0];
	IS(cufftXtMemcpy(plan, got, numbers, CUFFT_COPY_DEVICE_TO_HOST), CUFFT_SUCCESS);
	for (size_t i = 0; plan == back && i < 2 * count; i++)
		YES(got[i] / scale - given[i] < 1e-3 && given[i] - got[i] / scale < 1e-3);
	YES(spectrum == spectrum);
	IS(cufftXtFree(numbers), CUFFT_SUCCESS);
	IS(cufftXtFree(sorted), CUFFT_SUCCESS);
	IS(cufftXtFree(NULL), CUFFT_INVALID_VALUE);
	free(given);
	free(got);
}

static void test_shapes(void)
{
	size_t sizes[2];
	for (int rank = 1; rank <= 3; rank++) {
		cufftHandle plan = new_plan();
		MUST(cufftXtSetGPUs(plan, 2, both), CUFFT_SUCCESS);
		/* None of them comes out even. */
		MUST(rank == 1              ? cufftMakePlan1d(plan, 15, CUFFT_C2C, 1, sizes)
				: rank == 2 ? cufftMakePlan2d(plan, 5, 4, CUFFT_C2C, sizes)
					    : cufftMakePlan3d(plan, 3, 2, 4, CUFFT_C2C, sizes),
			CUFFT_SUCCESS);
		there_and_back(plan, plan,
			rank == 1           ? 15
				: rank == 2 ? 20
					    : 24,
			rank == 1           ? 15
				: rank == 2 ? 20
					    : 24);
		IS(cufftDestroy(plan), CUFFT_SUCCESS);
	}
	cufftHandle plan = new_plan();
	MUST(cufftXtSetGPUs(plan, 2, both), CUFFT_SUCCESS);
	MUST(cufftMakePlan1d(plan, 7, CUFFT_C2C, 5, sizes), CUFFT_SUCCESS);
	there_and_back(plan, plan, 35, 7);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	/* Of real numbers, with a plan for each direction. */
	plan = new_plan();
	cufftHandle back = new_plan();
	MUST(cufftXtSetGPUs(plan, 2, both), CUFFT_SUCCESS);
	MUST(cufftXtSetGPUs(back, 2, both), CUFFT_SUCCESS);
	MUST(cufftMakePlan2d(plan, 5, 6, CUFFT_R2C, sizes), CUFFT_SUCCESS);
	MUST(cufftMakePlan2d(back, 5, 6, CUFFT_C2R, sizes), CUFFT_SUCCESS);
	there_and_back(plan, back, 20, 30);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	IS(cufftDestroy(back), CUFFT_SUCCESS);
}

/* A delta becomes ones in every type. */
static void test_types(void)
{
	static const cufftType types[] = {
		CUFFT_C2C, CUFFT_R2C, CUFFT_C2R, CUFFT_Z2Z, CUFFT_D2Z, CUFFT_Z2D};
	size_t sizes[2];
	for (unsigned type = 0; type < COUNT(types); type++) {
		cudaLibXtDesc *d;
		double host[2 * 4 * 4] = {0}, got[2 * 4 * 4] = {0};
		cufftHandle plan = new_plan();
		MUST(cufftXtSetGPUs(plan, 2, both), CUFFT_SUCCESS);
		MUST(cufftMakePlan2d(plan, 4, 4, types[type], sizes), CUFFT_SUCCESS);
		MUST(cufftXtMalloc(plan, &d, CUFFT_XT_FORMAT_INPLACE), CUFFT_SUCCESS);
		if (type < 3)
			*(float *)host = 1;
		else
			*host = 1;
		MUST(cufftXtMemcpy(plan, d, host, CUFFT_COPY_HOST_TO_DEVICE), CUFFT_SUCCESS);
#define RUNS(i, call) IS(call, type == (i) ? CUFFT_SUCCESS : CUFFT_INVALID_TYPE)
		RUNS(0, cufftXtExecDescriptorC2C(plan, d, d, CUFFT_FORWARD));
		RUNS(1, cufftXtExecDescriptorR2C(plan, d, d));
		RUNS(2, cufftXtExecDescriptorC2R(plan, d, d));
		RUNS(3, cufftXtExecDescriptorZ2Z(plan, d, d, CUFFT_FORWARD));
		RUNS(4, cufftXtExecDescriptorD2Z(plan, d, d));
		RUNS(5, cufftXtExecDescriptorZ2D(plan, d, d));
		MUST(cufftXtMemcpy(plan, got, d, CUFFT_COPY_DEVICE_TO_HOST), CUFFT_SUCCESS);
		YES(type < 3 ? *(float *)got == 1 : *got == 1);
		int step = type % 3 == 2 ? 1 : 2;
		YES(type < 3 ? ((float *)got)[step] == 1 : got[step] == 1);
		IS(cufftXtFree(d), CUFFT_SUCCESS);
		IS(cufftDestroy(plan), CUFFT_SUCCESS);
	}
}

static void test_refused(void)
{
	size_t sizes[2];
	cudaLibXtDesc *made;
	char host[8 * 8 * 8];
	cufftHandle plan = new_plan();
	MUST(cufftXtSetGPUs(plan, 2, both), CUFFT_SUCCESS);
	MUST(cufftMakePlan2d(plan, 8, 8, CUFFT_C2C, sizes), CUFFT_SUCCESS);
	MUST(cufftXtMalloc(plan, &made, CUFFT_XT_FORMAT_INPUT), CUFFT_SUCCESS);
	IS(cufftXtExecDescriptorC2C(plan, NULL, made, CUFFT_FORWARD), CUFFT_INVALID_VALUE);
	IS(cufftXtExecDescriptorC2C(plan, made, made, 0), CUFFT_INVALID_VALUE);
	IS(cufftXtExecDescriptorC2C(999, made, made, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
	IS(cufftXtMemcpy(plan, NULL, made, CUFFT_COPY_DEVICE_TO_HOST), CUFFT_INVALID_VALUE);
	IS(cufftXtMemcpy(plan, host, made, CUFFT_COPY_UNDEFINED), CUFFT_INVALID_VALUE);
	IS(cufftXtMalloc(plan, NULL, CUFFT_XT_FORMAT_INPUT), CUFFT_INVALID_VALUE);
	made->descriptor->GPUs[0] = 1;
	IS(cufftXtExecDescriptorC2C(plan, made, made, CUFFT_FORWARD), CUFFT_INVALID_DEVICE);
	made->descriptor->GPUs[0] = 0;
	made->descriptor->nGPUs = 1;
	IS(cufftXtExecDescriptorC2C(plan, made, made, CUFFT_FORWARD), CUFFT_INVALID_DEVICE);
	made->descriptor->nGPUs = 2;
	made->descriptor->size[1]--;
	IS(cufftXtMemcpy(plan, host, made, CUFFT_COPY_DEVICE_TO_HOST), CUFFT_INVALID_SIZE);
	made->descriptor->size[1]++;
	/* Memory that is the device's at neither end. */
	void *real = made->descriptor->data[1];
	made->descriptor->data[1] = (void *)64;
	IS(cufftXtMemcpy(plan, made, host, CUFFT_COPY_HOST_TO_DEVICE), CUFFT_EXEC_FAILED);
	made->descriptor->data[1] = real;
	/* Out of place the output's format is told. */
	IS(cufftXtExecDescriptorC2C(plan, made, made, CUFFT_FORWARD), CUFFT_SUCCESS);
	IS(made->subFormat, CUFFT_XT_FORMAT_OUTPUT);
	IS(cufftXtFree(made), CUFFT_SUCCESS);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
}

UNIT_SUITE(gpus, {"which GPUs", test_set_gpus}, {"shapes", test_shapes}, {"types", test_types},
	{"what is refused", test_refused})
