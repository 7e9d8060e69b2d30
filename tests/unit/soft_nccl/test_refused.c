/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/nccl/refused.c: kernels that communicate have nothing to communicate with. */
#include <nccl.h>

#include "tests/unit/soft_nccl/ranks.h"

ncclResult_t ncclDevCommCreate(void);
ncclResult_t ncclDevCommDestroy(void);
ncclResult_t pncclDevCommCreate(void);

static void test_refused(void)
{
	IS(ncclDevCommCreate(), ncclInvalidUsage);
	IS(ncclDevCommDestroy(), ncclInvalidUsage);
	IS(pncclDevCommCreate(), ncclInvalidUsage);
}

UNIT_SUITE(refused, {"refused", test_refused})
