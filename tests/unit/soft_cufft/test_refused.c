/* softgpu/libs/cufft/refused.c: what is not supported says so. */
#include <cufft.h>
#include <cufftXt.h>

#include "tests/unit/suite.h"

static void test_refused(void)
{
	int gpus[] = {0, 1};
	IS(cufftXtSetGPUs(1, 2, gpus), CUFFT_NOT_SUPPORTED);
	IS(cufftXtMalloc(1, NULL, CUFFT_XT_FORMAT_INPUT), CUFFT_NOT_SUPPORTED);
	IS(cufftXtMemcpy(1, NULL, NULL, CUFFT_COPY_HOST_TO_DEVICE), CUFFT_NOT_SUPPORTED);
	IS(cufftXtFree(NULL), CUFFT_NOT_SUPPORTED);
	IS(cufftXtExecDescriptor(1, NULL, NULL, CUFFT_FORWARD), CUFFT_NOT_SUPPORTED);
	IS(cufftXtExecDescriptorC2C(1, NULL, NULL, CUFFT_FORWARD), CUFFT_NOT_SUPPORTED);
	IS(cufftXtExecDescriptorR2C(1, NULL, NULL), CUFFT_NOT_SUPPORTED);
	IS(cufftXtExecDescriptorC2R(1, NULL, NULL), CUFFT_NOT_SUPPORTED);
	IS(cufftXtExecDescriptorZ2Z(1, NULL, NULL, CUFFT_FORWARD), CUFFT_NOT_SUPPORTED);
	IS(cufftXtExecDescriptorD2Z(1, NULL, NULL), CUFFT_NOT_SUPPORTED);
	IS(cufftXtExecDescriptorZ2D(1, NULL, NULL), CUFFT_NOT_SUPPORTED);
	IS(cufftXtQueryPlan(1, NULL, CUFFT_QUERY_1D_FACTORS), CUFFT_NOT_SUPPORTED);
	IS(cufftXtSetCallback(1, NULL, CUFFT_CB_LD_COMPLEX, NULL), CUFFT_NOT_SUPPORTED);
	IS(cufftXtClearCallback(1, CUFFT_CB_LD_COMPLEX), CUFFT_NOT_SUPPORTED);
	IS(cufftXtSetCallbackSharedSize(1, CUFFT_CB_LD_COMPLEX, 16), CUFFT_NOT_SUPPORTED);
	IS(cufftXtSetJITCallback(1, "name", "x", 1, CUFFT_CB_LD_COMPLEX, NULL),
		CUFFT_NOT_SUPPORTED);
}

UNIT_SUITE(refused, {"by name", test_refused})
