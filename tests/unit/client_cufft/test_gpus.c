/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/libs/cufft/gpus.c: plans for several GPUs, over the worker's handlers: which GPUs, sizes
 * and work areas of each, descriptors of the library's and of the program's own, copies with the
 * host.
 */
#include "client/libs/cufft/cufft.h"

#include <string.h>

#include "tests/unit/worker/cufft_double.h"

static int both[] = {1, 0};

static cufftHandle new_plan(void)
{
	cufftHandle plan = 0;
	MUST(ASK(primary_ctx_retain, .device = 1), CUDA_SUCCESS);
	MUST(cufftCreate(&plan), CUFFT_SUCCESS);
	return plan;
}

/* Of 4 x 6 numbers; two GPUs. */
static cufftHandle made_plan(cufftType type)
{
	size_t sizes[2];
	cufftHandle plan = new_plan();
	MUST(cufftXtSetGPUs(plan, 2, both), CUFFT_SUCCESS);
	MUST(cufftMakePlan2d(plan, 4, 6, type, sizes), CUFFT_SUCCESS);
	double_calls();
	return plan;
}

static void test_set_gpus(void)
{
	int wrong[] = {0, 7}, many[65] = {0};
	double_begin();
	cufftHandle plan = new_plan();
	double_calls();
	IS(cufftXtSetGPUs(plan, 2, both), CUFFT_SUCCESS);
	HAS(double_calls(), " [1 0])");
	IS(double_context, ckt_handle_primary(0));
	IS(cufftXtSetGPUs(plan, 2, wrong), CUFFT_INVALID_DEVICE);
	IS(cufftXtSetGPUs(plan, 0, both), CUFFT_INVALID_VALUE);
	IS(cufftXtSetGPUs(plan, -1, both), CUFFT_INVALID_VALUE);
	IS(cufftXtSetGPUs(plan, 65, many), CUFFT_INVALID_VALUE);
	IS(cufftXtSetGPUs(plan, 2, NULL), CUFFT_INVALID_VALUE);
	IS(cufftXtSetGPUs(-1, 2, both), CUFFT_INVALID_PLAN);
	TEXT(double_calls(), "");
	double_node = 1;
	IS(cufftXtSetGPUs(plan, 2, both), CUFFT_NOT_SUPPORTED);
	TEXT(double_calls(), "unsupported(cufftXtSetGPUs with GPUs of several servers)\n");
	double_node = 0;
	double_status = CUFFT_INVALID_PLAN;
	IS(cufftXtSetGPUs(plan, 2, both), CUFFT_INVALID_PLAN);
	double_status = CUFFT_SUCCESS;
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	IS(cufftXtSetGPUs(plan, 2, both), CUFFT_INVALID_PLAN);
}

static void test_sizes(void)
{
	size_t sizes[3] = {7, 7, 7};
	void *areas[] = {(void *)0x1000, (void *)0x2000};
	int n[] = {4, 6};
	long long wide[] = {4, 6};
	double_begin();
	cufftHandle plan = new_plan();
	MUST(cufftXtSetGPUs(plan, 2, both), CUFFT_SUCCESS);
	IS(cufftMakePlan2d(plan, 4, 6, CUFFT_C2C, sizes), CUFFT_SUCCESS);
	IS(sizes[0], 4096);
	IS(sizes[1], 4097);
	IS(sizes[2], 7);
#define ALL(call)                                   \
	do {                                        \
		sizes[0] = sizes[1] = sizes[2] = 7; \
		IS(call, CUFFT_SUCCESS);            \
		IS(sizes[0], 4096);                 \
		IS(sizes[1], 4097);                 \
		IS(sizes[2], 7);                    \
	} while (0)
	ALL(cufftGetSize(plan, sizes));
	ALL(cufftGetSize1d(plan, 4, CUFFT_C2C, 1, sizes));
	ALL(cufftGetSize2d(plan, 4, 6, CUFFT_C2C, sizes));
	ALL(cufftGetSize3d(plan, 4, 6, 8, CUFFT_C2C, sizes));
	ALL(cufftGetSizeMany(plan, 2, n, NULL, 1, 0, NULL, 1, 0, CUFFT_C2C, 1, sizes));
	ALL(cufftGetSizeMany64(plan, 2, wide, NULL, 1, 0, NULL, 1, 0, CUFFT_C2C, 1, sizes));
	ALL(cufftXtGetSizeMany(plan, 2, wide, NULL, 1, 0, CUDA_C_32F, NULL, 1, 0, CUDA_C_32F, 1,
		sizes, CUDA_C_32F));
	ALL(cufftMakePlanMany(plan, 2, n, NULL, 1, 0, NULL, 1, 0, CUFFT_C2C, 1, sizes));
	double_calls();
	IS(cufftXtSetWorkArea(plan, areas), CUFFT_SUCCESS);
	HAS(double_calls(), " 0x1000 0x2000)");
	IS(cufftXtSetWorkArea(plan, NULL), CUFFT_INVALID_VALUE);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	/* Of a plan of one GPU nothing more is asked, nor written. */
	plan = new_plan();
	sizes[1] = 7;
	unsigned waited = double_waited;
	IS(cufftMakePlan2d(plan, 4, 6, CUFFT_C2C, sizes), CUFFT_SUCCESS);
	IS(double_waited, waited + 1);
	IS(sizes[1], 7);
	double_calls();
	IS(cufftXtSetWorkArea(plan, areas), CUFFT_SUCCESS);
	HAS(double_calls(), "set_work_area(");
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
}

static void test_descriptor(void)
{
	cudaLibXtDesc *made = NULL;
	double_begin();
	cufftHandle plan = made_plan(CUFFT_C2C);
	IS(cufftXtMalloc(plan, &made, CUFFT_XT_FORMAT_INPLACE), CUFFT_SUCCESS);
	const char *calls = double_calls();
	HAS(calls, "xt_malloc(");
	/* On each GPU what the library takes there, in its order. */
	HAS(calls, "alloc(0 4096)\nalloc(1 4097)\n");
	IS(double_context, ckt_handle_primary(0));
	IS(made->subFormat, CUFFT_XT_FORMAT_INPLACE);
	IS(made->library, LIB_FORMAT_CUFFT);
	IS(made->descriptor->nGPUs, 2);
	IS(made->descriptor->GPUs[1], 1);
	IS(made->descriptor->size[1], 4097);
	YES(made->descriptor->data[0] && made->descriptor->data[1]);
	/* The program has another GPU current than the plan was made on. */
	double_context = ckt_handle_primary(1);
	IS(cufftXtExecDescriptorC2C(plan, made, made, CUFFT_FORWARD), CUFFT_SUCCESS);
	HAS(double_calls(), " same -1)");
	IS(double_context, ckt_handle_primary(1));
	IS(made->subFormat, CUFFT_XT_FORMAT_INPLACE_SHUFFLED);
	IS(cufftXtFree(made), CUFFT_SUCCESS);
	TEXT(double_calls(), "free(0)\nfree(1)\n");
	double_context = ckt_handle_primary(0);
	IS(cufftXtFree(NULL), CUFFT_INVALID_VALUE);
	IS(cufftXtMalloc(plan, NULL, CUFFT_XT_FORMAT_INPLACE), CUFFT_INVALID_VALUE);
	IS(cufftXtMalloc(-1, &made, CUFFT_XT_FORMAT_INPLACE), CUFFT_INVALID_PLAN);
	double_alloc_fails = CUDA_ERROR_OUT_OF_MEMORY;
	IS(cufftXtMalloc(plan, &made, CUFFT_XT_FORMAT_INPLACE), CUFFT_ALLOC_FAILED);
	double_alloc_fails = CUDA_SUCCESS;
	double_status = CUFFT_INVALID_PLAN;
	IS(cufftXtMalloc(plan, &made, CUFFT_XT_FORMAT_INPLACE), CUFFT_INVALID_PLAN);
	double_status = CUFFT_SUCCESS;
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
}

/* As CuPy makes one. */
static void test_own_descriptor(void)
{
	cudaXtDesc memory = {.nGPUs = 2, .GPUs = {0, 1}, .size = {64, 32}};
	cudaLibXtDesc own = {.descriptor = &memory, .subFormat = CUFFT_XT_FORMAT_INPLACE},
		      none = {0};
	memory.data[0] = (void *)0x1000;
	memory.data[1] = (void *)0x2000;
	double_begin();
	cufftHandle plan = made_plan(CUFFT_Z2Z), unmade = new_plan();
	IS(cufftXtExecDescriptor(plan, &own, &own, CUFFT_INVERSE), CUFFT_SUCCESS);
	/* What was pinned memory has the device's address. */
	HAS(double_calls(), "_any(");
	IS(cufftXtExecDescriptorZ2Z(plan, &own, &own, CUFFT_INVERSE), CUFFT_SUCCESS);
	HAS(double_calls(), " {3 0:0x1100+64 1:0x2100+32} same 1)");
	IS(cufftXtFree(&own), CUFFT_INVALID_VALUE);
	IS(cufftXtExecDescriptorZ2Z(plan, &own, &own, 0), CUFFT_INVALID_VALUE);
	IS(cufftXtExecDescriptorZ2Z(plan, NULL, &own, CUFFT_FORWARD), CUFFT_INVALID_VALUE);
	IS(cufftXtExecDescriptorZ2Z(plan, &own, &none, CUFFT_FORWARD), CUFFT_INVALID_VALUE);
	IS(cufftXtExecDescriptorZ2Z(unmade, &own, &own, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
	IS(cufftXtExecDescriptorZ2Z(-1, &own, &own, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
	memory.nGPUs = 65;
	IS(cufftXtExecDescriptorZ2Z(plan, &own, &own, CUFFT_FORWARD), CUFFT_INVALID_VALUE);
	memory.nGPUs = 2;
	memory.GPUs[1] = 5;
	IS(cufftXtExecDescriptorZ2Z(plan, &own, &own, CUFFT_FORWARD), CUFFT_INVALID_DEVICE);
	memory.GPUs[1] = 1;
	TEXT(double_calls(), "");
	IS(cufftSetStream(plan, (cudaStream_t)7), CUFFT_SUCCESS);
	IS(cufftXtExecDescriptorZ2Z(plan, &own, &own, CUFFT_FORWARD), CUFFT_NOT_SUPPORTED);
	TEXT(double_calls(), "unsupported(cufftXtExecDescriptor in a capture)\n");
	IS(cufftSetStream(plan, NULL), CUFFT_SUCCESS);
	double_status = CUFFT_EXEC_FAILED;
	own.subFormat = CUFFT_XT_FORMAT_INPLACE;
	IS(cufftXtExecDescriptorZ2Z(plan, &own, &own, CUFFT_FORWARD), CUFFT_EXEC_FAILED);
	IS(own.subFormat, CUFFT_XT_FORMAT_INPLACE);
	double_status = CUFFT_SUCCESS;
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	IS(cufftDestroy(unmade), CUFFT_SUCCESS);
}

static void test_types(void)
{
	static const char *const called[] = {"_r2c(", "_c2r(", "_d2z(", "_z2d("};
	cudaXtDesc memory = {.nGPUs = 1, .GPUs = {1}, .size = {64}};
	cudaLibXtDesc own = {.descriptor = &memory};
	double_begin();
	cufftHandle plan = made_plan(CUFFT_R2C);
	for (unsigned i = 0; i < COUNT(called); i++) {
		IS((i == 0                  ? cufftXtExecDescriptorR2C
				   : i == 1 ? cufftXtExecDescriptorC2R
				   : i == 2 ? cufftXtExecDescriptorD2Z
					    : cufftXtExecDescriptorZ2D)(plan, &own, &own),
			CUFFT_SUCCESS);
		HAS(double_calls(), called[i]);
	}
	/* A plan with a real side has one direction. */
	IS(cufftXtExecDescriptor(plan, &own, &own, 0), CUFFT_SUCCESS);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
}

static void test_copy(void)
{
	cudaXtDesc memory = {.nGPUs = 2, .GPUs = {0, 1}, .size = {64, 32}};
	cudaLibXtDesc own = {.descriptor = &memory, .subFormat = CUFFT_XT_FORMAT_INPLACE};
	uint8_t host[4 * 6 * 8 + 1];
	double_begin();
	cufftHandle plan = made_plan(CUFFT_C2C), unmade = new_plan();
	memset(host, 3, sizeof host);
	host[0] = 9;
	host[191] = 8;
	host[192] = 1;
	double_bytes = 192;
	double_calls();
	IS(cufftXtMemcpy(plan, &own, host, CUFFT_COPY_HOST_TO_DEVICE), CUFFT_SUCCESS);
	const char *calls = double_calls();
	HAS(calls, "alloc(0 192)\n");
	HAS(calls, " 9 8)\nfree(0)\n");
	IS(cufftXtMemcpy(plan, host, &own, CUFFT_COPY_DEVICE_TO_HOST), CUFFT_SUCCESS);
	HAS(double_calls(), "alloc(0 192)\n");
	IS(host[0], 77);
	IS(host[191], 77);
	IS(host[192], 1);
	IS(cufftXtMemcpy(plan, &own, &own, CUFFT_COPY_DEVICE_TO_DEVICE), CUFFT_SUCCESS);
	HAS(double_calls(), "xt_memcpy(");
	IS(cufftXtMemcpy(plan, NULL, &own, CUFFT_COPY_DEVICE_TO_DEVICE), CUFFT_INVALID_VALUE);
	IS(cufftXtMemcpy(plan, NULL, &own, CUFFT_COPY_DEVICE_TO_HOST), CUFFT_INVALID_VALUE);
	IS(cufftXtMemcpy(plan, &own, NULL, CUFFT_COPY_HOST_TO_DEVICE), CUFFT_INVALID_VALUE);
	IS(cufftXtMemcpy(plan, &own, host, CUFFT_COPY_UNDEFINED), CUFFT_INVALID_VALUE);
	IS(cufftXtMemcpy(unmade, &own, host, CUFFT_COPY_HOST_TO_DEVICE), CUFFT_INVALID_PLAN);
	IS(cufftXtMemcpy(-1, &own, host, CUFFT_COPY_HOST_TO_DEVICE), CUFFT_INVALID_PLAN);
	TEXT(double_calls(), "");
	double_alloc_fails = CUDA_ERROR_OUT_OF_MEMORY;
	IS(cufftXtMemcpy(plan, host, &own, CUFFT_COPY_DEVICE_TO_HOST), CUFFT_ALLOC_FAILED);
	double_alloc_fails = CUDA_SUCCESS;
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	IS(cufftDestroy(unmade), CUFFT_SUCCESS);
	/* Rows of real numbers are padded; where they are not, nobody says how they lie. */
	plan = made_plan(CUFFT_R2C);
	double_bytes = 4 * 4 * 8;
	IS(cufftXtMemcpy(plan, host, &own, CUFFT_COPY_DEVICE_TO_HOST), CUFFT_SUCCESS);
	HAS(double_calls(), "alloc(0 128)\n");
	own.subFormat = CUFFT_XT_FORMAT_INPUT;
	IS(cufftXtMemcpy(plan, host, &own, CUFFT_COPY_DEVICE_TO_HOST), CUFFT_NOT_SUPPORTED);
	TEXT(double_calls(), "unsupported(cufftXtMemcpy of real numbers that are not in place)\n");
	double_bytes = 4096;
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
}

static void test_query(void)
{
	cufftXt1dFactors factors = {0};
	double_begin();
	cufftHandle plan = made_plan(CUFFT_C2C);
	IS(cufftXtQueryPlan(plan, &factors, CUFFT_QUERY_1D_FACTORS), CUFFT_SUCCESS);
	IS(factors.size, 4711);
	IS(factors.factor2Shift, 12);
	IS(cufftXtQueryPlan(plan, NULL, CUFFT_QUERY_1D_FACTORS), CUFFT_INVALID_VALUE);
	IS(cufftXtQueryPlan(plan, &factors, CUFFT_QUERY_UNDEFINED), CUFFT_INVALID_VALUE);
	IS(cufftXtQueryPlan(-1, &factors, CUFFT_QUERY_1D_FACTORS), CUFFT_INVALID_PLAN);
	double_status = CUFFT_NOT_SUPPORTED;
	factors.size = 3;
	IS(cufftXtQueryPlan(plan, &factors, CUFFT_QUERY_1D_FACTORS), CUFFT_NOT_SUPPORTED);
	IS(factors.size, 3);
	double_status = CUFFT_SUCCESS;
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
}

UNIT_SUITE(gpus, {"which GPUs", test_set_gpus}, {"sizes and work areas", test_sizes},
	{"the library's descriptor", test_descriptor}, {"the program's own", test_own_descriptor},
	{"types", test_types}, {"copies", test_copy}, {"factors", test_query})
