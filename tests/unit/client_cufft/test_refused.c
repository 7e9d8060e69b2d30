/* client/libs/cufft/plan.c, ckt_cufft_unsupported: what is not supported says its name. */
#include <cufft.h>
#include <cufftXt.h>

#include "tests/unit/worker/cufft_double.h"

static void test_refused(void)
{
	int gpus[] = {0, 1};
	double_begin();
	IS(cufftXtSetGPUs(1, 2, gpus), CUFFT_NOT_SUPPORTED);
	TEXT(double_calls(), "unsupported(cufftXtSetGPUs)\n");
	IS(cufftXtMalloc(1, NULL, CUFFT_XT_FORMAT_INPUT), CUFFT_NOT_SUPPORTED);
	TEXT(double_calls(), "unsupported(cufftXtMalloc)\n");
	IS(cufftXtMemcpy(1, NULL, NULL, CUFFT_COPY_HOST_TO_DEVICE), CUFFT_NOT_SUPPORTED);
	TEXT(double_calls(), "unsupported(cufftXtMemcpy)\n");
	IS(cufftXtFree(NULL), CUFFT_NOT_SUPPORTED);
	TEXT(double_calls(), "unsupported(cufftXtFree)\n");
	IS(cufftXtExecDescriptor(1, NULL, NULL, CUFFT_FORWARD), CUFFT_NOT_SUPPORTED);
	TEXT(double_calls(), "unsupported(cufftXtExecDescriptor)\n");
	IS(cufftXtExecDescriptorC2C(1, NULL, NULL, CUFFT_FORWARD), CUFFT_NOT_SUPPORTED);
	TEXT(double_calls(), "unsupported(cufftXtExecDescriptorC2C)\n");
	IS(cufftXtExecDescriptorR2C(1, NULL, NULL), CUFFT_NOT_SUPPORTED);
	TEXT(double_calls(), "unsupported(cufftXtExecDescriptorR2C)\n");
	IS(cufftXtExecDescriptorC2R(1, NULL, NULL), CUFFT_NOT_SUPPORTED);
	TEXT(double_calls(), "unsupported(cufftXtExecDescriptorC2R)\n");
	IS(cufftXtExecDescriptorZ2Z(1, NULL, NULL, CUFFT_FORWARD), CUFFT_NOT_SUPPORTED);
	TEXT(double_calls(), "unsupported(cufftXtExecDescriptorZ2Z)\n");
	IS(cufftXtExecDescriptorD2Z(1, NULL, NULL), CUFFT_NOT_SUPPORTED);
	TEXT(double_calls(), "unsupported(cufftXtExecDescriptorD2Z)\n");
	IS(cufftXtExecDescriptorZ2D(1, NULL, NULL), CUFFT_NOT_SUPPORTED);
	TEXT(double_calls(), "unsupported(cufftXtExecDescriptorZ2D)\n");
	IS(cufftXtQueryPlan(1, NULL, CUFFT_QUERY_1D_FACTORS), CUFFT_NOT_SUPPORTED);
	TEXT(double_calls(), "unsupported(cufftXtQueryPlan)\n");
}

UNIT_SUITE(refused, {"by name", test_refused})
