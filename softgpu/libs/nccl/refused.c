/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the soft GPU's NCCL does not support: communication in kernels. */
#include "softgpu/libs/nccl/api.h"

#include "softgpu/libs/common/driver.h"

/* Functions of nccl_device.h, which is C++. They write to no parameter. */
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
