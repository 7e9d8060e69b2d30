/* SPDX-License-Identifier: Apache-2.0 */
/* What the soft GPU's NCCL does not do: communication from inside of kernels. */
#include "softgpu/libs/nccl/api.h"

#include "softgpu/libs/common/driver.h"

/* Of nccl_device.h, which is C++; whatever the parameters are, nothing is written. */
#define REFUSED(name)                                  \
	ncclResult_t nccl##name(void);                 \
	ncclResult_t nccl##name(void)                  \
	{                                              \
		ckt_softlib_unsupported("nccl" #name); \
		return ncclInvalidUsage;               \
	}                                              \
	CKT_ALIAS(name)

REFUSED(DevCommCreate);
REFUSED(DevCommDestroy);
REFUSED(GinBarrierCreateRequirement);
REFUSED(LLA2ACalcSlots);
REFUSED(LLA2ACreateRequirement);
REFUSED(LsaBarrierCreateRequirement);
