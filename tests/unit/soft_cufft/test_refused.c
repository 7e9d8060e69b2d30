/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/cufft/refused.c: what is not supported says so. */
#include <cufft.h>
#include <cufftXt.h>

#include "tests/unit/suite.h"

static void test_refused(void)
{
	IS(cufftXtQueryPlan(1, NULL, CUFFT_QUERY_1D_FACTORS), CUFFT_NOT_SUPPORTED);
	IS(cufftXtSetCallback(1, NULL, CUFFT_CB_LD_COMPLEX, NULL), CUFFT_NOT_SUPPORTED);
	IS(cufftXtClearCallback(1, CUFFT_CB_LD_COMPLEX), CUFFT_NOT_SUPPORTED);
	IS(cufftXtSetCallbackSharedSize(1, CUFFT_CB_LD_COMPLEX, 16), CUFFT_NOT_SUPPORTED);
	IS(cufftXtSetJITCallback(1, "name", "x", 1, CUFFT_CB_LD_COMPLEX, NULL),
		CUFFT_NOT_SUPPORTED);
}

UNIT_SUITE(refused, {"by name", test_refused})
